//! Proxies: the environment's count only where the configuration says so, the configured one always does,
//! and nothing on this machine is reached through any.
//!
//! `0.0.0.0` leads to this machine and is none of its loopback addresses: a server elsewhere that is there
//! without a network. Nobody listens on the ports below ten, so whoever goes straight there is refused.

use std::collections::BTreeSet;

use serde_json::json;
use talaria_testkit::audio::SOUND;
use talaria_testkit::vendors::telegram::{TOKEN, Vendor};
use talaria_testkit::{Home, Launch, within};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::rig::{HANGS, binary};

const MODEL: &str = "0.0.0.0:1";
const AUDIO: &str = "0.0.0.0:2";
const COLLECTOR: &str = "0.0.0.0:3";
const TELEGRAM: &str = "0.0.0.0:4";
const SLACK: &str = "0.0.0.0:5";
const DISCORD: &str = "0.0.0.0:6";

/// A proxy that knows whom it was asked for, and reaches nobody.
struct Proxy {
    address: String,
    asked: watch::Receiver<BTreeSet<String>>,
}

impl Proxy {
    #[expect(clippy::disallowed_methods, reason = "a proxy of a test ends with its runtime")]
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, asked) = watch::channel(BTreeSet::new());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = BufReader::new(stream);
                let mut first = String::new();
                let _ = stream.read_line(&mut first).await;
                let target = first.split(' ').nth(1).unwrap_or("nobody").to_owned();
                let target = target.strip_prefix("http://").unwrap_or(&target);
                let host = target.split('/').next().unwrap_or(target).to_owned();
                sender.send_modify(|asked| asked.extend([host]));
                let refusal =
                    "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(refusal.as_bytes()).await;
            }
        });
        Self { address, asked }
    }

    /// Everything that can name a proxy names this one.
    fn named(&self, launch: Launch) -> Launch {
        ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
            .iter()
            .fold(launch, |launch, name| launch.environment(name, &self.address))
    }

    fn asked(&self) -> BTreeSet<String> {
        self.asked.borrow().clone()
    }

    async fn until_asked_for(&self, hosts: &[&str]) {
        let mut asked = self.asked.clone();
        let all = |asked: &BTreeSet<String>| hosts.iter().all(|host| asked.contains(*host));
        within(HANGS, format!("{hosts:?} to be asked for"), asked.wait_for(all)).await.unwrap();
    }
}

fn hosts(hosts: &[&str]) -> BTreeSet<String> {
    hosts.iter().map(|&host| host.to_owned()).collect()
}

/// What asks a model, an audio server and a collector that are elsewhere, and Telegram on this machine.
async fn somebody_speaks(network: &str, proxy: &Proxy, wanted: &[&str]) {
    let (vendor, home) = (Vendor::open().await, Home::empty().unwrap());
    let config = format!(
        "model: far/test-model\n\
         providers: {{far: {{wire: openai, base_url: \"http://{MODEL}/v1\", api_key: x}}}}\n\
         accounts: {{telegram: {{base_url: \"{}\", allow: [7]}}}}\n\
         voice: {{transcribe: {{base_url: \"http://{AUDIO}/v1\", model: m}}}}\n\
         telemetry: {{otlp: \"http://{COLLECTOR}\"}}\n{network}",
        vendor.url,
    );
    home.write("config.yaml", &config).unwrap();
    let launch = proxy.named(Launch::new(binary())).environment("TELEGRAM_BOT_TOKEN", TOKEN);
    let mut process = launch.start(home.path()).unwrap();
    within(HANGS, "the ready line", process.ready()).await.unwrap();
    let mut update = vendor.said(7, "");
    update["message"]["voice"] = json!({
        "file_id": "voice-1", "file_unique_id": "v1", "duration": 2,
        "mime_type": "audio/ogg", "file_size": SOUND.len(),
    });
    update["message"].as_object_mut().unwrap().shift_remove("text");
    vendor.truth().files.insert("voice-1".into(), ("voice/1.oga".into(), SOUND.to_vec()));
    vendor.push(update);
    // Whatever becomes of it, the person is told.
    let told = vendor.until(|truth| truth.requests.iter().any(|it| it.method == "sendMessage"));
    within(HANGS, "the person to be told", told).await;
    proxy.until_asked_for(wanted).await;
    process.terminate().unwrap();
    within(HANGS, "the gateway to end", process.ended()).await.unwrap();
    assert_eq!(proxy.asked(), hosts(wanted), "{}", process.output());
}

#[tokio::test]
async fn no_server_is_asked_through_a_proxy_of_the_environment() {
    let proxy = Proxy::open().await;
    somebody_speaks("", &proxy, &[]).await;
}

#[tokio::test]
async fn whoever_wants_the_proxy_of_the_environment_has_it_but_not_on_this_machine() {
    let proxy = Proxy::open().await;
    somebody_speaks("network: {proxy: environment}\n", &proxy, &[MODEL, AUDIO, COLLECTOR]).await;
}

#[tokio::test]
async fn the_proxy_of_the_configuration_is_asked_and_that_of_the_environment_is_not() {
    let (proxy, other) = (Proxy::open().await, Proxy::open().await);
    let address = proxy.address.replace("http://", "http://me:hush-hush@");
    let network = format!("network: {{proxy: \"{address}\"}}\n");
    let (vendors, home) = (vendors(&network, ""), Home::empty().unwrap());
    home.write("config.yaml", &vendors).unwrap();
    let report = examined(&home, &other).await;
    assert_eq!(proxy.asked(), hosts(&[MODEL, TELEGRAM, SLACK, DISCORD]), "{report}");
    assert_eq!(other.asked(), hosts(&[]), "{report}");
    assert!(!report.contains("hush-hush") && !report.contains("set and not used"), "{report}");
    somebody_speaks(&network, &other, &[]).await;
    proxy.until_asked_for(&[AUDIO, COLLECTOR]).await;
}

/// A model and three vendors that are elsewhere.
fn vendors(network: &str, telegram: &str) -> String {
    format!(
        "model: far/test-model\n\
         providers: {{far: {{wire: openai, base_url: \"http://{MODEL}/v1\", api_key: x}}}}\n\
         accounts:\n\
         \x20 telegram: {{base_url: \"http://{TELEGRAM}\", token: \"{TOKEN}\", allow: [7]{telegram}}}\n\
         \x20 slack: {{base_url: \"http://{SLACK}/api/\", bot_token: xoxb-1, app_token: xapp-1, allow: [U1]}}\n\
         \x20 discord: {{base_url: \"http://{DISCORD}\", token: MTIz.abc.def, allow: ['198622483471925248']}}\n\
         {network}"
    )
}

/// What `talaria doctor` says, which asks everybody, while the environment names a proxy.
async fn examined(home: &Home, proxy: &Proxy) -> String {
    let launch = proxy.named(Launch::new(binary())).arguments(&["doctor"]);
    let mut process = launch.start(home.path()).unwrap();
    within(HANGS, "the doctor", process.ended()).await.unwrap();
    process.drained().await
}

#[tokio::test]
async fn a_proxy_that_is_not_used_is_named_with_the_setting_that_would_use_it() {
    let (proxy, home) = (Proxy::open().await, Home::empty().unwrap());
    home.write("config.yaml", &vendors("", "")).unwrap();
    let report = examined(&home, &proxy).await;
    assert_eq!(proxy.asked(), hosts(&[]), "{report}");
    for words in ["HTTPS_PROXY", "set and not used", "network.proxy: environment"] {
        assert!(report.contains(words), "{words}: {report}");
    }
    home.write("config.yaml", &vendors("network: {proxy: none}\n", "")).unwrap();
    let report = examined(&home, &proxy).await;
    assert_eq!(proxy.asked(), hosts(&[]), "{report}");
    assert!(!report.contains("set and not used"), "it is meant so: {report}");
}

#[tokio::test]
async fn an_account_may_take_another_way_than_the_others() {
    let (proxy, home) = (Proxy::open().await, Home::empty().unwrap());
    let config = vendors("network: {proxy: environment}\n", ", proxy: none");
    home.write("config.yaml", &config).unwrap();
    let report = examined(&home, &proxy).await;
    assert_eq!(proxy.asked(), hosts(&[MODEL, SLACK, DISCORD]), "{report}");
    let (proxy, home) = (Proxy::open().await, Home::empty().unwrap());
    home.write("config.yaml", &vendors("", ", proxy: environment")).unwrap();
    let report = examined(&home, &proxy).await;
    assert_eq!(proxy.asked(), hosts(&[TELEGRAM]), "{report}");
}
