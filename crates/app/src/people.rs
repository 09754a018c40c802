//! Whom the operator knows by name, and what may be spent: what the configuration says, as the gateway takes
//! it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use talaria_agent::tools::{Ask, DemoFile, DemoLaunch, RunProgram, SendMessage, SessionSearch};
use talaria_config::{BudgetSettings, Config, Dollars, Loaded, RoleSettings};
use talaria_model::{AccountId, SenderId, Timestamp};
use talaria_providers::{Chain, Pricing};
use talaria_session::budget::{Budget, Budgets, Day};
use talaria_session::{COMMANDS, Person, Role};

/// Every tool that there can be.
const TOOLS: [&str; 6] = [
    Ask::NAME,
    SessionSearch::NAME,
    SendMessage::NAME,
    RunProgram::NAME,
    DemoFile::NAME,
    DemoLaunch::NAME,
];

/// Who the senders on an account are.
pub(crate) fn of_account(config: &Config, account: &AccountId) -> BTreeMap<SenderId, Arc<Person>> {
    let roles: BTreeMap<&str, Arc<Role>> = config
        .roles
        .iter()
        .map(|(name, role)| (name.as_str(), Arc::new(of_role(name, role))))
        .collect();
    let mut people = BTreeMap::new();
    for (name, settings) in &config.people {
        let role = settings.role.as_deref().and_then(|role| roles.get(role)).cloned();
        let person = Arc::new(Person { name: name.clone(), role });
        for (_, sender) in settings.senders().filter(|(on, _)| on == account) {
            people.insert(sender, person.clone());
        }
    }
    people
}

fn of_role(name: &str, settings: &RoleSettings) -> Role {
    let names =
        |names: &Option<Vec<String>>| names.as_ref().map(|names| names.iter().cloned().collect());
    Role {
        name: name.to_owned(),
        commands: settings.commands(),
        tools: names(&settings.tools),
        models: names(&settings.models),
        destinations: names(&settings.destinations),
        budget: settings.budget.as_ref().map(budget),
    }
}

fn budget(settings: &BudgetSettings) -> Budget {
    Budget {
        messages: settings.messages.map(u64::from),
        tokens: settings.tokens,
        micros: settings.cost.map(Dollars::micros),
    }
}

/// What may be spent by those for whom no role says it.
pub(crate) fn budgets(config: &Config) -> Budgets {
    let of = &config.budgets;
    Budgets { person: budget(&of.person), guest: budget(&of.guest), chat: budget(&of.chat) }
}

/// What a person may spend in a day.
pub(crate) fn budget_of(config: &Config, role: Option<&str>) -> Budget {
    let role = role.and_then(|role| config.roles.get(role)).and_then(|role| role.budget);
    budget(&role.unwrap_or(config.budgets.person))
}

/// The day that it is.
pub(crate) fn today(config: &Config, now: Timestamp) -> Day {
    Day::of(now, &config.timezone.clone().unwrap_or_else(TimeZone::system))
}

/// What is odd about people, roles and budgets.
pub(crate) fn oddities(loaded: &Loaded) -> Vec<String> {
    let config = loaded.config();
    let mut odd = Vec::new();
    for (name, role) in &config.roles {
        let place = |key: &str| format!("roles.{name}.{key}");
        let known = |command: &str| {
            let plain = command.replace('_', "-");
            COMMANDS.iter().any(|spec| spec.names().any(|name| name == plain))
                || config.quick_commands.contains_key(command)
        };
        for command in role.commands() {
            match command.as_str() {
                "pair" => {
                    odd.push((place("commands"), "/pair stays with administrators".to_owned()))
                }
                command if !known(command) => {
                    odd.push((place("commands"), format!("there is no command /{command}")));
                }
                _ => {}
            }
        }
        for tool in role.tools.iter().flatten().filter(|tool| !TOOLS.contains(&tool.as_str())) {
            odd.push((place("tools"), format!("there is no tool {tool:?}")));
        }
        let can_send =
            role.tools.as_ref().is_none_or(|tools| tools.iter().any(|it| it == SendMessage::NAME));
        if role.destinations.is_some() && !can_send {
            let expectation =
                format!("make no difference, because tools has no {}", SendMessage::NAME);
            odd.push((place("destinations"), expectation));
        }
        if !config.people.values().any(|person| person.role.as_ref() == Some(name)) {
            odd.push((format!("roles.{name}"), "is nobody's role".to_owned()));
        }
    }
    let told = |(path, expectation): (String, String)| match loaded.origin(&path) {
        Some(origin) => match origin.place() {
            Some(place) => match place.line {
                Some(line) => format!("{}:{line}: {path}: {expectation}", place.file),
                None => format!("{}: {path}: {expectation}", place.file),
            },
            None => format!("{path}: {expectation}"),
        },
        None => format!("{path}: {expectation}"),
    };
    odd.into_iter().map(told).collect()
}

/// What is odd about a limit in dollars where nobody knows what the model costs.
pub(crate) fn unpriced(config: &Config, chain: &Chain) -> Option<String> {
    let of = &config.budgets;
    let roles = config
        .roles
        .iter()
        .filter_map(|(name, role)| Some((format!("roles.{name}.budget.cost"), role.budget?)));
    let usual = [("person", of.person), ("guest", of.guest), ("chat", of.chat)];
    let usual = usual.map(|(who, budget)| (format!("budgets.{who}.cost"), budget));
    let (path, _) = usual.into_iter().chain(roles).find(|(_, budget)| budget.cost.is_some())?;
    let chosen = std::iter::once(&chain.first).chain(&chain.then).map(|chosen| &chosen.settings);
    let unpriced = chosen.filter(|settings| settings.pricing == Pricing::Unknown);
    let models: Vec<String> =
        unpriced.map(|settings| format!("{}/{}", settings.provider, settings.model)).collect();
    (!models.is_empty()).then(|| {
        let models = models.join(" or ");
        format!(
            "{path}: limits nothing while {models} answers, because nobody knows what that costs; say so in \
             prices, or limit tokens"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_config::Sources;
    use talaria_providers::{Chosen, Settings, Why, Wire};

    fn loaded(yaml: &str) -> Loaded {
        let sources = Sources::default().with_config(yaml);
        talaria_config::load(sources, talaria_platforms::ALL).expect("it is right")
    }

    const FAMILY: &str = "\
people:
  ann: {identities: [bench/7, web/8], role: family}
  ben: {identities: [bench/9]}
roles:
  family: {commands: [reload, pair, relaod], tools: [ask, axe], budget: {messages: 3, cost: 0.5}}
  spare: {tools: [ask], destinations: [bench]}
budgets: {person: {tokens: 10}, guest: {messages: 1}}
accounts: {bench: {platform: loopback, address: '127.0.0.1:1', allow: ['7', '9']}}
";

    #[test]
    fn a_person_is_known_on_each_of_their_accounts_and_on_no_other() {
        let loaded = loaded(FAMILY);
        let config = loaded.config();
        let on = |account: &str| of_account(config, &AccountId::new(account).unwrap());
        let bench = on("bench");
        assert_eq!(bench.len(), 2);
        let ann = &bench[&SenderId::literal("7")];
        assert_eq!(ann.to_string(), "ann, whose role is family");
        assert_eq!(on("web")[&SenderId::literal("8")], *ann);
        assert!(on("terminal").is_empty());
        assert!(ann.may_give("reload") && ann.may_use("ask") && !ann.may_use("run_program"));
        let three = Budget { messages: Some(3), tokens: None, micros: Some(500_000) };
        assert_eq!(ann.role.as_ref().unwrap().budget, Some(three));
        assert_eq!(budget_of(config, Some("family")), three);
        assert_eq!(budget_of(config, None), Budget { tokens: Some(10), ..Budget::NONE });
        assert_eq!(budgets(config).guest, Budget { messages: Some(1), ..Budget::NONE });
        assert!(budgets(config).chat.is_none());
    }

    #[test]
    fn a_limit_in_dollars_names_every_model_of_the_chain_that_has_no_price() {
        let chosen = |model: &str, pricing| Chosen {
            wire: Wire::OpenAi,
            settings: Settings {
                provider: "mine".into(),
                model: model.into(),
                pricing,
                ..Settings::default()
            },
            why: Why::Configured,
        };
        let told = |first, second| {
            let then = vec![chosen("b", second), chosen("c", Pricing::Free)];
            let chain = Chain { first: chosen("a", first), then };
            unpriced(loaded(FAMILY).config(), &chain)
                .map(|told| told.split(" answers,").next().unwrap_or_default().to_owned())
        };
        let told_of =
            |models: &str| Some(format!("roles.family.budget.cost: limits nothing while {models}"));
        assert_eq!(told(Pricing::Free, Pricing::Free), None);
        assert_eq!(told(Pricing::Unknown, Pricing::Free), told_of("mine/a"));
        assert_eq!(told(Pricing::Free, Pricing::Unknown), told_of("mine/b"));
        assert_eq!(told(Pricing::Unknown, Pricing::Unknown), told_of("mine/a or mine/b"));
    }

    #[test]
    fn what_a_role_names_that_is_not_there_is_pointed_out() {
        assert_eq!(
            oddities(&loaded(FAMILY)),
            [
                "config.yaml:5: roles.family.commands: /pair stays with administrators",
                "config.yaml:5: roles.family.commands: there is no command /relaod",
                "config.yaml:5: roles.family.tools: there is no tool \"axe\"",
                "config.yaml:6: roles.spare.destinations: make no difference, because tools has no send_message",
                "roles.spare: is nobody's role",
            ]
        );
    }
}
