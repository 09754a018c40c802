//! A whole world in one thread: people, a vendor, a disk, and gateways that live and die.
//!
//! A life of the gateway is a runtime of its own with virtual time. When a life ends, its runtime is
//! dropped and every task dies where it stands, as if the process had been killed; what survives is
//! the disk and the vendor.

mod agent;
mod disk;
mod model;
mod points;
mod vendor;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use talaria_agent::Agent;
use talaria_clock::{Clock, FakeClock};
use talaria_gateway::{AccountPlan, AccountStatus, Gateway, Limits, Parts};
use talaria_model::{
    Address, Capabilities, Edits, FileId, FileRef, Idempotency, Markup, TextLimit, Timestamp, Unit,
};
use talaria_platform::{ByteStream, FileError, FileStore};
use talaria_session::{Access, Rules, Scope, SessionKey};
use talaria_store::{Recorded, Store, StoreError};

pub(crate) use agent::{Stage, agent, echo, finished};
pub(crate) use disk::{Disk, Verb};
pub(crate) use model::{Deeds, built_in};
pub(crate) use points::Points;
pub(crate) use vendor::{Conduct, Hears, MARK, Vendor};

/// A platform that can do the least, with Markdown.
pub(crate) const SIMPLE: Capabilities = Capabilities {
    text: TextLimit { max: 1000, unit: Unit::Chars },
    markup: Markup::Markdown,
    ..Capabilities::PLAIN
};

/// A platform that shows an answer while it grows by editing it.
pub(crate) const EDITING: Capabilities =
    Capabilities { edits: Edits::Every(Duration::from_secs(1)), ..SIMPLE };

/// The same, recognising repeats.
pub(crate) const fn keyed(can: Capabilities) -> Capabilities {
    Capabilities { idempotency: Idempotency::Keyed(Duration::from_secs(24 * 60 * 60)), ..can }
}

/// Everything that outlives the process.
pub(crate) struct World {
    pub(crate) disk: Disk,
    pub(crate) points: Points,
    pub(crate) accounts: Vec<(Vendor, Access)>,
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) scope: Scope,
    pub(crate) rules: Rules,
    pub(crate) limits: Limits,
    now: Timestamp,
}

/// How a life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The test was through with it.
    Over,
    /// It died at the moment it was told to.
    Died,
}

impl World {
    /// A world with one account, to which everybody may write, and an agent that echoes.
    pub(crate) fn new(can: Capabilities) -> Self {
        Self::hearing(can, Hears::Stream)
    }

    pub(crate) fn hearing(can: Capabilities, hears: Hears) -> Self {
        let points = Points::default();
        let vendor = Vendor::new("main", can, hears, points.clone());
        Self {
            disk: Disk::new(points.clone()),
            points,
            accounts: vec![(vendor, Access::Everyone)],
            agent: echo(),
            scope: Scope::default(),
            rules: Rules::default(),
            limits: Limits::default(),
            now: Timestamp::from_millis(1_794_735_000_000),
        }
    }

    pub(crate) fn with_agent(mut self, agent: Arc<dyn Agent>) -> Self {
        self.agent = agent;
        self
    }

    pub(crate) fn vendor(&self) -> Vendor {
        self.accounts[0].0.clone()
    }

    /// Adds an account on a vendor of its own.
    pub(crate) fn add(&mut self, account: &'static str, can: Capabilities) -> Vendor {
        let vendor = Vendor::new(account, can, Hears::Stream, self.points.clone());
        self.accounts.push((vendor.clone(), Access::Everyone));
        vendor
    }

    /// Lets time pass while no gateway runs.
    pub(crate) fn sleep(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// One life of the gateway. It ends as abruptly as a process does that is killed.
    pub(crate) fn live<T>(&mut self, play: impl AsyncFnOnce(&Life) -> T) -> T {
        self.points.begin(None);
        let mut outcome = None;
        self.live_until(play, &mut outcome);
        outcome.expect("a life without a moment of death is lived to its end")
    }

    /// A life that dies at that moment, if it gets there.
    pub(crate) fn live_and_die(&mut self, moment: usize, play: impl AsyncFnOnce(&Life)) -> End {
        self.points.begin(Some(moment));
        let mut outcome = None;
        self.live_until(play, &mut outcome);
        outcome.map_or(End::Died, |()| End::Over)
    }

    /// A life in which something else decides when it dies.
    pub(crate) fn live_until_it_dies(&mut self, play: impl AsyncFnOnce(&Life)) -> End {
        self.live_and_die(usize::MAX, play)
    }

    /// Tries to start a gateway, and lets time pass for whatever it leaves running.
    pub(crate) fn try_start(&mut self, then: Duration) -> Result<(), StoreError> {
        self.points.begin(None);
        runtime().block_on(async {
            let clock = Arc::new(FakeClock::starting(self.now));
            let started = Gateway::start(self.parts(clock.clone())).await;
            clock.sleep(then).await;
            started.map(|_| ())
        })
    }

    fn live_until<T>(&mut self, play: impl AsyncFnOnce(&Life) -> T, outcome: &mut Option<T>) {
        runtime().block_on(async {
            let clock = Arc::new(FakeClock::starting(self.now));
            let lived = async {
                let gateway = Gateway::start(self.parts(clock.clone())).await.expect("a start");
                let life = Life {
                    gateway,
                    vendor: self.vendor(),
                    disk: self.disk.clone(),
                    clock: clock.clone(),
                };
                play(&life).await
            };
            let limit = clock.sleep(Duration::from_secs(365 * 24 * 60 * 60));
            tokio::select! {
                biased;
                () = self.points.died() => {}
                lived = lived => *outcome = Some(lived),
                () = limit => panic!("a year passed in vain"),
            }
            self.now = clock.now() + Duration::from_secs(1);
        });
    }

    fn parts(&self, clock: Arc<dyn Clock>) -> Parts {
        let accounts = self.accounts.iter().map(|(vendor, access)| AccountPlan {
            id: vendor.account(),
            account: vendor.open(),
            access: access.clone(),
            folder: "unused".into(),
        });
        Parts {
            store: Arc::new(self.disk.clone()),
            agent: self.agent.clone(),
            clock,
            files: Arc::new(NoFiles),
            accounts: accounts.collect(),
            hosts: Arc::new([]),
            scope: self.scope,
            rules: self.rules,
            limits: self.limits,
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
}

/// A gateway while it lives.
pub(crate) struct Life {
    pub(crate) gateway: Gateway,
    pub(crate) vendor: Vendor,
    pub(crate) disk: Disk,
    pub(crate) clock: Arc<FakeClock>,
}

impl Life {
    /// Lets time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    pub(crate) async fn pass_seconds(&self, seconds: u64) {
        self.pass(Duration::from_secs(seconds)).await;
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Waits until it is so at the vendor.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut(&Vendor) -> bool) {
        let mut changes = self.vendor.changes();
        let wait = async {
            while !holds(&self.vendor) {
                changes.changed().await.expect("the vendor outlives the life");
            }
        };
        tokio::select! {
            () = wait => {}
            () = self.clock.sleep(Duration::from_secs(30 * 24 * 60 * 60)) => {
                let shown = self.vendor.truth(|truth| format!("{:#?}", truth.shown));
                panic!("waited a month in vain: {what}; what can be seen: {shown}");
            }
        }
    }

    /// Waits until so many messages can be read in a chat, and returns their texts.
    pub(crate) async fn texts(&self, chat: &str, count: usize) -> Vec<String> {
        let what = format!("{count} messages in {chat}");
        self.until(&what, |vendor| vendor.texts(chat).len() >= count).await;
        self.vendor.texts(chat)
    }

    /// Waits until there is nothing to do: nothing unread, no turn in hand, nothing undelivered.
    pub(crate) async fn quiet(&self) {
        let mut changes = self.disk.changes();
        let wait = async {
            loop {
                let counts = self.disk.kept.counts().await.expect("memory answers");
                let open = counts.unread + counts.turns_in_hand + counts.undelivered;
                if open == 0 && self.vendor.is_heard() {
                    return;
                }
                changes.changed().await.expect("the disk outlives the life");
            }
        };
        tokio::select! {
            () = wait => {}
            () = self.clock.sleep(Duration::from_secs(30 * 24 * 60 * 60)) => {
                let counts = self.disk.kept.counts().await;
                panic!("waited a month for quiet: {counts:?}");
            }
        }
    }

    /// What was recorded of the conversation in a chat with us alone.
    pub(crate) async fn transcript(&self, chat: &str) -> Vec<Recorded> {
        let key = key(&self.vendor.dm(chat));
        self.disk.kept.transcript(&key, None, 1000).await.expect("memory answers")
    }

    pub(crate) fn account(&self) -> AccountStatus {
        self.gateway.accounts().remove(0)
    }
}

/// The session of a chat with one person.
pub(crate) fn key(at: &Address) -> SessionKey {
    SessionKey {
        account: at.account.clone(),
        kind: at.chat.kind,
        chat: at.chat.id.clone(),
        thread: None,
        member: None,
    }
}

/// No test here sends a file.
struct NoFiles;

#[async_trait]
impl FileStore for NoFiles {
    async fn save(&self, _: &str, _: Option<&str>, _: ByteStream) -> Result<FileRef, FileError> {
        Err(FileError::TooLarge { limit: 0 })
    }

    async fn read(&self, _: &FileId) -> Result<ByteStream, FileError> {
        Err(FileError::Missing)
    }
}
