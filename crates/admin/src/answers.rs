//! What the store knows, as the API tells it. The local socket answers with these, and so does the
//! command line itself when no gateway is running.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, Stream};
use serde::{Deserialize, Serialize};
use talaria_clock::rfc3339;
use talaria_model::{
    AccountId, Cost, EntryBody, Extent, FileRef, Grant, SessionId, Timestamp, Usage,
};
use talaria_session::budget::{Day, Payer, Spent};
use talaria_session::{ResetReason, Retired, SessionKey};
use talaria_store::{
    AuditDeed, Audited, Kept, Life, MOST_GRANTS, Named, Presence, Reading, Recorded, SearchScope,
    Spoken, Store, StoreError, Summary, Wanted, is_spared,
};

use crate::api;
use crate::guests::OPERATOR;

/// More who spent something are not told at once; people come first.
const MOST_SPENDERS: usize = 1000;

/// More than this nobody reads.
const MOST: usize = 1000;

/// Entries or lives that are read at once.
const PAGE: usize = 200;

/// Conversations that are named when a name fits several of them.
const NAMED: usize = 10;

/// The shortest beginning of an id that is taken for it.
const SHORTEST_ID: usize = 6;

/// The longest title, in characters.
const LONGEST_TITLE: usize = 100;

/// What is asked for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// Only on this account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Words to look for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// Only what was said since, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// Conversations that their chats are not in any more, too.
    #[serde(default)]
    pub past: bool,
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
    /// What was asked for could be several things, or cannot be done at the moment.
    #[error("{0}")]
    Conflict(String),
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

    /// Whoever can ask is the operator and may read everything.
    fn scope(&self) -> Result<SearchScope, AnswerError> {
        Ok(match self.account()? {
            Some(account) => SearchScope::Accounts(vec![account]),
            None => SearchScope::Everything,
        })
    }
}

/// Conversations, the most recent first, and what all of them used.
pub async fn sessions(store: &dyn Store, listing: &Listing) -> Result<api::Sessions, AnswerError> {
    let (account, scope) = (listing.account()?, listing.scope()?);
    let sessions = match listing.past {
        true => {
            let lives = store.lives(&scope, None, listing.limit()).await?;
            lives.into_iter().map(|life| line_of(&life)).collect()
        }
        false => {
            let summaries = store.conversations(account.as_ref(), listing.limit()).await?;
            summaries.into_iter().map(session_of).collect()
        }
    };
    let totals = store.totals(&scope, None).await?;
    let totals = api::Totals {
        sessions: totals.lives,
        turns: totals.turns,
        used: used(totals.usage, totals.cost),
    };
    Ok(api::Sessions { sessions, totals })
}

/// What people and the agent said anywhere. What commands answered would repeat itself with every search.
pub async fn search(store: &dyn Store, listing: &Listing) -> Result<Vec<api::Found>, AnswerError> {
    let mut wanted = Wanted::new(listing.scope()?, listing.query.as_str(), listing.limit());
    wanted.since = listing.since.map(Timestamp::from_millis);
    wanted.spoken = vec![Spoken::Said, Spoken::Answered];
    let found = store.search(&wanted).await?;
    let found = found.into_iter().map(|found| api::Found {
        title: found.title,
        key: found.key.to_string(),
        entry: entry_of(found.recorded),
        excerpt: found.excerpt.replace('\u{2}', "[").replace('\u{3}', "]"),
    });
    Ok(found.collect())
}

/// The conversation that a name means: an id, a title, or the beginning of one of them.
pub async fn named(store: &dyn Store, name: &str) -> Result<Life, AnswerError> {
    match store.named(&SearchScope::Everything, name, NAMED).await? {
        Named::One(life) => Ok(*life),
        Named::Nothing => {
            Err(AnswerError::Missing(format!("there is no conversation called {name:?}")))
        }
        Named::Several(lives) => {
            let lines: Vec<String> = lives
                .iter()
                .map(|life| format!("\n  {}  {}", life.past.id, one_line(&life.past.title)))
                .collect();
            Err(AnswerError::Conflict(format!(
                "{name:?} could be any of these; say more of it:{}",
                lines.concat()
            )))
        }
    }
}

/// A conversation and its newest entries.
pub async fn transcript(
    store: &dyn Store,
    name: &str,
    limit: usize,
) -> Result<api::Transcript, AnswerError> {
    let life = named(store, name).await?;
    let limit = limit.clamp(1, MOST);
    let mut newest = VecDeque::with_capacity(limit);
    let mut after = None;
    loop {
        let page = store.entries(&life.past.id, Reading::Standing, after, PAGE).await?;
        after = page.last().map(|kept| kept.recorded.position).or(after);
        let is_last = page.len() < PAGE;
        for kept in page {
            if newest.len() == limit {
                newest.pop_front();
            }
            newest.push_back(kept_of(kept));
        }
        if is_last {
            break;
        }
    }
    let session = detail(store, &life).await?;
    Ok(api::Transcript { session, entries: newest.into() })
}

/// Everything that is kept of one conversation, a line at a time: the conversation, then its entries,
/// oldest first. A line that tells of a problem is the last.
pub fn export(
    store: Arc<dyn Store>,
    life: Life,
    reading: Reading,
) -> impl Stream<Item = api::Exported> + Send + 'static {
    let export = Export { store, life, reading, after: None, page: VecDeque::new() };
    stream::unfold((export, Part::Session), |(mut export, part)| async move {
        let (line, part) = match part {
            Part::Over => return None,
            Part::Session => match detail(export.store.as_ref(), &export.life).await {
                Ok(detail) => (api::Exported::Session(Box::new(detail)), Part::Entries),
                Err(error) => (api::Exported::Problem(error.to_string()), Part::Over),
            },
            Part::Entries => match export.next().await {
                Ok(Some(entry)) => (api::Exported::Entry(Box::new(entry)), Part::Entries),
                Ok(None) => return None,
                Err(error) => (api::Exported::Problem(error.to_string()), Part::Over),
            },
        };
        Some((line, (export, part)))
    })
}

enum Part {
    Session,
    Entries,
    Over,
}

struct Export {
    store: Arc<dyn Store>,
    life: Life,
    reading: Reading,
    after: Option<u64>,
    page: VecDeque<Kept>,
}

impl Export {
    async fn next(&mut self) -> Result<Option<api::Entry>, StoreError> {
        if self.page.is_empty() {
            let life = &self.life.past.id;
            let page = self.store.entries(life, self.reading, self.after, PAGE).await?;
            self.after = page.last().map(|kept| kept.recorded.position).or(self.after);
            self.page = page.into();
        }
        Ok(self.page.pop_front().map(kept_of))
    }
}

/// One conversation in one line.
pub async fn line(store: &dyn Store, id: &SessionId) -> Result<api::Session, AnswerError> {
    let life = store.life(id).await?;
    let missing = || AnswerError::Missing(format!("there is no conversation {id}"));
    Ok(line_of(&life.ok_or_else(missing)?))
}

/// A title as it is kept, if it is one.
pub fn title(text: &str) -> Result<String, AnswerError> {
    let title: String = one_line(text).chars().take(LONGEST_TITLE).collect();
    match title.is_empty() {
        true => Err(AnswerError::Request("a title needs at least one character".into())),
        false => Ok(title),
    }
}

/// Forgets conversations in which nothing was said for so long, with all that was said in them; or says
/// which those would be. The sessions in `spare` stay: a gateway has them in memory.
pub async fn prune(
    store: &dyn Store,
    now: Timestamp,
    older_than: Duration,
    spare: &[SessionKey],
    doing: Pruning,
) -> Result<api::Pruned, AnswerError> {
    let ago = i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX);
    let since = Timestamp::from_millis(now.as_millis().saturating_sub(ago));
    match doing {
        Pruning::DryRun => {
            let old = old(store, since, spare).await?;
            let some = old.iter().take(NAMED).map(line_of).collect();
            Ok(api::Pruned { dry_run: true, sessions: old.len() as u64, some, freed: 0 })
        }
        Pruning::ForGood => {
            let sessions = store.forget_lives(since, spare).await?;
            if sessions > 0 {
                let detail = format!("{sessions} in which nothing was said for long");
                let deed = AuditDeed::SessionsForgotten;
                record(store, now, deed, "conversations".into(), detail).await?;
            }
            let freed = store.shrink().await?;
            Ok(api::Pruned { dry_run: false, sessions, some: Vec::new(), freed })
        }
    }
}

/// Records that a conversation leaves the gateway.
pub async fn record_export(
    store: &dyn Store,
    life: &Life,
    now: Timestamp,
) -> Result<(), AnswerError> {
    let subject = life.past.id.to_string();
    record(store, now, AuditDeed::SessionExported, subject, life.key.account.to_string()).await
}

async fn record(
    store: &dyn Store,
    now: Timestamp,
    deed: AuditDeed,
    subject: String,
    detail: String,
) -> Result<(), AnswerError> {
    let audited = Audited { actor: OPERATOR.to_owned(), deed, subject, detail };
    Ok(store.audit(now, vec![audited]).await?)
}

/// What was approved for good, the newest first.
pub async fn approvals(store: &dyn Store) -> Result<Vec<api::Granted>, AnswerError> {
    Ok(store.grants(MOST_GRANTS).await?.into_iter().map(granted).collect())
}

/// Who spent how much in a day.
pub async fn spending(store: &dyn Store, day: Day) -> Result<Vec<api::Spending>, AnswerError> {
    let row = |(payer, spent): (Payer, Spent)| {
        let (kind, account, name) = match payer {
            Payer::Person(name) => (api::PayerKind::Person, String::new(), name),
            Payer::Sender(account, sender) => {
                (api::PayerKind::Sender, account.to_string(), sender.to_string())
            }
            Payer::Chat(account, chat) => {
                (api::PayerKind::Chat, account.to_string(), chat.to_string())
            }
        };
        let Spent { messages, tokens, micros } = spent;
        let spent = api::Spent { messages, tokens, cost_micros: micros };
        api::Spending { kind, account, name, spent }
    };
    Ok(store.spending(day, MOST_SPENDERS).await?.into_iter().map(row).collect())
}

/// Takes back what was approved for good, by its id or the beginning of it.
pub async fn revoke(
    store: &dyn Store,
    id: &str,
    now: Timestamp,
) -> Result<api::Granted, AnswerError> {
    let id = id.trim().to_ascii_lowercase();
    if id.len() < SHORTEST_ID {
        let text = format!("an id needs at least {SHORTEST_ID} digits");
        return Err(AnswerError::Request(text));
    }
    let grants = store.grants(MOST_GRANTS).await?;
    let mut meant = grants.into_iter().filter(|grant| grant.digest.to_string().starts_with(&id));
    match (meant.next(), meant.next()) {
        (None, _) => Err(AnswerError::Missing(format!("nothing with the id {id} is approved"))),
        (Some(_), Some(_)) => {
            Err(AnswerError::Conflict(format!("several ids begin with {id}; write more of it")))
        }
        (Some(grant), None) => match store.revoke_grant(&grant.digest).await? {
            true => {
                let subject = format!("{}:{}", grant.account, grant.sender);
                let detail = format!("{} {}", grant.tool, grant.digest);
                record(store, now, AuditDeed::ApprovalRevoked, subject, detail).await?;
                Ok(granted(grant))
            }
            false => Err(AnswerError::Missing(format!("{id} is not approved any more"))),
        },
    }
}

fn granted(grant: Grant) -> api::Granted {
    let Grant { digest, tool, account, sender, by, shown, at } = grant;
    api::Granted {
        id: digest.to_string(),
        tool,
        account: account.to_string(),
        sender: sender.to_string(),
        by: by.id.to_string(),
        at: rfc3339(at),
        shown,
    }
}

/// Whether something is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pruning {
    /// It is only looked at.
    DryRun,
    /// It is.
    ForGood,
}

/// Lives that are old enough to be forgotten and for which nothing works any more. What is still to be
/// read or delivered is not looked at, so that a few of them may be kept all the same.
async fn old(
    store: &dyn Store,
    since: Timestamp,
    spare: &[SessionKey],
) -> Result<Vec<Life>, AnswerError> {
    let mut old = Vec::new();
    // A life stays as long as one that stays is a branch of it.
    let mut roots: BTreeSet<SessionId> = BTreeSet::new();
    let mut after: Option<SessionId> = None;
    loop {
        let page = store.lives(&SearchScope::Everything, after.as_ref(), PAGE).await?;
        after = page.last().map(|life| life.past.id.clone()).or(after);
        let is_last = page.len() < PAGE;
        for life in page {
            let is_busy = match life.presence {
                Presence::Past { .. } => false,
                Presence::Present if spare.contains(&life.key) => true,
                Presence::Present => {
                    store.load(&life.key).await?.is_some_and(|it| is_spared(&it, since))
                }
            };
            if life.past.active >= since || is_busy {
                roots.extend(life.branched_from);
            } else {
                old.push(life);
            }
        }
        if is_last {
            break;
        }
    }
    // A branch that stays keeps what it came from, and that what it came from.
    loop {
        let is_root = |life: &Life| roots.contains(&life.past.id);
        let (kept, left): (Vec<Life>, Vec<Life>) = old.into_iter().partition(is_root);
        old = left;
        if kept.is_empty() {
            return Ok(old);
        }
        roots.extend(kept.into_iter().filter_map(|life| life.branched_from));
    }
}

fn session_of(summary: Summary) -> api::Session {
    api::Session {
        id: summary.id.to_string(),
        key: summary.key.to_string(),
        account: summary.key.account.to_string(),
        chat: summary.key.chat.as_ref().map(ToString::to_string),
        title: summary.title,
        updated: rfc3339(summary.updated),
        busy: summary.busy,
        over: None,
        turns: summary.turns,
        used: used(summary.usage, summary.cost),
    }
}

fn line_of(life: &Life) -> api::Session {
    let past = &life.past;
    api::Session {
        id: past.id.to_string(),
        key: life.key.to_string(),
        account: life.key.account.to_string(),
        chat: life.key.chat.as_ref().map(ToString::to_string),
        title: past.title.clone(),
        updated: rfc3339(past.active),
        busy: false,
        over: match life.presence {
            Presence::Present => None,
            Presence::Past { why } => Some(over(why).into()),
        },
        turns: past.turns,
        used: used(past.usage, past.cost),
    }
}

async fn detail(store: &dyn Store, life: &Life) -> Result<api::Detail, StoreError> {
    let session = match life.presence {
        Presence::Present => store.load(&life.key).await?,
        Presence::Past { .. } => None,
    };
    let busy = session.is_some_and(|session| session.hand().is_some());
    Ok(api::Detail {
        session: api::Session { busy, ..line_of(life) },
        begun: rfc3339(life.past.begun),
        entries: life.past.entries,
        prompt: life.past.prompt,
        model: life.past.preferences.model.clone(),
        branched_from: life.branched_from.as_ref().map(ToString::to_string),
    })
}

fn over(why: Option<Retired>) -> &'static str {
    match why {
        None => "another one was begun",
        Some(Retired::New) => "somebody began anew",
        Some(Retired::Reset(ResetReason::Idle)) => "nothing was said for long",
        Some(Retired::Reset(ResetReason::Daily)) => "a day was over",
        Some(Retired::Reset(ResetReason::Suspended)) => "it was stopped",
        Some(Retired::Switched) => "somebody went to another one",
        Some(Retired::Branched) => "somebody went on with a copy",
    }
}

fn used(usage: Usage, cost: Cost) -> api::Used {
    let Usage { input, output, cache_read, cache_write, reasoning, estimated } = usage;
    let (cost_micros, cost) = (cost.micros, cost.to_string());
    api::Used { input, output, cache_read, cache_write, reasoning, estimated, cost_micros, cost }
}

fn kept_of(kept: Kept) -> api::Entry {
    let taken_back = kept.rewound.map(|rewound| rfc3339(rewound.at));
    api::Entry { taken_back, ..entry_of(kept.recorded) }
}

fn entry_of(recorded: Recorded) -> api::Entry {
    let names = |files: Vec<FileRef>| files.into_iter().map(|file| file.name).collect();
    let mut entry = api::Entry {
        position: recorded.position,
        session: recorded.session.to_string(),
        at: rfc3339(recorded.entry.at),
        who: "gateway".into(),
        name: None,
        kind: String::new(),
        text: String::new(),
        files: Vec::new(),
        calls: Vec::new(),
        taken_back: None,
    };
    let kind = match recorded.entry.body {
        EntryBody::Said { from, text, files, .. } => {
            (entry.who, entry.name) = (from.id.to_string(), from.name);
            (entry.text, entry.files) = (text, names(files));
            "said"
        }
        EntryBody::Aside { from, text, files, .. } => {
            (entry.who, entry.name) = (from.id.to_string(), from.name);
            (entry.text, entry.files) = (text, names(files));
            "aside"
        }
        EntryBody::Answered { text, sent: None, extent: Extent::BrokenOff, .. }
            if text.is_empty() =>
        {
            entry.who = "agent".into();
            "interrupted"
        }
        EntryBody::Answered { text, calls, files, .. } => {
            let call = |call: talaria_model::ToolCall| api::Call {
                tool: call.tool,
                arguments: call.arguments,
            };
            entry.who = "agent".into();
            (entry.text, entry.files) = (text, names(files));
            entry.calls = calls.into_iter().map(call).collect();
            "answered"
        }
        EntryBody::Returned { output, files, .. } => {
            entry.who = "tool".into();
            (entry.text, entry.files) = (output, names(files));
            "returned"
        }
        EntryBody::Noticed { text, .. } => {
            entry.text = text;
            "noticed"
        }
        EntryBody::Summary { text, .. } => {
            entry.who = "agent".into();
            entry.text = text;
            "summary"
        }
    };
    entry.kind = kind.into();
    entry
}

fn one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_line_of_bounded_length() {
        assert_eq!(title("  a\n b\u{7}c ").unwrap(), "a b c");
        assert_eq!(title(&"x".repeat(500)).unwrap().len(), LONGEST_TITLE);
        assert!(title(" \n").is_err());
    }
}
