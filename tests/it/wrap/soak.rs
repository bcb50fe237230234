//! Many clients' worth of calls at once over one session.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::harness::{Setup, call};
use super::record::{assert_answered, assert_passed_through};

/// SPEC [LINE-6].
#[test]
fn many_threads_of_pipelined_calls_have_one_outcome_each() {
    const THREADS: usize = 8;
    const CALLS: usize = 200;
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let input = Arc::new(Mutex::new(session.take_input()));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let input = Arc::clone(&input);
            std::thread::spawn(move || {
                let mut frames = BTreeMap::new();
                for i in 0..CALLS {
                    let id = format!("{thread}-{i}");
                    let (tool, arguments) = match i % 10 {
                        0 => ("sleep", json!({"ms": i % 7})),
                        1 => ("big", json!({"bytes": 1 << (i % 17)})),
                        _ => ("echo", json!({ "text": id })),
                    };
                    let frame = call(id.clone(), tool, arguments).to_string();
                    let line = format!("{frame}\n");
                    let mut input = input.lock().unwrap();
                    std::io::Write::write_all(&mut *input, line.as_bytes()).unwrap();
                    drop(input);
                    frames.insert(id, (tool, frame.into_bytes()));
                }
                frames
            })
        })
        .collect();
    let mut answers = BTreeMap::new();
    for _ in 0..THREADS * CALLS {
        let frame = session.frame();
        let read: Value = serde_json::from_slice(&frame).unwrap();
        let id = read["id"].as_str().unwrap().to_owned();
        assert!(answers.insert(id, frame).is_none());
    }
    let frames = threads
        .into_iter()
        .flat_map(|thread| thread.join().unwrap());
    let frames: Vec<_> = frames.collect();
    drop(input);
    let ended = session.finish();
    ended.assert_exit(0);
    assert_eq!(ended.frames.len(), 0);
    let record = ended.record;
    record.assert_verified();
    assert_eq!(record.close()["calls"], THREADS * CALLS);
    let by_request: BTreeMap<&str, &Value> = record
        .outcomes()
        .map(|outcome| (outcome["request_digest"].as_str().unwrap(), outcome))
        .collect();
    assert_eq!(by_request.len(), THREADS * CALLS);
    for (id, (tool, request)) in &frames {
        let digest = super::harness::sha256(request);
        let outcome = by_request[digest.as_str()];
        assert_passed_through(&record, outcome, tool);
        assert_answered(outcome, &answers[id], json!({"kind": "result"}));
    }
}
