//! What every part of a running gateway holds on to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use talaria_agent::Privacy;
use talaria_clock::{Clock, Mark};
use talaria_model::{AccountId, Address, Capabilities, Timestamp};
use talaria_platform::{Bursts, FileStore, Surface};
use talaria_session::{Rules, Scope, SessionKey};
use talaria_store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::accounts::Accounts;
use crate::backoff::Spread;
use crate::chats::Chats;
use crate::expiry::Finalizer;
use crate::glimpses::Glimpses;
use crate::hearing::{Hearing, Listens};
use crate::lanes::Lanes;
use crate::manner::{Growth, Manner};
use crate::open_questions::OpenQuestions;
use crate::owed::Owed;
use crate::pairing::Entropy;
use crate::passing::{Follower, Tallies};
use crate::shares::Shares;
use crate::speaking::Speaking;
use crate::spending::Counters;
use crate::steward::Steward;
use crate::tasks::Tasks;
use crate::turns::Turns;
use crate::watching::Watcher;
use crate::{AccountPlan, AgentSlot, Parts};

/// What is bounded by how much.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Turns that run at the same time; more wait for one to end.
    pub turns_at_once: usize,
    /// Messages of one session that wait in memory; more wait in the journal.
    pub inbox: usize,
    /// Parcels of one chat that wait in memory; more wait in the outbox.
    pub outbox: usize,
    /// Idle sessions that stay in memory for a while; beyond that they leave at once.
    pub lingering: usize,
    /// How long an idle session stays in memory.
    pub linger: Duration,
    /// Entries of a conversation that a turn is given.
    pub history: usize,
    /// Bytes of one file that comes with a message.
    pub file: u64,
    /// Bytes of all files of one message.
    pub message_files: u64,
    /// Bytes of all files that one person sends in a day.
    pub sender_files: u64,
    /// How long a message waits for its files.
    pub fetch_time: Duration,
    /// How long a platform has to take a message before its outcome counts as unknown.
    pub send_timeout: Duration,
    /// How long a parcel is tried before we give up on it.
    pub parcel_lifetime: Duration,
    /// How long ended journal rows and parcels are kept, so that a late repeat is recognised.
    pub keep: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let days = |n: u64| Duration::from_secs(n * 24 * 60 * 60);
        Self {
            turns_at_once: 1000,
            inbox: 128,
            outbox: 64,
            lingering: 256,
            linger: Duration::from_secs(10),
            history: 400,
            file: 25_000_000,
            message_files: 100_000_000,
            sender_files: 1_000_000_000,
            fetch_time: Duration::from_secs(120),
            send_timeout: Duration::from_secs(60),
            parcel_lifetime: days(7),
            // The longest redelivery known of any platform is seven days.
            keep: days(8),
        }
    }
}

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) agent: AgentSlot,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) files: Arc<dyn FileStore>,
    pub(crate) hosts: Arc<[String]>,
    pub(crate) scope: Scope,
    pub(crate) rules: Arc<Rules>,
    pub(crate) entropy: Entropy,
    pub(crate) privacy: Privacy,
    pub(crate) steward: Arc<dyn Steward>,
    pub(crate) watcher: Arc<dyn Watcher>,
    pub(crate) follower: Arc<dyn Follower>,
    pub(crate) finalizers: Vec<Arc<dyn Finalizer>>,
    pub(crate) hearing: Option<Hearing>,
    pub(crate) speaking: Option<Speaking>,
    /// Accounts on which every sender is the operator, who may read all of them.
    pub(crate) operator_accounts: Vec<AccountId>,
    pub(crate) limits: Limits,
    /// What of the files each person has sent.
    pub(crate) shares: Arc<Shares>,
    pub(crate) accounts: Accounts,
    pub(crate) counters: Counters,
    pub(crate) lanes: Lanes,
    pub(crate) chats: Chats,
    pub(crate) owed: Owed,
    pub(crate) open_questions: OpenQuestions,
    pub(crate) turn_permits: Arc<Semaphore>,
    pub(crate) turns: Turns,
    pub(crate) glimpses: Glimpses,
    pub(crate) tallies: Tallies,
    pub(crate) routes: Routes,
    pub(crate) tasks: Tasks,
    /// No turn begins any more.
    pub(crate) draining: CancellationToken,
    pub(crate) intake_closed: CancellationToken,
    pub(crate) started: Timestamp,
    /// The same on the clock that never jumps.
    pub(crate) began: Mark,
    pub(crate) spread: Spread,
}

impl Shared {
    pub(crate) fn new(parts: Parts, started: Timestamp) -> Arc<Self> {
        let Parts { store, agent, clock, files, accounts, hosts, scope, rules, limits, .. } = parts;
        let Parts { privacy, steward, watcher, follower, finalizers, ears, mouth, entropy, .. } =
            parts;
        let paused = steward.paused();
        let is_operators = |plan: &&AccountPlan| plan.access.reads_others();
        let began = clock.mark();
        Arc::new(Self {
            began,
            entropy,
            privacy,
            steward,
            watcher,
            follower,
            finalizers,
            hearing: ears.map(Hearing::new),
            speaking: mouth.map(Speaking::new),
            operator_accounts: accounts
                .iter()
                .filter(is_operators)
                .map(|plan| plan.id.clone())
                .collect(),
            store,
            agent: RwLock::new(agent),
            clock,
            files,
            hosts,
            scope,
            rules,
            shares: Arc::new(Shares::new(limits.sender_files)),
            limits,
            accounts: Accounts::new(accounts, &paused),
            counters: Counters::new(),
            lanes: Lanes::new(limits.turns_at_once),
            chats: Chats::default(),
            owed: Owed::default(),
            open_questions: OpenQuestions::default(),
            turn_permits: Arc::new(Semaphore::new(limits.turns_at_once)),
            turns: Turns::default(),
            glimpses: Glimpses::default(),
            tallies: Tallies::default(),
            routes: Routes::default(),
            tasks: Tasks::default(),
            draining: CancellationToken::new(),
            intake_closed: CancellationToken::new(),
            started,
            spread: Spread::new(started),
        })
    }

    /// What an account can do, whether it is connected or not. One that was taken out can do what it could;
    /// one that nobody knows can do the least.
    pub(crate) fn capabilities(&self, at: &Address) -> Capabilities {
        let account = self.accounts.known(&at.account);
        account.map_or(Capabilities::PLAIN, |account| account.capabilities(at.chat.kind))
    }

    /// How an account speaks.
    pub(crate) fn manner(&self, at: &Address) -> Arc<Manner> {
        let account = self.accounts.known(&at.account);
        account.map(|account| account.plan().manner.clone()).unwrap_or_default()
    }

    /// How an answer grows in a chat.
    pub(crate) fn growth(&self, at: &Address) -> Growth {
        self.manner(at).streaming.growth(&self.capabilities(at))
    }

    /// What applies to a session. One whose account is no longer configured has the usual rules.
    pub(crate) fn rules_for(&self, key: &SessionKey) -> Arc<Rules> {
        let account = self.accounts.get(&key.account);
        let own = account.and_then(|account| account.plan().rules.get(&key.kind).cloned());
        own.unwrap_or_else(|| self.rules.clone())
    }

    /// How what people send as one is delivered in parts to a session.
    pub(crate) fn bursts_for(&self, key: &SessionKey) -> Bursts {
        let account = self.accounts.get(&key.account);
        account.map_or(Bursts::NONE, |account| account.plan().account.spec.bursts)
    }

    /// Which recordings are written down before their session hears of them.
    pub(crate) fn listens(&self) -> Listens {
        self.hearing.as_ref().map_or(Listens::Never, Hearing::listens)
    }

    /// Whether the gateway is ending, so that no turn begins.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }
}

/// The HTTP routes of the accounts that are connected at the moment.
#[derive(Clone, Default)]
pub struct Routes {
    mounted: Arc<Mutex<HashMap<(Surface, AccountId), axum::Router>>>,
}

impl Routes {
    /// The routes of one account on one surface.
    pub fn of(&self, surface: Surface, account: &AccountId) -> Option<axum::Router> {
        self.lock().get(&(surface, account.clone())).cloned()
    }

    /// The routes at the root of the HTTP listener.
    pub fn root(&self) -> Option<axum::Router> {
        let mounted = self.lock();
        mounted
            .iter()
            .find_map(|((surface, _), routes)| (*surface == Surface::Root).then(|| routes.clone()))
    }

    /// From here on these are the routes of an account on a surface.
    pub fn mount(&self, surface: Surface, account: &AccountId, routes: axum::Router) {
        self.lock().insert((surface, account.clone()), routes);
    }

    pub(crate) fn unmount(&self, account: &AccountId) {
        self.lock().retain(|(_, mounted), _| mounted != account);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(Surface, AccountId), axum::Router>> {
        self.mounted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
