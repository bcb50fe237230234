use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn tools(frame: &str) -> Vec<Listed<'_>> {
    let messages = messages(frame.as_bytes()).unwrap();
    match said(frame.as_bytes(), messages[0]) {
        Said::Tools(tools) => tools,
        other => panic!("{other:?}"),
    }
}

fn hide(frame: &str, hidden: &[&str]) -> String {
    let cuts = cuts(frame.as_bytes(), &tools(frame), |name| {
        hidden.contains(&name)
    });
    String::from_utf8(without(frame.as_bytes(), &cuts)).unwrap()
}

fn answer(tools: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":{tools},"nextCursor":"x"}}}}"#)
}

#[test]
fn elements_are_found_with_their_names_and_bytes() {
    let frame = answer(
        r#"[ {"name":"a"}, {"x":{"name":"b"} , "name" : "\u0065cho"} ,3,[{"name":"c"}],{},{"name":4},null,["d"] ]"#,
    );
    let tools = tools(&frame);
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_deref()).collect();
    let nameless = [None; 6];
    assert_eq!(names, [&[Some("a"), Some("echo")][..], &nameless].concat());
    for tool in &tools {
        assert_eq!(&frame[tool.span.clone()], tool.definition);
    }
    assert_eq!(
        tools[1].definition,
        r#"{"x":{"name":"b"} , "name" : "\u0065cho"}"#
    );
}

#[test]
fn an_element_goes_with_one_comma() {
    for (tools, left) in [
        (r#"[{"name":"x"}]"#, "[]"),
        (r#"[ {"name":"x"}	]"#, "[ 	]"),
        (r#"[{"name":"x"},1]"#, "[1]"),
        (r#"[1,{"name":"x"}]"#, "[1]"),
        (r#"[1 , {"name":"x"} ]"#, "[1   ]"),
        (r#"[ {"name":"x"} , 1]"#, "[   1]"),
        (r#"[1 ,	{"name":"x"} , 2]"#, "[1 ,	  2]"),
        (r#"[{"name":"x"},{"name":"x"}]"#, "[]"),
        (r#"[{"name":"x"},1,{"name":"x"}]"#, "[1]"),
        (r#"[1,{"name":"x"},{"name":"x"},2]"#, "[1,2]"),
        (r#"[1,{"name":"x"},{"name":"x"}]"#, "[1]"),
        (r#"[{"name":"\u0078",",":","},1]"#, "[1]"),
        (
            r#"["x",{"name":"y"},{"name":["x"]}]"#,
            r#"["x",{"name":"y"},{"name":["x"]}]"#,
        ),
        ("[]", "[]"),
    ] {
        assert_eq!(hide(&answer(tools), &["x"]), answer(left), "{tools}");
    }
}

#[test]
fn what_is_no_list_of_tools_says_so() {
    let read = |frame: &str| {
        let messages = messages(frame.as_bytes()).unwrap();
        format!("{:?}", said(frame.as_bytes(), messages[0]))
    };
    for (frame, expected) in [
        (r#"{"id":1,"error":{"code":1,"message":"tools"}}"#, "Error"),
        // JSON-RPC 1.0 sends both.
        (r#"{"id":1,"result":null,"error":{"code":1}}"#, "Error"),
        (
            r#"{"id":1,"error":null,"result":{"tools":[]}}"#,
            "Tools([])",
        ),
        (r#"{"id":1,"result":{}}"#, "Nothing"),
        (r#"{"id":1,"result":{"tools":null}}"#, "Nothing"),
        (r#"{"id":1,"result":{"Tools":[]}}"#, "Nothing"),
        (r#"{"id":1,"result":"tools"}"#, "Nothing"),
        (r#"{"id":1,"result":[[{"name":"a"}]]}"#, "Nothing"),
        (r#"{"id":1,"result":{"tools":{}}}"#, "Unclear"),
        (r#"{"id":1,"result":{"tools":"[]"}}"#, "Unclear"),
        (r#"{"id":1,"result":{"tools":1e999}}"#, "Unclear"),
    ] {
        assert_eq!(read(frame), expected, "{frame}");
    }
}

#[test]
fn a_batch_gives_each_message_with_its_bytes() {
    let frame = format!(
        " [ {} , {} ]\r",
        answer("[]"),
        answer(r#"[{"name":"x"},1]"#)
    );
    let messages = messages(frame.as_bytes()).unwrap();
    assert_eq!(messages.len(), 2);
    let Said::Tools(tools) = said(frame.as_bytes(), messages[1]) else {
        panic!("no tools");
    };
    let cuts = cuts(frame.as_bytes(), &tools, |name| name == "x");
    let left = without(frame.as_bytes(), &cuts);
    let expected = format!(" [ {} , {} ]\r", answer("[]"), answer("[1]"));
    assert_eq!(String::from_utf8(left).unwrap(), expected);
}

/// SPEC [CANON-14]: the same definition has one digest, however it is spelled.
#[test]
fn a_digest_is_of_the_canonical_form() {
    let digest = |definition: &str| tools(&answer(&format!("[{definition}]")))[0].digest();
    let plain = digest(r#"{"name":"a","n":[100,0.5,null,-1],"title":"é"}"#).unwrap();
    // sha256sum of {"n":[100,0.5,null,-1],"name":"a","title":"é"}.
    assert_eq!(
        plain.to_string(),
        "f45dfd029d369ab7f9cf0dc9afeb5fc28f83c59120363a9bd81e8565d462cd23"
    );
    let odd = r#"{ "title" : "\u00e9", "n":[1e2,5E-1, null,-1.0], "\u006eame":"\u0061"}"#;
    assert_eq!(digest(odd), Some(plain));
    for other in [
        r#"{"name":"a","n":[100,0.5,null,-1],"title":"e\u0301"}"#,
        r#"{"name":"a","n":[100,0.5,null,-1]}"#,
        r#"{"name":"a","n":[100,null,0.5,-1],"title":"é"}"#,
    ] {
        assert_ne!(digest(other), Some(plain), "{other}");
    }
    assert_eq!(digest(r#"{"name":"a","n":1e400}"#), None);
}

#[test]
fn a_definition_is_hashed_up_to_its_bound() {
    let of = |bytes: usize| {
        let frame = r#"{"name":"a","d":""}"#;
        let filled = "x".repeat(bytes - frame.len());
        answer(&format!(r#"[{{"name":"a","d":"{filled}"}}]"#))
    };
    assert!(tools(&of(MAX_DEFINITION_BYTES))[0].digest().is_some());
    assert!(tools(&of(MAX_DEFINITION_BYTES + 1))[0].digest().is_none());
}

/// An element: its text, and the name that a client reads in it.
fn element() -> impl Strategy<Value = (String, Option<String>)> {
    let name = prop::sample::select(vec!["a", "b", "cé", "d,e", "]", "\"", "\u{1f600}"]);
    let named = (name, any::<bool>(), blank(), blank()).prop_map(|(name, escaped, b, c)| {
        let spelled = match escaped {
            false => serde_json::to_string(name).unwrap(),
            true => {
                let units = name.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
                format!("\"{}\"", units.collect::<String>())
            }
        };
        let text = format!(r#"{{"x":[1,{{"name":"a"}}],{b}"name"{c}:{spelled}}}"#);
        (text, Some(name.to_owned()))
    });
    let junk = prop::sample::select(vec![
        "1",
        "-0.5e9",
        "null",
        "\"a\"",
        "[]",
        "{}",
        "[{\"name\":\"a\"}]",
        "{\"name\":1}",
    ]);
    prop_oneof![4 => named, 1 => junk.prop_map(|text| (text.to_owned(), None))]
}

fn blank() -> impl Strategy<Value = String> {
    "[ \t]{0,3}"
}

/// Whether `text` is `pieces` one after the other, with `commas` commas
/// anywhere between them.
fn is_made_of(text: &str, pieces: &[&str], commas: usize) -> bool {
    let mut rest = text;
    let mut seen = 0;
    for piece in pieces {
        if let Some(behind) = rest.strip_prefix(',') {
            (rest, seen) = (behind, seen + 1);
        }
        match rest.strip_prefix(piece) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    rest.is_empty() && seen == commas
}

proptest! {
    #[test]
    fn what_is_not_hidden_stays_byte_for_byte(
        elements in prop::collection::vec((blank(), element(), blank()), 0..12),
        hidden in prop::collection::vec(any::<bool>(), 7),
        empty in blank(),
    ) {
        let names = ["a", "b", "cé", "d,e", "]", "\"", "\u{1f600}"];
        let hides = |name: &str| {
            names.iter().position(|known| *known == name).is_some_and(|at| hidden[at])
        };
        let list: Vec<_> = elements
            .iter()
            .map(|(before, (text, _), behind)| format!("{before}{text}{behind}"))
            .collect();
        let list = if list.is_empty() { empty.clone() } else { list.join(",") };
        let (start, end) = (
            r#" {"id":1,"_meta":{"tools":[{"name":"a"}]}, "result":{"tools":["#,
            r#"] ,"nextCursor":"2","ttlMs":5}}"#,
        );
        let frame = format!("{start}{list}{end}");
        let cuts = cuts(frame.as_bytes(), &tools(&frame), hides);
        let left = String::from_utf8(without(frame.as_bytes(), &cuts)).unwrap();

        let stays = |name: &Option<String>| !name.as_deref().is_some_and(hides);
        let mut expected: Value = serde_json::from_str(&frame).unwrap();
        let array = expected["result"]["tools"].as_array_mut().unwrap();
        let mut names = elements.iter().map(|(_, (_, name), _)| name);
        array.retain(|_| stays(names.next().unwrap()));
        let kept = array.len();
        prop_assert_eq!(serde_json::from_str::<Value>(&left).unwrap(), expected);

        let mut pieces = vec![start];
        for (before, (text, name), behind) in &elements {
            pieces.extend([before.as_str(), if stays(name) { text } else { "" }, behind]);
        }
        if elements.is_empty() {
            pieces.push(&empty);
        }
        pieces.push(end);
        prop_assert!(is_made_of(&left, &pieces, kept.saturating_sub(1)), "{}", left);
    }
}
