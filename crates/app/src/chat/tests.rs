//! The terminal's end against a whole gateway, over a real socket: everything between a message and
//! what is printed, except the keyboard.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use talaria_agent::{Preview, Privacy};
use talaria_clock::{Clock, SystemClock};
use talaria_gateway::{
    AccountPlan, DiskFiles, Gateway, Limits, NoFollower, NoSteward, NoWatcher, Parts,
};
use talaria_model::{
    AccountId, AgentEvent, Answer, CallId, Choice, ChoiceId, Cost, FileId, FileRef, Question, Usage,
};
use talaria_platform::{Registration, Surface};
use talaria_platforms::terminal::{Terminal, wire};
use talaria_render::Colour;
use talaria_session::{Access, Acks, Busy, Gate, Rules, Scope};
use talaria_store::MemoryStore;
use talaria_testkit::{Scene, ScriptedAgent};
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::sync::Notify;

use super::live::Size;
use super::live::tests::Emulator;
use super::once::{Ended, once};
use super::paper::Display;
use super::socket::{Ending, Socket, Word};
use super::{due, fresh_id};
use crate::exit::Exit;

const SCREEN: Size = Size { columns: 40, rows: 10 };
const RICH: Display = Display::Rich { size: SCREEN, colour: Colour::On };

struct Bench {
    folder: TempDir,
    agent: Arc<ScriptedAgent>,
    gateway: Gateway,
    clock: Arc<dyn Clock>,
}

impl Bench {
    /// A gateway whose agent plays one script per turn.
    async fn with(scripts: impl IntoIterator<Item = Vec<Scene>>) -> Self {
        Self::under(Rules::default(), scripts).await
    }

    async fn under(rules: Rules, scripts: impl IntoIterator<Item = Vec<Scene>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let files = DiskFiles::open(folder.path().join("files"), 1 << 20, 1 << 30).unwrap();
        let account = Registration::of::<Terminal>().open(serde_json::json!({})).unwrap();
        let agent = Arc::new(ScriptedAgent::new(scripts));
        let gateway = Gateway::start(Parts {
            store: Arc::new(MemoryStore::new()),
            agent: agent.clone(),
            clock: clock.clone(),
            files: Arc::new(files),
            accounts: vec![AccountPlan {
                id: AccountId::literal("terminal"),
                account,
                access: Access::own(),
                gate: Gate::default(),
                rules: BTreeMap::new(),
                manner: Arc::default(),
                folder: folder.path().join("terminal"),
            }],
            hosts: Arc::new([]),
            scope: Scope::default(),
            rules: Arc::new(rules),
            privacy: Privacy::Open,
            steward: Arc::new(NoSteward),
            watcher: Arc::new(NoWatcher),
            follower: Arc::new(NoFollower),
            finalizers: Vec::new(),
            ears: None,
            mouth: None,
            entropy: Arc::new(|bytes: &mut [u8]| rand::fill(bytes)),
            limits: Limits::default(),
        })
        .await
        .unwrap();
        gateway.first_connections().await;
        Self { folder, agent, gateway, clock }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("gateway.sock")
    }

    /// Opens the socket and serves for as long as it is polled.
    async fn serve(&self) {
        let path = self.path();
        let _ = std::fs::remove_file(&path);
        let account = AccountId::literal("terminal");
        let routes = self.gateway.routes().of(Surface::Local, &account).unwrap();
        let listener = UnixListener::bind(path).unwrap();
        axum::serve(listener, Router::new().nest("/terminal", routes)).await.unwrap();
    }

    fn socket(&self) -> Socket {
        Socket::of(&self.path(), "main".into()).unwrap()
    }

    /// Says something, and gives back how it ended and what was written.
    async fn ask(&self, text: &str) -> (Exit, String) {
        let (ended, written) = self.ask_on(Display::Plain, text).await;
        (ended.exit, written)
    }

    async fn ask_on(&self, display: Display, text: &str) -> (Ended, String) {
        let (ended, written, _) = self.ask_aside(display, text).await;
        (ended, written)
    }

    /// The same, with what was remarked besides.
    async fn ask_aside(&self, display: Display, text: &str) -> (Ended, String, String) {
        let (mut written, mut remarked) = (String::new(), String::new());
        let write = |text: &str| written.push_str(text);
        let remark = |text: &str| remarked.push_str(text);
        let (socket, clock) = (self.socket(), self.clock.clone());
        let asking = once(socket, text.into(), display, clock, never(), write, remark);
        let ended = tokio::select! {
            ended = asking => ended.unwrap(),
            () = self.serve() => unreachable!("it serves for ever"),
        };
        (ended, written, remarked)
    }
}

fn never() -> BoxStream<'static, ()> {
    stream::pending().boxed()
}

fn finished(text: &str) -> Scene {
    finished_with(text, Vec::new())
}

fn finished_with(text: &str, files: Vec<FileRef>) -> Scene {
    let (text, usage) = (text.into(), Usage::default());
    Scene::Reports(AgentEvent::Finished { text, files, reasoning: None, usage, cost: Cost::FREE })
}

fn stepped(text: &str) -> Scene {
    let (text, usage) = (text.into(), Usage::default());
    Scene::Reports(AgentEvent::Stepped {
        text,
        files: Vec::new(),
        calls: Vec::new(),
        reasoning: None,
        usage,
        cost: Cost::FREE,
    })
}

fn shows(text: &str) -> Scene {
    Scene::Shows(Preview::text(text))
}

fn asks(labels: &[&str]) -> Scene {
    let choices = labels
        .iter()
        .map(|label| Choice { id: ChoiceId::new(*label).unwrap(), label: (*label).into() });
    let (call, text) = (CallId::literal("c"), "Which one?".into());
    Scene::Reports(AgentEvent::Asked(Question {
        call,
        text,
        choices: choices.collect(),
        approval: None,
    }))
}

#[tokio::test]
async fn the_answer_is_printed_and_nothing_else() {
    let bench = Bench::with([vec![shows("Hel"), finished("Hello **you**.\n")]]).await;
    assert_eq!(bench.ask("hi").await, (Exit::Done, "Hello **you**.\n".into()));
}

#[tokio::test]
async fn an_answer_in_several_pieces_is_printed_whole() {
    let bench = Bench::with([vec![stepped("Let me look."), finished("Found it.")]]).await;
    let expected = "Let me look.\n\nFound it.\n";
    assert_eq!(bench.ask("hi").await, (Exit::Done, expected.into()));
}

#[tokio::test]
async fn a_turn_that_ends_without_a_last_word_ends() {
    let bench = Bench::with([vec![stepped("That is all."), finished("")]]).await;
    assert_eq!(bench.ask("hi").await, (Exit::Done, "That is all.\n".into()));
}

#[tokio::test]
async fn an_agent_that_keeps_silent_is_not_waited_for() {
    let bench = Bench::with([vec![finished("NO_REPLY")]]).await;
    let (ended, written, remarked) = bench.ask_aside(Display::Plain, "fyi").await;
    assert_eq!((ended.exit, written), (Exit::Done, String::new()));
    assert_eq!(remarked, "The agent has nothing to say to that.\n");
}

#[tokio::test]
async fn a_failure_is_told_and_ends_in_failure() {
    let bench = Bench::with([vec![]]).await;
    assert_eq!(bench.ask("hi").await, (Exit::Failed, "The script ended.\n".into()));
}

#[tokio::test]
async fn a_question_that_nobody_can_answer_ends_the_asking() {
    let bench = Bench::with([vec![asks(&["Red", "Blue"]), Scene::Listens]]).await;
    let expected = "Which one?\n1. Red\n2. Blue\n";
    assert_eq!(bench.ask("hi").await, (Exit::Asked, expected.into()));
}

#[tokio::test]
async fn whoever_answers_an_open_question_without_knowing_is_told_so() {
    for (labels, said, answer) in [
        (&["Red", "Blue"][..], "2", Answer::Chosen(ChoiceId::literal("Blue"))),
        (&["Red", "Blue"], "what is the time?", Answer::Said("what is the time?".into())),
        (&[], "what is the time?", Answer::Said("what is the time?".into())),
    ] {
        let bench = Bench::with([vec![asks(labels), Scene::Listens, finished("I see.")]]).await;
        assert_eq!(bench.ask("hi").await.0, Exit::Asked);
        let (ended, written, remarked) = bench.ask_aside(Display::Plain, said).await;
        assert_eq!((ended.exit, written.as_str()), (Exit::Done, "I see.\n"));
        assert!(remarked.contains("still open") && remarked.contains("Which one?"), "{remarked}");
        assert!(labels.iter().all(|label| remarked.contains(label)), "{remarked}");
        assert_eq!(
            bench.agent.heard(),
            [talaria_model::Word::Answer { to: CallId::literal("c"), answer, files: Vec::new() }],
            "{said:?}"
        );
    }
}

#[tokio::test]
async fn a_question_that_was_answered_or_given_up_is_not_mentioned_again() {
    #[derive(PartialEq)]
    enum Told {
        Nothing,
        Reminded,
    }
    let bench = Bench::with([
        vec![asks(&["Red", "Blue"]), Scene::Listens, finished("I see.")],
        vec![finished("Hello.")],
        vec![asks(&["Red", "Blue"]), Scene::Listens],
        vec![finished("Hello again.")],
    ])
    .await;
    for (said, told) in [
        ("hi", Told::Nothing),
        ("Red", Told::Reminded),
        ("hi", Told::Nothing),
        ("hi", Told::Nothing),
        ("/stop", Told::Nothing),
        ("hi", Told::Nothing),
    ] {
        let (_, _, remarked) = bench.ask_aside(Display::Plain, said).await;
        assert_eq!(!remarked.is_empty(), told == Told::Reminded, "{said:?}: {remarked}");
    }
}

#[tokio::test]
async fn a_command_is_answered_by_the_gateway_itself() {
    let bench = Bench::with([]).await;
    let (exit, text) = bench.ask("/help").await;
    assert_eq!(exit, Exit::Done);
    assert!(text.contains("/status"), "{text}");
}

#[tokio::test]
async fn a_platforms_greeting_ends_without_an_answer_and_says_why() {
    let bench = Bench::with([]).await;
    let (ended, written, remarked) = bench.ask_aside(Display::Plain, "/start").await;
    assert_eq!((ended.exit, written.as_str()), (Exit::Done, ""));
    assert!(remarked.contains("nothing is answered"), "{remarked}");
}

#[tokio::test]
async fn an_interruption_stops_the_turn() {
    let bench = Bench::with([vec![shows("Once upon a time"), Scene::Listens]]).await;
    let (written, wrote) = (Mutex::new(String::new()), Arc::new(Notify::new()));
    let write = |text: &str| {
        written.lock().unwrap().push_str(text);
        if text.contains("Once upon") {
            wrote.notify_one();
        }
    };
    let begun = wrote.clone();
    let interruptions = stream::once(async move { begun.notified().await });
    let interruptions = interruptions.chain(stream::pending()).boxed();
    let clock = bench.clock.clone();
    let asking = once(bench.socket(), "a story".into(), RICH, clock, interruptions, write, |_| {});
    let ended = tokio::select! {
        ended = asking => ended.unwrap(),
        () = bench.serve() => unreachable!("it serves for ever"),
    };
    assert_eq!(ended.exit, Exit::Failed);
    let mut screen = Emulator::of(SCREEN);
    screen.write(&written.lock().unwrap());
    assert_eq!(screen.text(), ["Stopped. Your next message begins a new", "conversation."]);
}

#[tokio::test]
async fn what_was_left_undelivered_is_not_taken_for_the_answer() {
    let bench = Bench::with([vec![finished("The first.")], vec![finished("The second.")]]).await;
    // Somebody says something and is gone before it is answered.
    let say = wire::Say { id: fresh_id(), text: "one".into(), files: Vec::new() };
    let (socket, word) = (bench.socket(), Word::Say(say));
    tokio::select! {
        heard = socket.insist(&word, &*bench.clock, Ending::Wait) => assert_eq!(heard, Ok(wire::Heard::Recorded)),
        () = bench.serve() => unreachable!("it serves for ever"),
    }
    assert_eq!(bench.ask("two").await, (Exit::Done, "The second.\n".into()));
}

#[tokio::test]
async fn an_answer_is_printed_once_although_the_connection_was_lost() {
    let steered = Rules { busy: Busy::Steer, acks: Acks::Never, ..Rules::default() };
    let bench = Bench::under(
        steered,
        [
            vec![stepped("Let me look."), Scene::Listens, finished("Found it.")],
            vec![finished("And that is all.")],
        ],
    )
    .await;
    let (written, wrote) = (Mutex::new(String::new()), Notify::new());
    let write = |text: &str| {
        if !text.is_empty() {
            written.lock().unwrap().push_str(text);
            wrote.notify_one();
        }
    };
    let asking = once(
        bench.socket(),
        "hi".into(),
        Display::Plain,
        bench.clock.clone(),
        never(),
        write,
        |_| {},
    );
    let mut asking = std::pin::pin!(asking);
    tokio::select! {
        ended = &mut asking => panic!("ended too early: {ended:?}"),
        () = bench.serve() => unreachable!("it serves for ever"),
        // The socket is gone as soon as the first piece is printed.
        () = wrote.notified() => {}
    }
    let (socket, clock) = (bench.socket(), bench.clock.clone());
    let going_on = async move {
        let say = wire::Say { id: fresh_id(), text: "go on".into(), files: Vec::new() };
        socket.insist(&Word::Say(say), &*clock, Ending::Wait).await
    };
    let mut going_on = Some(Box::pin(going_on));
    let mut serving = std::pin::pin!(bench.serve());
    let ended = loop {
        tokio::select! {
            ended = &mut asking => break ended.unwrap(),
            () = &mut serving => unreachable!("it serves for ever"),
            _ = due(&mut going_on) => going_on = None,
        }
    };
    assert_eq!(*written.lock().unwrap(), "Let me look.\n\nFound it.\n\nAnd that is all.\n");
    assert_eq!(ended.exit, Exit::Done);
}

#[tokio::test]
async fn a_screen_shows_the_answer_as_if_it_had_come_at_once() {
    let answer = "# Title\n\nSome *text*.\n\n- one\n- two\n";
    let drafts = (1..answer.len()).map(|length| shows(&answer[..length]));
    let bench = Bench::with([drafts.chain([finished(answer)]).collect()]).await;
    let (ended, written) = bench.ask_on(RICH, "hi").await;
    let mut screen = Emulator::of(SCREEN);
    screen.write(&written);
    assert_eq!(ended.exit, Exit::Done);
    assert_eq!(screen.text(), ["Title", "", "Some text.", "", "• one", "• two"]);
}

#[tokio::test]
async fn files_come_along() {
    let file = FileRef::new(FileId::literal("00"), "report.txt", "text/plain", 12);
    let bench = Bench::with([vec![finished_with("Here.", vec![file.clone()])]]).await;
    let (ended, text) = bench.ask_on(Display::Plain, "hi").await;
    assert_eq!(ended, Ended { exit: Exit::Done, files: vec![file] });
    assert_eq!(text, "Here.\n");
}

#[tokio::test]
async fn a_file_is_handed_over_and_fetched_and_nothing_is_overwritten() {
    let bench = Bench::with([]).await;
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes.txt");
    std::fs::write(&notes, "some notes").unwrap();
    let socket = bench.socket();
    let exchange = async {
        let file = socket.upload(&notes).await.unwrap();
        assert_eq!((file.name.as_str(), file.size), ("notes.txt", 10));
        let copy = folder.path().join("copy.txt");
        assert_eq!(socket.download(&file, Some(&copy)).await.unwrap(), copy);
        assert_eq!(std::fs::read(&copy).unwrap(), b"some notes");
        assert!(socket.download(&file, Some(folder.path())).await.is_err());
        let sly = FileRef { name: "../../sly.txt".into(), ..file };
        let inside = tempfile::tempdir().unwrap();
        let saved = socket.download(&sly, Some(inside.path())).await.unwrap();
        assert_eq!(saved, inside.path().join("sly.txt"));
        assert!(socket.upload(folder.path()).await.is_err());
        assert!(socket.upload(Path::new("/nowhere")).await.is_err());
    };
    tokio::select! {
        // The socket is there before anybody comes.
        biased;
        () = bench.serve() => unreachable!("it serves for ever"),
        () = exchange => {}
    }
}

#[tokio::test]
async fn nobody_there_is_an_error_and_not_a_wait() {
    let folder = tempfile::tempdir().unwrap();
    let socket = Socket::of(&folder.path().join("none.sock"), "main".into()).unwrap();
    tokio::time::pause();
    let clock = Arc::new(SystemClock);
    let ended = once(socket, "hi".into(), Display::Plain, clock, never(), |_| {}, |_| {}).await;
    assert_eq!(ended.unwrap_err().to_string(), "the gateway cannot be reached");
}
