//! Turn after turn begins with the same bytes, so that a provider reads them from its cache.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{BoxFuture, ready};
use futures::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};
use talaria_agent::{
    Agent, Attachments, Budget, BuiltIn, Delta, Deltas, EffectClass, Fence, FinishReason, Gravity,
    History, Prompt, Provider, Settings as AgentSettings, Sight, Situation, Tool, ToolError,
    ToolOutput, ToolScope, ToolSpec, Toolbox, Turn,
};
use talaria_clock::{FakeClock, SystemClock};
use talaria_model::{
    AccountId, Address, AgentEvent, Attended, CallId, Chat, ChatId, ChatKind, Cost, Entry,
    EntryBody, Extent, FileId, FileRef, Sender, SenderId, SessionId, Task, Timestamp, ToolCall,
    TurnId, Usage,
};
use talaria_providers::{Anthropic, Http, OpenAi, Settings};

type Write = Box<dyn Fn(&Prompt) -> Vec<u8> + Send + Sync>;

/// Writes requests as a real API would get them, and counts how much of each begins as the one
/// before.
struct Counting {
    write: Write,
    requests: Mutex<Vec<String>>,
}

impl Provider for Counting {
    fn complete(&self, prompt: Prompt) -> Deltas {
        let request = String::from_utf8((self.write)(&prompt)).unwrap();
        let number = {
            let mut requests = self.requests.lock().unwrap();
            requests.push(request);
            requests.len()
        };
        // Every other step calls a tool.
        let calls = match number % 2 {
            0 => vec![],
            _ => vec![ToolCall {
                id: CallId::new(format!("c{number}")).unwrap(),
                tool: "look".to_owned(),
                arguments: r#"{"b": 1, "a":2}"#.to_owned(),
            }],
        };
        let reason = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        let (usage, cost) = (Usage::default(), Cost::FREE);
        let deltas = vec![
            Ok(Delta::Text(format!("answer {number}"))),
            Ok(Delta::Finished { reason, calls, reasoning: None, usage, cost }),
        ];
        stream::iter(deltas).boxed()
    }

    fn name(&self) -> &str {
        "counting/model"
    }

    fn sight(&self) -> Sight {
        Sight::Pictures
    }

    fn context_window(&self) -> BoxFuture<'_, Option<u64>> {
        ready(Some(1_000_000)).boxed()
    }

    fn unfinished(&self, _: Usage) -> Cost {
        Cost::FREE
    }
}

struct Look;

#[async_trait]
impl Tool for Look {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object" });
        ToolSpec { name: "look".into(), description: "Looks.".into(), parameters }
    }

    fn effect(&self) -> EffectClass {
        EffectClass::Pure
    }

    fn gravity(&self, _: &Value, _: &ToolScope) -> Result<Gravity, ToolError> {
        Ok(Gravity::Harmless)
    }

    async fn call(&self, _: Value, _: ToolScope) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("seen"))
    }

    async fn outcome(&self, _: &CallId) -> Result<Option<ToolOutput>, ToolError> {
        Ok(None)
    }
}

/// Files that may be gone the next time, and how often one was read.
struct Fleeting(Mutex<HashMap<FileId, Vec<u8>>>, AtomicUsize);

#[async_trait]
impl Attachments for Fleeting {
    async fn load(&self, file: &FileRef, _: u64) -> Option<Vec<u8>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.lock().unwrap().get(&file.id).cloned()
    }

    async fn save(&self, _: &str, _: &str, _: Vec<u8>) -> Result<FileRef, String> {
        Err("full".into())
    }
}

struct Talk {
    agent: BuiltIn,
    provider: Arc<Counting>,
    files: Arc<Fleeting>,
    entries: Vec<Entry>,
    turns: u32,
}

fn home() -> Address {
    Address {
        account: AccountId::literal("web"),
        chat: Chat { id: ChatId::literal("home"), kind: ChatKind::Dm },
        thread: None,
    }
}

fn alice() -> Sender {
    Sender::new(SenderId::literal("alice"))
}

impl Talk {
    fn new(write: impl Fn(&Prompt) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let provider = Arc::new(Counting { write: Box::new(write), requests: Mutex::default() });
        let picture = HashMap::from([(FileId::literal("cat"), vec![7u8; 3000])]);
        let files = Arc::new(Fleeting(Mutex::new(picture), AtomicUsize::new(0)));
        let settings = AgentSettings {
            instructions: "Be brief.".into(),
            max_steps: 4,
            turn_limit: Duration::from_secs(60),
            budget: Budget::default(),
            fence: Fence::default(),
        };
        let clock = Arc::new(FakeClock::starting(Timestamp::from_millis(0)));
        let toolbox = Toolbox::default().with(Look);
        let agent = BuiltIn::new(provider.clone(), toolbox, files.clone(), clock, settings);
        Self { agent, provider, files, entries: Vec::new(), turns: 0 }
    }

    fn record(&mut self, body: EntryBody) {
        let session = SessionId::literal("s");
        let turn = Some(TurnId { session, number: self.turns });
        let number = self.entries.len() as u32 + 1;
        self.entries.push(Entry {
            number,
            at: Timestamp::from_millis(0),
            turn,
            body,
            because: None,
            about: None,
            resumed: None,
        });
    }

    async fn turn(&mut self, text: &str, files: Vec<FileRef>) {
        self.turns += 1;
        let heard = (self.turns == 2).then(|| format!("[System note: it is late.]\n\n{text}"));
        let text = text.to_owned();
        self.record(EntryBody::Said {
            from: alice(),
            text,
            files,
            heard,
            message: None,
            forwarded: None,
        });
        let session = SessionId::literal("s");
        let mut running = self.agent.start(Turn {
            id: TurnId { session, number: self.turns },
            at: home(),
            from: alice(),
            entries: self.entries.clone(),
            history: History::Whole,
            started: vec![],
            asked: None,
            limit: Duration::from_secs(60),
            situation: Arc::new(Situation::at(home())),
            model: None,
            effort: None,
            task: Task::Answer,
            skills: vec![],
            attended: Attended::Yes,
            tools: Default::default(),
            elsewhere: Default::default(),
        });
        while let Some(event) = running.events.next().await {
            let (sent, extent) = (None, Extent::Whole);
            match event {
                AgentEvent::Stepped { text, files, calls, reasoning, usage, cost } => {
                    let body = EntryBody::Answered {
                        text,
                        files,
                        calls,
                        reasoning,
                        usage,
                        cost,
                        sent,
                        extent,
                    };
                    self.record(body);
                }
                AgentEvent::Called { call, output, files, failed, .. } => {
                    self.record(EntryBody::Returned { call, output, files, failed });
                }
                AgentEvent::Finished { text, files, reasoning, usage, cost } => {
                    let calls = vec![];
                    let body = EntryBody::Answered {
                        text,
                        files,
                        calls,
                        reasoning,
                        usage,
                        cost,
                        sent,
                        extent,
                    };
                    self.record(body);
                }
                event => panic!("{event:?}"),
            }
        }
    }

    async fn four_turns(&mut self) -> Vec<String> {
        let cat = FileId::literal("cat");
        let cat = FileRef::new(cat, "cat.png", "image/png", 3000);
        self.turn("look at my cat", vec![cat]).await;
        for text in ["and now?", "again", "once more"] {
            // The file may be deleted meanwhile; what was shown stays shown.
            self.files.0.lock().unwrap().clear();
            self.turn(text, vec![]).await;
        }
        self.provider.requests.lock().unwrap().clone()
    }
}

fn settings() -> Settings {
    Settings {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        base_url: "http://localhost/v1".to_owned(),
        sight: Sight::Pictures,
        ..Settings::default()
    }
}

fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

#[tokio::test(start_paused = true)]
async fn chat_completions_begin_with_all_that_was_asked_before() {
    let openai = OpenAi::new(settings(), Http::default(), Arc::new(SystemClock)).unwrap();
    let mut talk = Talk::new(move |prompt| openai.request(prompt));
    let requests = talk.four_turns().await;
    assert_eq!(requests.len(), 8);
    for pair in requests.windows(2) {
        // All but the brackets that end the list of messages.
        assert!(common(&pair[0], &pair[1]) >= pair[0].len() - "]}".len());
    }
    let sent: usize = requests.iter().map(String::len).sum();
    let again: usize = requests.windows(2).map(|pair| common(&pair[0], &pair[1])).sum();
    assert!(again * 100 / sent >= 80, "{again} of {sent} bytes were sent before");
    assert_eq!(talk.files.1.load(Ordering::SeqCst), 1, "a picture is read once");
}

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// Where the marks would stand in a request without them.
fn marks(request: &str) -> Vec<usize> {
    let found = request.match_indices(MARK);
    found.enumerate().map(|(before, (at, _))| at - before * MARK.len()).collect()
}

#[tokio::test(start_paused = true)]
async fn messages_begin_with_all_that_was_asked_before_and_are_marked_where_that_ended() {
    let anthropic = Anthropic::new(settings(), Http::default(), Arc::new(SystemClock)).unwrap();
    let mut talk = Talk::new(move |prompt| anthropic.request(prompt));
    let requests = talk.four_turns().await;
    assert_eq!(requests.len(), 8);
    for pair in requests.windows(2) {
        let [before, after] = [&pair[0], &pair[1]].map(|request| request.replace(MARK, ""));
        assert!(common(&before, &after) >= before.len() - "}]}]}".len());
        let (written, read) = (marks(&pair[0]), marks(&pair[1]));
        assert!(written.len() <= 4 && read.len() <= 4, "no more than the API allows");
        let end = written.last().unwrap();
        assert!(read.contains(end), "what was written to the cache is read from there");
        assert!(common(&before, &after) >= *end);
    }
}
