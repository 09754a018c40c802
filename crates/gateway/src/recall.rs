//! What the agent may remember of a person's conversations.

use std::sync::Arc;

use async_trait::async_trait;
use talaria_agent::{Memory, Recall, ToolScope};
use talaria_model::{AccountId, EntryBody};
use talaria_store::{Found, Store, Wanted};

use crate::requests::{SPOKEN, reach, teller};

/// How many more results are asked for, because the turn that asks is left out of them.
const THIS_TURN: usize = 10;

/// Searches the store in one person's name.
pub struct StoreRecall {
    /// Where to look.
    pub store: Arc<dyn Store>,
    /// Accounts on which every sender is the operator, who may read all of them.
    pub operator_accounts: Vec<AccountId>,
}

#[async_trait]
impl Recall for StoreRecall {
    async fn search(
        &self,
        scope: &ToolScope,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Memory>, String> {
        let life = self.store.life(&scope.turn.session).await.map_err(|error| error.to_string())?;
        // A life that is not there is nobody's.
        let Some(life) = life else { return Ok(Vec::new()) };
        let within = reach(&self.operator_accounts, &life.key, &scope.from);
        let wanted = Wanted::new(within, query, limit + THIS_TURN);
        let wanted = Wanted { spoken: SPOKEN.into(), ..wanted };
        let found = self.store.search(&wanted).await.map_err(|error| error.to_string())?;
        // What was just said always fits best and helps least.
        let is_news = |found: &Found| found.recorded.entry.turn.as_ref() != Some(&scope.turn);
        let found = found.into_iter().filter(is_news).take(limit);
        let memories = found.map(|found| Memory {
            when: talaria_clock::rfc3339(found.recorded.entry.at),
            conversation: found.title,
            who: match &found.recorded.entry.body {
                EntryBody::Said { from, forwarded, .. } => teller(from, forwarded.as_ref()),
                EntryBody::Aside { from, .. } => teller(from, None),
                EntryBody::Answered { .. }
                | EntryBody::Returned { .. }
                | EntryBody::Summary { .. } => "the agent".into(),
                EntryBody::Noticed { .. } => "the gateway".into(),
            },
            excerpt: found.excerpt.replace(['\u{2}', '\u{3}'], ""),
        });
        Ok(memories.collect())
    }
}
