//! The menu of slash commands that Discord shows: brought up to date only when it differs, because
//! clients that have the old one refuse a changed command until they have reloaded.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use talaria_clock::Clock;
use talaria_platform::MenuItem;

use super::refusal::RestError;
use super::rest::Rest;
use super::settings::{Settings, Syncing};
use super::snowflake::Snowflake;
use crate::wire::registered::Registered;

/// The most commands that an application may have.
const MOST: usize = 100;

/// The pause between two changes: Discord lets few of them pass.
const PAUSE: Duration = Duration::from_millis(4_500);

/// The longest wait that is taken to be worth it when Discord asks for one.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Brings the menu up to date.
pub(crate) struct Menu {
    pub(crate) rest: Arc<Rest>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) application: Snowflake,
    /// Where it is written down what the menu was last.
    pub(crate) folder: PathBuf,
    /// What is offered. Nothing: the menu is left alone.
    pub(crate) items: Arc<[MenuItem]>,
}

/// What became of the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Synced {
    /// It was already as it is to be.
    Unchanged,
    /// So many requests changed it.
    Changed(usize),
    /// It is not to be touched.
    Off,
}

impl Menu {
    /// Does it, and says so in the log.
    pub(crate) async fn keep(self) {
        match self.sync().await {
            Ok(Synced::Changed(requests)) => tracing::info!(requests, "slash commands changed"),
            Ok(Synced::Unchanged | Synced::Off) => {}
            Err(error) => tracing::warn!(?error, "slash commands stay as they were"),
        }
    }

    /// Brings the menu up to date.
    pub(crate) async fn sync(&self) -> Result<Synced, RestError> {
        // Without a list, nobody says what the menu is to be.
        if self.settings.command_sync_policy == Syncing::Off || self.items.is_empty() {
            return Ok(Synced::Off);
        }
        let wanted = self.wanted();
        let canonical: Vec<Value> = wanted.iter().map(canonical).collect();
        let menu = json!([self.application.to_string(), canonical]);
        let registered = Registered::new(&self.folder, "menu.sha256", &menu);
        if registered.is_known().await {
            return Ok(Synced::Unchanged);
        }
        let path = format!("/applications/{}/commands", self.application);
        let there: Vec<Value> = self.rest.get(&path).await?;
        let there: Vec<Value> = there.into_iter().filter(|it| kind(it) == 1).collect();
        let changed = match self.settings.command_sync_policy {
            Syncing::Bulk if same(&wanted, &there) => 0,
            Syncing::Bulk => {
                self.ask(|| self.rest.put(&path, Some(json!(wanted)))).await?;
                1
            }
            Syncing::Safe | Syncing::Off => self.change(&path, &wanted, &there).await?,
        };
        registered.remember().await;
        Ok(if changed == 0 { Synced::Unchanged } else { Synced::Changed(changed) })
    }

    fn wanted(&self) -> Vec<Value> {
        let permissions = self.settings.hide_slash_commands.then_some("0");
        let command = |command: &MenuItem| {
            let options = if command.arguments.trim().is_empty() {
                json!([])
            } else {
                let hint = cut(&format!("Arguments: {}", command.arguments));
                json!([{ "type": 3, "name": "args", "description": hint, "required": false }])
            };
            let help = if command.help.trim().is_empty() { &command.name } else { &command.help };
            json!({
                "name": command.name,
                "type": 1,
                "description": cut(help),
                "options": options,
                "contexts": [0, 1],
                "integration_types": [0],
                "default_member_permissions": permissions,
            })
        };
        let offered = self.items.iter().filter(|it| it.is_public() && is_name(&it.name));
        offered.take(MOST).map(command).collect()
    }

    /// Changes what differs. What is obsolete goes first, because the places are few.
    async fn change(
        &self,
        path: &str,
        wanted: &[Value],
        there: &[Value],
    ) -> Result<usize, RestError> {
        let mut changed = 0;
        for command in there.iter().filter(|it| named(wanted, it).is_none()) {
            let Some(id) = command["id"].as_str() else { continue };
            self.pause(&mut changed).await;
            let path = format!("{path}/{id}");
            self.ask(|| self.rest.delete(&path)).await?;
        }
        for command in wanted {
            match named(there, command) {
                None => {
                    self.pause(&mut changed).await;
                    self.ask(|| self.rest.post(path, command.clone())).await?;
                }
                Some(old) if canonical(old) != canonical(command) => {
                    let Some(id) = old["id"].as_str() else { continue };
                    self.pause(&mut changed).await;
                    let path = format!("{path}/{id}");
                    self.ask(|| self.rest.patch(&path, changes(command))).await?;
                }
                Some(_) => {}
            }
        }
        Ok(changed)
    }

    async fn pause(&self, changed: &mut usize) {
        if *changed > 0 {
            self.clock.sleep(PAUSE).await;
        }
        *changed += 1;
    }

    /// Asks, and again after the wait that Discord asks for.
    async fn ask<T, F>(&self, ask: impl Fn() -> F) -> Result<T, RestError>
    where
        F: Future<Output = Result<T, RestError>>,
    {
        match ask().await {
            Err(RestError::Throttled { after, .. }) if after <= LONGEST_WAIT => {
                self.clock.sleep(after).await;
                ask().await
            }
            answer => answer,
        }
    }
}

fn is_name(name: &str) -> bool {
    let fits = (1..=32).contains(&name.chars().count());
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '\'');
    fits && name.chars().all(|c| plain(c) && !c.is_uppercase())
}

fn cut(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(100).collect()
}

fn kind(command: &Value) -> u64 {
    command["type"].as_u64().unwrap_or(1)
}

fn named<'a>(commands: &'a [Value], like: &Value) -> Option<&'a Value> {
    commands.iter().find(|command| command["name"] == like["name"])
}

fn same(wanted: &[Value], there: &[Value]) -> bool {
    let alike = |it: &Value| named(there, it).is_some_and(|old| canonical(old) == canonical(it));
    wanted.len() == there.len() && wanted.iter().all(alike)
}

/// A command as it is changed. What kind it is stays, and is not said:
/// <https://discord.com/developers/docs/interactions/application-commands#edit-global-application-command>.
fn changes(command: &Value) -> Value {
    let mut changes = command.clone();
    if let Some(fields) = changes.as_object_mut() {
        fields.remove("type");
    }
    changes
}

/// What matters of a command: Discord's own answer has more fields, and defaults for missing ones.
fn canonical(command: &Value) -> Value {
    let sorted = |list: &Value| {
        let mut numbers: Vec<u64> =
            list.as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        numbers.sort_unstable();
        numbers
    };
    let options = command["options"].as_array().into_iter().flatten();
    let options: Vec<Value> = options
        .map(|option| {
            json!([
                option["type"],
                option["name"],
                option["description"],
                option["required"].as_bool().unwrap_or(false),
            ])
        })
        .collect();
    json!([
        command["name"],
        command["description"],
        options,
        sorted(&command["contexts"]),
        sorted(&command["integration_types"]),
        command["default_member_permissions"],
    ])
}
