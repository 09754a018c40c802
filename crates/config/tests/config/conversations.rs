//! Settings of conversations, read through the file as people write it.

use talaria_config::{
    AfterStop, BusyInput, Config, Dollars, QuickSettings, QuickWho, ResetMode, ResetSettings,
};
use talaria_model::{AccountId, ChatKind, SenderId};

use crate::{loaded, problems};

fn config(yaml: &str) -> Config {
    loaded(yaml, &[]).config().clone()
}

#[test]
fn the_defaults_are_those_that_people_know() {
    let config = config("");
    let ResetSettings { mode, at_hour, idle_minutes, notify, .. } = config.session_reset;
    assert_eq!((mode, at_hour, idle_minutes, notify), (ResetMode::Both, 4, 1440, true));
    assert_eq!(config.agent.busy_input_mode, BusyInput::Interrupt);
    assert_eq!(config.agent.gateway_auto_continue_freshness, 3600);
    assert!(config.compression.enabled && !config.privacy.redact_pii);
    assert_eq!((config.session_store_max_age_days, config.timezone), (0, None));
}

#[test]
fn a_policy_is_the_general_one_but_for_what_is_said_differently() {
    let config = config(
        "session_reset: {mode: idle, idle_minutes: 60}\n\
         reset_by_type: {group: {idle_minutes: 5, notify: false}, dm: {}}\n\
         accounts: {pigeon: {token: t, allow: [1], session_reset: {mode: none, at_hour: 0}}}\n",
    );
    let group = config.session_reset.clone().with(&config.reset_by_type[&ChatKind::Group]);
    assert_eq!((group.mode, group.idle_minutes, group.notify), (ResetMode::Idle, 5, false));
    let account = &config.accounts[&AccountId::literal("pigeon")];
    let own = group.with(&account.session_reset);
    assert_eq!((own.mode, own.at_hour, own.idle_minutes), (ResetMode::None, 0, 5));
}

#[test]
fn prices_are_dollars_for_a_million_tokens_to_the_last_digit() {
    let config = config("prices:\n  openai/gpt-5.5: {input: 1.25, output: 10, cache_read: 0.1}\n");
    let price = config.prices["openai/gpt-5.5"];
    assert_eq!(price.input, Dollars::from_micros(1_250_000));
    assert_eq!(price.output, Dollars::from_micros(10_000_000));
    assert_eq!(price.cache_read, Some(Dollars::from_micros(100_000)));
    assert_eq!(price.cache_write, None);
}

#[test]
fn a_quick_command_stands_for_a_text_or_runs_a_program() {
    let config = config(
        "quick_commands:\n  \
           fast: {type: alias, target: /model haiku}\n  \
           disk: {type: exec, command: df -h /, help: how full the disk is, who: anyone}\n  \
           load: {type: exec, command: 'uptime | cut -c1-20', shell: yes}\n",
    );
    let alias =
        QuickSettings::Alias { target: "/model haiku".into(), help: None, who: QuickWho::Anyone };
    assert_eq!(config.quick_commands["fast"], alias);
    let disk = QuickSettings::Exec {
        command: "df -h /".into(),
        shell: false,
        help: Some("how full the disk is".into()),
        who: QuickWho::Anyone,
    };
    assert_eq!(config.quick_commands["disk"], disk);
    let QuickSettings::Exec { who, .. } = config.quick_commands["load"] else { panic!() };
    assert_eq!(who, QuickWho::Admin, "running something is the operator's unless said otherwise");
}

#[test]
fn who_may_do_what_is_said_for_direct_chats_and_for_others() {
    let config = config(
        "accounts: {pigeon: {token: t, allow: [7, 8], allow_admin_from: [7], \
         group_allow_admin_from: [9], group_user_allowed_commands: [/Status, usage]}}\n",
    );
    let account = &config.accounts[&AccountId::literal("pigeon")];
    assert!(account.direct.admins.contains(&SenderId::literal("7")));
    assert!(account.group.admins.contains(&SenderId::literal("9")));
    let allowed: Vec<&str> = account.group.allowed.iter().map(String::as_str).collect();
    assert_eq!(allowed, ["status", "usage"]);
    assert_eq!(account.direct.allowed, account.group.allowed, "what is not said is as in groups");
}

#[test]
fn a_time_zone_is_known_whatever_machine_it_is() {
    let berlin = config("timezone: europe/berlin").timezone.expect("it is set");
    assert_eq!(berlin.iana_name(), Some("Europe/Berlin"));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (yaml, expected) in [
        (
            "session_reset:\n  mode: weekly",
            "config.yaml:2: session_reset.mode: \"weekly\" is not one of both, idle, daily, none",
        ),
        (
            "session_reset: {at_hour: 24}",
            "config.yaml:1: session_reset.at_hour: 24 is too large; the most is 23",
        ),
        (
            "reset_by_type:\n  gruop: {mode: none}",
            "config.yaml:2: reset_by_type.gruop: is not one of dm, group, channel, thread, forum; did you mean group?",
        ),
        (
            "timezone: Berlin",
            "config.yaml:1: timezone: \"Berlin\" is not a time zone; write it like Europe/Berlin or UTC; did you mean Europe/Berlin?",
        ),
        (
            "compression: {threshold: 1.5}",
            "config.yaml:1: compression.threshold: 1.5 is too large; the most is 0.8",
        ),
        (
            "prices: {a/b: {input: cheap, output: 1}}",
            "config.yaml:1: prices.a/b.input: \"cheap\" is not a price; write US dollars like 2.50, with at most six decimals",
        ),
        (
            "prices: {a/b: {input: 1}}",
            "config.yaml:1: prices.a/b.output: is missing (What it writes, thoughts included); write it here",
        ),
        (
            "quick_commands:\n  load: {type: exec, command: uptime | cut -c1}",
            "config.yaml:2: quick_commands.load.command: \"uptime | cut -c1\" needs a shell; add shell: true, or put the words that mean themselves in quotes",
        ),
        (
            "quick_commands: {x: {type: exec, command: echo 'a}}",
            "config.yaml:1: quick_commands.x.command: \"echo 'a\" has no words, or a quote that is not closed",
        ),
        (
            "quick_commands: {x: {type: alias}}",
            "config.yaml:1: quick_commands.x.target: is missing (The text that it stands for, with what follows the name behind it); write it here",
        ),
        (
            "files: {send_from: [reports]}",
            "config.yaml:1: files.send_from[0]: \"reports\" is not a whole path; write it like /srv/reports or ~/pictures",
        ),
        (
            "agent: {busy_input_mode: interupt}",
            "config.yaml:1: agent.busy_input_mode: \"interupt\" is not one of interrupt, queue, steer; did you mean interrupt?",
        ),
    ] {
        assert_eq!(problems(yaml, &[]), expected, "{yaml}");
    }
}

#[test]
fn what_makes_no_difference_is_said() {
    let warned = |yaml: &str| -> Vec<String> {
        loaded(yaml, &[]).warnings().iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        warned("session_reset: {notify_exclude_platforms: [webhook, pigoen]}"),
        [
            "config.yaml:1: session_reset.notify_exclude_platforms: \"pigoen\" is not a platform of this gateway; did you mean pigeon?"
        ]
    );
    assert_eq!(
        warned("accounts: {pigeon: {token: t, allow: [1], user_allowed_commands: [new]}}"),
        [
            "config.yaml:1: accounts.pigeon.user_allowed_commands: makes no difference as long as allow_admin_from names nobody"
        ]
    );
    assert_eq!(
        warned("accounts: {pigeon: {token: t, allow: [1, 2], allow_admin_from: [1]}}"),
        [
            "config.yaml:1: accounts.pigeon: command gating is off in groups of pigeon: all 2 who are named are administrators, who may restart and reload the gateway; name the administrators in accounts.pigeon.group_allow_admin_from"
        ]
    );
    assert_eq!(
        warned("accounts: {pigeon: {token: t, allow: [1, 2], group_allow_admin_from: [1]}}"),
        [
            "config.yaml:1: accounts.pigeon: command gating is off in direct chats of pigeon: all 2 who are named are administrators, who may restart and reload the gateway; name the administrators in accounts.pigeon.allow_admin_from"
        ]
    );
    let both = "accounts: {pigeon: {token: t, allow: [1, 2], allow_admin_from: [1], \
                group_allow_admin_from: [1]}}";
    assert_eq!(warned(both), [""; 0]);
}

#[test]
fn who_shares_a_conversation_is_said_in_the_usual_words() {
    let loaded = loaded("group_sessions_per_user: false\nthread_sessions_per_user: true\n", &[]);
    assert_eq!(loaded.warnings(), []);
    let config = loaded.config();
    assert!(!config.group_sessions_per_user && config.thread_sessions_per_user);
}

#[test]
fn a_stop_forgets_unless_it_is_to_keep() {
    assert_eq!(config("").sessions.stop, AfterStop::Wipe);
    assert_eq!(config("sessions: {stop: keep}").sessions.stop, AfterStop::Keep);
}

#[test]
fn a_price_is_explained_although_its_name_has_dots() {
    let loaded = loaded("prices: {openai/gpt-5.5: {input: 1.25, output: 10}}", &[]);
    let explained = loaded.explain("prices.openai/gpt-5.5.input").expect("a setting").to_string();
    assert!(explained.starts_with("prices.openai/gpt-5.5.input = 1.25\n"), "{explained}");
}
