//! What Slack's refusals mean for the caller, in one table.

use std::time::Duration;

use talaria_platform::{ConnectError, LinkError, SendError};

use super::api::{ApiError, Refusal};
use crate::wire::http::CallError;

/// What a call was for, which decides what an unknown outcome means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Something new appears: twice would be one too many.
    Post,
    /// Something becomes as we say it: saying it twice changes nothing.
    Change,
    /// Something that people can do without: a status, a reaction.
    Ornament,
}

/// What the caller of `send` has to do.
pub(super) fn send_error(error: ApiError, purpose: Purpose) -> SendError {
    match error {
        ApiError::Throttled(after) => SendError::Throttled { after },
        ApiError::Call(CallError::Unreachable(reason)) => SendError::Unreachable { reason },
        ApiError::Call(CallError::Unanswered(reason) | CallError::Silence(reason))
        | ApiError::Outage(reason) => unknown(reason, purpose),
        ApiError::Refused(refusal) => refused(&refusal, purpose),
    }
}

fn unknown(reason: String, purpose: Purpose) -> SendError {
    match purpose {
        Purpose::Post => SendError::Unconfirmed { reason },
        Purpose::Change | Purpose::Ornament => SendError::Unreachable { reason },
    }
}

fn refused(refusal: &Refusal, purpose: Purpose) -> SendError {
    let reason = refusal.reason();
    let seconds = |seconds| SendError::Throttled { after: Duration::from_secs(seconds) };
    match refusal.code.as_str() {
        "message_limit_exceeded" => seconds(600),
        "org_login_required" | "team_added_to_org" | "external_channel_migrating" => seconds(60),
        "streaming_state_conflict" => seconds(5),
        "not_in_channel" => SendError::Gone { reason: format!("{reason}; /invite the bot there") },
        "channel_not_found"
        | "is_archived"
        | "is_inactive"
        | "user_not_found"
        | "user_disabled"
        | "cannot_reply_to_message"
        | "thread_not_found"
        | "restricted_action_thread_locked"
        | "thread_locked" => SendError::Gone { reason },
        "invalid_blocks"
        | "invalid_blocks_format"
        | "msg_blocks_too_long"
        | "msg_blocks_too_many"
        | "msg_too_long"
        | "markdown_text_conflict"
        | "invalid_attachments"
        | "block_mismatch" => SendError::Unreadable { reason },
        code if is_about_the_token(code) => SendError::Unauthorized { reason },
        "missing_scope" if purpose != Purpose::Ornament => SendError::Unauthorized { reason },
        // "some aspect of the operation may have succeeded", as Slack puts it.
        "fatal_error"
        | "internal_error"
        | "request_timeout"
        | "service_unavailable"
        | "update_failed" => unknown(reason, purpose),
        _ => SendError::Rejected { reason },
    }
}

/// Whether Slack complains about a token rather than about what was asked.
pub(super) fn is_about_the_token(code: &str) -> bool {
    matches!(
        code,
        "not_authed"
            | "invalid_auth"
            | "account_inactive"
            | "token_revoked"
            | "token_expired"
            | "not_allowed_token_type"
            | "team_access_not_granted"
            | "two_factor_setup_required"
            | "user_removed_from_team"
            | "team_disabled"
    )
}

/// What to do when an account cannot be connected; `token` is what people call the one in question.
pub(super) fn connect_error(error: ApiError, token: &str) -> ConnectError {
    match error {
        ApiError::Call(error) => error.into(),
        ApiError::Throttled(after) => ConnectError::Unreachable {
            reason: format!("Slack asks to wait {} s", after.as_secs()),
        },
        ApiError::Outage(reason) => ConnectError::Unreachable { reason },
        ApiError::Refused(refusal) => match refusal.code.as_str() {
            "internal_error"
            | "fatal_error"
            | "service_unavailable"
            | "request_timeout"
            | "team_added_to_org"
            | "org_login_required" => ConnectError::Unreachable { reason: refusal.reason() },
            code => ConnectError::Refused {
                problem: format!("Slack does not accept the {token}: {}", refusal.reason()),
                hint: hint(code, token),
            },
        },
    }
}

fn hint(code: &str, token: &str) -> String {
    match code {
        "not_allowed_token_type" => {
            "the bot token begins with xoxb- and the app-level token with xapp-; they may be swapped"
                .into()
        }
        "missing_scope" => {
            "add the scope in the app's settings, install the app again, and use the token shown then"
                .into()
        }
        "account_inactive" | "token_revoked" => {
            "the app was removed from the workspace; install it again and use the token shown then"
                .into()
        }
        "token_expired" => "turn token rotation off in the app's settings".into(),
        _ => format!("copy the {token} again from the app's settings at api.slack.com/apps"),
    }
}

/// What it means for a connection that a call failed while it was being kept up.
pub(super) fn link_error(error: ApiError) -> LinkError {
    match error {
        ApiError::Call(error) => error.into(),
        ApiError::Refused(refusal) if is_about_the_token(&refusal.code) => {
            LinkError::Unauthorized { reason: refusal.reason() }
        }
        error => LinkError::Lost { reason: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use talaria_platform::Fate;

    use super::*;

    #[test]
    fn each_refusal_says_what_to_do() {
        let retry = |seconds| Fate::Retry { after: Some(Duration::from_secs(seconds)) };
        for (code, post, change, ornament) in [
            ("channel_not_found", Fate::Drop, Fate::Drop, Fate::Drop),
            ("not_in_channel", Fate::Drop, Fate::Drop, Fate::Drop),
            ("restricted_action_read_only_channel", Fate::Drop, Fate::Drop, Fate::Drop),
            ("cant_update_message", Fate::Drop, Fate::Drop, Fate::Drop),
            ("no_such_code_yet", Fate::Drop, Fate::Drop, Fate::Drop),
            ("invalid_blocks", Fate::Plain, Fate::Plain, Fate::Plain),
            ("msg_too_long", Fate::Plain, Fate::Plain, Fate::Plain),
            ("block_mismatch", Fate::Plain, Fate::Plain, Fate::Plain),
            ("invalid_auth", Fate::Suspend, Fate::Suspend, Fate::Suspend),
            ("token_revoked", Fate::Suspend, Fate::Suspend, Fate::Suspend),
            ("missing_scope", Fate::Suspend, Fate::Suspend, Fate::Drop),
            ("message_limit_exceeded", retry(600), retry(600), retry(600)),
            ("streaming_state_conflict", retry(5), retry(5), retry(5)),
            ("team_added_to_org", retry(60), retry(60), retry(60)),
            ("fatal_error", Fate::Unsure, Fate::Retry { after: None }, Fate::Retry { after: None }),
            (
                "request_timeout",
                Fate::Unsure,
                Fate::Retry { after: None },
                Fate::Retry { after: None },
            ),
        ] {
            for (purpose, fate) in
                [(Purpose::Post, post), (Purpose::Change, change), (Purpose::Ornament, ornament)]
            {
                let error = send_error(ApiError::Refused(Refusal::of(code)), purpose);
                assert_eq!(error.fate(), fate, "{code} on {purpose:?}");
            }
        }
    }

    #[test]
    fn what_was_not_answered_may_have_been_posted_but_may_be_changed_again() {
        let unanswered = || ApiError::Call(CallError::Unanswered("reset".into()));
        let outage = || ApiError::Outage("HTTP 502".into());
        for error in [unanswered(), outage()] {
            assert_eq!(send_error(error.clone(), Purpose::Post).fate(), Fate::Unsure);
            assert_eq!(send_error(error, Purpose::Change).fate(), Fate::Retry { after: None });
        }
        let unreachable = ApiError::Call(CallError::Unreachable("refused".into()));
        assert_eq!(send_error(unreachable, Purpose::Post).fate(), Fate::Retry { after: None });
    }

    #[test]
    fn an_account_is_refused_for_what_a_person_can_mend_and_waits_for_the_rest() {
        let refused = |code| connect_error(ApiError::Refused(Refusal::of(code)), "bot token");
        for code in ["invalid_auth", "not_allowed_token_type", "missing_scope", "access_denied"] {
            assert!(matches!(refused(code), ConnectError::Refused { .. }), "{code}");
        }
        assert!(matches!(refused("internal_error"), ConnectError::Unreachable { .. }));
        let outage = connect_error(ApiError::Outage("HTTP 503".into()), "bot token");
        assert!(matches!(outage, ConnectError::Unreachable { .. }));
    }
}
