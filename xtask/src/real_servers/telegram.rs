//! Telegram. Nobody plays all of it: `telegram-test-api` keeps messages, edits and presses for a bot that
//! asks for updates, `telemelya` sends updates and keeps files.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::rig::{ASK, Front, PICTURE, PIXEL, Rig, STEADILY, STORY_ENDS, script};
use crate::installed;
use crate::stage::free_port;

const POLL_PACKAGES: [&str; 1] = ["telegram-test-api@4.2.1"];
const WEBHOOK_PACKAGES: [&str; 3] = ["telemelya==0.2.2", "fakeredis==2.40.0", "redis==8.1.0"];

const TOKEN: &str = "666:a-bots_token";
const ALICE: i64 = 77;

/// A bot that asks for updates.
struct Polled {
    rig: Rig,
    people: String,
    front: String,
}

pub(super) async fn by_poll(root: &Path, binary: &Path) -> Result<()> {
    let telegram = Polled::open(root, binary).await?;
    telegram.say("hello").await?;
    let answer = telegram.answered("You said hello.").await?;
    let bold = json!([{ "type": "bold", "offset": 9, "length": 5 }]);
    ensure!(answer["message"]["entities"] == bold, "the answer is not marked up: {answer}");
    telegram.say(STEADILY).await?;
    let told = telegram.answered(STORY_ENDS).await?;
    ensure!(told["message"]["message_id"].is_number(), "the story was not told by edits: {told}");

    telegram.say(ASK).await?;
    let question = telegram.answered("Which colour?").await?;
    telegram.press(&question, "Blue").await?;
    telegram.answered("A fine colour.").await?;
    let confirmed = async || {
        let told = reqwest::get(format!("{}/confirmed", telegram.front)).await?;
        let count = told.json::<u64>().await?;
        Ok((count == 4).then_some(()))
    };
    telegram.rig.until("every update to be confirmed", confirmed).await?;
    telegram.rig.end().await?;
    eprintln!(
        "real servers: Telegram by poll: answered, streamed by edits, a press, all confirmed"
    );
    Ok(())
}

impl Polled {
    async fn open(root: &Path, binary: &Path) -> Result<Self> {
        let packages = installed::node_packages(root, "telegram-poll", &POLL_PACKAGES)?;
        let (port, people) = (free_port()?, free_port()?);
        let mut command = Command::new("node");
        command
            .arg(script(root, "telegram_poll_front.mjs"))
            .env("PORT", port.to_string())
            .env("INNER_PORT", people.to_string())
            .env("PACKAGES", packages);
        let url = format!("http://127.0.0.1:{port}");
        let front = Front::start(&mut command, &format!("{url}/confirmed")).await?;
        // The emulator knows no drafts.
        let accounts = account(&url, "drafts: false");
        let rig = Rig::start(binary, front, &accounts, "127.0.0.1:0").await?;
        Ok(Self { rig, people: format!("http://127.0.0.1:{people}"), front: url })
    }

    async fn say(&self, words: &str) -> Result<()> {
        let said = json!({
            "botToken": TOKEN, "from": alice(), "chat": { "id": ALICE, "type": "private" },
            "date": 1_700_000_000, "text": words,
        });
        self.rig.post(&format!("{}/sendMessage", self.people), "", &said).await.map(drop)
    }

    async fn press(&self, question: &Value, label: &str) -> Result<()> {
        let data = pressed(&question["message"]["reply_markup"], label).context("a button")?;
        let message = json!({
            "message_id": question["messageId"], "date": 1_700_000_000,
            "chat": { "id": ALICE, "type": "private" }, "text": "Which colour?",
        });
        let press = json!({ "botToken": TOKEN, "from": alice(), "message": message, "data": data });
        self.rig.post(&format!("{}/sendCallback", self.people), "", &press).await.map(drop)
    }

    async fn answered(&self, words: &str) -> Result<Value> {
        let history = format!("{}/getUpdatesHistory", self.people);
        self.rig
            .until(&format!("{words:?}"), async || {
                let all = self.rig.post(&history, "", &json!({ "token": TOKEN })).await?;
                let all = all["result"].as_array().cloned().unwrap_or_default();
                let is_it = |one: &Value| {
                    let text = one["message"]["text"].as_str().unwrap_or_default();
                    one["message"]["chat_id"] == ALICE && text.contains(words)
                };
                Ok(all.into_iter().find(is_it))
            })
            .await
    }
}

/// A bot that updates are sent to.
pub(super) async fn by_webhook(root: &Path, binary: &Path) -> Result<()> {
    let python = installed::python_packages(root, "telegram-webhook", &WEBHOOK_PACKAGES)?;
    let (port, gateway) = (free_port()?, free_port()?);
    let mut command = Command::new(python);
    command.arg(script(root, "telegram_webhook_front.py")).env("PORT", port.to_string());
    // A message that is not there cannot be edited.
    command.env("STRICT_EDIT", "true");
    let url = format!("http://127.0.0.1:{port}");
    let front = Front::start(&mut command, &url).await?;
    let listen = format!("127.0.0.1:{gateway}");
    let door = format!("http://{listen}/in/telegram/webhook");
    let hears =
        format!("drafts: false\n    webhook_url: {door}\n    webhook_secret: a-secret-of-telegram");
    let rig = Rig::start(binary, front, &account(&url, &hears), &listen).await?;

    let control = format!("{url}/api/v1/test");
    let told = async || {
        let answer = rig.client.get(format!("{control}/responses")).bearer_auth("x").send().await?;
        let all = answer.json::<Value>().await?;
        let all = all.get("responses").cloned().unwrap_or(all);
        anyhow::Ok(all.as_array().cloned().unwrap_or_default())
    };
    let say = async |body: Value| {
        let mut body = body;
        body["chat_id"] = json!(ALICE);
        body["from_user"] = alice();
        let url = format!("{control}/send_update?bot_token={TOKEN}");
        rig.until("the bot to take it", async || {
            let request = rig.client.post(&url).bearer_auth("x").json(&body);
            let answer = request.send().await?;
            // Before the bot has said where, nothing can be sent to it. What is not taken, Telegram
            // sends again.
            let told = answer.json::<Value>().await?;
            Ok((told["delivery"]["status_code"] == 200).then_some(()))
        })
        .await
    };
    let seen = async |what: &str, is: &dyn Fn(&Value) -> bool| {
        rig.until(what, async || Ok(told().await?.into_iter().find(|one| is(one)))).await
    };
    let says =
        |one: &Value, words: &str| one["text"].as_str().is_some_and(|text| text.contains(words));
    say(json!({ "text": "hello" })).await?;
    seen("an answer", &|one| one["method"] == "sendMessage" && says(one, "You said hello."))
        .await?;
    say(json!({ "text": STEADILY })).await?;
    let is_end = |one: &Value| one["method"] == "editMessageText" && says(one, STORY_ENDS);
    seen("the end of the story", &is_end).await?;

    say(json!({ "text": PICTURE })).await?;
    let shown = seen("the picture", &|one| one["method"] == "sendPhoto").await?;
    let id = shown["file_id"].as_str().context("the picture has an id")?;
    let bytes = rig.bytes(&format!("{control}/media/{id}"), "x").await?;
    ensure!(bytes == PIXEL, "the picture arrived as {} bytes", bytes.len());
    // And back: the same picture, sent to the bot.
    say(json!({ "photo_file_id": id, "photo_caption": "look at this" })).await?;
    seen("an answer to the picture", &|one| says(one, "look at this")).await?;
    let asked = rig.last_asked();
    ensure!(asked.contains("iVBORw0KGgo") || asked.contains(".png"), "no picture came: {asked}");

    let unsigned = rig.client.post(&door).json(&json!({ "update_id": 1 })).send().await?.status();
    ensure!(unsigned.as_u16() == 403, "without the secret it answers {unsigned}");
    rig.end().await?;
    eprintln!("real servers: Telegram by webhook: answered, edited, a picture both ways");
    Ok(())
}

fn account(url: &str, more: &str) -> String {
    format!(
        "accounts:\n  telegram:\n    token: \"{TOKEN}\"\n    base_url: {url}\n    allow: [\"{ALICE}\"]\n    {more}\n"
    )
}

fn alice() -> Value {
    json!({ "id": ALICE, "is_bot": false, "first_name": "Alice" })
}

/// What a button with this label sends.
fn pressed(markup: &Value, label: &str) -> Option<String> {
    let mut all =
        markup["inline_keyboard"].as_array()?.iter().filter_map(Value::as_array).flatten();
    all.find(|one| one["text"] == label)?["callback_data"].as_str().map(str::to_owned)
}
