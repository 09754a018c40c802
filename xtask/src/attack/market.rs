//! A gateway on Telegram, Discord and Slack at once, for attacks in which a vendor or the model does the
//! talking: what they answer is the attacker's choice.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use talaria_testkit::scripted::{Fault, Reply as Answered, Scripted};
use talaria_testkit::vendors::slack::Upload;
use talaria_testkit::vendors::{Act, discord, slack, telegram};
use talaria_testkit::{Asked, FakeLlm, GatewayProcess, Home, Launch, Reply};

use super::field::{MODEL_KEY, WORK_SECRET, WORK_TOKEN, command, now, signed};

/// Nothing takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked whether something has come about.
const GLANCE: Duration = Duration::from_millis(20);

/// What lies where vendors keep files.
const FILE: &[u8] = b"\x89PNG\r\n\x1a\n and what else is in a picture";

/// What is asked of each of the three.
pub(super) const ALL: [Kind; 3] = [Kind::Telegram, Kind::Discord, Kind::Slack];

/// A vendor. Its account has the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Telegram,
    Discord,
    Slack,
}

impl Kind {
    /// The name of its account.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Telegram => "telegram",
            Self::Discord => "discord",
            Self::Slack => "slack",
        }
    }
}

/// Somebody and their direct chat.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) kind: Kind,
    pub(super) chat: String,
    person: String,
}

impl Place {
    /// The chat with this number. No two vendors have chats of the same id.
    pub(super) fn of(kind: Kind, number: u32) -> Self {
        let (chat, person) = match kind {
            Kind::Telegram => (format!("{}", 5_000 + number), format!("{}", 5_000 + number)),
            Kind::Discord => {
                let (chat, person) = (700_000_000_000 + u64::from(number), 800_000_000_000_u64);
                (chat.to_string(), (person + u64::from(number)).to_string())
            }
            Kind::Slack => (format!("D{}", 6_000 + number), format!("U{}", 6_000 + number)),
        };
        Self { kind, chat, person }
    }

    /// As commands name it.
    pub(super) fn name(&self) -> String {
        format!("{}:{}", self.kind.name(), self.chat)
    }
}

/// The host under which the files of each account are reached, as the configuration writes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hosts {
    pub(super) telegram: &'static str,
    pub(super) discord: &'static str,
    pub(super) slack: &'static str,
}

impl Hosts {
    /// As anybody would write it.
    pub(super) const PLAIN: Self =
        Self { telegram: "127.0.0.1", discord: "127.0.0.1", slack: "127.0.0.1" };
}

/// What vendors answer instead of doing what they are asked for: by the vendor, and by the chat, which has no
/// name where it is about none.
type Troubles = Arc<Mutex<HashMap<(&'static str, String), Answered>>>;

/// The three, and the model.
pub(super) struct Vendors {
    pub(super) telegram: telegram::Vendor,
    pub(super) discord: discord::Vendor,
    pub(super) slack: slack::Vendor,
    /// Where Telegram and Discord keep files.
    pub(super) shelf: Scripted,
    pub(super) model: FakeLlm,
    hosts: Hosts,
    troubles: Troubles,
}

/// A gateway and the vendors that it is with.
pub(super) struct Market {
    pub(super) home: Home,
    pub(super) vendors: Vendors,
    binary: PathBuf,
    process: GatewayProcess,
    address: String,
    moments: AtomicU64,
}

impl Vendors {
    /// Opens all of them. They do what they are asked for.
    pub(super) async fn open(hosts: Hosts) -> Result<Self> {
        let telegram = telegram::Vendor::open().await;
        telegram.truth().keeps_time = true;
        let (discord, mut shown) = discord::Vendor::open().await;
        // Nobody looks over their shoulder here.
        tokio::spawn(async move { while shown.recv().await.is_some() {} });
        discord.truth().interval = 5_000;
        let slack = slack::Vendor::open().await;
        slack.world.lock().base = format!("http://{}:{}", hosts.slack, port(slack.http.url())?);
        let shelf =
            Scripted::listen(|_| Answered::status(200, FILE).with("content-type", "image/png"));
        let (shelf, model) = (shelf.await, FakeLlm::open().await?);
        model.script(|asked: &Asked| Reply::Says(format!("I heard {}", asked.said())));
        let troubles = Troubles::default();
        let conduct = |kind: Kind| {
            let troubles = troubles.clone();
            move |act: &Act| {
                let at = (kind.name(), act.chat.clone());
                lock(&troubles).get(&at).cloned().map(Fault::Instead)
            }
        };
        telegram.conduct(conduct(Kind::Telegram));
        discord.rest.conduct(conduct(Kind::Discord));
        slack.http.conduct(conduct(Kind::Slack));
        Ok(Self { telegram, discord, slack, shelf, model, hosts, troubles })
    }

    /// From here on this is answered to whatever is asked for in a chat.
    pub(super) fn trouble(&self, place: &Place, answer: Answered) {
        lock(&self.troubles).insert((place.kind.name(), place.chat.clone()), answer);
    }

    /// From here on a vendor answers this to whatever is about no chat: who we are, and what is new.
    pub(super) fn trouble_everywhere(&self, kind: Kind, answer: Answered) {
        lock(&self.troubles).insert((kind.name(), String::new()), answer);
    }

    /// From here on everything is done that is asked for.
    pub(super) fn behave(&self) {
        lock(&self.troubles).clear();
    }

    /// How often a file of a vendor was asked for where it lies.
    pub(super) fn fetches(&self, kind: Kind) -> usize {
        match kind {
            Kind::Telegram => self.shelf.requests_to("/file/bot").len(),
            Kind::Discord => self.shelf.requests_to("/attachments/").len(),
            Kind::Slack => self.slack.http.requests_to("/files-pri/").len(),
        }
    }

    /// Where the file with this number lies, as far as whoever sends it knows: what Telegram's address has in
    /// front of this, only the gateway does.
    pub(super) fn shelved(&self, kind: Kind, file: u32) -> Result<String> {
        let (shelf, slack) = (port(self.shelf.url())?, port(self.slack.http.url())?);
        let (host, port) = match kind {
            Kind::Telegram => (self.hosts.telegram, shelf),
            Kind::Discord => (self.hosts.discord, shelf),
            Kind::Slack => (self.hosts.slack, slack),
        };
        Ok(format!("http://{host}:{port}{}", path_of(kind, file)))
    }

    /// Whoever fetches the file with this number meets this so many times.
    pub(super) fn misplace(&self, kind: Kind, file: u32, answer: &Answered, times: usize) {
        let keeps = if kind == Kind::Slack { &self.slack.http } else { &self.shelf };
        for _ in 0..times {
            keeps.fault(&path_of(kind, file), Fault::Instead(answer.clone()));
        }
    }

    /// What was ever asked for: the bodies of the requests, in which is all that people were shown, be it for a
    /// moment.
    pub(super) fn asked(&self) -> Vec<(Kind, String)> {
        let bodies = |kind: Kind, vendor: &Scripted| {
            let requests = vendor.requests().into_iter();
            requests.map(move |one| (kind, String::from_utf8_lossy(&one.body).into_owned()))
        };
        let telegram = self.telegram.truth().requests.clone();
        let telegram = telegram.into_iter().map(|one| (Kind::Telegram, one.body.to_string()));
        telegram
            .chain(bodies(Kind::Discord, &self.discord.rest))
            .chain(bodies(Kind::Slack, &self.slack.http))
            .collect()
    }

    fn happens_on_telegram(&self, place: &Place, text: &str, file: Option<u32>) -> Result<()> {
        let mut update = self.telegram.said(place.person.parse()?, text);
        if let Some(file) = file {
            let id = format!("F{file}");
            let lies = path_of(place.kind, file).trim_start_matches('/').to_owned();
            self.telegram.truth().files.insert(id.clone(), (lies, FILE.to_vec()));
            let message = &mut update["message"];
            message["caption"] = message["text"].take();
            message["document"] = json!({ "file_id": id, "file_unique_id": id,
                "file_name": "a.png", "mime_type": "image/png", "file_size": FILE.len() });
        }
        self.telegram.push(update);
        Ok(())
    }

    fn happens_on_discord(
        &self,
        place: &Place,
        text: &str,
        file: Option<u32>,
        number: u64,
    ) -> Result<()> {
        self.discord.with_channel(&place.chat, None);
        let id = discord::id_before(0) + number;
        let mut said = discord::message(id, discord::DM, text);
        said["channel_id"] = json!(place.chat);
        said["author"] = json!({ "id": place.person, "username": "somebody" });
        if let Some(file) = file {
            said["attachments"] = json!([{ "id": file.to_string(), "filename": "a.png",
                "content_type": "image/png", "size": FILE.len(),
                "url": self.shelved(place.kind, file)? }]);
        }
        let there = self
            .discord
            .truth()
            .messages
            .entry(place.chat.clone())
            .or_default()
            .insert(id, said.clone());
        ensure!(there.is_none(), "two messages have one id");
        self.discord.tell("MESSAGE_CREATE", said);
        Ok(())
    }

    /// What Slack tells of it.
    fn happens_on_slack(
        &self,
        place: &Place,
        text: &str,
        file: Option<u32>,
        number: u64,
    ) -> Result<Value> {
        let mut said = json!({ "type": "message", "channel": place.chat, "channel_type": "im",
            "user": place.person, "text": text, "thread_ts": slack::THREAD,
            "ts": format!("{}.{number:06}", now()) });
        let mut state = self.slack.world.lock();
        state.direct.insert(place.chat.clone(), place.person.clone());
        if let Some(file) = file {
            let (id, address) = (format!("F{file}"), self.shelved(place.kind, file)?);
            let (bytes, length) = (FILE.to_vec(), FILE.len());
            said["subtype"] = json!("file_share");
            said["files"] = json!([{ "id": id, "name": "a.png", "mimetype": "image/png",
                "mode": "hosted", "size": length, "url_private": address,
                "url_private_download": address }]);
            let kept = Upload { name: "a.png".into(), length, bytes, ..Upload::default() };
            state.files.insert(id, kept);
        }
        Ok(slack::event(said))
    }

    fn configuration(&self) -> Result<String> {
        let Self { telegram, discord, slack, hosts, .. } = self;
        let (shelf, slack) = (port(self.shelf.url())?, port(slack.http.url())?);
        let settings = |kind: Kind| match kind {
            Kind::Telegram => json!({ "token": telegram::TOKEN, "base_url": telegram.url,
                "base_file_url": format!("http://{}:{shelf}", hosts.telegram) }),
            Kind::Discord => json!({ "token": discord::TOKEN, "history_backfill": false,
                "base_url": format!("{}/api/v10", discord.rest.url()),
                "cdn_url": format!("http://{}:{shelf}", hosts.discord) }),
            Kind::Slack => json!({ "bot_token": WORK_TOKEN, "signing_secret": WORK_SECRET,
                "base_url": format!("http://{}:{slack}/api/", hosts.slack) }),
        };
        let account = |kind: Kind| {
            let mut settings = settings(kind);
            settings["platform"] = json!(kind.name());
            settings["allow_everyone"] = json!(true);
            (kind.name(), settings)
        };
        let accounts: BTreeMap<_, _> = ALL.into_iter().map(account).collect();
        // Of the second nobody knows where it is but by an address with the key in it.
        let away = format!("http://127.0.0.1:1/{MODEL_KEY}/v1");
        let provider =
            |url: &str| json!({ "wire": "openai", "base_url": url, "api_key": MODEL_KEY });
        // Any JSON is YAML.
        let config = json!({
            "model": "fake/test-model",
            "log": { "level": "debug" },
            "providers": { "fake": provider(&self.model.base_url()), "away": provider(&away) },
            "agent": { "busy_ack_enabled": false },
            "accounts": accounts,
        });
        Ok(config.to_string())
    }
}

impl Market {
    /// Starts the gateway, and waits for nothing else.
    pub(super) async fn open(binary: &Path, vendors: Vendors) -> Result<Self> {
        let (binary, home) = (binary.canonicalize()?, Home::empty()?);
        home.write("config.yaml", &vendors.configuration()?)?;
        let mut process = Launch::new(&binary).start(home.path())?;
        tokio::time::timeout(PATIENCE, process.ready()).await.context("it is not ready")??;
        let address = process.address().await.trim_start_matches("http://").to_owned();
        Ok(Self { home, vendors, binary, process, address, moments: AtomicU64::new(1) })
    }

    /// Waits until all three have somebody who listens.
    pub(super) async fn connected(&self) -> Result<()> {
        let is_connected = || {
            let polled = self.vendors.telegram.truth().polls_in_flight > 0;
            (polled && self.vendors.discord.is_connected()).then_some(())
        };
        self.until("Telegram and Discord have a listener", is_connected).await?;
        let listens = async {
            // A body that nobody signed is refused where somebody listens.
            let ask = super::wire::Ask::post("/in/slack", "{}");
            while ask.to(&self.address).await?.status == 404 {
                tokio::time::sleep(GLANCE).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(PATIENCE, listens).await.context("Slack has no listener")?
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
            Err(_) => bail!("never: {what}\n{}", self.output()),
        }
    }

    /// Everything it wrote.
    pub(super) fn output(&self) -> String {
        self.process.output()
    }

    /// Runs a command on its home: how it ended, and what it printed.
    pub(super) async fn command(&self, arguments: &[&str]) -> Result<(i32, String)> {
        command(&self.binary, self.home.path(), arguments).await
    }

    /// Somebody says something.
    pub(super) async fn say(&self, place: &Place, text: &str) -> Result<()> {
        self.happens(place, text, None).await
    }

    /// Somebody sends the file with this number, and words on it.
    pub(super) async fn send(&self, place: &Place, text: &str, file: u32) -> Result<()> {
        self.happens(place, text, Some(file)).await
    }

    async fn happens(&self, place: &Place, text: &str, file: Option<u32>) -> Result<()> {
        let number = self.moments.fetch_add(1, Ordering::Relaxed);
        match place.kind {
            Kind::Telegram => self.vendors.happens_on_telegram(place, text, file),
            Kind::Discord => self.vendors.happens_on_discord(place, text, file, number),
            Kind::Slack => {
                let body = self.vendors.happens_on_slack(place, text, file, number)?.to_string();
                let ask = signed(place.kind.name(), WORK_SECRET, now(), body.as_bytes());
                let answer = ask.to(&self.address).await?;
                ensure!(answer.status == 200, "Slack was answered {}", answer.status);
                Ok(())
            }
        }
    }

    /// What we have shown in a chat, as it stands.
    pub(super) fn told(&self, place: &Place) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match place.kind {
            Kind::Telegram => {
                let truth = self.vendors.telegram.truth();
                let chat = place.chat.parse::<i64>().expect("chats of Telegram are numbers");
                let here = |one: &&Value| one["chat"]["id"] == chat;
                truth.messages.values().filter(here).map(|one| text(&one["text"])).collect()
            }
            Kind::Discord => {
                let said = self.vendors.discord.said(&place.chat);
                let ours = said.iter().filter(|one| one["author"]["id"] == discord::US);
                ours.map(|one| text(&one["content"])).collect()
            }
            Kind::Slack => {
                let state = self.vendors.slack.world.lock();
                let ours = |one: &&slack::Posted| {
                    one.user == "UBOT" && one.chat == place.chat && !one.deleted
                };
                state.messages.iter().filter(ours).map(|one| one.text.clone()).collect()
            }
        }
    }

    /// Waits until we have shown these words in a chat.
    pub(super) async fn shown(&self, place: &Place, words: &str) -> Result<String> {
        let found = || self.told(place).into_iter().find(|text| text.contains(words));
        let shown = self.until(&format!("{words:?} in {}", place.name()), found).await;
        shown.with_context(|| format!("shown there was {:?}", self.told(place)))
    }
}

/// The end of the path at which the file with this number lies.
fn path_of(kind: Kind, file: u32) -> String {
    match kind {
        Kind::Telegram => format!("/documents/{file}.png"),
        Kind::Discord => format!("/attachments/1/{file}/a.png"),
        Kind::Slack => format!("/files-pri/F{file}"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The port of an address.
fn port(url: &str) -> Result<&str> {
    Ok(url.rsplit_once(':').context("a port")?.1)
}
