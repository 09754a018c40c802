//! How often a gateway was started lately without ending in good order: whoever starts it again at once, for
//! ever, is slowed down.
//!
//! A manager of services cannot tell a restart that somebody asked for from one that never works: what
//! slows the one down slows the other down, too. So it is counted here, and forgotten by a good end.

use std::path::PathBuf;
use std::time::Duration;

use talaria_clock::{Clock, SystemClock};
use talaria_machine::{Mode, replace, service};
use talaria_model::Timestamp;

use crate::aside::aside;
use crate::exit::{Exit, Halt};
use crate::home::Home;

/// For how long a start counts.
const LATELY: Duration = Duration::from_secs(120);

/// So many of them are nothing unusual.
const USUAL: usize = 5;

/// The longest that a start waits, which is much shorter than a manager waits for it.
const LONGEST: Duration = Duration::from_secs(60);

/// How long every start waits that cannot be counted: most likely a disk takes nothing, and it fails.
const UNCOUNTED: Duration = Duration::from_secs(10);

/// Counts a start, and waits if there were too many.
pub(crate) async fn pace(home: &Home) {
    let now = SystemClock.now();
    let starts: Vec<Timestamp> =
        known(home).into_iter().filter(|start| is_lately(*start, now)).chain([now]).collect();
    let millis: Vec<i64> = starts.iter().map(|start| start.as_millis()).collect();
    let written = serde_json::to_vec(&millis).map_err(std::io::Error::from);
    if let Err(error) = written.and_then(|bytes| replace(&path(home), &bytes, Mode::PRIVATE)) {
        tracing::warn!(%error, wait = ?UNCOUNTED, "starts cannot be counted; it waits before it goes on");
        return SystemClock.sleep(UNCOUNTED).await;
    }
    let wait = wait(starts.len());
    if !wait.is_zero() {
        let starts = starts.len();
        tracing::warn!(
            starts,
            ?wait,
            "started too often in two minutes; it waits before it goes on"
        );
        SystemClock.sleep(wait).await;
    }
}

/// Holds up the end of a start that has failed before it was counted, where a manager would start it again at
/// once.
pub(crate) async fn hold_up<T>(tried: Result<T, Halt>) -> Result<T, Halt> {
    if let Err(Halt { exit: Exit::Failed, .. }) = &tried
        && service::restarts_us()
    {
        // Nobody keeps a log yet.
        eprintln!(
            "talaria: it cannot start, and waits for {} s before it ends: it would be started again at once",
            UNCOUNTED.as_secs()
        );
        SystemClock.sleep(UNCOUNTED).await;
    }
    tried
}

/// Forgets them: this one ended in good order.
pub(crate) async fn forget(home: &Home) {
    let path = path(home);
    // There is none unless a manager starts it.
    aside(move || std::fs::remove_file(path)).await;
}

/// How long the last of so many starts waits.
fn wait(starts: usize) -> Duration {
    match starts.saturating_sub(USUAL) {
        0 => Duration::ZERO,
        over @ 1..=5 => Duration::from_secs(1 << over),
        _ => LONGEST,
    }
}

/// A clock that was set back since makes a start seem to come from the future.
fn is_lately(start: Timestamp, now: Timestamp) -> bool {
    u128::from(start.as_millis().abs_diff(now.as_millis())) < LATELY.as_millis()
}

fn known(home: &Home) -> Vec<Timestamp> {
    let millis =
        std::fs::read(path(home)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let millis: Vec<i64> = millis.unwrap_or_default();
    millis.into_iter().map(Timestamp::from_millis).collect()
}

fn path(home: &Home) -> PathBuf {
    home.path().join(".gateway-starts.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_is_started_again_and_again_waits_longer_and_longer_until_it_ends_well() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        std::fs::write(path(&home), "{").unwrap();
        let waited = async || {
            let begun = SystemClock.mark();
            pace(&home).await;
            SystemClock.mark().since(begun).as_secs()
        };
        let mut waits = Vec::new();
        for _ in 0..12 {
            waits.push(waited().await);
        }
        assert_eq!(waits, [0, 0, 0, 0, 0, 2, 4, 8, 16, 32, 60, 60]);
        forget(&home).await;
        assert_eq!(waited().await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_cannot_be_counted_waits_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        std::fs::create_dir(path(&home)).unwrap();
        for _ in 0..3 {
            let begun = SystemClock.mark();
            pace(&home).await;
            assert_eq!(SystemClock.mark().since(begun).as_secs(), UNCOUNTED.as_secs());
        }
    }

    #[test]
    fn what_is_long_ago_does_not_count_whichever_way_the_clock_was_set() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let at = |seconds: i64| Timestamp::from_millis(now.as_millis() + seconds * 1000);
        assert_eq!(
            [-119, 119, -120, 120].map(|s| is_lately(at(s), now)),
            [true, true, false, false]
        );
    }
}
