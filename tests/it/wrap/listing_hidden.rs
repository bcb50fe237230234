//! `--hide-denied`: the client is not shown what it may not call, and nothing
//! else changes.

use std::fs;

use serde_json::{Value, json};

use super::harness::{Setup, call, sha256};
use super::listing::{ECHO, answer, list, modern, scripted};

/// `setup` under this policy.
fn under(setup: Setup, policy: &str, flags: &[&str]) -> Setup {
    let path = setup.dir.path().join("policy.yaml");
    fs::write(&path, policy).unwrap();
    let path = path.to_str().unwrap().to_owned();
    setup.with(&["--policy", &path]).with(flags)
}

const DENY_ECHO: &str = "\
version: 1
default: allow
rules:
  - {id: no-echo, tool: echo, action: deny}
  - {id: few-adds, tool: add, action: rate_limit, rate: {max: 1, per_seconds: 3600}}
  - {id: asked-notes, tool: write_note, action: pending_approval}
";

/// The bytes of the answers to these messages, by the server itself and by
/// wrap.
fn both(flags: &[&str], policy: &str, messages: &[Value]) -> (String, String) {
    let setup = under(Setup::server(&[]), policy, flags);
    let input: String = messages
        .iter()
        .map(|message| format!("{message}\n"))
        .collect();
    let text = |output: std::process::Output| String::from_utf8(output.stdout).unwrap();
    let direct = text(setup.pipe_direct(input.as_bytes()));
    (direct, text(setup.pipe(input.as_bytes())))
}

/// SPEC [LISTING-5].
#[test]
fn only_the_denied_tool_and_its_comma_are_gone_in_either_era() {
    let messages = [list(1), modern(list(2)), list(3)];
    let (direct, wrapped) = both(&["--hide-denied"], DENY_ECHO, &messages);
    let element = format!("{ECHO},");
    assert_eq!(direct.matches(&element).count(), 3);
    assert!(direct.contains("\"ttlMs\":0") && direct.contains("\"name\":\"write_note\""));
    assert_eq!(wrapped, direct.replace(&element, ""));

    // Without the flag nothing is.
    let (direct, wrapped) = both(&[], DENY_ECHO, &messages);
    assert_eq!(wrapped, direct);
}

/// SPEC [LISTING-5].
#[test]
fn under_a_default_of_deny_what_is_allowed_is_left() {
    let policy = "\
version: 1
default: deny
rules:
  - {id: echo, tool: echo, action: allow}
  - {id: few-adds, tool: add, action: rate_limit, rate: {max: 1, per_seconds: 3600}}
  - {id: asked-notes, tool: write_note, action: pending_approval}
";
    let (direct, wrapped) = both(&["--hide-denied"], policy, &[list(1)]);
    let names = |text: &str| {
        let read: Value = serde_json::from_str(text).unwrap();
        let tools = read["result"]["tools"].as_array().unwrap().clone();
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        tools.iter().map(name).collect::<Vec<_>>()
    };
    assert!(names(&direct).len() > 20);
    assert_eq!(names(&wrapped), ["echo", "add", "write_note"]);

    let nothing = "version: 1\ndefault: deny\n";
    let (_, wrapped) = both(&["--hide-denied"], nothing, &[list(1)]);
    assert!(wrapped.contains("\"tools\":[]"), "{wrapped}");
}

/// SPEC [LISTING-4] [LISTING-5]: what was hidden was not shown, what is
/// refused has its digest, and to list counts in no rate window.
#[test]
fn to_hide_spends_nothing_and_is_no_showing() {
    let setup = under(Setup::server(&[]), DENY_ECHO, &["--hide-denied"]);
    let mut session = setup.start();
    for id in 0..5 {
        session.send_json(&list(id));
        session.answer(id);
    }
    let (hidden, _) = session.ask(10, "echo", json!({"text": "a"}));
    let (first, _) = session.ask(11, "add", json!({"a": 1, "b": 1}));
    let (second, _) = session.ask(12, "add", json!({"a": 1, "b": 1}));
    let (parked, _) = session.ask(13, "write_note", json!({"text": "a"}));
    let record = session.finish().record;
    record.assert_verified();
    let hidden = record.outcome(&hidden);
    assert_eq!(hidden["policy"]["status"], "denied");
    assert_eq!(hidden.get("tool_digest"), None);
    let (first, second) = (record.outcome(&first), record.outcome(&second));
    assert_eq!(first["policy"]["status"], "allowed");
    assert_eq!(second["policy"]["status"], "rate_limited");
    assert!(first["tool_digest"].is_string());
    assert_eq!(first["tool_digest"], second["tool_digest"]);
    let parked = record.outcome(&parked);
    assert_eq!(parked["policy"]["status"], "pending_approval");
    assert!(parked["tool_digest"].is_string());
}

/// SPEC [LISTING-4].
#[test]
fn every_call_has_its_digest_refused_held_back_or_under_trial() {
    let digest = sha256(ECHO.as_bytes());
    for (flags, status) in [(&[][..], "denied"), (&["--shadow"], "allowed")] {
        let setup = under(Setup::server(&[]), DENY_ECHO, flags);
        let mut session = setup.start();
        session.send_json(&list(1));
        session.answer(1);
        let (request, _) = session.ask(2, "echo", json!({"text": "a"}));
        let batch = session.send_json(&json!([
            call(3, "fail", json!({"message": "a"})),
            call(4, "echo", json!({"text": "a"})),
        ]));
        session.frame();
        let record = session.finish().record;
        record.assert_verified();
        assert_eq!(record.outcome(&request)["policy"]["status"], status);
        assert_eq!(record.outcome(&request)["tool_digest"], digest);
        let both = record.outcomes_of(&batch);
        assert_eq!(both.len(), 2);
        for outcome in both {
            assert!(outcome["tool_digest"].is_string(), "{outcome}");
            assert_eq!(
                outcome["tool_digest"] == digest,
                outcome["tool_id"] == "echo"
            );
        }
    }
}

/// SPEC [LISTING-5] [LISTING-6]: answers as they come and as they go on.
#[test]
fn every_other_byte_stays_and_what_is_doubtful_passes() {
    let odd =
        r#"[	{ "x" : {"name":"echo"}, "name":"add" } ,	{"name" : "\u0065cho" , "n":1.0e5}	, 3 ]"#;
    let odd_left = r#"[	{ "x" : {"name":"echo"}, "name":"add" } ,		 3 ]"#;
    let all = r#"[ {"name":"echo"} , {"name":"echo","v":2} ]"#;
    let echo = r#"[{"name":"echo"}]"#;
    let long = format!(r#"[{{"name":"echo","d":"{}"}}]"#, "x".repeat(8 << 20));
    for (came, went) in [
        (answer(1, odd), answer(1, odd_left)),
        (answer(1, all), answer(1, "[    ]")),
        (
            format!(
                "{}\r",
                answer(1, echo).replace("]}", "],\"nextCursor\":\"2\"}")
            ),
            format!(
                "{}\r",
                answer(1, "[]").replace("]}", "],\"nextCursor\":\"2\"}")
            ),
        ),
        (
            format!("[{}]", answer(1, echo)),
            format!("[{}]", answer(1, "[]")),
        ),
        // Not the answer to that, not readable strictly, and too long.
        (answer(2, echo), answer(2, echo)),
        (
            answer(1, r#"[{"name":"echo","name":"echo"}]"#),
            answer(1, r#"[{"name":"echo","name":"echo"}]"#),
        ),
        (answer(1, &long), answer(1, &long)),
    ] {
        let (setup, _answers) = scripted(&[&came]);
        let setup = under(setup, DENY_ECHO, &["--hide-denied"]);
        let mut session = setup.start();
        session.send_json(&list(1));
        let start = &came[..came.len().min(80)];
        assert!(
            session.frame() == format!("{went}\n").into_bytes(),
            "{start}"
        );
        session.finish();
    }
}

/// A last frame without a line end gets one when something is cut out of it.
#[test]
fn a_last_frame_ends_its_line_when_it_is_cut() {
    let frame = answer(1, r#"[{"name":"echo"}]"#);
    let script = format!("read -r line; printf '%s' '{frame}'; exec >&-; cat >/dev/null");
    let setup = under(
        Setup::command(&["sh", "-c", &script]),
        DENY_ECHO,
        &["--hide-denied"],
    );
    let mut session = setup.start();
    session.send_json(&list(1));
    assert_eq!(session.frame(), format!("{}\n", answer(1, "[]")).as_bytes());
    session.finish();
}
