//! The names of people and chats, asked of Slack and kept for a while.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use talaria_clock::Clock;
use talaria_model::ChatKind;

use super::api::{Api, Body};
use super::decode::{Person, Room};
use super::shelf::Shelf;
use super::wire::Profile;
use super::workspaces::Workspace;

/// How many are remembered, of each.
const REMEMBERED: usize = 20_000;

/// A direct chat with us stays one.
const FOR_GOOD: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long a name is taken for the right one.
const FRESH: Duration = Duration::from_secs(60 * 60);

/// How long it takes until we ask again for what Slack did not tell.
const UNTOLD: Duration = Duration::from_secs(60);

/// How long a name is worth waiting for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Knows who and where.
pub(super) struct Directory {
    api: Api,
    clock: Arc<dyn Clock>,
    people: Shelf<(String, String), Person>,
    rooms: Shelf<(String, String), Room>,
    /// The direct chats with us.
    direct: Shelf<(String, String), ()>,
}

#[derive(Deserialize)]
struct UserReply {
    user: User,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    team_id: Option<String>,
    name: Option<String>,
    real_name: Option<String>,
    is_bot: bool,
    profile: Profile,
}

#[derive(Deserialize)]
struct BotReply {
    bot: Bot,
}

#[derive(Deserialize)]
struct Bot {
    name: Option<String>,
}

#[derive(Deserialize)]
struct RoomReply {
    channel: Channel,
}

/// A chat as Slack describes it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Channel {
    pub(super) id: String,
    name: Option<String>,
    pub(super) is_im: bool,
    pub(super) is_mpim: bool,
    is_ext_shared: bool,
    topic: Option<Purpose>,
    purpose: Option<Purpose>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Purpose {
    value: String,
}

impl Directory {
    pub(super) fn new(api: Api, clock: Arc<dyn Clock>) -> Self {
        let (people, rooms) = (Shelf::of(REMEMBERED), Shelf::of(REMEMBERED));
        Self { api, clock, people, rooms, direct: Shelf::of(REMEMBERED) }
    }

    /// Somebody, if nothing has to be asked for that.
    pub(super) fn known_person(&self, workspace: &Workspace, id: &str) -> Option<Person> {
        self.people.get(&(workspace.us.team.clone(), id.to_owned()), self.clock.now())
    }

    /// A chat, if nothing has to be asked for that.
    pub(super) fn known_room(&self, workspace: &Workspace, id: &str) -> Option<Room> {
        self.rooms.get(&(workspace.us.team.clone(), id.to_owned()), self.clock.now())
    }

    /// Whether a chat is known to be a direct one with us. The id of one between two other people looks
    /// the same, and slash commands can be given there, too.
    pub(super) fn is_direct(&self, workspace: &Workspace, id: &str) -> bool {
        let key = (workspace.us.team.clone(), id.to_owned());
        self.direct.get(&key, self.clock.now()).is_some()
    }

    /// Slack let us hear or speak in a chat. It does so in no direct chat but our own.
    pub(super) fn learn_direct(&self, workspace: &Workspace, id: &str) {
        if id.starts_with('D') {
            let key = (workspace.us.team.clone(), id.to_owned());
            self.direct.put(key, (), self.clock.now(), FOR_GOOD);
        }
    }

    /// Somebody, as far as Slack tells.
    pub(super) async fn person(&self, workspace: &Workspace, id: &str) -> Person {
        let key = (workspace.us.team.clone(), id.to_owned());
        if let Some(known) = self.people.get(&key, self.clock.now()) {
            return known;
        }
        let told = if id.starts_with('B') {
            let asked = self.ask::<BotReply>(workspace, "bots.info", ("bot", id)).await;
            asked.map(|BotReply { bot }| Person { name: bot.name, team: None, is_bot: true })
        } else {
            let asked = self.ask::<UserReply>(workspace, "users.info", ("user", id)).await;
            asked.map(|UserReply { user }| person(user))
        };
        let keep = if told.is_some() { FRESH } else { UNTOLD };
        let person = told.unwrap_or_default();
        self.people.put(key, person.clone(), self.clock.now(), keep);
        person
    }

    /// Several people at once.
    pub(super) async fn people(&self, workspace: &Workspace, ids: &[String]) -> Vec<Person> {
        join_all(ids.iter().map(|id| self.person(workspace, id))).await
    }

    /// A chat, as far as Slack tells.
    pub(super) async fn room(&self, workspace: &Workspace, id: &str) -> Room {
        let key = (workspace.us.team.clone(), id.to_owned());
        if let Some(known) = self.rooms.get(&key, self.clock.now()) {
            return known;
        }
        let asked = self.ask::<RoomReply>(workspace, "conversations.info", ("channel", id)).await;
        let keep = if asked.is_some() { FRESH } else { UNTOLD };
        let room = asked.map(|RoomReply { channel }| room(channel)).unwrap_or_default();
        if room.kind == Some(ChatKind::Dm) {
            self.learn_direct(workspace, id);
        }
        self.rooms.put(key, room.clone(), self.clock.now(), keep);
        room
    }

    /// Several chats at once.
    pub(super) async fn rooms(&self, workspace: &Workspace, ids: &[String]) -> Vec<Room> {
        join_all(ids.iter().map(|id| self.room(workspace, id))).await
    }

    /// Takes over what Slack said about a chat unasked.
    pub(super) fn learn(&self, workspace: &Workspace, channel: Channel) {
        let key = (workspace.us.team.clone(), channel.id.clone());
        self.rooms.put(key, room(channel), self.clock.now(), FRESH);
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        workspace: &Workspace,
        method: &'static str,
        (name, id): (&'static str, &str),
    ) -> Option<T> {
        let body = Body::Form(vec![(name, id.to_owned())]);
        let told = tokio::select! {
            told = self.api.call(method, &workspace.token, body) => told,
            () = self.clock.sleep(PATIENCE) => return None,
        };
        told.inspect_err(|error| tracing::debug!(method, %error, "a name is not told")).ok()
    }
}

fn person(user: User) -> Person {
    let profile = Profile {
        real_name: user.profile.real_name.or(user.real_name),
        name: user.name,
        display_name: user.profile.display_name,
    };
    let name = profile.shown().map(str::to_owned);
    Person { name, team: user.team_id, is_bot: user.is_bot }
}

fn room(channel: Channel) -> Room {
    let said = |purpose: Option<Purpose>| {
        purpose.map(|purpose| purpose.value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let kind = if channel.is_im { ChatKind::Dm } else { ChatKind::Group };
    Room {
        name: channel.name.filter(|name| !name.is_empty() && !channel.is_im),
        topic: said(channel.topic).or_else(|| said(channel.purpose)),
        kind: Some(kind),
        is_shared: channel.is_ext_shared,
    }
}
