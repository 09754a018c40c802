//! The HTTP listener's routes: one page at the root, webhooks below `/in`.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use talaria_gateway::Routes;
use talaria_model::AccountId;
use talaria_platform::{Peer, Surface};
use tower::ServiceExt;

/// What strangers can reach besides the probes and the metrics: whatever the platforms serve behind their own
/// checks.
pub(crate) fn routes(mounted: Routes) -> Router {
    Router::new()
        .route("/in/{account}", any(webhook_itself))
        .route("/in/{account}/", any(webhook_itself))
        .route("/in/{account}/{*rest}", any(webhook))
        .fallback(root)
        .with_state(mounted)
        .layer(middleware::from_fn(read_one_way))
}

/// Refuses a path that two readers could read differently, before anybody decides by it.
async fn read_one_way(request: Request, next: Next) -> Response {
    match is_canonical(request.uri().path()) {
        true => next.run(request).await,
        false => StatusCode::BAD_REQUEST.into_response(),
    }
}

/// Whether there is one way to read a path: nothing is empty, leads back, or is written as an escape that
/// could be written plainly or would change where a part ends.
fn is_canonical(path: &str) -> bool {
    let mut parts = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        if matches!(part, "." | "..") || (part.is_empty() && !is_last) || !is_plain(part) {
            return false;
        }
    }
    true
}

fn is_plain(part: &str) -> bool {
    let mut bytes = part.bytes();
    while let Some(byte) = bytes.next() {
        let is_escaped_well = match byte {
            b'%' => {
                let digits = [bytes.next(), bytes.next()].map(|it| it.and_then(hex));
                let [Some(high), Some(low)] = digits else { return false };
                let meant = high << 4 | low;
                !(meant.is_ascii_alphanumeric()
                    || meant.is_ascii_control()
                    || b"-._~/\\;%".contains(&meant))
            }
            b';' | b'\\' => false,
            _ => true,
        };
        if !is_escaped_well {
            return false;
        }
    }
    true
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

async fn root(State(mounted): State<Routes>, request: Request) -> Response {
    pass(mounted.root(), request).await
}

async fn webhook(
    State(mounted): State<Routes>,
    Path((account, _)): Path<(String, String)>,
    request: Request,
) -> Response {
    of_account(mounted, account, request).await
}

async fn webhook_itself(
    State(mounted): State<Routes>,
    Path(account): Path<String>,
    request: Request,
) -> Response {
    of_account(mounted, account, request).await
}

async fn of_account(mounted: Routes, account: String, request: Request) -> Response {
    let routes = AccountId::new(account).ok().and_then(|id| mounted.of(Surface::Webhook, &id));
    pass(routes, below(request, 2)).await
}

/// Hands a request to an account's routes, or says that there is nothing.
pub(crate) async fn pass(routes: Option<Router>, request: Request) -> Response {
    match routes {
        Some(routes) => routes.oneshot(request).await.into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The same request as the account's routes see it: without the first segments of the path. The path
/// stays as it was encoded; whoever routes it decodes it.
pub(crate) fn below(request: Request, segments: usize) -> Request<Body> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path();
    let rest = path.splitn(segments + 2, '/').nth(segments + 1).unwrap_or_default();
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    if let Ok(uri) = format!("/{rest}{query}").parse::<Uri>() {
        parts.uri = uri;
    }
    // The outer path's parameters would be taken for the inner path's.
    let peer = parts.extensions.remove::<Peer>();
    parts.extensions.clear();
    if let Some(peer) = peer {
        parts.extensions.insert(peer);
    }
    Request::from_parts(parts, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_read_one_way_only() {
        for yes in
            ["/", "", "/app.js", "/in/slack", "/in/slack/", "/in/b%C3%BCro/x", "/a%20b", "/~x/-_.y"]
        {
            assert!(is_canonical(yes), "{yes}");
        }
        for no in [
            "//",
            "/api//state",
            "/a/../b",
            "/..",
            "/./a",
            "/a/%2e%2e/b",
            "/%2E",
            "/in%2fslack",
            "/in/a%5Cb",
            "/in/%73lack",
            "/in/slack;x",
            "/a\\b",
            "/%00",
            "/%0d%0a",
            "/%",
            "/%2",
            "/%zz",
            "/%25",
            "/%3b",
        ] {
            assert!(!is_canonical(no), "{no}");
        }
    }

    #[test]
    fn what_is_mounted_below_sees_the_rest_of_the_path_as_it_was_sent() {
        for (sent, segments, seen) in [
            ("/terminal/stream?history=3", 1, "/stream?history=3"),
            ("/in/bot/hook/a%2Fb", 2, "/hook/a%2Fb"),
            ("/terminal/", 1, "/"),
        ] {
            let request = Request::builder().uri(sent).body(Body::empty()).expect("a request");
            assert_eq!(below(request, segments).uri().to_string(), seen);
        }
    }

    /// Answers with what it sees of the path.
    fn echo(whose: &'static str) -> Router {
        Router::new().fallback(async move |uri: Uri| format!("{whose} sees {uri}"))
    }

    /// The status and the body of the answer to a request for a path.
    async fn asked(mounted: &Routes, path: &str) -> (StatusCode, String) {
        let request = Request::builder().uri(path).body(Body::empty()).expect("a request");
        let answer = routes(mounted.clone()).oneshot(request).await.expect("it never fails");
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), 1024).await.expect("a short body");
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    fn mounted() -> Routes {
        let mounted = Routes::default();
        let account = |name: &str| AccountId::new(name).expect("a name");
        mounted.mount(Surface::Root, &account("web"), echo("web"));
        mounted.mount(Surface::Webhook, &account("slack"), echo("slack"));
        mounted.mount(Surface::Local, &account("terminal"), echo("terminal"));
        mounted
    }

    #[tokio::test]
    async fn a_request_reaches_whose_place_it_names_and_nobody_else() {
        let mounted = mounted();
        for (path, seen) in [
            ("/in/slack", "slack sees /"),
            ("/in/slack/", "slack sees /"),
            ("/in/slack/commands?a=b", "slack sees /commands?a=b"),
            ("/", "web sees /"),
            ("/app.js", "web sees /app.js"),
        ] {
            assert_eq!(asked(&mounted, path).await, (StatusCode::OK, seen.to_owned()), "{path}");
        }
        for path in ["/in/web/", "/in/terminal", "/in/nobody/x"] {
            assert_eq!(asked(&mounted, path).await.0, StatusCode::NOT_FOUND, "{path}");
        }
        assert_eq!(asked(&Routes::default(), "/").await.0, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn a_path_that_two_readers_could_read_differently_reaches_nobody() {
        let mounted = mounted();
        for path in ["//", "/in//slack", "/in/%73lack", "/in/web/../slack"] {
            assert_eq!(
                asked(&mounted, path).await,
                (StatusCode::BAD_REQUEST, String::new()),
                "{path}"
            );
        }
    }
}
