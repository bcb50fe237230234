use proptest::prelude::*;

use super::*;

/// The two ways of reading must agree on `row`, and on its canonical form.
fn agree(row: &[u8]) {
    let foreign = Row::read_foreign(row);
    match Row::read_canonical(row) {
        Some(read) => {
            assert_eq!(foreign.as_ref(), Ok(&read));
            assert_eq!(read.canonical(), row);
        }
        None => assert!(
            foreign
                .as_ref()
                .map_or(true, |read| read.canonical() != row)
        ),
    }
    if let Ok(read) = foreign {
        let again = Row::read_canonical(read.canonical()).expect("canonical form");
        assert_eq!(again, read);
        assert_eq!(canon::canonicalize(row).as_deref(), Ok(read.canonical()));
    }
}

fn json() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        "[a-c\u{e000}😀\\\\\"\u{1}]{0,3}".prop_map(|s| s),
        proptest::sample::select(
            Name::ALL
                .map(|(n, _)| String::from_utf8_lossy(n).into_owned())
                .to_vec()
        ),
    ];
    let quoted = |s: String| serde_json::to_string(&s).expect("a string");
    let leaf = prop_oneof![
        Just("true".to_owned()),
        Just("null".to_owned()),
        (0..=canon::MAX_INTEGER + 2).prop_map(|n| n.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| serde_json::json!(n).to_string()),
        any::<String>().prop_map(quoted),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|v| format!("[{}]", v.join(","))),
            prop::collection::vec((name.clone().prop_map(quoted), inner), 0..6).prop_map(
                |members| {
                    let members: Vec<_> = members.iter().map(|(k, v)| format!("{k}:{v}")).collect();
                    format!("{{{}}}", members.join(","))
                }
            ),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_ways_agree_on_json(text in json()) {
        agree(text.as_bytes());
    }

    #[test]
    fn both_ways_agree_on_damaged_json(
        text in json(), at in any::<prop::sample::Index>(), with in any::<u8>(), how in 0..3,
    ) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        match how {
            0 => bytes[at] = with,
            1 => { bytes.remove(at); }
            _ => bytes.insert(at, with),
        }
        agree(&bytes);
    }

    #[test]
    fn both_ways_agree_on_noise(text in "[{}\\[\\]\",:0-9a-e\\\\u \u{0}é-]{0,24}") {
        agree(text.as_bytes());
    }
}

#[test]
fn members_are_found_whatever_their_spelling() {
    let row =
        br#" { "se\u0071":7, "line_type":"op\u0065n", "key_id" : "x\ny", "zz":[{"seq":9}] } "#;
    let row = Row::read(row).expect("an object");
    assert_eq!(row.integer(Name::Seq), Some(7));
    assert_eq!(row.string(Name::LineType).as_deref(), Some("open"));
    assert_eq!(row.string(Name::KeyId).as_deref(), Some("x\ny"));
    assert_eq!(row.string(Name::Seq), None);
    assert_eq!(row.integer(Name::LineType), None);
    assert!(!row.has(Name::Signature));
}

#[test]
fn a_text_may_end_anywhere() {
    let whole = br#"{"key_id":"x","o":{"a":[0,true]},"signature":"\u0001"}"#;
    for end in 0..whole.len() {
        agree(&whole[..end]);
    }
    agree(whole);
}

#[test]
fn the_signature_is_cut_out_with_one_comma() {
    for (row, input) in [
        (r#"{"a":1,"signature":"x","z":2}"#, r#"{"a":1,"z":2}"#),
        (r#"{"a":1,"signature":[1,"}"]}"#, r#"{"a":1}"#),
        (r#"{"signature":"x","z":2}"#, r#"{"z":2}"#),
        (r#"{"signature":"x"}"#, "{}"),
        (r#"{"a":{"signature":"x"}}"#, r#"{"a":{"signature":"x"}}"#),
    ] {
        let row = Row::read(row.as_bytes()).expect("an object");
        let mut out = Vec::new();
        row.push_signing_input(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), input);
    }
}

#[test]
fn a_signature_is_inserted_where_it_is_cut_out() {
    for input in [
        "{}",
        r#"{"a":1}"#,
        r#"{"z":1}"#,
        r#"{"seq":1,"time":{"x":[]}}"#,
    ] {
        let line = with_signature(input.as_bytes(), &[0xab; 64]);
        let row = Row::read_canonical(&line).expect("canonical");
        assert!(
            row.string(Name::Signature)
                .is_some_and(|s| s == "ab".repeat(64))
        );
        let mut out = Vec::new();
        row.push_signing_input(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), input);
    }
}

#[test]
fn faults_come_in_their_order() {
    for (row, fault) in [
        (&b"[1.5]"[..], "not a JSON object"),
        (b"12", "not a JSON object"),
        (br#"{"a":1.5,"b":1,"b":2}"#, "duplicate member `b`"),
        (
            br#"{"a":1.5,"b":1,"b":2"#,
            "not JSON: expected `,` or `}` at byte 20",
        ),
        (
            b"{\"a\":1.5,\"\xc0\xaf\":1}",
            "not JSON: invalid UTF-8 at byte 10",
        ),
        (b"\xef\xbb\xbf{}", "not JSON: expected a value at byte 0"),
    ] {
        assert_eq!(Row::read(row).unwrap_err().to_string(), fault);
    }
}

#[test]
fn names_are_sorted_for_the_search() {
    assert!(Name::ALL.is_sorted());
    for (i, (_, name)) in Name::ALL.iter().enumerate() {
        assert_eq!(i, *name as usize);
    }
}
