use super::*;
use crate::stations::Mode;
use crate::wrap::client::ToClient;
use crate::wrap::lane::Output as _;

const POLICY: &str = "rules: [{id: never, action: deny, tool: rm, reason: never}]";

const CODES: [i32; 2] = [-32042, -31042];

fn call(id: &str, tool: &str) -> String {
    format!("{{\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\"}}}}\n")
}

fn gated(writer: Writer, policy: &str) -> Arc<Shared> {
    let (shared, _) = shared(writer);
    let mut shared = Arc::into_inner(shared).unwrap();
    shared.gate = Some(Gate::of(policy, Mode::Enforce));
    Arc::new(shared)
}

/// What reaches the child and the client, and what is recorded, by tool and
/// policy.
pub(super) fn run(policy: &str, deny: Deny, input: &str) -> (String, String, Vec<String>) {
    let sink = GateSink::default();
    let shared = gated(open(sink.clone(), Durability::Process).unwrap(), policy);
    let (mut child, mut client) = (Vec::new(), Vec::new());
    let mut station = Requests::new(shared, deny);
    let stop = relay(&mut frames(input), &mut child, &mut client, &mut station);
    assert!(matches!(stop, Stop::Eof));
    let rows = String::from_utf8(sink.rows.bytes()).unwrap();
    let outcomes = rows.lines().filter_map(|row| {
        let row: Value = serde_json::from_str(row).unwrap();
        let policy = row["policy"]["status"].as_str()?;
        Some(format!("{} {policy}", row["tool_id"].as_str().unwrap()))
    });
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(child), text(client), outcomes.collect())
}

fn refusal(error: i32, code: &str, id: &str) -> String {
    format!(
        r#"{{"error":{{"code":{error},"data":{{"aegis":{{"code":"{code}","layer":"wrap"}}}},"message":"aegis wrap refused this tools/call"}},"id":{id},"jsonrpc":"2.0"}}"#
    )
}

/// SPEC [WRAP-5].
#[test]
fn a_refusal_echoes_the_id_as_it_came() {
    for id in [
        "1",
        "1.0",
        "-0",
        "1e400",
        "123456789012345678901234567890",
        r#""a""#,
        r#""\u0061\/\n\"""#,
        "\"é\u{1f600}\"",
        r#"{"a": [1,  2]}"#,
        "[ ]",
        "true",
    ] {
        let (child, client, _) = run(POLICY, Deny::default(), &call(id, "rm"));
        assert_eq!(child, "");
        assert_eq!(
            client,
            format!("{}\n", refusal(-32042, "POLICY_DENIED", id))
        );
    }
    // In a spool file, and behind escapes and blanks.
    let long = format!(
        "{{\"params\":{{\"x\":\"{}\",\"n\\u0061me\":\"rm\"}},\"method\":\"tools/call\", \"id\" : 7 }}\r\n",
        "x".repeat(64 << 10)
    );
    let (child, client, _) = run(POLICY, Deny::default(), &long);
    assert_eq!(child, "");
    assert_eq!(
        client,
        format!("{}\n", refusal(-32042, "POLICY_DENIED", "7"))
    );
}

/// SPEC [WRAP-5]: ids past 8 MiB in one answer are not echoed.
#[test]
fn what_a_refusal_echoes_is_bounded() {
    let id = format!("\"{}\"", "x".repeat(65_534));
    let element = call(&id, "rm");
    let batch = format!("[{}]\n", vec![element.trim_end(); 129].join(","));
    let (_, client, _) = run(POLICY, Deny::default(), &batch);
    let answers: Vec<Value> = serde_json::from_str(&client).unwrap();
    let echoed = answers.iter().filter(|answer| !answer["id"].is_null());
    assert_eq!((echoed.count(), answers.len()), (128, 129));
}

/// SPEC [WRAP-6].
#[test]
fn the_code_of_a_refusal_is_that_of_its_era() {
    let [legacy, modern] = CODES;
    let with = |id: u32, version: &str| {
        let meta = format!(r#""_meta":{{"io.modelcontextprotocol/protocolVersion":{version}}}"#);
        format!("{{\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"rm\",{meta}}}}}\n")
    };
    let input = [
        "x\n".to_owned(),
        with(1, r#""2025-11-25""#),
        with(2, "7"),
        "x\n".to_owned(),
        with(3, r#""2026-07-28""#),
        call("4", "rm"),
        "x\n".to_owned(),
        "{}\n".to_owned(),
        "{\"method\":\"tools/call\"}\n".to_owned(),
        with(5, r#""2027-01-01""#),
        with(6, r#""DRAFT-2027-v1""#),
    ];
    let codes = [
        legacy, legacy, legacy, legacy, modern, legacy, modern, modern, legacy, modern, modern,
    ];
    let (_, client, _) = run(POLICY, Deny::default(), &input.concat());
    let said: Vec<Value> = client
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["error"]["code"].clone())
        .collect();
    assert_eq!(said, codes);

    // One that declares it makes its whole batch modern; one that goes on counts
    // as well.
    let declared = with(1, r#""2026-07-28""#).replace("\"rm\"", "\"t\"");
    let batch = format!("[{},{}]\n", call("1", "rm").trim_end(), declared.trim_end());
    let (_, client, _) = run(POLICY, Deny::default(), &batch);
    let answers: Vec<Value> = serde_json::from_str(&client).unwrap();
    assert!(answers.iter().all(|said| said["error"]["code"] == modern));
    let (_, client, _) = run(POLICY, Deny::default(), &format!("{declared}x\n"));
    assert_eq!(
        client,
        format!("{}\n", refusal(modern, "HOST_DENIED", "null"))
    );

    let fixed = Deny {
        code: Some(7),
        detail: false,
    };
    let (_, client, _) = run(POLICY, fixed, &input.concat());
    assert_eq!(client.matches("\"code\":7,").count(), input.len());
}

/// SPEC [WRAP-7].
#[test]
fn detail_names_the_rule_and_the_reason() {
    let detail = Deny {
        code: None,
        detail: true,
    };
    let said = |policy: &str, input: &str| {
        let (_, client, _) = run(policy, detail, input);
        let answer: Value = serde_json::from_str(client.lines().last().unwrap()).unwrap();
        answer["error"]["data"]["aegis"].to_string()
    };
    assert_eq!(
        said(POLICY, &call("1", "rm")),
        r#"{"code":"POLICY_DENIED","layer":"wrap","reason":"never","retryable":false,"rule":"never"}"#
    );
    assert_eq!(
        said("default: deny", &call("1", "rm")),
        r#"{"code":"POLICY_DENIED","layer":"wrap","reason":"no matching rule (default deny)","retryable":false}"#
    );
    assert_eq!(
        said(POLICY, "x\n"),
        r#"{"code":"HOST_DENIED","layer":"wrap","reason":"frame could not be read strictly","retryable":false}"#
    );
    let pending = "rules: [{id: ask, action: pending_approval}]";
    let text = said(pending, &call("1", "t"));
    let reason = r#""reason":"pending approval: apr-ask-t-"#;
    assert!(text.contains(reason) && text.ends_with(r#"-1","retryable":false,"rule":"ask"}"#));

    // The bytes are sorted as they stand, and long texts are cut.
    let long = "é".repeat(1000);
    let rule = "é".repeat(512);
    let policy = format!("rules: [{{id: \"{rule}\", action: deny, reason: \"\\\"{long}\"}}]");
    let (_, client, _) = run(&policy, detail, &call("1", "t"));
    let head = &long[..1022];
    let aegis = format!(
        r#""aegis":{{"code":"POLICY_DENIED","layer":"wrap","reason":"\"{head}","retryable":false,"rule":"{rule}"}}"#
    );
    assert!(client.contains(&aegis), "{client}");
}

/// SPEC [WRAP-4] [WRAP-5].
#[test]
fn every_request_of_a_refused_batch_is_answered_in_its_place() {
    let elements = [
        call("1", "t"),
        r#"{"id":"p","method":"ping"}"#.to_owned(),
        r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#.to_owned(),
        call("2", "rm"),
        r#"{"id":9,"result":{}}"#.to_owned(),
        r#"{"method":"tools/call","params":{"name":"t"}}"#.to_owned(),
        r#"{"id":5}"#.to_owned(),
        r#"{"id":6,"method":"tools/call"}"#.to_owned(),
    ];
    let batch = format!(
        "[{}]\n",
        elements.map(|e| e.trim_end().to_owned()).join(",")
    );
    let (child, client, outcomes) = run(POLICY, Deny::default(), &batch);
    assert_eq!(child, "");
    let answers = [
        ("HOST_DENIED", "1"),
        ("HOST_DENIED", "\"p\""),
        ("POLICY_DENIED", "2"),
        ("HOST_DENIED", "null"),
        ("HOST_DENIED", "null"),
        ("HOST_DENIED", "6"),
    ];
    let answers = answers.map(|(code, id)| refusal(-32042, code, id));
    assert_eq!(client, format!("[{}]\n", answers.join(",")));
    let recorded = [
        "t allowed",
        "rm denied",
        "t denied",
        "<unreadable> denied",
        "<unknown> denied",
    ];
    assert_eq!(outcomes, recorded);
}

/// SPEC [WRAP-3].
#[test]
fn what_nobody_waits_for_is_dropped_and_recorded() {
    let input = "{\"id\":1,\"result\":\"\\ud800\"}\n{\"method\":\"notifications/x\",\"params\":\"\\ud800\"}\n";
    let (child, client, outcomes) = run(POLICY, Deny::default(), input);
    assert_eq!((&*child, &*client), ("", ""));
    assert_eq!(outcomes, ["<unreadable> denied"; 2]);
}

#[test]
fn a_frame_that_cannot_be_read_counts_once() {
    for mode in [Mode::Enforce, Mode::Shadow] {
        let (shared, _) = shared(open(GateSink::default(), Durability::Process).unwrap());
        let mut shared = Arc::into_inner(shared).unwrap();
        shared.gate = Some(Gate::of("default: allow", mode));
        let shared = Arc::new(shared);
        let mut station = Requests::new(Arc::clone(&shared), Deny::default());
        let input = "[{},{\"id\":1,\"method\":\"ping\"},{}]\nx\n[]\n";
        relay(&mut frames(input), io::sink(), io::sink(), &mut station);
        assert_eq!(shared.unreadable.load(Ordering::Relaxed), 3);
    }
}

/// SPEC [WRAP-9]: what goes on keeps its bytes and its place.
#[test]
fn allowed_bytes_go_on_as_they_came() {
    let kept = [
        "{ \"id\" : 1.0e0,\t\"method\":\"tools\\/call\",\"params\":{\"name\":\"t\"} }\r\n",
        "\n",
        "{\"method\":\"notifications/x\"}\n",
        "[{\"id\":1,\"method\":\"ping\"}]\n",
        "{\"id\":1,\"result\":{}}",
    ];
    let refused = call("8", "rm");
    let input = kept.join(&refused);
    let (child, client, _) = run(POLICY, Deny::default(), &input);
    assert_eq!(child, kept.concat());
    assert_eq!(client.lines().count(), kept.len() - 1);
}

/// SPEC [DUR-5] [WRAP-10].
#[test]
fn in_mode_full_a_refusal_waits_for_the_flush_of_its_outcome() {
    let sink = GateSink::default();
    let shared = gated(open(sink.clone(), Durability::Full).unwrap(), POLICY);
    let out = Out::beside(&sink);
    sink.shut();
    let refused = call("1", "rm");
    thread::scope(|scope| {
        let lane = scope.spawn(|| {
            let mut station = Requests::new(Arc::clone(&shared), Deny::default());
            relay(&mut frames(&refused), io::sink(), out.clone(), &mut station)
        });
        sink.wait_started(1);
        let seen = (types(&sink), out.bytes());
        let_all_go(&sink);
        lane.join().unwrap();
        assert_eq!(seen.0, ["open", "intent", "outcome"]);
        assert_eq!(seen.1, b"");
    });
    assert!(!out.bytes().is_empty());
}

/// SPEC [DUR-4] [WRAP-10]: a flush that does not return holds nothing up.
#[test]
fn in_the_other_modes_refusals_wait_for_the_write_only() {
    for durability in [Durability::Intent, Durability::Process] {
        let sink = GateSink::default();
        let shared = gated(open(sink.clone(), durability).unwrap(), POLICY);
        let mut out = Out::beside(&sink);
        sink.shut();
        let mut station = Requests::new(shared, Deny::default());
        let twice = call("1", "rm").repeat(2);
        relay(&mut frames(&twice), io::sink(), &mut out, &mut station);
        assert_eq!(out.bytes().iter().filter(|b| **b == b'\n').count(), 2);
        let twice = ["open", "intent", "outcome", "intent", "outcome"];
        assert_eq!(*out.lines.lock().unwrap(), twice);
        let_all_go(&sink);
    }
}

/// SPEC [DUR-1]: a refusal beside it does not let a Call go on any sooner.
#[test]
fn a_call_beside_a_refusal_still_waits_for_its_flush() {
    let sink = GateSink::default();
    let shared = gated(open(sink.clone(), Durability::Intent).unwrap(), POLICY);
    let (child, client) = (Out::beside(&sink), Out::beside(&sink));
    sink.shut();
    let input = call("1", "rm") + &call("2", "t") + &call("3", "rm");
    thread::scope(|scope| {
        let lane = scope.spawn(|| {
            let mut station = Requests::new(Arc::clone(&shared), Deny::default());
            relay(
                &mut frames(&input),
                child.clone(),
                client.clone(),
                &mut station,
            )
        });
        sink.wait_started(1);
        let seen = (child.bytes(), client.bytes());
        let_all_go(&sink);
        lane.join().unwrap();
        assert_eq!(seen, (Vec::new(), Vec::new()));
    });
    assert_eq!(child.bytes(), call("2", "t").as_bytes());
    assert_eq!(client.bytes().iter().filter(|b| **b == b'\n').count(), 2);
}

/// SPEC [CHAIN-9] [WRAP-10].
#[test]
fn a_refusal_that_is_not_recorded_does_not_go_out() {
    // open, flush; then the intent, the outcome, and in mode full its flush.
    for (durability, operation) in [
        (Durability::Process, 2),
        (Durability::Process, 3),
        (Durability::Full, 4),
    ] {
        let shared = gated(open(FaultSink::new(operation), durability).unwrap(), POLICY);
        let (mut child, mut client) = (Vec::new(), Vec::new());
        let mut station = Requests::new(shared, Deny::default());
        let input = call("1", "rm") + &call("2", "t");
        let stop = relay(&mut frames(&input), &mut child, &mut client, &mut station);
        assert!(
            matches!(stop, Stop::Chain(ChainError::Broken(_))),
            "{operation}"
        );
        assert_eq!((child, client), (Vec::new(), Vec::new()), "{operation}");
    }
}

/// The server's last words may lack their newline.
#[test]
fn a_refusal_begins_a_line_of_its_own() {
    let (shared, _heard) = shared(open(GateSink::default(), Durability::Process).unwrap());
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut client = ToClient::new(file.reopen().unwrap(), &shared);
    let mut answers = client.clone();
    for (said, refusal) in [("a\nb", "c\n"), ("", "d\n"), ("e\n", "f\n")] {
        let mut said = frames(said);
        while let Some(frame) = said.next_frame().unwrap() {
            answers.relay(&frame).unwrap();
        }
        client.say(refusal.as_bytes()).unwrap();
    }
    let text = std::fs::read_to_string(file.path()).unwrap();
    assert_eq!(text, "a\nb\nc\nd\ne\nf\n");
}

#[test]
fn once_the_session_is_over_nothing_is_refused_any_more() {
    let sink = GateSink::default();
    let shared = gated(open(sink.clone(), Durability::Process).unwrap(), POLICY);
    shared
        .pending
        .end(|| unreachable!("no call is open"))
        .unwrap();
    let mut client = Vec::new();
    let mut station = Requests::new(shared, Deny::default());
    let refused = call("1", "rm");
    let stop = relay(&mut frames(&refused), io::sink(), &mut client, &mut station);
    assert!(matches!(stop, Stop::Ended));
    assert_eq!(client, b"");
    assert_eq!(types(&sink), ["open"]);
}
