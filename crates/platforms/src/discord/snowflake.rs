//! Discord's ids, which tell when they were made.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use talaria_model::{ChatId, MessageId, RoleId, SenderId, ThreadId, Timestamp};

/// The first millisecond of 2015, from which Discord counts.
const EPOCH: i64 = 1_420_070_400_000;

/// An id of anything on Discord. Later ones are larger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Snowflake(pub(crate) u64);

impl Snowflake {
    /// The id that a text is, if it is one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().ok()).flatten().filter(|id| *id > 0).map(Self)
    }

    /// When it was made.
    pub(crate) fn at(self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.0 >> 22).unwrap_or(i64::MAX) + EPOCH)
    }

    /// The smallest id that can have been made at that time.
    pub(crate) fn of(at: Timestamp) -> Self {
        Self(u64::try_from(at.as_millis().saturating_sub(EPOCH)).unwrap_or(0) << 22)
    }

    pub(crate) fn chat(self) -> ChatId {
        ChatId::new(self.to_string()).expect("digits are an id")
    }

    pub(crate) fn role(self) -> RoleId {
        RoleId::new(self.to_string()).expect("digits are an id")
    }

    pub(crate) fn thread(self) -> ThreadId {
        ThreadId::new(self.to_string()).expect("digits are an id")
    }

    pub(crate) fn message(self) -> MessageId {
        MessageId::new(self.to_string()).expect("digits are an id")
    }

    pub(crate) fn sender(self) -> SenderId {
        SenderId::new(self.to_string()).expect("digits are an id")
    }
}

impl fmt::Display for Snowflake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Snowflake {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Snowflake {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            Number(u64),
        }
        let id = match Written::deserialize(from)? {
            Written::Text(text) => Self::parse(&text),
            Written::Number(number) => Some(Self(number)).filter(|id| id.0 > 0),
        };
        id.ok_or_else(|| serde::de::Error::custom("not an id"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_when_it_was_made() {
        // The example of Discord's reference.
        let id = Snowflake::parse("175928847299117063").unwrap();
        assert_eq!(id.at(), Timestamp::from_millis(1_462_015_105_796));
        assert!(Snowflake::of(id.at()) <= id);
        assert!(Snowflake::of(id.at() + std::time::Duration::from_millis(1)) > id);
    }

    #[test]
    fn what_is_no_number_is_no_id() {
        for text in ["", "0", "-1", "+5", "12a", " 1", "99999999999999999999999"] {
            assert_eq!(Snowflake::parse(text), None, "{text:?}");
        }
    }
}
