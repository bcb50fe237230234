//! What is on record before what is seen.

use std::fs;

use serde_json::{Value, json};

use super::harness::{Setup, sha256};

/// SPEC [DUR-4]: whoever has an answer finds its outcome in the file, signed,
/// in every mode.
#[test]
fn the_outcome_is_written_before_the_client_has_the_answer() {
    for mode in ["full", "intent", "process"] {
        let setup = Setup::server(&[]).with(&["--durability", mode]);
        let mut session = setup.start();
        for id in 0..CALLS {
            let bytes = 1 << (id % 12);
            let (request, answer) = match id % 3 {
                0 => session.ask(id, "echo", json!({"text": "x".repeat(bytes)})),
                1 => session.ask(id, "fail", json!({"message": "m"})),
                _ => session.ask(id, "big", json!({ "bytes": bytes })),
            };
            let file = fs::read_to_string(setup.audit()).unwrap();
            assert!(file.ends_with('\n'), "{mode}: a torn row");
            let last: Value = serde_json::from_str(file.lines().last().unwrap()).unwrap();
            assert_eq!(last["line_type"], "outcome", "{mode}");
            assert_eq!(last["request_digest"], sha256(&request), "{mode}");
            let answer = answer.strip_suffix(b"\n").unwrap();
            assert_eq!(last["response_digest"], sha256(answer), "{mode}");
            assert_eq!(last["signature"].as_str().map(str::len), Some(128));
        }
        session.finish().record.assert_verified();
    }
}

/// SPEC [DUR-4], many at once: each answer that has come has its outcome.
#[test]
fn outcomes_of_pipelined_calls_are_written_before_their_answers_come() {
    for mode in ["full", "intent", "process"] {
        let setup = Setup::server(&[]).with(&["--durability", mode]);
        let mut session = setup.start();
        for id in 0..CALLS {
            session.call(id, "echo", json!({"text": "a"}));
        }
        for _ in 0..CALLS {
            let answer = session.frame();
            let digest = sha256(answer.strip_suffix(b"\n").unwrap());
            let file = fs::read_to_string(setup.audit()).unwrap();
            assert!(
                file.contains(&format!("\"response_digest\":\"{digest}\"")),
                "{mode}"
            );
        }
        session.finish().record.assert_verified();
    }
}

const CALLS: usize = 100;
