//! What is attacked: the binary with the web chat and two Slack accounts, a model, and a Slack of its own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use talaria_testkit::vendors::slack;
use talaria_testkit::{FakeLlm, GatewayProcess, Home, Launch};

use super::wire::{Answer, Ask};

/// Nothing takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked whether something has come about.
const GLANCE: Duration = Duration::from_millis(20);

/// Secrets of the gateway that is attacked. None of them may be seen anywhere.
pub(super) const CANARIES: [&str; 5] =
    [MODEL_KEY, WORK_TOKEN, CLUB_TOKEN, WORK_SECRET, CLUB_SECRET];

/// What the model asks for.
pub(super) const MODEL_KEY: &str = "sk-1f0c7b2e9d4a6c8e0b3f5d7a";

/// What Slack knows the account `work` by.
pub(super) const WORK_TOKEN: &str = "xoxb-1-3c5e7f9a1b3d5f7e9c1a3b5d";

/// What it knows the account `club` by.
pub(super) const CLUB_TOKEN: &str = "xoxb-2-8d6b4f2e0c1a3e5d7b9f1c3e";

/// What Slack signs for the account `work`.
pub(super) const WORK_SECRET: &str = "canary4d1e2f6a7b8c9d0e1f2a3b4c5d";

/// What Slack signs for the account `club`.
pub(super) const CLUB_SECRET: &str = "canary9a8b7c6d5e4f3a2b1c0d9e8f7a";

/// What is attacked.
pub(crate) struct Field {
    pub(super) binary: PathBuf,
    pub(super) home: Home,
    pub(super) process: GatewayProcess,
    /// Where it listens: `127.0.0.1:8420`.
    pub(super) address: String,
    pub(super) model: FakeLlm,
    slack: slack::Vendor,
    messages: AtomicU64,
}

impl Field {
    pub(super) async fn open(binary: &Path) -> Result<Self> {
        // Some attacks start it from another folder.
        let binary = &binary.canonicalize()?;
        let slack = slack::Vendor::open().await;
        let model = FakeLlm::open().await?;
        let home = Home::empty()?;
        let api = format!("{}/api/", slack.http.url());
        let config = format!(
            "model: fake/test-model\n\
             log: {{level: debug}}\n\
             providers:\n  fake: {{wire: openai, base_url: \"{}\", api_key: {MODEL_KEY}}}\n\
             accounts:\n\
             \x20 work: {{platform: slack, base_url: \"{api}\", bot_token: {WORK_TOKEN}, signing_secret: {WORK_SECRET}, allow: [U1]}}\n\
             \x20 club: {{platform: slack, base_url: \"{api}\", bot_token: {CLUB_TOKEN}, signing_secret: {CLUB_SECRET}, allow: [U1]}}\n",
            model.base_url()
        );
        home.write("config.yaml", &config)?;
        let mut process = Launch::new(binary).start(home.path())?;
        tokio::time::timeout(PATIENCE, process.ready()).await.context("it is not ready")??;
        let address = process.address().await;
        let address = address.trim_start_matches("http://").to_owned();
        let field = Self {
            binary: binary.to_owned(),
            home,
            process,
            address,
            model,
            slack,
            messages: AtomicU64::new(100),
        };
        for account in ["work", "club"] {
            let connected = async {
                while field.ask(Ask::post(&format!("/in/{account}"), "{}")).await?.status == 404 {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Ok::<_, anyhow::Error>(())
            };
            tokio::time::timeout(PATIENCE, connected).await.with_context(|| {
                format!("{account} is not connected\n{}", field.process.output())
            })??;
        }
        Ok(field)
    }

    /// The number of a message that nobody has sent: what was sent once is not heard again.
    pub(super) fn fresh(&self) -> u64 {
        self.messages.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits until these words are shown in Slack.
    pub(super) async fn shown(&self, words: &str) -> Result<()> {
        let is_shown = || {
            let state = self.slack.world.lock();
            state.messages.iter().any(|one| one.user == "UBOT" && one.text.contains(words))
        };
        let shown = async {
            while !is_shown() {
                tokio::time::sleep(GLANCE).await;
            }
        };
        let shown = tokio::time::timeout(PATIENCE, shown).await;
        shown.with_context(|| format!("never shown: {words:?}"))
    }

    /// Sends a request to the gateway.
    pub(super) async fn ask(&self, ask: Ask) -> Result<Answer> {
        ask.to(&self.address).await
    }

    /// Everything it wrote.
    pub(super) fn output(&self) -> String {
        self.process.output()
    }

    /// Whether it takes messages in.
    pub(super) async fn is_well(&self) -> Result<()> {
        let pulse = self.ask(Ask::get("/healthz")).await?;
        ensure!(pulse.status == 204, "its pulse is {}: {}", pulse.status, pulse.body);
        Ok(())
    }

    /// Runs a command on the same home: what it printed, and how it ended.
    pub(super) async fn command(&self, arguments: &[&str]) -> Result<(i32, String)> {
        command(&self.binary, self.home.path(), arguments).await
    }

    /// A browser that is logged in.
    pub(super) async fn browser(&self) -> Result<Browser> {
        let (_, link) = self.command(&["open"]).await?;
        let login = self.ask(login(token(&link)?)).await?;
        ensure!(login.status == 204, "the login is refused: {login:?}");
        let cookie = login.header("set-cookie").context("a cookie")?;
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        let state = self.ask(Ask::get("/api/state").with("cookie", &cookie)).await?;
        let state: serde_json::Value = serde_json::from_str(&unchunked(&state))?;
        let token = state["csrf"].as_str().context("the token of the page")?.to_owned();
        Ok(Browser { cookie, token })
    }
}

/// A gateway without any configuration, for attacks that would shut out the others.
pub(super) struct Plain {
    pub(super) address: String,
    pub(super) home: Home,
    _process: GatewayProcess,
}

impl Plain {
    pub(super) async fn open(binary: &Path, config: &str) -> Result<Self> {
        let home = Home::empty()?;
        home.write("config.yaml", config)?;
        let mut process = Launch::new(binary).start(home.path())?;
        tokio::time::timeout(PATIENCE, process.ready()).await.context("it is not ready")??;
        let address = process.address().await.trim_start_matches("http://").to_owned();
        Ok(Self { address, home, _process: process })
    }
}

/// Somebody who is logged in.
pub(super) struct Browser {
    pub(super) cookie: String,
    pub(super) token: String,
}

impl Browser {
    pub(super) fn signs(&self, ask: Ask) -> Ask {
        ask.with("cookie", &self.cookie).with("x-talaria-csrf", &self.token)
    }
}

pub(super) const JSON: &str = "application/json";

/// What works once in a login link.
pub(super) fn token(link: &str) -> Result<&str> {
    Ok(link.trim().rsplit_once("#login=").context("a login link")?.1)
}

/// A request that hands such a token in.
pub(super) fn login(token: &str) -> Ask {
    let body = serde_json::json!({ "token": token }).to_string();
    Ask::post("/api/login", body).with("content-type", JSON)
}

/// How a gateway ends that cannot start before somebody mends its configuration.
pub(super) const MISCONFIGURED: i32 = 78;

/// The body of an answer, wherever its pieces were cut.
pub(super) fn unchunked(answer: &Answer) -> String {
    if answer.header("transfer-encoding") != Some("chunked") {
        return answer.body.clone();
    }
    let (mut whole, mut rest) = (String::new(), answer.body.as_str());
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || after.len() < size {
            break;
        }
        whole.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    whole
}

/// Runs a command on a home to its end.
pub(super) async fn command(
    binary: &Path,
    home: &Path,
    arguments: &[&str],
) -> Result<(i32, String)> {
    let launched = Launch::new(binary).arguments(arguments).start(home)?;
    ended(launched).await
}

/// Waits until a process has ended.
pub(super) async fn ended(mut process: GatewayProcess) -> Result<(i32, String)> {
    let ended = tokio::time::timeout(PATIENCE, process.ended()).await;
    let status = ended.with_context(|| format!("it does not end\n{}", process.output()))??;
    Ok((status.code().unwrap_or(-1), process.drained().await))
}

/// Seconds since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// What Slack would sign a body with.
pub(super) fn signature(secret: &str, at: i64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any key will do");
    mac.update(format!("v0:{at}:").as_bytes());
    mac.update(body);
    let hex: String =
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("v0={hex}")
}

/// A request that Slack would send.
pub(super) fn signed(account: &str, secret: &str, at: i64, body: &[u8]) -> Ask {
    Ask::post(&format!("/in/{account}"), body)
        .with("content-type", JSON)
        .with("x-slack-request-timestamp", &at.to_string())
        .with("x-slack-signature", &signature(secret, at, body))
}
