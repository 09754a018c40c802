//! Who may connect to the local socket.

use std::io;
use std::path::PathBuf;

use axum::serve::Listener;
use tokio::net::{UnixListener, UnixStream};

/// A socket in the home folder. Only processes of the same user get through.
pub(crate) struct Local {
    listener: UnixListener,
    path: PathBuf,
    user: u32,
}

impl Local {
    pub(crate) fn new(listener: UnixListener, path: PathBuf, user: u32) -> Self {
        Self { listener, path, user }
    }
}

impl Listener for Local {
    type Io = UnixStream;
    type Addr = PathBuf;

    async fn accept(&mut self) -> (UnixStream, PathBuf) {
        loop {
            let (stream, _) = Listener::accept(&mut self.listener).await;
            match stream.peer_cred() {
                Ok(peer) if peer.uid() == self.user => return (stream, self.path.clone()),
                _ => tracing::warn!("refused a local connection of another user"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<PathBuf> {
        Ok(self.path.clone())
    }
}
