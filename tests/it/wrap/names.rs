//! Long names, and frames that cannot be read.

use serde_json::{Value, json};

use super::harness::{Setup, sha256};
use super::record::{assert_passed_through, assert_unanswered};

/// SPEC [LINE-22] [LINE-23].
#[test]
fn a_name_past_a_kibibyte_is_cut_and_kept_as_a_digest() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let names = [
        ("n".repeat(1024), None),
        ("n".repeat(1025), Some(1024)),
        // The bound is inside a character.
        (format!("{}\u{e9}", "n".repeat(1023)), Some(1023)),
        ("n".repeat(65536), Some(1024)),
        ("n".repeat(65537), Some(1024)),
        ("\u{1f600}".repeat(70 * 256), Some(1024)),
        (format!("{}x", "n".repeat(71679)), Some(1024)),
        (format!("{}y", "n".repeat(71679)), Some(1024)),
        // One name in the record, twelve bytes of escapes on the wire.
        ("\u{1}\u{10ffff}".repeat(300), Some(1023)),
    ];
    let mut asked = Vec::new();
    for (id, (name, kept)) in names.into_iter().enumerate() {
        let (request, _) = session.ask(id, &name, json!({}));
        asked.push((name, kept, request));
    }
    let record = session.finish().record;
    record.assert_verified();
    for (name, kept, request) in &asked {
        let outcome = record.outcome(request);
        let kept_bytes = kept.unwrap_or(name.len());
        let kept_name = &name[..name.floor_char_boundary(kept_bytes)];
        assert_passed_through(&record, outcome, kept_name);
        let cut = json!({"tool_id": {"bytes": name.len(), "sha256": sha256(name.as_bytes())}});
        let expected = kept.map(|_| &cut);
        assert_eq!(outcome.get("cut"), expected);
        assert_eq!(record.intent_of(outcome).get("cut"), expected);
    }
}

/// SPEC [LINE-21].
#[test]
fn frames_that_cannot_be_read_have_an_intent_and_an_outcome() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#;
    let deep = format!("{}{}", "[".repeat(64), "]".repeat(64));
    let frames: Vec<Vec<u8>> = vec![
        b"garbage".to_vec(),
        b"{\"method\":\"tools/call\",\"id\":NaN}".to_vec(),
        b"{\"method\":\"ping\",\"method\":\"tools/call\",\"id\":1}".to_vec(),
        b"{\"method\":\"ping\",\"metho\\u0064\":\"tools/call\",\"id\":1}".to_vec(),
        b"{\"method\":\"tools/call\",\"params\":{\"name\":\"\\udc00\"}}".to_vec(),
        format!("{{\"method\":\"x\",\"params\":\r{call}\r}}").into_bytes(),
        format!("\u{feff}{call}").into_bytes(),
        format!("{{\"id\":1,\"method\":\"tools/call\",\"params\":{deep}}}").into_bytes(),
        call.replace("method", "Method").into_bytes(),
        call.replace("\"name\"", "\"Name\"").into_bytes(),
        call.replace("\"params\"", "\"PARAMS\"").into_bytes(),
        call.replace("\"tools/call\"", "[\"tools/call\"]")
            .into_bytes(),
        call.replace("tools/call", "Tools/call").into_bytes(),
        call.replace("tools/call", " tools/call").into_bytes(),
        call.replace("tools/call", "tools/call\\u0000x")
            .into_bytes(),
        call.replace("method", "method\\u0000").into_bytes(),
        format!("{{\"id\":1,\"__proto__\":{call}}}").into_bytes(),
        format!("{call}{call}").into_bytes(),
        format!("{call} //").into_bytes(),
        call.replace("echo", "\u{1}").into_bytes(),
        [&b"{\"method\":\"\xc0\xaftools/call\"}"[..], b""].concat(),
        b"\"tools/call\"".to_vec(),
        call.as_bytes()[..call.len() - 1].to_vec(),
    ];
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    for frame in &frames {
        session.send(&[frame, &b"\n"[..]].concat());
    }
    session.ask("end", "echo", json!({"text": "a"}));
    let record = session.finish().record;
    record.assert_verified();
    for frame in &frames {
        let outcome = record.outcome(frame);
        assert_passed_through(&record, outcome, "<unreadable>");
        assert_unanswered(outcome, "none", "frame could not be read; relayed");
    }
    assert_eq!(record.close()["unreadable_frames"], frames.len());
    assert_eq!(record.close()["calls"], frames.len() + 1);
}

#[test]
fn only_this_method_is_a_call() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    for (id, method) in ["tools/calls", "tools/list", "tool/call", "tools\\/call"]
        .iter()
        .enumerate()
    {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
        session.send(format!("{frame}\n").as_bytes());
        session.answer(id);
    }
    let record = session.finish().record;
    record.assert_verified();
    // An escaped slash is a slash.
    let calls: Vec<Value> = record.intents().map(|i| i["tool_id"].clone()).collect();
    assert_eq!(calls, ["<unknown>"]);
    assert_eq!(record.close()["unreadable_frames"], 0);
}
