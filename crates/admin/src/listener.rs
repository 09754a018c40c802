//! Who comes in by the local door.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use talaria_clock::Clock;
use talaria_machine::door::{Door, DoorStream};

/// How long nobody is let in when the operating system has no room for another connection.
const NO_ROOM: Duration = Duration::from_secs(1);

/// The local door. Only processes of the same user get through.
pub(crate) struct Local {
    door: Door,
    clock: Arc<dyn Clock>,
}

impl Local {
    pub(crate) fn new(door: Door, clock: Arc<dyn Clock>) -> Self {
        Self { door, clock }
    }
}

impl Listener for Local {
    type Io = DoorStream;
    type Addr = PathBuf;

    async fn accept(&mut self) -> (DoorStream, PathBuf) {
        loop {
            let error = match self.door.accept().await {
                Ok(stream) => return (stream, self.door.path().to_owned()),
                Err(error) => error,
            };
            // Somebody who has gone again says nothing of those who come next.
            if !is_about_one(&error) {
                tracing::error!(%error, "nobody can come in by the local door");
                self.clock.sleep(NO_ROOM).await;
            }
        }
    }

    fn local_addr(&self) -> io::Result<PathBuf> {
        Ok(self.door.path().to_owned())
    }
}

fn is_about_one(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionRefused | ConnectionReset)
}
