//! Many, slow and huge.

use std::cell::RefCell;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use super::world::{
    Closed, PATIENCE, Server, Setup, World, allowing, connect, eventually, is_reset,
};

#[test]
fn connections_beyond_the_bound_are_reset_and_noted() {
    let server = Server::echo();
    let port = server.port();
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let direct = listener.local_addr().unwrap();
    let world = allowing([format!("allowed.test:{port}")])
        .direct(listener)
        .limits(|limits| limits.connections = 3)
        .open();
    let to = format!("allowed.test:{port}");
    let mut held = [world.tunnel(&to), world.tunnel(&to), world.tunnel(&to)];
    assert!(is_reset(&mut world.client()));
    assert!(is_reset(&mut connect(direct)));
    assert_eq!(
        world.told(),
        [
            "egress denied: <unknown>: more than 3 connections at once; close some first"
                .to_owned(),
            format!("egress denied: {direct}: more than 3 connections at once; close some first"),
        ]
    );
    // The name server is not among them.
    assert!(super::questions::lent(&world, "allowed.test").is_some());
    for client in &mut held {
        client.write_all(b"x").unwrap();
        client.read_exact(&mut [0]).unwrap();
    }
    let [first, ..] = held;
    drop(first);
    // There is room again when one has left.
    eventually(|| {
        let mut client = connect(world.proxy);
        let request = format!("CONNECT {to} HTTP/1.1\r\n\r\n");
        let _ = client.write_all(request.as_bytes());
        matches!(client.read(&mut [0; 12]), Ok(12))
    });
}

#[test]
fn everything_ends_at_once() {
    let server = Server::echo();
    let port = server.port();
    let world = allowing([format!("allowed.test:{port}"), format!("1.1.1.9:{port}")]).open();
    let to = format!("allowed.test:{port}");
    let mut clients: Vec<_> = (0..50).map(|_| world.tunnel(&to)).collect();
    // Some that are in the middle of something.
    let mut halves: Vec<_> = (0..10).map(|_| world.client()).collect();
    for half in &mut halves {
        half.write_all(b"GET http").unwrap();
    }
    let mut dns = connect(world.dns_tcp);
    dns.write_all(&[0]).unwrap();
    let ledger = world.egress.ledger().clone();
    let mark = ledger.mark();
    assert_eq!(ledger.since(&mark).unwrap().allowed, 50);
    let (proxy, udp) = (world.proxy, world.dns_udp);
    world.egress.end();
    for client in clients.iter_mut().chain(&mut halves) {
        assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    }
    assert!(ledger.mark_is_quiet());
    // What the end cut off was not refused.
    assert_eq!((ledger.total().allowed, ledger.total().denied), (50, 0));
    // Nobody listens any more.
    let refused = std::net::TcpStream::connect(proxy).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    std::net::UdpSocket::bind(udp).unwrap();
}

/// Ends the egress while a client waits for `host`; it would be an hour.
fn ends_while_dialling(setup: Setup, host: &str, is_under_way: impl Fn(&World) -> bool) {
    let world = setup
        .limits(|limits| limits.dial = Duration::from_secs(3600))
        .open();
    let mut client = world.client();
    write!(client, "CONNECT {host} HTTP/1.1\r\n\r\n").unwrap();
    eventually(|| is_under_way(&world));
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        drop(world);
        sender.send(()).unwrap();
    });
    ended.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn an_end_does_not_wait_for_a_silent_host() {
    let silent = Closed::at("127.0.0.1", 0).unwrap().silence();
    let host = format!("allowed.test:{}", silent.port);
    let is_dialling = |world: &World| !world.egress.ledger().mark_is_quiet();
    ends_while_dialling(allowing([&host]), &host, is_dialling);
}

#[test]
fn an_end_does_not_wait_for_the_resolver() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hosts");
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap();
    let world = allowing(["allowed.test:1"]).hosts_path(path.clone());
    let writer = || {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        rustix::fs::open(&path, flags, Mode::empty())
    };
    // It opens for writing as soon as somebody wants to read.
    let held = RefCell::new(None);
    let is_resolving = |_: &World| {
        *held.borrow_mut() = writer().ok();
        held.borrow().is_some()
    };
    ends_while_dialling(world, "allowed.test:1", is_resolving);
    drop(held);
}

#[test]
fn a_peer_that_never_reads_stops_the_other() {
    let sent = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent);
    let server = Server::start(move |mut stream| {
        let piece = vec![0; 64 << 10];
        while stream.write_all(&piece).is_ok() {
            count.fetch_add(piece.len() as u64, Ordering::SeqCst);
        }
    });
    let port = server.port();
    let world = allowing([format!("allowed.test:{port}")]).open();
    let client = world.tunnel(&format!("allowed.test:{port}"));
    // It comes to rest, with no more than buffers of the kernel full.
    eventually(|| {
        let before = sent.load(Ordering::SeqCst);
        thread::sleep(Duration::from_millis(200));
        before > 0 && sent.load(Ordering::SeqCst) == before
    });
    assert!(sent.load(Ordering::SeqCst) < 256 << 20);
    drop(client);
    eventually(|| world.egress.ledger().mark_is_quiet());
}

#[test]
fn an_idle_connection_is_ended_and_a_busy_one_is_not() {
    let server = Server::start(|mut stream| {
        // Talks for longer than the other side may be silent.
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(50));
            if stream.write_all(b".").is_err() {
                return;
            }
        }
        let _ = stream.read(&mut [0]);
    });
    let port = server.port();
    let world = allowing([format!("allowed.test:{port}")])
        .limits(|limits| limits.idle = Duration::from_millis(400))
        .open();
    let mut client = world.tunnel(&format!("allowed.test:{port}"));
    let mut said = [0; 20];
    client.read_exact(&mut said).unwrap();
    assert!(is_reset(&mut client));
    assert_eq!(world.settled("allowed.test", Some(port)).received_bytes, 20);
}

#[test]
fn what_overlaps_a_time_is_known() {
    let server = Server::echo();
    let port = server.port();
    let entries = [format!("allowed.test:{port}"), format!("other.test:{port}")];
    let world = allowing(entries).open();
    let ledger = world.egress.ledger();
    let before = ledger.mark();
    let first = world.tunnel(&format!("allowed.test:{port}"));
    let during = ledger.mark();
    drop(first);
    eventually(|| ledger.mark_is_quiet());
    world.ask("CONNECT evil.test:1 HTTP/1.1\r\n\r\n");
    drop(world.tunnel(&format!("other.test:{port}")));
    eventually(|| ledger.mark_is_quiet());
    for mark in [before, during] {
        let overlapping = ledger.since(&mark).unwrap();
        assert_eq!((overlapping.allowed, overlapping.denied), (2, 1));
        let hosts = [
            format!("allowed.test:{port}"),
            format!("other.test:{port}"),
            "evil.test:1".to_owned(),
        ];
        assert_eq!(overlapping.hosts, hosts);
    }
    assert_eq!(ledger.since(&ledger.mark()), None);
}
