//! Rendering costs next to nothing; the example `speed` says how little.
#![expect(clippy::disallowed_methods, reason = "it measures")]

use std::time::{Duration, Instant};

use talaria_model::{TextLimit, Unit};
use talaria_render::{Dialect, parse, render, split_in};

use crate::corpus::answers;
use crate::support::DIALECTS;

/// A thousand times what it takes in a release build, because tests are built without optimization
/// and run beside each other.
const FAR_TOO_LONG: Duration = Duration::from_secs(1);

/// What belongs to what follows it, again and again: such a text is cut into full parts, and into no more of
/// them when it is long. Each block is then measured twice at most, whatever the length.
#[test]
fn titles_and_lines_that_announce_something_fill_their_parts() {
    let limit = TextLimit { max: 1000, unit: Unit::Utf16 };
    for piece in ["# A title\n", "One more thing:\n\n", "[x]:\n\n", "# Title\n\nand:\n\n"] {
        for dialect in DIALECTS {
            for times in [200, 800] {
                let text = piece.repeat(times);
                // Half full is full enough, and no dialect writes more than four times what it reads.
                let most = 8 * text.len() / 1000 + 2;
                let parts = split_in(&text, limit, dialect).len();
                assert!(parts <= most, "{parts} parts of {times} times {piece:?} in {dialect:?}");
            }
        }
    }
}

#[test]
fn signs_that_are_never_closed_take_no_more_time_each_the_more_there_are() {
    let time = |text: &str, dialect| {
        let document = parse(text);
        let begun = Instant::now();
        render(&document, dialect);
        begun.elapsed().as_secs_f64()
    };
    for piece in ["[ ", "<:", "<@", "< ", "\\[ ", "|| ", "](", "&lt;"] {
        for dialect in [Dialect::Discord, Dialect::SlackMrkdwn, Dialect::TelegramEntities] {
            let (short, long) = (piece.repeat(2_000), piece.repeat(32_000));
            // Sixteen times as many: 256 times as long, if every sign looked at all that follow. Whatever
            // else runs on this machine does not slow down only the long one every time.
            let factor = || time(&long, dialect) / time(&short, dialect).max(1e-6);
            let is_even = (0..20).any(|_| factor() < 90.0);
            assert!(is_even, "{piece:?} in {dialect:?}");
        }
    }
}

#[test]
fn an_answer_of_twenty_kilobytes_takes_no_time_worth_mentioning() {
    let mut answer = String::new();
    for (_, another) in answers() {
        answer.push_str(&another);
        answer.push_str("\n\n");
        if answer.len() > 20_000 {
            break;
        }
    }
    let limit = TextLimit { max: 4096, unit: Unit::Utf16 };
    for dialect in DIALECTS {
        let took = (0..3)
            .map(|_| {
                let begun = Instant::now();
                render(&parse(&answer), dialect);
                split_in(&answer, limit, dialect);
                begun.elapsed()
            })
            .min();
        assert!(took < Some(FAR_TOO_LONG), "{dialect:?}: {took:?}");
    }
}
