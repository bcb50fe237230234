use std::net::ToSocketAddrs as _;

use proptest::prelude::*;

use super::*;

fn fault(text: &str) -> HostFault {
    Host::parse(text).unwrap_err()
}

fn v4(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

#[test]
fn names_are_folded_and_keep_their_labels() {
    for (text, name) in [
        ("example.com", "example.com"),
        ("EXAMPLE.Com", "example.com"),
        ("db", "db"),
        ("my_service.internal", "my_service.internal"),
        ("r3---sn-abc.example", "r3---sn-abc.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("1.2.3.4.example", "1.2.3.4.example"),
        ("0x7f.example", "0x7f.example"),
        ("face", "face"),
        ("0xyz", "0xyz"),
        ("127.1a", "127.1a"),
    ] {
        let host = Host::parse(text).unwrap();
        assert_eq!(host.to_string(), name);
        assert!(matches!(host, Host::Name(_)), "{text}");
    }
}

#[test]
fn literals_have_one_spelling() {
    for text in [
        "127.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[2001:db8::1:0:0:1]",
    ] {
        let host = Host::parse(text).unwrap();
        assert_eq!(host.to_string(), text);
        assert!(matches!(host, Host::Address(_)), "{text}");
    }
}

#[test]
fn odd_spellings_of_ipv4_are_refused_with_the_address_they_mean() {
    for (text, address) in [
        ("0x7f.1", "127.0.0.1"),
        ("0X7F.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("127.0.0.01", "127.0.0.1"),
        ("010.0.0.1", "8.0.0.1"),
        ("0", "0.0.0.0"),
        ("4294967295", "255.255.255.255"),
    ] {
        assert_eq!(fault(text), HostFault::OddIpv4(v4(address)), "{text}");
        // The C library does read it so: that is why it is refused.
        let read = (text, 0).to_socket_addrs().unwrap().next().unwrap();
        assert_eq!(read.ip(), IpAddr::V4(v4(address)), "{text}");
    }
    assert_eq!(fault("127.0.0.1."), HostFault::OddIpv4(v4("127.0.0.1")));
    assert_eq!(fault("0x"), HostFault::OddIpv4(v4("0.0.0.0")));
    for text in [
        "256.0.0.1",
        "1.2.3.4.5",
        "1.2.3.256",
        "4294967296",
        "08",
        "127.0.0.08",
        "0x100000000",
        "99999999999999999999999",
        "a.1",
        "example.0x1f",
        "example.00",
        "example.com.1.",
    ] {
        assert_eq!(fault(text), HostFault::NumberAtEnd, "{text}");
    }
}

#[test]
fn odd_spellings_of_ipv6_are_refused_with_the_one_to_write() {
    let v6 = |text: &str| text.parse::<Ipv6Addr>().unwrap();
    for text in ["[0:0:0:0:0:0:0:1]", "[::0:1]", "[::0001]", "[0::1]"] {
        assert_eq!(fault(text), HostFault::Ipv6Spelling(v6("::1")), "{text}");
    }
    for text in ["[2001:DB8::1]", "[2001:db8:0::1]", "[2001:0db8::1]"] {
        assert_eq!(fault(text), HostFault::Ipv6Spelling(v6("2001:db8::1")));
    }
    assert_eq!(fault("::1"), HostFault::Unbracketed(v6("::1")));
    for text in ["[::ffff:10.0.0.1]", "[::ffff:a00:1]", "[::10.0.0.1]"] {
        assert_eq!(fault(text), HostFault::Ipv4InIpv6(v4("10.0.0.1")));
    }
    for text in ["[fe80::1%eth0]", "[fe80::1%25eth0]", "[::1%1]"] {
        assert_eq!(fault(text), HostFault::Zone, "{text}");
    }
    assert_eq!(fault("[fe80::1]"), HostFault::LinkLocal);
    for text in ["[::1", "::1]", "[::1]a", "[", "]", "a]"] {
        assert_eq!(fault(text), HostFault::Brackets, "{text}");
    }
    for text in ["[]", "[127.0.0.1]", "[example.com]", "[1::2::3]", "[[::1]]"] {
        assert_eq!(fault(text), HostFault::NotIpv6, "{text}");
    }
}

#[test]
fn what_is_no_name_is_refused_by_its_fault() {
    for (text, expected) in [
        ("", HostFault::Missing),
        (".", HostFault::EmptyLabel),
        ("..", HostFault::EmptyLabel),
        (".example.com", HostFault::EmptyLabel),
        ("example..com", HostFault::EmptyLabel),
        ("example.com..", HostFault::EmptyLabel),
        ("example.com.", HostFault::TrailingDot),
        ("-a.example", HostFault::Hyphen),
        ("a-.example", HostFault::Hyphen),
        ("xn--.example", HostFault::EmptyALabel),
        ("bücher.example", HostFault::NotAscii),
        ("１２７.0.0.1", HostFault::NotAscii),
        ("127。0。0。1", HostFault::NotAscii),
        ("exa\u{ad}mple.com", HostFault::NotAscii),
        ("exa mple.com", HostFault::Character(' ')),
        ("example.com\0", HostFault::Character('\0')),
        ("user@example.com", HostFault::Character('@')),
        ("example.com/", HostFault::Character('/')),
        ("example%2ecom", HostFault::Character('%')),
        ("example.com:80", HostFault::Character(':')),
        ("*.example.com", HostFault::Character('*')),
        ("fe80::1%eth0", HostFault::Character(':')),
    ] {
        assert_eq!(fault(text), expected, "{text}");
    }
}

#[test]
fn names_and_labels_are_bounded() {
    let label = "a".repeat(MAX_LABEL_BYTES);
    assert!(Host::parse(&label).is_ok());
    assert_eq!(fault(&format!("{label}a")), HostFault::LongLabel(64));
    let longest = [label.as_str(); 4].join(".")[..MAX_NAME_BYTES].to_owned();
    assert_eq!(Host::parse(&longest).unwrap().to_string().len(), 253);
    assert_eq!(fault(&format!("{longest}a")), HostFault::LongName(254));
}

#[test]
fn a_request_may_end_a_name_with_one_dot() {
    let host = Host::of_request("Example.com.").unwrap();
    assert_eq!(host, Host::parse("example.com").unwrap());
    assert_eq!(
        Host::of_request("10.0.0.1").unwrap().to_string(),
        "10.0.0.1"
    );
    for text in ["example.com..", ".", "10.0.0.1.", "[::1].", "0x7f.1."] {
        assert!(Host::of_request(text).is_err(), "{text}");
    }
}

#[test]
fn requests_have_a_host_and_one_port() {
    for (text, shown) in [
        ("example.com:443", "example.com:443"),
        ("EXAMPLE.com.:443", "example.com:443"),
        ("127.0.0.1:1", "127.0.0.1:1"),
        ("[::1]:65535", "[::1]:65535"),
    ] {
        assert_eq!(Endpoint::of_request(text).unwrap().to_string(), shown);
    }
    let fault = |text| Endpoint::of_request(text).unwrap_err();
    for (text, expected) in [
        ("example.com", PortFault::Missing),
        ("example.com:", PortFault::Missing),
        ("[::1]", PortFault::Missing),
        ("example.com:0", PortFault::Zero),
        ("example.com:00", PortFault::Zero),
        ("example.com:080", PortFault::Number),
        ("example.com:+80", PortFault::Number),
        ("example.com:-1", PortFault::Number),
        ("example.com:80,443", PortFault::Number),
        ("example.com:65536", PortFault::Number),
        ("example.com:٨٠", PortFault::Number),
        ("example.com:0x50", PortFault::Number),
    ] {
        assert_eq!(fault(text), EndpointFault::Port(expected), "{text}");
    }
    for text in [
        ":80",
        "::1:80",
        "http://a:80",
        "u@a:80",
        "a:80:80",
        "[::1]]:80",
    ] {
        assert!(matches!(fault(text), EndpointFault::Host(_)), "{text}");
    }
}

#[test]
fn labels_of_a_message_become_a_name_or_nothing() {
    let name = |labels: &[&[u8]]| Name::of_labels(labels.iter().copied());
    assert_eq!(name(&[b"Ex", b"COM"]).unwrap().as_str(), "ex.com");
    assert_eq!(name(&[]), Err(HostFault::Missing));
    assert_eq!(name(&[b"a.b", b"com"]), Err(HostFault::Character('.')));
    assert_eq!(name(&[b"a\xff"]), Err(HostFault::NotAscii));
    assert_eq!(
        name(&[b"127", b"1"]),
        Err(HostFault::OddIpv4(v4("127.0.0.1")))
    );
}

#[test]
fn below_is_at_least_one_label_below() {
    let name = |text| Name::parse(text).unwrap();
    let apex = name("example.com");
    assert!(name("a.example.com").is_below(&apex));
    assert!(name("b.a.example.com").is_below(&apex));
    for text in [
        "example.com",
        "evilexample.com",
        "com",
        "example.com.evil.net",
    ] {
        assert!(!name(text).is_below(&apex), "{text}");
    }
    assert!(name("localhost").is_localhost());
    assert!(name("a.localhost").is_localhost());
    assert!(!name("localhost.example").is_localhost());
    assert!(!name("notlocalhost").is_localhost());
}

#[test]
fn a_mapped_socket_address_is_the_ipv4_address() {
    let mapped: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
    assert_eq!(Host::from(mapped), Host::parse("10.0.0.1").unwrap());
}

/// Whether anything at all could read it as an IPv4 address in the manner of
/// `inet_aton`: looser than any of them.
fn lenient_reads(text: &str) -> bool {
    let number = |part: &str| {
        let hex = part.strip_prefix("0x").or(part.strip_prefix("0X"));
        match hex {
            Some(hex) => hex.chars().all(|c| c.is_ascii_hexdigit()),
            None => !part.is_empty() && part.chars().all(|c| c.is_ascii_digit()),
        }
    };
    let parts: Vec<_> = text.trim_end_matches('.').split('.').collect();
    parts.len() <= 4 && parts.into_iter().all(number)
}

proptest! {
    #[test]
    fn what_is_read_is_displayed_in_the_spelling_that_is_read(
        text in prop_oneof!["[a-zA-Z0-9._-]{1,40}", "\\[[0-9a-f:.]{2,40}\\]", "[0-9.]{7,15}", ".{0,40}"],
    ) {
        if let Ok(host) = Host::parse(&text) {
            let shown = host.to_string();
            prop_assert_eq!(&shown, &text.to_ascii_lowercase());
            prop_assert_eq!(Host::parse(&shown), Ok(host.clone()));
            prop_assert_eq!(Host::of_request(&shown), Ok(host));
        }
    }

    #[test]
    fn no_other_reader_takes_an_accepted_host_for_another_address(
        text in prop_oneof!["[0-9xX.]{1,16}", "[0-9a-fxX.]{1,20}", "(0[xX])?[0-9a-f]{1,9}(\\.(0[xX]?)?[0-9a-f]{0,4}){0,4}"],
    ) {
        match Host::parse(&text) {
            Ok(Host::Name(_)) => prop_assert!(!lenient_reads(&text)),
            Ok(Host::Address(ip)) => prop_assert_eq!(ip.to_string(), text),
            Err(_) => {}
        }
    }

    #[test]
    fn every_spelling_of_an_ipv4_address_but_one_is_refused_with_that_one(
        address: u32,
        radices in proptest::array::uniform4(0..4_usize),
        parts in 1..=4_usize,
    ) {
        let octets = address.to_be_bytes();
        let bits = 8 * (5 - parts as u32);
        let last = if bits == 32 { address } else { address & ((1 << bits) - 1) };
        let numbers = octets[..parts - 1].iter().map(|octet| u32::from(*octet)).chain([last]);
        let text = numbers
            .zip(radices)
            .map(|(number, radix)| match radix {
                0 => format!("{number}"),
                1 => format!("0{number:o}"),
                2 => format!("0x{number:x}"),
                _ => format!("0X{number:08X}"),
            })
            .collect::<Vec<_>>()
            .join(".");
        let ip = Ipv4Addr::from(address);
        let expected = if text == ip.to_string() {
            Ok(Host::Address(ip.into()))
        } else {
            Err(HostFault::OddIpv4(ip))
        };
        prop_assert_eq!(Host::parse(&text), expected);
    }

    #[test]
    fn an_ipv6_address_is_read_in_its_canonical_spelling_only(
        segments in proptest::array::uniform8(prop_oneof![Just(0_u16), any::<u16>()]),
    ) {
        let ip = Ipv6Addr::from(segments);
        let full = segments.map(|segment| format!("{segment:04x}")).join(":");
        prop_assume!(full != ip.to_string());
        let canonical = Host::parse(&format!("[{ip}]"));
        if let Ok(host) = &canonical {
            prop_assert_eq!(host, &Host::Address(ip.into()));
            prop_assert_eq!(Host::parse(&format!("[{full}]")), Err(HostFault::Ipv6Spelling(ip)));
        } else {
            prop_assert!(ip.is_unicast_link_local() || ip.to_ipv4().is_some());
        }
    }
}
