//! What was said on one account, for that account's platform.

use std::sync::Arc;

use async_trait::async_trait;
use talaria_model::{AccountId, Address};
use talaria_platform::{Archive, ArchiveError, Conversation, Hit, Recorded};
use talaria_session::SessionKey;
use talaria_store::{SearchScope, Store, StoreError};

/// The store, seen from one account.
pub(crate) struct AccountArchive {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) account: AccountId,
}

#[async_trait]
impl Archive for AccountArchive {
    async fn conversations(&self, limit: usize) -> Result<Vec<Conversation>, ArchiveError> {
        let summaries =
            self.store.conversations(Some(&self.account), limit).await.map_err(error)?;
        let conversations = summaries.into_iter().map(|summary| Conversation {
            at: summary.at,
            title: summary.title,
            updated: summary.updated,
            busy: summary.busy,
        });
        Ok(conversations.collect())
    }

    async fn history(
        &self,
        at: &Address,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Recorded>, ArchiveError> {
        if at.account != self.account {
            return Ok(Vec::new());
        }
        let key = SessionKey {
            account: at.account.clone(),
            kind: at.chat.kind,
            chat: at.chat.id.clone(),
            thread: at.thread.clone(),
            member: None,
        };
        let entries = self.store.transcript(&key, before, limit).await.map_err(error)?;
        Ok(entries.into_iter().map(recorded).collect())
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, ArchiveError> {
        let scope = SearchScope::Accounts(vec![self.account.clone()]);
        let found = self.store.search(scope, query, limit).await.map_err(error)?;
        let hits = found.into_iter().map(|found| Hit {
            at: found.at,
            title: found.title,
            recorded: recorded(found.recorded),
            excerpt: found.excerpt,
        });
        Ok(hits.collect())
    }
}

fn recorded(recorded: talaria_store::Recorded) -> Recorded {
    Recorded { position: recorded.position, entry: recorded.entry }
}

fn error(error: StoreError) -> ArchiveError {
    ArchiveError(error.to_string())
}
