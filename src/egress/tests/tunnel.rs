//! CONNECT, and which hosts may be reached by it.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::time::Duration;

use super::world::{Closed, Server, allowing, read_head, text_to_end};

#[test]
fn an_allowed_host_is_reached_and_bytes_are_counted() {
    let server = Server::echo();
    let port = server.port();
    let world = allowing([format!("allowed.test:{port}")]).open();
    let mut client = world.tunnel(&format!("allowed.test:{port}"));
    client.write_all(b"hello").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(text_to_end(&mut client), "hello");
    let noted = world.settled("allowed.test", Some(port));
    assert_eq!((noted.allowed, noted.denied), (1, 0));
    assert_eq!((noted.sent_bytes, noted.received_bytes), (5, 5));
    assert_eq!(world.told(), [""; 0]);
}

#[test]
fn bytes_that_come_with_the_request_are_not_lost() {
    let server = Server::echo();
    let port = server.port();
    let world = allowing([format!("allowed.test:{port}")]).open();
    let mut client = world.client();
    let request = format!("CONNECT allowed.test:{port} HTTP/1.1\r\n\r\nearly");
    client.write_all(request.as_bytes()).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert!(read_head(&mut client).starts_with("HTTP/1.1 200 "));
    assert_eq!(text_to_end(&mut client), "early");
}

#[test]
fn what_is_not_allowed_is_refused_with_what_would_allow_it() {
    let server = Server::echo();
    let port = server.port();
    let world = allowing([format!("allowed.test:{port}")]).open();
    let refused = |to: &str| {
        let answer = world.ask(&format!("CONNECT {to} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        body.trim_end().to_owned()
    };
    for to in [
        format!("other.test:{port}"),
        "allowed.test:1".to_owned(),
        format!("x.allowed.test:{port}"),
        format!("allowed.test.evil.test:{port}"),
        // Where the name leads, and where the server is.
        format!("1.1.1.1:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
        "169.254.169.254:80".to_owned(),
    ] {
        assert_eq!(
            refused(&to),
            format!("egress denied: {to} is not allowed; give --allow-net {to}")
        );
    }
    assert_eq!(
        refused(&format!("localhost:{port}")),
        format!(
            "egress denied: localhost:{port} is not allowed; give --allow-net 127.0.0.1:{port}"
        )
    );
    refused(&format!("other.test:{port}"));
    // Each once, though one was asked for twice.
    assert_eq!(world.told().len(), 9);
    let noted = world.settled("other.test", Some(port));
    assert_eq!((noted.allowed, noted.denied), (0, 2));
    assert_eq!(noted.reason.as_deref(), Some("not allowed"));
}

#[test]
fn a_name_that_leads_inside_is_refused() {
    let server = Server::echo();
    let port = server.port();
    let hosts = ["private", "loop", "metadata", "both"];
    let world = allowing(hosts.map(|host| format!("{host}.test:{port}"))).open();
    for (host, class) in [
        ("private", "10.0.0.5 is a private address"),
        ("loop", "127.0.0.1 is a loopback address"),
        ("metadata", "169.254.169.254 is a cloud metadata address"),
    ] {
        let answer = world.ask(&format!("CONNECT {host}.test:{port} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        let expected = format!("egress denied: {host}.test:{port}: {class}; it is reached only by");
        assert!(answer.contains(&expected), "{answer}");
        let noted = world.settled(&format!("{host}.test"), Some(port));
        assert_eq!((noted.allowed, noted.denied), (0, 1));
    }
    // Of two addresses only the public one is dialled.
    world.tunnel(&format!("both.test:{port}"));
    assert_eq!(world.settled("both.test", Some(port)).denied, 0);
}

#[test]
fn a_literal_is_reached_by_its_own_entry_only() {
    let server = Server::echo();
    let port = server.port();
    let world = allowing([format!("127.0.0.1:{port}")]).open();
    world.tunnel(&format!("127.0.0.1:{port}"));
    // Local names mean that address at a proxy.
    world.tunnel(&format!("localhost:{port}"));
    world.tunnel(&format!("db.localhost:{port}"));
    let answer = world.ask(&format!("CONNECT 127.0.0.2:{port} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(world.settled("localhost", Some(port)).allowed, 1);
}

#[test]
fn an_ipv6_literal_is_reached() {
    // Where the system has IPv6 at all, its loopback has this address.
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        eprintln!("SKIPPED: no IPv6 on this machine");
        return;
    };
    let server = Server::on(listener, super::world::echo);
    let port = server.port();
    let world = allowing([format!("[::1]:{port}"), format!("[2606:4700::1]:{port}")]).open();
    world.tunnel(&format!("[::1]:{port}"));
    world.tunnel(&format!("[2606:4700::1]:{port}"));
    world.tunnel(&format!("localhost:{port}"));
    assert_eq!(world.settled("[2606:4700::1]", Some(port)).allowed, 1);
}

#[test]
fn a_host_has_one_spelling() {
    let server = Server::echo();
    let port = server.port();
    let entries = [
        format!("allowed.test:{port}"),
        format!("xn--bcher-kva.test:{port}"),
        format!("*.wild.test:{port}"),
        format!("127.0.0.1:{port}"),
    ];
    let world = allowing(entries).open();
    for host in [
        "ALLOWED.Test",
        "allowed.test.",
        "XN--BCHER-KVA.test",
        "a.wild.test",
        "A.b.wild.test",
    ] {
        world.tunnel(&format!("{host}:{port}"));
    }
    assert_eq!(world.settled("allowed.test", Some(port)).allowed, 2);
    for (host, status) in [
        ("wild.test", 403),
        ("127.1", 400),
        ("0x7f.0.0.1", 400),
        ("2130706433", 400),
        ("017700000001", 400),
        ("127.0.0.1.", 400),
        ("allowed.test..", 400),
        ("user@allowed.test", 400),
        ("allowed.test%00", 400),
        ("[::ffff:127.0.0.1]", 400),
        ("[::1%25lo]", 400),
        ("-a.test", 400),
        ("", 400),
    ] {
        let answer = world.ask(&format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n"));
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{host}: {answer}");
    }
    for port in ["0", "65536", "080", "+80", "", "http"] {
        let answer = world.ask(&format!("CONNECT allowed.test:{port} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 400 "), "{port}: {answer}");
    }
}

#[test]
fn a_host_that_fails_is_told_apart_from_one_that_is_refused() {
    let closed = Closed::at("127.0.0.1", 0).unwrap();
    let port = closed.port();
    let world = allowing([
        format!("allowed.test:{port}"),
        format!("missing.invalid:{port}"),
    ])
    .open();
    let answer = world.ask(&format!("CONNECT allowed.test:{port} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(
        answer.contains("cannot be reached: Connection refused"),
        "{answer}"
    );
    let answer = world.ask(&format!("CONNECT missing.invalid:{port} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(
        answer.contains("there is no host `missing.invalid`"),
        "{answer}"
    );
    let noted = world.settled("allowed.test", Some(port));
    assert_eq!((noted.allowed, noted.denied, noted.sent_bytes), (1, 0, 0));
    assert!(noted.reason.unwrap().contains("cannot be reached"));
    assert_eq!(world.told(), [""; 0]);
}

/// Half of the time is for the first address, so the second gets its turn.
#[test]
fn a_silent_address_leaves_time_for_the_next() {
    let (first, second) = loop {
        let first = Closed::at("127.0.0.9", 0).unwrap();
        if let Some(second) = Closed::at("127.0.0.1", first.port()) {
            break (first.silence(), second);
        }
    };
    let host = format!("silent-first.test:{}", first.port);
    let world = allowing([&host]).limits(|limits| limits.dial = Duration::from_millis(600));
    let world = world.open();
    // The second is refused at once, which is what is told.
    let answer = world.ask(&format!("CONNECT {host} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    let _server = Server::on(second.open(), super::world::echo);
    world.tunnel(&host);
}

#[test]
fn a_silent_host_is_a_gateway_timeout() {
    let silent = Closed::at("127.0.0.1", 0).unwrap().silence();
    let port = silent.port;
    let world = allowing([format!("allowed.test:{port}")]);
    let world = world.limits(|limits| limits.dial = Duration::from_millis(100));
    let answer = world
        .open()
        .ask(&format!("CONNECT allowed.test:{port} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    assert!(answer.contains("did not answer in time"), "{answer}");
}

#[test]
fn a_tunnel_ends_one_way_at_a_time() {
    let server = Server::start(|mut stream| {
        // Says something only after it has heard the end.
        let mut heard = String::new();
        stream.read_to_string(&mut heard).unwrap();
        stream.write_all(heard.to_uppercase().as_bytes()).unwrap();
    });
    let port = server.port();
    let world = allowing([format!("allowed.test:{port}")]).open();
    let mut client = world.tunnel(&format!("allowed.test:{port}"));
    client.write_all(b"half").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(text_to_end(&mut client), "HALF");
}

#[test]
fn a_connection_that_breaks_does_not_look_whole() {
    let server = Server::start(|mut stream| {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        stream.write_all(&byte).unwrap();
        stream.read_exact(&mut byte).unwrap();
        crate::egress::live::reset_on_close(&stream);
    });
    let port = server.port();
    let world = allowing([format!("allowed.test:{port}")]).open();
    let mut client = world.tunnel(&format!("allowed.test:{port}"));
    let mut byte = [0];
    client.write_all(b"1").unwrap();
    client.read_exact(&mut byte).unwrap();
    client.write_all(b"2").unwrap();
    assert!(super::world::is_reset(&mut client));
}
