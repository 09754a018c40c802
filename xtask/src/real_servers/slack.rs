//! Slack, as the package `emulate` plays it: by socket and by signed requests.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::rig::{ASK, Front, REPORT, REPORT_TEXT, Rig, STEADILY, STORY_ENDS, script};
use crate::installed;
use crate::stage::free_port;

/// The tag `latest` of the first name is another program.
const PACKAGES: [&str; 2] = ["emulate@0.12.2", "ws@8.22.2"];

const ALICE: &str = "xoxp-alice";
const BOT: &str = "xoxb-bot";
const SECRET: &str = "a-secret-for-signing";

/// A workspace with a channel, in which Alice talks to the app.
struct Workspace {
    rig: Rig,
    api: String,
    front: String,
    channel: String,
    alice: String,
    bot: String,
    team: String,
}

/// Socket Mode.
pub(super) async fn by_socket(root: &Path, binary: &Path) -> Result<()> {
    let slack = Workspace::open(root, binary, Hears::BySocket).await?;
    slack.converse().await?;
    slack.rig.post(&format!("{}/cut", slack.front), "", &json!({})).await?;
    let said = slack.say("are you still there?", None).await?;
    slack.answered(&said, "are you still there?").await?;
    slack.rig.end().await?;
    eprintln!(
        "real servers: Slack by socket: streamed, in threads, files both ways, a press, a whisper, a cut"
    );
    Ok(())
}

/// The Events API.
pub(super) async fn by_requests(root: &Path, binary: &Path) -> Result<()> {
    let slack = Workspace::open(root, binary, Hears::ByRequests).await?;
    slack.converse().await?;
    slack.rig.end().await?;
    eprintln!("real servers: Slack by signed requests: the same");
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hears {
    BySocket,
    ByRequests,
}

impl Workspace {
    async fn open(root: &Path, binary: &Path, hears: Hears) -> Result<Self> {
        let packages = installed::node_packages(root, "slack", &PACKAGES)?;
        let (api, front, gateway) = (free_port()?, free_port()?, free_port()?);
        let mut command = Command::new("node");
        command
            .arg(script(root, "slack_front.mjs"))
            .env("PORT", api.to_string())
            .env("FRONT_PORT", front.to_string())
            .env("SIGNING_SECRET", SECRET)
            .env("PACKAGES", packages);
        if hears == Hears::ByRequests {
            command.env("EVENTS_URL", format!("http://127.0.0.1:{gateway}/in/slack"));
        }
        let front = format!("http://127.0.0.1:{front}");
        let running = Front::start(&mut command, &format!("{front}/state")).await?;
        let state = reqwest::get(format!("{front}/state")).await?.json::<Value>().await?;
        let alice = text(&state["alice"])?;
        let way = match hears {
            Hears::BySocket => "app_token: xapp-1".to_owned(),
            Hears::ByRequests => format!("signing_secret: {SECRET}"),
        };
        let accounts = format!(
            "accounts:\n  slack:\n    base_url: http://127.0.0.1:{api}/api/\n    bot_token: {BOT}\n    {way}\n    \
             allow: [{alice}]\n"
        );
        let rig = Rig::start(binary, running, &accounts, &format!("127.0.0.1:{gateway}")).await?;
        let slack = Self {
            rig,
            api: format!("http://127.0.0.1:{api}/api"),
            channel: text(&state["channel"])?,
            bot: text(&state["bot"])?,
            team: text(&state["team"])?,
            front,
            alice,
        };
        let door = format!("http://127.0.0.1:{gateway}/in/slack");
        slack
            .rig
            .until("the app to be connected", async || slack.is_connected(hears, &door).await)
            .await?;
        Ok(slack)
    }

    async fn is_connected(&self, hears: Hears, door: &str) -> Result<Option<()>> {
        if hears == Hears::BySocket {
            let state =
                reqwest::get(format!("{}/state", self.front)).await?.json::<Value>().await?;
            return Ok((state["connections"] == 1).then_some(()));
        }
        // Whoever has not signed is refused, which only an account that is connected does.
        let status = self.rig.client.post(door).body("{}").send().await?.status().as_u16();
        Ok((status == 401).then_some(()))
    }

    /// What has to work by both ways.
    async fn converse(&self) -> Result<()> {
        let said = self.say(STEADILY, None).await?;
        let told = self.answered(&said, STORY_ENDS).await?;
        ensure!(told["edited"].is_object(), "the story was not told by edits: {told}");
        // In a thread of its own, the app is meant without being mentioned.
        self.post("chat.postMessage", json!({ "text": "and now?", "thread_ts": said })).await?;
        self.answered(&said, "and now?").await?;

        let said = self.say(REPORT, None).await?;
        let shared = self.reply(&said, |reply| reply["files"][0]["name"] == "report.txt").await?;
        let url = text(&shared["files"][0]["url_private_download"])?;
        let bytes = self.rig.bytes(&url, ALICE).await?;
        ensure!(bytes == REPORT_TEXT.as_bytes(), "the report arrived as {bytes:?}");

        let said = self.share("notes.txt", "the cake is in the fridge").await?;
        self.answered(&said, "read this").await?;
        let asked = self.rig.last_asked();
        ensure!(asked.contains("the cake is in the fridge"), "the model did not see it: {asked}");

        let said = self.say(ASK, None).await?;
        let question = self.reply(&said, |reply| button(reply, "Blue").is_some()).await?;
        self.press(&question, "Blue").await?;
        self.answered(&said, "A fine colour.").await?;
        let command = json!({
            "command": "/talaria", "text": "help", "user_id": self.alice, "user_name": "alice",
            "channel_id": self.channel, "channel_name": "lab", "team_id": self.team,
            "trigger_id": "1.2", "api_app_id": "A000000001", "token": "x",
            "response_url": format!("{}/nowhere", self.front),
        });
        self.tell("slash_commands", &command).await?;
        // What it tells concerns nobody else.
        self.whispered(&said, "/stop").await
    }

    /// Alice mentions the app.
    async fn say(&self, words: &str, thread: Option<&str>) -> Result<String> {
        let mut body = json!({ "text": format!("<@{}> {words}", self.bot) });
        if let Some(thread) = thread {
            body["thread_ts"] = json!(thread);
        }
        text(&self.post("chat.postMessage", body).await?["ts"])
    }

    /// Alice shares a file with the app.
    async fn share(&self, name: &str, content: &str) -> Result<String> {
        let asked = json!({ "filename": name, "length": content.len() });
        let place = self.post("files.getUploadURLExternal", asked).await?;
        let upload = self.rig.client.post(text(&place["upload_url"])?).body(content.to_owned());
        upload.send().await?.error_for_status()?;
        let words = format!("<@{}> read this", self.bot);
        let shares = json!({
            "files": [{ "id": place["file_id"], "title": name }], "channel_id": self.channel,
            "initial_comment": words,
        });
        self.post("files.completeUploadExternal", shares).await?;
        let rows = self.history().await?;
        let shared = rows.iter().find(|row| row["files"][0]["name"] == name);
        text(&shared.context("the file was shared")?["ts"])
    }

    async fn press(&self, question: &Value, label: &str) -> Result<()> {
        let (block, action) = button(question, label).context("a button")?;
        let pressed = json!({
            "type": "block_actions", "api_app_id": "A000000001", "token": "x", "trigger_id": "1.1",
            "team": { "id": self.team, "domain": "lab" },
            "user": { "id": self.alice, "username": "alice", "team_id": self.team },
            "channel": { "id": self.channel, "name": "lab" },
            "container": {
                "type": "message", "message_ts": question["ts"], "channel_id": self.channel,
                "is_ephemeral": false, "thread_ts": question["thread_ts"],
            },
            "message": question,
            "response_url": format!("{}/nowhere", self.front),
            "actions": [{
                "type": "button", "action_id": action["action_id"], "block_id": block["block_id"],
                "value": action["value"], "text": action["text"], "action_ts": "1.1",
            }],
        });
        self.tell("interactive", &pressed).await
    }

    async fn tell(&self, kind: &str, payload: &Value) -> Result<()> {
        let told = self.rig.post(&format!("{}/tell?type={kind}", self.front), "", payload).await?;
        let refused = told["status"].as_u64().is_some_and(|status| status != 200);
        ensure!(!refused, "a {kind} was refused: {told}");
        Ok(())
    }

    /// Waits for an answer of ours in a thread.
    async fn answered(&self, thread: &str, words: &str) -> Result<Value> {
        self.reply(thread, |reply| contains(reply, words)).await
    }

    async fn reply(&self, thread: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
        self.rig
            .until(&format!("an answer below {thread}"), async || {
                let rows = self.replies(thread).await?;
                Ok(rows.into_iter().find(|row| self.is_ours(row) && is(row)))
            })
            .await
    }

    async fn replies(&self, thread: &str) -> Result<Vec<Value>> {
        let rows = self.post("conversations.replies", json!({ "ts": thread })).await?;
        Ok(rows["messages"].as_array().cloned().unwrap_or_default())
    }

    /// Waits for something that only Alice can read, neither in the channel nor in the thread.
    async fn whispered(&self, thread: &str, words: &str) -> Result<()> {
        let url = format!("{}/whispers", self.front);
        self.rig
            .until(&format!("a whisper with {words}"), async || {
                let whispers = reqwest::get(&url).await?.json::<Vec<Value>>().await?;
                let is_hers = |whisper: &Value| whisper["target_user"] == self.alice;
                Ok(whispers.into_iter().find(|it| is_hers(it) && contains(it, words)))
            })
            .await?;
        let mut public = self.history().await?;
        public.extend(self.replies(thread).await?);
        let is_public = public.iter().any(|row| self.is_ours(row) && contains(row, words));
        ensure!(!is_public, "everybody reads {words}");
        Ok(())
    }

    async fn history(&self) -> Result<Vec<Value>> {
        let rows = self.post("conversations.history", json!({})).await?;
        Ok(rows["messages"].as_array().cloned().unwrap_or_default())
    }

    fn is_ours(&self, row: &Value) -> bool {
        row["user"] == self.bot
    }

    /// Alice calls a method about the channel.
    async fn post(&self, method: &str, mut body: Value) -> Result<Value> {
        body["channel"] = json!(self.channel);
        let answer = self.rig.post(&format!("{}/{method}", self.api), ALICE, &body).await?;
        ensure!(answer["ok"] == true, "{method}: {answer}");
        Ok(answer)
    }
}

fn contains(row: &Value, words: &str) -> bool {
    row["text"].as_str().is_some_and(|text| text.contains(words))
}

/// The button with this label, and the block that it is in.
fn button(row: &Value, label: &str) -> Option<(Value, Value)> {
    row["blocks"].as_array()?.iter().find_map(|block| {
        let all = block["elements"].as_array()?;
        let one = all.iter().find(|one| one["text"]["text"] == label)?;
        Some((block.clone(), one.clone()))
    })
}

fn text(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).with_context(|| format!("{value} is no text"))
}
