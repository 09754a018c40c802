//! What every platform must do, by long polling.

use std::path::PathBuf;

use futures::FutureExt;
use futures::future::BoxFuture;
use talaria_platform::Registration;
use talaria_testkit::platform_contract::{
    Kind, PlatformHarness, Said, Shown, Spot, Told, Trouble, Whose,
};
use talaria_testkit::vendors::telegram::Room;
use tokio::sync::watch;

use super::vendor::{Asked, Fault, refusal};
use super::*;

/// Telegram, with Alice in front of it.
struct Polled {
    vendor: Vendor,
    folder: TempDir,
    /// Whether the gateway still holds the stream.
    held: watch::Receiver<bool>,
}

/// Tells when a stream is dropped.
pub(super) struct Held(watch::Sender<bool>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

/// The stream, and whether anybody holds it.
pub(super) fn watched(arrivals: Arrivals) -> (Arrivals, watch::Receiver<bool>) {
    let (sender, held) = watch::channel(true);
    let state = (arrivals, Held(sender));
    let watched = stream::unfold(state, |(mut arrivals, held)| async move {
        let next = arrivals.next().await?;
        Some((next, (arrivals, held)))
    });
    (watched.boxed(), held)
}

/// What people see of a request.
pub(super) fn shown_of(Asked { method, body, message }: Asked) -> Shown {
    let kind = match method.as_str() {
        "sendChatAction" => Kind::Typing,
        "sendMessageDraft" => Kind::Draft,
        "editMessageText" | "editMessageCaption" => Kind::Edit,
        _ => Kind::Post,
    };
    let text = body.get("text").or(body.get("caption")).and_then(Value::as_str);
    let id = message.map(|message| message.to_string());
    Shown { kind, id, text: text.unwrap_or_default().to_owned() }
}

/// A message of a program.
pub(super) fn echoed(number: i64, whose: Whose) -> Value {
    let mut update = said(number, "something");
    update["message"]["from"] = match whose {
        Whose::Ours => json!({ "id": 42, "is_bot": true, "first_name": "Tally" }),
        Whose::AnotherBots => json!({ "id": 43, "is_bot": true, "first_name": "Other" }),
    };
    update
}

/// What is said among several people.
pub(super) fn said_in(vendor: &Vendor, spot: Spot, number: i64, text: &str) -> Value {
    let room = match spot {
        Spot::Group => Room::Group(GROUP),
        Spot::Thread => Room::Topic(GROUP, 7),
    };
    let mut update = vendor.said_in(room, 250_918_540, text);
    (update["update_id"], update["message"]["message_id"]) = (json!(number), json!(number));
    update
}

/// Where the last message was sent.
pub(super) fn spot(vendor: &Vendor) -> Option<Spot> {
    let last = vendor.asked("sendMessage").pop()?;
    match (&last["chat_id"], &last["message_thread_id"]) {
        (chat, topic) if *chat == json!(GROUP) && *topic == json!(7) => Some(Spot::Thread),
        (chat, Value::Null) if *chat == json!(GROUP) => Some(Spot::Group),
        _ => None,
    }
}

const GROUP: i64 = -1_001_234_567_890;

impl Polled {
    /// Telegram tells of an update, and knows what becomes of it.
    fn tell(&mut self, number: i64, update: Value) -> BoxFuture<'static, Told> {
        // What was not confirmed Telegram delivers again by itself.
        let is_new = self.vendor.truth().is_confirmed(number);
        if is_new {
            self.vendor.push(update);
        }
        let known = self.vendor.state.clone();
        let mut held = self.held.clone();
        async move {
            tokio::select! {
                biased;
                () = known.until(|truth| truth.is_confirmed(number)) => Told::Safe,
                _ = held.wait_for(|held| !held) => Told::TryAgain,
            }
        }
        .boxed()
    }
}

#[async_trait(?Send)]
impl PlatformHarness for Polled {
    async fn open() -> Self {
        let (_, held) = watch::channel(false);
        Self { vendor: Vendor::open().await, folder: TempDir::new().unwrap(), held }
    }

    fn registration() -> Registration {
        Registration::of::<Telegram>()
    }

    fn settings(&self) -> Value {
        self.vendor.settings()
    }

    fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    async fn attach(&mut self, incoming: Incoming) -> Arrivals {
        let Incoming::Stream(arrivals) = incoming else { panic!("it polls") };
        let (arrivals, held) = watched(arrivals);
        self.held = held;
        arrivals
    }

    fn say(&mut self, number: u64, text: &str) -> BoxFuture<'static, Told> {
        let number = 700_000 + i64::try_from(number).unwrap();
        self.tell(number, said(number, text))
    }

    fn trouble(&mut self, trouble: Trouble) -> Said {
        self.vendor.meet_posts_with(trouble)
    }

    fn echo(&mut self, number: u64, whose: Whose) -> Said {
        let number = 700_000 + i64::try_from(number).unwrap();
        self.vendor.push(echoed(number, whose));
        Said::Duly
    }

    fn say_in(&mut self, spot: Spot, number: u64, text: &str) -> Option<BoxFuture<'static, Told>> {
        let number = 700_000 + i64::try_from(number).unwrap();
        let update = said_in(&self.vendor, spot, number, text);
        Some(self.tell(number, update))
    }

    fn spot(&self) -> Option<Spot> {
        spot(&self.vendor)
    }

    fn uploads(&self) -> Option<Vec<Vec<u8>>> {
        Some(self.vendor.truth().uploads.clone())
    }

    async fn shown(&mut self) -> Shown {
        shown_of(self.vendor.shown().await)
    }

    async fn disturb(&mut self, number: usize) -> bool {
        let fault = match number {
            0 => Fault::Instead(200, "this is not JSON".into()),
            1 => Fault::Instead(502, "<html>Bad Gateway</html>".into()),
            2 => Fault::Instead(200, r#"{"ok":true,"result":{"not":"a list"}}"#.into()),
            3 => Fault::Instead(200, r#"{"ok":true,"result":[{"message":{}}]}"#.into()),
            4 => refusal(409, "Conflict: terminated by other getUpdates request"),
            5 => refusal(429, "Too Many Requests: retry after 3"),
            6 => Fault::Instead(200, "[".repeat(100_000)),
            7 => Fault::Instead(200, "x".repeat(9 * 1024 * 1024)),
            _ => return false,
        };
        self.vendor.fault("getUpdates", fault);
        true
    }

    async fn hung_up(&mut self) {
        let _ = self.held.wait_for(|held| !held).await;
        self.vendor.until(|truth| truth.polls_in_flight == 0).await;
    }
}

talaria_testkit::platform_contract!(contract, Polled);
