//! How a platform is declared, once, for the loader, the schema, the documentation and the gateway.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::{JsonSchema, Schema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::Value;
use talaria_model::{Capabilities, Ids};

use crate::{ConnectError, Link, Ports};

/// A kind of platform.
pub trait Platform: 'static {
    /// What it is.
    const SPEC: Spec;

    /// Its settings. Doc comments become help text; secrets are `Secret`.
    type Settings: DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static;

    /// What an account with these settings can do.
    fn capabilities(settings: &Self::Settings) -> Capabilities;

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
    /// Whether its ids are needed as they are.
    pub ids: Ids,
    /// Who its senders are known to be.
    pub identity: Identity,
    /// Whether an account exists without being configured.
    pub startup: Startup,
    /// How a person sets it up, in Markdown.
    pub guide: &'static str,
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
    open: fn(Value) -> Result<Account, SettingsError>,
}

impl Registration {
    /// The registration of a platform.
    pub const fn of<P: Platform>() -> Self {
        Self { spec: P::SPEC, schema: || schema_for!(P::Settings), open: open::<P> }
    }

    /// Reads an account's settings. Nothing is connected yet.
    pub fn open(&self, settings: Value) -> Result<Account, SettingsError> {
        (self.open)(settings)
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.spec.name).finish()
    }
}

/// Settings that do not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct SettingsError {
    /// What is wrong, naming the setting.
    pub problem: String,
}

/// An account whose settings were read, ready to be connected as often as needed.
#[derive(Clone)]
pub struct Account {
    /// Its platform.
    pub spec: Spec,
    /// What it can do.
    pub capabilities: Capabilities,
    connect: Connect,
}

type Connect = Arc<dyn Fn(Ports) -> BoxFuture<'static, Result<Link, ConnectError>> + Send + Sync>;

impl Account {
    /// An account whose settings were read elsewhere.
    pub fn new(
        spec: Spec,
        capabilities: Capabilities,
        connect: impl Fn(Ports) -> BoxFuture<'static, Result<Link, ConnectError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { spec, capabilities, connect: Arc::new(connect) }
    }

    /// Connects.
    pub fn connect(&self, ports: Ports) -> BoxFuture<'static, Result<Link, ConnectError>> {
        (self.connect)(ports)
    }
}

fn open<P: Platform>(settings: Value) -> Result<Account, SettingsError> {
    let settings: P::Settings = serde_json::from_value(settings)
        .map_err(|error| SettingsError { problem: error.to_string() })?;
    let capabilities = P::capabilities(&settings);
    let connect =
        move |ports| -> BoxFuture<'static, _> { Box::pin(P::connect(settings.clone(), ports)) };
    Ok(Account::new(P::SPEC, capabilities, connect))
}
