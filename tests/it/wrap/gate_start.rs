//! `--policy`: what does not begin at all.

use std::process::Command;

use insta::assert_snapshot;

use super::gate::{DENY_ECHO, behind, gated};
use super::harness::{AEGIS, Setup};

/// SPEC [WRAP-11]: the key is missing as well, and is not asked for.
#[test]
fn without_a_policy_to_judge_by_nothing_begins() {
    let pinned = "5ecac5407c3aefb658f4f734d7f787302004848dcab8e28a22b947a859499c20";
    let many = format!("rules: [{}]", "{id: x, action: deny}, ".repeat(2));
    let inert = "rules:\n- id: net\n  action: deny\n  capability: net\n";
    let cases: [(&[u8], &[&str]); 9] = [
        (b"", &[]),
        (b"version: 2", &[]),
        (b"default: perhaps", &[]),
        (b"rules: [{id: x, action: deny", &[]),
        (b"\xff", &[]),
        (many.as_bytes(), &[]),
        (DENY_ECHO.as_bytes(), &["--policy-hash", pinned]),
        (inert.as_bytes(), &[]),
        (inert.as_bytes(), &["--shadow"]),
    ];
    let mut all = String::new();
    for (document, flags) in cases {
        let setup = behind(Setup::server(&[]), "", flags).with_ledger();
        let path = setup.dir.path().join("policy.yaml");
        std::fs::write(&path, document).unwrap();
        std::fs::remove_file(setup.dir.path().join("key")).unwrap();
        let output = setup.pipe(b"");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(output.stdout, b"");
        assert!(!setup.audit().exists());
        let dir = setup.dir.path().to_str().unwrap();
        all.push_str(&format!(
            "$ {} {}\n{}\n",
            document.escape_ascii(),
            flags.join(" "),
            stderr.replace(dir, "DIR")
        ));
    }
    assert_snapshot!(all);
}

/// SPEC [WRAP-11].
#[test]
fn a_policy_is_a_regular_file() {
    let setup = Setup::server(&[]);
    for path in ["/nonexistent/policy", "/dev/null", "/proc"] {
        let setup = Setup::server(&[]).with(&["--policy", path]);
        let output = setup.pipe(b"");
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8(output.stderr).unwrap();
        let start = format!("error: could not load policy `{path}`: ");
        assert!(stderr.starts_with(&start), "{stderr}");
        assert!(!setup.audit().exists());
    }
    // Nobody writes to it, so opening it would wait for ever.
    let fifo = setup.dir.path().join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let setup = setup.with(&["--policy", fifo.to_str().unwrap()]);
    assert_eq!(setup.pipe(b"").status.code(), Some(1));
    assert!(!setup.audit().exists());
}

/// SPEC [WRAP-11].
#[test]
fn rules_that_can_never_match_are_borne_when_asked() {
    let inert = "rules: [{id: net, action: deny, capability: net}]";
    let setup = gated(inert, &["--allow-inert-rules"]);
    assert_eq!(setup.pipe(b"").status.code(), Some(0));
    setup.record().assert_verified();
    let allows = "rules: [{id: net, action: allow, capability: net}]";
    assert_eq!(gated(allows, &[]).pipe(b"").status.code(), Some(0));
}

#[test]
fn options_of_a_policy_that_cannot_be_meant_are_usage_errors() {
    let dir = tempfile::tempdir().unwrap();
    let hash = "5ecac5407c3aefb658f4f734d7f787302004848dcab8e28a22b947a859499c20";
    let upper = hash.to_uppercase();
    let lines: [&[&str]; 22] = [
        &["--shadow"],
        &["--hide-denied"],
        &["--deny-detail"],
        &["--deny-code", "-1"],
        &["--policy-hash", hash],
        &["--no-reload"],
        &["--allow-inert-rules"],
        &["--policy"],
        &["--policy", "-"],
        &["--policy", "a", "--policy", "b"],
        &["--policy", "a", "--shadow", "--hide-denied"],
        &["--policy", "a", "--deny-code", "-32700"],
        &["--policy", "a", "--deny-code", "-32600"],
        &["--policy", "a", "--deny-code", "-32603"],
        &["--policy", "a", "--deny-code", "2147483648"],
        &["--policy", "a", "--deny-code", "-2147483649"],
        &["--policy", "a", "--deny-code", "1.0"],
        &["--policy", "a", "--deny-code", ""],
        &["--policy", "a", "--policy-hash", &hash[1..]],
        &["--policy", "a", "--policy-hash", &upper],
        &["--policy", "a", "--deny-code", "1", "--deny-code", "2"],
        &["--policy", "a", "--shadow", "--shadow"],
    ];
    let mut all = String::new();
    for line in lines {
        let output = Command::new(AEGIS)
            .current_dir(dir.path())
            .args(["wrap", "--audit", "a", "--signing-key", "k"])
            .args(line)
            .args(["--", "true"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{line:?}");
        assert_eq!(output.stdout, b"");
        let stderr = String::from_utf8(output.stderr).unwrap();
        let first = stderr.split("Usage: aegis").next().unwrap();
        all.push_str(&format!("$ {}\n{first}\n", line.join(" ")));
    }
    assert_snapshot!(all);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// SPEC [WRAP-6]: next to those that are refused.
#[test]
fn codes_at_the_bounds_are_taken() {
    for code in [
        "-32699",
        "-32701",
        "-32599",
        "-32604",
        "-2147483648",
        "2147483647",
        "0",
    ] {
        let setup = gated("default: deny", &["--deny-code", code, "--no-reload"]);
        let output =
            setup.pipe(b"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}\n");
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said["error"]["code"].to_string(), code);
    }
}
