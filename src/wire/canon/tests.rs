use super::*;

fn canonical(text: &str) -> Result<String, String> {
    canonicalize(text.as_bytes())
        .map(|bytes| String::from_utf8(bytes).expect("canonical form is UTF-8"))
        .map_err(|e| e.to_string())
}

#[test]
fn names_are_ordered_by_utf16_units_not_bytes() {
    // U+1F600 is D83D DE00 in UTF-16 and sorts before U+E000.
    assert_eq!(
        canonical("{\"\u{e000}\":1,\"\u{1f600}\":2,\"a\":3}"),
        Ok("{\"a\":3,\"\u{1f600}\":2,\"\u{e000}\":1}".to_owned())
    );
    assert_eq!(
        canonical("{\"\\u0008\":1,\"\\u0001\":2,\"A\":3,\"\\\\\":4,\"[\":5,\"]\":6,\"\\\"\":7,\"!\":8,\"\":9}"),
        Ok("{\"\":9,\"\\u0001\":2,\"\\b\":1,\"!\":8,\"\\\"\":7,\"A\":3,\"[\":5,\"\\\\\":4,\"]\":6}".to_owned())
    );
}

#[test]
fn strings_have_one_spelling() {
    assert_eq!(
        canonical(r#"["\u0041\/\u00e9\ud83d\ude00\u0000\u001F\u007f\b\f\n\r\t\"\\"]"#),
        Ok("[\"A/é😀\\u0000\\u001f\u{7f}\\b\\f\\n\\r\\t\\\"\\\\\"]".to_owned())
    );
}

#[test]
fn offenders_are_named_with_their_path() {
    for (text, error) in [
        (
            r#"{"a":{"b":[0,1.5]}}"#,
            "floating-point value at $.a.b[1] is outside the JCS value space",
        ),
        (
            r#"{"a":1e2}"#,
            "floating-point value at $.a is outside the JCS value space",
        ),
        (
            r#"{"a":-1}"#,
            "negative integer at $.a is outside the JCS value space",
        ),
        (
            r#"{"a":-0}"#,
            "negative integer at $.a is outside the JCS value space",
        ),
        (
            r#"[9007199254740992]"#,
            "integer 9007199254740992 at $[0] is at or above 2^53 (max 9007199254740991)",
        ),
        (
            r#"{"z":null,"a":1.5}"#,
            "null at $.z; absent fields must be omitted, never null",
        ),
        (r#"{"a":1,"\u0061":1.5}"#, "duplicate member `a`"),
        (r#"{"o":{"x":1,"x":2},"o":2}"#, "duplicate member `x`"),
        (r#"{"o":1,"o":{"x":1,"x":2}}"#, "duplicate member `o`"),
        (r#"{"a":1,}"#, "expected a member name at byte 7"),
        (r#"{"a":01}"#, "leading zero at byte 6"),
        (r#"["\ud800"]"#, "lone surrogate escape at byte 2"),
        (r#"["\ud800\u0041"]"#, "lone surrogate escape at byte 2"),
        (r#"["\udc00\ud800"]"#, "lone surrogate escape at byte 2"),
        ("[\"\u{1}\"]", "raw control character in a string at byte 2"),
        ("[1] 2", "trailing characters at byte 4"),
        ("", "unexpected end at byte 0"),
    ] {
        assert_eq!(canonical(text), Err(error.to_owned()), "{text}");
    }
    assert_eq!(canonicalize(b"[\"\xff\"]"), Err(CanonError::InvalidUtf8(2)));
}

#[test]
fn bounds_hold_at_and_one_past() {
    assert!(canonical("[9007199254740991]").is_ok());
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(canonical(&nested(MAX_DEPTH)).is_ok());
    assert_eq!(
        canonicalize(nested(MAX_DEPTH + 1).as_bytes()),
        Err(CanonError::TooDeep)
    );
    assert_eq!(
        canonicalize(&b"[".repeat(100_000)),
        Err(CanonError::TooDeep)
    );
}

/// SPEC [CANON-15]: what is written.
#[test]
fn rust_values_take_the_same_way() {
    assert_eq!(
        to_canonical(&std::collections::BTreeMap::from([("b", 1), ("a", 2)])),
        Ok(br#"{"a":2,"b":1}"#.to_vec())
    );
    assert!(matches!(
        to_canonical(&Some(0.5)),
        Err(CanonError::ValueSpace(ValueSpaceError::Float { .. }))
    ));
    assert!(matches!(
        to_canonical(&f64::NAN),
        Err(CanonError::ValueSpace(ValueSpaceError::Null { .. }))
    ));
}
