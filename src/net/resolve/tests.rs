use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::*;
use server::{Server, Via, truncated, with_addresses, with_code};

mod server;

fn name() -> Name {
    Name::parse("www.example.com").unwrap()
}

/// Patient enough that no answer of a test is late.
fn conf(servers: &[SocketAddr]) -> Conf {
    Conf {
        servers: servers.to_vec(),
        timeout: Duration::from_secs(20),
        tries: 1,
        tcp_only: false,
        total: Duration::from_millis(TOTAL_MS),
    }
}

/// For servers that never answer.
fn hasty(servers: &[SocketAddr]) -> Conf {
    Conf {
        timeout: Duration::from_millis(50),
        ..conf(servers)
    }
}

fn found(conf: &Conf) -> Vec<String> {
    match look_up(conf, &name()).unwrap() {
        Found::Addresses(addresses) => addresses.iter().map(Address::to_string).collect(),
        Found::NotFound => panic!("not found"),
    }
}

fn fault(conf: &Conf) -> LookupFault {
    look_up(conf, &name()).unwrap_err()
}

#[test]
fn both_kinds_are_asked_for_and_classified() {
    let server = Server::start(|query, _| {
        vec![with_addresses(
            query,
            &["10.0.0.1", "1.1.1.1", "2001:db8::1"],
        )]
    });
    let Found::Addresses(addresses) = look_up(&conf(&[server.address()]), &name()).unwrap() else {
        panic!("not found");
    };
    let shown: Vec<_> = addresses
        .iter()
        .map(|address| format!("{address} {}", address.class()))
        .collect();
    let expected = [
        "10.0.0.1 private",
        "1.1.1.1 public",
        "2001:db8::1 documentation",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn an_ipv4_address_in_ipv6_form_is_the_same_address() {
    let server = Server::start(|query, _| {
        vec![with_addresses(
            query,
            &["1.1.1.1", "::ffff:1.1.1.1", "::ffff:10.0.0.1"],
        )]
    });
    assert_eq!(found(&conf(&[server.address()])), ["1.1.1.1", "10.0.0.1"]);
}

#[test]
fn strays_are_waited_out() {
    let server = Server::start(|query, _| {
        let good = with_addresses(query, &["1.1.1.1"]);
        let forged = with_addresses(query, &["6.6.6.6"]);
        let changed = |at: usize| {
            let mut bytes = forged.clone();
            bytes[at] ^= 1;
            bytes
        };
        // A wrong id, a wrong name, no bytes, noise, the query itself, and one
        // too long for a datagram without EDNS.
        let mut long = forged.clone();
        long.resize(1233, 0);
        vec![
            changed(1),
            changed(14),
            vec![],
            vec![0xff; 40],
            query.to_vec(),
            long,
            good,
        ]
    });
    assert_eq!(found(&conf(&[server.address()])), ["1.1.1.1"]);
}

#[test]
fn whoever_floods_with_strays_is_left_for_tcp() {
    for (strays, expected) in [(16, "1.1.1.1"), (17, "2.2.2.2")] {
        let server = Server::start(move |query, via| match via {
            Via::Udp => {
                let mut forged = with_addresses(query, &["6.6.6.6"]);
                forged[0] ^= 1;
                let mut answers = vec![forged; strays];
                answers.push(with_addresses(query, &["1.1.1.1"]));
                answers
            }
            Via::Tcp => vec![with_addresses(query, &["2.2.2.2"])],
        });
        assert_eq!(found(&conf(&[server.address()])), [expected], "{strays}");
    }
}

#[test]
fn an_answer_from_another_address_never_arrives() {
    let clients = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&clients);
    let server = Server::start_knowing_clients(move |query, client| {
        // Right in every byte, from another port of the same machine.
        let forger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let _ = forger.send_to(&with_addresses(query, &["6.6.6.6"]), client);
        seen.lock().unwrap().push(client.port());
        vec![with_addresses(query, &["1.1.1.1"])]
    });
    for _ in 0..8 {
        assert_eq!(found(&conf(&[server.address()])), ["1.1.1.1"]);
    }
    let mut ports = clients.lock().unwrap().clone();
    assert_eq!(ports.len(), 16);
    ports.sort_unstable();
    ports.dedup();
    assert!(ports.len() > 8, "hardly any port was fresh: {ports:?}");
}

#[test]
fn what_is_cut_short_is_asked_for_over_tcp() {
    let server = Server::start(|query, via| match via {
        Via::Udp => vec![truncated(query)],
        Via::Tcp => vec![with_addresses(query, &["1.1.1.1", "2606:4700::1"])],
    });
    assert_eq!(
        found(&conf(&[server.address()])),
        ["1.1.1.1", "2606:4700::1"]
    );
    let server = Server::start(|query, _| vec![truncated(query)]);
    assert!(matches!(
        fault(&conf(&[server.address()])),
        LookupFault::Unusable("is cut short")
    ));
}

#[test]
fn the_configuration_can_leave_udp_out() {
    let server = Server::start(|query, via| match via {
        Via::Udp => vec![with_addresses(query, &["6.6.6.6"])],
        Via::Tcp => vec![with_addresses(query, &["1.1.1.1"])],
    });
    let conf = Conf {
        tcp_only: true,
        ..conf(&[server.address()])
    };
    assert_eq!(found(&conf), ["1.1.1.1"]);
}

#[test]
fn an_answer_over_tcp_is_bounded_and_must_be_ours() {
    let over_tcp = |reply: fn(&[u8]) -> Vec<u8>| {
        let server = Server::start(move |query, via| match via {
            Via::Udp => vec![truncated(query)],
            Via::Tcp => vec![reply(query)],
        });
        look_up(&conf(&[server.address()]), &name())
    };
    fn padded(query: &[u8], length: usize) -> Vec<u8> {
        let mut bytes = with_addresses(query, &["1.1.1.1"]);
        bytes.resize(length, 0);
        bytes
    }
    let largest = over_tcp(|query| padded(query, 16 << 10));
    assert!(matches!(largest, Ok(Found::Addresses(some)) if some.len() == 1));
    let no_answer = |result| matches!(result, Err(LookupFault::Ask(AskFault::NoAnswer(_))));
    assert!(no_answer(over_tcp(|query| padded(query, (16 << 10) + 1))));
    assert!(no_answer(over_tcp(|_| vec![])));
    assert!(no_answer(over_tcp(|query| query.to_vec())));
    assert!(no_answer(over_tcp(|query| {
        let mut bytes = with_addresses(query, &["6.6.6.6"]);
        bytes[1] ^= 1;
        bytes
    })));
}

#[test]
fn a_name_that_does_not_exist_is_told_from_one_without_an_address() {
    let server = Server::start(|query, _| vec![with_code(query, 3)]);
    assert!(matches!(
        look_up(&conf(&[server.address()]), &name()),
        Ok(Found::NotFound)
    ));
    let server = Server::start(|query, _| vec![with_addresses(query, &[])]);
    assert_eq!(found(&conf(&[server.address()])), [""; 0]);
}

#[test]
fn one_kind_of_address_is_enough() {
    let server = Server::start(|query, _| match server::is_aaaa(query) {
        true => vec![with_code(query, 2)],
        false => vec![with_addresses(query, &["1.1.1.1"])],
    });
    assert_eq!(found(&conf(&[server.address()])), ["1.1.1.1"]);
    // An empty answer of one kind says nothing of the other.
    let server = Server::start(|query, _| match server::is_aaaa(query) {
        true => vec![with_code(query, 2)],
        false => vec![with_addresses(query, &[])],
    });
    assert!(matches!(
        fault(&conf(&[server.address()])),
        LookupFault::Rcode(2)
    ));
}

#[test]
fn the_next_server_is_asked_when_one_fails() {
    let good = Server::start(|query, _| vec![with_addresses(query, &["1.1.1.1"])]);
    let failing = Server::start(|query, _| vec![with_code(query, 2)]);
    let refusing = Server::start(|query, _| vec![with_code(query, 5)]);
    let servers = [failing.address(), refusing.address(), good.address()];
    assert_eq!(found(&conf(&servers)), ["1.1.1.1"]);
    let silent = Server::start(|_, _| vec![]);
    // Asked again and again, as a busy machine may make the good one late.
    let impatient = Conf {
        tries: 100,
        ..hasty(&[silent.address(), silent.address(), good.address()])
    };
    assert_eq!(found(&impatient), ["1.1.1.1"]);
    // Nothing listens there: the kernel says so at once.
    let closed = SocketAddr::from(([127, 0, 0, 1], 1));
    assert_eq!(found(&conf(&[closed, good.address()])), ["1.1.1.1"]);
    assert!(matches!(
        fault(&conf(&[closed])),
        LookupFault::Ask(AskFault::Io { .. })
    ));
    assert!(matches!(fault(&conf(&servers[..2])), LookupFault::Rcode(5)));
}

#[test]
fn each_server_is_asked_as_often_as_configured() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let server = Server::start(move |query, _| {
        count.fetch_add(1, Ordering::SeqCst);
        vec![with_code(query, 2)]
    });
    let conf = Conf {
        tries: 3,
        ..conf(&[server.address()])
    };
    assert!(matches!(fault(&conf), LookupFault::Rcode(2)));
    // Of each of the two kinds.
    assert_eq!(asked.load(Ordering::SeqCst), 6);
    let no_time = Conf {
        total: Duration::ZERO,
        ..conf
    };
    assert!(matches!(fault(&no_time), LookupFault::TooLate));
    assert_eq!(asked.load(Ordering::SeqCst), 6);
}

#[test]
fn silence_and_dripping_end() {
    let silent = Server::start(|_, _| vec![]);
    assert!(matches!(
        fault(&hasty(&[silent.address()])),
        LookupFault::Ask(AskFault::Silent(_))
    ));
    let dripping = Server::start_dripping();
    let conf = Conf {
        tcp_only: true,
        ..hasty(&[dripping.address()])
    };
    assert!(matches!(
        fault(&conf),
        LookupFault::Ask(AskFault::Silent(_))
    ));
}

#[test]
fn the_hosts_file_goes_before_the_name_servers() {
    let dir = tempfile::tempdir().unwrap();
    let path = |file: &str| dir.path().join(file);
    std::fs::write(path("hosts"), "10.0.0.5 db\n1.1.1.1 www.example.com\n").unwrap();
    let resolver = Resolver::with_files(path("hosts"), path("resolv.conf"));
    let resolve = |name: &str| resolver.resolve(&Name::parse(name).unwrap());
    let db = resolve("db").unwrap();
    assert_eq!(db, [Address::from(IpAddr::from([10, 0, 0, 5]))]);
    assert!(!db[0].is_public());
    // Names that are never asked for need no server.
    for name in ["localhost", "a.localhost", "a.invalid", "a.onion"] {
        assert!(
            matches!(resolve(name), Err(ResolveError::NotFound(_))),
            "{name}"
        );
    }
    let missing = resolve("other.example").unwrap_err().to_string();
    let shown = path("resolv.conf").display().to_string();
    assert_eq!(
        missing,
        format!("{shown}: No such file or directory (os error 2)")
    );
    std::fs::write(path("resolv.conf"), "search example.com\n").unwrap();
    let empty = resolve("other.example").unwrap_err().to_string();
    assert_eq!(
        empty,
        format!("{shown}: it names no name server; add a line `nameserver ADDRESS`")
    );
}

#[test]
fn errors_name_the_host_and_the_next_step() {
    let server = "127.0.0.1:53".parse().unwrap();
    let failed = |fault| {
        let resolv_conf = PathBuf::from("/etc/resolv.conf");
        ResolveError::Failed {
            name: name(),
            fault,
            resolv_conf,
        }
        .to_string()
    };
    let shown = [
        ResolveError::NotFound(name()).to_string(),
        ResolveError::NoAddress(name()).to_string(),
        failed(LookupFault::Rcode(2)),
        failed(LookupFault::TooLate),
        failed(LookupFault::Unusable("has too many aliases")),
        failed(AskFault::Silent(server).into()),
        failed(AskFault::NoAnswer(server).into()),
        failed(
            AskFault::Io {
                server,
                error: io::ErrorKind::ConnectionRefused.into(),
            }
            .into(),
        ),
    ];
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn name_servers_are_those_that_a_program_without_interfaces_can_ask() {
    let dir = tempfile::tempdir().unwrap();
    let conf = dir.path().join("resolv.conf");
    let servers = |text: &str| {
        std::fs::write(&conf, text).unwrap();
        let servers = Resolver::with_files("/dev/null", &conf).name_servers();
        servers.iter().map(IpAddr::to_string).collect::<Vec<_>>()
    };
    let text = "nameserver 192.0.2.2\nnameserver fe80::1%1\nnameserver 192.0.2.1\n";
    assert_eq!(servers(text), ["192.0.2.1", "192.0.2.2"]);
    assert_eq!(servers("nameserver ::1\nnameserver ::1\n"), ["::1"]);
    assert_eq!(servers("search example\n"), Vec::<String>::new());
}
