//! Everything through another proxy.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::mpsc::{self, Receiver};

use super::questions::lent;
use super::world::{PATIENCE, Server, allowing, connect, echo, read_head};

/// A proxy that says `answer` to everyone and then echoes. What it was asked.
fn proxy(answer: &'static str) -> (Server, Receiver<String>) {
    let (sender, heads) = mpsc::channel();
    let server = Server::start(move |mut stream| {
        sender.send(read_head(&mut stream)).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        if answer.contains(" 200 ") {
            echo(stream);
        }
    });
    (server, heads)
}

#[test]
fn names_go_through_unresolved() {
    let (proxy, heads) = proxy("HTTP/1.1 200 Fine\r\nX: y\r\n\r\nbanner");
    let world = allowing(["unknown.example:1234", "10.9.8.7:80", "unknown.example:80"])
        .upstream(&format!("http://user:p%40ss@{}", proxy.address))
        .open();
    let mut client = world.tunnel("Unknown.Example.:1234");
    let mut banner = [0; 6];
    std::io::Read::read_exact(&mut client, &mut banner).unwrap();
    assert_eq!(&banner, b"banner");
    let expected = "CONNECT unknown.example:1234 HTTP/1.1\r\nHost: unknown.example:1234\r\n\
                    Proxy-Authorization: Basic dXNlcjpwQHNz\r\n\r\n";
    assert_eq!(heads.recv_timeout(PATIENCE).unwrap(), expected);
    drop(client);
    world.tunnel("10.9.8.7:80");
    let head = heads.recv_timeout(PATIENCE).unwrap();
    assert!(
        head.starts_with("CONNECT 10.9.8.7:80 HTTP/1.1\r\n"),
        "{head}"
    );
    // Plain HTTP as well; the echo is no HTTP.
    let answer = world.ask("GET http://unknown.example/ HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    let head = heads.recv_timeout(PATIENCE).unwrap();
    assert!(
        head.starts_with("CONNECT unknown.example:80 HTTP/1.1\r\n"),
        "{head}"
    );
    // What is refused is refused before.
    let answer = world.ask("CONNECT other.example:443 HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(heads.try_recv().is_err());
}

#[test]
fn what_goes_wrong_there_is_told_without_the_login() {
    for (answer, status, told) in [
        (
            "HTTP/1.1 407 Login\r\n\r\n",
            502,
            "it wants another login (407)",
        ),
        ("HTTP/1.1 403 No\r\n\r\n", 502, "it answered 403"),
        ("HTTP/1.1 504 Late\r\n\r\n", 504, "it answered 504"),
        ("SSH-2.0\r\n\r\n", 502, "its answer is no HTTP"),
        ("", 502, ""),
    ] {
        let (proxy, _heads) = proxy(answer);
        let url = format!("http://user:secret@{}/", proxy.address);
        let world = allowing(["a.example:443"]).upstream(&url).open();
        let said = world.ask("CONNECT a.example:443 HTTP/1.1\r\n\r\n");
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
        assert!(
            said.contains(&format!("upstream proxy {}: {told}", proxy.address)),
            "{said}"
        );
        assert!(
            !said.contains("secret") && !said.contains("c2VjcmV0"),
            "{said}"
        );
        let reason = world.settled("a.example", Some(443)).reason.unwrap();
        assert!(!reason.contains("secret"), "{reason}");
    }
}

#[test]
fn this_machine_is_not_behind_it() {
    let (proxy, heads) = proxy("HTTP/1.1 200 Fine\r\n\r\n");
    let server = Server::echo();
    let port = server.port();
    let world = allowing([format!("127.0.0.1:{port}")])
        .upstream(&format!("http://localhost:{}", proxy.port()))
        .open();
    world.tunnel(&format!("127.0.0.1:{port}"));
    world.tunnel(&format!("localhost:{port}"));
    assert!(heads.try_recv().is_err());
}

#[test]
fn clients_without_a_proxy_go_through_it() {
    let listener = TcpListener::bind("127.77.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let port = address.port();
    let (proxy, heads) = proxy("HTTP/1.1 200 Fine\r\n\r\n");
    let url = format!("http://{}", proxy.address);
    let world = allowing([format!("unknown.example:{port}")]).direct(listener);
    let world = world.upstream(&url).open();
    assert!(lent(&world, "unknown.example").is_some());
    drop(connect(address));
    let head = heads.recv_timeout(PATIENCE).unwrap();
    let expected = format!("CONNECT unknown.example:{port} HTTP/1.1\r\n");
    assert!(head.starts_with(&expected), "{head}");
}
