//! What the operating system, and whoever uses it, wants of this process.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

use std::io;

use futures::FutureExt;
use futures::stream::{self, BoxStream, StreamExt};

/// What a gateway is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// End. This is what the signal is called.
    End(&'static str),
    /// Read the configuration again.
    Reload,
    /// End, and start again.
    Restart,
}

/// Something that a gateway is asked for, and who asks, where the operating system tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// What.
    pub wish: Wish,
    /// The process that asks.
    pub sender: Option<u32>,
}

/// What a gateway is asked for. While this lives, nothing of it ends the process by itself, but for one: a
/// second end that is asked for, or a later one, and that nobody heeds. It is heeded when the next wish is
/// waited for.
pub struct Signals(system::Source);

impl Signals {
    /// Listens from here on.
    pub fn listen() -> io::Result<Self> {
        system::Source::open().map(Self)
    }

    /// Completes when something is asked for. Nothing is lost when it is dropped before.
    pub async fn next(&mut self) -> Heard {
        self.0.next().await
    }

    /// What has been asked for already.
    pub fn try_next(&mut self) -> Option<Heard> {
        self.next().now_or_never()
    }
}

/// What whoever sits at a terminal, or ends the session that it belongs to, can do to a program there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nudge {
    /// Ctrl-C.
    Interrupt,
    /// It is to end.
    Terminate,
    /// The terminal is gone.
    Hangup,
}

/// Each time one of these comes. They do not end the process by themselves from here on.
pub fn nudges(kinds: &[Nudge]) -> io::Result<BoxStream<'static, ()>> {
    let mut all = Vec::new();
    for kind in kinds {
        all.extend(system::nudge(*kind)?);
    }
    Ok(stream::select_all(all).boxed())
}
