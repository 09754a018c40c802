//! Puts a gateway together: configuration, store, model, accounts, doors.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use talaria_admin::{Doors, Operator};
use talaria_agent::{Fence, Privacy};
use talaria_clock::{Clock, SystemClock};
use talaria_config::{Finding, Loaded, Sources};
use talaria_gateway::{
    AccountPlan, Chores, DiskFiles, Gateway, Limits, Parts, StoreRecall, StoredAttachments,
};
use talaria_hooks::Hooks;
use talaria_model::AccountId;
use talaria_providers::{Http, Switchboard};
use talaria_store::Store;
use talaria_store_sqlite::{OpenError, SqliteStore};
use tokio::net::TcpListener;

use crate::boot::Boot;
use crate::desk::{Desk, LAST_WORDS, Restarts, State};
use crate::discretion::Discretion;
use crate::ending::{End, Pace};
use crate::exit::{Exit, Halt};
use crate::home::{Home, HomeLock};
use crate::homes::Homes;
use crate::hooks::{self, Watching};
use crate::instance::{self, Kind, Recorded};
use crate::instruments::Instruments;
use crate::locks::Locks;
use crate::model::{self, Choice, Equipment};
use crate::orders::{self, Orders};
use crate::paused::PausedAccounts;
use crate::programs::NamedPrograms;
use crate::state_file::StateFile;
use crate::steward::Butler;
use crate::upkeep::{ForgetsPrompts, Retention, keep_up};
use crate::{init, people, plans, programs, reload, rules, voice};

/// A gateway that runs in this process.
pub(crate) struct Running {
    pub(crate) gateway: Gateway,
    pub(crate) http: SocketAddr,
    pub(crate) desk: Arc<Desk>,
    pub(crate) boot: Boot,
    /// What goes on beside it.
    pub(crate) chores: Arc<Chores>,
    doors: Doors,
    state_file: Arc<StateFile>,
    // Let go of in this order.
    _recorded: Recorded,
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
pub(crate) fn remedy(problems: &[Finding]) -> String {
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

/// What is odd about a configuration without being wrong.
pub(crate) fn warnings(loaded: &Loaded) -> Vec<String> {
    let own = loaded.warnings().iter().map(ToString::to_string);
    let own = own.chain(rules::oddities(loaded)).chain(voice::oddities(loaded));
    own.chain(people::oddities(loaded)).collect()
}

/// Whether the programs that a configuration names are there. Nothing is started before that is known, and
/// no gateway ended that works.
pub(crate) fn startable(loaded: &Loaded) -> Result<(), Halt> {
    let wrong = programs::problems(loaded);
    if wrong.is_empty() { Ok(()) } else { Err(misconfigured(&wrong)) }
}

/// Opens the store of a home that this process has locked.
pub(crate) fn store(home: &Home) -> Result<Arc<dyn Store>, Halt> {
    let store = SqliteStore::open(home.path()).map_err(unopened)?;
    Ok(Arc::new(store))
}

/// Whether the store of a home can be opened, as far as that can be seen while somebody else has it.
pub(crate) fn openable(home: &Home) -> Result<(), Halt> {
    talaria_store_sqlite::rehearse(home.path()).map_err(unopened)
}

/// Whether a start would come past what keeps most of them on a home that is as it should be, as far as that
/// can be seen without starting anything.
pub(crate) async fn rehearse(home: &Home, loaded: &Loaded) -> Result<(), Halt> {
    startable(loaded)?;
    let config = loaded.config();
    // Whether a model that was chosen exists is known without asking it.
    if config.model.is_some() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let models = Http::by(config.network.proxy.clone());
        let chosen = model::choice(loaded, &models, &clock).await;
        chosen.map_err(|finding| misconfigured(&[*finding]))?;
    }
    openable(home)?;
    // Its doors, which are closed again at once.
    let listen = config.http.listen;
    let cannot = |error| Halt::failed(format_args!("cannot listen on {listen}: {error}"));
    drop(TcpListener::bind(listen).await.map_err(cannot)?);
    Homes::open(home.homes()).map_err(Halt::failed)?;
    PausedAccounts::open(home)?;
    Ok(())
}

fn unopened(error: OpenError) -> Halt {
    // The same program will find it no different.
    let exit = match error {
        OpenError::Newer { .. }
        | OpenError::Foreign { .. }
        | OpenError::Damaged { .. }
        | OpenError::OldSqlite { .. } => Exit::Misused,
        OpenError::Folder { .. } | OpenError::InUse { .. } | OpenError::Unwritable { .. } => {
            Exit::Failed
        }
    };
    Halt::new(exit, &error).hint(error.hint())
}

/// Starts a gateway. `http` is where it listens, if not where the configuration says.
pub(crate) async fn start(
    home: &Home,
    loaded: Loaded,
    http: Option<SocketAddr>,
    discretion: Arc<Discretion>,
    boot: Boot,
) -> Result<Running, Halt> {
    let lock = instance::lock(home).await?;
    prepare(home, lock, loaded, http, discretion, boot).await?.start().await
}

/// Everything that a gateway is made of. Nobody hears of it, and nothing is left behind when it is dropped.
pub(crate) struct Prepared {
    home: Home,
    loaded: Loaded,
    boot: Boot,
    clock: Arc<dyn Clock>,
    store: Arc<dyn Store>,
    files: Arc<DiskFiles>,
    accounts: Vec<AccountPlan>,
    limits: Limits,
    locks: Option<Locks>,
    models: Http,
    choice: Choice,
    switchboard: Arc<Switchboard>,
    equipment: Equipment,
    butler: Arc<Butler>,
    hooks: Arc<Hooks>,
    instruments: Arc<Instruments>,
    restarts: Restarts,
    http: SocketAddr,
    doors: Doors,
    state_file: StateFile,
    // Let go of in this order.
    recorded: Recorded,
    lock: HomeLock,
}

/// Prepares a gateway in every way that can be given up again, on a home that this process has locked.
pub(crate) async fn prepare(
    home: &Home,
    lock: HomeLock,
    loaded: Loaded,
    http: Option<SocketAddr>,
    discretion: Arc<Discretion>,
    mut boot: Boot,
) -> Result<Prepared, Halt> {
    let kind = if http.is_some() { Kind::TalariaChat } else { Kind::TalariaGateway };
    let recorded = Recorded::write(home, kind)
        .map_err(|error| Halt::failed(format_args!("cannot say who runs: {error}")))?;
    instance::marker::sweep(home);
    let state_file = StateFile::new(home, kind);
    state_file.starting();
    boot.passed("home");
    let config = loaded.config().clone();
    let store = store(home)?;
    boot.passed("store");
    let listen = http.unwrap_or(config.http.listen);
    let doors = Doors::open(listen, &home.socket())
        .await
        .map_err(|error| Halt::failed(&error).hint(error.hint()))?;
    let address = doors.address().map_err(Halt::failed)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let files = Arc::new(
        DiskFiles::open(home.files(), config.files.limit.bytes(), config.files.quota.bytes())
            .map_err(|error| Halt::failed(format_args!("cannot use the files folder: {error}")))?
            .forgetting(store.clone(), clock.clone()),
    );
    let locks = Locks::find(|name| std::env::var_os(name).map(Into::into));
    let accounts = plans::accounts(home, &config, &locks)?;
    boot.passed("doors");
    let models = Http::by(config.network.proxy.clone());
    let choice = model::choice(&loaded, &models, &clock)
        .await
        .map_err(|finding| misconfigured(&[*finding]))?;
    let switchboard = choice.switchboard(&loaded, &models, &clock)?;
    boot.passed("model");
    let operator_accounts = accounts
        .iter()
        .filter(|plan| plan.access.reads_others())
        .map(|plan| plan.id.clone())
        .collect();
    let limits = Limits {
        turns_at_once: config.limits.turns_at_once as usize,
        lingering: config.limits.lanes_in_memory as usize,
        file: config.files.limit.bytes(),
        sender_files: config.files.sender_quota.bytes(),
        message_files: config.files.message_limit.max(config.files.limit).bytes(),
        fetch_time: config.files.fetch_time,
        ..Limits::default()
    };
    let programs = Arc::new(NamedPrograms::new(&clock, &discretion));
    let equipment = Equipment {
        recall: Arc::new(StoreRecall { store: store.clone(), operator_accounts }),
        attachments: Arc::new(StoredAttachments(files.clone())),
        clock: clock.clone(),
        discretion,
        prefixes: Arc::default(),
        history: limits.history,
        fence: Fence::default(),
        programs,
    };
    equipment.set_bounds(&config);
    let homes = Homes::open(home.homes()).map_err(|error| {
        let path = home.homes();
        Halt::failed(format_args!("cannot read {}: {error}", path.display()))
            .hint("correct it, or remove it and say /sethome again")
    })?;
    let paused = PausedAccounts::open(home)?;
    let butler = Butler::new(
        &config,
        homes,
        paused,
        switchboard.clone(),
        clock.clone(),
        equipment.discretion.clone(),
    );
    let butler = Arc::new(butler);
    let hooks = Arc::new(Hooks::open(&home.hooks(), crate::hooks::EVENTS, clock.clone()));
    let instruments = Arc::new(Instruments::open(home, &config, hooks.clone(), &clock)?);
    Ok(Prepared {
        home: home.clone(),
        loaded,
        boot,
        clock,
        store,
        files,
        accounts,
        limits,
        locks,
        models,
        choice,
        switchboard,
        equipment,
        butler,
        hooks,
        instruments,
        // A gateway that lives in somebody's chat ends with it.
        restarts: if http.is_none() { Restarts::Possible } else { Restarts::Never },
        http: address,
        doors,
        state_file,
        recorded,
        lock,
    })
}

impl Prepared {
    /// Leaves these alone for as long as the configuration that people edit is wrong.
    pub(crate) fn hold(&self, accounts: &BTreeSet<AccountId>) {
        self.butler.hold(accounts);
    }

    /// Takes up what the last run left. From here on a gateway has to be ended.
    pub(crate) async fn start(self) -> Result<Running, Halt> {
        let Self { home, loaded, mut boot, clock, store, files, accounts, limits, locks, .. } =
            self;
        let Self { models, choice, switchboard, equipment, butler, hooks, instruments, .. } = self;
        let Self { restarts, http, doors, state_file, lock, recorded, .. } = self;
        let config = loaded.config().clone();
        let agent = model::agent(&config, &choice, switchboard, &equipment);
        let before = reload::Before::of(&accounts);
        let chores = Arc::new(Chores::new(clock.clone()));
        let shelves = files.clone();
        let gateway = Gateway::start(Parts {
            store,
            agent,
            clock,
            files,
            accounts,
            hosts: config.http.allowed_hosts.clone().into(),
            scope: plans::scope(&config),
            rules: rules::usual(&config),
            privacy: if config.privacy.redact_pii { Privacy::Hidden } else { Privacy::Open },
            steward: butler.clone(),
            watcher: Arc::new(Watching::new(hooks)),
            follower: instruments.follower(),
            finalizers: vec![Arc::new(ForgetsPrompts(equipment.prefixes.clone()))],
            ears: voice::ears(&home, &config)?,
            mouth: voice::mouth(&home, &config)?,
            entropy: Arc::new(|bytes: &mut [u8]| rand::fill(bytes)),
            limits,
        })
        .await
        .map_err(Halt::failed)?;
        chores.begin("letting go of files that nothing names", move || {
            let shelves = shelves.clone();
            async move { match shelves.keep_tidy().await {} }
        });
        let desk = Arc::new(Desk {
            home,
            gateway: gateway.clone(),
            models,
            equipment,
            butler: butler.clone(),
            locks,
            begun: loaded.clone(),
            state: Mutex::new(State { loaded, choice, waiting: Vec::new() }),
            applied: Mutex::default(),
            before: Mutex::new(before),
            reloading: tokio::sync::Mutex::new(()),
            orders: Orders::default(),
            end: End::default(),
            restarts,
            voice: voice::summary(&config),
            instruments,
        });
        butler.serve(&desk);
        boot.passed("work of the last run");
        Ok(Running {
            gateway,
            http,
            desk,
            chores,
            doors,
            state_file: Arc::new(state_file),
            boot,
            _recorded: recorded,
            _lock: lock,
        })
    }
}

impl Running {
    /// Serves until it is asked to end, then ends.
    pub(crate) async fn serve(self) -> Result<(), Halt> {
        let operator: Arc<dyn Operator> = self.desk.clone();
        self.begin_chores();
        let Self { desk, gateway, chores, state_file, boot, .. } = self;
        let (stopping, end, beside) = (gateway.clone(), desk.clone(), chores.clone());
        let served = self.doors.serve(gateway.clone(), operator, async move {
            end.end.asked.cancelled().await;
            // Doors stay open while turns finish: people watch them.
            end.end_with_a_report(&stopping, &beside).await;
            tokio::select! {
                biased;
                () = end.instruments.ended() => {}
                () = end.end.hurried.cancelled() => {}
            }
        });
        let served = served.await;
        chores.end(LAST_WORDS).await;
        let last_words = async {
            desk.keep().await;
            if desk.ending().1 == Pace::Calm {
                instance::starts::forget(&desk.home).await;
            }
            state_file.stopped(&gateway, &desk, &boot).await;
        };
        // An end is not held up by a disk.
        tokio::select! {
            () = last_words => {}
            () = SystemClock.sleep(LAST_WORDS) => tracing::error!("the disk takes nothing any more"),
        }
        served.map_err(|error| Halt::failed(format_args!("cannot serve any more: {error}")))
    }

    /// Begins what goes on beside the gateway. Each is a task of its own: what breaks down is begun again.
    fn begin_chores(&self) {
        let Self { desk, gateway, chores, state_file, boot, .. } = self;
        desk.instruments.drive(chores);
        let kept = (state_file.clone(), gateway.clone(), desk.clone(), boot.clone());
        chores.begin("state file", move || {
            let (state_file, gateway, desk, boot) = kept.clone();
            async move { match state_file.keep(&gateway, &desk, &boot).await {} }
        });
        let fed = gateway.clone();
        chores.begin("watchdog", move || {
            let gateway = fed.clone();
            async move { match init::feed(&gateway).await {} }
        });
        let watched = desk.clone();
        chores.begin("changes to the configuration", move || {
            let (desk, ended) = (watched.clone(), watched.end.asked.clone());
            async move {
                tokio::select! {
                    never = reload::watch(desk) => match never {},
                    () = ended.cancelled() => {}
                }
            }
        });
        let obeyed = desk.clone();
        chores.begin("orders to read the configuration again", move || {
            let desk = obeyed.clone();
            async move { match orders::carry_out(desk).await {} }
        });
        let retention = Retention::of(desk.state().loaded.config());
        let (prefixes, ended) = (desk.equipment.prefixes.clone(), desk.end.asked.clone());
        let kept_up = gateway.clone();
        chores.begin("upkeep", move || {
            let (gateway, prefixes, ended) = (kept_up.clone(), prefixes.clone(), ended.clone());
            async move {
                tokio::select! {
                    never = keep_up(gateway, prefixes, retention) => match never {},
                    () = ended.cancelled() => {}
                }
            }
        });
        let (gateway, instruments) = (gateway.clone(), desk.instruments.clone());
        chores.begin("word to the hooks that it serves", move || {
            let (gateway, instruments) = (gateway.clone(), instruments.clone());
            async move {
                gateway.first_connections().await;
                hooks::started(instruments.hooks(), &gateway);
            }
        });
    }
}
