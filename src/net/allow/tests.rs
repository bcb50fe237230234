use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

fn allow(text: &str) -> Allow {
    Allow::parse(text).unwrap()
}

fn fault(text: &str) -> AllowFault {
    Allow::parse(text).unwrap_err().fault
}

fn host(text: &str) -> Host {
    Host::parse(text).unwrap()
}

fn address(text: &str) -> Address {
    Address::from(text.parse::<IpAddr>().unwrap())
}

#[test]
fn entries_are_shown_in_their_one_spelling() {
    for (text, shown) in [
        ("Example.com:443", "example.com:443"),
        ("example.com:443,80,443", "example.com:80,443"),
        ("*.Example.com:1,65535", "*.example.com:1,65535"),
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("[::1]:8080", "[::1]:8080"),
        ("10.0.0.1:5432", "10.0.0.1:5432"),
        ("169.254.169.254:80", "169.254.169.254:80"),
        ("db:5432", "db:5432"),
    ] {
        assert_eq!(allow(text).to_string(), shown);
        assert_eq!(allow(shown), allow(text));
    }
}

#[test]
fn an_entry_matches_its_host_and_ports_only() {
    let entry = allow("example.com:80,443");
    assert!(entry.matches(&host("EXAMPLE.com"), 443));
    assert!(entry.matches(&host("example.com"), 80));
    for port in [0, 79, 81, 444, 8080] {
        assert!(!entry.matches(&host("example.com"), port), "{port}");
    }
    for other in ["www.example.com", "com", "example.com.net", "127.0.0.1"] {
        assert!(!entry.matches(&host(other), 443), "{other}");
    }
    let entry = allow("*.example.com:443");
    assert!(entry.matches(&host("a.example.com"), 443));
    assert!(entry.matches(&host("b.a.example.com"), 443));
    assert!(!entry.matches(&host("a.example.com"), 80));
    for other in ["example.com", "evilexample.com", "93.184.216.34", "[::1]"] {
        assert!(!entry.matches(&host(other), 443), "{other}");
    }
    let entry = allow("[::1]:80");
    assert!(entry.matches(&host("[::1]"), 80));
    assert!(!entry.matches(&host("127.0.0.1"), 80));
    let mapped = "::ffff:127.0.0.1".parse::<IpAddr>().unwrap();
    assert!(allow("127.0.0.1:80").matches(&Host::from(mapped), 80));
}

#[test]
fn only_a_literal_opens_an_address_that_is_not_public() {
    let inside = [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "::1",
        "fd00:ec2::254",
        "::ffff:127.0.0.1",
        "64:ff9b::a00:1",
    ];
    for (entry, name) in [
        ("example.com:443", "example.com"),
        ("*.example.com:443", "a.example.com"),
    ] {
        let (entry, name) = (allow(entry), host(name));
        let public = entry.target(&name, address("1.1.1.1"), 443).unwrap();
        assert_eq!(public.socket_address(), "1.1.1.1:443".parse().unwrap());
        for text in inside {
            let address = address(text);
            let refused = TargetFault::NotPublic(address.ip(), address.class());
            assert_eq!(entry.target(&name, address, 443), Err(refused), "{text}");
        }
        for (host, port) in [
            (&name, 80),
            (&host("other.net"), 443),
            (&host("1.1.1.1"), 443),
        ] {
            let refused = entry.target(host, address("1.1.1.1"), port);
            assert_eq!(refused, Err(TargetFault::NotAllowed), "{host}:{port}");
        }
    }
    let entry = allow("127.0.0.1:443");
    let literal = host("127.0.0.1");
    assert!(entry.target(&literal, address("127.0.0.1"), 443).is_ok());
    assert!(
        entry
            .target(&literal, address("::ffff:127.0.0.1"), 443)
            .is_ok()
    );
    for other in ["127.0.0.2", "1.1.1.1", "::1"] {
        let fault = TargetFault::OtherAddress(address(other).ip());
        assert_eq!(
            entry.target(&literal, address(other), 443),
            Err(fault),
            "{other}"
        );
    }
    // A name of the same address is not the literal.
    let refused = entry.target(&host("a.example"), address("127.0.0.1"), 443);
    assert_eq!(refused, Err(TargetFault::NotAllowed));
}

#[test]
fn what_is_no_host_is_refused_by_its_fault() {
    for (text, expected) in [
        ("", AllowFault::Host(HostFault::Missing)),
        (":443", AllowFault::Host(HostFault::Missing)),
        ("example.com", AllowFault::Port(PortFault::Missing)),
        ("example.com:", AllowFault::Port(PortFault::Missing)),
        ("example.com:80,", AllowFault::Port(PortFault::Missing)),
        ("example.com:0", AllowFault::Port(PortFault::Zero)),
        ("example.com:65536", AllowFault::Port(PortFault::Number)),
        ("example.com:https", AllowFault::Port(PortFault::Number)),
        ("example.com:80-90", AllowFault::Range),
        ("example.com:*", AllowFault::EveryPort),
        (" example.com:80", AllowFault::Space),
        ("example.com:80\n", AllowFault::Space),
        ("example.com:80, 443", AllowFault::Space),
        ("*:443", AllowFault::EveryHost),
        ("*", AllowFault::EveryHost),
        ("*.com:443", AllowFault::WildcardTop),
        ("*.xn--p1ai:443", AllowFault::WildcardTop),
        ("*example.com:443", AllowFault::WildcardPlace),
        ("a.*.com:443", AllowFault::WildcardPlace),
        ("*.*.com:443", AllowFault::WildcardPlace),
        ("example.*:443", AllowFault::WildcardPlace),
        ("*.10.0.0.1:443", AllowFault::WildcardAddress),
        ("*.[::1]:443", AllowFault::WildcardAddress),
        ("*.:443", AllowFault::Host(HostFault::Missing)),
        ("localhost:80", AllowFault::Localhost),
        ("a.LocalHost:80", AllowFault::Localhost),
        ("*.a.localhost:80", AllowFault::Localhost),
        ("0.0.0.0:80", AllowFault::Unspecified),
        ("[::]:80", AllowFault::Unspecified),
        ("224.0.0.1:80", AllowFault::NoHost(Class::Multicast)),
        ("[ff02::1]:80", AllowFault::NoHost(Class::Multicast)),
        ("255.255.255.255:80", AllowFault::NoHost(Class::Broadcast)),
        ("ftp://", AllowFault::Scheme(None)),
        ("@", AllowFault::User(None)),
    ] {
        assert_eq!(fault(text), expected, "{text}");
    }
}

#[test]
fn an_error_names_the_flag_the_text_the_fault_and_the_cure() {
    let shown = [
        "https://user@example.com/a@b",
        "ftp://example.com",
        "user:secret@example.com:443",
        "10.0.0.0/8:443",
        "example.com:443/path",
        "0x7f.1:80",
        "example.com.:443",
        "bücher.example:443",
        "::1:80",
        "[::ffff:10.0.0.1]:80",
        "[fe80::1%eth0]:80",
        "a\u{202e}b:80",
        "a\\b:80",
        "example.com:80-90",
        "*.com:443",
        "localhost:80",
        "0.0.0.0:80",
        "224.0.0.1:80",
        "a b:80",
    ]
    .map(|text| Allow::parse(text).unwrap_err().to_string())
    .join("\n");
    insta::assert_snapshot!(shown);
}

#[test]
fn ports_and_text_are_bounded() {
    let ports = |count: u16| {
        let ports: Vec<_> = (1..=count).map(|port| port.to_string()).collect();
        format!("a:{}", ports.join(","))
    };
    assert_eq!(allow(&ports(64)).ports().len(), MAX_PORTS);
    assert_eq!(fault(&ports(65)), AllowFault::ManyPorts(65));
    // Repeated ports are one.
    let most = format!("a:{}1", "1,".repeat(MAX_ENTRY_BYTES / 2 - 2));
    assert_eq!(allow(&most).ports(), [1]);
    let long = "a".repeat(MAX_ENTRY_BYTES);
    assert!(!matches!(fault(&long), AllowFault::Long(_)));
    assert_eq!(fault(&format!("{long}a")), AllowFault::Long(1025));
    // The longest name fits under a wildcard, and with every port.
    let label = "a".repeat(63);
    let apex = &[label.as_str(); 4].join(".")[..253];
    assert!(Allow::parse(&format!("*.{apex}:{}", "65535,".repeat(63) + "1")).is_ok());
}

proptest! {
    #[test]
    fn an_entry_is_displayed_in_the_spelling_that_is_read(
        text in prop_oneof![
            "(\\*\\.)?[a-zA-Z0-9._-]{1,30}:[0-9]{1,5}(,[0-9]{1,5}){0,3}",
            "[0-9]{1,3}(\\.[0-9]{1,3}){3}:[1-9][0-9]{0,4}",
            "\\[[0-9a-f:]{2,20}\\]:[1-9][0-9]{0,4}",
        ],
    ) {
        if let Ok(entry) = Allow::parse(&text) {
            prop_assert_eq!(&Allow::parse(&entry.to_string()), &Ok(entry));
        }
    }

    #[test]
    fn any_text_is_an_entry_or_an_error_on_one_line(text in any::<String>()) {
        if let Err(error) = Allow::parse(&text) {
            let shown = error.to_string();
            prop_assert!(shown.starts_with("--allow-net `"));
            prop_assert!(!shown.contains(char::is_control));
        }
    }

    #[test]
    fn a_name_never_leads_to_an_address_that_is_not_public(ip: u32, v6: u128) {
        let entry = allow("*.example.com:443");
        for ip in [IpAddr::from(Ipv4Addr::from(ip)), IpAddr::from(std::net::Ipv6Addr::from(v6))] {
            let address = Address::from(ip);
            let target = entry.target(&host("a.example.com"), address, 443);
            prop_assert_eq!(target.is_ok(), address.is_public());
        }
    }
}
