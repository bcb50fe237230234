//! Signatures that are missing, by another key, or accepted only by a weaker
//! predicate than SPEC §9.1; and Lines of types that may be signed or not.

use aegis::wire::hex::Hex;
use curve25519_dalek::constants::EIGHT_TORSION;
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::Scalar;
use serde_json::{Value, json};

use super::forge::{
    SMALL_ORDER, add_order, dev_scalar, divisible, key_id, published, sign_with, signature,
    signing_input,
};
use super::members::set;
use super::{Cases, With as _};
use crate::assemble::{Chain, foreign_key};

const ABSENT: &str = "line carries no signature";
const MISMATCH: &str = "signature does not match this line";

fn at(i: u64, n: u64, fault: &str) -> String {
    format!("line at session {i} seq {n}: {fault}")
}

/// SPEC [LINE-3] [WIRE-1] [VERIFY-13].
pub(super) fn missing(cases: &mut Cases) {
    for (line, row) in [("open", 0), ("outcome", 2), ("close", 3)] {
        for (how, member, value) in [
            ("signature-missing", "signature", None),
            ("signature-number", "signature", Some(json!(1))),
            ("signature-short", "signature", Some(json!("00".repeat(63)))),
            ("signature-long", "signature", Some(json!("00".repeat(65)))),
            (
                "signature-in-upper-case",
                "signature",
                Some(json!("AB".repeat(64))),
            ),
            ("key_id-missing", "key_id", None),
            ("key_id-number", "key_id", Some(json!(7))),
            (
                "key_id-in-upper-case",
                "key_id",
                Some(json!("AB".repeat(32))),
            ),
        ] {
            let mut chain = Chain::session("c");
            chain.edit(row, |line| set(line, member, value));
            let reason = at(0, row as u64, ABSENT);
            cases.tampered(&format!("{how}-on-{line}"), "signature", reason, &chain);
        }
    }
    for (line, members) in [
        (
            "decision",
            json!({"line_type": "decision", "approval_id": "apr"}),
        ),
        ("checkpoint", json!({"line_type": "checkpoint"})),
    ] {
        let mut chain = Chain::opened();
        chain.raw(members);
        let name = format!("signature-missing-on-{line}");
        cases.tampered(&name, "signature", at(0, 1, ABSENT), &chain);
    }
    let mut chain = Chain::opened();
    chain
        .intent("c")
        .outcome("c")
        .edit_last(|line| set(line, "signature", None));
    cases
        .tampered(
            "signature-stripped-from-the-tail",
            "signature",
            at(0, 2, ABSENT),
            &chain,
        )
        .comment("an honest tail holds intents only")
        .with("coverage", "session 0 seq 0");
}

/// SPEC [CHAIN-2] [KEY-5] [KEY-6] [VERIFY-2] [VERIFY-14] [VERIFY-16].
pub(super) fn wrong(cases: &mut Cases) {
    let mismatch = |n| at(0, n, MISMATCH);
    let plain = Chain::session("c");
    for (line, row) in [("open", 0), ("outcome", 2), ("close", 3)] {
        let mut chain = plain.clone();
        let other = signature(&plain, if row == 0 { 3 } else { 0 });
        chain.edit(row, |line| {
            set(line, "signature", Some(json!(other.to_string())))
        });
        let name = format!("signature-of-another-line-on-{line}");
        cases.tampered(&name, "signature", mismatch(row as u64), &chain);
    }
    let mut chain = plain.clone();
    chain.edit(2, |line| set(line, "tool_id", Some(json!("rm"))));
    cases.tampered("outcome-changed", "signature", mismatch(2), &chain);
    let mut chain = plain.clone();
    chain.edit(3, |line| set(line, "calls", Some(json!(1))));
    cases.tampered(
        "close-with-a-member-added",
        "signature",
        mismatch(3),
        &chain,
    );
    let mut chain = plain.clone();
    let without = chain
        .text(3)
        .replace(&format!(r#""key_id":"{}","#, chain.key.key_id()), "");
    let (input, _) = without
        .split_once(r#","signature""#)
        .expect("signature is last");
    let signature_of_form = chain.key.sign(format!("{input}}}").as_bytes()).to_string();
    chain.edit(3, |line| {
        set(line, "signature", Some(json!(signature_of_form)))
    });
    cases.tampered(
        "signature-over-the-form-without-key_id",
        "signature",
        mismatch(3),
        &chain,
    );
    let mut chain = plain.clone();
    let key = foreign_key();
    let input = signing_input(&chain, 3);
    let by_other = key.sign(&input).to_string();
    chain.edit(3, |line| set(line, "signature", Some(json!(by_other))));
    let name = "signature-by-another-key-under-the-key_id";
    cases.tampered(name, "signature", mismatch(3), &chain);
    let mut chain = Chain::opened();
    let dev = chain.key.key_id();
    chain.call("c").key = foreign_key();
    let reason = format!("line was signed under key {}, not {dev}", key.key_id());
    cases
        .tampered(
            "key-changed-inside-a-session",
            "signature",
            at(0, 3, &reason),
            chain.close(),
        )
        .comment("a valid signature, by a key that no open line published");
}

/// Signatures that a weaker predicate accepts, and such as mean nothing.
/// SPEC [KEY-1].
pub(super) fn weak(cases: &mut Cases) {
    let mismatch = |n| at(0, n, MISMATCH);
    let plain = Chain::session("c");
    let mut chain = plain.clone();
    let honest = signature(&chain, 3);
    let s = add_order(honest.as_bytes()[32..].try_into().expect("32 bytes"));
    let malleated = [&honest.as_bytes()[..32], &s].concat();
    chain.edit(3, |line| {
        set(line, "signature", Some(json!(Hex(&malleated).to_string())))
    });
    cases.tampered("signature-s-plus-l", "signature", mismatch(3), &chain);
    for (name, r, torsion) in [
        (
            "signature-r-plus-order-8",
            Scalar::from(42u64),
            EIGHT_TORSION[1],
        ),
        (
            "signature-r-plus-order-4",
            Scalar::from(42u64),
            EIGHT_TORSION[2],
        ),
        (
            "signature-r-plus-order-2",
            Scalar::from(42u64),
            EIGHT_TORSION[4],
        ),
        ("signature-r-identity", Scalar::ZERO, EIGHT_TORSION[0]),
        ("signature-r-of-order-8", Scalar::ZERO, EIGHT_TORSION[1]),
    ] {
        let mut chain = plain.clone();
        let forged = sign_with(&chain, 3, r, torsion, None);
        chain.edit(3, |line| {
            set(line, "signature", Some(json!(forged.to_string())))
        });
        cases
            .tampered(name, "signature", mismatch(3), &chain)
            .comment("made by the holder of the key; cofactored equations accept it");
    }
    for (name, signature) in [
        ("intent-signed-bogus", json!("00".repeat(64))),
        ("intent-signed-by-a-number", json!(7)),
    ] {
        let mut chain = Chain::opened();
        chain.raw(json!({"line_type": "intent", "call_id": "c", "signature": signature}));
        cases
            .verified(name, chain.outcome("c").close())
            .with("note", "signed_intents: 1");
    }
    let mut chain = Chain::opened();
    chain
        .raw_signed(json!({"line_type": "intent", "call_id": "c"}))
        .outcome("c")
        .close();
    cases
        .verified("intent-signed", &chain)
        .with("note", "signed_intents: 1");
}

/// SPEC [KEY-7] [KEY-9] [VERIFY-32].
pub(super) fn keys(cases: &mut Cases) {
    let dev = Chain::new().key;
    let foreign = foreign_key();
    let untrusted = |i: u64, key_id| {
        format!(
            "session opened at session {i} seq 0 publishes a key with fingerprint {key_id}, which \
             is not in the supplied trust store (--key takes the 64-hex public key, not this \
             fingerprint)"
        )
    };
    let pin = format!("--key {}", foreign.public_key());
    let reason = untrusted(0, dev.key_id());
    cases
        .tampered(
            "pin-to-another-key",
            "untrusted-key",
            reason,
            &Chain::session("c"),
        )
        .with("args", pin)
        .with("coverage", "none");
    let mut chain = Chain::session("a");
    chain.key = foreign.clone();
    chain.open().call("b").close();
    let reason = untrusted(1, foreign.key_id());
    cases
        .tampered(
            "pin-to-the-key-before-rotation",
            "untrusted-key",
            reason,
            &chain,
        )
        .with("args", format!("--key {}", dev.public_key()))
        .with("coverage", "session 0 seq 3");
    let mut mixed = Chain::opened();
    mixed.call("c").key = foreign.clone();
    mixed.close();
    let other = format!(
        "line was signed under key {}, not {}",
        foreign.key_id(),
        dev.key_id()
    );
    cases
        .tampered(
            "pin-to-both-keys-of-a-changed-one",
            "signature",
            at(0, 3, &other),
            &mixed,
        )
        .comment("a key that the caller accepts is still not the one of the Session")
        .with(
            "args",
            format!("--key {} --key {}", foreign.public_key(), dev.public_key()),
        );
    let one = format!("Verified (pinned to {})", dev.key_id());
    cases
        .add("pin", &[("verdict", &one)], (&Chain::session("c")).into())
        .with(
            "args",
            format!("--key {} --key {}", foreign.public_key(), dev.public_key()),
        );
    cases
        .add(
            "pin-to-both-keys",
            &[("verdict", "Verified (pinned)")],
            (&chain).into(),
        )
        .with(
            "args",
            format!("--key {} --key {}", foreign.public_key(), dev.public_key()),
        );
}

/// Keys that are none, or of small order, or nearly so.
/// SPEC [KEY-1] [VERIFY-15].
pub(super) fn weak_keys(cases: &mut Cases) {
    let not_a_key = at(0, 0, "not a valid ed25519 public key");
    for (n, encoding) in SMALL_ORDER.iter().enumerate() {
        let mut chain = Chain::new();
        let forged = EdwardsPoint::mul_base(&Scalar::ONE).compress().to_bytes();
        let signature = [forged, Scalar::ONE.to_bytes()].concat();
        let members = published(encoding, Some(json!(Hex(&signature).to_string())));
        cases
            .tampered(
                &format!("key-small-order-{n:02}"),
                "signature",
                at(0, 0, MISMATCH),
                chain.raw(members),
            )
            .comment("under a key of order 1 one signature fits every message");
    }
    let off_curve = format!("02{}", "00".repeat(31));
    let mut chain = Chain::new();
    let members = published(&off_curve, Some(json!("00".repeat(64))));
    cases.tampered(
        "key-off-the-curve",
        "signature",
        not_a_key,
        chain.raw(members),
    );
    // A + T is no small point, so the predicate takes it: k times T vanishes
    // when 8 divides k.
    let torsion = EIGHT_TORSION[1];
    let mixed = (EdwardsPoint::mul_base(&dev_scalar()) + torsion)
        .compress()
        .to_bytes();
    let mut chain = Chain::new();
    chain.raw(published(&Hex(&mixed).to_string(), None));
    chain.raw(json!({"line_type": "close", "key_id": key_id(&mixed)}));
    for row in 0..2 {
        if row == 1 {
            let tail = chain.hash(0).to_string();
            chain.edit(1, |line| set(line, "prev_hash", Some(json!(tail))));
        }
        let signature = (1u64..)
            .find_map(|r| divisible(&chain, row, Scalar::from(r), mixed))
            .expect("one in eight");
        chain.edit(row, |line| {
            set(line, "signature", Some(json!(signature.to_string())))
        });
    }
    cases
        .verified("key-mixed-order", &chain)
        .comment("a key with a small-order part is odd, and the predicate accepts it");
}

/// SPEC [CHAIN-3] [VER-1] [VERIFY-5] [VERIFY-38] [VERIFY-39] [VERIFY-49] [VERIFY-50] [VERIFY-51].
pub(super) fn unknown_types(cases: &mut Cases) {
    let unknown = "unknown line type `attestation` at session 0 seq 1, newer emitter";
    let chain = |f: &dyn Fn(&mut Chain)| {
        let mut chain = Chain::opened();
        f(&mut chain);
        chain
    };
    let key_id = Chain::new().key.key_id().to_string();
    let attest = |more: Value| {
        let mut members = json!({"line_type": "attestation"});
        for (name, value) in more.as_object().expect("an object") {
            members[name] = value.clone();
        }
        members
    };
    for (name, coverage, record) in [
        (
            "unsigned",
            "session 0 seq 0",
            chain(&|c| {
                c.raw(attest(json!({})));
            }),
        ),
        (
            "signed",
            "session 0 seq 1",
            chain(&|c| {
                c.raw_signed(attest(json!({})));
            }),
        ),
        (
            "with-key_id-alone",
            "session 0 seq 0",
            chain(&|c| {
                c.raw(attest(json!({"key_id": key_id})));
            }),
        ),
        (
            "with-foreign-key_id-alone",
            "session 0 seq 0",
            chain(&|c| {
                c.raw(attest(json!({"key_id": 7})));
            }),
        ),
    ] {
        cases
            .indeterminate(
                &format!("unknown-{name}"),
                "unknown-line-type",
                unknown,
                &record,
            )
            .with("coverage", coverage);
    }
    let bogus = "00".repeat(64);
    for (name, members) in [
        ("forged", json!({"key_id": key_id, "signature": bogus})),
        ("signed-without-key_id", json!({"signature": bogus})),
        (
            "signed-by-a-number",
            json!({"key_id": key_id, "signature": 7}),
        ),
        (
            "signed-by-an-empty-text",
            json!({"key_id": key_id, "signature": ""}),
        ),
    ] {
        let record = chain(&|c| {
            c.raw(attest(members.clone()));
        });
        cases.tampered(
            &format!("unknown-{name}"),
            "signature",
            at(0, 1, MISMATCH),
            &record,
        );
    }
    let record = chain(&|c| {
        c.raw_signed(attest(json!({}))).close();
        c.edit(1, |line| {
            set(line, "signature", None);
        });
    });
    let whole = chain(&|c| {
        c.raw_signed(attest(json!({})));
    });
    let reason = format!(
        "line at session 0 seq 2 chains to {}, but the line before it hashes to {}",
        whole.tail,
        record.hash(1)
    );
    cases
        .tampered("unknown-signature-removed", "chain-broken", reason, &record)
        .comment("the line hash covers the signature");
    let record = chain(&|c| {
        c.key = foreign_key();
        c.raw_signed(attest(json!({})));
    });
    let other = format!(
        "line was signed under key {}, not {key_id}",
        foreign_key().key_id()
    );
    cases.tampered(
        "unknown-signed-by-another-key",
        "signature",
        at(0, 1, &other),
        &record,
    );
    for (name, token, shown) in [
        ("unknown-token-empty", "", ""),
        ("unknown-token-in-upper-case", "CLOSE", "CLOSE"),
        (
            "unknown-token-of-a-terminal-escape",
            "\u{1b}[2J\r\nVerified",
            r"\u{1b}[2J\u{d}\u{a}Verified",
        ),
        (
            "unknown-token-of-a-bidi-override",
            "a\u{202e}b\u{200b}",
            r"a\u{202e}b\u{200b}",
        ),
    ] {
        let record = chain(&|c| {
            c.raw(json!({"line_type": token})).close();
        });
        let reason = format!("unknown line type `{shown}` at session 0 seq 1, newer emitter");
        cases.indeterminate(name, "unknown-line-type", reason, &record);
    }
    let record = chain(&|c| {
        c.checkpoint();
    });
    let reason = "reserved checkpoint line at session 0 seq 1, not defined by v0";
    cases
        .indeterminate("checkpoint", "reserved-checkpoint", reason, &record)
        .with("coverage", "session 0 seq 1");
    let record = chain(&|c| {
        c.raw(json!({"line_type": "checkpoint", "key_id": key_id, "signature": bogus}));
    });
    cases.tampered(
        "checkpoint-forged",
        "signature",
        at(0, 1, MISMATCH),
        &record,
    );
}
