use super::super::slot::{MAX_ID, MAX_NAME};
use super::*;
use crate::rpc::message::{Kind, Member, RpcId, Text};

fn text(whole: &str) -> Text {
    Text::new(whole, None)
}

fn id(value: &str) -> RpcId {
    message(format!(r#"{{"id":{value},"method":"m"}}"#)).id
}

fn name(value: &str) -> Member {
    message(format!(r#"{{"params":{{"name":{value}}}}}"#))
        .params
        .name
}

#[test]
fn ids_differ_by_type_and_value() {
    assert_eq!(message("{}").id, RpcId::Absent);
    assert_eq!(id("null"), RpcId::Null);
    assert_eq!(id("1"), RpcId::Number(text("1")));
    assert_eq!(id(r#""1""#), RpcId::String(text("1")));
    assert_eq!(id(r#""\u0031""#), id(r#""1""#));
    assert_eq!(id("-1.50E+2"), RpcId::Number(text("-1.50E+2")));
    assert_eq!(id(r#"{"a": 1}"#), RpcId::Other(sum(r#"{"a": 1}"#)));
    assert_eq!(id("[[],1 ]"), RpcId::Other(sum("[[],1 ]")));
    assert_eq!(id("true"), RpcId::Other(sum("true")));
    let all = [
        "null", "1", "1.0", "\"1\"", "true", "false", "[1]", "{}", "\"\"", "\"null\"",
    ];
    for (index, one) in all.iter().enumerate() {
        for other in &all[index + 1..] {
            assert_ne!(id(one), id(other), "{one} {other}");
        }
    }
}

#[test]
fn long_ids_stay_exactly_comparable() {
    let string = |len: usize, last: char| id(&format!("\"{}{last}\"", "x".repeat(len - 1)));
    let number = |len: usize, last: char| id(&format!("{}{last}", "1".repeat(len - 1)));
    for len in [MAX_ID, MAX_ID + 1, 100_000] {
        assert_eq!(string(len, 'a'), string(len, 'a'));
        assert_ne!(string(len, 'a'), string(len, 'b'));
        assert_ne!(string(len, 'a'), string(len + 1, 'a'));
        assert_eq!(number(len, '1'), number(len, '1'));
        assert_ne!(number(len, '1'), number(len, '2'));
        let (RpcId::String(text), RpcId::Number(digits)) = (string(len, 'a'), number(len, '1'))
        else {
            panic!("wrong types");
        };
        assert_eq!(text.as_whole().is_some(), len == MAX_ID);
        assert_eq!(digits.as_whole().is_some(), len == MAX_ID);
        assert_eq!(text.head().len(), MAX_ID);
    }
}

#[test]
fn an_id_can_be_echoed_by_its_bytes() {
    for value in ["1", "1.0", r#""a\u0062""#, "{\"x\" :[1]}", "null", "true"] {
        for frame in [
            format!(r#"{{"é":1,"id": {value} ,"method":"m"}}"#),
            format!(r#"{{"id":{value}}}"#),
        ] {
            let span = message(&frame).id_span.expect("a span");
            let span = span.start as usize..span.end as usize;
            assert_eq!(&frame[span], value);
        }
    }
    assert_eq!(message("{}").id_span, None);
    // An id below the top level is not the id of the message.
    assert_eq!(
        message(r#"{"params":{"id":1},"x":{"id":2}}"#).id,
        RpcId::Absent
    );
}

#[test]
fn the_name_is_kept_whole_up_to_its_bound() {
    assert_eq!(message("{}").params.name, Member::Absent);
    assert_eq!(
        message(r#"{"params":["name"]}"#).params.name,
        Member::Absent
    );
    assert_eq!(message(r#"{"name":"a"}"#).params.name, Member::Absent);
    assert_eq!(
        message(r#"{"params":{"x":{"name":"a"}}}"#).params.name,
        Member::Absent
    );
    for value in ["1", "null", "true", "[]", "{}"] {
        assert_eq!(name(value), Member::NotAString, "{value}");
    }
    assert_eq!(name(r#""""#), Member::Text(text("")));
    assert_eq!(
        name(r#"" a\n\u00e9\ud83d\ude00""#),
        Member::Text(text(" a\né😀"))
    );

    let long = "n".repeat(MAX_NAME);
    assert_eq!(name(&format!("\"{long}\"")).as_whole(), Some(long.as_str()));
    let Member::Text(cut) = name(&format!("\"{long}\\u006e\"")) else {
        panic!("a string");
    };
    assert_eq!(cut.as_whole(), None);
    assert_eq!(cut.head(), long);
    let whole = cut.cut().expect("cut");
    assert_eq!(whole.bytes, MAX_NAME as u64 + 1);
    assert_eq!(whole.sum, sum(format!("{long}n")));
}

#[test]
fn a_text_is_cut_between_characters() {
    let long = format!("{}é", "n".repeat(MAX_NAME - 1));
    let Member::Text(cut) = name(&format!("\"{long}x\"")) else {
        panic!("a string");
    };
    assert_eq!(cut.head().len(), MAX_NAME - 1);
    assert_eq!(cut.cut().expect("cut").sum, sum(format!("{long}x")));
}

#[test]
fn kinds_follow_method_id_and_answer() {
    for (frame, kind) in [
        (r#"{"method":"m","id":1}"#, Kind::Request),
        (r#"{"method":"m","id":""}"#, Kind::Request),
        (r#"{"method":"m","id":{}}"#, Kind::Request),
        (r#"{"method":"m","id":1,"result":1}"#, Kind::Request),
        (r#"{"method":"m"}"#, Kind::Notification),
        (r#"{"method":"m","id":null}"#, Kind::Notification),
        (r#"{"id":1,"result":null}"#, Kind::Response),
        (r#"{"id":1,"error":{}}"#, Kind::Response),
        (r#"{"error":{}}"#, Kind::Response),
        (r#"{"id":1}"#, Kind::Invalid),
        ("{}", Kind::Invalid),
    ] {
        assert_eq!(message(frame).kind(), kind, "{frame}");
    }
}

#[test]
fn a_tools_call_is_known_by_its_method_alone() {
    for (method, expected) in [
        (r#""tools/call""#, true),
        (r#""tools\/c\u0061ll""#, true),
        (r#""tools/list""#, false),
        (r#""tools""#, false),
    ] {
        let frame = format!(r#"{{"method":{method}}}"#);
        assert_eq!(message(&frame).is_tools_call(), expected, "{frame}");
    }
    assert!(!message(r#"{"params":{"method":"tools/call"}}"#).is_tools_call());
}

#[test]
fn members_of_params_are_found() {
    let frame = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{
        "name":"t","arguments": {"a": [1, "é"]} ,"requestState":"s\u0061",
        "inputResponses":{},"requestId":"r","protocolVersion":"2025-06-18",
        "_meta":{"x":{"io.modelcontextprotocol/protocolVersion":"no"},
        "io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let params = message(frame).params;
    assert_eq!(params.name.as_whole(), Some("t"));
    assert_eq!(params.arguments, Some(sum(r#"{"a": [1, "é"]}"#)));
    assert_eq!(params.request_state, Some(sum(r#""s\u0061""#)));
    assert!(params.has_input_responses);
    assert_eq!(params.request_id, RpcId::String(text("r")));
    assert_eq!(params.protocol_version.as_whole(), Some("2025-06-18"));
    assert_eq!(params.meta_version.as_whole(), Some("2026-07-28"));

    let elsewhere = message(
        r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"},"requestId":1,"inputResponses":1,"params":{"x":{"requestState":1,"arguments":1}}}"#,
    );
    assert_eq!(elsewhere.params, Default::default());
    let numbers = message(
        r#"{"params":{"requestId":12,"requestState":-3e4,"_meta":{"io.modelcontextprotocol/protocolVersion":1}}}"#,
    );
    assert_eq!(numbers.params.request_id, RpcId::Number(text("12")));
    assert_eq!(numbers.params.request_state, Some(sum("-3e4")));
    assert_eq!(numbers.params.meta_version, Member::NotAString);
}

#[test]
fn arguments_are_kept_of_calls_only_in_any_order() {
    let call = |method: &str| {
        let method = format!(r#""method":"{method}""#);
        let params = r#""params":{"arguments":[1]}"#;
        let one = message(format!("{{{method},{params}}}"));
        let other = message(format!("{{{params},{method}}}"));
        assert_eq!(one, other);
        one.params.arguments
    };
    assert_eq!(call("tools/call"), Some(sum("[1]")));
    assert_eq!(call("prompts/get"), None);
}

#[test]
fn members_of_an_answer_are_found() {
    let frame = r#"{"id":1,"result":{"content":[{"isError":false}],"isError":true,
        "resultType":"input_required","requestState":{"a":1},"inputRequests":{},
        "task":{"taskId":"t\u0031","status":"working"},"taskId":"t2","protocolVersion":"v"}}"#;
    let message = message(frame);
    assert!(message.has_result && !message.has_error);
    let answer = message.answer;
    assert!(answer.is_error);
    assert_eq!(answer.result_type.as_whole(), Some("input_required"));
    assert_eq!(answer.request_state, Some(sum(r#"{"a":1}"#)));
    assert!(answer.has_input_requests);
    assert!(answer.has_task);
    assert_eq!(answer.nested_task_id, Some(sum("t1")));
    assert_eq!(answer.task_id, Some(sum("t2")));
    assert_eq!(answer.protocol_version.as_whole(), Some("v"));
    assert_eq!(answer.error_code, None);
}

#[test]
fn only_true_is_an_error_and_only_an_object_a_task() {
    for value in ["false", "null", "1", r#""true""#, "[true]"] {
        let answer = message(format!(
            r#"{{"result":{{"isError":{value},"task":{value}}}}}"#
        ))
        .answer;
        assert!(!answer.is_error && !answer.has_task, "{value}");
    }
    let answer = message(r#"{"isError":true,"result":{"x":{"isError":true}}}"#).answer;
    assert_eq!(answer, Default::default());
}

#[test]
fn an_error_code_is_an_integer_that_fits() {
    let code = |value: &str| {
        message(format!(r#"{{"error":{{"code":{value}}}}}"#))
            .answer
            .error_code
    };
    assert_eq!(code("-32602"), Some(-32602));
    assert_eq!(code("0"), Some(0));
    assert_eq!(code("-9223372036854775808"), Some(i64::MIN));
    assert_eq!(code("9223372036854775807"), Some(i64::MAX));
    for value in [
        "9223372036854775808",
        "-9223372036854775809",
        "1.0",
        "1e3",
        "\"1\"",
        "null",
        "100000000000000000000000",
    ] {
        assert_eq!(code(value), None, "{value}");
    }
    assert_eq!(
        message(r#"{"error":{"data":{"code":1}}}"#)
            .answer
            .error_code,
        None
    );
}

#[test]
fn messages_of_a_batch_do_not_mix() {
    let Scan::Batch(batch) = scan(
        r#"[{"id":1,"method":"tools/call","params":{"name":"a"}}, {"id":2,"method":"m"},{"result":{"isError":true}}]"#,
    ) else {
        panic!("no batch");
    };
    assert_eq!(batch.len(), 3);
    assert_eq!(batch[0].params.name.as_whole(), Some("a"));
    assert_eq!(batch[1].params, Default::default());
    assert_eq!(batch[1].id, RpcId::Number(text("2")));
    assert_eq!(batch[2].id, RpcId::Absent);
    assert_eq!(batch[2].kind(), Kind::Response);
}
