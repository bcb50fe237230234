//! `aegis policy hash`, and `aegis policy` itself.

use sha2::{Digest as _, Sha256};

use super::{policy, with_policy};
use crate::exe::Aegis;

const DOCUMENT: &str =
    "rules:\n  - {id: deny-echo, action: deny, tool: echo, role: '*', reason: quickstart}\n";

/// SPEC [CLI-24] [CLI-25].
#[test]
fn the_hash_and_what_it_is_of() {
    let dir = with_policy(DOCUMENT);
    let run = |args: &[&str]| {
        policy(dir.path(), "hash")
            .args(args)
            .arg("policy.yaml")
            .run()
    };
    let hash = run(&[]);
    assert_eq!(
        hash.stdout,
        "1a949e9677a4529dd662eb1a1ecc0a001fe097800a3a41578ba801062893fd41\n"
    );
    let projection = run(&["--projection"]).stdout;
    let digest: String = Sha256::digest(projection.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(hash.stdout.trim_end(), digest);

    let mut shown = hash.shown();
    shown += &run(&["--projection"]).shown();
    shown += &run(&["--format", "json"]).shown();
    shown += &run(&["--format=json", "--projection"]).shown();
    insta::assert_snapshot!("policy_hash", shown);
}

/// SPEC [CLI-17].
#[test]
fn usage() {
    let dir = with_policy(DOCUMENT);
    let mut shown = String::new();
    for args in [
        &[][..],
        &["--help"],
        &["help"],
        &["--help", "x"],
        &["lint", "policy.yaml"],
        &["check", "--help"],
        &["explain", "--help"],
        &["hash", "--help"],
    ] {
        shown += &Aegis::new()
            .arg("policy")
            .args(args)
            .dir(dir.path())
            .run()
            .shown();
    }
    insta::assert_snapshot!("policy_usage", shown);
    let mut shown = String::new();
    for args in [
        &["hash"][..],
        &["hash", "a", "b"],
        &["hash", "-"],
        &["hash", "--format", "xml", "missing"],
        &["check", "--for", "verify", "missing"],
        &["check", "--for", "wrap", "--for", "run", "missing"],
        &["check", "--against", "-", "--against", "-", "missing"],
        &["explain", "missing"],
        &["explain", "--tool", "a", "--tool", "b", "missing"],
    ] {
        let ran = Aegis::new().arg("policy").args(args).dir(dir.path()).run();
        assert_eq!(ran.code(), 1, "{}", ran.shown());
        assert_eq!(ran.stdout, "", "{}", ran.shown());
        let first = ran
            .stderr
            .lines()
            .take_while(|line| !line.starts_with("Usage"));
        shown += &format!(
            "{}\n    {}\n",
            args.join(" "),
            first.collect::<Vec<_>>().join("\n    ")
        );
    }
    insta::assert_snapshot!("policy_usage_errors", shown);
}
