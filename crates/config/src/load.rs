//! From sources to a configuration that stays as it was loaded, and from one to the next.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use talaria_model::{AccountId, Proxy, Redactor, Secret, SenderId};
use talaria_platform::{Registration, SettingsError, Spec, Startup};

use crate::access::AccessSettings;
use crate::environment::Environment;
use crate::finding::{CONFIG_FILE, DOTENV_FILE, Finding, Origin, Problems, capped};
use crate::fit::{Fitted, FittedAccount, Held, Leaf, fit};
use crate::known::{self, NOT_SETTINGS, PREFIX};
use crate::layers::Assignment;
use crate::rules::{self, Origins, Verdict};
use crate::schema::{Applies, Document};
use crate::settings::{AccountSettings, Config};
use crate::show::Shown;
use crate::single::quote;
use crate::source::{SourceFile, Sources};
use crate::yaml::{Body, Node, parse_file};
use crate::{access, conventions, destinations, dotenv, people, secrets, settings};

/// A configuration that was read and found right. It does not change; [`Loaded::reload`] makes
/// another one.
#[derive(Debug, Clone)]
pub struct Loaded {
    config: Config,
    warnings: Vec<Finding>,
    environment: Environment,
    /// What the platforms know accounts by, also those that are taken out for a while.
    credentials: Vec<Secret>,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) registrations: Vec<Registration>,
}

impl Loaded {
    /// The typed values.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What is odd about the configuration without being wrong.
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }

    /// The environment it was read with, where the API keys of providers are looked up.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// A text without the secrets of this configuration and of its environment.
    pub fn redact(&self, text: &str) -> String {
        self.redactor().clean(text).into_owned()
    }

    /// Knows the secrets of this configuration and of its environment, as they are written and as they are
    /// sent.
    pub fn redactor(&self) -> Redactor {
        let written = secrets::in_settings(&self.leaves)
            .chain(secrets::in_environment(&self.environment))
            .chain(secrets::of_proxies(&self.leaves, &self.environment));
        let sent = secrets::keys(&self.config).chain(secrets::credentials(&self.credentials));
        Redactor::of(written.chain(sent))
    }

    /// Where a setting came from; absent if there is no such setting.
    pub fn origin(&self, path: &str) -> Option<&Origin> {
        self.leaf(path).map(|leaf| &leaf.origin)
    }

    /// A problem with the value of a setting that only those who use it can see. An item of a list is
    /// named like `fallback[0]`.
    pub fn object(&self, path: &str, value: &str, expectation: impl Into<String>) -> Finding {
        let setting = path.split('[').next().unwrap_or(path);
        let origin = self.origin(setting).unwrap_or(&Origin::Default);
        Finding::at(origin, path, expectation).with_value(quote(value))
    }

    /// Reads the sources anew and says what became different. This one stays valid whatever they
    /// hold.
    pub fn reload(&self, sources: Sources) -> Result<(Loaded, Vec<Change>), Problems> {
        let next = load(sources, &self.registrations)?;
        let changes = self.changes_to(&next);
        Ok((next, changes))
    }

    /// What becomes different from this one to another.
    pub fn changes_to(&self, next: &Loaded) -> Vec<Change> {
        changes(self, next)
    }

    pub(crate) fn leaf(&self, path: &str) -> Option<&Leaf> {
        self.leaves.iter().find(|leaf| leaf.path == path)
    }

    pub(crate) fn platform_of(&self, account: &str) -> Option<String> {
        match &self.leaf(&format!("accounts.{account}.platform"))?.value {
            Held::Shown(Value::String(platform)) => Some(platform.clone()),
            _ => None,
        }
    }
}

/// One setting that became different.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The setting.
    pub path: String,
    /// What it was.
    pub before: Shown,
    /// What it is.
    pub after: Shown,
    /// When that takes effect.
    pub applies: Applies,
}

/// Reads a configuration: built-in defaults ← `config.yaml` ← `.env` ← environment. The platforms
/// there are say which accounts there can be.
pub fn load(sources: Sources, registrations: &[Registration]) -> Result<Loaded, Problems> {
    let document = Document::new(registrations);
    let mut problems = sources.unreadable;
    let mut warnings = Vec::new();

    let variables = sources.dotenv.as_ref().map(|file| dotenv::parse(&file.text));
    let mut environment = Environment::default();
    if let Some(variables) = variables {
        problems.extend(variables.problems);
        warnings.extend(variables.warnings);
        for (name, entry) in variables.entries {
            let origin = Origin::DotEnv { name: name.clone(), line: entry.line };
            environment.insert(name, entry.value, origin);
        }
    }
    for (name, value) in sources.process {
        let origin = Origin::Environment { name: name.clone() };
        environment.insert(name, value, origin);
    }

    let file = match &sources.config {
        Some(file) => {
            let known = known::list(&document);
            parse_file(&file.text, |word| known.iter().any(|setting| setting.key() == word))
                .map_err(|finding| problems.push(*finding))
                .ok()
        }
        None => Some(Node { origin: Origin::Default, body: Body::Null }),
    };
    // Half of the sources would be found wrong in ways the whole of them is not.
    let (Some(file), true) = (file, problems.is_empty()) else {
        return Err(Problems::new(problems).with_warnings(warnings));
    };

    let always: Vec<&str> = registrations
        .iter()
        .filter(|registration| registration.spec.startup == Startup::Always)
        .map(|registration| registration.spec.name)
        .collect();
    let conventional = conventions::said(&document.conventions, &environment);
    let fitted = fit(&document, &file, &assignments(&environment), &conventional, &always);
    if let Some(finding) = writable(sources.config.as_ref()) {
        return Err(Problems::new(vec![finding]).with_warnings(warnings));
    }
    warnings.extend(permissions(CONFIG_FILE, sources.config.as_ref(), || {
        holds_secrets(&fitted.leaves, |origin| matches!(origin, Origin::File { .. }))
    }));
    let open_dotenv = permissions(DOTENV_FILE, sources.dotenv.as_ref(), || {
        let is_dotenv = |origin: &Origin| matches!(origin, Origin::DotEnv { .. });
        let is_foreign = |name: &str| !name.starts_with(PREFIX);
        holds_secrets(&fitted.leaves, is_dotenv)
            || environment.iter().any(|(name, found)| is_dotenv(&found.origin) && is_foreign(name))
    });
    // It is there to be hidden, and whoever writes into it speaks for us.
    if let Some(finding) = open_dotenv {
        return Err(Problems::new(vec![finding]).with_warnings(warnings));
    }

    match compose(fitted, registrations, &environment, &mut warnings) {
        Ok(Composed { config, leaves, credentials }) => Ok(Loaded {
            config,
            warnings: capped(warnings),
            environment,
            credentials,
            leaves,
            registrations: registrations.to_vec(),
        }),
        Err(problems) => Err(problems.with_warnings(warnings)),
    }
}

/// What sources lead to.
struct Composed {
    config: Config,
    leaves: Vec<Leaf>,
    credentials: Vec<Secret>,
}

/// Typed values from fitted ones, if nothing is wrong with them.
fn compose(
    fitted: Fitted,
    registrations: &[Registration],
    environment: &Environment,
    warnings: &mut Vec<Finding>,
) -> Result<Composed, Problems> {
    let Fitted { value, accounts, leaves, mut problems, warnings: odd } = fitted;
    warnings.extend(odd);
    let wrong = problems.iter().filter_map(|finding| finding.path.clone()).collect();
    let origins = Origins { leaves: &leaves, wrong };
    let mut config: Config = serde_path_to_error::deserialize(value).unwrap_or_else(|error| {
        let path = error.path().to_string();
        // What is left out because it is wrong was told already.
        if origins.is_sound(&path) {
            let origin = origins.of(&path);
            problems.push(Finding::at(&origin, &path, scrub(&error.inner().to_string(), &leaves)));
        }
        Config::default()
    });
    // The names of hosts have no case.
    config.http.allowed_hosts.iter_mut().for_each(|host| host.make_ascii_lowercase());
    let keys = rules::resolve_keys(&mut config, environment, &origins);
    problems.extend(keys.problems);
    warnings.extend(keys.warnings);
    problems.extend(rules::check_shared_secrets(&leaves, &accounts));
    let platforms: Vec<&str> = registrations.iter().map(|known| known.spec.name).collect();
    let mut verdict = rules::check(&config, &origins, &platforms);
    let settings = config.access.clone();
    let general = access::general(&settings, &origins, &mut verdict);
    let mut credentials = Vec::new();
    for account in accounts {
        let access = (&settings, &general);
        let proxy = &config.network.proxy;
        let opened = open(account, registrations, access, proxy, &origins, &mut verdict);
        if let Some(Opened { name, settings, known_by }) = opened {
            config.accounts.insert(name, settings);
            credentials.extend(known_by);
        }
    }
    access::check_general(&config, &origins, &mut verdict);
    people::check(&config, &origins, &mut verdict);
    destinations::check(&config, &origins, &mut verdict);
    problems.extend(verdict.problems);
    warnings.extend(verdict.warnings);
    match problems.is_empty() {
        true => Ok(Composed { config, leaves, credentials }),
        false => Err(Problems::new(problems).among(&leaves)),
    }
}

/// An account of which nothing is wrong.
struct Opened {
    name: AccountId,
    settings: AccountSettings,
    known_by: Vec<Secret>,
}

/// Hands an account's settings to its platform.
fn open(
    mut fitted: FittedAccount,
    registrations: &[Registration],
    general: (&AccessSettings, &BTreeSet<SenderId>),
    proxy: &Proxy,
    origins: &Origins<'_>,
    verdict: &mut Verdict,
) -> Option<Opened> {
    let registration = registrations.iter().find(|known| known.spec.name == fitted.platform)?;
    let path = known::below("accounts", &fitted.name);
    let name = AccountId::new(fitted.name.as_str()).ok()?;
    let spec = &registration.spec;
    if spec.startup == Startup::Always && fitted.name != spec.name {
        let expectation = format!(
            "cannot be a second {}, which is always there once; set it up as accounts.{}",
            spec.label, spec.name
        );
        verdict.problems.push(Finding::at(&fitted.origin, &path, expectation));
        return None;
    }
    let mut settings = std::mem::take(&mut fitted.settings);
    let keys: settings::AccountKeys = {
        let take = |key: &str| settings.shift_remove(key).map(|value| (key.to_owned(), value));
        let common: serde_json::Map<String, Value> =
            settings::ACCOUNT_KEYS.into_iter().filter_map(take).collect();
        serde_json::from_value(Value::Object(common)).ok()?
    };
    // Whoever asks nobody outside of this machine has no such setting.
    let is_routed = (registration.schema)().pointer("/properties/proxy").is_some();
    if is_routed && !settings.contains_key("proxy") {
        settings.insert("proxy".to_owned(), proxy.text().into());
    }
    let opened = registration.open(Value::Object(settings));
    // One that is taken out for a while still knows whom it heard, and has its secrets.
    let roles = opened.as_ref().map(|account| account.roles.clone()).unwrap_or_default();
    let credentials = opened.iter().flat_map(|account| &account.credentials);
    let known_by: Vec<_> = credentials.map(|credential| credential.secret.clone()).collect();
    let opened = if keys.enabled { opened.map(Some) } else { Ok(None) };
    let (direct, group) = rules::commands(&fitted, &keys, spec, origins, verdict);
    let session_reset = keys.session_reset.clone();
    let hearing = rules::hearing(&fitted, &keys, origins, verdict);
    let (streaming, reply_to_mode) = (keys.streaming.clone(), keys.reply_to_mode);
    let display = keys.display;
    let by = access::By { spec, roles };
    let access =
        access::of_account(&fitted, &keys, by, general, (&direct, &group), origins, verdict);
    match opened {
        Ok(account) => {
            let platform = registration.spec;
            let settings = AccountSettings {
                platform,
                access,
                hearing,
                direct,
                group,
                session_reset,
                streaming,
                display,
                reply_to_mode,
                account,
            };
            Some(Opened { name, settings, known_by })
        }
        Err(error) => {
            verdict.problems.push(unusable(&error, spec, &fitted, origins));
            None
        }
    }
}

/// The variables by which who is heard on every account is known everywhere.
const GENERAL: [(&str, [&str; 2]); 2] = [
    ("GATEWAY_ALLOWED_USERS", ["ACCESS", "ALLOW"]),
    ("GATEWAY_ALLOW_ALL_USERS", ["ACCESS", "ALLOW_EVERYONE"]),
];

/// What a platform has to say against settings, and where a person changes that.
fn unusable(
    error: &SettingsError,
    spec: &Spec,
    fitted: &FittedAccount,
    origins: &Origins<'_>,
) -> Finding {
    let account = known::below("accounts", &fitted.name);
    match error {
        SettingsError::Unreadable { problem } => {
            Finding::at(&fitted.origin, &account, scrub(problem, origins.leaves))
        }
        SettingsError::Unusable { setting, problem, hint } => {
            let path = known::below(&account, setting);
            let leaf = path.split('[').next().unwrap_or(&path);
            let mut expectation = scrub(&format!("{problem}; {hint}"), origins.leaves);
            let origin = match origins.of(leaf) {
                Origin::Default => {
                    let ask = spec.asks.iter().find(|ask| ask.setting == setting);
                    if let Some(ask) = ask.filter(|_| fitted.name == spec.name) {
                        expectation.push_str(&format!(" ({} in .env sets it, too)", ask.variable));
                    }
                    fitted.origin.clone()
                }
                origin => origin,
            };
            Finding::at(&origin, &path, expectation)
        }
    }
}

fn assignments(environment: &Environment) -> Vec<Assignment<'_>> {
    environment
        .iter()
        .filter(|(name, _)| !NOT_SETTINGS.contains(name))
        .filter_map(|(name, variable)| {
            let path = match GENERAL.iter().find(|(general, _)| *general == name) {
                Some((_, path)) => path.map(str::to_owned).to_vec(),
                None => name.strip_prefix(PREFIX)?.split("__").map(str::to_uppercase).collect(),
            };
            let (value, origin) = (variable.value.expose(), &variable.origin);
            Some(Assignment { name, value, origin, path })
        })
        .collect()
}

/// Whoever writes into it names whom we listen to and what we run. That a group may is how files are made on
/// many systems; that everybody may is not.
fn writable(file: Option<&SourceFile>) -> Option<Finding> {
    let file = file?;
    let mode = file.mode.filter(|mode| mode & 0o002 != 0)?;
    let path = file.path.as_ref().map_or(CONFIG_FILE.into(), |path| path.display().to_string());
    let expectation = format!(
        "may be written by every user of this machine (mode {mode:03o}); run `chmod 600 {path}`"
    );
    Some(Finding::about(CONFIG_FILE, expectation))
}

fn permissions(
    name: &str,
    file: Option<&SourceFile>,
    holds_secrets: impl FnOnce() -> bool,
) -> Option<Finding> {
    let file = file?;
    let mode = file.mode?;
    let is_open = mode & 0o077 != 0;
    (is_open && holds_secrets()).then(|| {
        let path = file.path.as_ref().map_or(name.into(), |path| path.display().to_string());
        let expectation = format!(
            "holds secrets and may be read by other users of this machine (mode {mode:03o}); \
             run `chmod 600 {path}`"
        );
        Finding::about(name, expectation)
    })
}

fn holds_secrets(leaves: &[Leaf], is_from: impl Fn(&Origin) -> bool) -> bool {
    leaves.iter().any(|leaf| {
        let lower = leaf.overridden.iter().map(|(origin, value)| (origin, value));
        std::iter::once((&leaf.origin, &leaf.value))
            .chain(lower)
            .any(|(origin, value)| is_from(origin) && matches!(value, Held::Hidden(_)))
    })
}

/// Somebody else's message, without the secrets it may repeat.
fn scrub(message: &str, leaves: &[Leaf]) -> String {
    Redactor::of(secrets::in_settings(leaves)).clean(message).into_owned()
}

fn changes(before: &Loaded, after: &Loaded) -> Vec<Change> {
    let document = Document::new(&after.registrations);
    let applies = |path: &str| {
        let platform_of = |name: &str| after.platform_of(name).or_else(|| before.platform_of(name));
        known::find(&document, path, platform_of).map_or(Applies::Restart, |found| found.applies)
    };
    let unset = Held::Unset;
    let value = |loaded: &'_ Loaded, path: &str| {
        loaded.leaf(path).map_or(unset.clone(), |leaf| leaf.value.clone())
    };
    let removed = before.leaves.iter().filter(|leaf| after.leaf(&leaf.path).is_none());
    let paths = after.leaves.iter().chain(removed).map(|leaf| &leaf.path);
    paths
        .filter_map(|path| {
            let (was, is) = (value(before, path), value(after, path));
            (was != is).then(|| Change {
                path: path.clone(),
                before: Shown::from(&was),
                after: Shown::from(&is),
                applies: applies(path),
            })
        })
        .collect()
}
