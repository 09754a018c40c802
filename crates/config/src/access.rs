//! Who is heard on an account: what its settings and the general ones lead to.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talaria_model::{RoleId, SenderId};
use talaria_platform::{Identity, Roles, Spec};

use crate::conversations::CommandSettings;
use crate::finding::Finding;
use crate::fit::FittedAccount;
use crate::gating::Ungated;
use crate::known::below;
use crate::rules::{Origins, Verdict};
use crate::settings::{AccountKeys, Config};
use crate::single::brief;

/// Who is heard on every account. What an account says itself comes on top of it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AccessSettings {
    /// Who is heard on every account: the ids of senders, as their platforms write them.
    #[schemars(extend("x-applies" = "live", "x-synonyms" = ["gateway_allowed_users"]))]
    pub allow: Vec<String>,

    /// Whether everybody who finds an account is heard on it.
    #[schemars(extend("x-applies" = "live", "x-synonyms" = ["gateway_allow_all_users"]))]
    pub allow_everyone: bool,

    /// What becomes of somebody unknown who writes in a direct chat: `pair` answers once with a code that
    /// `talaria pair approve` accepts, `ignore` does nothing. When it is not set, `pair`, but `ignore`
    /// where anybody is listed. What an account says itself wins over it.
    #[schemars(extend("x-applies" = "live"))]
    pub unauthorized_dm_behavior: Option<UnauthorizedDm>,
}

/// What becomes of somebody unknown who writes in a direct chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnauthorizedDm {
    /// They get a code with which the operator can let them in.
    Pair,
    /// Nothing.
    Ignore,
}

/// Who is heard in direct chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DmPolicy {
    /// Everybody. Takes `allow_everyone: true` as well.
    Open,
    /// Who is listed or was paired; others are ignored.
    Allowlist,
    /// Who is listed or was paired; others get a pairing code.
    Pairing,
    /// Nobody.
    Disabled,
}

/// Who is heard in every other chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GroupPolicy {
    /// Everybody. Takes `allow_everyone: true` as well.
    Open,
    /// Who is listed.
    Allowlist,
    /// Nobody.
    Disabled,
}

/// Who is heard on an account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountAccess {
    /// In every chat.
    pub allow: BTreeSet<SenderId>,
    /// On every account.
    pub general: BTreeSet<SenderId>,
    /// In direct chats.
    pub direct: RoomAccess,
    /// In every other chat.
    pub group: RoomAccess,
    /// What becomes of somebody unknown who writes in a direct chat.
    pub strangers: Option<UnauthorizedDm>,
}

/// Who is heard in a kind of chat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoomAccess {
    /// Whether anybody is.
    pub doors: Doors,
    /// Who is, besides those who are in every chat.
    pub allow: BTreeSet<SenderId>,
    /// The roles on the platform whose people are.
    pub roles: BTreeSet<RoleId>,
}

/// Whether anybody is heard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Doors {
    /// Everybody.
    Open,
    /// Who is named.
    #[default]
    Guarded,
    /// Nobody.
    Closed,
}

impl AccountAccess {
    /// Whether anybody is named.
    pub fn names_somebody(&self) -> bool {
        let lists = [&self.allow, &self.general, &self.direct.allow, &self.group.allow];
        self.names_roles() || lists.into_iter().any(|list| !list.is_empty())
    }

    /// Whether people are let in by what they are on the platform.
    fn names_roles(&self) -> bool {
        [&self.direct, &self.group].into_iter().any(|room| !room.roles.is_empty())
    }

    /// Whether everybody is heard somewhere.
    pub fn is_open(&self) -> bool {
        [self.direct.doors, self.group.doors].contains(&Doors::Open)
    }
}

/// Who is heard on every account.
pub(crate) fn general(
    settings: &AccessSettings,
    origins: &Origins<'_>,
    verdict: &mut Verdict,
) -> BTreeSet<SenderId> {
    senders(&settings.allow, "access.allow", EVERYBODY, origins, verdict)
}

/// Refuses ids that are to be heard on every account and could be somebody's on none.
pub(crate) fn check_general(config: &Config, origins: &Origins<'_>, verdict: &mut Verdict) {
    let mut specs: Vec<&Spec> = Vec::new();
    for spec in config.accounts.values().map(|account| &account.platform) {
        let is_known = specs.iter().any(|known| known.name == spec.name);
        if spec.identity == Identity::Anyone && !is_known {
            specs.push(spec);
        }
    }
    if specs.is_empty() {
        return;
    }
    let path = "access.allow";
    for (index, id) in config.access.allow.iter().enumerate() {
        if id.contains('*') || specs.iter().any(|spec| (spec.senders.fit)(id)) {
            continue;
        }
        let forms: Vec<_> =
            specs.iter().map(|spec| format!("{} on {}", spec.senders.like, spec.label)).collect();
        let expectation = format!(
            "is not how any account names people, so that nobody is meant; ids look like {}",
            forms.join(", ")
        );
        let finding = Finding::at(&origins.of(path), &format!("{path}[{index}]"), expectation);
        verdict.problems.push(finding.with_value(format!("{:?}", brief(id))));
    }
}

/// By what people are known on an account.
pub(crate) struct By<'a> {
    /// Its platform.
    pub(crate) spec: &'a Spec,
    /// By what they are there.
    pub(crate) roles: Roles,
}

/// Who is heard on an account.
pub(crate) fn of_account(
    fitted: &FittedAccount,
    keys: &AccountKeys,
    By { spec, roles }: By<'_>,
    (settings, general): (&AccessSettings, &BTreeSet<SenderId>),
    (commands_direct, commands_group): (&CommandSettings, &CommandSettings),
    origins: &Origins<'_>,
    verdict: &mut Verdict,
) -> AccountAccess {
    let path = below("accounts", &fitted.name);
    let mut list = |key: &str, ids: &[String]| {
        let path = below(&path, key);
        unfit(ids, &path, spec, origins, verdict);
        senders(ids, &path, EVERYBODY, origins, verdict)
    };
    let allow = list("allow", &keys.allow);
    let direct = list("allow_from", &keys.allow_from);
    let group = list("group_allow_from", &keys.group_allow_from);
    let everyone = keys.allow_everyone || settings.allow_everyone;
    let usual = if everyone { Doors::Open } else { Doors::Guarded };
    let mut access = AccountAccess {
        direct: RoomAccess {
            doors: match keys.dm_policy {
                None => usual,
                Some(DmPolicy::Open) => Doors::Open,
                Some(DmPolicy::Allowlist | DmPolicy::Pairing) => Doors::Guarded,
                Some(DmPolicy::Disabled) => Doors::Closed,
            },
            allow: direct,
            roles: roles.direct,
        },
        group: RoomAccess {
            doors: match keys.group_policy {
                None => usual,
                Some(GroupPolicy::Open) => Doors::Open,
                Some(GroupPolicy::Allowlist) => Doors::Guarded,
                Some(GroupPolicy::Disabled) => Doors::Closed,
            },
            allow: group,
            roles: roles.group,
        },
        allow,
        general: general.clone(),
        strangers: None,
    };
    for (key, opens) in [
        ("dm_policy", keys.dm_policy == Some(DmPolicy::Open)),
        ("group_policy", keys.group_policy == Some(GroupPolicy::Open)),
    ] {
        if opens && !everyone {
            let path = below(&path, key);
            let expectation = "lets in whoever finds the account, so it has to be said twice: set \
                               allow_everyone: true as well, or choose allowlist";
            let finding = Finding::at(&origins.of(&path), &path, expectation);
            verdict.problems.push(finding.with_value("open"));
        }
    }
    let by_policy = keys.dm_policy.and_then(|policy| match policy {
        DmPolicy::Pairing => Some(UnauthorizedDm::Pair),
        DmPolicy::Allowlist | DmPolicy::Disabled => Some(UnauthorizedDm::Ignore),
        DmPolicy::Open => None,
    });
    let usual = match access.names_somebody() {
        true => UnauthorizedDm::Ignore,
        false => UnauthorizedDm::Pair,
    };
    let strangers = keys
        .unauthorized_dm_behavior
        .or(by_policy)
        .or(settings.unauthorized_dm_behavior)
        .unwrap_or(usual);
    access.strangers = Some(strangers);
    if !keys.enabled || spec.identity == Identity::Operator {
        return access;
    }
    let mut warn = |key: &str, expectation: &str| {
        let (path, origin) = match key {
            "" => (path.clone(), fitted.origin.clone()),
            key => {
                let path = below(&path, key);
                let origin = origins.of(&path);
                (path, origin)
            }
        };
        verdict.warnings.push(Finding::at(&origin, &path, expectation));
    };
    let guarded = access.direct.doors == Doors::Guarded;
    if strangers == UnauthorizedDm::Ignore && !access.names_somebody() && !access.is_open() {
        warn(
            "",
            "nobody is heard here; add the ids of senders to allow, or set dm_policy: pairing",
        );
    }
    if keys.allow_everyone && !access.is_open() {
        warn("allow_everyone", "makes no difference, because dm_policy and group_policy say who");
    }
    if keys.dm_policy == Some(DmPolicy::Pairing) && strangers == UnauthorizedDm::Ignore {
        warn("dm_policy", "gives nobody a code, because unauthorized_dm_behavior is ignore");
    }
    if keys.unauthorized_dm_behavior == Some(UnauthorizedDm::Pair) && !guarded {
        let expectation =
            "makes no difference, because in direct chats everybody or nobody is heard";
        warn("unauthorized_dm_behavior", expectation);
    }
    for ungated in Ungated::rooms(&access, commands_direct, commands_group) {
        let (problem, hint) = (ungated.problem(&fitted.name), ungated.hint(&fitted.name));
        warn("", &format!("{problem}; {hint}"));
    }
    access
}

/// Refuses ids that cannot be anybody's on a platform, such as names, which anybody can take.
pub(crate) fn unfit(
    ids: &[String],
    path: &str,
    spec: &Spec,
    origins: &Origins<'_>,
    verdict: &mut Verdict,
) {
    for (index, id) in ids.iter().enumerate().filter(|(_, id)| !(spec.senders.fit)(id)) {
        let expectation = format!(
            "is not how {} names people, so that nobody is meant; ids there look like {}",
            spec.label, spec.senders.like
        );
        let finding = Finding::at(&origins.of(path), &format!("{path}[{index}]"), expectation);
        verdict.problems.push(finding.with_value(format!("{:?}", brief(id))));
    }
}

/// What to do instead of `*` in a list of who is heard.
pub(crate) const EVERYBODY: &str = "to hear everybody, set allow_everyone: true";

/// What to do instead of `*` in a list of administrators.
pub(crate) const ADMINISTRATORS: &str = "administrators are named one by one";

/// Ids of senders. What stands for everybody is refused: it would be somebody whose id is a star.
pub(crate) fn senders(
    ids: &[String],
    path: &str,
    instead: &str,
    origins: &Origins<'_>,
    verdict: &mut Verdict,
) -> BTreeSet<SenderId> {
    let mut senders = BTreeSet::new();
    for (index, sender) in ids.iter().enumerate() {
        let item = format!("{path}[{index}]");
        let mut refuse = |expectation: String| {
            verdict.problems.push(Finding::at(&origins.of(path), &item, expectation));
        };
        match SenderId::new(Arc::<str>::from(sender.as_str())) {
            Ok(_) if sender.contains('*') => {
                refuse(format!("{sender:?} is not the id of a sender; {instead}"));
            }
            Ok(sender) => {
                senders.insert(sender);
            }
            Err(error) => refuse(error.to_string()),
        }
    }
    senders
}
