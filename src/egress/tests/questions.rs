//! The name server, as clients see it.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream, UdpSocket};
use std::time::Duration;

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, QCLASS, QTYPE, Question, RCODE, TYPE};

use super::world::{PATIENCE, World, allowing, connect};
use crate::net::pool::MAX_LENT;

fn question(name: &str, kind: TYPE) -> Vec<u8> {
    let mut packet = Packet::new_query(77);
    let name = Name::new_unchecked(name);
    let class = QCLASS::CLASS(CLASS::IN);
    let question = Question::new(name, QTYPE::TYPE(kind), class, false);
    packet.questions.push(question);
    packet.build_bytes_vec().unwrap()
}

fn udp(world: &World) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.connect(world.dns_udp).unwrap();
    socket
}

fn answer_to(socket: &UdpSocket, query: &[u8]) -> Vec<u8> {
    socket.send(query).unwrap();
    let mut answer = vec![0; 4096];
    let length = socket.recv(&mut answer).unwrap();
    assert!(length <= 512, "{length}");
    answer.truncate(length);
    answer
}

/// The code and what is answered, as text.
fn answered(world: &World, name: &str, kind: TYPE) -> (RCODE, Vec<String>) {
    read(&answer_to(&udp(world), &question(name, kind)))
}

fn read(bytes: &[u8]) -> (RCODE, Vec<String>) {
    let packet = Packet::parse(bytes).unwrap();
    let shown = |record: &simple_dns::ResourceRecord<'_>| match &record.rdata {
        RData::A(a) => Ipv4Addr::from(a.address).to_string(),
        RData::AAAA(aaaa) => std::net::Ipv6Addr::from(aaaa.address).to_string(),
        RData::PTR(name) => name.0.to_string(),
        other => panic!("{other:?}"),
    };
    (packet.rcode(), packet.answers.iter().map(shown).collect())
}

pub(super) fn address_of(world: &World, name: &str) -> Option<Ipv4Addr> {
    let (_, answers) = answered(world, name, TYPE::A);
    answers.first().map(|address| address.parse().unwrap())
}

pub(super) use address_of as lent;

/// SPEC [SANDBOX-11].
#[test]
fn allowed_names_are_lent_an_address_for_good() {
    let world = allowing(["allowed.test:1", "*.wild.test:2"]).open();
    for (name, address) in [
        ("allowed.test", "127.77.0.1"),
        ("a.wild.test", "127.77.0.2"),
        ("a.b.wild.test", "127.77.0.3"),
        ("ALLOWED.Test", "127.77.0.1"),
        ("A.WILD.TEST", "127.77.0.2"),
    ] {
        let expected = (RCODE::NoError, vec![address.to_owned()]);
        assert_eq!(answered(&world, name, TYPE::A), expected, "{name}");
    }
    assert_eq!(world.told(), [""; 0]);
    assert_eq!(world.egress.ledger().total().denied, 0);
}

#[test]
fn other_names_do_not_exist_and_are_noted() {
    let world = allowing(["allowed.test:1", "*.wild.test:2", "10.0.0.1:3"]).open();
    for name in [
        "other.test",
        "wild.test",
        // As a search list makes it.
        "allowed.test.lan.example",
        "10.0.0.1",
        "xn--.test",
        "a b.test",
    ] {
        for kind in [TYPE::A, TYPE::AAAA, TYPE::TXT] {
            assert_eq!(answered(&world, name, kind), (RCODE::NameError, vec![]));
        }
        let noted = world.settled(name, None);
        assert_eq!((noted.allowed, noted.denied), (0, 3));
    }
    let told = "egress denied: other.test is not allowed; give --allow-net other.test:PORT";
    assert_eq!(world.told()[0], told);
    assert_eq!(world.told().len(), 6);
}

#[test]
fn an_allowed_name_has_nothing_but_an_address() {
    let world = allowing(["allowed.test:1"]).open();
    for kind in [
        TYPE::AAAA,
        TYPE::TXT,
        TYPE::MX,
        TYPE::HTTPS,
        TYPE::SVCB,
        TYPE::NS,
        TYPE::PTR,
    ] {
        assert_eq!(
            answered(&world, "allowed.test", kind),
            (RCODE::NoError, vec![])
        );
    }
    assert_eq!(world.egress.ledger().total().denied, 0);
}

#[test]
fn localhost_is_this_machine() {
    let world = allowing(["allowed.test:1"]).open();
    for name in ["localhost", "db.localhost"] {
        for (kind, address) in [(TYPE::A, "127.0.0.1"), (TYPE::AAAA, "::1")] {
            let expected = (RCODE::NoError, vec![address.to_owned()]);
            assert_eq!(answered(&world, name, kind), expected);
        }
        assert_eq!(answered(&world, name, TYPE::TXT), (RCODE::NoError, vec![]));
    }
}

#[test]
fn inverse_questions_give_back_the_name() {
    let world = allowing(["allowed.test:1"]).open();
    assert!(lent(&world, "allowed.test").is_some());
    for (name, expected) in [
        ("1.0.77.127.in-addr.arpa", Some("allowed.test")),
        ("1.0.77.127.IN-ADDR.ARPA", Some("allowed.test")),
        ("1.0.0.127.in-addr.arpa", Some("localhost")),
        ("2.0.77.127.in-addr.arpa", None),
        ("8.8.8.8.in-addr.arpa", None),
        ("01.0.77.127.in-addr.arpa", None),
    ] {
        let code = if expected.is_some() {
            RCODE::NoError
        } else {
            RCODE::NameError
        };
        let expected = expected.map(str::to_owned).into_iter().collect();
        assert_eq!(
            answered(&world, name, TYPE::PTR),
            (code, expected),
            "{name}"
        );
    }
}

#[test]
fn names_beyond_the_pool_fail_and_none_gets_the_address_of_another() {
    let world = allowing(["*.wild.test:1"]).open();
    let socket = udp(&world);
    let mut seen = std::collections::HashSet::new();
    for number in 0..MAX_LENT {
        let query = question(&format!("{number}.wild.test"), TYPE::A);
        let (code, addresses) = read(&answer_to(&socket, &query));
        assert_eq!(code, RCODE::NoError);
        assert!(seen.insert(addresses[0].clone()));
    }
    let query = question("more.wild.test", TYPE::A);
    assert_eq!(
        read(&answer_to(&socket, &query)),
        (RCODE::ServerFailure, vec![])
    );
    let first = read(&answer_to(&socket, &question("0.wild.test", TYPE::A)));
    assert_eq!(first, (RCODE::NoError, vec!["127.77.0.1".to_owned()]));
    assert!(world.told()[0].contains("all 4096 addresses for names are lent"));
}

/// Whoever puts what it has read into names makes many of them.
#[test]
fn a_flood_of_names_is_counted_and_not_kept() {
    let world = allowing(["allowed.test:1"]).open();
    let socket = udp(&world);
    let mark = world.egress.ledger().mark();
    for number in 0..5000 {
        let name = format!("{}.{number}.evil.test", "x".repeat(60));
        let answer = answer_to(&socket, &question(&name, TYPE::TXT));
        assert_eq!(read(&answer), (RCODE::NameError, vec![]));
    }
    let total = world.egress.ledger().total();
    assert_eq!(total.denied, 5000);
    assert_eq!(total.destinations.len(), 64);
    // Told apart up to a bound.
    assert_eq!(total.more_destinations, 4096);
    assert!(total.destinations[0].host.ends_with(".0.evil.test"));
    let overlapping = world.egress.ledger().since(&mark).unwrap();
    assert_eq!((overlapping.denied, overlapping.hosts.len()), (5000, 16));
    assert_eq!(world.told().len(), 64);
}

fn over_tcp(stream: &mut TcpStream, query: &[u8]) -> Vec<u8> {
    let length = (query.len() as u16).to_be_bytes();
    stream.write_all(&[&length[..], query].concat()).unwrap();
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer).unwrap();
    answer
}

#[test]
fn several_questions_come_over_one_tcp_connection() {
    let world = allowing(["allowed.test:1"]).open();
    let mut stream = connect(world.dns_tcp);
    for _ in 0..3 {
        let answer = over_tcp(&mut stream, &question("allowed.test", TYPE::A));
        assert_eq!(read(&answer).1, ["127.77.0.1"]);
        let answer = over_tcp(&mut stream, &question("other.test", TYPE::A));
        assert_eq!(read(&answer).0, RCODE::NameError);
    }
    // Two at once, and one of them in pieces.
    let query = question("allowed.test", TYPE::A);
    let message = [&(query.len() as u16).to_be_bytes()[..], &query].concat();
    let both = [&message[..], &message].concat();
    for part in both.chunks(7) {
        stream.write_all(part).unwrap();
    }
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).unwrap();
    let (first, second) = answers.split_at(answers.len() / 2);
    assert_eq!(first, second);
}

#[test]
fn tcp_is_bounded_in_size_time_and_number() {
    let world = allowing(["allowed.test:1"])
        .limits(|limits| {
            limits.dns_connections = 2;
            limits.head = Duration::from_millis(200);
        })
        .open();
    let is_closed = |mut stream: TcpStream| {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        rest.is_empty()
    };
    for bytes in [&[0x10, 0x01][..], &[0, 0], &[0, 3, 1, 2, 3], &[]] {
        let mut stream = connect(world.dns_tcp);
        stream.write_all(bytes).unwrap();
        // Closed by the other side, also when nothing comes.
        assert!(is_closed(stream), "{bytes:?}");
    }
    let patient = allowing(["allowed.test:1"])
        .limits(|limits| limits.dns_connections = 2)
        .open();
    let mut held = [connect(patient.dns_tcp), connect(patient.dns_tcp)];
    for stream in &mut held {
        over_tcp(stream, &question("allowed.test", TYPE::A));
    }
    assert!(is_closed(connect(patient.dns_tcp)));
    assert_eq!(patient.egress.ledger().total().denied, 1);
    for stream in &mut held {
        over_tcp(stream, &question("allowed.test", TYPE::A));
    }
}

#[test]
fn noise_is_survived() {
    let world = allowing(["allowed.test:1"]).open();
    let socket = udp(&world);
    let good = question("allowed.test", TYPE::A);
    socket.send(&[]).unwrap();
    socket.send(&[0xff; 1500]).unwrap();
    for cut in 0..good.len() {
        socket.send(&good[..cut]).unwrap();
    }
    // The last answer is the one to the whole.
    socket.send(&good).unwrap();
    let mut answer = [0; 512];
    loop {
        let length = socket.recv(&mut answer).unwrap();
        if let (RCODE::NoError, addresses) = read(&answer[..length]) {
            assert_eq!(addresses, ["127.77.0.1"]);
            return;
        }
    }
}
