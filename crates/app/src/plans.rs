//! What the configuration says of conversations and accounts, as the gateway takes it.

use std::sync::Arc;
use std::time::Duration;

use talaria_config::{
    AccountSettings, AdminsUnlessNamed, AllowBots, CommandSettings, Config, ReadBystanders,
    ReplyToMode, RoomAccess, TransportSetting, UnauthorizedDm,
};
use talaria_gateway::{AccountPlan, Manner, Replies, Streaming, Transport};
use talaria_model::AccountId;
use talaria_platform::Identity;
use talaria_session::{
    Access, Bots, Bystanders, Chatter, Elsewhere, Gate, GroupSessions, Mention, Places, Policy,
    RoomRules, Scope, Strangers, Surface, ThreadSessions, Threads, Tiers, Unnamed,
};

use crate::exit::Halt;
use crate::home::Home;
use crate::locks::Locks;
use crate::{people, rules};

pub(crate) fn scope(config: &Config) -> Scope {
    Scope {
        groups: if config.group_sessions_per_user {
            GroupSessions::PerMember
        } else {
            GroupSessions::Shared
        },
        threads: if config.thread_sessions_per_user {
            ThreadSessions::PerMember
        } else {
            ThreadSessions::Shared
        },
    }
}

pub(crate) fn accounts(
    home: &Home,
    config: &Config,
    locks: &Option<Locks>,
) -> Result<Vec<AccountPlan>, Halt> {
    config.accounts.keys().filter_map(|id| plan(home, config, locks, id).transpose()).collect()
}

/// How an account is set up. None if it is not configured, or not to be connected.
pub(crate) fn plan(
    home: &Home,
    config: &Config,
    locks: &Option<Locks>,
    id: &AccountId,
) -> Result<Option<AccountPlan>, Halt> {
    let Some(settings) = config.accounts.get(id) else { return Ok(None) };
    let Some(mut account) = settings.account.clone() else { return Ok(None) };
    if !account.credentials.is_empty() {
        let Some(locks) = locks else {
            return Err(Halt::failed(
                "cannot tell whether another gateway uses the same bots, because no folder for \
                 their locks is known; set HOME or TALARIA_GATEWAY_LOCK_DIR",
            ));
        };
        let claims = locks.claims(account.spec.name, &account.credentials, id, home.path());
        account = account.claiming(move || claims.take());
    }
    let folder = home.account(id.as_str());
    std::fs::create_dir_all(&folder)
        .map_err(|error| Halt::failed(format_args!("cannot make {}: {error}", folder.display())))?;
    Ok(Some(AccountPlan {
        id: AccountId::clone(id),
        account,
        access: access(config, id, settings),
        gate: gate(settings),
        rules: rules::of_account(config, settings),
        manner: Arc::new(manner(config, settings)),
        folder,
    }))
}

/// Lets an account that is set up already hear whom the configuration names, and answer what it says.
pub(crate) fn hears(config: &Config, plan: &mut AccountPlan) {
    let settings = config.accounts.get(&plan.id);
    // Ids of another platform would name other people.
    let settings = settings.filter(|found| found.platform.name == plan.account.spec.name);
    if let Some(settings) = settings {
        plan.access = access(config, &plan.id, settings);
        plan.gate = gate(settings);
    }
}

fn manner(config: &Config, settings: &AccountSettings) -> Manner {
    let streaming = config.streaming.clone().with(&settings.streaming);
    let fresh_final_after = Duration::from_secs(streaming.fresh_final_after_seconds.into());
    Manner {
        streaming: Streaming {
            transport: match streaming.transport {
                TransportSetting::Auto => Transport::Auto,
                TransportSetting::Draft => Transport::Draft,
                TransportSetting::Edit => Transport::Edit,
                TransportSetting::Off => Transport::Off,
            },
            edit_interval: Duration::from_secs_f64(streaming.edit_interval),
            buffer_threshold: streaming.buffer_threshold as usize,
            cursor: streaming.cursor,
            fresh_final_after: (!fresh_final_after.is_zero()).then_some(fresh_final_after),
        },
        replies: match settings.reply_to_mode {
            ReplyToMode::Off => Replies::Off,
            ReplyToMode::First => Replies::First,
            ReplyToMode::All => Replies::All,
        },
    }
}

pub(crate) fn access(config: &Config, id: &AccountId, settings: &AccountSettings) -> Access {
    let named = &settings.access;
    let room = |heard: &RoomAccess, commands: &CommandSettings| RoomRules {
        policy: match heard.doors {
            talaria_config::Doors::Open => Policy::Open,
            talaria_config::Doors::Guarded => Policy::Named,
            talaria_config::Doors::Closed => Policy::Disabled,
        },
        listed: heard.allow.clone(),
        roles: heard.roles.clone(),
        tiers: Arc::new(Tiers {
            admins: commands.admins.clone(),
            others: commands.allowed.clone(),
            unnamed: match commands.unnamed {
                AdminsUnlessNamed::Listed => Unnamed::Listed,
                AdminsUnlessNamed::Everyone => Unnamed::Everyone,
            },
        }),
    };
    Access {
        surface: match settings.platform.identity {
            Identity::Operator => Surface::Own,
            Identity::Anyone => Surface::Platform,
        },
        listed: named.allow.clone(),
        general: named.general.clone(),
        direct: room(&named.direct, &settings.direct),
        group: room(&named.group, &settings.group),
        strangers: match named.strangers {
            Some(UnauthorizedDm::Pair) => Strangers::Pair,
            Some(UnauthorizedDm::Ignore) | None => Strangers::Ignore,
        },
        people: people::of_account(config, id),
        budgets: people::budgets(config),
    }
}

pub(crate) fn gate(settings: &AccountSettings) -> Gate {
    let hearing = &settings.hearing;
    Gate {
        mention: if hearing.require_mention { Mention::Required } else { Mention::Unneeded },
        threads: if hearing.thread_require_mention { Threads::LikeChats } else { Threads::Joined },
        patterns: hearing.mention_patterns.clone(),
        elsewhere: if hearing.guest_mode { Elsewhere::WhenMentioned } else { Elsewhere::Never },
        free: Places(hearing.free_response_chats.clone()),
        allowed: Places(hearing.allowed_chats.clone()),
        ignored: Places(hearing.ignored_chats.clone()),
        bots: match hearing.allow_bots {
            AllowBots::None => Bots::Never,
            AllowBots::Mentions => Bots::WhenMentioned,
            AllowBots::All => Bots::LikePeople,
        },
        exchanges: hearing.bot_messages_per_minute,
        chatter: match hearing.observe_unmentioned {
            true => Chatter::Overheard,
            false => Chatter::Ignored,
        },
        bystanders: match hearing.bystanders {
            ReadBystanders::Heard => Bystanders::Heard,
            ReadBystanders::Everyone => Bystanders::Everyone,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_config::Sources;
    use talaria_model::{RoleId, Sender, SenderId};
    use talaria_session::{Caller, Deed, Footing, Reach, Room, Rule, Who};

    fn of(yaml: &str, account: &str) -> Access {
        let sources = Sources::default().with_config(yaml);
        let loaded = talaria_config::load(sources, talaria_platforms::ALL).expect("it is right");
        let id = AccountId::new(account).expect("a name");
        access(loaded.config(), &id, &loaded.config().accounts[&id])
    }

    #[test]
    fn people_roles_and_budgets_let_nobody_in() {
        let more = "people: {mallory: {identities: [loopback/mallory], role: boss}}\n\
                    roles: {boss: {commands: [reload, restart], budget: {messages: 1000}}}\n\
                    budgets: {person: {messages: 9}, guest: {messages: 9}, chat: {messages: 9}}\n";
        for keys in ["", "allow: [ann]", "dm_policy: pairing", "allow_admin_from: [mallory]"] {
            let access = of(&format!("{more}{}", bench(keys)), "loopback");
            assert!(access.person(&SenderId::literal("mallory")).is_some());
            for room in Room::ALL {
                assert_eq!(footing(&access, "mallory", room), Footing::Stranger, "{keys}");
            }
        }
    }

    #[test]
    fn the_documented_example_makes_you_an_administrator_and_anna_one_of_the_family() {
        let page = include_str!("../../../docs/people.md");
        let example = page.split_once("```yaml\n").and_then(|(_, rest)| rest.split_once("```"));
        let (example, _) = example.expect("an example");
        let mut sources = Sources::default().with_config(example);
        for (name, value) in [
            ("TELEGRAM_BOT_TOKEN", "123456:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
            ("DISCORD_BOT_TOKEN", "a.b.c"),
            ("SLACK_BOT_TOKEN", "xoxb-1"),
            ("SLACK_APP_TOKEN", "xapp-1"),
        ] {
            sources = sources.with_variable(name, value);
        }
        let loaded = talaria_config::load(sources, talaria_platforms::ALL).expect("it is right");
        let id = AccountId::literal("telegram");
        let access = access(loaded.config(), &id, &loaded.config().accounts[&id]);
        for room in Room::ALL {
            assert_eq!(footing(&access, "42", room), Footing::Admin, "{room:?}");
            assert_eq!(footing(&access, "123456789", room), Footing::Listed, "{room:?}");
            assert_eq!(footing(&access, "7", room), Footing::Stranger, "{room:?}");
        }
        let anna = access.person(&SenderId::literal("123456789")).expect("is known");
        assert!(anna.may_give("model") && !anna.may_give("restart"));
        let warnings: Vec<_> = loaded.warnings().iter().map(ToString::to_string).collect();
        assert!(!warnings.iter().any(|it| it.contains("command gating")), "{warnings:?}");
    }

    fn bench(keys: &str) -> String {
        format!("accounts: {{loopback: {{address: '127.0.0.1:1', {keys}}}}}\n")
    }

    fn footing(access: &Access, who: &'static str, room: Room) -> Footing {
        let sender = Sender::new(SenderId::literal(who));
        access.footing(Caller { sender: &sender, roles: &[], room, grant: None }).0
    }

    /// Settings of an account that name nobody but ann and ben, and do not say that everybody is heard.
    const KEYS: [&str; 29] = [
        "allow: [ann]",
        "allow_from: [ann, ben]",
        "group_allow_from: [ben]",
        "allow_admin_from: [mallory]",
        "group_allow_admin_from: [mallory, ann]",
        "user_allowed_commands: [restart, status]",
        "group_user_allowed_commands: [reload]",
        "admins_unless_named: everyone",
        "dm_policy: open",
        "dm_policy: pairing",
        "dm_policy: allowlist",
        "dm_policy: disabled",
        "group_policy: open",
        "group_policy: allowlist",
        "group_policy: disabled",
        "unauthorized_dm_behavior: pair",
        "unauthorized_dm_behavior: ignore",
        "guest_mode: true",
        "require_mention: false",
        "free_response_chats: [den]",
        "allowed_chats: [den]",
        "observe_unmentioned: true",
        "bystanders: everyone",
        "allow_bots: all",
        "bot_messages_per_minute: 1000",
        "edited_messages: answer",
        "ignored_chats: [den]",
        "mention_patterns: ['.']",
        "thread_require_mention: false",
    ];

    /// Settings of an account that say in so many words that everybody is heard.
    const GRANTS: [&str; 1] = ["allow_everyone"];

    /// Those that are about something else than who speaks to whom.
    const ELSEWHERE: [&str; 11] = [
        "address",
        "buttons",
        "display",
        "edits_every",
        "enabled",
        "keyed",
        "platform",
        "reply_to_mode",
        "session_reset",
        "streaming",
        "text_limit",
    ];

    /// The same of whole sections.
    const SECTIONS: [&str; 8] = [
        "access: {allow: [ben]}",
        "access: {unauthorized_dm_behavior: pair}",
        "people: {mallory: {identities: [loopback/mallory], role: boss}}\n\
         roles: {boss: {commands: [reload, restart], tools: [session_search]}}",
        "budgets: {guest: {messages: 9}}",
        "approvals: {by: both}",
        "group_sessions_per_user: false",
        "thread_sessions_per_user: true",
        "destinations: {den: {account: loopback, chat: den, kind: group}}",
    ];

    /// Sections that are about something else than people.
    const OTHER_SECTIONS: [&str; 25] = [
        "accounts",
        "agent",
        "compression",
        "display",
        "entry_max_age_days",
        "fallback",
        "files",
        "http",
        "limits",
        "log",
        "model",
        "network",
        "prices",
        "privacy",
        "providers",
        "quick_commands",
        "reset_by_type",
        "session_reset",
        "session_store_max_age_days",
        "sessions",
        "streaming",
        "telemetry",
        "timezone",
        "voice",
        "watch_config",
    ];

    /// What stands before the first colon.
    fn name(setting: &str) -> &str {
        setting.split(':').next().unwrap_or(setting)
    }

    #[test]
    fn whoever_adds_a_setting_says_whether_it_is_about_who_is_heard() {
        let schema = talaria_config::schema(talaria_platforms::ALL);
        let names = |properties: &serde_json::Value| -> Vec<String> {
            properties["properties"].as_object().expect("settings").keys().cloned().collect()
        };
        let about_people: Vec<&str> = KEYS.iter().map(|key| name(key)).collect();
        for key in names(&schema["$defs"]["loopback"]) {
            let lists = [&about_people[..], &GRANTS, &ELSEWHERE];
            let known = lists.iter().filter(|list| list.contains(&key.as_str())).count();
            assert_eq!(known, 1, "accounts.*.{key} is to be in one of the lists");
        }
        let about_people: Vec<&str> = SECTIONS
            .iter()
            .flat_map(|section| section.lines())
            .map(|line| name(line.trim()))
            .collect();
        for section in names(&schema) {
            let lists = [&about_people[..], &OTHER_SECTIONS];
            let known = lists.iter().filter(|list| list.contains(&section.as_str())).count();
            assert_eq!(known, 1, "{section} is to be in one of the lists");
        }
        for key in names(&schema["$defs"]["AccessSettings"]) {
            let is_tried = SECTIONS.iter().any(|section| section.contains(&format!("{{{key}:")));
            assert!(is_tried || GRANTS.contains(&key.as_str()), "access.{key} is to be tried");
        }
    }

    #[test]
    fn each_of_these_is_a_setting() {
        for key in KEYS.into_iter().filter(|key| !key.ends_with(": open")) {
            of(&bench(key), "loopback");
        }
        for section in SECTIONS {
            of(&format!("{section}\n{}", bench("")), "loopback");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_setting_lets_anybody_in_whom_it_does_not_name(
            keys in proptest::sample::subsequence(KEYS.to_vec(), 0..6),
            sections in proptest::sample::subsequence(SECTIONS.to_vec(), 0..3),
        ) {
            let yaml = format!("{}\n{}", sections.join("\n"), bench(&keys.join(", ")));
            let sources = Sources::default().with_config(&yaml);
            let id = AccountId::new("loopback").unwrap();
            // What is refused lets nobody in at all.
            if let Ok(loaded) = talaria_config::load(sources, talaria_platforms::ALL) {
                let access = access(loaded.config(), &id, &loaded.config().accounts[&id]);
                for room in Room::ALL {
                    let footing = footing(&access, "mallory", room);
                    let is_out = matches!(footing, Footing::Stranger | Footing::Nobody);
                    proptest::prop_assert!(is_out, "{:?} in {:?}: {}", footing, room, yaml);
                }
            }
        }
    }

    #[test]
    fn a_role_that_lets_people_in_is_a_list() {
        let discord = |keys: &str| format!("accounts: {{discord: {{token: 'a.b.c'{keys}}}}}\n");
        let strangers = |keys: &str| of(&discord(keys), "discord").strangers;
        assert_eq!(strangers(""), Strangers::Pair);
        assert_eq!(strangers(", allowed_roles: ['901']"), Strangers::Ignore);
        assert_eq!(strangers(", allowed_roles: ['901'], dm_policy: pairing"), Strangers::Pair);
    }

    #[test]
    fn a_role_lets_people_in_where_the_account_names_it() {
        let let_in = |keys: &str, role: &'static str, room| {
            let access =
                of(&format!("accounts: {{discord: {{token: 'a.b.c'{keys}}}}}\n"), "discord");
            let sender = Sender::new(SenderId::literal("carla"));
            let roles = [RoleId::literal(role)];
            let caller = Caller { sender: &sender, roles: &roles, room, grant: None };
            access.footing(caller).1 == Rule::Role
        };
        let named = ", allowed_roles: ['901']";
        let directly = ", allowed_roles: ['901'], dm_role_auth_guild: '41'";
        assert!(let_in(named, "901", Room::Group));
        assert!(!let_in(named, "902", Room::Group) && !let_in("", "901", Room::Group));
        assert!(let_in(directly, "41/901", Room::Direct));
        let out = ", allowed_roles: ['901'], enabled: false";
        assert!(let_in(out, "901", Room::Group), "who is known there while it is taken out");
        for (keys, role) in
            [(named, "901"), (named, "41/901"), (directly, "42/901"), (directly, "901")]
        {
            assert!(!let_in(keys, role, Room::Direct), "{keys}: {role}");
        }
    }

    #[test]
    fn the_operator_may_do_everything_and_others_what_they_are_allowed() {
        let yaml =
            bench("allow: [ann, ben], allow_admin_from: [ann], user_allowed_commands: [/usage]");
        let access = of(&yaml, "loopback");
        let may = |who: &'static str, room, name, rank| {
            let sender = Sender::new(SenderId::literal(who));
            let caller = Caller { sender: &sender, roles: &[], room, grant: None };
            access.authority(caller).may_give(name, rank)
        };
        assert!(may("ann", Room::Direct, "restart", Who::Admin));
        assert!(may("ben", Room::Direct, "usage", Who::Anyone));
        assert!(!may("ben", Room::Direct, "new", Who::Anyone));
        assert!(may("ben", Room::Group, "restart", Who::Admin), "groups have a list of their own");
        assert_eq!(footing(&of(&yaml, "web"), "ben", Room::Direct), Footing::Operator);
    }

    #[test]
    fn who_is_heard_is_what_the_configuration_says() {
        use Footing::{Admin, Guest, Nobody, Stranger};
        use Room::{Direct, Group};
        for (keys, who, room, expected) in [
            ("", "ann", Direct, Stranger),
            ("allow: [ann]", "ann", Group, Admin),
            ("allow_from: [ann]", "ann", Direct, Admin),
            ("allow_from: [ann]", "ann", Group, Stranger),
            ("group_allow_from: [ann]", "ann", Group, Admin),
            ("group_allow_from: [ann]", "ann", Direct, Stranger),
            ("allow_everyone: true", "ann", Direct, Guest),
            ("allow_everyone: true", "ann", Group, Guest),
            ("allow_everyone: true, group_policy: allowlist", "ann", Group, Stranger),
            ("allow_everyone: true, dm_policy: pairing", "ann", Direct, Stranger),
            ("allow_everyone: true, admins_unless_named: everyone", "ann", Group, Admin),
            (
                "allow_everyone: true, admins_unless_named: everyone, group_allow_admin_from: [ben]",
                "ann",
                Group,
                Guest,
            ),
            ("admins_unless_named: everyone", "ann", Direct, Stranger),
            ("allow: [ann], group_policy: disabled", "ann", Group, Nobody),
            ("allow: [ann], dm_policy: disabled", "ann", Direct, Nobody),
        ] {
            assert_eq!(footing(&of(&bench(keys), "loopback"), who, room), expected, "{keys}");
        }
        let general = format!("access: {{allow: [ann]}}\n{}", bench(""));
        assert_eq!(footing(&of(&general, "loopback"), "ann", Group), Admin);
        let open = format!("access: {{allow_everyone: true}}\n{}", bench(""));
        assert_eq!(footing(&of(&open, "loopback"), "ann", Group), Guest);
    }

    #[test]
    fn strangers_are_given_codes_unless_somebody_is_named() {
        use Strangers::{Ignore, Pair};
        for (general, keys, expected) in [
            ("{}", "", Pair),
            ("{}", "allow: [ann]", Ignore),
            ("{}", "allow_from: [ann]", Ignore),
            ("{}", "group_allow_from: [ann]", Ignore),
            ("{allow: [ann]}", "", Ignore),
            ("{}", "allow: [ann], dm_policy: pairing", Pair),
            ("{}", "dm_policy: allowlist", Ignore),
            ("{}", "allow: [ann], unauthorized_dm_behavior: pair", Pair),
            ("{}", "unauthorized_dm_behavior: ignore", Ignore),
            ("{unauthorized_dm_behavior: ignore}", "", Ignore),
            ("{unauthorized_dm_behavior: pair}", "allow: [ann]", Pair),
            ("{unauthorized_dm_behavior: ignore}", "unauthorized_dm_behavior: pair", Pair),
            ("{unauthorized_dm_behavior: pair}", "dm_policy: allowlist", Ignore),
        ] {
            let yaml = format!("access: {general}\n{}", bench(keys));
            assert_eq!(of(&yaml, "loopback").strangers, expected, "{yaml}");
        }
    }

    /// Every two settings together, and all of them, with somebody whom none of them names.
    #[test]
    fn no_setting_lets_in_who_is_not_named_but_the_word_for_everybody() {
        let settings = [
            "allow: [ann]",
            "allow_from: [ann]",
            "group_allow_from: [ann]",
            "allow_admin_from: [mallory]",
            "group_allow_admin_from: [mallory]",
            "user_allowed_commands: [restart]",
            "admins_unless_named: everyone",
            "dm_policy: pairing",
            "group_policy: allowlist",
            "unauthorized_dm_behavior: pair",
            "require_mention: false",
            "allow_bots: all",
            "free_response_chats: ['*']",
        ];
        let all = (1_u32 << settings.len()) - 1;
        for chosen in (0..=all).filter(|chosen| chosen.count_ones() <= 2 || *chosen == all) {
            let on = (0..settings.len()).filter(|place| chosen & (1 << place) != 0);
            let keys: Vec<_> = on.map(|place| settings[place]).collect();
            let access = of(&bench(&keys.join(", ")), "loopback");
            for room in Room::ALL {
                let found = footing(&access, "mallory", room);
                assert_eq!(found, Footing::Stranger, "{keys:?} {room:?}");
                let sender = Sender::new(SenderId::literal("mallory"));
                let grant = Some(Reach::Direct);
                let caller = Caller { sender: &sender, roles: &[], room, grant };
                let heard = access.authority(caller).may(Deed::Speak);
                assert_eq!(heard, room == Room::Direct, "a pairing is a grant: {keys:?}");
            }
        }
    }
}
