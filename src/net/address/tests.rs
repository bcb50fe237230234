use proptest::prelude::*;

use super::*;

fn class(text: &str) -> Class {
    Address::from(text.parse::<IpAddr>().unwrap()).class()
}

/// "Globally Reachable" of the IANA IPv4 and IPv6 Special-Purpose Address
/// Registries; `None` is "N/A". Written down from the registries, not from the
/// table under test.
const REGISTRY: [(&str, u32, Option<bool>); 50] = [
    ("0.0.0.0", 8, Some(false)),
    ("0.0.0.0", 32, Some(false)),
    ("10.0.0.0", 8, Some(false)),
    ("100.64.0.0", 10, Some(false)),
    ("127.0.0.0", 8, Some(false)),
    ("169.254.0.0", 16, Some(false)),
    ("172.16.0.0", 12, Some(false)),
    ("192.0.0.0", 24, Some(false)),
    ("192.0.0.0", 29, Some(false)),
    ("192.0.0.8", 32, Some(false)),
    ("192.0.0.9", 32, Some(true)),
    ("192.0.0.10", 32, Some(true)),
    ("192.0.0.170", 31, Some(false)),
    ("192.0.2.0", 24, Some(false)),
    ("192.31.196.0", 24, Some(true)),
    ("192.52.193.0", 24, Some(true)),
    ("192.88.99.0", 24, None),
    ("192.168.0.0", 16, Some(false)),
    ("192.175.48.0", 24, Some(true)),
    ("198.18.0.0", 15, Some(false)),
    ("198.51.100.0", 24, Some(false)),
    ("203.0.113.0", 24, Some(false)),
    ("240.0.0.0", 4, Some(false)),
    ("255.255.255.255", 32, Some(false)),
    ("::1", 128, Some(false)),
    ("::", 128, Some(false)),
    ("64:ff9b:1::", 48, Some(false)),
    ("100::", 64, Some(false)),
    ("100:0:0:1::", 64, Some(false)),
    ("2001::", 23, Some(false)),
    ("2001:1::1", 128, Some(true)),
    ("2001:1::2", 128, Some(true)),
    ("2001:1::3", 128, Some(true)),
    ("2001:2::", 48, Some(false)),
    ("2001:3::", 32, Some(true)),
    ("2001:4:112::", 48, Some(true)),
    ("2001:10::", 28, None),
    ("2001:20::", 28, Some(true)),
    ("2001:30::", 28, Some(true)),
    ("2001:db8::", 32, Some(false)),
    ("2620:4f:8000::", 48, Some(true)),
    ("3fff::", 20, Some(false)),
    ("5f00::", 16, Some(false)),
    ("fc00::", 7, Some(false)),
    ("fe80::", 10, Some(false)),
    // Of other registries: multicast, and the address space of IPv6.
    ("224.0.0.0", 4, Some(false)),
    ("ff00::", 8, Some(false)),
    ("fec0::", 10, Some(false)),
    ("4000::", 3, Some(false)),
    ("200::", 7, Some(false)),
];

/// Reachable by the registry, and refused here: anycast addresses of one's own
/// network, and identifiers that are not routed.
const STRICTER: [&str; 7] = [
    "192.0.0.9",
    "192.0.0.10",
    "2001:1::1",
    "2001:1::2",
    "2001:1::3",
    "2001:20::",
    "2001:30::",
];

#[test]
fn the_registries_are_followed_at_both_ends_of_each_block() {
    for (block, prefix, reachable) in REGISTRY {
        let first: IpAddr = block.parse().unwrap();
        let last: IpAddr = match first {
            IpAddr::V4(ip) => {
                let rest = u32::MAX.checked_shr(prefix).unwrap_or(0);
                Ipv4Addr::from(u32::from(ip) | rest).into()
            }
            IpAddr::V6(ip) => {
                let rest = u128::MAX.checked_shr(prefix).unwrap_or(0);
                Ipv6Addr::from(u128::from(ip) | rest).into()
            }
        };
        let public = reachable == Some(true) && !STRICTER.contains(&block);
        // Larger blocks hold exceptions, none of them at an end.
        for ip in [first, last] {
            assert_eq!(
                Address::from(ip).is_public(),
                public,
                "{ip} of {block}/{prefix}"
            );
        }
    }
}

#[test]
fn classes_begin_and_end_where_their_blocks_do() {
    use Class::*;
    for (text, expected) in [
        ("0.0.0.0", Unspecified),
        ("0.0.0.1", Reserved),
        ("1.0.0.0", Public),
        ("9.255.255.255", Public),
        ("10.0.0.0", Private),
        ("11.0.0.0", Public),
        ("100.63.255.255", Public),
        ("100.64.0.0", Shared),
        ("100.100.100.200", Metadata),
        ("100.127.255.255", Shared),
        ("100.128.0.0", Public),
        ("126.255.255.255", Public),
        ("127.0.0.1", Loopback),
        ("127.77.0.1", Loopback),
        ("128.0.0.0", Public),
        ("168.63.129.15", Public),
        ("168.63.129.16", Metadata),
        ("169.254.169.254", Metadata),
        ("169.254.170.2", Metadata),
        ("169.254.169.253", LinkLocal),
        ("172.15.255.255", Public),
        ("172.16.0.0", Private),
        ("172.31.255.255", Private),
        ("172.32.0.0", Public),
        ("192.0.1.0", Public),
        ("192.0.2.1", Documentation),
        ("192.88.99.1", Reserved),
        ("192.168.255.255", Private),
        ("198.17.255.255", Public),
        ("198.19.255.255", Benchmarking),
        ("198.20.0.0", Public),
        ("223.255.255.255", Public),
        ("224.0.0.1", Multicast),
        ("239.255.255.255", Multicast),
        ("240.0.0.1", Reserved),
        ("255.255.255.254", Reserved),
        ("255.255.255.255", Broadcast),
        ("::", Unspecified),
        ("::1", Loopback),
        ("::2", Reserved),
        ("fd00:ec2::254", Metadata),
        ("fd00:ec2::253", UniqueLocal),
        ("fd20:ce::254", Metadata),
        ("fc00::1", UniqueLocal),
        ("fe80::1", LinkLocal),
        ("fec0::1", UniqueLocal),
        ("ff02::1", Multicast),
        ("1fff:ffff::1", Reserved),
        ("2000::1", Public),
        ("2606:4700:4700::1111", Public),
        ("2001:200::1", Public),
        ("2001:2::1", Benchmarking),
        ("2001:db8::1", Documentation),
        ("2001:db9::1", Public),
        ("3ffe::1", Public),
        ("3fff:0fff::1", Documentation),
        ("3fff:1000::1", Public),
        ("4000::1", Reserved),
    ] {
        assert_eq!(class(text), expected, "{text}");
    }
}

#[test]
fn embedded_addresses_are_judged_by_what_they_lead_to() {
    use Class::*;
    for (text, expected) in [
        // Mapped.
        ("::ffff:127.0.0.1", Loopback),
        ("::ffff:169.254.169.254", Metadata),
        ("::ffff:1.1.1.1", Public),
        // Compatible and translated: never public.
        ("::127.0.0.1", Loopback),
        ("::1.1.1.1", Reserved),
        ("::ffff:0:10.0.0.1", Private),
        ("::ffff:0:1.1.1.1", Reserved),
        // NAT64.
        ("64:ff9b::10.0.0.1", Private),
        ("64:ff9b::169.254.169.254", Metadata),
        ("64:ff9b::1.1.1.1", Public),
        ("64:ff9b:1::1.1.1.1", Reserved),
        // 6to4.
        ("2002:7f00:1::", Loopback),
        ("2002:a9fe:a9fe::1", Metadata),
        ("2002:101:101::1", Public),
        // Teredo: the server 1.1.1.1 and 10.0.0.1, the client 10.0.0.1 and
        // 1.1.1.1, whose bits are turned over.
        ("2001:0:101:101::f5ff:fffe", Private),
        ("2001:0:a00:1::fefe:fefe", Private),
        ("2001:0:101:101::fefe:fefe", Public),
        // ISATAP.
        ("2606:4700::5efe:10.0.0.1", Private),
        ("2606:4700::200:5efe:10.0.0.1", Private),
        ("2606:4700::5efe:1.1.1.1", Public),
        ("2606:4700::100:5efe:10.0.0.1", Public),
    ] {
        assert_eq!(class(text), expected, "{text}");
    }
}

#[test]
fn mapped_addresses_are_held_as_ipv4() {
    let mapped = Address::from("::ffff:1.1.1.1".parse::<IpAddr>().unwrap());
    assert_eq!(mapped.ip(), "1.1.1.1".parse::<IpAddr>().unwrap());
}

proptest! {
    /// Whatever std can tell apart is told apart here too.
    #[test]
    fn nothing_that_std_calls_local_is_public(v4: u32, v6: u128, block in 0..8_u32) {
        let v4 = Ipv4Addr::from(v4 >> 8 | [10, 127, 169, 172, 192, 198, 224, 240][block as usize] << 24);
        let local = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
            || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified();
        prop_assert!(!(local && Address::from(IpAddr::V4(v4)).is_public()));
        let v6 = Ipv6Addr::from(v6 >> 9 | u128::from(0xf9 + block) << 119);
        let local = v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_multicast();
        prop_assert!(!(local && Address::from(IpAddr::V6(v6)).is_public()));
    }

    #[test]
    fn no_embedding_is_better_than_what_it_leads_to(v4: u32) {
        let inside = Address::from(IpAddr::V4(v4.into()));
        let v4 = u128::from(v4);
        for ip in [v4, 0xffff << 32 | v4, 0xffff << 48 | v4, 0x64_ff9b << 96 | v4, 0x2002 << 112 | v4 << 80] {
            let outside = Address::from(IpAddr::V6(Ipv6Addr::from(ip)));
            prop_assert!(inside.is_public() || !outside.is_public(), "{outside}");
        }
    }
}
