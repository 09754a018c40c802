//! From one configuration to the next while the gateway runs: what a change does is told before it is
//! done, nothing is done unless all of it is right, and an account that does not work with its new
//! settings goes back to its old ones.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fs;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use talaria_admin::guests::OPERATOR;
use talaria_admin::{Operator, api};
use talaria_config::{Applies, Change, Config, Loaded, Shown, Sources};
use talaria_gateway::{AccountPlan, AccountState, Probation};
use talaria_machine::Identity;
use talaria_model::AccountId;
use talaria_session::Pause;

use crate::aside::aside;
use crate::desk::{Desk, ReadAgain, State};
use crate::last_good;
use crate::{model, people, plans, start};

/// How often it is looked whether the files have changed. A look is two questions to the file system, and
/// works on network drives, too.
const LOOK: Duration = Duration::from_secs(1);

/// How long it takes at most until it is known whether an account works.
const TRIED: Duration = Duration::from_secs(40);

/// What is left of configurations before.
#[derive(Default)]
pub(crate) struct Before {
    /// How each account is set up that runs.
    running: BTreeMap<AccountId, AccountPlan>,
    /// Accounts with new settings.
    probation: Probation,
    /// Accounts that run with older settings than the configuration says.
    held_back: BTreeSet<AccountId>,
    /// What is wrong with the files as they are.
    problem: Option<String>,
    /// What works and is not kept yet: nobody waits for the disk over it.
    unkept: Option<Sources>,
}

impl Before {
    /// Before anything has changed.
    pub(crate) fn of(plans: &[AccountPlan]) -> Self {
        let running = plans.iter().map(|plan| (plan.id.clone(), plan.clone()));
        Self { running: running.collect(), ..Self::default() }
    }
}

impl Desk {
    fn before(&self) -> MutexGuard<'_, Before> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is wrong with the configuration's files, while an older configuration applies.
    pub(crate) fn wrong(&self) -> Option<String> {
        self.before().problem.clone()
    }

    /// This configuration works, and is kept for the next start before long.
    pub(crate) fn works(&self, sources: Sources) {
        self.before().unkept = Some(sources);
    }

    /// Keeps what works.
    pub(crate) async fn keep(&self) {
        let unkept = self.before().unkept.take();
        if let Some(sources) = unkept {
            let home = self.home.clone();
            aside(move || last_good::keep(&home, &sources)).await;
        }
    }

    /// These are as the configuration says from the next time on that it is read.
    pub(crate) fn holds_back(&self, accounts: BTreeSet<AccountId>) {
        self.before().held_back.extend(accounts);
    }

    /// Remembers what is wrong with the files.
    pub(crate) fn finds_wrong(&self, problem: Option<String>) {
        self.before().problem = problem;
    }
}

/// What only a restart changes, from what runs to this configuration.
fn waiting(desk: &Desk, loaded: &Loaded) -> Vec<Change> {
    let mut changes = desk.begun.changes_to(loaded);
    changes.retain(|change| change.applies == Applies::Restart);
    changes
}

/// What reading the configuration again would do.
pub(crate) async fn plan(desk: &Desk) -> Result<api::ConfigPlan, String> {
    let ReadAgain { loaded, mut changes, .. } = desk.read_again().await?;
    let unread: BTreeSet<String> = changes.iter().map(|change| change.path.clone()).collect();
    changes.retain(|change| change.applies != Applies::Restart);
    changes.extend(waiting(desk, &loaded));
    let planned = |change: &Change| api::PlannedChange {
        path: change.path.clone(),
        before: change.before.to_string(),
        after: change.after.to_string(),
        effect: match change.applies {
            Applies::Live => api::ChangeEffect::Live,
            Applies::Account => api::ChangeEffect::Account,
            Applies::Restart if unread.contains(&change.path) => api::ChangeEffect::Restart,
            Applies::Restart => api::ChangeEffect::Waiting,
        },
        account: account_of(change).map(|account| account.to_string()),
    };
    let held_back = desk.before().held_back.iter().map(ToString::to_string).collect();
    Ok(api::ConfigPlan {
        changes: changes.iter().map(planned).collect(),
        held_back,
        warnings: start::warnings(&loaded),
    })
}

/// Reads the configuration again in somebody's name and does what it says, target by target. Whoever begins
/// this sees it through: cut off, an account would have nothing to go back to.
pub(crate) async fn apply(desk: &Desk, by: &str) -> Result<api::Reloaded, String> {
    let _one_at_a_time = desk.reloading.lock().await;
    let read = desk.read_again().await.inspect_err(|problem| {
        desk.finds_wrong(Some(problem.clone()));
    })?;
    desk.finds_wrong(None);
    let ReadAgain { loaded, changes, choice, switchboard, sources } = read;
    // Who is heard waits for no connection: whoever was taken off a list is not heard from here on.
    desk.set_access(loaded.config());
    desk.equipment.set_bounds(loaded.config());
    desk.butler.set_models(switchboard.clone());
    desk.butler.set_places(loaded.config());
    let agent = model::agent(loaded.config(), &choice, switchboard, &desk.equipment);
    desk.gateway.set_agent(agent);
    let (before, after) = (desk.model(), model::name(&choice.chain));
    let mut warnings = start::warnings(&loaded);
    warnings.extend(people::unpriced(loaded.config(), &choice.chain));
    let mut accounts: BTreeSet<AccountId> = changes
        .iter()
        .filter(|change| change.applies == Applies::Account)
        .filter_map(account_of)
        .collect();
    accounts.append(&mut desk.before().held_back);
    let (kept, out): (Vec<_>, Vec<_>) =
        accounts.iter().partition(|id| is_configured(loaded.config(), id));
    // A credential that was replaced is not taken up again, whatever does not work: it may have leaked.
    let renewed: BTreeSet<AccountId> = changes
        .iter()
        .filter(|change| change.before == Shown::Hidden)
        .filter_map(account_of)
        .collect();
    // What is taken out may come back under another name: its credentials have to be free by then.
    let mut accounts = join_all(out.into_iter().map(|id| take_out(desk, id))).await;
    // So may one whose credential is another one now: two can have swapped theirs.
    join_all(renewed.iter().filter(|id| kept.contains(id)).map(|id| take_out(desk, id))).await;
    let moved = kept.into_iter().map(|id| {
        let way = if renewed.contains(id) { Way::Onward } else { Way::OrBack };
        move_on(desk, id, loaded.config(), way)
    });
    accounts.extend(join_all(moved).await);
    // Nor does it go back with one, and accounts have come.
    desk.set_access(loaded.config());
    let all_well = desk.before().held_back.is_empty();
    let waiting = waiting(desk, &loaded);
    *desk.state() = State { loaded, choice, waiting };
    desk.applies(&sources);
    // What could not be recorded is found and recorded at the next start, beside what is known to work.
    if desk.record(&changes, by).await.is_ok() && all_well {
        desk.works(sources);
    }
    let line = |change: &Change| format!("{}: {} → {}", change.path, change.before, change.after);
    let lines =
        |applies: Applies| changes.iter().filter(move |change| change.applies == applies).map(line);
    // A key that came or went changes the model although no setting did.
    let model = (before != after).then(|| format!("the model that answers: {before} → {after}"));
    Ok(api::Reloaded {
        live: model.into_iter().chain(lines(Applies::Live)).collect(),
        accounts,
        after_restart: lines(Applies::Restart).collect(),
        warnings,
    })
}

/// The account that a change is about.
fn account_of(change: &Change) -> Option<AccountId> {
    let (name, _) = change.path.strip_prefix("accounts.")?.split_once('.')?;
    AccountId::new(name).ok()
}

/// Whether an account is to be connected.
fn is_configured(config: &Config, id: &AccountId) -> bool {
    config.accounts.get(id).is_some_and(|settings| settings.account.is_some())
}

/// What became of an account.
fn result(id: &AccountId, outcome: &str, problem: Option<String>) -> api::AccountReloaded {
    let (account, outcome) = (id.to_string(), outcome.to_owned());
    api::AccountReloaded { account, outcome, problem, rolled_back: false }
}

/// Disconnects an account that is not configured any more, and waits until it has let go of everything.
async fn take_out(desk: &Desk, id: &AccountId) -> api::AccountReloaded {
    {
        let mut before = desk.before();
        before.probation.end(id);
        before.running.remove(id);
    }
    desk.gateway.drop_account(id);
    desk.gateway.tried(id, TRIED).await;
    result(id, "taken out", None)
}

/// Where an account goes whose new settings do not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Back to its old ones.
    OrBack,
    /// Nowhere: it waits for others.
    Onward,
}

/// Brings one account to its new settings, or back.
async fn move_on(desk: &Desk, id: &AccountId, config: &Config, way: Way) -> api::AccountReloaded {
    let was = desk.gateway.accounts().into_iter().find(|account| account.id == *id);
    let is_there = was.is_some();
    let worked = was.is_some_and(|was| was.state == AccountState::Connected);
    let plan = match plans::plan(&desk.home, config, &desk.locks, id) {
        Ok(Some(plan)) => plan,
        Ok(None) => return take_out(desk, id).await,
        Err(halt) => {
            desk.before().held_back.insert(id.clone());
            let outcome = if is_there { "left as it is" } else { "taken out" };
            return result(id, outcome, Some(halt.explained()));
        }
    };
    let back = {
        let mut before = desk.before();
        // Settings that have not proved themselves are nothing to go back to.
        let proven = before.probation.end(id);
        let old = before.running.insert(id.clone(), plan.clone());
        proven.or(old.filter(|_| worked)).filter(|_| way == Way::OrBack)
    };
    desk.gateway.put_account(plan);
    if desk.butler.release(id)
        && let Err(error) = desk.gateway.pause(id, Pause::Resume, "the configuration").await
    {
        return result(id, "left as it is", Some(error.to_string()));
    }
    let state = desk.gateway.tried(id, TRIED).await;
    match (state, back) {
        (Some(AccountState::Paused), _) => {
            result(id, "paused; it is connected when it is resumed", None)
        }
        (Some(AccountState::Connected), back) => {
            if let Some(back) = back {
                desk.before().probation.begin(&desk.gateway, back);
            }
            result(id, "connected", None)
        }
        (state, Some(back)) => {
            let problem = state.as_ref().map_or_else(String::new, described);
            roll_back(desk, back, config, &problem).await;
            let outcome = "rolled back to its old settings";
            api::AccountReloaded { rolled_back: true, ..result(id, outcome, Some(problem)) }
        }
        (state, None) => {
            let problem = state.as_ref().map_or_else(|| "it is gone".to_owned(), described);
            result(id, "not connected", Some(problem))
        }
    }
}

/// Sets an account up as it was, but for who is heard: that is as the configuration says.
async fn roll_back(desk: &Desk, mut back: AccountPlan, config: &Config, problem: &str) {
    let id = back.id.clone();
    tracing::error!(account = %id, problem, "the new settings do not work; the old ones are back");
    plans::hears(config, &mut back);
    {
        let mut before = desk.before();
        before.held_back.insert(id.clone());
        before.running.insert(id.clone(), back.clone());
    }
    desk.gateway.take_back(back, problem).await;
    desk.gateway.tried(&id, TRIED).await;
}

/// How an account is doing that does not work.
fn described(state: &AccountState) -> String {
    match state {
        AccountState::Connecting => "it does not answer".to_owned(),
        AccountState::Connected => "connected".to_owned(),
        AccountState::Paused => "paused".to_owned(),
        AccountState::Waiting { reason }
        | AccountState::Deaf { reason }
        | AccountState::Unproven { reason } => reason.clone(),
        AccountState::Contested { problem, hint }
        | AccountState::Refused { problem, hint }
        | AccountState::Fatal { problem, hint } => format!("{problem}; {hint}"),
    }
}

/// Looks whether the files have changed and whether accounts with new settings still work, until it is
/// dropped.
pub(crate) async fn watch(desk: Arc<Desk>) -> Infallible {
    let clock = desk.gateway.clock().clone();
    let mut settled = None;
    let mut seen = None;
    loop {
        clock.sleep(LOOK).await;
        watch_over(&desk).await;
        desk.keep().await;
        let looks = Looks::of(&desk);
        // Saved in two steps, it would be half a file: it has to look the same twice.
        let is_still = seen.as_ref() == Some(&looks);
        if is_still && settled.as_ref() != Some(&looks) && desk.watches() {
            settled = Some(looks.clone());
            if differs(&desk) {
                match apply(&desk, OPERATOR).await {
                    Ok(done) => tell(&done),
                    Err(problem) => {
                        tracing::error!(
                            "a file of the configuration was changed and is wrong, so the running one stays: {problem}"
                        );
                    }
                }
            } else {
                desk.finds_wrong(None);
            }
        }
        seen = Some(looks);
    }
}

/// Sends accounts back to their old settings that stopped working with their new ones.
async fn watch_over(desk: &Desk) {
    if desk.before().probation.is_empty() {
        return;
    }
    let _one_at_a_time = desk.reloading.lock().await;
    loop {
        let failed = desk.before().probation.failed(&desk.gateway);
        let Some((back, state)) = failed else { return };
        let config = desk.state().loaded.config().clone();
        roll_back(desk, back, &config, &described(&state)).await;
    }
}

/// Whether the files say something else than what applies.
fn differs(desk: &Desk) -> bool {
    match Sources::read(desk.home.path(), std::env::vars_os()) {
        Ok(sources) => {
            let applied = desk.applied();
            let texts = (sources.config_text(), sources.dotenv_text());
            texts != (applied.0.as_deref(), applied.1.as_deref())
        }
        // Reading it again says what is wrong.
        Err(_) => true,
    }
}

fn tell(done: &api::Reloaded) {
    for change in &done.live {
        tracing::info!(change, "the configuration was changed; this applies");
    }
    for account in &done.accounts {
        let api::AccountReloaded { account, outcome, problem, .. } = account;
        tracing::info!(account, outcome, problem, "the configuration of an account was changed");
    }
    for change in &done.after_restart {
        tracing::warn!(change, "the configuration was changed; this applies after a restart");
    }
    for warning in &done.warnings {
        tracing::warn!("{warning}");
    }
}

/// How the files look from outside.
#[derive(Clone, PartialEq, Eq)]
struct Looks([Option<(SystemTime, u64, Identity)>; 2]);

impl Looks {
    fn of(desk: &Desk) -> Self {
        Self(["config.yaml", ".env"].map(|name| {
            let path = desk.home.path().join(name);
            let found = fs::metadata(&path).ok()?;
            Some((found.modified().ok()?, found.len(), Identity::at(&path).ok()?))
        }))
    }
}
