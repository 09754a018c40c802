//! What conversations were before: their lives, names, branches, and what was taken back.

use talaria_model::{Cost, Entry, SenderId, SessionId, Timestamp, Usage};
use talaria_session::{Retired, Session};

use super::Harness;
use super::world::{
    account, answer, at, direct, entry, key, outbound_id, person, post, session, step, summary,
};
use crate::{
    Branch, Commit, Kept, Life, Named, Owner, Presence, Reading, Retirement, Rewind, Rewound,
    SearchScope, Store, StoreError, Totals,
};

fn id(text: &str) -> SessionId {
    SessionId::new(text).expect("a test's id")
}

/// Records entries with these numbers in a life.
async fn fill(store: &dyn Store, session: &Session, numbers: std::ops::RangeInclusive<u32>) {
    let entries =
        numbers.map(|number| (session.id.clone(), entry(number, &format!("entry {number}"))));
    let commit = Commit { entries: entries.collect(), ..step(session) };
    store.commit(commit).await.expect("commits");
}

/// The conversation goes on with another life.
async fn go_on(store: &dyn Store, session: &mut Session, to: &str, now: Timestamp) {
    let retired = Some(Retirement { past: session.past(), why: Retired::New });
    session.id = id(to);
    session.lives += 1;
    (session.turns, session.entries, session.title) = (0, 0, String::new());
    (session.begun, session.active, session.updated) = (now, now, now);
    let commit = Commit { retired, at: now, ..step(session) };
    store.commit(commit).await.expect("commits");
}

fn rewind(life: &SessionId, from: u32, upto: u32) -> Rewind {
    Rewind { session: life.clone(), from, upto, by: Some(SenderId::literal("alice")) }
}

async fn numbers(store: &dyn Store, life: &SessionId) -> Vec<u32> {
    let history = store.history(life, 100).await.expect("reads");
    history.iter().map(|entry| entry.number).collect()
}

async fn all(store: &dyn Store, life: &SessionId, reading: Reading) -> Vec<Kept> {
    let mut entries = Vec::new();
    let mut after = None;
    loop {
        let page = store.entries(life, reading, after, 2).await.expect("reads");
        let Some(last) = page.last() else { return entries };
        after = Some(last.recorded.position);
        entries.extend(page);
    }
}

pub async fn what_is_taken_back_is_kept_with_who_and_when(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = session(&key("bot", "c"));
    fill(&*store, &session, 1..=6).await;
    let rewinds = vec![rewind(&session.id, 3, 4)];
    let entries = vec![(session.id.clone(), entry(7, "undone"))];
    let commit = Commit { rewinds, entries, at: at(50), ..step(&session) };
    store.commit(commit).await.expect("commits");
    let rewinds = vec![Rewind { by: None, ..rewind(&session.id, 4, 6) }];
    store.commit(Commit { rewinds, at: at(60), ..step(&session) }).await.expect("commits");

    for store in [store, harness.open().await] {
        assert_eq!(numbers(&*store, &session.id).await, [1, 2, 7]);
        let transcript = store.transcript(&session.key, None, 10).await.expect("reads");
        assert_eq!(transcript.iter().map(|one| one.entry.number).collect::<Vec<_>>(), [1, 2, 7]);
        let standing = all(&*store, &session.id, Reading::Standing).await;
        let number = |kept: &Kept| kept.recorded.entry.number;
        assert_eq!(standing.iter().map(number).collect::<Vec<_>>(), [1, 2, 7]);
        let first = Rewound {
            from: 3,
            upto: 4,
            entries: 2,
            by: Some(SenderId::literal("alice")),
            at: at(50),
        };
        let second = Rewound { from: 4, upto: 6, entries: 2, by: None, at: at(60) };
        let everything = all(&*store, &session.id, Reading::Everything).await;
        let audit: Vec<_> =
            everything.iter().map(|kept| (number(kept), kept.rewound.clone())).collect();
        let (one, other) = (Some(first.clone()), Some(second.clone()));
        assert_eq!(
            audit,
            [
                (1, None),
                (2, None),
                (3, one.clone()),
                (4, one),
                (5, other.clone()),
                (6, other),
                (7, None),
            ]
        );
        assert_eq!(store.rewinds(&session.id).await, Ok(vec![first, second]));
        assert_eq!(store.rewinds(&id("unknown")).await, Ok(Vec::new()));
        assert_eq!(store.counts().await.map(|counts| counts.entries), Ok(7));
    }
}

pub async fn a_summary_stands_for_what_is_before_it(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = session(&key("bot", "c"));
    fill(&*store, &session, 1..=8).await;
    let life = session.id.clone();
    let add = async |entry: Entry| {
        let entries = vec![(life.clone(), entry)];
        store.commit(Commit { entries, ..step(&session) }).await.expect("commits");
    };
    add(summary(9, 2, 6)).await;
    add(entry(10, "after it")).await;
    assert_eq!(numbers(&*store, &life).await, [1, 2, 9, 7, 8, 10]);
    let newest = store.history(&life, 4).await.expect("reads");
    assert_eq!(newest.iter().map(|entry| entry.number).collect::<Vec<_>>(), [1, 2, 9, 10]);
    for number in 11..=20 {
        add(answer(number, "more")).await;
    }
    let store = harness.open().await;
    let newest = store.history(&life, 6).await.expect("reads");
    let newest: Vec<u32> = newest.iter().map(|entry| entry.number).collect();
    assert_eq!(newest, [1, 2, 9, 18, 19, 20], "a summary is never left out");
    let entries = vec![(life.clone(), summary(21, 0, 19))];
    store.commit(Commit { entries, ..step(&session) }).await.expect("commits");
    assert_eq!(numbers(&*store, &life).await, [21, 20], "the newest summary counts");
    // Taking it back brings the one before it back.
    let rewinds = vec![rewind(&life, 19, 21)];
    store.commit(Commit { rewinds, ..step(&session) }).await.expect("commits");
    let expected = [1, 2, 9, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18];
    assert_eq!(numbers(&*store, &life).await, expected);
    // What it stands for is still read by people.
    let transcript = store.transcript(&session.key, None, 100).await.expect("reads");
    assert_eq!(transcript.len(), 18);
}

pub async fn a_branch_begins_with_what_another_life_says(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut session = session(&key("bot", "c"));
    let first = session.id.clone();
    fill(&*store, &session, 1..=5).await;
    let rewinds = vec![rewind(&first, 4, 4)];
    store.commit(Commit { rewinds, ..step(&session) }).await.expect("commits");
    session.id = id("branch");
    let branch = Some(Branch { from: first.clone(), to: id("branch"), upto: 5 });
    let entries = vec![(session.id.clone(), entry(6, "of the branch"))];
    let retired = Some(Retirement { past: session.past(), why: Retired::Branched });
    let retired = retired.map(|mut retirement| {
        retirement.past.id = first.clone();
        retirement
    });
    store.commit(Commit { branch, entries, retired, ..step(&session) }).await.expect("commits");
    assert_eq!(numbers(&*store, &id("branch")).await, [1, 2, 3, 5, 6]);

    // What becomes of the first one is its own business.
    let rewinds = vec![rewind(&first, 2, 3)];
    let entries = vec![(first.clone(), entry(6, "of the first"))];
    store.commit(Commit { rewinds, entries, ..step(&session) }).await.expect("commits");
    assert_eq!(numbers(&*store, &first).await, [1, 5, 6]);
    assert_eq!(numbers(&*store, &id("branch")).await, [1, 2, 3, 5, 6]);

    // And the other way round.
    let rewinds = vec![rewind(&id("branch"), 3, 3)];
    store.commit(Commit { rewinds, ..step(&session) }).await.expect("commits");
    assert_eq!(numbers(&*store, &id("branch")).await, [1, 2, 5, 6]);
    let rewound = store.rewinds(&id("branch")).await.expect("reads");
    assert_eq!(rewound.iter().map(|rewound| rewound.entries).collect::<Vec<_>>(), [1]);

    // A branch of a branch.
    session.id = id("twig");
    let branch = Some(Branch { from: id("branch"), to: id("twig"), upto: 6 });
    store.commit(Commit { branch, ..step(&session) }).await.expect("commits");
    let rewinds = vec![rewind(&id("branch"), 1, 100)];
    store.commit(Commit { rewinds, ..step(&session) }).await.expect("commits");
    let store = harness.open().await;
    assert_eq!(numbers(&*store, &id("branch")).await, [0; 0]);
    assert_eq!(numbers(&*store, &id("twig")).await, [1, 2, 5, 6]);
    let newest = store.history(&id("twig"), 2).await.expect("reads");
    assert_eq!(newest.iter().map(|entry| entry.number).collect::<Vec<_>>(), [5, 6]);
    let kept = all(&*store, &id("twig"), Reading::Standing).await;
    assert_eq!(
        kept.iter().map(|kept| kept.recorded.entry.number).collect::<Vec<_>>(),
        [1, 2, 5, 6]
    );
    let lives: Vec<_> = kept.iter().map(|kept| kept.recorded.session.clone()).collect();
    assert_eq!(lives, [first.clone(), first.clone(), first.clone(), id("branch")]);
    let life = store.life(&id("twig")).await.expect("reads").expect("it is there");
    assert_eq!(life.branched_from, Some(id("branch")));

    // Everything is stored once.
    assert_eq!(store.counts().await.map(|counts| counts.entries), Ok(7));
    // An earlier point.
    session.id = id("early");
    let branch = Some(Branch { from: id("twig"), to: id("early"), upto: 2 });
    store.commit(Commit { branch, ..step(&session) }).await.expect("commits");
    assert_eq!(numbers(&*store, &id("early")).await, [1, 2]);
}

pub async fn a_branch_off_anothers_life_is_refused(harness: &dyn Harness) {
    let store = harness.open().await;
    let mine = direct(&key("bot", "mine"), "alice");
    for (other, may) in [
        (direct(&key("bot", "also mine"), "alice"), true),
        (direct(&key("bot", "his"), "bob"), false),
        (direct(&key("other", "mine"), "alice"), false),
        (session(&key("bot", "nobody")), false),
    ] {
        fill(&*store, &other, 1..=2).await;
        let mut next = mine.clone();
        next.id = id(&format!("branch of {}", other.id));
        let branch = Some(Branch { from: other.id.clone(), to: next.id.clone(), upto: 2 });
        let branched = store.commit(Commit { branch, ..step(&next) }).await;
        assert_eq!(branched.is_ok(), may, "{} {branched:?}", other.key);
        assert_eq!(numbers(&*store, &next.id).await.len(), if may { 2 } else { 0 });
        assert_eq!(store.life(&next.id).await.expect("reads").is_some(), may);
    }
    let begun = store.load(&mine.key).await.expect("reads").expect("it is there").id;
    for (from, to) in [(id("unknown"), id("new")), (begun.clone(), begun)] {
        let mut next = mine.clone();
        next.id = to.clone();
        let branch = Some(Branch { from, to, upto: 2 });
        let refused = store.commit(Commit { branch, ..step(&next) }).await;
        assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{refused:?}");
    }
    let foreign = Branch { from: mine.id.clone(), to: id("foreign"), upto: 2 };
    let thief = direct(&key("bot", "thief"), "mallory");
    let stolen = Commit { branch: Some(foreign), ..step(&thief) };
    assert!(store.commit(stolen).await.is_err());
    assert_eq!(store.load(&thief.key).await, Ok(None));
}

pub async fn a_life_is_kept_when_it_gives_way_and_can_be_gone_back_to(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut session = direct(&key("bot", "c"), "alice");
    (session.title, session.turns, session.entries) = ("Whales".into(), 3, 7);
    session.usage = Usage { input: 10, output: 2, ..Usage::default() };
    session.cost = Cost::known(300);
    session.active = at(20);
    fill(&*store, &session, 1..=2).await;
    let first = session.past();
    let life = |past, presence| Life {
        key: key("bot", "c"),
        past,
        owner: person("bot", "alice"),
        presence,
        branched_from: None,
    };
    let seen = store.life(&first.id).await;
    assert_eq!(seen, Ok(Some(life(first.clone(), Presence::Present))));
    go_on(&*store, &mut session, "second", at(30)).await;
    let store = harness.open().await;
    let why = Some(Retired::New);
    let seen = store.life(&first.id).await;
    assert_eq!(seen, Ok(Some(life(first.clone(), Presence::Past { why }))));
    let seen = store.life(&id("second")).await;
    assert_eq!(seen, Ok(Some(life(session.past(), Presence::Present))));

    // Back to the first.
    let retired = Some(Retirement { past: session.past(), why: Retired::Switched });
    (session.id, session.entries, session.active) = (first.id.clone(), 7, at(40));
    store.commit(Commit { retired, ..step(&session) }).await.expect("commits");
    fill(&*store, &session, 8..=8).await;
    let seen = store.life(&first.id).await.expect("reads").expect("it is there");
    assert_eq!((seen.presence, seen.past.active), (Presence::Present, at(40)));
    let seen = store.life(&id("second")).await.expect("reads").expect("it is there");
    assert_eq!(seen.presence, Presence::Past { why: Some(Retired::Switched) });
    assert_eq!(numbers(&*store, &first.id).await, [1, 2, 8]);
    assert_eq!(store.life(&id("third")).await, Ok(None));
}

pub async fn a_life_that_gave_way_without_a_word_is_known_by_what_was_recorded(
    harness: &dyn Harness,
) {
    let store = harness.open().await;
    let mut session = session(&key("bot", "c"));
    let first = session.id.clone();
    let entries = vec![
        (first.clone(), Entry { at: at(5), ..entry(1, "one") }),
        (first.clone(), Entry { at: at(9), ..answer(2, "two") }),
    ];
    let outbox = vec![post(&session, 4, 0)];
    store.commit(Commit { entries, outbox, ..step(&session) }).await.expect("commits");
    session.id = id("second");
    store.commit(step(&session)).await.expect("commits");
    let life = harness.open().await.life(&first).await.expect("reads").expect("it is there");
    assert_eq!(life.presence, Presence::Past { why: None });
    let past = &life.past;
    assert_eq!((past.entries, past.deliveries, past.begun, past.active), (2, 4, at(5), at(9)));
    assert_eq!(outbound_id(&first, 4, 0).session, past.id);
}

pub async fn lives_are_listed_by_last_use_for_whom_they_belong_to(harness: &dyn Harness) {
    let store = harness.open().await;
    for (chat, who, times) in
        [("a", "alice", [10, 40]), ("b", "alice", [20, 30]), ("c", "bob", [5, 50])]
    {
        let mut session = direct(&key("bot", chat), who);
        session.id = id(&format!("{chat} first"));
        session.active = at(times[0]);
        // Two of its own, besides those of what it is a copy of.
        (session.turns, session.copied) = (5, 3);
        session.usage = Usage { input: 100, ..Usage::default() };
        session.cost = Cost::known(1);
        store.commit(step(&session)).await.expect("commits");
        go_on(&*store, &mut session, &format!("{chat} second"), at(times[1])).await;
    }
    let store = harness.open().await;
    let alice = SearchScope::Owner(person("bot", "alice"));
    for (scope, expected) in [
        (alice.clone(), vec!["a second", "b second", "b first", "a first"]),
        (SearchScope::Owner(person("bot", "bob")), vec!["c second", "c first"]),
        (SearchScope::Owner(person("bot", "mallory")), vec![]),
        (SearchScope::Owner(Owner::Conversation(key("bot", "a"))), vec![]),
        (SearchScope::Conversation(key("bot", "b")), vec!["b second", "b first"]),
        (SearchScope::Conversation(key("bot", "unknown")), vec![]),
        (SearchScope::Accounts(vec![account("other")]), vec![]),
        (SearchScope::Accounts(vec![]), vec![]),
        (
            SearchScope::Accounts(vec![account("bot")]),
            vec!["c second", "a second", "b second", "b first", "a first", "c first"],
        ),
        (
            SearchScope::Everything,
            vec!["c second", "a second", "b second", "b first", "a first", "c first"],
        ),
    ] {
        let mut listed = Vec::new();
        let mut after: Option<SessionId> = None;
        loop {
            let page = store.lives(&scope, after.as_ref(), 2).await.expect("reads");
            assert!(page.len() <= 2);
            let Some(last) = page.last() else { break };
            after = Some(last.past.id.clone());
            listed.extend(page.into_iter().map(|life| life.past.id));
        }
        assert_eq!(listed, expected.into_iter().map(id).collect::<Vec<_>>(), "{scope:?}");
    }
    let totals = |lives, turns, cost| Totals {
        lives,
        turns,
        usage: Usage { input: lives * 100, ..Usage::default() },
        cost: Cost::known(cost),
    };
    assert_eq!(store.totals(&alice, None).await, Ok(totals(4, 4, 4)));
    assert_eq!(store.totals(&alice, Some(at(30))).await, Ok(totals(2, 0, 2)));
    assert_eq!(store.totals(&SearchScope::Everything, None).await, Ok(totals(6, 6, 6)));
    let nobody = SearchScope::Owner(person("bot", "mallory"));
    assert_eq!(store.totals(&nobody, None).await, Ok(Totals::default()));
}

pub async fn a_life_is_named_by_its_id_or_title_and_by_the_beginning_of_one(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut mine = direct(&key("bot", "a"), "alice");
    mine.id = id("20260101_000000_00000001");
    (mine.title, mine.active) = ("Blue Whales".into(), at(10));
    store.commit(step(&mine)).await.expect("commits");
    for (number, title, when) in [
        ("20260101_000000_00000002", "Blue", 20),
        ("20270101_000000_00000003", "Blue whales sing", 30),
    ] {
        go_on(&*store, &mut mine, number, at(when)).await;
        mine.title = title.into();
        store.commit(step(&mine)).await.expect("commits");
    }
    let mut other = direct(&key("bot", "b"), "bob");
    (other.id, other.title) = (id("20280101_000000_00000004"), "Blue Birds".into());
    store.commit(step(&other)).await.expect("commits");

    let store = harness.open().await;
    let named = async |scope: &SearchScope, name: &str| match store
        .named(scope, name, 10)
        .await
        .expect("reads")
    {
        Named::Nothing => Vec::new(),
        Named::One(life) => vec![life.past.title],
        Named::Several(lives) => {
            assert!(lives.len() > 1);
            lives.into_iter().map(|life| life.past.title).collect()
        }
    };
    let alice = SearchScope::Owner(person("bot", "alice"));
    for (name, expected) in [
        ("20260101_000000_00000001", vec!["Blue Whales"]),
        ("2027", vec!["Blue Whales sing"]),
        ("2026", vec!["Blue", "Blue Whales"]),
        ("blue", vec!["Blue"]),
        ("BLUE  whales", vec!["Blue Whales"]),
        ("blue w", vec!["Blue whales sing", "Blue Whales"]),
        ("blue birds", vec![]),
        ("20280101_000000_00000004", vec![]),
        ("2028", vec![]),
        ("whales", vec![]),
        ("%", vec![]),
        ("_", vec![]),
        ("2026%", vec![]),
        ("", vec![]),
    ] {
        let found = named(&alice, name).await;
        let lower = |titles: Vec<String>| {
            titles.into_iter().map(|title| title.to_lowercase()).collect::<Vec<_>>()
        };
        let expected = lower(expected.into_iter().map(str::to_owned).collect());
        assert_eq!(lower(found), expected, "{name:?}");
    }
    assert_eq!(named(&SearchScope::Everything, "blue birds").await, ["Blue Birds"]);
    let conversation = SearchScope::Conversation(other.key.clone());
    assert_eq!(named(&conversation, "blue").await, ["Blue Birds"]);
    assert_eq!(named(&SearchScope::Owner(person("x", "alice")), "blue").await, [""; 0]);
}

pub async fn a_life_is_renamed(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut session = direct(&key("bot", "a"), "alice");
    session.title = "First".into();
    let first = session.id.clone();
    store.commit(step(&session)).await.expect("commits");
    go_on(&*store, &mut session, "second", at(9)).await;
    store.rename(&first, "It\'s \"renamed\"").await.expect("renames");
    store.rename(&id("second"), "Second").await.expect("renames");
    store.rename(&id("unknown"), "Nothing").await.expect("renames nothing");
    let store = harness.open().await;
    let title = async |life: &SessionId| {
        store.life(life).await.expect("reads").expect("it is there").past.title
    };
    assert_eq!(title(&first).await, "It\'s \"renamed\"");
    assert_eq!(title(&id("second")).await, "Second");
    let loaded = store.load(&session.key).await.expect("reads").expect("it is there");
    assert_eq!(loaded, Session { title: "Second".into(), ..session.clone() });
    let alice = SearchScope::Owner(person("bot", "alice"));
    let named = store.named(&alice, "it\'s", 10).await.expect("reads");
    assert!(matches!(named, Named::One(life) if life.past.id == first));
}
