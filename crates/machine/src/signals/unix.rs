//! Signals. They are caught and not blocked: a program that is started inherits what is blocked, and could
//! not be ended.

use std::io;

use futures::stream::{self, BoxStream, StreamExt};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::{Heard, Nudge, Wish};

pub(super) struct Source {
    heard: mpsc::UnboundedReceiver<Heard>,
    handle: Handle,
}

impl Source {
    pub(super) fn open() -> io::Result<Self> {
        let mut signals = SignalsInfo::<WithOrigin>::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1])?;
        let handle = signals.handle();
        let (tell, heard) = mpsc::unbounded_channel();
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            for origin in signals.forever() {
                let wish = match origin.signal {
                    SIGINT => Wish::End("SIGINT"),
                    SIGTERM => Wish::End("SIGTERM"),
                    SIGHUP => Wish::Reload,
                    _ => Wish::Restart,
                };
                let sender = origin.process.and_then(|process| u32::try_from(process.pid).ok());
                // Zero is somebody who cannot be seen from here.
                let sender = sender.filter(|pid| *pid != 0);
                if tell.send(Heard { wish, sender }).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { heard, handle })
    }

    pub(super) async fn next(&mut self) -> Heard {
        match self.heard.recv().await {
            Some(heard) => heard,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.handle.close();
    }
}

pub(super) fn nudge(kind: Nudge) -> io::Result<Vec<BoxStream<'static, ()>>> {
    let each = |mut coming: Signal| async move { coming.recv().await.map(|()| ((), coming)) };
    let coming = signal(match kind {
        Nudge::Interrupt => SignalKind::interrupt(),
        Nudge::Terminate => SignalKind::terminate(),
        Nudge::Hangup => SignalKind::hangup(),
    })?;
    Ok(vec![stream::unfold(coming, each).boxed()])
}
