//! What conversations are and what was said in them.

use std::collections::HashSet;

use talaria_model::{
    CallId, Choice, ChoiceId, Cost, Entry, EntryBody, FileId, FileRef, Message, MessageId,
    Question, RoleId, Seq, SessionId, Shown, ToolCall, TurnId, Usage,
};
use talaria_session::{Joins, Paid, Phase, SessionKey, Waiting};

use super::Harness;
use super::world::{
    account, address, admit, admit_as, alice, answer, at, change, decide, entry, hand, key,
    parcels, post, record, session, settle, step, thinking, waiting,
};
use crate::{Commit, Counts, JournalState, Settlement, Store, StoreError};

fn held(seq: u64, key: &SessionKey) -> Waiting {
    let message = Message { text: format!("held {seq}"), ..Message::default() };
    let roles = vec![RoleId::literal("cooks")];
    let (from, to) = (alice(), address(key));
    Waiting { seq: Seq(seq), from, to, roles, message, joins: Joins::Nothing, paid: Paid::Already }
}

pub async fn a_session_comes_back_as_it_was_in_every_phase(harness: &dyn Harness) {
    let mut store = harness.open().await;
    let key = key("bot", "c");
    assert_eq!(store.load(&key).await, Ok(None));
    let mut session = session(&key);
    session.title = "Über \"quotes\"\n\u{0}and 🦀".into();
    session.usage = Usage { input: u64::MAX >> 1, output: 2, ..Usage::default() };
    let mut busy = hand(&session);
    busy.steers.push(held(7, &key));
    busy.started.push(CallId::literal("call"));
    let question = Question {
        call: CallId::literal("ask"),
        text: "Which?".into(),
        choices: vec![Choice { id: ChoiceId::literal("a"), label: "This".into() }],
        approval: None,
    };
    let (hand, since, expires) = (busy.clone(), at(3), at(9));
    let asking = Phase::Asking { hand, question, since, expires, sent: None };
    let interrupting = Phase::Interrupting(busy.clone());
    let thinking = Phase::Thinking(busy.clone());
    for phase in [Phase::Idle, thinking, asking, interrupting, Phase::Stopping(busy)] {
        session.phase = phase;
        session.waiting.push_back(held(9, &key));
        session.turns += 1;
        store.commit(step(&session)).await.expect("commits");
        assert_eq!(store.load(&key).await, Ok(Some(session.clone())));
        store = harness.open().await;
        assert_eq!(store.load(&key).await, Ok(Some(session.clone())));
    }
}

pub async fn a_step_is_all_or_nothing(harness: &dyn Harness) {
    let store = harness.open().await;
    let (mine, other) = (key("bot", "c"), key("bot", "d"));
    let stranger = session(&other);
    store.commit(step(&stranger)).await.expect("commits");
    let before = session(&mine);
    store.commit(step(&before)).await.expect("commits");
    let seq = admit(&*store, &mine, "1").await;

    let mut after = before.clone();
    after.title = "changed".into();
    after.phase = thinking(&after);
    let refused = store
        .commit(Commit {
            journal: vec![change(seq, JournalState::Handled)],
            entries: vec![
                (after.id.clone(), entry(1, "recorded")),
                (stranger.id.clone(), entry(1, "smuggled")),
            ],
            outbox: vec![post(&after, 1, 0)],
            ..step(&after)
        })
        .await;
    assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{refused:?}");

    let unchanged = async |store: &dyn Store| {
        assert_eq!(store.load(&mine).await, Ok(Some(before.clone())));
        assert_eq!(store.unread(&mine, 10).await.map(|rows| rows.len()), Ok(1));
        assert_eq!(store.history(&before.id, 10).await, Ok(Vec::new()));
        assert_eq!(store.history(&stranger.id, 10).await, Ok(Vec::new()));
        assert_eq!(parcels(store, &before.at).await, []);
        assert_eq!(store.counts().await.map(|counts| counts.entries), Ok(0));
    };
    unchanged(&*store).await;
    unchanged(&*harness.open().await).await;
}

pub async fn a_life_of_another_conversation_is_refused(harness: &dyn Harness) {
    let store = harness.open().await;
    let (first, mut second) = (session(&key("bot", "c")), session(&key("bot", "d")));
    record(&*store, &first, &["private"]).await;
    second.id = first.id.clone();
    let refused = store.commit(step(&second)).await;
    assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{refused:?}");
    second.id = SessionId::literal("another");
    let commit = Commit { outbox: vec![post(&first, 1, 0)], ..step(&second) };
    let refused = store.commit(commit).await;
    assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{refused:?}");
    assert_eq!(store.load(&second.key).await, Ok(None));
    store.commit(step(&second)).await.expect("commits");
}

pub async fn history_is_the_newest_of_one_life_oldest_first(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut session = session(&key("bot", "c"));
    let first = session.id.clone();
    record(&*store, &session, &["one", "two"]).await;
    session.id = SessionId::literal("second");
    record(&*store, &session, &["three"]).await;
    let other = super::world::session(&key("bot", "d"));
    record(&*store, &other, &["elsewhere"]).await;
    let late = vec![(first.clone(), entry(3, "late"))];
    store.commit(Commit { entries: late, ..step(&session) }).await.expect("commits");

    let store = harness.open().await;
    let texts = async |life: &SessionId, limit| texts(&store.history(life, limit).await);
    assert_eq!(texts(&first, 10).await, ["one", "two", "late"]);
    assert_eq!(texts(&first, 2).await, ["two", "late"]);
    assert_eq!(texts(&session.id, 10).await, ["three"]);
    assert_eq!(texts(&SessionId::literal("unknown"), 10).await, [""; 0]);
}

fn texts(entries: &Result<Vec<Entry>, StoreError>) -> Vec<String> {
    let entries = entries.as_ref().expect("reads");
    let text = |entry: &Entry| crate::visible(&entry.body).unwrap_or_default().to_owned();
    entries.iter().map(text).collect()
}

pub async fn a_transcript_spans_lives_and_is_read_page_by_page(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut session = session(&key("bot", "c"));
    let other = super::world::session(&key("bot", "d"));
    record(&*store, &session, &["one", "two"]).await;
    record(&*store, &other, &["elsewhere"]).await;
    let first = std::mem::replace(&mut session.id, SessionId::literal("second"));
    record(&*store, &session, &["three", "four", "five"]).await;

    let store = harness.open().await;
    let mut pages = Vec::new();
    let mut before = None;
    loop {
        let page = store.transcript(&session.key, before, 2).await.expect("reads");
        let Some(oldest) = page.first() else { break };
        before = Some(oldest.position);
        assert!(page.is_sorted_by_key(|recorded| recorded.position));
        let lives: Vec<_> = page.iter().map(|recorded| recorded.session.clone()).collect();
        let page = page.into_iter().map(|recorded| recorded.entry).collect();
        pages.push((lives, texts(&Ok(page))));
    }
    let second = session.id;
    let page = |lives: [&SessionId; 2], texts: [&str; 2]| {
        (lives.map(SessionId::clone).to_vec(), texts.map(str::to_owned).to_vec())
    };
    assert_eq!(
        pages,
        [
            page([&second, &second], ["four", "five"]),
            page([&first, &second], ["two", "three"]),
            (vec![first], vec!["one".to_owned()]),
        ]
    );
}

pub async fn entries_come_back_as_they_were(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = session(&key("bot", "c"));
    let id = super::world::outbound_id(&session.id, 1, 0);
    let file = FileRef::new(FileId::literal("digest"), "a\u{0}b.txt", "text/plain", 1 << 40);
    let file = FileRef { shown: Shown::Document, ..file };
    let call = ToolCall {
        id: CallId::literal("call"),
        tool: "search".into(),
        arguments: "{ \"q\" :  1 }".into(),
    };
    let turn = Some(TurnId { session: session.id.clone(), number: 1 });
    let bodies = [
        EntryBody::Said {
            from: alice(),
            text: "\u{1F980}\r\n".into(),
            files: vec![file.clone()],
            heard: Some("[Alice] \u{1F980}".into()),
            message: Some(MessageId::literal("m")),
            forwarded: None,
        },
        EntryBody::Aside {
            from: alice(),
            text: "/help".into(),
            files: vec![file.clone()],
            message: Some(MessageId::literal("m")),
        },
        EntryBody::Answered {
            text: String::new(),
            files: vec![file.clone()],
            calls: vec![call],
            reasoning: Some("signed".into()),
            usage: Usage {
                input: 1,
                output: 2,
                cache_read: 3,
                cache_write: 4,
                reasoning: 5,
                estimated: 6,
            },
            cost: Cost::known(42),
            sent: Some(id.clone()),
            extent: talaria_model::Extent::BrokenOff,
        },
        EntryBody::Returned {
            call: CallId::literal("call"),
            output: "x".repeat(100_000),
            files: vec![file],
            failed: true,
        },
        EntryBody::Noticed {
            text: "Which?".into(),
            choices: vec![Choice { id: ChoiceId::literal("a"), label: "This".into() }],
            files: Vec::new(),
            sent: id,
        },
    ];
    let entries: Vec<Entry> = bodies
        .into_iter()
        .zip(1..)
        .map(|(body, number)| Entry {
            number,
            at: at(-5),
            turn: turn.clone(),
            body,
            because: None,
            about: None,
            resumed: None,
        })
        .collect();
    let recorded = entries.iter().map(|entry| (session.id.clone(), entry.clone())).collect();
    store.commit(Commit { entries: recorded, ..step(&session) }).await.expect("commits");
    let store = harness.open().await;
    assert_eq!(store.history(&session.id, 10).await, Ok(entries));
}

pub async fn conversations_are_listed_by_last_use(harness: &dyn Harness) {
    let store = harness.open().await;
    for (account, chat, updated) in [("a", "old", 1), ("b", "newest", 9), ("a", "new", 5)] {
        let mut session = session(&key(account, chat));
        session.updated = at(updated);
        session.title = format!("about {chat}");
        session.turns = 3;
        session.phase = if chat == "new" { thinking(&session) } else { Phase::Idle };
        store.commit(step(&session)).await.expect("commits");
    }
    admit(&*store, &key("a", "unheard"), "1").await;
    let list = async |name: Option<&str>, limit| {
        let account = name.map(account);
        let listed = store.conversations(account.as_ref(), limit).await.expect("reads");
        listed.into_iter().map(|summary| (summary.title, summary.busy)).collect::<Vec<_>>()
    };
    let [old, new, newest] =
        [("old", false), ("new", true), ("newest", false)].map(|(t, b)| (format!("about {t}"), b));
    assert_eq!(list(None, 10).await, [newest.clone(), new.clone(), old.clone()]);
    assert_eq!(list(None, 1).await, [newest]);
    assert_eq!(list(Some("a"), 10).await, [new, old]);
    assert_eq!(list(Some("c"), 10).await, []);
    let summary = store.conversations(None, 1).await.expect("reads").remove(0);
    assert_eq!((summary.key, summary.turns), (key("b", "newest"), 3));
    assert_eq!(summary.at, address(&key("b", "newest")));
    admit(&*store, &key("b", "newest"), "2").await;
    let summary = store.conversations(None, 1).await.expect("reads").remove(0);
    assert!(summary.busy, "what is unread is still to be answered");
}

pub async fn restless_sessions_are_found_page_by_page(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut restless = HashSet::new();
    for number in 0..12 {
        let key = key("bot", &format!("chat {number}"));
        let mut session = session(&key);
        match number % 4 {
            0 => session.phase = thinking(&session),
            1 => session.waiting.push_back(held(1, &key)),
            2 => {
                admit(&*store, &key, &format!("event {number}")).await;
            }
            _ => {
                admit_as(&*store, &key, &format!("event {number}"), JournalState::Handled, at(1))
                    .await;
            }
        }
        if number % 4 < 3 {
            restless.insert(key.clone());
        }
        // A chat may have something unread before there is a session.
        if number != 2 {
            store.commit(step(&session)).await.expect("commits");
        }
    }
    assert_eq!(all_restless(&*store).await, restless);
    let quiet = key("bot", "chat 0");
    store.commit(step(&session(&quiet))).await.expect("commits");
    restless.remove(&quiet);
    let store = harness.open().await;
    assert_eq!(all_restless(&*store).await, restless);
}

async fn all_restless(store: &dyn Store) -> HashSet<SessionKey> {
    let mut found = HashSet::new();
    let mut after = None;
    loop {
        let page = store.restless(after, 2).await.expect("reads");
        assert!(page.len() <= 2);
        after = page.last().cloned();
        for key in page {
            assert!(found.insert(key), "a key is on one page only");
        }
        if after.is_none() {
            return found;
        }
    }
}

pub async fn everything_is_counted(harness: &dyn Harness) {
    let store = harness.open().await;
    assert_eq!(store.counts().await, Ok(Counts::default()));
    let (idle, mut busy) = (session(&key("bot", "c")), session(&key("bot", "d")));
    busy.phase = thinking(&busy);
    record(&*store, &idle, &["one", "two"]).await;
    store
        .commit(Commit { entries: vec![(busy.id.clone(), answer(1, "three"))], ..step(&busy) })
        .await
        .expect("commits");
    let states = [
        JournalState::Unread,
        JournalState::Unread,
        JournalState::Unread,
        JournalState::Handled,
        JournalState::Denied("no".into()),
        JournalState::Denied("no".into()),
        JournalState::Quarantined("bad".into()),
    ];
    for (number, state) in states.into_iter().enumerate() {
        admit_as(&*store, &idle.key, &number.to_string(), state, at(1)).await;
    }
    let posts: Vec<_> = (1..=5).map(|delivery| post(&busy, delivery, 0)).collect();
    decide(&*store, &busy, &posts).await;
    settle(&*store, &posts[0], super::world::delivered()).await;
    settle(&*store, &posts[1], Settlement::Undeliverable { reason: "gone".into() }).await;
    settle(&*store, &posts[2], Settlement::Abandoned { reason: "late".into() }).await;
    assert_eq!(waiting(&*store, &busy.at).await, [(4, 0), (5, 0)]);
    let counts = Counts {
        sessions: 2,
        turns_in_hand: 1,
        unread: 3,
        quarantined: 1,
        denied: 2,
        undelivered: 2,
        failed: 2,
        entries: 3,
    };
    assert_eq!(store.counts().await, Ok(counts));
    assert_eq!(harness.open().await.counts().await, Ok(counts));
}
