//! An archive for platforms under test, in which something was said in some conversations.

use async_trait::async_trait;
use talaria_clock::{Clock, SystemClock};
use talaria_model::{Address, Entry, EntryBody, Sender, SenderId};
use talaria_platform::{Archive, ArchiveError, Conversation, Hit, Recorded};

/// Conversations in which one thing was said.
#[derive(Debug, Clone, Default)]
pub struct Past(pub Vec<Address>);

#[async_trait]
impl Archive for Past {
    async fn conversations(&self, limit: usize) -> Result<Vec<Conversation>, ArchiveError> {
        let conversation = |at: &Address| Conversation {
            at: at.clone(),
            title: "talk".into(),
            updated: SystemClock.now(),
            busy: false,
        };
        Ok(self.0.iter().take(limit).map(conversation).collect())
    }

    async fn history(
        &self,
        at: &Address,
        _: Option<u64>,
        _: usize,
    ) -> Result<Vec<Recorded>, ArchiveError> {
        let is_there =
            |known: &&Address| (&known.chat.id, &known.thread) == (&at.chat.id, &at.thread);
        let body = EntryBody::Said {
            from: Sender::new(SenderId::literal("U1")),
            text: "hello".into(),
            files: Vec::new(),
            heard: None,
            message: None,
            forwarded: None,
        };
        let entry = Entry {
            number: 1,
            at: SystemClock.now(),
            turn: None,
            body,
            because: None,
            about: None,
            resumed: None,
        };
        Ok(self
            .0
            .iter()
            .find(is_there)
            .map(|_| Recorded { position: 1, entry })
            .into_iter()
            .collect())
    }

    async fn search(&self, _: &str, _: usize) -> Result<Vec<Hit>, ArchiveError> {
        Ok(Vec::new())
    }
}
