//! How an account speaks: how an answer is shown while it grows, and what it answers.

use std::time::Duration;

use talaria_model::{Act, Capabilities, Drafts, Edits, Outbound};

/// Nobody reads faster, whatever a platform allows.
const SHORTEST_REFRESH: Duration = Duration::from_millis(10);

/// How an account speaks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manner {
    /// How an answer is shown while it grows.
    pub streaming: Streaming,
    /// Which messages show what they answer.
    pub replies: Replies,
}

/// How an answer is shown while it grows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streaming {
    /// By what.
    pub transport: Transport,
    /// How long a message stands between two edits, unless its platform wants it to stand longer.
    pub edit_interval: Duration,
    /// How many characters there have to be before a message begins that is edited.
    pub buffer_threshold: usize,
    /// What stands at the end of a message that is edited, until it is whole.
    pub cursor: String,
    /// From which age on an answer does not take the place of what was shown of it, but is posted anew,
    /// so that people are told of it.
    pub fresh_final_after: Option<Duration>,
}

impl Default for Streaming {
    fn default() -> Self {
        Self {
            transport: Transport::Auto,
            edit_interval: Duration::from_millis(800),
            buffer_threshold: 24,
            cursor: " ▉".into(),
            fresh_final_after: Some(Duration::from_secs(60)),
        }
    }
}

/// By what an answer is shown while it grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Transport {
    /// By drafts where there are any, else by edits.
    #[default]
    Auto,
    /// By drafts where there are any, else by edits. What is best may become something else one day;
    /// this does not.
    Draft,
    /// By edits, also where there are drafts.
    Edit,
    /// Not at all.
    Off,
}

/// Which messages show what they answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Replies {
    /// None.
    Off,
    /// The first of those that an answer consists of.
    #[default]
    First,
    /// All of them.
    All,
}

/// How an answer grows in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// Nobody sees it.
    Unseen,
    /// As a message that is edited this often.
    Edited(Duration),
    /// As a draft that is replaced this often.
    Drafted(Duration),
}

impl Streaming {
    /// How an answer grows in a chat where this can be done.
    pub(crate) fn growth(&self, can: &Capabilities) -> Growth {
        let drafted = match can.drafts {
            Drafts::Every(every) => Some(Growth::Drafted(every.max(SHORTEST_REFRESH))),
            Drafts::Never => None,
        };
        let edited = match can.edits {
            Edits::Every(every) => {
                Some(Growth::Edited(every.max(self.edit_interval).max(SHORTEST_REFRESH)))
            }
            Edits::Never => None,
        };
        let way = match self.transport {
            Transport::Auto | Transport::Draft => drafted.or(edited),
            Transport::Edit => edited,
            Transport::Off => None,
        };
        way.unwrap_or(Growth::Unseen)
    }

    /// A text that is not whole yet. Behind a fence the cursor would keep it from closing anything.
    pub(crate) fn unfinished(&self, text: &str) -> String {
        let last = text.rsplit('\n').next().unwrap_or_default().trim_start_matches([' ', '>']);
        match last.starts_with("```") || last.starts_with("~~~") {
            true if !self.cursor.is_empty() => format!("{text}\n{}", self.cursor.trim_start()),
            _ => format!("{text}{}", self.cursor),
        }
    }
}

impl Replies {
    /// Marks the messages that an answer consists of with what it answers. The first has that mark
    /// already.
    pub(crate) fn mark(self, parts: &mut [Outbound]) {
        let answered = parts.iter().find_map(|part| match &part.act {
            Act::Post(content) => content.reply_to.clone(),
            _ => None,
        });
        for part in parts {
            let Act::Post(content) = &mut part.act else { continue };
            match self {
                Self::Off => content.reply_to = None,
                Self::First => {}
                Self::All => content.reply_to.clone_from(&answered),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::{
        AccountId, Address, Chat, ChatId, ChatKind, Content, MessageId, OutboundId, SessionId,
    };

    #[test]
    fn an_answer_grows_in_the_best_way_that_there_is_unless_told_otherwise() {
        let second = Duration::from_secs(1);
        let none = Capabilities::PLAIN;
        let edits = Capabilities { edits: Edits::Every(second), ..none };
        let drafts = Capabilities { drafts: Drafts::Every(second), ..none };
        let both = Capabilities { drafts: Drafts::Every(second), ..edits };
        let (edited, drafted) = (Growth::Edited(second), Growth::Drafted(second));
        let unseen = Growth::Unseen;
        for (transport, expected) in [
            (Transport::Auto, [unseen, edited, drafted, drafted]),
            (Transport::Draft, [unseen, edited, drafted, drafted]),
            (Transport::Edit, [unseen, edited, unseen, edited]),
            (Transport::Off, [unseen; 4]),
        ] {
            let streaming = Streaming { transport, ..Streaming::default() };
            let found = [none, edits, drafts, both].map(|can| streaming.growth(&can));
            assert_eq!(found, expected, "{transport:?}");
        }
    }

    #[test]
    fn edits_keep_to_the_slower_of_what_is_wanted_and_what_is_allowed() {
        let often = |millis| Capabilities {
            edits: Edits::Every(Duration::from_millis(millis)),
            ..Capabilities::PLAIN
        };
        let streaming = Streaming::default();
        assert_eq!(streaming.growth(&often(10)), Growth::Edited(Duration::from_millis(800)));
        assert_eq!(streaming.growth(&often(3000)), Growth::Edited(Duration::from_secs(3)));
    }

    #[test]
    fn a_cursor_stands_at_the_end_and_breaks_no_block_of_code() {
        let streaming = Streaming::default();
        assert_eq!(streaming.unfinished("Hello"), "Hello ▉");
        assert_eq!(streaming.unfinished("```rust\nlet a"), "```rust\nlet a ▉");
        assert_eq!(streaming.unfinished("```\na\n```"), "```\na\n```\n▉");
        let bare = Streaming { cursor: String::new(), ..streaming };
        assert_eq!(bare.unfinished("```\na\n```"), "```\na\n```");
    }

    #[test]
    fn as_many_parts_show_what_they_answer_as_was_wished() {
        let part = |part, reply_to: Option<&'static str>| Outbound {
            id: OutboundId { session: SessionId::literal("s"), delivery: 1, part },
            to: Address {
                account: AccountId::literal("main"),
                chat: Chat { id: ChatId::literal("c"), kind: ChatKind::Dm },
                thread: None,
            },
            act: Act::Post(Content {
                reply_to: reply_to.map(MessageId::literal),
                ..Content::text("words")
            }),
        };
        for (replies, second) in [
            (Replies::Off, [None, None]),
            (Replies::First, [Some("m"), None]),
            (Replies::All, [Some("m"), Some("m")]),
        ] {
            let mut parts = [part(0, Some("m")), part(1, None)];
            replies.mark(&mut parts);
            assert_eq!(parts, [part(0, second[0]), part(1, second[1])], "{replies:?}");
        }
    }
}
