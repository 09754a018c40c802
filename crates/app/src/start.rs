//! Puts a gateway together: configuration, store, model, accounts, doors.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use talaria_admin::{Doors, Operator, api};
use talaria_clock::{Clock, SystemClock};
use talaria_config::{Allowed, Applies, Config, Finding, Loaded, Sources};
use talaria_gateway::{
    AccountPlan, DiskFiles, Gateway, Limits, Parts, StoreRecall, StoredAttachments,
};
use talaria_model::AccountId;
use talaria_platform::{FileStore, Identity};
use talaria_providers::{Chain, Http};
use talaria_session::{Access, GroupSessions, Rules, Scope, ThreadSessions};
use talaria_store::Store;
use talaria_store_sqlite::SqliteStore;
use tokio_util::sync::CancellationToken;

use crate::exit::{Exit, Halt};
use crate::home::{Home, HomeLock};
use crate::model::{self, Equipment};
use crate::web_link;

/// How long turns in hand get to finish when the gateway is asked to end.
const GRACE: Duration = Duration::from_secs(20);

/// A gateway that runs in this process.
pub(crate) struct Running {
    pub(crate) gateway: Gateway,
    pub(crate) http: SocketAddr,
    pub(crate) desk: Arc<Desk>,
    doors: Doors,
    _lock: HomeLock,
}

/// Reads the configuration of a home.
pub(crate) fn configuration(home: &Home) -> Result<Loaded, Halt> {
    let loaded = Sources::read(home.path(), std::env::vars_os())
        .and_then(|sources| talaria_config::load(sources, talaria_platforms::ALL));
    loaded.map_err(|problems| misconfigured(problems.iter().as_slice()))
}

/// Says what is wrong with a configuration.
pub(crate) fn misconfigured(problems: &[Finding]) -> Halt {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    let text = format!("the configuration is wrong\n{}", lines.join("\n"));
    Halt::new(Exit::Misused, text).hint(remedy(problems))
}

/// Where to go from what is wrong: to the setting, or else to the line.
fn remedy(problems: &[Finding]) -> String {
    if let Some(path) = problems.iter().find_map(|finding| finding.path.as_deref()) {
        let setting = path.split('[').next().unwrap_or(path);
        return format!("`talaria config explain {setting}` tells what it takes");
    }
    let place = problems.iter().find_map(|finding| finding.place.as_ref());
    match place.map(|place| (place.file.as_str(), place.line)) {
        Some((file, Some(line))) => {
            format!(
                "correct line {line} of {file}; `talaria config check` tells whether it is right"
            )
        }
        Some((file, None)) => {
            format!("correct {file}; `talaria config check` tells whether it is right")
        }
        None => "`talaria config check` tells whether it is right".to_owned(),
    }
}

/// Opens the store of a home that this process has locked.
pub(crate) fn store(home: &Home) -> Result<Arc<dyn Store>, Halt> {
    let store =
        SqliteStore::open(home.path()).map_err(|error| Halt::failed(&error).hint(error.hint()))?;
    Ok(Arc::new(store))
}

/// Starts a gateway. `http` is where it listens, if not where the configuration says.
pub(crate) async fn start(
    home: &Home,
    loaded: Loaded,
    http: Option<SocketAddr>,
) -> Result<Running, Halt> {
    let lock = home.lock()?;
    let config = loaded.config().clone();
    let store = store(home)?;
    let listen = http.unwrap_or(config.http.listen);
    let doors = Doors::open(listen, &home.socket())
        .await
        .map_err(|error| Halt::failed(&error).hint(error.hint()))?;
    let address = doors.address().map_err(Halt::failed)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let files: Arc<dyn FileStore> = Arc::new(
        DiskFiles::open(home.files(), config.files.limit.bytes(), config.files.quota.bytes())
            .map_err(|error| Halt::failed(format_args!("cannot use the files folder: {error}")))?
            .forgetting(store.clone(), clock.clone()),
    );
    let accounts = accounts(home, &config)?;
    let scope = scope(&config);
    let models = Http::default();
    let chain = model::chain(&loaded, &models, &clock)
        .await
        .map_err(|finding| misconfigured(&[*finding]))?;
    let operator_accounts = accounts
        .iter()
        .filter(|plan| plan.access == Access::Operator)
        .map(|plan| plan.id.clone())
        .collect();
    let equipment = Equipment {
        recall: Arc::new(StoreRecall { store: store.clone(), scope, operator_accounts }),
        attachments: Arc::new(StoredAttachments(files.clone())),
        clock: clock.clone(),
    };
    let agent = model::agent(&config, &chain, &models, &equipment)?;
    let gateway = Gateway::start(Parts {
        store,
        agent,
        clock,
        files,
        accounts,
        hosts: config.http.allowed_hosts.clone().into(),
        scope,
        rules: Rules {
            turn_limit: config.agent.turn_limit,
            question_limit: config.agent.question_limit,
            room: config.limits.pending_per_session as usize,
        },
        limits: Limits {
            turns_at_once: config.limits.turns_at_once as usize,
            lingering: config.limits.lanes_in_memory as usize,
            ..Limits::default()
        },
    })
    .await
    .map_err(Halt::failed)?;
    gateway.first_connections().await;
    let desk = Arc::new(Desk {
        home: home.clone(),
        gateway: gateway.clone(),
        models,
        equipment,
        state: Mutex::new((loaded, chain)),
        reloading: tokio::sync::Mutex::new(()),
        ended: CancellationToken::new(),
    });
    Ok(Running { gateway, http: address, desk, doors, _lock: lock })
}

impl Running {
    /// Serves until it is asked to end, then ends.
    pub(crate) async fn serve(self) -> Result<(), Halt> {
        let ended = self.desk.ended.clone();
        let user = nix::unistd::geteuid().as_raw();
        let operator: Arc<dyn Operator> = self.desk.clone();
        let served = self
            .doors
            .serve(self.gateway.clone(), operator, user, async move {
                ended.cancelled().await;
                // Doors stay open while turns finish: people watch them.
                self.gateway.stop(GRACE).await;
            })
            .await;
        served.map_err(|error| Halt::failed(format_args!("cannot serve any more: {error}")))
    }
}

fn scope(config: &Config) -> Scope {
    Scope {
        groups: if config.sessions.group_per_user {
            GroupSessions::PerMember
        } else {
            GroupSessions::Shared
        },
        threads: if config.sessions.thread_per_user {
            ThreadSessions::PerMember
        } else {
            ThreadSessions::Shared
        },
    }
}

fn accounts(home: &Home, config: &Config) -> Result<Vec<AccountPlan>, Halt> {
    let mut plans = Vec::new();
    for (id, settings) in &config.accounts {
        let Some(account) = settings.account.clone() else { continue };
        let folder = home.account(id.as_str());
        std::fs::create_dir_all(&folder).map_err(|error| {
            Halt::failed(format_args!("cannot make {}: {error}", folder.display()))
        })?;
        let access = match (settings.platform.identity, &settings.allowed) {
            (Identity::Operator, _) => Access::Operator,
            (Identity::Anyone, Allowed::Everyone) => Access::Everyone,
            (Identity::Anyone, Allowed::Only(senders)) => Access::Only(senders.clone()),
        };
        plans.push(AccountPlan { id: AccountId::clone(id), account, access, folder });
    }
    Ok(plans)
}

/// What an operator can ask of the running program.
pub(crate) struct Desk {
    home: Home,
    gateway: Gateway,
    models: Http,
    equipment: Equipment,
    state: Mutex<(Loaded, Chain)>,
    reloading: tokio::sync::Mutex<()>,
    ended: CancellationToken,
}

impl Desk {
    /// Whether there is a page to link to.
    pub(crate) fn serves_web(&self) -> bool {
        web_link::is_served(self.state.lock().unwrap_or_else(PoisonError::into_inner).0.config())
    }

    /// The model that answers and why it was chosen, in one line.
    pub(crate) fn model_and_why(&self) -> String {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (loaded, chain) = &*state;
        format!("{}: {}", model::name(chain), model::why(chain, loaded))
    }
}

#[async_trait]
impl Operator for Desk {
    fn model(&self) -> String {
        model::name(&self.state.lock().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// Reads the configuration again. The running one stays unless the new one is right as a whole.
    async fn reload(&self) -> Result<api::Reloaded, String> {
        let _one_at_a_time = self.reloading.lock().await;
        let before = self.state.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        let (loaded, changes) = Sources::read(self.home.path(), std::env::vars_os())
            .and_then(|sources| before.reload(sources))
            .map_err(|problems| problems.to_string())?;
        let chain = model::chain(&loaded, &self.models, &self.equipment.clock)
            .await
            .map_err(|finding| finding.to_string())?;
        let agent = model::agent(loaded.config(), &chain, &self.models, &self.equipment)
            .map_err(|halt| halt.explained())?;
        self.gateway.set_agent(agent);
        let (old, new) = (self.model(), model::name(&chain));
        let warnings = loaded.warnings().iter().map(ToString::to_string).collect();
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = (loaded, chain);
        let (live, after_restart): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| change.applies == Applies::Live);
        let line = |change: &talaria_config::Change| {
            format!("{}: {} → {}", change.path, change.before, change.after)
        };
        // A key that came or went changes the model although no setting did.
        let model = (old != new).then(|| format!("the model that answers: {old} → {new}"));
        Ok(api::Reloaded {
            live: model.into_iter().chain(live.iter().map(line)).collect(),
            after_restart: after_restart.iter().map(line).collect(),
            warnings,
        })
    }

    fn stop(&self) {
        self.ended.cancel();
    }

    fn is_ending(&self) -> bool {
        self.ended.is_cancelled()
    }
}
