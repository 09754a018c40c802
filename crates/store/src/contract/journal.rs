//! What arrived.

use talaria_model::{
    ChatKind, FileId, FileRef, Inbound, InboundKind, Message, MessageId, Owner, SenderId, Seq,
    ThreadId, Transcript, TurnId, Understood,
};
use talaria_session::SessionKey;

use super::Harness;
use super::world::{
    account, address, admit, admit_as, at, attempt, change, decide, delivered, key, message,
    parcels, post, preview, said, session, settle, step, thinking, waiting,
};
use crate::{Admitted, Clue, Commit, Delivered, Dropped, JournalState, Settlement, Use};

pub async fn a_batch_and_its_cursor_are_journalled_together(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    assert_eq!(store.cursor(&account("bot")).await, Ok(None));
    let admitted = store
        .admit(Delivered {
            account: account("bot"),
            events: vec![
                (chat.clone(), said(&chat, "1", "one"), JournalState::Unread),
                (chat.clone(), said(&chat, "2", "two"), JournalState::Denied("no".into())),
            ],
            cursor: Some("7".into()),
            at: at(1),
        })
        .await;
    let Ok([Admitted::Journalled(first), Admitted::Journalled(second)]) = admitted.as_deref()
    else {
        panic!("two new rows, not {admitted:?}");
    };
    assert!(first < second);
    let store = harness.open().await;
    assert_eq!(store.cursor(&account("bot")).await, Ok(Some("7".into())));
    assert_eq!(store.unread(&chat, 10).await, Ok(vec![(*first, said(&chat, "1", "one"))]));
}

pub async fn a_batch_without_a_cursor_leaves_it_where_it_was(harness: &dyn Harness) {
    let store = harness.open().await;
    for (cursor, after) in [(Some("7"), "7"), (None, "7"), (Some("3"), "3")] {
        let cursor = cursor.map(Into::into);
        let batch = Delivered { account: account("bot"), events: Vec::new(), cursor, at: at(1) };
        assert_eq!(store.admit(batch).await, Ok(Vec::new()));
        assert_eq!(store.cursor(&account("bot")).await, Ok(Some(after.into())));
    }
    assert_eq!(store.cursor(&account("other")).await, Ok(None));
}

pub async fn a_repeat_keeps_the_first_row_and_reports_its_number(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let seq = admit(&*store, &chat, "1").await;
    let taken = vec![change(seq, JournalState::Handled)];
    let commit = Commit { journal: taken, ..step(&session(&chat)) };
    store.commit(commit).await.expect("commits");

    let store = harness.open().await;
    let repeat = Delivered {
        account: account("bot"),
        events: vec![(chat.clone(), said(&chat, "1", "changed"), JournalState::Unread)],
        cursor: Some("9".into()),
        at: at(2),
    };
    assert_eq!(store.admit(repeat).await, Ok(vec![Admitted::Repeated(seq)]));
    assert_eq!(store.unread(&chat, 10).await, Ok(Vec::new()));
    assert_eq!(store.cursor(&account("bot")).await, Ok(Some("9".into())));
}

pub async fn an_event_twice_in_one_batch_is_one_row(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let event = (chat.clone(), said(&chat, "1", "one"), JournalState::Unread);
    let events = vec![event.clone(), event];
    let batch = Delivered { account: account("bot"), events, cursor: None, at: at(1) };
    let admitted = store.admit(batch).await.expect("admits");
    let [Admitted::Journalled(first), Admitted::Repeated(second)] = admitted[..] else {
        panic!("a row and its repeat, not {admitted:?}");
    };
    assert_eq!(first, second);
    assert_eq!(store.unread(&chat, 10).await.map(|rows| rows.len()), Ok(1));
}

pub async fn the_same_event_on_another_account_is_another_event(harness: &dyn Harness) {
    let store = harness.open().await;
    let first = admit(&*store, &key("one", "c"), "1").await;
    let second = admit(&*store, &key("two", "c"), "1").await;
    assert_ne!(first, second);
}

pub async fn numbers_follow_arrival_across_accounts(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut before = Seq(0);
    for (account, event) in [("one", "z"), ("two", "a"), ("one", "b"), ("two", "z"), ("one", "a")] {
        let seq = admit(&*store, &key(account, "c"), event).await;
        assert!(seq > before);
        before = seq;
    }
    let seqs = store.unread(&key("one", "c"), 10).await.expect("reads");
    let events: Vec<_> = seqs.iter().map(|(_, inbound)| inbound.id.as_str()).collect();
    assert_eq!(events, ["z", "b", "a"]);
    assert!(seqs.is_sorted_by_key(|(seq, _)| *seq));
}

pub async fn numbers_are_never_given_twice(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let first = admit_as(&*store, &chat, "1", JournalState::Handled, at(1)).await;
    assert_eq!(store.prune(at(2)).await, Ok(1));
    let store = harness.open().await;
    assert!(admit(&*store, &chat, "2").await > first);
}

pub async fn unread_rows_are_those_of_the_key_that_no_step_has_taken(harness: &dyn Harness) {
    let store = harness.open().await;
    let (chat, other) = (key("bot", "c"), key("bot", "d"));
    let session = session(&chat);
    let turn = TurnId { session: session.id.clone(), number: 1 };
    let closed = [
        JournalState::Taken,
        JournalState::Bound(turn),
        JournalState::Handled,
        JournalState::Ignored("nothing".into()),
        JournalState::Denied("no".into()),
        JournalState::Quarantined("bad".into()),
    ];
    let mut journal = Vec::new();
    for (number, state) in closed.into_iter().enumerate() {
        journal.push(change(admit(&*store, &chat, &format!("closed {number}")).await, state));
    }
    admit(&*store, &other, "elsewhere").await;
    let left = admit(&*store, &chat, "left").await;
    let last = admit(&*store, &chat, "last").await;
    store.commit(Commit { journal, ..step(&session) }).await.expect("commits");

    let store = harness.open().await;
    let unread = store.unread(&chat, 10).await.expect("reads");
    assert_eq!(unread.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [left, last]);
    assert_eq!(store.unread(&chat, 1).await, Ok(unread[..1].to_vec()));
}

pub async fn keys_and_addresses_never_collide(harness: &dyn Harness) {
    let store = harness.open().await;
    let thread = |key: SessionKey, thread| SessionKey { thread: Some(thread), ..key };
    let member = |key: SessionKey, member| SessionKey { member: Some(member), ..key };
    let keys = [
        key("a", "b"),
        key("a:b", "c"),
        key("a", "b:c"),
        key("a/b", "c"),
        key("a", "b/c"),
        key("a", "b "),
        key("a", " b"),
        key("a", "B"),
        key("A", "b"),
        key("a", "é"),
        key("a", "e\u{301}"),
        key("a", "🦀"),
        key("a", "b%"),
        key("a", "_"),
        key("a", "'"),
        thread(key("a", "b"), ThreadId::literal("c")),
        member(key("a", "b"), SenderId::literal("c")),
        member(thread(key("a", "b"), ThreadId::literal("c")), SenderId::literal("d")),
        thread(key("a", "b"), ThreadId::literal("c:d")),
        SessionKey { kind: ChatKind::Group, ..key("a", "b") },
        SessionKey { kind: ChatKind::Channel, ..key("a", "b") },
        SessionKey { kind: ChatKind::Thread, ..key("a", "b") },
        SessionKey { kind: ChatKind::Forum, ..key("a", "b") },
        SessionKey { chat: None, ..key("a", "b") },
        SessionKey { chat: None, ..key("A", "b") },
        SessionKey { chat: None, ..thread(key("a", "b"), ThreadId::literal("c")) },
        SessionKey { side: Some(1), ..key("a", "b") },
        SessionKey { side: Some(2), ..key("a", "b") },
        SessionKey { side: Some(1), ..member(key("a", "b"), SenderId::literal("c")) },
    ];
    for (number, key) in keys.iter().enumerate() {
        admit(&*store, key, &format!("event {number}")).await;
        let mut session = session(key);
        session.title = number.to_string();
        session.phase = thinking(&session);
        decide(&*store, &session, &[post(&session, 1, 0)]).await;
    }
    for (number, key) in keys.iter().enumerate() {
        let unread = store.unread(key, 10).await.expect("reads");
        assert_eq!(unread.len(), 1, "{key}");
        assert_eq!(unread[0].1.id.as_str(), format!("event {number}"));
        let session = store.load(key).await.expect("reads").expect("it is there");
        assert_eq!((&session.key, session.title), (key, number.to_string()));
        let members = keys.iter().filter(|other| address(other) == address(key)).count();
        assert_eq!(waiting(&*store, &address(key)).await.len(), members, "{key}");
    }
}

pub async fn pruning_forgets_only_what_has_ended_before(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let turn = TurnId { session: session(&chat).id, number: 1 };
    let open = [JournalState::Unread, JournalState::Taken];
    let ended = [
        JournalState::Bound(turn),
        JournalState::Handled,
        JournalState::Ignored("nothing".into()),
        JournalState::Denied("no".into()),
        JournalState::Quarantined("bad".into()),
    ];
    let mut old = Vec::new();
    for (number, state) in open.iter().chain(&ended).enumerate() {
        let event = format!("old {number}");
        old.push(admit_as(&*store, &chat, &event, state.clone(), at(10)).await);
    }
    let recent = admit_as(&*store, &chat, "recent", JournalState::Handled, at(20)).await;
    assert_eq!(store.prune(at(20)).await, Ok(ended.len() as u64));
    assert_eq!(store.prune(at(20)).await, Ok(0));

    let store = harness.open().await;
    assert_eq!(store.unread(&chat, 10).await.map(|rows| rows.len()), Ok(1));
    let counts = store.counts().await.expect("counts");
    assert_eq!((counts.denied, counts.quarantined), (0, 0));
    let repeat = |event: &str| Delivered {
        account: account("bot"),
        events: vec![(chat.clone(), said(&chat, event, event), JournalState::Handled)],
        cursor: None,
        at: at(30),
    };
    for (event, seq) in [("old 0", old[0]), ("old 1", old[1]), ("recent", recent)] {
        assert_eq!(store.admit(repeat(event)).await, Ok(vec![Admitted::Repeated(seq)]));
    }
    assert!(matches!(store.admit(repeat("old 2")).await.as_deref(), Ok([Admitted::Journalled(_)])));
}

pub async fn pruning_keeps_what_still_has_to_be_delivered(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut session = session(&key("bot", "c"));
    session.phase = thinking(&session);
    let posts: Vec<_> = (1..=6).map(|delivery| post(&session, delivery, 0)).collect();
    let commit = Commit { outbox: posts[..5].to_vec(), at: at(10), ..step(&session) };
    store.commit(commit).await.expect("commits");
    attempt(&*store, &posts[1]).await;
    settle(&*store, &posts[2], delivered()).await;
    settle(&*store, &posts[3], Settlement::Abandoned { reason: "late".into() }).await;
    settle(&*store, &posts[4], Settlement::Undeliverable { reason: "gone".into() }).await;
    preview(&*store, &posts[5]).await;
    settle(&*store, &posts[5], Settlement::Previewed(message("shown"))).await;
    assert_eq!(store.prune(at(10)).await, Ok(0));
    assert_eq!(store.prune(at(11)).await, Ok(3));
    assert_eq!(waiting(&*store, &session.at).await, [(1, 0), (2, 0)]);

    decide(&*store, &session, &posts[5..]).await;
    let kept = parcels(&*store, &session.at).await;
    assert_eq!(kept[2].shown, message("shown"));
}

pub async fn a_forwarded_row_is_unread_where_it_was_forwarded_to(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let side = SessionKey { side: Some(1), ..chat.clone() };
    let [first, second] = [
        admit(&*store, &chat, "1").await,
        admit_as(&*store, &chat, "2", JournalState::Taken, at(1)).await,
    ];
    let forwarded = vec![(first, side.clone()), (second, side.clone()), (Seq(99), side.clone())];
    let commit = Commit { forwarded, ..step(&session(&chat)) };
    store.commit(commit).await.expect("commits");
    let store = harness.open().await;
    assert_eq!(store.unread(&chat, 10).await, Ok(Vec::new()));
    let seqs: Vec<_> =
        store.unread(&side, 10).await.expect("reads").into_iter().map(|(seq, _)| seq).collect();
    assert_eq!(seqs, [first, second]);
    assert_eq!(store.restless(None, 10).await, Ok(vec![side]));
}

pub async fn what_nobody_will_read_is_dropped_with_the_step_that_says_so(harness: &dyn Harness) {
    let store = harness.open().await;
    let (chat, other) = (key("bot", "c"), key("bot", "d"));
    let mut seqs = Vec::new();
    for event in ["1", "2", "3"] {
        seqs.push(admit(&*store, &chat, event).await);
        admit(&*store, &other, &format!("other {event}")).await;
    }
    let taken = admit_as(&*store, &chat, "taken", JournalState::Taken, at(1)).await;
    let dropped = Some(Dropped { before: seqs[2], reason: "stopped".into() });
    store.commit(Commit { dropped, ..step(&session(&chat)) }).await.expect("commits");
    for store in [store, harness.open().await] {
        let left = store.unread(&chat, 10).await.expect("reads");
        assert_eq!(left.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), seqs[2..]);
        assert_eq!(store.unread(&other, 10).await.map(|rows| rows.len()), Ok(3));
        assert_eq!(store.counts().await.map(|counts| counts.unread), Ok(4));
        // It has ended, so it can be forgotten; what is taken has not.
        let repeat = Delivered {
            account: account("bot"),
            events: vec![(chat.clone(), said(&chat, "taken", "taken"), JournalState::Unread)],
            cursor: None,
            at: at(2),
        };
        assert_eq!(store.admit(repeat).await, Ok(vec![Admitted::Repeated(taken)]));
    }
    assert_eq!(harness.open().await.prune(at(9)).await, Ok(2));
}

pub async fn a_row_that_was_not_let_in_stays_so_and_begins_no_conversation(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let denied = JournalState::Denied("not on the list".into());
    let seq = admit_as(&*store, &chat, "1", denied.clone(), at(1)).await;
    let known = admit(&*store, &key("bot", "d"), "2").await;
    assert!(seq < known);
    for state in [JournalState::Unread, JournalState::Taken, JournalState::Handled] {
        let commit = Commit { journal: vec![change(seq, state)], ..step(&session(&chat)) };
        store.commit(commit).await.expect("commits");
        assert_eq!(store.unread(&chat, 10).await, Ok(Vec::new()));
        assert_eq!(store.counts().await.map(|counts| counts.denied), Ok(1));
    }
    let side = SessionKey { side: Some(1), ..chat.clone() };
    let forwarded = vec![(seq, side.clone())];
    store.commit(Commit { forwarded, ..step(&session(&chat)) }).await.expect("commits");
    assert_eq!(store.unread(&side, 10).await, Ok(Vec::new()), "nobody hands it on");
    assert_eq!(store.counts().await.map(|counts| counts.denied), Ok(1));
    let store = harness.open().await;
    let later = admit_as(&*store, &chat, "3", denied.clone(), at(4)).await;
    assert!(later > known);
    for (bot, since, limit, expected) in [
        ("bot", 1, 10, vec![at(1), at(4)]),
        ("bot", 1, 1, vec![at(1)]),
        ("bot", 2, 10, vec![at(4)]),
        ("bot", 5, 10, Vec::new()),
        ("other", 0, 10, Vec::new()),
    ] {
        assert_eq!(store.denied(&account(bot), at(since), limit).await, Ok(expected));
    }
    let repeat = Delivered {
        account: account("bot"),
        events: vec![(chat.clone(), said(&chat, "1", "1"), denied)],
        cursor: None,
        at: at(2),
    };
    assert_eq!(store.admit(repeat).await, Ok(vec![Admitted::Repeated(seq)]));
    assert_eq!(store.prune(at(5)).await, Ok(2));
    assert_eq!(store.counts().await.map(|counts| counts.denied), Ok(0));
}

pub async fn a_row_that_nobody_answers_is_known_and_read_by_nobody(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let seq = admit_as(&*store, &chat, "1", JournalState::Ignored("not to us".into()), at(1)).await;
    assert_eq!(store.unread(&chat, 10).await, Ok(Vec::new()));
    assert_eq!(store.load(&chat).await, Ok(None));
    assert_eq!(store.counts().await.map(|counts| counts.unread), Ok(0));
    assert_eq!(store.conversations(None, 10).await.map(|all| all.len()), Ok(0));
    let repeat = Delivered {
        account: account("bot"),
        events: vec![(chat.clone(), said(&chat, "1", "hello"), JournalState::Unread)],
        cursor: None,
        at: at(2),
    };
    assert_eq!(store.admit(repeat).await, Ok(vec![Admitted::Repeated(seq)]));
}

pub async fn what_is_known_of_an_event_by_now_takes_the_place_of_what_arrived(
    harness: &dyn Harness,
) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let unread = admit(&*store, &chat, "1").await;
    let denied = admit_as(&*store, &chat, "2", JournalState::Denied("no".into()), at(1)).await;
    let file = FileRef::new(FileId::literal("f"), "f", "text/plain", 1);
    let amended = |id: &str| {
        let message =
            Message { text: "see".into(), files: vec![file.clone()], ..Message::default() };
        Inbound { kind: InboundKind::Said(message), ..said(&chat, id, "see") }
    };
    for (seq, id) in [(unread, "1"), (denied, "2"), (Seq(999), "3")] {
        store.amend(seq, &amended(id)).await.expect("amends");
    }
    let store = harness.open().await;
    assert_eq!(store.unread(&chat, 10).await, Ok(vec![(unread, amended("1"))]));
    assert_eq!(store.uses(std::slice::from_ref(&file.id)).await, Ok(vec![Use::Present]));

    let journal = vec![change(unread, JournalState::Handled)];
    store.commit(Commit { journal, ..step(&session(&chat)) }).await.expect("commits");
    let other = FileRef::new(FileId::literal("g"), "g", "text/plain", 1);
    let mut late = amended("1");
    if let InboundKind::Said(message) = &mut late.kind {
        message.files = vec![other.clone()];
    }
    store.amend(unread, &late).await.expect("amends");
    assert_eq!(store.uses(&[file.id, other.id]).await, Ok(vec![Use::Past, Use::None]));
}

pub async fn a_row_that_nobody_answers_after_all_keeps_what_is_left_of_it(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let file = FileRef::new(FileId::literal("f"), "f", "text/plain", 1);
    let message =
        Message { text: "all of it".into(), files: vec![file.clone()], ..Message::default() };
    let whole = Inbound { kind: InboundKind::Said(message), ..said(&chat, "1", "all of it") };
    let ignored = admit(&*store, &chat, "1").await;
    store.amend(ignored, &whole).await.expect("amends");
    let denied = admit_as(&*store, &chat, "2", JournalState::Denied("no".into()), at(1)).await;
    let taken = admit(&*store, &chat, "3").await;
    let unread = admit(&*store, &chat, "4").await;
    let journal = vec![change(taken, JournalState::Handled)];
    store.commit(Commit { journal, ..step(&session(&chat)) }).await.expect("commits");
    for (seq, id) in [(ignored, "1"), (denied, "2"), (taken, "3"), (Seq(999), "5")] {
        store.ignore(seq, &said(&chat, id, "all"), "a hook dropped it").await.expect("ignores");
    }
    let store = harness.open().await;
    let rows = store.unread(&chat, 10).await.expect("reads");
    assert_eq!(rows.into_iter().map(|(seq, _)| seq).collect::<Vec<_>>(), [unread]);
    let state = async |id: &str| {
        let traced = store.trace(&Clue::Id(id.to_owned()), 1).await.expect("reads");
        traced.into_iter().next().map(|traced| (traced.state, traced.inbound))
    };
    let why = JournalState::Ignored("a hook dropped it".into());
    assert_eq!(state("1").await, Some((why, said(&chat, "1", "all"))));
    assert_eq!(state("2").await.map(|row| row.0), Some(JournalState::Denied("no".into())));
    assert_eq!(state("3").await.map(|row| row.0), Some(JournalState::Handled));
    assert_eq!(store.uses(&[file.id]).await, Ok(vec![Use::None]), "nobody needs its file");
    assert_eq!(store.counts().await.expect("reads").denied, 1);
}

pub async fn words_that_a_step_conceals_are_gone_with_it(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    let of = FileId::literal("voice");
    let words = Understood::Words("ABCD2345".into());
    let spoken = Transcript { of, said: words, owner: Owner::Sender };
    let message = |text: &str, transcripts: &[Transcript]| Message {
        id: Some(MessageId::literal("m")),
        text: text.into(),
        transcripts: transcripts.to_vec(),
        ..Message::default()
    };
    let kinds = |text: &str, transcripts: &[Transcript]| {
        [
            InboundKind::Said(message(text, transcripts)),
            InboundKind::Edited(message(text, transcripts)),
            InboundKind::Stopped,
        ]
    };
    let row =
        |place: usize, kind: InboundKind| Inbound { kind, ..said(&chat, &place.to_string(), "") };
    let arrived = kinds("ABCD2345", &[spoken]).into_iter().enumerate();
    let events =
        arrived.map(|(place, kind)| (chat.clone(), row(place, kind), JournalState::Unread));
    let delivered =
        Delivered { account: account("bot"), events: events.collect(), cursor: None, at: at(1) };
    let admitted = store.admit(delivered).await.expect("admits");
    let seqs: Vec<Seq> = admitted
        .into_iter()
        .map(|admitted| match admitted {
            Admitted::Journalled(seq) | Admitted::Repeated(seq) => seq,
        })
        .collect();
    let concealed = seqs.iter().map(|seq| (*seq, "\"it\" is gone".to_owned())).collect();
    store.commit(Commit { concealed, ..step(&session(&chat)) }).await.expect("commits");
    let store = harness.open().await;
    let kept = kinds("\"it\" is gone", &[]).into_iter().enumerate();
    let kept = kept.map(|(place, kind)| (seqs[place], row(place, kind))).collect();
    assert_eq!(store.unread(&chat, 10).await, Ok(kept));
}
