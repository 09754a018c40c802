//! What must hold between settings that are each right on their own.

use std::collections::BTreeSet;

use talaria_model::Pattern;
use talaria_platform::Spec;

use crate::access::{ADMINISTRATORS, senders, unfit};
use crate::approvals::ApprovalMode;
use crate::conversations::{CommandSettings, QUIET_PLATFORMS, QuickSettings, needs_shell, words};
use crate::environment::Environment;
use crate::finding::{Finding, Origin};
use crate::fit::{FittedAccount, Held, Leaf};
use crate::known::below;
use crate::nearest::nearest;
use crate::settings::{AccountKeys, Config, HearingSettings, HttpSettings};
use crate::single::brief;

/// How many patterns an account may have.
const MOST_PATTERNS: usize = 32;

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

    /// Whether somebody has set it.
    pub(crate) fn is_set(&self, path: &str) -> bool {
        !matches!(self.of(path), Origin::Default)
    }

    pub(crate) fn is_sound(&self, path: &str) -> bool {
        !self.wrong.iter().any(|wrong| wrong.starts_with(path))
    }
}

/// Checks everything but the accounts.
pub(crate) fn check(config: &Config, origins: &Origins<'_>, platforms: &[&str]) -> Verdict {
    let mut verdict = Verdict::default();
    check_reset(config, origins, platforms, &mut verdict);
    check_quick(config, origins, &mut verdict);
    check_folders(config, origins, &mut verdict);
    check_approvals(config, origins, &mut verdict);
    if origins.is_sound("voice") {
        crate::voice::check(&config.voice, origins, &mut verdict);
    }
    if origins.is_sound("telemetry") {
        crate::telemetry::check(&config.telemetry, origins, &mut verdict);
    }
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

fn check_reset(config: &Config, origins: &Origins<'_>, platforms: &[&str], verdict: &mut Verdict) {
    let path = "session_reset.notify_exclude_platforms";
    for platform in &config.session_reset.notify_exclude_platforms {
        let name = platform.as_str();
        if !platforms.contains(&name) && !QUIET_PLATFORMS.contains(&name) {
            let expectation =
                format!("is not a platform of this gateway{}", meant(name, platforms));
            let finding = Finding::at(&origins.of(path), path, expectation);
            verdict.warnings.push(finding.with_value(format!("{platform:?}")));
        }
    }
}

fn meant(name: &str, names: &[&str]) -> String {
    nearest(name, names.iter().copied())
        .map_or(String::new(), |close| format!("; did you mean {close}?"))
}

fn check_quick(config: &Config, origins: &Origins<'_>, verdict: &mut Verdict) {
    for (name, quick) in &config.quick_commands {
        let QuickSettings::Exec { command, shell, .. } = quick else { continue };
        let path = below(&below("quick_commands", name), "command");
        let mut refuse = |expectation: &str| {
            let finding = Finding::at(&origins.of(&path), &path, expectation);
            verdict.problems.push(finding.with_value(format!("{:?}", brief(command))));
        };
        if command.contains('\0') {
            refuse("holds a character that no command may have");
        } else if *shell {
            if command.trim().is_empty() {
                refuse("is empty");
            }
        } else if words(command).is_none() {
            refuse("has no words, or a quote that is not closed");
        } else if needs_shell(command) {
            refuse(
                "needs a shell; add shell: true, or put the words that mean themselves in quotes",
            );
        }
    }
}

fn check_approvals(config: &Config, origins: &Origins<'_>, verdict: &mut Verdict) {
    if config.approvals.mode == ApprovalMode::Off {
        let expectation = "lets the agent do everything that its tools can, for whoever talks to it, \
                           without asking anybody";
        let finding = Finding::at(&origins.of("approvals.mode"), "approvals.mode", expectation);
        verdict.warnings.push(finding.with_value("off"));
    }
    for (index, line) in config.approvals.deny.iter().enumerate() {
        let tool = line.split(':').next().unwrap_or_default();
        if tool.trim().is_empty() || tool.trim() != tool {
            let path = format!("approvals.deny[{index}]");
            let expectation = "names no tool; write it like run_program or run_program:*secret*";
            let finding = Finding::at(&origins.of("approvals.deny"), &path, expectation);
            verdict.problems.push(finding.with_value(format!("{line:?}")));
        }
    }
    for name in config.agent.programs.keys() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 40 || !name.chars().all(is_plain) {
            let path = below("agent.programs", name);
            let expectation = "is not a name; use up to 40 letters, digits, - and _";
            verdict.problems.push(Finding::at(&origins.of(&path), &path, expectation));
        }
    }
}

fn check_folders(config: &Config, origins: &Origins<'_>, verdict: &mut Verdict) {
    for (index, folder) in config.files.send_from.iter().enumerate() {
        let expectation = match folder.as_str() {
            "/" | "~" | "~/" => "is too much: everything below it could be sent; name a folder",
            folder if folder.starts_with('/') || folder.starts_with("~/") => continue,
            _ => "is not a whole path; write it like /srv/reports or ~/pictures",
        };
        let path = format!("files.send_from[{index}]");
        let finding = Finding::at(&origins.of("files.send_from"), &path, expectation);
        verdict.problems.push(finding.with_value(format!("{folder:?}")));
    }
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

pub(crate) fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}

/// Puts the keys of providers and of audio APIs in their place, wherever they are kept. A provider that no
/// setting names may be without its key until somebody wants it.
pub(crate) fn resolve_keys(
    config: &mut Config,
    environment: &Environment,
    origins: &Origins<'_>,
) -> Verdict {
    let mut verdict = Verdict::default();
    let models: Vec<&str> =
        config.model.iter().chain(&config.fallback).map(String::as_str).collect();
    let providers = config.providers.iter_mut().map(|(name, provider)| {
        let need =
            if models.iter().any(|model| is_of(model, name)) { Need::Now } else { Need::Later };
        (below("providers", name), &provider.api_key_env, &mut provider.api_key, need)
    });
    let (transcribe, speak) = (&mut config.voice.transcribe, &mut config.voice.speak);
    let (hears, speaks) = (&mut transcribe.api_key, &mut speak.api_key);
    let voice = [
        ("voice.transcribe".to_owned(), &transcribe.api_key_env, hears, Need::Now),
        ("voice.speak".to_owned(), &speak.api_key_env, speaks, Need::Now),
    ];
    for (path, variable, api_key, need) in providers.chain(voice) {
        let Some(variable) = variable else { continue };
        let path = below(&path, "api_key_env");
        let refuse = |expectation: &str| {
            Finding::at(&origins.of(&path), &path, expectation).with_value(format!("{variable:?}"))
        };
        match environment.get(variable) {
            _ if api_key.is_some() => {
                verdict
                    .problems
                    .push(refuse("is one key too many, because api_key is set too; keep one"));
            }
            None => match need {
                Need::Now => verdict.problems.push(refuse(
                    "is not set; put it into .env or the environment, or remove api_key_env",
                )),
                Need::Later => verdict.warnings.push(refuse(
                    "is not set, so this provider cannot be used; put it into .env or the environment",
                )),
            },
            Some(found) => *api_key = Some(found.value.clone()),
        }
    }
    verdict
}

/// When a key has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Something is configured that cannot be asked without it.
    Now,
    /// When somebody switches to what it opens.
    Later,
}

/// Whether a model is written as one of this provider.
fn is_of(model: &str, provider: &str) -> bool {
    model.strip_prefix(provider).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Who may give which command on an account: in a direct chat, and in any other.
pub(crate) fn commands(
    fitted: &FittedAccount,
    keys: &AccountKeys,
    spec: &Spec,
    origins: &Origins<'_>,
    verdict: &mut Verdict,
) -> (CommandSettings, CommandSettings) {
    let path = below("accounts", &fitted.name);
    for (key, ids) in [
        ("allow_admin_from", &keys.allow_admin_from),
        ("group_allow_admin_from", &keys.group_allow_admin_from),
    ] {
        unfit(ids, &below(&path, key), spec, origins, verdict);
    }
    let named = |names: &[String]| -> BTreeSet<String> {
        let name = |name: &String| name.trim().trim_start_matches('/').to_lowercase();
        names.iter().map(name).filter(|name| !name.is_empty()).collect()
    };
    let group = CommandSettings {
        admins: senders(
            &keys.group_allow_admin_from,
            &below(&path, "group_allow_admin_from"),
            ADMINISTRATORS,
            origins,
            verdict,
        ),
        allowed: named(&keys.group_user_allowed_commands),
        unnamed: keys.admins_unless_named,
    };
    let named_in = below(&path, "allow_admin_from");
    let admins = senders(&keys.allow_admin_from, &named_in, ADMINISTRATORS, origins, verdict);
    let allowed = match named(&keys.user_allowed_commands) {
        own if own.is_empty() => group.allowed.clone(),
        own => own,
    };
    for (admins, allowed, key, who) in [
        (&admins, &keys.user_allowed_commands, "user_allowed_commands", "allow_admin_from"),
        (
            &group.admins,
            &keys.group_user_allowed_commands,
            "group_user_allowed_commands",
            "group_allow_admin_from",
        ),
    ] {
        if admins.is_empty() && !allowed.is_empty() {
            let path = below(&path, key);
            let expectation = format!("makes no difference as long as {who} names nobody");
            verdict.warnings.push(Finding::at(&origins.of(&path), &path, expectation));
        }
    }
    (CommandSettings { admins, allowed, unnamed: keys.admins_unless_named }, group)
}

/// What is answered on an account.
pub(crate) fn hearing(
    fitted: &FittedAccount,
    keys: &AccountKeys,
    origins: &Origins<'_>,
    verdict: &mut Verdict,
) -> HearingSettings {
    let path = below("accounts", &fitted.name);
    let mut places = |key: &str, listed: &[String]| -> BTreeSet<String> {
        let path = below(&path, key);
        for (index, place) in listed.iter().enumerate() {
            if place.trim().is_empty() || place.contains(char::is_whitespace) {
                let item = format!("{path}[{index}]");
                let expectation =
                    "is not the id of a chat; write it like -1001234, C0123ABC or chat:thread";
                let finding = Finding::at(&origins.of(&path), &item, expectation);
                verdict.problems.push(finding.with_value(format!("{:?}", brief(place))));
            }
        }
        listed.iter().cloned().collect()
    };
    let (free, allowed, ignored) = (
        places("free_response_chats", &keys.free_response_chats),
        places("allowed_chats", &keys.allowed_chats),
        places("ignored_chats", &keys.ignored_chats),
    );
    let hearing = HearingSettings {
        require_mention: keys.require_mention,
        thread_require_mention: keys.thread_require_mention,
        mention_patterns: patterns(&keys.mention_patterns, &path, origins, verdict),
        guest_mode: keys.guest_mode,
        free_response_chats: free,
        allowed_chats: allowed,
        ignored_chats: ignored,
        allow_bots: keys.allow_bots,
        bot_messages_per_minute: keys.bot_messages_per_minute,
        observe_unmentioned: keys.observe_unmentioned,
        bystanders: keys.bystanders,
        edited_messages: keys.edited_messages,
    };
    let mut warn = |key: &str, expectation: String| {
        let path = below(&path, key);
        verdict.warnings.push(Finding::at(&origins.of(&path), &path, expectation));
    };
    if !hearing.require_mention && !hearing.free_response_chats.is_empty() {
        let expectation = "makes no difference, because require_mention is false";
        warn("free_response_chats", expectation.into());
    }
    if !hearing.require_mention && !hearing.mention_patterns.is_empty() {
        let expectation = "makes no difference, because require_mention is false";
        warn("mention_patterns", expectation.into());
    }
    if hearing.guest_mode && hearing.allowed_chats.is_empty() {
        warn("guest_mode", "makes no difference, because allowed_chats names none".into());
    }
    if !hearing.require_mention && hearing.observe_unmentioned {
        let expectation = "makes no difference, because require_mention is false";
        warn("observe_unmentioned", expectation.into());
    }
    let both = hearing.allowed_chats.intersection(&hearing.ignored_chats).next();
    if let Some(place) = both {
        warn(
            "allowed_chats",
            format!("names {place}, which ignored_chats names, too: nothing is answered there"),
        );
    }
    hearing
}

fn patterns(
    listed: &[String],
    account: &str,
    origins: &Origins<'_>,
    verdict: &mut Verdict,
) -> Vec<Pattern> {
    let path = below(account, "mention_patterns");
    let mut refuse = |item: &str, expectation: String| {
        verdict.problems.push(Finding::at(&origins.of(&path), item, expectation));
    };
    if listed.len() > MOST_PATTERNS {
        refuse(&path, format!("are more than {MOST_PATTERNS}"));
    }
    let mut patterns = Vec::new();
    for (index, text) in listed.iter().take(MOST_PATTERNS).enumerate() {
        match Pattern::new(text) {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => refuse(&format!("{path}[{index}]"), error.to_string()),
        }
    }
    patterns
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
            // Who serves models often serves audio, too, under the same key.
            (Some("voice"), _) => Some("providers".to_owned()),
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
