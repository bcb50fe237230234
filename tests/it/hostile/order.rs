//! Two faults in one record: which of them is told.

use aegis::sign::SigningKey;
use serde_json::json;

use super::members::set;
use super::{Cases, With as _};
use crate::assemble::{Chain, LineHash, foreign_key};

/// Each Line has two faults that stand beside each other in the order of the
/// checks: [VERIFY-4].
pub(super) fn precedence(cases: &mut Cases) {
    let row = |text: &str| {
        let mut chain = Chain::session("c");
        chain.rows[1] = text.into();
        chain
    };
    let value_space = "outside the canonical value space, so it has no reproducible hash: \
                       floating-point value at $.b is outside the JCS value space";
    for (name, reason, text) in [
        (
            "syntax-before-duplicate",
            "not JSON: unfinished string at byte 15",
            r#"{"a":1,"a":1,"x"#,
        ),
        (
            "utf8-before-syntax",
            "not JSON: invalid UTF-8 at byte 3",
            "{}\u{fffd}",
        ),
        (
            "not-an-object-before-duplicate",
            "not a JSON object",
            r#"[{"a":1,"a":1}]"#,
        ),
        (
            "not-an-object-before-value-space",
            "not a JSON object",
            "[1.5]",
        ),
        (
            "duplicate-before-value-space",
            "duplicate member `a`",
            r#"{"b":1.5,"a":1,"a":1}"#,
        ),
        ("value-space-before-line_type", value_space, r#"{"b":1.5}"#),
        ("line_type-before-seq", "no line_type", "{}"),
        ("seq-before-prev_hash", "no seq", r#"{"line_type":"close"}"#),
        (
            "prev_hash-before-schema",
            "no prev_hash",
            r#"{"line_type":"close","schema_version":1,"seq":1}"#,
        ),
    ] {
        let mut chain = row(text);
        if name == "utf8-before-syntax" {
            chain.rows[1] = b"{]x\xff".to_vec();
        }
        cases.malformed(
            &format!("order-{name}"),
            format!("line 2: {reason}"),
            &chain,
        );
    }
    let hash = LineHash::of(b"elsewhere");
    opens(cases, hash);
    places(cases, hash);
    signatures(cases);
}

/// The checks of a Line's place, in pairs.
fn places(cases: &mut Cases, hash: LineHash) {
    let mut chain = Chain::new();
    chain.raw(json!({"line_type": "close", "schema_version": 1}));
    let reason = "line 1: schema_version 1 is not 2";
    cases.tampered(
        "order-schema-before-no-open",
        "schema-version",
        reason,
        &chain,
    );
    let mut chain = Chain::new();
    chain.raw(json!({"line_type": "close", "prev_hash": hash.to_string()}));
    let reason = "line 1: chain does not begin with an open line";
    cases.malformed("order-no-open-before-link", reason, &chain);
    let mut chain = Chain::session("c");
    let elsewhere = json!({"line_type": "close", "seq": 1, "prev_hash": hash.to_string()});
    let reason = format!(
        "line at session 0 seq 1 chains to {hash}, but the line before it hashes to {}",
        chain.tail
    );
    cases.tampered(
        "order-link-before-seq",
        "chain-broken",
        reason,
        chain.raw(elsewhere),
    );
    let mut chain = Chain::session("c");
    chain.raw(json!({"line_type": "intent", "seq": 1}));
    let reason = "session 0 expected seq 4, found 1";
    cases.tampered(
        "order-seq-before-after-close",
        "seq-out-of-order",
        reason,
        &chain,
    );
    let mut chain = Chain::session("c");
    chain.raw(json!({"line_type": "close"}));
    let reason = "line at session 0 seq 4 follows the close of its session";
    cases.tampered(
        "order-after-close-before-signature",
        "after-close",
        reason,
        &chain,
    );
}

/// The checks of a signature and behind it, in pairs.
fn signatures(cases: &mut Cases) {
    let foreign = foreign_key().key_id();
    let dev = Chain::new().key.key_id();
    let mut chain = Chain::opened();
    chain.raw(json!({"line_type": "close", "key_id": foreign.to_string()}));
    let reason = "line at session 0 seq 1: line carries no signature";
    cases.tampered("order-absent-before-key_id", "signature", reason, &chain);
    let mut chain = Chain::opened();
    let members = json!({
        "line_type": "close", "key_id": foreign.to_string(), "signature": "00".repeat(64),
    });
    let reason = format!("line at session 0 seq 1: line was signed under key {foreign}, not {dev}");
    cases.tampered(
        "order-key_id-before-signature",
        "signature",
        reason,
        chain.raw(members),
    );
    for (name, members) in [
        (
            "order-signature-before-approval_id",
            json!({"line_type": "decision"}),
        ),
        (
            "order-signature-before-second-decision",
            json!({"line_type": "decision", "approval_id": "apr"}),
        ),
        (
            "order-signature-before-checkpoint",
            json!({"line_type": "checkpoint"}),
        ),
    ] {
        let mut chain = Chain::opened();
        let reason = "line at session 0 seq 2: line carries no signature";
        cases.tampered(
            name,
            "signature",
            reason,
            chain.decision("apr").raw(members),
        );
    }
}

/// The checks of an `open` Line, in pairs.
fn opens(cases: &mut Cases, hash: LineHash) {
    let key = Chain::new().key.public_key().to_string();
    let mut second = |name: &str, code: &str, reason: &str, members: serde_json::Value| {
        let mut chain = Chain::session("c");
        let tail = chain.tail.to_string();
        chain.begin().raw_signed(members);
        let reason = reason.replace("{tail}", &tail);
        cases
            .tampered(&format!("order-open-{name}"), code, reason, &chain)
            .comment("the second open of the file");
    };
    second(
        "seq-before-genesis",
        "seq-out-of-order",
        "session 1 expected seq 0, found 7",
        json!({"line_type": "open", "seq": 7, "prev_hash": hash.to_string()}),
    );
    second(
        "genesis-before-tail",
        "malformed",
        "line 5: open line does not anchor on the genesis digest",
        json!({"line_type": "open", "prev_hash": hash.to_string(), "public_key": key}),
    );
    second(
        "tail-before-public_key",
        "session-boundary",
        "session 1 carries no prev_session_tail, but the previous session ends at {tail}",
        json!({"line_type": "open"}),
    );
    let mut chain = Chain::session("c");
    chain.edit(0, |line| set(line, "signature", None));
    let dev = chain.key.key_id();
    let reason = format!(
        "session opened at session 0 seq 0 publishes a key with fingerprint {dev}, which is not in \
         the supplied trust store (--key takes the 64-hex public key, not this fingerprint)"
    );
    cases
        .tampered(
            "order-open-key-before-signature",
            "untrusted-key",
            reason,
            &chain,
        )
        .with("args", format!("--key {}", foreign_key().public_key()));
    let mut chain = Chain::session("c");
    let stranger = SigningKey::from_seed(&[5; 32]).public_key().to_string();
    chain.edit(0, |line| set(line, "public_key", Some(json!(stranger))));
    let expected = SigningKey::from_seed(&[5; 32]).key_id();
    let reason =
        format!("line at session 0 seq 0: line was signed under key {dev}, not {expected}");
    cases.tampered("open-public_key-swapped", "signature", reason, &chain);
}

/// A cap does not stop the walk, and the first one is told: [VERIFY-3].
/// SPEC [VERIFY-6]: a cap before what the end would say.
pub(super) fn caps(cases: &mut Cases) {
    let unknown = |n: u64, token: &str| {
        format!("unknown line type `{token}` at session 0 seq {n}, newer emitter")
    };
    let mut chain = Chain::opened();
    chain
        .raw(json!({"line_type": "first"}))
        .raw(json!({"line_type": "second"}))
        .close();
    cases.indeterminate("caps-two", "unknown-line-type", unknown(1, "first"), &chain);
    let mut chain = Chain::opened();
    chain.skip(1).checkpoint().close();
    let reason = "session 0 skips seq 1..2 with the chain intact; a write did not land";
    cases.indeterminate("caps-two-on-one-line", "missing-line", reason, &chain);
    let mut chain = Chain::opened();
    chain.raw(json!({"line_type": "first"})).intent("c");
    cases.indeterminate(
        "cap-before-an-open-tail",
        "unknown-line-type",
        unknown(1, "first"),
        &chain,
    );
    let mut chain = Chain::opened();
    chain.raw(json!({"line_type": "first"})).row(b"{\"torn");
    cases.indeterminate(
        "cap-before-a-torn-row",
        "unknown-line-type",
        unknown(1, "first"),
        &chain,
    );
    let hash = LineHash::of(b"elsewhere");
    let mut chain = Chain::new();
    chain
        .open_after(Some(hash))
        .raw(json!({"line_type": "first"}));
    let reason =
        format!("first session back-references {hash}; earlier sessions are not in this file");
    cases.indeterminate(
        "cap-of-a-missing-head-first",
        "missing-head",
        reason,
        &chain,
    );
    let bogus = "line at session 0 seq 2: signature does not match this line";
    let key_id = Chain::new().key.key_id().to_string();
    for (name, f) in [
        (
            "unknown",
            (|c| {
                c.raw(json!({"line_type": "first"}));
            }) as fn(&mut Chain),
        ),
        ("checkpoint", |c| {
            c.checkpoint();
        }),
        ("newer-schema", |c| {
            c.raw(json!({"line_type": "intent", "schema_version": 9}));
        }),
    ] {
        let mut chain = Chain::opened();
        f(&mut chain);
        let members = json!({"line_type": "close", "key_id": key_id, "signature": "00".repeat(64)});
        let name = format!("cap-of-{name}-before-a-forgery");
        cases.tampered(&name, "signature", bogus, chain.raw(members));
    }
    let mut chain = Chain::opened();
    chain.skip(1).decision("apr").decision("apr").close();
    let reason = "line at session 0 seq 3 decides approval apr a second time";
    cases.tampered(
        "cap-of-a-missing-line-before-a-forgery",
        "duplicate-decision",
        reason,
        &chain,
    );
}
