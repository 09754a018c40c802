//! Notes to a gateway that is about to be told to end: what that is for.
//!
//! A signal says nothing. Whoever sends one on purpose leaves a note first, for this one process and for a
//! minute only, so that it cannot be found by a later one that has the same number.

use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use talaria_clock::rfc3339;
use talaria_machine::{Mode, Process, replace};
use talaria_model::Timestamp;

use crate::home::Home;

/// For how long a note means anything.
const LASTS_MILLIS: i64 = 60_000;

/// What an ending is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Another process takes its place.
    Takeover,
    /// It is to end.
    Stop,
}

impl Plan {
    const fn file(self) -> &'static str {
        match self {
            Self::Takeover => ".gateway-takeover.json",
            Self::Stop => ".gateway-planned-stop.json",
        }
    }

    fn path(self, home: &Home) -> PathBuf {
        home.path().join(self.file())
    }
}

#[derive(Serialize, Deserialize)]
struct Marker {
    target_pid: u32,
    target_start_time: Option<u64>,
    /// Who wrote it.
    replacer_pid: u32,
    written_at: String,
}

/// Leaves a note for a process.
pub(crate) fn leave(home: &Home, plan: Plan, target: Process, now: Timestamp) -> io::Result<()> {
    let marker = Marker {
        target_pid: target.pid,
        target_start_time: target.start_time,
        replacer_pid: std::process::id(),
        written_at: rfc3339(now),
    };
    replace(&plan.path(home), &serde_json::to_vec(&marker)?, Mode::PRIVATE)
}

/// What somebody planned for this process, and who. No note is read twice, and none is left for another.
pub(crate) fn consume(home: &Home, own: Process, now: Timestamp) -> Option<(Plan, u32)> {
    let found = find(home, own, now);
    sweep(home);
    found
}

/// The same, and leaves it where it is: whoever asks at the door may send a signal, too, which is not
/// another wish.
pub(crate) fn find(home: &Home, own: Process, now: Timestamp) -> Option<(Plan, u32)> {
    let found = [Plan::Takeover, Plan::Stop].map(|plan| {
        let bytes = std::fs::read(plan.path(home)).ok()?;
        let marker: Marker = serde_json::from_slice(&bytes).ok()?;
        let target = Process { pid: marker.target_pid, start_time: marker.target_start_time };
        let is_meant = target.pid == own.pid
            && (target.start_time.is_none() || target.start_time == own.start_time);
        (is_meant && is_fresh(&marker.written_at, now)).then_some((plan, marker.replacer_pid))
    });
    found.into_iter().flatten().next()
}

/// Throws away what was left for whoever ran before.
pub(crate) fn sweep(home: &Home) {
    for plan in [Plan::Takeover, Plan::Stop] {
        let _ = std::fs::remove_file(plan.path(home));
    }
}

/// A clock that was set back since makes a note seem to come from the future; a minute of that is
/// believed, too.
fn is_fresh(written: &str, now: Timestamp) -> bool {
    jiff::Timestamp::from_str(written).is_ok_and(|written| {
        written.as_millisecond().abs_diff(now.as_millis()) < LASTS_MILLIS.unsigned_abs()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn left_and_found(target: Process, own: Process, later: i64) -> Option<Plan> {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        leave(&home, Plan::Takeover, target, NOW).unwrap();
        let then = Timestamp::from_millis(NOW.as_millis() + later);
        assert_eq!(find(&home, own, then), find(&home, own, then), "it can be looked at");
        let found = consume(&home, own, then).map(|(plan, by)| {
            assert_eq!(by, std::process::id());
            plan
        });
        assert_eq!(consume(&home, own, then), None, "once");
        found
    }

    #[test]
    fn a_note_is_for_one_process_once_and_for_a_minute() {
        let own = Process { pid: 7, start_time: Some(70) };
        assert_eq!(left_and_found(own, own, 0), Some(Plan::Takeover));
        assert_eq!(left_and_found(own, own, 59_000), Some(Plan::Takeover));
        assert_eq!(left_and_found(own, own, -59_000), Some(Plan::Takeover), "a clock set back");
        assert_eq!(left_and_found(own, own, 61_000), None);
        assert_eq!(left_and_found(own, own, -3_600_000), None);
        let other = Process { pid: 8, ..own };
        assert_eq!(left_and_found(other, own, 0), None);
        let later = Process { start_time: Some(71), ..own };
        assert_eq!(left_and_found(own, later, 0), None, "the number was given away again");
    }

    #[test]
    fn a_note_that_cannot_be_read_means_nothing_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        std::fs::write(Plan::Stop.path(&home), "{\"target_pid\": \"seven\"}").unwrap();
        assert_eq!(consume(&home, Process::own(), NOW), None);
        assert!(!Plan::Stop.path(&home).exists());
    }
}
