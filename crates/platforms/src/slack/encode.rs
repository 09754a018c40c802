//! Our acts as Slack's requests: pure, so that each can be compared with what Slack documents.

use serde_json::{Value, json};
use talaria_model::{Choice, Content, Outbound, Reading, TextLimit, Unit};
use talaria_render::{Dialect, parse, parts_in, read, render};

use super::decode::{ACTION, DELIVERY};

/// The most that a section holds, with room for what is not counted as we count.
const SECTION: TextLimit = TextLimit { max: 2_900, unit: Unit::Bytes };

/// The most sections of a question; there are 50 blocks, and one has the buttons.
const SECTIONS: usize = 40;

/// The longest text of a button.
const LABEL: usize = 75;

/// Whether a post says which delivery it carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marked {
    Yes,
    /// Slack does not take it in this chat.
    No,
}

/// Whether an answer in a thread is shown in the chat, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broadcast {
    Yes,
    No,
}

/// Markdown as Slack takes it. People and channels can be mentioned, but never everybody at once.
pub(super) fn mrkdwn(markdown: &str) -> String {
    render(&parse(markdown), Dialect::SlackMrkdwn).text
}

/// What a message says, as Slack takes it where it looks for marks.
fn words(content: &Content) -> String {
    render(&read(&content.text, content.reading), Dialect::SlackMrkdwn).text
}

/// The same where it is told not to look for any: only what it reads in any text is written otherwise.
fn literal(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// `chat.postMessage`
pub(super) fn post(
    outbound: &Outbound,
    chat: &str,
    content: &Content,
    marked: Marked,
    broadcast: Broadcast,
) -> Value {
    let text = match content.reading {
        Reading::Markdown => words(content),
        Reading::AsItIs => literal(&content.text),
    };
    let mut post = json!({
        "channel": chat,
        "text": shown(&text, &content.choices),
        "unfurl_links": false,
        "unfurl_media": false,
    });
    if content.reading == Reading::AsItIs {
        post["mrkdwn"] = json!(false);
    }
    if let Some(thread) = &outbound.to.thread {
        post["thread_ts"] = json!(thread.as_str());
        if broadcast == Broadcast::Yes && outbound.id.part == 0 {
            post["reply_broadcast"] = json!(true);
        }
    }
    if !content.choices.is_empty() {
        post["blocks"] = question(&content.text, &content.choices);
    }
    if marked == Marked::Yes {
        let payload = json!({ "id": outbound.id.to_string() });
        post["metadata"] = json!({ "event_type": DELIVERY, "event_payload": payload });
    }
    post
}

/// `chat.postEphemeral`. In a thread it is shown only where somebody has answered already.
pub(super) fn whisper(chat: &str, user: &str, thread: Option<&str>, content: &Content) -> Value {
    let text = shown(&words(content), &[]);
    let mut whisper = json!({ "channel": chat, "user": user, "text": text });
    if let Some(thread) = thread {
        whisper["thread_ts"] = json!(thread);
    }
    whisper
}

/// `chat.update`. What it said about its delivery stays.
pub(super) fn edit(chat: &str, message: &str, content: &Content) -> Value {
    let text = words(content);
    let mut edit = json!({
        "channel": chat,
        "ts": message,
        "text": shown(&text, &content.choices),
        // Unlike a post, an edit would make links of names by itself.
        "parse": "none",
    });
    if !content.choices.is_empty() {
        edit["blocks"] = question(&content.text, &content.choices);
    }
    edit
}

/// What is shown in notifications, and without blocks in the chat. It cannot be empty.
fn shown(text: &str, choices: &[Choice]) -> String {
    if !text.is_empty() {
        return text.to_owned();
    }
    let labels: Vec<String> = choices.iter().map(|choice| mrkdwn(&label(&choice.label))).collect();
    if labels.is_empty() { "…".to_owned() } else { labels.join(" / ") }
}

fn question(markdown: &str, choices: &[Choice]) -> Value {
    let sections = parts_in(markdown, SECTION, Dialect::SlackMrkdwn).take(SECTIONS).map(
        |part| json!({ "type": "section", "text": { "type": "mrkdwn", "text": mrkdwn(&part) } }),
    );
    let buttons = choices.iter().enumerate().map(|(number, choice)| {
        json!({
            "type": "button",
            "action_id": format!("{ACTION}{number}"),
            "text": { "type": "plain_text", "text": label(&choice.label), "emoji": true },
            "value": choice.id.as_str(),
        })
    });
    let buttons: Vec<Value> = buttons.collect();
    let actions = json!({ "type": "actions", "elements": buttons });
    Value::Array(sections.chain([actions]).collect())
}

fn label(text: &str) -> String {
    let text = text.trim();
    let text = if text.is_empty() { "…" } else { text };
    if text.chars().count() <= LABEL {
        return text.to_owned();
    }
    text.chars().take(LABEL - 1).chain(['…']).collect()
}

/// `chat.delete`
pub(super) fn delete(chat: &str, message: &str) -> Value {
    json!({ "channel": chat, "ts": message })
}

/// `reactions.add` and `reactions.remove`
pub(super) fn reaction(chat: &str, message: &str, name: &str) -> Value {
    json!({ "channel": chat, "timestamp": message, "name": name })
}

/// `assistant.threads.setStatus`
pub(super) fn status(chat: &str, thread: &str, status: &str) -> Value {
    json!({ "channel_id": chat, "thread_ts": thread, "status": status })
}

/// `files.completeUploadExternal`
pub(super) fn share(
    outbound: &Outbound,
    chat: &str,
    files: &[(String, String)],
    comment: &str,
) -> Value {
    let files: Vec<Value> =
        files.iter().map(|(id, title)| json!({ "id": id, "title": title })).collect();
    let mut share = json!({ "files": files, "channel_id": chat });
    if let Some(thread) = &outbound.to.thread {
        share["thread_ts"] = json!(thread.as_str());
    }
    if !comment.is_empty() {
        share["initial_comment"] = json!(mrkdwn(comment));
    }
    share
}

/// What an address that Slack handed out with a command takes.
pub(super) fn answer(content: &Content) -> Value {
    let text = shown(&words(content), &[]);
    json!({ "response_type": "ephemeral", "replace_original": false, "text": text })
}
