//! What is not to be said: our secrets, in whatever leaves the process as a log line, a tool's output, an
//! answer or an error.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use futures::{StreamExt, stream};
use serde_json::Value;
use talaria_agent::{
    Agent, EffectClass, Events, Gravity, Preview, Running, Tool, ToolError, ToolOutput, ToolScope,
    ToolSpec, Turn,
};
use talaria_config::Loaded;
use talaria_model::{AgentEvent, CallId, Failure, Redactor};
use tokio::sync::watch;

/// Knows the secrets that are in use. One that was replaced stays one.
#[derive(Default)]
pub(crate) struct Discretion(RwLock<Redactor>);

impl Discretion {
    /// Knows nothing yet.
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Knows the secrets of a configuration, too.
    pub(crate) fn learn(&self, loaded: &Loaded) {
        // What panics under the lock could not be reported: every line is cleaned first.
        let more = loaded.redactor();
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *known = known.and(&more);
    }

    /// A text without secrets.
    pub(crate) fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone().clean(text)
    }

    fn mend(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.clean(text) {
            *text = clean;
        }
    }

    /// Mends what is recorded of a call. It is made with what the model wrote; only what is made again after a
    /// restart is made with this.
    fn mend_json(&self, text: &mut String) {
        let Ok(mut value) = serde_json::from_str::<Value>(text) else { return self.mend(text) };
        if self.mend_value(&mut value) {
            *text = value.to_string();
        }
    }

    /// Whether anything in it had to be mended.
    fn mend_value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => match self.clean(text) {
                Cow::Owned(clean) if clean != *text => {
                    *text = clean;
                    true
                }
                _ => false,
            },
            Value::Array(items) => {
                items.iter_mut().fold(false, |changed, item| self.mend_value(item) | changed)
            }
            Value::Object(fields) => {
                let mut changed = false;
                for (mut name, mut field) in std::mem::take(fields) {
                    changed |= self.mend_value(&mut field);
                    if let Cow::Owned(clean) = self.clean(&name) {
                        changed |= clean != name;
                        name = clean;
                    }
                    fields.insert(name, field);
                }
                changed
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Forgets thoughts with a secret in them. A provider wants them as it wrote them or not at all.
    fn drop_tainted(&self, thoughts: &mut Option<String>) {
        thoughts.take_if(|thoughts| *self.clean(thoughts) != **thoughts);
    }

    /// What may be seen of an answer that is still being written.
    fn mended(&self, preview: &Preview) -> Preview {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        Preview {
            text: known.clean_so_far(&preview.text).into_owned(),
            doing: preview.doing.as_deref().map(|doing| known.clean(doing).into_owned()),
            untold: preview.untold,
        }
    }
}

/// A tool whose output has no secrets of ours in it: neither the model nor a transcript reads them.
pub(crate) struct DiscreetTool {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) discretion: Arc<Discretion>,
}

impl DiscreetTool {
    fn said(&self, outcome: Result<ToolOutput, ToolError>) -> Result<ToolOutput, ToolError> {
        match outcome {
            Ok(mut output) => {
                self.discretion.mend(&mut output.text);
                Ok(output)
            }
            Err(mut error) => {
                self.mend(&mut error);
                Err(error)
            }
        }
    }

    fn mend(&self, error: &mut ToolError) {
        let (ToolError::Arguments(text) | ToolError::Failed(text)) = error;
        self.discretion.mend(text);
    }
}

#[async_trait]
impl Tool for DiscreetTool {
    fn spec(&self) -> ToolSpec {
        self.tool.spec()
    }

    fn effect(&self) -> EffectClass {
        self.tool.effect()
    }

    fn gravity(&self, arguments: &Value, scope: &ToolScope) -> Result<Gravity, ToolError> {
        // What a person is asked is an event of the agent, and is mended there: what is decided by stays as
        // the tool says it.
        self.tool.gravity(arguments, scope).map_err(|mut error| {
            self.mend(&mut error);
            error
        })
    }

    async fn call(&self, arguments: Value, scope: ToolScope) -> Result<ToolOutput, ToolError> {
        self.said(self.tool.call(arguments, scope).await)
    }

    async fn outcome(&self, call: &CallId) -> Result<Option<ToolOutput>, ToolError> {
        match self.tool.outcome(call).await {
            Ok(None) => Ok(None),
            Ok(Some(output)) => self.said(Ok(output)).map(Some),
            Err(error) => self.said(Err(error)).map(Some),
        }
    }
}

/// An agent whose words have no secrets of ours in them, before they are recorded or sent.
pub(crate) struct DiscreetAgent {
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) discretion: Arc<Discretion>,
}

impl Agent for DiscreetAgent {
    fn start(&self, turn: Turn) -> Running {
        discreet(self.agent.start(turn), self.discretion.clone())
    }
}

fn discreet(running: Running, discretion: Arc<Discretion>) -> Running {
    let Running { preview: grows, events, control } = running;
    let (shown, preview) = watch::channel(discretion.mended(&grows.borrow()));
    let listening = Listening { events, grows, shown, discretion };
    let events = stream::unfold(listening, |mut listening| async {
        let event = listening.next().await?;
        Some((event, listening))
    });
    Running { preview, events: events.boxed(), control }
}

/// Hears an agent and passes on what may be said. An agent writes only while its next event is awaited, so
/// that whoever waits for one passes on what is shown meanwhile.
struct Listening {
    events: Events,
    grows: watch::Receiver<Preview>,
    shown: watch::Sender<Preview>,
    discretion: Arc<Discretion>,
}

impl Listening {
    async fn next(&mut self) -> Option<AgentEvent> {
        loop {
            let event = tokio::select! {
                biased;
                Ok(()) = self.grows.changed() => None,
                event = self.events.next() => Some(event),
            };
            let preview = self.discretion.mended(&self.grows.borrow_and_update());
            self.shown.send_if_modified(|shown| {
                let is_other = *shown != preview;
                *shown = preview;
                is_other
            });
            if let Some(event) = event {
                return event.map(|mut event| {
                    mend(&mut event, &self.discretion);
                    event
                });
            }
        }
    }
}

fn mend(event: &mut AgentEvent, discretion: &Discretion) {
    match event {
        AgentEvent::Stepped { text, calls, reasoning, .. } => {
            discretion.mend(text);
            calls.iter_mut().for_each(|call| discretion.mend_json(&mut call.arguments));
            discretion.drop_tainted(reasoning);
        }
        AgentEvent::Finished { text, reasoning, .. } => {
            discretion.mend(text);
            discretion.drop_tainted(reasoning);
        }
        AgentEvent::Compressed { text, .. } => discretion.mend(text),
        AgentEvent::Called { output, sends, .. } => {
            discretion.mend(output);
            sends.iter_mut().for_each(|sending| discretion.mend(&mut sending.text));
        }
        AgentEvent::NotCompressed { why, .. } => discretion.mend(why),
        AgentEvent::Failed { failure, said, .. } => {
            discretion.mend(said);
            if let Failure::Model(reason) = failure {
                discretion.mend(reason);
            }
        }
        AgentEvent::Asked(question) => discretion.mend(&mut question.text),
        AgentEvent::Calling { .. } | AgentEvent::Took { .. } | AgentEvent::Working(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_agent::{Danger, Elsewhere, Reads, Wraps};
    use talaria_config::{Sources, load};
    use talaria_model::{
        AccountId, Address, Chat, ChatId, ChatKind, Cost, Sender, SenderId, Sending, SessionId,
        ToolCall, TurnId, Usage,
    };

    const CANARY: &str = "canary-5d41402abc4b2a76";

    fn discretion() -> Arc<Discretion> {
        let yaml = format!("providers: {{p: {{api_key: {CANARY}}}}}");
        let loaded = load(Sources::default().with_config(yaml), talaria_platforms::ALL).unwrap();
        let discretion = Discretion::new();
        discretion.learn(&loaded);
        // What is learned later does not make it forget.
        discretion.learn(&load(Sources::default(), talaria_platforms::ALL).unwrap());
        discretion
    }

    fn place() -> Address {
        Address {
            account: AccountId::literal("main"),
            chat: Chat { id: ChatId::literal("home"), kind: ChatKind::Dm },
            thread: None,
        }
    }

    struct Leak;

    fn danger() -> Gravity {
        Gravity::Asks(Danger {
            what: "leaks".into(),
            resolved: Value::String(CANARY.into()),
            wraps: Wraps::Nothing,
            reads: Reads::Signs,
        })
    }

    #[async_trait]
    impl Tool for Leak {
        fn spec(&self) -> ToolSpec {
            ToolSpec { name: "leak".into(), description: String::new(), parameters: Value::Null }
        }
        fn effect(&self) -> EffectClass {
            EffectClass::Queryable
        }
        fn gravity(&self, arguments: &Value, _: &ToolScope) -> Result<Gravity, ToolError> {
            match arguments {
                Value::Null => Ok(danger()),
                _ => Err(ToolError::Failed(CANARY.into())),
            }
        }
        async fn call(&self, arguments: Value, _: ToolScope) -> Result<ToolOutput, ToolError> {
            match arguments {
                Value::Null => Ok(ToolOutput::text(format!("it is {CANARY}"))),
                Value::Bool(_) => Err(ToolError::Arguments(CANARY.into())),
                _ => Err(ToolError::Failed(CANARY.into())),
            }
        }
        async fn outcome(&self, _: &CallId) -> Result<Option<ToolOutput>, ToolError> {
            Ok(Some(ToolOutput::text(CANARY)))
        }
    }

    #[tokio::test]
    async fn a_tool_gives_no_secret_back() {
        let tool = DiscreetTool { tool: Arc::new(Leak), discretion: discretion() };
        assert_eq!(tool.spec().name, "leak");
        let call = CallId::literal("c1");
        let scope = || ToolScope {
            call: call.clone(),
            turn: TurnId { session: SessionId::literal("s1"), number: 1 },
            from: Sender::new(SenderId::literal("alice")),
            at: place(),
            elsewhere: Elsewhere::default(),
        };
        let asked = tool.gravity(&Value::Null, &scope()).unwrap();
        assert_eq!(asked, danger(), "asked about as it is");
        let error = tool.gravity(&Value::Bool(true), &scope()).unwrap_err();
        assert!(!error.to_string().contains(CANARY), "{error}");
        let output = tool.call(Value::Null, scope()).await.unwrap();
        assert_eq!(output.text, "it is (hidden)");
        for arguments in [Value::Bool(true), Value::String("x".into())] {
            let error = tool.call(arguments, scope()).await.unwrap_err();
            assert!(!error.to_string().contains(CANARY), "{error}");
        }
        assert_eq!(tool.outcome(&call).await.unwrap().unwrap().text, "(hidden)");
    }

    /// An agent that writes these pieces, one at a time.
    fn writing(pieces: &'static [&'static str]) -> Running {
        let (write, preview) = watch::channel(Preview::default());
        let events = stream::once(async move {
            for piece in pieces {
                write.send_modify(|preview| preview.text.push_str(piece));
                tokio::task::yield_now().await;
            }
            let text = write.borrow().text.clone();
            let (usage, cost) = (Usage::default(), Cost::FREE);
            AgentEvent::Finished { text, files: vec![], reasoning: None, usage, cost }
        });
        let (control, _) = tokio::sync::mpsc::channel(1);
        Running { preview, events: events.boxed(), control }
    }

    #[tokio::test]
    async fn an_answer_that_grows_shows_no_part_of_a_secret() {
        let pieces = &["well, it is canary-5d41", "402abc4b2a", "76", " and that", " is all"];
        let running = discreet(writing(pieces), discretion());
        let Running { mut preview, mut events, control: _control } = running;
        let mut seen = Vec::new();
        let event = loop {
            tokio::select! {
                biased;
                Ok(()) = preview.changed() => seen.push(preview.borrow_and_update().text.clone()),
                event = events.next() => break event,
            }
        };
        seen.push(preview.borrow().text.clone());
        assert!(seen.iter().all(|text| !text.contains("canary")), "{seen:?}");
        assert_eq!(seen.first().map(String::as_str), Some("well, it is "));
        assert_eq!(seen.last().map(String::as_str), Some("well, it is (hidden) and that is all"));
        assert!(
            matches!(event, Some(AgentEvent::Finished { text, .. }) if text == *seen.last().unwrap())
        );
        assert!(events.next().await.is_none());
    }

    #[test]
    fn what_is_recorded_of_calls_and_thoughts_has_no_secret_in_it() {
        let discretion = discretion();
        let (usage, cost) = (Usage::default(), Cost::FREE);
        let call = |arguments: String| ToolCall {
            id: CallId::literal("c1"),
            tool: "run_program".into(),
            arguments,
        };
        let whole = r#"{"b": [1, "as it was"],  "a": null}"#;
        let leaks = format!(r#"{{"args": ["-H", "token: {CANARY}"], "{CANARY}": 1}}"#);
        let calls = vec![call(whole.into()), call(leaks), call(format!("{CANARY} is no JSON"))];
        let reasoning = Some(format!("the key is {CANARY}, I think"));
        let (text, files) = (String::new(), vec![]);
        let mut event = AgentEvent::Stepped { text, files, calls, reasoning, usage, cost };
        mend(&mut event, &discretion);
        let AgentEvent::Stepped { calls, reasoning, .. } = &event else { panic!("{event:?}") };
        assert_eq!(calls[0].arguments, whole, "byte for byte");
        assert_eq!(calls[1].arguments, r#"{"args":["-H","token: (hidden)"],"(hidden)":1}"#);
        assert_eq!(calls[2].arguments, "(hidden) is no JSON");
        assert_eq!(*reasoning, None, "as it was written, or not at all");
        let reasoning = Some("nothing secret".to_owned());
        let text = "done".to_owned();
        let mut event = AgentEvent::Finished { text, files: vec![], reasoning, usage, cost };
        let before = event.clone();
        mend(&mut event, &discretion);
        assert_eq!(event, before);
    }

    #[test]
    fn no_event_of_an_agent_has_a_secret_in_its_words() {
        let discretion = discretion();
        let text = || format!("well, {CANARY}!");
        let (usage, cost) = (Usage::default(), Cost::FREE);
        for mut event in [
            AgentEvent::Stepped {
                text: text(),
                files: vec![],
                calls: vec![],
                reasoning: Some(text()),
                usage,
                cost,
            },
            AgentEvent::Called {
                call: CallId::literal("c1"),
                output: text(),
                files: vec![],
                sends: vec![],
                failed: true,
            },
            AgentEvent::Called {
                call: CallId::literal("c2"),
                output: String::new(),
                files: vec![],
                sends: vec![Sending { to: place(), text: text() }],
                failed: false,
            },
            AgentEvent::Compressed { after: 0, upto: 1, text: text(), usage, cost },
            AgentEvent::NotCompressed { why: text(), usage, cost },
            AgentEvent::Finished {
                text: text(),
                files: vec![],
                reasoning: Some(text()),
                usage,
                cost,
            },
            AgentEvent::Failed { failure: Failure::Model(text()), said: text(), usage, cost },
        ] {
            mend(&mut event, &discretion);
            let shown = format!("{event:?}");
            assert!(!shown.contains(CANARY) && shown.contains("(hidden)"), "{shown}");
        }
    }
}
