//! `/healthz`, `/startupz` and `/readyz`: what whoever watches the process asks.
//!
//! Strangers may ask on the HTTP listener and get one word. Who is not connected, and why, is told on the
//! local socket only.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use talaria_clock::Mark;
use talaria_gateway::{AccountState, AccountStatus, Gateway, TurnState, TurnStatus};
use talaria_session::Surface;

use crate::doors::Operator;
use crate::pulse::Pulse;
use crate::{api, local};

/// Who is asked.
#[derive(Clone)]
pub(crate) struct Probes {
    pulse: Pulse,
    gateway: Gateway,
    operator: Arc<dyn Operator>,
}

impl Probes {
    pub(crate) fn new(gateway: &Gateway, operator: Arc<dyn Operator>) -> Self {
        Self { pulse: Pulse::new(gateway), gateway: gateway.clone(), operator }
    }

    /// For strangers.
    pub(crate) fn in_a_word(self) -> Router {
        Router::new()
            .route("/healthz", get(health))
            .route("/startupz", get(startup))
            .route("/readyz", get(readiness))
            .with_state(self)
    }

    /// For whoever may know everything.
    pub(crate) fn in_detail(self) -> Router {
        Router::new().route("/readyz", get(readiness_in_detail)).with_state(self)
    }

    /// How it is doing.
    pub(crate) async fn word(&self) -> &'static str {
        self.readiness().await.word()
    }

    async fn readiness(&self) -> Readiness {
        if self.operator.is_ending() {
            Readiness::Draining
        } else if self.gateway.is_starting() {
            Readiness::Starting
        } else if self.pulse.feel().await.problem().is_some() {
            Readiness::Unwritable
        } else {
            of_accounts(&self.gateway.accounts(), self.gateway.clock().mark())
        }
    }
}

/// What the accounts come to at this moment. The operator's own, which are served by the process itself,
/// tell nothing about others.
fn of_accounts(accounts: &[AccountStatus], now: Mark) -> Readiness {
    let is_wanted = |account: &&AccountStatus| {
        account.surface == Surface::Platform && account.state != AccountState::Paused
    };
    let mut wanted = accounts.iter().filter(is_wanted);
    // It is connected; and who waits for requests gets none while nobody is sent here.
    let may_hear = |account: &AccountStatus| matches!(account.state, AccountState::Unproven { .. });
    let serves = |account: &AccountStatus| !account.is_failing(now) || may_hear(account);
    if wanted.clone().next().is_some() && !wanted.any(serves) {
        Readiness::Unconnected
    } else if accounts.iter().any(|account| account.is_failing(now)) {
        Readiness::Degraded
    } else {
        Readiness::Ready
    }
}

/// Whether messages are taken in and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readiness {
    /// Not every account has been connected once.
    Starting,
    /// Every account is, or was paused.
    Ready,
    /// Every account serves or is known not to.
    Degraded,
    /// There are accounts on platforms, and each of them is not connected, or mute.
    Unconnected,
    /// It is ending.
    Draining,
    /// The store does not take writes.
    Unwritable,
}

impl Readiness {
    const fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Unconnected => "unconnected",
            Self::Draining => "draining",
            Self::Unwritable => "unwritable",
        }
    }

    const fn code(self) -> StatusCode {
        match self {
            Self::Ready | Self::Degraded => StatusCode::OK,
            Self::Starting | Self::Unconnected | Self::Draining | Self::Unwritable => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }
}

async fn health(State(probes): State<Probes>) -> Response {
    match probes.pulse.feel().await.problem() {
        None => StatusCode::NO_CONTENT.into_response(),
        Some(problem) => {
            let problem = Json(api::Problem { problem: problem.into() });
            (StatusCode::SERVICE_UNAVAILABLE, problem).into_response()
        }
    }
}

async fn startup(State(probes): State<Probes>) -> Response {
    let (code, word) = match probes.gateway.is_starting() {
        false => (StatusCode::OK, "started"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "starting"),
    };
    (code, Json(api::Word { status: word.into() })).into_response()
}

async fn readiness(State(probes): State<Probes>) -> Response {
    let readiness = probes.readiness().await;
    (readiness.code(), Json(api::Word { status: readiness.word().into() })).into_response()
}

async fn readiness_in_detail(State(probes): State<Probes>) -> Json<api::Readiness> {
    let readiness = probes.readiness().await;
    let accounts = probes.gateway.accounts().into_iter().map(local::account_of);
    let status = readiness.word().into();
    Json(api::Readiness {
        status,
        turns: TurnStatus::count(&probes.gateway.turns(), TurnState::Working).0 as u64,
        accounts: accounts.collect(),
    })
}

/// Lets a request wait until the accounts that always exist have been connected once: what they serve
/// would not be there before.
pub(crate) async fn once_started(
    State(gateway): State<Gateway>,
    request: Request,
    next: Next,
) -> Response {
    gateway.first_connections().await;
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use talaria_clock::{Clock, SystemClock};
    use talaria_gateway::Mute;
    use talaria_model::{AccountId, Timestamp};

    fn account(surface: Surface, state: AccountState) -> AccountStatus {
        AccountStatus {
            id: AccountId::literal("main"),
            platform: "any",
            surface,
            state,
            since: Timestamp::default(),
            heard: None,
            spoke: None,
            mute: None,
            generation: 1,
            crashes: 0,
            deafnesses: 0,
            tried: true,
            traceless: 0,
            denied_lately: 0,
            stranger: None,
        }
    }

    #[test]
    fn a_gateway_that_nobody_is_heard_through_is_not_ready() {
        use Readiness::{Degraded, Ready, Unconnected};
        let own = || account(Surface::Own, AccountState::Connected);
        let broken = || AccountState::Refused { problem: "no".into(), hint: "yes".into() };
        let there = |state: AccountState| account(Surface::Platform, state);
        let begun = SystemClock.mark();
        let now = begun + Duration::from_secs(100);
        let mute = |seconds: u64| {
            let begun = begun + Duration::from_secs(100 - seconds);
            let mute =
                Mute { since: Timestamp::default(), begun, tried: begun, why: "no route".into() };
            AccountStatus { mute: Some(mute), ..there(AccountState::Connected) }
        };
        for (accounts, expected, code) in [
            (vec![own()], Ready, 200),
            (vec![own(), there(AccountState::Connected)], Ready, 200),
            (vec![own(), there(AccountState::Connected), there(broken())], Degraded, 200),
            (vec![own(), there(broken())], Unconnected, 503),
            (vec![own(), there(broken()), there(AccountState::Paused)], Unconnected, 503),
            (vec![own(), there(AccountState::Paused)], Ready, 200),
            (vec![account(Surface::Own, broken())], Degraded, 200),
            // Nobody would be sent there any more, so that nothing could ever prove that it hears.
            (vec![own(), there(AccountState::Unproven { reason: "deaf".into() })], Degraded, 200),
            (vec![own(), there(AccountState::Deaf { reason: "deaf".into() })], Unconnected, 503),
            (vec![own(), mute(59)], Ready, 200),
            (vec![own(), mute(60)], Unconnected, 503),
            (vec![own(), mute(60), there(AccountState::Connected)], Degraded, 200),
            (vec![own(), AccountStatus { state: AccountState::Paused, ..mute(60) }], Ready, 200),
        ] {
            let readiness = of_accounts(&accounts, now);
            assert_eq!((readiness, readiness.code().as_u16()), (expected, code), "{accounts:?}");
        }
    }
}
