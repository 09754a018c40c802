//! The connections to providers: clients, deadlines, headers, and when a provider says to come back.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use talaria_fetch::{is_this_machine, route};
use talaria_model::{Proxy, Secret, Timestamp};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// The longest wait that a provider can ask for; more is cut to this.
const LONGEST_WAIT: Duration = Duration::from_secs(60 * 60);

/// The connections to every provider. Cheap to clone; clones share their connections.
///
/// Servers on this machine are reached directly, all others by the way that the operator chose. Redirects
/// are not followed: a key belongs to the address it was configured for.
#[derive(Clone, Default)]
pub struct Http {
    clients: Arc<Clients>,
}

// Reading the machine's certificates takes longer than the rest of a start, so a client is made when
// it is first needed: somebody who talks to a model on this machine never waits for it.
#[derive(Default)]
struct Clients {
    proxy: Proxy,
    away: OnceLock<Result<Client, String>>,
    here: OnceLock<Result<Client, String>>,
}

/// Why no connection can be made to anybody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no HTTP client could be made: {0}")]
pub struct HttpError(String);

impl Http {
    /// Connections that are made by this way.
    pub fn by(proxy: Proxy) -> Self {
        Self { clients: Arc::new(Clients { proxy, ..Clients::default() }) }
    }

    /// The client to use for an address.
    pub fn client(&self, url: &Url) -> Result<Client, HttpError> {
        let Clients { proxy, away, here } = self.clients.as_ref();
        let made = if is_this_machine(url) { here } else { away };
        made.get_or_init(|| make(proxy, url)).clone().map_err(HttpError)
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

fn make(proxy: &Proxy, url: &Url) -> Result<Client, String> {
    let told = |error: reqwest::Error| error.without_url().to_string();
    route(Client::builder(), proxy, url)
        .map_err(told)?
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("talaria/", env!("CARGO_PKG_VERSION")))
        // A proxy that compresses collects a buffer first, and the answer arrives in lumps.
        .no_gzip()
        .tcp_keepalive(Duration::from_secs(30))
        .build()
        .map_err(told)
}

/// How long a provider may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From the request until the model says something.
    pub first_token: Duration,
    /// Between two signs of life after that.
    pub idle: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { first_token: Duration::from_secs(120), idle: Duration::from_secs(60) }
    }
}

/// A header that cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the header {name:?} cannot be sent")]
pub struct HeaderError {
    /// Which.
    pub name: String,
}

/// Headers that came from configuration. Their values never show in logs.
pub(crate) fn headers(extra: &BTreeMap<String, Secret>) -> Result<HeaderMap, HeaderError> {
    let mut headers = HeaderMap::new();
    for (name, value) in extra {
        put(&mut headers, name, value.expose())?;
    }
    Ok(headers)
}

/// Sets one header whose value never shows in logs.
pub(crate) fn put(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), HeaderError> {
    let wrong = || HeaderError { name: name.to_owned() };
    let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
    value.set_sensitive(true);
    headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value);
    Ok(())
}

/// When a provider says to come back, at most an hour from now.
///
/// Reads `retry-after-ms`, `retry-after` in seconds or as a date, and where neither is there the
/// reset times of the limits that are used up: `x-ratelimit-reset-requests` and `-tokens` as OpenAI
/// and Groq write them, `x-ratelimit-reset` as OpenRouter does.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let wait = text("retry-after-ms")
        .and_then(|millis| seconds(millis.parse::<f64>().ok()? / 1000.0))
        .or_else(|| text("retry-after").and_then(|value| seconds_or_date(value, now)))
        .or_else(|| {
            ["requests", "tokens"]
                .into_iter()
                .filter(|what| text(&format!("x-ratelimit-remaining-{what}")) == Some("0"))
                .filter_map(|what| duration(text(&format!("x-ratelimit-reset-{what}"))?))
                .max()
        })
        .or_else(|| {
            (text("x-ratelimit-remaining") == Some("0"))
                .then(|| moment(text("x-ratelimit-reset")?, now))
                .flatten()
        })?;
    Some(wait.min(LONGEST_WAIT))
}

fn seconds(value: f64) -> Option<Duration> {
    (value >= 0.0).then(|| Duration::try_from_secs_f64(value).unwrap_or(LONGEST_WAIT))
}

fn seconds_or_date(value: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(number) = value.parse::<f64>() {
        return seconds(number);
    }
    let date = httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((Timestamp::from_millis(0) + date).since(now))
}

/// `6m0s`, `2m59.56s`, `88ms`, or a plain number of seconds.
fn duration(mut text: &str) -> Option<Duration> {
    if let Ok(number) = text.parse::<f64>() {
        return seconds(number);
    }
    let mut total = 0.0;
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, rest) = text.split_at(digits);
        let unit = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(unit);
        let scale = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * scale;
        text = rest;
    }
    seconds(total)
}

/// A moment as a number: milliseconds or seconds since 1970, by its size.
fn moment(value: &str, now: Timestamp) -> Option<Duration> {
    let number = value.parse::<i64>().ok()?;
    let millis = if number > 100_000_000_000 { number } else { number.checked_mul(1000)? };
    Some(Timestamp::from_millis(millis).since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_794_735_000_000);

    fn check(headers: &[(&'static str, &str)], expect: Option<f64>) {
        let map = headers
            .iter()
            .map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
            })
            .collect();
        assert_eq!(retry_after(&map, NOW), expect.map(Duration::from_secs_f64), "{headers:?}");
    }

    #[test]
    fn a_provider_may_say_when_to_come_back_in_many_ways() {
        check(&[], None);
        check(&[("retry-after", "7")], Some(7.0));
        check(&[("retry-after", "0.5")], Some(0.5));
        check(&[("retry-after", "Sun, 15 Nov 2026 09:30:42 GMT")], Some(42.0));
        check(&[("retry-after", "Sun, 15 Nov 2026 09:00:00 GMT")], Some(0.0));
        check(&[("retry-after", "-3")], None);
        check(&[("retry-after", "soon")], None);
        check(&[("retry-after", "NaN")], None);
        check(&[("retry-after-ms", "1500"), ("retry-after", "9")], Some(1.5));
        check(
            &[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "6m0s")],
            Some(360.0),
        );
        check(
            &[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "2m59.5s")],
            Some(179.5),
        );
        check(
            &[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "88ms")],
            Some(0.088),
        );
        check(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1794735005000")], Some(5.0));
    }

    #[test]
    fn a_limit_that_is_not_used_up_says_nothing() {
        check(
            &[("x-ratelimit-remaining-tokens", "50"), ("x-ratelimit-reset-tokens", "6m0s")],
            None,
        );
    }

    #[test]
    fn no_provider_makes_anybody_wait_longer_than_an_hour() {
        check(&[("retry-after", "86400")], Some(3600.0));
        check(&[("retry-after", "1e300")], Some(3600.0));
        check(&[("retry-after", "Mon, 15 Nov 2027 09:30:42 GMT")], Some(3600.0));
    }
}
