//! The shell: intake, lanes, turns, delivery, supervision.
//!
//! It carries data between platforms, sessions, the agent and the store, and decides nothing that a
//! session or a platform could decide. It knows the contracts and none of their implementations.
//! Tasks are spawned here and nowhere else.
#![forbid(unsafe_code)]

mod accounts;
mod archive;
mod attachments;
mod backoff;
mod bursts;
mod chats;
mod commits;
mod delivery;
mod denials;
mod desk;
mod exchanges;
mod expiry;
mod fetching;
mod files;
mod hearing;
mod intake;
mod lane;
mod lanes;
mod manner;
mod marks;
mod memory;
mod menu;
mod open_questions;
mod owed;
mod pace;
mod pairing;
mod preview;
mod recall;
mod requests;
mod shared;
mod shares;
mod silenced;
mod situation;
mod speaking;
mod spending;
mod steward;
mod tasks;
mod turn;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use talaria_agent::{Agent, Privacy};
use talaria_clock::Clock;
use talaria_model::{AccountId, ChatKind, SessionId, Timestamp};
use talaria_platform::{Account, FileStore};
use talaria_session::{Access, Ended, Event, Gate, PairWish, Rules, Scope, SessionKey};
use talaria_store::{Store, StoreError};

use crate::shared::Shared;

pub use accounts::{AccountState, AccountStatus};
pub use attachments::StoredAttachments;
pub use denials::Stranger;
pub use expiry::Finalizer;
pub use files::DiskFiles;
pub use hearing::{Ears, Listens};
pub use manner::{Manner, Replies, Streaming, Transport};
pub use menu::menu;
pub use pairing::{Entropy, PairError, Paired, carry_out};
pub use recall::StoreRecall;
pub use shared::{Limits, Routes};
pub use speaking::Mouth;
pub use steward::{NoSteward, Steward};

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
        if ended == Ended::Abruptly {
            tracing::info!("the last run ended abruptly; its work has been taken up again");
        }
        Ok(Self { shared })
    }

    /// Waits until each account that always exists has been connected once, or could not be.
    pub async fn first_connections(&self) {
        accounts::first_connections(&self.shared).await;
    }

    /// The HTTP routes of the connected accounts.
    pub fn routes(&self) -> Routes {
        self.shared.routes.clone()
    }

    /// How the accounts are doing.
    pub fn accounts(&self) -> Vec<AccountStatus> {
        accounts::statuses(&self.shared)
    }

    /// What survives.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// When this run began.
    pub fn started(&self) -> Timestamp {
        self.shared.started
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
            Some(account) => pairing::wish(&self.shared, account, wish, by).await,
            None => Err(PairError::NoAccount(account.to_string())),
        }
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

    /// Stops: nothing more is taken in, turns in hand get `grace` to finish, and what is not
    /// finished then goes on in the next run.
    pub async fn stop(&self, grace: Duration) {
        let shared = &self.shared;
        shared.intake_closed.cancel();
        let quiet = async {
            while shared.turns_in_hand() > 0 || shared.chats.busy() {
                shared.clock.sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            biased;
            () = quiet => {}
            () = shared.clock.sleep(grace) => {
                tracing::info!(turns = shared.turns_in_hand(), "leaving turns for the next run");
            }
        }
        shared.tasks.stop().await;
        if let Err(error) = shared.store.close().await {
            tracing::warn!(%error, "the store could not be closed; the next run will check it");
        }
    }
}

/// The agent that answers, which may be replaced while the gateway runs.
type AgentSlot = RwLock<Arc<dyn Agent>>;
