//! `aegis policy check`.

use std::fs;

use super::{policy, with_policy};

const DOCUMENT: &str = "\
rules:
  - { id: net, action: deny, capability: net }
  - { id: exec, action: deny, tool: exec }
  - { id: exec-slowly, action: rate_limit, tool: exec, role: admin, rate: { max: 1, per_seconds: 1 } }
  - { id: read, action: allow, tool: Read_File, limits: { max_wall_ms: 5000 } }
  - { id: read-again, action: pending_approval, tool: Read_File }
  - { id: fs, action: deny, tool: \"fs_*\" }
  - { id: much, action: rate_limit, tool: \"much \", rate: { max: 4294967295, per_seconds: 1 } }
  - { id: long, action: rate_limit, tool: long, rate: { max: 1, per_seconds: 18446744073709551615 } }
";

/// A record of Calls of these tools, as far as their names go.
fn record(tools: &[&str]) -> String {
    let mut rows = "{\"line_type\":\"open\",\"seq\":0}\n".to_owned();
    for tool in tools {
        rows += &format!("{{\"line_type\":\"intent\",\"tool_id\":\"{tool}\"}}\n");
        rows += &format!("{{\"line_type\":\"outcome\",\"tool_id\":\"{tool}\"}}\n");
    }
    rows
}

/// SPEC [CLI-17] [CLI-18] [CLI-19] [CLI-26].
#[test]
fn findings() {
    let dir = with_policy(DOCUMENT);
    let mut shown = String::new();
    for args in [
        &[][..],
        &["--for", "wrap"],
        &["--for", "mcp", "--format", "json"],
    ] {
        shown += &policy(dir.path(), "check")
            .args(args)
            .arg("policy.yaml")
            .run()
            .shown();
    }
    insta::assert_snapshot!("policy_check", shown);
}

/// SPEC [CLI-17].
#[test]
fn no_findings() {
    let document = "default: deny\nrules:\n  - {id: a, action: allow, tool: read_file}\n";
    let dir = with_policy(document);
    let mut shown = String::new();
    for args in [&[][..], &["--format", "json", "--for", "run"]] {
        shown += &policy(dir.path(), "check")
            .args(args)
            .arg("policy.yaml")
            .run()
            .shown();
    }
    insta::assert_snapshot!("policy_check_clean", shown);
}

/// SPEC [CLI-20] [CLI-26].
#[test]
fn names_against_records() {
    let dir = with_policy(
        "default: deny\nrules:\n\
         - {id: seen, action: allow, tool: read_file}\n\
         - {id: near, action: deny, tool: write-file}\n\
         - {id: unseen, action: deny, tool: exfil}\n",
    );
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("audit")).unwrap();
    fs::write(at("audit/a.aarl"), record(&["read_file"])).unwrap();
    fs::write(at("audit/b.aarl"), record(&["write_file", "<unreadable>"])).unwrap();
    fs::write(at("near.aarl"), record(&["write-file"])).unwrap();
    fs::write(at("empty.aarl"), record(&[])).unwrap();
    fs::write(at("torn.aarl"), record(&["exfil"]) + "{\"line_ty").unwrap();
    fs::write(at("not.aarl"), record(&["x"]) + "default: deny\n").unwrap();
    let mut shown = String::new();
    for args in [
        &["--against", "audit"][..],
        &["--against", "audit", "--format", "json"],
        &["--against", "near.aarl"],
        &["--against", "audit/b.aarl", "--against", "torn.aarl"],
        &["--against", "empty.aarl"],
        &["--against", "not.aarl"],
        &["--against", "missing.aarl"],
        &["--against", "missing.aarl", "--format", "json"],
    ] {
        shown += &policy(dir.path(), "check")
            .args(args)
            .arg("policy.yaml")
            .run()
            .shown();
    }
    let piped = policy(dir.path(), "check").args(["--against", "-", "policy.yaml"]);
    shown += &piped.stdin(record(&["exfil"]).as_bytes()).run().shown();
    insta::assert_snapshot!("policy_check_against", shown);
}
