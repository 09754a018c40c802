//! Lets the operator's hooks watch the gateway: what they are told of each event, and what their
//! decisions mean.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use talaria_gateway::{
    Arriving, Commanded, Decided, Gateway, Happening, Order, Over, Used, Watcher, What,
};
use talaria_hooks::{Events, Hooks, Listed, Rewrite, Ruling, Verdict, Way};
use talaria_model::{Inbound, InboundKind, Intervened, Intervention};
use talaria_session::{COMMANDS, Retired};

/// What people say is cut to this where it is only told, in characters.
const TOLD: usize = 500;

/// What people say is cut to this where a hook decides about it, in bytes. Nobody is heard who says more,
/// so a hook that rewrites a text has seen all of it.
const ASKED: usize = 256 * 1024;

/// The event of something that arrives.
const ARRIVAL: &str = "pre_dispatch";

/// What hooks can hear of, and what they are asked about. Commands are named by whoever gives them.
pub(crate) const EVENTS: Events<'static> = Events {
    all: &[
        "gateway:startup",
        "gateway:shutdown",
        "session:start",
        "session:end",
        "session:reset",
        "agent:start",
        "agent:step",
        "agent:end",
        "command:*",
        ARRIVAL,
    ],
    asked: &["command:*", ARRIVAL],
};

/// How long hooks have to hear that the gateway ends.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(5);

/// What a person is told whose command a hook refuses without a word.
const REFUSED: &str = "That command is not allowed here.";

/// What a person is told whose command a hook has carried out without a word.
const DONE: &str = "Done.";

pub(crate) struct Watching {
    hooks: Arc<Hooks>,
}

impl Watching {
    pub(crate) fn new(hooks: Arc<Hooks>) -> Self {
        Self { hooks }
    }

    /// Whether an event is told to anybody, or decided about.
    fn concerns(&self, event: &str) -> bool {
        self.hooks.wants(event) || self.hooks.decides(event)
    }
}

/// Says that the gateway serves.
pub(crate) fn started(hooks: &Hooks, gateway: &Gateway) {
    let platforms: Vec<&str> = gateway.accounts().iter().map(|account| account.platform).collect();
    hooks.tell("gateway:startup", &json!({ "platforms": platforms }));
}

/// Says that the gateway ends, and lets the hooks finish, within reason.
pub(crate) async fn ended(hooks: &Hooks) {
    hooks.tell("gateway:shutdown", &json!({}));
    hooks.quiet(LAST_WORDS).await;
}

#[async_trait]
impl Watcher for Watching {
    fn watches(&self) -> bool {
        !self.hooks.is_empty()
    }

    fn happened(&self, happening: &Happening) {
        let mut about = place(happening);
        let names: &[&str] = match &happening.what {
            What::Began => &["session:start"],
            What::Ended(why) => {
                about.insert("reason".into(), why_over(*why).into());
                &["session:end"]
            }
            What::Renewed => {
                about.insert("reason".into(), why_over(Over::Retired(Retired::New)).into());
                &["session:reset"]
            }
            What::TurnBegan { turn, message } => {
                about.insert("turn".into(), turn.to_string().into());
                about.insert("message".into(), cut(message, TOLD).into());
                &["agent:start"]
            }
            What::Stepped { turn, iteration, calls, took } => {
                about.insert("turn".into(), turn.to_string().into());
                about.insert("iteration".into(), (*iteration).into());
                let names: Vec<&str> = calls.iter().map(|used| used.call.tool.as_str()).collect();
                about.insert("tool_name".into(), names.join(", ").into());
                about.insert("duration_ms".into(), millis(*took).into());
                about.insert("tool_names".into(), names.into());
                about.insert("tools".into(), calls.iter().map(tool).collect());
                &["agent:step"]
            }
            What::TurnEnded { turn, message, response, failure } => {
                about.insert("turn".into(), turn.to_string().into());
                about.insert("message".into(), message.as_ref().map(|text| cut(text, TOLD)).into());
                about.insert("response".into(), cut(response, TOLD).into());
                about.insert("ok".into(), failure.is_none().into());
                &["agent:end"]
            }
        };
        let about = Value::Object(about);
        for name in names {
            if self.hooks.wants(name) {
                self.hooks.tell(name, &about);
            }
        }
    }

    fn judges_arrivals(&self) -> bool {
        self.hooks.decides(ARRIVAL)
    }

    fn judges(&self, order: &Order<'_>) -> bool {
        self.hooks.decides(&command(order))
    }

    fn arrived(&self, platform: &'static str, inbound: &Inbound) {
        if self.hooks.wants(ARRIVAL) {
            self.hooks.tell(ARRIVAL, &arrival(platform, inbound));
        }
    }

    async fn arriving(&self, platform: &'static str, inbound: &Inbound) -> Decided<Arriving> {
        if !self.concerns(ARRIVAL) {
            return Arriving::Goes.into();
        }
        let verdict = self.hooks.ask(ARRIVAL, &arrival(platform, inbound)).await;
        let Verdict { ruling, by: Some(by), failure } = verdict else {
            return Arriving::Goes.into();
        };
        if let Some(failure) = failure {
            let why = failure.in_short();
            let dropped = format!("the hook {by} denies what it cannot decide: {why}");
            return decided(Arriving::Dropped(dropped), by, Intervened::Failed(why));
        }
        let what = arriving(&by, ruling);
        let did = match &what {
            Arriving::Goes => Intervened::Allowed,
            Arriving::Rewritten(_) => Intervened::Rewrote,
            Arriving::Dropped(_) => Intervened::Refused,
        };
        decided(what, by, did)
    }

    fn ordered(&self, order: &Order<'_>) {
        let event = command(order);
        if self.hooks.wants(&event) {
            self.hooks.tell(&event, &given(order));
        }
    }

    async fn commanded(&self, order: &Order<'_>) -> Decided<Commanded> {
        let event = command(order);
        if !self.concerns(&event) {
            return Commanded::Goes.into();
        }
        let verdict = self.hooks.ask(&event, &given(order)).await;
        let Verdict { ruling, by: Some(by), failure } = verdict else {
            return Commanded::Goes.into();
        };
        let did = match (failure, &ruling) {
            (Some(failure), _) => Intervened::Failed(failure.in_short()),
            (None, Ruling::Pass | Ruling::Allow) => Intervened::Allowed,
            (None, Ruling::Rewrite(_)) => Intervened::Rewrote,
            (None, Ruling::Deny { .. } | Ruling::Skip { .. }) => Intervened::Refused,
            (None, Ruling::Handled { .. }) => Intervened::Handled,
        };
        decided(commanded(ruling, &order.given.name, &order.given.arguments), by, did)
    }
}

fn decided<T>(what: T, by: String, did: Intervened) -> Decided<T> {
    Decided { what, by: Some(Intervention { by, what: did }) }
}

/// What a ruling about something that arrived comes to.
fn arriving(by: &str, ruling: Ruling) -> Arriving {
    match ruling {
        Ruling::Pass | Ruling::Allow => Arriving::Goes,
        Ruling::Rewrite(Rewrite { text: Some(text), .. }) => Arriving::Rewritten(text),
        Ruling::Rewrite(_) => Arriving::Goes,
        Ruling::Skip { reason: Some(reason) } | Ruling::Deny { message: Some(reason) } => {
            Arriving::Dropped(format!("the hook {by} dropped it: {}", cut(&reason, TOLD)))
        }
        Ruling::Skip { .. } | Ruling::Deny { .. } | Ruling::Handled { .. } => {
            Arriving::Dropped(format!("the hook {by} dropped it"))
        }
    }
}

/// What a ruling about a command comes to.
fn commanded(ruling: Ruling, name: &str, arguments: &str) -> Commanded {
    match ruling {
        Ruling::Pass | Ruling::Allow => Commanded::Goes,
        Ruling::Deny { message } => Commanded::Answered(message.unwrap_or(REFUSED.into())),
        Ruling::Skip { reason } => Commanded::Answered(reason.unwrap_or(REFUSED.into())),
        Ruling::Handled { message } => Commanded::Answered(message.unwrap_or(DONE.into())),
        Ruling::Rewrite(Rewrite { text: Some(text), .. }) => Commanded::Rewritten(text),
        Ruling::Rewrite(Rewrite { command, arguments: others, .. }) => {
            let name = command.as_deref().unwrap_or(name).trim_start_matches('/');
            let arguments = others.as_deref().unwrap_or(arguments);
            Commanded::Rewritten(format!("/{name} {arguments}").trim_end().to_owned())
        }
    }
}

/// How the gateway lets a hook hear of an event.
pub(crate) fn way(hook: &Listed, event: &str) -> Way {
    let acts_at_once = |name: &str| {
        let spec = COMMANDS.iter().find(|spec| spec.name == name);
        spec.is_some_and(|spec| spec.command.acts_at_once())
    };
    let is_asked_about = event == ARRIVAL || named(event).is_some_and(|name| !acts_at_once(name));
    if hook.manifest.decides && is_asked_about { Way::Asked } else { Way::Told }
}

/// What the gateway makes of a ruling about an event, in words.
pub(crate) fn meaning(event: &str, about: &Value, ruling: &Ruling) -> String {
    match ruling {
        Ruling::Pass => return "it says nothing: the next hook is asked".to_owned(),
        Ruling::Allow => return "it goes on, and no other hook is asked".to_owned(),
        _ => {}
    }
    let Some(name) = named(event) else {
        return match arriving("", ruling.clone()) {
            Arriving::Goes => "a rewrite without a text changes nothing: it goes on".to_owned(),
            Arriving::Rewritten(text) => format!("it goes on as: {text}"),
            Arriving::Dropped(_) => "it is dropped without an answer".to_owned(),
        };
    };
    let arguments = about["raw_args"].as_str().unwrap_or_default();
    match commanded(ruling.clone(), name, arguments) {
        Commanded::Goes => "it is carried out".to_owned(),
        Commanded::Rewritten(text) => format!("in its place, this is said: {text}"),
        Commanded::Answered(text) => {
            format!("it is not carried out, and the person is told: {text}")
        }
    }
}

/// The command that an event is about.
fn named(event: &str) -> Option<&str> {
    event.strip_prefix("command:")
}

/// What a hook is told of something that arrived.
fn arrival(platform: &str, inbound: &Inbound) -> Value {
    let mut about = who(platform, inbound);
    about.insert("text".into(), shown(text(inbound)).into());
    Value::Object(about)
}

/// What the event of a command is called. Somebody may type a command of any length; none that a hook waits
/// for is as long as this.
fn command(order: &Order<'_>) -> String {
    format!("command:{}", cut(&order.given.name, TOLD))
}

/// What a hook is told of a command.
fn given(order: &Order<'_>) -> Value {
    let mut about = who(order.platform, order.inbound);
    about.insert("session_key".into(), order.key.to_string().into());
    about.insert("command".into(), cut(&order.given.name, TOLD).into());
    about.insert("raw_command".into(), cut(&order.given.typed, TOLD).into());
    let arguments = shown(&order.given.arguments);
    about.insert("raw_args".into(), arguments.into());
    about.insert("args".into(), arguments.split_whitespace().collect());
    Value::Object(about)
}

fn place(happening: &Happening) -> Map<String, Value> {
    let Happening { platform, key, life, at, from, .. } = happening;
    let mut about = Map::new();
    let mut put = |name: &str, value: Value| about.insert(name.to_owned(), value);
    put("platform", (*platform).into());
    put("account", at.account.as_str().into());
    put("chat_id", at.chat.id.as_str().into());
    put("chat_type", at.chat.kind.as_str().into());
    put("thread_id", at.thread.as_ref().map(|thread| thread.as_str()).into());
    put("user_id", from.as_ref().map(|from| from.id.as_str()).into());
    put("session_id", life.as_str().into());
    put("session_key", key.to_string().into());
    about
}

fn who(platform: &str, inbound: &Inbound) -> Map<String, Value> {
    let Inbound { id, from, to, kind, .. } = inbound;
    let (message, files) = match kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => {
            (message.id.as_ref(), message.files.len() + message.media.len())
        }
        InboundKind::Pressed(_) | InboundKind::Stopped => (None, 0),
    };
    let mut about = Map::new();
    let mut put = |name: &str, value: Value| about.insert(name.to_owned(), value);
    put("platform", platform.into());
    put("account", to.account.as_str().into());
    put("chat_id", to.chat.id.as_str().into());
    put("chat_type", to.chat.kind.as_str().into());
    put("thread_id", to.thread.as_ref().map(|thread| thread.as_str()).into());
    put("user_id", from.id.as_str().into());
    put("user_name", from.name.as_ref().map(|name| cut(name, TOLD)).into());
    put("event_id", id.as_str().into());
    put("message_id", message.map(|message| message.as_str()).into());
    put("files", files.into());
    about
}

fn text(inbound: &Inbound) -> &str {
    match &inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => &message.text,
        InboundKind::Pressed(_) | InboundKind::Stopped => "",
    }
}

fn why_over(why: Over) -> &'static str {
    match why {
        Over::Expired => "expired",
        Over::Retired(Retired::New) => "new",
        Over::Retired(Retired::Reset(_)) => "reset",
        Over::Retired(Retired::Switched) => "switched",
        Over::Retired(Retired::Branched) => "branched",
    }
}

fn tool(used: &Used) -> Value {
    let Used { call, took } = used;
    let took = took.map(millis);
    json!({ "name": call.tool, "arguments": cut(&call.arguments, TOLD), "duration_ms": took })
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// As much of a text as a hook is shown that decides about it.
fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(ASKED)]
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
