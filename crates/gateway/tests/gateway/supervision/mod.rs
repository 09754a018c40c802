//! Who looks after the accounts: deafness, breakdowns, pauses and other settings.

mod breakdowns;
mod changing;
mod clocks;
mod deafness;
mod pausing;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use talaria_clock::{Clock, SystemClock};
use talaria_gateway::{
    AccountPlan, AccountState, AccountStatus, Hindrance, PauseError, Probation, Standing, Steward,
};
use talaria_model::{AccountId, Address, Capabilities, Ids, SenderId, TextLimit, Timestamp};
use talaria_platform::{ConnectError, LinkError, Proof, SendError};
use talaria_session::{Access, Busy, Pause, Person, Strangers};
use talaria_store::{Clue, JournalState, MemoryStore, Store};
use tokio::sync::Semaphore;

use crate::world::{Conduct, EDITING, Hears, Life, Reach, SIMPLE, Vendor, Verb, World, agent, key};

/// What nobody is to be told.
pub(crate) const SECRET: &str = "42-canary";

const AN_HOUR_BACK: i64 = -60 * 60 * 1000;

/// A process that knows where the operator is, and which accounts are paused.
#[derive(Default)]
pub(crate) struct Keeper {
    homes: Vec<Address>,
    paused: Mutex<BTreeSet<AccountId>>,
    /// How often looking for a home breaks down.
    breaks: Mutex<u32>,
}

#[async_trait]
impl Steward for Keeper {
    fn models(&self) -> Vec<String> {
        Vec::new()
    }

    fn model(&self, name: &str) -> Result<String, String> {
        Err(name.to_owned())
    }

    fn homes(&self) -> Vec<talaria_agent::Home> {
        let breaks = std::mem::take(&mut *self.breaks.lock().unwrap());
        assert_eq!(breaks, 0, "the test says so");
        let home = |at: &Address| talaria_agent::Home {
            at: at.clone(),
            name: None,
            ids: Ids::Needed,
            platform: "sim".into(),
        };
        self.homes.iter().map(home).collect()
    }

    fn destinations(&self) -> Vec<talaria_agent::Destination> {
        Vec::new()
    }

    async fn set_home(&self, _: &Address) -> Result<(), String> {
        Err("no".into())
    }

    fn paused(&self) -> Vec<AccountId> {
        self.paused.lock().unwrap().iter().cloned().collect()
    }

    async fn keep_paused(&self, account: &AccountId, pause: Pause) -> Result<(), String> {
        let mut paused = self.paused.lock().unwrap();
        match pause {
            Pause::Pause => paused.insert(account.clone()),
            Pause::Resume => paused.remove(account),
        };
        Ok(())
    }

    fn discreet<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match text.contains(SECRET) {
            true => text.replace(SECRET, "(hidden)").into(),
            false => text.into(),
        }
    }

    async fn reload(&self, _: &str) -> Result<String, String> {
        Err("no".into())
    }

    async fn restart(&self) -> Result<(), String> {
        Err("no".into())
    }

    async fn run(&self, _: &str) -> Result<String, String> {
        Err("no".into())
    }
}

/// A world with an account that is polled and another one, on which the operator is at home.
fn watched() -> (World, Vendor) {
    watched_hearing(Hears::Poll)
}

/// The same with an account that is heard in another way.
fn watched_hearing(hears: Hears) -> (World, Vendor) {
    let mut world = World::hearing(SIMPLE, hears);
    let other = world.add("other", SIMPLE);
    let homes = vec![other.dm("operator"), world.vendor().dm("operator")];
    world.steward = Arc::new(Keeper { homes, ..Keeper::default() });
    (world, other)
}

fn status(life: &Life, account: &str) -> AccountStatus {
    let found = life.gateway.accounts().into_iter().find(|status| status.id.as_str() == account);
    found.expect("it is configured")
}

fn is_unproven(status: &AccountStatus) -> bool {
    matches!(status.state, AccountState::Unproven { .. })
}

fn nothing_comes_back() -> LinkError {
    LinkError::Deaf { reason: "nothing comes back".into(), until: Proof::Events, since: None }
}

fn connections(vendor: &Vendor) -> usize {
    vendor.truth(|truth| truth.connected.len())
}
