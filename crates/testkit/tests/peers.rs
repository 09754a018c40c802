//! The peers are held to what they promise: tests that rest on them are only as good as they are.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use talaria_agent::{Agent, History, Preview, Situation, Turn};
use talaria_model::{
    AccountId, Address, AgentEvent, Attended, Chat, ChatId, ChatKind, Sender, SenderId, SessionId,
    Task, TurnId,
};
use talaria_testkit::{
    Conduct, FakeLlm, Hold, Refusal, Reply, Scene, ScriptedAgent, ScriptedCall, Token, Vendor,
    VendorSettings, Violation, echo, within,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

const LIMIT: Duration = Duration::from_secs(10);

/// A gateway in miniature: one connection, spoken to by the line.
struct Client {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl Client {
    async fn connect(vendor: &Vendor, hello: Value) -> Self {
        let stream = TcpStream::connect(vendor.address()).await.unwrap();
        let (reader, writer) = stream.into_split();
        let mut client = Self { lines: BufReader::new(reader).lines(), writer };
        client.write(json!({ "hello": hello })).await;
        client
    }

    async fn hears(vendor: &Vendor, cursor: u64) -> Self {
        Self::connect(vendor, json!({ "role": "events", "account": "a", "cursor": cursor })).await
    }

    async fn acts(vendor: &Vendor) -> Self {
        Self::connect(vendor, json!({ "role": "acts", "account": "a" })).await
    }

    async fn write(&mut self, line: Value) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> Option<Value> {
        let line = within(LIMIT, "a line from the vendor", self.lines.next_line()).await.unwrap();
        line.map(|line| serde_json::from_str(&line).unwrap())
    }

    async fn numbers(&mut self, count: usize) -> Vec<u64> {
        let mut numbers = Vec::new();
        for _ in 0..count {
            numbers.push(self.read().await.unwrap()["number"].as_u64().unwrap());
        }
        numbers
    }

    async fn post(&mut self, id: &str, chat: &str, text: &str) -> Option<Value> {
        self.write(json!({ "id": id, "chat": chat, "act": { "post": { "text": text } } })).await;
        self.read().await
    }
}

#[tokio::test]
async fn a_vendor_tells_again_what_lies_behind_the_cursor() {
    let vendor = Vendor::open(VendorSettings::default()).await.unwrap();
    for n in 0..3 {
        vendor.say("home", &format!("message {n}"));
    }
    let mut client = Client::hears(&vendor, 0).await;
    assert_eq!(client.numbers(3).await, [1, 2, 3]);
    client.write(json!({ "ack": 2 })).await;
    within(LIMIT, "the acknowledgement", vendor.until(|truth| truth.acked() == 2)).await;
    drop(client);
    let mut client = Client::hears(&vendor, 2).await;
    vendor.say("home", "one more");
    assert_eq!(client.numbers(2).await, [3, 4]);
}

#[tokio::test]
async fn a_vendor_can_deliver_again_what_was_acknowledged() {
    let settings = VendorSettings { redelivers: 2, ..VendorSettings::default() };
    let vendor = Vendor::open(settings).await.unwrap();
    for _ in 0..3 {
        vendor.say("home", "hello");
    }
    let mut client = Client::hears(&vendor, 3).await;
    assert_eq!(client.numbers(2).await, [2, 3]);
}

#[tokio::test]
async fn a_gateway_that_forgets_is_found_out() {
    let vendor = Vendor::open(VendorSettings::default()).await.unwrap();
    vendor.say("home", "hello");
    let mut client = Client::hears(&vendor, 0).await;
    client.numbers(1).await;
    client.write(json!({ "ack": 1 })).await;
    within(LIMIT, "the acknowledgement", vendor.until(|truth| truth.acked() == 1)).await;
    let _again = Client::hears(&vendor, 0).await;
    within(LIMIT, "the connection", vendor.until(|truth| truth.connections() == 2)).await;
    assert!(vendor.check().contains(&Violation::Forgotten { acked: 1, cursor: 0 }));
}

#[tokio::test]
async fn a_vendor_shows_edits_and_keeps_repeats_apart_by_their_key() {
    for (keyed, shown) in [(true, 1), (false, 2)] {
        let settings = VendorSettings { keyed, ..VendorSettings::default() };
        let vendor = Vendor::open(settings).await.unwrap();
        let mut client = Client::acts(&vendor).await;
        let first = client.post("d1", "home", "hello").await.unwrap();
        let second = client.post("d1", "home", "hello").await.unwrap();
        assert_eq!(first == second, keyed);
        assert_eq!(vendor.read(|truth| truth.shown().len()), shown);
        let edit = json!({ "message": first["done"]["message"], "text": "changed" });
        client.write(json!({ "id": "d1", "chat": "home", "act": { "edit": edit } })).await;
        assert_eq!(client.read().await.unwrap(), first);
        assert_eq!(vendor.read(|truth| truth.shown()[0].text.clone()), "changed");
        let edit = json!({ "message": "m99", "text": "changed" });
        client.write(json!({ "id": "d1", "chat": "home", "act": { "edit": edit } })).await;
        assert!(client.read().await.unwrap()["rejected"].is_string());
    }
}

#[tokio::test]
async fn a_vendor_misbehaves_as_scripted() {
    let vendor = Vendor::open(VendorSettings::default()).await.unwrap();
    vendor.script(|act| match act.text.as_str() {
        "throttle" => Conduct::Refuses(Refusal::Throttled { seconds: 7 }),
        "reject" => Conduct::Refuses(Refusal::Rejected("no".into())),
        "lose" => Conduct::LosesAndHangsUp,
        "show" => Conduct::DoesAndHangsUp,
        _ => Conduct::Does,
    });
    let mut client = Client::acts(&vendor).await;
    let throttled = client.post("1", "home", "throttle").await;
    assert_eq!(throttled, Some(json!({ "throttled": { "seconds": 7 } })));
    assert_eq!(client.post("2", "home", "reject").await, Some(json!({ "rejected": "no" })));
    assert_eq!(client.post("3", "home", "lose").await, None);
    let mut client = Client::acts(&vendor).await;
    assert_eq!(client.post("4", "home", "show").await, None);
    let texts = |truth: &talaria_testkit::Truth| -> Vec<String> {
        truth.shown().iter().map(|shown| shown.text.clone()).collect()
    };
    assert_eq!(vendor.read(texts), ["show"]);
    assert_eq!(vendor.read(|truth| truth.acts().len()), 4);
}

#[tokio::test]
async fn an_answer_is_handed_to_whoever_asked() {
    let vendor = Vendor::open(VendorSettings::default()).await.unwrap();
    let answer = vendor.ask("home", "hello");
    let mut client = Client::acts(&vendor).await;
    client.post("1", "home", &echo(&format!("hello {}", Token(1)), 0)).await;
    let arrived = within(LIMIT, "the answer", answer).await.unwrap();
    assert_eq!(arrived.text, "echo: hello tok0000001 done: hello tok0000001");
    assert_eq!(vendor.check(), []);
}

async fn complete(llm: &FakeLlm, body: Value) -> (u16, String) {
    let url = format!("{}/chat/completions", llm.base_url());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = client.post(url).body(body.to_string()).send().await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap_or_else(|_| "cut".into());
    (status, text)
}

/// The words of a stream, and how it ended.
fn spoken(stream: &str) -> (String, bool) {
    let mut text = String::new();
    let mut events = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    for event in events.clone().filter(|event| *event != "[DONE]") {
        let event: Value = serde_json::from_str(event).unwrap();
        if let Some(word) = event["choices"][0]["delta"]["content"].as_str() {
            text.push_str(word);
        }
    }
    (text, events.next_back() == Some("[DONE]"))
}

#[tokio::test]
async fn a_model_echoes_what_was_said_since_its_last_answer() {
    let llm = FakeLlm::open().await.unwrap();
    let messages = json!([
        { "role": "system", "content": "be kind" },
        { "role": "user", "content": "one" },
        { "role": "assistant", "content": "echo" },
        { "role": "user", "content": "two" },
        { "role": "user", "content": [{ "type": "text", "text": "three" }] },
    ]);
    let said = "echo: two / three done: two / three";
    let (status, stream) = complete(&llm, json!({ "stream": true, "messages": messages })).await;
    assert_eq!((status, spoken(&stream)), (200, (said.to_owned(), true)));
    let (_, whole) = complete(&llm, json!({ "messages": messages })).await;
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole["choices"][0]["message"]["content"], said);
    assert_eq!(llm.requests(), 2);
}

#[tokio::test]
async fn a_model_calls_refuses_and_breaks_off_as_scripted() {
    let llm = FakeLlm::open().await.unwrap();
    llm.script(|asked| match (asked.said().as_str(), asked.returned()) {
        ("call", None) => {
            let call = ScriptedCall { tool: "ask".into(), arguments: r#"{"a":1}"#.into() };
            Reply::Calls(String::new(), vec![call])
        }
        ("call", Some(returned)) => Reply::Says(format!("it said {returned}")),
        ("refuse", _) => Reply::Refuses { status: 429, body: r#"{"error":{}}"#.into() },
        _ => Reply::Breaks("half of".into()),
    });
    let ask =
        |said: &str| json!({ "stream": true, "messages": [{ "role": "user", "content": said }] });
    let (_, called) = complete(&llm, ask("call")).await;
    assert!(called.contains(r#""name":"ask","arguments":"{\"a\":1}""#), "{called}");
    assert!(called.contains(r#""finish_reason":"tool_calls""#), "{called}");
    let returned = json!({ "stream": true, "messages": [
        { "role": "user", "content": "call" },
        { "role": "assistant", "content": null, "tool_calls": [{ "id": "call_0_0" }] },
        { "role": "tool", "tool_call_id": "call_0_0", "content": "yes" },
    ]});
    let (_, gone_on) = complete(&llm, returned).await;
    assert_eq!(spoken(&gone_on), ("it said yes".into(), true));
    assert_eq!(complete(&llm, ask("refuse")).await, (429, r#"{"error":{}}"#.into()));
    assert_eq!(complete(&llm, ask("break")).await, (200, "cut".into()));
}

#[tokio::test]
async fn a_model_waits_until_it_is_let_go_on() {
    let llm = FakeLlm::open().await.unwrap();
    llm.hold(Hold::After(2));
    let body = json!({ "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let url = format!("{}/chat/completions", llm.base_url());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut answer = client.post(url).body(body.to_string()).send().await.unwrap();
    let mut stream = String::new();
    while !stream.contains("echo:") {
        let piece = within(LIMIT, "a piece", answer.chunk()).await.unwrap().unwrap();
        stream.push_str(std::str::from_utf8(&piece).unwrap());
    }
    assert!(!stream.contains("hi"));
    llm.hold(Hold::Never);
    stream.push_str(&within(LIMIT, "the rest", answer.text()).await.unwrap());
    assert_eq!(spoken(&stream), ("echo: hi done: hi".into(), true));
}

#[tokio::test]
async fn a_scripted_agent_plays_one_script_per_turn() {
    let preview = Preview::text("hel");
    let finished = AgentEvent::Finished {
        text: "hello".into(),
        files: Vec::new(),
        reasoning: None,
        usage: Default::default(),
        cost: Default::default(),
    };
    let agent =
        ScriptedAgent::new([vec![Scene::Shows(preview.clone()), Scene::Reports(finished.clone())]]);
    let at = Address {
        account: AccountId::literal("a"),
        chat: Chat { id: ChatId::literal("c"), kind: ChatKind::Dm },
        thread: None,
    };
    let turn = Turn {
        id: TurnId { session: SessionId::literal("s"), number: 1 },
        situation: std::sync::Arc::new(Situation::at(at.clone())),
        at,
        from: Sender::new(SenderId::literal("alice")),
        entries: Vec::new(),
        history: History::Whole,
        started: Vec::new(),
        asked: None,
        limit: LIMIT,
        model: None,
        effort: None,
        task: Task::Answer,
        skills: Vec::new(),
        attended: Attended::Yes,
        tools: Default::default(),
        elsewhere: Default::default(),
    };
    let mut running = agent.start(turn.clone());
    assert_eq!(running.events.next().await, Some(finished));
    assert_eq!(*running.preview.borrow(), preview);
    assert_eq!(running.events.next().await, None);
    let beyond = agent.start(turn).events.collect::<Vec<_>>().await;
    assert!(matches!(beyond.as_slice(), [AgentEvent::Failed { .. }]));
    assert_eq!(agent.turns().len(), 2);
}
