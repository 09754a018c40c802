//! The figures beside their targets, for a terminal and for the documentation.

use super::CROWD;
use super::figures::{Figures, Flood, Guesses, Restart, medians, percentile};
use super::sample::{Sample, median};

/// One line of the table.
pub(super) struct Row {
    pub(super) what: String,
    measured: String,
    floor: String,
    ratio: String,
    target: String,
    verdict: Option<Verdict>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Kept,
    Missed,
}

impl Row {
    pub(super) fn is_missed(&self) -> bool {
        self.verdict == Some(Verdict::Missed)
    }

    fn cells(&self) -> [&str; 6] {
        let verdict = match self.verdict {
            Some(Verdict::Kept) => "kept",
            Some(Verdict::Missed) => "**missed**",
            None => "",
        };
        [&self.what, &self.measured, &self.floor, &self.ratio, &self.target, verdict]
    }
}

const HEAD: [&str; 6] = ["", "Talaria", "floor", "ratio", "target", ""];

fn verdict(kept: bool) -> Option<Verdict> {
    Some(if kept { Verdict::Kept } else { Verdict::Missed })
}

/// A number that stands alone.
fn single(what: &str, measured: String, target: &str, kept: Option<Verdict>) -> Row {
    Row {
        what: what.to_owned(),
        measured,
        floor: String::new(),
        ratio: String::new(),
        target: target.to_owned(),
        verdict: kept,
    }
}

/// A number beside the floor's.
fn beside(
    what: &str,
    (floor, ours): (f64, f64),
    show: impl Fn(f64) -> String,
    target: &str,
    kept: impl Fn(f64) -> Option<Verdict>,
) -> Row {
    let ratio = ours / floor;
    Row {
        what: what.to_owned(),
        measured: show(ours),
        floor: show(floor),
        ratio: format!("{ratio:.2} ×"),
        target: target.to_owned(),
        verdict: kept(ratio),
    }
}

pub(super) fn table(figures: &Figures) -> Vec<Row> {
    let millis = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    let whole_millis = |seconds: f64| format!("{:.0} ms", seconds * 1e3);
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let ready = median(figures.cold_starts.iter().map(|(ready, _)| ready.as_secs_f64()));
    let pulse = median(figures.cold_starts.iter().map(|(_, pulse)| pulse.as_secs_f64()));
    let idle = median(figures.idle.iter().map(|bytes| *bytes as f64));
    let (flown, most) = figures.in_flight;
    let mut rows = vec![
        single(
            "cold start to the ready line",
            whole_millis(ready),
            "≤ 100 ms",
            verdict(ready <= 0.1),
        ),
        single("cold start to the first HTTP answer", whole_millis(pulse), "", None),
        single("memory when idle", megabytes(idle), "≤ 25 MB", verdict(idle <= 25e6)),
        beside(
            "answer, one at a time, p50",
            medians(&figures.alone, |sample| sample.p50.as_secs_f64()),
            millis,
            "≤ 4 × floor",
            |ratio| verdict(ratio <= 4.0),
        ),
        beside(
            "answer, one at a time, p99",
            medians(&figures.alone, |sample| sample.p99.as_secs_f64()),
            millis,
            "",
            |_| None,
        ),
        beside(
            &format!("turns per second, {CROWD} at a time"),
            medians(&figures.crowded, Sample::per_second),
            |number| format!("{number:.0}"),
            "≥ 0.5 × floor",
            |ratio| verdict(ratio >= 0.5),
        ),
        beside(
            "CPU-seconds per 1,000 turns",
            medians(&figures.crowded, Sample::processor_per_thousand),
            |number| format!("{number:.2}"),
            "≤ 5 × floor",
            |ratio| verdict(ratio <= 5.0),
        ),
    ];
    for known in &figures.known {
        let what = format!("memory with {} known sessions", thousands(known.sessions));
        rows.push(single(&what, megabytes(known.resident as f64), "", None));
    }
    if let (Some(few), Some(many)) = (figures.known.get(1), figures.known.last()) {
        let each = many.resident.saturating_sub(few.resident) as f64
            / many.sessions.saturating_sub(few.sessions).max(1) as f64;
        let shown = format!("{:.1} KB", each / 1e3);
        rows.push(single("memory per idle known session", shown, "≤ 20 KB", verdict(each <= 20e3)));
    }
    let flown = flown.as_secs_f64();
    let answered = figures.killed.answered;
    rows.extend([
        single(
            "1,000 in flight, model thinks 3 s: all answered",
            format!("{flown:.2} s"),
            "< 6 s",
            verdict(flown < 6.0),
        ),
        single(
            "most memory meanwhile",
            megabytes(most as f64),
            "< 100 MB",
            verdict(most < 100_000_000),
        ),
        single(
            "killed with 50 in flight: answered after the restart",
            format!(
                "{answered} of 50, none twice, after {:.2} s",
                figures.killed.took.as_secs_f64()
            ),
            "50, none twice",
            verdict(answered == 50),
        ),
    ]);
    rows.extend(figures.restart.iter().map(through_a_restart));
    rows.extend(figures.flood.iter().flat_map(in_a_flood));
    rows.extend(figures.guesses.iter().flat_map(under_guesses));
    rows.extend(on_platforms(figures));
    let step = percentile(&figures.steps, 95).as_secs_f64() * 1e6;
    let found = percentile(&figures.searches, 95).as_secs_f64() * 1e3;
    rows.extend([
        single("step of a session, p95", format!("{step:.1} µs"), "≤ 20 µs", verdict(step <= 20.0)),
        single(
            "search over 1,000,000 entries, p95",
            format!("{found:.1} ms"),
            "≤ 50 ms",
            verdict(found <= 50.0),
        ),
    ]);
    rows
}

/// The longest that anybody waits when the gateway starts again; the floor is the same without that.
pub(super) fn through_a_restart(restart: &Restart) -> Row {
    let Restart { calm, restarted } = restart;
    let what = format!(
        "restart at {:.0} messages a second, none lost or twice: longest wait",
        restarted.per_second()
    );
    let longest = |sample: &Sample| sample.longest.as_secs_f64();
    let millis = |seconds: f64| format!("{:.0} ms", seconds * 1e3);
    let kept = verdict(longest(restarted) <= 1.0);
    beside(&what, (longest(calm), longest(restarted)), millis, "≤ 1 s", |_| kept)
}

/// How people are served while strangers flood; the floor is how they are in quiet.
pub(super) fn in_a_flood(flood: &Flood) -> Vec<Row> {
    let millis = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let p99 = |served: &Sample| served.p99.as_secs_f64();
    let twice = |ratio| verdict(ratio <= 2.0);
    let (asked, answered, took) = flood.refused;
    let seconds = took.as_secs_f64();
    let resident = |flood: Option<&u64>| flood.copied().unwrap_or_default() as f64;
    let (first, last) = (resident(flood.resident.first()), resident(flood.resident.last()));
    let heard = format!(
        "{} requests in {seconds:.1} s, {} answered",
        thousands(asked),
        thousands(answered)
    );
    vec![
        single("strangers flood, beside 5,000 idle connections", heard, "", None),
        beside(
            "answer on a platform in the flood, p99, beside quiet",
            (p99(&flood.quiet.turns), p99(&flood.flooded.turns)),
            millis,
            "≤ 2 × quiet",
            twice,
        ),
        beside(
            "the page in the flood, p99, beside quiet",
            (p99(&flood.quiet.views), p99(&flood.flooded.views)),
            millis,
            "≤ 2 × quiet",
            twice,
        ),
        beside(
            "most memory in a flood, beside before",
            (flood.before as f64, first),
            megabytes,
            "≤ 1.25 × before",
            |ratio| verdict(ratio <= 1.25),
        ),
        beside(
            "most memory in the third flood, beside the first",
            (first, last),
            megabytes,
            "≤ 1.25 × the first",
            |ratio| verdict(ratio <= 1.25),
        ),
    ]
}

/// How people are answered while strangers guess; the floor is how they are in quiet.
pub(super) fn under_guesses(guesses: &Guesses) -> Vec<Row> {
    let millis = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let p99 = |sample: &Sample| sample.p99.as_secs_f64();
    let (tried, took) = guesses.tried;
    let heard = format!(
        "{} in {:.0} s at {} codes, none right",
        thousands(tried),
        took.as_secs_f64(),
        guesses.codes
    );
    vec![
        single("strangers guess pairing codes", heard, "none right", verdict(true)),
        beside(
            "answer meanwhile, p99, beside quiet",
            (p99(&guesses.quiet), p99(&guesses.guessed)),
            millis,
            "",
            |_| None,
        ),
        beside(
            "most memory, beside before",
            (guesses.resident as f64, guesses.most_resident as f64),
            megabytes,
            "≤ 1.25 × before",
            |ratio| verdict(ratio <= 1.25),
        ),
        single(
            "state on the disk, and how much of it by guesses",
            format!(
                "{}, {}",
                megabytes(guesses.stored as f64),
                megabytes(guesses.stored_by_guesses as f64)
            ),
            "≤ 16 MB by guesses",
            verdict(guesses.stored_by_guesses <= 16_000_000),
        ),
    ]
}

/// What is known of Telegram, Discord and Slack.
pub(super) fn on_platforms(figures: &Figures) -> Vec<Row> {
    let millis = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    let mut rows = Vec::new();
    for spoken in &figures.platforms {
        let heard = percentile(&spoken.heard, 50).as_secs_f64();
        let shown = percentile(&spoken.shown, 50).as_secs_f64();
        let platform = spoken.platform;
        let (asked, sent) = (
            format!("{platform}: update received to model asked, p50"),
            format!("{platform}: first token to first send, p50"),
        );
        rows.push(single(&asked, millis(heard), "≤ 2 ms", verdict(heard <= 2e-3)));
        rows.push(single(&sent, millis(shown), "≤ 2 ms", verdict(shown <= 2e-3)));
    }
    let (cores, most) = figures.streaming;
    let what = "1,000 answers streaming on three platforms: processors in use";
    rows.push(single(what, format!("{cores:.2}"), "≤ 1", verdict(cores <= 1.0)));
    rows.push(single("most memory meanwhile", format!("{:.1} MB", most as f64 / 1e6), "", None));
    rows
}

fn thousands(number: usize) -> String {
    match (number / 1000, number % 1000) {
        (0, rest) => rest.to_string(),
        (more, rest) => format!("{},{rest:03}", thousands(more)),
    }
}

/// For a terminal.
pub(super) fn aligned(rows: &[Row]) -> String {
    let lines: Vec<[&str; 6]> = std::iter::once(HEAD).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..6).map(width).collect();
    let lines = lines.iter().map(|line| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// For the documentation.
pub(super) fn page(rows: &[Row], machine: &str) -> String {
    let line = |cells: [&str; 6]| format!("| {} |", cells.join(" | "));
    let mut table = vec![line(HEAD), "|---|---:|---:|---:|---|---|".to_owned()];
    table.extend(rows.iter().map(|row| line(row.cells())));
    include_str!("page.md").replace("{table}", &table.join("\n")).replace("{machine}", machine)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_restart_of_more_than_a_second_misses_its_target() {
        let sample = |longest: u64| {
            let longest = Duration::from_millis(longest);
            Sample::of(vec![longest], longest, Duration::ZERO)
        };
        for (longest, missed) in [(1_000, false), (1_001, true)] {
            let restart = Restart { calm: sample(10), restarted: sample(longest) };
            let row = through_a_restart(&restart);
            assert_eq!(crate::bench::judge(&[row]).is_err(), missed, "{longest} ms");
        }
    }
}
