//! What was said while nobody listened: read from the history, oldest first, and understood like
//! everything else. The journal recognises what was heard after all.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use talaria_model::Inbound;
use talaria_platform::{Ack, Batch, LinkError};

use super::api::{ApiError, Body};
use super::directory::Channel;
use super::hearing::{Hearing, Way};
use super::refusal::{is_about_the_token, link_error};
use super::ts::Ts;
use super::wire::MessageEvent;
use super::workspaces::Workspace;

/// Slack delivers an event again for about six minutes, so what is older than the newest message may
/// still be missing for that long.
const OVERLAP: u64 = 600;

/// Rows asked for at once.
const ROWS: usize = 200;

/// Pages read of one chat or thread. What is older than they reach is left out, and said so.
const PAGES: usize = 10;

/// Pages of the list of chats.
const LIST_PAGES: usize = 20;

/// Threads that are asked for because we take part in them.
const THREADS: usize = 100;

/// Events that are committed together.
const BATCH: usize = 100;

/// How often a page is asked for before the connection is given up.
const TRIES: usize = 6;

/// How long to wait where Slack does not say.
const BREATH: Duration = Duration::from_secs(5);

/// Batches of what was missed.
pub(super) type Missed = BoxStream<'static, Result<Vec<Inbound>, LinkError>>;

/// Reads everything since `seen`, but nothing from before `earliest`.
pub(super) fn catch_up(hearing: Arc<Hearing>, seen: Ts, earliest: Ts) -> Missed {
    let since = seen.before(OVERLAP).max(earliest);
    let steps = (0..hearing.workspaces.all().count()).map(Step::List).collect();
    let reading =
        Reading { hearing, since, steps, ready: VecDeque::new(), threads: BTreeSet::new() };
    stream::unfold(Some(reading), |reading| async {
        let mut reading = reading?;
        match reading.next().await {
            Ok(Some(events)) => Some((Ok(events), Some(reading))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

/// The moment before which nothing is read.
pub(super) fn earliest(hearing: &Hearing, hours: u32) -> Ts {
    Ts::at(hearing.now()).before(u64::from(hours) * 3600)
}

struct Reading {
    hearing: Arc<Hearing>,
    since: Ts,
    steps: VecDeque<Step>,
    ready: VecDeque<Vec<Inbound>>,
    threads: BTreeSet<(String, String)>,
}

/// One thing to read. Workspaces are named by their place in the list.
enum Step {
    List(usize),
    Room(usize, Channel),
    Thread(usize, String, String),
}

#[derive(Deserialize)]
struct Channels {
    #[serde(default)]
    channels: Vec<Channel>,
    #[serde(default)]
    response_metadata: Option<Next>,
}

#[derive(Deserialize)]
struct Rows {
    #[serde(default)]
    messages: Vec<MessageEvent>,
    #[serde(default)]
    response_metadata: Option<Next>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Next {
    next_cursor: String,
}

/// The name of the page behind this one.
fn further(next: Option<Next>) -> Option<String> {
    next.map(|next| next.next_cursor).filter(|cursor| !cursor.is_empty())
}

impl Reading {
    async fn next(&mut self) -> Result<Option<Vec<Inbound>>, LinkError> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            let Some(step) = self.steps.pop_front() else { return Ok(None) };
            let hearing = self.hearing.clone();
            match step {
                Step::List(at) => self.list(&hearing, at).await?,
                Step::Room(at, channel) => self.room(&hearing, at, channel).await?,
                Step::Thread(at, chat, thread) => self.thread(&hearing, at, chat, thread).await?,
            }
        }
    }

    /// Direct chats first: somebody waits there.
    async fn list(&mut self, hearing: &Hearing, at: usize) -> Result<(), LinkError> {
        let Some(workspace) = hearing.workspaces.all().nth(at) else { return Ok(()) };
        let mut channels = Vec::new();
        let mut cursor = None;
        for _ in 0..LIST_PAGES {
            let mut fields = vec![
                ("types", "public_channel,private_channel,mpim,im".to_owned()),
                ("exclude_archived", "true".to_owned()),
                ("limit", ROWS.to_string()),
            ];
            fields.extend(cursor.map(|cursor| ("cursor", cursor)));
            let page: Option<Channels> =
                ask(hearing, workspace, "users.conversations", fields).await?;
            let Some(page) = page else { break };
            channels.extend(page.channels);
            cursor = further(page.response_metadata);
            if cursor.is_none() {
                break;
            }
        }
        // All of them at once: a slash command does not wait until its chat is read.
        for channel in channels.iter().filter(|channel| channel.is_im) {
            hearing.directory.learn_direct(workspace, &channel.id);
        }
        channels.sort_by_key(|channel| (!channel.is_im, !channel.is_mpim));
        let known: Vec<_> = hearing.archive.conversations(THREADS).await.unwrap_or_default();
        for conversation in known {
            let (chat, thread) = (conversation.at.chat.id, conversation.at.thread);
            if let Some(thread) = thread
                && channels.iter().any(|channel| channel.id == chat.as_str())
            {
                self.wants_thread(at, chat.as_str(), thread.as_str());
            }
        }
        // What is at the top of a chat comes before what is said below it.
        for channel in channels.into_iter().rev() {
            self.steps.push_front(Step::Room(at, channel));
        }
        Ok(())
    }

    fn wants_thread(&mut self, at: usize, chat: &str, thread: &str) {
        if self.threads.insert((chat.to_owned(), thread.to_owned())) {
            self.steps.push_back(Step::Thread(at, chat.to_owned(), thread.to_owned()));
        }
    }

    async fn room(
        &mut self,
        hearing: &Hearing,
        at: usize,
        channel: Channel,
    ) -> Result<(), LinkError> {
        let Some(workspace) = hearing.workspaces.all().nth(at) else { return Ok(()) };
        let chat = channel.id.clone();
        let kind = channel.is_im.then_some("im");
        hearing.directory.learn(workspace, channel);
        let fields = vec![("channel", chat.clone()), ("oldest", self.since.to_string())];
        // The newest come first.
        let mut rows = pages(hearing, workspace, "conversations.history", fields).await?;
        rows.reverse();
        for row in &rows {
            let replied = row.latest_reply.as_deref().and_then(Ts::parse);
            if let Some(ts) = &row.ts
                && replied.is_some_and(|replied| replied > self.since)
                && row.reply_count > 0
            {
                self.wants_thread(at, &chat, ts);
            }
        }
        self.take(hearing, workspace, rows, &chat, kind).await;
        Ok(())
    }

    async fn thread(
        &mut self,
        hearing: &Hearing,
        at: usize,
        chat: String,
        thread: String,
    ) -> Result<(), LinkError> {
        let Some(workspace) = hearing.workspaces.all().nth(at) else { return Ok(()) };
        let fields = vec![
            ("channel", chat.clone()),
            ("ts", thread.clone()),
            ("oldest", self.since.to_string()),
        ];
        let mut rows = pages(hearing, workspace, "conversations.replies", fields).await?;
        // The first row is what the thread is below; the history of the chat has it.
        rows.retain(|row| row.ts.as_deref() != Some(thread.as_str()));
        let kind = chat.starts_with('D').then_some("im");
        self.take(hearing, workspace, rows, &chat, kind).await;
        Ok(())
    }

    /// Rows do not say where they are from.
    async fn take(
        &mut self,
        hearing: &Hearing,
        workspace: &Workspace,
        rows: Vec<MessageEvent>,
        chat: &str,
        kind: Option<&str>,
    ) {
        let mut events = Vec::new();
        for mut row in rows {
            let is_recent = row.ts.as_deref().and_then(Ts::parse).is_some_and(|ts| ts > self.since);
            if !is_recent {
                continue;
            }
            row.channel = Some(chat.to_owned());
            row.channel_type = kind.map(str::to_owned);
            if row.kind.is_empty() {
                row.kind = "message".to_owned();
            }
            events.extend(hearing.message(&row, workspace, Way::Found).await.events);
            if events.len() == BATCH {
                self.ready.push_back(std::mem::take(&mut events));
            }
        }
        if !events.is_empty() {
            self.ready.push_back(events);
        }
    }
}

async fn pages(
    hearing: &Hearing,
    workspace: &Workspace,
    method: &'static str,
    fields: Vec<(&'static str, String)>,
) -> Result<Vec<MessageEvent>, LinkError> {
    let mut rows = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES {
        let mut fields = fields.clone();
        fields.push(("limit", ROWS.to_string()));
        fields.push(("include_all_metadata", "true".to_owned()));
        fields.extend(cursor.map(|cursor| ("cursor", cursor)));
        let page: Option<Rows> = ask(hearing, workspace, method, fields).await?;
        let Some(page) = page else { return Ok(rows) };
        rows.extend(page.messages);
        cursor = further(page.response_metadata);
        if cursor.is_none() {
            return Ok(rows);
        }
    }
    tracing::warn!(account = %hearing.account, method, "more was said than is read again");
    Ok(rows)
}

/// Asks until there is an answer. None for a chat that is not ours to read.
async fn ask<T: DeserializeOwned>(
    hearing: &Hearing,
    workspace: &Workspace,
    method: &'static str,
    fields: Vec<(&'static str, String)>,
) -> Result<Option<T>, LinkError> {
    let mut tries = 0;
    loop {
        let asked = hearing.api.call(method, &workspace.token, Body::Form(fields.clone())).await;
        tries += 1;
        let error = match asked {
            Ok(told) => return Ok(Some(told)),
            Err(error) => error,
        };
        let wait = match &error {
            ApiError::Refused(refusal) if is_about_the_token(&refusal.code) => {
                if hearing.workspaces.is_several() {
                    tracing::warn!(account = %hearing.account, method, %error, "cannot be read");
                    return Ok(None);
                }
                return Err(link_error(error));
            }
            ApiError::Refused(refusal) if refusal.code != "internal_error" => {
                tracing::warn!(account = %hearing.account, method, %error, "cannot be read");
                return Ok(None);
            }
            ApiError::Throttled(after) => *after,
            _ => BREATH,
        };
        if tries == TRIES {
            return Err(link_error(error));
        }
        hearing.clock.sleep(wait).await;
    }
}

/// Keeps what was missed apart from what happens now, until it is stored.
pub(super) struct CatchUp {
    hearing: Arc<Hearing>,
    hours: u32,
    missed: Option<Missed>,
    /// Set once the batch handed on last is stored.
    stored: Option<Arc<AtomicBool>>,
}

impl CatchUp {
    pub(super) fn new(hearing: Arc<Hearing>, hours: u32) -> Self {
        Self { hearing, hours, missed: None, stored: None }
    }

    /// Begins to read what was missed, if it is known since when.
    pub(super) fn begin(&mut self) {
        let Some(seen) = self.hearing.position.seen().filter(|_| self.hours > 0) else { return };
        self.hearing.position.hold();
        let earliest = earliest(&self.hearing, self.hours);
        // What was being read is older, and read again.
        self.missed = Some(catch_up(self.hearing.clone(), seen, earliest));
        self.stored = None;
    }

    /// The next batch of what was missed. Waits for ever when nothing was.
    pub(super) async fn next(&mut self) -> Result<Batch, LinkError> {
        let Some(missed) = &mut self.missed else { return std::future::pending().await };
        if self.stored.take().is_some_and(|stored| !stored.load(Ordering::Acquire)) {
            // Nobody delivers it again but us, beginning where the last stored batch ended.
            return Err(LinkError::Lost { reason: "what was missed could not be stored".into() });
        }
        let events = match missed.next().await {
            Some(events) => events?,
            None => {
                self.missed = None;
                self.hearing.position.release();
                Vec::new()
            }
        };
        let stored = Arc::new(AtomicBool::new(false));
        self.stored = Some(stored.clone());
        let (hearing, lessons) = (self.hearing.clone(), Hearing::lessons(&events));
        let ack = Ack::with(move |committed| {
            hearing.remember(lessons, &committed.0);
            stored.store(true, Ordering::Release);
        });
        Ok(Batch { events, cursor: self.hearing.position.cursor(), ack })
    }
}
