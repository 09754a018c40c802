//! The vendor behind a loopback account: tells what people say until that is acknowledged, does what
//! it is asked or misbehaves as scripted, and keeps its own truth about both.

mod check;
mod conduct;
mod serve;
mod truth;
mod wire;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpSocket;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::echo::Token;

pub use check::Violation;
pub use conduct::{Conduct, Refusal};
pub use truth::{Act, Said, Shown, Truth};
pub use wire::{Author, By, Choice, Happened, Overheard, Place, Quote};

/// What kind of vendor it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct VendorSettings {
    /// Whether an act that arrives twice under the same id is shown once.
    pub keyed: bool,
    /// How many events that were already acknowledged are delivered again on each connection.
    pub redelivers: u64,
}

/// A vendor that listens on this machine. Dropping it closes everything.
pub struct Vendor {
    desk: Arc<Desk>,
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

struct Desk {
    settings: VendorSettings,
    state: Mutex<State>,
    /// Changes whenever the truth does.
    changed: watch::Sender<u64>,
    /// The number of the newest event.
    happened: watch::Sender<u64>,
    /// Changes when every connection has to go.
    hung_up: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    truth: Truth,
    script: Option<conduct::Script>,
    awaited: HashMap<Token, Awaited>,
}

/// Somebody who waits for an answer.
struct Awaited {
    answer: oneshot::Sender<Arrived>,
    /// When their message was last sent.
    sent: Instant,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// When it arrived.
    pub at: Instant,
    /// How long after the message had been sent.
    pub after: Duration,
    /// What it says.
    pub text: String,
}

impl Vendor {
    /// Opens a vendor on a free port.
    pub async fn open(settings: VendorSettings) -> io::Result<Self> {
        // As many as may ever wait: one that finds no room is reset, and nobody knows then what became of
        // its act.
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let listener = socket.listen(4096)?;
        let address = listener.local_addr()?;
        let desk = Arc::new(Desk {
            settings,
            state: Mutex::default(),
            changed: watch::Sender::new(0),
            happened: watch::Sender::new(0),
            hung_up: watch::Sender::new(0),
        });
        let accepting = tokio::spawn(serve::accept(listener, desk.clone()));
        Ok(Self { desk, address, accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Somebody says something, with a token behind it that the answer has to repeat.
    pub fn say(&self, chat: &str, text: &str) -> Token {
        let mut state = self.desk.lock();
        let token = self.desk.append(&mut state, chat, text);
        drop(state);
        self.desk.announce();
        token
    }

    /// Somebody says something; the whole answer comes back when it arrives.
    pub fn ask(&self, chat: &str, text: &str) -> oneshot::Receiver<Arrived> {
        let (sender, answer) = oneshot::channel();
        let mut state = self.desk.lock();
        let token = self.desk.append(&mut state, chat, text);
        state.awaited.insert(token, Awaited { answer: sender, sent: Instant::now() });
        drop(state);
        self.desk.announce();
        answer
    }

    /// Somebody says exactly this, which need not be answered by the model: a command, or the answer
    /// to a question. Says the number of the event.
    pub fn say_plainly(&self, chat: &str, text: &str) -> u64 {
        let mut state = self.desk.lock();
        let number = state.truth.happen(chat, text.to_owned(), None);
        drop(state);
        self.desk.announce();
        number
    }

    /// One of several people in a group says exactly this. Says the number of the event.
    pub fn say_in_group(&self, chat: &str, sender: &str, text: &str) -> u64 {
        self.happens(chat, text, |event| {
            event.kind = Some("group");
            event.sender = sender.to_owned();
        })
    }

    /// Somebody says exactly this, in a chat and in circumstances of one's choice. Says the number of
    /// the event.
    pub fn happens(&self, chat: &str, text: &str, describe: impl FnOnce(&mut Happened)) -> u64 {
        let mut state = self.desk.lock();
        let number = state.truth.happen(chat, text.to_owned(), None);
        if let Some(event) = state.truth.events.last_mut() {
            describe(event);
        }
        drop(state);
        self.desk.announce();
        number
    }

    /// Somebody presses a choice. Says the number of the event.
    pub fn press(&self, chat: &str, choice: &str) -> u64 {
        let mut state = self.desk.lock();
        let number = state.truth.happen(chat, String::new(), Some(choice.to_owned()));
        drop(state);
        self.desk.announce();
        number
    }

    /// Decides from here on what is done with each act. Without a script, every act is done.
    pub fn script(&self, script: impl FnMut(&Act) -> Conduct + Send + 'static) {
        self.desk.lock().script = Some(Box::new(script));
    }

    /// From here on every act is done.
    pub fn behave(&self) {
        self.desk.lock().script = None;
    }

    /// Closes every connection, as a network does that fails for a moment.
    pub fn hang_up(&self) {
        self.desk.hung_up.send_modify(|times| *times += 1);
    }

    /// Completes once this is true.
    pub async fn until(&self, mut holds: impl FnMut(&Truth) -> bool) {
        let mut changed = self.desk.changed.subscribe();
        while !holds(&self.desk.lock().truth) {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Reads the truth.
    pub fn read<T>(&self, read: impl FnOnce(&Truth) -> T) -> T {
        read(&self.desk.lock().truth)
    }

    /// Every promise that is broken, once everything has been answered that ever will be.
    pub fn check(&self) -> Vec<Violation> {
        self.read(Truth::check)
    }

    /// What people see, chat by chat, for a failing test to print.
    pub fn transcript(&self) -> String {
        self.read(|truth| {
            let lines = truth.shown.iter().map(|shown| {
                format!("{} {} ({} edits): {}", shown.chat, shown.message, shown.edits, shown.text)
            });
            lines.collect::<Vec<_>>().join("\n")
        })
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, state: &mut State, chat: &str, text: &str) -> Token {
        let token = Token(state.truth.happened() + 1);
        let number = state.truth.happen(chat, format!("{text} {token}"), None);
        state.truth.said.insert(token, Said { number, chat: chat.to_owned(), token });
        token
    }

    fn announce(&self) {
        let happened = self.lock().truth.happened();
        self.happened.send_replace(happened);
        self.changes();
    }

    fn changes(&self) {
        self.changed.send_modify(|version| *version += 1);
    }
}

impl Truth {
    fn happen(&mut self, chat: &str, text: String, press: Option<String>) -> u64 {
        let number = self.happened() + 1;
        self.events.push(Happened {
            number,
            id: format!("e{number}"),
            chat: chat.to_owned(),
            kind: None,
            thread: None,
            place: Place::default(),
            sender: format!("{chat}-person"),
            name: None,
            text,
            press,
            quote: None,
            overheard: Vec::new(),
        });
        number
    }
}
