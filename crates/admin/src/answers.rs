//! What the store knows, as the API tells it. The local socket answers with these, and so does the
//! command line itself when no gateway is running.

use serde::Deserialize;
use talaria_clock::rfc3339;
use talaria_model::{AccountId, EntryBody};
use talaria_store::{Recorded, SearchScope, Store, StoreError, Summary};

use crate::api;

/// More than this nobody reads.
const MOST: usize = 1000;

/// What is asked for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// Only on this account.
    #[serde(default)]
    pub account: Option<String>,
    /// Words to look for.
    #[serde(default)]
    pub query: String,
    /// How many.
    #[serde(default = "usual_limit")]
    pub limit: usize,
}

fn usual_limit() -> usize {
    50
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The request does not make sense.
    #[error("{0}")]
    Request(String),
    /// What was asked for does not exist.
    #[error("{0}")]
    Missing(String),
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Listing {
    fn limit(&self) -> usize {
        self.limit.clamp(1, MOST)
    }

    fn account(&self) -> Result<Option<AccountId>, AnswerError> {
        let account = self.account.clone().map(AccountId::new).transpose();
        account.map_err(|error| AnswerError::Request(error.to_string()))
    }
}

/// Conversations, the most recent first.
pub async fn sessions(
    store: &dyn Store,
    listing: &Listing,
) -> Result<Vec<api::Session>, AnswerError> {
    let account = listing.account()?;
    let summaries = store.conversations(account.as_ref(), listing.limit()).await?;
    Ok(summaries.into_iter().map(session_of).collect())
}

/// What was said anywhere. Whoever can ask is the operator and may read every account.
pub async fn search(store: &dyn Store, listing: &Listing) -> Result<Vec<api::Found>, AnswerError> {
    let accounts = match listing.account()? {
        Some(account) => vec![account],
        None => {
            let all = store.conversations(None, usize::MAX).await?;
            let mut accounts: Vec<_> = all.into_iter().map(|summary| summary.key.account).collect();
            accounts.sort();
            accounts.dedup();
            accounts
        }
    };
    let scope = SearchScope::Accounts(accounts);
    let found = store.search(scope, &listing.query, listing.limit()).await?;
    let found = found.into_iter().map(|found| api::Found {
        title: found.title,
        key: found.key.to_string(),
        entry: entry_of(found.recorded),
        excerpt: found.excerpt.replace('\u{2}', "[").replace('\u{3}', "]"),
    });
    Ok(found.collect())
}

/// What was said in the conversation with this id or key.
pub async fn transcript(
    store: &dyn Store,
    id: &str,
    limit: usize,
) -> Result<Vec<api::Entry>, AnswerError> {
    let all = store.conversations(None, usize::MAX).await?;
    let key = all
        .into_iter()
        .find(|summary| summary.id.as_str() == id || summary.key.to_string() == id)
        .map(|summary| summary.key)
        .ok_or_else(|| AnswerError::Missing(format!("there is no conversation {id:?}")))?;
    let entries = store.transcript(&key, None, limit.clamp(1, MOST)).await?;
    Ok(entries.into_iter().map(entry_of).collect())
}

fn session_of(summary: Summary) -> api::Session {
    api::Session {
        id: summary.id.to_string(),
        key: summary.key.to_string(),
        account: summary.key.account.to_string(),
        chat: summary.key.chat.to_string(),
        title: summary.title,
        updated: rfc3339(summary.updated),
        busy: summary.busy,
        turns: summary.turns,
        tokens_in: summary.usage.input + summary.usage.cache_read + summary.usage.cache_write,
        tokens_out: summary.usage.output,
    }
}

fn entry_of(recorded: Recorded) -> api::Entry {
    let (who, text) = match recorded.entry.body {
        EntryBody::Said { from, text, .. } | EntryBody::Aside { from, text } => {
            (from.id.to_string(), text)
        }
        EntryBody::Answered { text, calls, .. } => {
            let calls = calls.iter().map(|call| format!("[calls {}]", call.tool));
            let parts = std::iter::once(text).chain(calls).filter(|part| !part.is_empty());
            ("agent".to_owned(), parts.collect::<Vec<_>>().join("\n"))
        }
        EntryBody::Returned { output, .. } => ("tool".to_owned(), output),
        EntryBody::Noticed { text, .. } => ("gateway".to_owned(), text),
    };
    api::Entry {
        position: recorded.position,
        session: recorded.session.to_string(),
        at: rfc3339(recorded.entry.at),
        who,
        text,
    }
}
