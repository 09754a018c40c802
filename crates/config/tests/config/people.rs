//! Who people are, what their roles grant, and what may be spent.

use talaria_config::{BudgetSettings, Dollars, Loaded};

use crate::{loaded, problems};

const ACCOUNTS: &str = "\
accounts:
  pigeon: {token: first-ring, allow: [ann, ben]}
  loft: {platform: pigeon, token: other-ring, allow: [annie, ben]}
";

fn with(yaml: &str) -> String {
    format!("{yaml}\n{ACCOUNTS}")
}

fn warnings(loaded: &Loaded) -> Vec<String> {
    loaded.warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn nothing_is_limited_and_nobody_is_known_unless_it_is_said() {
    let loaded = loaded("", &[]);
    let config = loaded.config();
    assert!(config.people.is_empty() && config.roles.is_empty());
    assert!(config.budgets.person.is_none());
    assert!(config.budgets.guest.is_none() && config.budgets.chat.is_none());
}

#[test]
fn a_person_has_identities_and_a_role_and_a_role_has_a_budget() {
    let yaml = with(
        "people: {ann: {identities: [pigeon/ann, loft/annie], role: family}}\n\
         roles: {family: {commands: [/Reload, usage, ''], tools: [ask], models: [], \
         budget: {messages: 20, tokens: 50000, cost: 1.5}}}\n\
         budgets: {guest: {messages: 5}, chat: {cost: '0.25'}}",
    );
    let loaded = loaded(&yaml, &[]);
    assert_eq!(warnings(&loaded).len(), 4, "who may give commands: {:?}", warnings(&loaded));
    let config = loaded.config();
    let senders: Vec<_> = config.people["ann"]
        .senders()
        .map(|(account, sender)| format!("{account} {sender}"))
        .collect();
    assert_eq!(senders, ["pigeon ann", "loft annie"]);
    let family = &config.roles["family"];
    assert_eq!(family.commands().into_iter().collect::<Vec<_>>(), ["reload", "usage"]);
    assert_eq!(family.tools.as_deref(), Some(&["ask".to_owned()][..]));
    assert_eq!(family.models.as_deref(), Some(&[][..]), "none is not all");
    let cost = Some(Dollars::from_micros(1_500_000));
    let budget = BudgetSettings { messages: Some(20), tokens: Some(50_000), cost };
    assert_eq!(family.budget, Some(budget));
    assert!(config.budgets.person.is_none());
    assert_eq!(config.budgets.guest.messages, Some(5));
    assert_eq!(config.budgets.chat.cost, Some(Dollars::from_micros(250_000)));
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_line() {
    let check = |yaml: &str, expected: &str| {
        assert_eq!(problems(&with(yaml), &[]), expected, "{yaml}");
    };
    check(
        "people: {ann: {identities: [pigeon/ann], role: famly}}\nroles: {family: {}}",
        "config.yaml:1: people.ann.role: \"famly\" is not in roles; did you mean family?",
    );
    check(
        "people: {ann: {identities: [pigon/ann]}}",
        "config.yaml:1: people.ann.identities[0]: \"pigon/ann\" is on no account of yours; \
         did you mean pigeon?",
    );
    check(
        "people: {ann: {identities: ['pigeon/@ann']}}",
        "config.yaml:1: people.ann.identities[0]: \"pigeon/@ann\" is not how Carrier pigeon names \
         people, so that nobody is meant; ids there look like alice",
    );
    check(
        "people: {ann: {identities: [ann]}}",
        "config.yaml:1: people.ann.identities[0]: \"ann\" is not an account and the id of a sender; \
         write it like telegram/123456789",
    );
    check(
        "people: {ann: {identities: ['pigeon/*']}}",
        "config.yaml:1: people.ann.identities[0]: \"pigeon/*\" is not the id of a sender; people are \
         named one by one",
    );
    check(
        "people: {ann: {identities: [pigeon/ann]}, ben: {identities: [loft/ben, pigeon/ann]}}",
        "config.yaml:1: people.ben.identities[1]: \"pigeon/ann\" is people.ann, too; keep one",
    );
}

#[test]
fn who_is_on_no_list_is_pointed_out_with_what_to_add() {
    let odd = |yaml: &str| {
        let all = warnings(&loaded(yaml, &[]));
        all.into_iter().filter(|warning| warning.contains("people.")).collect::<Vec<_>>()
    };
    let yaml = |identity: &str| with(&format!("people: {{ann: {{identities: [{identity}]}}}}"));
    assert_eq!(odd(&yaml("pigeon/ann")), [""; 0]);
    assert_eq!(odd(&yaml("desk/anybody")), [""; 0], "the operator's own");
    assert_eq!(
        odd(&yaml("pigeon/annie")),
        [
            "config.yaml:1: people.ann.identities[0]: \"pigeon/annie\" is on no list, so that only pairing \
          or a role of Carrier pigeon lets them in; to put them on it, add \"annie\" to \
          accounts.pigeon.allow"
        ]
    );
    assert_eq!(
        odd(&yaml("pigeon/ann, pigeon/ann")),
        ["config.yaml:1: people.ann.identities[1]: \"pigeon/ann\" is named twice"]
    );
    let open = "people: {zoe: {identities: [pigeon/zoe]}}\n\
                accounts: {pigeon: {token: ring, allow_everyone: true}}";
    assert_eq!(
        odd(open),
        [
            "config.yaml:1: people.zoe.identities[0]: \"pigeon/zoe\" is on no list, so that they are a \
          guest, whose role grants no commands; to put them on it, add \"zoe\" to \
          accounts.pigeon.allow"
        ]
    );
    assert_eq!(
        odd("people: {ann: {}}"),
        ["people.ann.identities: names nobody on any account, so that it makes no difference"]
    );
}

#[test]
fn people_roles_and_budgets_apply_at_once() {
    let before = loaded(&with(""), &[]);
    let after = with(
        "people: {ann: {identities: [pigeon/ann], role: family}}\n\
         roles: {family: {commands: [reload], budget: {messages: 1}}}\n\
         budgets: {person: {tokens: 1}}",
    );
    let sources = talaria_config::Sources::default().with_config(after.as_str());
    let (_, changes) = before.reload(sources).unwrap();
    assert!(!changes.is_empty());
    for change in changes {
        assert_eq!(change.applies, talaria_config::Applies::Live, "{}", change.path);
    }
}
