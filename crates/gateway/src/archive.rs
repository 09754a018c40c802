//! What was said on one account, for that account's platform.

use std::sync::Arc;

use async_trait::async_trait;
use talaria_model::{AccountId, Address, KnownBy, Sender, SenderId};
use talaria_platform::{Archive, ArchiveError, Conversation, Hit, Recorded};
use talaria_session::{GroupSessions, Scope, SessionKey, ThreadSessions};
use talaria_store::{SearchScope, Store, StoreError, Wanted};

use crate::requests::SPOKEN;

/// Sessions that belong to an address and to nobody in particular.
const SHARED: Scope = Scope { groups: GroupSessions::Shared, threads: ThreadSessions::Shared };

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
        // Who asks by an address alone sees what everybody there shares.
        let key = SessionKey::between(
            &Sender::new(SenderId::literal("everybody")),
            at,
            KnownBy::Chat,
            SHARED,
        );
        let entries = self.store.transcript(&key, before, limit).await.map_err(error)?;
        Ok(entries.into_iter().map(for_platform).collect())
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, ArchiveError> {
        let scope = SearchScope::Accounts(vec![self.account.clone()]);
        let wanted = Wanted { spoken: SPOKEN.into(), ..Wanted::new(scope, query, limit) };
        let found = self.store.search(&wanted).await.map_err(error)?;
        let hits = found.into_iter().map(|found| Hit {
            at: found.at,
            title: found.title,
            recorded: for_platform(found.recorded),
            excerpt: found.excerpt,
        });
        Ok(hits.collect())
    }
}

/// A platform is not told which life of a conversation an entry belongs to.
fn for_platform(stored: talaria_store::Recorded) -> Recorded {
    Recorded { position: stored.position, entry: stored.entry }
}

fn error(error: StoreError) -> ArchiveError {
    ArchiveError(error.to_string())
}
