//! Hops become spans: what belongs to one message becomes one trace.
//!
//! Pure: a test compares lists. What is still on its way is remembered, so much of it at most; what is
//! forgotten keeps the spans that it has.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};
use talaria_gateway::{Cause, Hop, Received, Reception, Settled, Turning};
use talaria_model::{CallId, OutboundId, Seq, Timestamp, TurnId};

/// Messages, turns and parcels that are remembered, each.
const MOST: usize = 10_000;

pub(crate) type TraceId = [u8; 16];
pub(crate) type SpanId = [u8; 8];

/// What a span is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A message, from the platform's event to the last receipt.
    Message,
    /// Something that happens here.
    Inside,
    /// Something that a platform does for us.
    Outwards,
}

/// A stretch of time in which something happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) trace: TraceId,
    pub(crate) id: SpanId,
    pub(crate) parent: Option<SpanId>,
    pub(crate) link: Option<(TraceId, SpanId)>,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) from: Timestamp,
    pub(crate) upto: Timestamp,
    pub(crate) about: Vec<(&'static str, String)>,
    pub(crate) problem: Option<String>,
}

/// A message that is on its way.
struct Row {
    trace: TraceId,
    from: Timestamp,
    taken_in: Timestamp,
    about: Vec<(&'static str, String)>,
    closed: Option<&'static str>,
    parcels: BTreeSet<OutboundId>,
}

/// A turn that is on its way, or of which something has to be delivered.
struct Turn {
    began: Timestamp,
    rows: Vec<Seq>,
    model_since: Timestamp,
    steps: u32,
    calls: BTreeMap<CallId, (String, Timestamp)>,
    ended: Option<&'static str>,
    parcels: BTreeSet<OutboundId>,
}

/// To what a parcel belongs.
#[derive(Clone)]
enum Of {
    Row(Seq),
    Turn(TurnId),
}

pub(crate) struct Weaver {
    instance: String,
    rows: BTreeMap<Seq, Row>,
    turns: BTreeMap<TurnId, Turn>,
    parcels: BTreeMap<OutboundId, Of>,
}

impl Weaver {
    pub(crate) fn new(instance: &str) -> Self {
        let (rows, turns, parcels) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { instance: instance.to_owned(), rows, turns, parcels }
    }

    /// The spans that a hop completes.
    pub(crate) fn weave(&mut self, hop: Hop) -> Vec<Span> {
        let spans = match hop {
            Hop::Received(received) => self.received(received),
            Hop::Took { turn, rows, at } => self.took(&turn, &rows, at),
            Hop::Closed { row, how, at } => {
                self.row(row, at).closed = Some(how);
                self.finish_row(row, at)
            }
            Hop::Stepped { turn, calls, at } => self.stepped(&turn, calls, at),
            Hop::Returned { turn, call, failed, at } => self.returned(&turn, &call, failed, at),
            Hop::Decided { cause, parcels, at } => {
                self.decided(&cause, parcels, at);
                Vec::new()
            }
            Hop::Ended { turn, because, at } => {
                let mut spans = Vec::new();
                let why = because.map(|because| format!("{because:?}"));
                // What the model said last has no step of its own.
                if why.is_none() {
                    spans.push(self.model(&turn, at));
                }
                spans.push(self.turn_span(&turn, why, at));
                let known = self.turn(&turn, at);
                known.ended = Some(if because.is_some() { "not_answered" } else { "answered" });
                spans.extend(self.finish_turn(&turn.turn, at));
                spans
            }
            Hop::Settled(settled) => self.settled(&settled),
        };
        self.forget();
        spans
    }

    fn received(&mut self, received: Received) -> Vec<Span> {
        let Received { row, event, message, account, platform, .. } = &received;
        let Received { chat, happened, begun, at, reception, .. } = &received;
        let trace = match row {
            Some(row) => self.trace("row", &row.0.to_string()),
            None => self.trace(&format!("event {begun:?} {account}"), event.as_str()),
        };
        let mut about = vec![
            ("talaria.account", account.to_string()),
            ("talaria.platform", (*platform).to_owned()),
            ("talaria.chat.kind", chat.as_str().to_owned()),
            ("talaria.event", event.to_string()),
        ];
        about.extend(message.as_ref().map(|id| ("messaging.message.id", id.to_string())));
        let from = (*happened).min(*begun);
        let root = id(&trace, "message");
        let mut spans = vec![Span {
            about: vec![("talaria.reception", reception.as_str().to_owned())],
            ..inside(trace, root, "receive", "receive", (*begun, *at))
        }];
        let known = Row {
            trace,
            from,
            taken_in: *at,
            about,
            closed: (*reception != Reception::TakenIn).then_some(reception.as_str()),
            parcels: BTreeSet::new(),
        };
        match row {
            Some(row) => {
                self.rows.insert(*row, known);
                spans.extend(self.finish_row(*row, *at));
            }
            None => spans.push(whole(&known, *at)),
        }
        spans
    }

    fn took(&mut self, turn: &Turning, rows: &[Seq], at: Timestamp) -> Vec<Span> {
        let trace = self.lead(turn, at);
        let known = self.turn(turn, at);
        known.rows.clone_from(&turn.rows);
        known.rows.extend(rows.iter().filter(|row| !turn.rows.contains(row)));
        let turn_span = (trace, id(&trace, &turn.turn.to_string()));
        let mut spans = Vec::new();
        for row in rows {
            let known = self.row(*row, at);
            let root = id(&known.trace, "message");
            let (own, waited) = (known.trace, (known.taken_in, at));
            let mut span = inside(own, root, "queue", "queue", waited);
            // What joins a turn that somebody else's message began is told where to look.
            span.link = (own != trace).then_some(turn_span);
            spans.push(span);
        }
        spans
    }

    fn stepped(
        &mut self,
        turn: &Turning,
        calls: Vec<(CallId, String)>,
        at: Timestamp,
    ) -> Vec<Span> {
        let span = self.model(turn, at);
        let known = self.turn(turn, at);
        known.calls.extend(calls.into_iter().map(|(call, tool)| (call, (tool, at))));
        vec![span]
    }

    fn returned(
        &mut self,
        turn: &Turning,
        call: &CallId,
        failed: bool,
        at: Timestamp,
    ) -> Vec<Span> {
        let trace = self.lead(turn, at);
        let known = self.turn(turn, at);
        known.model_since = at;
        let Some((tool, since)) = known.calls.remove(call) else { return Vec::new() };
        let parent = id(&trace, &turn.turn.to_string());
        let what = format!("{} {call}", turn.turn);
        vec![Span {
            about: vec![("talaria.tool", tool.clone())],
            problem: failed.then(|| "the tool says that it went wrong".to_owned()),
            ..inside(trace, parent, &what, &format!("tool {tool}"), (since, at))
        }]
    }

    /// What the model did since it was asked.
    fn model(&mut self, turn: &Turning, at: Timestamp) -> Span {
        let trace = self.lead(turn, at);
        let known = self.turn(turn, at);
        let since = std::mem::replace(&mut known.model_since, at);
        known.steps += 1;
        let what = format!("{} step {}", turn.turn, known.steps);
        inside(trace, id(&trace, &turn.turn.to_string()), &what, "model", (since, at))
    }

    fn turn_span(&mut self, turn: &Turning, why: Option<String>, at: Timestamp) -> Span {
        let trace = self.lead(turn, at);
        let known = self.turn(turn, at);
        let began = known.began;
        let mut about = vec![("talaria.turn", turn.turn.to_string())];
        about.push(("talaria.turn.messages", known.rows.len().to_string()));
        let root = id(&trace, "message");
        let mut span = inside(trace, root, &turn.turn.to_string(), "turn", (began, at));
        span.about = about;
        span.problem = why;
        span
    }

    fn decided(&mut self, cause: &Cause, parcels: Vec<OutboundId>, at: Timestamp) {
        let of = match cause {
            Cause::Row(row) => {
                self.row(*row, at).parcels.extend(parcels.iter().cloned());
                Of::Row(*row)
            }
            Cause::Turn(turn) => {
                self.turn(turn, at).parcels.extend(parcels.iter().cloned());
                Of::Turn(turn.turn.clone())
            }
        };
        self.parcels.extend(parcels.into_iter().map(|parcel| (parcel, of.clone())));
    }

    fn settled(&mut self, settled: &Settled) -> Vec<Span> {
        let Settled { id: parcel, account, message, lost, decided, at } = settled;
        let of = self.parcels.remove(parcel);
        let lead = match &of {
            Some(Of::Row(row)) => Some(*row),
            Some(Of::Turn(turn)) => {
                self.turns.get(turn).and_then(|turn| turn.rows.first().copied())
            }
            None => None,
        };
        // What a former run decided has a trace of its own.
        let trace = match lead {
            Some(row) => self.row(row, *at).trace,
            None => self.trace("parcel", &parcel.to_string()),
        };
        let parent = match &of {
            Some(Of::Turn(turn)) => Some(id(&trace, &turn.to_string())),
            Some(Of::Row(_)) => Some(id(&trace, "message")),
            None => None,
        };
        let mut about =
            vec![("talaria.account", account.to_string()), ("talaria.parcel", parcel.to_string())];
        about.extend(message.as_ref().map(|id| ("messaging.message.id", id.to_string())));
        let mut spans = vec![Span {
            trace,
            id: id(&trace, &format!("deliver {parcel}")),
            parent,
            link: None,
            kind: Kind::Outwards,
            name: "deliver".into(),
            from: *decided,
            upto: *at,
            about,
            problem: lost.map(str::to_owned),
        }];
        match of {
            Some(Of::Row(row)) => {
                self.row(row, *at).parcels.remove(parcel);
                spans.extend(self.finish_row(row, *at));
            }
            Some(Of::Turn(turn)) => {
                if let Some(known) = self.turns.get_mut(&turn) {
                    known.parcels.remove(parcel);
                }
                spans.extend(self.finish_turn(&turn, *at));
            }
            None => {}
        }
        spans
    }

    fn finish_row(&mut self, row: Seq, at: Timestamp) -> Vec<Span> {
        let Some(known) = self.rows.get(&row) else { return Vec::new() };
        if known.closed.is_none() || !known.parcels.is_empty() {
            return Vec::new();
        }
        self.rows.remove(&row).map(|row| whole(&row, at)).into_iter().collect()
    }

    fn finish_turn(&mut self, turn: &TurnId, at: Timestamp) -> Vec<Span> {
        let Some(known) = self.turns.get(turn) else { return Vec::new() };
        let Some(ended) = known.ended.filter(|_| known.parcels.is_empty()) else {
            return Vec::new();
        };
        let rows = self.turns.remove(turn).map(|turn| turn.rows).unwrap_or_default();
        let mut spans = Vec::new();
        for row in rows {
            if let Some(known) = self.rows.get_mut(&row) {
                known.closed = Some(ended);
            }
            spans.extend(self.finish_row(row, at));
        }
        spans
    }

    /// The trace that a turn is in: that of the message that began it.
    fn lead(&mut self, turn: &Turning, at: Timestamp) -> TraceId {
        match turn.rows.first() {
            Some(row) => self.row(*row, at).trace,
            None => self.trace("turn", &turn.turn.to_string()),
        }
    }

    /// A message. One that came in before this run is known from here on.
    fn row(&mut self, row: Seq, at: Timestamp) -> &mut Row {
        let trace = self.trace("row", &row.0.to_string());
        self.rows.entry(row).or_insert_with(|| Row {
            trace,
            from: at,
            taken_in: at,
            about: vec![("talaria.resumed", "true".to_owned())],
            closed: None,
            parcels: BTreeSet::new(),
        })
    }

    fn turn(&mut self, turn: &Turning, at: Timestamp) -> &mut Turn {
        self.turns.entry(turn.turn.clone()).or_insert_with(|| Turn {
            began: at,
            rows: turn.rows.clone(),
            model_since: at,
            steps: 0,
            calls: BTreeMap::new(),
            ended: None,
            parcels: BTreeSet::new(),
        })
    }

    fn trace(&self, kind: &str, what: &str) -> TraceId {
        let digest = Sha256::new()
            .chain_update(&self.instance)
            .chain_update([0])
            .chain_update(kind)
            .chain_update([0])
            .chain_update(what)
            .finalize();
        std::array::from_fn(|place| digest[place])
    }

    /// What is on its way for the longest goes first.
    fn forget(&mut self) {
        while self.rows.len() > MOST {
            self.rows.pop_first();
        }
        while self.turns.len() > MOST {
            self.turns.pop_first();
        }
        while self.parcels.len() > MOST {
            self.parcels.pop_first();
        }
    }
}

fn id(trace: &TraceId, what: &str) -> SpanId {
    let digest = Sha256::new().chain_update(trace).chain_update(what).finalize();
    std::array::from_fn(|place| digest[place])
}

fn inside(
    trace: TraceId,
    parent: SpanId,
    what: &str,
    name: &str,
    (from, upto): (Timestamp, Timestamp),
) -> Span {
    Span {
        trace,
        id: id(&trace, what),
        parent: Some(parent),
        link: None,
        kind: Kind::Inside,
        name: name.to_owned(),
        from,
        upto,
        about: Vec::new(),
        problem: None,
    }
}

/// A message that is dealt with.
fn whole(row: &Row, at: Timestamp) -> Span {
    let outcome = ("talaria.outcome", row.closed.unwrap_or("unknown").to_owned());
    Span {
        trace: row.trace,
        id: id(&row.trace, "message"),
        parent: None,
        link: None,
        kind: Kind::Message,
        name: "message".into(),
        from: row.from,
        upto: at,
        about: row.about.iter().cloned().chain([outcome]).collect(),
        problem: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::{AccountId, Because, ChatKind, EventId, MessageId, SessionId};

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn received(row: u64, millis: i64, reception: Reception) -> Hop {
        Hop::Received(Received {
            row: Some(Seq(row)),
            event: EventId::literal("e"),
            message: Some(MessageId::literal("m")),
            account: AccountId::literal("main"),
            platform: "telegram",
            chat: ChatKind::Dm,
            happened: at(millis - 5),
            begun: at(millis - 1),
            at: at(millis),
            reception,
        })
    }

    fn turning(rows: &[u64]) -> Turning {
        let session = SessionId::literal("s");
        Turning {
            turn: TurnId { session, number: 1 },
            rows: rows.iter().map(|row| Seq(*row)).collect(),
        }
    }

    fn parcel(part: u16) -> OutboundId {
        OutboundId { session: SessionId::literal("s"), delivery: 1, part }
    }

    fn settled(part: u16, millis: i64) -> Hop {
        Hop::Settled(Settled {
            id: parcel(part),
            account: AccountId::literal("main"),
            message: Some(MessageId::literal("9")),
            lost: None,
            decided: at(40),
            at: at(millis),
        })
    }

    /// Each span as `trace/parent name from..upto`, with small numbers for ids.
    fn check(hops: Vec<Hop>, expected: &[&str]) {
        let mut weaver = Weaver::new("here");
        let spans: Vec<Span> = hops.into_iter().flat_map(|hop| weaver.weave(hop)).collect();
        let mut traces: Vec<TraceId> = Vec::new();
        let named = |wanted: Option<SpanId>| {
            let of = |wanted| spans.iter().find(|span| span.id == wanted);
            wanted.map_or("-".into(), |id| of(id).map_or("?".into(), |span| span.name.clone()))
        };
        let lines: Vec<String> = spans
            .iter()
            .map(|span| {
                if !traces.contains(&span.trace) {
                    traces.push(span.trace);
                }
                let trace = traces.iter().position(|trace| *trace == span.trace).unwrap_or(0);
                let parent = named(span.parent);
                let (from, upto) = (span.from.as_millis(), span.upto.as_millis());
                let problem = span.problem.as_ref().map(|why| format!(" {why}"));
                let outcome = span.about.iter().find(|(name, _)| *name == "talaria.outcome");
                let outcome = outcome.map(|(_, value)| format!(" {value}")).unwrap_or_default();
                let linked = if span.link.is_some() { " linked" } else { "" };
                let problem = problem.unwrap_or_default();
                let name = &span.name;
                format!("{trace}/{parent} {name} {from}..{upto}{outcome}{problem}{linked}")
            })
            .collect();
        assert_eq!(lines, expected);
        assert!(weaver.rows.is_empty() && weaver.turns.is_empty(), "something is left");
        assert!(weaver.parcels.is_empty(), "a parcel is left");
    }

    #[test]
    fn a_message_is_followed_from_its_event_to_its_receipts() {
        let call = CallId::literal("c");
        check(
            vec![
                received(7, 10, Reception::TakenIn),
                Hop::Took { turn: turning(&[7]), rows: vec![Seq(7)], at: at(12) },
                Hop::Stepped {
                    turn: turning(&[7]),
                    calls: vec![(call.clone(), "search".into())],
                    at: at(20),
                },
                Hop::Returned { turn: turning(&[7]), call, failed: false, at: at(30) },
                Hop::Decided {
                    cause: Cause::Turn(turning(&[7])),
                    parcels: vec![parcel(0), parcel(1)],
                    at: at(40),
                },
                Hop::Ended { turn: turning(&[7]), because: None, at: at(40) },
                settled(0, 50),
                settled(1, 60),
            ],
            &[
                "0/message receive 9..10",
                "0/message queue 10..12",
                "0/turn model 12..20",
                "0/turn tool search 20..30",
                "0/turn model 30..40",
                "0/message turn 12..40",
                "0/turn deliver 40..50",
                "0/turn deliver 40..60",
                "0/- message 5..60 answered",
            ],
        );
    }

    #[test]
    fn what_joins_a_turn_is_linked_to_it_and_ends_with_it() {
        check(
            vec![
                received(7, 10, Reception::TakenIn),
                Hop::Took { turn: turning(&[7]), rows: vec![Seq(7)], at: at(12) },
                received(8, 15, Reception::TakenIn),
                Hop::Took { turn: turning(&[7, 8]), rows: vec![Seq(8)], at: at(16) },
                Hop::Ended {
                    turn: turning(&[7, 8]),
                    because: Some(Because::OverBudget),
                    at: at(20),
                },
            ],
            &[
                "0/message receive 9..10",
                "0/message queue 10..12",
                "1/message receive 14..15",
                "1/message queue 15..16 linked",
                "0/message turn 12..20 OverBudget",
                "0/- message 5..20 not_answered",
                "1/- message 10..20 not_answered",
            ],
        );
    }

    #[test]
    fn what_is_dropped_or_needs_no_turn_is_a_trace_too() {
        check(
            vec![
                received(7, 10, Reception::Denied),
                received(8, 20, Reception::TakenIn),
                Hop::Decided { cause: Cause::Row(Seq(8)), parcels: vec![parcel(0)], at: at(21) },
                Hop::Closed { row: Seq(8), how: "handled", at: at(21) },
                settled(0, 50),
            ],
            &[
                "0/message receive 9..10",
                "0/- message 5..10 denied",
                "1/message receive 19..20",
                "1/message deliver 40..50",
                "1/- message 15..50 handled",
            ],
        );
    }

    #[test]
    fn a_restart_goes_on_in_the_same_trace() {
        let trace = |hops: Vec<Hop>| {
            let mut weaver = Weaver::new("here");
            let spans: Vec<Span> = hops.into_iter().flat_map(|hop| weaver.weave(hop)).collect();
            spans.last().expect("a span").trace
        };
        let before = trace(vec![received(7, 10, Reception::TakenIn)]);
        let after = trace(vec![Hop::Ended { turn: turning(&[7]), because: None, at: at(90) }]);
        assert_eq!(before, after);
        let elsewhere = Weaver::new("elsewhere").trace("row", "7");
        assert_ne!(before, elsewhere);
    }

    #[test]
    fn what_never_ends_is_forgotten() {
        let mut weaver = Weaver::new("here");
        for row in 0..2 * MOST as u64 {
            weaver.weave(received(row, 10, Reception::TakenIn));
            let rows = vec![Seq(row)];
            let turn = Turning { turn: TurnId { number: row as u32, ..turning(&[]).turn }, rows };
            let parcels = vec![OutboundId { delivery: row as u32, ..parcel(0) }];
            weaver.weave(Hop::Decided { cause: Cause::Turn(turn), parcels, at: at(11) });
        }
        assert_eq!(
            (weaver.rows.len(), weaver.turns.len(), weaver.parcels.len()),
            (MOST, MOST, MOST)
        );
    }
}
