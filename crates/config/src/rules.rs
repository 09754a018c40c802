//! What must hold between settings that are each right on their own.

use std::collections::BTreeSet;
use std::sync::Arc;

use talaria_model::SenderId;
use talaria_platform::Identity;

use crate::environment::Environment;
use crate::finding::{Finding, Origin};
use crate::fit::{FittedAccount, Held, Leaf};
use crate::known::below;
use crate::settings::{AccountKeys, Allowed, Config, HttpSettings};

/// What the rules have to say.
#[derive(Default)]
pub(crate) struct Verdict {
    pub(crate) problems: Vec<Finding>,
    pub(crate) warnings: Vec<Finding>,
}

/// Where each setting came from, and which ones are already known to be wrong.
pub(crate) struct Origins<'a> {
    pub(crate) leaves: &'a [Leaf],
    pub(crate) wrong: Vec<String>,
}

impl Origins<'_> {
    pub(crate) fn of(&self, path: &str) -> Origin {
        let leaf = self.leaves.iter().find(|leaf| leaf.path == path);
        leaf.map_or(Origin::Default, |leaf| leaf.origin.clone())
    }

    fn is_sound(&self, path: &str) -> bool {
        !self.wrong.iter().any(|wrong| wrong.starts_with(path))
    }
}

/// Checks everything but the accounts.
pub(crate) fn check(config: &Config, origins: &Origins<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    if origins.is_sound("http") {
        check_http(&config.http, origins, &mut verdict);
    }
    if origins.is_sound("files") && config.files.limit > config.files.quota {
        let expectation = format!("is more than files.quota, which is {}", config.files.quota);
        verdict.problems.push(
            Finding::at(&origins.of("files.limit"), "files.limit", expectation)
                .with_value(config.files.limit.to_string()),
        );
    }
    for (name, provider) in &config.providers {
        for header in provider.headers.keys().filter(|header| !is_header_name(header)) {
            let path = below(&below(&below("providers", name), "headers"), header);
            let origin = origins.of(&path);
            verdict.problems.push(Finding::at(&origin, &path, "is not the name of an HTTP header"));
        }
        for (header, value) in &provider.headers {
            if value.expose().contains(|c: char| c.is_control() && c != '\t') {
                let path = below(&below(&below("providers", name), "headers"), header);
                let expectation = "holds a line break or another character no header may have";
                verdict.problems.push(Finding::at(&origins.of(&path), &path, expectation));
            }
        }
    }
    verdict
}

fn check_http(http: &HttpSettings, origins: &Origins<'_>, verdict: &mut Verdict) {
    let mut is_sound = true;
    for (index, host) in http.allowed_hosts.iter().enumerate() {
        if let Some(expectation) = refuse_host(host) {
            is_sound = false;
            let path = format!("http.allowed_hosts[{index}]");
            let origin = origins.of("http.allowed_hosts");
            verdict
                .problems
                .push(Finding::at(&origin, &path, expectation).with_value(format!("{host:?}")));
        }
    }
    let is_private = http.listen.ip().to_canonical().is_loopback();
    if is_sound && !is_private && http.allowed_hosts.is_empty() {
        let expectation = "can be reached from other machines; list the names people use for this \
                           gateway in http.allowed_hosts, or listen on 127.0.0.1";
        verdict.problems.push(
            Finding::at(&origins.of("http.listen"), "http.listen", expectation)
                .with_value(http.listen.to_string()),
        );
    }
}

fn refuse_host(host: &str) -> Option<&'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    if host.contains('*') {
        Some("allows names nobody has thought of; list each name")
    } else if host.contains('/') {
        Some("is more than a name; write it like gateway.example.com")
    } else if host.is_empty()
        || !host.chars().all(is_plain)
        || !host.contains(|c: char| c.is_ascii_alphanumeric())
    {
        Some("is not the name of a host; write it like gateway.example.com")
    } else {
        None
    }
}

fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}

/// Puts the key of each provider in its place, wherever it is kept.
pub(crate) fn resolve_keys(
    config: &mut Config,
    environment: &Environment,
    origins: &Origins<'_>,
) -> Vec<Finding> {
    let mut problems = Vec::new();
    for (name, provider) in &mut config.providers {
        let Some(variable) = &provider.api_key_env else { continue };
        let path = below(&below("providers", name), "api_key_env");
        let refuse = |expectation: &str| {
            Finding::at(&origins.of(&path), &path, expectation).with_value(format!("{variable:?}"))
        };
        match environment.get(variable) {
            _ if provider.api_key.is_some() => {
                problems.push(refuse("is one key too many, because api_key is set too; keep one"));
            }
            None => problems.push(refuse(
                "is not set; put it into .env or the environment, or remove api_key_env",
            )),
            Some(found) => provider.api_key = Some(found.value.clone()),
        }
    }
    problems
}

/// Who is heard on an account.
pub(crate) fn allowed(
    fitted: &FittedAccount,
    keys: AccountKeys,
    identity: Identity,
    origins: &Origins<'_>,
    verdict: &mut Verdict,
) -> Allowed {
    let path = below("accounts", &fitted.name);
    let allow = below(&path, "allow");
    let mut senders = BTreeSet::new();
    for (index, sender) in keys.allow.iter().enumerate() {
        match SenderId::new(Arc::<str>::from(sender.as_str())) {
            Ok(sender) => {
                senders.insert(sender);
            }
            Err(error) => {
                let path = format!("{allow}[{index}]");
                let finding = Finding::at(&origins.of(&allow), &path, error.to_string());
                verdict.problems.push(finding);
            }
        }
    }
    if keys.allow_everyone {
        if !senders.is_empty() {
            let expectation = "makes no difference, because allow_everyone is true";
            verdict.warnings.push(Finding::at(&origins.of(&allow), &allow, expectation));
        }
        return Allowed::Everyone;
    }
    if senders.is_empty() && keys.enabled && identity == Identity::Anyone {
        let expectation = "nobody is heard here; add the ids of senders to allow";
        verdict.warnings.push(Finding::at(&fitted.origin, &path, expectation));
    }
    Allowed::Only(senders)
}

/// A secret that opens two different doors opens the second to whoever was given the first. Accounts
/// of one platform may share one, because some vendors hand out a single secret for several of them.
pub(crate) fn check_shared_secrets(leaves: &[Leaf], accounts: &[FittedAccount]) -> Vec<Finding> {
    let door = |leaf: &Leaf| -> Option<String> {
        let mut path = leaf.path.split('.');
        match (path.next(), path.next()) {
            (Some("accounts"), Some(name)) => {
                let account = accounts.iter().find(|account| account.name == name)?;
                Some(account.platform.clone())
            }
            (Some(section), _) => Some(section.to_owned()),
            _ => None,
        }
    };
    let secrets: Vec<(&Leaf, &str, String)> = leaves
        .iter()
        .filter_map(|leaf| match &leaf.value {
            Held::Hidden(secret) => Some((leaf, secret.expose(), door(leaf)?)),
            _ => None,
        })
        .collect();
    let mut problems = Vec::new();
    for (index, (leaf, secret, door)) in secrets.iter().enumerate() {
        let same = secrets[..index]
            .iter()
            .find(|(_, other, elsewhere)| other == secret && elsewhere != door);
        if let Some((other, ..)) = same {
            let expectation =
                format!("is the same secret as {}; use a different one for each", other.path);
            problems.push(Finding::at(&leaf.origin, &leaf.path, expectation));
        }
    }
    problems
}
