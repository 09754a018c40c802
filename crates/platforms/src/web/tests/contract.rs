//! What every platform must do, with a browser in front of it.

use std::path::PathBuf;

use futures::FutureExt;
use futures::future::BoxFuture;
use talaria_platform::Registration;
use talaria_testkit::platform_contract::{Kind, PlatformHarness, Shown, Told};

use super::*;

/// A browser with the page open.
struct Visitor {
    folder: TempDir,
    routes: Router,
    browser: Option<Browser>,
    page: Option<Page>,
}

impl Visitor {
    async fn ask(&self, request: Request<Body>) -> Response {
        self.routes.clone().oneshot(request).await.unwrap()
    }

    /// Logs in and opens the page.
    async fn visit(&mut self) {
        let token = mint_login(self.folder.path()).unwrap();
        let response = self.ask(posting("/api/login", &json!({ "token": token }))).await;
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
        let set = response.headers()[header::SET_COOKIE].to_str().unwrap();
        let cookie = set.split(';').next().unwrap().to_owned();
        let mut browser = Browser { cookie, token: String::new() };
        let state = json_of(self.ask(browser.get("/api/state")).await).await;
        browser.token = state["csrf"].as_str().unwrap().to_owned();
        let response = self.ask(browser.get("/api/events")).await;
        let mut page = Page::reading(response);
        assert_eq!(page.next().await, Some(json!({ "kind": "hello" })));
        (self.browser, self.page) = (Some(browser), Some(page));
    }

    fn browser(&self) -> &Browser {
        self.browser.as_ref().expect("logged in")
    }
}

#[async_trait(?Send)]
impl PlatformHarness for Visitor {
    async fn open() -> Self {
        let folder = TempDir::new().unwrap();
        Self { folder, routes: Router::new(), browser: None, page: None }
    }

    fn registration() -> Registration {
        Registration::of::<Web>()
    }

    fn settings(&self) -> Value {
        json!({})
    }

    fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    async fn attach(&mut self, incoming: Incoming) -> Arrivals {
        let Incoming::Served { routes, arrivals, .. } = incoming else { panic!("it is served") };
        self.routes = routes;
        self.visit().await;
        arrivals
    }

    fn say(&mut self, number: u64, text: &str) -> BoxFuture<'static, Told> {
        let words = json!({ "id": format!("message-{number:04}"), "text": text });
        let request = self.browser().post(&say_path(), &words);
        let routes = self.routes.clone();
        async move {
            match routes.oneshot(request).await.unwrap().status() {
                StatusCode::OK => Told::Safe,
                StatusCode::SERVICE_UNAVAILABLE => Told::TryAgain,
                status => panic!("{status}"),
            }
        }
        .boxed()
    }

    async fn shown(&mut self) -> Shown {
        let page = self.page.as_mut().expect("the page is open");
        loop {
            let event = page.next().await.expect("the page stays open");
            let kind = match event["kind"].as_str().unwrap() {
                "posted" => Kind::Post,
                "edited" => Kind::Edit,
                "draft" => Kind::Draft,
                "typing" => Kind::Typing,
                _ => continue,
            };
            let text = event.get("text").unwrap_or(&event["html"]);
            let text = text.as_str().unwrap_or_default().to_owned();
            return Shown { kind, id: event["id"].as_str().map(str::to_owned), text };
        }
    }

    async fn disturb(&mut self, number: usize) -> bool {
        let browser = self.browser();
        let raw = |body: Vec<u8>| {
            browser
                .builder(Method::POST, &say_path())
                .header("x-talaria-csrf", &browser.token)
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(body))
                .unwrap()
        };
        let words = |id: &str| json!({ "id": id, "text": "hello" }).to_string().into_bytes();
        let request = match number {
            0 => raw(b"this is not JSON".to_vec()),
            1 => raw(b"\xff\xfe\xfd".to_vec()),
            2 => raw(vec![b'x'; 8 * 1024 * 1024]),
            3 => raw(words("")),
            4 => raw(words("message\n0001")),
            5 => raw(b"[".repeat(100_000)),
            6 => raw(b"{}".to_vec()),
            7 => browser.post("/api/conversations/..%2F..%2Fetc/messages", &json!({})),
            8 => browser.builder(Method::DELETE, &say_path()).body(Body::empty()).unwrap(),
            _ => return false,
        };
        let status = self.ask(request).await.status();
        assert!(status.is_client_error(), "disturbance {number}: {status}");
        true
    }

    async fn hung_up(&mut self) {
        let mut page = self.page.take().expect("the page is open");
        while page.next().await.is_some() {}
    }
}

talaria_testkit::platform_contract!(contract, Visitor);
