//! From a delivery to events: looks up what a decoder has to know, decodes, and keeps what the rest of
//! the platform has to know. Live events, requests and rows of the history all come through here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use talaria_clock::Clock;
use talaria_model::{
    AccountId, Addressed, Below, ChatKind, Inbound, InboundKind, Secret, SenderKind, Timestamp,
};
use talaria_platform::{Archive, Verdict};

use super::answers::{Answers, WayBack};
use super::api::Api;
use super::decode::{self, Habits, Heard, Scene, Senseless};
use super::directory::Directory;
use super::echoes::Echoes;
use super::position::Position;
use super::text::{self, Names};
use super::threads::{Said, Threads};
use super::ts::Ts;
use super::wire::{
    EventKind, Interaction, MessageEvent, Outer, SessionStopped, SlashCommand, TokensRevoked,
};
use super::workspaces::{Workspace, Workspaces};

/// What is known of an app whichever connection it was learnt on.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) echoes: Echoes,
    /// Where a slash command can be answered when we are not in its chat.
    pub(super) answers: Answers,
}

/// Everything that hearing needs.
pub(super) struct Hearing {
    pub(super) account: AccountId,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) archive: Arc<dyn Archive>,
    pub(super) api: Api,
    pub(super) workspaces: Workspaces,
    pub(super) directory: Directory,
    pub(super) threads: Threads,
    pub(super) kept: Arc<Memory>,
    pub(super) position: Position,
    pub(super) habits: Habits,
    /// Events that made no sense.
    pub(super) skipped: AtomicU64,
}

/// What a delivery brought.
#[derive(Debug, Default)]
pub(super) struct Brought {
    pub(super) events: Vec<Inbound>,
    /// How the sender of the only event can be answered, where it came with an address.
    way_back: Option<WayBack>,
    pub(super) news: Option<News>,
}

/// What is to be remembered of an event once its sender was let in.
#[derive(Debug)]
pub(super) struct Lesson {
    said: Option<Said>,
    way_back: Option<WayBack>,
}

/// What a delivery said about the connection rather than about a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum News {
    /// Our token was taken back.
    Revoked(String),
    /// Slack left something out.
    Missed,
}

impl Brought {
    fn one(event: Inbound) -> Self {
        Self { events: vec![event], ..Self::default() }
    }

    /// What is to be remembered of its events, one for each.
    pub(super) fn lessons(&self) -> Vec<Lesson> {
        let mut lessons = Hearing::lessons(&self.events);
        if let [only] = lessons.as_mut_slice() {
            only.way_back.clone_from(&self.way_back);
        }
        lessons
    }
}

/// How a message comes to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Slack brings it, and says who is in the chat.
    Brought(Sharing),
    /// It is read from the history, which says nothing of that.
    Found,
}

/// Who is in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// People of other workspaces are in the chat.
    Shared,
    /// Only people of ours, as far as Slack says.
    Own,
}

impl Hearing {
    /// An event with what surrounds it, as JSON.
    pub(super) async fn event(&self, json: &str) -> Brought {
        let outer: Outer<'_> = match serde_json::from_str(json) {
            Ok(outer) => outer,
            Err(_) => return self.skip("an event", &Senseless::Wrong("shape")),
        };
        if outer.kind == "app_rate_limited" {
            return Brought { news: Some(News::Missed), ..Brought::default() };
        }
        let Some(event) = outer.event.map(|event| event.get()) else { return Brought::default() };
        let Some(workspace) = self.workspaces.heard_through(outer.team()) else {
            // Installed somewhere of which we have no token: nothing could be answered there.
            return self.skip("an event", &Senseless::Wrong("team"));
        };
        let kind = match serde_json::from_str::<EventKind>(event) {
            Ok(EventKind { kind }) => kind,
            Err(_) => return self.skip("an event", &Senseless::Missing("type")),
        };
        match kind.as_str() {
            "message" | "app_mention" => match serde_json::from_str::<MessageEvent>(event) {
                Ok(event) => {
                    let sharing =
                        if outer.is_ext_shared_channel { Sharing::Shared } else { Sharing::Own };
                    self.message(&event, workspace, Way::Brought(sharing)).await
                }
                Err(_) => self.skip("a message", &Senseless::Wrong("shape")),
            },
            "agent_session_stopped" => match serde_json::from_str::<SessionStopped>(event) {
                Ok(event) => self.stopped(&event, outer.event_id.as_deref(), workspace),
                Err(_) => self.skip("a stop", &Senseless::Wrong("shape")),
            },
            "tokens_revoked" => {
                let revoked: TokensRevoked = serde_json::from_str(event).unwrap_or_default();
                match revoked.tokens.bot.contains(&workspace.us.user) {
                    true => self.revoked(workspace, "tokens_revoked"),
                    false => Brought::default(),
                }
            }
            "app_uninstalled" => self.revoked(workspace, "app_uninstalled"),
            _ => Brought::default(),
        }
    }

    /// One workspace that lets us go does not end the others.
    fn revoked(&self, workspace: &Workspace, why: &str) -> Brought {
        let team = workspace.team_name.as_str();
        tracing::error!(account = %self.account, team, why, "the app was removed from a workspace");
        let news = News::Revoked(format!("{why} in {team}"));
        Brought { news: (!self.workspaces.is_several()).then_some(news), ..Brought::default() }
    }

    /// A message, live or out of the history.
    pub(super) async fn message(
        &self,
        event: &MessageEvent,
        workspace: &Workspace,
        way: Way,
    ) -> Brought {
        if let Some(chat) = &event.channel {
            self.workspaces.learn(chat, workspace);
            self.directory.learn_direct(workspace, chat);
        }
        let sharing = match way {
            Way::Brought(sharing) => sharing,
            Way::Found => Sharing::Own,
        };
        let scene = self.scene_of(event, workspace, sharing).await;
        let heard = match decode::message(event, &scene) {
            Ok(heard) => heard,
            Err(reason) => return self.skip("a message", &reason),
        };
        let mut inbound = match heard {
            Heard::Event(inbound) => *inbound,
            Heard::Echo(echo) => {
                if let Some(thread) = &event.thread_ts {
                    self.threads.spoke(&echo.chat, thread);
                }
                match way {
                    Way::Brought(_) => self.kept.echoes.came(echo, self.clock.now()),
                    Way::Found => self.kept.echoes.found(echo, self.clock.now()),
                }
                return Brought::default();
            }
            Heard::Nothing => return Brought::default(),
        };
        let said = event.message.as_deref().unwrap_or(event);
        self.leave_open(&mut inbound, &said.text, workspace);
        if let InboundKind::Said(_) = &inbound.kind {
            if let (Some(_), Some(thread)) = (inbound.source.below, &inbound.to.thread) {
                self.threads.grew(inbound.to.chat.id.as_str(), thread.as_str());
            }
            if let Some(ts) = event.ts.as_deref().and_then(Ts::parse) {
                self.position.advance(ts);
            }
        }
        Brought::one(inbound)
    }

    /// What is to be remembered of events, one for each.
    pub(super) fn lessons(events: &[Inbound]) -> Vec<Lesson> {
        events.iter().map(|event| Lesson { said: said(event), way_back: None }).collect()
    }

    /// Remembers it of those who were let in. What a stranger says changes nothing for anybody; nor does
    /// what was there already, which may be a stranger's.
    pub(super) fn remember(&self, lessons: Vec<Lesson>, verdicts: &[Verdict]) {
        for (Lesson { said, way_back }, verdict) in lessons.into_iter().zip(verdicts) {
            let Verdict::Journalled(_) = verdict else { continue };
            if let Some(said) = said {
                self.threads.heard(said);
            }
            if let Some(way) = way_back {
                self.kept.answers.learn(way, self.now());
            }
        }
    }

    /// A slash command.
    pub(super) fn slash(&self, command: &SlashCommand) -> Brought {
        let Some(workspace) = self.workspaces.heard_through(command.team_id.as_deref()) else {
            return self.skip("a command", &Senseless::Wrong("team"));
        };
        let chat = command.channel_id.as_str();
        self.workspaces.learn(chat, workspace);
        let scene = self.scene(workspace, &command.text, &command.user_id, Some(chat));
        let thread = self.threads.latest(chat, &command.user_id);
        match decode::slash(command, thread.as_deref(), &scene) {
            Ok(mut inbound) => {
                self.leave_open(&mut inbound, &command.text, workspace);
                let way_back = command.response_url.as_ref().map(|url| WayBack {
                    chat: chat.to_owned(),
                    giver: inbound.from.id.clone(),
                    url: Secret::new(url.as_str()),
                });
                Brought { way_back, ..Brought::one(inbound) }
            }
            Err(reason) => self.skip("a command", &reason),
        }
    }

    /// Something done to a message of ours.
    pub(super) fn interaction(&self, interaction: &Interaction) -> Brought {
        let team = interaction.team.as_ref().and_then(|team| team.id.as_deref());
        let chat = interaction.channel.as_ref().and_then(|channel| channel.id.as_deref());
        // A guest of a shared chat presses in a workspace of their own.
        let workspace = self
            .workspaces
            .heard_through(team)
            .or_else(|| self.workspaces.remembered(chat.unwrap_or_default()));
        let Some(workspace) = workspace else {
            return self.skip("a press", &Senseless::Wrong("team"));
        };
        let user = interaction.user.as_ref().and_then(|user| user.id.as_deref());
        let scene = self.scene(workspace, "", user.unwrap_or_default(), chat);
        if let Some(chat) = chat {
            self.workspaces.learn(chat, workspace);
        }
        match decode::press(interaction, &scene) {
            Ok(Some(inbound)) => {
                self.directory.learn_direct(workspace, inbound.to.chat.id.as_str());
                Brought::one(inbound)
            }
            Ok(None) => Brought::default(),
            Err(reason) => self.skip("a press", &reason),
        }
    }

    fn stopped(&self, event: &SessionStopped, id: Option<&str>, workspace: &Workspace) -> Brought {
        let scene = self.scene(workspace, "", &event.user, Some(&event.channel));
        match decode::stopped(event, id, &scene) {
            Ok(inbound) => Brought::one(inbound),
            Err(reason) => self.skip("a stop", &reason),
        }
    }

    /// What has to be known to understand a message.
    async fn scene_of<'a>(
        &'a self,
        event: &MessageEvent,
        workspace: &'a Workspace,
        sharing: Sharing,
    ) -> Scene<'a> {
        let said = event.message.as_deref().unwrap_or(event);
        let user = said.user.as_deref().or(said.bot_id.as_deref()).unwrap_or_default();
        // Nothing is looked up for what we said ourselves.
        if decode::is_ours(said, &workspace.us) {
            return self.bare_scene(workspace);
        }
        let chat = event.channel.as_deref();
        let mut scene = self.scene(workspace, &said.text, user, chat);
        scene.is_shared |= sharing == Sharing::Shared;
        // Who is let in hangs on where somebody is from. Slack says so nearly always.
        if scene.is_shared && said.user_team.is_none() && scene.person.team.is_none() {
            scene.person = self.directory.person(workspace, user).await;
        }
        if let (Some(chat), Some(thread)) = (chat, &said.thread_ts) {
            scene.has_spoken = self.threads.has_spoken(chat, thread);
        }
        scene
    }

    /// What is known without asking: nobody has been let in yet, and Slack waits.
    fn scene<'a>(
        &'a self,
        workspace: &'a Workspace,
        text: &str,
        user: &str,
        chat: Option<&str>,
    ) -> Scene<'a> {
        let unnamed = text::unnamed(text);
        let person = |id: &String| {
            let name = self.directory.known_person(workspace, id)?.name?;
            Some((id.clone(), name))
        };
        let room = |id: &String| {
            let name = self.directory.known_room(workspace, id)?.name?;
            Some((id.clone(), name))
        };
        let mut scene = self.bare_scene(workspace);
        scene.names = Names {
            people: unnamed.people.iter().filter_map(person).collect(),
            rooms: unnamed.rooms.iter().filter_map(room).collect(),
        };
        scene.person = self.directory.known_person(workspace, user).unwrap_or_default();
        let room = chat.and_then(|chat| self.directory.known_room(workspace, chat));
        scene.room = room.unwrap_or_default();
        if chat.is_some_and(|chat| self.directory.is_direct(workspace, chat)) {
            scene.room.kind = Some(ChatKind::Dm);
        }
        scene.is_shared = scene.room.is_shared;
        scene
    }

    fn bare_scene<'a>(&'a self, workspace: &'a Workspace) -> Scene<'a> {
        Scene {
            account: &self.account,
            us: &workspace.us,
            home: &self.workspaces.home().us.team,
            habits: &self.habits,
            names: Names::default(),
            person: decode::Person::default(),
            room: decode::Room::default(),
            has_spoken: false,
            is_shared: false,
            now: self.now(),
        }
    }

    /// Says that something made no sense, and never what it was.
    pub(super) fn skip(&self, what: &str, reason: &Senseless) -> Brought {
        let skipped = self.skipped.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::warn!(account = %self.account, what, %reason, skipped, "skipped");
        Brought::default()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// What is to be remembered of an event: where somebody spoke to us.
fn said(inbound: &Inbound) -> Option<Said> {
    let InboundKind::Said(message) = &inbound.kind else { return None };
    let is_ours = message.addressed == Addressed::ToUs || inbound.source.below == Some(Below::Us);
    (is_ours && inbound.from.kind == SenderKind::Person).then(|| Said {
        at: inbound.to.clone(),
        user: user_of(inbound.from.id.as_str()).to_owned(),
        message: message.id.as_ref().map(ToString::to_string),
        begins: message.reply_to.is_none(),
    })
}

/// Somebody's id as Slack knows it, without the workspace.
pub(super) fn user_of(sender: &str) -> &str {
    sender.rsplit(':').next().unwrap_or_default()
}
