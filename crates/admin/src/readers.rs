//! Who may read the numbers about the gateway: whoever has the token or, where none is set, programs on this
//! machine while nobody else can come.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HOST};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use talaria_platform::Peer;

/// What a proxy adds on behalf of somebody else.
const PASSED_ON: [&str; 5] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/// Who can come to the HTTP listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Programs on this machine only.
    ThisMachine,
    /// Others, too, by themselves or through a proxy, which may look like this machine.
    Others,
}

impl Reach {
    /// As far as that can be told. Whoever puts a proxy before the gateway names the hosts that it stands
    /// for; without that, it would be refused everywhere else.
    pub(crate) fn of(listens: IpAddr, hosts: &[String]) -> Self {
        match listens.is_loopback() && hosts.is_empty() {
            true => Self::ThisMachine,
            false => Self::Others,
        }
    }
}

/// A token that is set is wanted from everybody.
pub(crate) fn may_read(
    token: Option<&str>,
    reach: Reach,
    peer: Option<Peer>,
    headers: &HeaderMap,
) -> bool {
    match (token, reach) {
        (Some(token), _) => has_token(headers, token),
        (None, Reach::ThisMachine) => is_local(peer, headers),
        (None, Reach::Others) => false,
    }
}

/// Whether somebody on this machine asks for themselves: neither a page that was led here by another
/// name, nor a proxy for somebody else.
fn is_local(peer: Option<Peer>, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_ours = matches!(name, "localhost" | "127.0.0.1" | "[::1]");
    let is_passed_on = PASSED_ON.iter().any(|name| headers.contains_key(*name));
    peer.is_some_and(Peer::is_loopback) && is_ours && !is_passed_on
}

fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let given = headers.get(AUTHORIZATION).and_then(|given| given.to_str().ok());
    let given = given.and_then(|given| given.strip_prefix("Bearer "));
    // Digests are compared, so that how long it takes tells neither the token nor its length.
    let digest = |text: &str| Sha256::digest(text.as_bytes());
    given.is_some_and(|given| digest(given).ct_eq(&digest(token)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(given: &[(&'static str, &'static str)]) -> HeaderMap {
        given
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")))
            .collect::<HeaderMap>()
    }

    #[test]
    fn only_programs_on_this_machine_need_no_token() {
        fn is_local(peer: Option<Peer>, given: &[(&'static str, &'static str)]) -> bool {
            super::is_local(peer, &headers(given))
        }
        let peer = |address: &str| Some(Peer::of(address.parse().expect("an address")));
        let (here, elsewhere) = (peer("127.0.0.1"), peer("192.0.2.1"));
        for host in
            ["localhost:8420", "127.0.0.1:8420", "[::1]:8420", "localhost", "127.0.0.1", "[::1]"]
        {
            assert!(is_local(here, &[("host", host)]), "{host}");
            assert!(!is_local(elsewhere, &[("host", host)]), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.evil.example",
            "localhost:x",
            "",
        ] {
            assert!(!is_local(here, &[("host", host)]), "{host}");
        }
        assert!(!is_local(here, &[]));
        for by in PASSED_ON {
            assert!(!is_local(here, &[("host", "localhost"), (by, "203.0.113.7")]));
        }
    }

    #[test]
    fn a_token_that_is_set_is_wanted_from_everybody_and_whole() {
        let here = Some(Peer::of("127.0.0.1".parse().expect("an address")));
        let local = ("host", "localhost");
        let may = |token, reach, given: &[(&'static str, &'static str)]| {
            may_read(token, reach, here, &headers(given))
        };
        let token = Some("0123456789abcdef");
        for reach in [Reach::ThisMachine, Reach::Others] {
            let right = ("authorization", "Bearer 0123456789abcdef");
            assert!(may(token, reach, &[right]) && may(token, reach, &[local, right]));
            assert!(!may(token, reach, &[local]), "also from here");
            for wrong in [
                "Bearer 0123456789abcde",
                "Bearer 0123456789abcdef0",
                "0123456789abcdef",
                "Bearer ",
            ] {
                assert!(!may(token, reach, &[local, ("authorization", wrong)]), "{wrong}");
            }
        }
        assert!(may(None, Reach::ThisMachine, &[local]));
        // What an ordinary `proxy_pass` sends looks like this machine.
        assert!(!may(None, Reach::Others, &[local]));
        assert!(!may(None, Reach::Others, &[local, ("authorization", "Bearer ")]));
    }

    #[test]
    fn a_listener_with_other_names_or_addresses_is_for_others_too() {
        let reach = |ip: &str, hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
            Reach::of(ip.parse().expect("an address"), &hosts)
        };
        assert_eq!(reach("127.0.0.1", &[]), Reach::ThisMachine);
        assert_eq!(reach("::1", &[]), Reach::ThisMachine);
        assert_eq!(reach("127.0.0.1", &["gateway.example.com"]), Reach::Others);
        assert_eq!(reach("0.0.0.0", &[]), Reach::Others);
        assert_eq!(reach("192.0.2.7", &[]), Reach::Others);
    }
}
