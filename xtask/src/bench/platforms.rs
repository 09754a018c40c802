//! Telegram, Discord and Slack, played by loopback servers.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use talaria_testkit::vendors::{Calls, Verb};
use talaria_testkit::{FakeLlm, GatewayProcess, Home, Launch, Reply, within};
use tokio::time::{Instant, sleep};

use super::figures::{Figures, Spoken};
use crate::trio::configuration;
use crate::trio::places::{Conversation, DISCORD, SLACK, TELEGRAM, Travel, Vendors};

/// No step of the benchmark takes this long unless it hangs.
const HANGS: Duration = Duration::from_secs(120);

/// All of it together takes no longer.
const MOST: Duration = Duration::from_secs(170);

/// How many turns are in one conversation, with those of all others between two of them.
const CONVERSATION: usize = 2;

/// How long an account rests between two turns, so that the gateway and not the platform's own pace is
/// measured.
const RESTS: [(&str, Duration); 3] = [
    (TELEGRAM, Duration::from_millis(150)),
    (DISCORD, Duration::from_millis(150)),
    (SLACK, Duration::from_millis(1_200)),
];

#[derive(Args)]
pub(super) struct Options {
    /// Little of it and with what is built for debugging: whether it runs, not how fast
    #[arg(long)]
    pub(super) small: bool,
}

/// How much is measured.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// Turns on each platform.
    turns: usize,
    /// People who are answered at the same time.
    crowd: usize,
    /// How long they are looked at.
    look: Duration,
}

impl Size {
    pub(super) const FULL: Self = Self { turns: 60, crowd: 1_000, look: Duration::from_secs(10) };
    const SMALL: Self = Self { turns: 12, crowd: 60, look: Duration::from_secs(3) };
}

impl Options {
    pub(super) fn size(&self) -> Size {
        if self.small { Size::SMALL } else { Size::FULL }
    }
}

/// Everything about the three platforms.
pub(super) async fn measure(
    binary: &Path,
    folder: &Path,
    figures: &mut Figures,
    size: Size,
) -> Result<()> {
    let all = async {
        eprintln!("Telegram, Discord and Slack");
        speak(binary, folder, figures, size).await?;
        eprintln!("{} answers streaming", size.crowd);
        stream(binary, folder, figures, size).await
    };
    tokio::time::timeout(MOST, all).await.context("the platforms take too long")?
}

/// How often it is looked whether something has happened.
const GLANCE: Duration = Duration::from_millis(2);

/// Enough to be shown at once, wherever answers are shown while they grow.
const FIRST_WORD: &str = "quite-a-long-word-to-begin-an-answer-with";

/// What the last word of an answer is.
const LAST_WORD: &str = "fin";

/// A gateway on all three. Ends with it.
struct Opened {
    vendors: Vendors,
    llm: FakeLlm,
    process: GatewayProcess,
    _home: Home,
}

impl Opened {
    async fn new(binary: &Path, folder: &Path) -> Result<Self> {
        let (vendors, llm) = (Vendors::open().await, FakeLlm::open().await?);
        // What is measured is the gateway and not what the vendors let through.
        vendors.discord.truth().bucket = None;
        let home = Home::empty_below(folder)?;
        home.write("config.yaml", &configuration(&llm, &vendors)?)?;
        let launch = Launch::new(binary).environment("TALARIA_LOG__LEVEL", "warn");
        let mut process = launch.start(home.path())?;
        within(HANGS, "the ready line", process.ready()).await?;
        let connected = async {
            while !vendors.is_connected() {
                sleep(GLANCE).await;
            }
        };
        within(HANGS, "the gateway to connect", connected).await;
        Ok(Self { vendors, llm, process, _home: home })
    }

    fn calls(&self, platform: &str) -> Result<Calls> {
        let mut all = self.vendors.calls().into_iter();
        let (_, calls) = all.find(|(name, _)| *name == platform).context("one of the three")?;
        Ok(calls)
    }

    /// One turn: how long until the model was asked, and from its first word until that was shown.
    async fn turn(
        &self,
        place: &Conversation,
        asked: &Mutex<Option<Instant>>,
    ) -> Result<(Duration, Duration)> {
        let calls = self.calls(place.account)?;
        let before = calls.count();
        let said = Instant::now();
        self.vendors.say(
            place,
            "what would you bring along for a week by the sea",
            Travel::Straight,
        );
        let answered = async {
            loop {
                let calls = calls.since(before);
                if calls.iter().any(|call| call.act.text.ends_with(LAST_WORD)) {
                    return calls;
                }
                sleep(GLANCE).await;
            }
        };
        let calls = within(HANGS, "an answer", answered).await;
        let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        let asked = asked.context("the model was asked")?;
        let spoke = self.llm.spoke().context("the model has spoken")?;
        let shows = |verb| matches!(verb, Verb::Post | Verb::Edit | Verb::Draft);
        let shown = calls.iter().find(|call| shows(call.act.verb) && call.at >= spoke);
        let shown = shown.context("something was shown")?;
        Ok((asked - said, shown.at - spoke))
    }

    async fn end(mut self) -> Result<()> {
        self.process.terminate()?;
        within(HANGS, "the gateway to end", self.process.ended()).await?;
        Ok(())
    }
}

/// How soon the model is asked, and its first word shown, on each platform.
async fn speak(binary: &Path, folder: &Path, figures: &mut Figures, size: Size) -> Result<()> {
    let opened = Opened::new(binary, folder).await?;
    let asked = Arc::new(Mutex::new(None));
    let noted = asked.clone();
    opened.llm.script(move |_| {
        *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let text = format!("{FIRST_WORD} and so on {LAST_WORD}");
        Reply::Streams { text, between: Duration::from_millis(10) }
    });
    for (first, (platform, rest)) in RESTS.into_iter().enumerate() {
        let (mut heard, mut shown) = (Vec::new(), Vec::new());
        // On Telegram in private: groups are slow by its own rules.
        let places = (0..size.turns / CONVERSATION).map(|nth| nth / 2 * 4 + nth % 2);
        let places = places.map(|nth| opened.vendors.conversation(first + 3 * nth));
        let places: Vec<Conversation> = places.collect();
        for place in places.iter().cycle().take(size.turns) {
            let (hears, shows) = opened.turn(place, &asked).await?;
            heard.push(hears);
            shown.push(shows);
            sleep(rest).await;
        }
        heard.sort_unstable();
        shown.sort_unstable();
        figures.platforms.push(Spoken { platform, heard, shown });
    }
    opened.end().await
}

/// What it costs to show 1,000 answers at once while they grow.
async fn stream(binary: &Path, folder: &Path, figures: &mut Figures, size: Size) -> Result<()> {
    let opened = Opened::new(binary, folder).await?;
    let words = "word ".repeat(400);
    opened.llm.script(move |_| {
        let text = format!("{words}{LAST_WORD}");
        Reply::Streams { text, between: Duration::from_millis(100) }
    });
    for number in 0..size.crowd {
        let place = opened.vendors.conversation(number);
        opened.vendors.say(&place, "tell me a long story", Travel::Straight);
    }
    let asked = opened.llm.until_requests(size.crowd as u64);
    within(HANGS, "the model to be asked by everybody", asked).await;
    let before = opened.process.usage()?;
    let begun = Instant::now();
    sleep(size.look).await;
    let (after, took) = (opened.process.usage()?, begun.elapsed());
    let spent = after.processor - before.processor;
    let shown: usize = opened.vendors.calls().iter().map(|(_, calls)| calls.count()).sum();
    // Vendors allow fewer than one a person in that time; the rest of what grows is left out.
    ensure!(2 * shown > size.crowd, "only {shown} requests were made");
    figures.streaming = (spent.as_secs_f64() / took.as_secs_f64(), after.most_resident);
    // Nobody waits for the rest of the story.
    opened.process.kill().await
}
