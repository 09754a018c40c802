//! The way to a server that the operator configured. Nobody else chose its address, so it is not judged;
//! what is decided here is only whether a proxy is asked.

use std::net::IpAddr;

use reqwest::{ClientBuilder, Url};
use talaria_model::Proxy;

/// Lets a client go to the server of an address by the way that the operator chose. What the environment
/// says counts only if that is the way. A server on this machine is reached directly.
///
/// The client is for that server: it must not follow redirects to others.
pub fn route(
    builder: ClientBuilder,
    proxy: &Proxy,
    to: &Url,
) -> Result<ClientBuilder, reqwest::Error> {
    through(builder, if is_this_machine(to) { &Proxy::None } else { proxy })
}

/// Lets a client take a way wherever it goes.
pub(crate) fn through(
    builder: ClientBuilder,
    proxy: &Proxy,
) -> Result<ClientBuilder, reqwest::Error> {
    match proxy {
        Proxy::None => Ok(builder.no_proxy()),
        // A client asks the environment unless it is told otherwise.
        Proxy::Environment => Ok(builder),
        Proxy::Server(address) => {
            Ok(builder.no_proxy().proxy(reqwest::Proxy::all(address.expose())?))
        }
    }
}

/// Whether an address is one of this machine.
pub fn is_this_machine(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let address = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_count_as_this_machine() {
        let here = |url: &str| is_this_machine(&Url::parse(url).unwrap());
        assert!(here("http://127.0.0.1:11434/v1"));
        assert!(here("http://localhost:1234/v1"));
        assert!(here("http://[::1]:8080/v1"));
        assert!(!here("https://api.openai.com/v1"));
        assert!(!here("http://127.0.0.1.example.org/v1"));
    }
}
