//! How a session ends, and with which exit code.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::harness::{Ended, Setup};
use super::record::{assert_answered, assert_unanswered};

/// What is said when the child leaves first.
const LEFT_EARLY: &str = "aegis wrap: child process exited before the client closed stdin\n";

/// SPEC [CLI-16].
#[test]
fn the_exit_code_is_the_childs() {
    for code in [0, 1, 7, 127, 255] {
        let setup = Setup::server(&["--exit-code", &code.to_string()]);
        let mut session = setup.start();
        session.ask(1, "echo", json!({"text": "a"}));
        let ended = session.finish();
        ended.assert_exit(code);
        assert_eq!(ended.stderr, "");
        ended.record.assert_verified();
    }
}

/// SPEC [CLI-16].
#[test]
fn a_child_that_leaves_early_with_0_is_a_failure() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    session.call(1, "die", json!({}));
    let ended = session.wait();
    ended.assert_exit(1);
    assert_eq!(ended.stderr, LEFT_EARLY);
    ended.record.assert_verified();
}

#[test]
fn a_child_that_leaves_early_keeps_its_code() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let open = session.call(1, "never", json!({}));
    let (request, answer) = session.ask(2, "die_after_answer", json!({"code": 9}));
    let ended = session.wait();
    ended.assert_exit(9);
    assert_eq!(ended.stderr, LEFT_EARLY);
    ended.record.assert_verified();
    let outcome = ended.record.outcome(&request);
    assert_answered(outcome, &answer, json!({"kind": "result"}));
    let reason = "child exited before responding";
    assert_unanswered(ended.record.outcome(&open), "none", reason);
}

#[test]
fn a_child_that_closes_its_output_before_it_exits_keeps_its_code() {
    let setup = Setup::command(&["sh", "-c", "exec >&-; sleep 0.3; exit 5"]);
    let ended = setup.start().wait();
    ended.assert_exit(5);
    ended.record.assert_verified();
}

/// SPEC [CLI-16].
#[test]
fn a_child_that_a_signal_ends_gives_128_and_its_number() {
    for signal in [1, 2, 6, 9, 15] {
        let setup = Setup::server(&[]);
        let mut session = setup.start();
        let request = session.call(1, "kill_self", json!({ "signal": signal }));
        let ended = session.wait();
        ended.assert_exit(128 + signal);
        assert_eq!(ended.stderr, LEFT_EARLY);
        ended.record.assert_verified();
        let reason = "child exited before responding";
        assert_unanswered(ended.record.outcome(&request), "none", reason);
    }
}

/// SPEC [LINE-21].
#[test]
fn a_child_that_the_kernel_stops_for_a_system_call_is_a_trap() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let request = session.call(1, "kill_self", json!({"signal": 31}));
    let ended = session.wait();
    ended.assert_exit(128 + 31);
    ended.record.assert_verified();
    let outcome = ended.record.outcome(&request);
    let message = "child killed by SIGSYS (seccomp)";
    let trap = json!({"status": "trap", "message": message});
    assert_eq!(outcome["execution"], trap);
    assert_eq!(outcome["answer"], json!({"kind": "none"}));
}

/// SPEC [CLI-16] [SESS-4].
#[test]
fn signals_are_passed_on_and_end_in_a_close_line() {
    for (signal, number) in [(Signal::TERM, 15), (Signal::INT, 2), (Signal::HUP, 1)] {
        let ended = signalled(&[], signal, 1);
        ended.assert_exit(128 + number);
        ended.record.assert_verified();
    }
}

#[test]
fn a_child_that_ignores_the_signal_is_killed_though_it_is_never_silent() {
    let setup = Setup::server(&["--ignore-sigterm", "--ignore-eof", "--flood"]);
    let mut session = setup.start_unread();
    let mut output = session.take_output();
    let reader = std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    super::harness::until("the open line", || {
        std::fs::metadata(setup.audit()).is_ok_and(|file| file.len() > 0)
    });
    session.signal(Signal::TERM);
    let ended = session.wait();
    ended.assert_exit(128 + 15);
    ended.record.assert_verified();
    reader.join().unwrap().unwrap();
}

#[test]
fn the_first_of_many_signals_counts() {
    let ended = signalled(&["--ignore-sigterm"], Signal::TERM, 5);
    ended.assert_exit(128 + 15);
    ended.record.assert_verified();
}

/// A session with an open call that was sent `signal` so many times.
fn signalled(flags: &[&str], signal: Signal, times: usize) -> Ended {
    let setup = Setup::server(flags);
    let mut session = setup.start();
    let request = session.call(1, "never", json!({}));
    session.ask(2, "echo", json!({"text": "a"}));
    for _ in 0..times {
        session.signal(signal);
    }
    let ended = session.wait();
    let reason = "child exited before responding";
    assert_unanswered(ended.record.outcome(&request), "none", reason);
    ended
}

#[test]
fn the_signal_reaches_the_child() {
    let script = "trap 'echo got-it >&2; exit 3' TERM; echo up; while :; do sleep 0.01; done";
    let setup = Setup::command(&["sh", "-c", script]);
    let session = setup.start();
    assert_eq!(session.frame(), b"up\n");
    session.signal(Signal::TERM);
    let ended = session.wait();
    ended.assert_exit(128 + 15);
    assert!(ended.stderr.contains("got-it"));
    ended.record.assert_verified();
}

#[test]
fn a_signal_ends_a_session_whose_client_reads_nothing() {
    let setup = Setup::server(&["--flood", "--ignore-sigterm"]);
    let mut session = setup.start_unread();
    session.send_json(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let record = || std::fs::read(setup.audit()).unwrap_or_default();
    super::harness::until("the open line", || !record().is_empty());
    session.signal(Signal::TERM);
    let ended = session.wait();
    ended.assert_exit(128 + 15);
    ended.record.assert_verified();
}

#[test]
fn calls_that_are_open_when_the_client_leaves_are_answered_within_the_grace() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let request = session.call(1, "sleep", json!({"ms": 300}));
    let ended = session.finish();
    ended.assert_exit(0);
    ended.record.assert_verified();
    assert_eq!(ended.frames.len(), 1);
    let outcome = ended.record.outcome(&request);
    assert_answered(outcome, &ended.frames[0], json!({"kind": "result"}));
}

#[test]
fn frames_of_the_child_lengthen_the_grace() {
    // Each pause is shorter than the grace, all of them are longer.
    let script = concat!(
        "cat >/dev/null;",
        "for i in 1 2 3 4; do sleep 1.5; echo '{}'; done;",
        r#"echo '{"id":1,"result":{}}'; exit 4"#
    );
    let setup = Setup::command(&["sh", "-c", script]);
    let mut session = setup.start();
    let request = session.call(1, "t", json!({}));
    let ended = session.finish();
    ended.assert_exit(4);
    ended.record.assert_verified();
    let outcome = ended.record.outcome(&request);
    assert_eq!(outcome["answer"], json!({"kind": "result"}));
}

#[test]
fn what_the_child_takes_lengthens_the_grace() {
    // The end of the client is noticed while most of the call is still to be
    // taken. Each pause is shorter than the grace, all of them are longer.
    let script = concat!(
        "for i in 1 2 3 4; do sleep 1.5; head -c 150000 >/dev/null; done;",
        r#"echo '{"id":1,"result":{}}'; exit 4"#
    );
    let setup = Setup::command(&["sh", "-c", script]);
    let mut session = setup.start();
    let request = session.call(1, "t", json!({"text": "a".repeat(600_000)}));
    let ended = session.finish();
    ended.assert_exit(4);
    ended.record.assert_verified();
    let outcome = ended.record.outcome(&request);
    assert_eq!(outcome["answer"], json!({"kind": "result"}));
}

#[test]
fn a_child_that_takes_too_little_is_killed_after_the_grace() {
    let script = "while head -c 1000 >/dev/null; do sleep 0.5; done";
    let setup = Setup::command(&["sh", "-c", script]);
    let mut session = setup.start();
    let request = session.call(1, "t", json!({"text": "a".repeat(600_000)}));
    let ended = session.finish();
    ended.assert_exit(128 + 9);
    ended.record.assert_verified();
    let reason = "client closed stdin; child did not answer within the shutdown grace";
    assert_unanswered(ended.record.outcome(&request), "none", reason);
}

#[test]
fn a_child_that_stays_silent_is_killed_after_the_grace() {
    let setup = Setup::server(&["--ignore-eof"]);
    let mut session = setup.start();
    let request = session.call(1, "never", json!({}));
    session.ask(2, "echo", json!({"text": "a"}));
    let ended = session.finish();
    ended.assert_exit(128 + 9);
    ended.record.assert_verified();
    let reason = "client closed stdin; child did not answer within the shutdown grace";
    assert_unanswered(ended.record.outcome(&request), "none", reason);
}

#[test]
fn a_client_that_closes_its_reading_end_ends_the_session() {
    // However much the child says, and though the writing end stays open.
    let setup = Setup::server(&["--flood"]);
    let mut session = setup.start_unread();
    session.close_output();
    let ended = session.wait();
    ended.assert_exit(128 + 9);
    ended.record.assert_verified();
}

#[test]
fn a_client_that_is_gone_ends_the_session() {
    let setup = Setup::server(&["--flood", "--ignore-eof"]);
    let mut session = setup.start_unread();
    session.close_output();
    let ended = session.finish();
    ended.assert_exit(128 + 9);
    ended.record.assert_verified();
}

/// The three ways in which frames of the client are held up, each of which
/// hides the end that stands behind them.
#[test]
fn a_client_that_leaves_while_the_child_takes_nothing_ends_the_session() {
    let setup = Setup::command(&["sleep", "1000"]);
    let mut session = setup.start_unread();
    let long = session.call(1, "echo", json!({"text": "a".repeat(200_000)}));
    session.call(2, "echo", json!({"text": "b"}));
    super::harness::until("the intent", || setup.record().intents().count() > 0);
    session.close_output();
    let ended = session.finish();
    ended.assert_exit(128 + 9);
    ended.record.assert_verified();
    let reason = "client closed stdin; child did not answer within the shutdown grace";
    assert_unanswered(ended.record.outcome(&long), "none", reason);
}

#[test]
fn a_client_that_leaves_while_too_many_calls_are_open_ends_the_session() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let calls = (0..4100).map(|id| format!("{}\n", super::harness::call(id, "never", json!({}))));
    session.send(calls.collect::<String>().as_bytes());
    super::harness::until("the bound", || setup.record().intents().count() == 4096);
    let ended = session.finish();
    ended.assert_exit(128 + 9);
    ended.record.assert_verified();
    assert_eq!(ended.record.intents().count(), 4096);
}

#[test]
fn a_client_that_leaves_its_refusals_unread_ends_the_session() {
    let policy = "rules: [{id: no-echo, action: deny, tool: echo}]";
    let setup = super::gate::behind(Setup::server(&[]), policy, &[]);
    let mut session = setup.start_unread();
    // They fit in a pipe, and their refusals do not.
    for id in 0..600 {
        session.call(id, "echo", json!({}));
    }
    let ended = session.finish();
    ended.assert_exit(128 + 9);
    ended.record.assert_verified();
}

#[test]
fn a_slow_client_gets_all_of_the_last_answer() {
    let answer = "head -c 12000000 /dev/zero | tr '\\0' x; exit 3";
    let setup = Setup::command(&["sh", "-c", answer]);
    let mut session = setup.start_unread();
    session.read_slowly(std::time::Duration::from_millis(30));
    let ended = session.wait();
    ended.assert_exit(3);
    assert_eq!(ended.frames.concat().len(), 12_000_000);
    ended.record.assert_verified();
}

#[test]
fn answers_that_nobody_reads_are_recorded() {
    let setup = Setup::server(&[]);
    let mut session = setup.start_unread();
    session.close_output();
    let request = session.call(1, "echo", json!({"text": "a"}));
    let ended = session.finish();
    ended.record.assert_verified();
    let outcome = ended.record.outcome(&request);
    assert_eq!(outcome["answer"], json!({"kind": "result"}));
}

#[test]
fn a_child_that_closes_its_input_may_still_answer() {
    let script = concat!(
        "read -r line; exec <&-; echo ready; sleep 0.2;",
        r#"echo '{"id":1,"result":{}}'; exit 6"#
    );
    let setup = Setup::command(&["sh", "-c", script]);
    let mut session = setup.start();
    let first = session.call(1, "t", json!({}));
    assert_eq!(session.frame(), b"ready\n");
    // Recorded, though nobody will read it.
    let second = session.call(2, "t", json!({}));
    let ended = session.wait();
    ended.assert_exit(6);
    ended.record.assert_verified();
    let kind = |request: &[u8]| -> Value { ended.record.outcome(request)["answer"].clone() };
    assert_eq!(kind(&first), json!({"kind": "result"}));
    assert_eq!(kind(&second), json!({"kind": "none"}));
}
