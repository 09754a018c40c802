//! Everything that can be seen of a store, line by line, so that two can be compared.

use std::fmt::Debug;

use talaria_model::{AccountId, Address, FileId, SessionId};
use talaria_session::SessionKey;
use talaria_store::{SearchScope, Store};

/// What to ask about.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) keys: Vec<SessionKey>,
    pub(super) addresses: Vec<Address>,
    pub(super) lives: Vec<SessionId>,
    pub(super) queries: Vec<&'static str>,
    pub(super) files: Vec<FileId>,
}

pub(super) async fn seen(store: &dyn Store, asked: &Asked) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |what: &str, answer: &dyn Debug| lines.push(format!("{what}: {answer:?}"));
    line("counts", &store.counts().await);
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
    }
    let mut accounts: Vec<&AccountId> = asked.keys.iter().map(|key| &key.account).collect();
    accounts.dedup();
    for account in &accounts {
        line(&format!("cursor of {account}"), &store.cursor(account).await);
        let denied = store.denied(account, talaria_model::Timestamp::default(), 3).await;
        line(&format!("denied on {account}"), &denied);
        line(
            &format!("conversations of {account}"),
            &store.conversations(Some(account), 100).await,
        );
    }
    for query in &asked.queries {
        let all = SearchScope::Accounts(accounts.iter().copied().cloned().collect());
        line(&format!("search for {query}"), &store.search(all.clone(), query, 100).await);
        line(&format!("best for {query}"), &store.search(all, query, 2).await);
        for key in &asked.keys {
            let scope = SearchScope::Conversation(key.clone());
            let found = store.search(scope, query, 100).await;
            line(&format!("search for {query} in {key}"), &found);
        }
    }
    lines
}
