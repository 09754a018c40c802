//! Something is said while a turn runs.

use super::{
    Talk, check, check_with, heard, posted, printed, queueing, quiet, rules_with, steering,
};
use talaria_model::{Author, ChatKind, InboundKind, Message, Quote, Seq};

use crate::{Acks, Busy, Effect, Event, Phase, Rules};

#[test]
fn what_others_said_in_one_message_is_not_put_to_another() {
    let eves = || Quote::new("obey", Author::Named("Eve".into()));
    let changes: [fn(&mut Message, Quote); 3] = [
        |message, quote| message.forwarded = Some(quote.author),
        |message, quote| message.quote = Some(quote),
        |message, quote| message.cited = vec![quote],
    ];
    for change in changes {
        let mut talk = Talk::new(quiet());
        talk.play("alice: hello / alice sends a.png: my report");
        let mut another = super::said("alice", "delete the old ones");
        if let InboundKind::Said(message) = &mut another.kind {
            message.files = vec![super::file("b.png")];
            change(message, eves());
        }
        talk.arrive(another);
        let read = heard(&talk.play("agent: finishes hi"));
        assert_eq!((read.len(), read[0].as_str()), (2, "my report"));
        assert!(read[1].contains("Eve") && read[1].ends_with("delete the old ones"), "{read:?}");
    }
}

#[test]
fn a_second_message_interrupts_and_is_next() {
    check("alice: hello / away: 5 / alice: wait", &["tell turn 1: stop", "take #2"]);
    check(
        "alice: hello / away: 5 / alice: wait / agent: stopped Once upon",
        &[
            "post 1: Once upon  *Interrupted.*",
            "record answer: Once upon\n\n*Interrupted.*",
            "bind #2 to turn 2",
            "record alice: wait",
            "start turn 2",
        ],
    );
}

#[test]
fn the_rest_of_what_began_a_turn_makes_it_one_turn_over_all_of_it() {
    check("alice: one / alice: two", &["tell turn 1: stop", "take #2"]);
    let again = ["bind #2 to turn 2", "record alice: two", "start turn 2"];
    check("alice: one / alice: two / agent: stopped Half an ans", &again);
    check("alice: one / alice: two / crash", &again);
    let mut talk = Talk::new(quiet());
    let effects = talk.play("alice: one / alice: two / alice: three / agent: stopped Half");
    assert_eq!(heard(&effects), ["two", "three"], "without a note");
    let hand = talk.session.hand().unwrap();
    assert_eq!(hand.seqs, [1, 2, 3].map(talaria_model::Seq));
    assert_eq!(hand.usage.output, 10, "what the first half used counts");
    assert_eq!(printed(&talk.line("agent: finishes both"))[0], "post 2: both");
    let undone = printed(&talk.line("alice: /undo"));
    assert_eq!(undone[0], "rewind 1 to 4 by alice", "it is one turn to whoever takes it back");
    let pictures = "alice: look / alice sends a.png:  / agent: stopped ";
    check(pictures, &["bind #2 to turn 2", "record alice:  +a.png", "start turn 2"]);
}

#[test]
fn the_rest_interrupts_like_anything_else_once_something_was_done_or_it_comes_late() {
    for script in [
        "alice: one / agent: steps Let me see. / alice: two / agent: stopped x",
        "alice: one / agent: calls c / alice: two / agent: stopped x",
        "alice: one / alice: two / agent: returns c / agent: stopped x",
        "alice: one / away: 3 / alice: two / agent: stopped x",
    ] {
        let effects = Talk::new(quiet()).play(script);
        assert_eq!(posted(&effects), ["x\n\n*Interrupted.*"], "{script}");
        assert!(heard(&effects)[0].contains("interrupted"), "{script}");
    }
    let effects = Talk::new(quiet()).play("alice: one / bob: me / alice: /q later / alice: two");
    assert_eq!(printed(&effects), ["tell turn 1: stop", "take #4"], "it goes before what waits");
}

#[test]
fn a_turn_that_had_said_nothing_is_interrupted_without_a_word() {
    check(
        "alice: hello / away: 5 / alice: wait / agent: stopped ",
        &["record answer: ", "bind #2 to turn 2", "record alice: wait", "start turn 2"],
    );
}

#[test]
fn an_answer_that_was_done_already_is_given_all_the_same() {
    check(
        "alice: hello / away: 5 / alice: wait / agent: finishes hi",
        &[
            "post 1: hi",
            "record answer: hi",
            "bind #2 to turn 2",
            "record alice: wait",
            "start turn 2",
        ],
    );
}

#[test]
fn the_next_turn_is_told_that_the_last_one_was_interrupted() {
    let note = |script: &str| heard(&Talk::new(quiet()).play(script)).remove(0);
    let read = note("alice: hello / away: 5 / alice: wait / agent: stopped Once");
    assert!(read.starts_with("[[System note: Your last answer was interrupted"), "{read}");
    assert!(read.ends_with("\n\nwait"), "{read}");
    let read = note("alice: hello / agent: returns c / away: 5 / alice: wait / agent: stopped ");
    assert!(read.contains("before you could make use of the tool results"), "{read}");
    let read =
        note("alice: a / away: 5 / alice: b / agent: stopped  / agent: finishes x / alice: c");
    assert_eq!(read, "c", "it is told once");
}

#[test]
fn what_interrupts_goes_ahead_of_what_is_queued_and_together() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: one / alice: /queue later / bob: me / away: 5 / alice: two / alice: three");
    let effects = talk.line("agent: stopped ");
    assert_eq!(
        printed(&effects),
        [
            "record answer: ",
            "bind #4 to turn 2",
            "record alice: two",
            "bind #5 to turn 2",
            "record alice: three",
            "start turn 2",
        ]
    );
}

#[test]
fn a_second_message_while_thinking_steers_the_turn_where_that_is_the_rule() {
    check_with(
        steering(),
        "alice: hello / alice: and in French",
        &["take #2", "tell turn 1: steer: and in French"],
    );
}

#[test]
fn a_steer_that_came_too_late_starts_the_next_turn() {
    check_with(
        steering(),
        "alice: hello / alice: and in French / agent: finishes hi",
        &[
            "post 1: hi",
            "record answer: hi",
            "bind #2 to turn 2",
            "record alice: and in French",
            "start turn 2",
        ],
    );
}

#[test]
fn a_second_message_waits_where_that_is_the_rule() {
    check_with(queueing(), "alice: hello / alice: more", &["take #2"]);
}

#[test]
fn waiting_messages_of_one_person_are_one_turn_and_of_another_their_own() {
    check_with(
        queueing(),
        "alice: hello / alice: one / alice: two / bob: three / agent: finishes hi",
        &[
            "post 1: hi",
            "record answer: hi",
            "bind #2 to turn 2",
            "record alice: one",
            "bind #3 to turn 2",
            "record alice: two",
            "start turn 2",
        ],
    );
}

#[test]
fn somebody_elses_turn_is_never_interrupted_or_steered() {
    for rules in [quiet(), steering(), queueing()] {
        check_with(rules, "alice: hello / bob: me too", &["take #2"]);
    }
}

#[test]
fn pictures_that_wait_become_one_message_with_their_caption_once() {
    check_with(
        queueing(),
        "alice: hello / away: 5 / alice sends a.png: the sea / alice sends b.png: the sea / \
         alice sends c.png:  / alice: look / agent: finishes hi",
        &[
            "post 1: hi",
            "record answer: hi",
            "bind #2 to turn 2",
            "bind #3 to turn 2",
            "bind #4 to turn 2",
            "record alice: the sea +a.png +b.png +c.png",
            "bind #5 to turn 2",
            "record alice: look",
            "start turn 2",
        ],
    );
}

#[test]
fn a_picture_without_words_waits_instead_of_interrupting() {
    check("alice: hello / away: 5 / alice sends a.png: ", &["take #2"]);
    check("alice: hello / away: 5 / alice sends a.png: wait", &["tell turn 1: stop", "take #2"]);
}

#[test]
fn a_turn_in_the_midst_of_something_is_not_interrupted() {
    check("alice: hello / agent: works beside / alice: wait", &["take #2"]);
    check("alice: hello / agent: works compressing / alice: wait", &["take #2"]);
    check(
        "alice: hello / agent: works beside / agent: works plainly / away: 5 / alice: wait",
        &["tell turn 1: stop", "take #2"],
    );
    check_with(
        steering(),
        "alice: hello / agent: finishes hi / alice: /compress / alice: wait",
        &["take #3"],
    );
}

#[test]
fn what_is_queued_is_a_turn_of_its_own_in_order() {
    let mut talk = Talk::new(queueing());
    talk.play("alice: hello / alice: /queue one / alice: /q two / alice: three / alice: four");
    let starts = |talk: &mut Talk| heard(&talk.line("agent: finishes done"));
    assert_eq!(starts(&mut talk), ["one"]);
    assert_eq!(starts(&mut talk), ["two"]);
    assert_eq!(starts(&mut talk), ["three", "four"]);
    assert_eq!(starts(&mut talk), Vec::<String>::new());
}

#[test]
fn a_queue_with_nothing_running_is_like_anything_said() {
    check("alice: /queue hello", &["bind #1 to turn 1", "record alice: hello", "start turn 1"]);
    let texts = posted(&Talk::new(quiet()).play("alice: /queue"));
    assert_eq!(texts, ["Say it like this: `/queue WORDS`."]);
    check(
        "alice sends a.png: /queue",
        &["bind #1 to turn 1", "record alice:  +a.png", "start turn 1"],
    );
}

#[test]
fn a_full_queue_is_refused_visibly() {
    let mut talk = Talk::new(rules_with(|rules| rules.queue = 2));
    talk.play("alice: hello / alice: /queue 1 / alice: /queue 2");
    let effects = talk.line("alice: /queue 3");
    assert_eq!(posted(&effects), ["The queue is full: 2 messages wait already."]);
    assert_eq!(printed(&effects)[0], "close #4");
    assert_eq!(talk.session.waiting.len(), 2);
}

#[test]
fn a_steer_by_command_reaches_the_turn_whatever_the_rule() {
    for rules in [quiet(), queueing()] {
        check_with(
            rules,
            "alice: hello / alice: /steer softly",
            &[
                "take #2",
                "tell turn 1: steer: softly",
                "post 2: ⏩ Passed on: I take that into account at my next step.",
                "record notice: ⏩ Passed on: I take that into account at my next step.",
            ],
        );
    }
    let mut talk = Talk::new(Rules { busy: Busy::Queue, ..Rules::default() });
    talk.play("alice: hello / away: 10 / bob: me");
    assert!(talk.session.acked.is_some());
    assert_eq!(posted(&talk.line("alice: /steer softly")).len(), 1, "a command is answered");
    check("alice: /steer softly", &["bind #1 to turn 1", "record alice: softly", "start turn 1"]);
    check("alice: hello / bob: /steer mine", &["take #2"]);
}

#[test]
fn waiting_is_acknowledged_at_most_every_thirty_seconds_and_not_in_the_same_breath() {
    let mut talk = Talk::new(Rules { busy: Busy::Queue, ..Rules::default() });
    let mut acks = |script: &str| posted(&talk.play(script)).len();
    assert_eq!(acks("alice: hello / alice: and"), 0, "the rest of the same thought");
    assert_eq!(acks("later: 10 / alice: more"), 1);
    assert_eq!(acks("later: 20 / alice: and more"), 0);
    assert_eq!(acks("later: 20 / alice: even more"), 1);
    let mut talk = Talk::new(Rules { acks: Acks::Never, ..Rules::default() });
    assert_eq!(posted(&talk.play("alice: hello / later: 10 / alice: wait")), Vec::<String>::new());
}

#[test]
fn acknowledgements_say_what_becomes_of_the_message() {
    let ack = |busy: Busy, script: &str| {
        let rules = Rules { busy, ..Rules::default() };
        posted(&Talk::new(rules).play(script)).remove(0).chars().next()
    };
    let later = "alice: hello / later: 10 / alice: wait";
    assert_eq!(ack(Busy::Interrupt, later), Some('⚡'));
    assert_eq!(ack(Busy::Queue, later), Some('⏳'));
    assert_eq!(ack(Busy::Steer, later), Some('⏩'));
}

#[test]
fn stop_drops_what_was_waiting_and_what_was_not_read_yet_and_says_so() {
    check_with(
        steering(),
        "alice: hello / alice: more / alice: /stop",
        &[
            "close #3",
            "record aside alice: /stop",
            "drop unread before #3",
            "ignore #2: dropped by a stop",
            "tell turn 1: stop",
            "post 2: Stopping. One message that was waiting is dropped.",
            "record notice: Stopping. One message that was waiting is dropped.",
        ],
    );
}

#[test]
fn what_is_said_after_a_stop_is_next() {
    check(
        "alice: hello / stop button / alice: one / alice: two / bob: three / agent: stopped",
        &[
            "post 1: Stopped.",
            "record notice: Stopped.",
            "bind #3 to turn 2",
            "record alice: one",
            "bind #4 to turn 2",
            "record alice: two",
            "start turn 2",
        ],
    );
}

#[test]
fn stop_with_nothing_running_says_so() {
    check(
        "stop button",
        &[
            "close #1",
            "drop unread before #1",
            "post 1: Nothing is running.",
            "record notice: Nothing is running.",
        ],
    );
}

#[test]
fn a_stop_ends_an_interruption_too() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / away: 5 / alice: wait / alice: /stop");
    assert!(matches!(talk.session.phase, Phase::Stopping(_)));
    let effects = talk.line("agent: stopped ");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Start(_))));
}

#[test]
fn nobody_overtakes_what_they_said_themselves_and_has_to_wait() {
    check_with(
        steering(),
        "alice: a / stop button / alice: b / bob: c / alice: d / agent: stopped / alice: e",
        &["take #6"],
    );
}

#[test]
fn an_empty_answer_to_what_was_taken_up_since_the_last_words_is_not_silence() {
    check_with(
        steering(),
        "alice: hello / agent: steps Let me look. / alice: and you? / agent: took 2 / agent: finishes ",
        &[
            "post 2: The model returned an empty answer.",
            "record notice: The model returned an empty answer.",
        ],
    );
}

#[test]
fn what_waits_of_somebody_who_is_put_out_is_not_taken_up() {
    let mut talk = Talk::among(ChatKind::Group, queueing());
    talk.play("alice: hello / bob: and me / alice: more / bob: please");
    let rows: Vec<Seq> = talk.session.waiting.iter().map(|said| said.seq).collect();
    assert_eq!(rows, [Seq(2), Seq(3), Seq(4)]);
    let effects = talk.tell(Event::Barred { rows: vec![Seq(2), Seq(4)], why: "revoked" });
    assert_eq!(printed(&effects), ["deny #2: revoked", "deny #4: revoked"]);
    let effects = talk.line("agent: finishes hi");
    let bound: Vec<String> =
        printed(&effects).into_iter().filter(|line| line.starts_with("bind")).collect();
    assert_eq!(bound, ["bind #3 to turn 2"]);
}
