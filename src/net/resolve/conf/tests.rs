use proptest::prelude::*;

use super::*;

fn conf(text: &str) -> Conf {
    Conf::parse(text.as_bytes()).unwrap()
}

fn servers(text: &str) -> Vec<String> {
    conf(text)
        .servers
        .iter()
        .map(|server| server.to_string())
        .collect()
}

#[test]
fn servers_are_asked_in_their_order_and_only_three_of_them() {
    let text = "# comment\nsearch example.com\nnameserver 127.0.0.53\n\
                nameserver 2001:db8::53 # second\n; nameserver 1.1.1.1\nnameserver\n\
                nameserver dns.example\nnameserver 0x7f.1\n  nameserver\t10.0.0.53\n\
                nameserver 10.0.0.54\n";
    assert_eq!(
        servers(text),
        ["127.0.0.53:53", "[2001:db8::53]:53", "10.0.0.53:53"]
    );
}

#[test]
fn a_link_local_server_has_the_index_of_its_interface() {
    assert_eq!(servers("nameserver fe80::1%7"), ["[fe80::1%7]:53"]);
    // The loopback is the first interface everywhere.
    assert_eq!(servers("nameserver fe80::1%lo"), ["[fe80::1%1]:53"]);
    for zone in ["", "nosuch0", "../net/lo", "."] {
        let text = format!("nameserver fe80::1%{zone}");
        assert_eq!(Conf::parse(text.as_bytes()), None, "{zone}");
    }
}

#[test]
fn options_are_bounded_and_unknown_ones_skipped() {
    let default = conf("nameserver ::1");
    assert_eq!(default.timeout, Duration::from_secs(5));
    assert_eq!(default.tries, 2);
    assert!(!default.tcp_only);
    assert_eq!(default.total, Duration::from_millis(TOTAL_MS));
    let set = conf("nameserver ::1\noptions ndots:5 timeout:3 use-vc\noptions attempts:4 edns0");
    assert_eq!(
        (set.timeout, set.tries, set.tcp_only),
        (Duration::from_secs(3), 4, true)
    );
    for (given, timeout_s, tries) in [("0", 1, 1), ("5", 5, 5), ("30", 30, 5), ("31", 30, 5)] {
        let set = conf(&format!(
            "nameserver ::1\noptions timeout:{given} attempts:{given}"
        ));
        assert_eq!(
            (set.timeout.as_secs(), set.tries),
            (timeout_s, tries),
            "{given}"
        );
    }
    for odd in [
        "timeout:",
        "timeout:-1",
        "timeout:99999999999999999999",
        "attempts:x",
        ":",
    ] {
        assert_eq!(
            conf(&format!("nameserver ::1\noptions {odd}")),
            default,
            "{odd}"
        );
    }
}

#[test]
fn a_file_without_a_server_or_too_large_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let read = |text: &str| {
        fs::write(file.path(), text).unwrap();
        Conf::read(file.path())
    };
    assert!(matches!(
        read("search example.com\n"),
        Err(FileFault::NoServer)
    ));
    let line = "nameserver ::1\n";
    let pad = "#".repeat(MAX_BYTES as usize - line.len());
    assert!(read(&format!("{line}{pad}")).is_ok());
    assert!(matches!(
        read(&format!("{line}{pad}#")),
        Err(FileFault::Large(MAX_BYTES))
    ));
    assert!(matches!(
        Conf::read(Path::new("/nonexistent/resolv.conf")),
        Err(FileFault::Io(_))
    ));
}

proptest! {
    #[test]
    fn any_file_is_read_or_has_no_server(bytes in any::<Vec<u8>>(), words in "(nameserver|options|[a-z:.0-9%]{0,9}|[ \n])*") {
        let _ = Conf::parse(&bytes);
        if let Some(conf) = Conf::parse(words.as_bytes()) {
            prop_assert!((1..=MAX_SERVERS).contains(&conf.servers.len()));
        }
    }
}
