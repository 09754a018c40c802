//! What a refusal of the Bot API means. It says no by a number and a sentence; the sentences are not
//! promised to stay, so that one that is not known is a plain no.

use std::time::Duration;

use talaria_platform::{ConnectError, FetchError, LinkError, SendError};

use crate::wire::http::CallError;

/// Why a call brought nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// There was no answer.
    Call(CallError),
    /// The API said no.
    Refused(Refusal),
    /// The API said something that cannot be read.
    Unreadable,
}

/// A no of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) description: String,
    pub(super) retry_after: Option<Duration>,
    /// The chat has this id by now.
    pub(super) migrate_to: Option<i64>,
}

/// Whether people see it when a call is carried out twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// They do: it says something.
    Visible,
    /// They do not.
    Invisible,
}

/// How long to wait when the API asks for it without saying how long.
const USUAL_WAIT: Duration = Duration::from_secs(5);

const TOKEN_HINT: &str = "get a token from @BotFather";

impl Failure {
    pub(super) fn never_left(reason: &str) -> Self {
        Self::Call(CallError::Unreachable(reason.into()))
    }

    fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Call(_) | Self::Unreadable => None,
        }
    }

    /// Whether the API refused with one of these words.
    pub(super) fn says(&self, words: &[&str]) -> bool {
        self.refusal().is_some_and(|refusal| refusal.says(words))
    }

    /// The id that a chat has by now which was called by an older one.
    pub(super) fn moved_to(&self) -> Option<i64> {
        self.refusal()?.migrate_to
    }

    /// The picture is none for Telegram, although it may be a good file.
    pub(super) fn is_about_the_picture(&self) -> bool {
        const PICTURE: &[&str] = &[
            "photo_invalid_dimensions",
            "image_process_failed",
            "photo has unsupported extension",
            "photo_save_file_invalid",
            "photo_ext_invalid",
        ];
        self.says(PICTURE) && !self.says(&["failed to send message #"])
    }

    /// What to do about an act that was not carried out, or perhaps was.
    pub(super) fn of_act(self, repeat: Repeat) -> SendError {
        match self {
            Self::Call(error @ CallError::Unreachable(_)) => error.into(),
            Self::Call(CallError::Unanswered(reason) | CallError::Silence(reason)) => {
                lost(reason, repeat)
            }
            Self::Unreadable => lost("the answer cannot be read".into(), repeat),
            Self::Refused(refusal) => refusal.of_act(repeat),
        }
    }

    /// Why nothing can be heard any more.
    pub(super) fn of_link(self) -> LinkError {
        match self {
            Self::Call(error) => error.into(),
            Self::Unreadable => LinkError::Lost { reason: "the answer cannot be read".into() },
            Self::Refused(refusal) => match refusal.meaning() {
                Meaning::Conflict => LinkError::Conflict {
                    problem: refusal.conflict().into(),
                    hint: ONE_OF_TWO.into(),
                },
                Meaning::Unauthorized => LinkError::Unauthorized { reason: refusal.description },
                _ => LinkError::Lost { reason: refusal.description },
            },
        }
    }

    /// Why the account cannot be connected.
    pub(super) fn of_connect(self) -> ConnectError {
        match self {
            Self::Call(error) => error.into(),
            Self::Unreadable => ConnectError::Refused {
                problem: "what answers at base_url is not the Bot API".into(),
                hint: "leave base_url out, or check the address of your Bot API server".into(),
            },
            Self::Refused(refusal) => match refusal.meaning() {
                Meaning::Unauthorized => ConnectError::Refused {
                    hint: refusal.hint().into(),
                    problem: format!("the token is not accepted: {}", refusal.description),
                },
                Meaning::Refused | Meaning::Formatting | Meaning::Gone => ConnectError::Refused {
                    problem: refusal.description,
                    hint: "check the settings of this account".into(),
                },
                Meaning::Conflict | Meaning::Wait | Meaning::Broken => {
                    ConnectError::Unreachable { reason: refusal.description }
                }
            },
        }
    }

    /// Why a file cannot be fetched.
    pub(super) fn of_fetch(self) -> FetchError {
        // That sentence also covers troubles of the API itself.
        let may_pass = self.says(&["temporarily unavailable"]);
        match self {
            Self::Call(error) => error.into(),
            Self::Unreadable => {
                FetchError::Unreachable { reason: "the answer cannot be read".into() }
            }
            Self::Refused(refusal) => match refusal.meaning() {
                Meaning::Wait | Meaning::Broken | Meaning::Unauthorized => {
                    FetchError::Unreachable { reason: refusal.description }
                }
                _ if may_pass => FetchError::Unreachable { reason: refusal.description },
                _ => FetchError::Refused { reason: refusal.description },
            },
        }
    }
}

fn lost(reason: String, repeat: Repeat) -> SendError {
    match repeat {
        Repeat::Visible => SendError::Unconfirmed { reason },
        Repeat::Invisible => SendError::Unreachable { reason },
    }
}

/// What a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Wait,
    Unauthorized,
    Conflict,
    Gone,
    Formatting,
    /// The API itself is in trouble, and may have done it.
    Broken,
    Refused,
}

/// What to do where two want to hear the same bot.
pub(super) const ONE_OF_TWO: &str = "stop one of the two, or give one of the two a bot of its own";

/// The chat, the topic or our place in it is not there any more.
const GONE: &[&str] = &[
    "chat not found",
    "chat_id is empty",
    "group is deactivated",
    "message thread not found",
    "topic_deleted",
    "topic_closed",
    "topic_id_invalid",
    "bot was blocked by the user",
    "user is deactivated",
    "bot was kicked from",
    "bot is not a member of",
    "group chat was deleted",
    "bot can't initiate conversation",
    "can't send messages to the bot",
    "can't send messages to bots",
];

/// The text would be taken without its entities.
const FORMATTING: &[&str] = &[
    "can't parse entities",
    "can't parse messageentity",
    "entity begin",
    "entity end",
    "an entity with incorrect",
    "entity url",
    "entities_too_long",
    "must be encoded in utf-8",
];

impl Refusal {
    fn says(&self, words: &[&str]) -> bool {
        let description = self.description.to_lowercase();
        words.iter().any(|word| description.contains(word))
    }

    fn meaning(&self) -> Meaning {
        match self.code {
            429 => Meaning::Wait,
            401 | 421 => Meaning::Unauthorized,
            404 if self.says(&["method not found"]) => Meaning::Refused,
            // The answer to a token that is none, and of a server that is none.
            404 => Meaning::Unauthorized,
            409 => Meaning::Conflict,
            500.. => Meaning::Broken,
            _ if self.says(&["logged out"]) => Meaning::Unauthorized,
            // Of an album, some may have been shown.
            _ if self.says(&["failed to send message #", "group send failed"]) => Meaning::Broken,
            _ if self.says(GONE) => Meaning::Gone,
            _ if self.says(FORMATTING) => Meaning::Formatting,
            _ => Meaning::Refused,
        }
    }

    fn of_act(self, repeat: Repeat) -> SendError {
        let meaning = self.meaning();
        let reason = self.description;
        match meaning {
            Meaning::Wait => SendError::Throttled { after: self.retry_after.unwrap_or(USUAL_WAIT) },
            Meaning::Unauthorized => SendError::Unauthorized { reason },
            Meaning::Gone => SendError::Gone { reason },
            Meaning::Formatting => SendError::Unreadable { reason },
            Meaning::Broken => lost(reason, repeat),
            Meaning::Conflict | Meaning::Refused => SendError::Rejected { reason },
        }
    }

    fn hint(&self) -> &'static str {
        if self.says(&["logged out"]) {
            "this bot was moved to another Bot API server: set base_url to it, or wait 10 minutes"
        } else if self.code == 404 {
            "check the token and base_url; get a token from @BotFather"
        } else {
            TOKEN_HINT
        }
    }

    fn conflict(&self) -> &'static str {
        match self.says(&["webhook"]) {
            true => "another program has set a webhook for this bot",
            false => "another program reads this bot's updates",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: u16, description: &str) -> Failure {
        Failure::Refused(Refusal {
            code,
            description: description.into(),
            retry_after: (code == 429).then(|| Duration::from_secs(7)),
            migrate_to: None,
        })
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        for (code, description, expected) in [
            (401, "Unauthorized", "unauthorized"),
            (401, "Unauthorized: invalid token specified", "unauthorized"),
            (404, "Not Found", "unauthorized"),
            (404, "Not Found: method not found", "rejected"),
            (421, "Misdirected Request: unallowed token specified", "unauthorized"),
            (400, "Logged out", "unauthorized"),
            (429, "Too Many Requests: retry after 7", "throttled 7"),
            (413, "Request Entity Too Large", "rejected"),
            (403, "Forbidden: bot was blocked by the user", "gone"),
            (403, "Forbidden: user is deactivated", "gone"),
            (403, "Forbidden: bot was kicked from the supergroup chat", "gone"),
            (403, "Forbidden: bot is not a member of the channel chat", "gone"),
            (403, "Forbidden: the group chat was deleted", "gone"),
            (403, "Forbidden: bot can't initiate conversation with a user", "gone"),
            (403, "Forbidden: the bot can't send messages to the bot", "gone"),
            (400, "Bad Request: chat not found", "gone"),
            (400, "Bad Request: private chat not found", "gone"),
            (400, "Bad Request: message thread not found", "gone"),
            (400, "Bad Request: TOPIC_CLOSED", "gone"),
            (400, "Bad Request: can't parse entities: Can't find end of the entity", "unreadable"),
            (
                400,
                "Bad Request: entity beginning at UTF-16 offset 4 ends after the end",
                "unreadable",
            ),
            (400, "Bad Request: entity begins in a middle of a UTF-16 symbol", "unreadable"),
            (400, "Bad Request: receive an entity with incorrect length", "unreadable"),
            (400, "Bad Request: entity URL 'ftp://a' is invalid: Wrong HTTP URL", "unreadable"),
            (400, "Bad Request: ENTITIES_TOO_LONG", "unreadable"),
            (400, "Bad Request: strings must be encoded in UTF-8", "unreadable"),
            (400, "Bad Request: message is too long", "rejected"),
            (400, "Bad Request: message caption is too long", "rejected"),
            (400, "Bad Request: message text is empty", "rejected"),
            (400, "Bad Request: message to edit not found", "rejected"),
            (400, "Bad Request: message can't be deleted", "rejected"),
            (400, "Bad Request: BUTTON_DATA_INVALID", "rejected"),
            (400, "Bad Request: REACTION_INVALID", "rejected"),
            (400, "Bad Request: TEXTDRAFT_PEER_INVALID", "rejected"),
            (400, "Bad Request: not enough rights to send text messages to the chat", "rejected"),
            (400, "Bad Request: a sentence of some later year", "rejected"),
            (400, "Bad Request: Failed to send message #2 with the error message \"X\"", "unsure"),
            (500, "Internal Server Error: restart", "unsure"),
            (502, "Bad Gateway", "unsure"),
            (504, "Gateway Timeout", "unsure"),
        ] {
            let error = refusal(code, description).of_act(Repeat::Visible);
            let did = match error {
                SendError::Throttled { after } => format!("throttled {}", after.as_secs()),
                SendError::Halted { .. } => "halted".into(),
                SendError::Gone { .. } => "gone".into(),
                SendError::Unauthorized { .. } => "unauthorized".into(),
                SendError::Unreadable { .. } => "unreadable".into(),
                SendError::Vanished => "vanished".into(),
                SendError::Rejected { .. } => "rejected".into(),
                SendError::Unreachable { .. } => "unreachable".into(),
                SendError::Unconfirmed { .. } => "unsure".into(),
            };
            assert_eq!(did, expected, "{description}");
        }
    }

    #[test]
    fn what_can_be_repeated_unseen_is_never_unsure() {
        let unanswered = || Failure::Call(CallError::Unanswered("reset".into()));
        for failure in [unanswered(), Failure::Unreadable, refusal(502, "Bad Gateway")] {
            let seen = failure.clone().of_act(Repeat::Visible);
            assert!(matches!(seen, SendError::Unconfirmed { .. }), "{seen:?}");
            let unseen = failure.of_act(Repeat::Invisible);
            assert!(matches!(unseen, SendError::Unreachable { .. }), "{unseen:?}");
        }
        let never_left = Failure::never_left("no route").of_act(Repeat::Visible);
        assert!(matches!(never_left, SendError::Unreachable { .. }), "{never_left:?}");
    }

    #[test]
    fn a_conflict_says_what_to_do() {
        for (description, hint) in [
            ("Conflict: terminated by other getUpdates request", "reads this bot's updates"),
            ("Conflict: can't use getUpdates method while webhook is active", "a webhook"),
        ] {
            let error = refusal(409, description).of_link();
            let LinkError::Conflict { problem, hint: todo } = &error else { panic!("{error:?}") };
            assert!(problem.contains(hint) && todo.contains("a bot of its own"), "{error:?}");
        }
    }

    #[test]
    fn a_file_that_is_too_big_will_not_get_smaller() {
        let refused = refusal(400, "Bad Request: file is too big").of_fetch();
        assert!(matches!(refused, FetchError::Refused { .. }), "{refused:?}");
        let later = "Bad Request: wrong file_id or the file is temporarily unavailable";
        let refused = refusal(400, later).of_fetch();
        assert!(matches!(refused, FetchError::Unreachable { .. }), "{refused:?}");
    }
}
