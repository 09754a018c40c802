//! What happens in a conversation, as one endless stream that comes back by itself when the
//! connection is lost.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use talaria_clock::Clock;
use talaria_platforms::terminal::wire::{Event, LONGEST_HISTORY, LONGEST_LINE};

use super::lines::Lines;
use super::socket::{Socket, SocketError};

/// Waits between attempts: doubling up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Something a terminal learns.
#[derive(Debug)]
pub(super) enum Told {
    /// It happened.
    Event(Event),
    /// The gateway cannot be reached. Told once; the next event means that it can again.
    Lost(String),
    /// The gateway will not let this terminal listen. Nothing follows.
    Refused(String),
}

/// Follows a conversation. The past comes first: `history` entries the first time, and enough to
/// find what was missed each time after.
pub(super) fn follow(
    socket: Socket,
    history: usize,
    clock: Arc<dyn Clock>,
) -> BoxStream<'static, Told> {
    let following = Following { socket, clock, history, state: State::Away { attempts: 0 } };
    stream::unfold(following, |mut following| async {
        let told = following.next().await?;
        Some((told, following))
    })
    .boxed()
}

struct Following {
    socket: Socket,
    clock: Arc<dyn Clock>,
    history: usize,
    state: State,
}

enum State {
    Away { attempts: u32 },
    Attached(BoxStream<'static, Result<Event, SocketError>>),
    Over,
}

impl Following {
    async fn next(&mut self) -> Option<Told> {
        loop {
            match &mut self.state {
                State::Over => return None,
                State::Attached(events) => match events.next().await {
                    Some(Ok(event)) => {
                        if matches!(event, Event::Hello { .. }) {
                            self.history = LONGEST_HISTORY;
                        }
                        return Some(Told::Event(event));
                    }
                    Some(Err(_)) | None => {
                        self.state = State::Away { attempts: 1 };
                        return Some(Told::Lost("the gateway has gone away".into()));
                    }
                },
                State::Away { attempts } => {
                    let tried = *attempts;
                    *attempts += 1;
                    if tried > 0 {
                        let wait = FIRST_WAIT.saturating_mul(1 << (tried - 1).min(16));
                        self.clock.sleep(wait.min(LONGEST_WAIT)).await;
                    }
                    match attach(&self.socket, self.history).await {
                        Ok(events) => self.state = State::Attached(events),
                        Err(SocketError::Refused(reason)) => {
                            self.state = State::Over;
                            return Some(Told::Refused(reason));
                        }
                        Err(error) if tried == 0 => return Some(Told::Lost(error.to_string())),
                        Err(SocketError::Later(_) | SocketError::Ending) => {}
                    }
                }
            }
        }
    }
}

async fn attach(
    socket: &Socket,
    history: usize,
) -> Result<BoxStream<'static, Result<Event, SocketError>>, SocketError> {
    let bytes = socket.stream(history).await?;
    let mut lines = Lines::up_to(LONGEST_LINE);
    let events = bytes
        .map_err(|_| SocketError::Later("the gateway has gone away".into()))
        .map_ok(move |bytes| {
            // An event that this version does not know is skipped.
            let events = lines.push(bytes.as_ref()).into_iter();
            let events = events.filter_map(|line| serde_json::from_slice(&line).ok());
            stream::iter(events.map(Ok).collect::<Vec<_>>())
        })
        .try_flatten();
    Ok(events.boxed())
}
