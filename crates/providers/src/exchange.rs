//! One request and the answer that streams back.
//!
//! Sends, keeps the deadlines, cuts the bytes into events and hands them to the decoder of an API.
//! Knows no API itself.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::{Either, select};
use futures::stream::{self, BoxStream};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, Url};
use talaria_agent::{Delta, Deltas, ProviderError};
use talaria_clock::{Clock, Sleep};
use talaria_model::Secret;

use crate::http::{Deadlines, Http, retry_after};
use crate::refusal::{Refusal, plain};
use crate::sse::{Event, Parser};

/// The most that is read of an error's body.
const LARGEST_REFUSAL: usize = 64 * 1024;

/// The most that is read of an answer that comes in one piece.
const LARGEST_WHOLE: usize = 8 * 1024 * 1024;

/// The most that a model may say and think in one answer.
const MOST_SAID: usize = 4 * 1024 * 1024;

/// How long to wait for the rest, usually the token counts, once the model has ended.
const TAIL: std::time::Duration = std::time::Duration::from_secs(5);

/// Makes deltas of what an API sends.
pub(crate) trait Decode: Send + 'static {
    /// Takes one event of a stream.
    fn event(&mut self, event: Event, out: &mut Out) -> Result<Progress, ProviderError>;

    /// Takes an answer that came in one piece although a stream was asked for.
    fn whole(&mut self, body: &[u8], out: &mut Out) -> Result<(), ProviderError>;

    /// The stream is over and no event said so: finishes if the model had ended, else it was cut.
    fn ended(&mut self, out: &mut Out) -> Result<(), ProviderError>;
}

/// Where a decoder puts its deltas.
pub(crate) type Out = VecDeque<Delta>;

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// The server is there; the model has said nothing yet.
    Waiting,
    /// The model speaks.
    Speaking,
    /// The model has ended; at most a few numbers are missing.
    Ending,
    /// Everything has been said.
    Done,
}

/// One request, ready to go.
pub(crate) struct Exchange {
    pub(crate) http: Http,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) deadlines: Deadlines,
    /// Never to be shown, even when the server repeats them.
    pub(crate) secrets: Vec<Secret>,
}

impl Exchange {
    /// The answer. Nothing is sent until it is asked for; dropping it hangs up.
    pub(crate) fn start(self, decoder: impl Decode) -> Deltas {
        let answer = Answer {
            exchange: self,
            decoder,
            state: State::Unsent,
            progress: Progress::Waiting,
            patience: Box::pin(std::future::pending()),
            said: 0,
            out: Out::new(),
            failed: None,
        };
        stream::unfold(answer, |mut answer| async move {
            answer.next().await.map(|delta| (delta, answer))
        })
        .boxed()
    }
}

struct Answer<D> {
    exchange: Exchange,
    decoder: D,
    state: State,
    progress: Progress,
    /// Ends when the server has been silent for too long.
    patience: Sleep,
    /// How much the model has said and thought.
    said: usize,
    out: Out,
    /// Comes after everything in `out`.
    failed: Option<ProviderError>,
}

enum State {
    Unsent,
    Reading { chunks: Chunks, shape: Shape },
    Over,
}

type Chunks = BoxStream<'static, Result<Bytes, reqwest::Error>>;

/// What the body turned out to be. Servers lie about it in their headers, so its first character
/// decides.
enum Shape {
    Unknown,
    Events(Parser),
    Whole(Vec<u8>),
}

impl<D: Decode> Answer<D> {
    async fn next(&mut self) -> Option<Result<Delta, ProviderError>> {
        loop {
            if let Some(delta) = self.out.pop_front() {
                return Some(Ok(delta));
            }
            if let Some(error) = self.failed.take() {
                self.state = State::Over;
                return Some(Err(self.without_secrets(error)));
            }
            let step = match self.state {
                State::Unsent => self.send().await,
                State::Reading { .. } => self.read().await,
                State::Over => return None,
            };
            self.failed = step.err();
        }
    }

    async fn send(&mut self) -> Result<(), ProviderError> {
        let exchange = &mut self.exchange;
        self.patience = exchange.clock.sleep(exchange.deadlines.first_token);
        let client = exchange
            .http
            .client(&exchange.url)
            .map_err(|error| ProviderError::Unreachable { detail: error.to_string() })?;
        let request = client
            .post(exchange.url.clone())
            .headers(exchange.headers.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(std::mem::take(&mut exchange.body))
            .send();
        let response = match select(Box::pin(request), &mut self.patience).await {
            Either::Left((response, _)) => response.map_err(unsent)?,
            Either::Right(_) => return Err(self.out_of_patience()),
        };
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let chunks = response.bytes_stream().boxed();
        self.state = State::Reading { chunks, shape: Shape::Unknown };
        Ok(())
    }

    async fn refused(&mut self, response: Response) -> ProviderError {
        let status = response.status().as_u16();
        let after = retry_after(response.headers(), self.exchange.clock.now());
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream().boxed();
        // A body that does not come does not change what the status says.
        while let Either::Left((Some(Ok(chunk)), _)) =
            select(chunks.next(), &mut self.patience).await
        {
            body.extend_from_slice(&chunk);
            if body.len() >= LARGEST_REFUSAL {
                body.truncate(LARGEST_REFUSAL);
                break;
            }
        }
        let mut refusal = Refusal::read(status, &body);
        refusal.after = after;
        refusal.error()
    }

    async fn read(&mut self) -> Result<(), ProviderError> {
        let State::Reading { chunks, .. } = &mut self.state else { return Ok(()) };
        match select(chunks.next(), &mut self.patience).await {
            Either::Left((Some(Ok(chunk)), _)) => {
                self.take(&chunk)?;
                self.patience = match self.progress {
                    Progress::Waiting => return Ok(()),
                    Progress::Speaking => self.exchange.clock.sleep(self.exchange.deadlines.idle),
                    Progress::Ending => self.exchange.clock.sleep(TAIL),
                    Progress::Done => {
                        self.state = State::Over;
                        return Ok(());
                    }
                };
                Ok(())
            }
            Either::Left((None, _)) => self.end(),
            // Whatever happens to the connection after the model has ended does not matter.
            _ if self.progress == Progress::Ending => self.end(),
            Either::Left((Some(Err(_)), _)) => Err(ProviderError::Cut),
            Either::Right(_) => Err(self.out_of_patience()),
        }
    }

    fn take(&mut self, chunk: &[u8]) -> Result<(), ProviderError> {
        let State::Reading { shape, .. } = &mut self.state else { return Ok(()) };
        if let Shape::Unknown = shape {
            match chunk.iter().find(|byte| !byte.is_ascii_whitespace()) {
                None => return Ok(()),
                Some(b'{' | b'[') => *shape = Shape::Whole(Vec::new()),
                Some(b'<') => return Err(garbled("a web page instead of an answer")),
                Some(_) => *shape = Shape::Events(Parser::default()),
            }
        }
        match shape {
            Shape::Unknown => Ok(()),
            Shape::Whole(body) => {
                if body.len() + chunk.len() > LARGEST_WHOLE {
                    return Err(garbled("an answer without end"));
                }
                body.extend_from_slice(chunk);
                self.progress = Progress::Speaking;
                Ok(())
            }
            Shape::Events(parser) => {
                let mut events = Vec::new();
                let fed = parser.feed(chunk, &mut events);
                for event in events {
                    let before = self.out.len();
                    let progress = self.decoder.event(event, &mut self.out)?;
                    self.said += self.out.range(before..).map(size).sum::<usize>();
                    if self.said > MOST_SAID {
                        return Err(garbled("an answer without end"));
                    }
                    self.progress = self.progress.max(progress);
                    if self.progress == Progress::Done {
                        return Ok(());
                    }
                }
                fed.map_err(|error| garbled(&error.to_string()))
            }
        }
    }

    /// The body is over, or as good as over.
    fn end(&mut self) -> Result<(), ProviderError> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Reading { shape: Shape::Whole(body), .. } => {
                self.decoder.whole(&body, &mut self.out)
            }
            _ => self.decoder.ended(&mut self.out),
        }
    }

    fn out_of_patience(&self) -> ProviderError {
        let Deadlines { first_token, idle } = self.exchange.deadlines;
        match self.progress {
            Progress::Waiting => ProviderError::NoFirstToken { waited: first_token },
            _ => ProviderError::Stalled { waited: idle },
        }
    }

    /// Some servers repeat the key that they refuse.
    fn without_secrets(&self, mut error: ProviderError) -> ProviderError {
        use ProviderError as E;
        let (E::Unavailable { detail }
        | E::Unreachable { detail }
        | E::Garbled { detail }
        | E::Unauthorized { detail }
        | E::NoCredit { detail }
        | E::Rejected { detail }) = &mut error
        else {
            return error;
        };
        for secret in self.exchange.secrets.iter().map(Secret::expose) {
            if !secret.is_empty() && detail.contains(secret) {
                *detail = detail.replace(secret, "…");
            }
        }
        error
    }
}

fn size(delta: &Delta) -> usize {
    match delta {
        Delta::Text(text) | Delta::Reasoning(text) => text.len(),
        Delta::Restarted | Delta::Finished { .. } => 0,
    }
}

fn garbled(detail: &str) -> ProviderError {
    ProviderError::Garbled { detail: detail.to_owned() }
}

/// Why no response came at all.
fn unsent(error: reqwest::Error) -> ProviderError {
    let error = error.without_url();
    // The innermost cause is the one a person can act on: "connection refused", "no such host".
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let detail = plain(&cause.to_string());
    if error.is_connect() {
        ProviderError::Unreachable { detail }
    } else {
        ProviderError::Unavailable { detail }
    }
}
