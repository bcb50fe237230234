use std::net::TcpListener;

use super::*;

/// A connection of ours, and the other end.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener.accept().unwrap().0, peer)
}

/// Whether an end has come, without waiting for one.
fn has_ended(mut peer: &TcpStream) -> bool {
    peer.set_nonblocking(true).unwrap();
    match peer.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            false
        }
    }
}

#[test]
fn the_end_of_one_direction_is_passed_on() {
    let ((client, client_peer), (server, server_peer)) = (pair(), pair());
    let clock = Clock::start(Duration::from_secs(60));
    let from = Patient::new(&server, &clock).unwrap();
    let to = Patient::new(&client, &clock).unwrap();
    server_peer.shutdown(Shutdown::Write).unwrap();
    let carried = AtomicU64::new(0);
    carry(from, to, b"ahead".to_vec(), &carried);
    let mut said = String::new();
    (&client_peer).read_to_string(&mut said).unwrap();
    assert_eq!((said.as_str(), carried.into_inner()), ("ahead", 5));
    assert!(!has_ended(&server_peer));
}

/// Where one direction failed, the other stops without an orderly end: what
/// has been received of an answer must not pass for all of it.
#[test]
fn a_failed_direction_leaves_the_other_without_an_end() {
    let ((client, client_peer), (server, _server_peer)) = (pair(), pair());
    let clock = Clock::start(Duration::from_secs(60));
    let from = Patient::new(&server, &clock).unwrap();
    let to = Patient::new(&client, &clock).unwrap();
    break_off(to, from);
    carry(from, to, Vec::new(), &AtomicU64::new(0));
    assert!(!has_ended(&client_peer));
    drop(client);
    client_peer.set_nonblocking(false).unwrap();
    let error = (&client_peer).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn nobody_waits_longer_than_the_clock_says() {
    let ((client, _client_peer), (server, server_peer)) = (pair(), pair());
    let clock = Clock::start(Duration::from_millis(50));
    let from = Patient::new(&server, &clock).unwrap();
    let to = Patient::new(&client, &clock).unwrap();
    carry(from, to, Vec::new(), &AtomicU64::new(0));
    // It has been given up, not ended.
    assert!(clock.is_broken.load(Ordering::SeqCst));
    assert!(!has_ended(&server_peer));
}
