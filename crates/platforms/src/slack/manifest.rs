//! The description of an app that a person pastes into Slack's settings, so that nothing has to be
//! clicked together.

use serde_json::{Value, json};
use talaria_platform::{MenuItem, Offered};

use super::workspaces::SCOPES;

/// Slack takes no more commands of one app.
const MOST_COMMANDS: usize = 50;

/// The longest name of a command, with its slash.
const LONGEST_COMMAND: usize = 32;

/// Names that Slack keeps for itself.
const TAKEN: &[&str] = &[
    "away",
    "collapse",
    "dnd",
    "expand",
    "feed",
    "join",
    "leave",
    "me",
    "msg",
    "mute",
    "open",
    "pro",
    "remind",
    "search",
    "shortcuts",
    "shrug",
    "status",
    "topic",
    "who",
];

/// What an app is to be.
#[derive(Debug, Clone, Copy)]
pub struct App<'a> {
    /// As people see it.
    pub name: &'a str,
    /// One line about it.
    pub description: &'a str,
    /// The command that reaches every other one, without its slash.
    pub slash_command: &'a str,
    /// Commands of which those for everybody get a name of their own, as far as Slack lets them.
    pub menu: &'a [MenuItem],
    /// How it hears.
    pub hears: Hears<'a>,
    /// How it looks in Slack.
    pub view: View,
}

/// How an app hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hears<'a> {
    /// It connects to Slack.
    SocketMode,
    /// Slack sends requests to this address.
    EventsApi(&'a str),
}

/// How an app looks in Slack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// As a bot that is written to like a person.
    Bot,
    /// As an agent with a panel of its own. Then guests cannot use it.
    Agent,
}

/// The manifest of an app, as Slack reads it.
pub fn manifest(app: &App<'_>) -> Value {
    let url = match app.hears {
        Hears::SocketMode => None,
        Hears::EventsApi(url) => Some(url),
    };
    let mut scopes: Vec<&str> = SCOPES.to_vec();
    let mut events = vec![
        "app_mention",
        "message.channels",
        "message.groups",
        "message.im",
        "message.mpim",
        "tokens_revoked",
        "app_uninstalled",
    ];
    let mut features = json!({
        "app_home": {
            "home_tab_enabled": false,
            "messages_tab_enabled": true,
            "messages_tab_read_only_enabled": false,
        },
        "bot_user": { "display_name": shortened(app.name, 80), "always_online": true },
        "slash_commands": slash_commands(app, url),
    });
    if app.view == View::Agent {
        scopes.push("assistant:write");
        events.extend(["app_home_opened", "app_context_changed", "agent_session_stopped"]);
        let about = shortened(app.description, 300);
        features["agent_view"] = json!({ "agent_description": about });
    }
    scopes.sort_unstable();
    let mut settings = json!({
        "event_subscriptions": { "bot_events": events },
        "interactivity": { "is_enabled": true },
        "org_deploy_enabled": false,
        "socket_mode_enabled": url.is_none(),
        "token_rotation_enabled": false,
    });
    if let Some(url) = url {
        settings["event_subscriptions"]["request_url"] = json!(url);
        settings["interactivity"]["request_url"] = json!(url);
    }
    json!({
        "display_information": {
            "name": shortened(app.name, 35),
            "description": shortened(app.description, 140),
        },
        "features": features,
        "oauth_config": { "scopes": { "bot": scopes } },
        "settings": settings,
    })
}

fn slash_commands(app: &App<'_>, url: Option<&str>) -> Vec<Value> {
    let own = MenuItem {
        name: app.slash_command.into(),
        aliases: Vec::new(),
        arguments: "command [arguments]".into(),
        help: "Give a command; /help lists them".into(),
        to: Offered::Everyone,
    };
    let is_free = |item: &&MenuItem| {
        let name = item.name.as_str();
        item.is_public() && !TAKEN.contains(&name) && name != app.slash_command
    };
    let fits = |item: &&MenuItem| {
        let name = item.name.as_str();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        !name.is_empty() && name.len() < LONGEST_COMMAND && name.chars().all(plain)
    };
    let others = app.menu.iter().filter(is_free);
    let commands = std::iter::once(&own).chain(others).filter(fits).take(MOST_COMMANDS);
    let commands = commands.map(|command| {
        let mut entry = json!({
            "command": format!("/{}", command.name),
            "description": shortened(&command.help, 2_000),
            "should_escape": true,
        });
        if !command.arguments.is_empty() {
            entry["usage_hint"] = json!(shortened(&command.arguments, 1_000));
        }
        if let Some(url) = url {
            entry["url"] = json!(url);
        }
        entry
    });
    commands.collect()
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const APP: App<'_> = App {
        name: "Talaria",
        description: "An agent in your chats.",
        slash_command: "talaria",
        menu: &[],
        hears: Hears::SocketMode,
        view: View::Bot,
    };

    fn item(name: &str, help: &str, arguments: &str) -> MenuItem {
        MenuItem {
            name: name.into(),
            aliases: Vec::new(),
            arguments: arguments.into(),
            help: help.into(),
            to: Offered::Everyone,
        }
    }

    #[test]
    fn an_app_on_a_connection_needs_no_address() {
        let expected: Value = serde_json::from_str(include_str!("fixtures/manifest.json")).unwrap();
        let menu = [
            item("stop", "Stop the answer", ""),
            item("status", "Slack has its own", ""),
            item("title", "Set the title", "[TITLE]"),
            item("Not A Name", "", ""),
            MenuItem { to: Offered::Administrators, ..item("restart", "Not for everybody", "") },
        ];
        assert_eq!(manifest(&App { menu: &menu, ..APP }), expected);
    }

    #[test]
    fn the_guide_shows_the_manifest_as_it_is() {
        let guide = include_str!("guide.md");
        let shown = guide.split("```json").nth(1).unwrap().split("```").next().unwrap();
        let shown: Value = serde_json::from_str(shown).unwrap();
        assert_eq!(manifest(&APP), shown);
    }

    #[test]
    fn an_app_on_requests_names_its_address_wherever_slack_asks_for_it() {
        let url = "https://example.org/in/slack";
        let made = manifest(&App { hears: Hears::EventsApi(url), ..APP });
        assert_eq!(made["settings"]["socket_mode_enabled"], json!(false));
        assert_eq!(made["settings"]["event_subscriptions"]["request_url"], json!(url));
        assert_eq!(made["settings"]["interactivity"]["request_url"], json!(url));
        for command in made["features"]["slash_commands"].as_array().unwrap() {
            assert_eq!(command["url"], json!(url));
        }
    }

    #[test]
    fn an_agent_has_a_panel_and_what_belongs_to_it() {
        let made = manifest(&App { view: View::Agent, ..APP });
        assert!(made["features"]["agent_view"]["agent_description"].is_string());
        let has = |list: &Value, entry: &str| list.as_array().unwrap().contains(&json!(entry));
        assert!(has(&made["oauth_config"]["scopes"]["bot"], "assistant:write"));
        assert!(has(
            &made["settings"]["event_subscriptions"]["bot_events"],
            "agent_session_stopped"
        ));
    }

    #[test]
    fn limits_of_slack_hold() {
        let help = "x".repeat(3_000);
        let mut menu: Vec<MenuItem> =
            (0..80).map(|number| item(&format!("command-{number}"), &help, "")).collect();
        menu.insert(0, item("a-name-that-is-much-too-long-for-slack", "", ""));
        let long = "ä".repeat(500);
        let made = manifest(&App { name: &long, description: &long, menu: &menu, ..APP });
        let length = |value: &Value| value.as_str().unwrap().chars().count();
        assert_eq!(length(&made["display_information"]["name"]), 35);
        assert_eq!(length(&made["display_information"]["description"]), 140);
        let commands = made["features"]["slash_commands"].as_array().unwrap();
        assert_eq!(commands.len(), 50);
        for command in commands {
            assert!(length(&command["command"]) <= 32 && length(&command["description"]) <= 2_000);
        }
    }
}
