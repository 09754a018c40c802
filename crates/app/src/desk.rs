//! What an operator can ask of the running program.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use talaria_admin::{Operator, Vitals, api};
use talaria_clock::{Clock, SystemClock};
use talaria_config::{Change, Config, Loaded, Sources};
use talaria_gateway::{Chores, Drain, Gateway};
use talaria_hooks::Refused;
use talaria_providers::{Http, Switchboard};
use talaria_session::ResumeReason;
use talaria_store::{AuditDeed, Audited, StoreError};

use crate::ending::{Asked, End, Ending, FLUSH, Pace, STUCK, Why};
use crate::forensics::{InHand, Report};
use crate::home::Home;
use crate::instruments::Instruments;
use crate::locks::Locks;
use crate::model::{self, Choice, Equipment};
use crate::orders::Orders;
use crate::steward::Butler;
use crate::{ending, init, plans, programs, reload, signals, web_link};

/// How long turns in hand get to finish in a gateway that ends with a terminal chat: somebody waits there.
const CHAT_GRACE: Duration = Duration::from_secs(20);

/// How long what goes on beside a gateway has to come to a pause when it has ended.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(3);

/// The most of a change that is recorded, in characters.
const RECORDED: usize = 4_000;

/// When an end that takes long says what it waits for, and how often it says so again.
const SOON: Duration = Duration::from_secs(5);
const EVERY: Duration = Duration::from_secs(60);

/// Whether a gateway can start again by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restarts {
    Possible,
    Never,
}

/// What an operator can ask of the running program.
pub(crate) struct Desk {
    pub(crate) home: Home,
    pub(crate) gateway: Gateway,
    pub(crate) models: Http,
    pub(crate) equipment: Equipment,
    pub(crate) butler: Arc<Butler>,
    pub(crate) locks: Option<Locks>,
    /// The configuration that it began with, which decides what only a restart changes.
    pub(crate) begun: Loaded,
    pub(crate) state: Mutex<State>,
    /// The texts of `config.yaml` and `.env` that apply.
    pub(crate) applied: Mutex<(Option<String>, Option<String>)>,
    pub(crate) before: Mutex<reload::Before>,
    pub(crate) reloading: tokio::sync::Mutex<()>,
    pub(crate) orders: Orders,
    pub(crate) end: End,
    pub(crate) restarts: Restarts,
    /// Who listens and who speaks. That changes with a restart only.
    pub(crate) voice: Option<String>,
    pub(crate) instruments: Arc<Instruments>,
}

/// The configuration that applies, and the model it led to.
pub(crate) struct State {
    pub(crate) loaded: Loaded,
    pub(crate) choice: Choice,
    /// What of it waits for a restart: the gateway goes on with what it began with.
    pub(crate) waiting: Vec<Change>,
}

impl Desk {
    /// The texts of `config.yaml` and `.env` that apply.
    pub(crate) fn applied(&self) -> (Option<String>, Option<String>) {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// This is what applies.
    pub(crate) fn applies(&self, sources: &Sources) {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let texts = (owned(sources.config_text()), owned(sources.dotenv_text()));
        *self.applied.lock().unwrap_or_else(PoisonError::into_inner) = texts;
    }

    /// Whether changes to the files are applied by themselves.
    pub(crate) fn watches(&self) -> bool {
        self.state().loaded.config().watch_config
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a page to link to.
    pub(crate) fn serves_web(&self) -> bool {
        web_link::is_served(self.state().loaded.config())
    }

    /// The model that answers and why it was chosen, in one line.
    pub(crate) fn model_and_why(&self) -> String {
        let State { loaded, choice, .. } = &*self.state();
        format!("{}: {}", model::name(&choice.chain), model::why(&choice.chain, loaded))
    }

    /// A text without our secrets.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.equipment.discretion.clean(text).into_owned()
    }

    /// Ends the program so that it starts again, unless it could not.
    pub(crate) async fn restart(&self) -> Result<(), NoRestart> {
        if self.restarts == Restarts::Never {
            return Err(NoRestart::EndsWithChat);
        }
        let _one_at_a_time = self.reloading.lock().await;
        self.read_again().await.map_err(NoRestart::Misconfigured)?;
        tracing::info!("ending to start again");
        self.end.ask(Ending::Again, Why::Restart);
        Ok(())
    }

    /// Asks for the end of the program.
    pub(crate) fn end(&self, ending: Ending, why: Why) -> Asked {
        self.end.ask(ending, why)
    }

    /// How it ends, once that is known, and how hurried.
    pub(crate) fn ending(&self) -> (Option<(Ending, Why)>, Pace) {
        (self.end.decision(), self.end.pace())
    }

    /// Lets the gateway end, and writes down what is going on meanwhile.
    pub(crate) async fn end_with_a_report(&self, gateway: &Gateway, chores: &Chores) {
        let why = self.end.decision().map_or(Why::Stop, |(_, why)| why);
        init::stopping(&why.in_words(), ending::longest(self.state().loaded.config()));
        let redact = |text: &str| self.redact(text);
        let in_hand = || InHand::of(gateway, chores, &redact);
        let report = Report::new(&self.home, gateway.uptime(), why, in_hand(), &redact);
        let drain = self.drain();
        let longest = drain.patience + drain.flush + STUCK;
        let drained = async {
            let (drained, ()) = tokio::join!(gateway.drain(drain), within_reason(report.write()));
            drained
        };
        let impatient = async {
            SystemClock.sleep(SOON).await;
            loop {
                tracing::info!(waits_for = in_hand().in_words(), "still ending");
                SystemClock.sleep(EVERY).await;
            }
        };
        let ended = tokio::select! {
            drained = drained => report.finished(&drained),
            // What is not closed is found by the next start, as after a death.
            () = SystemClock.sleep(longest) => {
                let left = in_hand();
                tracing::error!(
                    after = ?longest,
                    waits_for = left.in_words(),
                    "the end does not come to an end; it is cut off"
                );
                self.end.cut_off(longest);
                report.cut_off(longest, left)
            }
            never = impatient => never,
        };
        within_reason(ended.write()).await;
    }

    /// How the gateway is to end.
    fn drain(&self) -> Drain {
        let seconds = self.state().loaded.config().agent.restart_drain_timeout;
        let timeout = Duration::from_secs(seconds.into());
        let (patience, reason) = match (self.restarts, self.end.decision()) {
            (Restarts::Never, _) => (timeout.min(CHAT_GRACE), ResumeReason::ShutdownTimeout),
            (_, Some((Ending::Again, _) | (_, Why::Takeover { .. }))) => {
                (timeout, ResumeReason::RestartTimeout)
            }
            _ => (timeout, ResumeReason::ShutdownTimeout),
        };
        let End { for_good, hurried, .. } = &self.end;
        let (for_good, hurried) = (for_good.clone(), hurried.clone());
        Drain { patience, flush: FLUSH, reason, for_good, hurried }
    }

    /// What the sources lead to as they are. Otherwise, what is wrong with them.
    pub(crate) async fn read_again(&self) -> Result<ReadAgain, String> {
        let before = self.state().loaded.clone();
        let sources = Sources::read(self.home.path(), std::env::vars_os())
            .map_err(|problems| problems.to_string())?;
        let (loaded, changes) =
            before.reload(sources.clone()).map_err(|problems| problems.to_string())?;
        let wrong = programs::problems(&loaded);
        if !wrong.is_empty() {
            let lines: Vec<_> = wrong.iter().map(ToString::to_string).collect();
            return Err(lines.join("\n"));
        }
        let (models, clock) = (&self.models, &self.equipment.clock);
        let choice =
            model::choice(&loaded, models, clock).await.map_err(|finding| finding.to_string())?;
        let switchboard =
            choice.switchboard(&loaded, models, clock).map_err(|halt| halt.explained())?;
        self.equipment.discretion.learn(&loaded);
        Ok(ReadAgain { loaded, changes, choice, switchboard, sources })
    }

    /// Records which settings have changed, and by whose word that applies.
    pub(crate) async fn record(&self, changes: &[Change], by: &str) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        let audited = Audited {
            actor: by.to_owned(),
            deed: AuditDeed::SettingsChanged,
            subject: "configuration".to_owned(),
            detail: in_words(changes),
        };
        let recorded = self.gateway.store().audit(self.gateway.clock().now(), vec![audited]).await;
        recorded.inspect_err(|error| tracing::warn!(%error, "what was changed cannot be recorded"))
    }

    /// Lets the accounts that run hear whom the configuration names, and answer what it says.
    pub(crate) fn set_access(&self, config: &Config) {
        for running in self.gateway.accounts() {
            let settings = config.accounts.get(&running.id);
            // Ids of another platform would name other people.
            let settings = settings.filter(|settings| settings.platform.name == running.platform);
            if let Some(settings) = settings {
                self.gateway.set_access(&running.id, plans::access(config, &running.id, settings));
                self.gateway.set_gate(&running.id, plans::gate(settings));
            }
        }
    }
}

/// What has changed, as the record has it. Secrets are hidden in what a change shows.
fn in_words(changes: &[Change]) -> String {
    let line = |change: &Change| format!("{}: {} → {}", change.path, change.before, change.after);
    let words = changes.iter().map(line).collect::<Vec<_>>().join(", ");
    if words.chars().count() <= RECORDED {
        return words;
    }
    // Of very much, at least what it was about.
    let paths: Vec<_> = changes.iter().map(|change| change.path.as_str()).collect();
    paths.join(", ").chars().take(RECORDED).collect()
}

/// Waits for a disk, but not for one that hangs.
async fn within_reason(written: impl Future<Output = ()>) {
    tokio::select! {
        () = written => {}
        () = SystemClock.sleep(LAST_WORDS) => {}
    }
}

/// What the sources of the configuration lead to.
pub(crate) struct ReadAgain {
    pub(crate) loaded: Loaded,
    pub(crate) changes: Vec<Change>,
    pub(crate) choice: Choice,
    pub(crate) switchboard: Arc<Switchboard>,
    pub(crate) sources: Sources,
}

/// Why a gateway does not start again.
pub(crate) enum NoRestart {
    /// It lives in a terminal chat.
    EndsWithChat,
    /// It would not come back; this is what is wrong with the configuration.
    Misconfigured(String),
}

#[async_trait]
impl Operator for Desk {
    fn model(&self) -> String {
        model::name(&self.state().choice.chain)
    }

    fn voice(&self) -> Option<String> {
        self.voice.clone()
    }

    fn wrong_configuration(&self) -> Option<String> {
        self.wrong()
    }

    fn refused_hooks(&self) -> Vec<api::RefusedHook> {
        let told = |refused: &Refused| api::RefusedHook {
            name: refused.name(),
            problem: self.redact(&refused.to_string()),
            denies: refused.denies.named(),
        };
        self.instruments.hooks().refused().iter().map(told).collect()
    }

    fn waits_for_restart(&self) -> Vec<api::WaitingChange> {
        let waiting = |change: &Change| api::WaitingChange {
            path: change.path.clone(),
            running: change.before.to_string(),
            configured: change.after.to_string(),
        };
        self.state().waiting.iter().map(waiting).collect()
    }

    async fn plan(&self) -> Result<api::ConfigPlan, String> {
        reload::plan(self).await
    }

    /// Reads the configuration again. The running one stays unless the new one is right as a whole.
    async fn reload(&self, by: &str) -> Result<api::Reloaded, String> {
        self.orders.give(by).await
    }

    fn stop(&self) {
        let why = match self.restarts {
            // Where there are no signals, whoever takes over asks like this.
            Restarts::Possible => signals::announced_at_the_door(&self.home).unwrap_or(Why::Stop),
            Restarts::Never => Why::ChatOver,
        };
        tracing::info!(why = why.in_words(), "ending; a signal meanwhile ends it at once");
        self.end(Ending::ForGood, why);
    }

    async fn restart(&self) -> Result<(), String> {
        Self::restart(self).await.map_err(|why| match why {
            NoRestart::EndsWithChat => {
                "the gateway lives in a terminal chat and ends with it".to_owned()
            }
            NoRestart::Misconfigured(problem) => {
                format!("it could not start with this configuration, so it goes on\n{problem}")
            }
        })
    }

    fn is_ending(&self) -> bool {
        self.end.asked.is_cancelled()
    }

    fn metrics_token(&self) -> Option<String> {
        let token = self.state().loaded.config().telemetry.metrics_token.clone();
        token.map(|token| token.expose().to_owned())
    }

    fn vitals(&self) -> Vitals {
        self.instruments.vitals()
    }
}
