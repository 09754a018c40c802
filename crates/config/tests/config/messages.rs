//! What somebody is told who wrote something wrong.

use talaria_config::{Sources, load};

use crate::{loaded, platforms, problems, try_load};

fn check(yaml: &str, expect: &str) {
    assert_eq!(problems(yaml, &[]), expect, "{yaml:?}");
}

fn check_variable(variable: &str, expect: &str) {
    assert_eq!(problems("", &[variable]), expect, "{variable:?}");
}

fn check_warnings(yaml: &str, variables: &[&str], expect: &[&str]) {
    let warnings: Vec<String> =
        loaded(yaml, variables).warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, expect, "{yaml:?} {variables:?}");
}

#[test]
fn a_wrong_value_is_named_with_what_was_expected() {
    check(
        "model: x\n\nagent:\n  turn_limit: soon",
        "config.yaml:4: agent.turn_limit: \"soon\" is not a duration; write it like 30s, 5m or 2h",
    );
    check(
        "agent: {turn_limit: 30}",
        "config.yaml:1: agent.turn_limit: 30 is not a duration; write it like 30s, 5m or 2h",
    );
    check(
        "agent: {turn_limit: 0s}",
        "config.yaml:1: agent.turn_limit: \"0s\" is not a duration; write it like 30s, 5m or 2h",
    );
    check(
        "agent: {turn_limit: {minutes: 3}}",
        "config.yaml:1: agent.turn_limit: expected duration, like 30s, 5m or 2h, found settings",
    );
    check(
        "agent: {max_steps: many}",
        "config.yaml:1: agent.max_steps: \"many\" is not a whole number",
    );
    check("agent: {max_steps: 1.5}", "config.yaml:1: agent.max_steps: 1.5 is not a whole number");
    check(
        "agent: {max_steps: 0}",
        "config.yaml:1: agent.max_steps: 0 is too small; the least is 1",
    );
    check(
        "agent: {max_steps: 99999999999999999999}",
        "config.yaml:1: agent.max_steps: 99999999999999999999 is too large; the most is 10000",
    );
    check(
        "agent: {max_steps: \"5\"}",
        "config.yaml:1: agent.max_steps: \"5\" is text; write it without quotes",
    );
    check(
        "group_sessions_per_user: maybe",
        "config.yaml:1: group_sessions_per_user: \"maybe\" is neither true nor false",
    );
    check(
        "files: {limit: big}",
        "config.yaml:1: files.limit: \"big\" is not a size; write it like 25MB or 2GB",
    );
    check(
        "files: {limit: 3GB}",
        "config.yaml:1: files.limit: 3GB is more than files.quota, which is 2GB",
    );
    check(
        "log: {format: jsn}",
        "config.yaml:1: log.format: \"jsn\" is not one of text, json; did you mean json?",
    );
    check(
        "log: {level: loud}",
        "config.yaml:1: log.level: \"loud\" is not one of error, warn, info, debug, trace",
    );
    check(
        "http: {listen: localhost:80}",
        "config.yaml:1: http.listen: \"localhost:80\" is not an address and port; write it like 127.0.0.1:8420",
    );
    check(
        "providers: {p: {base_url: example.com}}",
        "config.yaml:1: providers.p.base_url: \"example.com\" is not a URL; write it like https://example.com/v1",
    );
    check(
        "providers: {p: {wire: OpenAI}}",
        "config.yaml:1: providers.p.wire: \"OpenAI\" is not one of openai, anthropic; did you mean openai?",
    );
    check(
        "providers: {p: {headers: {'a b': x}}}",
        "config.yaml:1: providers.p.headers.a b: is not the name of an HTTP header",
    );
    check("model: ''", "config.yaml:1: model: \"\" is empty");
    check("model: [a]", "config.yaml:1: model: expected text, found a list");
    check("fallback: a", "config.yaml:1: fallback: \"a\" is not a list; write it like [a]");
    check(
        "fallback: [a, ~, {b: c}]",
        "config.yaml:1: fallback[1]: expected text, found nothing\nconfig.yaml:1: fallback[2]: expected text, found settings",
    );
    check("agent: fast", "config.yaml:1: agent: expected settings below it, found a single value");
    check("- agent", "config.yaml:1:1: expected settings below it, found a list");
    check(
        "providers: {p: {extra_body: 5}}",
        "config.yaml:1: providers.p.extra_body: expected settings below it, found a single value",
    );
    check(
        "providers: {My Provider: {}}",
        "config.yaml:1: providers.My Provider: is not a name; use lower-case letters, digits, - and _, at most 64 of them",
    );
}

#[test]
fn everything_wrong_is_told_at_once_in_the_order_of_the_file() {
    check(
        "agent:\n  max_steps: 0\n  idle_limit: never\nlog: {format: xml}\naccounts: {owl: }\nfiles: {limit: 3GB}",
        "config.yaml:2: agent.max_steps: 0 is too small; the least is 1\n\
         config.yaml:3: agent.idle_limit: \"never\" is not a duration; write it like 30s, 5m or 2h\n\
         config.yaml:4: log.format: \"xml\" is not one of text, json\n\
         config.yaml:5: accounts.owl.password: is missing (The password of the owl); write it here or set OWL_PASSWORD\n\
         config.yaml:6: files.limit: 3GB is more than files.quota, which is 2GB",
    );
}

#[test]
fn a_wrong_variable_is_named() {
    check_variable(
        "TALARIA_AGENT__TURN_LIMIT=soon",
        "TALARIA_AGENT__TURN_LIMIT: agent.turn_limit: \"soon\" is not a duration; write it like 30s, 5m or 2h",
    );
    check_variable(
        "TALARIA_FALLBACK=[a",
        "TALARIA_FALLBACK: fallback: cannot be read as YAML: unclosed bracket '['",
    );
    check_variable(
        "TALARIA_AGENT=quick",
        "TALARIA_AGENT: agent: expected settings below it, found a single value",
    );
    let sources = Sources::default().with_dotenv("A=1\nTALARIA_LOG__LEVEL=loud\nnonsense");
    let problems = load(sources, &platforms::ALL).expect_err("wrong");
    assert_eq!(problems.to_string(), ".env:3: the line has no `=`; write it like NAME=value");
    let sources = Sources::default().with_dotenv("A=1\nTALARIA_LOG__LEVEL=inof");
    let problems = load(sources, &platforms::ALL).expect_err("wrong");
    assert_eq!(
        problems.to_string(),
        ".env:2: log.level: \"inof\" is not one of error, warn, info, debug, trace; did you mean info?"
    );
}

#[test]
fn a_value_that_is_overridden_may_be_wrong() {
    loaded("agent: {turn_limit: soon}", &["TALARIA_AGENT__TURN_LIMIT=1h"]);
}

#[test]
fn an_account_says_what_it_needs() {
    check(
        "accounts: {pigeon: {}}",
        "config.yaml:1: accounts.pigeon.token: is missing (The token of the loft); write it here or set TALARIA_ACCOUNTS__PIGEON__TOKEN",
    );
    check(
        "accounts: {work: {token: x}}",
        "config.yaml:1: accounts.work: which platform is it? Add `platform:` with one of desk, pigeon, owl",
    );
    check(
        "accounts: {pigoen: {token: x}}",
        "config.yaml:1: accounts.pigoen: which platform is it? Add `platform:` with one of desk, pigeon, owl, or did you mean accounts.pigeon?",
    );
    check(
        "accounts: {work: {platform: pigon}}",
        "config.yaml:1: accounts.work.platform: \"pigon\" is not a platform of this gateway; did you mean pigeon?",
    );
    check(
        "accounts: {work: {platform: parrot}}",
        "config.yaml:1: accounts.work.platform: \"parrot\" is not a platform of this gateway; choose one of desk, pigeon, owl",
    );
    check(
        "accounts: {owl: {platform: pigeon}}",
        "config.yaml:1: accounts.owl: is the name of another platform; rename the account, or make owl its platform",
    );
    check(
        "accounts: {Owl: {platform: owl}}",
        "config.yaml:1: accounts.Owl: is not a name; use lower-case letters, digits, - and _, at most 64 of them",
    );
    check(
        "accounts:\n  a-b: {platform: owl, password: wise1, allow_everyone: true}\n  a_b: {platform: owl, password: wise2, allow_everyone: true}",
        "config.yaml:3: accounts.a_b: cannot be told apart from accounts.a-b in the environment; rename one of them",
    );
    check(
        "accounts: {pigeon: {token: t, allow: ['']}}",
        "config.yaml:1: accounts.pigeon.allow[0]: an id cannot be empty",
    );
    check(
        "accounts: {pigeon: {token: t, allow_everyone: true, route: {by: map}}}",
        "config.yaml:1: accounts.pigeon.route.password: is missing (The password of the map); write it here or set TALARIA_ACCOUNTS__PIGEON__ROUTE__PASSWORD",
    );
    check(
        "accounts: {owl: {password: foolish, allow_everyone: true}}",
        "config.yaml:1: accounts.owl: (hidden) is not wise",
    );
    check(
        "accounts: {pigeon: {token: t, allow_everyone: true, roofs: [{key: k}]}}",
        "config.yaml:1: accounts.pigeon.roofs[0].name: is missing (Its name); write it here",
    );
}

#[test]
fn a_provider_has_one_key_that_exists() {
    for named in ["model: p/m", "model: p", "fallback: [q/m, p/some/model]"] {
        check(
            &format!("{named}\nproviders: {{p: {{api_key_env: NO_KEY}}}}"),
            "config.yaml:2: providers.p.api_key_env: \"NO_KEY\" is not set; put it into .env or the environment, or remove api_key_env",
        );
    }
    check(
        "providers: {p: {api_key: k, api_key_env: A_KEY}}",
        "config.yaml:1: providers.p.api_key_env: \"A_KEY\" is one key too many, because api_key is set too; keep one",
    );
}

#[test]
fn a_provider_that_nothing_names_may_be_without_its_key() {
    for named in ["fallback: []", "model: q/m", "model: pigeon/m", "model: q/p"] {
        check_warnings(
            &format!("{named}\nproviders: {{p: {{api_key_env: NO_KEY}}}}"),
            &[],
            &[
                "config.yaml:2: providers.p.api_key_env: \"NO_KEY\" is not set, so this provider cannot be used; put it into .env or the environment",
            ],
        );
    }
}

#[test]
fn one_secret_does_not_open_two_doors() {
    check(
        "accounts:\n  pigeon: {token: wise, allow_everyone: true}\n  owl: {password: wise, allow_everyone: true}",
        "config.yaml:3: accounts.owl.password: is the same secret as accounts.pigeon.token; use a different one for each",
    );
    check(
        "providers: {p: {api_key: same}}\naccounts: {pigeon: {token: same, allow_everyone: true}}",
        "config.yaml:2: accounts.pigeon.token: is the same secret as providers.p.api_key; use a different one for each",
    );
    loaded("providers: {p: {api_key: same}, q: {api_key: same}}", &[]);
    loaded(
        "accounts:\n  one: {platform: pigeon, token: same, allow_everyone: true}\n  two: {platform: pigeon, token: same, allow_everyone: true}",
        &[],
    );
}

#[test]
fn an_unknown_key_is_ignored_and_the_nearest_known_one_named() {
    check_warnings(
        "agent:\n  turn_limt: 5m",
        &[],
        &[
            "config.yaml:2: agent.turn_limt: there is no such setting, so it is ignored; did you mean agent.turn_limit?",
        ],
    );
    check_warnings(
        "turn_limit: 5m",
        &[],
        &[
            "config.yaml:1: turn_limit: there is no such setting, so it is ignored; did you mean agent.turn_limit?",
        ],
    );
    check_warnings(
        "agent: {max_turns: 5}",
        &[],
        &[
            "config.yaml:1: agent.max_turns: there is no such setting, so it is ignored; did you mean agent.max_steps?",
        ],
    );
    check_warnings(
        "platforms: {}",
        &[],
        &[
            "config.yaml:1: platforms: there is no such setting, so it is ignored; did you mean accounts?",
        ],
    );
    check_warnings(
        "pigeon: {token: x}",
        &[],
        &[
            "config.yaml:1: pigeon: there is no such setting, so it is ignored; did you mean accounts.pigeon?",
        ],
    );
    check_warnings(
        "weather: sunny",
        &[],
        &["config.yaml:1: weather: there is no such setting, so it is ignored"],
    );
    check_warnings(
        "providers: {p: {baseurl: x}}",
        &[],
        &[
            "config.yaml:1: providers.p.baseurl: there is no such setting, so it is ignored; did you mean providers.p.base_url?",
        ],
    );
    check_warnings(
        "accounts: {bird: {platform: pigeon, token: t, allow_everyone: true, tokens: u}}",
        &[],
        &[
            "config.yaml:1: accounts.bird.tokens: there is no such setting, so it is ignored; did you mean accounts.bird.token?",
        ],
    );
    check_warnings(
        "accounts: {bird: {platform: pigeon, token: t, allow: [1], strict_mention: true}}",
        &[],
        &[
            "config.yaml:1: accounts.bird.strict_mention: there is no such setting, so it is ignored; did you mean accounts.bird.thread_require_mention?",
        ],
    );
    check_warnings(
        "accounts: {pigeon: {token: t, allow_everyone: true, allow_admin_from: [1], group_allow_admin_from: [1], roofs: [{name: n, colour: red}]}}",
        &[],
        &[
            "config.yaml:1: accounts.pigeon.roofs[0].colour: there is no such setting, so it is ignored",
        ],
    );
}

#[test]
fn an_unknown_variable_is_ignored_and_the_nearest_known_one_named() {
    check_warnings(
        "",
        &["TALARIA_HTTP_LISTEN=x"],
        &[
            "TALARIA_HTTP_LISTEN names no setting, so it is ignored; did you mean TALARIA_HTTP__LISTEN?",
        ],
    );
    check_warnings(
        "",
        &["TALARIA_MODEL__NAME=x"],
        &["TALARIA_MODEL__NAME names no setting, so it is ignored; did you mean TALARIA_MODEL?"],
    );
    check_warnings(
        "",
        &["TALARIA_WEATHER=x", "OTHER=y"],
        &["TALARIA_WEATHER names no setting, so it is ignored"],
    );
    check_warnings(
        "",
        &["TALARIA_PROVIDERS__P__HEADERS__X_KEY=v", "TALARIA_PROVIDERS__Q__HEADERS={x-key: v}"],
        &[
            "TALARIA_PROVIDERS__P__HEADERS__X_KEY is ignored; set all of providers.p.headers at once, like TALARIA_PROVIDERS__P__HEADERS='{name: value}'",
        ],
    );
}

/// The setting is named, and where it is; a secret is not, even by an indiscreet platform.
#[test]
fn what_nothing_can_be_connected_with_is_told_before_anything_is_connected() {
    check(
        "accounts:\n  pigeon:\n    allow: [1]\n    token: heavy-CANARY\n",
        "config.yaml:4: accounts.pigeon.token: does not fly; (hidden) is heavy",
    );
    check(
        "accounts:\n  pigeon:\n    allow: [1]\n    token: lame\n",
        "config.yaml:2: accounts.pigeon.spare_keys: does not fly; give it one",
    );
    check_variable(
        "TALARIA_ACCOUNTS__PIGEON__TOKEN=heavy-CANARY",
        "TALARIA_ACCOUNTS__PIGEON__TOKEN: accounts.pigeon.token: does not fly; (hidden) is heavy",
    );
    let off = "accounts: {pigeon: {token: lame, enabled: false}}";
    assert!(try_load(off, &[]).is_ok(), "nobody connects it");
    let wrong = try_load("accounts: {pigeon: {token: lame}}", &[]).unwrap_err();
    let origin = wrong.origin("accounts.pigeon.token").map(ToString::to_string);
    assert_eq!(origin.as_deref(), Some("config.yaml:1"), "what is set is known all the same");
}

#[test]
fn what_limits_people_is_not_ignored_when_it_is_misspelt() {
    let said = |path: &str, meant: &str| {
        format!(
            "config.yaml:1: {path}: there is no such setting, and what limits people is not ignored; did you mean {meant}?"
        )
    };
    for (yaml, path, meant) in [
        (
            "accounts: {pigeon: {token: t, allow: [1], allow_admin_form: [1]}}",
            "accounts.pigeon.allow_admin_form",
            "accounts.pigeon.allow_admin_from",
        ),
        (
            "accounts: {bird: {platform: pigeon, token: t, allow: [1], admins: [1]}}",
            "accounts.bird.admins",
            "accounts.bird.allow_admin_from",
        ),
        ("budgets: {guests: {messages: 1}}", "budgets.guests", "budgets.guest"),
        ("budget: {guest: {messages: 1}}", "budget", "budgets"),
        ("roles: {x: {budjet: {messages: 1}}}", "roles.x.budjet", "roles.x.budget"),
        ("access: {alow: [1]}", "access.alow", "access.allow"),
    ] {
        check(yaml, &said(path, meant));
    }
}

#[test]
fn whoever_is_let_in_by_another_list_is_somebody() {
    let account = |roofs: &str| {
        format!("accounts: {{pigeon: {{token: t, dm_policy: allowlist, roofs: {roofs}}}}}")
    };
    check_warnings(
        &account("[{name: n}]"),
        &[],
        &[
            "config.yaml:1: accounts.pigeon: command gating is off in groups of pigeon: all who have a role that it lets in are administrators, who may restart and reload the gateway; name the administrators in accounts.pigeon.group_allow_admin_from",
        ],
    );
    check_warnings(
        &account("[]"),
        &[],
        &[
            "config.yaml:1: accounts.pigeon: nobody is heard here; add the ids of senders to allow, or set dm_policy: pairing",
        ],
    );
}

#[test]
fn an_account_that_hears_nobody_or_everybody_is_noticed() {
    let account = |keys: &str| format!("accounts: {{pigeon: {{token: t{keys}}}}}");
    check_warnings(&account(""), &[], &[]);
    for nobody in
        ["unauthorized_dm_behavior: ignore", "dm_policy: allowlist", "dm_policy: disabled"]
    {
        check_warnings(
            &account(&format!(", {nobody}")),
            &[],
            &[
                "config.yaml:1: accounts.pigeon: nobody is heard here; add the ids of senders to allow, or set dm_policy: pairing",
            ],
        );
    }
    check_warnings(&account(", enabled: false, dm_policy: disabled"), &[], &[]);
    check_warnings(&account(", allow: [1], allow_everyone: true"), &[], &[]);
    check_warnings(
        &account(
            ", allow: [1], allow_everyone: true, dm_policy: allowlist, group_policy: disabled",
        ),
        &[],
        &[
            "config.yaml:1: accounts.pigeon.allow_everyone: makes no difference, because dm_policy and group_policy say who",
        ],
    );
    check_warnings(
        &account(", dm_policy: pairing, unauthorized_dm_behavior: ignore, allow: [1]"),
        &[],
        &[
            "config.yaml:1: accounts.pigeon.dm_policy: gives nobody a code, because unauthorized_dm_behavior is ignore",
        ],
    );
    check_warnings(
        &account(", dm_policy: disabled, unauthorized_dm_behavior: pair, allow: [1]"),
        &[],
        &[
            "config.yaml:1: accounts.pigeon.unauthorized_dm_behavior: makes no difference, because in direct chats everybody or nobody is heard",
        ],
    );
    check_warnings(
        &account(", allow: [1], group_allow_from: [2]"),
        &[],
        &[
            "config.yaml:1: accounts.pigeon: command gating is off in groups of pigeon: all 2 who are named are administrators, who may restart and reload the gateway; name the administrators in accounts.pigeon.group_allow_admin_from",
        ],
    );
    check_warnings("accounts: {desk: {}}", &[], &[]);
}

#[test]
fn who_is_heard_is_named_one_by_one_and_everybody_only_in_so_many_words() {
    let account = |keys: &str| format!("accounts: {{pigeon: {{token: t, {keys}}}}}");
    for key in ["allow", "allow_from", "group_allow_from"] {
        check(
            &account(&format!("{key}: [1, '*']")),
            &format!(
                "config.yaml:1: accounts.pigeon.{key}[1]: \"*\" is not the id of a sender; to hear everybody, set allow_everyone: true"
            ),
        );
    }
    check(
        "access: {allow: ['*']}",
        "config.yaml:1: access.allow[0]: \"*\" is not the id of a sender; to hear everybody, set allow_everyone: true",
    );
    for key in ["allow_admin_from", "group_allow_admin_from"] {
        check(
            &account(&format!("allow: [1], {key}: ['*']")),
            &format!(
                "config.yaml:1: accounts.pigeon.{key}[0]: \"*\" is not the id of a sender; administrators are named one by one"
            ),
        );
    }
    for key in ["dm_policy", "group_policy"] {
        check(
            &account(&format!("allow: [1], {key}: open")),
            &format!(
                "config.yaml:1: accounts.pigeon.{key}: open lets in whoever finds the account, so it has to be said twice: set allow_everyone: true as well, or choose allowlist"
            ),
        );
        check_warnings(&account(&format!("allow_everyone: true, {key}: open")), &[], &[]);
        let general =
            format!("access: {{allow_everyone: true}}\n{}", account(&format!("{key}: open")));
        check_warnings(&general, &[], &[]);
    }
}

#[test]
fn what_an_account_answers_is_checked() {
    let account = |keys: &str| format!("accounts: {{pigeon: {{token: t, allow: [1], {keys}}}}}");
    check(
        &account("ignored_chats: [-100, 'the team']"),
        "config.yaml:1: accounts.pigeon.ignored_chats[1]: \"the team\" is not the id of a chat; write it like -1001234, C0123ABC or chat:thread",
    );
    check(
        &account("mention_patterns: ['^hey', '[']"),
        "config.yaml:1: accounts.pigeon.mention_patterns[1]: is not a regular expression, or a very large one",
    );
    check_warnings(
        &account("require_mention: false, mention_patterns: [hey], guest_mode: true"),
        &[],
        &[
            "config.yaml:1: accounts.pigeon.mention_patterns: makes no difference, because require_mention is false",
            "config.yaml:1: accounts.pigeon.guest_mode: makes no difference, because allowed_chats names none",
        ],
    );
    for key in
        ["allow", "allow_from", "group_allow_from", "allow_admin_from", "group_allow_admin_from"]
    {
        check(
            &format!("accounts: {{pigeon: {{token: t, {key}: ['@bob']}}}}"),
            &format!(
                "config.yaml:1: accounts.pigeon.{key}[0]: \"@bob\" is not how Carrier pigeon names people, so that nobody is meant; ids there look like alice"
            ),
        );
    }
    check(
        "access: {allow: ['@bob']}\naccounts: {pigeon: {token: t}, dove: {platform: pigeon, token: u}}",
        "config.yaml:1: access.allow[0]: \"@bob\" is not how any account names people, so that nobody is meant; ids look like alice on Carrier pigeon",
    );
    let general =
        |id: &str| format!("access: {{allow: [{id}]}}\naccounts: {{pigeon: {{token: t}}}}");
    loaded(&general("bob"), &[]);
    let told = problems(&general("'*@'"), &[]);
    assert_eq!(told.matches("access.allow[0]").count(), 1, "{told}");
    check(
        &account("allow_bots: some"),
        "config.yaml:1: accounts.pigeon.allow_bots: \"some\" is not one of none, mentions, all",
    );
    check_warnings(
        &account("require_mention: false, free_response_chats: [-100], observe_unmentioned: true"),
        &[],
        &[
            "config.yaml:1: accounts.pigeon.free_response_chats: makes no difference, because require_mention is false",
            "config.yaml:1: accounts.pigeon.observe_unmentioned: makes no difference, because require_mention is false",
        ],
    );
    check_warnings(
        &account("allowed_chats: [-100, 7], ignored_chats: [7]"),
        &[],
        &[
            "config.yaml:1: accounts.pigeon.allowed_chats: names 7, which ignored_chats names, too: nothing is answered there",
        ],
    );
}

#[test]
fn broken_yaml_is_shown() {
    check(
        "agent:\n  turn_limit: [30m\nmodel: secret-word\n",
        "config.yaml:3:6: cannot be read as YAML: illegal placement of ':' indicator\n  3 | model: ••••••-••••\n    |      ^",
    );
}

#[test]
fn a_file_of_nonsense_is_not_answered_with_a_book() {
    let yaml: String = (0..9_000).map(|n| format!("nonsense_{n}: x\n")).collect();
    let warnings = loaded(&yaml, &[]).warnings().to_vec();
    assert_eq!(warnings.len(), 101);
    assert_eq!(warnings[100].to_string(), "and 8900 more like these");
    let yaml: String = (0..9_000).map(|n| format!("- [{n}]\n")).collect();
    let problems = problems(&format!("fallback:\n{yaml}"), &[]);
    assert_eq!(problems.lines().count(), 101);
    assert_eq!(problems.lines().last(), Some("and 8900 more like these"));
}

#[test]
fn findings_are_data_too() {
    let Err(problems) = crate::try_load("agent: {turn_limit: soon}", &[]) else {
        panic!("accepted")
    };
    assert_eq!(
        serde_json::to_value(&problems).expect("plain data"),
        serde_json::json!([{
            "place": { "file": "config.yaml", "line": 1, "column": 9 },
            "path": "agent.turn_limit",
            "value": "\"soon\"",
            "expectation": "is not a duration; write it like 30s, 5m or 2h",
        }])
    );
}

#[test]
fn what_is_odd_is_told_with_what_is_wrong() {
    let wrong = try_load("agnet: {}\nagent: {max_steps: many}", &[]).expect_err("wrong");
    assert_eq!(wrong.iter().count(), 1);
    let odd: Vec<_> = wrong.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        odd,
        ["config.yaml:1: agnet: there is no such setting, so it is ignored; did you mean agent?"]
    );
}

#[test]
fn an_objection_names_the_place_of_the_value() {
    let loaded = loaded("log: {}\nmodel: a/b\nfallback:\n  - c/d", &[]);
    let object = |path: &str, value: &str| loaded.object(path, value, "is unknown").to_string();
    assert_eq!(object("model", "a/b"), "config.yaml:2: model: \"a/b\" is unknown");
    assert_eq!(object("fallback[0]", "c/d"), "config.yaml:3: fallback[0]: \"c/d\" is unknown");
}
