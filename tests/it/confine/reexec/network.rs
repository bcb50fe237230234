//! Sockets that lie in the program's namespace and are answered here.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener};

use serde_json::json;

use super::rig::{as_each_user, bash, ended, has_namespaces};

#[test]
fn every_address_leads_to_the_parent_on_allowed_ports_and_nowhere_on_others() {
    as_each_user(|rig| {
        let Some(asked) = bash().filter(|_| has_namespaces(rig)) else {
            return;
        };
        let ports = [8081, 8443];
        let ordered = asked.hosts(&ports, 3128, &[]).open().unwrap();
        let script = "for at in 10.1.2.3/8081 ::5/8081 127.77.0.1/8443 127.0.0.1/3128 9.9.9.9/53; do \
             exec 3<>/dev/tcp/$at && cat <&3; exec 3>&-; done; \
             for at in 10.1.2.3/8082 127.0.0.2/3128 ::1/22; do \
             (exec 3<>/dev/tcp/$at) 2>/dev/null && echo open || echo shut; done";
        let (child, mut ready) = rig.start(&ordered, &["bash", "-c", script]).unwrap();
        let report = ready.report().unwrap();
        assert_eq!(report["network"], "host-port");
        assert_eq!(report["gaps"], json!([]));
        let (proxy, direct, dns_tcp, _) = ready.sockets().unwrap();
        assert!(ready.sockets().is_none());
        assert_eq!(direct.len(), ports.len());
        ready.go().unwrap();
        let answer = |listener: &TcpListener| {
            let (mut stream, _) = listener.accept().unwrap();
            let meant = stream.local_addr().unwrap();
            writeln!(stream, "{} {}", meant.ip().to_canonical(), meant.port()).unwrap();
        };
        let has_ipv6 = direct[0].local_addr().unwrap().is_ipv6();
        answer(&direct[0]);
        if has_ipv6 {
            answer(&direct[0]);
        }
        for listener in [&direct[1], &proxy, &dns_tcp] {
            answer(listener);
        }
        let ran = ended(child);
        let six = if has_ipv6 { "::5 8081\n" } else { "" };
        let expected = format!(
            "10.1.2.3 8081\n{six}127.77.0.1 8443\n127.0.0.1 3128\n9.9.9.9 53\nshut\nshut\nshut\n"
        );
        assert_eq!(ran.stdout, expected, "{}", ran.stderr);
    });
}

#[test]
fn names_are_asked_for_at_the_configured_servers() {
    as_each_user(|rig| {
        let Some(asked) = bash().filter(|_| has_namespaces(rig)) else {
            return;
        };
        let servers: [IpAddr; 2] = [
            "10.255.255.53".parse().unwrap(),
            "127.0.0.53".parse().unwrap(),
        ];
        let ordered = asked.hosts(&[443], 3128, &servers).open().unwrap();
        let script = "for at in 127.0.0.1 10.255.255.53 127.0.0.53; do \
             exec 3<>/dev/udp/$at/53; echo question >&3; dd bs=64 count=1 <&3 2>/dev/null; done";
        let (child, mut ready) = rig.start(&ordered, &["bash", "-c", script]).unwrap();
        let (.., dns_udp) = ready.sockets().unwrap();
        ready.go().unwrap();
        let addresses: Vec<IpAddr> = dns_udp
            .iter()
            .map(|s| s.local_addr().unwrap().ip())
            .collect();
        assert_eq!(addresses[0], Ipv4Addr::LOCALHOST);
        let four: Vec<_> = dns_udp
            .iter()
            .filter(|s| s.local_addr().unwrap().is_ipv4())
            .collect();
        for socket in &four {
            let (_, from) = socket.recv_from(&mut [0; 64]).unwrap();
            let own = socket.local_addr().unwrap().ip();
            socket.send_to(format!("{own}\n").as_bytes(), from).unwrap();
        }
        let ran = ended(child);
        assert_eq!(
            ran.stdout, "127.0.0.1\n10.255.255.53\n127.0.0.53\n",
            "{}",
            ran.stderr
        );
    });
}

#[test]
fn as_many_ports_as_may_be_are_handed_over_and_no_more() {
    let ports: Vec<u16> = (10_000..10_201).collect();
    as_each_user(|rig| {
        let Some(asked) = bash().filter(|_| has_namespaces(rig)) else {
            return;
        };
        let ordered = asked.hosts(&ports[..200], 3128, &[]).open().unwrap();
        let script = "exec 3<>/dev/tcp/10.0.0.1/10199 && echo hello >&3";
        let (child, mut ready) = rig.start(&ordered, &["bash", "-c", script]).unwrap();
        let (_, direct, ..) = ready.sockets().unwrap();
        ready.go().unwrap();
        let (mut stream, _) = direct[199].accept().unwrap();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hello\n");
        ended(child);
    });
    let Some(asked) = bash() else {
        return;
    };
    let text = asked.hosts(&ports, 3128, &[]).open().err().unwrap();
    assert!(
        text.starts_with("--allow-net names 201 ports, and at most 200"),
        "{text}"
    );
}

#[test]
fn a_host_that_can_be_reached_is_noticed() {
    as_each_user(|rig| {
        let Some(asked) = bash().filter(|_| has_namespaces(rig)) else {
            return;
        };
        let ordered = asked.hosts(&[8081], 3128, &[]).open().unwrap();
        let mut command = ordered.command(&rig.aegis(), &["bash"]).unwrap();
        super::rig::edit(&mut command, |order| order["canary_port"] = 8081.into());
        let child = super::rig::piped(&mut command).spawn().unwrap();
        let text = ordered.admit(child.id()).err().unwrap();
        let start = "connect to the host's loopback was to be refused with: Connection refused";
        assert!(text.starts_with(start), "{text}");
        assert_eq!(ended(child).status.code(), Some(126));
    });
}
