//! What Discord's answers mean: which status and which code lets us do what.

use std::time::Duration;

use talaria_platform::{ConnectError, FetchError, SendError};

use super::api;
use crate::wire::http::{CallError, Reply};

/// How long we wait where Discord says "later" without saying when.
const LATER: Duration = Duration::from_secs(30);

/// How long the whole account rests when the front of Discord, not Discord, turns us away.
const TURNED_AWAY: Duration = Duration::from_secs(60);

pub(crate) mod code {
    //! The codes that are told apart, from "Opcodes and Status Codes".
    pub(crate) const UNKNOWN_MESSAGE: u64 = 10008;
    pub(crate) const FORUM_NEEDS_POST: u64 = 40058;
    pub(crate) const ARCHIVED: u64 = 50083;
    pub(crate) const INVALID_FORM: u64 = 50035;
    pub(crate) const NO_PERMISSION: u64 = 50013;
    pub(crate) const REACTION_BLOCKED: u64 = 90001;
    pub(crate) const THREAD_EXISTS: u64 = 160_004;
}

/// Why a request did not do what it was to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RestError {
    /// There is no answer.
    Call(CallError),
    /// Later.
    Throttled {
        after: Duration,
        /// Whether that holds for every request of the account.
        everything: bool,
    },
    /// The answer was no.
    Refused(Refusal),
}

/// Discord's no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: u64,
    /// In Discord's words.
    pub(crate) message: String,
    /// The fields that were found wrong, such as `components`.
    pub(crate) fields: Vec<String>,
}

impl RestError {
    /// The code of a no.
    pub(crate) fn code(&self) -> Option<u64> {
        match self {
            Self::Refused(refusal) => Some(refusal.code),
            Self::Call(_) | Self::Throttled { .. } => None,
        }
    }

    /// An answer that makes no sense: it may have been done.
    pub(crate) fn senseless() -> Self {
        Self::Call(CallError::Unanswered("the answer makes no sense".into()))
    }
}

impl Refusal {
    /// Whether the message that was to be answered is what stands in the way.
    pub(crate) fn is_about_reply(&self) -> bool {
        matches!(self.code, 160_002 | 160_009 | 160_010)
            || self.code == code::INVALID_FORM
                && self.fields.iter().any(|field| field == "message_reference")
    }

    /// Whether a file is what stands in the way.
    pub(crate) fn is_about_files(&self) -> bool {
        self.status == 413
            || matches!(self.code, 40005 | 50045 | 50046 | 50110 | 50123 | 400_001 | 30015)
    }

    /// Whether it may not be a voice message.
    pub(crate) fn is_about_voice(&self) -> bool {
        matches!(self.code, 50159..=50162 | 50173)
    }

    /// Whether no thread can be made here, although one could speak.
    pub(crate) fn is_about_threads(&self) -> bool {
        matches!(self.code, code::NO_PERMISSION | 160_006 | 160_007 | 30013 | 50024)
    }

    fn reason(&self) -> String {
        let words = if self.message.is_empty() { "no reason given" } else { &self.message };
        format!("{words} ({}, code {})", self.status, self.code)
    }
}

/// Reads an answer: it is one, or says why not.
pub(crate) fn read(reply: Reply) -> Result<Reply, RestError> {
    let status = reply.status.as_u16();
    match status {
        200..=299 => Ok(reply),
        429 => Err(later(&reply)),
        // Behind a proxy that gave up, the request may have been carried out.
        500..=599 => {
            let reason = format!("the vendor answered {status}");
            Err(RestError::Call(CallError::Unanswered(reason)))
        }
        _ => {
            let problem: api::Problem = reply.json().unwrap_or_default();
            let fields = problem.errors.as_ref().and_then(|errors| errors.as_object());
            let fields = fields.map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
            let api::Problem { code, message, .. } = problem;
            Err(RestError::Refused(Refusal { status, code, message, fields }))
        }
    }
}

fn later(reply: &Reply) -> RestError {
    // A 429 whose body is not Discord's comes from the network in front of it, which counts by our
    // address and bans it for good when we go on.
    let Ok(api::Later { retry_after, global }) = reply.json() else {
        let after = reply.retry_after().unwrap_or(TURNED_AWAY);
        return RestError::Throttled { after, everything: true };
    };
    let after = Duration::try_from_secs_f64(retry_after.max(0.0)).unwrap_or(LATER);
    RestError::Throttled { after, everything: global }
}

impl From<CallError> for RestError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<RestError> for SendError {
    fn from(error: RestError) -> Self {
        let refusal = match error {
            RestError::Call(error) => return error.into(),
            RestError::Throttled { after, everything: true } => return Self::Halted { after },
            RestError::Throttled { after, everything: false } => return Self::Throttled { after },
            RestError::Refused(refusal) => refusal,
        };
        let reason = refusal.reason();
        match (refusal.status, refusal.code) {
            (401, _) | (_, 40001 | 50014) => Self::Unauthorized { reason },
            // Cloudflare in front of Discord: nothing reached Discord itself.
            (403, 0 | 40333) => Self::Unreachable { reason },
            (_, 10003 | 10004 | 50001 | 50007 | 50278 | 40007 | 160_005) => Self::Gone { reason },
            (_, 20016 | 20028 | 20029 | 40004 | 40062 | 130_000) => {
                Self::Throttled { after: LATER }
            }
            (_, 50109) => Self::Unreadable { reason },
            (_, code::INVALID_FORM)
                if refusal
                    .fields
                    .iter()
                    .any(|field| field == "components" || field == "embeds") =>
            {
                Self::Unreadable { reason }
            }
            (_, code::NO_PERMISSION) => Self::Rejected {
                reason: format!("the bot's role lacks a permission in this channel: {reason}"),
            },
            _ => Self::Rejected { reason },
        }
    }
}

impl From<RestError> for ConnectError {
    fn from(error: RestError) -> Self {
        match error {
            RestError::Refused(Refusal { status: 401, .. }) => Self::Refused {
                problem: "Discord does not accept the token".into(),
                hint: "It may be mistyped or was reset. Copy it again from the Bot page of your \
                       application at https://discord.com/developers/applications."
                    .into(),
            },
            RestError::Refused(refusal) => Self::Unreachable { reason: refusal.reason() },
            RestError::Call(error) => error.into(),
            RestError::Throttled { after, .. } => {
                Self::Unreachable { reason: format!("asked to wait {} s", after.as_secs()) }
            }
        }
    }
}

impl From<RestError> for FetchError {
    fn from(error: RestError) -> Self {
        match error {
            RestError::Refused(refusal) => Self::Refused { reason: refusal.reason() },
            RestError::Call(error) => error.into(),
            RestError::Throttled { after, .. } => {
                Self::Unreachable { reason: format!("asked to wait {} s", after.as_secs()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;
    use reqwest::header::HeaderMap;

    use super::*;

    fn answer(status: u16, body: &str) -> Reply {
        let status = StatusCode::from_u16(status).unwrap();
        Reply { status, headers: HeaderMap::new(), body: body.into() }
    }

    fn meaning(status: u16, body: &str) -> SendError {
        read(answer(status, body)).expect_err("a no").into()
    }

    #[test]
    fn each_answer_says_what_to_do() {
        let with = |code: u64| format!(r#"{{"code":{code},"message":"no"}}"#);
        for (status, code) in
            [(404, 10003), (404, 10004), (403, 50001), (403, 50007), (403, 160_005), (403, 50278)]
        {
            let error = meaning(status, &with(code));
            assert!(matches!(error, SendError::Gone { .. }), "{code}: {error}");
        }
        for (status, code) in [(401, 0), (403, 40001), (403, 50014)] {
            let error = meaning(status, &with(code));
            assert!(matches!(error, SendError::Unauthorized { .. }), "{code}: {error}");
        }
        for (status, code) in [(400, 50006), (400, 50035), (403, 50013), (400, 200_000)] {
            let error = meaning(status, &with(code));
            assert!(matches!(error, SendError::Rejected { .. }), "{code}: {error}");
        }
        for status in [500, 502, 503, 504, 520, 524] {
            let error = meaning(status, "<html>");
            assert!(matches!(error, SendError::Unconfirmed { .. }), "{status}: {error}");
        }
        assert!(matches!(meaning(403, "<html>"), SendError::Unreachable { .. }));
        assert!(matches!(meaning(403, &with(40333)), SendError::Unreachable { .. }));
        assert_eq!(meaning(400, &with(20028)), SendError::Throttled { after: LATER });
    }

    #[test]
    fn the_field_that_is_wrong_decides() {
        let with = |field: &str| {
            format!(r#"{{"code":50035,"message":"Invalid Form Body","errors":{{"{field}":{{}}}}}}"#)
        };
        assert!(matches!(meaning(400, &with("components")), SendError::Unreadable { .. }));
        assert!(matches!(meaning(400, &with("content")), SendError::Rejected { .. }));
        let RestError::Refused(refusal) =
            read(answer(400, &with("message_reference"))).unwrap_err()
        else {
            panic!("a refusal")
        };
        assert!(refusal.is_about_reply());
    }

    #[test]
    fn later_is_for_one_route_or_for_everything() {
        let body =
            r#"{"message":"You are being rate limited.","retry_after":64.57,"global":false}"#;
        let expected =
            RestError::Throttled { after: Duration::from_secs_f64(64.57), everything: false };
        assert_eq!(read(answer(429, body)).unwrap_err(), expected);
        let expected = RestError::Throttled { after: TURNED_AWAY, everything: true };
        assert_eq!(read(answer(429, "error code: 1015")).unwrap_err(), expected);
    }
}
