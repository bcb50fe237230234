//! What is left when a confined session ends, however it does.

use std::fs::{self, Permissions};
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::server::{Confined, ask, has_namespaces};
use crate::wrap::harness::{is_alive, until};

#[test]
fn a_signal_ends_all_of_it_and_is_recorded() {
    let Some(confined) = Confined::python(&[]) else {
        return;
    };
    let mut session = confined.start();
    let server = ask(&mut session, "pid", json!({}));
    let grandchild = ask(&mut session, "grandchild", json!({}));
    assert!(is_alive(&server) && is_alive(&grandchild));
    let ended = session.finish_by_signal();
    ended.record.assert_verified();
    ended.record.close();
    assert!(!is_alive(&server) && !is_alive(&grandchild));
    assert!(confined.leftovers().is_empty());
}

#[test]
fn a_server_that_leaves_takes_all_of_it_along() {
    let Some(confined) = Confined::python(&[]) else {
        return;
    };
    let mut session = confined.start();
    let grandchild = ask(&mut session, "grandchild", json!({}));
    session.call(1, "leave", json!({"code": 3}));
    let ended = session.wait();
    ended.assert_exit(3);
    ended.record.assert_verified();
    assert!(!is_alive(&grandchild));
    assert!(confined.leftovers().is_empty());
}

#[test]
fn a_temporary_directory_that_cannot_be_removed_is_named() {
    let Some(confined) = Confined::python(&[]).and_then(Confined::by_a_plain_user) else {
        return;
    };
    let mut session = confined.start();
    // The server's own lock does not keep it.
    ask(&mut session, "shut", json!({}));
    let parent = |mode| {
        fs::set_permissions(confined.temporary(), Permissions::from_mode(mode)).unwrap();
    };
    parent(0o500);
    let ended = session.finish();
    parent(0o700);
    ended.assert_exit(0);
    ended.record.assert_verified();
    let said = &ended.stderr;
    assert!(
        said.starts_with("aegis wrap: the server's temporary directory "),
        "{said}"
    );
    assert!(
        said.ends_with(" could not be removed: Permission denied (os error 13)\n"),
        "{said}"
    );
    let [left] = &confined.leftovers()[..] else {
        panic!("{said}");
    };
    assert_eq!(left.read_dir().unwrap().count(), 0);
}

/// Nobody is left to kill the server then, so the kernel does.
///
/// SPEC [SANDBOX-15].
#[test]
fn when_aegis_is_killed_the_server_dies_and_its_connections_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let entry = format!("127.0.0.1:{port}");
    let confined = has_namespaces().then(|| Confined::python(&["--allow-net", &entry]));
    let Some(confined) = confined.flatten() else {
        return;
    };
    let mut session = confined.start();
    let server = ask(&mut session, "pid", json!({}));
    session.call(1, "hold", json!({"host": "127.0.0.1", "port": port}));
    let (mut peer, _) = listener.accept().unwrap();
    session.signal(Signal::KILL);
    session.wait_status();
    until("the end of the server", || !is_alive(&server));
    assert_eq!(peer.read(&mut [0]).unwrap(), 0);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_server_that_the_filters_kill_is_recorded_so() {
    let Some(confined) = Confined::python(&[]) else {
        return;
    };
    let mut session = confined.start();
    let request = session.call(1, "forbidden", json!({}));
    let ended = session.wait();
    // 128 and SIGSYS.
    ended.assert_exit(128 + 31);
    let outcome = ended.record.outcome(&request);
    let trap = json!({"status": "trap", "message": "child killed by SIGSYS (seccomp)"});
    assert_eq!(outcome["execution"], trap);
}

/// A script that names no interpreter runs by a shell, which is not granted;
/// that shows only when it is executed.
///
/// SPEC [SANDBOX-2].
#[test]
fn what_cannot_be_executed_in_the_end_leaves_a_record() {
    let Some(confined) = Confined::python(&[]) else {
        return;
    };
    let script = confined.home().join("script");
    fs::write(&script, "echo ran\n").unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let confined = confined
        .with_command(&[script.to_str().unwrap().to_owned()])
        .with_preset("static");
    let shown = confined.shown();
    assert!(
        shown.starts_with("exit 126\nerror: cannot confine the server: "),
        "{shown}"
    );
    assert!(shown.contains("DIR/home/script"), "{shown}");
    let record = confined.setup.record();
    record.assert_verified();
    let types: Vec<_> = record.lines.iter().map(|line| &line["line_type"]).collect();
    assert_eq!(types, ["open", "close"]);
    // It was in force, and there is no more to say.
    assert_eq!(record.open()["confinement"]["status"], "full");
    assert!(confined.leftovers().is_empty());
}

/// The helper is ready by then, and must not stay.
#[test]
fn a_record_that_cannot_be_opened_starts_nothing() {
    let Some(confined) = Confined::python(&[]) else {
        return;
    };
    let session = confined.start();
    session_is_open(&confined);
    let shown = confined.shown();
    assert!(
        shown.starts_with("exit 1\nerror: wrap audit failed: "),
        "{shown}"
    );
    assert_eq!(confined.leftovers().len(), 1, "those of the first alone");
    let ended = session.finish();
    ended.assert_exit(0);
    ended.record.assert_verified();
    assert!(confined.leftovers().is_empty());
}

fn session_is_open(confined: &Confined) {
    until("the open line", || {
        let text = fs::read_to_string(confined.setup.audit()).unwrap_or_default();
        let open: Value =
            serde_json::from_str(text.lines().next().unwrap_or("null")).unwrap_or_default();
        open["line_type"] == "open"
    });
}
