//! Follows messages through the gateway, from the platform's event to the platform's receipts, and exports
//! what it sees as OpenTelemetry spans.
//!
//! A message is one trace. Its id is derived from the message's place in the journal, so that a restart goes
//! on in the same trace. Nothing of what was said is in a span. Nothing waits for this crate: what does not
//! fit into its queue is dropped and counted. It knows hops and no platform, and it spawns no tasks:
//! whoever opens it drives [`Telemetry::work`].
#![forbid(unsafe_code)]

mod export;
mod weave;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use talaria_clock::{Clock, Mark};
use talaria_gateway::{Follower, Hop};
use talaria_model::{Proxy, Secret};
use tokio::sync::mpsc;
use url::Url;

use crate::export::Exporter;
use crate::weave::{Span, Weaver};

pub use export::OpenError;

/// Hops that wait to be looked at.
const WAITING: usize = 8192;

/// Spans that leave together.
const TOGETHER: usize = 512;

/// How long spans wait for others to leave with.
const LINGER: Duration = Duration::from_secs(2);

/// How long the last spans have when the gateway ends.
pub const LAST_WORDS: Duration = Duration::from_secs(3);

/// How often it is said that nobody takes spans.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// Where spans go.
#[derive(Debug, Clone)]
pub struct Collector {
    /// Where a collector takes OTLP over HTTP, without `/v1/traces`.
    pub base: Url,
    /// How to get there.
    pub proxy: Proxy,
    /// What it wants to be told with every request.
    pub headers: BTreeMap<String, Secret>,
    /// What tells this gateway from others that use the same collector.
    pub instance: String,
    /// The version of the program.
    pub version: &'static str,
}

/// Follows messages, if anybody wants that.
pub struct Telemetry {
    clock: Arc<dyn Clock>,
    hops: mpsc::Sender<Hop>,
    /// Held by whoever drives it.
    working: tokio::sync::Mutex<Working>,
    dropped: AtomicU64,
    flushing: tokio::sync::Notify,
    flushed: tokio::sync::Notify,
}

struct Working {
    hops: mpsc::Receiver<Hop>,
    weaver: Weaver,
    exporter: Exporter,
    /// What has not left yet.
    spans: Vec<Span>,
}

impl Telemetry {
    /// Follows from here on, and tells a collector.
    pub fn open(collector: &Collector, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let (sender, hops) = mpsc::channel(WAITING);
        let exporter = Exporter::open(collector)?;
        let weaver = Weaver::new(&collector.instance);
        let working = Working { hops, weaver, exporter, spans: Vec::new() };
        Ok(Self {
            clock,
            hops: sender,
            working: tokio::sync::Mutex::new(working),
            dropped: AtomicU64::default(),
            flushing: tokio::sync::Notify::new(),
            flushed: tokio::sync::Notify::new(),
        })
    }

    /// How much was not told to anybody: hops that came too fast, and spans that nobody took.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Tells the collector what is seen. Nothing is told while this is not driven. Whoever was cut off may
    /// begin again.
    pub async fn work(&self) -> Infallible {
        let mut working = self.working.lock().await;
        let Working { hops, weaver, exporter, spans } = &mut *working;
        let mut complained: Option<Mark> = None;
        let mut due = (!spans.is_empty()).then(|| self.clock.mark());
        loop {
            let leave = async {
                match due {
                    Some(due) => self.clock.sleep(due.since(self.clock.mark())).await,
                    None => std::future::pending().await,
                }
            };
            let mut is_last = false;
            tokio::select! {
                biased;
                Some(hop) = hops.recv() => {
                    spans.extend(weaver.weave(hop));
                    if spans.len() < TOGETHER {
                        due = due.or_else(|| (!spans.is_empty()).then(|| self.clock.mark() + LINGER));
                        continue;
                    }
                }
                () = leave => {}
                () = self.flushing.notified() => is_last = true,
            }
            due = None;
            let batch = std::mem::take(spans);
            if !batch.is_empty() {
                let many = batch.len() as u64;
                if let Err(problem) = exporter.export(batch).await {
                    self.dropped.fetch_add(many, Ordering::Relaxed);
                    let now = self.clock.mark();
                    if complained.is_none_or(|last| now >= last + COMPLAIN_EVERY) {
                        complained = Some(now);
                        tracing::warn!(many, %problem, "traces are lost: the collector does not take them");
                    }
                }
            }
            if is_last {
                self.flushed.notify_one();
            }
        }
    }

    /// Tells the collector what it has not been told yet, but not for long. [`Telemetry::work`] has to be
    /// driven meanwhile.
    pub async fn flush(&self) {
        self.flushing.notify_one();
        tokio::select! {
            () = self.flushed.notified() => {}
            () = self.clock.sleep(LAST_WORDS) => {}
        }
    }
}

impl Follower for Telemetry {
    fn follows(&self) -> bool {
        true
    }

    fn passed(&self, hop: Hop) {
        if self.hops.try_send(hop).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
