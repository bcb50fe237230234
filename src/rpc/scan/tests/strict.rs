use super::super::keys::{MAX_MEMBERS, SMALL};
use super::*;

fn reason(frame: impl AsRef<[u8]>) -> Reason {
    match scan(frame) {
        Scan::Unreadable(reason) => reason,
        other => panic!("readable: {other:?}"),
    }
}

/// A message with `text` as the value of a member.
fn around(text: impl AsRef<[u8]>) -> Vec<u8> {
    [b"{\"x\":", text.as_ref(), b"}"].concat()
}

#[test]
fn blanks_are_blank() {
    for frame in ["", " ", "\t", "\r", " \r\t \r"] {
        assert_eq!(scan(frame), Scan::Blank, "{frame:?}");
    }
}

#[test]
fn a_cr_may_stand_before_the_end_only() {
    assert!(is_readable("{}\r"));
    assert!(is_readable("{} \t\r"));
    for frame in [
        "\r{}",
        "{\r}",
        "{}\r ",
        "{}\r\r",
        "{}\r{}",
        "{\"a\"\r:1}",
        "{\"a\":1\r}",
        "{\"a\":\r1}",
        "{\"a\":1,\r\"b\":1}",
        "{\"a\":\"\r\"}",
        "{\"a\":\"0123456789\r\"}",
        "[{},\r{}]",
    ] {
        assert_eq!(reason(frame), Reason::BareCr, "{frame:?}");
    }
    assert!(is_readable(around(r#""an escaped \r""#)));
}

#[test]
fn utf8_is_valid_or_the_frame_unreadable() {
    assert!(is_readable(around("\"ä€😀\u{feff}\"")));
    for bytes in [
        &b"\"\xff\""[..],
        b"\"\xc3\"",
        b"\"\xc0\xaf\"",
        b"\"\xed\xa0\x80\"",
        b"\"\xf4\x90\x80\x80\"",
        b"\"\xf0\x9f\x98",
    ] {
        let frame = around(bytes);
        assert_eq!(reason(&frame), Reason::InvalidUtf8, "{bytes:?}");
    }
    assert_eq!(reason(b"\xff\xfe{\0}\0"), Reason::InvalidUtf8);
    assert_eq!(reason(b"{\"a\":\"\xe2\x82"), Reason::InvalidUtf8);
    // What is wrong first is named.
    assert_eq!(reason(b"{]\xff"), Reason::Unexpected);
}

#[test]
fn a_byte_order_mark_is_refused() {
    assert_eq!(reason("\u{feff}{}"), Reason::ByteOrderMark);
    assert_eq!(reason("\u{feff}"), Reason::ByteOrderMark);
    assert_eq!(reason(" \u{feff}{}"), Reason::Unexpected);
}

#[test]
fn surrogate_escapes_come_in_pairs() {
    for text in [r#""\ud83d\ude00""#, r#""\uD7FF\uE000""#] {
        assert!(is_readable(around(text)), "{text}");
    }
    for text in [
        r#""\ud800""#,
        r#""\ud800x""#,
        r#""\ud800\n""#,
        r#""\ud800\ud800""#,
        r#""\ud800\u0041""#,
        r#""\udc00""#,
        r#""\udfff\ud800""#,
    ] {
        assert_eq!(reason(around(text)), Reason::LoneSurrogate, "{text}");
    }
    assert_eq!(reason(r#"{"\ud800":1}"#), Reason::LoneSurrogate);
}

#[test]
fn malformed_text_is_refused_for_its_fault() {
    for (text, expected) in [
        ("NaN", Reason::Unexpected),
        ("Infinity", Reason::Unexpected),
        ("-Infinity", Reason::BadNumber),
        ("+1", Reason::Unexpected),
        ("01", Reason::Unexpected),
        ("1.", Reason::BadNumber),
        (".5", Reason::Unexpected),
        ("1e", Reason::BadNumber),
        ("-", Reason::BadNumber),
        ("0x1", Reason::Unexpected),
        ("nul", Reason::BadLiteral),
        ("True", Reason::Unexpected),
        ("[1,]", Reason::Unexpected),
        ("{\"a\":1,}", Reason::Unexpected),
        ("[1}", Reason::Unexpected),
        ("{\"a\"]", Reason::Unexpected),
        ("'a'", Reason::Unexpected),
        ("1/**/", Reason::Unexpected),
        ("\"\\x\"", Reason::BadEscape),
        ("\"\\u12g4\"", Reason::BadEscape),
        ("\"\t\"", Reason::Control),
        ("\"0123456789\u{1}\"", Reason::Control),
        ("\"\0\"", Reason::Control),
    ] {
        assert_eq!(reason(around(text)), expected, "{text:?}");
    }
    for frame in ["{", "[", "{\"a", "{\"a\":1", "{\"a\":nul", "[{},"] {
        assert_eq!(reason(frame), Reason::UnexpectedEnd, "{frame:?}");
    }
    for frame in ["{}{}", "{} 1", "[] ]", "{}\0"] {
        assert_eq!(reason(frame), Reason::Trailing, "{frame:?}");
    }
    for frame in ["1", "\"a\"", "null", "true"] {
        assert_eq!(reason(frame), Reason::NotAMessage, "{frame:?}");
    }
}

#[test]
fn every_control_character_and_only_those_end_a_string_run() {
    for offset in 0..20 {
        for byte in 0..0x80_u8 {
            let mut text = [b'x'; 24];
            text[offset] = byte;
            let frame = around([b"\"", &text[..], b"\""].concat());
            let plain = byte >= 0x20 && byte != b'"' && byte != b'\\';
            assert_eq!(is_readable(&frame), plain, "byte {byte} at {offset}");
        }
    }
}

#[test]
fn depth_ends_at_64() {
    let nested = |depth: usize| around(["[".repeat(depth - 1), "]".repeat(depth - 1)].concat());
    assert!(is_readable(nested(MAX_DEPTH)));
    assert_eq!(reason(nested(MAX_DEPTH + 1)), Reason::TooDeep);
    assert_eq!(reason(nested(100_000)), Reason::TooDeep);
    let objects = |depth: usize| {
        [
            "{\"x\":".repeat(depth - 1),
            "{}".into(),
            "}".repeat(depth - 1),
        ]
        .concat()
    };
    assert!(is_readable(objects(MAX_DEPTH)));
    assert_eq!(reason(objects(MAX_DEPTH + 1)), Reason::TooDeep);
}

#[test]
fn a_member_stands_once_in_an_object() {
    for frame in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":1}"#,
        r#"{"/":1,"\/":1}"#,
        r#"{"é":1,"\u00e9":1}"#,
        r#"{"😀":1,"\ud83d\ude00":1}"#,
        r#"{"":1,"":2}"#,
        r#"{"x":{"y":[{"b":1,"c":{},"b":2}]}}"#,
        r#"{"0123456789abcdef":1,"0123456789abcdef":1}"#,
        r#"{"0123456789abcdefg":1,"0123456789abcdefg":1}"#,
        r#"[{"id":1},{"id":1,"id":2}]"#,
    ] {
        assert_eq!(reason(frame), Reason::DuplicateMember, "{frame}");
    }
    for frame in [
        r#"{"a":{"a":{"a":1}},"b":{"a":1}}"#,
        r#"{"x":{"a":1,"a\u0000":1,"":1,"\u0000":1}}"#,
        r#"{"0123456789abcdef":1,"0123456789abcdefg":1,"0123456789abcdefh":1}"#,
        r#"[{"id":1},{"id":1}]"#,
    ] {
        assert!(is_readable(frame), "{frame}");
    }
}

#[test]
fn long_member_names_are_compared_whole() {
    for len in [1023, 1024, 1025, 5000] {
        let name = "k".repeat(len - 1);
        assert!(is_readable(format!(
            r#"{{"x":{{"{name}a":1,"{name}b":1}}}}"#
        )));
        assert_eq!(
            reason(format!(r#"{{"x":{{"{name}a":1,"{name}\u0061":1}}}}"#)),
            Reason::DuplicateMember
        );
    }
}

#[test]
fn duplicates_are_found_in_objects_of_any_size() {
    let object = |names: &mut dyn Iterator<Item = usize>| {
        let members: Vec<_> = names
            .map(|name| format!("\"{name}\":{{\"0\":1}}"))
            .collect();
        format!("{{{}}}", members.join(","))
    };
    for size in [1, SMALL - 1, SMALL, SMALL + 1, 1000] {
        assert!(is_readable(object(&mut (0..size))));
        for twice in [0, size / 2, size - 1] {
            let frame = object(&mut (0..size).chain([twice]));
            assert_eq!(reason(&frame), Reason::DuplicateMember, "{twice} of {size}");
        }
    }
}

#[test]
fn a_large_object_in_a_large_object_keeps_both_apart() {
    let members = |from: usize| {
        let members: Vec<_> = (from..from + 40)
            .map(|name| format!("\"{name}\":1"))
            .collect();
        members.join(",")
    };
    let frame = |last: &str| format!("{{{},\"in\":{{{}}},{last}:1}}", members(0), members(20));
    assert!(is_readable(frame("\"45\"")));
    assert_eq!(reason(frame("\"25\"")), Reason::DuplicateMember);
    let mut scanner = Scanner::new();
    for _ in 0..3 {
        scanner.feed(frame("\"45\"").as_bytes());
        assert!(matches!(scanner.finish(), Scan::Message(_)));
    }
}

#[test]
fn members_of_open_objects_are_bounded() {
    let mut scanner = Scanner::new();
    scanner.feed(b"{\"x\":{\"\":0");
    for name in 2..MAX_MEMBERS {
        scanner.feed(format!(",\"{name}\":0").as_bytes());
    }
    assert_eq!(scanner.members.count(), MAX_MEMBERS);
    assert_eq!(scanner.failed, None);
    scanner.feed(b",\"y\":0}}");
    assert_eq!(scanner.finish(), Scan::Unreadable(Reason::TooManyMembers));
}

#[test]
fn members_of_closed_objects_count_no_more() {
    for size in [1, SMALL, SMALL + 1, 5000] {
        let mut scanner = Scanner::new();
        let members: Vec<_> = (0..size).map(|name| format!("\"{name}\":0")).collect();
        scanner.feed(format!("{{\"a\":{{{}", members.join(",")).as_bytes());
        assert_eq!(scanner.members.count(), size + 1);
        scanner.feed(b"},\"b\":0");
        assert_eq!(scanner.members.count(), 2);
        scanner.finish();
        assert_eq!(scanner.members.count(), 0);
    }
}

#[test]
fn near_misses_of_deciding_names_are_refused_where_they_decide() {
    for name in [
        "JSONRPC",
        "jsonRpc",
        "Id",
        "METHOD",
        "Params",
        "nAme",
        "param\u{17f}",
        "j\u{17f}onrpc",
        "\\u004dethod",
        "n\\u0041me",
        "name\\u0000",
        "\\u0000",
        "method\\u0000x",
        " method",
        "Params\\n",
        "id\u{a0}",
        "\u{feff}method",
        "params\\ufeff",
        "name\u{200b}",
        "__proto__",
    ] {
        for frame in [
            format!(r#"{{"{name}":1}}"#),
            format!(r#"[{{}},{{"{name}":1}}]"#),
            format!(r#"{{"params":{{"{name}":1}}}}"#),
        ] {
            assert_eq!(reason(&frame), Reason::NearMiss, "{frame}");
        }
        for frame in [
            format!(r#"{{"params":{{"arguments":{{"{name}":1}}}}}}"#),
            format!(r#"{{"params":[{{"{name}":1}}]}}"#),
            format!(r#"{{"result":{{"{name}":1}}}}"#),
            format!(r#"{{"x":{{"params":{{"{name}":1}}}}}}"#),
        ] {
            assert!(is_readable(&frame), "{frame}");
        }
    }
    for name in [
        "ids",
        "i d",
        "_proto_",
        "Result",
        "n\u{e4}me",
        "methoo",
        "\u{131}d",
        "\u{212a}",
    ] {
        let frame = format!(r#"{{"{name}":1}}"#);
        assert!(is_readable(&frame), "{frame}");
    }
}

#[test]
fn a_long_name_is_refused_where_names_decide() {
    let long = format!("method{}", "\u{20}".repeat(2000));
    assert_eq!(reason(format!(r#"{{"{long}":1}}"#)), Reason::NearMiss);
    assert!(is_readable(format!(r#"{{"result":{{"{long}":1}}}}"#)));
}

#[test]
fn methods_that_some_peers_take_for_a_call_are_refused() {
    for method in [
        r#"["tools/call"]"#,
        r#"[["tools/call"]]"#,
        "true",
        "0",
        "null",
        "{}",
        r#""Tools/Call""#,
        r#"" tools/call""#,
        r#""tools/call\n""#,
        r#""tools/call\u0000""#,
        r#""tools/call\u0000 and more""#,
        r#""\u0000tools/call""#,
        r#""\u0000 \u0000tools/call\u0000 and more""#,
        r#"" \u0000\u001fTools/Call""#,
        "\"tools/call\u{a0}\"",
        r#""tools/call\ufeff""#,
        "\"\u{feff}tools/call\"",
        "\"\u{180e}tools/call\u{200b}\"",
        "\"\u{2060}\u{ad}tools/call\"",
        "\"tool\u{17f}/call\"",
        &format!("\"{}tools/call\"", " ".repeat(2000)),
        &format!("\"tools/call\\u0000{}\"", "x".repeat(2000)),
    ] {
        for frame in [
            format!(r#"{{"id":1,"method":{method}}}"#),
            format!(r#"[{{"id":1,"method":{method},"params":{{"name":"a"}}}}]"#),
        ] {
            assert_eq!(reason(&frame), Reason::OddMethod, "{frame}");
        }
    }
    for method in [
        "tools/call",
        "tools/calls",
        "tools",
        "tools/list",
        "tools /call",
        "tools\u{feff}/call",
        "\\u0000tools/list",
        "x\\u0000tools/call",
        "\\u0000",
        "",
    ] {
        assert!(
            is_readable(format!(r#"{{"method":"{method}"}}"#)),
            "{method}"
        );
    }
    // Below the message a method decides nothing.
    assert!(is_readable(
        r#"{"method":"m","params":{"method":["tools/call"]}}"#
    ));
}

#[test]
fn a_batch_holds_objects_only() {
    assert_eq!(scan("[]"), Scan::Batch(Vec::new()));
    for frame in ["[1]", "[[]]", "[{},[{}]]", "[{},null]", "[\"a\"]"] {
        assert_eq!(reason(frame), Reason::NotAnObject, "{frame}");
    }
}

#[test]
fn a_batch_has_at_most_4096_elements() {
    let batch = |elements: usize| format!("[{}]", vec!["{}"; elements].join(","));
    match scan(batch(MAX_BATCH)) {
        Scan::Batch(messages) => assert_eq!(messages.len(), MAX_BATCH),
        other => panic!("no batch: {other:?}"),
    }
    assert_eq!(reason(batch(MAX_BATCH + 1)), Reason::BatchTooLong);
}

#[test]
fn text_kept_of_a_batch_is_bounded() {
    let name = "n".repeat(64 * 1024);
    let element = format!(r#"{{"params":{{"name":"{name}"}}}}"#);
    let batch = |elements: usize, last: &str| {
        let mut all = vec![element.as_str(); elements];
        all.push(last);
        format!("[{}]", all.join(","))
    };
    let full = MAX_KEPT / name.len();
    assert!(is_readable(batch(full, "{}")));
    assert_eq!(reason(batch(full, r#"{"id":1}"#)), Reason::TooMuchText);
}

#[test]
fn a_scanner_forgets_the_frame_before() {
    let mut scanner = Scanner::new();
    let good = br#"{"id":1,"method":"tools/call","params":{"name":"a"}}"#;
    for bad in [
        &b"{\"id\":[1"[..],
        b"[{\"id\":1},{\"id\":1,\"id\":1}]",
        b"\"\xe2",
        b"\r",
        b"{\"a\":{\"a\":\"\\u00",
    ] {
        scanner.feed(bad);
        scanner.finish();
        scanner.feed(good);
        assert_eq!(scanner.finish(), scan(good));
    }
}
