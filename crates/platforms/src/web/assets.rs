//! The page, built into the program.

use std::sync::LazyLock;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

use super::refusal::Refusal;

struct Asset {
    path: &'static str,
    mime: &'static str,
    body: &'static str,
    tag: HeaderValue,
}

macro_rules! assets {
    ($($path:literal $mime:literal $file:literal)*) => {
        [$(Asset::new($path, $mime, include_str!(concat!("../../../../web/chat/", $file)))),*]
    };
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    Vec::from(assets! {
        "/" "text/html; charset=utf-8" "index.html"
        "/style.css" "text/css; charset=utf-8" "style.css"
        "/icon.svg" "image/svg+xml" "icon.svg"
        "/theme.js" "text/javascript; charset=utf-8" "theme.js"
        "/app.js" "text/javascript; charset=utf-8" "app.js"
        "/api.js" "text/javascript; charset=utf-8" "api.js"
        "/commands.js" "text/javascript; charset=utf-8" "commands.js"
        "/composer.js" "text/javascript; charset=utf-8" "composer.js"
        "/dom.js" "text/javascript; charset=utf-8" "dom.js"
        "/live.js" "text/javascript; charset=utf-8" "live.js"
        "/login.js" "text/javascript; charset=utf-8" "login.js"
        "/outbox.js" "text/javascript; charset=utf-8" "outbox.js"
        "/page.js" "text/javascript; charset=utf-8" "page.js"
        "/people.js" "text/javascript; charset=utf-8" "people.js"
        "/sidebar.js" "text/javascript; charset=utf-8" "sidebar.js"
        "/title.js" "text/javascript; charset=utf-8" "title.js"
        "/transcript.js" "text/javascript; charset=utf-8" "transcript.js"
        "/view.js" "text/javascript; charset=utf-8" "view.js"
    })
});

impl Asset {
    fn new(path: &'static str, mime: &'static str, body: &'static str) -> Self {
        let digest = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(body));
        let tag = HeaderValue::from_str(&format!("\"{digest}\""))
            .expect("base64 in quotes is a header value");
        Self { path, mime, body, tag }
    }
}

/// The asset at the request's path. The browser keeps it and asks each time whether it changed, so
/// that an upgraded gateway never meets an old page.
pub(super) async fn serve(request: Request) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.path == request.uri().path()) else {
        return Refusal::NotFound.into_response();
    };
    let cached =
        request.headers().get_all(header::IF_NONE_MATCH).iter().any(|tag| tag == asset.tag);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.mime)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::ETAG, asset.tag.clone()),
    ];
    if cached {
        (StatusCode::NOT_MODIFIED, headers).into_response()
    } else {
        (headers, asset.body).into_response()
    }
}

/// Where there is something to serve.
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    ASSETS.iter().map(|asset| asset.path)
}
