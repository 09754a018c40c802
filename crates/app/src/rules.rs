//! What applies to conversations: the configuration, resolved for each account and kind of chat.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use talaria_config::{
    AccountSettings, ApprovalMode, ApprovedBy, BusyInput, Config, DisplaySettings, EditedMessages,
    Loaded, QuickSettings, QuickWho, ResetSettings, ToolProgress,
};
use talaria_model::{AccountId, ChatKind};
use talaria_session::{
    Acks, AfterStop, Approvals, Approvers, Asking, Busy, COMMANDS, Edits, Footer, Notify, Quick,
    QuickCommand, ResetMode, ResetPolicy, Rules, Verbosity, Who,
};

/// Every kind of chat.
const KINDS: [ChatKind; 5] =
    [ChatKind::Dm, ChatKind::Group, ChatKind::Channel, ChatKind::Thread, ChatKind::Forum];

/// What applies where no account says anything else.
pub(crate) fn usual(config: &Config) -> Arc<Rules> {
    Arc::new(rules(config, &config.session_reset, notify(&config.session_reset)))
}

/// What applies on an account: what it says itself, else what the kind of chat says, else the usual.
pub(crate) fn of_account(
    config: &Config,
    account: &AccountSettings,
) -> BTreeMap<ChatKind, Arc<Rules>> {
    let of_kind = |kind: ChatKind| {
        let general = config.session_reset.clone();
        let by_kind = config.reset_by_type.get(&kind);
        let reset = by_kind.map_or(general.clone(), |by_kind| general.with(by_kind));
        let reset = reset.with(&account.session_reset);
        let excluded = reset.notify_exclude_platforms.iter();
        let notify = match excluded.clone().any(|name| name == account.platform.name) {
            true => Notify::Quietly,
            false => notify(&reset),
        };
        let edits = match account.hearing.edited_messages {
            EditedMessages::Ignore => Edits::Ignored,
            EditedMessages::Answer => Edits::Answered,
        };
        let (verbosity, footer) = told(config.display.with(&account.display));
        let usual = rules(config, &reset, notify);
        (kind, Arc::new(Rules { edits, verbosity, footer, ..usual }))
    };
    KINDS.into_iter().map(of_kind).collect()
}

fn rules(config: &Config, reset: &ResetSettings, notify: Notify) -> Rules {
    let agent = &config.agent;
    let (verbosity, footer) = told(config.display);
    Rules {
        verbosity,
        footer,
        turn_limit: agent.turn_limit,
        silence_limit: agent.silence_limit,
        question_limit: agent.question_limit,
        freshness: Duration::from_secs(agent.gateway_auto_continue_freshness.into()),
        room: config.limits.pending_per_session as usize,
        queue: config.limits.queued_per_session as usize,
        background: config.limits.background_per_session as usize,
        busy: match agent.busy_input_mode {
            BusyInput::Interrupt => Busy::Interrupt,
            BusyInput::Queue => Busy::Queue,
            BusyInput::Steer => Busy::Steer,
        },
        edits: Edits::default(),
        approvals: Approvals {
            asking: match config.approvals.mode {
                ApprovalMode::Ask => Asking::Asks,
                ApprovalMode::Off => Asking::Never,
                ApprovalMode::Deny => Asking::Refuses,
            },
            limit: config.approvals.limit,
            by: match config.approvals.by {
                ApprovedBy::Requester => Approvers::Requester,
                ApprovedBy::Admins => Approvers::Admins,
                ApprovedBy::Both => Approvers::Both,
            },
        },
        acks: if agent.busy_ack_enabled { Acks::Sent } else { Acks::Never },
        stop: match config.sessions.stop {
            talaria_config::AfterStop::Keep => AfterStop::Keep,
            talaria_config::AfterStop::Wipe => AfterStop::Wipe,
        },
        reset: ResetPolicy {
            mode: match reset.mode {
                talaria_config::ResetMode::Both => ResetMode::Both,
                talaria_config::ResetMode::Idle => ResetMode::Idle,
                talaria_config::ResetMode::Daily => ResetMode::Daily,
                talaria_config::ResetMode::None => ResetMode::Never,
            },
            at_hour: reset.at_hour,
            idle: Duration::from_secs(u64::from(reset.idle_minutes) * 60),
            notify,
        },
        voice: crate::voice::rules(config),
        zone: config.timezone.clone().unwrap_or_else(TimeZone::system),
        model: config.model.clone(),
        quick: config.quick_commands.iter().map(|(name, quick)| of_quick(name, quick)).collect(),
    }
}

fn told(display: DisplaySettings) -> (Verbosity, Footer) {
    let verbosity = match display.tool_progress {
        ToolProgress::Off => Verbosity::Off,
        ToolProgress::New => Verbosity::New,
        ToolProgress::All => Verbosity::All,
        ToolProgress::Verbose => Verbosity::Verbose,
    };
    (verbosity, if display.runtime_footer { Footer::On } else { Footer::Off })
}

fn notify(reset: &ResetSettings) -> Notify {
    if reset.notify { Notify::Tell } else { Notify::Quietly }
}

fn of_quick(name: &str, quick: &QuickSettings) -> QuickCommand {
    let (help, who, does, otherwise) = match quick {
        QuickSettings::Alias { target, help, who } => {
            (help, who, Quick::Alias(target.clone()), format!("the same as {target}"))
        }
        QuickSettings::Exec { help, who, .. } => {
            (help, who, Quick::Run, "run a program of the operator".to_owned())
        }
    };
    QuickCommand {
        name: name.to_owned(),
        help: help.clone().unwrap_or(otherwise),
        who: match who {
            QuickWho::Anyone => Who::Anyone,
            QuickWho::Admin => Who::Admin,
        },
        does,
    }
}

/// What is odd about the commands that a configuration names.
pub(crate) fn oddities(loaded: &Loaded) -> Vec<String> {
    let config = loaded.config();
    let built_in = |name: &str| {
        let name = name.replace('_', "-");
        COMMANDS.iter().any(|command| command.names().any(|known| known == name))
    };
    let mut odd = Vec::new();
    let mut say = |path: String, expectation: String| {
        let place = loaded.origin(&path).and_then(|origin| origin.place());
        let place = place.map(|place| match place.line {
            Some(line) => format!("{}:{line}: ", place.file),
            None => format!("{}: ", place.file),
        });
        odd.push(format!("{}{path}: {expectation}", place.unwrap_or_default()));
    };
    for name in config.quick_commands.keys().filter(|name| built_in(name)) {
        let path = format!("quick_commands.{name}.type");
        say(
            path,
            format!("/{name} is a command of the gateway, which goes first; choose another name"),
        );
    }
    let mut unknown = |account: &AccountId, key: &str, names: &BTreeSet<String>| {
        let is_known = |name: &str| built_in(name) || config.quick_commands.contains_key(name);
        for name in names.iter().filter(|name| !is_known(name)) {
            say(format!("accounts.{account}.{key}"), format!("there is no command /{name}"));
        }
    };
    for (account, settings) in &config.accounts {
        unknown(account, "group_user_allowed_commands", &settings.group.allowed);
        if settings.direct.allowed != settings.group.allowed {
            unknown(account, "user_allowed_commands", &settings.direct.allowed);
        }
    }
    odd
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_config::Sources;

    fn loaded(yaml: &str) -> Loaded {
        let sources = Sources::default().with_config(yaml);
        talaria_config::load(sources, talaria_platforms::ALL).expect("it is right")
    }

    fn of(yaml: &str, account: &str, kind: ChatKind) -> Arc<Rules> {
        let loaded = loaded(yaml);
        let config = loaded.config();
        let id = AccountId::new(account).expect("a name");
        of_account(config, &config.accounts[&id])[&kind].clone()
    }

    #[test]
    fn nothing_configured_is_what_the_session_does_by_itself() {
        let usual = usual(loaded("timezone: UTC").config());
        assert_eq!(*usual, Rules { zone: TimeZone::get("UTC").unwrap(), ..Rules::default() });
    }

    #[test]
    fn an_account_goes_before_a_kind_of_chat_and_that_before_the_rest() {
        let yaml = "\
session_reset: {mode: daily, at_hour: 6}
reset_by_type: {group: {mode: idle, idle_minutes: 10}}
accounts:
  bench: {platform: loopback, address: '127.0.0.1:1', allow: [a], session_reset: {idle_minutes: 99}}
";
        let group = of(yaml, "bench", ChatKind::Group).reset;
        assert_eq!((group.mode, group.idle), (ResetMode::Idle, Duration::from_secs(99 * 60)));
        let direct = of(yaml, "bench", ChatKind::Dm).reset;
        assert_eq!((direct.mode, direct.at_hour), (ResetMode::Daily, 6));
    }

    #[test]
    fn nobody_is_told_where_nobody_reads_along() {
        let yaml = "session_reset: {notify_exclude_platforms: [loopback]}\n\
                    accounts: {loopback: {address: '127.0.0.1:1', allow: [a]}}\n";
        assert_eq!(of(yaml, "loopback", ChatKind::Dm).reset.notify, Notify::Quietly);
        assert_eq!(of(yaml, "web", ChatKind::Dm).reset.notify, Notify::Tell);
        let silent = of("session_reset: {notify: false}", "web", ChatKind::Dm);
        assert_eq!(silent.reset.notify, Notify::Quietly);
    }

    #[test]
    fn commands_that_are_not_there_are_named_with_their_line() {
        let yaml = "\
quick_commands:
  new: {type: alias, target: hello}
  hi: {type: alias, target: hello}
accounts:
  loopback:
    address: '127.0.0.1:1'
    allow: [a]
    allow_admin_from: [a]
    user_allowed_commands: [hi, usage, restrat]
";
        assert_eq!(
            oddities(&loaded(yaml)),
            [
                "config.yaml:2: quick_commands.new.type: /new is a command of the gateway, which goes first; choose another name",
                "config.yaml:9: accounts.loopback.user_allowed_commands: there is no command /restrat",
            ]
        );
    }
}
