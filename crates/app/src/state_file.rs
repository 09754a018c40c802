//! `gateway_state.json`: how the gateway is doing, for those who cannot ask it.
//!
//! It is replaced as a whole and only when something has changed, at most twice a second. Only the words
//! that a gateway begins, changes its state or ends with are waited for until the disk has them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use talaria_admin::Operator;
use talaria_clock::{Clock, Mark, SystemClock, rfc3339};
use talaria_gateway::{AccountState, AccountStatus, Gateway, TurnState, TurnStatus};
use talaria_machine::{Mode, Outlasts, Process, replace_to};

use crate::aside::aside;
use crate::boot::{Boot, Phase};
use crate::desk::Desk;
use crate::ending::Ending;
use crate::home::Home;

use crate::instance::{Kind, Record};

/// How often it is looked whether something has changed.
const LOOK: Duration = Duration::from_millis(500);

/// How often the number of turns is written, which changes all the time, and that there is anybody at all.
const CALM: Duration = Duration::from_secs(10);

/// How it stands with a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GatewayState {
    Starting,
    Running,
    /// It runs, and an account does not, or nothing gets through there.
    Degraded,
    /// It is ending.
    Draining,
    Stopped,
    StartupFailed,
}

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct State {
    #[serde(flatten)]
    record: Record,
    gateway_state: GatewayState,
    exit_reason: Option<String>,
    restart_requested: bool,
    active_agents: usize,
    boot: Vec<Phase>,
    platforms: BTreeMap<String, Platform>,
}

/// How an account is doing, in the words that scripts know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Platform {
    platform: &'static str,
    state: &'static str,
    error_code: Option<&'static str>,
    error_message: Option<String>,
    /// Why nothing that is said there gets through, and since when; nothing while it does.
    mute: Option<Mute>,
    updated_at: String,
}

impl Platform {
    /// Nobody connects it any more. What a human has to mend stays, and what somebody has paused.
    fn is_left(&mut self) {
        if !matches!(self.state, "paused" | "fatal") {
            self.state = "disconnected";
            self.updated_at = rfc3339(SystemClock.now());
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Mute {
    since: String,
    error_message: String,
}

/// What somebody reads who finds no gateway.
#[derive(Debug, Deserialize)]
pub(crate) struct LastSeen {
    #[serde(flatten)]
    process: Process,
    pub(crate) gateway_state: GatewayState,
    pub(crate) exit_reason: Option<String>,
    pub(crate) updated_at: String,
}

impl LastSeen {
    pub(crate) fn read(home: &Home) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path(home)).ok()?).ok()
    }

    /// In one sentence.
    pub(crate) fn in_words(&self) -> String {
        let Self { gateway_state, exit_reason, updated_at, .. } = self;
        let why = exit_reason.as_deref().unwrap_or("nobody knows why");
        match gateway_state {
            GatewayState::Stopped => format!("the last one ended at {updated_at}: {why}"),
            GatewayState::StartupFailed => {
                format!("the last one could not start at {updated_at}: {why}")
            }
            GatewayState::Starting
            | GatewayState::Running
            | GatewayState::Degraded
            | GatewayState::Draining => {
                format!("the last one died without a word after {updated_at}")
            }
        }
    }
}

/// Writes the file.
pub(crate) struct StateFile {
    record: Record,
    pen: Arc<Pen>,
}

/// What the file is written with, one at a time.
struct Pen {
    path: PathBuf,
    writing: Mutex<Writing>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writing {
    GoesOn,
    /// The last word was said: what was begun before and comes late is not written any more.
    IsOver,
}

impl StateFile {
    pub(crate) fn new(home: &Home, kind: Kind) -> Self {
        let pen = Pen { path: path(home), writing: Mutex::new(Writing::GoesOn) };
        Self { record: Record::own(kind), pen: Arc::new(pen) }
    }

    /// Says that it starts.
    pub(crate) fn starting(&self) {
        self.pen.write(&self.state(GatewayState::Starting), Outlasts::PowerCut, Writing::GoesOn);
    }

    /// Says why it does not start. A gateway that runs in its place knows better.
    pub(crate) fn startup_failed(&self, home: &Home, why: &str) {
        if Record::live(home).is_none() {
            let exit_reason = Some(why.to_owned());
            let state = State { exit_reason, ..self.state(GatewayState::StartupFailed) };
            self.pen.write(&state, Outlasts::PowerCut, Writing::IsOver);
        }
    }

    /// Says that it was ended while it started, if it had begun to.
    pub(crate) fn never_started(&self, home: &Home, why: &str) {
        if LastSeen::read(home).is_some_and(|last| last.process == self.record.process) {
            let exit_reason = Some(format!("{why}, before it had started"));
            let state = State { exit_reason, ..self.state(GatewayState::Stopped) };
            self.pen.write(&state, Outlasts::PowerCut, Writing::IsOver);
        }
    }

    /// Keeps it up to date for as long as it is polled.
    pub(crate) async fn keep(
        &self,
        gateway: &Gateway,
        desk: &Arc<Desk>,
        boot: &Boot,
    ) -> Infallible {
        let mut written: Option<State> = None;
        let mut at = SystemClock.mark();
        loop {
            let state = self.present(gateway, desk, boot);
            let is_old = SystemClock.mark().since(at) >= CALM;
            let changed = written.as_ref().is_none_or(|written| {
                let busy = State { active_agents: written.active_agents, ..state.clone() };
                *written != busy
            });
            if changed || is_old {
                let before = written.as_ref().map(|written| written.gateway_state);
                let outlasts = match before == Some(state.gateway_state) {
                    true => Outlasts::Process,
                    false => Outlasts::PowerCut,
                };
                let (pen, now) = (self.pen.clone(), state.clone());
                aside(move || pen.write(&now, outlasts, Writing::GoesOn)).await;
                (written, at) = (Some(state), SystemClock.mark());
            }
            SystemClock.sleep(LOOK).await;
        }
    }

    /// Says that it has ended.
    pub(crate) async fn stopped(&self, gateway: &Gateway, desk: &Arc<Desk>, boot: &Boot) {
        let mut state = self.present(gateway, desk, boot);
        state.platforms.values_mut().for_each(Platform::is_left);
        let state = State { gateway_state: GatewayState::Stopped, active_agents: 0, ..state };
        let pen = self.pen.clone();
        aside(move || pen.write(&state, Outlasts::PowerCut, Writing::IsOver)).await;
    }

    fn present(&self, gateway: &Gateway, desk: &Arc<Desk>, boot: &Boot) -> State {
        let accounts = gateway.accounts();
        let (decision, pace) = desk.ending();
        let gateway_state = if desk.is_ending() {
            GatewayState::Draining
        } else if gateway.is_starting() {
            GatewayState::Starting
        } else {
            standing(&accounts, SystemClock.mark())
        };
        let redact = |text: &str| desk.redact(text);
        State {
            exit_reason: decision.as_ref().map(|(_, why)| {
                let words = [Some(why.in_words()), pace.in_words()];
                words.into_iter().flatten().collect::<Vec<_>>().join("; ")
            }),
            restart_requested: decision.is_some_and(|(ending, _)| ending == Ending::Again),
            active_agents: TurnStatus::count(&gateway.turns(), TurnState::Working).0,
            boot: boot.phases(),
            platforms: accounts.iter().map(|account| platform(account, &redact)).collect(),
            ..self.state(gateway_state)
        }
    }

    fn state(&self, gateway_state: GatewayState) -> State {
        State {
            record: self.record.clone(),
            gateway_state,
            exit_reason: None,
            restart_requested: false,
            active_agents: 0,
            boot: Vec::new(),
            platforms: BTreeMap::new(),
        }
    }
}

impl Pen {
    fn write(&self, state: &State, outlasts: Outlasts, then: Writing) {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if *writing == Writing::IsOver {
            return;
        }
        *writing = then;
        let mut file = json!(state);
        file["updated_at"] = rfc3339(SystemClock.now()).into();
        let written = serde_json::to_vec_pretty(&file)
            .map_err(std::io::Error::from)
            .and_then(|bytes| replace_to(&self.path, &bytes, Mode::PRIVATE, outlasts));
        if let Err(error) = written {
            tracing::warn!(%error, "gateway_state.json could not be written");
        }
    }
}

/// How it stands with a gateway that has started and goes on.
fn standing(accounts: &[AccountStatus], now: Mark) -> GatewayState {
    match accounts.iter().any(|account| account.is_failing(now)) {
        true => GatewayState::Degraded,
        false => GatewayState::Running,
    }
}

fn platform(account: &AccountStatus, redact: &dyn Fn(&str) -> String) -> (String, Platform) {
    let (state, error_code, problem) = match &account.state {
        AccountState::Connecting if account.tried => ("retrying", None, None),
        AccountState::Connecting => ("connecting", None, None),
        AccountState::Connected => ("connected", None, None),
        AccountState::Waiting { reason } => ("retrying", Some("unreachable"), Some(reason.clone())),
        AccountState::Deaf { reason } => ("retrying", Some("deaf"), Some(reason.clone())),
        AccountState::Unproven { reason } => ("connected", Some("unproven"), Some(reason.clone())),
        AccountState::Paused => ("paused", None, None),
        AccountState::Contested { problem, hint } => {
            ("retrying", Some("contested"), Some(format!("{problem}; {hint}")))
        }
        AccountState::Refused { problem, hint } => {
            ("fatal", Some("refused"), Some(format!("{problem}; {hint}")))
        }
        AccountState::Fatal { problem, hint } => {
            ("fatal", Some("fatal"), Some(format!("{problem}; {hint}")))
        }
    };
    let platform = Platform {
        platform: account.platform,
        state,
        error_code,
        error_message: problem.as_deref().map(redact),
        mute: account
            .mute
            .as_ref()
            .map(|mute| Mute { since: rfc3339(mute.since), error_message: redact(&mute.why) }),
        updated_at: rfc3339(account.since),
    };
    (account.id.to_string(), platform)
}

fn path(home: &Home) -> PathBuf {
    home.path().join("gateway_state.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::{AccountId, Timestamp};
    use talaria_session::Surface;

    #[test]
    fn a_gateway_with_an_account_on_which_nothing_gets_through_is_degraded() {
        let begun = SystemClock.mark();
        let mute = talaria_gateway::Mute {
            since: Timestamp::default(),
            begun,
            tried: begun,
            why: "no route".into(),
        };
        let account = AccountStatus {
            id: AccountId::literal("main"),
            platform: "any",
            surface: Surface::Platform,
            state: AccountState::Connected,
            since: Timestamp::default(),
            heard: None,
            spoke: None,
            mute: Some(mute),
            generation: 1,
            crashes: 0,
            deafnesses: 0,
            tried: true,
            traceless: 0,
            denied_lately: 0,
            stranger: None,
        };
        let after = |seconds| {
            standing(std::slice::from_ref(&account), begun + Duration::from_secs(seconds))
        };
        assert_eq!((after(59), after(60)), (GatewayState::Running, GatewayState::Degraded));
        // Nothing was tried any more, so nothing is known.
        assert_eq!((after(599), after(600)), (GatewayState::Degraded, GatewayState::Running));
    }
}
