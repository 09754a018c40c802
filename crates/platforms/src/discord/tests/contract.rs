//! What every platform must do, on Discord.

use std::path::PathBuf;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use talaria_platform::{Arrivals, Incoming, Registration};
use talaria_testkit::platform_contract::{Kind, PlatformHarness, Shown, Told};
use talaria_testkit::scripted::Request;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::vendor::{DM, Vendor, message};
use crate::discord::Discord;

struct Harness {
    vendor: Vendor,
    asked: mpsc::UnboundedReceiver<(Request, Value)>,
    folder: TempDir,
}

#[async_trait(?Send)]
impl PlatformHarness for Harness {
    async fn open() -> Self {
        let (vendor, asked) = Vendor::open().await;
        Self { vendor, asked, folder: TempDir::new().unwrap() }
    }

    fn registration() -> Registration {
        Registration::of::<Discord>()
    }

    fn settings(&self) -> Value {
        self.vendor.settings()
    }

    fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    async fn attach(&mut self, incoming: Incoming) -> Arrivals {
        let Incoming::Stream(arrivals) = incoming else { panic!("a stream") };
        arrivals
    }

    fn say(&mut self, number: u64, text: &str) -> BoxFuture<'static, Told> {
        let id = 1_500_000_000_000_000_000 + number;
        let seq = self.vendor.tell("MESSAGE_CREATE", message(id, DM, text));
        let mut state = self.vendor.connection().state;
        async move {
            let end = state.wait_for(|state| state.confirmed >= seq || state.is_closed).await;
            match end {
                Ok(state) if state.confirmed >= seq => Told::Safe,
                _ => Told::TryAgain,
            }
        }
        .boxed()
    }

    async fn shown(&mut self) -> Shown {
        let (request, body) = self.asked.recv().await.expect("a vendor");
        let kind = match request.method.as_str() {
            _ if request.path.ends_with("/typing") => Kind::Typing,
            "PATCH" => Kind::Edit,
            _ => Kind::Post,
        };
        let text = body["content"].as_str().unwrap_or_default().to_owned();
        let id = match kind {
            Kind::Edit => request.path.rsplit('/').next().map(str::to_owned),
            _ => body["nonce"].as_str().and_then(|nonce| self.vendor.truth().shown_under(nonce)),
        };
        Shown { kind, id, text }
    }

    async fn disturb(&mut self, number: usize) -> bool {
        match number {
            0 => self.vendor.write("this is not JSON".into()),
            1 => self.vendor.write_bytes(b"\xff\xfe\xfd".to_vec()),
            2 => self.vendor.write("[".repeat(100_000)),
            3 => self.vendor.write("{}".into()),
            4 => self.vendor.write(json!({ "op": "zero" }).to_string()),
            5 => self.vendor.write(json!({ "op": 0, "t": "MESSAGE_CREATE" }).to_string()),
            6 => self.vendor.write("x".repeat(17 * 1024 * 1024)),
            _ => return false,
        }
        true
    }

    async fn hung_up(&mut self) {
        let mut state = self.vendor.connection().state;
        state.wait_for(|state| state.is_closed).await.expect("the vendor watches");
    }
}

talaria_testkit::platform_contract!(contract, Harness);
