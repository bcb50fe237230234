//! Rows about sockets, and about what else reaches others without a path.

use super::row::{EACCES, ENOSYS, EPERM, OPEN, REFUSED, Row, call, row};
use super::run::Mode;

const FAMILY: &[&str] = &[
    "blocked EACCES",
    "blocked EPERM",
    "blocked EAFNOSUPPORT",
    "blocked ESOCKTNOSUPPORT",
    "blocked EPROTONOSUPPORT",
];
const MODULE: &str = "the kernel has no such family, or not loaded, or it needs a capability";
/// As aegis answers one who asks it for a host that is not allowed.
const FORBIDDEN: &[&str] = &["blocked 403"];
const NO_FASTOPEN: &[&str] = &["blocked EOPNOTSUPP"];
const FASTOPEN_OFF: &str = "net.ipv4.tcp_fastopen is off for clients";
const NO_MPTCP: &[&str] = &["blocked EPROTONOSUPPORT", "blocked ENOPROTOOPT"];
const MPTCP_OFF: &str = "net.mptcp.enabled is off, or the kernel has none";
const NEEDS_RAW: &str = "raw sockets need CAP_NET_RAW";
/// Where the probe is alone in its namespace, or only aegis listens there.
const NOBODY: &[&str] = &["blocked ECONNREFUSED", "blocked ENETUNREACH"];
/// Where aegis takes the connection to look at it, and ends it.
const ENDED: &[&str] = &[
    "blocked ECONNRESET",
    "blocked EOF",
    "blocked EPIPE",
    "blocked ECONNREFUSED",
];

pub(super) fn rows(mode: Mode) -> Vec<Row> {
    let mut rows = internet(mode);
    rows.extend(families());
    rows.extend(local());
    rows.extend(shared());
    rows
}

/// Where sockets of the internet may be made at all, nothing is behind them.
fn internet(mode: Mode) -> Vec<Row> {
    const NO_IPV6: &str = "the machine has no IPv6";
    const UNAVAILABLE: &[&str] = &[
        "blocked EADDRNOTAVAIL",
        "blocked EAFNOSUPPORT",
        "blocked 99",
    ];
    let nobody = match mode {
        Mode::NoNamespaces => EPERM,
        Mode::PortOnly => EACCES,
        Mode::Denied | Mode::OnePort => NOBODY,
    };
    let datagrams = match mode {
        Mode::NoNamespaces | Mode::PortOnly => EPERM,
        Mode::Denied | Mode::OnePort => NOBODY,
    };
    let mut rows = vec![
        row("outside/sockets tcp 127.0.0.1 {forbidden}")
            .says(nobody)
            .touching(),
        row("outside/sockets tcp6 ::1 {sixth}")
            .says(nobody)
            .touching()
            .unless(UNAVAILABLE, NO_IPV6),
        row("outside/sockets udp 127.0.0.1 {datagrams}")
            .says(datagrams)
            .touching(),
        row("outside/sockets fastopen-connect 127.0.0.1 {forbidden}")
            .says(nobody)
            .touching(),
        row("outside/sockets udp-unconnected 127.0.0.1 {datagrams}")
            .says(match mode {
                Mode::NoNamespaces | Mode::PortOnly => EPERM,
                // Nobody tells one who did not connect.
                Mode::Denied | Mode::OnePort => &["blocked EAGAIN"],
            })
            .touching(),
        call("outside/sockets mptcp 127.0.0.1 {forbidden}")
            .touching()
            .unless(NO_MPTCP, MPTCP_OFF),
        call("outside/sockets fastopen 127.0.0.1 {forbidden}")
            .touching()
            .unless(NO_FASTOPEN, FASTOPEN_OFF),
    ];
    match mode {
        Mode::Denied => rows.extend(alone()),
        Mode::OnePort => rows.extend(alone().into_iter().chain(one_port())),
        Mode::NoNamespaces => rows.extend(no_namespaces()),
        Mode::PortOnly => rows.extend(port_only()),
    }
    rows
}

/// Needs a listener of its own, in the namespace.
fn alone() -> [Row; 1] {
    [call("fastopen").unless(NO_FASTOPEN, FASTOPEN_OFF)]
}

/// On a machine without namespaces.
fn no_namespaces() -> [Row; 3] {
    [
        call("inet"),
        call("udp"),
        // A host cannot be allowed, and nothing less is put in force unasked.
        row("outside/sockets tcp 127.0.0.1 {allowed}")
            .with("--allow-net 127.0.0.1:{allowed}")
            .says(REFUSED),
    ]
}

/// Where the operator bears that any host is reached on the ports.
fn port_only() -> [Row; 4] {
    [
        row("outside/sockets bind-and-listen 0.0.0.0 0"),
        // Which the kernel does not ask Landlock about.
        row("outside/sockets listen-unbound").open("port-only"),
        row("outside/sockets tcp 127.0.0.1 {allowed}").says(OPEN),
        row("outside/sockets tcp 127.0.0.2 {allowed}")
            .touching()
            .open("port-only"),
    ]
}

/// Where one port of 127.0.0.1 is allowed.
fn one_port() -> Vec<Row> {
    const NO_PROXY: &str = "there is no proxy without confinement";
    let by_proxy = [
        row("outside/sockets by-proxy 127.0.0.1:{allowed}").says(OPEN),
        row("outside/sockets by-proxy 127.0.0.1:{forbidden}").says(FORBIDDEN),
        row("outside/sockets by-proxy 127.0.0.2:{allowed}").says(FORBIDDEN),
        row("outside/sockets by-proxy [::1]:{allowed}").says(FORBIDDEN),
        // One name of 127.0.0.1 is known without being looked up.
        row("outside/sockets by-proxy localhost:{allowed}").says(OPEN),
        row("outside/sockets by-proxy localhost:{forbidden}").says(FORBIDDEN),
    ];
    let by_proxy = by_proxy.map(|row| row.unless(&["blocked ENOENT"], NO_PROXY));
    let mut rows = vec![
        // What was asked for.
        row("outside/sockets tcp 127.0.0.1 {allowed}").says(OPEN),
        // The same port of other hosts.
        row("outside/sockets tcp 127.0.0.2 {allowed}")
            .says(ENDED)
            .touching(),
        row("outside/sockets tcp6 ::ffff:127.0.0.1 {allowed}").says(&[
            "open",
            "blocked ECONNRESET",
            "blocked EOF",
            "blocked EPIPE",
        ]),
        row("outside/sockets tcp6 ::1 {allowed}")
            .says(ENDED)
            .unless(&["blocked ECONNREFUSED"], "nobody listens there"),
        // Other ways to the same port.
        call("outside/sockets mptcp 127.0.0.1 {allowed}").unless(NO_MPTCP, MPTCP_OFF),
        call("outside/sockets fastopen 127.0.0.1 {allowed}").unless(NO_FASTOPEN, FASTOPEN_OFF),
    ];
    rows.extend(by_proxy);
    rows
}

/// Each by domain, type and protocol.
fn families() -> Vec<Row> {
    let mut rows = vec![
        // SCTP, UDP-Lite, and the families of key management to XDP.
        call("outside/sockets family 2 1 132"),
        call("outside/sockets family 2 5 132"),
        call("outside/sockets family 10 1 132"),
        call("outside/sockets family 2 2 136"),
        call("outside/sockets family 2 2 1"),
        call("outside/sockets family 2 1 256"),
        call("outside/sockets family 11 3 0"),
        call("outside/sockets family 21 5 0"),
        call("outside/sockets family 29 3 1"),
        call("outside/sockets family 30 1 0"),
        call("outside/sockets family 31 3 1"),
        call("outside/sockets family 38 5 0"),
        call("outside/sockets family 39 1 1"),
        call("outside/sockets family 40 1 0"),
        call("outside/sockets family 43 1 0"),
        call("outside/sockets family 44 3 0"),
        // Of netlink: netfilter, sock_diag, audit, uevents, generic.
        call("outside/sockets family 16 3 12"),
        call("outside/sockets family 16 3 4"),
        call("outside/sockets family 16 3 9"),
        call("outside/sockets family 16 3 15"),
        call("outside/sockets family 16 3 16"),
        call("alg"),
        call("vsock"),
        call("sock_diag"),
        call("mptcp"),
    ];
    // Few are on every machine.
    rows = rows
        .into_iter()
        .map(|row| row.unless(FAMILY, MODULE))
        .collect();
    for probe in ["packet", "raw", "sock_packet"] {
        rows.push(call(probe).unless(EPERM, NEEDS_RAW));
    }
    rows
}

/// By a path, by a name without one, and by a pair that is sent elsewhere.
fn local() -> Vec<Row> {
    const CONNECTED: &[&str] = &["blocked EISCONN"];
    const STAYS: &str = "a pair stays connected";
    const PATH: &str = "outside/sockets path {base}/stream";
    vec![
        call(PATH).touching(),
        call(PATH).with("--allow-write {in}").touching(),
        // By leave, and then all of them.
        row(PATH)
            .with("--allow-unix-sockets")
            .touching()
            .open("unix-sockets"),
        call("outside/sockets abstract {abstract}").touching(),
        // An abstract one is no file, so no ABI is needed to stop it.
        row("outside/sockets abstract {abstract}")
            .with("--allow-unix-sockets")
            .says(&["blocked EPERM", "blocked ECONNREFUSED"])
            .touching(),
        call("outside/sockets datagram-pair {base}/inbox").touching(),
        // These stay what they are, so no kernel does it.
        row("outside/sockets stream-pair {base}/stream")
            .says(CONNECTED)
            .unless(CONNECTED, STAYS),
        row("outside/sockets packet-pair {base}/packets")
            .says(CONNECTED)
            .unless(CONNECTED, STAYS),
        call("unix"),
        call("pair_repointed {base}/inbox").touching(),
    ]
}

/// Memory and messages.
fn shared() -> Vec<Row> {
    const NONE: &str = "the kernel has none";
    vec![
        call("outside/memory segment {segment}"),
        call("outside/memory message {queue}"),
        call("outside/memory semaphore {semaphore}"),
        call("shmget").unless(ENOSYS, NONE),
        call("mq_open").unless(ENOSYS, NONE),
        call("mq_unlink").unless(ENOSYS, NONE),
        call("outside/memory queue /{unique}").unless(ENOSYS, NONE),
        call("outside/memory unlink-queue /{unique}-named")
            .touching()
            .unless(ENOSYS, NONE),
        row("outside/memory shared /{unique}"),
    ]
}
