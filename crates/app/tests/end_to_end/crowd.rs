//! Many accounts on one gateway, some of which misbehave, in real time.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use talaria_testkit::{
    FakeLlm, GatewayProcess, Home, Launch, Truth, Vendor, VendorSettings, within,
};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::rig::{HANGS, binary, run};

/// How many accounts behave.
const GOOD: usize = 10;

/// How often each of them is asked something.
const ROUNDS: usize = 60;

async fn vendors() -> Vec<Vendor> {
    join_all((0..GOOD).map(|_| Vendor::open(VendorSettings::default())))
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

/// A gateway between a model and these.
async fn gateway(llm: &FakeLlm, accounts: &[(String, SocketAddr)]) -> (Home, GatewayProcess) {
    let home = Home::empty().unwrap();
    let account = |(name, address): &(String, SocketAddr)| {
        format!(
            "  {name}:\n    platform: loopback\n    address: \"{address}\"\n    \
             allow_everyone: true\n"
        )
    };
    let accounts: String = accounts.iter().map(account).collect();
    let model = llm.base_url();
    home.write(
        "config.yaml",
        &format!(
            "model: fake/test-model\n\
             providers:\n  fake:\n    wire: openai\n    base_url: \"{model}\"\n    api_key: x\n\
             http: {{listen: \"127.0.0.1:0\"}}\naccounts:\n{accounts}"
        ),
    )
    .unwrap();
    let mut process = Launch::new(binary()).start(home.path()).unwrap();
    within(HANGS, "the ready line", process.ready()).await.unwrap();
    (home, process)
}

fn named(name: &str, addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<(String, SocketAddr)> {
    let numbered = addresses.into_iter().enumerate();
    numbered.map(|(number, address)| (format!("{name}-{number}"), address)).collect()
}

async fn listeners(count: usize) -> Vec<TcpListener> {
    join_all((0..count).map(|_| TcpListener::bind("127.0.0.1:0")))
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

fn addresses(listeners: &[TcpListener]) -> Vec<SocketAddr> {
    listeners.iter().map(|listener| listener.local_addr().unwrap()).collect()
}

/// Asks each of these something and says how long each answer took.
async fn ask(vendors: &[Vendor], round: usize) -> Vec<Duration> {
    let answers = vendors.iter().map(|vendor| vendor.ask(&format!("chat-{round}"), "hello"));
    let answers = join_all(answers);
    let answers = within(HANGS, format!("the answers of round {round}"), answers).await;
    answers.into_iter().map(|answer| answer.unwrap().after).collect()
}

fn p99(mut waits: Vec<Duration>) -> Duration {
    waits.sort();
    waits[waits.len() * 99 / 100]
}

/// Two gateways at the same time, so that whatever else the machine does slows both of them down.
#[tokio::test]
async fn ten_accounts_keep_their_pace_beside_ten_that_hang_flap_or_are_not_there() {
    let llm = FakeLlm::open().await.unwrap();
    let (alone, among) = (vendors().await, vendors().await);
    let (hang, flap) = (listeners(5).await, listeners(3).await);
    let gone = addresses(&listeners(2).await);
    let mut accounts = named("good", among.iter().map(Vendor::address));
    accounts.extend(named("hang", addresses(&hang)));
    accounts.extend(named("flap", addresses(&flap)));
    accounts.extend(named("gone", gone));
    assert_eq!(accounts.len(), 20);
    let mut trouble = JoinSet::new();
    for listener in hang {
        // Whoever connects is taken and never hears anything.
        trouble.spawn(async move {
            let mut taken = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                taken.push(stream);
            }
        });
    }
    for listener in flap {
        trouble.spawn(async move { while listener.accept().await.is_ok() {} });
    }
    let calm = gateway(&llm, &named("good", alone.iter().map(Vendor::address))).await;
    let troubled = gateway(&llm, &accounts).await;
    for vendor in alone.iter().chain(&among) {
        let connected = vendor.until(|truth| truth.connections() > 0);
        within(HANGS, "every good account to connect", connected).await;
    }
    // The first answers pay for what is made once.
    ask(&alone, 0).await;
    ask(&among, 0).await;
    let (mut calmly, mut beside) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let (first, second) = tokio::join!(ask(&alone, round), ask(&among, round));
        calmly.extend(first);
        beside.extend(second);
    }
    assert_eq!((calmly.len(), beside.len()), (GOOD * ROUNDS, GOOD * ROUNDS));
    let (calmly, beside) = (p99(calmly), p99(beside));
    assert!(
        beside <= 3 * calmly + Duration::from_millis(50),
        "{calmly:?} alone, {beside:?} beside others"
    );
    for vendor in alone.iter().chain(&among) {
        assert!(vendor.read(Truth::is_everything_answered));
        assert_eq!(vendor.read(Truth::connections), 1, "nobody was connected anew");
        assert!(vendor.check().is_empty(), "{:?}", vendor.check());
    }
    let (_, output) = run(troubled.0.path(), &["platforms"]).await;
    let is_connected = |line: &&str| line.starts_with("good-") && line.contains("connected");
    assert_eq!(output.lines().filter(is_connected).count(), GOOD, "{output}");
    let is_known =
        |line: &&str| ["hang-", "flap-", "gone-"].iter().any(|name| line.starts_with(name));
    assert_eq!(output.lines().filter(is_known).count(), 10, "{output}");
    drop(calm);
}
