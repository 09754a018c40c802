//! The vendor's end of each connection.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::check::Violation;
use super::conduct::{Conduct, Refusal};
use super::truth::{Act, Shown};
use super::wire::{Answer, FromGateway, Hello, LONGEST_LINE, Request, Role, WireAct};
use super::{Arrived, Desk, State};
use crate::echo::{Token, complete};

/// Events that are written at once.
const BURST: usize = 256;

pub(super) async fn accept(listener: TcpListener, desk: Arc<Desk>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let desk = desk.clone();
        connections.spawn(async move {
            let mut hung_up = desk.hung_up.subscribe();
            // A connection that breaks is what a vendor has to live with.
            tokio::select! {
                _ = serve(stream, &desk) => {}
                _ = hung_up.changed() => {}
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, desk: &Desk) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (reader, writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    match read::<FromGateway>(&mut reader, &mut line).await? {
        Some(FromGateway::Hello(Hello { role: Role::Acts, .. })) => act(reader, writer, desk).await,
        Some(FromGateway::Hello(Hello { role: Role::Events, cursor })) => {
            let first = greet(desk, cursor);
            tokio::select! {
                told = tell(writer, desk, first) => told,
                heard = hear(reader, desk) => heard,
            }
        }
        Some(FromGateway::Ack(_)) | None => Ok(()),
    }
}

/// Takes note of a gateway that comes (back), and says with which event to begin.
fn greet(desk: &Desk, cursor: u64) -> u64 {
    let mut state = desk.lock();
    state.truth.connections += 1;
    let acked = state.truth.acked;
    // Events that are delivered again move the cursor back for a moment, by nobody's fault.
    if cursor < acked && desk.settings.redelivers == 0 {
        state.truth.seen_on_the_wire.push(Violation::Forgotten { acked, cursor });
    }
    drop(state);
    desk.changes();
    cursor.saturating_sub(desk.settings.redelivers) + 1
}

async fn tell(mut writer: OwnedWriteHalf, desk: &Desk, first: u64) -> io::Result<()> {
    let mut happened = desk.happened.subscribe();
    let mut next = first;
    let mut lines = Vec::new();
    loop {
        lines.clear();
        {
            let mut state = desk.lock();
            let State { truth, awaited, .. } = &mut *state;
            let from = usize::try_from(next - 1).unwrap_or(usize::MAX);
            for event in truth.events.iter().skip(from).take(BURST) {
                serde_json::to_writer(&mut lines, event)?;
                lines.push(b'\n');
                next = event.number + 1;
                if let Some(waiting) = awaited.get_mut(&Token(event.number)) {
                    waiting.sent = Instant::now();
                }
            }
        }
        if lines.is_empty() {
            if happened.changed().await.is_err() {
                return Ok(());
            }
            continue;
        }
        writer.write_all(&lines).await?;
        let mut state = desk.lock();
        state.truth.told = state.truth.told.max(next - 1);
        drop(state);
        desk.changes();
    }
}

async fn hear(mut reader: BufReader<OwnedReadHalf>, desk: &Desk) -> io::Result<()> {
    let mut line = Vec::new();
    while let Some(said) = read::<FromGateway>(&mut reader, &mut line).await? {
        let FromGateway::Ack(acked) = said else { continue };
        let mut state = desk.lock();
        let told = state.truth.told;
        // `told` is raised after the write; what happened bounds it in the meantime.
        if acked > state.truth.happened() {
            state.truth.seen_on_the_wire.push(Violation::Foretold { told, acked });
        }
        state.truth.acked = state.truth.acked.max(acked);
        drop(state);
        desk.changes();
    }
    Ok(())
}

async fn act(
    mut reader: BufReader<OwnedReadHalf>,
    mut writer: OwnedWriteHalf,
    desk: &Desk,
) -> io::Result<()> {
    let mut line = Vec::new();
    let mut answer = Vec::new();
    while let Some(request) = read::<Request>(&mut reader, &mut line).await? {
        let act = desk.receive(request);
        let conduct = desk.decide(&act);
        match &conduct {
            Conduct::Refuses(refusal) => encode(&mut answer, &refused(refusal))?,
            Conduct::LosesAndHangsUp => return Ok(()),
            Conduct::LosesSilently => return silence(reader).await,
            Conduct::Does
            | Conduct::DoesAfter(_)
            | Conduct::DoesSilently
            | Conduct::DoesAndHangsUp => {
                if let Conduct::DoesAfter(wait) = conduct {
                    tokio::time::sleep(wait).await;
                }
                match desk.perform(act) {
                    Some(message) => encode(&mut answer, &Answer::Done { message: &message })?,
                    None => encode(&mut answer, &Answer::Rejected("there is no such message"))?,
                }
                desk.changes();
                match conduct {
                    Conduct::DoesAndHangsUp => return Ok(()),
                    Conduct::DoesSilently => return silence(reader).await,
                    _ => {}
                }
            }
        }
        writer.write_all(&answer).await?;
    }
    Ok(())
}

/// Says nothing until the other end has gone.
async fn silence(mut reader: BufReader<OwnedReadHalf>) -> io::Result<()> {
    while !reader.fill_buf().await?.is_empty() {
        let read = reader.buffer().len();
        reader.consume(read);
    }
    Ok(())
}

fn refused(refusal: &Refusal) -> Answer<'_> {
    match refusal {
        Refusal::Throttled { seconds } => Answer::Throttled { seconds: *seconds },
        Refusal::Gone(reason) => Answer::Gone(reason),
        Refusal::Rejected(reason) => Answer::Rejected(reason),
    }
}

impl Desk {
    fn receive(&self, request: Request) -> Act {
        let mut state = self.lock();
        let (edits, text, choices) = match request.act {
            WireAct::Post { text, choices } => (None, text, choices),
            WireAct::Edit { message, text } => (Some(message), text, Vec::new()),
        };
        let act = Act {
            order: state.truth.acts.len(),
            at: Instant::now(),
            id: request.id,
            chat: request.chat,
            thread: request.thread,
            edits,
            text,
            choices,
        };
        state.truth.acts.push(act.clone());
        drop(state);
        self.changes();
        act
    }

    fn decide(&self, act: &Act) -> Conduct {
        self.lock().script.as_mut().map_or(Conduct::Does, |script| script(act))
    }

    /// Shows an act, and says as which message. None when it changes a message that is not there.
    fn perform(&self, act: Act) -> Option<String> {
        let mut state = self.lock();
        let truth = &mut state.truth;
        let repeat = self.settings.keyed.then(|| truth.by_key.get(&act.id)).flatten().copied();
        let (text, at) = (act.text.clone(), act.at);
        let message = match (&act.edits, repeat) {
            (Some(edited), _) => {
                let shown = truth.shown.iter_mut().rev().find(|shown| shown.message == *edited)?;
                shown.text = act.text;
                shown.edits += 1;
                shown.message.clone()
            }
            (None, Some(place)) => truth.shown[place].message.clone(),
            (None, None) => {
                let message = format!("m{}", truth.shown.len() + 1);
                if self.settings.keyed {
                    truth.by_key.insert(act.id, truth.shown.len());
                }
                truth.shown.push(Shown {
                    message: message.clone(),
                    chat: act.chat,
                    thread: act.thread,
                    text: act.text,
                    choices: act.choices,
                    edits: 0,
                });
                message
            }
        };
        if !state.awaited.is_empty() {
            for token in complete(&text) {
                if let Some(waiting) = state.awaited.remove(&token) {
                    let after = at - waiting.sent;
                    // Whoever asked may not wait any more.
                    let _ = waiting.answer.send(Arrived { at, after, text: text.clone() });
                }
            }
        }
        Some(message)
    }
}

fn encode(into: &mut Vec<u8>, answer: &Answer<'_>) -> io::Result<()> {
    into.clear();
    serde_json::to_writer(&mut *into, answer)?;
    into.push(b'\n');
    Ok(())
}

async fn read<T: serde::de::DeserializeOwned>(
    reader: &mut BufReader<OwnedReadHalf>,
    line: &mut Vec<u8>,
) -> io::Result<Option<T>> {
    line.clear();
    if reader.read_until(b'\n', line).await? == 0 {
        return Ok(None);
    }
    if line.len() > LONGEST_LINE {
        return Err(io::Error::other("a line is too long"));
    }
    Ok(Some(serde_json::from_slice(line)?))
}
