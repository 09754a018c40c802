//! What the vendor is asked to do: one line out, one line back.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use talaria_clock::Clock;
use talaria_model::{AccountId, Act, Content, MessageId, Outbound, Receipt};
use talaria_platform::{Outgoing, SendError};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_util::codec::{FramedRead, LinesCodec};

use super::wire::{
    ActReply, ActRequest, FromGateway, Hello, LONGEST_LINE, Role, WireAct, WireChoice, WireFile,
};

/// Connections that are kept for the next act.
const KEPT: usize = 64;

/// Room for an answer, which is a line about one act. There are as many connections as acts at a time.
const ANSWER: usize = 512;

type Connection = FramedRead<TcpStream, LinesCodec>;

/// Asks the vendor to act, each act on a connection of its own while it lasts.
pub(super) struct Acts {
    address: String,
    account: AccountId,
    clock: Arc<dyn Clock>,
    idle: Mutex<Vec<Connection>>,
}

impl Acts {
    pub(super) fn new(address: String, account: AccountId, clock: Arc<dyn Clock>) -> Self {
        Self { address, account, clock, idle: Mutex::default() }
    }

    async fn connection(&self) -> Result<Connection, SendError> {
        while let Some(connection) = self.take_idle() {
            if is_open(connection.get_ref()) {
                return Ok(connection);
            }
        }
        let unreachable =
            |error: std::io::Error| SendError::Unreachable { reason: error.to_string() };
        let stream = TcpStream::connect(&self.address).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let lines = LinesCodec::new_with_max_length(LONGEST_LINE);
        let mut connection = FramedRead::with_capacity(stream, lines, ANSWER);
        let hello = Hello { role: Role::Acts, account: self.account.to_string(), cursor: 0 };
        write(&mut connection, &FromGateway::Hello(hello)).await.map_err(unreachable)?;
        Ok(connection)
    }

    fn take_idle(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(connection);
        }
    }
}

#[async_trait]
impl Outgoing for Acts {
    async fn send(&self, outbound: &Outbound) -> Result<Receipt, SendError> {
        let request = encode(outbound)?;
        let mut connection = self.connection().await?;
        let unconfirmed = |reason: String| SendError::Unconfirmed { reason };
        write(&mut connection, &request).await.map_err(|error| unconfirmed(error.to_string()))?;
        let line = match connection.next().await {
            Some(Ok(line)) => line,
            Some(Err(error)) => return Err(unconfirmed(error.to_string())),
            None => return Err(unconfirmed("the connection ended".into())),
        };
        let reply: ActReply =
            serde_json::from_str(&line).map_err(|error| unconfirmed(error.to_string()))?;
        self.keep(connection);
        match reply {
            ActReply::Done { message } => {
                let message = message.and_then(|message| MessageId::new(message).ok());
                Ok(Receipt { message, at: self.clock.now() })
            }
            ActReply::Throttled { seconds } => {
                Err(SendError::Throttled { after: Duration::from_secs(seconds) })
            }
            ActReply::Gone(reason) => Err(SendError::Gone { reason }),
            ActReply::Rejected(reason) => Err(SendError::Rejected { reason }),
        }
    }
}

/// A vendor that restarted has closed our connection. Found out before the act is written, that is
/// harmless; found out after, the act's outcome would be unknown.
fn is_open(stream: &TcpStream) -> bool {
    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

fn text_of(content: &Content) -> String {
    talaria_render::markdown(&content.text, content.reading).into_owned()
}

fn encode(outbound: &Outbound) -> Result<ActRequest, SendError> {
    let act = match &outbound.act {
        Act::Post(content) => WireAct::Post {
            text: text_of(content),
            choices: content
                .choices
                .iter()
                .map(|choice| WireChoice { id: choice.id.to_string(), label: choice.label.clone() })
                .collect(),
            files: content
                .files
                .iter()
                .map(|file| WireFile {
                    id: file.id.to_string(),
                    name: file.name.clone(),
                    mime: file.mime.clone(),
                    size: file.size,
                    shown: file.shown,
                })
                .collect(),
        },
        Act::Edit { message, content } => {
            WireAct::Edit { message: message.to_string(), text: text_of(content) }
        }
        Act::Draft(_)
        | Act::Delete { .. }
        | Act::React { .. }
        | Act::Mark { .. }
        | Act::Typing
        | Act::Rest => {
            return Err(SendError::Rejected { reason: "this account cannot do that".into() });
        }
    };
    Ok(ActRequest {
        id: outbound.id.to_string(),
        chat: outbound.to.chat.id.to_string(),
        thread: outbound.to.thread.as_ref().map(ToString::to_string),
        act,
    })
}

async fn write(connection: &mut Connection, line: &impl serde::Serialize) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    connection.get_mut().write_all(&bytes).await
}
