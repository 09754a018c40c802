//! What every platform must do, with a terminal attached.

use std::path::PathBuf;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::http::{Request, StatusCode};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};
use talaria_platform::{Arrivals, Incoming, Registration};
use talaria_testkit::platform_contract::{Kind, PlatformHarness, Shown, Told};
use tower::ServiceExt;

use super::Terminal;
use super::wire::Event;

/// An attached terminal.
struct Attached {
    routes: Router,
    lines: Option<BodyDataStream>,
}

fn posting(path: &str, body: Vec<u8>) -> Request<Body> {
    Request::post(path).header("content-type", "application/json").body(Body::from(body)).unwrap()
}

#[async_trait(?Send)]
impl PlatformHarness for Attached {
    async fn open() -> Self {
        Self { routes: Router::new(), lines: None }
    }

    fn registration() -> Registration {
        Registration::of::<Terminal>()
    }

    fn settings(&self) -> Value {
        json!({})
    }

    fn folder(&self) -> PathBuf {
        "unused".into()
    }

    async fn attach(&mut self, incoming: Incoming) -> Arrivals {
        let Incoming::Served { routes, arrivals, .. } = incoming else { panic!("it is served") };
        self.routes = routes;
        let request = Request::get("/conversations/main/stream").body(Body::empty()).unwrap();
        let response = self.routes.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        self.lines = Some(response.into_body().into_data_stream());
        arrivals
    }

    fn say(&mut self, number: u64, text: &str) -> BoxFuture<'static, Told> {
        let words = json!({ "id": format!("message-{number}"), "text": text });
        let request = posting("/conversations/main/messages", words.to_string().into_bytes());
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
        let lines = self.lines.as_mut().expect("attached");
        loop {
            let line = lines.next().await.expect("it stays attached").unwrap();
            match serde_json::from_slice(&line).unwrap() {
                Event::Posted(posted) => {
                    let id = posted.id.map(|id| id.to_string());
                    return Shown { kind: Kind::Post, id, text: posted.text };
                }
                Event::Draft { id, text, .. } => {
                    return Shown { kind: Kind::Draft, id: Some(id.to_string()), text };
                }
                _ => {}
            }
        }
    }

    async fn disturb(&mut self, number: usize) -> bool {
        let path = "/conversations/main/messages";
        let words = |id: &str| json!({ "id": id, "text": "hello" }).to_string().into_bytes();
        let request = match number {
            0 => posting(path, b"this is not JSON".to_vec()),
            1 => posting(path, b"\xff\xfe\xfd".to_vec()),
            2 => posting(path, vec![b'x'; 8 * 1024 * 1024]),
            3 => posting(path, words("")),
            4 => posting(path, words("message\n1")),
            5 => posting(path, b"[".repeat(100_000)),
            6 => posting(path, b"{}".to_vec()),
            7 => posting("/conversations/..%2F..%2Fetc/messages", words("message-1")),
            8 => Request::delete(path).body(Body::empty()).unwrap(),
            _ => return false,
        };
        let status = self.routes.clone().oneshot(request).await.unwrap().status();
        assert!(status.is_client_error(), "disturbance {number}: {status}");
        true
    }

    async fn hung_up(&mut self) {
        let mut lines = self.lines.take().expect("attached");
        while lines.next().await.is_some() {}
    }
}

talaria_testkit::platform_contract!(contract, Attached);
