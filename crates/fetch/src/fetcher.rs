//! The client: one address at a time, each redirect judged like the first.

use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Response, StatusCode, Url};
use talaria_clock::Clock;
use talaria_model::{Proxy, Secret};

use crate::FetchError;
use crate::paced::within;
use crate::resolve::{Judged, Judges, Resolve, SystemResolver};
use crate::route::through;
use crate::rules::{Ground, Hosts, Rules, Unwelcome};

/// The most redirects that are followed.
const REDIRECTS: usize = 5;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// Fetches from where its rules permit. It takes no proxy unless it is told to ([`Fetcher::by`]): a proxy
/// resolves names itself, and could be led anywhere.
pub struct Fetcher {
    rules: Rules,
    resolver: Arc<dyn Resolve>,
    public: Client,
    private: Client,
    clock: Arc<dyn Clock>,
}

/// What is wanted.
pub struct Ask {
    /// Where it is.
    pub url: Url,
    /// Shown to the server of this address and to no other.
    pub bearer: Option<Secret>,
    /// The most bytes that are read.
    pub most: u64,
    /// How long everything may take.
    pub limit: Duration,
}

/// What a server answered.
pub struct Fetched {
    /// How it answered. Redirects that were followed are not seen.
    pub status: StatusCode,
    /// What it said of it.
    pub headers: HeaderMap,
    /// The body, at a pace, up to its bound and its deadline.
    pub bytes: BoxStream<'static, io::Result<Bytes>>,
}

impl Fetcher {
    /// Fetches by these rules.
    pub fn new(rules: Rules, clock: Arc<dyn Clock>) -> Result<Self, FetchError> {
        Self::resolving(rules, clock, Arc::new(SystemResolver))
    }

    /// Fetches by these rules, and finds names by somebody else's knowledge.
    pub fn resolving(
        rules: Rules,
        clock: Arc<dyn Clock>,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, FetchError> {
        let straight = |ground| {
            let resolver = resolver.clone();
            let judged = Judged { resolver, ground, judges: Judges::Everyone };
            client(judged, &Proxy::None)
        };
        let (public, private) = (straight(Ground::Public)?, straight(Ground::Private)?);
        Ok(Self { rules, resolver, public, private, clock })
    }

    /// The same, which asks servers that its rules name by the way that the operator chose. Where anybody may
    /// be asked, and where a server is at a private address, there is no proxy: names are all that can be
    /// judged of what it is asked for.
    pub fn by(mut self, proxy: &Proxy) -> Result<Self, FetchError> {
        let is_proxied = matches!(proxy, Proxy::Environment | Proxy::Server(_));
        if let (Hosts::Only(hosts), true) = (&self.rules.hosts, is_proxied) {
            let hosts = hosts.iter().filter_map(|origin| origin.host().map(str::to_owned));
            let judges = Judges::Only(hosts.collect());
            let (resolver, ground) = (self.resolver.clone(), Ground::Public);
            self.public = client(Judged { resolver, ground, judges }, proxy)?;
        }
        Ok(self)
    }

    /// Fetches something.
    pub async fn get(&self, ask: Ask) -> Result<Fetched, FetchError> {
        let mut deadline = self.clock.sleep(ask.limit);
        let response = tokio::select! {
            response = self.follow(&ask.url, ask.bearer.as_ref()) => response?,
            () = &mut deadline => return Err(FetchError::late(ask.limit)),
        };
        let (status, headers) = (response.status(), response.headers().clone());
        let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let declared: Option<u64> = declared.and_then(|length| length.parse().ok());
        if declared.is_some_and(|length| length > ask.most) {
            return Err(FetchError::TooLarge { limit: ask.most });
        }
        let is_encoded = |value: &HeaderValue| value != "identity" && !value.is_empty();
        if headers.get_all(CONTENT_ENCODING).iter().any(is_encoded) {
            return Err(FetchError::forbidden("it is compressed, which was not asked for"));
        }
        let bytes = response
            .bytes_stream()
            .map(|piece| piece.map_err(|error| io::Error::other(error.without_url())));
        let bytes = within(bytes.boxed(), ask.most, deadline, self.clock.clone());
        Ok(Fetched { status, headers, bytes })
    }

    async fn follow(&self, first: &Url, bearer: Option<&Secret>) -> Result<Response, FetchError> {
        let mut url = first.clone();
        // Whoever was led away does not come back with them either.
        let mut bearer = bearer;
        for _ in 0..=REDIRECTS {
            let response = self.once(&url, bearer).await?;
            let Some(location) = redirected(&response) else { return Ok(response) };
            let next = onward(&url, location)?;
            if next.origin() != url.origin() {
                bearer = None;
            }
            url = next;
        }
        Err(FetchError::forbidden("there are too many redirects"))
    }

    async fn once(&self, url: &Url, bearer: Option<&Secret>) -> Result<Response, FetchError> {
        let client = match self.rules.judge(url)? {
            Ground::Public => &self.public,
            Ground::Private => &self.private,
        };
        let mut request = client.get(url.clone());
        if let Some(bearer) = bearer {
            request = request.bearer_auth(bearer.expose());
        }
        request.send().await.map_err(|error| {
            let error = error.without_url();
            unwelcome(&error).map_or_else(|| unreachable(&error), FetchError::from)
        })
    }
}

fn client(judged: Judged, proxy: &Proxy) -> Result<Client, FetchError> {
    let made = through(Client::builder(), proxy).and_then(|builder| {
        builder
            .dns_resolver(judged)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            // What a few bytes unfold to has no bound until it is unfolded.
            .no_gzip()
            .connect_timeout(CONNECT)
            .pool_max_idle_per_host(4)
            .user_agent(concat!("Talaria/", env!("CARGO_PKG_VERSION")))
            .build()
    });
    made.map_err(|error| unreachable(&error.without_url()))
}

/// Where an answer sends us.
fn redirected(response: &Response) -> Option<&HeaderValue> {
    let sends_on = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    response.headers().get(LOCATION).filter(|_| sends_on)
}

/// The address that a redirect names. What was asked for in secrecy is not asked for in the open.
fn onward(from: &Url, location: &HeaderValue) -> Result<Url, FetchError> {
    let next = location.to_str().ok().and_then(|location| from.join(location).ok());
    let next = next.ok_or(FetchError::forbidden("a redirect leads nowhere"))?;
    if from.scheme() == "https" && next.scheme() == "http" {
        return Err(FetchError::forbidden("a redirect gives up encryption"));
    }
    Ok(next)
}

/// The verdict about an address, if that is what stood in the way.
fn unwelcome(error: &reqwest::Error) -> Option<Unwelcome> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(*found);
        }
        cause = error.source();
    }
    None
}

fn unreachable(error: &reqwest::Error) -> FetchError {
    FetchError::Unreachable { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_leads_where_it_says_but_never_out_of_encryption() {
        for (from, location, expect) in [
            ("http://a.example/x/y", "z", Ok("http://a.example/x/z")),
            ("http://a.example/x/y", "/z?q", Ok("http://a.example/z?q")),
            ("http://a.example/", "https://b.example/", Ok("https://b.example/")),
            ("https://a.example/", "//b.example/", Ok("https://b.example/")),
            ("http://a.example/", "http://b.example/", Ok("http://b.example/")),
            ("https://a.example/", "http://a.example/", Err("a redirect gives up encryption")),
            ("https://a.example/", "HTTP://b.example/", Err("a redirect gives up encryption")),
            ("https://a.example/", "https://", Err("a redirect leads nowhere")),
        ] {
            let from = Url::parse(from).unwrap();
            let next = onward(&from, &HeaderValue::from_static(location));
            let expect = expect.map_err(FetchError::forbidden);
            assert_eq!(
                next.as_ref().map(Url::as_str),
                expect.as_ref().copied(),
                "{from} {location}"
            );
        }
        let unreadable = HeaderValue::from_bytes(b"/\xff").unwrap();
        let from = Url::parse("http://a.example/").unwrap();
        assert_eq!(
            onward(&from, &unreadable),
            Err(FetchError::forbidden("a redirect leads nowhere"))
        );
    }
}
