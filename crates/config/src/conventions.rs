//! The variables by which platforms are known everywhere, such as `EXAMPLE_BOT_TOKEN`. They are read for
//! the account that is named like its platform, and are derived from what the platform asks.

use talaria_platform::{Identity, Need, Registration};

use crate::environment::Environment;
use crate::known::{below, in_variable};
use crate::layers::Assignment;

/// A variable and the setting that it is another name of.
pub(crate) struct Convention {
    /// The platform, and the account.
    pub(crate) platform: &'static str,
    /// The setting below the account.
    pub(crate) setting: &'static str,
    pub(crate) variable: String,
    pub(crate) need: Need,
}

impl Convention {
    pub(crate) fn path(&self) -> String {
        below(&below("accounts", self.platform), self.setting)
    }
}

/// A convention that somebody makes use of.
pub(crate) struct Conventional<'a> {
    pub(crate) platform: &'static str,
    /// Its path begins below the account.
    pub(crate) each: Assignment<'a>,
}

/// Every convention there is.
pub(crate) fn conventions(registrations: &[Registration]) -> Vec<Convention> {
    registrations
        .iter()
        .map(|known| known.spec)
        .flat_map(|spec| {
            let platform = spec.name;
            let asked = spec.asks.iter().map(move |ask| Convention {
                platform,
                setting: ask.setting,
                variable: ask.variable.to_owned(),
                need: ask.need,
            });
            let is_open = !spec.asks.is_empty() && spec.identity == Identity::Anyone;
            let heard = [
                ("allow", "ALLOWED_USERS"),
                ("group_allow_from", "GROUP_ALLOWED_USERS"),
                ("allow_everyone", "ALLOW_ALL_USERS"),
            ];
            let heard = heard.into_iter().filter(move |_| is_open).map(move |(setting, suffix)| {
                let variable = format!("{}_{suffix}", in_variable(platform));
                Convention { platform, setting, variable, need: Need::Optional }
            });
            asked.chain(heard)
        })
        .collect()
}

/// What an environment says by convention.
pub(crate) fn said<'a>(
    conventions: &'a [Convention],
    environment: &'a Environment,
) -> Vec<Conventional<'a>> {
    let named = |convention: &'a Convention| {
        let is_meant = move |(name, _): &(&str, _)| *name == convention.variable;
        environment.iter().filter(is_meant).map(move |(name, variable)| Conventional {
            platform: convention.platform,
            each: Assignment {
                name,
                value: variable.value.expose(),
                origin: &variable.origin,
                path: vec![in_variable(convention.setting)],
            },
        })
    };
    conventions.iter().flat_map(named).collect()
}
