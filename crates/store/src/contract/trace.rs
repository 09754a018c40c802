//! What is written down about an event.

use talaria_model::{
    About, Because, Cost, Digest, Entry, EntryBody, Extent, InboundKind, MessageId, Outbound,
    OutboundId, Sender, SenderId, SessionId, TurnId, Usage,
};
use talaria_session::pairing::GuestBook;
use talaria_session::{Phase, TurnInHand, Waiting};

use super::Harness;
use super::world::{
    account, address, admit, admit_as, alice, answer, at, attempt, change, delivered, entry, hand,
    key, message, post, said, session, settle, settle_at, step,
};
use crate::{
    AuditDeed, Audited, Clue, Commit, Coverage, Delivered, GuestChange, JournalState, LOOKED_AT,
    MOST_LOOKED_AT, ParcelState, Queue, Settlement, Traced, UNANSWERED, Unanswered, letters_about,
};

pub async fn an_event_is_traced_by_its_id_its_message_and_its_chat(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let (first, other) = (admit(&*store, &chat, "1").await, key("other", "c"));
    admit(&*store, &other, "1").await;
    let mut stranger = said(&key("bot", "strange"), "2", "hello");
    if let InboundKind::Said(message) = &mut stranger.kind {
        message.id = Some(MessageId::literal("m\"2"));
    }
    let denied = JournalState::Denied("not listed".into());
    let batch = Delivered {
        account: account("bot"),
        events: vec![(key("bot", "strange"), stranger.clone(), denied.clone())],
        cursor: None,
        at: at(1),
    };
    store.admit(batch).await.expect("admits");

    let store = harness.open().await;
    let by = async |clue: Clue| store.trace(&clue, 10).await.expect("reads");
    let found = by(Clue::Id("1".into())).await;
    assert_eq!(found.len(), 2, "an id is unique per account only");
    assert_eq!(found[1].seq, first);
    assert_eq!((&found[1].state, found[1].key.as_ref()), (&JournalState::Unread, Some(&chat)));
    let found = by(Clue::Id("m\"2".into())).await;
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0].inbound, &found[0].state, &found[0].key), (&stranger, &denied, &None));
    let place = |name: &str| Clue::Chat {
        account: account("bot"),
        chat: address(&key("bot", name)).chat.id,
    };
    assert_eq!(by(place("c")).await.len(), 1);
    assert_eq!(by(place("strange")).await, found);
    assert_eq!(by(place("elsewhere")).await, []);
    assert_eq!(by(Clue::Id("3".into())).await, []);
}

pub async fn what_came_of_an_event_is_traced_to_its_parcels(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let seq = admit(&*store, &chat, "1").await;
    let state = session(&chat);
    let turn = TurnId { session: state.id.clone(), number: 1 };
    let earlier = TurnId { session: state.id.clone(), number: 7 };
    let parcel = post(&state, 1, 0);
    let parts = vec![parcel.clone(), post(&state, 1, 1)];
    let entry = |number: u32, turn: &TurnId, body| Entry {
        number,
        at: at(5),
        turn: Some(turn.clone()),
        body,
        because: None,
        about: None,
        resumed: None,
    };
    let said = EntryBody::Said {
        from: Sender::new(SenderId::literal("alice")),
        text: "one".into(),
        files: Vec::new(),
        heard: None,
        message: None,
        forwarded: None,
    };
    let answered = EntryBody::Answered {
        text: "two".into(),
        files: Vec::new(),
        calls: Vec::new(),
        reasoning: None,
        usage: Usage::default(),
        cost: Cost::FREE,
        sent: Some(parcel.id.clone()),
        extent: Extent::Whole,
    };
    let entries = [
        entry(1, &earlier, said.clone()),
        entry(2, &turn, said),
        entry(3, &earlier, answered.clone()),
        entry(4, &turn, answered),
    ];
    let commit = Commit {
        journal: vec![change(seq, JournalState::Bound(turn.clone()))],
        entries: entries.map(|entry| (state.id.clone(), entry)).to_vec(),
        outbox: parts,
        ..step(&state)
    };
    store.commit(commit).await.expect("commits");
    attempt(&*store, &parcel).await;
    settle_at(&*store, &parcel, Settlement::Unsure, at(6)).await;
    settle_at(&*store, &parcel, delivered(), at(7)).await;
    settle_at(&*store, &parcel, delivered(), at(8)).await;

    let store = harness.open().await;
    let found = store.trace(&Clue::Id("1".into()), 10).await.expect("reads");
    let [traced] = &found[..] else { panic!("one row, not {found:?}") };
    assert_eq!(traced.state, JournalState::Bound(turn));
    let settled: Vec<_> = traced.parcels.iter().map(|sent| sent.settled).collect();
    assert_eq!(settled, [Some(at(7)), None], "when it ended, and only then");
    assert_eq!(traced.behind, [earlier]);
    let numbers: Vec<u32> = traced.entries.iter().map(|recorded| recorded.entry.number).collect();
    assert_eq!(numbers, [2, 4]);
    let parcels: Vec<_> = traced.parcels.iter().map(|sent| (sent.id.part, sent.state)).collect();
    assert_eq!(parcels, [(0, ParcelState::Delivered), (1, ParcelState::Ready)]);
    assert_eq!(traced.parcels[0].shown, message("m"));
}

pub async fn what_is_said_later_about_an_event_is_traced_to_it(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let (asks, given_up) = (admit(&*store, &chat, "1").await, admit(&*store, &chat, "2").await);
    let (old, left) = (admit(&*store, &chat, "3").await, admit(&*store, &chat, "4").await);
    let state = session(&chat);
    let turn = TurnId { session: state.id.clone(), number: 1 };
    let aside = |text: &str| EntryBody::Aside {
        from: alice(),
        text: text.into(),
        files: Vec::new(),
        message: None,
    };
    let parcel = |delivery: u32| post(&state, delivery, 0);
    let noticed = |delivery: u32| EntryBody::Noticed {
        text: "Said.".into(),
        choices: Vec::new(),
        files: Vec::new(),
        sent: parcel(delivery).id,
    };
    let recorded = |number: u32, moment: i64, about: Option<About>, body: EntryBody| Entry {
        at: at(moment),
        body,
        about,
        ..entry(number, "")
    };
    let entries = [
        recorded(1, 5, None, aside("1")),
        // The same step says something about another row.
        recorded(2, 5, Some(About::Row(given_up)), noticed(1)),
        recorded(3, 6, None, aside("3")),
        recorded(4, 6, None, noticed(2)),
        recorded(5, 7, None, noticed(3)),
        recorded(6, 8, Some(About::Row(asks)), noticed(4)),
        Entry { turn: Some(turn.clone()), ..recorded(7, 9, None, entry(7, "4").body) },
        recorded(8, 10, Some(About::Left(turn.clone())), noticed(5)),
    ];
    let commit = Commit {
        journal: vec![
            change(asks, JournalState::Handled),
            change(given_up, JournalState::Ignored("too late".into())),
            change(old, JournalState::Handled),
            change(left, JournalState::Bound(turn)),
        ],
        entries: entries.map(|entry| (state.id.clone(), entry)).to_vec(),
        outbox: (1..=5).map(parcel).collect(),
        ..step(&state)
    };
    store.commit(commit).await.expect("commits");
    let store = harness.open().await;
    for (event, numbers, deliveries) in [
        ("1", &[1, 6][..], &[4][..]),
        ("2", &[2], &[1]),
        // As it was recorded before anybody said what it was about.
        ("3", &[3, 4], &[2]),
        ("4", &[7, 8], &[5]),
    ] {
        let found = store.trace(&Clue::Id(event.into()), 10).await.expect("reads");
        let [traced] = &found[..] else { panic!("one row, not {found:?}") };
        let known: Vec<u32> = traced.entries.iter().map(|known| known.entry.number).collect();
        assert_eq!(known, numbers, "{event}");
        let sent: Vec<u32> = traced.parcels.iter().map(|sent| sent.id.delivery).collect();
        assert_eq!(sent, deliveries, "{event}");
    }
}

/// One entry of a turn.
fn in_turn(number: u32, turn: &TurnId, body: EntryBody) -> Entry {
    Entry { at: at(5), turn: Some(turn.clone()), body, ..entry(number, "") }
}

/// What is written down about the one event of this id.
async fn traced(harness: &dyn Harness, event: &str) -> Traced {
    let found = harness.open().await.trace(&Clue::Id(event.into()), 10).await.expect("reads");
    let [traced] = <[Traced; 1]>::try_from(found).expect("one row");
    traced
}

fn numbers(traced: &Traced) -> Vec<u32> {
    traced.entries.iter().map(|recorded| recorded.entry.number).collect()
}

pub async fn an_event_is_followed_to_the_turn_that_took_it_again(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let (first, rest) = (admit(&*store, &chat, "1").await, admit(&*store, &chat, "2").await);
    let state = session(&chat);
    let turn = |number: u32| TurnId { session: state.id.clone(), number };
    let body = |text: &str| entry(0, text).body;
    let again = Some(About::Again(turn(1)));
    let entries = [
        in_turn(1, &turn(1), body("1")),
        Entry { about: again, ..in_turn(2, &turn(2), body("2")) },
        in_turn(3, &turn(2), answer(3, "both").body),
        in_turn(4, &turn(3), body("something else")),
    ];
    let commit = Commit {
        journal: vec![
            change(first, JournalState::Bound(turn(1))),
            change(rest, JournalState::Bound(turn(2))),
        ],
        entries: entries.map(|entry| (state.id.clone(), entry)).to_vec(),
        ..step(&state)
    };
    store.commit(commit).await.expect("commits");
    let first = traced(harness, "1").await;
    assert_eq!((numbers(&first), &first.behind[..]), (vec![1, 2, 3], &[][..]));
    assert_eq!(first.turn(), Some(&turn(2)), "that is the one to ask about");
    assert_eq!(numbers(&traced(harness, "2").await), [2, 3]);
}

pub async fn what_somebody_was_told_before_or_instead_of_an_answer_is_traced(
    harness: &dyn Harness,
) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let (waits, stuck) = (admit(&*store, &chat, "1").await, admit(&*store, &chat, "2").await);
    let asks = admit(&*store, &chat, "3").await;
    let state = session(&chat);
    let turn = |number: u32| TurnId { session: state.id.clone(), number };
    let noticed = |number: u32| EntryBody::Noticed {
        text: "Said.".into(),
        choices: Vec::new(),
        files: Vec::new(),
        sent: post(&state, number, 0).id,
    };
    let aside =
        EntryBody::Aside { from: alice(), text: "3".into(), files: Vec::new(), message: None };
    let entries = [
        in_turn(1, &turn(1), entry(1, "2").body),
        Entry { about: Some(About::Row(waits)), body: noticed(1), ..entry(2, "") },
        in_turn(3, &turn(1), noticed(2)),
        in_turn(4, &turn(2), entry(4, "1").body),
        Entry { body: aside, ..entry(5, "") },
        in_turn(6, &turn(2), answer(6, "now you").body),
    ];
    let commit = Commit {
        journal: vec![
            change(waits, JournalState::Bound(turn(2))),
            change(stuck, JournalState::Quarantined("it kept killing us".into())),
            change(asks, JournalState::Taken),
        ],
        entries: entries.map(|entry| (state.id.clone(), entry)).to_vec(),
        outbox: vec![post(&state, 1, 0), post(&state, 2, 0)],
        ..step(&state)
    };
    store.commit(commit).await.expect("commits");
    for (event, expected, parcels) in [("1", &[2, 4, 6][..], 1), ("2", &[1, 3], 1), ("3", &[5], 0)]
    {
        let traced = traced(harness, event).await;
        assert_eq!((&numbers(&traced)[..], traced.parcels.len()), (expected, parcels), "{event}");
    }
    assert_eq!(traced(harness, "1").await.behind, [turn(1)]);
}

pub async fn a_long_turn_is_traced_to_its_end(harness: &dyn Harness) {
    let store = harness.open().await;
    let (long, longer) = (key("bot", "long"), key("bot", "longer"));
    for (chat, event, many) in [(&long, "1", LOOKED_AT + 50), (&longer, "2", MOST_LOOKED_AT + 1)] {
        let seq = admit(&*store, chat, event).await;
        let state = session(chat);
        let turn = TurnId { session: state.id.clone(), number: 2 };
        let before = TurnId { number: 1, ..turn.clone() };
        let many = u32::try_from(many).expect("some");
        let mut entries: Vec<Entry> =
            (1..many).map(|number| in_turn(number, &before, entry(0, "on and on").body)).collect();
        entries.push(in_turn(many, &turn, entry(0, event).body));
        let steps = many + 1..=2 * many;
        entries.extend(steps.map(|number| in_turn(number, &turn, answer(0, "step").body)));
        let commit = Commit {
            journal: vec![change(seq, JournalState::Bound(turn))],
            entries: entries.into_iter().map(|entry| (state.id.clone(), entry)).collect(),
            ..step(&state)
        };
        store.commit(commit).await.expect("commits");
    }
    let whole = traced(harness, "1").await;
    let last = u32::try_from(2 * (LOOKED_AT + 50)).expect("some");
    assert_eq!(numbers(&whole).last(), Some(&last));
    assert_eq!((whole.behind.len(), whole.coverage), (1, Coverage::Whole));
    assert_eq!(traced(harness, "2").await.coverage, Coverage::Part, "it is bounded");
}

pub async fn a_stranger_is_traced_to_what_they_were_told(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "strange");
    let denied = |event: &'static str| {
        admit_as(&*store, &chat, event, JournalState::Denied("not listed".into()), at(1))
    };
    let (first, second) = (denied("1").await, denied("2").await);
    let letter = |about: String| Outbound {
        id: OutboundId {
            session: SessionId::new(format!("{about}0123456789abcdef")).expect("an id"),
            delivery: 1,
            part: 0,
        },
        ..post(&session(&chat), 1, 0)
    };
    let change = GuestChange {
        account: account("bot"),
        read: 0,
        book: GuestBook::default(),
        outbox: vec![letter(letters_about(first)), letter("pairing_".into())],
        audited: Vec::new(),
        at: at(2),
    };
    store.keep_guests(change).await.expect("keeps");
    let store = harness.open().await;
    for (event, seq, told) in [("1", first, 1), ("2", second, 0)] {
        let found = store.trace(&Clue::Id(event.into()), 10).await.expect("reads");
        assert_eq!((found[0].seq, found[0].parcels.len()), (seq, told), "{found:?}");
    }
}

pub async fn approvals_are_traced_from_the_turn_that_asked_for_them(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let seq = admit(&*store, &chat, "1").await;
    let state = session(&chat);
    let turn = TurnId { session: state.id.clone(), number: 1 };
    let (digest, other) = (Digest::new([7; 32]), Digest::new([8; 32]));
    let noticed = |number: u32, because: Option<Because>| Entry {
        number,
        at: at(5),
        turn: Some(turn.clone()),
        body: EntryBody::Noticed {
            text: "May I?".into(),
            choices: Vec::new(),
            files: Vec::new(),
            sent: post(&state, 1, 0).id,
        },
        because,
        about: None,
        resumed: None,
    };
    let audited = |deed, digest: Digest| Audited {
        actor: "bot:ann".into(),
        deed,
        subject: "bot:ann".into(),
        detail: format!("run_program {digest}, once"),
    };
    let entries = [noticed(1, Some(Because::Approval(digest))), noticed(2, None)];
    let commit = Commit {
        journal: vec![change(seq, JournalState::Bound(turn.clone()))],
        entries: entries.map(|entry| (state.id.clone(), entry)).to_vec(),
        ..step(&state)
    };
    store.commit(commit).await.expect("commits");
    let rows = vec![
        audited(AuditDeed::ApprovalAsked, digest),
        audited(AuditDeed::Approved, digest),
        audited(AuditDeed::Approved, other),
        audited(AuditDeed::ApprovalRevoked, digest),
    ];
    store.audit(at(5), rows).await.expect("records");
    store.audit(at(6), vec![audited(AuditDeed::Denied, digest)]).await.expect("records");
    let store = harness.open().await;
    let found = store.trace(&Clue::Id("1".into()), 10).await.expect("reads");
    let deeds: Vec<_> = found[0].approvals.iter().map(|row| row.audited.deed).collect();
    assert_eq!(deeds, [AuditDeed::ApprovalAsked, AuditDeed::Approved]);
}

pub async fn what_waits_is_told_with_the_age_of_its_oldest(harness: &dyn Harness) {
    let store = harness.open().await;
    assert_eq!(store.queues().await.expect("reads"), crate::Queues::default());
    let chat = key("bot", "c");
    admit_as(&*store, &chat, "1", JournalState::Unread, at(7)).await;
    admit_as(&*store, &chat, "2", JournalState::Unread, at(9)).await;
    admit_as(&*store, &chat, "3", JournalState::Handled, at(3)).await;
    let behind = admit_as(&*store, &chat, "4", JournalState::Taken, at(4)).await;
    let last = admit_as(&*store, &chat, "5", JournalState::Taken, at(5)).await;
    let passed_on = admit_as(&*store, &chat, "6", JournalState::Taken, at(2)).await;
    let waiting = |seq| Waiting {
        seq,
        from: alice(),
        to: address(&chat),
        roles: Vec::new(),
        message: Default::default(),
        joins: Default::default(),
        paid: Default::default(),
    };
    let mut state = session(&chat);
    let steers = vec![waiting(passed_on)];
    state.phase = Phase::Thinking(TurnInHand { steers, ..hand(&state) });
    state.waiting = [behind, last].map(waiting).into();
    let parts: Vec<Outbound> = (0..4).map(|part| post(&state, 1, part)).collect();
    let commit = Commit { outbox: parts.clone(), ..step(&state) };
    let decided = commit.at;
    store.commit(commit).await.expect("commits");
    attempt(&*store, &parts[0]).await;
    settle(&*store, &parts[0], delivered()).await;
    attempt(&*store, &parts[1]).await;
    attempt(&*store, &parts[2]).await;
    settle(&*store, &parts[2], Settlement::Unsure).await;
    let queues = store.queues().await.expect("reads");
    assert_eq!(queues.unread, Queue { many: 2, oldest: Some(at(7)) });
    let two = Queue { many: 2, oldest: Some(at(4)) };
    assert_eq!(queues.waiting, two, "what was passed on to a turn waits for none");
    let one = Queue { many: 1, oldest: Some(decided) };
    let outbox: Vec<_> = queues.outbox.into_iter().collect();
    let expected = [ParcelState::Ready, ParcelState::Unsure, ParcelState::Attempting];
    assert_eq!(outbox, expected.map(|state| (state, one)));
    let turn = TurnId { session: state.id.clone(), number: 1 };
    let journal = vec![change(behind, JournalState::Bound(turn))];
    store.commit(Commit { journal, ..step(&state) }).await.expect("commits");
    let waiting = harness.open().await.queues().await.expect("reads").waiting;
    assert_eq!(waiting, Queue { many: 1, oldest: Some(at(5)) }, "the other one has its turn");
}

pub async fn what_was_not_answered_is_kept_in_short_and_the_newest_of_each_account(
    harness: &dyn Harness,
) {
    let store = harness.open().await;
    let row = |on: &str, number: usize, moment: i64| {
        let id = if number == 0 { "x".repeat(300) } else { format!("{on} {number}") };
        let mut event = said(&key(on, "noise"), &id, "words");
        if let InboundKind::Said(message) = &mut event.kind {
            message.id = Some(MessageId::new(format!("m{number}")).expect("an id"));
        }
        let state = JournalState::Ignored("nobody spoke to us ".repeat(100));
        Unanswered::of(&account(on), &event, state, at(moment))
    };
    let many = (0..=UNANSWERED).map(|number| row("bot", number, 10));
    store.keep_unanswered(many.collect()).await.expect("keeps");
    let few = vec![row("other", 1, 11), row("bot", 0, 12)];
    store.keep_unanswered(few.clone()).await.expect("keeps");

    let store = harness.open().await;
    let by = async |clue: Clue| store.unanswered(&clue, 3).await.expect("reads");
    assert_eq!(by(Clue::Id("bot 1".into())).await, [], "the oldest are forgotten");
    assert_eq!(by(Clue::Id("other 1".into())).await, few[..1]);
    assert_eq!(by(Clue::Id("x".repeat(300))).await, few[1..], "a long id is found, too");
    assert_eq!(by(Clue::Id("m2".into())).await, [row("bot", 2, 10)]);
    let noise = Clue::Chat { account: account("bot"), chat: address(&key("bot", "noise")).chat.id };
    let newest = [few[1].clone(), row("bot", UNANSWERED, 10), row("bot", UNANSWERED - 1, 10)];
    assert_eq!(by(noise.clone()).await, newest);
    let JournalState::Ignored(rule) = &newest[0].state else { panic!("{newest:?}") };
    assert!(rule.len() <= 128 && newest[0].event.as_str().len() <= 64, "{newest:?}");
    assert_eq!(store.prune(at(12)).await, Ok(UNANSWERED as u64));
    assert_eq!(by(noise).await, few[1..]);
}
