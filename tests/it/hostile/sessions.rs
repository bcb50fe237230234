//! Sessions in one file: how they begin, link, end and leave Calls open.

use serde_json::json;

use super::members::set;
use super::{Cases, With as _};
use crate::assemble::{Chain, LineHash, foreign_key, intent};

/// SPEC [SESS-2] [SESS-3] [VERIFY-17] [VERIFY-18] [VERIFY-45].
pub(super) fn boundaries(cases: &mut Cases) {
    let hash = LineHash::of(b"elsewhere");
    let mut chain = Chain::new();
    chain.open_after(Some(hash)).call("c").close();
    let reason =
        format!("first session back-references {hash}; earlier sessions are not in this file");
    cases.indeterminate("head-missing", "missing-head", reason, &chain);
    let key = chain.key.public_key().to_string();
    let mut chain = Chain::new();
    chain.raw_signed(json!({"line_type": "open", "public_key": key, "prev_session_tail": "?"}));
    cases
        .verified("head-reference-malformed", chain.close())
        .comment("a prev_session_tail that is no digest counts as absent");
    let two = |f: &dyn Fn(&mut Chain)| {
        let mut chain = Chain::session("a");
        let tail = chain.tail;
        f(&mut chain);
        chain.call("b").close();
        (chain, tail)
    };
    let (chain, _) = two(&|c| {
        c.open();
    });
    cases
        .verified("sessions-two", &chain)
        .with("coverage", "session 1 seq 3");
    let (chain, tail) = two(&|c| {
        c.open_after(None);
    });
    let absent = |tail| {
        format!("session 1 carries no prev_session_tail, but the previous session ends at {tail}")
    };
    cases.tampered("tail-missing", "session-boundary", absent(tail), &chain);
    let (chain, tail) = two(&|c| {
        let upper = c.tail.to_string().to_uppercase();
        c.begin().raw_signed(json!({
            "line_type": "open", "public_key": key, "prev_session_tail": upper,
        }));
    });
    cases.tampered(
        "tail-in-upper-case",
        "session-boundary",
        absent(tail),
        &chain,
    );
    let (chain, tail) = two(&|c| {
        c.open_after(Some(hash));
    });
    let other = |found, tail| {
        format!("session 1 back-references {found}, but the previous session ends at {tail}")
    };
    cases.tampered(
        "tail-of-another-session",
        "session-boundary",
        other(hash, tail),
        &chain,
    );
    let (mut chain, tail) = two(&|c| {
        c.open();
    });
    chain.rows.remove(3);
    let reason = other(tail, chain.hash(2));
    cases.tampered(
        "close-removed-before-an-open",
        "session-boundary",
        reason,
        &chain,
    );
    let (mut chain, _) = two(&|c| {
        c.open();
    });
    chain.rows.drain(..4);
    let reason =
        format!("first session back-references {tail}; earlier sessions are not in this file");
    cases.indeterminate(
        "sessions-removed-from-the-front",
        "missing-head",
        reason,
        &chain,
    );
}

/// How a Session begins, in a file of one or after one that did not end.
/// SPEC [SESS-1] [WIRE-2] [KEY-6] [VERIFY-7] [VERIFY-29] [VERIFY-30] [VERIFY-31].
pub(super) fn beginnings(cases: &mut Cases) {
    let hash = LineHash::of(b"elsewhere");
    let key = Chain::new().key.public_key().to_string();
    let mut chain = Chain::new();
    chain.open().open().open().close();
    cases
        .verified("opens-in-a-row", &chain)
        .with("coverage", "session 2 seq 1");
    let mut chain = Chain::opened();
    chain.call("a").intent("b").open().close();
    cases
        .verified("crash-and-restart", &chain)
        .with("note", "unmatched_intents: 1");
    let mut chain = Chain::session("a");
    chain.key = foreign_key();
    cases.verified("rotation", chain.open().call("b").close());
    let mut chain = Chain::opened();
    chain.rows.remove(0);
    chain.rows.extend(Chain::session("c").rows.drain(1..));
    cases.malformed(
        "open-removed",
        "line 1: chain does not begin with an open line",
        &chain,
    );
    let reason = "session 0 has no close record and nothing anchors beyond it; 0 call(s) in flight";
    cases.indeterminate("open-alone", "unanchored-tail", reason, &Chain::opened());
    for (name, member, value, reason) in [
        (
            "open-prev_hash-not-genesis",
            "prev_hash",
            Some(json!(hash.to_string())),
            "line 1: open line does not anchor on the genesis digest",
        ),
        (
            "open-public_key-missing",
            "public_key",
            None,
            "line 1: open line carries no public key",
        ),
        (
            "open-public_key-short",
            "public_key",
            Some(json!(key[2..])),
            "line 1: open line carries no public key",
        ),
        (
            "open-public_key-in-upper-case",
            "public_key",
            Some(json!(key.to_uppercase())),
            "line 1: open line carries no public key",
        ),
    ] {
        let mut chain = Chain::session("c");
        cases.malformed(name, reason, chain.edit(0, |line| set(line, member, value)));
    }
    let mut chain = Chain::session("c");
    chain.edit(0, |line| set(line, "seq", Some(json!(1))));
    cases.tampered(
        "open-seq-1",
        "seq-out-of-order",
        "session 0 expected seq 0, found 1",
        &chain,
    );
}

/// SPEC [CHAIN-4] [VERIFY-11] [VERIFY-12] [VERIFY-36] [VERIFY-42].
pub(super) fn links(cases: &mut Cases) {
    let broken = |n: u64, found: LineHash, expected: LineHash| {
        format!(
            "line at session 0 seq {n} chains to {found}, but the line before it hashes to {expected}"
        )
    };
    let plain = Chain::session("c");
    let mut chain = plain.clone();
    chain.rows.remove(1);
    let reason = broken(2, plain.hash(1), plain.hash(0));
    cases
        .tampered("intent-removed", "chain-broken", reason, &chain)
        .comment("the intent is unsigned, and the link still gives it away");
    let mut chain = plain.clone();
    chain.edit(1, |line| set(line, "tool_id", Some(json!("rm"))));
    let reason = broken(2, plain.hash(1), chain.hash(1));
    cases.tampered("intent-changed", "chain-broken", reason, &chain);
    let mut chain = plain.clone();
    chain.rows.swap(1, 2);
    let reason = broken(2, plain.hash(1), plain.hash(0));
    cases.tampered("rows-swapped", "chain-broken", reason, &chain);
    let mut chain = plain.clone();
    chain.rows.insert(2, plain.rows[1].clone());
    let reason = broken(1, plain.hash(0), plain.hash(1));
    cases.tampered("row-twice", "chain-broken", reason, &chain);
    let mut chain = Chain::opened();
    chain.intent("c");
    chain.seq = 1;
    chain.outcome("c").close();
    let reason = "session 0 expected seq 2, found 1";
    cases.tampered("seq-repeated", "seq-out-of-order", reason, &chain);
    let mut chain = Chain::opened();
    chain.intent("c");
    chain.seq = 0;
    chain.outcome("c").close();
    let reason = "session 0 expected seq 2, found 0";
    cases.tampered("seq-0-on-an-outcome", "seq-out-of-order", reason, &chain);
    let skips = |e: u64, f: u64| {
        format!("session 0 skips seq {e}..{f} with the chain intact; a write did not land")
    };
    let mut chain = Chain::opened();
    chain.intent("c").skip(1).close();
    cases
        .indeterminate("seq-skipped", "missing-line", skips(2, 3), &chain)
        .with("coverage", "session 0 seq 3");
    let mut chain = Chain::opened();
    chain.skip(3).intent("c").skip(5).close();
    cases.indeterminate("seq-skipped-twice", "missing-line", skips(1, 4), &chain);
    let mut chain = Chain::opened();
    chain.seq = 9_007_199_254_740_991;
    cases.indeterminate(
        "seq-2^53-1",
        "missing-line",
        skips(1, chain.seq),
        chain.close(),
    );
    let mut chain = Chain::opened();
    chain.seq = 9_007_199_254_740_991;
    chain.intent("c");
    chain.seq = 9_007_199_254_740_991;
    let reason = "session 0 expected seq 9007199254740992, found 9007199254740991";
    cases.tampered(
        "seq-2^53-1-twice",
        "seq-out-of-order",
        reason,
        chain.close(),
    );
    let head = plain.hash(2);
    let args = format!("--expect-head {head}");
    cases
        .verified("expected-head-inside", &plain)
        .with("args", args.clone());
    let mut chain = Chain::opened();
    let reason = format!("expected line {head} is not in this input");
    cases
        .tampered(
            "expected-head-cut-off",
            "head-absent",
            reason,
            chain.close(),
        )
        .with("args", args);
}

/// SPEC [SESS-4] [VERIFY-33].
pub(super) fn after_close(cases: &mut Cases) {
    let follows = "line at session 0 seq 4 follows the close of its session";
    for (name, append) in [
        (
            "intent",
            (|c| {
                c.intent("d");
            }) as fn(&mut Chain),
        ),
        ("outcome", |c| {
            c.outcome("d");
        }),
        ("decision", |c| {
            c.decision("apr");
        }),
        ("close", |c| {
            c.close();
        }),
    ] {
        let mut chain = Chain::session("c");
        append(&mut chain);
        cases.tampered(
            &format!("after-close-{name}"),
            "after-close",
            follows,
            &chain,
        );
        chain.open().close();
        cases.tampered(
            &format!("after-close-{name}-then-open"),
            "after-close",
            follows,
            &chain,
        );
    }
    let mut chain = Chain::session("c");
    chain.checkpoint();
    let reason = "reserved checkpoint line at session 0 seq 4, not defined by v0";
    cases.indeterminate(
        "after-close-checkpoint",
        "reserved-checkpoint",
        reason,
        &chain,
    );
    let mut chain = Chain::session("c");
    chain.raw(json!({"line_type": "attestation"}));
    let reason = "unknown line type `attestation` at session 0 seq 4, newer emitter";
    cases.indeterminate("after-close-unknown", "unknown-line-type", reason, &chain);
    let reason = "line at session 0 seq 5 follows the close of its session";
    cases.tampered(
        "after-close-unknown-then-close",
        "after-close",
        reason,
        chain.close(),
    );
}

/// SPEC [VERIFY-41] [VERIFY-52] [VERIFY-53] [VERIFY-63].
pub(super) fn in_flight(cases: &mut Cases) {
    let open = |c: u64| {
        format!(
            "session 0 has no close record and nothing anchors beyond it; {c} call(s) in flight"
        )
    };
    let mut tail = |name: &str, count: u64, ids: &[&str], chain: &Chain| {
        let case = cases.indeterminate(name, "unanchored-tail", open(count), chain);
        for id in ids {
            case.with("in_flight", *id);
        }
    };
    let mut chain = Chain::opened();
    chain.intent("a").intent("b").outcome("b");
    tail("in-flight-covered-by-a-signature", 1, &["a"], &chain);
    chain.intent("c").outcome("a").decision("apr");
    tail("in-flight-out-of-order", 1, &["c"], &chain);
    let mut chain = Chain::opened();
    chain.intent("a").intent("a").outcome("a");
    tail("in-flight-same-id", 1, &["a"], &chain);
    chain.outcome("a").outcome("a").intent("b");
    tail("in-flight-outcomes-without-intent", 1, &["b"], &chain);
    let mut chain = Chain::opened();
    chain.intent("a").intent("b").intent("a").outcome("a");
    tail("in-flight-newest-is-answered", 2, &["a", "b"], &chain);
    let mut chain = Chain::opened();
    chain
        .intent("a")
        .open()
        .intent("b")
        .outcome("b")
        .intent("c");
    let case = cases.indeterminate(
        "in-flight-of-the-last-session",
        "unanchored-tail",
        "session 1 has no close record and nothing anchors beyond it; 1 call(s) in flight",
        &chain,
    );
    case.with("in_flight", "c")
        .with("note", "unmatched_intents: 1");
    let mut tail = |name: &str, count: u64, ids: &[&str], chain: &Chain| {
        let case = cases.indeterminate(name, "unanchored-tail", open(count), chain);
        for id in ids {
            case.with("in_flight", *id);
        }
    };
    let mut chain = Chain::opened();
    chain
        .intent("\u{1b}[1A\u{1b}[2KVerified (unpinned)")
        .intent("a\nin_flight b");
    chain
        .intent("\u{202e}live\u{2066}")
        .intent("back\\slash")
        .intent("");
    let shown = [
        r"\u{1b}[1A\u{1b}[2KVerified (unpinned)",
        r"a\u{a}in_flight b",
        r"\u{202e}live\u{2066}",
        r"back\\slash",
        "",
    ];
    tail("in-flight-terminal-escapes", 5, &shown, &chain);
    let mut chain = Chain::opened();
    chain.unsigned(&intent("\u{61}", "echo", b"{}"));
    let escaped = chain.text(1).replace(r#""a""#, r#""\u0061""#);
    chain.rows[1] = escaped.into();
    chain.intent("b").outcome("a");
    tail("in-flight-by-an-escape", 1, &["b"], &chain);
    for (name, count) in [("in-flight-1000", 1000), ("in-flight-1001", 1001)] {
        let mut chain = Chain::opened();
        for n in 0..count {
            chain.raw(json!({"line_type": "intent", "call_id": format!("c{n}")}));
        }
        let mut ids: Vec<_> = (0..1000).map(|n| format!("c{n}")).collect();
        if count > 1000 {
            ids.push("1 more".to_owned());
        }
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        tail(name, count, &ids, &chain);
    }
    let mut chain = Chain::opened();
    chain.outcome("a").outcome("a").intent("b").close();
    cases
        .verified("calls-that-do-not-pair", &chain)
        .with("note", "unmatched_intents: 1")
        .with("note", "outcomes_without_intent: 2");
    let mut chain = Chain::opened();
    chain
        .intent("a")
        .intent("b")
        .outcome("b")
        .outcome("a")
        .close();
    cases
        .verified("calls-interleaved", &chain)
        .with("note", "unmatched_intents: 0");
}
