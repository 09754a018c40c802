//! Every address of the page, in one table.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Extension, FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use http::{HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use talaria_platform::{Peer, Visit};

use super::cookie::Cookie;
use super::login::{Login, Notice, Rebuff};
use super::pass::Issued;
use super::refusal::Refusal;
use super::{Site, assets, files, guard, people, read, say, stream};

/// The largest JSON a page may send.
const LARGEST_JSON: usize = 256 * 1024;

/// The largest JSON that says nothing but a token, an id or a code, and a few words around it.
const LARGEST_TOKEN: usize = 4 * 1024;

/// The page and what it asks for. The guard stands before all of it, unknown paths included.
pub(super) fn routes(site: Arc<Site>) -> Router {
    let token = DefaultBodyLimit::max(LARGEST_TOKEN);
    let mut routes = Router::new();
    for path in assets::paths() {
        routes = routes.route(path, get(assets::serve));
    }
    routes
        .route("/api/login", post(login).layer(token))
        .route("/api/logout", post(logout))
        .route("/api/state", get(read::state))
        .route("/api/conversations", get(read::conversations))
        .route("/api/conversations/{id}/history", get(read::history))
        .route("/api/conversations/{id}/messages", post(say::say))
        .route("/api/conversations/{id}/press", post(say::press))
        .route("/api/conversations/{id}/stop", post(say::stop))
        .route("/api/search", get(read::search))
        .route("/api/files", post(files::upload))
        .route("/api/files/{id}", get(files::download))
        .route("/api/events", get(stream::events))
        .route("/api/people", get(people::lobbies))
        .route("/api/people/{account}", post(people::decide).layer(token))
        .fallback(|| async { Refusal::NotFound })
        .layer(DefaultBodyLimit::max(LARGEST_JSON))
        .layer(middleware::from_fn_with_state(site.clone(), guard::guard))
        .with_state(site)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Credential {
    token: String,
}

async fn login(
    State(site): State<Arc<Site>>,
    Extension(cookie): Extension<Cookie>,
    peer: Option<Extension<Peer>>,
    Input(Credential { token }): Input<Credential>,
) -> Result<Response, Refusal> {
    let peer = peer.map(|Extension(peer)| peer);
    match site.door.hand_in(&token, peer) {
        // Nobody comes in without a trace. The token is used up all the same.
        Login::Granted => site.record(Visit::LoggedIn(peer)).await?,
        Login::Wrong => return Err(Refusal::WrongToken),
        Login::TooOften(rebuff) => return Err(site.rebuff(rebuff, peer).await),
    }
    let Issued { value, lasts } = site.passes.issue();
    Ok(with_cookie(cookie.set(&value, lasts)))
}

/// Ends every login. A pass is not stored, so there is no way to end only one.
async fn logout(
    State(site): State<Arc<Site>>,
    Extension(cookie): Extension<Cookie>,
) -> Result<Response, Refusal> {
    site.passes.revoke_all().map_err(|error| {
        tracing::error!(%error, "the login key could not be replaced");
        Refusal::TryAgain("the login key could not be replaced")
    })?;
    // Every login has ended, whether that can be written down or not.
    let _ = site.record(Visit::LoggedOut).await;
    Ok(with_cookie(cookie.remove()))
}

impl Site {
    async fn rebuff(&self, Rebuff { wait, notice }: Rebuff, peer: Option<Peer>) -> Refusal {
        if notice == Notice::Due {
            // They are refused whether that can be written down or not.
            let _ = self.record(Visit::Rebuffed(peer)).await;
        }
        Refusal::TooOften(wait)
    }
}

fn with_cookie(cookie: HeaderValue) -> Response {
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
}

/// A JSON body of exactly this shape.
pub(super) struct Input<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Site>> for Input<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, site: &Arc<Site>) -> Result<Self, Refusal> {
        match Json::from_request(request, site).await {
            Ok(Json(input)) => Ok(Self(input)),
            Err(JsonRejection::MissingJsonContentType(_)) => Err(Refusal::UnknownType),
            Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                Err(Refusal::TooLarge)
            }
            Err(_) => Err(Refusal::Malformed("the request is not of the expected shape")),
        }
    }
}
