use super::*;
use serde_json::json;
use std::sync::Arc;
use talaria_model::{
    Address, CallId, Chat, ChatKind, Cost, Entry, Message, OutboundId, Question, Sender, SenderId,
    SessionId, Source, Usage,
};
use talaria_session::{Rules, Scope, SessionKey, TurnInHand};
use talaria_store::{Delivered, MemoryStore};

fn inbound() -> Inbound {
    let chat = Chat { id: ChatId::literal("c"), kind: ChatKind::Dm };
    Inbound {
        id: EventId::literal("e"),
        at: Timestamp::default(),
        from: Sender::new(SenderId::literal("ann")),
        to: Address { account: AccountId::literal("main"), chat, thread: None },
        source: Source::default(),
        kind: InboundKind::Stopped,
    }
}

fn session(phase: impl FnOnce(TurnInHand) -> Phase) -> Session {
    let Inbound { from, to, .. } = inbound();
    let key = SessionKey::of(&inbound(), Scope::default());
    let mut session =
        Session::begin(key, to.clone(), Timestamp::default(), Arc::new(Rules::default()));
    let hand = json!({
        "turn": {"session": session.id.clone(), "number": 1},
        "from": from, "to": to, "seqs": [1], "delivery": 1, "deadline": 0,
    });
    session.phase = phase(serde_json::from_value(hand).expect("a turn in hand"));
    session
}

fn asks() -> Session {
    session(|hand| Phase::Asking {
        hand,
        question: Question {
            call: CallId::literal("c1"),
            text: "Sure?".into(),
            choices: Vec::new(),
            approval: None,
        },
        since: Timestamp::default(),
        expires: Timestamp::default(),
        sent: None,
    })
}

#[track_caller]
fn check(session: &Session, standing: Option<Standing>, outcome: &str, reason: Option<&str>) {
    let told = unfinished(session, standing);
    assert_eq!(told, Some((outcome, reason.map(str::to_owned))), "{standing:?}");
}

#[test]
fn a_turn_in_hand_is_being_answered_only_where_it_works() {
    use Standing::{LeftToNextRun, NotBegun, WaitsForAccount, WaitsForPlace, Works};
    let thinks = session(Phase::Thinking);
    let goes_on = "its turn is in hand, and goes on at the next start";
    check(&thinks, None, goes_on, None);
    check(&thinks, Some(LeftToNextRun), goes_on, Some("the gateway is ending"));
    check(&thinks, Some(Works), "is being answered", None);
    check(&thinks, Some(NotBegun), "its turn has not begun yet", None);
    let out = Some("the account was taken out");
    check(&thinks, Some(WaitsForAccount), "waits for its account", out);
    for (working, ahead, reason) in [
        (1, 0, "behind 1 turn that works elsewhere"),
        (3, 1, "behind 3 turns that work and 1 that waits elsewhere"),
        (3, 2, "behind 3 turns that work and 2 that wait elsewhere"),
    ] {
        let waits = Some(WaitsForPlace { working, ahead });
        check(&thinks, waits, "waits for a place", Some(reason));
    }
    let stops = session(Phase::Stopping);
    check(&stops, Some(Works), "is being stopped", None);
    check(&stops, None, "was told to stop, and ends at the next start", None);
}

fn turn(number: u32) -> TurnId {
    TurnId { session: SessionId::literal("s"), number }
}

fn sent(delivery: u32) -> OutboundId {
    OutboundId { session: SessionId::literal("s"), delivery, part: 0 }
}

fn entry(turn: Option<TurnId>, body: EntryBody) -> Recorded {
    let (because, about, resumed) = (None, None, None);
    let entry = Entry { number: 1, at: Timestamp::default(), turn, body, because, about, resumed };
    Recorded { position: 1, session: SessionId::literal("s"), entry }
}

fn answered(text: &str, sent: Option<OutboundId>, extent: Extent) -> EntryBody {
    EntryBody::Answered {
        text: text.into(),
        files: Vec::new(),
        calls: Vec::new(),
        reasoning: None,
        usage: Usage::default(),
        cost: Cost::FREE,
        sent,
        extent,
    }
}

fn noticed(sent: OutboundId) -> EntryBody {
    let (choices, files) = (Vec::new(), Vec::new());
    EntryBody::Noticed { text: "Said.".into(), choices, files, sent }
}

fn because(why: Because, recorded: Recorded) -> Recorded {
    Recorded { entry: Entry { because: Some(why), ..recorded.entry }, ..recorded }
}

/// What is written down about an event whose turn left these entries and parcels.
fn traced(entries: Vec<Recorded>, parcels: &[(u32, ParcelState)]) -> Traced {
    let parcels = parcels.iter().map(|(delivery, state)| Sent {
        id: sent(*delivery),
        state: *state,
        shown: None,
        attempts: 1,
        reason: None,
        at: Timestamp::default(),
        settled: None,
    });
    Traced {
        seq: Seq(1),
        at: Timestamp::default(),
        key: None,
        inbound: inbound(),
        state: JournalState::Bound(turn(1)),
        behind: Vec::new(),
        entries,
        parcels: parcels.collect(),
        approvals: Vec::new(),
        coverage: Coverage::Whole,
    }
}

#[track_caller]
fn check_over(event: &Traced, outcome: &str, reason: Option<&str>) {
    assert_eq!(
        (super::outcome(event).as_ref(), super::reason(event).as_deref()),
        (outcome, reason)
    );
}

#[test]
fn a_turn_that_was_interrupted_has_not_answered() {
    let broken = |text, sent| entry(Some(turn(1)), answered(text, sent, Extent::BrokenOff));
    let why = Some("its sender said something else before it was answered");
    let half = because(Because::Interrupted, broken("Half", Some(sent(1))));
    assert_eq!(
        step(&half, &JournalState::Bound(turn(1))),
        "the model began to answer as s/1.0: its sender said something else before it was answered"
    );
    check_over(&traced(vec![half], &[(1, ParcelState::Delivered)]), "was interrupted", why);
    let nothing = because(Because::Interrupted, broken("", None));
    assert_eq!(
        step(&nothing, &JournalState::Bound(turn(1))),
        "the model had said nothing: its sender said something else before it was answered"
    );
    check_over(&traced(vec![nothing], &[]), "was interrupted", why);
    // As it was recorded before anybody said why.
    let half = broken("Half", Some(sent(1)));
    let told = "told why there is no whole answer";
    check_over(&traced(vec![half], &[(1, ParcelState::Delivered)]), told, None);
}

#[test]
fn what_is_said_in_place_of_an_answer_is_none_however_far_its_delivery_is() {
    let notice = || because(Because::CutOff, entry(Some(turn(1)), noticed(sent(1))));
    let why = Some("a restart cut the turn off, too long ago to go on with it");
    for (state, outcome) in [
        (ParcelState::Delivered, "told why there is no whole answer"),
        (
            ParcelState::Attempting,
            "told why there is no whole answer, and its delivery is under way",
        ),
        (
            ParcelState::Abandoned,
            "told why there is no whole answer, and not all of it could be delivered",
        ),
    ] {
        check_over(&traced(vec![notice()], &[(1, state)]), outcome, why);
    }
}

#[test]
fn what_is_said_about_a_message_outside_its_turn_is_no_answer_to_it() {
    let about = Some(About::Row(Seq(1)));
    let waits = entry(None, noticed(sent(1)));
    let waits = Recorded { entry: Entry { about, ..waits.entry }, ..waits };
    let silence = entry(Some(turn(1)), answered("NO_REPLY", None, Extent::Whole));
    let bound = JournalState::Bound(turn(1));
    assert_eq!(step(&silence, &bound), "the model chose to say nothing");
    assert_eq!(step(&waits, &bound), "something was said about it as s/1.0");
    assert_eq!(step(&waits, &JournalState::Handled), "the gateway answered as s/1.0");
    let event = traced(vec![waits, silence], &[(1, ParcelState::Delivered)]);
    let why = Some("the model chose to say nothing");
    check_over(&event, "its turn ended without an answer", why);
}

type Told<'a> = (&'a str, Option<&'a str>);

#[tokio::test]
async fn what_a_hook_wrote_is_not_passed_off_as_what_was_said() {
    let store = MemoryStore::new();
    let by = |by: &str, what| Intervention { by: by.into(), what };
    let message = Message {
        text: "Please help.".into(),
        interventions: vec![
            by("censor", Intervened::Rewrote),
            by("clerk", Intervened::Rewrote),
            by("guard", Intervened::Allowed),
        ],
        ..Message::default()
    };
    let inbound = Inbound { kind: InboundKind::Said(message), ..inbound() };
    let key = SessionKey::of(&inbound, Scope::default());
    let delivered = Delivered {
        account: inbound.to.account.clone(),
        events: vec![(key, inbound, JournalState::Unread)],
        cursor: None,
        at: Timestamp::default(),
    };
    store.admit(delivered).await.expect("admits");
    let ask = async |words| {
        let told = why(&store, None, "e", words).await.expect("it is known");
        <[api::Decision; 1]>::try_from(told.decisions).expect("one")
    };
    let [told] = ask(Words::Shown).await;
    assert_eq!(told.outcome, "waits to be read, and for the next start");
    assert_eq!(told.text.as_deref(), Some("Please help."));
    assert_eq!(told.rewritten_by.as_deref(), Some("clerk"), "the last one wrote it");
    let [told] = ask(Words::Hidden).await;
    assert_eq!((told.text, told.rewritten_by), (None, None));
}

#[track_caller]
fn check_pending(state: JournalState, place: Option<Place<'_>>, care: Care, told: Told<'_>) {
    let event = Traced { state, ..traced(Vec::new(), &[]) };
    let (outcome, reason) = pending(&event, place, care);
    assert_eq!((outcome.as_str(), reason.as_deref()), told, "{place:?} {care:?}");
}

#[test]
fn what_is_part_of_no_turn_waits_for_what_keeps_it() {
    let hindered = |by| Care::Gateway(Some(by));
    let (out, ending) = (hindered(Hindrance::Account), hindered(Hindrance::Ending));
    let account = ("waits for its account", Some("the account was taken out"));
    let files = ("waits for its files", Some("they are fetched before it is read"));
    let recording = ("waits for its recording", Some("it is written down before it is read"));
    for (care, told) in [
        (Care::Gateway(None), ("waits to be read", None)),
        (Care::NextRun, ("waits to be read, and for the next start", None)),
        (out, account),
        (hindered(Hindrance::Files), files),
        (hindered(Hindrance::Recording), recording),
    ] {
        check_pending(JournalState::Unread, None, care, told);
    }
    let next = ("waits for its turn, and for the next start", None);
    for (care, told) in [
        (Care::Gateway(None), ("waits for its turn", None)),
        (out, account),
        (ending, next),
        (Care::NextRun, next),
    ] {
        check_pending(JournalState::Taken, Some(Place::Waiting), care, told);
    }
}

#[test]
fn what_steers_or_asks_does_not_wait_for_its_turn() {
    let turn = turn(3);
    let (steers, runs) = (Place::Steers(&turn), Care::Gateway(None));
    let soon = Some("it is taken into account at the turn's next step");
    let later = "was passed on to turn s/3, which goes on at the next start";
    let next = "waits for what the gateway finds out, and for the next start";
    for (place, care, told) in [
        (steers, runs, ("was passed on to turn s/3", soon)),
        (steers, Care::NextRun, (later, None)),
        (Place::Asked, runs, ("waits for what the gateway finds out", None)),
        (Place::Asked, Care::NextRun, (next, None)),
    ] {
        check_pending(JournalState::Taken, Some(place), care, told);
    }
}

#[test]
fn a_session_knows_where_it_has_what_it_has_taken() {
    let said = |seq: u64| {
        let Inbound { from, to, .. } = inbound();
        let said = json!({"seq": seq, "from": from, "to": to, "message": {"text": "hi"}});
        serde_json::from_value(said).expect("something said")
    };
    let mut session = session(|hand| Phase::Thinking(TurnInHand { steers: vec![said(2)], ..hand }));
    session.waiting.push_back(said(3));
    let asked = json!({
        "seq": 4, "from": inbound().from, "to": inbound().to, "request": "reload", "expires": 0,
    });
    session.asked.push(serde_json::from_value(asked).expect("a request"));
    let turn = session.hand().expect("a turn").turn.clone();
    for (seq, expected) in [
        (1, None),
        (2, Some(Place::Steers(&turn))),
        (3, Some(Place::Waiting)),
        (4, Some(Place::Asked)),
    ] {
        assert_eq!(place(Some(&session), Seq(seq)), expected, "{seq}");
    }
    assert_eq!(place(None, Seq(3)), None);
}

#[test]
fn nothing_is_claimed_of_what_was_not_looked_at() {
    let said = entry(Some(turn(1)), answered("One", Some(sent(1)), Extent::Whole));
    let event = traced(vec![said], &[(1, ParcelState::Delivered)]);
    check_over(&event, "answered", None);
    let event = Traced { coverage: Coverage::Part, ..event };
    check_over(&event, "its turn is over", Some("more happened than is looked at"));
}

#[test]
fn a_turn_that_asks_waits_for_a_person_whatever_runs() {
    let (asks, why) = (asks(), Some("its question is not answered yet"));
    check(&asks, Some(Standing::NotBegun), "waits for a person", why);
    check(&asks, None, "waits for a person, and for the next start", why);
}
