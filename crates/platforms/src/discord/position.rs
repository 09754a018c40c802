//! Where we are in what Discord tells: the session that can be resumed, and what is needed to catch up
//! when it cannot.

use serde::{Deserialize, Serialize};
use talaria_platform::Cursor;

use super::snowflake::Snowflake;

/// The most direct chats that are remembered. Discord does not list them to bots.
const DIRECT: usize = 64;

/// The most threads that are remembered as promised.
pub(crate) const PROMISED: usize = 64;

/// A position. Written into the cursor as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The session up to whose number everything is stored. None while we still catch up: beginning
    /// anew then begins with catching up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<Session>,
    /// Which part of the guilds we hear.
    pub(crate) shard: [u16; 2],
    /// The newest message that was heard anywhere. Ids of all channels are ordered by time, so one is
    /// enough for all of them.
    pub(crate) seen: Snowflake,
    /// Direct chats, the most recent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) direct: Vec<Snowflake>,
    /// Threads that an answer will begin, with the channel that each belongs to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) promised: Vec<(Snowflake, Snowflake)>,
}

/// A session that Discord keeps for a few minutes when we are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    /// Where it is resumed.
    pub(crate) url: String,
    /// The last event of it that is stored.
    pub(crate) seq: u64,
}

impl Position {
    /// Reads a cursor. One that cannot be read is as good as none.
    pub(crate) fn read(cursor: &Cursor) -> Option<Self> {
        serde_json::from_str(&cursor.0).ok()
    }

    pub(crate) fn cursor(&self) -> Cursor {
        Cursor(serde_json::to_string(self).expect("a position is JSON"))
    }

    /// Something was said in a direct chat.
    pub(crate) fn talked(&mut self, chat: Snowflake) {
        self.direct.retain(|known| *known != chat);
        self.direct.insert(0, chat);
        self.direct.truncate(DIRECT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_being_written_down() {
        let session = Session { id: "s".into(), url: "wss://x".into(), seq: 7 };
        let mut position = Position {
            session: Some(session),
            shard: [0, 1],
            seen: Snowflake(99),
            promised: vec![(Snowflake(5), Snowflake(4))],
            ..Position::default()
        };
        position.talked(Snowflake(3));
        assert_eq!(Position::read(&position.cursor()), Some(position));
        assert_eq!(Position::read(&Cursor("41".into())), None);
    }

    #[test]
    fn the_most_recent_direct_chats_are_kept() {
        let mut position = Position::default();
        for chat in (1..=100).chain([50]) {
            position.talked(Snowflake(chat));
        }
        assert_eq!(position.direct.len(), DIRECT);
        assert_eq!(position.direct[..3], [Snowflake(50), Snowflake(100), Snowflake(99)]);
        assert!(position.cursor().0.len() < 4096);
    }
}
