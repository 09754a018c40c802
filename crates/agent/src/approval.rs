//! What a person is asked before a call is made: the call whole, as a digest, and as a text in which
//! nothing can hide.

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use talaria_model::{
    Address, Approval, Approver, CallId, Digest, EarlierYes, Lasting, Sender, TurnId,
};

use crate::spelled;
use crate::tool::{Danger, Wraps};

/// The most that a person is asked to read, in characters. Nobody reads more before they press a button.
const MOST_SHOWN: usize = 1_500;

/// A call that must be asked about.
pub(crate) struct Invocation<'a> {
    pub(crate) turn: &'a TurnId,
    pub(crate) call: &'a CallId,
    pub(crate) tool: &'a str,
    pub(crate) from: &'a Sender,
    pub(crate) at: &'a Address,
    pub(crate) danger: &'a Danger,
}

impl Invocation<'_> {
    /// What is approved if the answer is yes.
    pub(crate) fn approval(&self) -> Approval {
        let digest = self.digest();
        let handle = hash(
            "talaria approval handle",
            &[
                self.turn.to_string().as_bytes(),
                self.call.as_str().as_bytes(),
                digest.bytes().as_slice(),
            ],
        );
        Approval {
            // Half of it: 128 bits.
            handle: handle.to_string().chars().take(32).collect(),
            digest,
            tool: self.tool.to_owned(),
            lasting: match self.danger.wraps {
                Wraps::Nothing => Lasting::Possible(self.lasting()),
                Wraps::Others => Lasting::Never,
            },
            // Whose yes counts is nothing that an agent knows, nor who is there.
            earlier: EarlierYes::CountsNot,
            approver: Approver::default(),
        }
    }

    /// Who does what with what, and where. Any change of any of it is another digest.
    pub(crate) fn digest(&self) -> Digest {
        let Address { account, chat, thread } = self.at;
        hash(
            "talaria approval",
            &[
                self.tool.as_bytes(),
                canonical(&self.danger.resolved).as_bytes(),
                account.as_str().as_bytes(),
                self.from.id.as_str().as_bytes(),
                chat.kind.as_str().as_bytes(),
                chat.id.as_str().as_bytes(),
                thread.as_ref().map_or("", |thread| thread.as_str()).as_bytes(),
            ],
        )
    }

    /// The same, wherever it is.
    fn lasting(&self) -> Digest {
        hash(
            "talaria lasting approval",
            &[
                self.tool.as_bytes(),
                canonical(&self.danger.resolved).as_bytes(),
                self.at.account.as_str().as_bytes(),
                self.from.id.as_str().as_bytes(),
            ],
        )
    }

    /// The question. None when it is too long for anybody to read it.
    pub(crate) fn shown(&self) -> Option<String> {
        let Danger { what, resolved, reads, .. } = self.danger;
        let (tool, what) = (spelled::text(self.tool, *reads), spelled::text(what, *reads));
        let whole = spelled::json(&canonical(resolved), *reads);
        let length = [&tool, &what, &whole].map(|text| text.chars().count()).iter().sum::<usize>();
        (length <= MOST_SHOWN).then(|| {
            format!("⚠️ May I call `{tool}`?\n\n`{what}`\n\nExactly this:\n\n```\n{whole}\n```")
        })
    }
}

/// Each field with its length before it, so that no two lists of fields run together.
fn hash(purpose: &str, fields: &[&[u8]]) -> Digest {
    let mut hasher = Sha256::new();
    for field in std::iter::once(&purpose.as_bytes()).chain(fields) {
        hasher.update((field.len() as u64).to_be_bytes());
        hasher.update(field);
    }
    Digest::new(hasher.finalize().into())
}

/// JSON in the one form in which it has the same bytes however it was written: no blanks, keys in order.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by(|one, other| one.0.cmp(other.0));
            text.push('{');
            for (place, (name, value)) in fields.into_iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use talaria_model::{AccountId, Chat, ChatId, ChatKind, SenderId, SessionId, ThreadId};

    use super::*;
    use crate::Reads;

    struct Sample {
        turn: TurnId,
        call: CallId,
        tool: String,
        from: Sender,
        at: Address,
        danger: Danger,
    }

    impl Sample {
        fn new() -> Self {
            let chat = Chat { id: ChatId::literal("chat"), kind: ChatKind::Group };
            Self {
                turn: TurnId { session: SessionId::literal("s"), number: 1 },
                call: CallId::literal("c"),
                tool: "pay".into(),
                from: Sender::new(SenderId::literal("alice")),
                at: Address {
                    account: AccountId::literal("work"),
                    chat,
                    thread: Some(ThreadId::literal("t")),
                },
                danger: Danger {
                    what: "pays".into(),
                    resolved: json!({ "to": "bob", "much": 5 }),
                    wraps: Wraps::Nothing,
                    reads: Reads::Signs,
                },
            }
        }

        fn invocation(&self) -> Invocation<'_> {
            let Self { turn, call, tool, from, at, danger } = self;
            Invocation { turn, call, tool, from, at, danger }
        }
    }

    #[test]
    fn any_change_of_what_is_done_for_whom_or_where_is_another_digest() {
        let first = Sample::new().invocation().digest();
        let changes: [fn(&mut Sample); 8] = [
            |sample| sample.tool = "pay2".into(),
            |sample| sample.danger.resolved = json!({ "to": "bob", "much": 6 }),
            |sample| sample.danger.resolved = json!({ "to": "bob", "much": 5, "a": null }),
            |sample| sample.from = Sender::new(SenderId::literal("bob")),
            |sample| sample.at.account = AccountId::literal("home"),
            |sample| sample.at.chat.id = ChatId::literal("chat2"),
            |sample| sample.at.chat.kind = ChatKind::Dm,
            |sample| sample.at.thread = None,
        ];
        for (place, change) in changes.into_iter().enumerate() {
            let mut sample = Sample::new();
            change(&mut sample);
            assert_ne!(sample.invocation().digest(), first, "change {place}");
        }
        let mut said_otherwise = Sample::new();
        said_otherwise.danger.resolved =
            serde_json::from_str(r#"{ "much":5, "to" : "bob"}"#).unwrap();
        assert_eq!(said_otherwise.invocation().digest(), first);
    }

    #[test]
    fn what_lasts_holds_everywhere_but_for_nobody_else_and_nothing_else() {
        let first = Sample::new().invocation().approval();
        let mut elsewhere = Sample::new();
        elsewhere.at.chat.id = ChatId::literal("other");
        elsewhere.at.thread = None;
        assert_eq!(elsewhere.invocation().approval().lasting, first.lasting);
        let changes: [fn(&mut Sample); 4] = [
            |sample| sample.tool = "pay2".into(),
            |sample| sample.danger.resolved = json!({ "to": "eve", "much": 5 }),
            |sample| sample.from = Sender::new(SenderId::literal("bob")),
            |sample| sample.at.account = AccountId::literal("home"),
        ];
        for change in changes {
            let mut sample = Sample::new();
            change(&mut sample);
            assert_ne!(sample.invocation().approval().lasting, first.lasting);
        }
        let mut wrapper = Sample::new();
        wrapper.danger.wraps = Wraps::Others;
        assert_eq!(wrapper.invocation().approval().lasting, Lasting::Never);
    }

    #[test]
    fn a_handle_is_of_one_question_only() {
        let first = Sample::new().invocation().approval().handle;
        assert_eq!(first.len(), 32);
        let changes: [fn(&mut Sample); 4] = [
            |sample| sample.call = CallId::literal("d"),
            |sample| sample.turn.number = 2,
            |sample| sample.turn.session = SessionId::literal("z"),
            |sample| sample.tool = "pay2".into(),
        ];
        for change in changes {
            let mut sample = Sample::new();
            change(&mut sample);
            assert_ne!(sample.invocation().approval().handle, first);
        }
    }

    #[test]
    fn a_message_is_shown_as_it_will_be_read_and_an_argument_is_spelled_out() {
        let mut sample = Sample::new();
        sample.danger.resolved = json!({ "text": "नमस्ते – “8 時”。👍🏽" });
        let signs = sample.invocation().shown().unwrap();
        assert!(signs.contains(r"\u{2013}") && signs.contains(r"\u{1f44d}"), "{signs}");
        sample.danger.reads = Reads::Prose;
        let prose = sample.invocation().shown().unwrap();
        assert!(prose.contains(r#"{"text":"नमस्ते – “8 時”。👍🏽"}"#), "{prose}");
        // A long one in any script can be asked about.
        sample.danger.resolved = json!({ "text": "好。".repeat(600) });
        assert!(sample.invocation().shown().is_some());
    }

    #[test]
    fn what_is_too_long_to_be_read_is_not_asked() {
        let mut sample = Sample::new();
        sample.danger.resolved = json!({ "text": " ".repeat(MOST_SHOWN) });
        assert_eq!(sample.invocation().shown(), None);
        sample.danger.resolved = json!(1);
        sample.danger.what = "x".repeat(MOST_SHOWN - 4);
        assert!(sample.invocation().shown().is_some());
        sample.danger.what = "x".repeat(MOST_SHOWN - 3);
        assert_eq!(sample.invocation().shown(), None);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_json_is_the_same_value_and_two_values_are_two_texts(one in values(), other in values()) {
            let text = canonical(&one);
            prop_assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), &one);
            prop_assert_eq!(canonical(&other) == text, one == other);
        }

        #[test]
        fn what_is_shown_is_read_back_as_exactly_what_is_done(value in values()) {
            for reads in [Reads::Signs, Reads::Prose] {
                let shown = spelled::json(&canonical(&value), reads);
                let back = spelled::read_back(&shown);
                prop_assert_eq!(&serde_json::from_str::<Value>(&back).unwrap(), &value);
            }
        }

        #[test]
        fn one_changed_byte_is_another_digest(text in "[a-z]{1,40}", place in any::<prop::sample::Index>()) {
            let mut bytes = text.clone().into_bytes();
            let place = place.index(bytes.len());
            bytes[place] = if bytes[place] == b'a' { b'b' } else { b'a' };
            let mut sample = Sample::new();
            sample.danger.resolved = json!({ "line": text });
            let first = sample.invocation().digest();
            sample.danger.resolved = json!({ "line": String::from_utf8(bytes).unwrap() });
            prop_assert_ne!(sample.invocation().digest(), first);
        }
    }
}
