//! What every platform must do, on Discord.

use std::path::PathBuf;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use talaria_platform::{Arrivals, Incoming, Registration};
use talaria_testkit::platform_contract::{
    Kind, PlatformHarness, Said, Shown, Spot, Told, Trouble, Whose,
};
use talaria_testkit::scripted::Request;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::vendor::{DM, GENERAL, GUILD, US, Vendor, message};
use crate::discord::Discord;

struct Harness {
    vendor: Vendor,
    asked: mpsc::UnboundedReceiver<(Request, Value)>,
    folder: TempDir,
}

const FIRST: u64 = 1_500_000_000_000_000_000;

const THREAD: &str = "600";

impl Harness {
    /// Discord tells of a message, and knows what becomes of it.
    fn tell(&self, message: Value) -> BoxFuture<'static, Told> {
        let seq = self.vendor.tell("MESSAGE_CREATE", message);
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
        self.tell(message(FIRST + number, DM, text))
    }

    fn trouble(&mut self, trouble: Trouble) -> Said {
        self.vendor.meet_posts_with(trouble)
    }

    fn echo(&mut self, number: u64, whose: Whose) -> Said {
        let mut echoed = message(FIRST + number, DM, "something");
        echoed["author"] = match whose {
            Whose::Ours => json!({ "id": US, "username": "talaria", "bot": true }),
            Whose::AnotherBots => json!({ "id": "77", "username": "other", "bot": true }),
        };
        self.vendor.tell("MESSAGE_CREATE", echoed);
        Said::Duly
    }

    fn say_in(&mut self, spot: Spot, number: u64, text: &str) -> Option<BoxFuture<'static, Told>> {
        // In a channel an answer begins a thread, which is a place of its own.
        if spot == Spot::Group {
            return None;
        }
        self.vendor.with_guild();
        let thread = json!({ "id": THREAD, "type": 11, "guild_id": GUILD, "parent_id": GENERAL, "name": "soup" });
        self.vendor.truth().channels.insert(THREAD.into(), thread);
        let mut said = message(FIRST + number, THREAD, &format!("<@{US}> {text}"));
        said["channel_type"] = json!(11);
        Some(self.tell(said))
    }

    fn spot(&self) -> Option<Spot> {
        let posts = self.vendor.rest.requests_to("/messages");
        let last = posts.iter().rev().find(|request| request.method == "POST")?;
        last.path.contains(&format!("/channels/{THREAD}/")).then_some(Spot::Thread)
    }

    fn uploads(&self) -> Option<Vec<Vec<u8>>> {
        let posts = self.vendor.rest.requests_to("/messages");
        let is_form = |kind: &str| kind.starts_with("multipart/");
        let forms = posts.into_iter().filter(|it| it.header("content-type").is_some_and(is_form));
        Some(forms.map(|request| request.body).collect())
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
