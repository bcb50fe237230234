//! What the flags change.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::demo::server::ServerOptions;

#[test]
fn calls_running_at_the_end_of_input_are_still_answered() {
    let mut client = Client::start(&["--exit-code", "9"]);
    client.call("sleep", json!({"ms": 20}));
    let (code, rest) = client.finish();
    assert_eq!(code, ExitCode::from(9));
    assert_eq!(rest.lines().count(), 1);
}

#[test]
fn without_answers_after_the_end_running_calls_are_dropped() {
    let mut client = Client::start(&["--no-answer-after-eof"]);
    client.call("sleep", json!({"ms": 600_000}));
    client.to_server = None;
    assert_eq!(client.server.join().unwrap(), ExitCode::SUCCESS);
}

#[test]
fn a_server_that_ignores_the_end_of_input_goes_on() {
    let mut client = Client::start(&["--ignore-eof", "--flood"]);
    client.to_server = None;
    // More than a pipe holds: these were written after the end.
    for _ in 0..10_000 {
        assert_eq!(client.next()["method"], "notifications/message");
    }
    drop(client.from_server);
    assert_eq!(client.server.join().unwrap(), ExitCode::FAILURE);
}

#[test]
fn answers_get_through_a_flood() {
    let mut client = Client::start(&["--flood"]);
    let id = client.call("echo", json!({"text": "here"}));
    let answer = loop {
        let message = client.next();
        if message.get("method").is_none() {
            break message;
        }
    };
    assert_eq!(answer["id"], json!(id));
}

#[test]
fn exit_after_counts_answers_only() {
    let mut client = Client::start(&["--exit-after", "2"]);
    let token = json!({"progressToken": 1});
    let params = json!({"name": "progress", "arguments": {"steps": 5}, "_meta": token});
    let id = client.request("tools/call", params);
    for _ in 0..5 {
        client.next();
    }
    assert_eq!(client.text_of(id), "5 steps");
    // In one write: the server may be gone before a second one.
    let ping = |id| {
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
        )
    };
    client.write([ping(2), ping(3), ping(4)].concat().as_bytes());
    assert_eq!(client.next()["id"], 2);
    assert_eq!(client.line(), b"");
    assert_eq!(client.server.join().unwrap(), ExitCode::SUCCESS);
}

#[test]
fn input_can_be_left_unread() {
    struct Untouched(Arc<AtomicBool>);
    impl Read for Untouched {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            self.0.store(true, Ordering::SeqCst);
            Ok(0)
        }
    }
    let touched = Arc::new(AtomicBool::new(false));
    let options = ServerOptions {
        read_nothing: true,
        flood: true,
        ..ServerOptions::default()
    };
    let (from_server, output) = io::pipe().unwrap();
    let input = Untouched(Arc::clone(&touched));
    let server = thread::spawn(move || serve(options, input, output, io::sink()));
    let mut lines = BufReader::new(from_server).lines();
    assert!(lines.next().is_some());
    drop(lines);
    assert_eq!(server.join().unwrap(), ExitCode::FAILURE);
    assert!(!touched.load(Ordering::SeqCst));
}

#[test]
fn a_grandchild_is_named_on_stderr() {
    let mut client = Client::start(&["--spawn-grandchild", "0", "--detach-grandchild"]);
    assert_eq!(client.ask("ping", json!({})), json!({}));
    let errors = String::from_utf8(locked(&client.errors.0).clone()).unwrap();
    let pid = errors.strip_prefix("grandchild ").unwrap().trim_end();
    assert!(pid.parse::<u32>().is_ok(), "{errors}");
}

#[test]
fn a_slow_start_ends() {
    let mut client = Client::start(&["--slow-start", "1"]);
    assert_eq!(client.ask("ping", json!({})), json!({}));
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let client = Client::start(&["--ledger", "/nonexistent/effects"]);
    let errors = client.errors.clone();
    assert_eq!(client.finish(), (ExitCode::FAILURE, String::new()));
    let errors = String::from_utf8(locked(&errors.0).clone()).unwrap();
    let expected = "demo server: could not open `/nonexistent/effects`: ";
    assert!(errors.starts_with(expected), "{errors}");
}
