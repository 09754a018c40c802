//! Looks after one account: connects it, notices how that ends, and decides when it is tried again.
//!
//! An account is one task, and a connection is a value inside it: the next one begins when the one before
//! is dropped, so there are never two. What a connection does wrong ends that connection; an account that
//! keeps breaking down gets slower and then rests, and no other account notices.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use talaria_clock::Mark;
use talaria_model::AccountId;
use talaria_platform::{ConnectError, LinkError, Proof};
use tokio::sync::watch;

use crate::AccountPlan;
use crate::accounts::{self, AccountState, ConnectedAccount};
use crate::alarm;
use crate::backoff::Backoff;
use crate::mute;
use crate::shared::Shared;
use crate::tasks::{Panicked, calm};

/// How long an account rests that a human has to mend.
const REFUSED_REST: Duration = Duration::from_secs(300);

/// How long an account rests in whose place somebody else is connected: longer each time it happens.
const CONTESTED_RESTS: [Duration; 3] =
    [Duration::from_secs(20), Duration::from_secs(40), Duration::from_secs(60)];

/// A connection that lasts so long shows that nobody else wants its place any more.
const UNCONTESTED: Duration = Duration::from_secs(600);

/// How long ends count against an account.
const WINDOW: Duration = Duration::from_secs(600);

/// How many connections may end within that time before what was heard on them does not count any more:
/// then an account that comes and goes is tried ever more rarely.
const ENDS: usize = 10;

/// How often an account may break down by our own fault within that time.
const CRASHES: usize = 5;

/// How long an account rests that broke down too often.
const CRASHED_REST: Duration = Duration::from_secs(60 * 60);

/// How long an account may be out of reach before the operator is told.
const ABSENT: Duration = Duration::from_secs(600);

/// How often it is looked whether the operator has to be told of an account that is not known to be heard.
const DOUBT: Duration = Duration::from_secs(300);

/// How long nobody is told the same of an account again.
const TOLD_LATELY: Duration = Duration::from_secs(60 * 60);

/// What to do about credentials that are not accepted any more.
const CREDENTIALS: &str =
    "check the credentials of this account; it is tried again every 5 minutes";

/// What is to become of an account's connection. A change ends the one that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orders {
    pub(crate) course: Course,
    /// How many orders there were before.
    pub(crate) number: u64,
}

/// Whether an account is to be connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Course {
    /// It is.
    Runs,
    /// Not before somebody says so.
    Paused,
    /// It is not configured any more.
    Gone,
}

impl Course {
    /// What is to become of an account that is put.
    pub(crate) fn of(account: &AccountId, paused: &[AccountId]) -> Self {
        if paused.contains(account) { Self::Paused } else { Self::Runs }
    }
}

/// How a connection ended.
pub(crate) enum Over {
    /// By itself.
    Lost(LinkError),
    /// Because something else was ordered.
    Told,
}

impl Over {
    pub(crate) fn lost(reason: impl ToString) -> Self {
        Self::Lost(LinkError::Lost { reason: reason.to_string() })
    }
}

/// When an account is tried again.
enum Rest {
    For(Duration),
    UntilTold,
}

/// What somebody who looks after an account keeps in mind.
#[derive(Default)]
pub(crate) struct Care {
    deafness: Mutex<Option<Deafness>>,
    absence: Mutex<Option<Absence>>,
    /// When the operator was told what last.
    told: Mutex<Vec<(String, Mark)>>,
}

/// A time in which an account was connected and not heard.
struct Deafness {
    since: Mark,
    reason: String,
    /// What ends it.
    until: Proof,
    /// How it was connected: in another way it may be heard.
    plan: Weak<AccountPlan>,
    /// Whether the operator knows.
    told: bool,
}

/// A time in which an account could not be reached.
#[derive(Clone, Copy)]
struct Absence {
    since: Mark,
    /// Whether the operator knows.
    told: bool,
}

impl Care {
    fn absence(&self) -> MutexGuard<'_, Option<Absence>> {
        self.absence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deafness(&self) -> MutexGuard<'_, Option<Deafness>> {
        self.deafness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the operator has not been told this lately.
    pub(crate) fn is_news(&self, text: &str, now: Mark) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|(_, at)| now.since(*at) < TOLD_LATELY);
        let is_news = told.iter().all(|(before, _)| before != text);
        if is_news {
            told.push((text.to_owned(), now));
        }
        is_news
    }
}

/// How often something may happen within [`WINDOW`].
struct Budget {
    most: usize,
    spent: VecDeque<Mark>,
}

impl Budget {
    fn of(most: usize) -> Self {
        Self { most, spent: VecDeque::new() }
    }

    /// It happened once more. Says whether that is too often.
    fn is_exceeded(&mut self, now: Mark) -> bool {
        self.spent.push_back(now);
        while self.spent.front().is_some_and(|first| now.since(*first) >= WINDOW) {
            self.spent.pop_front();
        }
        // What is beyond decides nothing.
        while self.spent.len() > self.most + 1 {
            self.spent.pop_front();
        }
        self.spent.len() > self.most
    }
}

/// What is known of the connections before.
struct Record {
    backoff: Backoff,
    contests: usize,
    ends: Budget,
    crashes: Budget,
}

impl Record {
    fn new(shared: &Shared) -> Self {
        let (ends, crashes) = (Budget::of(ENDS), Budget::of(CRASHES - 1));
        Self { backoff: shared.spread.backoff(), contests: 0, ends, crashes }
    }
}

/// Keeps an account connected for as long as the gateway runs.
pub(crate) async fn keep_connected(shared: Arc<Shared>, account: Arc<ConnectedAccount>) {
    let both = || async {
        tokio::select! {
            biased;
            () = look_after(&shared, &account) => {}
            never = mute::watch(&shared, &account) => match never {},
        }
    };
    while let Err(Panicked) = calm(both()).await {
        tracing::error!(account = %account.id, "who looks after the account panicked");
        account.crashes();
        account.is_cut_off();
        shared.routes.unmount(&account.id);
        account.becomes(
            AccountState::Waiting { reason: "something went wrong inside me".into() },
            shared.clock.now(),
        );
        account.was_tried();
        // What it was told and has not followed, too.
        let tended = account.tended();
        let mut orders = account.orders.subscribe();
        tokio::select! {
            biased;
            _ = orders.wait_for(|orders| orders.number != tended) => {}
            () = shared.clock.sleep(REFUSED_REST) => {}
        }
    }
}

async fn look_after(shared: &Arc<Shared>, account: &Arc<ConnectedAccount>) {
    let mut orders = account.orders.subscribe();
    let mut record = Record::new(shared);
    loop {
        let Orders { course, number } = *orders.borrow_and_update();
        account.tends(number);
        let rest = match course {
            Course::Runs => match tend(shared, account, &mut orders, &mut record).await {
                Some(rest) => rest,
                None => {
                    // Whoever says how it goes on does not want it to wait for what was before.
                    record = Record::new(shared);
                    continue;
                }
            },
            Course::Paused | Course::Gone => {
                *account.care.deafness() = None;
                *account.care.absence() = None;
                account.becomes(AccountState::Paused, shared.clock.now());
                if course == Course::Gone {
                    account.lets_go();
                }
                Rest::UntilTold
            }
        };
        account.was_tried();
        tokio::select! {
            biased;
            changed = orders.changed() => match changed {
                Ok(()) => record = Record::new(shared),
                // Nobody is left who could say anything.
                Err(_) => return,
            },
            () = wait(shared, rest) => {}
        }
    }
}

async fn wait(shared: &Shared, rest: Rest) {
    match rest {
        Rest::For(time) => shared.clock.sleep(time).await,
        Rest::UntilTold => std::future::pending().await,
    }
}

/// What is connected, and cut off when this goes.
struct Serving<'a> {
    shared: &'a Shared,
    account: &'a ConnectedAccount,
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.account.is_cut_off();
        self.shared.routes.unmount(&self.account.id);
    }
}

/// One connection, from its beginning to its end. None if it ended because something else was ordered.
async fn tend(
    shared: &Arc<Shared>,
    account: &Arc<ConnectedAccount>,
    orders: &mut watch::Receiver<Orders>,
    record: &mut Record,
) -> Option<Rest> {
    let id = &account.id;
    account.begins(shared.clock.now());
    let connected = tokio::select! {
        biased;
        connected = calm(accounts::connect(shared, account)) => connected,
        changed = orders.changed() => {
            // An error means that the gateway is going away.
            return changed.err().map(|_| Rest::UntilTold);
        }
    };
    let link = match connected {
        Ok(Ok(link)) => link,
        Ok(Err(error)) => return Some(not_connected(shared, account, record, error).await),
        Err(Panicked) => return Some(crashed(shared, account, record, "connecting").await),
    };
    tracing::info!(account = %id, platform = account.plan().account.spec.name, "connected");
    let (before, since) = (account.last_heard(), shared.clock.mark());
    let over = {
        let _serving = Serving { shared, account };
        calm(accounts::carry(shared, account, link, orders)).await
    };
    let (now, ended) = (shared.clock.now(), shared.clock.mark());
    let lost = match over {
        Ok(Over::Told) => return None,
        Ok(Over::Lost(lost)) => lost,
        Err(Panicked) => return Some(crashed(shared, account, record, "listening").await),
    };
    tracing::warn!(account = %id, why = %lost, "not connected any more");
    // A connection on which nothing was ever heard may not have been one, and one that comes and goes is
    // not much better.
    let until = match &lost {
        LinkError::Deaf { until, .. } => *until,
        _ => Proof::Life,
    };
    let heard = account.last_heard().by(until).filter(|heard| Some(*heard) != before.by(until));
    let was_heard = heard.is_some();
    let flaps = record.ends.is_exceeded(ended);
    if was_heard && !flaps {
        record.backoff.reset();
    }
    if ended.since(since) >= UNCONTESTED {
        record.contests = 0;
    }
    Some(match lost {
        LinkError::Unauthorized { .. } => {
            let (problem, hint) = (lost.to_string(), CREDENTIALS.to_owned());
            needs_human(shared, account, &problem, &hint).await;
            account.becomes(AccountState::Refused { problem, hint }, now);
            Rest::For(REFUSED_REST)
        }
        // What came through in between does not mean that the other one is gone.
        LinkError::Conflict { problem, hint } => {
            needs_human(shared, account, &problem, &hint).await;
            account.becomes(AccountState::Contested { problem, hint }, now);
            let rest = CONTESTED_RESTS[record.contests];
            record.contests = (record.contests + 1).min(CONTESTED_RESTS.len() - 1);
            Rest::For(rest)
        }
        LinkError::Deaf { reason, until, since: known } => {
            let silent = known.or(heard).unwrap_or(since);
            deaf(shared, account, silent, &reason, until).await;
            account.becomes(AccountState::Deaf { reason }, now);
            // The next connection is made at once, unless this one was no better.
            match was_heard && !flaps {
                true => Rest::For(Duration::ZERO),
                false => Rest::For(record.backoff.next()),
            }
        }
        LinkError::Lost { .. } => {
            let reason = match flaps {
                true => format!("{lost} (more than {ENDS} times within 10 minutes)"),
                false => lost.to_string(),
            };
            absent(shared, account, &reason).await;
            account.becomes(AccountState::Waiting { reason }, now);
            Rest::For(record.backoff.next())
        }
    })
}

async fn not_connected(
    shared: &Arc<Shared>,
    account: &Arc<ConnectedAccount>,
    record: &mut Record,
    error: ConnectError,
) -> Rest {
    let id = &account.id;
    still_deaf(shared, account, &error.to_string()).await;
    let now = shared.clock.now();
    match error {
        ConnectError::Unreachable { reason } => {
            tracing::warn!(account = %id, reason, "cannot connect");
            absent(shared, account, &reason).await;
            account.becomes(AccountState::Waiting { reason }, now);
            Rest::For(record.backoff.next())
        }
        ConnectError::Refused { problem, hint } => {
            tracing::error!(account = %id, problem, hint, "cannot connect");
            needs_human(shared, account, &problem, &hint).await;
            account.becomes(AccountState::Refused { problem, hint }, now);
            Rest::For(REFUSED_REST)
        }
        ConnectError::Fatal { problem, hint } => {
            tracing::error!(account = %id, problem, hint, "cannot connect, and is not tried again");
            needs_human(shared, account, &problem, &hint).await;
            account.becomes(AccountState::Fatal { problem, hint }, now);
            Rest::UntilTold
        }
    }
}

/// It broke down by our own fault: that is reported, and when it happens too often, it rests.
async fn crashed(
    shared: &Arc<Shared>,
    account: &Arc<ConnectedAccount>,
    record: &mut Record,
    doing: &str,
) -> Rest {
    let id = &account.id;
    tracing::error!(account = %id, doing, "an account panicked");
    account.crashes();
    let now = shared.clock.now();
    if record.crashes.is_exceeded(shared.clock.mark()) {
        let problem = format!("it broke down {CRASHES} times within 10 minutes while {doing}");
        let hint = format!(
            "this is a bug: the log says where, and `talaria platforms resume {id}` tries it again; \
             without that, it is tried in an hour"
        );
        needs_human(shared, account, &problem, &hint).await;
        account.becomes(AccountState::Refused { problem, hint }, now);
        return Rest::For(CRASHED_REST);
    }
    account.becomes(AccountState::Waiting { reason: format!("{doing} panicked") }, now);
    Rest::For(record.backoff.next())
}

/// An account is connected. Where it was deaf before, it is not known to be heard until something shows that: a
/// connection proves nothing, and what was missed was only looked up.
pub(crate) fn connects(shared: &Shared, account: &ConnectedAccount) {
    let plan = Arc::downgrade(&account.plan());
    account.care.deafness().take_if(|deafness| !deafness.plan.ptr_eq(&plan));
    let reason = account.care.deafness().as_ref().map(|deafness| deafness.reason.clone());
    if let Some(reason) = reason {
        account.becomes(AccountState::Unproven { reason }, shared.clock.now());
    }
}

/// Tells the operator of an account that is connected and not known to be heard, as soon as that is news. A sign of
/// life comes or does not; what is brought may come at any time.
pub(crate) async fn doubt(shared: &Arc<Shared>, account: &Arc<ConnectedAccount>) -> Infallible {
    while let Some(reason) = awaits_events(account) {
        if let Some(long) = deaf_for(shared, account) {
            let (id, seconds) = (&account.id, long.as_secs());
            let text = format!(
                "`{id}` was connected but deaf for {seconds} s ({}). I made another connection; whether it \
                 is heard again shows when somebody writes there.",
                talaria_render::literal(&reason)
            );
            alarm::tell(shared, id, text).await;
        }
        shared.clock.sleep(DOUBT).await;
    }
    std::future::pending().await
}

fn awaits_events(account: &ConnectedAccount) -> Option<String> {
    let deafness = account.care.deafness();
    let awaiting = deafness.as_ref().filter(|deafness| deafness.until == Proof::Events);
    awaiting.map(|deafness| deafness.reason.clone())
}

/// An account is heard, by its platform's own evidence.
pub(crate) async fn hears(shared: &Arc<Shared>, account: &Arc<ConnectedAccount>, proof: Proof) {
    present(shared, account).await;
    let ended = account.care.deafness().take_if(|deafness| deafness.until <= proof);
    let Some(Deafness { since, reason, .. }) = ended else { return };
    account.becomes(AccountState::Connected, shared.clock.now());
    let id = &account.id;
    let seconds = shared.clock.mark().since(since).as_secs();
    tracing::info!(account = %id, seconds, reason, "heard again, through another connection");
    let text = format!(
        "`{id}` was connected but deaf for {seconds} s ({}). I made another connection and went on from \
         where I had stopped.",
        talaria_render::literal(&reason)
    );
    let kind = format!("{id} heard again");
    tell(shared, account, &kind, text).await;
}

async fn deaf(
    shared: &Arc<Shared>,
    account: &Arc<ConnectedAccount>,
    since: Mark,
    reason: &str,
    until: Proof,
) {
    tracing::error!(account = %account.id, reason, "connected, but deaf; another connection is made");
    account.was_deaf();
    {
        let mut deafness = account.care.deafness();
        let Some(deafness) = &mut *deafness else {
            let (reason, plan) = (reason.to_owned(), Arc::downgrade(&account.plan()));
            *deafness = Some(Deafness { since, reason, until, plan, told: false });
            return;
        };
        deafness.until = deafness.until.max(until);
    }
    still_deaf(shared, account, reason).await;
}

/// Another connection did not help, or could not be made.
async fn still_deaf(shared: &Arc<Shared>, account: &Arc<ConnectedAccount>, why: &str) {
    let Some(long) = deaf_for(shared, account) else { return };
    let (id, seconds) = (&account.id, long.as_secs());
    let text = format!(
        "`{id}` has been deaf for {seconds} s, and another connection did not help so far ({}). I keep \
         trying.",
        talaria_render::literal(why)
    );
    alarm::tell(shared, id, text).await;
}

/// How long an account has been deaf, if the operator has not been told, which they are from here on.
fn deaf_for(shared: &Shared, account: &ConnectedAccount) -> Option<Duration> {
    let now = shared.clock.mark();
    let is_news = || account.care.is_news(&format!("{} deaf", account.id), now);
    let mut deafness = account.care.deafness();
    let deafness = deafness.as_mut().filter(|deafness| !deafness.told && is_news())?;
    deafness.told = true;
    Some(now.since(deafness.since))
}

/// An account cannot be reached. One that was deaf shortly before has been told of.
async fn absent(shared: &Arc<Shared>, account: &Arc<ConnectedAccount>, why: &str) {
    let now = shared.clock.mark();
    let deaf_since = account.care.deafness().as_ref().map(|deafness| deafness.since);
    let long = {
        let mut absence = account.care.absence();
        let absence = absence.get_or_insert(Absence { since: now, told: false });
        if deaf_since.is_some_and(|deaf| absence.since.since(deaf) < ABSENT) {
            return;
        }
        let long = now.since(absence.since);
        let is_news = || account.care.is_news(&format!("{} absent", account.id), now);
        if absence.told || long < ABSENT || !is_news() {
            return;
        }
        absence.told = true;
        long
    };
    let (id, minutes) = (&account.id, long.as_secs() / 60);
    let text = format!(
        "`{id}` could not be reached for {minutes} minutes ({}). I keep trying.",
        talaria_render::literal(why)
    );
    alarm::tell(shared, id, text).await;
}

/// An account is reached.
pub(crate) async fn present(shared: &Arc<Shared>, account: &Arc<ConnectedAccount>) {
    let absence = account.care.absence().take();
    let Some(Absence { since, told: true }) = absence else { return };
    let (id, minutes) = (&account.id, shared.clock.mark().since(since).as_secs() / 60);
    tracing::info!(account = %id, minutes, "reached again");
    let text = format!(
        "`{id}` can be reached again, after {minutes} minutes. I went on from where I had stopped."
    );
    tell(shared, account, &format!("{id} present"), text).await;
}

async fn needs_human(
    shared: &Arc<Shared>,
    account: &Arc<ConnectedAccount>,
    problem: &str,
    hint: &str,
) {
    let id = &account.id;
    let literal = talaria_render::literal;
    let text = format!("`{id}` needs you: {}; {}.", literal(problem), literal(hint));
    tell(shared, account, problem, text).await;
}

/// Tells the operator, unless they were told the same lately.
pub(crate) async fn tell(
    shared: &Arc<Shared>,
    account: &Arc<ConnectedAccount>,
    kind: &str,
    text: String,
) {
    if account.care.is_news(kind, shared.clock.mark()) {
        alarm::tell(shared, &account.id, text).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_clock::{Clock, SystemClock};

    #[test]
    fn a_budget_counts_what_happened_within_its_time_and_stays_small() {
        let begun = SystemClock.mark();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut budget = Budget::of(3);
        assert_eq!(
            [0, 1, 2, 3].map(|second| budget.is_exceeded(at(second))),
            [false, false, false, true]
        );
        assert!(budget.is_exceeded(at(599)));
        assert!(!budget.is_exceeded(at(1_300)), "all that is long ago");
        for second in 0..10_000 {
            budget.is_exceeded(at(2_000 + second));
        }
        assert!(budget.spent.len() <= 4);
    }
}
