//! Everything that can be seen of a store, line by line, so that two can be compared.

use std::fmt::Debug;

use talaria_model::{AccountId, Address, FileId, SessionId, Timestamp};
use talaria_session::SessionKey;
use talaria_session::budget::Day;
use talaria_store::{Clue, Owner, Reading, SearchScope, Spoken, Store, Wanted};

/// What to ask about.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) keys: Vec<SessionKey>,
    pub(super) addresses: Vec<Address>,
    pub(super) lives: Vec<SessionId>,
    pub(super) owners: Vec<Owner>,
    pub(super) queries: Vec<&'static str>,
    pub(super) files: Vec<FileId>,
}

pub(super) async fn seen(store: &dyn Store, asked: &Asked) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |what: &str, answer: &dyn Debug| lines.push(format!("{what}: {answer:?}"));
    line("counts", &store.counts().await);
    line("queues", &store.queues().await);
    line("conversations", &store.conversations(None, 100).await);
    line("the newest conversation", &store.conversations(None, 1).await);
    let mut restless = Vec::new();
    let mut after = None;
    loop {
        let page = store.restless(after, 2).await.expect("reads");
        after = page.last().cloned();
        restless.extend(page.iter().map(ToString::to_string));
        if after.is_none() {
            break;
        }
    }
    restless.sort();
    line("restless", &restless);
    let mut undelivered = Vec::new();
    let mut after = None;
    loop {
        let page = store.undelivered(after, 2).await.expect("reads");
        after = page.last().cloned();
        undelivered.extend(page.iter().map(|address| format!("{address:?}")));
        if after.is_none() {
            break;
        }
    }
    undelivered.sort();
    line("undelivered", &undelivered);
    let mut untold = Vec::new();
    let mut after = None;
    loop {
        let page = store.untold_at(after, 2).await.expect("reads");
        after = page.last().cloned();
        untold.extend(page.iter().map(|address| format!("{address:?}")));
        if after.is_none() {
            break;
        }
    }
    untold.sort();
    line("untold at", &untold);
    let one_too_many = Clue::Id("one too many".into());
    line("unanswered", &store.unanswered(&one_too_many, 100).await);
    line("failed", &store.failed(100).await);
    line("one failed", &store.failed(1).await);
    line("files", &store.uses(&asked.files).await);
    for key in &asked.keys {
        line(&format!("session of {key}"), &store.load(key).await);
        line(&format!("unread of {key}"), &store.unread(key, 100).await);
        line(&format!("one unread of {key}"), &store.unread(key, 1).await);
        line(&format!("transcript of {key}"), &store.transcript(key, None, 100).await);
        line(&format!("start of {key}"), &store.transcript(key, Some(4), 2).await);
    }
    for address in &asked.addresses {
        line(&format!("untold at {address:?}"), &store.untold(address).await);
        line(&format!("parcels for {address:?}"), &store.parcels(address, 100).await);
    }
    for life in &asked.lives {
        line(&format!("history of {life}"), &store.history(life, 100).await);
        line(&format!("end of {life}"), &store.history(life, 2).await);
        line(&format!("life {life}"), &store.life(life).await);
        line(&format!("rewinds of {life}"), &store.rewinds(life).await);
        for reading in [Reading::Standing, Reading::Everything] {
            let entries = store.entries(life, reading, None, 100).await;
            line(&format!("{reading:?} of {life}"), &entries);
            let after = entries.as_ref().ok().and_then(|all| all.get(1));
            let after = after.map(|kept| kept.recorded.position);
            let rest = store.entries(life, reading, after, 2).await;
            line(&format!("more of {reading:?} of {life}"), &rest);
        }
    }
    let mut accounts: Vec<&AccountId> = asked.keys.iter().map(|key| &key.account).collect();
    accounts.dedup();
    for account in &accounts {
        line(&format!("cursor of {account}"), &store.cursor(account).await);
        line(&format!("guests of {account}"), &store.guests(account).await);
        let denied = store.denied(account, talaria_model::Timestamp::default(), 3).await;
        line(&format!("denied on {account}"), &denied);
        line(
            &format!("conversations of {account}"),
            &store.conversations(Some(account), 100).await,
        );
    }
    let mut scopes = vec![
        SearchScope::Everything,
        SearchScope::Accounts(accounts.iter().copied().cloned().collect()),
    ];
    scopes.extend(asked.keys.iter().cloned().map(SearchScope::Conversation));
    let shared = asked.keys.iter().cloned().map(Owner::Conversation);
    scopes.extend(asked.owners.iter().cloned().chain(shared).map(SearchScope::Owner));
    for scope in &scopes {
        for query in &asked.queries {
            let wanted = Wanted::new(scope.clone(), *query, 100);
            line(&format!("search for {query} in {scope:?}"), &store.search(&wanted).await);
            let best = Wanted { limit: 2, ..wanted.clone() };
            line(&format!("best for {query} in {scope:?}"), &store.search(&best).await);
            let since = Some(Timestamp::from_millis(20));
            let until = Some(Timestamp::from_millis(40));
            let between = Wanted { since, until, spoken: vec![Spoken::Said], ..wanted };
            line(&format!("{query} between in {scope:?}"), &store.search(&between).await);
        }
        let lives = store.lives(scope, None, 100).await;
        line(&format!("lives in {scope:?}"), &lives);
        let after = lives.as_ref().ok().and_then(|lives| lives.get(1)).map(|life| &life.past.id);
        line(&format!("more lives in {scope:?}"), &store.lives(scope, after, 2).await);
        line(&format!("totals in {scope:?}"), &store.totals(scope, None).await);
        let since = Some(Timestamp::from_millis(20));
        line(&format!("late totals in {scope:?}"), &store.totals(scope, since).await);
        for name in ["life", "title at 1", "life 0 of 0", "no"] {
            line(&format!("{name} in {scope:?}"), &store.named(scope, name, 10).await);
        }
    }
    line("audited", &store.audited(0, 100).await);
    line("grants", &store.grants(100).await);
    for day in [0, 20_000] {
        line("spent", &store.spending(Day::numbered(day), 100).await);
    }
    line("more audited", &store.audited(1, 2).await);
    for since in [0, 20, 40].map(Timestamp::from_millis) {
        line(&format!("active since {since:?}"), &store.active_since(since, None, 100).await);
        line(&format!("quiet since {since:?}"), &store.quiet_since(since, None, 100).await);
        let after = store.quiet_since(since, None, 1).await.expect("reads").pop();
        line(&format!("more since {since:?}"), &store.quiet_since(since, after, 1).await);
    }
    lines
}
