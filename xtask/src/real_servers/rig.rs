//! A gateway between a model that follows a script and somebody else's idea of a platform.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use talaria_testkit::{Asked, FakeLlm, GatewayProcess, Home, Launch, Reply, ScriptedCall, within};
use tokio::time::{Instant, sleep};

/// How long anything may take, and how often it is looked whether it has happened.
const PATIENCE: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(50);

/// What is said, and what the model makes of it.
pub(super) const STEADILY: &str = "tell me a story, steadily";
pub(super) const REPORT: &str = "send me the report";
pub(super) const PICTURE: &str = "send me the picture";
pub(super) const ASK: &str = "ask me for a colour";

/// How an answer given steadily ends.
pub(super) const STORY_ENDS: &str = "happily ever after.";

/// What the report says.
pub(super) const REPORT_TEXT: &str = "All is well in the lab.\n";

/// A picture of one pixel.
pub(super) const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\
\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

/// Somebody else's server, with the front before it. Ends with it.
pub(super) struct Front {
    child: Child,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Front {
    /// Starts it and waits until `url` answers.
    pub(super) async fn start(command: &mut Command, url: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let log = folder.path().join("log");
        let output = File::create(&log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("an emulator cannot be started")?;
        let front = Self { child, log, _folder: folder };
        let client = reqwest::Client::new();
        let began = Instant::now();
        while client.get(url).send().await.is_err() {
            ensure!(began.elapsed() < PATIENCE, "an emulator does not start\n{}", front.said());
            sleep(GLANCE).await;
        }
        Ok(front)
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A front as it lies beside this file.
pub(super) fn script(root: &Path, name: &str) -> PathBuf {
    root.join("xtask/src/real_servers/fronts").join(name)
}

/// The gateway, its model and the front.
pub(super) struct Rig {
    pub(super) client: reqwest::Client,
    llm: FakeLlm,
    process: GatewayProcess,
    front: Front,
    _home: Home,
}

impl Rig {
    /// Starts a gateway with these accounts, listening at `listen`.
    pub(super) async fn start(
        binary: &Path,
        front: Front,
        accounts: &str,
        listen: &str,
    ) -> Result<Self> {
        let llm = FakeLlm::open().await?;
        let home = Home::empty()?;
        home.write("report.txt", REPORT_TEXT)?;
        fs::write(home.file("picture.png"), PIXEL)?;
        let (report, picture) = (home.file("report.txt"), home.file("picture.png"));
        llm.script(move |asked| answer(asked, &report, &picture));
        home.write(
            "config.yaml",
            &format!(
                "model: fake/test-model\nproviders:\n  fake:\n    wire: openai\n    base_url: \"{}\"\n    \
                 api_key: x\nfiles:\n  send_from: [\"{}\"]\n{accounts}",
                llm.base_url(),
                home.path().display(),
            ),
        )?;
        let launch = Launch::new(binary).environment("TALARIA_HTTP__LISTEN", listen);
        let mut process = launch.start(home.path())?;
        within(PATIENCE, "the ready line", process.ready()).await?;
        Ok(Self { client: reqwest::Client::new(), llm, process, front, _home: home })
    }

    /// Looks again and again until there is something to see.
    pub(super) async fn until<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let began = Instant::now();
        loop {
            if let Some(found) = look().await.with_context(|| self.evidence())? {
                return Ok(found);
            }
            if began.elapsed() > PATIENCE {
                bail!("waited in vain for {what}\n{}", self.evidence());
            }
            sleep(GLANCE).await;
        }
    }

    fn evidence(&self) -> String {
        format!("the gateway wrote:\n{}\nthe front:\n{}", self.process.output(), self.front.said())
    }

    /// What the model was asked last, as it came.
    pub(super) fn last_asked(&self) -> String {
        String::from_utf8_lossy(&self.llm.last_request()).into_owned()
    }

    /// Asks a front or an emulator for something in JSON.
    pub(super) async fn post(&self, url: &str, token: &str, body: &Value) -> Result<Value> {
        let request = self.client.post(url).bearer_auth(token).json(body);
        let answer = request.send().await.with_context(|| self.evidence())?;
        let status = answer.status();
        let text = answer.text().await?;
        ensure!(status.is_success(), "{url} answered {status}: {text}\n{}", self.evidence());
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    /// The bytes at an address.
    pub(super) async fn bytes(&self, url: &str, token: &str) -> Result<Vec<u8>> {
        let answer = self.client.get(url).bearer_auth(token).send().await?.error_for_status()?;
        Ok(answer.bytes().await?.to_vec())
    }

    /// Asks the gateway to end, and insists that it does so in good order.
    pub(super) async fn end(mut self) -> Result<()> {
        self.process.terminate()?;
        let ended = within(PATIENCE, "the gateway to end", self.process.ended()).await?;
        ensure!(ended.success(), "the gateway ended with {ended}\n{}", self.evidence());
        Ok(())
    }
}

fn answer(asked: &Asked, report: &Path, picture: &Path) -> Reply {
    let said = asked.said();
    if said.contains(STEADILY) {
        let text = format!("Once upon a time {}they lived {STORY_ENDS}", "and so on, ".repeat(14));
        return Reply::Streams { text, between: Duration::from_millis(90) };
    }
    if said.contains(REPORT) {
        return Reply::Says(format!("Here it is.\n\nMEDIA:{}", report.display()));
    }
    if said.contains(PICTURE) {
        return Reply::Says(format!("Here it is.\n\nMEDIA:{}", picture.display()));
    }
    if said.contains(ASK) && !asked.has_called() {
        let arguments = json!({ "question": "Which colour?", "choices": ["Red", "Blue"] });
        let call = ScriptedCall { tool: "ask".into(), arguments: arguments.to_string() };
        return Reply::Calls(String::new(), vec![call]);
    }
    if said.contains(ASK) {
        return Reply::Says("A fine colour.".into());
    }
    Reply::Says(format!("You said **{}**.", said.lines().last().unwrap_or_default()))
}
