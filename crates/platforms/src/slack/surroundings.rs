//! What Slack can be asked about a message once it is stored and let in: who is named in it, what its
//! chat is called, what was said in its thread before. Before that, nothing is asked: Slack waits for
//! the acknowledgement, and a stranger is no reason to ask anything.

use serde::{Deserialize, Serialize};
use talaria_model::{Addressed, Below, ChatKind, Inbound, InboundKind, Message};
use talaria_platform::Surroundings;

use super::hearing::{Hearing, user_of};
use super::text;
use super::threads::Before;
use super::workspaces::Workspace;

/// What is not known of a message.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Open {
    /// The workspace that is asked.
    team: String,
    /// People in the text without a name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    people: Vec<String>,
    /// Chats in the text without a name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rooms: Vec<String>,
    /// The sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<String>,
    /// The chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    chat: Option<String>,
    /// Behind which message the thread has to be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
}

impl Open {
    fn is_empty(&self) -> bool {
        self.people.is_empty()
            && self.rooms.is_empty()
            && self.sender.is_none()
            && self.chat.is_none()
            && self.thread.is_none()
    }
}

impl Hearing {
    /// Notes in a message what has to be asked about it. A command is obeyed as it is.
    pub(super) fn leave_open(&self, inbound: &mut Inbound, text: &str, workspace: &Workspace) {
        let (InboundKind::Said(message) | InboundKind::Edited(message)) = &mut inbound.kind else {
            return;
        };
        if message.text.starts_with('/') {
            return;
        }
        let mut unnamed = text::unnamed(text);
        let directory = &self.directory;
        unnamed.people.retain(|id| directory.known_person(workspace, id).is_none());
        unnamed.rooms.retain(|id| directory.known_room(workspace, id).is_none());
        let user = user_of(inbound.from.id.as_str());
        let chat = inbound.to.chat.id.as_str();
        let is_direct = inbound.to.chat.kind == ChatKind::Dm;
        let is_ours =
            message.addressed == Addressed::ToUs || inbound.source.below == Some(Below::Us);
        let is_new = is_ours && message.reply_to.is_some() && !self.threads.is_told(&inbound.to);
        let open = Open {
            team: workspace.us.team.clone(),
            people: unnamed.people,
            rooms: unnamed.rooms,
            sender: Some(user.to_owned()).filter(|user| {
                inbound.from.name.is_none() && directory.known_person(workspace, user).is_none()
            }),
            chat: Some(chat.to_owned())
                .filter(|chat| !is_direct && directory.known_room(workspace, chat).is_none()),
            thread: message.id.as_ref().filter(|_| is_new).map(ToString::to_string),
        };
        if !open.is_empty() {
            message.surroundings = serde_json::to_string(&open).ok();
        }
    }

    /// Asks what was left open.
    pub(super) async fn surroundings(&self, inbound: &Inbound) -> Surroundings {
        let (InboundKind::Said(message) | InboundKind::Edited(message)) = &inbound.kind else {
            return Surroundings::default();
        };
        let open = message.surroundings.as_deref().and_then(|open| serde_json::from_str(open).ok());
        let open: Open = open.unwrap_or_default();
        let Some(workspace) = self.workspaces.of_team(&open.team) else {
            return Surroundings::default();
        };
        let directory = &self.directory;
        let sender = async { Some(directory.person(workspace, open.sender.as_deref()?).await) };
        let chat = async { Some(directory.room(workspace, open.chat.as_deref()?).await) };
        let before = async {
            let Some(ts) = &open.thread else { return Before::default() };
            let home = &self.workspaces.home().us.team;
            self.threads.before(&inbound.to, ts, workspace, &self.api, directory, home).await
        };
        let (sender, chat, people, rooms, before) = tokio::join!(
            sender,
            chat,
            directory.people(workspace, &open.people),
            directory.rooms(workspace, &open.rooms),
            before,
        );
        let people = people.into_iter().map(|person| person.name);
        let rooms = rooms.into_iter().map(|room| room.name);
        let people = open.people.iter().zip(people).map(|(id, name)| ('@', id, name));
        let rooms = open.rooms.iter().zip(rooms).map(|(id, name)| ('#', id, name));
        let chat = chat.unwrap_or_default();
        Surroundings {
            text: named(message, people.chain(rooms)),
            sender: sender.and_then(|sender| sender.name),
            chat: chat.name,
            topic: chat.topic,
            overheard: before.overheard,
            quote: before.quote,
        }
    }
}

/// The text of a message with names in the place of ids.
fn named<'a>(
    message: &Message,
    names: impl Iterator<Item = (char, &'a String, Option<String>)>,
) -> Option<String> {
    let mut names: Vec<_> = names.filter_map(|(sign, id, name)| Some((sign, id, name?))).collect();
    // One id can be the beginning of another.
    names.sort_by_key(|(_, id, _)| std::cmp::Reverse(id.len()));
    let mut text = message.text.clone();
    for (sign, id, name) in names {
        text = text.replace(&format!("{sign}{id}"), &format!("{sign}{name}"));
    }
    (text != message.text).then_some(text)
}
