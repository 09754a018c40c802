//! Servers on this machine.

use std::net::SocketAddr;
use std::time::Duration;

use talaria_providers::{Found, Http, Probe, discover};

use crate::clock::HandClock;
use crate::server::{Answer, Server};

const MODELS: &str = r#"{"object":"list","data":[{"id":"nomic-embed-text:latest","object":"model"},{"id":"llama3.2:3b"},{"id":"gemma3"}]}"#;

fn probe(address: SocketAddr) -> Probe {
    Probe { provider: "ollama", title: "Ollama", address }
}

async fn look(probes: &[Probe]) -> Vec<Found> {
    // Time stands still: a busy machine is not a silent server.
    discover(&Http::default(), &HandClock::default(), probes).await
}

async fn look_at(answer: Answer) -> Vec<Found> {
    let server = Server::start([answer]);
    look(&[probe(server.address)]).await
}

#[tokio::test]
async fn a_server_is_found_with_its_models_that_can_talk() {
    let mut server = Server::start([Answer::status(200, MODELS)]);
    let found = look(&[probe(server.address)]).await;
    assert_eq!(server.request().await.uri.path(), "/v1/models");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].models, ["llama3.2:3b", "gemma3"]);
    assert_eq!(found[0].base_url(), server.url());
}

#[tokio::test]
async fn what_is_no_model_server_is_not_found() {
    for answer in [
        Answer::status(200, "<html>My blog</html>"),
        Answer::status(200, r#"{"data":[]}"#),
        Answer::status(200, r#"{"data":[{"id":"all-minilm"}]}"#),
        Answer::status(200, r#"{"data":"#),
        Answer::status(404, MODELS),
        Answer::status(302, "").header("location", "/elsewhere"),
        Answer::status(200, &format!("{}{MODELS}", " ".repeat(300 * 1024))),
    ] {
        assert_eq!(look_at(answer).await, []);
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(look(&[probe(closed)]).await, []);
}

#[tokio::test]
async fn a_server_that_does_not_answer_does_not_hold_up_the_others() {
    let mut silent = Server::start([Answer::nothing().hangs()]);
    let mut slow = Server::start([Answer::status(200, "{").hangs()]);
    let quick = Server::start([Answer::status(200, MODELS)]);
    let clock = HandClock::default();
    let probes = [silent.address, slow.address, quick.address].map(probe);
    let http = Http::default();
    let time = async {
        silent.request().await;
        slow.request().await;
        while clock.waiting() > 2 {
            tokio::task::yield_now().await;
        }
        clock.pass(Duration::from_millis(300));
    };
    let (found, ()) = tokio::join!(discover(&http, &clock, &probes), time);
    let found: Vec<_> = found.iter().map(|found| found.address).collect();
    assert_eq!(found, [quick.address]);
}

#[tokio::test]
async fn servers_are_returned_in_the_order_in_which_they_were_asked_for() {
    let servers = [
        Server::start([Answer::status(200, MODELS)]),
        Server::start([Answer::status(200, MODELS)]),
    ];
    let probes = [probe(servers[1].address), probe(servers[0].address)];
    let found = look(&probes).await;
    assert_eq!(
        found.iter().map(|found| found.address).collect::<Vec<_>>(),
        probes.map(|it| it.address)
    );
}
