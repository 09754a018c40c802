//! What can be found again.

use std::sync::Arc;

use talaria_model::{CallId, ChatKind, Entry, EntryBody, SenderId, SessionId};
use talaria_session::{Retired, Session, SessionKey};

use super::Harness;
use super::world::{
    account, address, alice, answer, at, direct, entry, key, person, record, session, step,
};
use crate::{Commit, Found, Owner, Retirement, Rewind, SearchScope, Spoken, Store, Wanted};

async fn with(harness: &dyn Harness, texts: &[&str]) -> (Arc<dyn Store>, Session) {
    let store = harness.open().await;
    let session = session(&key("bot", "c"));
    record(&*store, &session, texts).await;
    (store, session)
}

async fn found(store: &dyn Store, key: &SessionKey, query: &str) -> Vec<Found> {
    let conversation = SearchScope::Conversation(key.clone());
    let found = search(store, conversation, query, 100).await;
    for wider in [SearchScope::Accounts(vec![key.account.clone()]), SearchScope::Everything] {
        let more = search(store, wider, query, 100).await;
        assert!(found.iter().all(|one| more.contains(one)));
    }
    found
}

async fn search(store: &dyn Store, scope: SearchScope, query: &str, limit: usize) -> Vec<Found> {
    store.search(&Wanted::new(scope, query, limit)).await.expect("searches")
}

/// The excerpts, with brackets around the match.
async fn excerpts(store: &dyn Store, key: &SessionKey, query: &str) -> Vec<String> {
    let found = found(store, key, query).await;
    found.into_iter().map(|one| one.excerpt.replace('\u{2}', "[").replace('\u{3}', "]")).collect()
}

pub async fn search_finds_words_in_any_order(harness: &dyn Harness) {
    let (store, session) = with(harness, &["The whale is blue", "A blue bird"]).await;
    assert_eq!(excerpts(&*store, &session.key, "BLUE whale").await, ["The whale is [blue]"]);
    assert_eq!(
        excerpts(&*store, &session.key, "blue").await,
        ["A [blue] bird", "The whale is [blue]"]
    );
    assert_eq!(excerpts(&*store, &session.key, "blue fish").await, [""; 0]);
    let one = found(&*store, &session.key, "whale").await.remove(0);
    assert_eq!((one.key, one.at), (session.key.clone(), address(&session.key)));
    assert_eq!((one.recorded.session, one.recorded.entry.number), (session.id, 1));
}

pub async fn search_finds_the_beginning_of_the_last_word(harness: &dyn Harness) {
    let (store, session) = with(harness, &["Meeting about the budget"]).await;
    let expected = ["[Meeting] about the budget"];
    assert_eq!(excerpts(&*store, &session.key, "meeting budg").await, expected);
    assert_eq!(excerpts(&*store, &session.key, "meet budget").await, [""; 0]);
}

pub async fn search_finds_parts_of_words(harness: &dyn Harness) {
    let (store, session) = with(harness, &["Donaudampfschiff", "E=mc²; a->b"]).await;
    assert_eq!(excerpts(&*store, &session.key, "DAMPF").await, ["Donau[dampf]schiff"]);
    assert_eq!(excerpts(&*store, &session.key, "na").await, ["Do[na]udampfschiff"]);
    assert_eq!(excerpts(&*store, &session.key, "->").await, ["E=mc²; a[->]b"]);
    assert_eq!(excerpts(&*store, &session.key, "=mc²;").await, ["E[=mc²;] a->b"]);
}

pub async fn search_finds_scripts_without_spaces_and_pictures(harness: &dyn Harness) {
    let texts =
        ["我们明天开会议吗", "明日の会議は中止", "내일 회의를 합니다", "ship it 🎉🚀", "พบกันพรุ่งนี้"];
    let (store, session) = with(harness, &texts).await;
    for (query, excerpt) in [
        ("会议", "我们明天开[会议]吗"),
        ("明天开", "我们[明天开]会议吗"),
        ("会議は", "明日の[会議は]中止"),
        ("회의", "내일 [회의]를 합니다"),
        ("🎉", "ship it [🎉]🚀"),
        ("🎉🚀", "ship it [🎉🚀]"),
        ("พรุ่งนี้", "พบกัน[พรุ่งนี้]"),
    ] {
        assert_eq!(excerpts(&*store, &session.key, query).await, [excerpt]);
    }
    assert_eq!(excerpts(&*store, &session.key, "议会").await, [""; 0]);
}

pub async fn search_takes_operators_and_quotes_as_text(harness: &dyn Harness) {
    let texts = ["to be OR not to be", "say \"cheese\"", "drop table; -- x", "50% of _all_", "a^b"];
    let (store, session) = with(harness, &texts).await;
    for (query, excerpt) in [
        ("OR", "to be [OR] not to be"),
        ("be OR not", "to [be OR not] to be"),
        ("\"cheese\"", "say [\"cheese\"]"),
        ("\"", "say [\"]cheese\""),
        ("table; --", "drop [table; --] x"),
        ("50%", "[50%] of _all_"),
        ("_all_", "50% of [_all_]"),
        ("a^b", "[a^b]"),
    ] {
        assert_eq!(excerpts(&*store, &session.key, query).await, [excerpt], "{query}");
    }
    for hostile in [
        "NOT",
        "AND",
        "NEAR(",
        "NEAR(a b, 1)",
        "text:",
        "words : a",
        "*",
        "a*",
        "^a",
        "(",
        ")",
        "'",
        "''",
        "\"\"",
        "{a b}:c",
        "- -",
        "+",
        "\\",
        "\u{0}",
        "a\u{0}b",
        "%",
        "_",
        "_c1",
        "; DROP TABLE",
        "\"a\" OR rowid:1",
        "\u{FFFD}",
        "\u{1}\u{2}\u{3}",
    ] {
        excerpts(&*store, &session.key, hostile).await;
    }
    excerpts(&*store, &session.key, &"word ".repeat(10_000)).await;
    excerpts(&*store, &session.key, &"\"(".repeat(10_000)).await;
}

pub async fn search_never_leaves_its_scope(harness: &dyn Harness) {
    let store = harness.open().await;
    let keys = [key("one", "c"), key("one", "d"), key("two", "c")];
    for key in &keys {
        let mut session = session(key);
        session.title = format!("title of {key}");
        record(&*store, &session, &["the canary sings", "canary"]).await;
    }
    for query in ["canary", "the canary", "anar", "ca", "s"] {
        for key in &keys {
            let scope = SearchScope::Conversation(key.clone());
            let found = search(&*store, scope, query, 100).await;
            assert!(!found.is_empty(), "{query}");
            assert!(found.iter().all(|one| one.key == *key));
            assert!(found.iter().all(|one| one.title == format!("title of {key}")));
        }
        let accounts = |names: &[&str]| {
            SearchScope::Accounts(names.iter().map(|name| account(name)).collect())
        };
        let first = SearchScope::Conversation(keys[0].clone());
        let per_key = search(&*store, first, query, 100).await.len();
        for (scope, conversations) in [
            (accounts(&["one"]), 2),
            (accounts(&["two"]), 1),
            (accounts(&["one", "two"]), 3),
            (accounts(&["three"]), 0),
            (accounts(&["two", "three"]), 1),
            (accounts(&[]), 0),
            (SearchScope::Conversation(key("one", "unknown")), 0),
            (SearchScope::Everything, 3),
        ] {
            let found = search(&*store, scope.clone(), query, 100).await;
            assert_eq!(found.len(), conversations * per_key, "{scope:?} {query}");
        }
    }
}

pub async fn search_puts_words_before_beginnings_before_parts_and_the_newest_first(
    harness: &dyn Harness,
) {
    let texts = ["cart one", "carthorse", "descartes", "cart two", "bogart"];
    let (store, session) = with(harness, &texts).await;
    let expected = ["[cart] two", "[cart] one", "[cart]horse", "des[cart]es"];
    assert_eq!(excerpts(&*store, &session.key, "cart").await, expected);
    for limit in 0..6 {
        let scope = SearchScope::Conversation(session.key.clone());
        let found = search(&*store, scope, "cart", limit).await;
        let cut: Vec<_> = found
            .iter()
            .map(|one| one.excerpt.replace('\u{2}', "[").replace('\u{3}', "]"))
            .collect();
        assert_eq!(cut, expected[..limit.min(4)]);
    }
}

pub async fn search_finds_what_was_just_recorded(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = session(&key("bot", "c"));
    for number in 0..20 {
        let text = format!("needle{number} in a haystack");
        record(&*store, &session, &[&text]).await;
        assert_eq!(found(&*store, &session.key, &format!("needle{number}")).await.len(), 1);
        assert_eq!(found(&*store, &session.key, "haystack").await.len(), number + 1);
    }
}

pub async fn search_does_not_look_at_tool_results(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = session(&key("bot", "c"));
    let body = EntryBody::Returned {
        call: CallId::literal("call"),
        output: "a secret page".into(),
        files: Vec::new(),
        failed: false,
    };
    let returned =
        Entry { number: 1, at: at(1), turn: None, body, because: None, about: None, resumed: None };
    let entries =
        vec![(session.id.clone(), returned), (session.id.clone(), answer(2, "a public answer"))];
    store.commit(Commit { entries, ..step(&session) }).await.expect("commits");
    assert_eq!(found(&*store, &session.key, "secret").await, []);
    assert_eq!(found(&*store, &session.key, "ecre").await, []);
    assert_eq!(found(&*store, &session.key, "public").await.len(), 1);
}

pub async fn search_for_nothing_finds_nothing(harness: &dyn Harness) {
    let (store, session) = with(harness, &["something", " "]).await;
    for nothing in ["", " ", "\n\t", "\u{301}"] {
        assert_eq!(found(&*store, &session.key, nothing).await, []);
    }
}

pub async fn search_spans_lives_and_survives_a_crash(harness: &dyn Harness) {
    let (store, mut session) = with(harness, &["a blue whale"]).await;
    session.id = SessionId::literal("second");
    record(&*store, &session, &["a blue bird"]).await;
    assert_eq!(found(&*store, &session.key, "blue").await.len(), 2);
    record(&*store, &session, &["a blue fish"]).await;
    let store = harness.open().await;
    let blue = ["a [blue] fish", "a [blue] bird", "a [blue] whale"];
    assert_eq!(excerpts(&*store, &session.key, "blue").await, blue);
}

pub async fn a_person_searches_all_their_own_conversations_and_no_others(harness: &dyn Harness) {
    let store = harness.open().await;
    let group = SessionKey {
        kind: ChatKind::Group,
        member: Some(SenderId::literal("alice")),
        ..key("bot", "group")
    };
    let shared = SessionKey { member: None, ..group.clone() };
    for (session, text) in [
        (direct(&key("bot", "a"), "alice"), "canary of alice"),
        (direct(&key("bot", "a2"), "alice"), "canary of alice again"),
        (direct(&key("other", "a"), "alice"), "canary of another alice"),
        (direct(&key("bot", "b"), "bob"), "canary of bob"),
        (session(&key("bot", "nobody")), "canary of nobody"),
        (session(&group), "canary of alice in a group"),
        (session(&shared), "canary of all"),
    ] {
        record(&*store, &session, &[text]).await;
    }
    let texts = async |store: &dyn Store, owner: Owner, query: &str| {
        let found = search(store, SearchScope::Owner(owner), query, 100).await;
        let mut texts: Vec<String> = found
            .iter()
            .map(|one| crate::visible(&one.recorded.entry.body).unwrap_or_default().to_owned())
            .collect();
        texts.sort();
        texts
    };
    let alices = ["canary of alice", "canary of alice again", "canary of alice in a group"];
    for store in [store, harness.open().await] {
        for query in ["canary", "of canary", "cana", "anar", "ca"] {
            assert_eq!(texts(&*store, person("bot", "alice"), query).await, alices, "{query}");
            let other = texts(&*store, person("other", "alice"), query).await;
            assert_eq!(other, ["canary of another alice"]);
            assert_eq!(texts(&*store, person("bot", "bob"), query).await, ["canary of bob"]);
            assert_eq!(texts(&*store, person("bot", "mallory"), query).await, [""; 0]);
            assert_eq!(texts(&*store, person("none", "alice"), query).await, [""; 0]);
            let conversation = Owner::Conversation(shared.clone());
            assert_eq!(texts(&*store, conversation, query).await, ["canary of all"]);
            let not_shared = Owner::Conversation(key("bot", "a"));
            assert_eq!(texts(&*store, not_shared, query).await, [""; 0]);
        }
    }
}

pub async fn search_follows_a_conversation_whose_owner_becomes_known(harness: &dyn Harness) {
    let store = harness.open().await;
    let chat = key("bot", "c");
    record(&*store, &session(&chat), &["canary before"]).await;
    let alice = SearchScope::Owner(person("bot", "alice"));
    assert_eq!(search(&*store, alice.clone(), "canary", 10).await, []);
    record(&*store, &direct(&chat, "alice"), &["canary after"]).await;
    assert_eq!(search(&*store, alice.clone(), "canary", 10).await.len(), 2);
    assert_eq!(search(&*store, alice.clone(), "anary", 10).await.len(), 2);
    record(&*store, &direct(&chat, "bob"), &["canary of bob"]).await;
    let store = harness.open().await;
    assert_eq!(search(&*store, alice, "canary", 10).await, []);
    let bob = SearchScope::Owner(person("bot", "bob"));
    assert_eq!(search(&*store, bob, "canary", 10).await.len(), 3);
}

pub async fn search_is_narrowed_by_who_spoke_and_when(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = session(&key("bot", "c"));
    let aside = EntryBody::Aside {
        from: alice(),
        text: "whale aside".into(),
        files: Vec::new(),
        message: None,
    };
    let entries = [
        Entry { at: at(10), ..entry(1, "whale one") },
        Entry { at: at(20), ..answer(2, "whale two") },
        Entry { at: at(30), body: aside, ..entry(3, "") },
        Entry { at: at(40), ..answer(4, "whales four") },
    ];
    let entries = entries.map(|entry| (session.id.clone(), entry)).to_vec();
    store.commit(Commit { entries, ..step(&session) }).await.expect("commits");
    let all = Wanted::new(SearchScope::Conversation(session.key.clone()), "whale", 10);
    for (wanted, numbers) in [
        (all.clone(), vec![3, 2, 1, 4]),
        (Wanted { spoken: vec![Spoken::Answered], ..all.clone() }, vec![2, 4]),
        (Wanted { spoken: vec![Spoken::Said, Spoken::Aside], ..all.clone() }, vec![3, 1]),
        (Wanted { spoken: vec![Spoken::Noticed], ..all.clone() }, vec![]),
        (Wanted { since: Some(at(20)), ..all.clone() }, vec![3, 2, 4]),
        (Wanted { until: Some(at(20)), ..all.clone() }, vec![1]),
        (Wanted { since: Some(at(11)), until: Some(at(31)), ..all.clone() }, vec![3, 2]),
        (Wanted { since: Some(at(50)), ..all.clone() }, vec![]),
        (Wanted { until: Some(at(10)), ..all.clone() }, vec![]),
        (Wanted { since: Some(at(20)), text: "hale".into(), ..all.clone() }, vec![4, 3, 2]),
        (Wanted { since: Some(at(20)), limit: 1, ..all }, vec![3]),
    ] {
        let found = store.search(&wanted).await.expect("searches");
        let found: Vec<u32> = found.iter().map(|one| one.recorded.entry.number).collect();
        assert_eq!(found, numbers, "{wanted:?}");
    }
}

pub async fn search_leaves_out_what_was_taken_back(harness: &dyn Harness) {
    let (store, session) = with(harness, &["whale one", "whale two", "whale three"]).await;
    assert_eq!(found(&*store, &session.key, "whale").await.len(), 3);
    let life = session.id.clone();
    let rewinds = vec![Rewind { session: life, from: 2, upto: 3, by: None }];
    store.commit(Commit { rewinds, ..step(&session) }).await.expect("commits");
    for store in [store, harness.open().await] {
        assert_eq!(excerpts(&*store, &session.key, "whale").await, ["[whale] one"]);
        assert_eq!(excerpts(&*store, &session.key, "hale").await, ["w[hale] one"]);
    }
}

pub async fn search_says_what_a_life_was_about(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut session = session(&key("bot", "c"));
    session.title = "Whales".into();
    record(&*store, &session, &["blue one"]).await;
    let retired = Some(Retirement { past: session.past(), why: Retired::New });
    session.id = SessionId::literal("second");
    session.title = "Birds".into();
    store.commit(Commit { retired, ..step(&session) }).await.expect("commits");
    record(&*store, &session, &["blue two"]).await;
    let titles: Vec<_> =
        found(&*store, &session.key, "blue").await.into_iter().map(|one| one.title).collect();
    assert_eq!(titles, ["Birds", "Whales"]);
}
