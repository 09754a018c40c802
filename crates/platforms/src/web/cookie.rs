//! The cookie in which a pass travels: what it is called, who may carry it where, and which one counts.
//!
//! Over HTTPS it has a name that browsers take only from this host and only encrypted, so that neither a
//! neighbouring host nor somebody on the way can put another in its place.

use std::time::Duration;

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Uri};

use super::guard::{Host, only};

const FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-proto");
pub(super) const FETCHED_FROM: HeaderName = HeaderName::from_static("sec-fetch-site");

/// How a request came, as far as it can be told behind a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Over HTTPS.
    Encrypted,
    /// Nothing says that it was encrypted.
    Plain,
}

impl Way {
    /// Browsers say it in `Origin` and, without a word, by `Sec-Fetch-Site`, which they send to no page that
    /// could have been changed on the way: <https://www.w3.org/TR/fetch-metadata/>. Their own machine is the
    /// exception, encrypted or not. What a proxy adds is believed because it can only ask for more.
    fn of(host: &Host, headers: &HeaderMap) -> Self {
        let encrypted = match only(headers, &header::ORIGIN) {
            Some(origin) => {
                origin.parse().is_ok_and(|origin: Uri| origin.scheme_str() == Some("https"))
            }
            None => {
                let told = only(headers, &FORWARDED);
                told.is_some_and(|told| told.eq_ignore_ascii_case("https"))
                    || (headers.contains_key(&FETCHED_FROM) && !host.is_own_machine())
            }
        };
        if encrypted { Self::Encrypted } else { Self::Plain }
    }
}

/// The cookie of one host, for one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cookie {
    name: String,
    way: Way,
}

impl Cookie {
    /// The one that a browser is given that logs in by this request.
    pub(super) fn to_give(host: &Host, headers: &HeaderMap) -> Self {
        Self::of(host, Way::of(host, headers))
    }

    /// Those that count in this request. What is encrypted cannot have been put there by somebody else, so
    /// it always does; a plain one does only where nothing says that the request was encrypted.
    pub(super) fn that_count(host: &Host, headers: &HeaderMap) -> Vec<Self> {
        let encrypted = Self::of(host, Way::Encrypted);
        match Way::of(host, headers) {
            Way::Encrypted => vec![encrypted],
            Way::Plain => vec![encrypted, Self::of(host, Way::Plain)],
        }
    }

    /// Browsers share cookies between the ports of one host, so the port is part of the name: two gateways
    /// on one machine do not log each other out.
    fn of(host: &Host, way: Way) -> Self {
        let prefix = match way {
            Way::Encrypted => "__Host-",
            Way::Plain => "",
        };
        let port = host.port().map(|port| format!("-{port}")).unwrap_or_default();
        Self { name: format!("{prefix}talaria-login{port}"), way }
    }

    /// What a request carries under this name.
    pub(super) fn values<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter_map(|(name, value)| (name == self.name).then_some(value))
    }

    /// Puts a value into a browser for so long.
    pub(super) fn set(&self, value: &str, lasts: Duration) -> HeaderValue {
        let (name, seconds) = (&self.name, lasts.as_secs());
        let secure = match self.way {
            Way::Encrypted => "; Secure",
            Way::Plain => "",
        };
        let line =
            format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
        HeaderValue::from_str(&line).expect("name, base64 and attributes are ASCII")
    }

    /// Takes it out of a browser.
    pub(super) fn remove(&self) -> HeaderValue {
        self.set("", Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(host: &str, said: &[(HeaderName, &'static str)]) -> Way {
        let headers =
            said.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        Way::of(&Host::parse(host).unwrap(), &headers.collect())
    }

    #[test]
    fn a_request_is_encrypted_when_anything_says_so() {
        let (origin, site, proto) = (header::ORIGIN, FETCHED_FROM, FORWARDED);
        for (host, said) in [
            ("talaria.example", vec![(origin.clone(), "https://talaria.example")]),
            ("localhost:8443", vec![(origin.clone(), "https://localhost:8443")]),
            ("talaria.example", vec![(site.clone(), "same-origin")]),
            ("talaria.example", vec![(site.clone(), "none")]),
            ("talaria.example", vec![(proto.clone(), "https")]),
            ("127.0.0.1", vec![(proto.clone(), "HTTPS")]),
        ] {
            assert_eq!(way(host, &said), Way::Encrypted, "{host} {said:?}");
        }
        for (host, said) in [
            ("talaria.example", vec![]),
            ("talaria.example", vec![(origin.clone(), "http://talaria.example")]),
            ("talaria.example", vec![(proto.clone(), "http")]),
            ("localhost:8420", vec![(site.clone(), "same-origin")]),
            ("127.0.0.1:8420", vec![(site.clone(), "same-origin")]),
            ("[::1]:8420", vec![(site.clone(), "none")]),
            ("talaria.localhost", vec![(site, "same-origin")]),
            // A page on this machine says so itself.
            ("localhost", vec![(origin, "http://localhost"), (proto, "https")]),
        ] {
            assert_eq!(way(host, &said), Way::Plain, "{host} {said:?}");
        }
    }
}
