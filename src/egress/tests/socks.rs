//! SOCKS.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use super::world::{Closed, Server, World, allowing, text_to_end};

/// The bytes of a request for a name.
fn by_name(name: &[u8], port: u16) -> Vec<u8> {
    let mut request = vec![5, 1, 0, 3, name.len() as u8];
    request.extend_from_slice(name);
    request.extend_from_slice(&port.to_be_bytes());
    request
}

fn greeted(world: &World) -> TcpStream {
    let mut client = world.client();
    client.write_all(&[5, 1, 0]).unwrap();
    let mut reply = [0; 2];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(reply, [5, 0]);
    client
}

/// The code of the reply, and the connection if it was let through.
fn asked(world: &World, request: &[u8]) -> (u8, TcpStream) {
    let mut client = greeted(world);
    client.write_all(request).unwrap();
    let mut reply = [0; 10];
    client.read_exact(&mut reply).unwrap();
    assert_eq!([reply[0], reply[2], reply[3]], [5, 0, 1]);
    (reply[1], client)
}

#[test]
fn names_and_addresses_are_reached() {
    let server = Server::echo();
    let port = server.port();
    let entries = [format!("allowed.test:{port}"), format!("127.0.0.1:{port}")];
    let world = allowing(entries).open();
    let [high, low] = port.to_be_bytes();
    for request in [
        by_name(b"allowed.test", port),
        by_name(b"Allowed.TEST.", port),
        by_name(b"127.0.0.1", port),
        by_name(b"localhost", port),
        vec![5, 1, 0, 1, 127, 0, 0, 1, high, low],
        // The same address in IPv6 form.
        [
            &[5, 1, 0, 4][..],
            &[0; 10],
            &[255, 255, 127, 0, 0, 1, high, low],
        ]
        .concat(),
    ] {
        let (code, mut client) = asked(&world, &request);
        assert_eq!(code, 0, "{request:?}");
        client.write_all(b"hi").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(text_to_end(&mut client), "hi");
    }
    assert_eq!(world.settled("127.0.0.1", Some(port)).allowed, 3);
    assert_eq!(world.told(), [""; 0]);
}

#[test]
fn each_refusal_has_its_code() {
    let server = Server::echo();
    let closed = Closed::at("127.0.0.1", 0).unwrap();
    let (port, nobody) = (server.port(), closed.port());
    let entries = [
        format!("allowed.test:{port},{nobody}"),
        format!("missing.invalid:{port}"),
        format!("private.test:{port}"),
        format!("127.0.0.1:{port}"),
    ];
    let world = allowing(entries).open();
    let [high, low] = port.to_be_bytes();
    for (case, request, code) in [
        ("another host", by_name(b"other.test", port), 2),
        ("another port", by_name(b"allowed.test", 1), 2),
        ("an address", vec![5, 1, 0, 1, 10, 0, 0, 1, high, low], 2),
        (
            "a name that leads inside",
            by_name(b"private.test", port),
            2,
        ),
        ("an odd address", by_name(b"127.1", port), 2),
        ("a decimal address", by_name(b"2130706433", port), 2),
        ("an address with a dot", by_name(b"127.0.0.1.", port), 2),
        ("IPv6 as a name", by_name(b"::1", port), 2),
        ("no name", by_name(b"", port), 2),
        ("a zero byte", by_name(b"allowed.test\0.evil.test", port), 2),
        ("no ASCII", by_name("b\u{fc}cher.test".as_bytes(), port), 2),
        ("no UTF-8", by_name(b"\xff\xfe", port), 2),
        ("the longest name", by_name(&[b'a'; 255], port), 2),
        ("port 0", by_name(b"allowed.test", 0), 1),
        ("no such name", by_name(b"missing.invalid", port), 4),
        ("nobody there", by_name(b"allowed.test", nobody), 5),
        ("BIND", vec![5, 2, 0, 1, 127, 0, 0, 1, high, low], 7),
        ("UDP", vec![5, 3, 0, 1, 127, 0, 0, 1, high, low], 7),
        ("no command", vec![5, 9, 0, 1, 127, 0, 0, 1, high, low], 7),
        (
            "no type of address",
            vec![5, 1, 0, 2, 127, 0, 0, 1, high, low],
            8,
        ),
        (
            "another version",
            vec![4, 1, 0, 1, 127, 0, 0, 1, high, low],
            1,
        ),
        (
            "reserved bits",
            vec![5, 1, 1, 1, 127, 0, 0, 1, high, low],
            1,
        ),
    ] {
        let (said, mut client) = asked(&world, &request);
        assert_eq!(said, code, "{case}");
        // The reply is followed by an end, not by a reset.
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(text_to_end(&mut client), "", "{case}");
    }
    let told = world.told();
    let said = "egress denied: allowed.test\\u{0}.evil.test:";
    assert!(told.iter().any(|told| told.starts_with(said)), "{told:?}");
    // The host of a refusal is bounded.
    let longest = told.iter().map(String::len).max();
    assert!(longest < Some(300), "{told:?}");
}

#[test]
fn only_clients_without_a_login_are_served() {
    let world = allowing(["allowed.test:80"]).open();
    for methods in [&[5, 0][..], &[5, 1, 2], &[5, 3, 1, 2, 128]] {
        let mut client = world.client();
        client.write_all(methods).unwrap();
        let mut reply = [0; 2];
        client.read_exact(&mut reply).unwrap();
        assert_eq!(reply, [5, 255], "{methods:?}");
    }
    // Any number of methods may be offered.
    let mut all = vec![5, 255];
    all.extend((0..255).rev());
    let mut client = world.client();
    client.write_all(&all).unwrap();
    let mut reply = [0; 2];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(reply, [5, 0]);
}

#[test]
fn version_4_is_refused_in_its_own_words() {
    let world = allowing(["127.0.0.1:80"]).open();
    let mut client = world.client();
    client.write_all(&[4, 1, 0, 80, 127, 0, 0, 1, 0]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut reply = Vec::new();
    client.read_to_end(&mut reply).unwrap();
    assert_eq!(reply, [0, 91, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn packets_may_be_split_anywhere() {
    let server = Server::echo();
    let port = server.port();
    let world = allowing([format!("allowed.test:{port}")]).open();
    let mut client = world.client();
    client.set_nodelay(true).unwrap();
    // All at once and byte by byte: nobody waits for a reply.
    let mut bytes = vec![5, 2, 7, 0];
    bytes.extend(by_name(b"allowed.test", port));
    bytes.extend(b"early");
    for byte in bytes {
        client.write_all(&[byte]).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    client.shutdown(Shutdown::Write).unwrap();
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"\x05\0\x05\0\0\x01\0\0\0\0\0\0early");
}

#[test]
fn a_client_that_stops_halfway_is_noted() {
    let world = allowing(["allowed.test:80"]).open();
    let mut client = greeted(&world);
    client.write_all(&[5, 1]).unwrap();
    drop(client);
    super::world::eventually(|| world.egress.ledger().total().denied == 1);
    let told = "egress denied: <unknown>: the SOCKS request is cut off or took too long";
    assert_eq!(world.told(), [told]);
}
