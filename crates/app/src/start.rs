//! Puts a gateway together: configuration, store, model, accounts, doors.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use talaria_admin::guests::OPERATOR;
use talaria_admin::{Doors, Operator, api};
use talaria_agent::Privacy;
use talaria_clock::{Clock, SystemClock};
use talaria_config::{
    AccountSettings, AllowBots, Applies, Change, CommandSettings, Config, Finding, Loaded,
    ReplyToMode, RoomAccess, Sources, TransportSetting, UnauthorizedDm,
};
use talaria_gateway::{
    AccountPlan, DiskFiles, Gateway, Limits, Manner, Parts, Replies, StoreRecall,
    StoredAttachments, Streaming, Transport,
};
use talaria_model::AccountId;
use talaria_platform::{FileStore, Identity};
use talaria_providers::{Http, Switchboard};
use talaria_session::{
    Access, Bots, Chatter, Elsewhere, Gate, GroupSessions, Mention, Places, Policy, RoomRules,
    Scope, Strangers, Surface, ThreadSessions, Threads, Tiers,
};
use talaria_store::{AuditDeed, Audited, Store};
use talaria_store_sqlite::SqliteStore;
use tokio_util::sync::CancellationToken;

use crate::discretion::Discretion;
use crate::exit::{Exit, Halt};
use crate::home::{Home, HomeLock};
use crate::homes::Homes;
use crate::locks::Locks;
use crate::model::{self, Choice, Equipment};
use crate::steward::Butler;
use crate::upkeep::{ForgetsPrompts, Retention, keep_up};
use crate::{people, programs, rules, voice, web_link};

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

/// What is odd about a configuration without being wrong.
pub(crate) fn warnings(loaded: &Loaded) -> Vec<String> {
    let own = loaded.warnings().iter().map(ToString::to_string);
    let own = own.chain(rules::oddities(loaded)).chain(voice::oddities(loaded));
    own.chain(people::oddities(loaded)).collect()
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
    discretion: Arc<Discretion>,
) -> Result<Running, Halt> {
    let lock = home.lock()?;
    let wrong = programs::problems(&loaded);
    if !wrong.is_empty() {
        return Err(misconfigured(&wrong));
    }
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
    let models = Http::default();
    let choice = model::choice(&loaded, &models, &clock)
        .await
        .map_err(|finding| misconfigured(&[*finding]))?;
    let switchboard = choice.switchboard(&loaded, &models, &clock)?;
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
    let equipment = Equipment {
        recall: Arc::new(StoreRecall { store: store.clone(), operator_accounts }),
        attachments: Arc::new(StoredAttachments(files.clone())),
        clock: clock.clone(),
        discretion,
        prefixes: Arc::default(),
        history: limits.history,
    };
    let agent = model::agent(&config, &choice, switchboard.clone(), &equipment);
    let homes = Homes::open(home.homes()).map_err(|error| {
        let path = home.homes();
        Halt::failed(format_args!("cannot read {}: {error}", path.display()))
            .hint("correct it, or remove it and say /sethome again")
    })?;
    let butler = Arc::new(Butler::new(&config, homes, switchboard, clock.clone()));
    let gateway = Gateway::start(Parts {
        store,
        agent,
        clock,
        files,
        accounts,
        hosts: config.http.allowed_hosts.clone().into(),
        scope: scope(&config),
        rules: rules::usual(&config),
        privacy: if config.privacy.redact_pii { Privacy::Hidden } else { Privacy::Open },
        steward: butler.clone(),
        finalizers: vec![Arc::new(ForgetsPrompts(equipment.prefixes.clone()))],
        ears: voice::ears(home, &config)?,
        mouth: voice::mouth(home, &config)?,
        entropy: Arc::new(|bytes: &mut [u8]| rand::fill(bytes)),
        limits,
    })
    .await
    .map_err(Halt::failed)?;
    let desk = Arc::new(Desk {
        home: home.clone(),
        gateway: gateway.clone(),
        models,
        equipment,
        butler: butler.clone(),
        state: Mutex::new(State { loaded, choice }),
        reloading: tokio::sync::Mutex::new(()),
        ended: CancellationToken::new(),
        ending: Mutex::new(Ending::ForGood),
        // A gateway that lives in somebody's chat ends with it.
        restarts: if http.is_none() { Restarts::Possible } else { Restarts::Never },
        voice: voice::summary(&config),
    });
    butler.serve(&desk);
    gateway.first_connections().await;
    Ok(Running { gateway, http: address, desk, doors, _lock: lock })
}

/// How a gateway ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It does not come back by itself.
    ForGood,
    /// It is started again.
    Again,
}

/// Whether a gateway can start again by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restarts {
    Possible,
    Never,
}

impl Running {
    /// Serves until it is asked to end, then ends. Says whether it is to start again.
    pub(crate) async fn serve(self) -> Result<Ending, Halt> {
        let ended = self.desk.ended.clone();
        let user = nix::unistd::geteuid().as_raw();
        let operator: Arc<dyn Operator> = self.desk.clone();
        let upkeep = self.upkeep();
        let (desk, gateway) = (self.desk, self.gateway);
        let stopping = gateway.clone();
        let serve = self.doors.serve(gateway, operator, user, async move {
            ended.cancelled().await;
            // Doors stay open while turns finish: people watch them.
            stopping.stop(GRACE).await;
        });
        let served = tokio::select! {
            served = serve => served,
            never = upkeep => match never {},
        };
        served.map_err(|error| Halt::failed(format_args!("cannot serve any more: {error}")))?;
        Ok(*desk.ending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is done now and then, until it is asked to end.
    fn upkeep(&self) -> impl Future<Output = Infallible> + use<> {
        let retention = Retention::of(self.desk.state().loaded.config());
        let prefixes = self.desk.equipment.prefixes.clone();
        let (gateway, ended) = (self.gateway.clone(), self.desk.ended.clone());
        async move {
            tokio::select! {
                never = keep_up(gateway, prefixes, retention) => match never {},
                () = ended.cancelled() => std::future::pending().await,
            }
        }
    }
}

fn scope(config: &Config) -> Scope {
    Scope {
        groups: if config.group_sessions_per_user {
            GroupSessions::PerMember
        } else {
            GroupSessions::Shared
        },
        threads: if config.thread_sessions_per_user {
            ThreadSessions::PerMember
        } else {
            ThreadSessions::Shared
        },
    }
}

fn accounts(home: &Home, config: &Config) -> Result<Vec<AccountPlan>, Halt> {
    let locks = Locks::find(|name| std::env::var_os(name).map(Into::into));
    let mut plans = Vec::new();
    for (id, settings) in &config.accounts {
        let Some(mut account) = settings.account.clone() else { continue };
        if let Some(credential) = &account.credential {
            let Some(locks) = &locks else {
                return Err(Halt::failed(
                    "cannot tell whether another gateway uses the same bots, because no folder for \
                     their locks is known; set HOME or TALARIA_GATEWAY_LOCK_DIR",
                ));
            };
            let claim = locks.claim(account.spec.name, credential, id, home.path());
            account = account.claiming(move || claim.take());
        }
        let folder = home.account(id.as_str());
        std::fs::create_dir_all(&folder).map_err(|error| {
            Halt::failed(format_args!("cannot make {}: {error}", folder.display()))
        })?;
        plans.push(AccountPlan {
            id: AccountId::clone(id),
            account,
            access: access(config, id, settings),
            gate: gate(settings),
            rules: rules::of_account(config, settings),
            manner: Arc::new(manner(config, settings)),
            folder,
        });
    }
    Ok(plans)
}

fn manner(config: &Config, settings: &AccountSettings) -> Manner {
    let streaming = config.streaming.clone().with(&settings.streaming);
    let fresh_final_after = Duration::from_secs(streaming.fresh_final_after_seconds.into());
    Manner {
        streaming: Streaming {
            transport: match streaming.transport {
                TransportSetting::Auto => Transport::Auto,
                TransportSetting::Draft => Transport::Draft,
                TransportSetting::Edit => Transport::Edit,
                TransportSetting::Off => Transport::Off,
            },
            edit_interval: Duration::from_secs_f64(streaming.edit_interval),
            buffer_threshold: streaming.buffer_threshold as usize,
            cursor: streaming.cursor,
            fresh_final_after: (!fresh_final_after.is_zero()).then_some(fresh_final_after),
        },
        replies: match settings.reply_to_mode {
            ReplyToMode::Off => Replies::Off,
            ReplyToMode::First => Replies::First,
            ReplyToMode::All => Replies::All,
        },
    }
}

fn access(config: &Config, id: &AccountId, settings: &AccountSettings) -> Access {
    let named = &settings.access;
    let room = |heard: &RoomAccess, commands: &CommandSettings| RoomRules {
        policy: match heard.doors {
            talaria_config::Doors::Open => Policy::Open,
            talaria_config::Doors::Guarded => Policy::Named,
            talaria_config::Doors::Closed => Policy::Disabled,
        },
        listed: heard.allow.clone(),
        tiers: Arc::new(Tiers {
            admins: commands.admins.clone(),
            others: commands.allowed.clone(),
        }),
    };
    Access {
        surface: match settings.platform.identity {
            Identity::Operator => Surface::Own,
            Identity::Anyone => Surface::Platform,
        },
        listed: named.allow.clone(),
        general: named.general.clone(),
        direct: room(&named.direct, &settings.direct),
        group: room(&named.group, &settings.group),
        strangers: match named.strangers {
            Some(UnauthorizedDm::Pair) => Strangers::Pair,
            Some(UnauthorizedDm::Ignore) | None => Strangers::Ignore,
        },
        people: people::of_account(config, id),
        budgets: people::budgets(config),
    }
}

fn gate(settings: &AccountSettings) -> Gate {
    let hearing = &settings.hearing;
    Gate {
        mention: if hearing.require_mention { Mention::Required } else { Mention::Unneeded },
        threads: if hearing.thread_require_mention { Threads::LikeChats } else { Threads::Joined },
        patterns: hearing.mention_patterns.clone(),
        elsewhere: if hearing.guest_mode { Elsewhere::WhenMentioned } else { Elsewhere::Never },
        free: Places(hearing.free_response_chats.clone()),
        allowed: Places(hearing.allowed_chats.clone()),
        ignored: Places(hearing.ignored_chats.clone()),
        bots: match hearing.allow_bots {
            AllowBots::None => Bots::Never,
            AllowBots::Mentions => Bots::WhenMentioned,
            AllowBots::All => Bots::LikePeople,
        },
        exchanges: hearing.bot_messages_per_minute,
        chatter: match hearing.observe_unmentioned {
            true => Chatter::Overheard,
            false => Chatter::Ignored,
        },
    }
}

/// What an operator can ask of the running program.
pub(crate) struct Desk {
    home: Home,
    gateway: Gateway,
    models: Http,
    equipment: Equipment,
    butler: Arc<Butler>,
    state: Mutex<State>,
    reloading: tokio::sync::Mutex<()>,
    ended: CancellationToken,
    ending: Mutex<Ending>,
    restarts: Restarts,
    /// Who listens and who speaks. That changes with a restart only.
    voice: Option<String>,
}

/// The configuration that applies, and the model it led to.
struct State {
    loaded: Loaded,
    choice: Choice,
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a page to link to.
    pub(crate) fn serves_web(&self) -> bool {
        web_link::is_served(self.state().loaded.config())
    }

    /// The model that answers and why it was chosen, in one line.
    pub(crate) fn model_and_why(&self) -> String {
        let State { loaded, choice } = &*self.state();
        format!("{}: {}", model::name(&choice.chain), model::why(&choice.chain, loaded))
    }

    /// A text without our secrets.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.equipment.discretion.clean(text).into_owned()
    }

    /// Ends the program so that it starts again, unless it could not.
    pub(crate) async fn restart(&self) -> Result<(), NoRestart> {
        if self.restarts == Restarts::Never {
            return Err(NoRestart::EndsWithChat);
        }
        let _one_at_a_time = self.reloading.lock().await;
        self.read_again().await.map_err(NoRestart::Misconfigured)?;
        *self.ending.lock().unwrap_or_else(PoisonError::into_inner) = Ending::Again;
        tracing::info!("ending to start again");
        self.ended.cancel();
        Ok(())
    }

    /// What the sources lead to as they are. Otherwise, what is wrong with them.
    async fn read_again(&self) -> Result<ReadAgain, String> {
        let before = self.state().loaded.clone();
        let (loaded, changes) = Sources::read(self.home.path(), std::env::vars_os())
            .and_then(|sources| before.reload(sources))
            .map_err(|problems| problems.to_string())?;
        let wrong = programs::problems(&loaded);
        if !wrong.is_empty() {
            let lines: Vec<_> = wrong.iter().map(ToString::to_string).collect();
            return Err(lines.join("\n"));
        }
        let (models, clock) = (&self.models, &self.equipment.clock);
        let choice =
            model::choice(&loaded, models, clock).await.map_err(|finding| finding.to_string())?;
        let switchboard =
            choice.switchboard(&loaded, models, clock).map_err(|halt| halt.explained())?;
        self.equipment.discretion.learn(&loaded);
        Ok(ReadAgain { loaded, changes, choice, switchboard })
    }

    /// Records which settings have changed, and not to what.
    async fn record(&self, changes: &[Change]) {
        let paths: Vec<_> = changes.iter().map(|change| change.path.as_str()).collect();
        if paths.is_empty() {
            return;
        }
        let audited = Audited {
            actor: OPERATOR.to_owned(),
            deed: AuditDeed::SettingsChanged,
            subject: "configuration".to_owned(),
            detail: paths.join(", "),
        };
        let now = self.gateway.clock().now();
        if let Err(error) = self.gateway.store().audit(now, vec![audited]).await {
            tracing::warn!(%error, "what was changed cannot be recorded");
        }
    }

    /// Lets the accounts that run hear whom the configuration names, and answer what it says.
    fn set_access(&self, config: &Config) {
        for running in self.gateway.accounts() {
            let settings = config.accounts.get(&running.id);
            // Ids of another platform would name other people.
            let settings = settings.filter(|settings| settings.platform.name == running.platform);
            if let Some(settings) = settings {
                self.gateway.set_access(&running.id, access(config, &running.id, settings));
                self.gateway.set_gate(&running.id, gate(settings));
            }
        }
    }
}

/// What the sources of the configuration lead to.
struct ReadAgain {
    loaded: Loaded,
    changes: Vec<Change>,
    choice: Choice,
    switchboard: Arc<Switchboard>,
}

/// Why a gateway does not start again.
pub(crate) enum NoRestart {
    /// It lives in a terminal chat.
    EndsWithChat,
    /// It would not come back; this is what is wrong with the configuration.
    Misconfigured(String),
}

#[async_trait]
impl Operator for Desk {
    fn model(&self) -> String {
        model::name(&self.state().choice.chain)
    }

    fn voice(&self) -> Option<String> {
        self.voice.clone()
    }

    /// Reads the configuration again. The running one stays unless the new one is right as a whole.
    async fn reload(&self) -> Result<api::Reloaded, String> {
        let _one_at_a_time = self.reloading.lock().await;
        let ReadAgain { loaded, changes, choice, switchboard } = self.read_again().await?;
        self.butler.set_models(switchboard.clone());
        let agent = model::agent(loaded.config(), &choice, switchboard, &self.equipment);
        self.gateway.set_agent(agent);
        self.set_access(loaded.config());
        let (old, new) = (self.model(), model::name(&choice.chain));
        let mut warnings = warnings(&loaded);
        warnings.extend(people::unpriced(loaded.config(), &choice.chain));
        *self.state() = State { loaded, choice };
        self.record(&changes).await;
        let (live, after_restart): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| change.applies == Applies::Live);
        let line =
            |change: &Change| format!("{}: {} → {}", change.path, change.before, change.after);
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

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::{Sender, SenderId, Standing};
    use talaria_session::{Caller, Deed, Footing, Reach, Room, Who};

    fn of(yaml: &str, account: &str) -> Access {
        let sources = Sources::default().with_config(yaml);
        let loaded = talaria_config::load(sources, talaria_platforms::ALL).expect("it is right");
        let id = AccountId::new(account).expect("a name");
        access(loaded.config(), &id, &loaded.config().accounts[&id])
    }

    #[test]
    fn people_roles_and_budgets_let_nobody_in() {
        let more = "people: {mallory: {identities: [loopback/mallory], role: boss}}\n\
                    roles: {boss: {commands: [reload, restart], budget: {messages: 1000}}}\n\
                    budgets: {person: {messages: 9}, guest: {messages: 9}, chat: {messages: 9}}\n";
        for keys in ["", "allow: [ann]", "dm_policy: pairing", "allow_admin_from: [mallory]"] {
            let access = of(&format!("{more}{}", bench(keys)), "loopback");
            assert!(access.person(&SenderId::literal("mallory")).is_some());
            for room in Room::ALL {
                assert_eq!(footing(&access, "mallory", room), Footing::Stranger, "{keys}");
            }
        }
    }

    fn bench(keys: &str) -> String {
        format!("accounts: {{loopback: {{address: '127.0.0.1:1', {keys}}}}}\n")
    }

    fn footing(access: &Access, who: &'static str, room: Room) -> Footing {
        let sender = Sender::new(SenderId::literal(who));
        let standing = Standing::Unknown;
        access.footing(Caller { sender: &sender, standing, room, grant: None }).0
    }

    #[test]
    fn a_role_that_lets_people_in_is_a_list() {
        let discord = |keys: &str| format!("accounts: {{discord: {{token: 'a.b.c'{keys}}}}}\n");
        let strangers = |keys: &str| of(&discord(keys), "discord").strangers;
        assert_eq!(strangers(""), Strangers::Pair);
        assert_eq!(strangers(", allowed_roles: ['901']"), Strangers::Ignore);
        assert_eq!(strangers(", allowed_roles: ['901'], dm_policy: pairing"), Strangers::Pair);
    }

    #[test]
    fn the_operator_may_do_everything_and_others_what_they_are_allowed() {
        let yaml =
            bench("allow: [ann, ben], allow_admin_from: [ann], user_allowed_commands: [/usage]");
        let access = of(&yaml, "loopback");
        let may = |who: &'static str, room, name, rank| {
            let sender = Sender::new(SenderId::literal(who));
            let standing = Standing::Unknown;
            let caller = Caller { sender: &sender, standing, room, grant: None };
            access.authority(caller).may_give(name, rank)
        };
        assert!(may("ann", Room::Direct, "restart", Who::Admin));
        assert!(may("ben", Room::Direct, "usage", Who::Anyone));
        assert!(!may("ben", Room::Direct, "new", Who::Anyone));
        assert!(may("ben", Room::Group, "restart", Who::Admin), "groups have a list of their own");
        assert_eq!(footing(&of(&yaml, "web"), "ben", Room::Direct), Footing::Operator);
    }

    #[test]
    fn who_is_heard_is_what_the_configuration_says() {
        use Footing::{Admin, Guest, Nobody, Stranger};
        use Room::{Direct, Group};
        for (keys, who, room, expected) in [
            ("", "ann", Direct, Stranger),
            ("allow: [ann]", "ann", Group, Admin),
            ("allow_from: [ann]", "ann", Direct, Admin),
            ("allow_from: [ann]", "ann", Group, Stranger),
            ("group_allow_from: [ann]", "ann", Group, Admin),
            ("group_allow_from: [ann]", "ann", Direct, Stranger),
            ("allow_everyone: true", "ann", Direct, Guest),
            ("allow_everyone: true", "ann", Group, Guest),
            ("allow_everyone: true, group_policy: allowlist", "ann", Group, Stranger),
            ("allow_everyone: true, dm_policy: pairing", "ann", Direct, Stranger),
            ("allow: [ann], group_policy: disabled", "ann", Group, Nobody),
            ("allow: [ann], dm_policy: disabled", "ann", Direct, Nobody),
        ] {
            assert_eq!(footing(&of(&bench(keys), "loopback"), who, room), expected, "{keys}");
        }
        let general = format!("access: {{allow: [ann]}}\n{}", bench(""));
        assert_eq!(footing(&of(&general, "loopback"), "ann", Group), Admin);
        let open = format!("access: {{allow_everyone: true}}\n{}", bench(""));
        assert_eq!(footing(&of(&open, "loopback"), "ann", Group), Guest);
    }

    #[test]
    fn strangers_are_given_codes_unless_somebody_is_named() {
        use Strangers::{Ignore, Pair};
        for (general, keys, expected) in [
            ("{}", "", Pair),
            ("{}", "allow: [ann]", Ignore),
            ("{}", "allow_from: [ann]", Ignore),
            ("{}", "group_allow_from: [ann]", Ignore),
            ("{allow: [ann]}", "", Ignore),
            ("{}", "allow: [ann], dm_policy: pairing", Pair),
            ("{}", "dm_policy: allowlist", Ignore),
            ("{}", "allow: [ann], unauthorized_dm_behavior: pair", Pair),
            ("{}", "unauthorized_dm_behavior: ignore", Ignore),
            ("{unauthorized_dm_behavior: ignore}", "", Ignore),
            ("{unauthorized_dm_behavior: pair}", "allow: [ann]", Pair),
            ("{unauthorized_dm_behavior: ignore}", "unauthorized_dm_behavior: pair", Pair),
            ("{unauthorized_dm_behavior: pair}", "dm_policy: allowlist", Ignore),
        ] {
            let yaml = format!("access: {general}\n{}", bench(keys));
            assert_eq!(of(&yaml, "loopback").strangers, expected, "{yaml}");
        }
    }

    /// Every two settings together, and all of them, with somebody whom none of them names.
    #[test]
    fn no_setting_lets_in_who_is_not_named_but_the_word_for_everybody() {
        let settings = [
            "allow: [ann]",
            "allow_from: [ann]",
            "group_allow_from: [ann]",
            "allow_admin_from: [mallory]",
            "group_allow_admin_from: [mallory]",
            "user_allowed_commands: [restart]",
            "dm_policy: pairing",
            "group_policy: allowlist",
            "unauthorized_dm_behavior: pair",
            "require_mention: false",
            "allow_bots: all",
            "free_response_chats: ['*']",
        ];
        let all = (1_u32 << settings.len()) - 1;
        for chosen in (0..=all).filter(|chosen| chosen.count_ones() <= 2 || *chosen == all) {
            let on = (0..settings.len()).filter(|place| chosen & (1 << place) != 0);
            let keys: Vec<_> = on.map(|place| settings[place]).collect();
            let access = of(&bench(&keys.join(", ")), "loopback");
            for room in Room::ALL {
                let found = footing(&access, "mallory", room);
                assert_eq!(found, Footing::Stranger, "{keys:?} {room:?}");
                let sender = Sender::new(SenderId::literal("mallory"));
                let standing = Standing::Unknown;
                let grant = Some(Reach::Direct);
                let caller = Caller { sender: &sender, standing, room, grant };
                let heard = access.authority(caller).may(Deed::Speak);
                assert_eq!(heard, room == Room::Direct, "a pairing is a grant: {keys:?}");
            }
        }
    }
}
