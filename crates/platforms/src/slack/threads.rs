//! What is known of threads: where we have spoken, and what was said in one before we were asked.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use talaria_clock::Clock;
use talaria_model::{Address, Author, Bystander, Overheard, Quote, SenderKind, Timestamp};
use talaria_platform::Archive;

use super::api::{Api, Body};
use super::decode::{self, Origin, Person};
use super::directory::Directory;
use super::shelf::Shelf;
use super::text::{self, Names};
use super::wire::MessageEvent;
use super::workspaces::Workspace;

/// Threads that are remembered.
const THREADS: usize = 5_000;

/// Longer than anybody leaves a thread alone and comes back without a mention.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How many messages of a thread are read when we are first spoken to in it.
const CONTEXT: usize = 30;

/// The most of one message.
const LONGEST: usize = 2_000;

/// How long what was said before is worth waiting for.
const PATIENCE: Duration = Duration::from_secs(4);

/// Knows the threads of an account.
pub(super) struct Threads {
    archive: Arc<dyn Archive>,
    clock: Arc<dyn Clock>,
    /// Those of which the agent has seen what was said before it was asked.
    told: Shelf<(String, String), ()>,
    /// Those in which we have spoken.
    spoken: Shelf<(String, String), ()>,
    /// Those in which anybody has answered.
    grown: Shelf<(String, String), ()>,
    /// Where somebody was last active in a chat.
    latest: Shelf<(String, String), String>,
    /// The newest message of somebody else in a chat.
    newest: Shelf<String, String>,
}

/// Something that was said to us.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) at: Address,
    /// By whom.
    pub(super) user: String,
    pub(super) message: Option<String>,
    /// Whether nothing was said in its thread before.
    pub(super) begins: bool,
}

/// What was said in a thread before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Before {
    pub(super) overheard: Vec<Overheard>,
    /// What the thread is about, when we began it.
    pub(super) quote: Option<Quote>,
}

#[derive(Deserialize)]
struct Replies {
    #[serde(default)]
    messages: Vec<MessageEvent>,
}

impl Threads {
    pub(super) fn new(archive: Arc<dyn Archive>, clock: Arc<dyn Clock>) -> Self {
        let [told, spoken, grown] = std::array::from_fn(|_| Shelf::of(THREADS));
        let (latest, newest) = (Shelf::of(THREADS), Shelf::of(THREADS));
        Self { archive, clock, told, spoken, grown, latest, newest }
    }

    /// We have spoken in a thread.
    pub(super) fn spoke(&self, chat: &str, thread: &str) {
        self.spoken.put((chat.to_owned(), thread.to_owned()), (), self.now(), KEPT);
    }

    /// Whether we are known to have spoken in a thread.
    pub(super) fn has_spoken(&self, chat: &str, thread: &str) -> bool {
        self.spoken.get(&(chat.to_owned(), thread.to_owned()), self.now()).is_some()
    }

    /// Somebody has answered in a thread.
    pub(super) fn grew(&self, chat: &str, thread: &str) {
        self.grown.put((chat.to_owned(), thread.to_owned()), (), self.now(), KEPT);
    }

    /// Whether there is more of a thread than the message that it hangs below, as far as is known.
    pub(super) fn is_open(&self, chat: &str, thread: &str) -> bool {
        let key = (chat.to_owned(), thread.to_owned());
        self.has_spoken(chat, thread) || self.grown.get(&key, self.now()).is_some()
    }

    /// The agent has seen what was said in a thread before.
    fn tell(&self, chat: &str, thread: &str) {
        self.told.put((chat.to_owned(), thread.to_owned()), (), self.now(), KEPT);
    }

    /// Whether what was said in a thread before is known to have been told.
    pub(super) fn is_told(&self, at: &Address) -> bool {
        key(at).is_some_and(|key| self.told.get(&key, self.now()).is_some())
    }

    /// Somebody who is let in said something to us.
    pub(super) fn heard(&self, said: Said) {
        let Said { at, user, message, begins } = said;
        let chat = at.chat.id.as_str();
        if let Some(thread) = &at.thread {
            self.latest.put((chat.to_owned(), user), thread.to_string(), self.now(), KEPT);
            if begins {
                self.tell(chat, thread.as_str());
            }
        }
        if let Some(message) = message {
            self.newest.put(chat.to_owned(), message, self.now(), KEPT);
        }
    }

    /// Where somebody was last active in a chat. A slash command does not say to which thread it
    /// belongs; it is about what its giver did last.
    pub(super) fn latest(&self, chat: &str, user: &str) -> Option<String> {
        self.latest.get(&(chat.to_owned(), user.to_owned()), self.now())
    }

    /// The newest message of somebody else in a chat.
    pub(super) fn newest(&self, chat: &str) -> Option<String> {
        self.newest.get(&chat.to_owned(), self.now())
    }

    /// What was said in a thread before the message `ts`, the first time that we are spoken to in it.
    pub(super) async fn before(
        &self,
        at: &Address,
        ts: &str,
        workspace: &Workspace,
        api: &Api,
        directory: &Directory,
        home: &str,
    ) -> Before {
        let Some((chat, thread)) = key(at).filter(|_| !self.is_told(at)) else {
            return Before::default();
        };
        // What an earlier connection has heard there is in the conversation already.
        if self.archive.history(at, None, 1).await.is_ok_and(|entries| !entries.is_empty()) {
            self.tell(&chat, &thread);
            return Before::default();
        }
        let fields = vec![
            ("channel", chat.clone()),
            ("ts", thread.clone()),
            ("latest", ts.to_owned()),
            ("limit", CONTEXT.to_string()),
        ];
        let read = async {
            let asked = api.call("conversations.replies", &workspace.token, Body::Form(fields));
            let Replies { messages } = asked.await?;
            let is_shared = directory.room(workspace, &chat).await.is_shared;
            let origin = Origin { home, team: &workspace.us.team, is_shared };
            Ok::<_, super::api::ApiError>(before(messages, ts, workspace, directory, origin).await)
        };
        let before = tokio::select! {
            before = read => before,
            () = self.clock.sleep(PATIENCE) => {
                tracing::debug!("what was said in a thread takes too long");
                Ok(Before::default())
            }
        };
        self.tell(&chat, &thread);
        before
            .inspect_err(|error| tracing::debug!(%error, "what was said in a thread is not told"))
            .unwrap_or_default()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

fn key(at: &Address) -> Option<(String, String)> {
    at.thread.as_ref().map(|thread| (at.chat.id.to_string(), thread.to_string()))
}

async fn before(
    messages: Vec<MessageEvent>,
    ts: &str,
    workspace: &Workspace,
    directory: &Directory,
    origin: Origin<'_>,
) -> Before {
    let mut before = Before::default();
    let messages = messages.into_iter().filter(|message| message.ts.as_deref() != Some(ts));
    for (position, message) in messages.take(CONTEXT).enumerate() {
        let unnamed = text::unnamed(&message.text);
        let people = directory.people(workspace, &unnamed.people).await;
        let named = std::iter::zip(unnamed.people, people);
        let people = named.filter_map(|(id, person)| Some((id, person.name?))).collect();
        let names = Names { people, ..Names::default() };
        let said = text::readable(&message.text, &names);
        let said: String = said.trim().chars().take(LONGEST).collect();
        if said.is_empty() {
            continue;
        }
        if decode::is_ours(&message, &workspace.us) {
            // What we said later is in the conversation already.
            if position == 0 {
                before.quote = Some(Quote::new(said, Author::Us));
            }
            continue;
        }
        let id = message.user.as_deref().or(message.bot_id.as_deref());
        let person = match id {
            Some(id) => directory.person(workspace, id).await,
            None => Person::default(),
        };
        let is_bot = decode::is_bot(&message, &person);
        let kind = if is_bot { SenderKind::Bot } else { SenderKind::Person };
        let by = id.and_then(|id| {
            let (told, known) = (message.user_team.as_deref(), person.team.as_deref());
            let id = decode::principal(id, told, known, origin).ok()?;
            Some(Bystander { kind, ..Bystander::new(id) })
        });
        let shown = message.username.as_deref().map(str::to_owned).or(person.name);
        let name = shown.or_else(|| id.map(str::to_owned)).unwrap_or_else(|| "somebody".into());
        let name = if kind == SenderKind::Bot { format!("{name} (bot)") } else { name };
        // What a thread is about was chosen by whoever calls us in it.
        if position == 0 {
            before.quote = Some(Quote { by, ..Quote::new(said, Author::Named(name)) });
            continue;
        }
        before.overheard.push(Overheard { by, ..Overheard::new(name, said) });
    }
    before
}
