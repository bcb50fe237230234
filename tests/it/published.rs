//! The vectors that the format publishes (SPEC §12), rebuilt from the
//! development seed to the byte, and what `aegis verify` says of them.

use std::collections::BTreeMap;

use aegis::wire::digest::{Digest, Text};
use aegis::wire::grant::{FsGrant, Grant, HttpGrant, NetGrant};
use aegis::wire::line;
use aegis::wire::outcome::{Capability, DecisionAxes, Execution, FsAxis, Outcome, Policy};
use serde_json::json;

use crate::assemble::{Chain, foreign_key, intent, outcome};
use crate::exe::Aegis;
use crate::kit::{assert_folder, fixtures};

/// SPEC [CHAIN-2] [CHAIN-3] [CHAIN-5] [VER-2].
#[test]
fn the_golden_session_is_rebuilt_to_the_byte() {
    let chain = golden();
    let lines = GOLDEN
        .iter()
        .zip(&chain.rows)
        .map(|(name, row)| (format!("{name}.json"), row.clone()));
    assert_folder("published/golden", &lines.collect());
    let file = BTreeMap::from([("golden_session.aarl".to_owned(), chain.bytes())]);
    assert_folder("published/session", &file);
    assert_eq!(chain.rows.len(), GOLDEN.len());
    assert_eq!(
        sha256(&chain.bytes()),
        "657f077bee3db6008aeeca919bc6035d4ff5cd0c14e4493ee6ed044d82400ea3"
    );
}

#[test]
fn the_damaged_records_are_rebuilt_to_the_byte() {
    for (folder, files, published) in [
        ("published/tampered", tampered(), TAMPERED),
        ("published/indeterminate", indeterminate(), INDETERMINATE),
    ] {
        assert_eq!(files.len(), published.len());
        for (name, hash) in published {
            assert_eq!(sha256(&files[&format!("{name}.aarl")]), *hash, "{name}");
        }
        assert_folder(folder, &files);
    }
}

/// Standard output to the byte, and the exit code: [CLI-4].
#[test]
fn verify_prints_what_is_published() {
    let root = fixtures().join("published");
    for (folder, names) in [
        ("session", vec!["golden_session"]),
        ("tampered", TAMPERED.iter().map(|(name, _)| *name).collect()),
        (
            "indeterminate",
            INDETERMINATE.iter().map(|(name, _)| *name).collect(),
        ),
    ] {
        for name in names {
            let path = root.join(folder).join(format!("{name}.aarl"));
            insta::assert_snapshot!(name, Aegis::verify().arg(path).stdout_and_exit());
        }
    }
}

/// SPEC [KEY-9] [KEY-10].
#[test]
fn a_pin_decides_whose_key_is_accepted() {
    let path = fixtures().join("published/tampered/untrusted_key.aarl");
    let dev = Chain::new().key.public_key().to_string();
    let foreign = foreign_key().public_key().to_string();
    for (name, key) in [("pinned_to_another", foreign), ("pinned", dev)] {
        let run = Aegis::verify().args(["--key", &key]).arg(&path);
        insta::assert_snapshot!(name, run.stdout_and_exit());
    }
}

fn golden() -> Chain {
    let mut chain = Chain::opened();
    chain.unsigned(&intent("call-golden-0", "smoke", b"c0ffee"));
    chain.signed(&Outcome {
        decision_axes: DecisionAxes {
            capability: Some("fs.read".to_owned()),
            role: Some("ops".to_owned()),
            session: Some("sess-golden".to_owned()),
            matched_rule: Some("block-smoke".to_owned()),
            // SPEC [LINE-10]: two paths that differ, and it is Verified.
            fs: Some(FsAxis {
                path_raw: "./notes.md".to_owned(),
                path_canonical: "/fixtures/notes.md".to_owned(),
            }),
            ..DecisionAxes::default()
        },
        ..refused(
            Policy::Denied {
                reason: "blocked in test".to_owned(),
            },
            golden_call(1, "smoke", "deadbeef"),
        )
    });
    let rate = Policy::RateLimited {
        reason: "rate limit exceeded: 2 per 60s".to_owned(),
    };
    chain.signed(&refused(rate, golden_call(2, "chatty", "cafebabe")));
    let park = Policy::PendingApproval {
        approval_id: "apr-gate-dream-1".to_owned(),
    };
    chain.signed(&refused(park, golden_call(3, "dream", "feedface")));
    chain.signed(&Outcome {
        capability: Capability::Denied {
            reason: "tool not registered: missing".to_owned(),
            denied_capability: Some("tool.registry".to_owned()),
        },
        execution: host_denied("capability denied"),
        ..golden_call(4, "missing", "baadf00d")
    });
    golden_ends(&mut chain);
    chain.signed(&line::Decision {
        approval_id: "apr-gate-dream-1".to_owned(),
        verdict: line::Verdict::Approved {
            scope: line::Scope {
                tool_id: "dream".to_owned(),
                fs: Some(FsGrant {
                    read_paths: vec!["/fixtures".to_owned()],
                    write_paths: Vec::new(),
                }),
                net: None,
            },
        },
    });
    chain.close();
    chain
}

/// The golden Calls that ended otherwise than by an answer.
fn golden_ends(chain: &mut Chain) {
    for (n, request, execution) in [
        (5, "decafbad", trap("guest trapped: unreachable")),
        (
            6,
            "0badf00d",
            Execution::ResourceExceeded {
                kind: "wall_clock".to_owned(),
            },
        ),
    ] {
        chain.signed(&Outcome {
            capability: Capability::Granted { grant: reader() },
            execution,
            ..golden_call(n, "reader", request)
        });
    }
    for (n, tool, request, execution) in [
        (7, "panic", "dead10cc", trap("host panic during tool call")),
        (8, "abandoned", "0ab0ab0a", host_denied("session abandoned")),
    ] {
        chain.signed(&Outcome {
            policy: Policy::Denied {
                reason: "not evaluated".to_owned(),
            },
            execution,
            ..golden_call(n, tool, request)
        });
    }
}

fn golden_call(n: u32, tool: &str, request: &str) -> Outcome {
    let call_id = format!("call-golden-{n}");
    outcome(
        &call_id,
        tool,
        request.as_bytes(),
        "golden-fixture-policy-set",
    )
}

fn refused(policy: Policy, outcome: Outcome) -> Outcome {
    Outcome {
        policy,
        capability: Capability::Denied {
            reason: "policy blocked before capability".to_owned(),
            denied_capability: None,
        },
        execution: host_denied("not executed"),
        ..outcome
    }
}

fn host_denied(reason: &str) -> Execution {
    Execution::HostDenied {
        reason: reason.to_owned(),
    }
}

fn trap(message: &str) -> Execution {
    Execution::Trap {
        message: message.to_owned(),
    }
}

fn reader() -> Grant {
    Grant {
        grant_id: "reader-1".to_owned(),
        tool_id: "reader".to_owned(),
        fs: Some(FsGrant {
            read_paths: vec!["/fixtures".to_owned()],
            write_paths: vec!["/fixtures/out".to_owned()],
        }),
        net: Some(NetGrant {
            http: vec![HttpGrant {
                host: "api.example.com".to_owned(),
                ports: vec![443],
                methods: vec!["GET".to_owned()],
            }],
        }),
        max_memory_bytes: 1_048_576,
        max_wall_ms: 5000,
        max_output_bytes: 1_048_576,
    }
}

fn tampered() -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut file = |name: &str, chain: &Chain| {
        files.insert(format!("{name}.aarl"), chain.bytes());
    };
    let mut start = Chain::new();
    start.policy_set = "tamper-vector-policy-set";
    let session = |call_id: &str| {
        let mut chain = start.clone();
        chain.open().call(call_id).close();
        chain
    };

    let mut chain = session("call-vector-1");
    chain.edit(3, |line| {
        drop(line.insert("prev_hash".into(), "f".repeat(64).into()))
    });
    file("prev_hash_mismatch", &chain);

    let mut chain = session("call-vector-2");
    let tail = chain.tail.to_string();
    let replayed = chain.rows[1].clone();
    chain.row(&replayed);
    chain.edit(4, |line| drop(line.insert("prev_hash".into(), tail.into())));
    file("seq_out_of_order", &chain);

    let mut chain = session("call-vector-3");
    chain.rows.truncate(3);
    chain.edit(2, |line| drop(line.remove("signature")));
    file("bad_signature", &chain);

    let mut chain = session("call-vector-4");
    let key_id = foreign_key().key_id().to_string();
    chain.edit(3, |line| drop(line.insert("key_id".into(), key_id.into())));
    file("key_id_mismatch", &chain);

    let mut chain = session("call-vector-5-s0");
    chain.open().call("call-vector-5-s1").close();
    chain.rows.remove(3);
    file("session_boundary_broken", &chain);

    let mut chain = session("call-vector-6");
    chain.rows.insert(2, b"not json at all".to_vec());
    file("malformed_line", &chain);

    file("untrusted_key", &session("call-vector-7"));

    let mut chain = Chain::opened();
    chain
        .decision("apr-vector-8")
        .decision("apr-vector-8")
        .close();
    file("duplicate_decision", &chain);
    files
}

fn indeterminate() -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut file = |name: &str, bytes: Vec<u8>| {
        files.insert(format!("{name}.aarl"), bytes);
    };
    let mut start = Chain::new();
    start.policy_set = "indeterminate-vector-policy-set";
    let session = |call_id: &str| {
        let mut chain = start.clone();
        chain.open().call(call_id).close();
        chain
    };

    let mut chain = session("call-unknown-line-type");
    chain.raw(json!({ "line_type": "attestation" }));
    file("unknown_line_type", chain.bytes());

    let mut chain = session("call-reserved-checkpoint");
    file("reserved_checkpoint", chain.checkpoint().bytes());

    let torn = br#"{"call_id":"call-torn-final-line","line_type":"outc"#;
    let whole = session("call-torn-final-line").bytes();
    file("torn_final_line", [&whole[..], torn].concat());

    let mut chain = session("call-unanchored-tail");
    chain.rows.truncate(2);
    file("unanchored_tail", chain.bytes());

    let mut chain = Chain::opened();
    chain.intent("call-missing-line").skip(1).close();
    file("missing_line", chain.bytes());

    file("empty_chain", Vec::new());
    files
}

fn sha256(bytes: &[u8]) -> String {
    Digest::<Text>::of(bytes).to_string()
}

/// The Lines of the published Session, in their order.
pub(crate) const GOLDEN: [&str; 12] = [
    "session_open",
    "intent",
    "policy_deny",
    "rate_limit",
    "pending_approval",
    "capability_denied",
    "trap",
    "resource_exceeded",
    "panic",
    "abandoned_session",
    "decision",
    "session_close",
];

const TAMPERED: &[(&str, &str)] = &[
    (
        "bad_signature",
        "4ec4ed9d1f0f5660420bb7a6c159d2ad1e74a3d610e75d29ff47b651de65ef6f",
    ),
    (
        "duplicate_decision",
        "c540dd2d24e9a0ea4c9029176da25243ba18b2007153cdeacea7782432493fa2",
    ),
    (
        "key_id_mismatch",
        "1203110f07fd7defbfb41c317adf6e6793430853b7dc2c368eaa0e5d31418971",
    ),
    (
        "malformed_line",
        "f883a548f70727af3216bceb88b49ac2d5948a5fed5e72d6fe4233694e881c0e",
    ),
    (
        "prev_hash_mismatch",
        "7549abf91aaa30c1ae60b1b9f147ed6499701b7112d0fb1b96c71263ac3da6fb",
    ),
    (
        "seq_out_of_order",
        "0860ca65a286d5b1c018f2e2ea8844a771f00bda8d2a460de6fb4879e72aae1e",
    ),
    (
        "session_boundary_broken",
        "8bb3981cda125f812453895ac0d4e7d7913e5ba74ec18850680b6e32dd23a3dc",
    ),
    (
        "untrusted_key",
        "54cdce648625176ad26f607ce0a3ac255201f1f22bf5745e35da658c3902cfe9",
    ),
];

const INDETERMINATE: &[(&str, &str)] = &[
    (
        "empty_chain",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ),
    (
        "missing_line",
        "91a377a8b95874aa8d6bab0a8049193048e14a98d80ece83250075bd8f57b90a",
    ),
    (
        "reserved_checkpoint",
        "7ead58dbc518434e05978cd1fd330aada826d1cf2cd7dde0b207106593ed4069",
    ),
    (
        "torn_final_line",
        "93c2f979ff97306a2d8e762ddf3f8203bd3008ef0fc6e274b9bc04acbf1ad28e",
    ),
    (
        "unanchored_tail",
        "9f83b7d32a142f944ec02b24635f257ccdee1cc217b0fc597e7547b8720b16b3",
    ),
    (
        "unknown_line_type",
        "65afed7a426399e1b949925eb2e322e8246325cd16884dcf04bef70ac4a0ce92",
    ),
];
