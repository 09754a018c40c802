//! How a platform is declared, once, for the loader, the schema, the documentation and the gateway.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use schemars::{JsonSchema, Schema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::Value;
use talaria_clock::Clock;
use talaria_model::{Capabilities, ChatKind, Ids, RoleId, Secret};

use crate::{ConnectError, Kept, Link, MenuItem, Ports};

/// A kind of platform.
pub trait Platform: 'static {
    /// What it is.
    const SPEC: Spec;

    /// Its settings. Doc comments become help text; secrets are `Secret`.
    type Settings: DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static;

    /// What an account with these settings can do in a kind of chat.
    fn capabilities(settings: &Self::Settings, chat: ChatKind) -> Capabilities;

    /// Whom the settings let in by what they are on the platform. Such a role counts only as long as it is
    /// named here, however it was named when something was said.
    fn roles(settings: &Self::Settings) -> Roles {
        let _ = settings;
        Roles::default()
    }

    /// What is wrong with settings that can be read, as far as that can be told without asking anybody.
    /// An account with such settings is not opened, so `connect` never sees them.
    fn validate(settings: &Self::Settings) -> Result<(), SettingsError> {
        let _ = settings;
        Ok(())
    }

    /// Asks the platform who we are with these settings, without hearing or saying anything. What it
    /// answers is shown to the person who sets the account up.
    fn check(
        settings: Self::Settings,
        clock: Arc<dyn Clock>,
    ) -> impl Future<Output = Result<Checked, ConnectError>> + Send {
        let _ = (settings, clock);
        async { Ok(Checked::default()) }
    }

    /// Everything that the platform knows an account by. Two gateways of one machine that use the same one
    /// would take each other's messages, so only one of them may.
    fn credentials(settings: &Self::Settings) -> Vec<Credential> {
        let _ = settings;
        Vec::new()
    }

    /// What a person pastes into the platform's own settings to make an account there, where it takes
    /// such a thing. Without settings, for an account that is yet to be set up. The menu is what people
    /// can say.
    fn manifest(settings: Option<&Self::Settings>, menu: &[MenuItem]) -> Option<String> {
        let _ = (settings, menu);
        None
    }

    /// Connects. Returns once the account is usable.
    fn connect(
        settings: Self::Settings,
        ports: Ports,
    ) -> impl Future<Output = Result<Link, ConnectError>> + Send;
}

/// What a platform is, for everybody who does not know it.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// As it is written in the configuration.
    pub name: &'static str,
    /// As people know it.
    pub label: &'static str,
    /// One line that says what it is for.
    pub about: &'static str,
    /// What it can do, as documented; an account's settings may narrow it.
    pub capabilities: Capabilities,
    /// What its agent has to know of it besides what it can do, in a sentence or two.
    pub note: Option<&'static str>,
    /// How it delivers in parts what people send as one.
    pub bursts: Bursts,
    /// Whether its ids are needed as they are.
    pub ids: Ids,
    /// Who its senders are known to be.
    pub identity: Identity,
    /// What the ids of its senders look like.
    pub senders: Senders,
    /// Whether an account exists without being configured.
    pub startup: Startup,
    /// What a person is asked who sets it up.
    pub asks: &'static [Ask],
    /// How a person sets it up, in Markdown.
    pub guide: &'static str,
}

/// How a platform delivers in parts what people send as one. A part waits for the next one that long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bursts {
    /// A text of at least so many characters may go on in the next message.
    pub split_at: Option<u32>,
    /// For the rest of such a text.
    pub text: Duration,
    /// For the next part of an album.
    pub album: Duration,
    /// For the next of several pictures.
    pub pictures: Duration,
}

impl Bursts {
    /// Everything is delivered as it was sent.
    pub const NONE: Self = Self {
        split_at: None,
        text: Duration::ZERO,
        album: Duration::ZERO,
        pictures: Duration::ZERO,
    };
}

/// One question to the person who sets an account up. Everything that is not asked has a default.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// The setting that takes the answer.
    pub setting: &'static str,
    /// The question.
    pub question: &'static str,
    /// The environment variable that answers it, too.
    pub variable: &'static str,
    /// Whether the answer is kept in `.env` and never shown.
    pub secrecy: Secrecy,
    /// Whether there has to be an answer.
    pub need: Need,
}

/// Whether an answer is a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    /// It is.
    Secret,
    /// Everybody may read it.
    Open,
}

/// Whether an answer is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing works without it.
    Required,
    /// It can be left out.
    Optional,
    /// It can be left out, and most people leave it out: nobody is asked who has not given it before. A
    /// flag or the variable gives it.
    OnRequest,
    /// It is asked for only where this other setting has an answer, and then needed.
    With(&'static str),
    /// It is asked for only where this other setting has none, and then needed.
    Without(&'static str),
}

/// What a platform said of an account that was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Who we are there, as people see us.
    pub name: Option<String>,
    /// What works but should be changed, a line each.
    pub remarks: Vec<String>,
}

/// What the ids of senders look like, for people who have to write them down.
#[derive(Debug, Clone, Copy)]
pub struct Senders {
    /// One that could be.
    pub like: &'static str,
    /// Whether something can be one.
    pub fit: fn(&str) -> bool,
}

impl Senders {
    /// They look like anything.
    pub const ANY: Self = Self { like: "alice", fit: |_| true };
}

/// The roles on a platform whose people an account lets in, as `Source::role` names them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles {
    /// In direct chats.
    pub direct: BTreeSet<RoleId>,
    /// In every other chat.
    pub group: BTreeSet<RoleId>,
}

/// Who the senders on a platform are known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// The platform has authenticated the operator itself before an event leaves it.
    Operator,
    /// Anybody can write; the account's rules decide who is heard.
    Anyone,
}

/// Whether an account exists without being configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Startup {
    /// There is one account, named like the platform, unless it is disabled.
    Always,
    /// Only accounts that are configured exist.
    Configured,
}

/// Where the routes of a platform are mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Surface {
    /// The HTTP listener, at the root. One platform only.
    Root,
    /// The HTTP listener, below `/in/<account>`.
    Webhook,
    /// The local socket, below `/<account>`: only this user's processes get there.
    Local,
}

/// One line of the list of platforms.
#[derive(Clone, Copy)]
pub struct Registration {
    /// What it is.
    pub spec: Spec,
    /// The schema of its settings.
    pub schema: fn() -> Schema,
    /// What an account can do in a kind of chat that sets nothing but what it is asked for.
    pub usually: fn(ChatKind) -> Capabilities,
    /// What is pasted into the platform's own settings for an account that is yet to be set up.
    pub manifest: fn(&[MenuItem]) -> Option<String>,
    open: fn(Value) -> Result<Account, SettingsError>,
}

impl Registration {
    /// The registration of a platform.
    pub const fn of<P: Platform>() -> Self {
        Self {
            spec: P::SPEC,
            schema: || schema_for!(P::Settings),
            usually: usually::<P>,
            manifest: |menu| P::manifest(None, menu),
            open: open::<P>,
        }
    }

    /// Reads an account's settings and looks whether anything can be connected with them. Nothing is
    /// connected yet.
    pub fn open(&self, settings: Value) -> Result<Account, SettingsError> {
        (self.open)(settings)
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.spec.name).finish()
    }
}

/// Settings that do not fit. No value of a secret is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// They cannot be read.
    #[error("{problem}")]
    Unreadable {
        /// What is wrong, naming the setting.
        problem: String,
    },
    /// They can be read, and nothing can be connected with them.
    #[error("{setting} {problem}; {hint}")]
    Unusable {
        /// The setting, or the item of one, like `allowed_roles[0]`.
        setting: String,
        /// What is wrong with it, as it follows its name.
        problem: String,
        /// What to do about it.
        hint: String,
    },
}

impl SettingsError {
    /// A setting that nothing can be connected with.
    pub fn unusable(setting: &str, problem: &str, hint: &str) -> Self {
        let (setting, problem, hint) = (setting.into(), problem.into(), hint.into());
        Self::Unusable { setting, problem, hint }
    }
}

impl From<SettingsError> for ConnectError {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::Unreadable { problem } => {
                let hint = "`talaria config check` tells more".into();
                Self::Fatal { problem, hint }
            }
            SettingsError::Unusable { setting, problem, hint } => {
                Self::Fatal { problem: format!("{setting} {problem}"), hint }
            }
        }
    }
}

/// Something that a platform knows an account by.
#[derive(Debug, Clone)]
pub struct Credential {
    /// What people call it: its setting, and which one where that holds several.
    pub name: String,
    /// As the platform is shown it, without what may stand around it in a setting: what is the same to the
    /// platform is the same here.
    pub secret: Secret,
}

impl Credential {
    /// The only one of a setting.
    pub fn of(setting: &str, secret: Secret) -> Self {
        Self { name: setting.to_owned(), secret }
    }

    /// Those of a setting that holds several.
    pub fn each_of(setting: &str, secrets: Vec<Secret>) -> Vec<Self> {
        let of = secrets.len();
        let named = |(number, secret)| match of {
            1 => Self::of(setting, secret),
            _ => Self { name: format!("{setting} ({number} of {of})"), secret },
        };
        (1..).zip(secrets).map(named).collect()
    }
}

/// An account whose settings were read, ready to be connected as often as needed.
#[derive(Clone)]
pub struct Account {
    /// Its platform.
    pub spec: Spec,
    /// What the platform knows it by, where two connections with the same one would disturb each other.
    pub credentials: Vec<Credential>,
    /// Whom it lets in by what they are on the platform.
    pub roles: Roles,
    /// What its connections leave to each other.
    pub kept: Kept,
    abilities: [Capabilities; ChatKind::ALL.len()],
    connect: Connect,
    check: Check,
    manifest: Manifest,
}

type Manifest = Arc<dyn Fn(&[MenuItem]) -> Option<String> + Send + Sync>;

type Check =
    Arc<dyn Fn(Arc<dyn Clock>) -> BoxFuture<'static, Result<Checked, ConnectError>> + Send + Sync>;
type Connect = Arc<dyn Fn(Ports) -> BoxFuture<'static, Result<Link, ConnectError>> + Send + Sync>;

impl Account {
    /// An account whose settings were read elsewhere and that can do the same in every chat.
    pub fn new(
        spec: Spec,
        capabilities: Capabilities,
        connect: impl Fn(Ports) -> BoxFuture<'static, Result<Link, ConnectError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let check: Check = Arc::new(|_| Box::pin(async { Ok(Checked::default()) }));
        let abilities = [capabilities; ChatKind::ALL.len()];
        let manifest: Manifest = Arc::new(|_| None);
        let connect: Connect = Arc::new(connect);
        Self {
            spec,
            credentials: Vec::new(),
            roles: Roles::default(),
            kept: Kept::default(),
            abilities,
            connect,
            check,
            manifest,
        }
    }

    /// The same account, which can do something else in some kinds of chats.
    pub fn able(mut self, can: impl Fn(ChatKind) -> Capabilities) -> Self {
        self.abilities = ChatKind::ALL.map(can);
        self
    }

    /// The same account, which is connected only after `claim` has agreed, every time.
    pub fn claiming(
        mut self,
        claim: impl Fn() -> Result<(), ConnectError> + Send + Sync + 'static,
    ) -> Self {
        let connect = self.connect;
        self.connect = Arc::new(move |ports| match claim() {
            Ok(()) => connect(ports),
            Err(error) => Box::pin(async { Err(error) }),
        });
        self
    }

    /// What it can do in a kind of chat.
    pub fn can(&self, chat: ChatKind) -> Capabilities {
        self.abilities[chat as usize]
    }

    /// Asks the platform who we are, without hearing or saying anything.
    pub fn check(
        &self,
        clock: Arc<dyn Clock>,
    ) -> BoxFuture<'static, Result<Checked, ConnectError>> {
        (self.check)(clock)
    }

    /// What is pasted into the platform's own settings for this account.
    pub fn manifest(&self, menu: &[MenuItem]) -> Option<String> {
        (self.manifest)(menu)
    }

    /// Connects.
    pub fn connect(&self, ports: Ports) -> BoxFuture<'static, Result<Link, ConnectError>> {
        (self.connect)(ports)
    }
}

fn usually<P: Platform>(chat: ChatKind) -> Capabilities {
    let asked = P::SPEC.asks.iter().filter(|ask| ask.need == Need::Required);
    let settings = asked.map(|ask| (ask.setting.to_owned(), Value::from("usual"))).collect();
    match serde_json::from_value(Value::Object(settings)) {
        Ok(settings) => P::capabilities(&settings, chat),
        // Settings that nobody can guess.
        Err(_) => P::SPEC.capabilities,
    }
}

fn open<P: Platform>(settings: Value) -> Result<Account, SettingsError> {
    let settings: P::Settings = serde_json::from_value(settings)
        .map_err(|error| SettingsError::Unreadable { problem: error.to_string() })?;
    P::validate(&settings)?;
    let abilities = ChatKind::ALL.map(|chat| P::capabilities(&settings, chat));
    let credentials = P::credentials(&settings);
    let roles = P::roles(&settings);
    let checked = settings.clone();
    let check =
        move |clock| -> BoxFuture<'static, _> { Box::pin(P::check(checked.clone(), clock)) };
    let described = settings.clone();
    let manifest = move |menu: &[MenuItem]| P::manifest(Some(&described), menu);
    let connect =
        move |ports| -> BoxFuture<'static, _> { Box::pin(P::connect(settings.clone(), ports)) };
    Ok(Account {
        spec: P::SPEC,
        credentials,
        roles,
        kept: Kept::default(),
        abilities,
        connect: Arc::new(connect),
        check: Arc::new(check),
        manifest: Arc::new(manifest),
    })
}
