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
use talaria_model::{AgentEvent, CallId, Failure, FileRef, Question, Redactor, ToolCall, Unasked};
use tokio::sync::watch;

/// Stands for a tool whose name is not to be said.
const UNNAMED: &str = "hidden";

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

    /// The beginning of a text, without secrets and without the beginning of one at its end.
    pub(crate) fn clean_so_far(&self, text: &str) -> String {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        known.clean_so_far(text).into_owned()
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

    /// Mends the name of a tool that the model made up. A provider is told it again, and takes no name with
    /// anything but letters, digits and lines in it.
    fn mend_tool(&self, name: &mut String) {
        if *self.clean(name) != **name {
            *name = UNNAMED.to_owned();
        }
    }

    fn mend_unasked(&self, unasked: &mut Option<Box<Unasked>>) {
        if let Some(unasked) = unasked {
            self.mend_tool(&mut unasked.tool);
        }
    }

    fn mend_names(&self, files: &mut [FileRef]) {
        files.iter_mut().for_each(|file| self.mend(&mut file.name));
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
        AgentEvent::Stepped { text, files, calls, reasoning, usage: _, cost: _ } => {
            discretion.mend(text);
            discretion.mend_names(files);
            for ToolCall { id: _, tool, arguments } in calls {
                discretion.mend_tool(tool);
                discretion.mend_json(arguments);
            }
            discretion.drop_tainted(reasoning);
        }
        AgentEvent::Finished { text, files, reasoning, usage: _, cost: _ } => {
            discretion.mend(text);
            discretion.mend_names(files);
            discretion.drop_tainted(reasoning);
        }
        AgentEvent::Compressed { after: _, upto: _, text, usage: _, cost: _ } => {
            discretion.mend(text);
        }
        AgentEvent::Called { call: _, output, files, sends, failed: _, refused } => {
            discretion.mend_unasked(refused);
            discretion.mend(output);
            discretion.mend_names(files);
            sends.iter_mut().for_each(|sending| discretion.mend(&mut sending.text));
        }
        AgentEvent::NotCompressed { why, usage: _, cost: _ } => discretion.mend(why),
        AgentEvent::Failed { failure, said, usage: _, cost: _ } => {
            discretion.mend(said);
            if let Failure::Model(reason) = failure {
                discretion.mend(reason);
            }
        }
        AgentEvent::Asked(Question { call: _, text, choices, approval }) => {
            discretion.mend(text);
            // Those of an approval are ours and say the same to everybody.
            if approval.is_none() {
                choices.iter_mut().for_each(|choice| discretion.mend(&mut choice.label));
            }
        }
        AgentEvent::Calling { call: _, unasked } => discretion.mend_unasked(unasked),
        AgentEvent::Took { .. } | AgentEvent::Working(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_agent::{Danger, Elsewhere, Reads, Wraps};
    use talaria_config::{Sources, load};
    use talaria_model::{
        AccountId, Address, Approval, Approver, Chat, ChatId, ChatKind, Choice, ChoiceId, Cost,
        Digest, EarlierYes, FileId, Lasting, Sender, SenderId, Sending, Seq, SessionId, TurnId,
        Usage, Work,
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

    #[test]
    fn secrets_are_known_as_they_are_sent_and_after_they_were_replaced() {
        let with = |variables: &[(&str, &str)]| {
            let sources = variables.iter().fold(Sources::default(), |sources, (name, value)| {
                sources.with_variable(*name, *value)
            });
            load(sources, talaria_platforms::ALL).unwrap()
        };
        let before = with(&[
            ("SLACK_BOT_TOKEN", "xoxb-1-first, xoxb-2-second"),
            ("SLACK_APP_TOKEN", " xapp-1-app"),
            ("DISCORD_BOT_TOKEN", " Bot discord.bot.token"),
            ("TELEGRAM_BOT_TOKEN", "+042:telegram-token"),
            ("TALARIA_ACCOUNTS__TELEGRAM__PROXY", "environment"),
            ("ALL_PROXY", "socks5://me:hush-hush@proxy.example:1080"),
            ("TALARIA_PROVIDERS__OWN__API_KEY_ENV", "OWN_AUTH"),
            ("OWN_AUTH", "own-key"),
        ]);
        let discretion = Discretion::new();
        discretion.learn(&before);
        discretion
            .learn(&with(&[("SLACK_BOT_TOKEN", "xoxb-3-third"), ("SLACK_APP_TOKEN", "xapp-2")]));
        for secret in [
            "xoxb-1-first",
            "xoxb-2-second",
            "xapp-1-app",
            "discord.bot.token",
            "42:telegram-token",
            "hush-hush",
            "own-key",
            "xoxb-3-third",
        ] {
            assert_eq!(discretion.clean(&format!("it is {secret}.")), "it is (hidden).");
        }
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
        let last = "well, it is (hidden) and that is ";
        assert_eq!(seen.last().map(String::as_str), Some(last), "the last word may go on");
        let whole = format!("{last}all");
        assert!(matches!(event, Some(AgentEvent::Finished { text, .. }) if text == whole));
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

    /// Every event there is, with a secret wherever it has words. Each leads to the next, so that one that is
    /// added has to find its place here.
    fn leaks() -> impl Iterator<Item = AgentEvent> {
        let first = AgentEvent::Stepped {
            text: leak(),
            files: vec![file()],
            calls: vec![ToolCall {
                id: CallId::literal("c1"),
                tool: CANARY.into(),
                arguments: format!(r#"{{"question":"{CANARY}"}}"#),
            }],
            reasoning: Some(leak()),
            usage: Usage::default(),
            cost: Cost::FREE,
        };
        std::iter::successors(Some(first), after)
    }

    fn after(event: &AgentEvent) -> Option<AgentEvent> {
        let (usage, cost) = (Usage::default(), Cost::FREE);
        let call = CallId::literal("c1");
        Some(match event {
            AgentEvent::Stepped { .. } => AgentEvent::Calling { call, unasked: unasked() },
            AgentEvent::Calling { .. } => AgentEvent::Called {
                call,
                output: leak(),
                files: vec![file()],
                sends: vec![Sending { to: place(), text: leak() }],
                failed: true,
                refused: unasked(),
            },
            AgentEvent::Called { .. } => AgentEvent::Asked(Question {
                call,
                text: leak(),
                choices: vec![Choice { id: ChoiceId::literal("s1/1.c1.1"), label: leak() }],
                approval: None,
            }),
            AgentEvent::Asked(_) => AgentEvent::Took { seqs: vec![Seq(1)] },
            AgentEvent::Took { .. } => AgentEvent::Working(Work::Compression),
            AgentEvent::Working(_) => {
                AgentEvent::Compressed { after: 0, upto: 1, text: leak(), usage, cost }
            }
            AgentEvent::Compressed { .. } => AgentEvent::NotCompressed { why: leak(), usage, cost },
            AgentEvent::NotCompressed { .. } => AgentEvent::Finished {
                text: leak(),
                files: vec![file()],
                reasoning: Some(leak()),
                usage,
                cost,
            },
            AgentEvent::Finished { .. } => {
                AgentEvent::Failed { failure: Failure::Model(leak()), said: leak(), usage, cost }
            }
            AgentEvent::Failed { .. } => return None,
        })
    }

    fn unasked() -> Option<Box<Unasked>> {
        Some(Box::new(Unasked { tool: CANARY.into(), digest: Digest::new([7; 32]) }))
    }

    fn leak() -> String {
        format!("well, {CANARY}!")
    }

    fn file() -> FileRef {
        FileRef::new(FileId::literal("f1"), format!("{CANARY}.txt"), "text/plain", 1)
    }

    #[test]
    fn no_event_of_an_agent_has_a_secret_in_its_words() {
        let discretion = discretion();
        for mut event in leaks() {
            let before = format!("{event:?}");
            mend(&mut event, &discretion);
            let shown = format!("{event:?}");
            assert!(!shown.contains(CANARY), "{shown}");
            match before.contains(CANARY) {
                true => assert!(shown.contains(UNNAMED), "{shown}"),
                false => assert_eq!(shown, before),
            }
        }
    }

    #[test]
    fn what_a_person_chooses_from_is_mended_and_still_the_same_choice() {
        let discretion = discretion();
        let ids = [ChoiceId::literal("s1/1.c1.1"), ChoiceId::literal("s1/1.c1.2")];
        let choice = |id: &ChoiceId, label: String| Choice { id: id.clone(), label };
        let choices = vec![choice(&ids[0], format!("one {CANARY}")), choice(&ids[1], "two".into())];
        let asked = Question {
            call: CallId::literal("c1"),
            text: "Which?".into(),
            choices,
            approval: None,
        };
        let mut event = AgentEvent::Asked(asked);
        mend(&mut event, &discretion);
        let AgentEvent::Asked(Question { choices, .. }) = event else { panic!("{event:?}") };
        assert_eq!(
            choices,
            [choice(&ids[0], "one (hidden)".into()), choice(&ids[1], "two".into())]
        );
    }

    #[test]
    fn the_choices_of_an_approval_stay_as_they_are() {
        // A secret that is a word of ours.
        let yaml = "providers: {p: {api_key: Approve}}";
        let loaded = load(Sources::default().with_config(yaml), talaria_platforms::ALL).unwrap();
        let discretion = Discretion::new();
        discretion.learn(&loaded);
        let approval = Approval {
            handle: "ab".repeat(16),
            digest: Digest::new([7; 32]),
            tool: "pay".into(),
            lasting: Lasting::Never,
            earlier: EarlierYes::CountsNot,
            approver: Approver::MayBeThere,
        };
        let asked = Question {
            call: CallId::literal("c1"),
            text: "May I Approve it?".into(),
            choices: approval.choices(),
            approval: Some(Box::new(approval)),
        };
        let mut event = AgentEvent::Asked(asked.clone());
        mend(&mut event, &discretion);
        assert_eq!(
            event,
            AgentEvent::Asked(Question { text: "May I (hidden) it?".into(), ..asked })
        );
    }
}
