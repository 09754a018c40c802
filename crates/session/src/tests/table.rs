//! Every phase answers every event.

use talaria_model::TurnId;

use super::{Talk, quiet, report};
use crate::{Event, Phase};

/// How each phase is reached, and its letter.
const PHASES: [(char, &str); 5] = [
    ('I', "alice: one / agent: finishes 1"),
    ('T', "alice: one / away: 5"),
    ('A', "alice: one / agent: asks Sure?"),
    ('N', "alice: one / away: 5 / alice: wait"),
    ('S', "alice: one / alice: /stop"),
];

/// What each event makes of each phase, in the order of `PHASES`.
const TABLE: [(&str, &str); 37] = [
    ("alice: words", "TNTNS"),
    ("bob: words", "TTANS"),
    ("alice sends a.png: ", "TTTNS"),
    ("alice sends a.png: words", "TNTNS"),
    ("alice passes on: yes", "TNANS"),
    ("alice passes on: /stop", "TNANS"),
    ("alice passes on: /new", "TNANS"),
    ("alice: /queue words", "TTANS"),
    ("alice: /steer words", "TTANS"),
    ("alice: /background words", "ITANS"),
    ("alice: /stop", "ISSSS"),
    ("stop button", "ISSSS"),
    ("passed stop", "ISSSS"),
    ("alice: /new", "IIIII"),
    ("alice: /status", "ITANS"),
    ("alice: /undo", "ITANS"),
    ("alice: /branch", "ITANS"),
    ("alice: /sessions", "ITANS"),
    ("alice: /compress", "TTANS"),
    ("alice: /approve", "ITTNS"),
    ("bob: /approve", "ITANS"),
    ("press: q1", "ITTNS"),
    ("press: other", "ITANS"),
    ("agent: finishes x", "IIITI"),
    ("agent: finishes ", "IIITI"),
    ("agent: fails x", "IIITI"),
    ("agent: stopped x", "IIITI"),
    ("agent: steps x", "ITANS"),
    ("agent: asks x", "IAANS"),
    ("agent: works beside", "ITANS"),
    ("agent: compressed 1", "ITANS"),
    ("later: 10", "ITANS"),
    ("later: 90000", "IITTI"),
    ("leave", "ITANS"),
    ("restart", "ITATI"),
    ("crash", "ITATI"),
    ("put away", "ITANS"),
];

fn letter(phase: &Phase) -> char {
    match phase {
        Phase::Idle => 'I',
        Phase::Thinking(_) => 'T',
        Phase::Asking { .. } => 'A',
        Phase::Interrupting(_) => 'N',
        Phase::Stopping(_) => 'S',
    }
}

#[test]
fn every_phase_answers_every_event() {
    for (line, expected) in TABLE {
        let after: String = PHASES
            .iter()
            .map(|(phase, script)| {
                let mut talk = Talk::new(quiet());
                talk.play(script);
                assert_eq!(letter(&talk.session.phase), *phase, "{script}");
                match line.strip_prefix("agent: ") {
                    // A turn that is over reports late.
                    Some(what) if *phase == 'I' => {
                        let turn = TurnId { session: talk.session.id.clone(), number: 1 };
                        let effects = talk.tell(Event::Agent { turn, event: report(what) });
                        assert_eq!(effects, [], "{line}");
                    }
                    _ => drop(talk.line(line)),
                }
                letter(&talk.session.phase)
            })
            .collect();
        assert_eq!(after, expected, "{line}");
    }
}

#[test]
fn every_phase_outlives_what_goes_wrong_inside_us() {
    for ((phase, script), expected) in PHASES.into_iter().zip("IIITI".chars()) {
        let mut talk = Talk::new(quiet());
        talk.play(script);
        talk.tell(Event::Stumbled { over: None });
        assert_eq!(letter(&talk.session.phase), expected, "{phase}");
    }
}
