//! What is found on this machine is what trying it directly finds.

use std::process::{Command, Stdio};
use std::thread;

use aegis::internals::confine::Filters;
use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
};
use serde_json::Value;

use crate::exe::{Aegis, skip};

const AEGIS: &str = env!("CARGO_BIN_EXE_aegis");

/// The object of a run of `command`, and its exit code.
fn asked(command: &mut Command) -> (Value, i32) {
    let ran = command
        .args(["doctor", "--format", "json"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    let object = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (object, ran.status.code().unwrap())
}

/// The only finding with this id.
fn found<'a>(object: &'a Value, id: &str) -> &'a Value {
    let all = object["machine"].as_array().unwrap();
    let mut of_id = all.iter().filter(|finding| finding["id"] == id);
    let only = of_id.next().unwrap_or_else(|| panic!("no {id}"));
    assert!(of_id.next().is_none(), "{id} twice");
    only
}

fn succeeds(command: &mut Command) -> bool {
    command.output().unwrap().status.success()
}

/// Whether the kernel takes a Landlock ruleset with everything that `abi`
/// knows of files.
fn offers(abi: ABI) -> bool {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi));
    ruleset.and_then(Ruleset::create).is_ok()
}

/// SPEC [DOCTOR-1], [DOCTOR-3].
#[test]
fn what_is_found_agrees_with_a_direct_try() {
    let (object, _) = asked(&mut Command::new(AEGIS));
    let status = |id| found(&object, id)["status"].as_str().unwrap().to_owned();

    // Below ABI 3 the fence is refused, up to 5 it has gaps.
    let is_fenced = ["ok", "limited"].contains(&status("landlock").as_str());
    assert_eq!(is_fenced, offers(ABI::V3));
    let ioctls = found(&object, "landlock")["found"].as_str().unwrap();
    assert_eq!(
        offers(ABI::V5),
        !ioctls.contains("device_ioctl") && is_fenced
    );

    let loaded = thread::spawn(|| {
        Filters::narrow()
            .and_then(|filters| filters.apply())
            .is_ok()
    });
    assert_eq!(status("system-calls") == "ok", loaded.join().unwrap());

    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--net", "--ipc", "true"]);
    if Command::new("unshare").arg("--version").output().is_err() {
        return skip("no unshare on this machine");
    }
    assert_eq!(status("user-namespaces") == "ok", succeeds(&mut unshare));
}

/// SPEC [DOCTOR-5], [DOCTOR-7].
#[test]
fn the_exit_code_is_that_of_the_worst_finding() {
    let (object, code) = asked(&mut Command::new(AEGIS));
    assert_eq!(object["schema"], "aegis.doctor.v1");
    assert_eq!(object["exit"], code);
    assert_eq!(object["paths"], serde_json::json!([]));
    let has = |status: &str| {
        let mut all = object["machine"].as_array().unwrap().iter();
        all.any(|finding| finding["status"] == status)
    };
    let expected = match (
        has("missing") || has("unsafe"),
        has("limited") || has("unknown"),
    ) {
        (true, _) => 2,
        (false, true) => 3,
        (false, false) => 0,
    };
    assert_eq!(code, expected);
    for part in [
        "confine",
        "files",
        "system_calls",
        "network",
        "best_effort_network",
    ] {
        assert!(object["verdict"][part].is_string(), "{part}");
    }
}

/// A namespace in which there may be no further one: a real refusal with a
/// real cause.
#[test]
fn a_machine_without_namespaces_left_is_told_from_one_with() {
    let script = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"";
    let mut inner = Command::new("unshare");
    inner.args(["--user", "--map-root-user", "sh", "-c", script, "sh"]);
    let mut control = Command::new("unshare");
    control.args([
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        script,
        "sh",
        "true",
    ]);
    if !control.output().is_ok_and(|ran| ran.status.success()) {
        return skip("this user may not make user namespaces");
    }
    let (object, code) = asked(inner.arg(AEGIS));
    let namespaces = found(&object, "user-namespaces");
    assert_eq!(namespaces["status"], "limited");
    let text = namespaces["found"].as_str().unwrap();
    assert!(text.contains("user.max_user_namespaces = 0"), "{text}");
    let lines = &namespaces["cure"]["lines"];
    assert_eq!(lines[0], "sysctl -w user.max_user_namespaces=15000");
    assert_ne!(code, 0);
    assert_ne!(object["verdict"]["network"], "host-port");
}

/// As in a container or a service whose filters refuse namespaces.
#[test]
fn filters_around_aegis_are_named_as_the_cause() {
    let asking = thread::spawn(|| {
        if let Err(error) = Filters::narrow().and_then(|filters| filters.apply()) {
            skip(&error.to_string());
            return None;
        }
        Some(asked(&mut Command::new(AEGIS)))
    });
    let Some((object, code)) = asking.join().unwrap() else {
        return;
    };
    let namespaces = found(&object, "user-namespaces");
    assert_eq!(namespaces["status"], "limited");
    let text = namespaces["found"].as_str().unwrap();
    assert!(text.contains("system call filters"), "{text}");
    let surroundings = found(&object, "surroundings")["found"].as_str().unwrap();
    assert!(surroundings.contains("no_new_privs"), "{surroundings}");
    assert_ne!(code, 0);
    assert_eq!(found(&object, "system-calls")["status"], "ok");
}

/// SPEC [DOCTOR-6]: and the same findings.
#[test]
fn the_text_form_fits_a_terminal() {
    let ran = Aegis::new().arg("doctor").run();
    assert_eq!(ran.stderr, "");
    let (object, code) = asked(&mut Command::new(AEGIS));
    assert_eq!(ran.code(), code);
    for finding in object["machine"].as_array().unwrap() {
        let (id, status) = (finding["id"].as_str(), finding["status"].as_str());
        let row = format!("  {:<9}{}: ", status.unwrap(), id.unwrap());
        assert!(ran.stdout.contains(&row), "{row}");
    }
    let is_long = |line: &&str| line.chars().count() > 80 && line.contains(' ');
    let long: Vec<_> = ran.stdout.lines().filter(is_long).collect();
    let cures: Vec<_> = object["machine"].as_array().unwrap().iter().collect();
    let cures = serde_json::to_string(&cures).unwrap();
    assert!(
        long.iter().all(|line| cures.contains(line.trim())),
        "{long:?}"
    );
}

#[test]
fn a_result_that_cannot_be_printed_is_no_result() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let ran = Command::new(AEGIS)
        .arg("doctor")
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ran.stderr).starts_with("error: write standard output"));
}

/// It restricts itself only, and says so in one row.
#[test]
fn the_hidden_verb_run_by_hand_answers_and_ends() {
    let ran = Aegis::new().arg("__doctor-probe").run();
    assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""));
    assert_eq!(ran.stdout.lines().count(), 1);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(
        answer == "given" || answer["refused"]["step"].is_string(),
        "{answer}"
    );
}

/// SPEC [DOCTOR-6].
#[test]
fn odd_command_lines() {
    for (name, args) in [
        ("help", &["--help"][..]),
        ("stray", &["x\u{1b}[2K"]),
        ("audit_stdin", &["--audit", "-"]),
        ("format", &["--format", "xml"]),
        ("twice", &["--policy", "a", "--policy", "b"]),
        ("unknown", &["--sandbox"]),
    ] {
        let ran = Aegis::new().arg("doctor").args(args).run();
        insta::assert_snapshot!(name, ran.shown());
    }
}
