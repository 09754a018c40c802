//! Keeps every account connected, hears what it hears, and knows how it is doing.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use talaria_model::{
    AccountId, Address, Capabilities, ChatKind, Drafts, Inbound, Sender, SenderId, Standing,
    Timestamp,
};
use talaria_platform::{
    Arrival, Arrivals, ConnectError, Cursor, Incoming, Library, Link, LinkError, Outgoing, Ports,
    SendError, Startup,
};
use talaria_session::{Access, Authority, Caller, Gate, Person, Room, Strangers, Surface, Waiting};
use talaria_store::{Guests, StoreError};
use tokio::sync::{Notify, Semaphore, watch};

use crate::AccountPlan;
use crate::archive::AccountArchive;
use crate::denials::{Denials, Stranger, Trace};
use crate::desk::desk_for;
use crate::exchanges::Exchanges;
use crate::pace::{Purse, Purses};
use crate::shared::Shared;
use crate::silenced::Silenced;
use crate::tasks::{Panicked, calm};
use crate::{intake, menu};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an account rests that a human has to mend.
const REFUSED_REST: Duration = Duration::from_secs(300);

/// How long an account rests in whose place somebody else is connected: longer each time it happens.
const CONTESTED_RESTS: [Duration; 3] =
    [Duration::from_secs(20), Duration::from_secs(40), Duration::from_secs(60)];

/// A connection that lasts so long shows that nobody else wants its place any more.
const UNCONTESTED: Duration = Duration::from_secs(600);

/// How many files are fetched from an account's platform at the same time. Each account has places of
/// its own: a platform that hands nothing out keeps nobody else from theirs.
const FETCHES_AT_ONCE: usize = 16;

/// What to do about credentials that are not accepted any more.
const CREDENTIALS: &str =
    "check the credentials of this account; it is tried again every 5 minutes";

/// How an account is doing.
#[derive(Debug, Clone)]
pub struct AccountStatus {
    /// Its name.
    pub id: AccountId,
    /// Its platform.
    pub platform: &'static str,
    /// How it is doing.
    pub state: AccountState,
    /// Since when.
    pub since: Timestamp,
    /// When it was last heard or known to be alive.
    pub heard: Option<Timestamp>,
    /// Events of strangers in this run of which nothing was written down, because there were too many
    /// in a day.
    pub traceless: u64,
    /// Events of strangers within a day, as far as they were written down.
    pub denied_lately: u64,
    /// Who was turned away last in this run.
    pub stranger: Option<Stranger>,
}

/// How an account is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountState {
    /// It is being connected.
    Connecting,
    /// It works.
    Connected,
    /// It does not work at the moment and is tried again.
    Waiting {
        /// Why it does not work.
        reason: String,
    },
    /// Somebody else is connected in its place. It is tried again, and a human has to decide.
    Contested {
        /// Who else.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// A human has to do something.
    Refused {
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: String,
    },
}

/// The accounts of a gateway.
pub(crate) struct Accounts {
    accounts: BTreeMap<AccountId, Arc<ConnectedAccount>>,
}

/// An account and its present connection.
pub(crate) struct ConnectedAccount {
    pub(crate) plan: AccountPlan,
    access: RwLock<Access>,
    gate: RwLock<Arc<Gate>>,
    guests: RwLock<Arc<Guests>>,
    /// Held while who is let in is changed.
    pub(crate) pairing: tokio::sync::Mutex<()>,
    exchanges: Mutex<Exchanges>,
    outgoing: Mutex<Option<Arc<dyn Outgoing>>>,
    library: Mutex<Option<Arc<dyn Library>>>,
    /// Places for those who fetch files.
    pub(crate) fetches: Semaphore,
    connected: Notify,
    status: Mutex<AccountStatus>,
    tried: watch::Sender<bool>,
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
    pub(crate) fn new(plans: Vec<AccountPlan>) -> Self {
        let accounts = plans.into_iter().map(|plan| {
            let status = AccountStatus {
                id: plan.id.clone(),
                platform: plan.account.spec.name,
                state: AccountState::Connecting,
                since: Timestamp::default(),
                heard: None,
                traceless: 0,
                denied_lately: 0,
                stranger: None,
            };
            let account = ConnectedAccount {
                access: RwLock::new(plan.access.clone()),
                gate: RwLock::new(Arc::new(plan.gate.clone())),
                guests: RwLock::default(),
                pairing: tokio::sync::Mutex::default(),
                exchanges: Mutex::default(),
                outgoing: Mutex::default(),
                library: Mutex::default(),
                fetches: Semaphore::new(FETCHES_AT_ONCE),
                connected: Notify::new(),
                status: Mutex::new(status),
                tried: watch::Sender::new(false),
                suspended: Notify::new(),
                denials: Mutex::default(),
                ignored: Mutex::default(),
                purse: Purse::default(),
                edits: Purse::default(),
                drafting: Mutex::default(),
                purses: Purses::default(),
                silenced: Silenced::default(),
                plan,
            };
            (account.plan.id.clone(), Arc::new(account))
        });
        Self { accounts: accounts.collect() }
    }

    /// The accounts that are configured.
    pub(crate) fn ids(&self) -> impl Iterator<Item = AccountId> {
        self.accounts.keys().cloned()
    }

    pub(crate) fn get(&self, id: &AccountId) -> Option<&Arc<ConnectedAccount>> {
        self.accounts.get(id)
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

impl ConnectedAccount {
    /// What can be done in a chat. Drafts that the platform turned out not to know are none.
    pub(crate) fn capabilities(&self, chat: ChatKind) -> Capabilities {
        let can = self.plan.account.can(chat);
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
            tracing::warn!(account = %self.plan.id, %error, "no drafts here; answers grow by edits");
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

    /// What somebody may do at this moment whose message waits.
    pub(crate) fn authority_of(&self, said: &Waiting) -> Authority {
        self.authority_in(&said.from, &said.to, said.standing)
    }

    /// What somebody may do at this moment in a chat.
    pub(crate) fn authority_in(
        &self,
        sender: &Sender,
        at: &Address,
        standing: Standing,
    ) -> Authority {
        let room = Room::of(at.chat.kind);
        let grant = self.guests().book.reach(&sender.id);
        self.access().authority(Caller { sender, standing, room, grant })
    }

    /// Who somebody is, where the operator knows them by name.
    pub(crate) fn person(&self, sender: &SenderId) -> Option<Arc<Person>> {
        self.access().person(sender).cloned()
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
        *self.guests.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(guests);
    }

    /// Whether nothing comes of what a stranger says.
    pub(crate) fn is_deaf_to(&self, sender: &SenderId, text: &str, now: Timestamp) -> bool {
        self.guests().book.is_deaf_to(sender, text, self.strangers(), now)
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

    fn lock(&self) -> MutexGuard<'_, AccountStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn becomes(&self, state: AccountState, now: Timestamp) {
        let mut status = self.lock();
        if status.state != state {
            status.state = state;
            status.since = now;
        }
    }

    fn heard(&self, now: Timestamp) {
        self.lock().heard = Some(now);
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
            ..account.lock().clone()
        }
    };
    shared.accounts.accounts.values().map(status).collect()
}

/// Takes up what the last run denied, and whom it let in.
pub(crate) async fn resume(shared: &Shared) -> Result<(), StoreError> {
    for (id, account) in &shared.accounts.accounts {
        let denials = Denials::resume(shared.store.as_ref(), id, shared.started).await?;
        *account.denials() = denials;
        account.set_guests(shared.store.guests(id).await?);
    }
    Ok(())
}

/// Begins to keep every account connected.
pub(crate) fn start(shared: &Arc<Shared>) {
    for account in shared.accounts.accounts.values() {
        shared.tasks.spawn(keep_connected(shared.clone(), account.clone()));
    }
}

pub(crate) async fn first_connections(shared: &Shared) {
    for account in shared.accounts.accounts.values() {
        if account.plan.account.spec.startup == Startup::Always {
            // An error means that the gateway is going away.
            let _ = account.tried.subscribe().wait_for(|tried| *tried).await;
        }
    }
}

async fn keep_connected(shared: Arc<Shared>, account: Arc<ConnectedAccount>) {
    let mut backoff = shared.spread.backoff();
    let mut contests = 0;
    let id = &account.plan.id;
    loop {
        account.becomes(AccountState::Connecting, shared.clock.now());
        let connected = calm(connect(&shared, &account)).await.unwrap_or_else(|Panicked| {
            Err(ConnectError::Unreachable { reason: "connecting panicked".into() })
        });
        let rest = match connected {
            Ok(link) => {
                tracing::info!(account = %id, platform = account.plan.account.spec.name, "connected");
                let before = account.lock().heard;
                let since = shared.clock.now();
                let lost = calm(carry(&shared, &account, link)).await.unwrap_or_else(|Panicked| {
                    LinkError::Lost { reason: "listening panicked".into() }
                });
                account.speaks_through(None);
                account.reads_from(None);
                shared.routes.unmount(id);
                // A connection on which nothing was ever heard may not have been one.
                if account.lock().heard != before {
                    backoff.reset();
                }
                tracing::warn!(account = %id, why = %lost, "not connected any more");
                let now = shared.clock.now();
                if now.since(since) >= UNCONTESTED {
                    contests = 0;
                }
                match lost {
                    LinkError::Unauthorized { .. } => {
                        let (problem, hint) = (lost.to_string(), CREDENTIALS.to_owned());
                        account.becomes(AccountState::Refused { problem, hint }, now);
                        REFUSED_REST
                    }
                    // What came through in between does not mean that the other one is gone.
                    LinkError::Conflict { problem, hint } => {
                        account.becomes(AccountState::Contested { problem, hint }, now);
                        let rest = CONTESTED_RESTS[contests];
                        contests = (contests + 1).min(CONTESTED_RESTS.len() - 1);
                        rest
                    }
                    LinkError::Lost { .. } => {
                        account.becomes(AccountState::Waiting { reason: lost.to_string() }, now);
                        backoff.next()
                    }
                }
            }
            Err(ConnectError::Unreachable { reason }) => {
                tracing::warn!(account = %id, reason, "cannot connect");
                account.becomes(AccountState::Waiting { reason }, shared.clock.now());
                backoff.next()
            }
            Err(ConnectError::Refused { problem, hint }) => {
                tracing::error!(account = %id, problem, hint, "cannot connect");
                account.becomes(AccountState::Refused { problem, hint }, shared.clock.now());
                REFUSED_REST
            }
        };
        account.tried.send_replace(true);
        shared.clock.sleep(rest).await;
    }
}

async fn connect(shared: &Arc<Shared>, account: &ConnectedAccount) -> Result<Link, ConnectError> {
    let plan = &account.plan;
    let cursor = shared
        .store
        .cursor(&plan.id)
        .await
        .map_err(|error| ConnectError::Unreachable { reason: error.to_string() })?;
    let ports = Ports {
        account: plan.id.clone(),
        clock: shared.clock.clone(),
        files: shared.files.clone(),
        archive: Arc::new(AccountArchive { store: shared.store.clone(), account: plan.id.clone() }),
        desk: desk_for(shared, plan),
        hosts: shared.hosts.clone(),
        menu: menu::menu(
            plan.rules.get(&ChatKind::Dm).unwrap_or(&shared.rules),
            plan.access.surface,
        ),
        folder: plan.folder.clone(),
        cursor: cursor.map(Cursor),
    };
    tokio::select! {
        biased;
        link = plan.account.connect(ports) => link,
        () = shared.clock.sleep(CONNECT_TIMEOUT) => {
            Err(ConnectError::Unreachable { reason: "connecting took too long".into() })
        }
    }
}

/// Listens for as long as the connection lasts.
async fn carry(shared: &Arc<Shared>, account: &Arc<ConnectedAccount>, link: Link) -> LinkError {
    let Link { incoming, outgoing, library } = link;
    // A complaint about the connection before this one.
    let _ = account.suspended.notified().now_or_never();
    account.reads_from(library);
    account.speaks_through(Some(outgoing));
    account.becomes(AccountState::Connected, shared.clock.now());
    account.tried.send_replace(true);
    match incoming {
        Incoming::Stream(arrivals) => {
            listen(shared, account, arrivals, Redelivery::Reconnect).await
        }
        Incoming::Served { on, routes, arrivals } => {
            shared.routes.mount(on, &account.plan.id, routes);
            listen(shared, account, arrivals, Redelivery::Sender).await
        }
        Incoming::Nothing => {
            account.suspended.notified().await;
            LinkError::Unauthorized { reason: "not accepted any more".into() }
        }
    }
}

/// Who delivers a batch again that could not be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Redelivery {
    /// Whoever sent it: the dropped acknowledgement tells them.
    Sender,
    /// The platform, when it is connected again at the last stored cursor.
    Reconnect,
}

async fn listen(
    shared: &Arc<Shared>,
    account: &Arc<ConnectedAccount>,
    mut arrivals: Arrivals,
    redelivery: Redelivery,
) -> LinkError {
    loop {
        let arrival = tokio::select! {
            biased;
            () = shared.intake_closed.cancelled() => std::future::pending().await,
            () = account.suspended.notified() => {
                return LinkError::Unauthorized { reason: "not accepted any more".into() };
            }
            arrival = arrivals.next() => arrival,
        };
        match arrival {
            Some(Ok(arrival)) => {
                account.heard(shared.clock.now());
                let Arrival::Batch(batch) = arrival else { continue };
                if let Err(error) = intake::admit(shared, account, batch).await {
                    tracing::warn!(account = %account.plan.id, %error, "cannot take anything in");
                    if redelivery == Redelivery::Reconnect {
                        return LinkError::Lost { reason: error.to_string() };
                    }
                }
            }
            Some(Err(error)) => return error,
            None => return LinkError::Lost { reason: "the platform ended the connection".into() },
        }
    }
}
