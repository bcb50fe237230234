//! `aegis policy explain`.

use super::{policy, with_policy};

const DOCUMENT: &str = "\
version: 1
default: deny
rules:
  - id: read
    action: allow
    tool: read_file
    limits: { max_wall_ms: 5000, max_output_bytes: 65536 }
  - id: read-twice
    action: pending_approval
    tool: read_file
  - { id: no-exec, action: deny, tool: exec, reason: \"exec is off here\" }
  - { id: admin, action: allow, tool: exec, role: admin, priority: 9 }
  - { id: search, action: rate_limit, tool: search, rate: { max: 100, per_seconds: 60 } }
  - { id: pay, action: pending_approval, tool: pay, capability: money }
  - { id: \"bad\\eid\", action: deny, tool: odd }
";

/// SPEC [CLI-21] [CLI-22] [CLI-23].
#[test]
fn verdicts_explained() {
    let dir = with_policy(DOCUMENT);
    let mut shown = String::new();
    for (args, exit) in [
        (&["--tool", "read_file"][..], 0),
        (&["--tool", "exec", "--role", "admin"], 1),
        (&["--tool", "search"], 3),
        (&["--tool", "pay", "--capability", "money"], 1),
        (&["--tool", "pay"], 1),
        (&["--tool", ""], 1),
        (&["--tool", "odd"], 1),
    ] {
        for format in ["text", "json"] {
            let run = policy(dir.path(), "explain").args(args);
            let ran = run.args(["--format", format, "policy.yaml"]).run();
            assert_eq!(ran.code(), exit, "{}", ran.shown());
            shown += &ran.shown();
        }
    }
    insta::assert_snapshot!("policy_explain", shown);
}

/// SPEC [CLI-21].
#[test]
fn without_rules_the_default_decides() {
    let dir = with_policy("rules: []\n");
    let run = policy(dir.path(), "explain").args(["--tool", "any", "policy.yaml"]);
    insta::assert_snapshot!(run.run().shown(), @r#"
    $ aegis "policy" "explain" "--tool" "any" "policy.yaml"
    --- stdout
    verdict allowed
    why no rule matches, and without `default` it is allow
    policy_set_hash 5ecac5407c3aefb658f4f734d7f787302004848dcab8e28a22b947a859499c20
    --- stderr
    --- exit 0
    "#);
}

/// SPEC [CLI-23]: at the bound, and one past it.
#[test]
fn so_many_rules_are_shown() {
    for (count, more) in [(100, ""), (101, "match 1 more\n")] {
        let rules: String = (0..count)
            .map(|n| format!("- {{id: r{n}, action: deny}}\n"))
            .collect();
        let dir = with_policy(format!("rules:\n{rules}"));
        let ran = policy(dir.path(), "explain")
            .args(["--tool", "t", "policy.yaml"])
            .run();
        assert_eq!(ran.stdout.matches("match policy.yaml:").count(), 100);
        assert!(
            ran.stdout.ends_with(&format!("priority 0\n{more}")),
            "{}",
            ran.stdout
        );
    }
}
