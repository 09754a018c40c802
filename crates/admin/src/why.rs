//! What became of a message and why, from what is written down anyway: the journal, the session, the
//! transcript and the outbox; and from what the running gateway has seen without writing it down.

use std::borrow::Cow;

use talaria_clock::rfc3339;
use talaria_gateway::{Gateway, Glimpse, Hindrance, MISDIRECTED, Standing, Unwritten};
use talaria_model::{
    About, AccountId, Because, ChatId, EntryBody, EventId, Extent, Inbound, InboundKind,
    Intervened, Intervention, Scrutiny, Seq, Timestamp, ToolCall, TurnId,
};
use talaria_session::{Phase, Session};
use talaria_store::{
    AuditDeed, AuditRow, Audited, Clue, Coverage, JournalState, ParcelState, Recorded, Sent, Store,
    Traced, Unanswered, deliveries, head, message_of,
};

use crate::answers::AnswerError;
use crate::api;

/// How many events are told of at once.
const MOST: usize = 20;

/// Whether what was said is told, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// No.
    Hidden,
    /// Yes.
    Shown,
}

/// What an id or a place leads to: the platform's id of a message, the id of an event, or `account:chat`.
/// Without a gateway that runs, nothing is known but what is written down.
pub async fn why(
    store: &dyn Store,
    gateway: Option<&Gateway>,
    asked: &str,
    words: Words,
) -> Result<api::Why, AnswerError> {
    for clue in clues(asked) {
        let traced = store.trace(&clue, MOST).await?;
        let glimpses = gateway.map(|gateway| gateway.glimpses(&clue, MOST)).unwrap_or_default();
        let kept = store.unanswered(&clue, MOST).await?;
        if traced.is_empty() && glimpses.is_empty() && kept.is_empty() {
            continue;
        }
        let mut decisions = Vec::with_capacity(traced.len());
        for event in &traced {
            decisions.push(decision(store, gateway, event, &glimpses, words).await?);
        }
        let is_told_of = |glimpse: &&Glimpse| match &glimpse.why {
            Unwritten::Repeated(seq) => traced.iter().any(|event| event.seq == *seq),
            Unwritten::Knocked(_) => true,
            _ => false,
        };
        let others = glimpses.iter().filter(|glimpse| !is_told_of(glimpse));
        decisions.extend(others.map(|glimpse| unwritten(glimpse, &glimpses)));
        for kept in &kept {
            let is_told = |told: &api::Decision| {
                told.account == kept.account.as_str() && head(&told.event) == kept.event.as_str()
            };
            if !decisions.iter().any(is_told) {
                decisions.push(unanswered(kept));
            }
        }
        if matches!(clue, Clue::Chat { .. }) {
            let came = |told: &api::Decision| told.timeline.first().map(|first| first.at.clone());
            decisions.sort_by_key(|told| std::cmp::Reverse(came(told)));
        }
        decisions.truncate(MOST);
        return Ok(api::Why { asked: asked.to_owned(), decisions });
    }
    Err(AnswerError::Missing(format!(
        "nothing is known of {asked:?}: it is no message id, event id or account:chat that arrived in the \
         last days; `talaria status` tells how many strangers' messages left no trace"
    )))
}

fn clues(asked: &str) -> Vec<Clue> {
    let place = asked.split_once(':').and_then(|(account, chat)| {
        let account = AccountId::new(account).ok()?;
        Some(Clue::Chat { account, chat: ChatId::new(chat).ok()? })
    });
    std::iter::once(Clue::Id(asked.to_owned())).chain(place).collect()
}

async fn decision(
    store: &dyn Store,
    gateway: Option<&Gateway>,
    event: &Traced,
    glimpses: &[Glimpse],
    words: Words,
) -> Result<api::Decision, AnswerError> {
    let standing = |event: &Traced| match (gateway, event.turn()) {
        (Some(gateway), Some(turn)) => Some(gateway.standing(turn, &event.inbound.to.account)),
        _ => None,
    };
    let before = standing(event);
    let session = match &event.key {
        Some(key) => store.load(key).await?,
        None => None,
    };
    // Asked on both sides of reading the session: a turn that ended meanwhile worked before, and one that began
    // meanwhile does after.
    let now = before.filter(|before| *before == Standing::Works).or_else(|| standing(event));
    let in_hand = session.as_ref().and_then(|session| session.hand().map(|hand| hand.turn.clone()));
    // A turn that has just ended had not when its row was read, and what was taken may have gone on.
    let has_moved = match (&event.state, event.turn()) {
        (_, Some(turn)) => answers(event).is_empty() && in_hand.as_ref() != Some(turn),
        (JournalState::Taken, None) => place(session.as_ref(), event.seq).is_none(),
        (JournalState::Unread, None) => in_hand.is_some(),
        _ => false,
    };
    let again = match has_moved {
        true => store.trace(&Clue::Id(event.inbound.id.to_string()), MOST).await?,
        false => Vec::new(),
    };
    let (event, standing) = match again.iter().find(|again| again.seq == event.seq) {
        Some(again) if again.turn() != event.turn() => (again, standing(again)),
        Some(again) => (again, now),
        None => (event, now),
    };
    let is_in_hand = event.turn().is_some() && event.turn() == in_hand.as_ref();
    let at_work = session.as_ref().filter(|_| is_in_hand);
    let place = place(session.as_ref(), event.seq);
    let care = match gateway {
        Some(gateway) => Care::Gateway(gateway.hindrance(&event.inbound, &event.state)),
        None => Care::NextRun,
    };
    let is_pending = matches!(event.state, JournalState::Unread | JournalState::Taken);
    let (outcome, reason) = match at_work.and_then(|session| unfinished(session, standing)) {
        Some((outcome, reason)) => (outcome.to_owned(), reason),
        None if is_pending => pending(event, place, care),
        None => (outcome(event).into_owned(), reason(event)),
    };
    let mut told = api::Decision { outcome, reason, ..blank(&event.inbound) };
    told.session = event.key.as_ref().map(ToString::to_string);
    told.turn = event.turn().map(ToString::to_string);
    match place.filter(|_| is_pending) {
        Some(Place::Steers(turn)) => told.turn = Some(turn.to_string()),
        Some(Place::Asked) => {}
        Some(Place::Waiting) | None => {
            told.behind = event.behind.iter().map(ToString::to_string).collect();
            let busy = in_hand.as_ref().filter(|_| is_pending).map(ToString::to_string);
            told.behind.extend(busy.filter(|turn| !told.behind.contains(turn)));
        }
    }
    told.timeline = timeline(event, at_work, glimpses);
    told.tools = tools(&event.entries);
    told.hooks = interventions(&event.inbound).iter().map(hook).collect();
    told.parts = event.parcels.iter().map(part).collect();
    if words == Words::Shown {
        told.text = said(&event.inbound);
        told.rewritten_by = rewriter(&event.inbound);
    }
    Ok(told)
}

fn blank(inbound: &Inbound) -> api::Decision {
    api::Decision {
        event: inbound.id.to_string(),
        message: message_of(inbound).map(ToString::to_string),
        account: inbound.to.account.to_string(),
        chat: inbound.to.chat.id.to_string(),
        thread: inbound.to.thread.as_ref().map(ToString::to_string),
        sender: inbound.from.id.to_string(),
        kind: match inbound.kind {
            InboundKind::Said(_) => "said",
            InboundKind::Edited(_) => "edited",
            InboundKind::Pressed(_) => "pressed",
            InboundKind::Stopped => "stopped",
        }
        .into(),
        outcome: String::new(),
        reason: None,
        session: None,
        turn: None,
        behind: Vec::new(),
        timeline: Vec::new(),
        tools: Vec::new(),
        hooks: Vec::new(),
        parts: Vec::new(),
        text: None,
        rewritten_by: None,
    }
}

fn interventions(inbound: &Inbound) -> &[Intervention] {
    match &inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => &message.interventions,
        InboundKind::Pressed(_) | InboundKind::Stopped => &[],
    }
}

/// The hook that wrote what stands in place of what was said.
fn rewriter(inbound: &Inbound) -> Option<String> {
    let rewrote = |one: &&Intervention| one.what == Intervened::Rewrote;
    interventions(inbound).iter().rfind(rewrote).map(|one| one.by.clone())
}

fn hook(intervention: &Intervention) -> api::HookDeed {
    let (did, because) = match &intervention.what {
        Intervened::Allowed => ("allowed", None),
        Intervened::Rewrote => ("rewrote", None),
        Intervened::Refused => ("refused", None),
        Intervened::Handled => ("handled", None),
        Intervened::Failed(why) => ("failed", Some(why.clone())),
    };
    api::HookDeed { hook: intervention.by.clone(), did: did.into(), because }
}

fn is_asked_about(inbound: &Inbound) -> bool {
    match &inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => {
            message.scrutiny == Scrutiny::Due
        }
        InboundKind::Pressed(_) | InboundKind::Stopped => false,
    }
}

/// How it stands with the turn that a session has in hand, and what it waits for. A gateway that runs says how
/// it stands there.
fn unfinished(
    session: &Session,
    standing: Option<Standing>,
) -> Option<(&'static str, Option<String>)> {
    let why = |reason: &str| Some(reason.to_owned());
    let goes_on = "its turn is in hand, and goes on at the next start";
    Some(match (&session.phase, standing) {
        (Phase::Idle, _) => return None,
        (Phase::Asking { question, .. }, standing) => {
            let outcome = match standing {
                Some(_) => "waits for a person",
                None => "waits for a person, and for the next start",
            };
            (
                outcome,
                why(match question.approval {
                    Some(_) => "somebody has to approve it",
                    None => "its question is not answered yet",
                }),
            )
        }
        (Phase::Interrupting(_) | Phase::Stopping(_), Some(_)) => ("is being stopped", None),
        (Phase::Interrupting(_) | Phase::Stopping(_), None) => {
            ("was told to stop, and ends at the next start", None)
        }
        (Phase::Thinking(hand), None) => {
            (goes_on, hand.left.and_then(|_| why("an end of the gateway left it")))
        }
        (Phase::Thinking(_), Some(standing)) => match standing {
            Standing::Works => ("is being answered", None),
            Standing::WaitsForPlace { working, ahead } => {
                ("waits for a place", Some(behind(working, ahead)))
            }
            Standing::WaitsForAccount => {
                ("waits for its account", why("the account was taken out"))
            }
            Standing::LeftToNextRun => (goes_on, why("the gateway is ending")),
            Standing::NotBegun => ("its turn has not begun yet", None),
        },
    })
}

/// What is before a turn that waits for a place.
fn behind(working: usize, ahead: usize) -> String {
    let works = match working {
        1 => "1 turn that works".to_owned(),
        many => format!("{many} turns that work"),
    };
    match ahead {
        0 => format!("behind {works} elsewhere"),
        1 => format!("behind {works} and 1 that waits elsewhere"),
        many => format!("behind {works} and {many} that wait elsewhere"),
    }
}

/// Where a session has something that it has taken and that is part of no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place<'s> {
    /// With what this turn takes into account at its next step.
    Steers(&'s TurnId),
    /// With what the gateway was asked for.
    Asked,
    /// With what is next.
    Waiting,
}

fn place(session: Option<&Session>, seq: Seq) -> Option<Place<'_>> {
    let session = session?;
    let steered = session.hand().filter(|hand| hand.steers.iter().any(|said| said.seq == seq));
    if let Some(hand) = steered {
        Some(Place::Steers(&hand.turn))
    } else if session.asked.iter().any(|asked| asked.seq == seq) {
        Some(Place::Asked)
    } else {
        let waits = session.waiting.iter().any(|said| said.seq == seq);
        waits.then_some(Place::Waiting)
    }
}

/// Who looks after what is part of no turn yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    /// Nobody before the next start.
    NextRun,
    /// A gateway that runs, and what hinders it.
    Gateway(Option<Hindrance>),
}

/// How it stands with something that is part of no turn yet, and what it waits for.
fn pending(event: &Traced, place: Option<Place<'_>>, care: Care) -> (String, Option<String>) {
    let plain = |outcome: &str, reason: &str| (outcome.to_owned(), Some(reason.to_owned()));
    let next_start = |outcome: &str| (format!("{outcome}, and for the next start"), None);
    let finds_out = "waits for what the gateway finds out";
    let waits = outcome(event);
    match (place, care) {
        (Some(Place::Steers(turn)), Care::NextRun) => {
            (format!("was passed on to turn {turn}, which goes on at the next start"), None)
        }
        (Some(Place::Steers(turn)), Care::Gateway(_)) => plain(
            &format!("was passed on to turn {turn}"),
            "it is taken into account at the turn's next step",
        ),
        (Some(Place::Asked), Care::NextRun) => next_start(finds_out),
        (Some(Place::Asked), Care::Gateway(_)) => (finds_out.to_owned(), None),
        (_, Care::NextRun | Care::Gateway(Some(Hindrance::Ending))) => next_start(&waits),
        (_, Care::Gateway(Some(Hindrance::Account))) => {
            plain("waits for its account", "the account was taken out")
        }
        // They are asked before anything is fetched.
        (_, Care::Gateway(_)) if is_asked_about(&event.inbound) => (waits.into_owned(), None),
        (_, Care::Gateway(Some(Hindrance::Files))) => {
            plain("waits for its files", "they are fetched before it is read")
        }
        (_, Care::Gateway(Some(Hindrance::Recording))) => {
            plain("waits for its recording", "it is written down before it is read")
        }
        (_, Care::Gateway(Some(Hindrance::Surroundings))) => {
            plain(&waits, "its platform is asked what surrounds it")
        }
        (_, Care::Gateway(None)) => (waits.into_owned(), None),
    }
}

/// What became of something whose turn, if it has one, is over.
fn outcome(event: &Traced) -> Cow<'static, str> {
    Cow::Borrowed(match &event.state {
        JournalState::Unread if is_asked_about(&event.inbound) => "waits for hooks to decide",
        JournalState::Unread => "waits to be read",
        JournalState::Taken => "waits for its turn",
        JournalState::Bound(_) => return over(event),
        JournalState::Handled => match because(event) {
            Some(Because::NotAllowed) => "a command that was refused",
            _ => "handled without a turn",
        },
        JournalState::Ignored(_) => "ignored",
        JournalState::Denied(_) => "not let in",
        JournalState::Quarantined(_) => "set aside",
    })
}

/// What became of something whose turn is over.
fn over(event: &Traced) -> Cow<'static, str> {
    let answers = answers(event);
    let told = match because(event) {
        _ if event.coverage == Coverage::Part => return "its turn is over".into(),
        Some(Because::Interrupted) => "was interrupted",
        Some(_) => "told why there is no whole answer",
        None if answers.is_empty() => return "its turn ended without an answer".into(),
        None if last(event).is_some_and(breaks_off) => "told why there is no whole answer",
        None => "answered",
    };
    match delivery(&answers) {
        Some(how_far) => format!("{told}, and {how_far}").into(),
        None => told.into(),
    }
}

/// The parts of what the turn of an event said. What was said besides, as that it waits, answers nothing.
fn answers(event: &Traced) -> Vec<&Sent> {
    let is_in_turn = |recorded: &&Recorded| recorded.entry.turn.is_some();
    let named = deliveries(event.entries.iter().filter(is_in_turn));
    event.parcels.iter().filter(|sent| named.contains(&sent.id.with_part(0))).collect()
}

/// What is still to be done for these parts, or cannot be; none where all are where they were to go.
fn delivery(parcels: &[&Sent]) -> Option<&'static str> {
    let lost = [ParcelState::Undeliverable, ParcelState::Abandoned];
    if parcels.iter().all(|sent| sent.state == ParcelState::Delivered) {
        None
    } else if parcels.iter().any(|sent| lost.contains(&sent.state)) {
        Some("not all of it could be delivered")
    } else {
        Some("its delivery is under way")
    }
}

fn reason(event: &Traced) -> Option<String> {
    match &event.state {
        JournalState::Ignored(reason)
        | JournalState::Denied(reason)
        | JournalState::Quarantined(reason) => Some(reason.clone()),
        JournalState::Bound(_) if event.coverage == Coverage::Part => {
            Some("more happened than is looked at".to_owned())
        }
        JournalState::Bound(_)
            if last(event).is_some_and(is_silence) && answers(event).is_empty() =>
        {
            Some(SILENCE.to_owned())
        }
        JournalState::Bound(_) | JournalState::Handled => {
            because(event).map(|because| match (because, interventions(&event.inbound).last()) {
                (Because::Hook, Some(Intervention { by, what })) => match what {
                    Intervened::Failed(why) => {
                        format!("the hook {by} denies what it cannot decide: {why}")
                    }
                    Intervened::Handled => format!("the hook {by} handled the command"),
                    _ => format!("the hook {by} decided about the command"),
                },
                _ => sentence(because).to_owned(),
            })
        }
        JournalState::Unread | JournalState::Taken => None,
    }
}

/// Why what was said last is no answer, or no whole one.
fn because(event: &Traced) -> Option<Because> {
    let last = last(event).and_then(|recorded| recorded.entry.because);
    last.filter(|because| !matches!(because, Because::Approval(_)))
}

/// What an event led to in the end: in its turn, where it has one.
fn last(event: &Traced) -> Option<&Recorded> {
    let has_turn = matches!(event.state, JournalState::Bound(_));
    event.entries.iter().rfind(|recorded| recorded.entry.turn.is_some() || !has_turn)
}

fn breaks_off(recorded: &Recorded) -> bool {
    matches!(recorded.entry.body, EntryBody::Answered { extent: Extent::BrokenOff, .. })
}

fn is_silence(recorded: &Recorded) -> bool {
    match &recorded.entry.body {
        EntryBody::Answered { calls, sent: None, extent: Extent::Whole, .. } => calls.is_empty(),
        _ => false,
    }
}

/// The model was asked, and did not want to say anything.
const SILENCE: &str = "the model chose to say nothing";

const fn sentence(because: Because) -> &'static str {
    match because {
        Because::NotAllowed => "the command is for administrators, and its sender is none there",
        Because::NoSuchCommand => "there is no such command",
        Because::Hook => "a hook decided about the command",
        Because::Approval(_) => "somebody has to approve it",
        Because::Stopped => "somebody stopped the turn",
        Because::TimedOut => "the turn took longer than it may",
        Because::Silent => "nothing was heard of the model for too long",
        Because::TooManySteps => "the model took more steps than it may",
        Because::OverBudget => "a budget is used up",
        Because::Model => "the model gave no usable answer",
        Because::Interrupted => "its sender said something else before it was answered",
        Because::CutOff => "a restart cut the turn off, too long ago to go on with it",
    }
}

fn timeline(
    event: &Traced,
    unfinished: Option<&Session>,
    glimpses: &[Glimpse],
) -> Vec<api::Moment> {
    let begun = event.at;
    let moment = |at: Timestamp, what: String| api::Moment {
        at: rfc3339(at),
        after_ms: millis(begun, at),
        what,
    };
    let sent = event.inbound.at;
    let late = match begun.since(sent).as_millis() {
        0 => String::new(),
        late => format!(", {late} ms after its platform says it happened"),
    };
    let mut moments = vec![moment(begun, format!("received as {}{late}", event.seq))];
    for glimpse in glimpses {
        if glimpse.why == Unwritten::Repeated(event.seq) {
            moments.push(moment(glimpse.at, "delivered again by its platform, and dropped".into()));
        }
    }
    moments.extend(knocks(&event.inbound.id, glimpses, begun));
    for AuditRow { at, audited: Audited { actor, deed, detail, .. }, .. } in &event.approvals {
        moments.push(moment(*at, format!("{} by {actor}: {detail}", approval(*deed))));
    }
    moments.extend(
        event
            .entries
            .iter()
            .map(|recorded| moment(recorded.entry.at, step(recorded, &event.state))),
    );
    let resumed = event.entries.iter().filter_map(|recorded| recorded.entry.resumed);
    moments.extend(resumed.map(|at| moment(at, RESUMED.into())));
    if let Some((session, hand)) = unfinished.and_then(|session| Some((session, session.hand()?))) {
        moments.extend(hand.resumed.map(|at| moment(at, RESUMED.into())));
        let is_told = |recorded: &Recorded| {
            recorded.entry.at == session.updated && recorded.entry.about.is_some()
        };
        // Whoever is told only once, or has hardly waited, hears nothing of it.
        if hand.left.is_some() && !event.entries.iter().any(is_told) {
            moments.push(moment(session.updated, LEFT.into()));
        }
    }
    for sent in &event.parcels {
        moments.push(moment(sent.at, format!("part {} decided", sent.id)));
        let settled = sent.settled.map(|at| moment(at, settlement(sent)));
        moments.extend(settled);
    }
    moments.sort_by_key(|moment| moment.after_ms);
    moments
}

fn millis(from: Timestamp, upto: Timestamp) -> u64 {
    u64::try_from(upto.since(from).as_millis()).unwrap_or(u64::MAX)
}

/// What became of a part in the end.
fn settlement(sent: &Sent) -> String {
    let shown = sent.shown.as_ref().map(|id| format!(" as message {id}")).unwrap_or_default();
    format!("part {} {}{shown}", sent.id, state(sent.state))
}

/// What came of a stranger's asking to be let in.
fn knocks(event: &EventId, glimpses: &[Glimpse], begun: Timestamp) -> Vec<api::Moment> {
    let came = |glimpse: &Glimpse| match &glimpse.why {
        Unwritten::Knocked(came) if glimpse.event == *event => Some(api::Moment {
            at: rfc3339(glimpse.at),
            after_ms: millis(begun, glimpse.at),
            what: format!("may ask to be let in: {came}"),
        }),
        _ => None,
    };
    glimpses.iter().filter_map(came).collect()
}

const fn approval(deed: AuditDeed) -> &'static str {
    match deed {
        AuditDeed::Approved => "approved",
        AuditDeed::Denied => "denied",
        _ => "approval asked for",
    }
}

/// A run ended before the turn was over.
const LEFT: &str = "left by an end of the gateway";

/// The next run has the turn.
const RESUMED: &str = "taken up again";

/// What an entry stands for, without its words.
fn step(recorded: &Recorded, state: &JournalState) -> String {
    match &recorded.entry.body {
        EntryBody::Said { .. } => match &recorded.entry.turn {
            Some(turn) => format!("taken into turn {turn}"),
            None => "taken in".into(),
        },
        EntryBody::Aside { .. } => "taken as a command or an answer".into(),
        EntryBody::Answered { extent: Extent::BrokenOff, sent, .. } => {
            let began = match sent {
                Some(sent) => format!("the model began to answer as {sent}"),
                None => "the model had said nothing".to_owned(),
            };
            match recorded.entry.because {
                Some(because) => format!("{began}: {}", sentence(because)),
                None => began,
            }
        }
        EntryBody::Answered { .. } if is_silence(recorded) => SILENCE.into(),
        EntryBody::Answered { calls, sent: None, .. } => {
            format!("the model called {}", names(calls))
        }
        EntryBody::Answered { sent: Some(sent), .. } => format!("the model answered as {sent}"),
        EntryBody::Returned { call, failed: true, .. } => format!("call {call} went wrong"),
        EntryBody::Returned { call, .. } => format!("call {call} returned"),
        EntryBody::Noticed { sent, .. } => match (&recorded.entry.about, recorded.entry.because) {
            (Some(About::Left(_)), _) => format!("{LEFT}, told as {sent}"),
            (_, Some(Because::Approval(_))) => {
                format!("somebody was asked to approve it, as {sent}")
            }
            (_, Some(because)) => format!("the gateway answered as {sent}: {}", sentence(because)),
            (Some(About::Row(_)), None) if matches!(state, JournalState::Bound(_)) => {
                format!("something was said about it as {sent}")
            }
            (_, None) => format!("the gateway answered as {sent}"),
        },
        EntryBody::Summary { .. } => "the conversation was summed up".into(),
    }
}

fn names(calls: &[ToolCall]) -> String {
    let names: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    names.join(", ")
}

fn tools(entries: &[Recorded]) -> Vec<api::ToolUse> {
    let mut uses = Vec::new();
    for recorded in entries {
        if let EntryBody::Answered { calls, .. } = &recorded.entry.body {
            for call in calls {
                let returned = entries.iter().find_map(|other| match &other.entry.body {
                    EntryBody::Returned { call: answered, failed, .. } if *answered == call.id => {
                        Some((*failed, other.entry.at))
                    }
                    _ => None,
                });
                uses.push(api::ToolUse {
                    tool: call.tool.clone(),
                    outcome: match returned {
                        None => "not returned",
                        Some((true, _)) => "went wrong",
                        Some((false, _)) => "returned",
                    }
                    .into(),
                    took_ms: returned.map(|(_, at)| millis(recorded.entry.at, at)),
                });
            }
        }
    }
    uses
}

const fn state(state: ParcelState) -> &'static str {
    match state {
        ParcelState::Ready | ParcelState::Plain => "waits",
        ParcelState::Unsure => "may have arrived, and waits",
        ParcelState::Attempting => "is leaving",
        ParcelState::Previewing => "only its preview is there",
        ParcelState::Delivered => "delivered",
        ParcelState::Undeliverable => "refused for good",
        ParcelState::Abandoned => "given up",
    }
}

fn part(sent: &Sent) -> api::Part {
    api::Part {
        id: sent.id.to_string(),
        state: state(sent.state).into(),
        message: sent.shown.as_ref().map(ToString::to_string),
        attempts: sent.attempts,
        reason: sent.reason.clone(),
        decided: rfc3339(sent.at),
        settled: sent.settled.map(rfc3339),
        took_ms: sent.settled.map(|at| millis(sent.at, at)),
    }
}

fn said(inbound: &Inbound) -> Option<String> {
    match &inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => {
            Some(message.words().into_owned())
        }
        InboundKind::Pressed(choice) => Some(choice.to_string()),
        InboundKind::Stopped => None,
    }
}

/// What is known of an event without a row.
fn unwritten(glimpse: &Glimpse, all: &[Glimpse]) -> api::Decision {
    let (outcome, reason) = match &glimpse.why {
        Unwritten::Knocked(came) => ("not let in", Some(came.clone().into_owned())),
        Unwritten::Repeated(seq) => ("dropped as a repeat", Some(format!("it is row {seq}"))),
        Unwritten::Ignored(why) => ("ignored", Some(why.clone())),
        Unwritten::Denied(why) => ("not let in", Some(why.clone())),
        Unwritten::Misdirected(_) => ("dropped", Some(MISDIRECTED.to_owned())),
    };
    api::Decision {
        event: glimpse.event.to_string(),
        message: glimpse.message.as_ref().map(ToString::to_string),
        account: glimpse.to.account.to_string(),
        chat: glimpse.to.chat.id.to_string(),
        thread: glimpse.to.thread.as_ref().map(ToString::to_string),
        sender: glimpse.from.id.to_string(),
        kind: "seen".into(),
        outcome: outcome.into(),
        reason,
        session: None,
        turn: None,
        behind: Vec::new(),
        timeline: std::iter::once(api::Moment {
            at: rfc3339(glimpse.at),
            after_ms: 0,
            what: "received, and not written down".into(),
        })
        .chain(knocks(&glimpse.event, all, glimpse.at))
        .collect(),
        tools: Vec::new(),
        hooks: Vec::new(),
        parts: Vec::new(),
        text: None,
        rewritten_by: None,
    }
}

/// What is kept of an event that is one too many to have a row in the journal.
fn unanswered(kept: &Unanswered) -> api::Decision {
    let (outcome, reason) = match &kept.state {
        JournalState::Ignored(why) => ("ignored", why),
        JournalState::Denied(why) if why == MISDIRECTED => ("dropped", why),
        JournalState::Denied(why) | JournalState::Quarantined(why) => ("not let in", why),
        JournalState::Unread
        | JournalState::Taken
        | JournalState::Bound(_)
        | JournalState::Handled => ("received", &String::new()),
    };
    api::Decision {
        event: kept.event.to_string(),
        message: kept.message.as_ref().map(ToString::to_string),
        account: kept.account.to_string(),
        chat: kept.chat.to_string(),
        thread: None,
        sender: kept.sender.to_string(),
        kind: "seen".into(),
        outcome: outcome.into(),
        reason: Some(reason.clone()),
        session: None,
        turn: None,
        behind: Vec::new(),
        timeline: vec![api::Moment {
            at: rfc3339(kept.at),
            after_ms: 0,
            what: "received, and written down in short".into(),
        }],
        tools: Vec::new(),
        hooks: Vec::new(),
        parts: Vec::new(),
        text: None,
        rewritten_by: None,
    }
}

#[cfg(test)]
mod tests;
