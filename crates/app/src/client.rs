//! Talks to the running gateway through its local door.

use std::path::Path;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt};
use reqwest::{ClientBuilder, Method, StatusCode};
use serde::de::DeserializeOwned;
use talaria_admin::api::Problem;
use talaria_machine::door;
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::io::StreamReader;

use crate::exit::{Exit, Halt};
use crate::home::Home;

/// How long an answer may take that comes line by line.
const LONGEST_READING: Duration = Duration::from_secs(24 * 60 * 60);

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest line of such an answer.
const LONGEST_LINE: usize = 64 * 1024 * 1024;

/// A gateway that answers.
pub(crate) struct Client {
    http: reqwest::Client,
    patience: Duration,
}

impl Client {
    /// The gateway of this home, if one is running.
    pub(crate) async fn find(home: &Home) -> Result<Option<Self>, Halt> {
        let socket = home.socket();
        if !door::answers(&socket).await {
            return Ok(None);
        }
        let http = by_door(reqwest::Client::builder(), &socket)
            .no_proxy()
            .build()
            .map_err(Halt::failed)?;
        Ok(Some(Self { http, patience: PATIENCE }))
    }

    /// The same, for something that takes longer.
    pub(crate) fn patient(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The gateway of this home, or the advice to start one.
    pub(crate) async fn need(home: &Home) -> Result<Self, Halt> {
        let found = Self::find(home).await?;
        found.ok_or_else(|| nobody(home).hint("start one with `talaria`"))
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<T, Halt> {
        self.ask(Method::GET, path, query).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<T, Halt> {
        self.ask(Method::POST, path, query).await
    }

    /// What comes line by line, however long it takes.
    pub(crate) async fn lines<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<impl Stream<Item = Result<T, Halt>>, Halt> {
        let request = self.http.get(url(path)).query(query).timeout(LONGEST_READING);
        let answer = request.send().await.map_err(unanswered)?;
        if answer.status() != StatusCode::OK {
            return Err(refused(answer).await);
        }
        let bytes = answer.bytes_stream().map_err(std::io::Error::other);
        let lines = LinesCodec::new_with_max_length(LONGEST_LINE);
        let lines = FramedRead::new(StreamReader::new(bytes), lines);
        Ok(lines.map(|line| {
            let line = line.map_err(|error| {
                Halt::failed(format_args!("the gateway does not answer: {error}"))
            })?;
            serde_json::from_str(&line).map_err(Halt::failed)
        }))
    }

    /// Asks for something that has no answer.
    pub(crate) async fn tell(&self, path: &str) -> Result<(), Halt> {
        let request = self.http.request(Method::POST, url(path)).timeout(self.patience);
        let answer = request.send().await.map_err(unanswered)?;
        if answer.status().is_success() { Ok(()) } else { Err(refused(answer).await) }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<T, Halt> {
        let request = self.http.request(method, url(path)).query(query).timeout(self.patience);
        let answer = request.send().await.map_err(unanswered)?;
        if answer.status() != StatusCode::OK {
            return Err(refused(answer).await);
        }
        answer.json().await.map_err(unanswered)
    }
}

/// Lets every request go through the door of this path.
pub(crate) fn by_door(client: ClientBuilder, path: &Path) -> ClientBuilder {
    #[cfg(unix)]
    let client = client.unix_socket(door::address(path));
    #[cfg(windows)]
    let client = client.windows_named_pipe(door::address(path));
    client
}

/// Says that there is no gateway.
pub(crate) fn nobody(home: &Home) -> Halt {
    Halt::failed(format_args!("no gateway is running on {}", home.path().display()))
}

/// The host is not used by a local door, but HTTP wants one.
fn url(path: &str) -> String {
    format!("http://talaria{path}")
}

fn unanswered(error: reqwest::Error) -> Halt {
    Halt::failed(format_args!("the gateway does not answer: {error}"))
}

async fn refused(answer: reqwest::Response) -> Halt {
    let status = answer.status();
    match answer.json::<Problem>().await {
        // What the gateway finds wrong with what it was given, the person can correct.
        Ok(Problem { problem }) if status == StatusCode::UNPROCESSABLE_ENTITY => {
            Halt::new(Exit::Misused, problem)
        }
        Ok(Problem { problem }) => Halt::failed(problem),
        Err(_) => Halt::failed(format_args!("the gateway answered {status}")),
    }
}
