//! Many accounts on one gateway, some of which misbehave, in real time.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use talaria_testkit::{
    FakeLlm, GatewayProcess, Home, Launch, Truth, Vendor, VendorSettings, within,
};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::rig::{HANGS, binary, run};

/// How many accounts behave.
const GOOD: usize = 10;

/// How often each of them is asked something in a stretch.
const ROUNDS: usize = 30;

/// Stretches of which the best one counts: what else the machine does falls into some of them only.
const STRETCHES: usize = 3;

/// How many accounts hang.
const HANGING: usize = 5;

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
    let process = Launch::new(binary()).start(home.path()).unwrap();
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

/// An address where whoever connects waits for ever: the queue is full and nobody is taken from it.
struct Silent {
    address: SocketAddr,
    _listener: TcpListener,
    _queue: Vec<TcpStream>,
    _waiting: FuturesUnordered<Connecting>,
}

type Connecting = Pin<Box<dyn Future<Output = std::io::Result<TcpStream>> + Send>>;

async fn silent() -> Silent {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting: FuturesUnordered<Connecting> =
        (0..4).map(|_| Box::pin(TcpStream::connect(address)) as Connecting).collect();
    let mut queue = Vec::new();
    for _ in 0..2 {
        let place = within(HANGS, "a place in the queue", waiting.next()).await;
        queue.push(place.unwrap().unwrap());
    }
    Silent { address, _listener: listener, _queue: queue, _waiting: waiting }
}

/// Asks both kinds of accounts for a while, and says how long the slowest of a hundred takes in each.
async fn stretch(alone: &[Vendor], among: &[Vendor], first: usize) -> (Duration, Duration) {
    let (mut calmly, mut beside) = (Vec::new(), Vec::new());
    for round in first..first + ROUNDS {
        let (here, there) = tokio::join!(ask(alone, round), ask(among, round));
        calmly.extend(here);
        beside.extend(there);
    }
    assert_eq!((calmly.len(), beside.len()), (GOOD * ROUNDS, GOOD * ROUNDS));
    (p99(calmly), p99(beside))
}

/// Two gateways at the same time, so that whatever else the machine does slows both of them down. An
/// account that panics cannot be planted in the real binary: in `supervision` of the gateway,
/// `ten_accounts_keep_their_pace_while_five_hang_three_flap_and_two_panic` has two of them, in virtual time.
#[tokio::test]
async fn ten_accounts_keep_their_pace_beside_ten_that_hang_flap_or_are_not_there() {
    let llm = FakeLlm::open().await.unwrap();
    let (alone, among) = (vendors().await, vendors().await);
    let hang = join_all((0..HANGING).map(|_| silent())).await;
    let flap = listeners(3).await;
    let gone = addresses(&listeners(2).await);
    let mut accounts = named("good", among.iter().map(Vendor::address));
    accounts.extend(named("hang", hang.iter().map(|silent| silent.address)));
    accounts.extend(named("flap", addresses(&flap)));
    accounts.extend(named("gone", gone));
    assert_eq!(accounts.len(), 20);
    let mut trouble = JoinSet::new();
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
    let mut stretches = Vec::new();
    for number in 0..STRETCHES {
        stretches.push(stretch(&alone, &among, 1 + number * ROUNDS).await);
    }
    let keeps = |(calmly, beside): &(Duration, Duration)| {
        *beside <= 2 * *calmly + Duration::from_millis(50)
    };
    assert!(stretches.iter().any(keeps), "alone and beside others: {stretches:?}");
    for vendor in alone.iter().chain(&among) {
        assert!(vendor.read(Truth::is_everything_answered));
        assert_eq!(vendor.read(Truth::connections), 1, "nobody was connected anew");
        assert!(vendor.check().is_empty(), "{:?}", vendor.check());
    }
    let (_, output) = run(troubled.0.path(), &["platforms"]).await;
    let is_connected = |line: &&str| line.starts_with("good-") && line.contains("connected");
    assert_eq!(output.lines().filter(is_connected).count(), GOOD, "{output}");
    let hangs = |line: &&str| line.starts_with("hang-") && !line.contains("connected");
    assert_eq!(output.lines().filter(hangs).count(), HANGING, "{output}");
    let is_known =
        |line: &&str| ["hang-", "flap-", "gone-"].iter().any(|name| line.starts_with(name));
    assert_eq!(output.lines().filter(is_known).count(), 10, "{output}");
    drop(calm);
}
