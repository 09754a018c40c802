//! Vendors and a model that refuse, and repeat our secrets while they do: in the words of a refusal, inside of an
//! address, and where a cut leaves the beginning of one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use futures::future::{BoxFuture, try_join_all};
use futures::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};
use talaria_testkit::scripted::{Fault, Reply as Answered};
use talaria_testkit::vendors::telegram::refusal;
use talaria_testkit::vendors::{discord, telegram};
use talaria_testkit::{Asked, Reply};

use super::field::{Field, MODEL_KEY, WORK_SECRET, WORK_TOKEN};
use super::market::{ALL, Hosts, Kind, Market, Place, Vendors};

/// What must not be seen.
const SECRETS: [(&str, &str); 5] = [
    ("Telegram's token", telegram::TOKEN),
    ("Discord's token", discord::TOKEN),
    ("Slack's token", WORK_TOKEN),
    ("Slack's signing secret", WORK_SECRET),
    ("the model's key", MODEL_KEY),
];

/// So much of the beginning or of the end of a secret is a part of it. Fewer letters can be there by chance.
const PART: usize = 8;

/// How many letters stand in front of a secret that is repeated until somebody cuts it: wherever that is, for one
/// of these it is in the middle of it.
const SHIFTS: [usize; 3] = [0, 16, 32];

/// How often a fault is met by files that are tried again, and by those that come with them.
const AGAIN: usize = 16;

/// What it writes down of itself.
const LOG: &str = "logs/gateway.log";

/// How many commands are run at the same time.
const AT_ONCE: usize = 4;

/// ATK-119: no secret that a vendor or a model repeats is kept, printed or said.
pub(super) fn no_refusal_repeats_a_secret(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let (met, unmet) = futures::join!(refused_at_work(field), refused_at_the_door(field));
        let shown: Vec<String> = met?.into_iter().chain(unmet?).collect();
        ensure!(shown.is_empty(), "{}", shown.join("\n           "));
        Ok(())
    }
    .boxed()
}

/// What is shown of secrets by a gateway that is refused from the beginning, and by what it says of that.
async fn refused_at_the_door(field: &Field) -> Result<Vec<String>> {
    let vendors = Vendors::open(Hosts::PLAIN).await?;
    for kind in ALL {
        vendors.trouble_everywhere(kind, Trouble::Unknown.of(kind));
    }
    refuse_every_completion(&vendors);
    let market = Market::open(&field.binary, vendors).await?;
    let mut seen = Seen::default();
    for trouble in [Trouble::Unknown, Trouble::Broken, Trouble::Cut, Trouble::No] {
        for kind in ALL {
            let before = market.vendors.asked().iter().filter(|(of, _)| *of == kind).count();
            market.vendors.trouble_everywhere(kind, trouble.of(kind));
            // One that has given up is told to try it at once; the other does so anyway.
            market.command(&["platforms", "resume", kind.name()]).await?;
            let asked = || market.vendors.asked().iter().filter(|(of, _)| *of == kind).count();
            market
                .until(&format!("{kind:?} is asked"), || (asked() > before).then_some(()))
                .await?;
        }
        seen.status(&market).await?;
    }
    for arguments in [&["model"][..], &["doctor"]] {
        seen.command(&market, arguments).await?;
    }
    seen.everything(&market, &[]).await?;
    Ok(seen.told("a gateway that is refused at the door"))
}

/// What is shown of secrets where messages, files and completions are refused.
async fn refused_at_work(field: &Field) -> Result<Vec<String>> {
    let market = Market::open(&field.binary, Vendors::open(Hosts::PLAIN).await?).await?;
    market.connected().await?;
    let heard = answers_or_refuses(&market.vendors);
    let (posted, filed, answered) = futures::join!(
        messages_are_refused(&market),
        files_are_refused(&market),
        completions_are_refused(&market)
    );
    let mut seen = Seen::default();
    let places: Vec<Place> = [posted?, filed?, answered?].concat();
    for (what, text) in market.vendors.asked() {
        seen.text(&format!("what {what:?} was told"), &text);
    }
    for text in heard.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        seen.text("what the model was told", text);
    }
    seen.everything(&market, &places).await?;
    // Whoever listens is told the same, and so is whoever wants to listen again.
    let begins = || market.vendors.telegram.asked("getMe").len();
    let before = begins();
    market.vendors.trouble_everywhere(Kind::Telegram, Trouble::Broken.of(Kind::Telegram));
    // It hears this, and asks for what is next.
    market.say(&Place::of(Kind::Telegram, 91), "are you there?").await?;
    market.until("it connects again", || (begins() > before).then_some(())).await?;
    seen.status(&market).await?;
    market.vendors.behave();
    market.command(&["platforms", "resume", Kind::Telegram.name()]).await?;
    // Nothing is sent by an account any more whose token is not accepted.
    for kind in ALL {
        let place = Place::of(kind, 90);
        market.vendors.trouble(&place, Trouble::Unknown.of(kind));
        market.say(&place, "and who are you?").await?;
    }
    let suspended = || (logged(&market, "the account is suspended") >= ALL.len()).then_some(());
    market.until("every account is suspended", suspended).await?;
    seen.everything(&market, &[]).await?;
    Ok(seen.told("a gateway that is refused at work"))
}

/// What opens a vendor's account.
fn token(kind: Kind) -> &'static str {
    match kind {
        Kind::Telegram => telegram::TOKEN,
        Kind::Discord => discord::TOKEN,
        Kind::Slack => WORK_TOKEN,
    }
}

/// How often something stands in the log.
fn logged(market: &Market, words: &str) -> usize {
    let log = fs::read_to_string(market.home.file(LOG)).unwrap_or_default();
    log.matches(words).count()
}

/// How somebody refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// For good.
    No,
    /// For good and at length, with so many letters first.
    AtLength(usize),
    /// For a while.
    Later,
    /// It knows nobody of that name.
    Unknown,
    /// It is broken itself.
    Broken,
    /// It hangs up.
    Cut,
}

impl Trouble {
    /// All of them that one message can be met with.
    fn all() -> Vec<Self> {
        let long = SHIFTS.map(Self::AtLength);
        [Self::No, Self::Later, Self::Broken, Self::Cut].into_iter().chain(long).collect()
    }

    /// What is said with it, about these secrets.
    fn words(self, secrets: &[&str]) -> String {
        match self {
            Self::AtLength(shift) => {
                let all = secrets.concat();
                format!("{}{}", "x".repeat(shift), all.repeat(1_000 / all.len()))
            }
            _ => {
                let say = |secret: &&str| {
                    let in_address = secret.replace(':', "%3A");
                    format!(
                        "{secret} may not: https://vendor.example/bot{secret}/send?by={in_address}"
                    )
                };
                secrets.iter().map(say).collect::<Vec<_>>().join(" and ")
            }
        }
    }

    /// The status that it is answered with; none where nothing is.
    fn status(self) -> Option<u16> {
        match self {
            Self::No | Self::AtLength(_) => Some(400),
            Self::Later => Some(429),
            Self::Unknown => Some(401),
            Self::Broken => Some(500),
            Self::Cut => None,
        }
    }

    /// As a vendor words it.
    fn of(self, kind: Kind) -> Answered {
        let Some(status) = self.status() else { return Answered::Cut };
        let answer = match kind {
            Kind::Telegram => {
                let description = self.words(&[telegram::TOKEN]);
                let mut body =
                    json!({ "ok": false, "error_code": status, "description": description });
                if self == Self::Later {
                    body["parameters"] = json!({ "retry_after": 1 });
                }
                Answered::status(status, body.to_string())
            }
            Kind::Discord => {
                let message = self.words(&[discord::TOKEN]);
                let errors = json!({ &message: { "_errors": [{ "message": message }] } });
                let code = if self == Self::Unknown { 0 } else { 50035 };
                let body = json!({ "code": code, "message": message, "errors": errors,
                    "retry_after": 1.0, "global": false });
                Answered::status(status, body.to_string())
            }
            Kind::Slack => {
                let words = self.words(&[WORK_TOKEN, WORK_SECRET]);
                let code = if self == Self::Unknown { "invalid_auth" } else { &words };
                let body = json!({ "ok": false, "error": code, "needed": words,
                    "response_metadata": { "messages": [words] } });
                // Where it is sure of it, it says no with a good status.
                let status = if matches!(status, 400 | 401) { 200 } else { status };
                Answered::status(status, body.to_string())
            }
        };
        let said = answer.with("content-type", "application/json");
        if self == Self::Later { said.with("retry-after", "1") } else { said }
    }

    /// As a model's provider words it.
    fn of_the_model(self) -> Reply {
        let message = self.words(&[MODEL_KEY]);
        let Some(status) = self.status() else { return Reply::Breaks(message) };
        let body = json!({ "error": { "message": message, "type": "refused", "code": message } });
        Reply::Refuses { status, body: body.to_string() }
    }
}

/// The model does as it is told: it refuses in the way of the number that it is given, and echoes all else. Returns
/// everything that it is told.
fn answers_or_refuses(vendors: &Vendors) -> Arc<Mutex<Vec<String>>> {
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let hears = heard.clone();
    vendors.model.script(move |asked: &Asked| {
        let mut told = asked.conversation();
        told.push(asked.instructions());
        hears.lock().unwrap_or_else(PoisonError::into_inner).append(&mut told);
        let said = asked.said();
        let number = said.rsplit_once("refuse number ").and_then(|(_, number)| number.parse().ok());
        match number.and_then(|number: usize| of_completions().get(number).copied()) {
            Some(trouble) => trouble.of_the_model(),
            None => Reply::Says(format!("I heard {said}")),
        }
    });
    heard
}

fn refuse_every_completion(vendors: &Vendors) {
    vendors.model.script(|_: &Asked| Trouble::Unknown.of_the_model());
}

/// How the model refuses.
fn of_completions() -> Vec<Trouble> {
    Trouble::all().into_iter().chain([Trouble::Unknown]).collect()
}

/// Answers are refused on their way to people, who are told of it as soon as they can be.
async fn messages_are_refused(market: &Market) -> Result<Vec<Place>> {
    let troubles = Trouble::all();
    let places: Vec<(Place, Trouble)> = ALL
        .into_iter()
        .flat_map(|kind| {
            let numbered = (0..).zip(&troubles);
            numbered.map(move |(number, trouble)| (Place::of(kind, number), *trouble))
        })
        .collect();
    for (place, trouble) in &places {
        market.vendors.trouble(place, trouble.of(place.kind));
        market.say(place, "hello").await?;
    }
    let lost = places.iter().filter(|(_, trouble)| *trouble != Trouble::Later).count();
    let given_up = || (logged(market, "never delivered") >= lost).then_some(());
    market.until("every answer is given up", given_up).await?;
    market.vendors.behave();
    for (place, _) in &places {
        market.say(place, "and now?").await?;
    }
    let told = places.iter().map(|(place, trouble)| async move {
        let words = if *trouble == Trouble::Later { "hello" } else { "could not be delivered" };
        market.shown(place, words).await
    });
    try_join_all(told).await?;
    Ok(places.into_iter().map(|(place, _)| place).collect())
}

/// Files are refused: where they lie, and when it is asked about them. The model is told so, and says it.
async fn files_are_refused(market: &Market) -> Result<Vec<Place>> {
    const REFUSED: &str = "could not be fetched";
    let Vendors { telegram, discord, slack, .. } = &market.vendors;
    let mut misplaced = Vec::new();
    for kind in ALL {
        let elsewhere = format!("https://vendor.example/bot{}/a.png", token(kind));
        let answers = [
            Answered::Cut,
            Answered::status(302, "").with("location", &elsewhere),
            Trouble::Broken.of(kind),
        ];
        for (number, answer) in (30..).zip(&answers) {
            let place = Place::of(kind, number);
            market.vendors.misplace(kind, number, answer, AGAIN);
            market.send(&place, "look at this", number).await?;
            misplaced.push(place);
        }
    }
    try_join_all(misplaced.iter().map(|place| market.shown(place, REFUSED))).await?;
    let troubles = Trouble::all();
    let mut unknown = Vec::new();
    for kind in ALL {
        for number in (40..).take(troubles.len()) {
            let place = Place::of(kind, number);
            for trouble in troubles.iter().cycle().take(AGAIN) {
                match (kind, trouble.status()) {
                    (Kind::Telegram, None) => telegram.fault("getFile", telegram::Fault::Lost),
                    (Kind::Telegram, Some(status)) => {
                        telegram
                            .fault("getFile", refusal(status, &trouble.words(&[telegram::TOKEN])));
                    }
                    (Kind::Discord, _) => {
                        // Only what is looked up: an answer that grows there is edited at the same path.
                        let part = format!("GET /api/v10/channels/{}/messages/", place.chat);
                        discord.rest.fault(&part, Fault::Instead(trouble.of(kind)));
                    }
                    (Kind::Slack, _) => {
                        slack.http.fault("files.info", Fault::Instead(trouble.of(kind)));
                    }
                }
            }
            // Discord is not asked about a file before it is gone from where it lay.
            if kind == Kind::Discord {
                market.vendors.misplace(kind, number, &Answered::status(403, ""), AGAIN);
            }
            market.send(&place, "look at this", number).await?;
            unknown.push(place);
        }
    }
    try_join_all(unknown.iter().map(|place| market.shown(place, REFUSED))).await?;
    Ok([misplaced, unknown].concat())
}

/// Completions are refused, and who asked is told so.
async fn completions_are_refused(market: &Market) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    for number in 0..of_completions().len() {
        let place = Place::of(Kind::Telegram, 60 + number as u32);
        market.say(&place, &format!("refuse number {number}")).await?;
        places.push(place);
    }
    let away = Place::of(Kind::Telegram, 80);
    market.say(&away, "/model away/test-model").await?;
    market.shown(&away, "away").await?;
    market.say(&away, "hello").await?;
    places.push(away);
    for place in &places {
        // It ends with what can be done about it.
        let is_told =
            |text: &String| ["try again", "talaria model"].iter().any(|it| text.contains(it));
        let told = || market.told(place).iter().any(is_told).then_some(());
        market.until(&format!("{} is told", place.name()), told).await?;
    }
    Ok(places)
}

/// What was looked at, and what is shown there.
#[derive(Default)]
struct Seen(Vec<String>);

impl Seen {
    fn text(&mut self, what: &str, text: &str) {
        for (name, secret) in SECRETS {
            // Its beginning may be known to everybody: the number of a bot, the kind of a key.
            let own = secret.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or(secret);
            let parts = [&own[..PART], &own[own.len() - PART..]];
            if parts.iter().any(|part| text.contains(part)) {
                let part = if text.contains(own) { "" } else { "a part of " };
                let found = format!("{what} shows {part}{name}");
                if !self.0.contains(&found) {
                    self.0.push(found);
                }
            }
        }
    }

    async fn command(&mut self, market: &Market, arguments: &[&str]) -> Result<()> {
        let (_, printed) = market.command(arguments).await?;
        self.text(&format!("`talaria {}`", arguments.join(" ")), &printed);
        Ok(())
    }

    /// Looks at how the accounts are.
    async fn status(&mut self, market: &Market) -> Result<()> {
        for arguments in [&["status"][..], &["status", "--json"], &["platforms"]] {
            self.command(market, arguments).await?;
        }
        let state = fs::read_to_string(market.home.file("gateway_state.json"))?;
        self.text("gateway_state.json", &state);
        Ok(())
    }

    /// Looks at everything that can be looked at, of these chats as closely as it can be.
    async fn everything(&mut self, market: &Market, places: &[Place]) -> Result<()> {
        self.text("what it writes", &market.output());
        self.status(market).await?;
        for arguments in [&["logs", "-n", "5000"][..], &["audit"], &["metrics"]] {
            self.command(market, arguments).await?;
        }
        let (_, listed) = market.command(&["sessions", "list", "--json", "--limit", "500"]).await?;
        self.text("`talaria sessions list`", &listed);
        let listed: Value = serde_json::from_str(&listed)?;
        let sessions = listed["sessions"].as_array().context("no list of conversations")?;
        ensure!(sessions.len() >= places.len(), "there are {} conversations", sessions.len());
        let mut commands = Vec::new();
        for session in sessions {
            let id = session["id"].as_str().context("an id")?;
            commands.push(["sessions", "export", id].map(str::to_owned));
        }
        for place in places {
            commands.push(["why", "--text", &place.name()].map(str::to_owned));
            commands.push(["why", "--json", &place.name()].map(str::to_owned));
        }
        let running = commands.into_iter().map(|command| printed(market, command));
        let printed: Vec<Result<_>> =
            stream::iter(running).buffer_unordered(AT_ONCE).collect().await;
        for printed in printed {
            let (what, text) = printed?;
            self.text(&what, &text);
        }
        self.files(market)
    }

    /// Looks at the bytes of everything that is kept, but for where the secrets come from.
    fn files(&mut self, market: &Market) -> Result<()> {
        let home = market.home.path();
        let mut looked_at = BTreeSet::new();
        for file in below(home)? {
            if file.file_name().is_some_and(|name| name == "config.yaml") {
                continue;
            }
            // What is written in two steps may be gone by the second look.
            let Ok(bytes) = fs::read(&file) else { continue };
            let name = file.strip_prefix(home)?.display().to_string();
            self.text(&name, &String::from_utf8_lossy(&bytes));
            looked_at.insert(name);
        }
        for kept in ["state.db", "state.db-wal", "search.db", "gateway_state.json", LOG] {
            ensure!(looked_at.contains(kept), "there is no {kept} to look at: {looked_at:?}");
        }
        Ok(())
    }

    fn told(self, by: &str) -> Vec<String> {
        self.0.into_iter().map(|found| format!("{by}: {found}")).collect()
    }
}

/// What a command is called, and what it prints.
async fn printed(market: &Market, command: [String; 3]) -> Result<(String, String)> {
    let [verb, how, what] = command.each_ref().map(String::as_str);
    let (code, printed) = market.command(&[verb, how, what]).await?;
    ensure!(code == 0, "{verb} {how} {what} ended with {code}: {printed}");
    Ok((format!("`talaria {verb} {how}`"), printed))
}

/// Every file below a folder.
fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(below(&entry.path())?);
        } else {
            found.push(entry.path());
        }
    }
    Ok(found)
}
