//! Telegram, Discord and Slack, played by loopback servers.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use talaria_testkit::vendors::{Calls, Verb};
use talaria_testkit::{FakeLlm, GatewayProcess, Home, Launch, Reply, within};
use tokio::time::{Instant, sleep};

use super::figures::{Figures, Spoken};
use crate::trio::configuration;
use crate::trio::places::{Conversation, Travel, Vendors};

/// No step of the benchmark takes this long unless it hangs.
const HANGS: Duration = Duration::from_secs(120);

/// Turns on each platform, and how many of them are in one conversation.
const TURNS: usize = 120;
const CONVERSATION: usize = 6;

/// People who are answered at the same time.
const CROWD: usize = 1_000;

/// How long it is looked at.
const LOOK: Duration = Duration::from_secs(10);

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
pub(super) async fn speak(binary: &Path, folder: &Path, figures: &mut Figures) -> Result<()> {
    let opened = Opened::new(binary, folder).await?;
    let asked = Arc::new(Mutex::new(None));
    let noted = asked.clone();
    opened.llm.script(move |_| {
        *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let text = format!("{FIRST_WORD} and so on {LAST_WORD}");
        Reply::Streams { text, between: Duration::from_millis(10) }
    });
    for first in 0..3 {
        let (mut heard, mut shown) = (Vec::new(), Vec::new());
        let mut platform = "";
        for conversation in 0..TURNS / CONVERSATION {
            let place = opened.vendors.conversation(first + 3 * conversation);
            platform = place.account;
            for _ in 0..CONVERSATION {
                let (hears, shows) = opened.turn(&place, &asked).await?;
                heard.push(hears);
                shown.push(shows);
            }
        }
        heard.sort_unstable();
        shown.sort_unstable();
        figures.platforms.push(Spoken { platform, heard, shown });
    }
    opened.end().await
}

/// What it costs to show 1,000 answers at once while they grow.
pub(super) async fn stream(binary: &Path, folder: &Path, figures: &mut Figures) -> Result<()> {
    let opened = Opened::new(binary, folder).await?;
    let words = "word ".repeat(400);
    opened.llm.script(move |_| {
        let text = format!("{words}{LAST_WORD}");
        Reply::Streams { text, between: Duration::from_millis(100) }
    });
    for number in 0..CROWD {
        let place = opened.vendors.conversation(number);
        opened.vendors.say(&place, "tell me a long story", Travel::Straight);
    }
    let asked = opened.llm.until_requests(CROWD as u64);
    within(HANGS, "the model to be asked by everybody", asked).await;
    let before = opened.process.usage()?;
    let begun = Instant::now();
    sleep(LOOK).await;
    let (after, took) = (opened.process.usage()?, begun.elapsed());
    let spent = after.processor - before.processor;
    let shown: usize = opened.vendors.calls().iter().map(|(_, calls)| calls.count()).sum();
    ensure!(shown > CROWD, "only {shown} requests were made");
    figures.streaming = (spent.as_secs_f64() / took.as_secs_f64(), after.most_resident);
    // Nobody waits for the rest of the story.
    opened.process.kill().await
}
