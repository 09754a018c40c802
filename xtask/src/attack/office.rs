//! A gateway of its own for each attack by people: two Slack accounts, a program that leaves traces, a model
//! that does as it is told, and everybody who can write to them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use talaria_testkit::vendors::slack;
use talaria_testkit::{Asked, FakeLlm, GatewayProcess, Home, Launch, Reply, ScriptedCall};

use super::field::{
    CLUB_SECRET, CLUB_TOKEN, WORK_SECRET, WORK_TOKEN, command, now, signature, signed,
};
use super::wire::{Answer, Ask};

/// Nothing takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often it is looked whether something has come about.
const GLANCE: Duration = Duration::from_millis(10);

/// What an answer ends with while it is still being written.
const CURSOR: char = '▉';

/// The channel in which several people are.
pub(super) const CHANNEL: &str = "C1";

/// The thread in which everything is said.
pub(super) const THREAD: &str = slack::THREAD;

/// What the model and the operator's shell hold that nobody may see.
pub(super) const CANARY: &str = "sk-canary-of-the-office-77aa";

/// How an office is set up.
#[derive(Clone, Copy, Default)]
pub(super) struct Setup<'a> {
    /// Settings of the account `work`, such as `allow: [U1]`.
    pub(super) work: &'a str,
    /// Settings of the account `club`.
    pub(super) club: &'a str,
    /// Whole sections, and more programs below `agent.programs` in `programs`.
    pub(super) sections: &'a str,
    /// Programs besides `note`, a line each.
    pub(super) programs: &'a str,
}

/// A gateway and all who write to it.
pub(super) struct Office {
    pub(super) binary: PathBuf,
    pub(super) home: Home,
    pub(super) model: FakeLlm,
    pub(super) slack: slack::Vendor,
    process: GatewayProcess,
    address: String,
    moments: AtomicU64,
}

impl Office {
    pub(super) async fn open(binary: &Path, setup: Setup<'_>) -> Result<Self> {
        let binary = binary.canonicalize()?;
        let (slack, model, home) =
            (slack::Vendor::open().await, FakeLlm::open().await?, Home::empty()?);
        model.script(|asked: &Asked| Reply::Says(format!("I heard {}", asked.said())));
        let runs = home.file("runs");
        let note = format!(
            "#!/bin/sh\nfor a in \"$@\"; do echo \"<$a>\"; done >> {0}\nenv >> {0}.environment\necho {CANARY}\n",
            runs.display()
        );
        fs::write(home.file("note"), note)?;
        fs::set_permissions(home.file("note"), fs::Permissions::from_mode(0o700))?;
        let config = configuration(&slack, &model, &home, setup);
        home.write("config.yaml", &config)?;
        let (process, address) = start(&binary, &home).await?;
        let moments = AtomicU64::new(1);
        let office = Self { binary, home, model, slack, process, address, moments };
        office.connected().await?;
        Ok(office)
    }

    /// Ends it without a word and starts it again, perhaps set up in another way.
    pub(super) async fn killed(self, setup: Option<Setup<'_>>) -> Result<Self> {
        let Self { binary, home, model, slack, process, moments, .. } = self;
        process.kill().await?;
        if let Some(setup) = setup {
            home.write("config.yaml", &configuration(&slack, &model, &home, setup))?;
        }
        let (process, address) = start(&binary, &home).await?;
        let office = Self { binary, home, model, slack, process, address, moments };
        office.connected().await?;
        Ok(office)
    }

    /// Ends it without a word, takes its home back to a backup and starts it again. Also says what the
    /// operator was told of it.
    pub(super) async fn taken_back(self, backup: &str) -> Result<(Self, String)> {
        let Self { binary, home, model, slack, process, moments, .. } = self;
        process.kill().await?;
        let (code, told) = command(&binary, home.path(), &["backup", "restore", backup]).await?;
        ensure!(code == 0, "going back ended with {code}: {told}");
        let (process, address) = start(&binary, &home).await?;
        let office = Self { binary, home, model, slack, process, address, moments };
        office.connected().await?;
        Ok((office, told))
    }

    /// Sets it up in another way while it runs.
    pub(super) async fn reload(&self, setup: Setup<'_>) -> Result<()> {
        let config = configuration(&self.slack, &self.model, &self.home, setup);
        self.home.write("config.yaml", &config)?;
        self.done(&["reload"]).await.map(drop)
    }

    async fn connected(&self) -> Result<()> {
        for account in ["work", "club"] {
            let listens = async {
                while self.ask(Ask::post(&format!("/in/{account}"), "{}")).await?.status == 404 {
                    tokio::time::sleep(GLANCE).await;
                }
                anyhow::Ok(())
            };
            let listens = tokio::time::timeout(PATIENCE, listens).await;
            listens.with_context(|| {
                format!("{account} is not connected\n{}", self.process.output())
            })??;
        }
        Ok(())
    }

    /// Sends a request to it.
    pub(super) async fn ask(&self, ask: Ask) -> Result<Answer> {
        ask.to(&self.address).await
    }

    /// Runs a command on its home: how it ended, and what it printed.
    pub(super) async fn command(&self, arguments: &[&str]) -> Result<(i32, String)> {
        command(&self.binary, self.home.path(), arguments).await
    }

    /// Runs a command that has to succeed.
    pub(super) async fn done(&self, arguments: &[&str]) -> Result<String> {
        let (code, output) = self.command(arguments).await?;
        ensure!(code == 0, "{arguments:?} ended with {code}: {output}");
        Ok(output)
    }

    /// Runs a command that has to be refused.
    pub(super) async fn refused(&self, arguments: &[&str]) -> Result<String> {
        let (code, output) = self.command(arguments).await?;
        ensure!(code != 0, "{arguments:?} was done: {output}");
        Ok(output)
    }

    /// Where it listens: `127.0.0.1:8420`.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The name of a message that nobody has said.
    pub(super) fn moment(&self) -> String {
        format!("{}.{:06}", now(), self.moments.fetch_add(1, Ordering::Relaxed))
    }

    /// Something happens that Slack tells `work` of.
    pub(super) async fn happens(&self, event: Value) -> Result<()> {
        self.happens_at("work", event).await
    }

    /// Something happens that Slack tells an account of.
    pub(super) async fn happens_at(&self, account: &str, event: Value) -> Result<()> {
        let mut told = slack::event(event);
        let (secret, team) = secret_and_team(account);
        (told["team_id"], told["authorizations"][0]["team_id"]) = (json!(team), json!(team));
        let body = told.to_string();
        let answer = self.ask(signed(account, secret, now(), body.as_bytes())).await?;
        ensure!(answer.status == 200, "{account} answers {} to {told}", answer.status);
        Ok(())
    }

    /// A message in somebody's own direct chat, as Slack tells of it.
    pub(super) fn direct(&self, who: &str, text: &str) -> Value {
        let chat = direct_chat(who);
        self.slack.world.lock().direct.insert(chat.clone(), who.to_owned());
        json!({ "type": "message", "channel": chat, "channel_type": "im", "user": who,
            "text": text, "ts": self.moment(), "thread_ts": THREAD })
    }

    /// A message in the channel that is meant for us, as Slack tells of it.
    pub(super) fn mention(&self, who: &str, text: &str) -> Value {
        json!({ "type": "message", "channel": CHANNEL, "channel_type": "channel", "user": who,
            "text": format!("<@UBOT> {text}"), "ts": self.moment(), "thread_ts": THREAD })
    }

    /// Somebody says something in their direct chat.
    pub(super) async fn say(&self, who: &str, text: &str) -> Result<()> {
        self.happens(self.direct(who, text)).await
    }

    /// Somebody says something to us in the channel.
    pub(super) async fn call(&self, who: &str, text: &str) -> Result<()> {
        self.happens(self.mention(who, text)).await
    }

    /// Somebody presses a button in a chat. `name` is what Slack says they call themselves.
    pub(super) async fn press(
        &self,
        (who, name): (&str, &str),
        at: &str,
        choice: &str,
    ) -> Result<()> {
        let moment = self.moment();
        let pressed = json!({ "type": "block_actions", "trigger_id": format!("t{moment}"),
            "user": { "id": who, "name": name, "team_id": "T1" }, "team": { "id": "T1" },
            "channel": { "id": at }, "message": { "thread_ts": THREAD },
            "container": { "channel_id": at, "thread_ts": THREAD },
            "actions": [{ "action_id": "talaria:0", "value": choice, "action_ts": moment }] });
        self.form(&[("payload", &pressed.to_string())]).await
    }

    /// Somebody gives a slash command.
    pub(super) async fn slash(
        &self,
        who: &str,
        at: &str,
        text: &str,
        more: &[(&str, &str)],
    ) -> Result<()> {
        let trigger = self.moment();
        let mut fields = vec![
            ("team_id", "T1"),
            ("channel_id", at),
            ("user_id", who),
            ("command", "/talaria"),
            ("text", text),
            ("trigger_id", &trigger),
        ];
        fields.extend(more);
        self.form(&fields).await
    }

    async fn form(&self, fields: &[(&str, &str)]) -> Result<()> {
        let encoded =
            |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
        let pairs = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        let at = now();
        let ask = Ask::post("/in/work", body.as_bytes())
            .with("content-type", "application/x-www-form-urlencoded")
            .with("x-slack-request-timestamp", &at.to_string())
            .with("x-slack-signature", &signature(WORK_SECRET, at, body.as_bytes()));
        let answer = self.ask(ask).await?;
        ensure!(answer.status == 200, "a form got {}", answer.status);
        Ok(())
    }

    /// What we have shown in a chat.
    pub(super) fn told(&self, chat: &str) -> Vec<String> {
        let state = self.slack.world.lock();
        let ours = state.messages.iter().filter(|one| one.user == "UBOT" && one.chat == chat);
        ours.map(|one| one.text.clone()).collect()
    }

    /// What we have shown anywhere.
    pub(super) fn told_anywhere(&self) -> String {
        let state = self.slack.world.lock();
        let ours = state.messages.iter().filter(|one| one.user == "UBOT");
        let posts = ours.map(|one| format!("{}: {} {}", one.chat, one.text, one.blocks));
        let whispers = state.whispers.iter().map(|one| format!("{}: {}", one.chat, one.text));
        posts.chain(whispers).collect::<Vec<_>>().join("\n")
    }

    /// Waits until something comes about.
    pub(super) async fn until<T>(&self, what: &str, found: impl Fn() -> Option<T>) -> Result<T> {
        let looking = async {
            loop {
                if let Some(found) = found() {
                    return found;
                }
                tokio::time::sleep(GLANCE).await;
            }
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(found) => Ok(found),
            Err(_) => bail!("never: {what}; shown was:\n{}", self.told_anywhere()),
        }
    }

    /// Waits until we have shown these words in a chat, so many times, in messages that grow no more.
    pub(super) async fn shown(&self, chat: &str, words: &str, times: usize) -> Result<String> {
        let what = format!("{words:?} in {chat}, {times} times");
        self.until(&what, || {
            // Where markup is open, the cursor stands inside of it.
            let is_whole = |text: &String| !text.contains(CURSOR);
            let told = self.told(chat).into_iter().filter(is_whole);
            let told = told.filter(|text| text.contains(words));
            told.skip(times - 1).last()
        })
        .await
    }

    /// Whoever is let in is answered behind everything that was tried before.
    pub(super) async fn serves(&self, who: &str) -> Result<()> {
        let words = format!("are you there {}", self.moment());
        self.say(who, &words).await?;
        self.shown(&direct_chat(who), &words, 1).await.map(drop)
    }

    /// Insists that what an attacker does begins no turn and is answered by nothing in these chats. `who`
    /// is let in, and is served behind it.
    pub(super) async fn nothing_comes_of(
        &self,
        chats: &[&str],
        who: &str,
        attempt: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        let shown = || chats.iter().map(|chat| self.told(chat)).collect::<Vec<_>>();
        let (asked, before) = (self.model.requests(), shown());
        attempt.await?;
        self.serves(who).await?;
        let turns = self.model.requests() - asked;
        ensure!(turns == 1, "{turns} turns began instead of the one of {who}");
        ensure!(shown() == before, "it was answered:\n{}", self.told_anywhere());
        Ok(())
    }

    /// The code that a stranger is given who says something.
    pub(super) async fn code_for(&self, who: &str) -> Result<String> {
        self.say(who, "hello, may I?").await?;
        let told = self.shown(&direct_chat(who), "pairing code is", 1).await?;
        code_in(&told).with_context(|| format!("no code in {told:?}"))
    }

    /// A code that the operator hands on.
    pub(super) async fn issued(&self, account: &str) -> Result<String> {
        let issued = self.done(&["pair", "issue", account]).await?;
        code_in(&issued).with_context(|| format!("no code in {issued:?}"))
    }

    /// What the program was run with, a line for each argument.
    pub(super) fn ran(&self) -> String {
        fs::read_to_string(self.home.file("runs")).unwrap_or_default()
    }

    /// From here on the model calls the program with these arguments whenever it is asked to `note` something,
    /// and says what came of it.
    pub(super) fn wants(&self, name: &'static str, arguments: &[&str]) {
        let call = json!({ "name": name, "args": arguments }).to_string();
        self.model.script(move |asked: &Asked| match asked.returned() {
            Some(came) => Reply::Says(format!("It came to this: {came}")),
            None if asked.said().contains("note") => {
                let call = ScriptedCall { tool: "run_program".into(), arguments: call.clone() };
                Reply::Calls(String::new(), vec![call])
            }
            None => Reply::Says(format!("I heard {}", asked.said())),
        });
    }

    /// Waits for the open question in a chat: its text, and its choices by label.
    pub(super) async fn question(
        &self,
        chat: &str,
        times: usize,
    ) -> Result<(String, Vec<(String, String)>)> {
        self.until(&format!("a question in {chat}"), || {
            let state = self.slack.world.lock();
            let asked = |one: &&slack::Posted| {
                one.user == "UBOT" && one.chat == chat && !choices(&one.blocks).is_empty()
            };
            // What was answered has lost its buttons, so those that are open are counted with the closed.
            let all = state
                .messages
                .iter()
                .filter(|one| one.chat == chat && one.text.contains("May I call"));
            if all.count() < times {
                return None;
            }
            let open = state.messages.iter().rev().find(asked)?;
            Some((open.text.clone(), choices(&open.blocks)))
        })
        .await
    }

    /// Waits until a turn in a chat has come to its end so many times, after the program ran or did not.
    pub(super) async fn came(&self, chat: &str, times: usize) -> Result<String> {
        self.shown(chat, "It came to this", times).await
    }
}

/// The id of a choice by its label.
pub(super) fn choice(choices: &[(String, String)], label: &str) -> Result<String> {
    let found = choices.iter().find(|(known, _)| known == label);
    Ok(found.with_context(|| format!("no {label} in {choices:?}"))?.1.clone())
}

fn choices(blocks: &Value) -> Vec<(String, String)> {
    let elements = blocks
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|block| block["elements"].as_array().cloned().unwrap_or_default());
    let choices = elements.filter_map(|element| {
        let label = element["text"]["text"].as_str()?.to_owned();
        Some((label, element["value"].as_str()?.to_owned()))
    });
    choices.collect()
}

/// Somebody's own direct chat.
pub(super) fn direct_chat(who: &str) -> String {
    format!("D{}", who.trim_start_matches('U'))
}

/// The first word that is a code.
fn code_in(text: &str) -> Option<String> {
    let is_code = |word: &&str| {
        word.len() == 8
            && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    };
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.into_iter().find(is_code).map(str::to_owned)
}

fn secret_and_team(account: &str) -> (&'static str, &'static str) {
    if account == "club" { (CLUB_SECRET, "T2") } else { (WORK_SECRET, "T1") }
}

fn configuration(slack: &slack::Vendor, model: &FakeLlm, home: &Home, setup: Setup<'_>) -> String {
    let api = format!("{}/api/", slack.http.url());
    let account = |name: &str, token: &str, settings: &str| {
        let (secret, _) = secret_and_team(name);
        let settings = if settings.is_empty() { "allow: [U1]" } else { settings };
        format!(
            "  {name}: {{platform: slack, base_url: \"{api}\", bot_token: {token}, \
             signing_secret: {secret}, {settings}}}\n"
        )
    };
    let programs: String = setup.programs.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "model: fake/test-model\n\
         log: {{level: debug}}\n\
         providers:\n  fake: {{wire: openai, base_url: \"{}\", api_key: {CANARY}}}\n\
         accounts:\n{}{}\
         agent:\n  busy_ack_enabled: false\n  programs:\n    note: {{program: {}, about: keeps a note, \
         free_arguments: true, always: true}}\n{programs}{}",
        model.base_url(),
        account("work", WORK_TOKEN, setup.work),
        account("club", CLUB_TOKEN, setup.club),
        home.file("note").display(),
        setup.sections
    )
}

async fn start(binary: &Path, home: &Home) -> Result<(GatewayProcess, String)> {
    let launch = Launch::new(binary).environment("AWS_SECRET_ACCESS_KEY", CANARY);
    let mut process = launch.start(home.path())?;
    tokio::time::timeout(PATIENCE, process.ready()).await.context("it is not ready")??;
    let address = process.address().await.trim_start_matches("http://").to_owned();
    Ok((process, address))
}
