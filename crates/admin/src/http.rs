//! The HTTP listener's routes: one page at the root, webhooks below `/in`, and a pulse.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use talaria_gateway::Routes;
use talaria_model::AccountId;
use talaria_platform::Surface;
use tower::ServiceExt;

/// What strangers can reach: a pulse, and whatever the platforms serve behind their own checks.
pub(crate) fn routes(mounted: Routes) -> Router {
    Router::new()
        .route("/healthz", get(|| async { StatusCode::NO_CONTENT }))
        .route("/in/{account}/{*rest}", any(webhook))
        .fallback(root)
        .with_state(mounted)
}

async fn root(State(mounted): State<Routes>, request: Request) -> Response {
    pass(mounted.root(), request).await
}

async fn webhook(
    State(mounted): State<Routes>,
    Path((account, rest)): Path<(String, String)>,
    request: Request,
) -> Response {
    let routes = AccountId::new(account).ok().and_then(|id| mounted.of(Surface::Webhook, &id));
    pass(routes, below(request, &rest)).await
}

/// Hands a request to an account's routes, or says that there is nothing.
pub(crate) async fn pass(routes: Option<Router>, request: Request) -> Response {
    match routes {
        Some(routes) => routes.oneshot(request).await.into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The same request as the account's routes see it: with the path below their place.
pub(crate) fn below(request: Request, rest: &str) -> Request<Body> {
    let (mut parts, body) = request.into_parts();
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    if let Ok(uri) = format!("/{rest}{query}").parse::<Uri>() {
        parts.uri = uri;
    }
    // The outer path's parameters would be taken for the inner path's.
    parts.extensions.clear();
    Request::from_parts(parts, body)
}
