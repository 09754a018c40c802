//! Carries out acts, one call of the Web API after the other.
//!
//! A post says beside its text which delivery it carries out, so that one whose answer was lost can be
//! found in the chat. Files cannot say so: which ones belong to a delivery is remembered here, and Slack
//! tells whether it has shared them. Uploading again what was not shared is seen by nobody.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};
use talaria_model::{
    Act, Address, Content, MessageId, Outbound, OutboundId, Progress, Reading, Receipt, Timestamp,
};
use talaria_platform::{FileStore, Found, Outgoing, SendError};

use super::api::{ApiError, Body};
use super::decode;
use super::emoji;
use super::encode::{self, Broadcast, Marked};
use super::hearing::{Hearing, user_of};
use super::refusal::{Purpose, is_about_the_token, send_error};
use super::shelf::Shelf;
use super::ts::Ts;
use super::upload::{self, Uploaded};
use super::wire::MessageEvent;
use super::workspaces::Workspace;
use crate::wire::http;

/// Deliveries whose attempts are remembered.
const ATTEMPTS: usize = 1_000;

/// How long they are.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long Slack may still be at work on a post that it did not confirm.
const SETTLES: Duration = Duration::from_secs(10);

/// How far back a post is looked for whose first try this process does not remember.
const LOOK_BACK: u64 = 24 * 60 * 60;

/// Pages of a thread that are searched for a post.
const PAGES: usize = 10;

/// How long answering a command by its own address may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Speaks on an account.
pub(super) struct Acts {
    hearing: Arc<Hearing>,
    files: Arc<dyn FileStore>,
    broadcast: Broadcast,
    status: String,
    attempts: Shelf<OutboundId, Attempt>,
    /// The direct chat with somebody who is named by id.
    direct: Shelf<String, String>,
    /// What we may not do in this run, by method and workspace.
    forbidden: Mutex<BTreeSet<(&'static str, String)>>,
}

/// A try to post.
#[derive(Debug, Clone)]
struct Attempt {
    at: Timestamp,
    /// The files that were about to be shared.
    files: Vec<String>,
}

#[derive(Deserialize)]
struct Posted {
    ts: Option<String>,
}

#[derive(Deserialize)]
struct Done {}

#[derive(Deserialize)]
struct Rows {
    #[serde(default)]
    messages: Vec<MessageEvent>,
    #[serde(default)]
    response_metadata: Option<Next>,
}

#[derive(Deserialize)]
struct Next {
    #[serde(default)]
    next_cursor: String,
}

impl Acts {
    pub(super) fn new(
        hearing: Arc<Hearing>,
        files: Arc<dyn FileStore>,
        broadcast: Broadcast,
        status: String,
    ) -> Self {
        Self {
            hearing,
            files,
            broadcast,
            status,
            attempts: Shelf::of(ATTEMPTS),
            direct: Shelf::of(ATTEMPTS),
            forbidden: Mutex::default(),
        }
    }

    fn now(&self) -> Timestamp {
        self.hearing.now()
    }

    fn receipt(&self, message: Option<String>) -> Receipt {
        let message = message.and_then(|message| MessageId::new(message).ok());
        Receipt { message, at: self.now() }
    }

    /// Where something is to be said. Somebody's id stands for the direct chat with them.
    async fn place(&self, to: &Address) -> Result<(&Workspace, String), SendError> {
        let id = to.chat.id.as_str();
        if !id.starts_with(['U', 'W']) {
            let workspace = self.hearing.workspaces.of_chat(id).await;
            let workspace = workspace.map_err(|error| send_error(error, Purpose::Change))?;
            return Ok((workspace, id.to_owned()));
        }
        let workspace = self.hearing.workspaces.home();
        if let Some(known) = self.direct.get(&id.to_owned(), self.now()) {
            return Ok((workspace, known));
        }
        #[derive(Deserialize)]
        struct Opened {
            channel: Channel,
        }
        #[derive(Deserialize)]
        struct Channel {
            id: String,
        }
        let body = Body::Json(json!({ "users": id }));
        let opened = self.call::<Opened>(workspace, "conversations.open", body, Purpose::Change);
        let chat = opened.await?.channel.id;
        self.direct.put(id.to_owned(), chat.clone(), self.now(), KEPT);
        self.hearing.directory.learn_direct(workspace, &chat);
        Ok((workspace, chat))
    }

    /// A call whose failure says what to do.
    async fn call<T: serde::de::DeserializeOwned>(
        &self,
        workspace: &Workspace,
        method: &'static str,
        body: Body,
        purpose: Purpose,
    ) -> Result<T, SendError> {
        let called = self.hearing.api.call(method, &workspace.token, body).await;
        called.map_err(|error| self.failed(error, workspace, method, purpose))
    }

    fn failed(
        &self,
        error: ApiError,
        workspace: &Workspace,
        method: &'static str,
        purpose: Purpose,
    ) -> SendError {
        if let ApiError::Refused(refusal) = &error {
            // One workspace that lets us go does not end the others.
            if is_about_the_token(&refusal.code) && self.hearing.workspaces.is_several() {
                let reason = format!("{} in {}", refusal.reason(), workspace.team_name);
                return SendError::Gone { reason };
            }
            let is_lasting = matches!(
                refusal.code.as_str(),
                "missing_scope" | "unknown_method" | "feature_disabled" | "HTTP 404"
            );
            if is_lasting && purpose == Purpose::Ornament {
                self.forbid(method, workspace, refusal.needed.as_deref());
            }
        }
        send_error(error, purpose)
    }

    fn forbid(&self, method: &'static str, workspace: &Workspace, needed: Option<&str>) {
        let key = (method, workspace.us.team.clone());
        let mut forbidden = self.forbidden.lock().unwrap_or_else(PoisonError::into_inner);
        if forbidden.insert(key) {
            let account = &self.hearing.account;
            tracing::warn!(%account, method, needed, "Slack does not let this app do this");
        }
    }

    fn is_forbidden(&self, method: &'static str, workspace: &Workspace) -> bool {
        let forbidden = self.forbidden.lock().unwrap_or_else(PoisonError::into_inner);
        forbidden.contains(&(method, workspace.us.team.clone()))
    }

    /// Something that people can do without.
    async fn ornament(
        &self,
        workspace: &Workspace,
        method: &'static str,
        body: Value,
    ) -> Result<(), SendError> {
        if self.is_forbidden(method, workspace) {
            return Err(SendError::Rejected { reason: format!("{method} is not permitted") });
        }
        let called =
            self.hearing.api.call::<Done>(method, &workspace.token, Body::Json(body)).await;
        match called {
            Ok(Done {}) => Ok(()),
            Err(ApiError::Refused(refusal))
                if matches!(refusal.code.as_str(), "already_reacted" | "no_reaction") =>
            {
                Ok(())
            }
            Err(error) => Err(self.failed(error, workspace, method, Purpose::Ornament)),
        }
    }

    async fn post(&self, outbound: &Outbound, content: &Content) -> Result<Receipt, SendError> {
        let (workspace, chat) = self.place(&outbound.to).await?;
        if let Some(receipt) = self.whisper(outbound, workspace, &chat, content).await? {
            return Ok(receipt);
        }
        if content.files.is_empty() {
            return self.say(outbound, workspace, &chat, content).await;
        }
        // A note may come below the text, and a comment on files has no way to say how it is to be read.
        let text = talaria_render::markdown(&content.text, content.reading).into_owned();
        let content = &Content { text, reading: Reading::Markdown, ..content.clone() };
        let words = Content { files: Vec::new(), ..content.clone() };
        let is_question = !content.choices.is_empty();
        // A message with files cannot have buttons, so a question comes behind its files.
        let comment = if is_question { "" } else { content.text.as_str() };
        if let Some(shared) = self.shared(outbound, workspace, &chat).await? {
            return match is_question {
                true => self.say(outbound, workspace, &chat, &words).await,
                false => Ok(self.receipt(Some(shared))),
            };
        }
        let uploading = content.files.iter().map(|file| {
            upload::upload(&self.hearing.api, &workspace.token, self.files.as_ref(), file)
        });
        let (mut uploaded, mut unsent) = (Vec::new(), Vec::new());
        for done in futures::future::join_all(uploading).await {
            match done.map_err(|error| send_error(error, Purpose::Change))? {
                Uploaded::Ready { id, title } => uploaded.push((id, title)),
                Uploaded::Impossible { name, reason } => {
                    tracing::warn!(account = %self.hearing.account, reason, "a file is not sent");
                    unsent.push(name);
                }
            }
        }
        let note = not_sent(&unsent);
        if uploaded.is_empty() {
            let text = joined(&content.text, &note);
            return self.say(outbound, workspace, &chat, &Content { text, ..words }).await;
        }
        let comment = joined(comment, if is_question { "" } else { &note });
        let shared = self.share(outbound, workspace, &chat, &uploaded, &comment).await?;
        if !is_question {
            return Ok(self.receipt(shared));
        }
        let text = joined(&content.text, &note);
        self.say(outbound, workspace, &chat, &Content { text, ..words }).await
    }

    /// Says what concerns one person so that nobody else reads it. None where that cannot be done: then
    /// everybody does.
    async fn whisper(
        &self,
        outbound: &Outbound,
        workspace: &Workspace,
        chat: &str,
        content: &Content,
    ) -> Result<Option<Receipt>, SendError> {
        const METHOD: &str = "chat.postEphemeral";
        let user = content.whispered_to.as_ref().map(|person| user_of(person.as_str()));
        let is_person = |user: &&str| user.starts_with(['U', 'W']);
        let Some(user) = user.filter(is_person) else { return Ok(None) };
        // It always looks for marks.
        if content.reading == Reading::AsItIs {
            return Ok(None);
        }
        let is_open = |thread: &&str| self.hearing.threads.is_open(chat, thread);
        let thread = outbound.to.thread.as_ref().map(|thread| thread.as_str()).filter(is_open);
        let body = Body::Json(encode::whisper(chat, user, thread, content));
        match self.call::<Done>(workspace, METHOD, body, Purpose::Post).await {
            Ok(Done {}) => Ok(Some(self.receipt(None))),
            // Most of all because they have left the chat.
            Err(
                error @ (SendError::Gone { .. }
                | SendError::Rejected { .. }
                | SendError::Unreadable { .. }),
            ) => {
                let account = &self.hearing.account;
                tracing::debug!(%account, %error, "everybody reads what concerns one person");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The message that shares the files of a delivery that was tried before.
    async fn shared(
        &self,
        outbound: &Outbound,
        workspace: &Workspace,
        chat: &str,
    ) -> Result<Option<String>, SendError> {
        let attempt = self.attempts.get(&outbound.id, self.now());
        let Some(file) = attempt.and_then(|attempt| attempt.files.first().cloned()) else {
            return Ok(None);
        };
        let shared = upload::shared(&self.hearing.api, &workspace.token, &file, chat).await;
        shared.map_err(|error| send_error(error, Purpose::Change))
    }

    async fn share(
        &self,
        outbound: &Outbound,
        workspace: &Workspace,
        chat: &str,
        files: &[(String, String)],
        comment: &str,
    ) -> Result<Option<String>, SendError> {
        let ids = files.iter().map(|(id, _)| id.clone()).collect();
        let attempt = Attempt { at: self.now(), files: ids };
        self.attempts.put(outbound.id.clone(), attempt, self.now(), KEPT);
        let body = Body::Json(encode::share(outbound, chat, files, comment));
        let method = "files.completeUploadExternal";
        let Done {} = self.call(workspace, method, body, Purpose::Post).await?;
        self.spoke(outbound, chat);
        // Slack shares files after it has answered; what is said next has to come below them.
        let clock = self.hearing.clock.as_ref();
        let (api, token) = (&self.hearing.api, &workspace.token);
        Ok(upload::appears(api, token, &files[0].0, chat, clock).await)
    }

    async fn say(
        &self,
        outbound: &Outbound,
        workspace: &Workspace,
        chat: &str,
        content: &Content,
    ) -> Result<Receipt, SendError> {
        let known = self.attempts.get(&outbound.id, self.now());
        let attempt = known.unwrap_or(Attempt { at: self.now(), files: Vec::new() });
        self.attempts.put(outbound.id.clone(), attempt, self.now(), KEPT);
        let api = &self.hearing.api;
        let post = |marked| {
            let body = encode::post(outbound, chat, content, marked, self.broadcast);
            api.call::<Posted>("chat.postMessage", &workspace.token, Body::Json(body))
        };
        let began = self.hearing.clock.mark();
        let posted = match post(Marked::Yes).await {
            Err(ApiError::Refused(refusal)) if refusal.code.contains("metadata") => {
                post(Marked::No).await
            }
            posted => posted,
        };
        match posted {
            Ok(Posted { ts }) => {
                if let Some(ts) = &ts {
                    self.hearing.kept.echoes.posted(chat, ts, began, self.now());
                }
                self.spoke(outbound, chat);
                self.hearing.directory.learn_direct(workspace, chat);
                Ok(self.receipt(ts))
            }
            Err(ApiError::Refused(refusal))
                if matches!(refusal.code.as_str(), "not_in_channel" | "channel_not_found") =>
            {
                let gone = send_error(ApiError::Refused(refusal), Purpose::Post);
                self.answer(chat, content).await.ok_or(gone)
            }
            Err(error) => Err(self.failed(error, workspace, "chat.postMessage", Purpose::Post)),
        }
    }

    fn spoke(&self, outbound: &Outbound, chat: &str) {
        if let Some(thread) = &outbound.to.thread {
            self.hearing.threads.spoke(chat, thread.as_str());
        }
    }

    /// Where we are not in the chat, the one who gave a command there can still be answered, in
    /// private. None where it is not certain who that is.
    async fn answer(&self, chat: &str, content: &Content) -> Option<Receipt> {
        let answers = &self.hearing.kept.answers;
        let way = answers.way(chat, content.whispered_to.as_ref(), self.now())?;
        let url = Url::parse(way.url.expose()).ok()?;
        if !self.hearing.api.is_slack(&url) {
            return None;
        }
        let client = self.hearing.api.http.client(&url).ok()?;
        let request = client
            .post(url)
            .header("content-type", "application/json; charset=utf-8")
            .body(encode::answer(content).to_string());
        let reply = http::call(request, ANSWER_LIMIT).await.ok()?;
        let refused = reply.json::<Value>().is_ok_and(|reply| reply["ok"] == json!(false));
        if !reply.status.is_success() || refused {
            answers.close(&way);
            return None;
        }
        Some(self.receipt(None))
    }

    async fn mark(
        &self,
        to: &Address,
        message: &MessageId,
        progress: Progress,
    ) -> Result<Receipt, SendError> {
        const SEEN: &str = "eyes";
        const DONE: &str = "white_check_mark";
        const FAILED: &str = "x";
        let (gone, shown): (&[&str], _) = match progress {
            Progress::Seen => (&[], Some(SEEN)),
            Progress::Done => (&[SEEN], Some(DONE)),
            Progress::Failed => (&[SEEN], Some(FAILED)),
            Progress::Nothing => (&[SEEN, DONE, FAILED], None),
        };
        let (workspace, chat) = self.place(to).await?;
        for name in gone {
            let body = encode::reaction(&chat, message.as_str(), name);
            self.ornament(workspace, "reactions.remove", body).await?;
        }
        if let Some(name) = shown {
            let body = encode::reaction(&chat, message.as_str(), name);
            self.ornament(workspace, "reactions.add", body).await?;
        }
        Ok(self.receipt(None))
    }

    /// Shows what we are doing; nothing where that is no words.
    async fn status(&self, to: &Address, status: &str) -> Result<Receipt, SendError> {
        let (workspace, chat) = self.place(to).await?;
        let thread = to.thread.as_ref().map(ToString::to_string);
        let Some(thread) = thread.or_else(|| self.hearing.threads.newest(&chat)) else {
            return Err(SendError::Rejected { reason: "there is no message to show it at".into() });
        };
        let body = encode::status(&chat, &thread, status);
        self.ornament(workspace, "assistant.threads.setStatus", body).await?;
        Ok(self.receipt(None))
    }

    /// Looks for a post in the chat. None when Slack does not let us look.
    async fn look(&self, outbound: &Outbound) -> Result<Option<Option<String>>, SendError> {
        let (workspace, chat) = self.place(&outbound.to).await?;
        let delivery = outbound.id.to_string();
        let first = self.attempts.get(&outbound.id, self.now()).map(|attempt| attempt.at);
        let since = match first {
            Some(at) => Ts::at(at).before(60),
            None => Ts::at(self.now()).before(LOOK_BACK),
        };
        let mut cursor = String::new();
        for _ in 0..PAGES {
            let mut fields = vec![
                ("channel", chat.clone()),
                ("oldest", since.to_string()),
                ("limit", "200".to_owned()),
                ("include_all_metadata", "true".to_owned()),
            ];
            if !cursor.is_empty() {
                fields.push(("cursor", cursor));
            }
            let method = match &outbound.to.thread {
                Some(thread) => {
                    fields.push(("ts", thread.to_string()));
                    "conversations.replies"
                }
                None => "conversations.history",
            };
            let asked = self.hearing.api.call::<Rows>(method, &workspace.token, Body::Form(fields));
            let page = match asked.await {
                Ok(page) => page,
                Err(ApiError::Refused(refusal)) if !is_about_the_token(&refusal.code) => {
                    return Ok(None);
                }
                Err(error) => return Err(send_error(error, Purpose::Change)),
            };
            let is_it = |row: &&MessageEvent| {
                decode::is_ours(row, &workspace.us)
                    && row.metadata.as_ref().and_then(decode::delivery).as_ref() == Some(&delivery)
            };
            if let Some(found) = page.messages.iter().find(is_it) {
                return Ok(Some(found.ts.clone()));
            }
            cursor = page.response_metadata.map(|next| next.next_cursor).unwrap_or_default();
            if cursor.is_empty() {
                return Ok(Some(None));
            }
        }
        Ok(None)
    }
}

#[async_trait]
impl Outgoing for Acts {
    async fn send(&self, outbound: &Outbound) -> Result<Receipt, SendError> {
        let to = &outbound.to;
        match &outbound.act {
            Act::Post(content) => self.post(outbound, content).await,
            Act::Edit { message, content } => {
                let (workspace, chat) = self.place(to).await?;
                let body = Body::Json(encode::edit(&chat, message.as_str(), content));
                let Done {} = self.call(workspace, "chat.update", body, Purpose::Change).await?;
                Ok(self.receipt(Some(message.to_string())))
            }
            Act::Delete { message } => {
                let (workspace, chat) = self.place(to).await?;
                let body = Body::Json(encode::delete(&chat, message.as_str()));
                let deleted =
                    self.hearing.api.call::<Done>("chat.delete", &workspace.token, body).await;
                match deleted {
                    Ok(Done {}) => Ok(self.receipt(None)),
                    Err(ApiError::Refused(refusal)) if refusal.code == "message_not_found" => {
                        Ok(self.receipt(None))
                    }
                    Err(error) => {
                        Err(self.failed(error, workspace, "chat.delete", Purpose::Change))
                    }
                }
            }
            Act::React { message, emoji } => {
                let Some(name) = emoji::name(emoji) else {
                    let reason = "Slack has no name for this emoji".into();
                    return Err(SendError::Rejected { reason });
                };
                let (workspace, chat) = self.place(to).await?;
                let body = encode::reaction(&chat, message.as_str(), name);
                self.ornament(workspace, "reactions.add", body).await?;
                Ok(self.receipt(None))
            }
            Act::Mark { message, progress } => self.mark(to, message, *progress).await,
            Act::Typing => self.status(to, &self.status).await,
            Act::Rest => self.status(to, "").await,
            Act::Draft(_) => Err(SendError::Rejected { reason: "Slack shows no drafts".into() }),
        }
    }

    async fn find(&self, outbound: &Outbound) -> Result<Found, SendError> {
        let Act::Post(content) = &outbound.act else { return Ok(Found::Unknown) };
        let came_back = self.hearing.kept.echoes.of(&outbound.id.to_string(), self.now());
        if let Some(ts) = came_back {
            return Ok(Found::Shown(self.receipt(Some(ts))));
        }
        let attempt = self.attempts.get(&outbound.id, self.now());
        if content.whispered_to.is_some() && attempt.is_none() {
            // Nobody can look for what only one person reads.
            return Ok(Found::Unknown);
        }
        let settles = attempt.as_ref().map(|attempt| attempt.at + SETTLES);
        if !content.files.is_empty() && content.choices.is_empty() {
            let shares = attempt.is_some_and(|attempt| !attempt.files.is_empty());
            let (workspace, chat) = self.place(&outbound.to).await?;
            if shares {
                let shared = self.shared(outbound, workspace, &chat).await?;
                return Ok(match shared {
                    Some(ts) => Found::Shown(self.receipt(Some(ts))),
                    None if settles.is_some_and(|settled| self.now() < settled) => Found::Unknown,
                    None => Found::Absent,
                });
            }
        }
        let mut found = self.look(outbound).await?;
        let early = settles.map(|settled| settled.since(self.now())).filter(|wait| !wait.is_zero());
        if let (Some(None), Some(wait)) = (&found, early) {
            self.hearing.clock.sleep(wait).await;
            found = self.look(outbound).await?;
        }
        Ok(match found {
            Some(Some(ts)) => Found::Shown(self.receipt(Some(ts))),
            // A file that was shared without our remembering it says nothing about its delivery.
            Some(None) if content.files.is_empty() || !content.choices.is_empty() => Found::Absent,
            Some(None) | None => Found::Unknown,
        })
    }
}

fn not_sent(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => {
            let names: Vec<String> =
                names.iter().map(|name| talaria_render::literal(name)).collect();
            format!("(not sent here: {})", names.join("; "))
        }
    }
}

fn joined(text: &str, note: &str) -> String {
    match (text.trim().is_empty(), note.is_empty()) {
        (_, true) => text.to_owned(),
        (true, false) => note.to_owned(),
        (false, false) => talaria_render::append(text, note),
    }
}
