//! Keeps every account connected, hears what it hears, and knows how it is doing.

mod heard;
mod link;
mod status;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use futures::FutureExt;
use talaria_clock::Clock;
use talaria_model::{
    AccountId, Address, Capabilities, ChatKind, Drafts, Inbound, InboundKind, RoleId, Sender,
    SenderId, Timestamp,
};
use talaria_platform::{Account, ConnectError, Library, Outgoing, Proof, SendError, Startup};
use talaria_session::pairing::{Issuer, Silence};
use talaria_session::{
    Access, Authority, Caller, Gate, Person, Reach, Room, Strangers, Surface, Who,
};
use talaria_store::{Guests, StoreError};
use tokio::sync::{Notify, Semaphore, watch};

pub(crate) use heard::LastHeard;
pub(crate) use link::{carry, connect};
pub use status::{AccountState, AccountStatus, Mute};

use crate::AccountPlan;
use crate::denials::{Denials, Trace};
use crate::door::Door;
use crate::exchanges::Exchanges;
use crate::lanes;
use crate::pace::{Purse, Purses};
use crate::shared::Shared;
use crate::silenced::Silenced;
use crate::supervise::{self, Care, Course, Orders};
use crate::tasks::{Panicked, calm};

/// How many files are fetched from an account's platform at the same time. Each account has places of
/// its own: a platform that hands nothing out keeps nobody else from theirs.
const FETCHES_AT_ONCE: usize = 16;

/// The accounts of a gateway.
pub(crate) struct Accounts {
    /// One that is taken out stays, so that whoever has something to do with it finds it when it is back.
    accounts: RwLock<BTreeMap<AccountId, Arc<ConnectedAccount>>>,
    /// Rings when there is one more.
    arrived: Notify,
    /// Every account of the start has been tried.
    started: AtomicBool,
}

/// An account and its present connection.
pub(crate) struct ConnectedAccount {
    /// Its name.
    pub(crate) id: AccountId,
    plan: RwLock<Arc<AccountPlan>>,
    /// What is to become of its connection.
    pub(crate) orders: watch::Sender<Orders>,
    access: RwLock<Access>,
    gate: RwLock<Arc<Gate>>,
    guests: RwLock<Arc<Guests>>,
    /// Held while who is let in is changed.
    pub(crate) pairing: tokio::sync::Mutex<()>,
    /// Who waits to be let in.
    pub(crate) door: Door,
    exchanges: Mutex<Exchanges>,
    outgoing: Mutex<Option<Arc<dyn Outgoing>>>,
    library: Mutex<Option<Arc<dyn Library>>>,
    /// Places for those who fetch files.
    pub(crate) fetches: Semaphore,
    connected: Notify,
    status: Mutex<AccountStatus>,
    /// When it was last heard, whatever the wall clock says.
    heard: Mutex<LastHeard>,
    /// Whether nothing that is said on it gets through.
    pub(crate) mute: watch::Sender<Option<Mute>>,
    /// The last order after which it was tried.
    tried: watch::Sender<Option<u64>>,
    /// The order that is being followed.
    tending: AtomicU64,
    /// What is kept in mind by whoever looks after it.
    pub(crate) care: Care,
    suspended: Notify,
    denials: Mutex<Denials>,
    /// What was let in and not answered.
    ignored: Mutex<Denials>,
    /// What may still be sent on it.
    pub(crate) purse: Purse,
    /// What may still be changed on it, where that is counted apart.
    pub(crate) edits: Purse,
    /// What may still be sent in each of its chats.
    pub(crate) purses: Purses,
    /// What its platform makes of drafts.
    drafting: Mutex<Drafting>,
    /// Its chats that take nothing any more.
    pub(crate) silenced: Silenced,
}

impl Accounts {
    pub(crate) fn new(plans: Vec<AccountPlan>, paused: &[AccountId]) -> Self {
        let accounts = plans.into_iter().map(|plan| {
            let course = Course::of(&plan.id, paused);
            (plan.id.clone(), Arc::new(ConnectedAccount::new(plan, course)))
        });
        Self {
            accounts: RwLock::new(accounts.collect()),
            arrived: Notify::new(),
            started: AtomicBool::new(false),
        }
    }

    /// The accounts that are configured.
    pub(crate) fn ids(&self) -> impl Iterator<Item = AccountId> {
        self.all().into_iter().map(|account| account.id.clone())
    }

    /// All that are configured.
    pub(crate) fn all(&self) -> Vec<Arc<ConnectedAccount>> {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        accounts.values().filter(|account| account.is_configured()).cloned().collect()
    }

    /// All that were ever configured in this run.
    pub(crate) fn ever(&self) -> Vec<Arc<ConnectedAccount>> {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        accounts.values().cloned().collect()
    }

    /// One that is configured.
    pub(crate) fn get(&self, id: &AccountId) -> Option<Arc<ConnectedAccount>> {
        self.known(id).filter(|account| account.is_configured())
    }

    /// One that is configured, or was in this run.
    pub(crate) fn known(&self, id: &AccountId) -> Option<Arc<ConnectedAccount>> {
        self.accounts.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Whether it was taken out in this run and has not been put back.
    pub(crate) fn is_out(&self, id: &AccountId) -> bool {
        self.known(id).is_some_and(|account| !account.is_configured())
    }

    /// Waits until an account is known, which need not be configured at the moment.
    pub(crate) async fn arrival(&self, id: &AccountId) -> Arc<ConnectedAccount> {
        loop {
            let mut arrived = pin!(self.arrived.notified());
            arrived.as_mut().enable();
            if let Some(account) = self.known(id) {
                return account;
            }
            arrived.await;
        }
    }

    /// Another plan for an account, which is new, was there before, or runs. Says whether somebody looks
    /// after it already.
    pub(crate) fn put(
        &self,
        plan: AccountPlan,
        paused: &[AccountId],
    ) -> (Arc<ConnectedAccount>, Tended) {
        let course = Course::of(&plan.id, paused);
        let mut accounts = self.accounts.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = accounts.get(&plan.id) {
            account.follows(plan, course);
            return (account.clone(), Tended::Yes);
        }
        let account = Arc::new(ConnectedAccount::new(plan, course));
        accounts.insert(account.id.clone(), account.clone());
        drop(accounts);
        self.arrived.notify_waiters();
        (account, Tended::No)
    }

    /// Takes an account out of service: its credentials are not accepted any more.
    pub(crate) fn suspend(&self, id: &AccountId, reason: &str) {
        if let Some(account) = self.get(id) {
            tracing::error!(account = %id, reason, "the account is suspended");
            account.suspended.notify_one();
        }
    }
}

/// What a platform makes of drafts, as far as this run has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Drafting {
    /// Nobody knows yet.
    #[default]
    Untried,
    /// It shows them.
    Works,
    /// It has refused the first: an older server does not know them.
    Refused,
}

/// Whether a task looks after an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tended {
    Yes,
    No,
}

impl ConnectedAccount {
    fn new(plan: AccountPlan, course: Course) -> Self {
        let status = AccountStatus {
            id: plan.id.clone(),
            platform: plan.account.spec.name,
            surface: plan.access.surface,
            state: AccountState::Connecting,
            since: Timestamp::default(),
            heard: None,
            spoke: None,
            mute: None,
            generation: 0,
            crashes: 0,
            deafnesses: 0,
            tried: false,
            traceless: 0,
            denied_lately: 0,
            stranger: None,
        };
        Self {
            id: plan.id.clone(),
            orders: watch::Sender::new(Orders { course, number: 0 }),
            access: RwLock::new(plan.access.clone()),
            gate: RwLock::new(Arc::new(plan.gate.clone())),
            guests: RwLock::default(),
            pairing: tokio::sync::Mutex::default(),
            door: Door::default(),
            exchanges: Mutex::default(),
            outgoing: Mutex::default(),
            library: Mutex::default(),
            fetches: Semaphore::new(FETCHES_AT_ONCE),
            connected: Notify::new(),
            status: Mutex::new(status),
            heard: Mutex::default(),
            mute: watch::Sender::new(None),
            tried: watch::Sender::new(None),
            tending: AtomicU64::new(0),
            care: Care::default(),
            suspended: Notify::new(),
            denials: Mutex::default(),
            ignored: Mutex::default(),
            purse: Purse::default(),
            edits: Purse::default(),
            drafting: Mutex::default(),
            purses: Purses::default(),
            silenced: Silenced::default(),
            plan: RwLock::new(Arc::new(plan)),
        }
    }

    /// How it is set up at the moment.
    pub(crate) fn plan(&self) -> Arc<AccountPlan> {
        self.plan.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Is set up like this from the next connection on, which is made at once. One that was taken out goes
    /// on as `back` says.
    fn follows(&self, plan: AccountPlan, back: Course) {
        self.set_access(plan.access.clone());
        self.set_gate(plan.gate.clone());
        *self.drafting.lock().unwrap_or_else(PoisonError::into_inner) = Drafting::default();
        self.lock().platform = plan.account.spec.name;
        // Held until it is configured again, so that nobody lets go of what was just put.
        let mut followed = self.plan.write().unwrap_or_else(PoisonError::into_inner);
        *followed = Arc::new(plan);
        self.order(|course| match course {
            Course::Paused | Course::Runs => course,
            Course::Gone => back,
        });
    }

    /// Lets go of what it is connected with, credentials and their lock above all, unless it has been put
    /// back.
    pub(crate) fn lets_go(&self) {
        let mut plan = self.plan.write().unwrap_or_else(PoisonError::into_inner);
        if self.is_configured() {
            return;
        }
        let unset = || ConnectError::Fatal {
            problem: "the account is not configured any more".into(),
            hint: "write it into the configuration again".into(),
        };
        let spec = plan.account.spec;
        let account =
            Account::new(spec, spec.capabilities, move |_| async move { Err(unset()) }.boxed());
        let account = account.able(|chat| plan.account.can(chat));
        *plan = Arc::new(AccountPlan { account, ..AccountPlan::clone(&plan) });
    }

    /// Ends the present connection, and goes on as it is told.
    pub(crate) fn order(&self, next: impl FnOnce(Course) -> Course) {
        self.orders.send_modify(|orders| {
            orders.course = next(orders.course);
            orders.number += 1;
        });
    }

    fn is_configured(&self) -> bool {
        self.orders.borrow().course != Course::Gone
    }

    /// One more connection is begun.
    pub(crate) fn begins(&self, now: Timestamp) {
        self.lock().generation += 1;
        // What a connection is made anew for is told until it is there.
        if !matches!(self.lock().state, AccountState::Deaf { .. }) {
            self.becomes(AccountState::Connecting, now);
        }
    }

    /// It was connected and not heard.
    pub(crate) fn was_deaf(&self) {
        self.lock().deafnesses += 1;
    }

    /// It broke down by our own fault.
    pub(crate) fn crashes(&self) {
        self.lock().crashes += 1;
    }

    /// This order is followed from here on.
    pub(crate) fn tends(&self, order: u64) {
        self.tending.store(order, Ordering::Relaxed);
    }

    /// The order that was followed last.
    pub(crate) fn tended(&self) -> u64 {
        self.tending.load(Ordering::Relaxed)
    }

    /// It was tried, and it is known how that ended.
    pub(crate) fn was_tried(&self) {
        self.tried.send_replace(Some(self.tended()));
    }

    /// Waits until it was tried since it was last told something.
    pub(crate) async fn tried(&self) {
        let is_enough = |tried: &Option<u64>| *tried >= Some(self.orders.borrow().number);
        // An error means that the gateway is going away.
        let _ = self.tried.subscribe().wait_for(is_enough).await;
    }

    /// Waits until it was tried for the first time.
    async fn tried_once(&self) {
        let _ = self.tried.subscribe().wait_for(Option::is_some).await;
    }

    /// How it is doing.
    pub(crate) fn state(&self) -> AccountState {
        self.lock().state.clone()
    }

    /// When it was last heard.
    pub(crate) fn last_heard(&self) -> LastHeard {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What became of something that was said on it.
    pub(crate) fn speaks<T>(&self, sent: &Result<T, SendError>, clock: &dyn Clock) {
        let gets_through = || self.mute.send_if_modified(|mute| mute.take().is_some());
        match sent {
            Ok(_) => {
                self.lock().spoke = Some(clock.now());
                gets_through();
            }
            Err(
                error @ (SendError::Unreachable { .. }
                | SendError::Unconfirmed { .. }
                | SendError::Unauthorized { .. }),
            ) => {
                let (why, tried) = (error.to_string(), clock.mark());
                self.mute.send_modify(|mute| match mute {
                    Some(mute) => (mute.why, mute.tried) = (why, tried),
                    None => *mute = Some(Mute { since: clock.now(), begun: tried, tried, why }),
                });
            }
            // The platform has answered.
            Err(_) => {
                gets_through();
            }
        }
    }

    /// Nothing of the last connection is in use any more.
    pub(crate) fn is_cut_off(&self) {
        self.speaks_through(None);
        self.reads_from(None);
    }

    /// What can be done in a chat. Drafts that the platform turned out not to know are none.
    pub(crate) fn capabilities(&self, chat: ChatKind) -> Capabilities {
        let can = self.plan().account.can(chat);
        match *self.drafting.lock().unwrap_or_else(PoisonError::into_inner) {
            Drafting::Refused => Capabilities { drafts: Drafts::Never, ..can },
            Drafting::Untried | Drafting::Works => can,
        }
    }

    /// A draft was shown.
    pub(crate) fn shows_drafts(&self) {
        *self.drafting.lock().unwrap_or_else(PoisonError::into_inner) = Drafting::Works;
    }

    /// A draft was refused for good. One that is refused after others were shown is only that one.
    pub(crate) fn refuses_drafts(&self, error: &SendError) {
        let mut drafting = self.drafting.lock().unwrap_or_else(PoisonError::into_inner);
        if *drafting == Drafting::Untried {
            tracing::warn!(account = %self.id, %error, "no drafts here; answers grow by edits");
            *drafting = Drafting::Refused;
        }
    }

    /// Waits where the platform asks us to.
    pub(crate) fn heed(&self, chat: &Purse, error: &SendError, now: Timestamp) {
        match error {
            SendError::Throttled { after } => chat.pause(*after, now),
            SendError::Halted { after } => self.purse.pause(*after, now),
            _ => {}
        }
    }

    /// The same where that was no message: those who wait with an answer need not.
    pub(crate) fn heed_lightly(&self, chat: &Purse, error: &SendError, now: Timestamp) {
        match error {
            SendError::Throttled { after } => chat.pause_show(*after, now),
            error => self.heed(chat, error, now),
        }
    }

    /// What the sender of an event may do at this moment.
    pub(crate) fn authority(&self, inbound: &Inbound) -> Authority {
        let grant = self.guests().book.reach(&inbound.from.id);
        self.access().authority(Caller::of(inbound, grant))
    }

    /// What somebody may do at this moment in a chat.
    pub(crate) fn authority_in(
        &self,
        sender: &Sender,
        at: &Address,
        roles: &[RoleId],
    ) -> Authority {
        let room = Room::of(at.chat.kind);
        let grant = self.guests().book.reach(&sender.id);
        self.access().authority(Caller { sender, roles, room, grant })
    }

    /// Whether an administrator may let others in at this moment who are then heard as far as this.
    pub(crate) fn may_let_in(&self, issuer: &Issuer, reach: Reach) -> bool {
        let Issuer { sender, roles } = issuer;
        let grant = self.guests().book.reach(sender);
        self.access().may_let_in(&Sender::new(sender.clone()), roles, grant, reach)
    }

    /// Who somebody is, where the operator knows them by name.
    pub(crate) fn person(&self, sender: &SenderId) -> Option<Arc<Person>> {
        self.access().person(sender).cloned()
    }

    /// Whether a person of the configuration may give a command in such a chat there, too.
    pub(crate) fn lets_give(&self, person: &Person, room: Room, command: &str, who: Who) -> bool {
        self.access().lets_give(person, room, command, who)
    }

    /// Whether somebody unknown who writes in a direct chat is answered.
    pub(crate) fn strangers(&self) -> Strangers {
        self.access().strangers
    }

    /// Whether others than the operator can write there.
    pub(crate) fn is_platforms(&self) -> bool {
        self.access().surface == Surface::Platform
    }

    fn access(&self) -> RwLockReadGuard<'_, Access> {
        self.access.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn guests(&self) -> Arc<Guests> {
        self.guests.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// These are let in by pairing from the next event on.
    pub(crate) fn set_guests(&self, guests: Guests) {
        let mut known = self.guests.write().unwrap_or_else(PoisonError::into_inner);
        // Who was put out does not come back because somebody has read the book before.
        if guests.revision >= known.revision {
            *known = Arc::new(guests);
        }
    }

    /// Why nothing comes of what a stranger says, if nothing does.
    pub(crate) fn silence_for(&self, inbound: &Inbound, now: Timestamp) -> Option<Silence> {
        let InboundKind::Said(message) = &inbound.kind else { return Some(Silence::Unwelcome) };
        let sender = &inbound.from.id;
        self.guests().book.silence_for(sender, &message.text, self.strangers(), now)
    }

    /// Whether a code is out that somebody could bring.
    pub(crate) fn expects_codes(&self, now: Timestamp) -> bool {
        self.guests().book.issued(now).next().is_some()
    }

    /// Whether somebody whom a list lets in has not been recorded yet.
    pub(crate) fn is_news(&self, sender: &SenderId) -> bool {
        self.guests().book.is_news(sender)
    }

    /// Whether a program is answered once more.
    pub(crate) fn converses(&self, inbound: &Inbound, now: Timestamp) -> bool {
        let most = self.gate().exchanges;
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        exchanges.permit(inbound, most, now)
    }

    /// Listens to somebody else from the next event on.
    pub(crate) fn set_access(&self, access: Access) {
        *self.access.write().unwrap_or_else(PoisonError::into_inner) = access;
    }

    /// What of it is answered.
    pub(crate) fn gate(&self) -> Arc<Gate> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Answers something else from the next event on.
    pub(crate) fn set_gate(&self, gate: Gate) {
        *self.gate.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(gate);
    }

    /// How to speak on it, while it is connected.
    pub(crate) fn outgoing(&self) -> Option<Arc<dyn Outgoing>> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where its files are, while it is connected to a platform that keeps any.
    pub(crate) fn library(&self) -> Option<Arc<dyn Library>> {
        self.library.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn reads_from(&self, library: Option<Arc<dyn Library>>) {
        *self.library.lock().unwrap_or_else(PoisonError::into_inner) = library;
    }

    /// Waits until it is connected. All who wait go on in the order in which they came.
    pub(crate) async fn connected(&self) -> Arc<dyn Outgoing> {
        loop {
            let mut connected = pin!(self.connected.notified());
            connected.as_mut().enable();
            if let Some(outgoing) = self.outgoing() {
                return outgoing;
            }
            connected.await;
        }
    }

    fn speaks_through(&self, outgoing: Option<Arc<dyn Outgoing>>) {
        *self.outgoing.lock().unwrap_or_else(PoisonError::into_inner) = outgoing;
        self.connected.notify_waiters();
    }

    /// One more event is denied.
    pub(crate) fn denies(&self, sender: &SenderId, now: Timestamp) -> Trace {
        self.denials().turn_away(sender, now)
    }

    /// One more event is let in and not answered.
    pub(crate) fn ignores(&self, now: Timestamp) -> Trace {
        self.ignored.lock().unwrap_or_else(PoisonError::into_inner).count(now)
    }

    fn denials(&self) -> MutexGuard<'_, Denials> {
        self.denials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often it was connected or tried.
    pub(crate) fn generation(&self) -> u64 {
        self.lock().generation
    }

    fn lock(&self) -> MutexGuard<'_, AccountStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn becomes(&self, state: AccountState, now: Timestamp) {
        let mut status = self.lock();
        if status.state != state {
            status.state = state;
            status.since = now;
        }
    }

    fn hears(&self, proof: Proof, clock: &dyn Clock) {
        self.lock().heard = Some(clock.now());
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.note(proof, clock.mark());
    }
}

pub(crate) fn statuses(shared: &Shared) -> Vec<AccountStatus> {
    let now = shared.clock.now();
    let status = |account: &Arc<ConnectedAccount>| {
        let denials = account.denials();
        AccountStatus {
            traceless: denials.traceless(),
            denied_lately: denials.lately(now),
            stranger: denials.last().cloned(),
            tried: account.tried.borrow().is_some(),
            mute: account.mute.borrow().clone(),
            surface: account.access().surface,
            ..account.lock().clone()
        }
    };
    shared.accounts.all().iter().map(status).collect()
}

/// Takes up what the last run denied, and whom it let in.
pub(crate) async fn resume(shared: &Shared) -> Result<(), StoreError> {
    for account in shared.accounts.all() {
        take_up(shared, &account).await?;
    }
    Ok(())
}

async fn take_up(shared: &Shared, account: &ConnectedAccount) -> Result<(), StoreError> {
    let id = &account.id;
    let denials = Denials::resume(shared.store.as_ref(), id, shared.started).await?;
    *account.denials() = denials;
    account.set_guests(shared.store.guests(id).await?);
    Ok(())
}

/// Connects an account that is set up like this: another one, or anew. What waits for it goes on.
pub(crate) fn put(shared: &Arc<Shared>, plan: AccountPlan) {
    let (account, tended) = shared.accounts.put(plan, &shared.steward.paused());
    lanes::wake(shared, &account.id);
    if tended == Tended::No {
        shared.tasks.spawn(introduce(shared.clone(), account));
    }
}

/// Keeps an account connected, once it is known whom it lets in: who is paired must not be taken for a
/// stranger.
async fn introduce(shared: Arc<Shared>, account: Arc<ConnectedAccount>) {
    let mut backoff = shared.spread.backoff();
    let known = async || match calm(take_up(&shared, &account)).await {
        Ok(known) => known.map_err(|error| error.to_string()),
        Err(Panicked) => Err("something went wrong inside me".to_owned()),
    };
    while let Err(error) = known().await {
        tracing::warn!(account = %account.id, error, "it cannot be read whom an account lets in");
        let reason = format!("it cannot be read whom it lets in: {error}");
        account.becomes(AccountState::Waiting { reason }, shared.clock.now());
        shared.clock.sleep(backoff.next()).await;
    }
    supervise::keep_connected(shared, account).await;
}

/// Begins to keep every account connected.
pub(crate) fn start(shared: &Arc<Shared>) {
    for account in shared.accounts.all() {
        shared.tasks.spawn(supervise::keep_connected(shared.clone(), account));
    }
}

pub(crate) async fn first_connections(shared: &Shared) {
    for account in shared.accounts.all() {
        if account.plan().account.spec.startup == Startup::Always {
            account.tried_once().await;
        }
    }
}

/// Whether an account of the start has not been tried yet.
pub(crate) fn is_starting(shared: &Shared) -> bool {
    let Accounts { started, .. } = &shared.accounts;
    if started.load(Ordering::Relaxed) {
        return false;
    }
    let is_starting = shared.accounts.all().iter().any(|account| account.tried.borrow().is_none());
    started.store(!is_starting, Ordering::Relaxed);
    is_starting
}

pub(crate) async fn every_connection(shared: &Shared) {
    for account in shared.accounts.all() {
        account.tried_once().await;
    }
}
