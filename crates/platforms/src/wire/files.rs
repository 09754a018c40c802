//! Files that a vendor names an address for: fetched from the vendor's own servers and from nowhere else.

use std::sync::Arc;

use reqwest::Url;
use talaria_clock::Clock;
use talaria_fetch::{FetchError, Fetcher, Hosts, Origin, PrivateHost, Rules};
use talaria_model::Proxy;
use talaria_platform::ConnectError;

/// Fetches from these servers of the vendor's and from the one that the operator configured, which may be at
/// home unless it is one of them.
pub(crate) fn fetcher(
    servers: &[&str],
    configured: &Url,
    proxy: &Proxy,
    clock: Arc<dyn Clock>,
) -> Result<Fetcher, ConnectError> {
    Fetcher::new(rules(servers, configured), clock)
        .and_then(|fetcher| fetcher.by(proxy))
        .map_err(|error| ConnectError::Unreachable { reason: error.to_string() })
}

fn rules(servers: &[&str], configured: &Url) -> Rules {
    let servers: Vec<Origin> =
        servers.iter().filter_map(|server| Origin::parse(server).ok()).collect();
    let is_vendors = servers.iter().any(|server| server.serves(configured));
    let at_home = PrivateHost::of(configured).into_iter().filter(|_| !is_vendors);
    Rules {
        allow_private: at_home.collect(),
        hosts: Hosts::Only(servers.into_iter().chain(Origin::of(configured)).collect()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_of_the_operators_own_may_be_at_home() {
        let servers = ["https://files.example.com"];
        let may_be_at_home = |configured: &str| {
            let rules = rules(&servers, &Url::parse(configured).unwrap());
            !rules.allow_private.is_empty()
        };
        assert!(!may_be_at_home("https://files.example.com/api"), "it is the vendor's");
        assert!(may_be_at_home("http://10.0.0.5:8081"));
        assert!(may_be_at_home("https://files.example.com:8443"), "another port is another server");
    }
}
