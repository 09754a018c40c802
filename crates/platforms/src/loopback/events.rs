//! What the vendor tells: lines in, batches out.

use std::sync::Arc;

use futures::{StreamExt, stream};
use serde::Deserialize;
use talaria_clock::Clock;
use talaria_model::{
    AccountId, Address, Bystander, Chat, ChatId, ChoiceId, EventId, IdError, Inbound, InboundKind,
    Message, MessageId, Overheard, Quote, Sender, SenderId, Source, ThreadId,
};
use talaria_platform::{Ack, Arrival, Arrivals, Batch, ConnectError, Cursor, LinkError, Ports};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_util::codec::{FramedRead, LinesCodec};

use super::wire::{Event, FromGateway, Hello, LONGEST_LINE, Place, Role};

/// Lines that are already there are committed together, up to this many.
const BATCH: usize = 64;

pub(super) async fn connect(address: &str, ports: &Ports) -> Result<Arrivals, ConnectError> {
    let unreachable = |error: std::io::Error| ConnectError::Unreachable {
        reason: format!("nothing answers on {address}: {error}"),
    };
    let stream = TcpStream::connect(address).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    let (reader, mut writer) = stream.into_split();
    let cursor = ports.cursor.as_ref().and_then(|cursor| cursor.0.parse().ok()).unwrap_or(0);
    let hello = Hello { role: Role::Events, account: ports.account.to_string(), cursor };
    tell(&mut writer, &FromGateway::Hello(hello)).await.map_err(unreachable)?;
    let lines = FramedRead::new(reader, LinesCodec::new_with_max_length(LONGEST_LINE));
    let connection = Connection {
        lines: lines.ready_chunks(BATCH),
        writer,
        account: ports.account.clone(),
        clock: ports.clock.clone(),
        committed: None,
        broken: None,
        skipped: 0,
    };
    Ok(stream::unfold(connection, Connection::next).boxed())
}

struct Connection {
    lines: stream::ReadyChunks<FramedRead<OwnedReadHalf, LinesCodec>>,
    writer: OwnedWriteHalf,
    account: AccountId,
    clock: Arc<dyn Clock>,
    /// What the batch before contained. It is safe by the time the next one is asked for.
    committed: Option<u64>,
    /// The line that ended the connection, once what came before it has been taken in.
    broken: Option<LinkError>,
    /// Events that made no sense.
    skipped: u64,
}

/// What can be made of a line.
enum Line {
    Event(u64, Box<Inbound>),
    /// It has its place in the order, but no session could take it. Delivered again it would be no
    /// better, so it is left out.
    Senseless(u64, String),
}

impl Connection {
    async fn next(mut self) -> Option<(Result<Arrival, LinkError>, Self)> {
        if let Some(number) = self.committed.take()
            && let Err(error) = tell(&mut self.writer, &FromGateway::Ack(number)).await
        {
            return Some((Err(lost(error)), self));
        }
        if let Some(error) = self.broken.take() {
            return Some((Err(error), self));
        }
        let lines = self.lines.next().await?;
        let mut events = Vec::with_capacity(lines.len());
        for line in lines {
            match line.map_err(lost).and_then(|line| self.read(&line)) {
                Ok(Line::Event(number, inbound)) => {
                    self.committed = Some(number);
                    events.push(*inbound);
                }
                Ok(Line::Senseless(number, reason)) => {
                    self.committed = Some(number);
                    self.skipped += 1;
                    let skipped = self.skipped;
                    tracing::warn!(account = %self.account, number, reason, skipped, "skipped an event");
                }
                Err(error) if self.committed.is_none() => return Some((Err(error), self)),
                // Everything before the bad line is still taken in; the connection ends there.
                Err(error) => {
                    self.broken = Some(error);
                    break;
                }
            }
        }
        let cursor = self.committed.map(|number| Cursor(number.to_string()));
        Some((Ok(Arrival::Batch(Batch { events, cursor, ack: Ack::unneeded() })), self))
    }

    fn read(&self, line: &str) -> Result<Line, LinkError> {
        #[derive(Deserialize)]
        struct Numbered {
            number: u64,
        }
        let Ok(event) = serde_json::from_str::<Event>(line) else {
            let Numbered { number } = serde_json::from_str(line).map_err(|_| unreadable())?;
            return Ok(Line::Senseless(number, "a field is missing or of the wrong type".into()));
        };
        let number = event.number;
        Ok(match decode(event, &self.account, self.clock.now()) {
            Ok(inbound) => Line::Event(number, Box::new(inbound)),
            Err(error) => Line::Senseless(number, error.to_string()),
        })
    }
}

fn decode(
    event: Event,
    account: &AccountId,
    now: talaria_model::Timestamp,
) -> Result<Inbound, IdError> {
    let chat = Chat { id: ChatId::new(event.chat)?, kind: event.kind };
    let kind = match event.press {
        Some(choice) => InboundKind::Pressed(ChoiceId::new(choice)?),
        None => InboundKind::Said(Message {
            id: event.message.map(MessageId::new).transpose()?,
            text: event.text,
            addressed: event.addressed,
            reply_to: event.reply_to.map(MessageId::new).transpose()?,
            quote: event.quote.map(quote),
            overheard: event.overheard.into_iter().map(overheard).collect(),
            channel_prompt: event.channel_prompt,
            skills: event.skills,
            ..Message::default()
        }),
    };
    Ok(Inbound {
        id: EventId::new(event.id)?,
        at: now,
        from: Sender {
            id: SenderId::new(event.sender)?,
            name: event.name,
            alt: event.alt.map(SenderId::new).transpose()?,
            kind: event.is,
        },
        to: Address {
            account: account.clone(),
            chat,
            thread: event.thread.map(ThreadId::new).transpose()?,
        },
        source: source(event.place)?,
        kind,
    })
}

fn quote(Quote { text, author, by, .. }: Quote) -> Quote {
    Quote { by: known(by), ..Quote::new(text, author) }
}

fn overheard(Overheard { name, text, by, .. }: Overheard) -> Overheard {
    Overheard { by: known(by), ..Overheard::new(name, text) }
}

/// Who is heard is for the account's list to say, not for a line that came over a socket.
fn known(by: Option<Bystander>) -> Option<Bystander> {
    by.map(|Bystander { id, kind, .. }| Bystander { kind, ..Bystander::new(id) })
}

fn source(place: Place) -> Result<Source, IdError> {
    let Place { name, topic, parent, space, alt, known_by } = place;
    Ok(Source {
        chat_name: name,
        topic,
        parent: parent.map(ChatId::new).transpose()?,
        space,
        alt_chat: alt.map(ChatId::new).transpose()?,
        moved_from: None,
        below: None,
        known_by,
        // Who is heard is for the account's list to say, not for a line that came over a socket.
        roles: Vec::new(),
    })
}

async fn tell(writer: &mut OwnedWriteHalf, line: &FromGateway) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    writer.write_all(&bytes).await
}

/// The parser would quote what it could not read, which may be what a person said.
fn unreadable() -> LinkError {
    LinkError::Lost { reason: "a line is not an event with a number".into() }
}

fn lost(error: impl std::fmt::Display) -> LinkError {
    LinkError::Lost { reason: error.to_string() }
}
