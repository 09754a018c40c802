//! Who may ask for what. Every request passes here, whatever its path, before anything reads it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Uri};
use talaria_platform::{ConnectError, Hurry};

use super::Site;
use super::cookie::{Cookie, FETCHED_FROM};
use super::pass::{Issued, Pass, Recognised};
use super::refusal::Refusal;
use super::term::Term;

/// Where the page puts the token of its pass.
pub(super) const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-talaria-csrf");

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'";

/// Names that hold credentials elsewhere. A credential in an address ends up in histories and logs.
const CREDENTIAL_NAMES: [&str; 8] =
    ["token", "login", "access_token", "auth", "key", "password", "secret", "csrf"];

/// The names this gateway answers to.
pub(super) struct Hosts(Vec<String>);

impl Hosts {
    pub(super) fn new(allowed: &[String]) -> Result<Self, ConnectError> {
        for name in allowed {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
            let address = name.parse::<Ipv6Addr>().is_ok();
            if name.is_empty() || !(name.chars().all(plain) || address) {
                return Err(ConnectError::Refused {
                    problem: format!(
                        "http.allowed_hosts contains `{name}`, which is not a host name"
                    ),
                    hint: "write names like talaria.example.org, without scheme, port and path"
                        .into(),
                });
            }
        }
        Ok(Self(allowed.iter().map(|name| name.to_ascii_lowercase()).collect()))
    }

    fn serve(&self, host: &Host) -> bool {
        host.is_loopback() || self.0.contains(&host.name)
    }
}

/// The name and port a request was sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    name: String,
    port: Option<u16>,
}

impl Host {
    /// Reads a `Host` header. Nothing but a plain name or address and a port is a host.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bracketed = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (name, port) = match bracketed {
            Some((name, rest)) => {
                name.parse::<Ipv6Addr>().ok()?;
                (name, rest)
            }
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            None if port.is_empty() => None,
            _ => return None,
        };
        (!name.is_empty()).then(|| Self { name: name.to_ascii_lowercase(), port })
    }

    fn is_loopback(&self) -> bool {
        self.name == "localhost"
            || self.name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
            || self.name.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())
    }

    /// Whether a browser takes it for the machine that it runs on, whatever it is here.
    pub(super) fn is_own_machine(&self) -> bool {
        self.is_loopback() || self.name.ends_with(".localhost")
    }

    pub(super) fn port(&self) -> Option<u16> {
        self.port
    }
}

/// What a request has to show.
#[derive(Debug, PartialEq, Eq)]
enum Needs {
    /// Nothing: the page itself, which is the same for everybody.
    Nothing,
    /// That it comes from our own page.
    OwnPage,
    /// That it comes from our own page, and a pass.
    Pass,
    /// That it comes from our own page, a pass, and the token of the pass.
    PassAndToken,
}

fn needs(method: &Method, path: &str) -> Needs {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    match path {
        "/api/login" => Needs::OwnPage,
        _ if path == "/api" || path.starts_with("/api/") => {
            if reads {
                Needs::Pass
            } else {
                Needs::PassAndToken
            }
        }
        _ if reads => Needs::Nothing,
        _ => Needs::PassAndToken,
    }
}

/// Lets a request through or refuses it, and puts the protective headers on every answer.
pub(super) async fn guard(
    State(site): State<Arc<Site>>,
    mut request: Request,
    next: Next,
) -> Response {
    let cached = match request.uri().path().starts_with("/api") {
        true => Cached::Never,
        false => Cached::AsItSays,
    };
    let mut response = match admit(&site, request.uri(), request.method(), request.headers()) {
        Ok(Admitted { cookie, login, prolonged }) => {
            request.extensions_mut().insert(cookie);
            let mut response = match login {
                None => next.run(request).await,
                Some((pass, term)) => {
                    if let Some(hurry) = request.extensions().get::<Hurry>() {
                        hurry.waive();
                    }
                    request.extensions_mut().insert(pass);
                    during(&term, request, next).await
                }
            };
            if let Some(prolonged) = prolonged {
                // What has just been logged out stays so.
                response.headers_mut().entry(header::SET_COOKIE).or_insert(prolonged);
            }
            response
        }
        Err(refusal) => refusal.into_response(),
    };
    harden(response.headers_mut(), cached);
    response
}

/// Answers somebody who is logged in. When the login ends, what they are still saying is not heard any more, and
/// an answer that still goes on breaks off, whichever route it is.
async fn during(term: &Term, request: Request, next: Next) -> Response {
    let response = next.run(request.map(|body| term.bind(body))).await;
    if term.is_over() && !response.status().is_success() {
        // Whatever else went wrong, that is what they can do about it.
        return Refusal::LoginNeeded.into_response();
    }
    match response.body().size_hint().exact() {
        // It is whole and as good as sent. Whoever has just logged out gets theirs, too.
        Some(_) => response,
        None => response.map(|body| term.bind(body)),
    }
}

/// What is known of a request that was let through.
struct Admitted {
    /// The cookie that its pass came in, or that a login by it gets.
    cookie: Cookie,
    login: Option<(Pass, Term)>,
    /// The same pass for longer, when it is time.
    prolonged: Option<HeaderValue>,
}

fn admit(
    site: &Site,
    uri: &Uri,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Admitted, Refusal> {
    let host = host(uri, headers).filter(|host| site.hosts.serve(host));
    let host = host.ok_or(Refusal::WrongHost)?;
    if !canonical(uri.path()) {
        return Err(Refusal::NotFound);
    }
    if uri.query().is_some_and(names_credential) {
        return Err(Refusal::Malformed("credentials do not belong into an address"));
    }
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(Refusal::UnknownType);
    }
    let needs = needs(method, uri.path());
    let stranger = || {
        let cookie = Cookie::to_give(&host, headers);
        Ok(Admitted { cookie, login: None, prolonged: None })
    };
    if needs == Needs::Nothing {
        return stranger();
    }
    from_own_page(headers)?;
    if needs == Needs::OwnPage {
        return stranger();
    }
    let recognised = Cookie::that_count(&host, headers).into_iter().find_map(|cookie| {
        let recognised = cookie.values(headers).find_map(|value| site.passes.recognise(value));
        recognised.map(|recognised| (cookie, recognised))
    });
    let (cookie, Recognised { pass, term, prolonged }) = recognised.ok_or(Refusal::LoginNeeded)?;
    if needs == Needs::PassAndToken {
        let token = only(headers, &TOKEN_HEADER).unwrap_or_default();
        if !site.passes.token_fits(&pass, token) {
            return Err(Refusal::Forbidden("the request does not carry this page's token"));
        }
    }
    let prolonged = prolonged.map(|Issued { value, lasts }| cookie.set(&value, lasts));
    Ok(Admitted { cookie, login: Some((pass, term)), prolonged })
}

/// The one host a request names. A second, different one would let two readers disagree.
fn host(uri: &Uri, headers: &HeaderMap) -> Option<Host> {
    let named = Host::parse(only(headers, &header::HOST)?)?;
    match uri.authority() {
        Some(authority) if Host::parse(authority.as_str())? != named => None,
        _ => Some(named),
    }
}

/// Whether there is only one way to read a path. Ours need no escapes, no dots between slashes and
/// no empty parts.
fn canonical(path: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.');
    path.bytes().all(plain) && !path.contains("//") && !path.contains("/.") && !path.contains("./")
}

fn names_credential(query: &str) -> bool {
    query.split('&').any(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        CREDENTIAL_NAMES.iter().any(|credential| name.eq_ignore_ascii_case(credential))
    })
}

/// Browsers say where a request comes from. What they say must be our own page; programs that say
/// nothing are left to the pass and the token.
fn from_own_page(headers: &HeaderMap) -> Result<(), Refusal> {
    const FOREIGN: Refusal = Refusal::Forbidden("the request comes from another page");
    if headers.contains_key(header::ORIGIN) {
        let origin = only(headers, &header::ORIGIN).ok_or(FOREIGN)?;
        let host = only(headers, &header::HOST).ok_or(FOREIGN)?;
        let named = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if !named.is_some_and(|named| named.eq_ignore_ascii_case(host)) {
            return Err(FOREIGN);
        }
    }
    let site = only(headers, &FETCHED_FROM);
    if headers.contains_key(&FETCHED_FROM) && !matches!(site, Some("same-origin" | "none")) {
        return Err(FOREIGN);
    }
    Ok(())
}

/// The value of a header that appears exactly once.
pub(super) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Whether a browser may keep an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cached {
    AsItSays,
    Never,
}

fn harden(headers: &mut HeaderMap, cached: Cached) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if cached == Cached::Never {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_address_and_a_port() {
        for (text, name, port) in [
            ("localhost", "localhost", None),
            ("LocalHost:80", "localhost", Some(80)),
            ("127.0.0.1:8790", "127.0.0.1", Some(8790)),
            ("[::1]:8790", "::1", Some(8790)),
            ("[::1]", "::1", None),
        ] {
            let expected = Host { name: name.into(), port };
            assert_eq!(Host::parse(text), Some(expected), "{text}");
        }
        for text in [
            "", ":80", "[::1", "[::1]80", "[::1]x", "[x]:80", "::1", "a:b", "a:+80", "a:99999",
            "a:80:80", "a:",
        ] {
            assert_eq!(Host::parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_literal_loopback_is_served_unasked() {
        let hosts = Hosts::new(&["Talaria.example.org".into()]).unwrap();
        let served = |text: &str| Host::parse(text).is_some_and(|host| hosts.serve(&host));
        for yes in ["localhost:1", "127.0.0.1", "127.8.9.10:5", "[::1]:5", "talaria.example.org"] {
            assert!(served(yes), "{yes}");
        }
        for no in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost.",
            "0.0.0.0",
            "2130706433",
            "127.1",
            "[::ffff:127.0.0.1]",
            "x.talaria.example.org",
            "user@localhost",
        ] {
            assert!(!served(no), "{no}");
        }
    }

    #[test]
    fn a_path_can_be_read_one_way_only() {
        for yes in ["/", "/app.js", "/api/conversations/3f2a-9_c/history"] {
            assert!(canonical(yes), "{yes}");
        }
        for no in ["//", "/api//state", "/a/%2e%2e/b", "/a/../b", "/./a", "/api;x/state", "/a\\b"] {
            assert!(!canonical(no), "{no}");
        }
    }
}
