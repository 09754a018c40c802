//! Whatever is said, commanded, reported, however time passes and processes end.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use talaria_model::{ChatKind, EntryBody, Seq, SessionId, TurnId};

use super::Talk;
use crate::{
    Acks, AfterStop, Busy, Closed, Effect, Event, Joins, Past, Quick, QuickCommand, Rules, Told,
    Who,
};

fn any_line() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "alice: hello",
        "alice: and more",
        "alice sends a.png: look",
        "alice sends b.png: ",
        "bob: me too",
        "bob: /queue mine",
        "alice: /queue",
        "alice: /queue next",
        "alice: /queue next",
        "alice: /steer softly",
        "alice: /stop",
        "bob: /stop",
        "stop button",
        "alice: /new",
        "alice: /status",
        "alice: /nope",
        "alice: /undo",
        "alice: /retry",
        "alice: /compress",
        "alice: /branch",
        "alice: /resume x",
        "alice: /sessions",
        "alice: /restart",
        "alice: /run",
        "alice: /later look",
        "alice: /background look",
        "alice: /approve",
        "alice: /start",
        "press: q1",
        "told first: words",
        "told first: said hello",
        "told first: life",
        "side 1 over",
        "put away",
        "agent: finishes done",
        "agent: finishes [SILENT]",
        "agent: finishes ",
        "agent: steps looking",
        "agent: calls c",
        "agent: asks Sure?",
        "agent: returns call",
        "agent: works beside",
        "agent: works plainly",
        "agent: compressed 1",
        "agent: took first",
        "agent: fails oops",
        "agent: stopped half",
        "restart",
        "crash",
        "later: 10",
        "later: 1000",
        "later: 90000",
        "away: 90000",
    ])
}

fn any_rules() -> impl Strategy<Value = (ChatKind, Rules)> {
    let busy = prop::sample::select(vec![Busy::Interrupt, Busy::Queue, Busy::Steer]);
    let stop = prop::sample::select(vec![AfterStop::Keep, AfterStop::Wipe]);
    let acks = prop::sample::select(vec![Acks::Sent, Acks::Never]);
    let kind = prop::sample::select(vec![ChatKind::Dm, ChatKind::Group]);
    (busy, stop, acks, kind, 1_usize..5).prop_map(|(busy, stop, acks, kind, queue)| {
        let quick = |name: &str, does| QuickCommand {
            name: name.into(),
            help: "x".into(),
            who: Who::Anyone,
            does,
        };
        let mut rules = Rules { busy, stop, acks, queue, ..Rules::default() };
        rules.quick =
            vec![quick("run", Quick::Run), quick("later", Quick::Alias("/background".into()))];
        (kind, rules)
    })
}

/// What has been seen so far, and what must hold of it.
#[derive(Default)]
struct Seen {
    ended: BTreeMap<Seq, u32>,
    posted: BTreeSet<String>,
    entries: BTreeMap<SessionId, u32>,
    running: Option<TurnId>,
    /// Rows that were queued, in order, and have not been bound.
    queued: Vec<Seq>,
    /// Lives that gave way to others.
    retired: BTreeMap<SessionId, Past>,
}

impl Seen {
    fn take_in(&mut self, talk: &Talk, effects: &[Effect]) -> Result<(), TestCaseError> {
        for effect in effects {
            match effect {
                Effect::Bind { seq, turn } => {
                    *self.ended.entry(*seq).or_default() += 1;
                    if let Some(place) = self.queued.iter().position(|queued| queued == seq) {
                        prop_assert_eq!(place, 0, "{} was queued before", self.queued[0]);
                        self.queued.remove(0);
                    }
                    prop_assert_eq!(talk.session.hand().map(|hand| &hand.turn), Some(turn));
                }
                Effect::Close { seq, closed: Closed::Handled | Closed::Ignored(_) } => {
                    *self.ended.entry(*seq).or_default() += 1;
                    self.queued.retain(|queued| queued != seq);
                }
                Effect::Forward { seq, .. } => *self.ended.entry(*seq).or_default() += 1,
                Effect::Post(outbound) => {
                    let id = outbound.id.to_string();
                    prop_assert!(self.posted.insert(id), "{} twice", outbound.id);
                }
                Effect::Record { session, entry } => {
                    let last = self.entries.entry(session.clone()).or_default();
                    prop_assert_eq!(entry.number, *last + 1, "entries are numbered in order");
                    *last = entry.number;
                    if let EntryBody::Said { .. } = entry.body {
                        prop_assert!(entry.turn.is_some());
                    }
                }
                Effect::Retire { past, .. } => {
                    self.retired.insert(past.id.clone(), (**past).clone());
                }
                Effect::Branch { to, upto, .. } => {
                    self.entries.insert(to.clone(), *upto);
                }
                Effect::Start(start) => {
                    // A start is of the turn in hand, and a different one only after the last ended.
                    let hand = talk.session.hand().map(|hand| &hand.turn);
                    prop_assert_eq!(hand, Some(&start.turn));
                    self.running = Some(start.turn.clone());
                }
                Effect::Tell { turn, .. } => {
                    prop_assert_eq!(Some(turn), self.running.as_ref());
                }
                _ => {}
            }
        }
        let waiting = &talk.session.waiting;
        prop_assert!(
            waiting.is_empty() || talk.session.hand().is_some(),
            "messages wait for nothing"
        );
        for said in waiting.iter().filter(|said| said.joins == Joins::Nothing) {
            if !self.queued.contains(&said.seq) {
                self.queued.push(said.seq);
            }
        }
        prop_assert!(self.queued.len() <= talk.session.rules.queue, "the queue has a bound");
        Ok(())
    }
}

/// Fills in what a line can only name when its time comes; none if there is nothing to name.
fn at_its_time(talk: &Talk, line: &str) -> Option<String> {
    if line.starts_with("agent") {
        let hand = talk.session.hand()?;
        let first = || hand.steers.first().map(|said| said.seq.0.to_string());
        return match line.strip_suffix("took first") {
            Some(agent) => Some(format!("{agent}took {}", first()?)),
            None => Some(line.to_owned()),
        };
    }
    match line.strip_prefix("told first") {
        Some(rest) => Some(format!("told {}{rest}", talk.session.asked.first()?.seq.0)),
        None => Some(line.to_owned()),
    }
}

proptest! {
    /// However messages, commands, the agent, time and restarts interleave: one turn at a time,
    /// every message ends in exactly one way, what is queued comes in order, a stop leaves nothing
    /// waiting, deliveries are never named twice, and the session always comes to rest.
    #[test]
    fn every_message_ends_exactly_once(
        (kind, rules) in any_rules(),
        script in prop::collection::vec(any_line(), 1..80),
    ) {
        let mut talk = Talk::among(kind, rules);
        let mut seen = Seen::default();
        for line in script {
            let Some(line) = at_its_time(&talk, line) else { continue };
            let effects = match (line.strip_suffix(": life"), seen.retired.values().next()) {
                (None, _) => talk.line(&line),
                (Some(_), None) => continue,
                (Some(_), Some(past)) => {
                    let told = Told::Life(Box::new(past.clone()));
                    let seq = talk.session.asked[0].seq;
                    talk.tell(Event::Told { seq, told })
                }
            };
            seen.take_in(&talk, &effects)?;
            if line.ends_with("/stop") || line == "stop button" {
                let steers = talk.session.hand().map_or(0, |hand| hand.steers.len());
                prop_assert_eq!(talk.session.waiting.len() + steers, 0, "a stop leaves nothing");
                let before = Seq(talk.seq);
                let dropped =
                    |effect: &Effect| matches!(effect, Effect::DropUnread { before: b, .. } if *b == before);
                prop_assert!(effects.iter().any(dropped));
            }
        }
        while let Some(asked) = talk.session.asked.first() {
            let line = format!("told {}: words", asked.seq.0);
            let effects = talk.line(&line);
            seen.take_in(&talk, &effects)?;
        }
        while talk.session.hand().is_some() {
            let effects = talk.line("agent: stopped ");
            seen.take_in(&talk, &effects)?;
        }
        prop_assert!(!talk.session.is_restless());
        for seq in 1..=talk.seq {
            let ended = seen.ended.get(&Seq(seq)).copied();
            prop_assert_eq!(ended, Some(1), "message {} of {}", seq, talk.seq);
        }
    }
}
