//! What is watched, and what is forgotten in the end.

use std::collections::HashSet;

use talaria_model::{Entry, SessionId, Timestamp};
use talaria_session::{Beside, Life, Retired, Session, SessionKey};

use super::Harness;
use super::world::{
    admit, at, attempt, decide, delivered, direct, entry, key, person, post, record, session,
    settle, step, thinking,
};
use crate::{Branch, Commit, Retirement, Rewind, SearchScope, Store, Wanted};

fn used(chat: &str, active: i64) -> Session {
    let mut session = session(&key("bot", chat));
    (session.turns, session.active, session.updated) = (1, at(active), at(active));
    session.life = Life::Continuing;
    session
}

type Page = Result<Vec<SessionKey>, crate::StoreError>;

async fn pages(page: impl AsyncFn(Option<SessionKey>) -> Page) -> HashSet<SessionKey> {
    let mut found = HashSet::new();
    let mut after = None;
    loop {
        let page = page(after).await.expect("reads");
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

fn keys(chats: &[&str]) -> HashSet<SessionKey> {
    chats.iter().map(|chat| key("bot", chat)).collect()
}

pub async fn sessions_that_may_be_over_are_found_page_by_page(harness: &dyn Harness) {
    let store = harness.open().await;
    for chat in ["old 1", "old 2", "old 3"] {
        store.commit(step(&used(chat, 10))).await.expect("commits");
    }
    store.commit(step(&used("recent", 20))).await.expect("commits");
    type Change = fn(&mut Session);
    let changes: [(&str, Change); 5] = [
        ("busy", |session| session.phase = thinking(session)),
        ("over", |session| session.life = Life::Finalized),
        ("suspended", |session| session.life = Life::Suspended),
        ("silent", |session| session.turns = 0),
        ("side", |session| session.key.side = Some(1)),
    ];
    for (chat, change) in changes {
        let mut session = used(chat, 10);
        change(&mut session);
        store.commit(step(&session)).await.expect("commits");
    }
    for store in [store, harness.open().await] {
        let quiet = pages(async |after| store.quiet_since(at(20), after, 2).await).await;
        assert_eq!(quiet, keys(&["old 1", "old 2", "old 3"]));
        let active = pages(async |after| store.active_since(at(20), after, 2).await).await;
        assert_eq!(active, keys(&["recent"]));
        assert_eq!(pages(async |after| store.active_since(at(10), after, 2).await).await.len(), 9);
        // What was put away is not looked at again.
        let mut over = used("old 1", 10);
        over.life = Life::Finalized;
        store.commit(step(&over)).await.expect("commits");
        let quiet = pages(async |after| store.quiet_since(at(20), after, 2).await).await;
        assert_eq!(quiet, keys(&["old 2", "old 3"]));
        store.commit(step(&used("old 1", 10))).await.expect("commits");
    }
}

pub async fn tries_to_put_a_life_away_are_counted(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut session = used("c", 10);
    store.commit(step(&session)).await.expect("commits");
    let first = session.id.clone();
    assert_eq!(store.put_away(&first).await, Ok(1));
    assert_eq!(store.put_away(&first).await, Ok(2));
    let store = harness.open().await;
    store.commit(step(&session)).await.expect("commits");
    assert_eq!(store.put_away(&first).await, Ok(3));
    session.id = SessionId::literal("second");
    store.commit(step(&session)).await.expect("commits");
    assert_eq!(store.put_away(&session.id).await, Ok(1));
    assert_eq!(store.put_away(&SessionId::literal("unknown")).await, Ok(0));
}

async fn lives(store: &dyn Store) -> HashSet<String> {
    let lives = store.lives(&SearchScope::Everything, None, 100).await.expect("reads");
    lives.into_iter().map(|life| life.past.id.to_string()).collect()
}

fn named(chat: &str, active: i64) -> Session {
    Session { id: SessionId::new(chat).expect("a test\'s id"), ..used(chat, active) }
}

pub async fn old_lives_are_forgotten_with_all_that_was_recorded_in_them(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut session = direct(&key("bot", "c"), "alice");
    session.active = at(10);
    record(&*store, &session, &["an old canary", "another"]).await;
    let first = session.id.clone();
    let rewinds = vec![Rewind { session: first.clone(), from: 2, upto: 2, by: None }];
    let retired = Some(Retirement { past: session.past(), why: Retired::New });
    (session.id, session.active) = (SessionId::literal("second"), at(30));
    store.commit(Commit { retired, rewinds, ..step(&session) }).await.expect("commits");
    record(&*store, &session, &["a young canary"]).await;
    let wanted = Wanted::new(SearchScope::Owner(person("bot", "alice")), "canary", 10);
    assert_eq!(store.search(&wanted).await.map(|found| found.len()), Ok(2));

    assert_eq!(store.forget_lives(at(10), &[]).await, Ok(0));
    assert_eq!(store.forget_lives(at(30), &[]).await, Ok(1));
    for store in [store, harness.open().await] {
        assert_eq!(store.forget_lives(at(30), &[]).await, Ok(0));
        assert_eq!(store.life(&first).await, Ok(None));
        assert_eq!(store.history(&first, 10).await, Ok(Vec::new()));
        assert_eq!(store.rewinds(&first).await, Ok(Vec::new()));
        assert_eq!(store.history(&session.id, 10).await.map(|entries| entries.len()), Ok(1));
        assert_eq!(store.search(&wanted).await.map(|found| found.len()), Ok(1));
        assert_eq!(store.transcript(&session.key, None, 10).await.map(|all| all.len()), Ok(1));
        assert_eq!(
            store.counts().await.map(|counts| (counts.sessions, counts.entries)),
            Ok((1, 1))
        );
        assert_eq!(store.load(&session.key).await, Ok(Some(session.clone())));
    }
    let store = harness.open().await;
    assert_eq!(store.forget_lives(at(31), &[]).await, Ok(1));
    assert_eq!(store.load(&session.key).await, Ok(None));
    assert_eq!(store.counts().await.map(|counts| (counts.sessions, counts.entries)), Ok((0, 0)));
    // It can begin again, and positions do not come back.
    record(&*store, &session, &["a new canary"]).await;
    let found = store.search(&wanted).await.expect("searches");
    assert_eq!(found.iter().map(|one| one.recorded.position).collect::<Vec<_>>(), [4]);
}

pub async fn forgetting_spares_what_is_needed(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut busy = named("busy", 10);
    busy.phase = thinking(&busy);
    let suspended = Session { life: Life::Suspended, ..named("suspended", 10) };
    let beside = vec![Beside { side: 1, since: at(1) }];
    let working = Session { background: beside, ..named("working", 10) };
    let [gone, spared, unread, speaking] =
        ["gone", "spared", "unread", "speaking"].map(|chat| named(chat, 10));
    for session in [&busy, &suspended, &working, &gone, &spared, &unread, &speaking] {
        store.commit(step(session)).await.expect("commits");
    }
    admit(&*store, &unread.key, "1").await;
    decide(&*store, &speaking, &[post(&speaking, 1, 0)]).await;
    // What a branch begins with is kept for it.
    let source = named("source", 10);
    record(&*store, &source, &["one", "two"]).await;
    let branch = Branch { from: source.id.clone(), to: SessionId::literal("branch"), upto: 2 };
    let next = Session { id: branch.to.clone(), ..used("source", 30) };
    store.commit(Commit { branch: Some(branch), ..step(&next) }).await.expect("commits");
    let retired = Some(Retirement { past: source.past(), why: Retired::Branched });
    store.commit(Commit { retired, ..step(&next) }).await.expect("commits");

    let spare = [spared.key.clone()];
    assert_eq!(store.forget_lives(at(20), &spare).await, Ok(1));
    let left = ["busy", "suspended", "working", "spared", "unread", "speaking", "source", "branch"];
    assert_eq!(lives(&*store).await, left.map(str::to_owned).into());
    assert_eq!(store.history(&next.id, 10).await.map(|entries| entries.len()), Ok(2));

    let store = harness.open().await;
    attempt(&*store, &post(&speaking, 1, 0)).await;
    settle(&*store, &post(&speaking, 1, 0), delivered()).await;
    assert_eq!(store.forget_lives(at(31), &[]).await, Ok(4));
    let left = ["busy", "suspended", "working", "unread"];
    assert_eq!(lives(&*store).await, left.map(str::to_owned).into());

    // Something beside it of which nothing was heard for so long does not work any more.
    let until = working.background[0].until().as_millis();
    assert_eq!(store.forget_lives(at(until), &[]).await, Ok(1));
    let left = ["busy", "suspended", "unread"];
    assert_eq!(lives(&*store).await, left.map(str::to_owned).into());
}

pub async fn old_entries_are_forgotten_and_their_lives_go_on(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = used("c", 100);
    let mut busy = used("busy", 100);
    busy.phase = thinking(&busy);
    for (now, number) in [(10, 1), (20, 2), (30, 3)] {
        for session in [&session, &busy] {
            let entry = Entry { at: at(now), ..entry(number, &format!("canary at {now}")) };
            let entries = vec![(session.id.clone(), entry)];
            store.commit(Commit { entries, ..step(session) }).await.expect("commits");
        }
    }
    assert_eq!(store.forget_entries(at(10)).await, Ok(0));
    assert_eq!(store.forget_entries(at(30)).await, Ok(2));
    let numbers = async |store: &dyn Store, life: &SessionId| {
        let history = store.history(life, 10).await.expect("reads");
        history.iter().map(|entry| entry.number).collect::<Vec<_>>()
    };
    let wanted = Wanted::new(SearchScope::Everything, "canary", 10);
    for store in [store, harness.open().await] {
        assert_eq!(numbers(&*store, &session.id).await, [3]);
        assert_eq!(numbers(&*store, &busy.id).await, [1, 2, 3]);
        assert_eq!(store.search(&wanted).await.map(|found| found.len()), Ok(4));
        assert_eq!(store.counts().await.map(|counts| counts.entries), Ok(4));
        store.shrink().await.expect("shrinks");
        assert_eq!(store.forget_entries(at(30)).await, Ok(0));
    }
    let store = harness.open().await;
    assert_eq!(store.forget_entries(Timestamp::from_millis(i64::MAX)).await, Ok(1));
    record(&*store, &session, &["canary again"]).await;
    let found = store.search(&wanted).await.expect("searches");
    assert_eq!(found.first().map(|one| one.recorded.position), Some(7));
}
