//! The menu of commands beside the text field. It is set when it has changed, which a digest on disk
//! tells.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use talaria_platform::MenuItem;

use super::client::Client;
use super::encode::arguments;
use super::refusal::Repeat;
use crate::wire::registered::Registered;

/// How many commands are in the menu. A hundred are allowed, but fewer fit into what Telegram stores.
const MOST: usize = 60;

const LONGEST_NAME: usize = 32;

const LONGEST_HELP: usize = 256;

/// Who sees it. Each of these hides the ones after it, so that an older menu in one of them would stay.
const SCOPES: [&str; 3] = ["all_private_chats", "all_group_chats", "default"];

const FILE: &str = "menu.sha256";

const ASK: Duration = Duration::from_secs(30);

/// Sets the menu, unless it is set already. That it could not be set is no reason to stop: everything
/// in it can be typed.
pub(super) async fn publish(client: Arc<Client>, folder: &Path, menu: &[MenuItem]) {
    let commands = encode(menu);
    if commands.is_empty() {
        return;
    }
    let registered = Registered::new(folder, FILE, &json!([client.bot(), commands]));
    if registered.is_known().await {
        return;
    }
    for scope in SCOPES {
        let body = arguments(json!({ "commands": commands, "scope": { "type": scope } }));
        if let Err(failure) = client.ask::<bool>("setMyCommands", &body, ASK).await {
            let error = failure.of_act(Repeat::Invisible);
            tracing::warn!(%error, scope, "the menu of commands was not set");
            return;
        }
    }
    registered.remember().await;
}

/// The commands as Telegram takes them.
fn encode(menu: &[MenuItem]) -> Vec<Value> {
    let mut names = Vec::new();
    let mut encoded = Vec::new();
    for item in menu.iter().filter(|item| item.is_public()) {
        let name = plain(&item.name);
        let help: String = item.help.trim().chars().take(LONGEST_HELP).collect();
        if name.is_empty() || names.contains(&name) || encoded.len() == MOST {
            continue;
        }
        let help = if help.is_empty() { name.clone() } else { help };
        encoded.push(json!({ "command": name, "description": help }));
        names.push(name);
    }
    encoded
}

/// A name of `a-z 0-9 _` only.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        match c {
            'a'..='z' | '0'..='9' => plain.push(c),
            '-' | '_' | ' ' if !plain.is_empty() && !plain.ends_with('_') => plain.push('_'),
            _ => {}
        }
    }
    plain.truncate(LONGEST_NAME);
    plain.trim_end_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use talaria_platform::Offered;

    use super::*;

    fn command(name: &str, help: &str) -> MenuItem {
        MenuItem {
            name: name.into(),
            aliases: Vec::new(),
            arguments: String::new(),
            help: help.into(),
            to: Offered::Everyone,
        }
    }

    #[test]
    fn names_become_what_telegram_takes() {
        for (name, expected) in [
            ("new", "new"),
            ("Reload-MCP", "reload_mcp"),
            ("--a--b--", "a_b"),
            ("日本", ""),
            (&"x".repeat(40), &"x".repeat(32)),
        ] {
            assert_eq!(plain(name), *expected);
        }
    }

    #[test]
    fn a_menu_has_each_name_once_and_not_too_many() {
        let mut commands =
            vec![command("a-b", "first"), command("a_b", "second"), command("c", "")];
        commands
            .push(MenuItem { to: Offered::Administrators, ..command("restart", "not for all") });
        let encoded = encode(&commands);
        let expected = json!([
            { "command": "a_b", "description": "first" },
            { "command": "c", "description": "c" },
        ]);
        assert_eq!(json!(encoded), expected);
        commands.extend((0..200).map(|n| command(&format!("n{n}"), "x")));
        assert_eq!(encode(&commands).len(), MOST);
    }
}
