//! A model that is a function of what it is asked, with a provider that fails by chance, and tools
//! that leave traces in the world. It drives the built-in agent.
//!
//! What a person says may hold words that the model acts upon, each in a call of its own before it
//! answers: `pay` (must not happen twice), `put` (may), `check` (can say whether it happened), `look`
//! (only looks), `draw` (makes a file), `hang` (never ends), `choose` and `wonder` (ask the person), `spend`
//! (must not happen twice, nor without a yes to what it costs at that moment), `long` (a long answer). Its answer repeats what it heard.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};
use talaria_agent::{
    Agent, Automatic, Budget, BuiltIn, Danger, Delta, Deltas, EffectClass, Fence, FinishReason,
    Gravity, Part, Prompt, PromptMessage, Provider, ProviderError, Reads, Settings, Sight, Tool,
    ToolError, ToolOutput, ToolScope, ToolSpec, Toolbox, Wraps, tools,
};
use talaria_clock::{Clock, SystemClock};
use talaria_gateway::StoredAttachments;
use talaria_model::{CallId, Cost, SenderId, ToolCall, TurnId, Usage};

use super::files::Files;
use super::points::Alive;
use super::{Ground, WallClock};
use crate::{Dice, Token, echo, mentioned};

/// What a tool did in the world outside, which no crash undoes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    /// Which tool.
    pub tool: &'static str,
    /// In which turn.
    pub turn: TurnId,
    /// For which call.
    pub call: CallId,
    /// In whose name.
    pub from: SenderId,
    /// What it came to, where that changes from one moment to the next.
    pub price: Option<String>,
}

/// What was asked of the model.
#[derive(Debug, Clone)]
pub struct Asking {
    /// The messages that the whole prompt mentions.
    pub tokens: Vec<Token>,
    /// The messages that it has to answer.
    pub open: Vec<Token>,
    /// How the provider failed, if it did.
    pub failure: Option<ProviderError>,
}

/// How often the provider does what it should not: one time in so many, never when zero.
#[derive(Debug, Clone, Default)]
pub struct Moods {
    /// Breaks off.
    pub cuts: u64,
    /// Refuses for now.
    pub limits: u64,
    /// Answers nonsense: calls of tools that do not exist, arguments that are no JSON, nothing at all.
    pub garbles: u64,
    /// Starts again from the beginning.
    pub restarts: u64,
    /// Breaks down.
    pub panics: u64,
    /// How long it takes for each piece of an answer, at most.
    pub pace: Duration,
    /// How many words an answer has besides.
    pub filler: u64,
}

/// A model. Clones are the same one.
#[derive(Clone)]
pub struct Model(Arc<Inner>);

struct Inner {
    ground: Ground,
    files: Files,
    mind: Mutex<Mind>,
}

#[derive(Default)]
struct Mind {
    asked: Vec<Asking>,
    deeds: Vec<Deed>,
    at_once: usize,
    most_at_once: usize,
    moods: Moods,
    dice: Option<Dice>,
    /// Being asked about this kills the process, so many times.
    deadly: Option<(Token, u32)>,
}

/// What the model is to do with one thing that was said.
const VERBS: [&str; 9] =
    ["pay", "put", "check", "look", "draw", "hang", "choose", "wonder", "spend"];

/// How long a price holds.
const PRICE_HOLDS: i64 = 60_000;

impl Model {
    /// A model that behaves, and says twelve letters every half second.
    pub fn new(ground: Ground, files: Files) -> Self {
        let moods = Moods { pace: Duration::from_millis(500), filler: 6, ..Moods::default() };
        let mind = Mutex::new(Mind { moods, ..Mind::default() });
        Self(Arc::new(Inner { ground, files, mind }))
    }

    /// Behaves like this from here on.
    pub fn has_moods(&self, moods: Moods, dice: Dice) {
        let mut mind = self.lock();
        mind.moods = moods;
        mind.dice = Some(dice);
    }

    /// Behaves from here on, and keeps its pace.
    pub fn heals(&self) {
        let mut mind = self.lock();
        let (pace, filler) = (mind.moods.pace, mind.moods.filler);
        mind.moods = Moods { pace, filler, ..Moods::default() };
    }

    /// Being asked about this message, and about nothing said after it, kills the process, so many
    /// times.
    pub fn is_killed_by(&self, token: Token, times: u32) {
        self.lock().deadly = Some((token, times));
    }

    /// Everything that was asked, in order.
    pub fn asked(&self) -> Vec<Asking> {
        self.lock().asked.clone()
    }

    /// What its tools did.
    pub fn deeds(&self) -> Vec<Deed> {
        self.lock().deeds.clone()
    }

    /// How many answers it wrote at the same time, at most.
    pub fn most_at_once(&self) -> usize {
        self.lock().most_at_once
    }

    /// A process has died, and with it what it was asking.
    pub(super) fn forget_callers(&self) {
        self.lock().at_once = 0;
    }

    /// The built-in agent with this model, for one life of the gateway.
    pub fn agent(&self, clock: &WallClock) -> Arc<dyn Agent> {
        let tool = |name, effect, takes| Doing { name, effect, takes, model: self.clone() };
        let moment = Duration::from_secs(2);
        let toolbox = Toolbox::default()
            .with(tools::Ask)
            .with(tool("pay", EffectClass::Unsafe, moment))
            .with(tool("spend", EffectClass::Unsafe, moment))
            .with(tool("put", EffectClass::Idempotent, moment))
            .with(tool("check", EffectClass::Queryable, moment))
            .with(tool("look", EffectClass::Pure, moment))
            .with(tool("draw", EffectClass::Pure, moment))
            .with(tool("hang", EffectClass::Idempotent, Duration::from_secs(1_000_000)));
        let settings = Settings {
            instructions: "Echo.".into(),
            max_steps: 12,
            turn_limit: Duration::from_secs(1800),
            // A summary is written by a model that reads; this one only repeats.
            budget: Budget { automatic: Automatic::Off, ..Budget::default() },
            fence: Fence::default(),
        };
        let attachments = Arc::new(StoredAttachments(Arc::new(self.0.files.clone())));
        let clock = Arc::new(clock.clone());
        Arc::new(BuiltIn::new(Arc::new(self.clone()), toolbox, attachments, clock, settings))
    }

    fn lock(&self) -> MutexGuard<'_, Mind> {
        self.0.mind.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mind {
    fn one_in(&mut self, many: impl Fn(&Moods) -> u64) -> bool {
        let many = many(&self.moods);
        many > 0 && self.dice.as_mut().is_some_and(|dice| dice.below(many) == 0)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.dice.as_mut().map_or(0, |dice| dice.below(limit.max(1)))
    }
}

/// One prompt, as far as it matters.
struct Read {
    /// Each thing said that has no answer yet, with its place in the prompt.
    said: Vec<(usize, String)>,
    /// The calls made about it.
    called: Vec<CallId>,
    /// What came back.
    results: Vec<String>,
    /// Everything in the prompt that mentions a message.
    tokens: Vec<Token>,
}

impl Read {
    fn of(prompt: &Prompt) -> Self {
        let is_answer = |message: &PromptMessage| matches!(message, PromptMessage::Assistant { calls, text, .. } if calls.is_empty() && !text.is_empty());
        let from = prompt.messages.iter().rposition(is_answer).map_or(0, |place| place + 1);
        let mut read = Self { said: vec![], called: vec![], results: vec![], tokens: vec![] };
        let mut whole = String::new();
        for (place, message) in prompt.messages.iter().enumerate() {
            match message {
                PromptMessage::User(parts) => {
                    let texts = parts.iter().filter_map(|part| match part {
                        Part::Text(text) => Some(text.as_str()),
                        Part::Image { .. } => None,
                    });
                    // Repeated in the middle of a sentence, a fence would not be one.
                    let text = without_notes(&texts.collect::<Vec<_>>().join(" "));
                    let text = text.replace(['`', '\n'], " ");
                    whole.push_str(&text);
                    if place >= from {
                        read.said.push((place, text));
                    }
                }
                PromptMessage::Assistant { text, calls, .. } => {
                    whole.push_str(text);
                    if place >= from {
                        read.called.extend(calls.iter().map(|call| call.id.clone()));
                    }
                }
                PromptMessage::ToolResult { output, .. } => {
                    whole.push_str(output);
                    if place >= from {
                        read.results.push(output.clone());
                    }
                }
            }
            whole.push('\n');
        }
        read.tokens = mentioned(&whole);
        read
    }

    /// The next call to make, with what is said before it.
    fn call(&self) -> Option<(String, ToolCall)> {
        for (place, text) in &self.said {
            for verb in VERBS.iter().filter(|verb| is_in(verb, text)) {
                let about = mentioned(text).first().map_or(format!("at{place}"), Token::to_string);
                let id = CallId::new(format!("{verb}-{about}")).expect("an id");
                if self.called.contains(&id) {
                    continue;
                }
                let (tool, before, arguments) = match *verb {
                    "choose" => {
                        let question = format!("Which one for {text}?");
                        (
                            "ask",
                            String::new(),
                            json!({ "question": question, "choices": ["red", "blue"] }),
                        )
                    }
                    "wonder" => {
                        ("ask", String::new(), json!({ "question": format!("What about {text}?") }))
                    }
                    "pay" => ("pay", format!("First I pay for {text}, then I tell."), json!({})),
                    "spend" => ("spend", String::new(), json!({ "for": about })),
                    other => (other, String::new(), json!({})),
                };
                let (tool, arguments) = (tool.to_owned(), arguments.to_string());
                return Some((before, ToolCall { id, tool, arguments }));
            }
        }
        None
    }

    fn answer(&self, filler: usize) -> String {
        let said = self.said.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" / ");
        let long = self.said.iter().any(|(_, text)| is_in("long", text));
        let seen = match self.results.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.results.join("; ")),
        };
        echo(&format!("{said}{seen}"), if long { 300 } else { filler })
    }
}

/// What a person said, without what the gateway has to say about it.
fn without_notes(text: &str) -> String {
    let is_said = |paragraph: &&str| !paragraph.starts_with("[[System note: ");
    text.split("\n\n").filter(is_said).collect::<Vec<_>>().join("\n\n")
}

/// Whether somebody says this word, as a word.
fn is_in(verb: &str, text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == verb)
}

impl Provider for Model {
    fn complete(&self, prompt: Prompt) -> Deltas {
        let read = Read::of(&prompt);
        let open: Vec<Token> = mentioned(
            &read.said.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" "),
        );
        let ground = self.0.ground.clone();
        if ground.points.reach(format_args!("the model is asked about {open:?}")) == Alive::No {
            return stream::pending().boxed();
        }
        let mut mind = self.lock();
        if let Some((token, left)) = &mut mind.deadly
            && *left > 0
            && open.last() == Some(token)
        {
            *left -= 1;
            ground.points.die();
            return stream::pending().boxed();
        }
        let mut failure = None;
        if mind.one_in(|moods| moods.limits) {
            failure = Some(ProviderError::RateLimited { after: Some(Duration::from_secs(7)) });
        }
        let panics = mind.one_in(|moods| moods.panics);
        let filler = match mind.moods.filler {
            0 => 0,
            most if mind.dice.is_some() => mind.below(most) as usize,
            most => most as usize,
        };
        let (mut text, mut calls) = match read.call() {
            Some((text, call)) => (text, vec![call]),
            None => (read.answer(filler), vec![]),
        };
        if mind.one_in(|moods| moods.garbles) {
            let id = CallId::new(format!("garbage-{}", prompt.messages.len())).expect("an id");
            match mind.below(4) {
                0 => (text, calls) = (String::new(), vec![]),
                1 => {
                    let detail = "not JSON".to_owned();
                    failure = Some(ProviderError::Garbled { detail });
                }
                2 => calls
                    .insert(0, ToolCall { id, tool: "nonsense".into(), arguments: "{}".into() }),
                _ => calls.insert(0, ToolCall { id, tool: "pay".into(), arguments: "{\"a".into() }),
            }
        }
        let pieces = pieces(&text);
        let cut_at =
            mind.one_in(|moods| moods.cuts).then(|| mind.below(pieces.len() as u64 + 1) as usize);
        if cut_at.is_some() && failure.is_none() {
            failure = Some(ProviderError::Cut);
        }
        let mut deltas: Vec<Result<Delta, ProviderError>> = Vec::new();
        if mind.one_in(|moods| moods.restarts) {
            deltas.extend(pieces.iter().take(3).cloned().map(Delta::Text).map(Ok));
            deltas.push(Ok(Delta::Restarted));
        }
        match (&failure, cut_at) {
            (Some(ProviderError::Cut), Some(cut)) => {
                // It ends without an end, or says that it broke.
                deltas.extend(pieces.into_iter().take(cut).map(Delta::Text).map(Ok));
                if mind.below(2) == 0 {
                    deltas.push(Err(ProviderError::Cut));
                }
            }
            (Some(error), _) => deltas.push(Err(error.clone())),
            (None, _) => {
                deltas.extend(pieces.into_iter().map(Delta::Text).map(Ok));
                let reason =
                    if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
                let usage = Usage { input: 10, output: 5, ..Usage::default() };
                let cost = Cost::FREE;
                deltas.push(Ok(Delta::Finished { reason, calls, reasoning: None, usage, cost }));
            }
        }
        let fixed = mind.dice.is_none();
        let pace = u64::try_from(mind.moods.pace.as_millis()).unwrap_or(u64::MAX);
        let waits: Vec<u64> =
            deltas.iter().map(|_| if fixed { pace } else { mind.below(pace) }).collect();
        mind.asked.push(Asking { tokens: read.tokens, open, failure });
        mind.at_once += 1;
        mind.most_at_once = mind.most_at_once.max(mind.at_once);
        drop(mind);
        let counted = Writing(self.clone());
        let deltas = deltas.into_iter().zip(waits).collect::<Vec<_>>();
        stream::iter(deltas)
            .then(move |(delta, wait)| {
                let ground = counted.0.0.ground.clone();
                async move {
                    assert!(!panics, "the test says so");
                    SystemClock.sleep(Duration::from_millis(wait)).await;
                    if let Ok(Delta::Finished { .. }) = &delta {
                        ground.points.pass("the model has answered".into()).await;
                    }
                    delta
                }
            })
            .boxed()
    }

    fn name(&self) -> &str {
        "test/parrot"
    }

    fn sight(&self) -> Sight {
        Sight::TextOnly
    }

    fn context_window(&self) -> BoxFuture<'_, Option<u64>> {
        std::future::ready(None).boxed()
    }

    fn unfinished(&self, _: Usage) -> Cost {
        Cost::UNKNOWN
    }
}

/// Counts an answer while it is written.
struct Writing(Model);

impl Drop for Writing {
    fn drop(&mut self) {
        let mut mind = self.0.lock();
        mind.at_once = mind.at_once.saturating_sub(1);
    }
}

/// A long answer comes in larger pieces, so that it does not take all day.
fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let size = 12.max(letters.len() / 16);
    letters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

/// A tool that takes a while and leaves a trace in the world.
struct Doing {
    name: &'static str,
    effect: EffectClass,
    takes: Duration,
    model: Model,
}

impl Doing {
    fn output(&self) -> String {
        format!("{} is done", self.name)
    }

    /// What it costs at this moment.
    fn price(&self) -> String {
        format!("price{}", self.model.0.ground.time.now().as_millis() / PRICE_HOLDS)
    }
}

#[async_trait]
impl Tool for Doing {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object" });
        ToolSpec { name: self.name.into(), description: "Does it.".into(), parameters }
    }

    fn effect(&self) -> EffectClass {
        self.effect
    }

    fn gravity(&self, arguments: &Value, _: &ToolScope) -> Result<Gravity, ToolError> {
        if self.name != "spend" {
            return Ok(Gravity::Harmless);
        }
        let about = arguments["for"].as_str().unwrap_or_default();
        Ok(Gravity::Asks(Danger {
            what: format!("spends for {about}"),
            resolved: json!({ "for": about, "price": self.price() }),
            wraps: Wraps::Nothing,
            reads: Reads::Signs,
        }))
    }

    async fn call(&self, _: Value, scope: ToolScope) -> Result<ToolOutput, ToolError> {
        let ground = &self.model.0.ground;
        let price = (self.name == "spend").then(|| self.price());
        SystemClock.sleep(self.takes / 2).await;
        ground.points.pass(format!("before {} does it", scope.call)).await;
        let deed = Deed {
            tool: self.name,
            turn: scope.turn.clone(),
            call: scope.call.clone(),
            from: scope.from.id.clone(),
            price,
        };
        self.model.lock().deeds.push(deed);
        ground.points.pass(format!("after {} did it", scope.call)).await;
        SystemClock.sleep(self.takes / 2).await;
        let mut files = Vec::new();
        if self.name == "draw" {
            let name = format!("{}.txt", scope.call);
            let bytes = format!("drawn for {}", scope.call).into_bytes();
            let bytes = stream::iter([Ok(bytes::Bytes::from(bytes))]).boxed();
            let kept = talaria_platform::FileStore::save(&self.model.0.files, &name, None, bytes);
            files.extend(kept.await.ok());
        }
        Ok(ToolOutput { files, ..ToolOutput::text(self.output()) })
    }

    async fn outcome(&self, call: &CallId) -> Result<Option<ToolOutput>, ToolError> {
        let done = self.model.lock().deeds.iter().any(|deed| deed.call == *call);
        Ok(done.then(|| ToolOutput::text(self.output())))
    }
}
