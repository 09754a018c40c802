//! What keeps a message from being read, or from its turn.

use talaria_model::{Inbound, InboundKind};
use talaria_store::JournalState;

use crate::hearing::Listens;
use crate::shared::Shared;

/// What keeps a message from being read, or from its turn, besides the turn in hand and hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    /// Its account was taken out.
    Account,
    /// The gateway is ending, and no turn begins.
    Ending,
    /// Its files have to be fetched first.
    Files,
    /// What was said in a recording has to be written down first.
    Recording,
    /// Its platform has to be asked first what surrounds it.
    Surroundings,
}

/// What keeps an event in this state from going on.
pub(crate) fn hindrance(
    shared: &Shared,
    inbound: &Inbound,
    state: &JournalState,
) -> Option<Hindrance> {
    if shared.accounts.is_out(&inbound.to.account) {
        return Some(Hindrance::Account);
    }
    match state {
        JournalState::Unread => lacks(inbound, shared.listens()),
        JournalState::Taken if shared.is_draining() => Some(Hindrance::Ending),
        _ => None,
    }
}

/// What an event lacks that its session has not heard of.
fn lacks(inbound: &Inbound, listens: Listens) -> Option<Hindrance> {
    let (InboundKind::Said(message) | InboundKind::Edited(message)) = &inbound.kind else {
        return None;
    };
    if !message.media.is_empty() {
        Some(Hindrance::Files)
    } else if listens.is_due(inbound) {
        Some(Hindrance::Recording)
    } else {
        message.surroundings.as_ref().map(|_| Hindrance::Surroundings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(message: serde_json::Value, expected: Option<Hindrance>) {
        let inbound = json!({
            "id": "e", "at": 1, "from": {"id": "ann"},
            "to": {"account": "web", "chat": {"id": "c", "kind": "dm"}}, "kind": {"said": message},
        });
        let inbound = serde_json::from_value(inbound).expect("an event");
        assert_eq!(lacks(&inbound, Listens::ToVoice), expected);
    }

    #[test]
    fn a_message_is_read_when_it_has_its_files_its_words_and_what_surrounds_it() {
        let voice =
            json!([{"id": "f", "name": "v.ogg", "mime": "audio/ogg", "size": 1, "shown": "voice"}]);
        let around = "handle";
        check(json!({"text": "hi"}), None);
        let media = json!([{"handle": "h", "kind": "photo"}]);
        check(
            json!({"text": "", "media": media, "files": voice, "surroundings": around}),
            Some(Hindrance::Files),
        );
        check(
            json!({"text": "", "files": voice, "surroundings": around}),
            Some(Hindrance::Recording),
        );
        check(json!({"text": "hi", "surroundings": around}), Some(Hindrance::Surroundings));
    }
}
