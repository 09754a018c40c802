//! Rendering costs next to nothing; the example `speed` says how little.
#![expect(clippy::disallowed_methods, reason = "it measures")]

use std::time::{Duration, Instant};

use talaria_model::{TextLimit, Unit};
use talaria_render::{parse, render, split_in};

use crate::corpus::answers;
use crate::support::DIALECTS;

/// A thousand times what it takes in a release build, because tests are built without optimization
/// and run beside each other.
const FAR_TOO_LONG: Duration = Duration::from_secs(1);

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
