//! What was measured.

use std::time::Duration;

use super::sample::{Sample, median};

/// Everything that one run of the benchmark measured.
#[derive(Default)]
pub(super) struct Figures {
    /// From the start to the ready line, and to the first pulse.
    pub(super) cold_starts: Vec<(Duration, Duration)>,
    /// Memory of a gateway that has nothing to do.
    pub(super) idle: Vec<u64>,
    /// One turn at a time.
    pub(super) alone: Vec<Round>,
    /// Many turns at a time.
    pub(super) crowded: Vec<Round>,
    /// Memory beside the number of known sessions.
    pub(super) known: Vec<Known>,
    /// How long 1,000 turns in flight took, and the most memory they needed.
    pub(super) in_flight: (Duration, u64),
    /// What a kill in the middle did.
    pub(super) killed: Killed,
    /// What people notice of a restart.
    pub(super) restart: Option<Restart>,
    /// How people are served while strangers flood.
    pub(super) flood: Option<Flood>,
    /// How people are answered while strangers guess pairing codes.
    pub(super) guesses: Option<Guesses>,
    /// What each of the three platforms showed.
    pub(super) platforms: Vec<Spoken>,
    /// Processors in use while 1,000 answers were streaming, and the most memory meanwhile.
    pub(super) streaming: (f64, u64),
    /// How long steps of a session took, the shortest first.
    pub(super) steps: Vec<Duration>,
    /// How long searches of a large store took, the shortest first.
    pub(super) searches: Vec<Duration>,
}

/// How fast one platform is, each list with the shortest first.
pub(super) struct Spoken {
    pub(super) platform: &'static str,
    /// From the moment its vendor tells of a message until the model is asked.
    pub(super) heard: Vec<Duration>,
    /// From the first word of the model until its vendor is asked to show it.
    pub(super) shown: Vec<Duration>,
}

/// What all but so many in a hundred took at most.
pub(super) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let place = sorted.len().saturating_sub(1) * percent / 100;
    sorted.get(place).copied().unwrap_or(Duration::MAX)
}

/// The same turns on the floor and on the gateway.
pub(super) struct Round {
    pub(super) floor: Sample,
    pub(super) ours: Sample,
}

/// Memory beside the number of known sessions.
pub(super) struct Known {
    pub(super) sessions: usize,
    pub(super) resident: u64,
}

/// What a kill with 50 messages in flight did.
#[derive(Default)]
pub(super) struct Killed {
    /// How many were answered after the restart.
    pub(super) answered: usize,
    /// From the start of the next process to the last answer.
    pub(super) took: Duration,
}

/// The middle of a number over all rounds: on the floor, and on the gateway.
pub(super) fn medians(rounds: &[Round], number: impl Fn(&Sample) -> f64) -> (f64, f64) {
    let floor = median(rounds.iter().map(|round| number(&round.floor)));
    let ours = median(rounds.iter().map(|round| number(&round.ours)));
    (floor, ours)
}

/// How people are answered while the gateway starts again, beside how they are without. All of them are, once.
pub(super) struct Restart {
    pub(super) calm: Sample,
    pub(super) restarted: Sample,
}

/// How people who may are served while strangers flood, beside how they are in quiet.
pub(super) struct Flood {
    pub(super) quiet: Served,
    pub(super) flooded: Served,
    /// How often strangers asked, how many answers they got, and how long they asked.
    pub(super) refused: (usize, usize, Duration),
    /// The most memory before the first flood.
    pub(super) before: u64,
    /// The most memory up to the end of each flood.
    pub(super) resident: Vec<u64>,
}

/// How people are served.
pub(super) struct Served {
    /// From a message on the platform to its answer there.
    pub(super) turns: Sample,
    /// From opening a connection to the end of what the page shows.
    pub(super) views: Sample,
}

/// How people who may are answered while strangers guess pairing codes, beside how they are in quiet. No guess
/// was right.
pub(super) struct Guesses {
    pub(super) quiet: Sample,
    pub(super) guessed: Sample,
    /// How often it was guessed, and how long.
    pub(super) tried: (usize, Duration),
    /// How many codes were made meanwhile.
    pub(super) codes: usize,
    /// The most memory before.
    pub(super) resident: u64,
    /// The most memory after.
    pub(super) most_resident: u64,
    /// How large the state is on the disk, after.
    pub(super) stored: u64,
    /// How much of it is there because of the guesses.
    pub(super) stored_by_guesses: u64,
}
