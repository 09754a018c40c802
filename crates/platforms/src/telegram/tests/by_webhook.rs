//! What every platform must do, by webhook; and who may call it.

use std::path::PathBuf;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use futures::FutureExt;
use futures::future::BoxFuture;
use talaria_model::{Inbound, InboundKind, Seq};
use talaria_platform::{Registration, Surface};
use talaria_testkit::platform_contract::{
    Forged, PlatformHarness, Said, Shown, Spot, Told, Trouble, Whose,
};
use tokio::sync::watch;
use tower::ServiceExt;

use super::by_poll::{echoed, said_in, shown_of, spot, watched};
use super::*;

const SECRET: &str = "Aa0_-secret-of-enough-letters";

const URL: &str = "https://bot.example.org/in/telegram/webhook";

/// Telegram, calling.
struct Calling {
    vendor: Vendor,
    folder: TempDir,
    routes: Router,
    held: watch::Receiver<bool>,
}

fn with_webhook(vendor: &Vendor) -> Value {
    let mut settings = vendor.settings();
    settings["webhook_url"] = json!(URL);
    settings["webhook_secret"] = json!(SECRET);
    settings
}

fn call(secret: Option<&str>, body: impl Into<Body>) -> Request<Body> {
    let mut request = Request::post("/webhook").header("content-type", "application/json");
    if let Some(secret) = secret {
        request = request.header("X-Telegram-Bot-Api-Secret-Token", secret);
    }
    request.body(body.into()).unwrap()
}

async fn status(routes: &Router, request: Request<Body>) -> StatusCode {
    routes.clone().oneshot(request).await.unwrap().status()
}

impl Calling {
    /// Telegram calls with an update.
    fn tell(&self, update: &Value) -> BoxFuture<'static, Told> {
        let routes = self.routes.clone();
        let request = call(Some(SECRET), update.to_string());
        async move {
            match status(&routes, request).await {
                StatusCode::OK => Told::Safe,
                StatusCode::SERVICE_UNAVAILABLE => Told::TryAgain,
                status => panic!("{status}"),
            }
        }
        .boxed()
    }
}

#[async_trait(?Send)]
impl PlatformHarness for Calling {
    async fn open() -> Self {
        let (_, held) = watch::channel(false);
        let folder = TempDir::new().unwrap();
        Self { vendor: Vendor::open().await, folder, routes: Router::new(), held }
    }

    fn registration() -> Registration {
        Registration::of::<Telegram>()
    }

    fn settings(&self) -> Value {
        with_webhook(&self.vendor)
    }

    fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    async fn attach(&mut self, incoming: Incoming) -> Arrivals {
        let Incoming::Served { on, routes, arrivals } = incoming else { panic!("it is served") };
        assert_eq!(on, Surface::Webhook);
        self.routes = routes;
        let (arrivals, held) = watched(arrivals);
        self.held = held;
        arrivals
    }

    fn say(&mut self, number: u64, text: &str) -> BoxFuture<'static, Told> {
        self.tell(&said(700_000 + i64::try_from(number).unwrap(), text))
    }

    fn trouble(&mut self, trouble: Trouble) -> Said {
        self.vendor.meet_posts_with(trouble)
    }

    #[expect(clippy::disallowed_methods, reason = "the vendor calls in a task of its own")]
    fn echo(&mut self, number: u64, whose: Whose) -> Said {
        // What is heard of it is answered only when somebody has stored it.
        tokio::spawn(self.tell(&echoed(700_000 + i64::try_from(number).unwrap(), whose)));
        Said::Duly
    }

    fn say_in(&mut self, spot: Spot, number: u64, text: &str) -> Option<BoxFuture<'static, Told>> {
        let number = 700_000 + i64::try_from(number).unwrap();
        Some(self.tell(&said_in(&self.vendor, spot, number, text)))
    }

    fn spot(&self) -> Option<Spot> {
        spot(&self.vendor)
    }

    fn uploads(&self) -> Option<Vec<Vec<u8>>> {
        Some(self.vendor.truth().uploads.clone())
    }

    async fn forge(&mut self, number: usize, forged: Forged) -> Option<u16> {
        let body = match forged {
            Forged::Event => said(1, "hello").to_string(),
            Forged::Nonsense => "[".repeat(1000),
        };
        let secret = match number {
            0 => None,
            1 => Some(""),
            2 => Some("Aa0_-secre"),
            3 => Some("aA0_-SECRET"),
            4 => Some("Aa0_-secretx"),
            _ => return None,
        };
        Some(status(&self.routes, call(secret, body)).await.as_u16())
    }

    async fn shown(&mut self) -> Shown {
        shown_of(self.vendor.shown().await)
    }

    async fn disturb(&mut self, number: usize) -> bool {
        let update = said(1, "hello").to_string();
        let request = match number {
            0 => call(Some(SECRET), "this is not JSON"),
            1 => call(Some(SECRET), vec![0xff, 0xfe]),
            2 => call(Some(SECRET), vec![b' '; 2 * 1024 * 1024]),
            3 => call(Some(SECRET), "[".repeat(100_000)),
            4 => call(Some(SECRET), "{}"),
            5 => call(None, update),
            6 => call(Some("aA0_-SECRET"), update),
            7 => Request::get("/webhook").body(Body::empty()).unwrap(),
            _ => return false,
        };
        let status = status(&self.routes, request).await;
        assert!(status.is_client_error(), "disturbance {number}: {status}");
        true
    }

    async fn hung_up(&mut self) {
        let _ = self.held.wait_for(|held| !held).await;
        let update = said(1, "anybody?").to_string();
        let status = status(&self.routes, call(Some(SECRET), update)).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "what nobody stores is sent again");
    }
}

talaria_testkit::platform_contract!(contract, Calling);

/// A webhook and who listens behind it.
struct Hook {
    vendor: Vendor,
    routes: Router,
    arrivals: Arrivals,
    _folder: TempDir,
}

async fn hook() -> Hook {
    let vendor = Vendor::open().await;
    let folder = TempDir::new().unwrap();
    let with = settings(with_webhook(&vendor));
    let ports = Ports { clock: Arc::new(Hurried::default()), ..ports(folder.path(), None) };
    let link = Telegram::connect(with, ports).await.unwrap();
    let Incoming::Served { routes, arrivals, .. } = link.incoming else { panic!("it is served") };
    Hook { vendor, routes, arrivals, _folder: folder }
}

impl Hook {
    /// Telegram says that so many updates wait, and when it could not hand one over.
    fn has_waiting(&self, waiting: u64, failed: Option<i64>) {
        let mut truth = self.vendor.truth();
        truth.webhook["pending_update_count"] = json!(waiting);
        truth.webhook["last_error_date"] = json!(failed);
    }

    /// Whether a sign of life comes before Telegram was asked three more times.
    async fn is_alive(&mut self) -> bool {
        let is_question = |asked: &&vendor::Asked| asked.method == "getWebhookInfo";
        let asked = self.vendor.asked("getWebhookInfo").len();
        let is_asked =
            |truth: &vendor::Truth| truth.requests.iter().filter(is_question).count() > asked + 3;
        tokio::select! {
            biased;
            arrival = self.arrivals.next() => {
                assert!(matches!(arrival, Some(Ok(Arrival::Alive))));
                true
            }
            () = self.vendor.until(is_asked) => false,
        }
    }

    /// An update is posted and stored.
    async fn hear(&mut self, update: &Value, verdict: &Verdict) -> (Inbound, StatusCode) {
        let calling = status(&self.routes, call(Some(SECRET), update.to_string()));
        let storing = async {
            let batch = loop {
                match self.arrivals.next().await {
                    Some(Ok(Arrival::Batch(batch))) => break batch,
                    Some(Ok(Arrival::Alive)) => {}
                    _ => panic!("an update"),
                }
            };
            let inbound = batch.events[0].clone();
            commit(batch, verdict);
            inbound
        };
        let (status, inbound) = tokio::join!(calling, storing);
        (inbound, status)
    }
}

#[tokio::test]
async fn telegram_is_told_where_to_call_and_with_which_secret() {
    let hook = hook().await;
    let expected = json!({
        "url": URL,
        "secret_token": SECRET,
        "allowed_updates": [
            "message", "edited_message", "channel_post", "callback_query",
            "stopped_message_generation",
        ],
    });
    assert_eq!(hook.vendor.asked("setWebhook"), [expected]);
    assert!(hook.vendor.asked("getUpdates").is_empty());
}

#[tokio::test]
async fn nobody_without_the_secret_is_heard() {
    let hook = hook().await;
    let update = said(1, "hello").to_string();
    let longer = format!("{SECRET}x");
    for secret in [None, Some(""), Some("Aa0_-secre"), Some("aa0_-secret"), Some(longer.as_str())] {
        let status = status(&hook.routes, call(secret, update.clone())).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{secret:?}");
    }
}

#[test]
fn only_what_telegram_takes_and_nobody_guesses_is_a_secret() {
    let of = |length: usize| "a".repeat(length);
    for secret in [of(16), of(256), SECRET.to_owned(), "0123456789-_AZaz".to_owned()] {
        assert!(super::super::webhook::is_secret(&secret), "{secret}");
    }
    for text in [String::new(), of(15), of(257), format!("{SECRET} "), format!("{SECRET}é")] {
        assert!(!super::super::webhook::is_secret(&text), "{text}");
    }
}

#[tokio::test]
async fn an_update_may_be_a_mebibyte_long_and_no_longer() {
    let mut hook = hook().await;
    let longest = |more: usize| {
        let update = said(1, "hello").to_string();
        let padding = " ".repeat(1024 * 1024 - update.len() + more);
        format!("{update}{padding}")
    };
    let too_long = status(&hook.routes, call(Some(SECRET), longest(1))).await;
    assert_eq!(too_long, StatusCode::PAYLOAD_TOO_LARGE);
    let storing = async {
        while let Some(Ok(arrival)) = hook.arrivals.next().await {
            if let Arrival::Batch(batch) = arrival {
                return commit(batch, &Verdict::Journalled(Seq(1)));
            }
        }
    };
    let (taken, ()) = tokio::join!(status(&hook.routes, call(Some(SECRET), longest(0))), storing);
    assert_eq!(taken, StatusCode::OK);
}

#[tokio::test]
async fn what_is_nothing_for_a_session_is_taken_for_good() {
    let hook = hook().await;
    for update in [
        json!({ "update_id": 1, "my_chat_member": {} }),
        json!({ "update_id": 2, "message": { "text": ["not", "a", "message"] } }),
        json!({ "update_id": 3, "later_kind": {} }),
    ] {
        let status = status(&hook.routes, call(Some(SECRET), update.to_string())).await;
        assert_eq!(status, StatusCode::OK, "it would come again for a day: {update}");
    }
}

#[tokio::test]
async fn a_press_is_answered_after_it_was_stored() {
    let mut hook = hook().await;
    let press: Value = serde_json::from_str(include_str!("../fixtures/press.json")).unwrap();
    let (inbound, status) = hook.hear(&press, &Verdict::Journalled(Seq(1))).await;
    assert!(matches!(inbound.kind, InboundKind::Pressed(_)));
    assert_eq!(status, StatusCode::OK);
    let answer = json!({ "callback_query_id": "4382bfdwdsb323b2d9" });
    assert_eq!(hook.vendor.asked("answerCallbackQuery"), [answer]);
    let (_, status) = hook.hear(&press, &Verdict::Denied).await;
    assert_eq!(status, StatusCode::OK);
    let denied = &hook.vendor.asked("answerCallbackQuery")[1];
    assert_eq!(denied["text"], "You are not allowed to do this.");
}

#[tokio::test]
async fn telegram_says_whether_it_reaches_us() {
    let mut hook = hook().await;
    assert!(matches!(hook.arrivals.next().await, Some(Ok(Arrival::Alive))), "it does");
    hook.vendor.truth().webhook["url"] = json!("https://elsewhere.example.org/");
    match hook.arrivals.next().await {
        Some(Err(LinkError::Conflict { hint, .. })) => {
            assert!(hint.contains("a bot of its own"), "{hint}");
        }
        _ => panic!("somebody else has taken the bot"),
    }
}

#[tokio::test]
async fn updates_that_wait_while_none_arrives_are_no_sign_of_life_whatever_the_clocks_say() {
    let now = 1_794_735_000;
    for (waiting, failed, reaches) in [
        (0, Some(now), true),
        (1, None, false),
        (1, Some(now - 24 * 60 * 60), false),
        (1, Some(now - 1), false),
        (2, Some(now + 24 * 60 * 60), false),
    ] {
        let mut hook = hook().await;
        hook.has_waiting(waiting, failed);
        assert_eq!(hook.is_alive().await, reaches, "{waiting} wait, and it failed at {failed:?}");
    }
}

#[tokio::test]
async fn updates_that_wait_while_others_arrive_are_only_slow() {
    let mut hook = hook().await;
    hook.has_waiting(9, Some(1_794_735_000));
    assert!(!hook.is_alive().await, "none arrives");
    hook.hear(&said(1, "hello"), &Verdict::Journalled(Seq(1))).await;
    assert!(hook.is_alive().await, "one has arrived");
    assert!(!hook.is_alive().await, "and no other");
}
