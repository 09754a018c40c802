//! The gateway, as a terminal reaches it: HTTP over its local socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use talaria_clock::Clock;
use talaria_model::FileRef;
use talaria_platforms::terminal::wire::{Heard, LARGEST_FILE, Listed, Press, Refused, Say, Stop};
use tokio::io::AsyncWriteExt;

use crate::client::by_door;

/// Longer than the gateway takes to say that it could not store something.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Waits between attempts: doubling up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A list or a refusal is never longer than this.
const LONGEST_ANSWER: usize = 1024 * 1024;

/// One conversation on the gateway.
#[derive(Clone)]
pub(super) struct Socket {
    client: Client,
    conversation: String,
}

/// What a person wants to reach the gateway, once.
#[derive(Debug, Clone)]
pub(super) enum Word {
    /// A message.
    Say(Say),
    /// One of the offered answers.
    Press(Press),
    /// The running turn is to stop.
    Stop(Stop),
}

/// What to do while the gateway is ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Wait for the next run.
    Wait,
    /// Nobody is there to wait.
    GiveUp,
}

/// Why the gateway did not do it.
#[derive(Debug, thiserror::Error)]
pub(super) enum SocketError {
    /// It cannot be reached, or could not store it: the same again, later.
    #[error("{0}")]
    Later(String),
    /// It takes nothing in any more. The next run of it would.
    #[error("the gateway is ending")]
    Ending,
    /// It will not do it.
    #[error("{0}")]
    Refused(String),
}

impl Socket {
    /// Nothing is connected yet.
    pub(super) fn of(path: &Path, conversation: String) -> anyhow::Result<Self> {
        let client = by_door(Client::builder(), path)
            // Nothing here is encrypted, so a machine without certificates will do.
            .tls_certs_only([])
            .no_proxy()
            .build()
            .context("no way to the gateway's socket")?;
        Ok(Self { client, conversation })
    }

    /// Tells the gateway. Told again with the same id, it still counts once.
    async fn tell(&self, word: &Word) -> Result<Heard, SocketError> {
        let to = |what| self.client.post(url(&["conversations", &self.conversation, what]));
        let request = match word {
            Word::Say(say) => to("messages").json(say),
            Word::Press(press) => to("press").json(press),
            Word::Stop(stop) => to("stop").json(stop),
        };
        answer(request.timeout(ANSWER_WITHIN)).await
    }

    /// Tells the gateway, again and again until it has it on disk. Fails only when it will never
    /// take it.
    pub(super) async fn insist(
        &self,
        word: &Word,
        clock: &dyn Clock,
        during: Ending,
    ) -> Result<Heard, String> {
        let mut wait = FIRST_WAIT;
        loop {
            match self.tell(word).await {
                Ok(heard) => return Ok(heard),
                Err(SocketError::Refused(reason)) => return Err(reason),
                Err(SocketError::Ending) if during == Ending::GiveUp => {
                    return Err(SocketError::Ending.to_string());
                }
                Err(SocketError::Later(_) | SocketError::Ending) => clock.sleep(wait).await,
            }
            wait = LONGEST_WAIT.min(wait * 2);
        }
    }

    /// The conversations, the most recently used first.
    pub(super) async fn conversations(&self) -> Result<Vec<Listed>, SocketError> {
        let request = self.client.get(url(&["conversations"])).timeout(ANSWER_WITHIN);
        answer(request).await
    }

    /// What was said last, and then what happens, as bytes.
    pub(super) async fn stream(
        &self,
        history: usize,
    ) -> Result<BoxStream<'static, reqwest::Result<impl AsRef<[u8]> + use<>>>, SocketError> {
        let mut url = url(&["conversations", &self.conversation, "stream"]);
        url.query_pairs_mut().append_pair("history", &history.to_string());
        let response = accepted(self.client.get(url)).await?;
        Ok(response.bytes_stream().boxed())
    }

    /// Hands a file over.
    pub(super) async fn upload(&self, path: &Path) -> anyhow::Result<FileRef> {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.context("the file has no usable name")?;
        let file = tokio::fs::File::open(path).await?;
        let found = file.metadata().await?;
        anyhow::ensure!(found.is_file(), "it is not a file");
        anyhow::ensure!(found.len() <= LARGEST_FILE, "it is larger than {}", size(LARGEST_FILE));
        let mut url = url(&["files"]);
        url.query_pairs_mut().append_pair("name", name);
        Ok(answer(self.client.post(url).body(file)).await?)
    }

    /// Fetches a file into a new file, which it names. Nothing is overwritten.
    pub(super) async fn download(
        &self,
        file: &FileRef,
        to: Option<&Path>,
    ) -> anyhow::Result<PathBuf> {
        let own = Path::new(&file.name).file_name().unwrap_or("file".as_ref());
        let path = match to {
            Some(folder) if folder.is_dir() => folder.join(own),
            Some(path) => path.to_owned(),
            None => own.into(),
        };
        let response = accepted(self.client.get(url(&["files", file.id.as_str()]))).await?;
        let mut bytes = response.bytes_stream();
        let made = tokio::fs::OpenOptions::new().write(true).create_new(true).open(&path).await;
        let mut saved = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                bail!("{} is there already", path.display())
            }
            made => made?,
        };
        while let Some(chunk) = bytes.try_next().await? {
            saved.write_all(&chunk).await?;
        }
        saved.flush().await?;
        Ok(path)
    }
}

/// The terminal's own part of the local socket. The host is not looked up: there is only one.
fn url(path: &[&str]) -> Url {
    let mut url = Url::parse("http://localhost/terminal").expect("a literal address");
    url.path_segments_mut().expect("http has paths").extend(path);
    url
}

async fn accepted(request: RequestBuilder) -> Result<Response, SocketError> {
    let response = request.send().await.map_err(away)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    if status == StatusCode::GONE {
        return Err(SocketError::Ending);
    }
    let body = bounded(response).await.ok();
    let reason = body.and_then(|body| serde_json::from_slice::<Refused>(&body).ok());
    Err(match (status, reason) {
        (StatusCode::SERVICE_UNAVAILABLE, Some(told)) => SocketError::Later(told.error),
        (_, Some(told)) => SocketError::Refused(told.error),
        // Whoever answered is not the terminal platform; that one may still be on its way.
        (_, None) => SocketError::Later("the gateway does not listen to terminals".into()),
    })
}

async fn answer<T: DeserializeOwned>(request: RequestBuilder) -> Result<T, SocketError> {
    let body = bounded(accepted(request).await?).await.map_err(away)?;
    serde_json::from_slice(&body).map_err(|_| {
        SocketError::Refused("the gateway answered something that this version cannot read".into())
    })
}

/// As much of a body as can be an answer.
async fn bounded(response: Response) -> reqwest::Result<Vec<u8>> {
    let mut bytes = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(chunk) = bytes.try_next().await? {
        let room = LONGEST_ANSWER - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            break;
        }
    }
    Ok(body)
}

fn away(_: reqwest::Error) -> SocketError {
    SocketError::Later("the gateway cannot be reached".into())
}

/// A number of bytes as people read it.
pub(super) fn size(bytes: u64) -> String {
    const KB: u64 = 1024;
    const MB: u64 = 1024 * KB;
    match bytes {
        0..KB => format!("{bytes} B"),
        KB..MB => format!("{} KB", bytes.div_ceil(KB)),
        _ => format!("{:.1} MB", bytes as f64 / MB as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KB"),
            (12_345, "13 KB"),
            (26_214_400, "25.0 MB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn a_name_cannot_leave_its_place_in_the_address() {
        let url = url(&["files", "../../v1/stop?now"]);
        assert_eq!(url.path(), "/terminal/files/..%2F..%2Fv1%2Fstop%3Fnow");
    }
}
