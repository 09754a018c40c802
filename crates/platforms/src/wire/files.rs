//! Files that a vendor names an address for: fetched from the vendor's own servers and from nowhere else.

use std::sync::Arc;

use reqwest::Url;
use talaria_clock::Clock;
use talaria_fetch::{FetchError, Fetcher, Hosts, Origin, PrivateHost, Rules};
use talaria_model::Proxy;
use talaria_platform::ConnectError;

/// Fetches from these servers and from the one that the operator configured, which may be at home.
pub(crate) fn fetcher(
    servers: &[&str],
    configured: &Url,
    proxy: &Proxy,
    clock: Arc<dyn Clock>,
) -> Result<Fetcher, ConnectError> {
    let servers = servers.iter().filter_map(|server| Origin::parse(server).ok());
    let rules = Rules {
        hosts: Hosts::Only(servers.chain(Origin::of(configured)).collect()),
        allow_private: PrivateHost::of(configured).into_iter().collect(),
    };
    Fetcher::new(rules, clock)
        .and_then(|fetcher| fetcher.by(proxy))
        .map_err(|error| ConnectError::Unreachable { reason: error.to_string() })
}

/// What a platform says of a file that was not fetched.
pub(crate) fn failed(error: FetchError) -> talaria_platform::FetchError {
    let reason = error.to_string();
    match error {
        FetchError::Forbidden { .. } | FetchError::TooLarge { .. } => {
            talaria_platform::FetchError::Refused { reason }
        }
        FetchError::Unreachable { reason } => talaria_platform::FetchError::Unreachable { reason },
    }
}
