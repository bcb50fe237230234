//! Clients that know of no proxy.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener};

use super::questions::{address_of, lent};
use super::world::{Closed, Server, Setup, World, allowing, connect, echo, is_reset, text_to_end};

/// A server at 127.0.0.1 and a listener for the same port at `at`.
fn server_and_listener(at: IpAddr) -> (Server, TcpListener) {
    loop {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        if let Ok(listener) = TcpListener::bind((at, port)) {
            return (Server::on(server, echo), listener);
        }
    }
}

fn open(setup: Setup, listener: TcpListener) -> (World, SocketAddr) {
    let address = listener.local_addr().unwrap();
    (setup.direct(listener).open(), address)
}

/// The first address that is lent.
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 77, 0, 1);

#[test]
fn a_lent_address_means_its_name() {
    let (server, listener) = server_and_listener(FIRST.into());
    let port = server.port();
    let (world, address) = open(allowing([format!("allowed.test:{port}")]), listener);
    assert_eq!(lent(&world, "allowed.test"), Some(FIRST));
    let mut client = connect(address);
    client.write_all(b"hi").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(text_to_end(&mut client), "hi");
    let noted = world.settled("allowed.test", Some(port));
    assert_eq!(
        (noted.allowed, noted.sent_bytes, noted.received_bytes),
        (1, 2, 2)
    );
    // A client that resolved by itself may go through the proxy, too.
    world.tunnel(&format!("{FIRST}:{port}"));
    assert_eq!(world.settled("allowed.test", Some(port)).allowed, 2);
}

#[test]
fn an_address_in_ipv6_form_is_the_same() {
    let mapped = IpAddr::V6(FIRST.to_ipv6_mapped());
    if TcpListener::bind((mapped, 0)).is_err() {
        eprintln!("SKIPPED: no sockets of both families on this machine");
        return;
    }
    let (server, listener) = server_and_listener(mapped);
    let port = server.port();
    let (world, _) = open(allowing([format!("allowed.test:{port}")]), listener);
    assert_eq!(lent(&world, "allowed.test"), Some(FIRST));
    let mut client = connect((FIRST, port).into());
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(text_to_end(&mut client), "");
    assert_eq!(world.settled("allowed.test", Some(port)).allowed, 1);
}

#[test]
fn an_address_that_was_never_lent_is_reset() {
    let (server, listener) = server_and_listener(FIRST.into());
    let port = server.port();
    let (world, address) = open(allowing([format!("allowed.test:{port}")]), listener);
    assert!(is_reset(&mut connect(address)));
    let noted = world.settled("127.77.0.1", Some(port));
    assert_eq!((noted.allowed, noted.denied), (0, 1));
    let answer = world.ask(&format!("CONNECT {FIRST}:{port} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    let told = format!(
        "egress denied: 127.77.0.1:{port} is an address for names, and no name was lent it; \
         look the name up first"
    );
    assert_eq!(world.told(), [told]);
}

/// The name is allowed, and the port, but not together.
#[test]
fn a_name_is_not_reached_on_the_port_of_another() {
    let (server, listener) = server_and_listener(FIRST.into());
    let port = server.port();
    let entries = ["allowed.test:1".to_owned(), format!("other.test:{port}")];
    let (world, address) = open(allowing(entries), listener);
    assert_eq!(lent(&world, "allowed.test"), Some(FIRST));
    assert!(is_reset(&mut connect(address)));
    assert_eq!(world.settled("allowed.test", Some(port)).denied, 1);
}

#[test]
fn a_literal_means_itself() {
    // Lies in the network that is lent from.
    let literal = Ipv4Addr::new(127, 77, 3, 4);
    let (server, listener) = server_and_listener(literal.into());
    let port = server.port();
    // Nobody is there but the listener itself, so see that it was let through.
    let setup = allowing([format!("{literal}:{port}")]);
    let (world, address) = open(setup.limits(|limits| limits.connections = 3), listener);
    // It leads to itself again and again, until the bound is met.
    assert!(is_reset(&mut connect(address)));
    let noted = world.settled("127.77.3.4", Some(port));
    assert_eq!((noted.allowed, noted.denied), (3, 1));
}

#[test]
fn a_literal_without_an_entry_is_reset() {
    for at in [
        IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ] {
        let Ok(probe) = TcpListener::bind((at, 0)) else {
            eprintln!("SKIPPED: no address {at} on this machine");
            continue;
        };
        drop(probe);
        let (server, listener) = server_and_listener(at);
        let port = server.port();
        let (world, address) = open(allowing([format!("127.0.0.1:{port}")]), listener);
        assert!(is_reset(&mut connect(address)));
        let shown = SocketAddr::new(at, port);
        let told = format!("egress denied: {shown} is not allowed; give --allow-net {shown}");
        assert_eq!(world.told(), [told]);
    }
}

#[test]
fn a_name_that_leads_inside_is_reset() {
    let (server, listener) = server_and_listener(FIRST.into());
    let port = server.port();
    let (world, address) = open(allowing([format!("loop.test:{port}")]), listener);
    assert_eq!(address_of(&world, "loop.test"), Some(FIRST));
    assert!(is_reset(&mut connect(address)));
    let noted = world.settled("loop.test", Some(port));
    assert_eq!((noted.allowed, noted.denied), (0, 1));
    assert!(
        noted
            .reason
            .unwrap()
            .starts_with("127.0.0.1 is a loopback address")
    );
}

#[test]
fn a_host_that_fails_is_reset() {
    let (closed, listener) = loop {
        let closed = Closed::at("127.0.0.1", 0).unwrap();
        if let Ok(listener) = TcpListener::bind((FIRST, closed.port())) {
            break (closed, listener);
        }
    };
    let port = closed.port();
    let (world, address) = open(allowing([format!("allowed.test:{port}")]), listener);
    assert_eq!(lent(&world, "allowed.test"), Some(FIRST));
    assert!(is_reset(&mut connect(address)));
    assert_eq!(world.settled("allowed.test", Some(port)).allowed, 1);
}
