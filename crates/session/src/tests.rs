//! Conversations as data: a script goes in, the decisions come out.

use std::time::Duration;

use proptest::prelude::*;
use talaria_model::{
    AccountId, Act, Address, AgentEvent, CallId, Chat, ChatId, ChatKind, Choice, ChoiceId,
    EntryBody, EventId, Failure, Inbound, InboundKind, Message, Question, Sender, SenderId, Seq,
    Timestamp, Usage, Word,
};

use crate::{Closed, Effect, Ended, Event, Phase, Rules, Scope, Session, SessionKey};

pub(crate) fn said(who: &'static str, text: &str) -> Inbound {
    Inbound {
        id: EventId::literal("e"),
        at: Timestamp::default(),
        from: Sender { id: SenderId::literal(who), name: None },
        to: Address {
            account: AccountId::literal("web"),
            chat: Chat { id: ChatId::literal("c"), kind: ChatKind::Dm },
            thread: None,
        },
        kind: InboundKind::Said(Message { text: text.into(), ..Message::default() }),
    }
}

/// A session being told things, one second apart.
struct Talk {
    session: Session,
    now: Timestamp,
    seq: u64,
}

impl Talk {
    fn new() -> Self {
        let hello = said("alice", "");
        let key = SessionKey::of(&hello, Scope::default());
        let now = Timestamp::from_millis(1_794_735_000_000);
        Self { session: Session::begin(key, hello.to, now, Rules::default()), now, seq: 0 }
    }

    fn tell(&mut self, event: Event) -> Vec<Effect> {
        self.now = self.now + Duration::from_secs(1);
        // Every state that is reached must survive being stored.
        let stored = serde_json::to_string(&self.session).expect("a session serialises");
        let rules = self.session.rules;
        self.session = serde_json::from_str(&stored).expect("a session deserialises");
        self.session.rules = rules;
        self.session.step(event, self.now)
    }

    fn arrive(&mut self, inbound: Inbound) -> Vec<Effect> {
        self.seq += 1;
        let seq = Seq(self.seq);
        self.tell(Event::Arrived { seq, inbound })
    }

    fn agent(&mut self, event: AgentEvent) -> Vec<Effect> {
        let turn = self.session.hand().expect("a turn is in hand").turn.clone();
        self.tell(Event::Agent { turn, event })
    }

    /// One line of a script: `alice: words`, `press: id`, `agent: verb words`, `restart`, `crash`,
    /// `later: seconds`.
    fn line(&mut self, line: &str) -> Vec<Effect> {
        let (who, what) = line.split_once(": ").unwrap_or((line, ""));
        match who {
            "alice" => self.arrive(said("alice", what)),
            "bob" => self.arrive(said("bob", what)),
            "stop button" => {
                self.arrive(Inbound { kind: InboundKind::Stopped, ..said("alice", "") })
            }
            "press" => {
                let choice = ChoiceId::new(what).expect("a choice");
                self.arrive(Inbound { kind: InboundKind::Pressed(choice), ..said("alice", "") })
            }
            "restart" => self.tell(Event::Restarted { ended: Ended::Cleanly }),
            "crash" => self.tell(Event::Restarted { ended: Ended::Abruptly }),
            "later" => {
                let seconds = what.parse().expect("seconds");
                self.now = self.now + Duration::from_secs(seconds);
                self.tell(Event::Woke)
            }
            "agent" => {
                let (verb, words) = what.split_once(' ').unwrap_or((what, ""));
                let text = words.to_owned();
                let event = match verb {
                    "finishes" => AgentEvent::Finished {
                        text,
                        files: vec![],
                        reasoning: None,
                        usage: Usage::default(),
                    },
                    "steps" => AgentEvent::Stepped {
                        text,
                        calls: vec![],
                        reasoning: None,
                        usage: Usage::default(),
                    },
                    "calls" => AgentEvent::Calling { call: CallId::new(words).expect("an id") },
                    "took" => {
                        AgentEvent::Took { seqs: vec![Seq(words.parse().expect("a number"))] }
                    }
                    "asks" => AgentEvent::Asked(question(words)),
                    "returns" => AgentEvent::Called {
                        call: CallId::new(words).expect("an id"),
                        output: String::new(),
                        files: vec![],
                        failed: false,
                    },
                    "stopped" => AgentEvent::Failed { failure: Failure::Stopped, said: text },
                    "fails" => {
                        AgentEvent::Failed { failure: Failure::Model(text), said: String::new() }
                    }
                    verb => panic!("unknown verb {verb}"),
                };
                self.agent(event)
            }
            who => panic!("unknown speaker {who}"),
        }
    }
}

fn question(text: &str) -> Question {
    let choice = |id, label: &str| Choice { id: ChoiceId::literal(id), label: label.into() };
    Question {
        call: CallId::literal("call"),
        text: text.into(),
        choices: vec![choice("q1", "Yes"), choice("q2", "No")],
    }
}

fn print(effect: &Effect) -> String {
    match effect {
        Effect::Take(seq) => format!("take {seq}"),
        Effect::Bind { seq, turn } => format!("bind {seq} to turn {}", turn.number),
        Effect::Close { seq, closed } => match closed {
            Closed::Handled => format!("close {seq}"),
            Closed::Ignored(why) => format!("ignore {seq}: {why}"),
            Closed::Quarantined(_) => format!("quarantine {seq}"),
        },
        Effect::Record { entry, .. } => match &entry.body {
            EntryBody::Said { from, text, .. } => format!("record {}: {text}", from.id),
            EntryBody::Aside { from, text } => format!("record aside {}: {text}", from.id),
            EntryBody::Answered { text, .. } => format!("record answer: {text}"),
            EntryBody::Returned { output, .. } => format!("record result: {output}"),
            EntryBody::Noticed { text, .. } => {
                format!("record notice: {}", text.lines().next().unwrap_or_default())
            }
        },
        Effect::Post(outbound) => match &outbound.act {
            Act::Post(content) => format!(
                "post {}: {}",
                outbound.id.delivery,
                content.text.replace('\n', " ").chars().take(60).collect::<String>()
            ),
            act => format!("post {}: {act:?}", outbound.id.delivery),
        },
        Effect::Start(start) => format!(
            "start turn {}{}{}",
            start.turn.number,
            if start.asked.is_some() { ", asked" } else { "" },
            start.started.iter().map(|call| format!(", started {call}")).collect::<String>()
        ),
        Effect::Tell { turn, word } => match word {
            Word::Steer { message, .. } => {
                format!("tell turn {}: steer: {}", turn.number, message.text)
            }
            Word::Answer(answer) => format!("tell turn {}: {answer:?}", turn.number),
            Word::Stop => format!("tell turn {}: stop", turn.number),
        },
        Effect::Abandon(turn) => format!("abandon turn {}", turn.number),
    }
}

/// Plays a script whose lines are separated by ` / ` and compares the effects of its last line.
#[track_caller]
fn check(script: &str, expected: &[&str]) {
    let mut talk = Talk::new();
    let mut last = Vec::new();
    for line in script.split(" / ") {
        last = talk.line(line);
    }
    assert_eq!(last.iter().map(print).collect::<Vec<_>>(), expected, "after {script:?}");
}

#[test]
fn a_message_starts_a_turn() {
    check("alice: hello", &["bind #1 to turn 1", "record alice: hello", "start turn 1"]);
}

#[test]
fn an_answer_is_recorded_and_posted_together() {
    check("alice: hello / agent: finishes hi", &["post 1: hi", "record answer: hi"]);
}

#[test]
fn a_second_message_while_thinking_steers_the_turn() {
    check("alice: hello / alice: and in French", &["take #2", "tell turn 1: steer: and in French"]);
}

#[test]
fn a_steer_becomes_part_of_the_turn_when_the_agent_took_it() {
    check(
        "alice: hello / alice: and in French / agent: took 2",
        &["bind #2 to turn 1", "record alice: and in French"],
    );
}

#[test]
fn a_steer_that_came_too_late_starts_the_next_turn() {
    check(
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
fn nobody_overtakes_what_they_said_themselves_and_has_to_wait() {
    // Behind bob, alice waits with her second message; her third does not go before it.
    check(
        "alice: hello / stop button / bob: one / alice: two / agent: stopped / agent: finishes hi",
        &[
            "post 3: hi",
            "record answer: hi",
            "bind #4 to turn 3",
            "record alice: two",
            "start turn 3",
        ],
    );
    check(
        "alice: a / stop button / alice: b / bob: c / alice: d / agent: stopped / alice: e",
        &["take #6"],
    );
}

#[test]
fn waiting_messages_of_another_person_get_a_turn_of_their_own() {
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
fn stopping_keeps_what_was_said_so_far() {
    check(
        "alice: hello / alice: /stop / agent: stopped Once upon",
        &["post 1: Once upon  *Stopped.*", "record answer: Once upon\n\n*Stopped.*"],
    );
}

#[test]
fn stop_drops_what_was_waiting_and_says_so() {
    check(
        "alice: hello / alice: more / alice: /stop",
        &[
            "close #3",
            "record aside alice: /stop",
            "tell turn 1: stop",
            "ignore #2: dropped by a stop",
            "post 2: Stopping. One message that was waiting is dropped.",
            "record notice: Stopping. One message that was waiting is dropped.",
        ],
    );
}

#[test]
fn stop_with_nothing_running_says_so() {
    check(
        "stop button",
        &["close #1", "post 1: Nothing is running.", "record notice: Nothing is running."],
    );
}

#[test]
fn a_question_waits_for_an_answer_by_button_number_label_or_words() {
    let asked = "alice: hello / agent: asks Sure?";
    check(asked, &["post 1: Sure?", "record notice: Sure?"]);
    for (line, answer) in [
        ("press: q2", r#"Chosen(ChoiceId("q2"))"#),
        ("alice: 2", r#"Chosen(ChoiceId("q2"))"#),
        ("alice: no", r#"Chosen(ChoiceId("q2"))"#),
        ("alice: 3", r#"Said("3")"#),
        ("alice: maybe", r#"Said("maybe")"#),
    ] {
        let mut talk = Talk::new();
        asked.split(" / ").for_each(|line| drop(talk.line(line)));
        let effects = talk.line(line);
        assert_eq!(effects.last().map(print), Some(format!("tell turn 1: {answer}")), "{line}");
        assert!(matches!(talk.session.phase, Phase::Thinking(_)));
    }
}

#[test]
fn a_button_of_an_old_question_is_refused_visibly() {
    check(
        "press: q1",
        &[
            "ignore #1: the question is not open any more",
            "post 1: That question is not open any more.",
            "record notice: That question is not open any more.",
        ],
    );
}

#[test]
fn a_question_that_nobody_answers_expires() {
    check("alice: hello / agent: asks Sure? / later: 86401", &["tell turn 1: Expired"]);
}

#[test]
fn the_time_a_person_takes_to_answer_does_not_count_against_the_turn() {
    let mut talk = Talk::new();
    talk.line("alice: hello");
    let before = talk.session.hand().expect("a turn").deadline;
    talk.line("agent: asks Sure?");
    talk.now = talk.now + Duration::from_secs(3600);
    talk.line("press: q1");
    let after = talk.session.hand().expect("a turn").deadline;
    assert_eq!(after.since(before), Duration::from_secs(3601));
}

#[test]
fn an_answer_is_told_again_after_a_restart_until_the_agent_has_used_it() {
    let answered = "alice: hello / agent: asks Sure? / press: q2";
    check(
        &format!("{answered} / crash"),
        &["start turn 1, asked", r#"tell turn 1: Chosen(ChoiceId("q2"))"#],
    );
    check(&format!("{answered} / agent: returns call / crash"), &["start turn 1"]);
    check(&format!("{answered} / agent: asks Really? / crash"), &["start turn 1, asked"]);
}

#[test]
fn the_time_a_question_was_open_before_a_restart_does_not_count_against_the_turn() {
    let mut talk = Talk::new();
    talk.line("alice: hello");
    talk.line("agent: asks Sure?");
    talk.now = talk.now + Duration::from_secs(3600);
    let effects = talk.line("restart");
    let Some(Effect::Start(start)) = effects.first() else { panic!("{effects:?}") };
    assert!(start.deadline.since(talk.now) > Duration::from_secs(1790));
}

#[test]
fn a_full_session_has_room_for_an_answer() {
    let mut talk = Talk::new();
    talk.line("alice: hello");
    for _ in 0..talk.session.rules.room {
        talk.line("alice: more");
    }
    assert!(!talk.session.has_room());
    talk.line("agent: asks Sure?");
    assert!(talk.session.has_room());
}

#[test]
fn a_turn_past_its_limit_is_abandoned_with_a_reason() {
    check(
        "alice: hello / later: 1801",
        &[
            "abandon turn 1",
            "post 1: I stopped after 30 minutes, the limit for one answer.",
            "record notice: I stopped after 30 minutes, the limit for one answer.",
        ],
    );
}

#[test]
fn a_restart_goes_on_with_the_turn_and_repeats_what_was_not_taken() {
    check(
        "alice: hello / agent: calls pay / alice: quickly / restart",
        &["start turn 1, started pay", "tell turn 1: steer: quickly"],
    );
    check("alice: hello / agent: asks Sure? / restart", &["start turn 1, asked"]);
    check("alice: hello / stop button / restart", &["post 1: Stopped.", "record notice: Stopped."]);
}

#[test]
fn three_deaths_during_one_turn_set_it_aside_and_say_so() {
    let aside = "I was interrupted three times while working on this and have set it aside.";
    check("alice: hello / crash / crash", &["start turn 1"]);
    check("alice: hello / crash / crash / restart / restart", &["start turn 1"]);
    let posted = format!("post 1: {}", &aside[..60]);
    let recorded = format!("record notice: {aside}");
    check("alice: hello / crash / crash / crash", &["quarantine #1", &posted, &recorded]);
}

#[test]
fn what_was_said_before_the_tools_ran_is_a_message_of_its_own() {
    check(
        "alice: hello / agent: steps Let me look. / agent: finishes Found it.",
        &["post 2: Found it.", "record answer: Found it."],
    );
}

#[test]
fn an_empty_answer_is_not_silence() {
    check(
        "alice: hello / agent: finishes ",
        &[
            "post 1: The model returned an empty answer.",
            "record notice: The model returned an empty answer.",
        ],
    );
}

#[test]
fn an_empty_answer_to_what_was_taken_up_since_the_last_words_is_not_silence() {
    check(
        "alice: hello / agent: steps Let me look. / alice: and you? / agent: took 2 / agent: finishes ",
        &[
            "post 2: The model returned an empty answer.",
            "record notice: The model returned an empty answer.",
        ],
    );
}

#[test]
fn a_new_conversation_ends_the_turn_and_forgets() {
    let mut talk = Talk::new();
    talk.line("alice: hello");
    let old = talk.session.id.clone();
    let effects = talk.line("alice: /new");
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Abandon(_))));
    assert_ne!(talk.session.id, old);
    assert_eq!(talk.session.phase, Phase::Idle);
    let lives: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Post(outbound) => Some(outbound.id.session == old),
            _ => None,
        })
        .collect();
    assert_eq!(lives, [true, false], "the old life ends visibly, the new one begins visibly");
}

#[test]
fn late_words_of_an_ended_turn_change_nothing() {
    let mut talk = Talk::new();
    talk.line("alice: hello");
    let turn = talk.session.hand().expect("a turn").turn.clone();
    talk.line("alice: /new");
    let before = talk.session.clone();
    let event = AgentEvent::Failed { failure: Failure::Stopped, said: String::new() };
    assert_eq!(talk.tell(Event::Agent { turn, event }), []);
    assert_eq!(talk.session.phase, before.phase);
    assert_eq!(talk.session.entries, before.entries);
}

#[test]
fn session_ids_say_when_they_began() {
    let id = Talk::new().session.id.to_string();
    assert!(id.starts_with("20261115_093000_"), "{id}");
    assert_eq!(id.len(), 24);
}

fn any_line() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "alice: hello",
        "bob: me too",
        "alice: /stop",
        "stop button",
        "alice: /new",
        "alice: /status",
        "alice: /nope",
        "press: q1",
        "agent: finishes done",
        "agent: finishes ",
        "agent: steps looking",
        "agent: calls c",
        "agent: asks Sure?",
        "agent: returns call",
        "agent: fails oops",
        "agent: stopped half",
        "restart",
        "crash",
        "later: 10",
        "later: 90000",
    ])
}

proptest! {
    /// However messages, commands, the agent, time and restarts interleave: one turn at a time,
    /// every message ends in exactly one way, deliveries are never named twice, and the session
    /// always comes to rest.
    #[test]
    fn every_message_ends_exactly_once(script in prop::collection::vec(any_line(), 1..60)) {
        let mut talk = Talk::new();
        let mut ended = std::collections::BTreeMap::<Seq, u32>::new();
        let mut posted = std::collections::BTreeSet::new();
        let mut open_turn = None;
        let finale = ["agent: stopped ", "agent: stopped "];
        for line in script.into_iter().chain(finale) {
            if line.starts_with("agent") && talk.session.hand().is_none() {
                continue;
            }
            for effect in talk.line(line) {
                match effect {
                    Effect::Bind { seq, .. } | Effect::Close { seq, closed: Closed::Handled | Closed::Ignored(_) } => {
                        *ended.entry(seq).or_default() += 1;
                    }
                    Effect::Post(outbound) => {
                        prop_assert!(posted.insert(outbound.id.clone()), "{} twice", outbound.id);
                    }
                    Effect::Start(start) => {
                        // A start is of the turn in hand, and a different one only after the last ended.
                        prop_assert_eq!(talk.session.hand().map(|hand| &hand.turn), Some(&start.turn));
                        open_turn = Some(start.turn);
                    }
                    Effect::Tell { turn, .. } => prop_assert_eq!(Some(turn), open_turn.clone()),
                    _ => {}
                }
            }
            prop_assert!(talk.session.waiting.is_empty() || talk.session.hand().is_some(), "messages wait for nothing");
        }
        while talk.session.hand().is_some() {
            for effect in talk.line("agent: stopped ") {
                if let Effect::Bind { seq, .. } = effect {
                    *ended.entry(seq).or_default() += 1;
                }
            }
        }
        for seq in 1..=talk.seq {
            prop_assert_eq!(ended.get(&Seq(seq)).copied(), Some(1), "message {} of {}", seq, talk.seq);
        }
    }
}
