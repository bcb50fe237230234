//! How a row is spelled: numbers, strings, structure, row ends.

use super::{Cases, With as _};
use crate::assemble::Chain;

/// A Session whose intent has one more member, spelled as given. What comes
/// after it chains to the canonical form of the row, if it has one.
fn with_member(member: &str) -> Chain {
    let mut chain = Chain::opened();
    let row = intent_row(&chain);
    let row = format!("{},{member}}}", &row[..row.len() - 1]);
    chain.spelled(row.as_bytes()).outcome("c").close();
    chain
}

fn intent_row(chain: &Chain) -> String {
    chain.clone().intent("c").text(chain.rows.len())
}

/// Where the value of the member `x` starts that [`with_member`] adds.
fn value_at() -> usize {
    intent_row(&Chain::opened()).len() + r#""x":"#.len()
}

/// SPEC [CANON-7] [CANON-8] [CANON-9] [CANON-10] [CANON-15] [VERIFY-23].
pub(super) fn numbers(cases: &mut Cases) {
    for (name, value) in [("number-0", "0"), ("number-2^53-1", "9007199254740991")] {
        cases.verified(name, &with_member(&format!(r#""x":{value}"#)));
    }
    let float = "floating-point value at $.x is outside the JCS value space";
    let negative = "negative integer at $.x is outside the JCS value space";
    let null = "null at $.x; absent fields must be omitted, never null";
    let large = |digits: &str| {
        format!("integer {digits} at $.x is at or above 2^53 (max 9007199254740991)")
    };
    let sixty = "1".repeat(60);
    for (name, value, why) in [
        ("number-1.0", "1.0", float),
        ("number-0.5", "0.5", float),
        ("number-1e2", "1e2", float),
        ("number-1E+2", "1E+2", float),
        ("number-1e-2", "1e-2", float),
        ("number-1e400", "1e400", float),
        ("number--1.5", "-1.5", float),
        ("number--0", "-0", negative),
        ("number--1", "-1", negative),
        (
            "number-2^53",
            "9007199254740992",
            &large("9007199254740992"),
        ),
        (
            "number-2^63",
            "9223372036854775808",
            &large("9223372036854775808"),
        ),
        (
            "number-2^64",
            "18446744073709551616",
            &large("18446744073709551616"),
        ),
        (
            "number-60-digits",
            &sixty,
            &large(&format!("{}…", "1".repeat(40))),
        ),
        ("null", "null", null),
    ] {
        let reason = format!(
            "line 2: outside the canonical value space, so it has no reproducible hash: {why}"
        );
        cases.malformed(name, reason, &with_member(&format!(r#""x":{value}"#)));
    }
    let nested = "line 2: outside the canonical value space, so it has no reproducible hash: \
                  null at $.x.a[1].b; absent fields must be omitted, never null";
    cases.malformed(
        "null-nested",
        nested,
        &with_member(r#""x":{"a":[1,{"b":null}]}"#),
    );
    for (name, value, what, offset) in [
        ("number-01", "01", "leading zero", 1),
        ("number--01", "-01", "leading zero", 2),
        ("number-+1", "+1", "expected a value", 0),
        ("number-.5", ".5", "expected a value", 0),
        ("number-1.", "1.", "expected a digit", 2),
        ("number-1e", "1e", "expected a digit", 2),
        ("number--", "-", "expected a digit", 1),
        ("number-0x1", "0x1", "expected `,` or `}`", 1),
        ("number-1_000", "1_000", "expected `,` or `}`", 1),
        ("number-NaN", "NaN", "expected a value", 0),
        ("number-Infinity", "Infinity", "expected a value", 0),
        ("word-True", "True", "expected a value", 0),
        ("word-nul", "nul", "expected a value", 0),
    ] {
        let at = value_at() + offset;
        let reason = format!("line 2: not JSON: {what} at byte {at}");
        cases.malformed(name, reason, &with_member(&format!(r#""x":{value}"#)));
    }
}

/// SPEC [CANON-12] [CANON-13] [VERIFY-20].
pub(super) fn strings(cases: &mut Cases) {
    for (name, text) in [
        ("escape-quote", r#"\""#),
        ("escape-backslash", r"\\"),
        ("escape-solidus", r"\/"),
        ("escape-b", r"\b"),
        ("escape-f", r"\f"),
        ("escape-n", r"\n"),
        ("escape-r", r"\r"),
        ("escape-t", r"\t"),
        ("escape-u-of-a-letter", r"\u0061"),
        ("escape-u-of-a-short-escape", r"\u000a\u0022\u005c"),
        ("escape-u-upper-case", r"\u001F\u00E9"),
        ("escape-u-lower-case", r"\u001f\u00e9"),
        ("escape-u-null", r"\u0000"),
        ("escape-u-surrogate-pair", r"\ud83d\ude00\uD83D\uDE00"),
        ("escape-u-noncharacter", r"\uffff\ufdd0"),
        ("raw-delete", "\u{7f}"),
        ("raw-line-separator", "\u{2028}\u{2029}"),
        ("raw-c1-control", "\u{85}"),
        ("raw-noncharacter", "\u{ffff}\u{10ffff}"),
        ("raw-decomposed-accent", "e\u{301}\u{e9}"),
    ] {
        cases.verified(name, &with_member(&format!(r#""x":"{text}""#)));
    }
    let lone = "lone surrogate escape";
    for (name, text, what, offset) in [
        ("surrogate-lone-high", r"\ud800", lone, 0),
        ("surrogate-lone-low", r"\udc00", lone, 0),
        ("surrogate-high-then-letter", r"\ud83dx", lone, 0),
        ("surrogate-high-then-high", r"\ud83d\ud83d", lone, 0),
        ("surrogate-swapped", r"\ude00\ud83d", lone, 0),
        ("surrogate-high-then-other-escape", r"\ud83d\u0041", lone, 0),
        ("escape-x41", r"\x41", "unknown escape", 0),
        ("escape-u-three-digits", r"\u12g", "unknown escape", 0),
        ("escape-u-braces", r"\u{41}", "unknown escape", 0),
        ("escape-U", r"\U0041", "unknown escape", 0),
        ("escape-quote-single", r"\'", "unknown escape", 0),
        ("raw-tab", "\t", "raw control character in a string", 0),
        ("raw-null", "\0", "raw control character in a string", 0),
        (
            "raw-unit-separator",
            "a\u{1f}",
            "raw control character in a string",
            1,
        ),
        (
            "raw-carriage-return",
            "a\rb",
            "raw control character in a string",
            1,
        ),
    ] {
        let at = value_at() + 1 + offset;
        let reason = format!("line 2: not JSON: {what} at byte {at}");
        cases.malformed(name, reason, &with_member(&format!(r#""x":"{text}""#)));
    }
    for (name, bytes) in [
        ("utf8-continuation-alone", &b"\x80"[..]),
        ("utf8-overlong", b"\xc0\xaf"),
        ("utf8-overlong-null", b"\xc0\x80"),
        ("utf8-surrogate", b"\xed\xa0\x80"),
        ("utf8-above-10ffff", b"\xf4\x90\x80\x80"),
        ("utf8-cut-character", b"\xe2\x82"),
        ("utf8-latin-1", b"\xe9"),
        ("utf8-byte-ff", b"\xff"),
    ] {
        let mut chain = with_member(r#""x":"?""#);
        let at = value_at() + 1;
        chain.rows[1].splice(at..=at, bytes.iter().copied());
        let reason = format!("line 2: not JSON: invalid UTF-8 at byte {at}");
        cases.malformed(name, reason, &chain);
    }
}

/// SPEC [MODEL-5] [VERIFY-19] [VERIFY-21].
pub(super) fn structure(cases: &mut Cases) {
    let end = value_at() - r#","x":"#.len();
    for (name, tail, what, at) in [
        ("comma-trailing", ",}", "expected a member name", end + 1),
        (
            "comma-trailing-in-array",
            r#","x":[1,]}"#,
            "expected a value",
            value_at() + 3,
        ),
        (
            "comma-missing",
            r#" "x":1}"#,
            "expected `,` or `}`",
            end + 1,
        ),
        (
            "comma-twice",
            r#",,"x":1}"#,
            "expected a member name",
            end + 1,
        ),
        ("colon-missing", r#","x"}"#, "expected `:`", end + 4),
        ("name-unquoted", ",x:1}", "expected a member name", end + 1),
        (
            "name-single-quoted",
            ",'x':1}",
            "expected a member name",
            end + 1,
        ),
        (
            "comment",
            r#",/**/"x":1}"#,
            "expected a member name",
            end + 1,
        ),
        ("bracket-wrong", "]", "expected `,` or `}`", end),
        ("text-trailing", "}x", "trailing characters", end + 1),
        ("objects-two", "}{}", "trailing characters", end + 1),
        ("brace-missing", "", "expected `,` or `}`", end),
    ] {
        let mut chain = with_member(r#""x":1"#);
        let row = &mut chain.rows[1];
        row.truncate(end);
        row.extend_from_slice(tail.as_bytes());
        cases.malformed(
            name,
            format!("line 2: not JSON: {what} at byte {at}"),
            &chain,
        );
    }
    for (name, row) in [
        ("row-array", "[]"),
        ("row-number", "12"),
        ("row-string", r#""x""#),
        ("row-true", "true"),
        ("row-null", "null"),
    ] {
        let mut chain = Chain::session("c");
        chain.rows[1] = row.into();
        cases.malformed(name, "line 2: not a JSON object", &chain);
        let mut chain = Chain::session("c");
        chain.row(row.as_bytes());
        cases
            .malformed(&format!("{name}-last"), "line 5: not a JSON object", &chain)
            .comment("a torn object begins with a brace, so this is no torn write");
    }
    for (name, row) in [
        ("spaces", r#"{ "line_type" : "outcome" , "call_id":"c","#),
        (
            "tabs-and-returns",
            "{\t\"line_type\"\r:\t\"outcome\",\r\"call_id\":\"c\",",
        ),
        (
            "name-escaped",
            r#"{"line\u005ftype":"outcome","c\u0061ll_id":"c","#,
        ),
    ] {
        let mut chain = Chain::session("c");
        let canonical = chain.text(2);
        let rest = canonical
            .replace(r#""line_type":"outcome","#, "")
            .replace(r#""call_id":"c","#, "");
        chain.rows[2] = format!("{row}{}", &rest[1..]).into();
        cases
            .verified(&format!("foreign-{name}"), &chain)
            .with("note", "non_canonical_rows: 1");
    }
    let order = [
        (r#""\ue000":1,"😀":1"#, "utf8"),
        (r#""😀":1,"\ue000":1"#, "utf16"),
    ];
    for (members, name) in order {
        cases
            .verified(&format!("name-order-{name}"), &with_member(members))
            .comment("U+1F600 comes before U+E000: names sort by UTF-16 code units");
    }
    let names = r#""":1,"€":1,"\r":1,"דּ":1,"1":1,"ö":1,"\u0080":1"#;
    cases.verified("name-order-foreign", &with_member(names));
    let mut chain = Chain::opened();
    let members = serde_json::json!({"line_type": "close", "\u{e000}": 1, "😀": 1});
    chain.raw_signed(members);
    let wrong = chain
        .text(1)
        .replace(r#""😀":1,"#, "")
        .replace("\":1}", "\":1,\"😀\":1}");
    chain.rows[1] = wrong.into();
    cases
        .verified("name-order-utf8-last", &chain)
        .comment("the signature is over the canonical form, however the row is spelled")
        .with("note", "non_canonical_rows: 1");
}

/// SPEC [MODEL-1] [MODEL-4] [MODEL-5] [VERIFY-40] [VERIFY-43].
pub(super) fn rows(cases: &mut Cases) {
    let plain = Chain::session("c");
    let bytes = plain.bytes();
    cases
        .verified("plain", &plain)
        .with("coverage", "session 0 seq 3");
    cases.verified("row-end-missing", &bytes[..bytes.len() - 1]);
    let text = String::from_utf8(bytes.clone()).expect("text");
    cases
        .verified("row-end-crlf", text.replace('\n', "\r\n"))
        .with("note", "non_canonical_rows: 4");
    cases.verified("rows-blank", text.replace('\n', "\n\n \t\r\n"));
    cases.verified("rows-blank-first", format!("\n\r\n{text}"));
    let mut counted = plain.clone();
    counted.rows[2] = b"12".to_vec();
    let counted = String::from_utf8(counted.bytes()).expect("text");
    // SPEC [VERIFY-8].
    cases
        .malformed(
            "rows-blank-before-a-fault",
            "line 3: not a JSON object",
            format!("\n{}", counted.replace('\n', "\n \t\r\n")),
        )
        .comment("rows are counted without the blank ones");
    let empty = "no lines to verify";
    cases.indeterminate("empty", "empty", empty, "");
    cases.indeterminate("empty-rows", "empty", empty, "\n \t\r\n\n");
    for (name, row) in [
        ("no-break-space", "\u{a0}"),
        ("vertical-tab", "\u{b}"),
        ("form-feed", "\u{c}"),
        ("next-line", "\u{85}"),
        ("ideographic-space", "\u{3000}"),
    ] {
        let mut chain = plain.clone();
        chain.rows.insert(2, row.into());
        let reason = "line 3: not JSON: expected a value at byte 0";
        cases.malformed(&format!("row-of-{name}"), reason, &chain);
    }
    let bom = "line 1: not JSON: expected a value at byte 0";
    cases.malformed("byte-order-mark", bom, format!("\u{feff}{text}"));
    let torn = |k| format!("final line {k} does not parse; torn write");
    for (name, tail) in [
        ("garbage", &b"garbage"[..]),
        ("garbage-with-row-end", b"garbage\n"),
        ("blank-rows-behind", b"garbage\n\n \r\n"),
        ("brace", b"{"),
        ("null-bytes", &[0; 64]),
        ("no-break-space", "\u{a0}".as_bytes()),
        ("inside-a-character", b"{\"call_id\":\"\xe2\x82"),
        (
            "inside-a-character-with-row-end",
            b"{\"call_id\":\"\xe2\x82\n",
        ),
        ("inside-an-escape", br#"{"call_id":"\ud83d\ud"#),
        ("lone-surrogate", br#"{"call_id":"\ud83d"}"#),
        ("inside-a-number", br#"{"seq":-"#),
        ("byte-order-mark", "\u{feff}{}".as_bytes()),
        ("two-objects", b"{}{}"),
    ] {
        cases
            .indeterminate(
                &format!("torn-{name}"),
                "torn-final-line",
                torn(5),
                [&bytes[..], tail].concat(),
            )
            .with("coverage", "session 0 seq 3");
    }
    for (name, record) in [
        ("torn-first-row", &bytes[..40]),
        ("torn-first-row-with-row-end", b"not a record\n"),
        ("torn-byte-order-mark-alone", "\u{feff}\n".as_bytes()),
        ("torn-null-bytes-alone", &[0; 16]),
    ] {
        cases.indeterminate(name, "torn-final-line", torn(1), record);
    }
    let hole = [&bytes[..426], &[0; 100], b"\n", &bytes[426..]].concat();
    cases
        .malformed(
            "hole-of-zeros",
            "line 2: not JSON: expected a value at byte 0",
            hole,
        )
        .comment("a power cut can leave this in the modes intent and process");
}
