//! Hosts and ports: what is reached, what is refused, what is recorded.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};

use super::server::{Confined, ask, has_namespaces};

/// A server on the host that answers every line that it is sent, and ends.
fn host() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for peer in listener.incoming() {
            let mut peer = BufReader::new(peer.unwrap());
            let mut line = String::new();
            let _ = peer.read_line(&mut line);
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n";
            let _ = write!(peer.get_mut(), "{head}heard");
        }
    });
    port
}

fn reaching(entry: &str) -> Option<Confined> {
    has_namespaces().then(|| Confined::python(&["--allow-net", entry]))?
}

/// SPEC [SANDBOX-12].
#[test]
fn a_listed_host_is_reached_and_no_other() {
    let (port, other) = (host(), host());
    let entry = format!("127.0.0.1:{port}");
    let by_root = reaching(&entry);
    let by_user = reaching(&entry).and_then(Confined::by_a_plain_user);
    for confined in [by_root, by_user].into_iter().flatten() {
        let mut session = confined.start();
        let (before, _) = session.ask(0, "pid", json!({}));
        let dial = json!({"host": "127.0.0.1", "port": port, "say": "GET / HTTP/1.1\r\n\r\n"});
        let (dialled, answer) = session.ask(1, "dial", dial);
        assert!(String::from_utf8(answer).unwrap().contains("200 OK"));
        let url = format!("http://127.0.0.1:{port}/");
        let said = ask(&mut session, "proxied", json!({"url": url}));
        assert!(said.contains(" 200 OK"), "{said}");

        let arguments = json!({"host": "127.0.0.1", "port": other});
        let (_, answer) = session.ask(2, "dial", arguments);
        assert!(
            String::from_utf8(answer)
                .unwrap()
                .contains("ConnectionRefusedError")
        );
        let url = format!("http://127.0.0.1:{other}/");
        let proxied = json!({"url": url});
        let (refused, answer) = session.ask(3, "proxied", proxied);
        assert!(String::from_utf8(answer).unwrap().contains(" 403 "));
        let told = session.stderr_line("aegis wrap: egress denied: ");
        assert!(told.starts_with(&format!("127.0.0.1:{other} ")), "{told}");

        let ended = session.finish();
        ended.assert_exit(0);
        ended.record.assert_verified();
        let overlapping = |request: &[u8]| &ended.record.outcome(request)["egress_overlapping"];
        assert_eq!(overlapping(&before), &Value::Null);
        let reached = format!("127.0.0.1:{port}");
        assert_eq!(
            overlapping(&dialled),
            &json!({"allowed": 1, "denied": 0, "hosts": [reached]})
        );
        // A connection of before may not have been closed yet.
        let overlap = overlapping(&refused);
        assert_eq!(overlap["denied"], 1);
        let hosts = overlap["hosts"].as_array().unwrap();
        assert!(hosts.contains(&json!(format!("127.0.0.1:{other}"))));
        let egress = &ended.record.close()["egress"];
        assert_eq!(
            (&egress["allowed"], &egress["denied"]),
            (&json!(2), &json!(1))
        );
        let first = &egress["destinations"][0];
        assert_eq!(
            (&first["host"], &first["port"]),
            (&json!("127.0.0.1"), &json!(port))
        );
        assert!(first["received_bytes"].as_u64() > Some(0));

        let enforced = &ended.record.open()["confinement"];
        assert_eq!(enforced["status"], "full");
        assert_eq!(enforced["network"], "host-port");
        assert_eq!(enforced["address_check"], "direct");
        assert_eq!(enforced["hosts"], json!([entry]));
        assert!(confined.leftovers().is_empty());
    }
}

/// SPEC [SANDBOX-13].
#[test]
fn names_and_addresses_that_are_not_listed_lead_nowhere() {
    let port = host();
    let Some(confined) = reaching(&format!("127.0.0.1:{port}")) else {
        return;
    };
    let mut session = confined.start();
    let said = ask(
        &mut session,
        "resolve",
        json!({"name": "elsewhere.example"}),
    );
    assert!(said.starts_with("gaierror: "), "{said}");
    // The port is listed, the address is not.
    let said = ask(
        &mut session,
        "dial",
        json!({"host": "10.1.2.3", "port": port}),
    );
    assert!(
        said.starts_with("ConnectionResetError: ") || said.is_empty(),
        "{said}"
    );
    let ended = session.finish();
    let egress = &ended.record.close()["egress"];
    assert_eq!(egress["allowed"], 0);
    let hosts: Vec<_> = egress["destinations"].as_array().unwrap().iter().collect();
    assert!(
        hosts.iter().any(|host| host["host"] == "elsewhere.example"),
        "{egress}"
    );
    assert!(
        hosts.iter().any(|host| host["host"] == "10.1.2.3"),
        "{egress}"
    );
}

#[test]
fn without_an_entry_not_even_this_machine_is_reached() {
    let port = host();
    let Some(confined) = Confined::python(&[]) else {
        return;
    };
    let mut session = confined.start();
    for (tool, arguments) in [
        ("dial", json!({"host": "127.0.0.1", "port": port})),
        ("udp", json!({"host": "192.0.2.1", "port": 9})),
        ("resolve", json!({"name": "elsewhere.example"})),
    ] {
        let said = ask(&mut session, tool, arguments);
        assert!(said.contains("rror: "), "{tool}: {said}");
    }
    session.finish().assert_exit(0);
}

#[test]
fn the_proxy_makes_way_for_a_port_that_is_asked_for() {
    let Some(confined) = reaching("127.0.0.1:3128,3129") else {
        return;
    };
    let confined = confined.with_variable("HTTP_PROXY", "http://elsewhere.example:1");
    let mut session = confined.start();
    let environment = ask(&mut session, "environment", json!({}));
    let environment: Value = serde_json::from_str(&environment).unwrap();
    for (name, value) in [
        ("HTTP_PROXY", "http://127.0.0.1:3130"),
        ("https_proxy", "http://127.0.0.1:3130"),
        ("ALL_PROXY", "socks5h://127.0.0.1:3130"),
        ("NO_PROXY", "localhost,127.0.0.1,::1"),
        ("NODE_USE_ENV_PROXY", "1"),
    ] {
        assert_eq!(environment[name], value, "{name}");
    }
    session.finish().assert_exit(0);
}

#[test]
fn an_upstream_proxy_is_a_hole_that_is_recorded_without_its_password() {
    let Some(confined) = reaching("allowed.example:443") else {
        return;
    };
    let url = format!("http://user:secret@127.0.0.1:{}", host());
    let confined = confined.with_flags(&["--upstream-proxy", &url]);
    let ended = confined.start().finish();
    ended.assert_exit(0);
    let open = ended.record.open().to_string();
    assert!(!open.contains("secret"), "{open}");
    let enforced = &ended.record.open()["confinement"];
    assert_eq!(enforced["address_check"], "upstream");
    assert_eq!(enforced["holes"], json!(["upstream-proxy"]));
    assert_eq!(enforced["status"], "full");
}
