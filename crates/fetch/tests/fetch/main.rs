//! Fetching over real sockets, with names whose addresses a test decides.

mod servers;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use reqwest::Url;
use servers::Server;
use talaria_clock::SystemClock;
use talaria_fetch::{
    Ask, FetchError, Fetched, Fetcher, Hosts, Origin, PrivateHost, Resolve, Rules, SystemResolver,
};
use talaria_model::{Proxy, Secret};

/// Gives out one list of addresses after the other; the last one for good.
struct Flipping {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Flipping {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let read =
            |list: &&[&str]| list.iter().map(|text| text.parse().expect("an address")).collect();
        Arc::new(Self { answers: answers.iter().map(read).collect(), asked: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Resolve for Flipping {
    async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(self.answers[turn.min(self.answers.len() - 1)].clone())
    }
}

fn fetcher(rules: Rules, resolver: Arc<Flipping>) -> Fetcher {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Fetcher::resolving(rules, Arc::new(SystemClock), resolver).expect("right rules")
}

fn private(hosts: &[String]) -> Rules {
    let allow_private =
        hosts.iter().map(|host| PrivateHost::parse(host).expect("a host")).collect();
    Rules { hosts: Hosts::Any, allow_private }
}

fn ask(url: &str) -> Ask {
    let url = Url::parse(url).expect("a URL");
    Ask { url, bearer: None, most: 1 << 20, limit: Duration::from_secs(20) }
}

async fn body(fetched: Fetched) -> io::Result<Vec<u8>> {
    let pieces: Vec<_> = fetched.bytes.collect().await;
    Ok(pieces.into_iter().collect::<io::Result<Vec<_>>>()?.concat())
}

fn forbidden<T>(outcome: Result<T, FetchError>) -> &'static str {
    match outcome.map(drop) {
        Err(FetchError::Forbidden { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[tokio::test]
async fn a_name_is_resolved_once_and_that_address_is_dialled() {
    let first = Server::on("127.0.0.1:0", |_| OK.into()).await;
    // On the same port, where the second answer would lead.
    let second = Server::on(&format!("127.0.0.2:{}", first.port), |_| OK.into()).await;
    let resolver = Flipping::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let host = format!("flip.test:{}", first.port);
    let fetcher = fetcher(private(std::slice::from_ref(&host)), resolver.clone());
    let fetched = fetcher.get(ask(&format!("http://{host}/"))).await.unwrap();
    assert_eq!(body(fetched).await.unwrap(), b"hello");
    assert_eq!(resolver.asked.load(Ordering::SeqCst), 1);
    assert_eq!((first.heard().len(), second.heard().len()), (1, 0));
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_asked() {
    let server = Server::on("127.0.0.1:0", |_| OK.into()).await;
    for answers in [
        &["127.0.0.1"][..],
        &["93.184.216.34", "127.0.0.1"],
        &["::ffff:127.0.0.1"],
        &["10.0.0.1"],
        &["::1"],
        &["fd00::1"],
    ] {
        let fetcher = fetcher(Rules::default(), Flipping::new(&[answers]));
        let url = format!("http://rebound.test:{}/", server.port);
        let reason = forbidden(fetcher.get(ask(&url)).await);
        assert_eq!(reason, "the host is in a private network", "{answers:?}");
    }
    // A name that the operator permits to be private still is no way to a cloud's keys.
    let url = format!("http://mine.test:{}/", server.port);
    let fetcher = fetcher(private(&["mine.test".into()]), Flipping::new(&[&["169.254.169.254"]]));
    let reason = forbidden(fetcher.get(ask(&url)).await);
    assert_eq!(reason, "the host is at an address that is never asked");
    assert_eq!(server.heard().len(), 0);
}

#[tokio::test]
async fn a_name_with_too_many_addresses_is_not_asked() {
    let many = vec!["8.8.8.8"; 65];
    let fetcher = fetcher(Rules::default(), Flipping::new(&[&many]));
    let reason = forbidden(fetcher.get(ask("http://many.test/")).await);
    assert_eq!(reason, "the host has too many addresses");
}

#[tokio::test]
async fn a_name_may_have_many_addresses() {
    let server = Server::on("127.0.0.1:0", |_| OK.into()).await;
    let fetcher = fetcher(private(&["many.test".into()]), Flipping::new(&[&vec!["127.0.0.1"; 64]]));
    let url = format!("http://many.test:{}/", server.port);
    assert!(fetcher.get(ask(&url)).await.is_ok());
}

#[tokio::test]
async fn the_machines_own_resolver_knows_the_machine() {
    let addresses = SystemResolver.addresses("localhost").await.unwrap();
    assert!(!addresses.is_empty() && addresses.iter().all(IpAddr::is_loopback), "{addresses:?}");
}

#[tokio::test]
async fn each_redirect_is_judged_like_the_first_address() {
    for (location, expect) in [
        (
            "http://169.254.169.254/latest/meta-data/",
            "the host is at an address that is never asked",
        ),
        ("http://10.0.0.1/", "the host is in a private network"),
        ("http://2130706433/", "the host is in a private network"),
        ("//[::1]/", "the host is in a private network"),
        ("file:///etc/passwd", "the address is not http or https"),
        ("ftp://example.org/", "the address is not http or https"),
        ("http://me:word@example.org/", "the address contains credentials"),
        ("http://", "a redirect leads nowhere"),
    ] {
        for status in [301, 302, 303, 307, 308] {
            let answer =
                format!("HTTP/1.1 {status} x\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
            let server = Server::on("127.0.0.1:0", move |_| answer.clone().into()).await;
            let host = format!("127.0.0.1:{}", server.port);
            let fetcher = fetcher(private(std::slice::from_ref(&host)), Flipping::new(&[&[]]));
            let reason = forbidden(fetcher.get(ask(&format!("http://{host}/"))).await);
            assert_eq!(reason, expect, "{status} {location}");
        }
    }
}

#[tokio::test]
async fn a_redirect_to_a_host_that_is_not_listed_is_not_followed() {
    let elsewhere = Server::on("127.0.0.1:0", |_| OK.into()).await;
    let target = format!("http://127.0.0.1:{}/", elsewhere.port);
    let server = Server::on("127.0.0.1:0", move |_| Server::redirect(&target)).await;
    let origin = format!("http://127.0.0.1:{}", server.port);
    let hosts = Hosts::Only(vec![Origin::parse(&origin).unwrap()]);
    let rules = Rules { hosts, ..private(&["127.0.0.1".into()]) };
    let reason = forbidden(fetcher(rules, Flipping::new(&[&[]])).get(ask(&origin)).await);
    assert_eq!(reason, "the host is not one of those it may come from");
    assert_eq!(elsewhere.heard().len(), 0);
}

#[tokio::test]
async fn five_redirects_are_followed_and_six_are_not() {
    for (many, expect) in [(5, None), (6, Some("there are too many redirects"))] {
        let server = Server::on("127.0.0.1:0", move |request| {
            let path = request.split(' ').nth(1).unwrap();
            let at: usize = path.trim_start_matches('/').parse().unwrap();
            if at == many { OK.into() } else { Server::redirect(&format!("/{}", at + 1)) }
        })
        .await;
        let host = format!("127.0.0.1:{}", server.port);
        let fetcher = fetcher(private(std::slice::from_ref(&host)), Flipping::new(&[&[]]));
        let outcome = fetcher.get(ask(&format!("http://{host}/0"))).await;
        match expect {
            None => assert_eq!(body(outcome.unwrap()).await.unwrap(), b"hello"),
            Some(expect) => assert_eq!(forbidden(outcome), expect),
        }
    }
}

#[tokio::test]
async fn credentials_are_shown_to_the_first_server_and_to_no_other() {
    let last = Server::on("127.0.0.1:0", |_| OK.into()).await;
    let back = format!("http://127.0.0.1:{}/", last.port);
    let away = Server::on("127.0.0.1:0", move |_| Server::redirect(&back)).await;
    let next = format!("http://127.0.0.1:{}/", away.port);
    let first = Server::on("127.0.0.1:0", move |request| {
        if request.starts_with("GET /same") {
            Server::redirect(&next)
        } else {
            Server::redirect("/same")
        }
    })
    .await;
    let fetcher = fetcher(private(&["127.0.0.1".into()]), Flipping::new(&[&[]]));
    let bearer = Some(Secret::new("canary"));
    let url = format!("http://127.0.0.1:{}/first", first.port);
    fetcher.get(Ask { bearer, ..ask(&url) }).await.unwrap();
    let shown = |server: &Server| {
        let is_shown = |request: &String| request.to_lowercase().contains("bearer canary");
        server.heard().iter().map(is_shown).collect::<Vec<_>>()
    };
    assert_eq!(shown(&first), [true, true], "the same server sees them again");
    assert_eq!(shown(&away), [false]);
    assert_eq!(shown(&last), [false]);
    assert!(!away.heard()[0].to_lowercase().contains("referer"));
}

#[tokio::test]
async fn what_is_larger_than_its_bound_is_not_read() {
    let declared = "HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n8\r\n12345678\r\n0\r\n\r\n";
    let server = Server::on("127.0.0.1:0", move |request| {
        if request.starts_with("GET /declared") { declared.into() } else { chunked.into() }
    })
    .await;
    let fetcher = fetcher(private(&["127.0.0.1".into()]), Flipping::new(&[&[]]));
    let url = |path: &str| format!("http://127.0.0.1:{}/{path}", server.port);
    let outcome = fetcher.get(ask(&url("declared"))).await.map(drop);
    assert_eq!(outcome, Err(FetchError::TooLarge { limit: 1 << 20 }));
    let fetched = fetcher.get(Ask { most: 15, ..ask(&url("chunked")) }).await.unwrap();
    assert_eq!(body(fetched).await.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    let fetched = fetcher.get(Ask { most: 16, ..ask(&url("chunked")) }).await.unwrap();
    assert_eq!(body(fetched).await.unwrap().len(), 16);
    let exactly = Server::on("127.0.0.1:0", |_| OK.into()).await;
    let url = format!("http://127.0.0.1:{}/", exactly.port);
    let fetched = fetcher.get(Ask { most: 5, ..ask(&url) }).await.unwrap();
    assert_eq!(body(fetched).await.unwrap(), b"hello");
}

#[tokio::test]
async fn a_body_that_ends_early_is_an_error_and_not_a_file() {
    let server =
        Server::on("127.0.0.1:0", |_| "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort".into())
            .await;
    let fetcher = fetcher(private(&["127.0.0.1".into()]), Flipping::new(&[&[]]));
    let fetched = fetcher.get(ask(&format!("http://127.0.0.1:{}/", server.port))).await.unwrap();
    assert!(body(fetched).await.is_err());
}

#[tokio::test]
async fn what_is_compressed_was_not_asked_for() {
    let server = Server::on("127.0.0.1:0", |_| {
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc".into()
    })
    .await;
    let fetcher = fetcher(private(&["127.0.0.1".into()]), Flipping::new(&[&[]]));
    let outcome = fetcher.get(ask(&format!("http://127.0.0.1:{}/", server.port))).await;
    assert_eq!(forbidden(outcome), "it is compressed, which was not asked for");
    assert!(!server.heard()[0].to_lowercase().contains("accept-encoding"));
    for plain in ["identity", ""] {
        let answer =
            format!("HTTP/1.1 200 OK\r\nContent-Encoding: {plain}\r\nContent-Length: 3\r\n\r\nabc");
        let server = Server::on("127.0.0.1:0", move |_| answer.clone().into()).await;
        let url = format!("http://127.0.0.1:{}/", server.port);
        let fetched = fetcher.get(ask(&url)).await.unwrap();
        assert_eq!(body(fetched).await.unwrap(), b"abc", "{plain:?}");
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let server = Server::on("127.0.0.1:0", |_| servers::Answer::Silence).await;
    let fetcher = fetcher(private(&["127.0.0.1".into()]), Flipping::new(&[&[]]));
    let url = format!("http://127.0.0.1:{}/", server.port);
    let outcome = fetcher.get(Ask { limit: Duration::from_secs(1), ..ask(&url) }).await;
    let Err(FetchError::Unreachable { reason }) = outcome.map(drop) else { panic!() };
    assert_eq!(reason, "it took longer than 1 s");
}

#[tokio::test]
async fn no_error_names_the_address() {
    let fetcher = fetcher(private(&["127.0.0.1".into()]), Flipping::new(&[&[]]));
    // Nothing listens on this port.
    let outcome = fetcher.get(ask("http://127.0.0.1:1/canary-token")).await.map(drop);
    let Err(error @ FetchError::Unreachable { .. }) = outcome else { panic!("{outcome:?}") };
    assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
}

/// Rules that name one server.
fn only(server: &str) -> Rules {
    let server = Origin::parse(server).expect("a server");
    Rules { hosts: Hosts::Only(vec![server]), allow_private: Vec::new() }
}

#[tokio::test]
async fn a_proxy_is_asked_for_what_the_rules_name_and_for_nothing_else() {
    let proxy = Server::on("127.0.0.1:0", |_| OK.into()).await;
    // The name of a proxy may lead inside; it is the operator's.
    for host in ["127.0.0.1", "proxy.test"] {
        let way: Proxy = format!("http://{host}:{}", proxy.port).parse().unwrap();
        let before = proxy.heard().len();
        let resolver = Flipping::new(&[&["127.0.0.1"]]);
        let fetcher = fetcher(only("http://files.test"), resolver).by(&way).unwrap();
        let fetched = fetcher.get(ask("http://files.test/a")).await.unwrap();
        assert_eq!(body(fetched).await.unwrap(), b"hello");
        for elsewhere in ["http://other.test/a", "http://169.254.169.254/", "https://files.test/a"]
        {
            forbidden(fetcher.get(ask(elsewhere)).await);
        }
        let heard = proxy.heard();
        assert_eq!(heard.len(), before + 1);
        assert!(heard[before].starts_with("GET http://files.test/a "), "{heard:?}");
    }
}

#[tokio::test]
async fn where_anybody_may_be_asked_no_proxy_is() {
    let proxy = Server::on("127.0.0.1:0", |_| OK.into()).await;
    let way: Proxy = format!("http://127.0.0.1:{}", proxy.port).parse().unwrap();
    let fetcher = fetcher(Rules::default(), Flipping::new(&[&["127.0.0.1"]])).by(&way).unwrap();
    forbidden(fetcher.get(ask("http://inside.test/")).await);
    assert!(proxy.heard().is_empty());
}

#[tokio::test]
async fn a_server_that_the_rules_name_is_judged_where_no_proxy_is_between() {
    let server = Server::on("127.0.0.1:0", |_| OK.into()).await;
    let origin = format!("http://files.test:{}", server.port);
    // The environment of this test names no proxy for it.
    let fetcher = fetcher(only(&origin), Flipping::new(&[&["127.0.0.1"]]));
    let fetcher = fetcher.by(&Proxy::Environment).unwrap();
    let outcome = fetcher.get(ask(&format!("{origin}/a"))).await;
    assert!(outcome.is_err());
    assert!(server.heard().is_empty());
}
