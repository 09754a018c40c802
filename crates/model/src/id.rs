//! Names for things, minted at the edge where they enter and never taken apart again.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The longest id any platform may hand us. Longer ones are refused rather than cut, because two
/// cut ids can become the same id.
const LONGEST_ID: usize = 512;

/// Why a text cannot be an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// An empty id would match another empty id.
    #[error("an id cannot be empty")]
    Empty,
    /// The text is longer than any platform's ids.
    #[error("an id cannot be longer than {LONGEST_ID} bytes")]
    TooLong,
    /// Control characters would let an id forge log lines and keys.
    #[error("an id cannot contain control characters")]
    Control,
}

fn check(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        Err(IdError::Empty)
    } else if text.len() > LONGEST_ID {
        Err(IdError::TooLong)
    } else if text.chars().any(char::is_control) {
        Err(IdError::Control)
    } else {
        Ok(())
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "Arc<str>", into = "Arc<str>")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it came from outside.
            pub fn new(text: impl Into<Arc<str>>) -> Result<Self, IdError> {
                let text = text.into();
                check(&text)?;
                Ok(Self(text))
            }

            /// For a literal in our own source; panics on text that is not an id.
            pub fn literal(text: &'static str) -> Self {
                Self::new(text).expect("a literal id is a valid id")
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<Arc<str>> for $name {
            type Error = IdError;
            fn try_from(text: Arc<str>) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl From<$name> for Arc<str> {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// One configured connection to a platform, such as `work-slack`.
    AccountId
);
text_id!(
    /// A chat, as its platform names it.
    ChatId
);
text_id!(
    /// A thread inside a chat, as its platform names it.
    ThreadId
);
text_id!(
    /// A person or bot, by the id that its platform never changes. Never a display name.
    SenderId
);
text_id!(
    /// A role that people have on a platform, as an account there names it. The configuration's own roles
    /// are another thing.
    RoleId
);
text_id!(
    /// A message, as its platform names it.
    MessageId
);
text_id!(
    /// What makes one inbound event the same event when it is delivered again. Unique per account.
    EventId
);
text_id!(
    /// One life of a conversation: `YYYYMMDD_HHMMSS_<8 hex>`. `/new` begins another.
    SessionId
);
text_id!(
    /// One call of a tool, as the model named it.
    CallId
);
text_id!(
    /// A stored file: the hex digest of its bytes.
    FileId
);
text_id!(
    /// One answer a question offers.
    ChoiceId
);

/// What stands before a digest. No choice of ours begins so.
const DIGEST: char = '~';

impl ChoiceId {
    /// A short id that nobody takes for another's, for platforms whose buttons carry little.
    pub fn digest(&self) -> Self {
        let digest = Sha256::digest(self.as_str());
        let hex =
            digest[..20].iter().fold(DIGEST.to_string(), |hex, byte| format!("{hex}{byte:02x}"));
        Self(hex.into())
    }

    /// Whether it is this choice that came back, whole or as its digest.
    pub fn is_named(&self, name: &Self) -> bool {
        self == name || name.as_str().starts_with(DIGEST) && self.digest() == *name
    }
}

/// A place in the journal: our own order of what arrived, independent of anybody's clock.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct Seq(pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A turn of the agent, numbered within its session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TurnId {
    /// The session whose turn it is.
    pub session: SessionId,
    /// Counts from one.
    pub number: u32,
}

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.session, self.number)
    }
}

/// One delivery obligation. It is decided before the first byte leaves and stays the same across
/// retries, edits and restarts, so that a platform which takes a key can recognise a repeat.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OutboundId {
    /// The session that spoke.
    pub session: SessionId,
    /// The delivery within the session. A preview, its edits and every part share it.
    pub delivery: u32,
    /// The part within the delivery, when a text had to be split.
    pub part: u16,
}

impl OutboundId {
    /// The same delivery, another part.
    pub fn with_part(&self, part: u16) -> Self {
        Self { part, ..self.clone() }
    }
}

impl fmt::Display for OutboundId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}.{}", self.session, self.delivery, self.part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_refuses_what_could_collide_or_forge() {
        assert_eq!(SenderId::new(""), Err(IdError::Empty));
        assert_eq!(SenderId::new("a\nb"), Err(IdError::Control));
        assert_eq!(SenderId::new("x".repeat(513)), Err(IdError::TooLong));
        assert_eq!(SenderId::new("x".repeat(512)).map(|id| id.as_str().len()), Ok(512));
    }

    #[test]
    fn a_choice_is_known_by_its_digest() {
        let long = ChoiceId::new("call_".repeat(60)).expect("an id");
        let other = ChoiceId::new("call_".repeat(61)).expect("an id");
        assert_eq!(long.digest().as_str().len(), 41);
        assert!(long.is_named(&long) && long.is_named(&long.digest()));
        assert!(!long.is_named(&other) && !long.is_named(&other.digest()));
    }

    #[test]
    fn an_empty_id_does_not_come_back_from_storage() {
        assert!(serde_json::from_str::<ChatId>("\"\"").is_err());
        assert_eq!(serde_json::from_str::<ChatId>("\"c\"").ok(), Some(ChatId::literal("c")));
    }
}
