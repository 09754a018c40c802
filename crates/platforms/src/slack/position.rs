//! How far we have heard. Slack has no position of its own, but the names of its messages are times:
//! after an absence, everything since the newest one that was stored is read again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use talaria_platform::Cursor;

use super::ts::Ts;

/// As it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    seen: String,
}

/// The newest message that was handed on.
#[derive(Debug, Default)]
pub(super) struct Position(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    seen: Option<Ts>,
    /// Set while what was missed is being read: until that is stored, nothing newer counts.
    held: Option<Ts>,
}

impl Position {
    pub(super) fn at(cursor: Option<&Cursor>) -> Self {
        let stored = cursor.and_then(|cursor| serde_json::from_str::<Stored>(&cursor.0).ok());
        let seen = stored.and_then(|stored| Ts::parse(&stored.seen));
        Self(Mutex::new(State { seen, held: None }))
    }

    /// Everything up to here was handed on.
    pub(super) fn seen(&self) -> Option<Ts> {
        let state = self.lock();
        state.held.or(state.seen)
    }

    /// Something was handed on.
    pub(super) fn advance(&self, ts: Ts) {
        let mut state = self.lock();
        state.seen = state.seen.max(Some(ts));
    }

    /// From here on, what was missed is being read.
    pub(super) fn hold(&self) {
        let mut state = self.lock();
        state.held = state.held.or(state.seen);
    }

    /// What was missed is stored.
    pub(super) fn release(&self) {
        self.lock().held = None;
    }

    /// What is stored with a batch.
    pub(super) fn cursor(&self) -> Option<Cursor> {
        let seen = self.seen()?.to_string();
        serde_json::to_string(&Stored { seen }).ok().map(Cursor)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ts(text: &str) -> Ts {
        Ts::parse(text).unwrap()
    }

    #[test]
    fn it_survives_being_stored_and_never_goes_back() {
        let position = Position::at(None);
        assert_eq!(position.cursor(), None);
        position.advance(ts("20.000001"));
        position.advance(ts("10.000001"));
        let stored = position.cursor().unwrap();
        assert_eq!(Position::at(Some(&stored)).seen(), Some(ts("20.000001")));
    }

    #[test]
    fn nothing_newer_counts_while_what_was_missed_is_being_read() {
        let position = Position::at(Some(&Cursor(r#"{"seen":"10.000000"}"#.into())));
        position.hold();
        position.advance(ts("20.000000"));
        assert_eq!(position.cursor().unwrap().0, r#"{"seen":"10.000000"}"#);
        position.release();
        assert_eq!(position.cursor().unwrap().0, r#"{"seen":"20.000000"}"#);
    }

    #[test]
    fn a_position_that_makes_no_sense_is_none() {
        for cursor in ["", "null", "{}", r#"{"seen":"now"}"#, "17"] {
            assert_eq!(Position::at(Some(&Cursor(cursor.into()))).seen(), None, "{cursor}");
        }
    }
}
