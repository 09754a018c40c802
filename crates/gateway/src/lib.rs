//! The shell: intake, lanes, turns, delivery, supervision.
//!
//! It carries data between platforms, sessions, the agent and the store, and decides nothing that a
//! session or a platform could decide. It knows the contracts and none of their implementations.
//! Tasks are spawned here and nowhere else.
#![forbid(unsafe_code)]

mod accounts;
mod alarm;
mod archive;
mod attachments;
mod backoff;
mod bursts;
mod bystanders;
mod chats;
mod chores;
mod commits;
mod delivery;
mod denials;
mod desk;
mod destinations;
mod discretion;
mod door;
mod drain;
mod dump;
mod exchanges;
mod expiry;
mod fetching;
mod files;
mod glimpses;
mod hearing;
mod hindrance;
mod intake;
mod lane;
mod lanes;
mod manner;
mod marks;
mod memory;
mod menu;
mod mute;
mod open_questions;
mod owed;
mod pace;
mod pairing;
mod passing;
mod pausing;
mod preview;
mod probation;
mod recall;
mod requests;
mod scrutiny;
mod shared;
mod shares;
mod silenced;
mod situation;
mod speaking;
mod spending;
mod steward;
mod supervise;
mod tasks;
mod turn;
mod turns;
mod watching;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use talaria_agent::{Agent, Privacy};
use talaria_clock::Clock;
use talaria_model::{AccountId, ChatKind, Inbound, SessionId, Timestamp, TurnId};
use talaria_platform::{Account, FileStore};
use talaria_session::{Access, Ended, Event, Gate, PairWish, Pause, Rules, Scope, SessionKey};
use talaria_store::{Clue, JournalState, Store, StoreError};

use crate::shared::Shared;

pub use accounts::{AccountState, AccountStatus, Mute};
pub use attachments::StoredAttachments;
pub use chores::{ChoreDump, Chores};
pub use denials::Stranger;
pub use drain::{Drain, Drained};
pub use dump::{AccountDump, ChatDump, Doing, Dump, LaneDump};
pub use expiry::Finalizer;
pub use files::DiskFiles;
pub use glimpses::{Glimpse, MISDIRECTED, Unwritten};
pub use hearing::{Ears, Listens};
pub use hindrance::Hindrance;
pub use manner::{Manner, Replies, Streaming, Transport};
pub use menu::menu;
pub use pairing::{Entropy, PairError, Paired, carry_out};
pub use passing::{Cause, Follower, Hop, NoFollower, Received, Reception, Settled, Tally, Turning};
pub use pausing::PauseError;
pub use probation::Probation;
pub use recall::StoreRecall;
pub use shared::{Limits, Routes};
pub use speaking::Mouth;
pub use steward::{NoSteward, Steward};
pub use turns::{Standing, TurnState, TurnStatus};
pub use watching::{
    Arriving, Commanded, Decided, Happening, NoWatcher, Order, Over, Used, Watcher, What,
};

/// Everything a gateway is made of.
pub struct Parts {
    /// What survives.
    pub store: Arc<dyn Store>,
    /// Who answers.
    pub agent: Arc<dyn Agent>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Files that travel with messages.
    pub files: Arc<dyn FileStore>,
    /// The accounts to connect.
    pub accounts: Vec<AccountPlan>,
    /// Names besides loopback ones under which the HTTP listener may be addressed.
    pub hosts: Arc<[String]>,
    /// Who shares a session.
    pub scope: Scope,
    /// What applies to a session where its account says nothing else.
    pub rules: Arc<Rules>,
    /// Whether ids are shown to the model.
    pub privacy: Privacy,
    /// The process around the gateway.
    pub steward: Arc<dyn Steward>,
    /// Who watches from outside.
    pub watcher: Arc<dyn Watcher>,
    /// Who follows messages on their way.
    pub follower: Arc<dyn Follower>,
    /// Who keeps something for a conversation and has to let go of it when that is over.
    pub finalizers: Vec<Arc<dyn Finalizer>>,
    /// What listens to voice messages, if anything does.
    pub ears: Option<Ears>,
    /// What speaks, if anything does.
    pub mouth: Option<Mouth>,
    /// Where randomness comes from that nobody may guess.
    pub entropy: Entropy,
    /// What is bounded by how much.
    pub limits: Limits,
}

/// An account to connect.
#[derive(Clone)]
pub struct AccountPlan {
    /// Its name.
    pub id: AccountId,
    /// Its platform and settings.
    pub account: Account,
    /// Who it listens to.
    pub access: Access,
    /// What of that it answers.
    pub gate: Gate,
    /// What applies to its sessions, by kind of chat; the usual rules where nothing is said.
    pub rules: BTreeMap<ChatKind, Arc<Rules>>,
    /// How it speaks.
    pub manner: Arc<Manner>,
    /// Its private folder.
    pub folder: PathBuf,
}

/// A running gateway. Clones are handles to the same one.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

impl Gateway {
    /// Takes up what the last run left, and connects the accounts. Returns once the work of the
    /// last run is in hand; connecting goes on in the background.
    pub async fn start(parts: Parts) -> Result<Self, StoreError> {
        let ended = parts.store.recover().await?;
        let started = parts.clock.now();
        let shared = Shared::new(parts, started);
        // What is old goes first: parcels of the last run before what its sessions say next, and
        // both before anything new is heard.
        let resumed = async {
            accounts::resume(&shared).await?;
            shared.owed.resume(shared.store.as_ref()).await?;
            chats::resume(&shared).await?;
            lanes::resume(&shared, ended).await
        };
        if let Err(error) = resumed.await {
            shared.tasks.stop().await;
            // Nobody died here, and the next start must not think so.
            if let Err(error) = shared.store.close().await {
                tracing::warn!(%error, "the store could not be closed");
            }
            return Err(error);
        }
        accounts::start(&shared);
        tasks::spawn_maintenance(&shared);
        expiry::spawn(&shared);
        glimpses::spawn(&shared);
        if ended == Ended::Abruptly {
            tracing::info!("the last run ended abruptly; its work has been taken up again");
        }
        Ok(Self { shared })
    }

    /// Waits until each account that always exists has been connected once, or could not be.
    pub async fn first_connections(&self) {
        accounts::first_connections(&self.shared).await;
    }

    /// Waits until each account has been connected once, or could not be. None is waited for longer than
    /// a connection may take.
    pub async fn every_connection(&self) {
        accounts::every_connection(&self.shared).await;
    }

    /// Whether some account has neither been connected since the start nor is known not to be. One that is
    /// put later does not begin another start.
    pub fn is_starting(&self) -> bool {
        accounts::is_starting(&self.shared)
    }

    /// The HTTP routes of the connected accounts.
    pub fn routes(&self) -> Routes {
        self.shared.routes.clone()
    }

    /// Names besides loopback ones under which the HTTP listener may be addressed.
    pub fn hosts(&self) -> &[String] {
        &self.shared.hosts
    }

    /// How the accounts are doing.
    pub fn accounts(&self) -> Vec<AccountStatus> {
        accounts::statuses(&self.shared)
    }

    /// What survives.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// What was seen in this run and left no row, as far as it is remembered and a clue leads to it, the
    /// newest first.
    pub fn glimpses(&self, clue: &Clue, limit: usize) -> Vec<Glimpse> {
        self.shared.glimpses.of(clue, limit)
    }

    /// What passed on each account in this run.
    pub fn tallies(&self) -> BTreeMap<AccountId, Tally> {
        self.shared.tallies.all()
    }

    /// When this run began.
    pub fn started(&self) -> Timestamp {
        self.shared.started
    }

    /// For how long it runs, whatever the wall clock says.
    pub fn uptime(&self) -> Duration {
        self.shared.clock.mark().since(self.shared.began)
    }

    /// The time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// Sessions that are in memory at the moment.
    pub fn lanes_in_memory(&self) -> usize {
        self.shared.lanes.len()
    }

    /// Which sessions those are. What is in memory must not be forgotten by the store.
    pub fn sessions_in_memory(&self) -> Vec<SessionKey> {
        self.shared.lanes.keys()
    }

    /// Gives the present life of a session another title.
    pub fn rename(&self, key: SessionKey, life: SessionId, title: String) {
        lanes::tell(&self.shared, key, Event::Renamed { life, title });
    }

    /// Lets somebody in on an account or puts them out, in the name of somebody. It holds from the next
    /// event on.
    pub async fn pair(
        &self,
        account: &AccountId,
        wish: &PairWish,
        by: &str,
    ) -> Result<Paired, PairError> {
        let found = self.shared.accounts.get(account).filter(|account| account.is_platforms());
        match found {
            Some(account) => {
                pairing::wish(&self.shared, &account, wish, pairing::Wisher::operator(by)).await
            }
            None => Err(PairError::NoAccount(account.to_string())),
        }
    }

    /// Disconnects an account until somebody says that it is to go on, or connects it at once, in the name
    /// of somebody. That holds for the next run, too. One that waits or has failed is tried at once.
    pub async fn pause(
        &self,
        account: &AccountId,
        pause: Pause,
        by: &str,
    ) -> Result<(), PauseError> {
        pausing::order(&self.shared, account, pause, by).await
    }

    /// Connects an account that is set up like this: one more, or one that runs, whose present connection
    /// ends first. One that is paused stays so. What waits for the account goes on.
    pub fn put_account(&self, plan: AccountPlan) {
        accounts::put(&self.shared, plan);
    }

    /// Sets an account up as it was before, because it does not work with its new settings, and tells the
    /// operator on another account.
    pub async fn take_back(&self, before: AccountPlan, problem: &str) {
        let id = before.id.clone();
        self.put_account(before);
        let text = format!(
            "`{id}` does not work with its new settings ({}), so it is back to its old ones.",
            talaria_render::literal(problem)
        );
        alarm::tell(&self.shared, &id, text).await;
    }

    /// Disconnects an account that is not configured any more, and lets go of its credentials when that is
    /// done. What has to be delivered on it and what nobody has answered wait until it is put back.
    pub fn drop_account(&self, account: &AccountId) {
        if let Some(account) = self.shared.accounts.get(account) {
            account.order(|_| supervise::Course::Gone);
        }
    }

    /// Waits until an account was tried since it was last put, paused or resumed, or is disconnected since it
    /// was dropped, for so long at most; says how it is doing.
    pub async fn tried(&self, account: &AccountId, within: Duration) -> Option<AccountState> {
        let account = self.shared.accounts.known(account)?;
        tokio::select! {
            biased;
            () = account.tried() => {}
            () = self.shared.clock.sleep(within) => {}
        }
        Some(account.state())
    }

    /// Listens to these senders on an account from the next event on. What others have said and nobody
    /// has read yet is not read any more. An account that does not run is left alone.
    pub fn set_access(&self, account: &AccountId, access: Access) {
        if let Some(account) = self.shared.accounts.get(account) {
            account.set_access(access);
        }
    }

    /// Answers what this says on an account from the next event on. An account that does not run is left
    /// alone.
    pub fn set_gate(&self, account: &AccountId, gate: Gate) {
        if let Some(account) = self.shared.accounts.get(account) {
            account.set_gate(gate);
        }
    }

    /// Lets another agent answer from the next turn on; turns in hand keep theirs.
    pub fn set_agent(&self, agent: Arc<dyn Agent>) {
        *self.shared.agent.write().unwrap_or_else(PoisonError::into_inner) = agent;
    }

    /// Completes when a task of this gateway has run: its threads are not all stuck.
    pub async fn breathes(&self) {
        self.shared.tasks.breathe().await;
    }

    /// Everything that is in hand, without what anybody said.
    pub fn dump(&self) -> Dump {
        dump::dump(&self.shared)
    }

    /// The turns that are being taken at the moment.
    pub fn turns(&self) -> Vec<TurnStatus> {
        self.shared.turns.all()
    }

    /// How it stands with a turn of an account that is in hand and waits for no person.
    pub fn standing(&self, turn: &TurnId, account: &AccountId) -> Standing {
        turns::standing(&self.shared, turn, account)
    }

    /// What keeps an event in this state from being read, or from its turn.
    pub fn hindrance(&self, inbound: &Inbound, state: &JournalState) -> Option<Hindrance> {
        hindrance::hindrance(&self.shared, inbound, state)
    }

    /// Ends. No turn begins any more, turns in hand get some time to finish, and what is not finished then
    /// goes on in the next run. What is said meanwhile is taken in.
    pub async fn drain(&self, how: Drain) -> Drained {
        drain::drain(&self.shared, how).await
    }

    /// Ends, with so much time for turns in hand.
    pub async fn stop(&self, grace: Duration) {
        self.drain(Drain::within(grace)).await;
    }
}

/// The agent that answers, which may be replaced while the gateway runs.
type AgentSlot = RwLock<Arc<dyn Agent>>;
