//! People who write at an even pace while something else goes on.

use std::time::Duration;

use anyhow::Result;
use talaria_testkit::within;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::gateway::Opened;
use super::sample::Sample;

/// Nothing here takes this long unless it hangs.
const HANGS: Duration = Duration::from_secs(600);

/// Between two messages: 50 a second.
const BEAT: Duration = Duration::from_millis(20);

/// People, each in a chat of their own: few enough to stay in memory.
pub(super) const PEOPLE: usize = 200;

/// Where one of them writes.
pub(super) fn chat(number: usize) -> String {
    format!("served{number}")
}

/// Takes turns until something ends, at an even pace: waiting for one answer would let the next ones off.
pub(super) async fn served(opened: &Opened, until: impl Future<Output = ()>) -> Result<Sample> {
    let mut turns = JoinSet::new();
    let before = opened.usage()?.processor;
    let begun = Instant::now();
    let mut until = std::pin::pin!(until);
    let mut beat = tokio::time::interval(BEAT);
    let mut numbers = (0..PEOPLE).cycle();
    loop {
        tokio::select! {
            () = &mut until => break,
            _ = beat.tick() => {
                turns.spawn(opened.ask(&chat(numbers.next().unwrap_or_default())));
            }
        }
    }
    let took = begun.elapsed();
    let mut latencies = Vec::with_capacity(turns.len());
    while let Some(one) = within(HANGS, "an answer", turns.join_next()).await {
        latencies.push(one??);
    }
    Ok(Sample::of(latencies, took, opened.usage()?.processor - before))
}
