//! Canonical form (SPEC §3), case by case: `fixtures/canon/` holds one file a
//! case, the expected form or refusal in its header, the text behind it.

use std::collections::BTreeMap;

use aegis::wire::canon::{CanonError, MAX_DEPTH, canonicalize};
use aegis::wire::decode::{Row, RowFault};

use crate::kit::{Fixture, assert_folder, read_folder};

#[test]
fn every_case_is_rebuilt_to_the_byte() {
    let files = cases()
        .into_iter()
        .map(|(name, case)| (format!("{name}.json"), case.write()));
    assert_folder("canon", &files.collect());
}

#[test]
fn every_case_has_its_canonical_form() {
    for (name, case) in read_cases() {
        let expected = match (case.one("canonical"), case.one("refused")) {
            (Some(form), None) => Ok(form.as_bytes().to_vec()),
            (None, Some(why)) => Err(why.to_owned()),
            _ => panic!("{name}: one of canonical and refused"),
        };
        let found = canonicalize(&case.body).map_err(|error| error.to_string());
        assert_eq!(found, expected, "{name}");
    }
}

/// Canonical form is a fixed point, and only it takes the fast way.
#[test]
fn the_two_readers_agree() {
    for (name, case) in read_cases() {
        let fast = Row::read_canonical(&case.body);
        let slow = Row::read_foreign(&case.body);
        match (&fast, &slow) {
            (Some(fast), Ok(slow)) => assert_eq!(fast.canonical(), slow.canonical(), "{name}"),
            (Some(_), Err(fault)) => panic!("{name}: {fault}"),
            (None, Ok(slow)) => assert_ne!(slow.canonical(), case.body, "{name}"),
            (None, Err(_)) => {}
        }
        if let Ok(form) = canonicalize(&case.body) {
            assert_eq!(canonicalize(&form).as_deref(), Ok(&form[..]), "{name}");
            if form.starts_with(b"{") {
                assert!(Row::read_canonical(&form).is_some(), "{name}");
            } else {
                assert_eq!(Row::read(&form), Err(RowFault::NotObject), "{name}");
            }
        }
    }
}

/// The bound of SPEC [VERIFY-55], and one past it.
#[test]
fn depth_is_bounded() {
    for (open, close) in [("[", "]"), (r#"{"":"#, "}")] {
        let nested = |depth: usize| {
            let inner = if open == "[" { "" } else { "1" };
            format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
        };
        assert!(canonicalize(nested(MAX_DEPTH).as_bytes()).is_ok());
        let past = canonicalize(nested(MAX_DEPTH + 1).as_bytes());
        assert_eq!(past, Err(CanonError::TooDeep));
    }
}

fn read_cases() -> BTreeMap<String, Fixture> {
    read_folder("canon")
        .into_iter()
        .map(|(name, file)| (name, Fixture::read(&file)))
        .collect()
}

fn cases() -> BTreeMap<String, Fixture> {
    let mut cases = BTreeMap::new();
    let mut add = |name: &str, header: (&str, &str), text: &[u8]| {
        let case = Fixture {
            header: vec![(header.0.to_owned(), header.1.to_owned())],
            body: text.to_vec(),
        };
        assert!(
            cases.insert(name.to_owned(), case).is_none(),
            "two cases named {name}"
        );
    };
    for (name, text, form) in CANONICAL {
        add(name, ("canonical", form), text.as_bytes());
    }
    for (name, text, why) in REFUSED {
        add(name, ("refused", why), text);
    }
    cases
}

const CANONICAL: &[(&str, &str, &str)] = &[
    // SPEC [CANON-2].
    ("object-empty", " { } ", "{}"),
    ("array-empty", "[\n]", "[]"),
    // SPEC [CANON-3].
    (
        "array-order-stays",
        "[3, 1, 2, true, false, \"\"]",
        r#"[3,1,2,true,false,""]"#,
    ),
    ("text-alone", "\t\"a\"\r\n", r#""a""#),
    // SPEC [CANON-1].
    (
        "names-by-length",
        r#"{"aa":1,"a":2,"":3}"#,
        r#"{"":3,"a":2,"aa":1}"#,
    ),
    (
        "names-by-case",
        r#"{"a":1,"B":2,"A":3}"#,
        r#"{"A":3,"B":2,"a":1}"#,
    ),
    (
        "names-nested",
        r#"{"b":{"d":1,"c":2},"a":[{"f":1,"e":2}]}"#,
        r#"{"a":[{"e":2,"f":1}],"b":{"c":2,"d":1}}"#,
    ),
    (
        "names-utf16-against-utf8",
        "{\"\u{e000}\":1,\"\u{1f600}\":2}",
        "{\"\u{1f600}\":2,\"\u{e000}\":1}",
    ),
    (
        "names-utf16-escaped",
        r#"{"\uffff":1,"\ud800\udc00":2}"#,
        "{\"\u{10000}\":2,\"\u{ffff}\":1}",
    ),
    (
        "names-utf16-below-surrogates",
        r#"{"\ud800\udc00":1,"\ud7ff":2}"#,
        "{\"\u{d7ff}\":2,\"\u{10000}\":1}",
    ),
    (
        "names-quote-against-hash",
        r##"{"#":1,"\"":2,"!":3}"##,
        r##"{"!":3,"\"":2,"#":1}"##,
    ),
    (
        "names-backslash-against-letters",
        r#"{"]":1,"\\":2,"[":3,"a":4}"#,
        r#"{"[":3,"\\":2,"]":1,"a":4}"#,
    ),
    (
        "names-controls-by-value",
        r#"{"\r":1,"\u000b":2,"\b":3,"\u0000":4," ":5,"\n":6,"\t":7,"\f":8}"#,
        r#"{"\u0000":4,"\b":3,"\t":7,"\n":6,"\u000b":2,"\f":8,"\r":1," ":5}"#,
    ),
    (
        "names-control-against-its-spelling",
        r#"{"u":1,"\u001f":2,"\\":3}"#,
        r#"{"\u001f":2,"\\":3,"u":1}"#,
    ),
    (
        "names-that-share-a-start",
        r#"{"a\n":1,"a":2,"a\\":3,"a!":4}"#,
        r#"{"a":2,"a\n":1,"a!":4,"a\\":3}"#,
    ),
    // SPEC [CANON-6]: U+212B and U+FB01 have other normal forms.
    (
        "text-as-it-is",
        "\" \u{212b}\u{fb01}e\u{301} Ab\u{a0} \"",
        "\" \u{212b}\u{fb01}e\u{301} Ab\u{a0} \"",
    ),
    (
        "names-composed-and-not",
        "{\"e\u{301}\":1,\"\u{e9}\":2}",
        "{\"e\u{301}\":1,\"\u{e9}\":2}",
    ),
    // SPEC [CANON-4].
    (
        "escapes-short",
        r#""\"\\\/\b\f\n\r\t""#,
        r#""\"\\/\b\f\n\r\t""#,
    ),
    (
        "escapes-long-for-short",
        r#""\u0022\u005C\u002f\u0008\u000C\u000a\u000d\u0009""#,
        r#""\"\\/\b\f\n\r\t""#,
    ),
    (
        "escapes-of-controls",
        r#""\u0000\u0001\u001F\u007f""#,
        "\"\\u0000\\u0001\\u001f\u{7f}\"",
    ),
    (
        "escapes-of-text",
        r#""\u0041\u00e9\u20AC\uD83D\uDE00""#,
        "\"A\u{e9}\u{20ac}\u{1f600}\"",
    ),
    (
        "escapes-of-separators",
        r#""\u2028\u2029\u0085""#,
        "\"\u{2028}\u{2029}\u{85}\"",
    ),
    // SPEC [CANON-5].
    ("integer-0", "0", "0"),
    ("integer-2^53-1", "[9007199254740991]", "[9007199254740991]"),
    (
        "example-of-the-format",
        "{ \"\\uffe5\": { \"a\": true, \"A\": 9007199254740991, \"\": [3, 1, 2] },\n  \"\\ud83d\\ude00\": 1, \"s\": \"\\u0000\\u0008\\u0009\\u000A\\f\\r\\u001F\\u0022\\\\\\/\\u00e9\" }",
        "{\"s\":\"\\u0000\\b\\t\\n\\f\\r\\u001f\\\"\\\\/\u{e9}\",\"\u{1f600}\":1,\"\u{ffe5}\":{\"\":[3,1,2],\"A\":9007199254740991,\"a\":true}}",
    ),
];

const REFUSED: &[(&str, &[u8], &str)] = &[
    ("nothing", b"", "unexpected end at byte 0"),
    ("white-space-alone", b" \n", "unexpected end at byte 2"),
    (
        "byte-order-mark",
        b"\xef\xbb\xbf{}",
        "expected a value at byte 0",
    ),
    // SPEC [CANON-10].
    (
        "null-alone",
        b"null",
        "null at $; absent fields must be omitted, never null",
    ),
    (
        "null-nested",
        br#"{"a":[{"b":null}]}"#,
        "null at $.a[0].b; absent fields must be omitted, never null",
    ),
    // SPEC [CANON-7].
    (
        "float",
        b"[1.5]",
        "floating-point value at $[0] is outside the JCS value space",
    ),
    (
        "float-whole",
        b"[1.0]",
        "floating-point value at $[0] is outside the JCS value space",
    ),
    (
        "exponent",
        b"[1e2]",
        "floating-point value at $[0] is outside the JCS value space",
    ),
    // SPEC [CANON-8].
    (
        "negative-zero",
        b"[-0]",
        "negative integer at $[0] is outside the JCS value space",
    ),
    (
        "negative",
        b"[1,-1]",
        "negative integer at $[1] is outside the JCS value space",
    ),
    // SPEC [CANON-9].
    (
        "integer-2^53",
        b"[9007199254740992]",
        "integer 9007199254740992 at $[0] is at or above 2^53 (max 9007199254740991)",
    ),
    (
        "integer-of-41-digits",
        b"[11111111111111111111111111111111111111111]",
        "integer 1111111111111111111111111111111111111111\u{2026} at $[0] is at or above 2^53 (max 9007199254740991)",
    ),
    (
        "first-of-two-offences",
        br#"{"b":1.5,"a":null}"#,
        "floating-point value at $.b is outside the JCS value space",
    ),
    (
        "duplicate-before-offence",
        br#"{"a":1.5,"b":1,"b":1}"#,
        "duplicate member `b`",
    ),
    // SPEC [CANON-11].
    (
        "duplicate-by-escape",
        br#"{"a":1,"\u0061":1}"#,
        "duplicate member `a`",
    ),
    (
        "duplicate-by-surrogate-pair",
        "{\"\u{1f600}\":1,\"\\ud83d\\ude00\":1}".as_bytes(),
        "duplicate member `\u{1f600}`",
    ),
    (
        "duplicate-nested",
        br#"[{"a":{"b":1,"c":2,"b":3}}]"#,
        "duplicate member `b`",
    ),
    ("leading-zero", b"[01]", "leading zero at byte 2"),
    // SPEC [CANON-13].
    (
        "lone-surrogate",
        br#"["\ud800"]"#,
        "lone surrogate escape at byte 2",
    ),
    (
        "raw-control",
        b"[\"\x01\"]",
        "raw control character in a string at byte 2",
    ),
    // SPEC [CANON-12].
    ("invalid-utf8", b"[\"\xff\"]", "invalid UTF-8 at byte 2"),
    ("trailing-text", b"{} x", "trailing characters at byte 3"),
    ("form-feed", b"[\x0c]", "expected a value at byte 1"),
];
