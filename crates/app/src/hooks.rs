//! Lets the operator's hooks watch the gateway: what they are told of each event, and what their
//! decisions mean.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use talaria_gateway::{Arriving, Commanded, Gateway, Happening, Order, Over, Used, Watcher, What};
use talaria_hooks::{Hooks, Rewrite, Ruling, Verdict};
use talaria_model::{Inbound, InboundKind};
use talaria_session::Retired;

/// What people say is cut to this where it is only told, in characters.
const TOLD: usize = 500;

/// What people say is cut to this where a hook decides about it, in bytes. Nobody is heard who says more,
/// so a hook that rewrites a text has seen all of it.
const ASKED: usize = 256 * 1024;

/// The event of something that arrives.
const ARRIVAL: &str = "pre_dispatch";

/// What hooks can hear of. Commands are named by whoever gives them.
pub(crate) const EVENTS: [&str; 10] = [
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
];

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

    async fn arriving(&self, platform: &'static str, inbound: &Inbound) -> Arriving {
        if !self.hooks.wants(ARRIVAL) {
            return Arriving::Goes;
        }
        let Verdict { ruling, by } = self.hooks.ask(ARRIVAL, &arrival(platform, inbound)).await;
        let by = by.unwrap_or_default();
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

    fn ordered(&self, order: &Order<'_>) {
        let event = command(order);
        if self.hooks.wants(&event) {
            self.hooks.tell(&event, &given(order));
        }
    }

    async fn commanded(&self, order: &Order<'_>) -> Commanded {
        let event = command(order);
        if !self.hooks.wants(&event) {
            return Commanded::Goes;
        }
        match self.hooks.ask(&event, &given(order)).await.ruling {
            Ruling::Pass | Ruling::Allow => Commanded::Goes,
            Ruling::Deny { message } => Commanded::Answered(message.unwrap_or(REFUSED.into())),
            Ruling::Skip { reason } => Commanded::Answered(reason.unwrap_or(REFUSED.into())),
            Ruling::Handled { message } => Commanded::Answered(message.unwrap_or(DONE.into())),
            Ruling::Rewrite(Rewrite { text: Some(text), .. }) => Commanded::Rewritten(text),
            Ruling::Rewrite(Rewrite { command, arguments, .. }) => {
                let name = command.unwrap_or(order.given.name.clone());
                let arguments = arguments.unwrap_or(order.given.arguments.clone());
                let text = format!("/{} {arguments}", name.trim_start_matches('/'));
                Commanded::Rewritten(text.trim_end().to_owned())
            }
        }
    }
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
