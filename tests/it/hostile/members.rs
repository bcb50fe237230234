//! The members that every Line carries, and what is duplicated, missing or of
//! another version.

use serde_json::{Value, json};

use super::{Cases, With as _};
use crate::assemble::Chain;

/// SPEC [LINE-1] [WIRE-1] [VERIFY-9] [VERIFY-10] [VERIFY-24] [VERIFY-25] [VERIFY-26].
pub(super) fn header(cases: &mut Cases) {
    let hash = "a".repeat(64);
    for (member, reason, values) in [
        (
            "line_type",
            "no line_type",
            vec![
                ("missing", None),
                ("number", Some(json!(1))),
                ("array", Some(json!(["open"]))),
            ],
        ),
        (
            "seq",
            "no seq",
            vec![
                ("missing", None),
                ("string", Some(json!("1"))),
                ("true", Some(json!(true))),
            ],
        ),
        (
            "prev_hash",
            "no prev_hash",
            vec![
                ("missing", None),
                ("number", Some(json!(0))),
                ("short", Some(json!(hash[1..]))),
                ("long", Some(json!(format!("{hash}a")))),
                ("upper-case", Some(json!("A".repeat(64)))),
                ("not-hex", Some(json!("g".repeat(64)))),
            ],
        ),
    ] {
        for (how, value) in values {
            let mut chain = Chain::session("c");
            chain.edit(1, |line| set(line, member, value));
            let reason = format!("line 2: {reason}");
            cases.malformed(&format!("{member}-{how}"), reason, &chain);
        }
    }
    let mut chain = Chain::new();
    chain.row(br#"{"schema_version":1,"phase":"outcome","call_id":"call-1"}"#);
    cases.malformed("version-1-record", "line 1: no line_type", &chain);
    let mut chain = Chain::session("c");
    chain.rows[1] = b"{}".to_vec();
    cases.malformed("object-empty", "line 2: no line_type", &chain);
    let mut chain = Chain::opened();
    chain.raw(json!({"line_type": "intent"})).close();
    cases
        .verified("intent-of-the-header-alone", &chain)
        .comment("what else a Line says does not change the verdict")
        .with("note", "calls_without_id: 1");
    let mut chain = Chain::opened();
    chain
        .raw(json!({"line_type": "intent", "call_id": 7, "tool_id": [], "request_digest": "?"}))
        .raw_signed(json!({"line_type": "outcome", "policy": "perhaps"}))
        .close();
    cases
        .verified("members-of-other-types", &chain)
        .with("note", "calls_without_id: 2");
    let mut chain = Chain::opened();
    chain.raw_signed(json!({"line_type": "close", "added": {"later": [true, "", {}]}}));
    cases.verified("member-unknown", &chain);
    times(cases);
}

/// SPEC [LINE-2]: the time is the emitter's claim.
fn times(cases: &mut Cases) {
    let mut chain = Chain::opened();
    chain
        .raw(json!({"line_type": "intent", "call_id": "c", "time": "9999-12-31T23:59:59.999Z"}))
        .raw_signed(json!({"line_type": "outcome", "call_id": "c", "time": "yesterday"}))
        .raw_signed(json!({"line_type": "close", "time": 0}));
    cases
        .verified("time-of-any-kind", &chain)
        .comment("later than the next, no time, no text: nobody judges by it");
}

/// SPEC [CANON-11] [VERIFY-22].
pub(super) fn duplicates(cases: &mut Cases) {
    let plain = Chain::session("c");
    let doubled = |row: usize, from: &str, to: &str| {
        let mut chain = plain.clone();
        let text = chain.text(row);
        assert!(text.contains(from));
        chain.rows[row] = text.replacen(from, to, 1).into();
        chain
    };
    let seq = r#""seq":1,"#;
    for (name, member, chain) in [
        ("same-value", "seq", doubled(1, seq, &format!("{seq}{seq}"))),
        (
            "other-value",
            "tool_id",
            doubled(1, seq, r#""seq":1,"tool_id":"rm","#),
        ),
        (
            "escaped",
            "seq",
            doubled(1, seq, r#""s\u0065q":1,"seq":1,"#),
        ),
        (
            "nested",
            "a",
            doubled(1, seq, r#""n":[{"a":1,"a":1}],"seq":1,"#),
        ),
        ("empty-name", "", doubled(1, seq, r#""":1,"":2,"seq":1,"#)),
        (
            "signature",
            "signature",
            doubled(2, r#""signature""#, r#""signature":"","signature""#),
        ),
        (
            "innermost-first",
            "b",
            doubled(1, seq, r#""n":{"a":1,"m":{"b":1,"b":2},"a":2},"seq":1,"#),
        ),
        (
            "first-of-two",
            "a",
            doubled(1, seq, r#""b":1,"a":1,"a":2,"b":2,"seq":1,"#),
        ),
    ] {
        let reason = format!(
            "line {}: duplicate member `{member}`",
            if name == "signature" { 3 } else { 2 }
        );
        cases.malformed(&format!("duplicate-{name}"), reason, &chain);
    }
    let shown = doubled(
        1,
        seq,
        r#""\u001b[2K\u202e":1,"\u001b[2K\u202e":1,"seq":1,"#,
    );
    let reason = r"line 2: duplicate member `\u{1b}[2K\u{202e}`";
    cases.malformed("duplicate-of-a-terminal-escape", reason, &shown);
    let case = doubled(1, seq, r#""SEQ":9,"seq":1,"#);
    let hash = |chain: &Chain, row| chain.hash(row);
    let reason = format!(
        "line at session 0 seq 2 chains to {}, but the line before it hashes to {}",
        hash(&plain, 1),
        hash(&case, 1)
    );
    cases
        .tampered("member-added-in-other-case", "chain-broken", reason, &case)
        .comment("names are compared exactly: this is another member");
}

/// SPEC [VER-2] [VERIFY-27] [VERIFY-28] [VERIFY-44].
pub(super) fn schema(cases: &mut Cases) {
    for (how, value, reason) in [
        ("missing", None, "no schema_version"),
        ("string", Some(json!("2")), "no schema_version"),
        ("true", Some(json!(true)), "no schema_version"),
        ("0", Some(json!(0)), "schema_version 0 is not 2"),
        ("1", Some(json!(1)), "schema_version 1 is not 2"),
    ] {
        for (line, row) in [("open", 0), ("intent", 1), ("close", 3)] {
            let mut chain = Chain::session("c");
            let value = value.clone();
            chain.edit(row, |line| set(line, "schema_version", value));
            let name = format!("schema-{how}-on-{line}");
            cases.tampered(
                &name,
                "schema-version",
                format!("line {}: {reason}", row + 1),
                &chain,
            );
        }
    }
    let newer = |v: u64, i: u64, n: u64| {
        format!("schema_version {v} at session {i} seq {n}, newer emitter")
    };
    let mut chain = Chain::opened();
    chain
        .call("c")
        .raw_signed(json!({"line_type": "close", "schema_version": 3}));
    cases.indeterminate(
        "schema-3-signed-close",
        "newer-schema",
        newer(3, 0, 3),
        &chain,
    );
    let mut chain = Chain::opened();
    chain
        .raw(json!({"line_type": "intent", "call_id": "c", "schema_version": 3}))
        .outcome("c")
        .close();
    cases
        .indeterminate("schema-3-interior", "newer-schema", newer(3, 0, 1), &chain)
        .with("coverage", "session 0 seq 3");
    let mut chain = Chain::new();
    let key = chain.key.public_key().to_string();
    chain.raw_signed(json!({"line_type": "open", "public_key": key, "schema_version": 3}));
    chain.call("c").close();
    cases.indeterminate("schema-3-open", "newer-schema", newer(3, 0, 0), &chain);
    let max = 9_007_199_254_740_991;
    let mut chain = Chain::opened();
    chain.raw_signed(json!({"line_type": "close", "schema_version": max}));
    let name = "schema-2^53-1-signed-close";
    cases.indeterminate(name, "newer-schema", newer(max, 0, 1), &chain);
    let mut chain = Chain::session("c");
    chain.edit(3, |line| set(line, "schema_version", Some(json!(3))));
    let reason = "line at session 0 seq 3: signature does not match this line";
    cases
        .tampered("schema-3-flipped-close", "signature", reason, &chain)
        .comment("a later version does not share a file with this one, so this Line is judged");
    let mut chain = Chain::opened();
    let elsewhere = "a".repeat(64);
    chain.raw(json!({"line_type": "intent", "schema_version": 3, "prev_hash": elsewhere}));
    let reason = format!(
        "line at session 0 seq 1 chains to {elsewhere}, but the line before it hashes to {}",
        chain.hash(0)
    );
    cases.tampered(
        "schema-3-that-does-not-chain",
        "chain-broken",
        reason,
        &chain,
    );
    let mut chain = Chain::session("c");
    chain.edit(0, |line| set(line, "schema_version", Some(json!(3))));
    cases
        .indeterminate(
            "schema-3-flipped-first-open",
            "newer-schema",
            newer(3, 0, 0),
            &chain,
        )
        .comment("a file begun by a later version is not ours to judge, and not to pass")
        .with("coverage", "none");
    let mut chain = Chain::session("c");
    chain.edit(1, |line| set(line, "schema_version", Some(json!(3))));
    let reason = format!(
        "line at session 0 seq 2 chains to {}, but the line before it hashes to {}",
        Chain::session("c").hash(1),
        chain.hash(1)
    );
    cases
        .tampered("schema-3-flipped-interior", "chain-broken", reason, &chain)
        .comment("the cap does not excuse the Line behind it");
}

/// SPEC [VERIFY-34] [VERIFY-35].
pub(super) fn decisions(cases: &mut Cases) {
    let twice = |i: u64, n: u64, id: &str| {
        format!("line at session {i} seq {n} decides approval {id} a second time")
    };
    let mut chain = Chain::opened();
    chain
        .decision("apr-1")
        .decision("apr-2")
        .decision("apr-1")
        .close();
    cases
        .tampered(
            "decision-twice",
            "duplicate-decision",
            twice(0, 3, "apr-1"),
            &chain,
        )
        .with("coverage", "session 0 seq 3");
    let mut chain = Chain::opened();
    chain
        .decision("apr-1")
        .close()
        .open()
        .decision("apr-1")
        .close();
    let name = "decision-twice-across-sessions";
    cases.tampered(name, "duplicate-decision", twice(1, 1, "apr-1"), &chain);
    let mut chain = Chain::opened();
    chain.decision("apr-1").decision("apr-1");
    let escaped = chain.text(2).replace("apr-1", r"\u0061pr\u002d1");
    chain.rows[2] = escaped.into();
    let name = "decision-twice-by-an-escape";
    cases.tampered(
        name,
        "duplicate-decision",
        twice(0, 2, "apr-1"),
        chain.close(),
    );
    let mut chain = Chain::opened();
    chain
        .decision("\u{1b}]0;\u{7}\nVerified")
        .decision("\u{1b}]0;\u{7}\nVerified")
        .close();
    let shown = r"\u{1b}]0;\u{7}\u{a}Verified";
    let name = "decision-twice-of-a-terminal-escape";
    cases.tampered(name, "duplicate-decision", twice(0, 2, shown), &chain);
    let long = "x".repeat(600);
    let mut chain = Chain::opened();
    chain.decision(&long).decision(&long).close();
    let shown = format!("{}… (88 more characters)", &long[..512]);
    cases.tampered(
        "decision-twice-of-a-long-id",
        "duplicate-decision",
        twice(0, 2, &shown),
        &chain,
    );
    let mut chain = Chain::opened();
    chain
        .decision(&format!("{long}1"))
        .decision(&format!("{long}2"))
        .close();
    cases
        .verified("decisions-of-long-ids-that-differ-late", &chain)
        .comment("ids are compared whole, though printed cut");
    let mut chain = Chain::opened();
    chain
        .decision("apr")
        .decision("APR")
        .decision("apr ")
        .decision("")
        .close();
    cases.verified("decisions-of-similar-ids", &chain);
    for (how, id) in [("missing", None), ("number", Some(json!(7)))] {
        let mut chain = Chain::opened();
        let mut members = json!({"line_type": "decision", "verdict": {"verdict": "denied"}});
        if let Some(id) = id {
            members["approval_id"] = id;
        }
        let name = format!("approval_id-{how}");
        let reason = "line 2: decision carries no approval_id";
        cases.malformed(&name, reason, chain.raw_signed(members).close());
    }
}

pub(super) fn set(line: &mut serde_json::Map<String, Value>, member: &str, value: Option<Value>) {
    match value {
        Some(value) => line.insert(member.to_owned(), value),
        None => line.remove(member),
    };
}
