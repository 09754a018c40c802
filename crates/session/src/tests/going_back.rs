//! A session is a copy of long ago: no yes in it leads to anything.

use talaria_model::{Answer, Word};

use super::approval::HANDLE;
use super::{Talk, quiet};
use crate::{Effect, Lapse, Phase};

fn answers(effects: &[Effect]) -> Vec<&Answer> {
    let answer = |effect| match effect {
        &Effect::Tell { word: Word::Answer { ref answer, .. }, .. } => Some(answer),
        _ => None,
    };
    effects.iter().filter_map(answer).collect()
}

#[test]
fn what_was_asked_has_expired_and_nobody_can_approve_it_any_more() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: begs 7");
    assert_eq!(talk.session.lapse(), Lapse { approvals: 1, here: 0 });
    let effects = talk.line("crash");
    assert_eq!(answers(&effects), [&Answer::Expired]);
    assert!(matches!(talk.session.phase, Phase::Thinking(_)), "{:?}", talk.session.phase);
    for line in ["alice presses: @.once", "alice: /approve always"] {
        let effects = talk.line(&line.replace('@', HANDLE));
        assert!(answers(&effects).is_empty(), "{line}: {effects:?}");
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Grant(_))), "{effects:?}");
    }
}

#[test]
fn a_yes_that_was_not_used_yet_is_used_up() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: begs 7 / alice: yes");
    assert_eq!(talk.session.lapse(), Lapse { approvals: 1, here: 0 });
    assert_eq!(answers(&talk.line("crash")), [&Answer::Expired]);
}

#[test]
fn what_was_approved_in_a_conversation_is_asked_about_again() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: begs 7 / alice: /approve session");
    talk.line("agent: finishes done");
    assert_eq!(talk.session.lapse(), Lapse { approvals: 0, here: 1 });
    talk.line("alice: again");
    let effects = talk.line("agent: begs 7");
    assert!(answers(&effects).is_empty(), "{effects:?}");
    assert!(matches!(talk.session.phase, Phase::Asking { .. }), "{:?}", talk.session.phase);
}

#[test]
fn a_question_that_approves_nothing_stays_open_and_a_no_stays_one() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: asks which?");
    assert_eq!(talk.session.lapse(), Lapse::default());
    assert!(answers(&talk.line("crash")).is_empty());
    assert!(matches!(talk.session.phase, Phase::Asking { .. }));
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: begs 7 / alice: no");
    assert_eq!(talk.session.lapse(), Lapse::default());
    assert_eq!(answers(&talk.line("crash")), [&Answer::Denied { reason: String::new() }]);
}
