//! Who people are beyond one platform, what their roles grant, and how much may be spent in a day.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Deserialize;
use talaria_model::{AccountId, SenderId};
use talaria_platform::Identity;

use crate::access::Doors;
use crate::finding::Finding;
use crate::known::below;
use crate::nearest::nearest;
use crate::rules::{Origins, Verdict};
use crate::settings::{AccountSettings, Config};
use crate::single::brief;
use crate::units::Dollars;

/// Somebody whom you know, on however many platforms.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PersonSettings {
    /// Who they are on your accounts, each as `account/sender id`, like `telegram/123456789`. They share
    /// one budget. This lets nobody in: the lists of the accounts do.
    #[schemars(extend("x-applies" = "live"))]
    pub identities: Vec<String>,

    /// What they are to you: a name from `roles`.
    #[schemars(length(min = 1), extend("x-applies" = "live"))]
    pub role: Option<String>,
}

/// What a role grants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RoleSettings {
    /// Commands that they may give although they are no administrators, if they were let in by a list, a
    /// role of the platform or pairing. `/pair` stays with administrators.
    #[schemars(extend("x-applies" = "live"))]
    pub commands: Vec<String>,

    /// The only tools that the agent may use when it answers them. When it is not set, all; an empty list
    /// is none.
    #[schemars(extend("x-applies" = "live"))]
    pub tools: Option<Vec<String>>,

    /// The only models that they may choose with `/model`, each written like `model`. When it is not set,
    /// all. The configured model answers them in any case.
    #[schemars(extend("x-applies" = "live"))]
    pub models: Option<Vec<String>>,

    /// The only chats that messages may be sent to for them: names from `destinations`, or of accounts, whose
    /// homes are meant. When it is not set, all for administrators and none for others.
    #[schemars(extend("x-applies" = "live"))]
    pub destinations: Option<Vec<String>>,

    /// How much each of them may spend in a day, in place of `budgets.person`.
    #[schemars(extend("x-applies" = "live"))]
    pub budget: Option<BudgetSettings>,
}

/// How much may be spent in a day. What is not set is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSettings {
    /// Messages that are answered.
    #[schemars(extend("x-applies" = "live"))]
    pub messages: Option<u32>,

    /// Tokens that models read and write.
    #[schemars(extend("x-applies" = "live"))]
    pub tokens: Option<u64>,

    /// US dollars. What a model costs whose price is not known counts as nothing; `prices` says what it
    /// costs.
    #[schemars(extend("x-applies" = "live"))]
    pub cost: Option<Dollars>,
}

/// How much may be spent in a day by those whose role says nothing about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetsSettings {
    /// By each person in `people`, and by each sender who is on a list or let in by a role of the
    /// platform. You yourself, on the web page and in the terminal, are not limited.
    pub person: BudgetSettings,

    /// By each sender who was let in by pairing or because everybody is.
    pub guest: BudgetSettings,

    /// In each chat, by all who write in it together.
    pub chat: BudgetSettings,
}

impl BudgetSettings {
    /// Whether it limits nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl PersonSettings {
    /// Who they are on each account, as far as that can be read.
    pub fn senders(&self) -> impl Iterator<Item = (AccountId, SenderId)> {
        self.identities.iter().filter_map(|identity| divided(identity).ok())
    }
}

impl RoleSettings {
    /// The names of the commands, without slashes.
    pub fn commands(&self) -> BTreeSet<String> {
        let name = |name: &String| name.trim().trim_start_matches('/').to_lowercase();
        self.commands.iter().map(name).filter(|name| !name.is_empty()).collect()
    }
}

/// An account and a sender on it. The id of a sender may have slashes, the name of an account has none.
fn divided(identity: &str) -> Result<(AccountId, SenderId), String> {
    let expected = "is not an account and the id of a sender; write it like telegram/123456789";
    let (account, sender) = identity.split_once('/').ok_or(expected)?;
    let account = AccountId::new(account).map_err(|_| expected)?;
    if sender.contains('*') {
        return Err("is not the id of a sender; people are named one by one".to_owned());
    }
    let sender = SenderId::new(sender).map_err(|error| error.to_string())?;
    Ok((account, sender))
}

/// Checks who people are, once the accounts are known.
pub(crate) fn check(config: &Config, origins: &Origins<'_>, verdict: &mut Verdict) {
    let mut known: BTreeMap<(AccountId, SenderId), &str> = BTreeMap::new();
    for (name, person) in &config.people {
        let path = below("people", name);
        if let Some(role) = person.role.as_ref().filter(|role| !config.roles.contains_key(*role)) {
            let path = below(&path, "role");
            let close = nearest(role, config.roles.keys().map(String::as_str));
            let close = close.map_or(String::new(), |close| format!("; did you mean {close}?"));
            let finding = Finding::at(&origins.of(&path), &path, format!("is not in roles{close}"));
            verdict.problems.push(finding.with_value(format!("{:?}", brief(role))));
        }
        let list = below(&path, "identities");
        if person.identities.is_empty() {
            let expectation = "names nobody on any account, so that it makes no difference";
            verdict.warnings.push(Finding::at(&origins.of(&list), &list, expectation));
        }
        for (index, identity) in person.identities.iter().enumerate() {
            let found = |expectation: String| {
                Finding::at(&origins.of(&list), &format!("{list}[{index}]"), expectation)
                    .with_value(format!("{:?}", brief(identity)))
            };
            let (account, sender) = match divided(identity) {
                Ok(divided) => divided,
                Err(expectation) => {
                    verdict.problems.push(found(expectation));
                    continue;
                }
            };
            let Some(settings) = config.accounts.get(&account) else {
                // An account that is wrong itself was told of already.
                if origins.is_sound(&below("accounts", account.as_str())) {
                    let accounts = config.accounts.keys().map(AccountId::as_str);
                    let close = nearest(account.as_str(), accounts);
                    let way_on = close.map_or_else(
                        || "connect it with `talaria setup`, or take the line out".to_owned(),
                        |close| format!("did you mean {close}?"),
                    );
                    verdict.problems.push(found(format!("is on no account of yours; {way_on}")));
                }
                continue;
            };
            let spec = settings.platform;
            if !(spec.senders.fit)(sender.as_str()) {
                verdict.problems.push(found(format!(
                    "is not how {} names people, so that nobody is meant; ids there look like {}",
                    spec.label, spec.senders.like
                )));
                continue;
            }
            match known.insert((account.clone(), sender.clone()), name) {
                None => {}
                Some(other) if other == name => {
                    verdict.warnings.push(found("is named twice".to_owned()));
                    continue;
                }
                Some(other) => {
                    verdict.problems.push(found(format!("is people.{other}, too; keep one")));
                    continue;
                }
            }
            if let Some(expectation) = unheard(settings, &account, &sender) {
                verdict.warnings.push(found(expectation));
            }
        }
    }
}

/// What is odd about a sender who is somebody on an account.
fn unheard(settings: &AccountSettings, account: &AccountId, sender: &SenderId) -> Option<String> {
    let spec = settings.platform;
    let access = &settings.access;
    let lists = [&access.allow, &access.general, &access.direct.allow, &access.group.allow];
    if spec.identity == Identity::Operator || lists.into_iter().any(|list| list.contains(sender)) {
        return None;
    }
    let add = format!("to put them on it, add {:?} to accounts.{account}.allow", sender.as_str());
    Some(match [access.direct.doors, access.group.doors].contains(&Doors::Open) {
        true => {
            format!("is on no list, so that they are a guest, whose role grants no commands; {add}")
        }
        false => format!(
            "is on no list, so that only pairing or a role of {} lets them in; {add}",
            spec.label
        ),
    })
}
