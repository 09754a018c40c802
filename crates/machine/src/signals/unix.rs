//! Signals. They are caught and not blocked: a program that is started inherits what is blocked, and could
//! not be ended.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::{Heard, Nudge, Wish};

/// How long a signal may wait that asks for an end which was asked for before.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Source {
    heard: mpsc::UnboundedReceiver<Heard>,
    handle: Handle,
    /// How many ends were asked for and heeded.
    heeded: Arc<AtomicUsize>,
    in_hand: Option<Wish>,
}

impl Source {
    pub(super) fn open() -> io::Result<Self> {
        let mut signals = SignalsInfo::<WithOrigin>::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1])?;
        let handle = signals.handle();
        let (tell, heard) = mpsc::unbounded_channel();
        let heeded = Arc::new(AtomicUsize::new(0));
        let (has_heeded, mut ends) = (heeded.clone(), 0);
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
                if matches!(wish, Wish::End(_)) {
                    ends += 1;
                    insist(ends, &has_heeded);
                }
                if tell.send(Heard { wish, sender }).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { heard, handle, heeded, in_hand: None })
    }

    /// Whoever asks for the next one has heeded the one before.
    pub(super) async fn next(&mut self) -> Heard {
        if let Some(Wish::End(_)) = self.in_hand.take() {
            self.heeded.fetch_add(1, Ordering::Relaxed);
        }
        match self.heard.recv().await {
            Some(heard) => {
                self.in_hand = Some(heard.wish);
                heard
            }
            None => std::future::pending().await,
        }
    }
}

/// Ends the process if this many ends were asked for and nobody heeds the last of them: whoever should is
/// held up, by a disk that hangs for example.
fn insist(ends: usize, heeded: &Arc<AtomicUsize>) {
    if ends < 2 {
        return;
    }
    let heeded = heeded.clone();
    // Without a thread there is only one chance less.
    let _ = std::thread::Builder::new().name("insistence".into()).spawn(move || {
        std::thread::sleep(PATIENCE);
        if heeded.load(Ordering::Relaxed) < ends {
            #[expect(clippy::disallowed_methods, reason = "nobody is left who could return")]
            std::process::exit(1);
        }
    });
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
