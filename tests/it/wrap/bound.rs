//! How many calls may be open.

use serde_json::{Value, json};

use super::harness::{Session, Setup, call, until};
use super::record::{Record, assert_unanswered};

/// How many calls may be open before reading from the client pauses.
const MAX_OPEN: usize = 4096;

/// Opens that many calls that are never answered, and one that will be.
fn fill(session: &mut Session<'_>, open: usize) {
    let calls = (0..open).map(|id| format!("{}\n", call(id, "never", json!({}))));
    session.send(calls.collect::<String>().as_bytes());
}

fn intents(setup: &Setup) -> usize {
    Record::load(&setup.audit()).intents().count()
}

fn ping(id: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

#[test]
fn reading_pauses_at_the_bound_and_goes_on_after_an_answer() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    // Answered when the client answers a question that the server asks.
    let waiting = session.call("waiting", "roots", json!({}));
    let question: Value = serde_json::from_slice(&session.frame()).unwrap();
    fill(&mut session, MAX_OPEN - 2);
    // One below the bound: the next call is still taken, and answered.
    session.ask("one below", "echo", json!({"text": "a"}));
    session.call("the last one", "never", json!({}));
    // At the bound: what is no call goes on.
    session.send_json(&ping("at the bound"));
    session.answer("at the bound");
    session.send_json(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {}}));
    session.answer("waiting");
    // Again at the bound, and past it.
    session.call("fills", "never", json!({}));
    let past = session.call("past", "echo", json!({"text": "b"}));
    session.send_json(&ping("behind"));
    until("the bound", || intents(&setup) == MAX_OPEN + 2);
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(session.has_frame().is_none(), "something passed the bound");
    assert_eq!(intents(&setup), MAX_OPEN + 2);
    let ended = session.finish_by_signal();
    ended.record.assert_verified();
    assert_eq!(ended.record.outcome(&waiting)["answer"]["kind"], "result");
    assert_eq!(ended.record.outcomes_of(&past).len(), 0);
}

#[test]
fn a_cancelled_call_makes_room() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let cancelled = session.call("cancelled", "never", json!({}));
    fill(&mut session, MAX_OPEN - 1);
    let params = json!({"requestId": "cancelled"});
    session.send_json(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
    );
    session.ask("past", "echo", json!({"text": "a"}));
    let outcome = Record::load(&setup.audit()).outcome(&cancelled).clone();
    assert_unanswered(&outcome, "cancelled", "cancelled by the client; no answer");
    session.finish_by_signal().record.assert_verified();
}

#[test]
fn frames_that_came_together_do_not_wait_for_each_other_at_the_bound() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    fill(&mut session, MAX_OPEN - 1);
    // Each is answered only once it has gone on, and there is room for one.
    let calls: String = (0..200)
        .map(|i| format!("{}\n", call(format!("e{i}"), "echo", json!({"text": "a"}))))
        .collect();
    session.send(calls.as_bytes());
    for i in 0..200 {
        session.answer(format!("e{i}"));
    }
    session.finish_by_signal().record.assert_verified();
}

#[test]
fn a_batch_at_the_bound_is_taken_whole() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    fill(&mut session, MAX_OPEN - 1);
    let batch: Vec<_> = (0..1000)
        .map(|i| call(format!("b{i}"), "echo", json!({"text": "a"})))
        .collect();
    session.send_json(&Value::from(batch));
    let answers: Value = serde_json::from_slice(&session.frame()).unwrap();
    assert_eq!(answers.as_array().map(Vec::len), Some(1000));
    let ended = session.finish_by_signal();
    ended.record.assert_verified();
    assert_eq!(ended.record.close()["calls"], MAX_OPEN - 1 + 1000);
}
