//! What an account answers of what it hears in chats of several people. Who is heard at all is decided
//! before, by `access`.

use std::collections::BTreeSet;

use talaria_model::{Addressed, Below, ChatKind, Inbound, InboundKind, Pattern, SenderKind};

/// What an account answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// Whether it has to be spoken to.
    pub mention: Mention,
    /// What calls it besides its name.
    pub patterns: Vec<Pattern>,
    /// What is for it in threads.
    pub threads: Threads,
    /// Where it need not be.
    pub free: Places,
    /// Where it answers at all; everywhere when empty.
    pub allowed: Places,
    /// Whether it answers elsewhere who speaks to it.
    pub elsewhere: Elsewhere,
    /// Where it never answers.
    pub ignored: Places,
    /// Whether it answers programs.
    pub bots: Bots,
    /// How often it answers one of them in a chat, in a minute.
    pub exchanges: u32,
    /// What becomes of what is said to others.
    pub chatter: Chatter,
    /// Whose words are read beside a message.
    pub bystanders: Bystanders,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            mention: Mention::default(),
            patterns: Vec::new(),
            threads: Threads::default(),
            free: Places::default(),
            allowed: Places::default(),
            elsewhere: Elsewhere::default(),
            ignored: Places::default(),
            bots: Bots::default(),
            exchanges: 10,
            chatter: Chatter::default(),
            bystanders: Bystanders::default(),
        }
    }
}

/// Whether an account has to be spoken to in chats of several people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mention {
    /// By name, or by answering it.
    #[default]
    Required,
    /// Everything is for it.
    Unneeded,
}

/// What is for an account in a thread that is a conversation of its own: a chat, or what hangs below a
/// message. A room that people call a thread is like any other room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Threads {
    /// Everything, once it has a part in it.
    #[default]
    Joined,
    /// What would be for it anywhere else.
    LikeChats,
}

/// Whether an account has a part in what goes on in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// It was spoken to there.
    Taken,
    /// It was not, or nobody asked.
    None,
}

/// Whether an account answers outside of the chats that it answers in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Elsewhere {
    /// Nobody.
    #[default]
    Never,
    /// Who speaks to it.
    WhenMentioned,
}

/// Whether an account answers programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Bots {
    /// Never: two of them would not stop.
    #[default]
    Never,
    /// When they speak to it, wherever that is.
    WhenMentioned,
    /// As it answers people.
    LikePeople,
}

/// What becomes of what is said to others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Chatter {
    /// Nothing.
    #[default]
    Ignored,
    /// The agent reads it with the next message that is for it.
    Overheard,
}

/// Whose words the agent reads that were said before a message, and not to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Bystanders {
    /// Of those who are heard.
    #[default]
    Heard,
    /// Everybody's, and who is not heard is marked.
    Everyone,
}

/// Chats and threads: a chat by its id, a thread as `chat:thread`, everything as `*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places(pub BTreeSet<String>);

impl Places {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether something happened in one of them. A thread is part of its chat.
    fn contain(&self, inbound: &Inbound) -> bool {
        let Self(places) = self;
        let chat = &inbound.to.chat.id;
        let source = &inbound.source;
        let others = [&source.parent, &source.alt_chat, &source.moved_from];
        let chats = others.map(Option::as_ref).into_iter().chain([Some(chat)]);
        let mut chats = chats.into_iter().flatten().map(|chat| chat.as_str());
        let thread = inbound.to.thread.as_ref();
        places.contains("*")
            || chats.any(|chat| {
                places.contains(chat)
                    || thread.is_some_and(|thread| places.contains(&format!("{chat}:{thread}")))
            })
    }
}

/// What becomes of something that was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// It is answered.
    Answer,
    /// It is remembered until something is answered.
    Overhear,
    /// It is not answered, and why.
    Ignore(&'static str),
}

impl Gate {
    /// Whether it matters for this event if the account has a part in what goes on there. Then whoever
    /// decides has to look.
    pub fn minds_part(&self, inbound: &Inbound) -> bool {
        let is_to_others = matches!(
            &inbound.kind,
            InboundKind::Said(message) | InboundKind::Edited(message)
                if message.addressed == Addressed::ToOthers
        );
        is_to_others
            && (inbound.to.chat.kind == ChatKind::Thread || inbound.source.below.is_some())
            && self.mention == Mention::Required
            && self.threads == Threads::Joined
    }

    /// Decides about one event.
    pub fn attend(&self, inbound: &Inbound, part: Part) -> Attention {
        let (addressed, text) = match &inbound.kind {
            InboundKind::Said(message) | InboundKind::Edited(message) => {
                (message.addressed, message.text.as_str())
            }
            // Nobody presses what is not ours.
            InboundKind::Pressed(_) | InboundKind::Stopped => (Addressed::ToUs, ""),
        };
        let is_to_us = addressed == Addressed::ToUs;
        match (inbound.from.kind, self.bots) {
            (SenderKind::Bot, Bots::Never) => {
                return Attention::Ignore("bots are not answered, because allow_bots is none");
            }
            (SenderKind::Bot, Bots::WhenMentioned) if !is_to_us => {
                return Attention::Ignore("a bot is answered only when it speaks to us");
            }
            _ => {}
        }
        if inbound.to.chat.kind == ChatKind::Dm {
            return Attention::Answer;
        }
        let is_guest = is_to_us && self.elsewhere == Elsewhere::WhenMentioned;
        if !self.allowed.is_empty() && !self.allowed.contain(inbound) && !is_guest {
            return Attention::Ignore("the chat is not among allowed_chats");
        }
        if self.ignored.contain(inbound) {
            return Attention::Ignore("the chat is among ignored_chats");
        }
        let is_free = self.mention == Mention::Unneeded || self.free.contain(inbound);
        let is_ours = part == Part::Taken || inbound.source.below == Some(Below::Us);
        let is_joined = is_ours && self.minds_part(inbound);
        let is_called = || self.patterns.iter().any(|pattern| pattern.is_in(text));
        let is_for_us = match addressed {
            Addressed::ToUs => true,
            Addressed::ToOthers => is_free || is_joined || is_called(),
            Addressed::ToAnotherBot => false,
        };
        match (is_for_us, self.chatter, &inbound.kind) {
            (true, ..) => Attention::Answer,
            (false, Chatter::Overheard, InboundKind::Said(_)) => Attention::Overhear,
            (false, ..) if addressed == Addressed::ToAnotherBot => {
                Attention::Ignore("it names another bot")
            }
            (false, ..) => Attention::Ignore("it was not said to us, and require_mention is on"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::said;
    use talaria_model::{ChatId, ChoiceId, Message, ThreadId};

    /// `dm`, `group`, `thread` (of a group), `post` (a thread that is a chat), `below` (a thread below
    /// somebody's message), `ours` (one below a message of ours) or `joined` (a post in which we have a
    /// part, like all of these with `joined` before them), and who speaks to whom:
    /// `us`, `others`, `another` (bot), `bot us`, `bot others`, `press`, `edit`.
    fn event(place: &str, what: &str) -> Inbound {
        let mut inbound = said("alice", "hello");
        inbound.to.chat.id = ChatId::literal("c1");
        inbound.to.chat.kind = match place {
            "dm" => ChatKind::Dm,
            "post" | "joined" => ChatKind::Thread,
            _ => ChatKind::Group,
        };
        match place {
            "thread" | "joined thread" => inbound.to.thread = Some(ThreadId::literal("t1")),
            "below" | "joined below" | "ours" => {
                inbound.to.thread = Some(ThreadId::literal("t1"));
                let ours = place == "ours";
                inbound.source.below = Some(if ours { Below::Us } else { Below::Others });
            }
            "post" | "joined" => {
                inbound.to.chat.id = ChatId::literal("t1");
                inbound.source.parent = Some(ChatId::literal("c1"));
            }
            _ => {}
        }
        let addressed = match what {
            "another" => Addressed::ToAnotherBot,
            what if what.ends_with("us") => Addressed::ToUs,
            _ => Addressed::ToOthers,
        };
        let message = Message { text: "/stop".into(), addressed, ..Message::default() };
        inbound.kind = match what {
            "press" => InboundKind::Pressed(ChoiceId::literal("yes")),
            "edit" => InboundKind::Edited(message),
            _ => InboundKind::Said(message),
        };
        if what.starts_with("bot") {
            inbound.from.kind = SenderKind::Bot;
        }
        inbound
    }

    fn places(places: &[&str]) -> Places {
        Places(places.iter().map(|&place| place.to_owned()).collect())
    }

    #[test]
    fn what_is_answered_and_what_is_not() {
        let usual = Gate::default;
        let open = || Gate { mention: Mention::Unneeded, ..usual() };
        let free = |list: &[&str]| Gate { free: places(list), ..usual() };
        let only = |list: &[&str]| Gate { allowed: places(list), ..usual() };
        let never = |list: &[&str]| Gate { ignored: places(list), ..open() };
        let bots = |bots| Gate { bots, ..open() };
        let called = |pattern| Gate { patterns: vec![Pattern::new(pattern).unwrap()], ..usual() };
        let guests = |list: &[&str]| Gate { elsewhere: Elsewhere::WhenMentioned, ..only(list) };
        let strict = || Gate { threads: Threads::LikeChats, ..usual() };
        let overhearing = || Gate { chatter: Chatter::Overheard, ..usual() };
        for (gate, place, what, expected) in [
            (usual(), "dm", "us", "answer"),
            (usual(), "dm", "others", "answer"),
            (usual(), "group", "us", "answer"),
            (usual(), "group", "others", "require_mention"),
            (usual(), "group", "edit", "require_mention"),
            (usual(), "group", "press", "answer"),
            (usual(), "thread", "others", "require_mention"),
            (open(), "group", "others", "answer"),
            (free(&["c1"]), "group", "others", "answer"),
            (free(&["c1"]), "thread", "others", "answer"),
            (free(&["c1"]), "post", "others", "answer"),
            (free(&["c1:t1"]), "thread", "others", "answer"),
            (free(&["c1:t1"]), "group", "others", "require_mention"),
            (free(&["*"]), "group", "others", "answer"),
            (free(&["c2"]), "group", "others", "require_mention"),
            (only(&["c2"]), "group", "us", "allowed_chats"),
            (only(&["c2"]), "group", "press", "allowed_chats"),
            (only(&["c2"]), "dm", "us", "answer"),
            (only(&["c1"]), "group", "us", "answer"),
            (only(&["c1"]), "group", "others", "require_mention"),
            (only(&["c1:t1"]), "thread", "us", "answer"),
            (only(&["c1:t1"]), "group", "us", "allowed_chats"),
            (never(&["c1"]), "group", "us", "ignored_chats"),
            (never(&["c1"]), "dm", "us", "answer"),
            (never(&["c1:t1"]), "thread", "us", "ignored_chats"),
            (never(&["c1:t1"]), "group", "others", "answer"),
            (bots(Bots::Never), "dm", "bot us", "allow_bots"),
            (bots(Bots::WhenMentioned), "group", "bot us", "answer"),
            (bots(Bots::WhenMentioned), "group", "bot others", "speaks to us"),
            (bots(Bots::LikePeople), "group", "bot others", "answer"),
            (called("^/ST"), "group", "others", "answer"),
            (called("^hey"), "group", "others", "require_mention"),
            (called("^/st"), "group", "another", "another bot"),
            (guests(&["c2"]), "group", "us", "answer"),
            (guests(&["c2"]), "group", "others", "allowed_chats"),
            (guests(&["c1"]), "group", "others", "require_mention"),
            (open(), "group", "another", "another bot"),
            (open(), "dm", "another", "answer"),
            (free(&["*"]), "thread", "another", "another bot"),
            (overhearing(), "group", "another", "overhear"),
            (overhearing(), "group", "others", "overhear"),
            (overhearing(), "group", "edit", "require_mention"),
            (overhearing(), "group", "us", "answer"),
            (usual(), "post", "others", "require_mention"),
            (usual(), "joined", "others", "answer"),
            (usual(), "joined", "edit", "answer"),
            (usual(), "joined", "another", "another bot"),
            (usual(), "joined", "bot others", "allow_bots"),
            (usual(), "joined group", "others", "require_mention"),
            (usual(), "joined thread", "others", "require_mention"),
            (strict(), "joined", "others", "require_mention"),
            (strict(), "joined", "us", "answer"),
            (usual(), "below", "others", "require_mention"),
            (usual(), "below", "us", "answer"),
            (usual(), "joined below", "others", "answer"),
            (usual(), "ours", "others", "answer"),
            (usual(), "ours", "bot others", "allow_bots"),
            (strict(), "joined below", "others", "require_mention"),
            (strict(), "ours", "others", "require_mention"),
            (strict(), "ours", "us", "answer"),
            (only(&["c2"]), "joined", "others", "allowed_chats"),
            (overhearing(), "joined", "others", "answer"),
        ] {
            let part = if place.starts_with("joined") { Part::Taken } else { Part::None };
            let attention = gate.attend(&event(place, what), part);
            let is_expected = match attention {
                Attention::Answer => expected == "answer",
                Attention::Overhear => expected == "overhear",
                Attention::Ignore(why) => expected != "answer" && why.contains(expected),
            };
            assert!(is_expected, "{place}, {what}: {attention:?}, not {expected}; {gate:?}");
        }
    }
}
