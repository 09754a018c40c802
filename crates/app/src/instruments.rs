//! What tells others how the gateway is doing: its hooks, how late its timers ring, and the traces of its
//! messages.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use talaria_admin::{HookVitals, Vitals};
use talaria_clock::Clock;
use talaria_config::Config;
use talaria_gateway::{Chores, Follower, NoFollower};
use talaria_hooks::Hooks;
use talaria_telemetry::{Collector, Telemetry};

use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::hooks;

/// How often it is looked how late a timer rings.
const EVERY: Duration = Duration::from_millis(250);

/// So many looks are a minute.
const REMEMBERED: usize = 240;

pub(crate) struct Instruments {
    hooks: Arc<Hooks>,
    telemetry: Option<Arc<Telemetry>>,
    lateness: Lateness,
    clock: Arc<dyn Clock>,
}

impl Instruments {
    pub(crate) fn open(
        home: &Home,
        config: &Config,
        hooks: Arc<Hooks>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, Halt> {
        let settings = &config.telemetry;
        let collector = settings.otlp.clone().map(|base| Collector {
            base,
            proxy: config.network.proxy.clone(),
            headers: settings.otlp_headers.clone(),
            instance: instance(home.path()),
            version: env!("CARGO_PKG_VERSION"),
        });
        let open = |collector: Collector| {
            Telemetry::open(&collector, clock.clone()).map(Arc::new).map_err(|error| {
                Halt::new(Exit::Misused, format_args!("traces cannot be told: {error}"))
                    .hint("`talaria config explain telemetry.otlp` tells what it takes")
            })
        };
        let telemetry = collector.map(open).transpose()?;
        Ok(Self { hooks, telemetry, lateness: Lateness::default(), clock: clock.clone() })
    }

    pub(crate) fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    pub(crate) fn follower(&self) -> Arc<dyn Follower> {
        match &self.telemetry {
            Some(telemetry) => telemetry.clone(),
            None => Arc::new(NoFollower),
        }
    }

    /// Begins the work that makes them work.
    pub(crate) fn drive(self: &Arc<Self>, chores: &Chores) {
        let driven = self.clone();
        chores.begin("hooks", move || {
            let driven = driven.clone();
            async move { match driven.hooks.work().await {} }
        });
        let driven = self.clone();
        chores.begin("lateness of timers", move || {
            let driven = driven.clone();
            async move { match driven.lateness.watch(driven.clock.as_ref()).await {} }
        });
        if let Some(telemetry) = self.telemetry.clone() {
            chores.begin("traces", move || {
                let telemetry = telemetry.clone();
                async move { match telemetry.work().await {} }
            });
        }
    }

    /// Lets the hooks and the collector hear the last of it, within reason.
    pub(crate) async fn ended(&self) {
        hooks::ended(&self.hooks).await;
        if let Some(telemetry) = &self.telemetry {
            telemetry.flush().await;
        }
    }

    pub(crate) fn vitals(&self) -> Vitals {
        let hooks = self.hooks.tallies().into_iter().map(|tally| HookVitals {
            name: tally.name,
            heard: tally.heard,
            failed: tally.failed,
            untold: tally.untold,
        });
        Vitals {
            lag: self.lateness.known(),
            hooks: hooks.collect(),
            untraced: self.telemetry.as_ref().map(|telemetry| telemetry.dropped()),
        }
    }
}

/// What tells this home from all others that use the same collector.
fn instance(home: &Path) -> String {
    let machine = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let home = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
    format!("{}:{}", machine.trim(), home.display())
}

/// How late timers ring.
#[derive(Debug, Default)]
struct Lateness(Mutex<VecDeque<Duration>>);

impl Lateness {
    async fn watch(&self, clock: &dyn Clock) -> Infallible {
        loop {
            let begun = clock.mark();
            clock.sleep(EVERY).await;
            let late = clock.mark().since(begun).saturating_sub(EVERY);
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() == REMEMBERED {
                known.pop_front();
            }
            known.push_back(late);
        }
    }

    /// The last one and the worst.
    fn known(&self) -> Option<(Duration, Duration)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some((*known.back()?, known.iter().max().copied()?))
    }
}
