//! A whole world in one thread: people, vendors, a disk, and gateways that live and die.
//!
//! A life of the gateway is a runtime of its own with virtual time. When a life ends, its runtime is
//! dropped and every task dies where it stands, as if the process had been killed; what survives is
//! the disk, the vendors and what the model's tools did.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use talaria_agent::{Agent, Privacy};
use talaria_clock::Clock;
use talaria_gateway::{
    AccountPlan, AccountStatus, Ears, Entropy, Finalizer, Gateway, Limits, Manner, Mouth,
    NoFollower, NoSteward, NoWatcher, Parts, Steward, Watcher,
};
use talaria_model::{
    Address, Capabilities, Edits, Idempotency, Markup, TextLimit, Timestamp, Unit,
};
use talaria_platform::Bursts;
use talaria_session::{Access, Acks, AfterStop, Busy, Gate, Rules, Scope, SessionKey};
use talaria_store::{Counts, Recorded, Store, StoreError};
use tokio::sync::watch;

use super::{Disk, Files, Hears, Keeps, Log, Model, Moment, Points, Time, Vendor, WallClock, echo};

/// A platform that can do the least, with Markdown.
pub const SIMPLE: Capabilities = Capabilities {
    text: TextLimit { max: 1000, unit: Unit::Chars },
    markup: Markup::Markdown,
    ..Capabilities::PLAIN
};

/// A platform that shows an answer while it grows by editing it.
pub const EDITING: Capabilities =
    Capabilities { edits: Edits::Every(Duration::from_secs(1)), ..SIMPLE };

/// The same, recognising repeats.
pub const fn keyed(can: Capabilities) -> Capabilities {
    Capabilities { idempotency: Idempotency::Keyed(Duration::from_secs(24 * 60 * 60)), ..can }
}

/// What everything in a world stands on. Clones are the same.
#[derive(Clone, Default)]
pub struct Ground {
    /// The moments to die at.
    pub points: Points,
    /// What time it truly is.
    pub time: Time,
    /// What happened.
    pub log: Log,
    /// Rings whenever something changes anywhere.
    pub bell: Arc<watch::Sender<u64>>,
}

impl Ground {
    /// The ground of a world of which so much is written down.
    pub fn new(keeps: Keeps) -> Self {
        let time = Time::default();
        let log = Log::at(time.clone(), keeps);
        Self { points: Points::logged(log.clone()), time, log, bell: Arc::default() }
    }
}

/// Everything that outlives the process.
pub struct World {
    /// What it stands on.
    pub ground: Ground,
    /// What survives.
    pub disk: Disk,
    /// Files that travel with messages.
    pub files: Files,
    /// The vendors, and who is heard on the account at each.
    pub accounts: Vec<(Vendor, Access)>,
    /// Who answers, unless a model does.
    pub agent: Arc<dyn Agent>,
    /// The model of the built-in agent, which then answers.
    pub model: Option<Model>,
    /// Who shares a session.
    pub scope: Scope,
    /// What every account answers.
    pub gate: Gate,
    /// What applies to every session.
    pub rules: Rules,
    /// How every account speaks.
    pub manner: Manner,
    /// Who keeps something for a conversation.
    pub finalizers: Vec<Arc<dyn Finalizer>>,
    /// What listens to voice messages.
    pub ears: Option<Ears>,
    /// What speaks.
    pub mouth: Option<Mouth>,
    /// Where pairing codes come from: the same ones every time.
    pub entropy: Entropy,
    /// What is bounded by how much.
    pub limits: Limits,
    /// The clock of the machine.
    pub clock: WallClock,
    /// Opens the store at the beginning of each life, where it is not in memory.
    pub opens: Option<Opens>,
    /// The process around every gateway.
    pub steward: Arc<dyn Steward>,
    /// Who watches every gateway.
    pub watcher: Arc<dyn Watcher>,
}

/// Opens what survives.
pub type Opens = Arc<dyn Fn() -> Arc<dyn Store> + Send + Sync>;

/// How a life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The test was through with it.
    Over,
    /// It died at the moment it was told to.
    Died,
}

impl World {
    /// A world with one account, to which everybody may write, and an agent that echoes.
    pub fn new(can: Capabilities) -> Self {
        Self::hearing(can, Hears::Stream)
    }

    /// The same, with a vendor that is heard like this.
    pub fn hearing(can: Capabilities, hears: Hears) -> Self {
        let mut world = Self::empty(Keeps::Last);
        world.add_hearing("main", can, hears);
        world
    }

    /// A world without accounts.
    pub fn empty(keeps: Keeps) -> Self {
        let ground = Ground::new(keeps);
        Self {
            disk: Disk::new(ground.clone()),
            files: Files::new(ground.points.clone()),
            accounts: Vec::new(),
            agent: echo(),
            model: None,
            scope: Scope::default(),
            gate: Gate::default(),
            // A story that is about something else is not to be cut short by its next message, nor begun
            // anew by a stop.
            rules: Rules {
                busy: Busy::Steer,
                acks: Acks::Never,
                stop: AfterStop::Keep,
                ..Rules::default()
            },
            manner: Manner::default(),
            finalizers: Vec::new(),
            ears: None,
            mouth: None,
            entropy: countable(),
            limits: Limits::default(),
            clock: WallClock::new(ground.time.clone(), ground.points.clone()),
            opens: None,
            steward: Arc::new(NoSteward),
            watcher: Arc::new(NoWatcher),
            ground,
        }
    }

    /// The same, with this agent.
    pub fn with_agent(mut self, agent: Arc<dyn Agent>) -> Self {
        self.agent = agent;
        self
    }

    /// The same, with the built-in agent and a model.
    pub fn with_model(mut self) -> Self {
        self.model = Some(Model::new(self.ground.clone(), self.files.clone()));
        self
    }

    /// The first vendor.
    pub fn vendor(&self) -> Vendor {
        self.accounts[0].0.clone()
    }

    /// Adds an account on a vendor of its own.
    pub fn add(&mut self, account: &str, can: Capabilities) -> Vendor {
        self.add_hearing(account, can, Hears::Stream)
    }

    /// Adds an account on a vendor of its own that is heard like this.
    pub fn add_hearing(&mut self, account: &str, can: Capabilities, hears: Hears) -> Vendor {
        let vendor = Vendor::new(account, can, hears, self.ground.clone());
        self.accounts.push((vendor.clone(), Access::everyone()));
        vendor
    }

    /// Adds an account on a vendor of its own that delivers in parts what people send as one.
    pub fn add_bursting(
        &mut self,
        account: &str,
        can: Capabilities,
        hears: Hears,
        bursts: Bursts,
    ) -> Vendor {
        let vendor = Vendor::bursting(account, can, hears, bursts, self.ground.clone());
        self.accounts.push((vendor.clone(), Access::everyone()));
        vendor
    }

    /// Lets time pass while no gateway runs.
    pub fn sleep(&mut self, time: Duration) {
        self.ground.log.note(format_args!("nothing runs for {time:?}"));
        self.ground.time.skip(time);
    }

    /// One life of the gateway. It ends as abruptly as a process does that is killed.
    pub fn live<T>(&mut self, play: impl AsyncFnOnce(&Life) -> T) -> T {
        self.ground.points.begin(None);
        let mut outcome = None;
        self.live_until(play, &mut outcome);
        outcome.expect("a life without a moment of death is lived to its end")
    }

    /// A life that dies at that moment, if it gets there.
    pub fn live_and_die(&mut self, moment: usize, play: impl AsyncFnOnce(&Life)) -> End {
        self.ground.points.begin(Some(Moment::Numbered(moment)));
        let mut outcome = None;
        self.live_until(play, &mut outcome);
        outcome.map_or(End::Died, |()| End::Over)
    }

    /// A life that may die of what happens in it.
    pub fn live_dangerously(&mut self, play: impl AsyncFnOnce(&Life)) -> End {
        self.ground.points.begin(None);
        let mut outcome = None;
        self.live_until(play, &mut outcome);
        outcome.map_or(End::Died, |()| End::Over)
    }

    /// Tries to start a gateway, and lets time pass for whatever it leaves running.
    pub fn try_start(&mut self, then: Duration) -> Result<(), StoreError> {
        self.ground.points.begin(None);
        runtime().block_on(async {
            self.ground.time.begin();
            let started = Gateway::start(self.parts()).await;
            self.clock.sleep(then).await;
            self.ground.time.end();
            started.map(|_| ())
        })
    }

    fn live_until<T>(&mut self, play: impl AsyncFnOnce(&Life) -> T, outcome: &mut Option<T>) {
        if let Some(open) = &self.opens {
            self.disk.kept = open();
        }
        self.ground.log.note(format_args!("a life begins"));
        let runtime = runtime();
        runtime.block_on(async {
            self.ground.time.begin();
            let lived = async {
                let gateway = loop {
                    match Gateway::start(self.parts()).await {
                        Ok(gateway) => break gateway,
                        // Whoever runs it starts it again.
                        Err(_) => self.clock.sleep(Duration::from_secs(5)).await,
                    }
                };
                let life = Life {
                    gateway,
                    vendor: self.vendor(),
                    vendors: self.accounts.iter().map(|(vendor, _)| vendor.clone()).collect(),
                    disk: self.disk.clone(),
                    files: self.files.clone(),
                    clock: self.clock.clone(),
                    ground: self.ground.clone(),
                };
                play(&life).await
            };
            let limit = self.clock.sleep(Duration::from_secs(365 * 24 * 60 * 60));
            tokio::select! {
                biased;
                () = self.ground.points.died() => {}
                lived = lived => *outcome = Some(lived),
                () = limit => panic!("a year passed in vain"),
            }
            self.ground.time.end();
        });
        assert!(!self.ground.points.is_astray(), "the gateway goes round in circles");
        // Nothing that the tasks do while they are dropped reaches anybody.
        self.ground.points.die();
        drop(runtime);
        if let Some(model) = &self.model {
            model.forget_callers();
        }
        if self.opens.is_some() {
            self.disk.kept = Arc::new(talaria_store::MemoryStore::new());
        }
        self.ground.time.skip(Duration::from_secs(1));
    }

    /// How the account on a vendor is set up.
    pub fn plan(&self, vendor: &Vendor) -> AccountPlan {
        AccountPlan {
            id: vendor.account(),
            account: vendor.open(),
            access: Access::everyone(),
            gate: self.gate.clone(),
            rules: BTreeMap::new(),
            manner: Arc::new(self.manner.clone()),
            folder: "unused".into(),
        }
    }

    fn parts(&self) -> Parts {
        let accounts = self
            .accounts
            .iter()
            .map(|(vendor, access)| AccountPlan { access: access.clone(), ..self.plan(vendor) });
        Parts {
            store: Arc::new(self.disk.clone()),
            agent: match &self.model {
                Some(model) => model.agent(&self.clock),
                None => self.agent.clone(),
            },
            clock: Arc::new(self.clock.clone()),
            files: Arc::new(self.files.clone()),
            accounts: accounts.collect(),
            hosts: Arc::new([]),
            scope: self.scope,
            rules: Arc::new(self.rules.clone()),
            privacy: Privacy::Open,
            steward: self.steward.clone(),
            watcher: self.watcher.clone(),
            follower: Arc::new(NoFollower),
            finalizers: self.finalizers.clone(),
            ears: self.ears.clone(),
            mouth: self.mouth.clone(),
            entropy: self.entropy.clone(),
            limits: self.limits,
        }
    }
}

/// Numbers that look random and are the same every time.
fn countable() -> Entropy {
    let drawn = AtomicU64::new(0);
    Arc::new(move |bytes: &mut [u8]| {
        for bytes in bytes.chunks_mut(8) {
            let number = drawn.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            bytes.copy_from_slice(&(mixed ^ (mixed >> 27)).to_le_bytes()[..bytes.len()]);
        }
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
}

/// A gateway while it lives.
pub struct Life {
    /// The gateway.
    pub gateway: Gateway,
    /// The first vendor.
    pub vendor: Vendor,
    /// All vendors.
    pub vendors: Vec<Vendor>,
    /// What survives.
    pub disk: Disk,
    /// Files that travel with messages.
    pub files: Files,
    /// The clock of the machine.
    pub clock: WallClock,
    /// What the world stands on.
    pub ground: Ground,
}

impl Life {
    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    /// Lets seconds pass.
    pub async fn pass_seconds(&self, seconds: u64) {
        self.pass(Duration::from_secs(seconds)).await;
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Waits until it is so at the vendor.
    pub async fn until(&self, what: &str, mut holds: impl FnMut(&Vendor) -> bool) {
        let mut changes = self.vendor.changes();
        let wait = async {
            while !holds(&self.vendor) {
                changes.changed().await.expect("the vendor outlives the life");
            }
        };
        tokio::select! {
            biased;
            () = wait => {}
            () = self.clock.sleep(Duration::from_secs(30 * 24 * 60 * 60)) => {
                let shown = self.vendor.truth(|truth| format!("{:#?}", truth.shown));
                panic!("waited a month in vain: {what}; what can be seen: {shown}");
            }
        }
    }

    /// Waits until so many messages can be read in a chat, and returns their texts.
    pub async fn texts(&self, chat: &str, count: usize) -> Vec<String> {
        let what = format!("{count} messages in {chat}");
        self.until(&what, |vendor| vendor.texts(chat).len() >= count).await;
        self.vendor.texts(chat)
    }

    /// Waits until there is nothing to do: nothing unread, no turn in hand, nothing undelivered.
    pub async fn quiet(&self) {
        let month = Duration::from_secs(30 * 24 * 60 * 60);
        if let Err(counts) = self.quiet_within(month).await {
            panic!("waited a month for quiet: {counts:?}");
        }
    }

    /// The same, for so long at most. Says what there is still to do.
    pub async fn quiet_within(&self, time: Duration) -> Result<(), Counts> {
        let mut changes = self.ground.bell.subscribe();
        let wait = async {
            while !self.is_quiet().await {
                changes.changed().await.expect("the world outlives the life");
            }
        };
        tokio::select! {
            biased;
            () = wait => Ok(()),
            () = self.clock.sleep(time) => {
                Err(self.disk.counts().await.unwrap_or_default())
            }
        }
    }

    /// Whether there is nothing to do.
    pub async fn is_quiet(&self) -> bool {
        if !self.vendors.iter().all(Vendor::is_heard) {
            return false;
        }
        let counts = self.disk.counts().await.expect("the store answers");
        counts.unread + counts.turns_in_hand + counts.undelivered == 0
    }

    /// What was recorded of the conversation in a chat with us alone.
    pub async fn transcript(&self, chat: &str) -> Vec<Recorded> {
        let key = key(&self.vendor.dm(chat));
        self.disk.transcript(&key, None, 1000).await.expect("the store answers")
    }

    /// How the first account is doing.
    pub fn account(&self) -> AccountStatus {
        self.gateway.accounts().remove(0)
    }
}

/// The session of a chat with one person.
pub fn key(at: &Address) -> SessionKey {
    SessionKey {
        account: at.account.clone(),
        kind: at.chat.kind,
        chat: Some(at.chat.id.clone()),
        thread: None,
        member: None,
        side: None,
    }
}
