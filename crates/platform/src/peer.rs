//! Who asks, as far as it can be known before anybody has proved anything.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Whoever shares limits: one address of IPv4 however it is written, or one network of IPv6, because
/// whoever has one address there has as many as they like.
///
/// It is put into the extensions of every request that came over a network. It limits; it is nobody's
/// name and no login. That somebody is on this machine opens one thing, numbers about the gateway
/// (`/metrics`), and that only where no token is set, nothing says that they ask for somebody else, and
/// nobody but this machine can come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer(IpAddr);

impl Peer {
    /// Whoever has this address.
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            address => address,
        })
    }

    /// Whether they are on this machine.
    pub fn is_loopback(self) -> bool {
        self.0.is_loopback()
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V6(network) if !network.is_loopback() => write!(f, "{network}/64"),
            address => write!(f, "{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::of(address.parse().unwrap())
    }

    #[test]
    fn atk_014_no_spelling_and_no_neighbour_of_an_address_is_somebody_else() {
        assert_eq!(peer("192.0.2.1"), peer("::ffff:192.0.2.1"));
        assert_eq!(peer("192.0.2.1"), peer("::ffff:c000:201"));
        assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_eq!(peer("::1"), peer("0:0:0:0:0:0:0:1"));
    }

    #[test]
    fn a_peer_is_told_as_far_as_it_is_known() {
        assert_eq!(peer("::ffff:192.0.2.1").to_string(), "192.0.2.1");
        assert_eq!(peer("::1").to_string(), "::1");
        assert_eq!(peer("2001:db8:1:2::1").to_string(), "2001:db8:1:2::/64");
    }

    #[test]
    fn others_are_others() {
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
        assert_ne!(peer("::1"), peer("::2"));
    }
}
