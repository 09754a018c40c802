//! Discord, as the package `simcord` plays it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::rig::{ASK, Front, REPORT, REPORT_TEXT, Rig, STEADILY, STORY_ENDS, script};
use crate::installed;
use crate::stage::free_port;

const PACKAGES: [&str; 3] = ["simcord==3.2.1", "discord.py==2.7.1", "aiohttp==3.14.5"];

const TOKEN: &str = "a.bots.token";

/// A guild with a channel, in which Alice talks to the bot.
struct Guild {
    rig: Rig,
    url: String,
    bot: String,
    channel: String,
    direct: String,
}

pub(super) async fn run(root: &Path, binary: &Path) -> Result<()> {
    let discord = Guild::open(root, binary).await?;
    discord.stream().await?;
    discord.share().await?;
    discord.choose().await?;
    discord.command().await?;
    discord.resume().await?;
    discord.in_a_thread().await?;
    discord.rig.end().await?;
    eprintln!(
        "real servers: Discord: streamed by edits, files both ways, a press, a command, a resumed \
         session, a thread"
    );
    Ok(())
}

impl Guild {
    async fn open(root: &Path, binary: &Path) -> Result<Self> {
        let python = installed::python_packages(root, "discord", &PACKAGES)?;
        let port = free_port()?;
        let url = format!("http://127.0.0.1:{port}");
        let mut command = Command::new(python);
        command
            .arg(script(root, "discord_front.py"))
            .env("PORT", port.to_string())
            .env("BOT_TOKEN", TOKEN);
        let front = Front::start(&mut command, &format!("{url}/person/state")).await?;
        let state = reqwest::get(format!("{url}/person/state")).await?.json::<Value>().await?;
        let alice = text(&state["alice"])?;
        // The emulator takes commands all at once only.
        let accounts = format!(
            "accounts:\n  discord:\n    token: {TOKEN}\n    base_url: {url}/api/v10\n    cdn_url: {url}/cdn\n    \
             allow: [\"{alice}\"]\n    command_sync_policy: bulk\n"
        );
        let rig = Rig::start(binary, front, &accounts, "127.0.0.1:0").await?;
        let discord = Self {
            bot: text(&state["bot"])?,
            channel: text(&state["channel"])?,
            direct: text(&state["dm"])?,
            rig,
            url,
        };
        discord.until_state("the bot to be connected", |state| state["connected"] == 1).await?;
        Ok(discord)
    }

    async fn stream(&self) -> Result<()> {
        self.say(&self.direct, STEADILY).await?;
        let told = self.shown(&self.direct, |row| contains(row, STORY_ENDS)).await?;
        let edits = told["edits"].as_u64().unwrap_or_default();
        ensure!(edits >= 2, "the story was edited {edits} times: {told}");
        let state = self.state().await?;
        ensure!(state["signs"].as_u64() > Some(0), "nobody saw that it was typing");
        Ok(())
    }

    async fn share(&self) -> Result<()> {
        self.say(&self.direct, REPORT).await?;
        let named = |row: &Value| row["attachments"][0]["filename"] == "report.txt";
        let shared = self.shown(&self.direct, |row| named(row) && self.is_ours(row)).await?;
        let url = text(&shared["attachments"][0]["url"])?;
        let bytes = self.rig.bytes(&url, "").await?;
        ensure!(bytes == REPORT_TEXT.as_bytes(), "the report arrived as {bytes:?}");

        let file = json!({ "name": "notes.txt", "text": "the cake is in the fridge" });
        let said = json!({ "channel": self.direct, "content": "read this", "file": file });
        self.person("say", said).await?;
        self.answered(&self.direct, "read this").await?;
        let asked = self.rig.last_asked();
        ensure!(asked.contains("the cake is in the fridge"), "the model did not see it: {asked}");
        Ok(())
    }

    async fn choose(&self) -> Result<()> {
        self.say(&self.direct, ASK).await?;
        let question = self.shown(&self.direct, |row| button(row, "Blue").is_some()).await?;
        let custom_id = button(&question, "Blue").context("a button")?;
        let press = json!({
            "channel": self.direct, "message": question["id"], "custom_id": custom_id,
        });
        let pressed = self.person("press", press).await?;
        self.answered(&self.direct, "A fine colour.").await?;
        let seen = self.person("interaction", pressed).await?;
        ensure!(seen["responded"] == true, "the press was not acknowledged");
        Ok(())
    }

    async fn command(&self) -> Result<()> {
        let has_help = |state: &Value| {
            state["commands"].as_array().is_some_and(|all| all.iter().any(|one| one == "help"))
        };
        self.until_state("the menu", has_help).await?;
        let given = json!({ "channel": self.direct, "name": "help" });
        let given = self.person("command", given).await?;
        self.rig
            .until("the command to be answered", async || {
                let seen = self.person("interaction", given.clone()).await?;
                Ok((seen["responded"] == true).then_some(()))
            })
            .await?;
        self.shown(&self.direct, |row| self.is_ours(row) && contains(row, "/stop")).await?;
        Ok(())
    }

    /// What is said while nobody is connected is told when the session goes on.
    async fn resume(&self) -> Result<()> {
        self.person("cut", json!({})).await?;
        self.say(&self.direct, "are you still there?").await?;
        self.answered(&self.direct, "are you still there?").await?;
        let state = self.state().await?;
        ensure!(
            state["resumed"] == 1 && state["sessions"] == 1,
            "the session did not go on: {state}"
        );
        let rows = self.read(&self.direct).await?;
        let answers = rows.iter().filter(|row| self.is_ours(row));
        let answers = answers.filter(|row| contains(row, "are you still there?")).count();
        ensure!(answers == 1, "it was answered {answers} times");
        Ok(())
    }

    /// An answer in a channel begins a thread below what it answers.
    async fn in_a_thread(&self) -> Result<()> {
        let said = format!("<@{}> hello in public", self.bot);
        let said = self.say(&self.channel, &said).await?;
        self.answered(&said, "hello in public").await?;
        self.say(&said, "and in the thread").await?;
        self.answered(&said, "and in the thread").await?;
        Ok(())
    }

    async fn say(&self, channel: &str, words: &str) -> Result<String> {
        let said = json!({ "channel": channel, "content": words });
        text(&self.person("say", said).await?["id"])
    }

    async fn answered(&self, channel: &str, words: &str) -> Result<Value> {
        self.shown(channel, |row| self.is_ours(row) && contains(row, words)).await
    }

    /// Waits until such a message can be read.
    async fn shown(&self, channel: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
        self.rig
            .until(&format!("a message in {channel}"), async || {
                Ok(self.read(channel).await?.into_iter().find(|row| is(row)))
            })
            .await
    }

    async fn read(&self, channel: &str) -> Result<Vec<Value>> {
        let rows = self.person("read", json!({ "channel": channel })).await?;
        Ok(rows.as_array().cloned().unwrap_or_default())
    }

    async fn until_state(&self, what: &str, is: impl Fn(&Value) -> bool) -> Result<()> {
        let look = async || Ok(is(&self.state().await?).then_some(()));
        self.rig.until(what, look).await
    }

    async fn state(&self) -> Result<Value> {
        self.person("state", json!({})).await
    }

    async fn person(&self, deed: &str, body: Value) -> Result<Value> {
        self.rig.post(&format!("{}/person/{deed}", self.url), "", &body).await
    }

    fn is_ours(&self, row: &Value) -> bool {
        row["author"]["id"] == self.bot
    }
}

fn contains(row: &Value, words: &str) -> bool {
    row["content"].as_str().is_some_and(|text| text.contains(words))
}

/// The id of the button with this label.
fn button(row: &Value, label: &str) -> Option<String> {
    let rows = row["components"].as_array()?.iter();
    let mut all = rows.filter_map(|row| row["components"].as_array()).flatten();
    let one = all.find(|one| one["label"] == label)?;
    one["custom_id"].as_str().map(str::to_owned)
}

fn text(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).with_context(|| format!("{value} is no text"))
}
