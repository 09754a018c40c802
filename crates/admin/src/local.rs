//! The local API: what the command line asks a running gateway.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use futures::StreamExt;
use serde::Deserialize;
use talaria_clock::rfc3339;
use talaria_gateway::{AccountState, Gateway, PauseError, TurnState, TurnStatus};
use talaria_model::{AccountId, SessionId};
use talaria_platform::Surface;
use talaria_session::Pause;
use talaria_session::budget::Day;
use talaria_store::{Failed, Presence, Queues, Reading, Told};

use crate::answers::{self, AnswerError, Listing, Pruning};
use crate::doors::Operator;
use crate::guests::{self, OPERATOR, Pairing};
use crate::probes::Probes;
use crate::why::{self, Words};
use crate::{api, http, metrics};

/// How often it is looked whether a session has taken its new title, and how long it is waited between.
const TITLE_LOOKS: u32 = 100;
const TITLE_REST: Duration = Duration::from_millis(20);

/// How many losses are told one by one.
const LOSSES: usize = 100;

#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) gateway: Gateway,
    pub(crate) operator: Arc<dyn Operator>,
    pub(crate) probes: Probes,
    pub(crate) http: String,
}

/// What this user's processes can reach.
pub(crate) fn routes(desk: Desk) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/sessions", get(sessions))
        .route("/v1/search", get(search))
        .route("/v1/transcript", get(transcript))
        .route("/v1/export", get(export))
        .route("/v1/why", get(because))
        .route("/v1/metrics", get(numbers))
        .route("/v1/rename", post(rename))
        .route("/v1/prune", post(prune))
        .route("/v1/pair", post(pair))
        .route("/v1/audit", get(audit))
        .route("/v1/approvals", get(approvals))
        .route("/v1/spending", get(spending))
        .route("/v1/approvals/revoke", post(revoke))
        .route("/v1/platforms", post(platforms))
        .route("/v1/config/plan", get(plan))
        .route("/v1/reload", post(reload))
        .route("/v1/stop", post(stop))
        .route("/v1/restart", post(restart))
        .route("/{account}/{*rest}", any(account))
        .with_state(desk)
}

async fn status(State(desk): State<Desk>) -> Result<Json<api::Status>, Refusal> {
    let gateway = &desk.gateway;
    let counts = gateway.store().counts().await.map_err(AnswerError::from)?;
    let Queues { waiting, .. } = gateway.store().queues().await.map_err(AnswerError::from)?;
    let failed = gateway.store().failed(LOSSES).await.map_err(AnswerError::from)?;
    let (accounts, turns) = (gateway.accounts(), gateway.turns());
    let (turns_working, turn_since) = TurnStatus::count(&turns, TurnState::Working);
    let (turns_waiting, turns_waiting_since) = TurnStatus::count(&turns, TurnState::Waiting);
    Ok(Json(api::Status {
        version: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        state: desk.probes.word().await.into(),
        started: rfc3339(gateway.started()),
        uptime_seconds: gateway.uptime().as_secs(),
        model: desk.operator.model(),
        voice: desk.operator.voice(),
        configuration: desk.operator.wrong_configuration(),
        waits_for_restart: desk.operator.waits_for_restart(),
        http: desk.http.clone(),
        denied_without_a_trace: accounts.iter().map(|account| account.traceless).sum(),
        accounts: accounts.into_iter().map(account_of).collect(),
        refused_hooks: desk.operator.refused_hooks(),
        sessions: counts.sessions,
        sessions_in_memory: gateway.lanes_in_memory() as u64,
        turns_in_hand: counts.turns_in_hand,
        turns_working: turns_working as u64,
        turn_since: turn_since.map(rfc3339),
        turns_waiting: turns_waiting as u64,
        turns_waiting_since: turns_waiting_since.map(rfc3339),
        unread: counts.unread,
        waiting: waiting.many,
        waiting_since: waiting.oldest.map(rfc3339),
        quarantined: counts.quarantined,
        denied: counts.denied,
        undelivered: counts.undelivered,
        failed: counts.failed,
        losses: failed.into_iter().map(loss_of).collect(),
        entries: counts.entries,
    }))
}

fn loss_of(failed: Failed) -> api::Loss {
    api::Loss {
        account: failed.outbound.to.account.to_string(),
        chat: failed.outbound.to.chat.id.to_string(),
        at: rfc3339(failed.at),
        reason: failed.reason,
        told: failed.told == Told::Yes,
    }
}

pub(crate) fn account_of(status: talaria_gateway::AccountStatus) -> api::Account {
    let (state, problem) = match status.state {
        AccountState::Connecting => ("connecting", None),
        AccountState::Connected => ("connected", None),
        AccountState::Waiting { reason } => ("waiting", Some(reason)),
        AccountState::Deaf { reason } => ("deaf", Some(reason)),
        AccountState::Unproven { reason } => ("unproven", Some(reason)),
        AccountState::Paused => ("paused", None),
        AccountState::Contested { problem, hint } => {
            ("contested", Some(format!("{problem}; {hint}")))
        }
        AccountState::Fatal { problem, hint } => ("fatal", Some(format!("{problem}; {hint}"))),
        AccountState::Refused { problem, hint } => ("refused", Some(format!("{problem}; {hint}"))),
    };
    api::Account {
        name: status.id.to_string(),
        platform: status.platform.into(),
        state: state.into(),
        problem,
        heard: status.heard.map(rfc3339),
        spoke: status.spoke.map(rfc3339),
        mute: status.mute.map(|mute| format!("{}, since {}", mute.why, rfc3339(mute.since))),
        crashes: status.crashes,
        denied_lately: status.denied_lately,
        stranger: status.stranger.map(|stranger| api::Stranger {
            id: stranger.id.to_string(),
            at: rfc3339(stranger.at),
        }),
    }
}

async fn numbers(State(desk): State<Desk>) -> Json<String> {
    Json(metrics::page(&desk.gateway, &desk.operator.vitals()).await)
}

async fn sessions(
    State(desk): State<Desk>,
    Query(listing): Query<Listing>,
) -> Result<Json<api::Sessions>, Refusal> {
    Ok(Json(answers::sessions(desk.gateway.store().as_ref(), &listing).await?))
}

async fn search(
    State(desk): State<Desk>,
    Query(listing): Query<Listing>,
) -> Result<Json<Vec<api::Found>>, Refusal> {
    Ok(Json(answers::search(desk.gateway.store().as_ref(), &listing).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    name: String,
    limit: usize,
}

async fn transcript(
    State(desk): State<Desk>,
    Query(which): Query<Which>,
) -> Result<Json<api::Transcript>, Refusal> {
    let store = desk.gateway.store().as_ref();
    Ok(Json(answers::transcript(store, &which.name, which.limit).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    name: String,
    #[serde(default)]
    taken_back: bool,
}

async fn export(State(desk): State<Desk>, Query(wish): Query<Wish>) -> Result<Response, Refusal> {
    let store = desk.gateway.store();
    let life = answers::named(store.as_ref(), &wish.name).await?;
    let reading = if wish.taken_back { Reading::Everything } else { Reading::Standing };
    answers::record_export(store.as_ref(), &life, desk.gateway.clock().now()).await?;
    let lines = answers::export(store.clone(), life, reading).map(|line| {
        let mut bytes = serde_json::to_vec(&line)?;
        bytes.push(b'\n');
        Ok::<_, serde_json::Error>(bytes)
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(lines)).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wonder {
    what: String,
    #[serde(default)]
    text: bool,
}

async fn because(
    State(desk): State<Desk>,
    Query(wonder): Query<Wonder>,
) -> Result<Json<api::Why>, Refusal> {
    let words = if wonder.text { Words::Shown } else { Words::Hidden };
    let gateway = &desk.gateway;
    Ok(Json(why::why(gateway.store().as_ref(), Some(gateway), &wonder.what, words).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Naming {
    name: String,
    title: String,
}

async fn rename(
    State(desk): State<Desk>,
    Query(naming): Query<Naming>,
) -> Result<Json<api::Session>, Refusal> {
    let store = desk.gateway.store().as_ref();
    let life = answers::named(store, &naming.name).await?;
    let title = answers::title(&naming.title)?;
    if life.presence == Presence::Present {
        // Only a step of the session keeps what is said in it at the same moment.
        let (key, id) = (life.key.clone(), life.past.id.clone());
        desk.gateway.rename(key, id, title.clone());
        return written(&desk, &life.past.id, &title).await.map(Json);
    }
    store.rename(&life.past.id, &title).await.map_err(AnswerError::from)?;
    Ok(Json(answers::line(store, &life.past.id).await?))
}

/// The session once its new title is written.
async fn written(desk: &Desk, life: &SessionId, title: &str) -> Result<api::Session, Refusal> {
    for _ in 0..TITLE_LOOKS {
        let line = answers::line(desk.gateway.store().as_ref(), life).await?;
        if line.title == title {
            return Ok(line);
        }
        desk.gateway.clock().sleep(TITLE_REST).await;
    }
    let problem = format!("{life} is busy; its title changes as soon as it is not");
    Err(AnswerError::Conflict(problem).into())
}

async fn approvals(State(desk): State<Desk>) -> Result<Json<Vec<api::Granted>>, Refusal> {
    Ok(Json(answers::approvals(desk.gateway.store().as_ref()).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Daily {
    day: i32,
}

async fn spending(
    State(desk): State<Desk>,
    Query(daily): Query<Daily>,
) -> Result<Json<Vec<api::Spending>>, Refusal> {
    let day = Day::numbered(daily.day);
    Ok(Json(answers::spending(desk.gateway.store().as_ref(), day).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Meant {
    id: String,
}

async fn revoke(
    State(desk): State<Desk>,
    Query(meant): Query<Meant>,
) -> Result<Json<api::Granted>, Refusal> {
    Ok(Json(
        answers::revoke(desk.gateway.store().as_ref(), &meant.id, desk.gateway.clock().now())
            .await?,
    ))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Age {
    older_than_seconds: u64,
    dry_run: bool,
}

async fn prune(
    State(desk): State<Desk>,
    Query(age): Query<Age>,
) -> Result<Json<api::Pruned>, Refusal> {
    let (store, now) = (desk.gateway.store().as_ref(), desk.gateway.clock().now());
    let older_than = Duration::from_secs(age.older_than_seconds);
    let doing = if age.dry_run { Pruning::DryRun } else { Pruning::ForGood };
    let spare = desk.gateway.sessions_in_memory();
    Ok(Json(answers::prune(store, now, older_than, &spare, doing).await?))
}

async fn pair(
    State(desk): State<Desk>,
    Query(pairing): Query<Pairing>,
) -> Result<Json<api::Pairing>, Refusal> {
    let (account, gateway) = (pairing.account()?, &desk.gateway);
    let done = gateway.pair(&account, &pairing.wish(), OPERATOR).await;
    Ok(Json(guests::told(&account, done.map_err(AnswerError::from)?, gateway.clock().now())?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    after: u64,
    limit: usize,
}

async fn audit(
    State(desk): State<Desk>,
    Query(rows): Query<Rows>,
) -> Result<Json<Vec<api::AuditRow>>, Refusal> {
    Ok(Json(guests::audited(desk.gateway.store().as_ref(), rows.after, rows.limit).await?))
}

async fn platforms(
    State(desk): State<Desk>,
    Query(pausing): Query<api::Pausing>,
) -> Result<Json<api::Paused>, Refusal> {
    let pause = match pausing.wish {
        api::PauseWish::Pause => Pause::Pause,
        api::PauseWish::Resume => Pause::Resume,
    };
    let no_account = |name: &str| Refusal {
        status: StatusCode::NOT_FOUND,
        problem: format!("there is no account {name}; `talaria status` lists them"),
    };
    let id = AccountId::new(pausing.account.as_str()).map_err(|_| no_account(&pausing.account))?;
    match desk.gateway.pause(&id, pause, OPERATOR).await {
        Ok(()) => Ok(Json(api::Paused { account: id.to_string(), wish: pausing.wish })),
        Err(PauseError::NoAccount(name)) => Err(no_account(&name)),
        Err(PauseError::Unkept(problem)) => {
            Err(Refusal { status: StatusCode::SERVICE_UNAVAILABLE, problem })
        }
    }
}

async fn plan(State(desk): State<Desk>) -> Result<Json<api::ConfigPlan>, Refusal> {
    desk.operator.plan().await.map(Json).map_err(wrong)
}

async fn reload(State(desk): State<Desk>) -> Result<Json<api::Reloaded>, Refusal> {
    desk.operator.reload(OPERATOR).await.map(Json).map_err(wrong)
}

fn wrong(problem: String) -> Refusal {
    let problem = format!("the configuration is wrong, so the running one stays\n{problem}");
    Refusal { status: StatusCode::UNPROCESSABLE_ENTITY, problem }
}

async fn stop(State(desk): State<Desk>) -> StatusCode {
    desk.operator.stop();
    StatusCode::ACCEPTED
}

async fn restart(State(desk): State<Desk>) -> Result<StatusCode, Refusal> {
    let refused = |problem| Refusal { status: StatusCode::UNPROCESSABLE_ENTITY, problem };
    desk.operator.restart().await.map(|()| StatusCode::ACCEPTED).map_err(refused)
}

async fn account(
    State(desk): State<Desk>,
    Path((account, _)): Path<(String, String)>,
    request: Request,
) -> Response {
    // What is said goes on at the next start, and there is nobody to say when that is.
    if desk.operator.is_ending() && request.method() != Method::GET {
        let problem = "the gateway is ending".to_owned();
        return Refusal { status: StatusCode::GONE, problem }.into_response();
    }
    let routes =
        AccountId::new(account).ok().and_then(|id| desk.gateway.routes().of(Surface::Local, &id));
    http::pass(routes, http::below(request, 1)).await
}

struct Refusal {
    status: StatusCode,
    problem: String,
}

impl From<AnswerError> for Refusal {
    fn from(error: AnswerError) -> Self {
        let status = match error {
            AnswerError::Request(_) => StatusCode::BAD_REQUEST,
            AnswerError::Missing(_) => StatusCode::NOT_FOUND,
            AnswerError::Conflict(_) => StatusCode::CONFLICT,
            AnswerError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self { status, problem: error.to_string() }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(api::Problem { problem: self.problem })).into_response()
    }
}
