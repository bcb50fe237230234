//! What processes are left, and how much memory is used, whatever the child
//! and its children do.

use rustix::process::Signal;
use serde_json::json;

use super::harness::{Setup, is_alive, until};
use super::record::Record;
use crate::exe::skip;

/// Asserts that the grandchild of a session that `end` ends is gone with it.
fn assert_grandchild_dies(flags: &[&str], end: impl FnOnce(&mut super::harness::Session<'_>)) {
    let mut all = vec!["--spawn-grandchild", "600"];
    all.extend(flags);
    let setup = Setup::server(&all);
    let mut session = setup.start();
    let grandchild = session.stderr_line("grandchild ");
    session.ask(1, "echo", json!({"text": "a"}));
    assert!(is_alive(&grandchild));
    end(&mut session);
    session.wait_status();
    assert!(!is_alive(&grandchild));
    // Its output had been open until then.
    let ended = session.wait();
    ended.record.assert_verified();
}

#[test]
fn a_grandchild_dies_when_the_child_leaves_at_the_end() {
    for flags in [&[][..], &["--detach-grandchild"]] {
        assert_grandchild_dies(flags, |session| session.close_input());
    }
}

#[test]
fn a_grandchild_dies_when_the_child_leaves_early() {
    for flags in [&[][..], &["--detach-grandchild"]] {
        assert_grandchild_dies(flags, |session| {
            session.call(2, "die", json!({}));
        });
    }
}

#[test]
fn a_grandchild_dies_when_a_signal_ends_the_session() {
    for flags in [&["--ignore-sigterm"][..], &["--detach-grandchild"]] {
        assert_grandchild_dies(flags, |session| session.signal(Signal::TERM));
    }
}

#[test]
fn a_child_that_left_early_is_noticed_behind_a_grandchild_that_holds_its_output() {
    let setup = Setup::server(&["--spawn-grandchild", "600", "--detach-grandchild"]);
    let mut session = setup.start();
    session.stderr_line("grandchild ");
    session.call(1, "die", json!({}));
    let ended = session.wait();
    ended.assert_exit(1);
    let notice = "child process exited before the client closed stdin";
    assert!(ended.stderr.contains(notice), "{}", ended.stderr);
}

#[test]
fn a_grandchild_in_a_session_of_its_own_dies() {
    if !has("setsid") {
        skip("there is no setsid here");
        return;
    }
    // Reparented twice: its parent leaves at once.
    let script = "(setsid sh -c 'echo $$ >&2; exec sleep 600' &) & cat";
    let setup = Setup::command(&["sh", "-c", script]);
    let mut session = setup.start();
    let pid = session.stderr_line("");
    assert!(is_alive(&pid));
    session.close_input();
    session.wait_status();
    assert!(!is_alive(&pid));
}

#[test]
fn a_child_that_leaves_its_group_is_killed_too() {
    if !has("perl") {
        skip("there is no perl here");
        return;
    }
    // It joins the group of a child of its own, and ignores what it can.
    let script = concat!(
        "my $pid = fork; if (!$pid) { setpgrp; sleep 600 }",
        "$SIG{TERM} = 'IGNORE'; select undef, undef, undef, 0.01 while !setpgrp(0, $pid);",
        "$| = 1; print STDERR \"$$\\n\"; sleep 600"
    );
    let setup = Setup::command(&["perl", "-e", script]);
    let mut session = setup.start();
    let pid = session.stderr_line("");
    session.signal(Signal::TERM);
    let ended = session.wait();
    ended.assert_exit(128 + 15);
    assert!(!is_alive(&pid));
    ended.record.assert_verified();
}

#[test]
fn memory_is_bounded_while_nobody_reads() {
    let setup = Setup::server(&["--flood", "--ignore-eof"]);
    let mut session = setup.start_unread();
    // A large answer waits among the flood.
    session.call(1, "big", json!({"bytes": 30 << 20}));
    let status = format!("/proc/{}/io", session.pid().as_raw_nonzero());
    let moved = || {
        let text = std::fs::read_to_string(&status).unwrap();
        let read = text.lines().find_map(|line| line.strip_prefix("rchar: "));
        read.unwrap().parse::<u64>().unwrap()
    };
    assert_stuck(moved);
    assert!(peak_kib(&session) < 64 << 10, "{} KiB", peak_kib(&session));
    session.read();
    session.frame();
    session.signal(Signal::TERM);
    let ended = session.wait();
    ended.record.assert_verified();
}

#[test]
fn memory_is_bounded_while_the_server_floods_a_client_that_reads() {
    let setup = Setup::server(&["--flood"]);
    let mut session = setup.start_unread();
    let mut output = session.take_output();
    let read = std::io::copy(
        &mut std::io::Read::take(&mut output, 16 << 20),
        &mut std::io::sink(),
    );
    assert_eq!(read.unwrap(), 16 << 20);
    assert!(peak_kib(&session) < 64 << 10, "{} KiB", peak_kib(&session));
    session.signal(Signal::TERM);
    drop(output);
    session.wait().record.assert_verified();
}

#[test]
fn memory_is_bounded_while_the_child_reads_nothing() {
    let setup = Setup::server(&["--read-nothing"]);
    let mut session = setup.start();
    let frame = super::harness::call(1, "echo", json!({"text": "x".repeat(9 << 20)}));
    let frame = format!("{frame}\n").into_bytes();
    let input = session.take_input();
    let sender = std::thread::spawn(move || {
        let mut input = input;
        // Until wrap is gone.
        while std::io::Write::write_all(&mut input, &frame).is_ok() {}
    });
    let intents = || Record::load(&setup.audit()).intents().count();
    until("the first intent", || {
        setup.audit().exists() && intents() > 0
    });
    assert!(peak_kib(&session) < 64 << 10, "{} KiB", peak_kib(&session));
    session.signal(Signal::TERM);
    let ended = session.wait();
    ended.assert_exit(128 + 15);
    ended.record.assert_verified();
    sender.join().unwrap();
}

/// Waits until a counter stands still.
fn assert_stuck(counter: impl Fn() -> u64) {
    let mut last = (counter(), 0);
    until("the relay to stand still", || {
        let now = counter();
        last = if now == last.0 {
            (now, last.1 + 1)
        } else {
            (now, 0)
        };
        last.1 == 100
    });
}

/// The most memory that wrap ever had.
fn peak_kib(session: &super::harness::Session<'_>) -> u64 {
    let path = format!("/proc/{}/status", session.pid().as_raw_nonzero());
    let text = std::fs::read_to_string(path).unwrap();
    let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
