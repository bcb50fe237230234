//! Machines that give no namespaces: one is made by a limit in a user
//! namespace of its own.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::server::{Confined, ask, has_namespaces};

/// The same command where no more namespaces may be made.
fn without_namespaces(confined: &Confined) -> Command {
    let inner = confined.command();
    let script = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["-U", "-r", "sh", "-c", script, "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .envs(
            inner
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .current_dir(confined.home());
    command
}

#[test]
fn denying_all_needs_no_namespace() {
    let Some(confined) = Confined::python(&[]).filter(|_| has_namespaces()) else {
        return;
    };
    let mut session = confined.setup.start_by(without_namespaces(&confined));
    let said = ask(
        &mut session,
        "dial",
        json!({"host": "127.0.0.1", "port": 9}),
    );
    assert!(said.starts_with("PermissionError: "), "{said}");
    let ended = session.finish();
    ended.assert_exit(0);
    let enforced = &ended.record.open()["confinement"];
    assert_eq!(enforced["status"], "full");
    assert_eq!(enforced["network"], "denied-seccomp");
    assert_eq!(enforced["namespaces"], Value::Null);
}

/// SPEC [SANDBOX-2].
#[test]
fn hosts_that_cannot_be_held_to_start_nothing_and_leave_a_record() {
    let flags = ["--allow-net", "127.0.0.1:9"];
    let Some(confined) = Confined::python(&flags).filter(|_| has_namespaces()) else {
        return;
    };
    let mut command = without_namespaces(&confined);
    let ran = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(126), "{said}");
    assert!(
        said.starts_with("error: cannot confine the server: "),
        "{said}"
    );
    assert!(said.contains("--best-effort"), "{said}");
    assert_eq!(said.lines().count(), 1);
    assert!(confined.leftovers().is_empty());

    let record = confined.setup.record();
    record.assert_verified();
    let types: Vec<_> = record.lines.iter().map(|line| &line["line_type"]).collect();
    assert_eq!(types, ["open", "close"]);
    let enforced = &record.open()["confinement"];
    assert_eq!(enforced["status"], "failed");
    let cause = enforced["cause"].as_str().unwrap();
    assert!(said.contains(cause), "{cause}");
}

/// SPEC [SANDBOX-3].
#[test]
fn with_best_effort_ports_are_held_to_and_the_record_says_so() {
    let flags = ["--allow-net", "127.0.0.1:9", "--best-effort"];
    let Some(confined) = Confined::python(&flags).filter(|_| has_namespaces()) else {
        return;
    };
    let mut session = confined.setup.start_by(without_namespaces(&confined));
    let environment = ask(&mut session, "environment", json!({}));
    let environment: Value = serde_json::from_str(&environment).unwrap();
    assert_eq!(environment["HTTP_PROXY"], Value::Null, "there is no proxy");
    let said = ask(
        &mut session,
        "dial",
        json!({"host": "127.0.0.1", "port": 10}),
    );
    assert!(said.starts_with("PermissionError: "), "{said}");
    let ended = session.finish();
    ended.assert_exit(0);
    let enforced = &ended.record.open()["confinement"];
    assert_eq!(enforced["status"], "partial");
    assert_eq!(enforced["network"], "port-only");
    assert_eq!(enforced["hosts"], json!(["*:9"]));
    assert_eq!(enforced["gaps"], json!(["hosts"]));
    assert_eq!(enforced["best_effort"], true);
    assert_eq!(enforced["address_check"], Value::Null);
    assert_eq!(ended.record.close()["egress"], Value::Null);
}
