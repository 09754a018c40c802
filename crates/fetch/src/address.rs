//! Whose an IP address is: everybody's, somebody's own, or nobody's to be asked.
//!
//! The blocks are those of IANA's special-purpose registries. What is not known to be public is not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far an address reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Everybody's.
    Public,
    /// This machine, or a network behind it. An operator may have a server there.
    Private,
    /// Of no honest use to anybody who names an address: a cloud's own services, many at once, nobody.
    Never,
}

/// Where clouds keep what a machine may know of itself, its keys among it, outside of link-local blocks.
const METADATA_V4: [Ipv4Addr; 2] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16)];

/// The same, by IPv6: Amazon's and Google's.
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// Blocks of IPv4 that are not public. The first that fits decides.
const BLOCKS_V4: [(Ipv4Addr, u32, Reach); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, Reach::Never),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Reach::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Reach::Private),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Reach::Private),
    // Link-local: clouds answer here with their keys.
    (Ipv4Addr::new(169, 254, 0, 0), 16, Reach::Never),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Reach::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Reach::Never),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Reach::Never),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Reach::Never),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Reach::Private),
    // For benchmarks, and used by some VPNs for names that they resolve themselves.
    (Ipv4Addr::new(198, 18, 0, 0), 15, Reach::Private),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Reach::Never),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Reach::Never),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Reach::Never),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Reach::Never),
    (Ipv4Addr::BROADCAST, 32, Reach::Never),
];

/// Blocks of IPv6. The first that fits decides; outside of all of them nothing is public.
const BLOCKS_V6: [(Ipv6Addr, u32, Reach); 8] = [
    (Ipv6Addr::LOCALHOST, 128, Reach::Private),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Reach::Private),
    // Teredo, ORCHID, benchmarks and other things that are no places.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, Reach::Never),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, Reach::Never),
    // 6to4.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, Reach::Never),
    // The test network that was before there were any others.
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16, Reach::Never),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, Reach::Never),
    (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, Reach::Public),
];

/// How far an address reaches.
pub fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    if METADATA_V4.contains(&address) {
        return Reach::Never;
    }
    let within =
        |block: Ipv4Addr, length: u32| (address.to_bits() ^ block.to_bits()) >> (32 - length) == 0;
    let found = BLOCKS_V4.iter().find(|(block, length, _)| within(*block, *length));
    found.map_or(Reach::Public, |(_, _, reach)| *reach)
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    if METADATA_V6.contains(&address) {
        return Reach::Never;
    }
    match embedded(address) {
        // The same place, written at length.
        Some(Embedded::Mapped(inner)) => return reach_v4(inner),
        // Where a network has no IPv4, this is how all of the public IPv4 is reached.
        Some(Embedded::Translated(inner)) if reach_v4(inner) == Reach::Public => {
            return Reach::Public;
        }
        Some(Embedded::Translated(_) | Embedded::Tunnelled) => return Reach::Never,
        None => {}
    }
    let within =
        |block: Ipv6Addr, length: u32| (address.to_bits() ^ block.to_bits()) >> (128 - length) == 0;
    let found = BLOCKS_V6.iter().find(|(block, length, _)| within(*block, *length));
    found.map_or(Reach::Never, |(_, _, reach)| *reach)
}

/// An IPv4 address inside of an IPv6 one.
enum Embedded {
    /// `::ffff:a.b.c.d`.
    Mapped(Ipv4Addr),
    /// `64:ff9b::a.b.c.d`, by a translator of the network.
    Translated(Ipv4Addr),
    /// A tunnel whose other end nobody can judge.
    Tunnelled,
}

fn embedded(address: Ipv6Addr) -> Option<Embedded> {
    let last = Ipv4Addr::from_bits(address.to_bits() as u32);
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, _, _] => Some(Embedded::Mapped(last)),
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => Some(Embedded::Translated(last)),
        // ISATAP says `5efe` in front of the address, whatever the network's prefix is.
        [_, _, _, _, 0 | 0x200, 0x5efe, _, _] => Some(Embedded::Tunnelled),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(reach_of: Reach, addresses: &[&str]) {
        for address in addresses {
            assert_eq!(reach(address.parse().unwrap()), reach_of, "{address}");
        }
    }

    #[test]
    fn what_is_everybodys_is_public() {
        check(
            Reach::Public,
            &[
                "1.1.1.1",
                "8.8.8.8",
                "9.255.255.255",
                "11.0.0.0",
                "100.63.255.255",
                "100.128.0.0",
                "126.255.255.255",
                "128.0.0.0",
                "168.63.129.15",
                "168.63.129.17",
                "169.253.255.255",
                "169.255.0.0",
                "172.15.255.255",
                "172.32.0.0",
                "192.0.1.0",
                "192.0.3.0",
                "192.88.98.255",
                "192.88.100.0",
                "192.167.255.255",
                "192.169.0.0",
                "198.17.255.255",
                "198.20.0.0",
                "198.51.99.255",
                "198.51.101.0",
                "203.0.112.255",
                "203.0.114.0",
                "223.255.255.255",
                "2000::",
                "2001:200::1",
                "2001:db7:ffff::",
                "2001:db9::",
                "2001:4860:4860::8888",
                "2003::1",
                "2606:4700::1111",
                "2a00::1",
                "3ffd::",
                "3fff:1000::",
                "64:ff9b::8.8.8.8",
                "::ffff:8.8.8.8",
            ],
        );
    }

    #[test]
    fn what_an_operator_may_have_is_private() {
        check(
            Reach::Private,
            &[
                "10.0.0.0",
                "10.255.255.255",
                "100.64.0.0",
                "100.100.100.199",
                "100.127.255.255",
                "127.0.0.1",
                "127.255.255.254",
                "172.16.0.1",
                "172.31.255.255",
                "192.168.0.1",
                "198.18.0.1",
                "198.19.255.255",
                "::1",
                "fc00::1",
                "fd12:3456::1",
                "fdff:ffff::",
                "::ffff:127.0.0.1",
                "::ffff:10.1.2.3",
            ],
        );
    }

    #[test]
    fn what_no_honest_address_names_is_never_asked() {
        check(
            Reach::Never,
            &[
                "0.0.0.0",
                "0.1.2.3",
                "100.100.100.200",
                "168.63.129.16",
                "169.254.0.1",
                "169.254.169.254",
                "169.254.170.2",
                "192.0.0.0",
                "192.0.0.192",
                "192.0.2.1",
                "192.88.99.1",
                "198.51.100.7",
                "203.0.113.9",
                "224.0.0.1",
                "239.255.255.250",
                "240.0.0.1",
                "255.255.255.255",
                "::",
                "::2",
                "::127.0.0.1",
                "::8.8.8.8",
                "::ffff:169.254.169.254",
                "::ffff:0.0.0.0",
                "::ffff:0:8.8.8.8",
                "64:ff9b::127.0.0.1",
                "64:ff9b::169.254.169.254",
                "64:ff9b:1::8.8.8.8",
                "100::1",
                "1fff:ffff::",
                "2001::1",
                "2001:0:4136:e378:8000:63bf:3fff:fdd2",
                "2001:10::1",
                "2001:20::1",
                "2001:1ff:ffff::",
                "2001:db8::1",
                "2002:7f00:1::",
                "2002:808:808::1",
                "3ffe::1",
                "3fff::1",
                "3fff:fff::",
                "4000::",
                "5f00::1",
                "fe80::1",
                "fe80::5efe:10.0.0.1",
                "2a00::5efe:8.8.8.8",
                "2a00::200:5efe:127.0.0.1",
                "fec0::1",
                "ff02::1",
                "fd00:ec2::254",
                "fd20:ce::254",
            ],
        );
    }

    /// What the standard library knows of an address, which is less.
    fn is_certainly_special(address: Ipv4Addr) -> bool {
        address.is_private()
            || address.is_loopback()
            || address.is_link_local()
            || address.is_broadcast()
            || address.is_documentation()
            || address.is_multicast()
            || address.is_unspecified()
    }

    fn special() -> impl Strategy<Value = Ipv4Addr> {
        let within = |(block, length, _): (Ipv4Addr, u32, Reach)| {
            any::<u32>().prop_map(move |bits| {
                let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
                Ipv4Addr::from_bits(block.to_bits() & mask | bits & !mask)
            })
        };
        prop::sample::select(BLOCKS_V4.to_vec()).prop_flat_map(within)
    }

    proptest! {
        #[test]
        fn what_the_standard_library_knows_to_be_special_is_not_public(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            if is_certainly_special(address) {
                prop_assert_ne!(reach(address.into()), Reach::Public);
            }
        }

        #[test]
        fn an_address_that_is_not_public_is_not_in_any_disguise(address in special(), prefix: u64) {
            prop_assert_ne!(reach(address.into()), Reach::Public);
            let low = u128::from(address.to_bits());
            let segments = |high: u128| IpAddr::V6(Ipv6Addr::from_bits(high | low));
            for disguised in [
                segments(0),
                segments(0xffff_0000_0000),
                segments(0xffff_0000_0000_0000),
                segments(0x0064_ff9b << 96),
                segments(0x0064_ff9b_0001 << 80),
                segments(u128::from(prefix) << 64 | 0x5efe_0000_0000),
                segments(u128::from(prefix) << 64 | 0x0200_5efe_0000_0000),
                segments(0x2002 << 112),
                segments(0x2001 << 112),
            ] {
                prop_assert_ne!(reach(disguised), Reach::Public, "{}", disguised);
            }
            // 6to4 names the address in front, Teredo hides it behind its complement.
            let sixto4 = Ipv6Addr::from_bits(0x2002 << 112 | low << 80 | u128::from(prefix >> 1));
            prop_assert_eq!(reach(sixto4.into()), Reach::Never);
            let teredo = Ipv6Addr::from_bits(0x2001 << 112 | low << 64 | u128::from(!low as u32));
            prop_assert_eq!(reach(teredo.into()), Reach::Never);
        }

        #[test]
        fn outside_of_global_unicast_nothing_is_public_but_what_stands_for_ipv4(bits: u128) {
            let address = Ipv6Addr::from_bits(bits);
            if reach(address.into()) == Reach::Public {
                let first = address.segments()[0];
                prop_assert!(first >> 13 == 1 || first == 0x64 || first == 0, "{}", address);
            }
        }
    }
}
