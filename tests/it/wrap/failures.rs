//! What cannot be started, and what cannot be recorded.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::harness::{Ended, Setup, call, is_alive, sha256, until};
use super::record::Record;

/// Asserts that there was no child, and that the record says so.
fn assert_not_spawned(program: &str) -> Ended {
    let setup = Setup::command(&[program, "argument"]);
    let ended = setup.start().wait();
    ended.assert_exit(1);
    ended.record.assert_verified();
    let types: Vec<_> = ended.record.lines.iter().map(|l| &l["line_type"]).collect();
    assert_eq!(types, ["open", "close"]);
    assert_eq!(ended.record.open()["child"]["program"], program);
    let start = format!("error: could not spawn child `{program}`: ");
    assert!(ended.stderr.starts_with(&start), "{}", ended.stderr);
    ended
}

#[test]
fn a_program_that_is_not_found_names_the_path_that_was_searched() {
    let ended = assert_not_spawned("no-such-program-anywhere");
    let path = std::env::var("PATH").unwrap();
    let searched = format!("\nPATH was searched: {path}\n");
    assert!(ended.stderr.contains(&searched), "{}", ended.stderr);

    let ended = assert_not_spawned("/nonexistent/program");
    assert!(!ended.stderr.contains("PATH was searched"));
}

#[test]
fn a_file_that_is_not_executable_and_a_directory_are_no_programs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "text").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    assert_not_spawned(file.to_str().unwrap());
    assert_not_spawned(dir.path().to_str().unwrap());
}

#[test]
fn a_key_that_is_missing_starts_nothing() {
    let setup = Setup::server(&[]).with_ledger();
    std::fs::remove_file(setup.dir.path().join("key")).unwrap();
    let output = setup.pipe(b"");
    assert_eq!(output.status.code(), Some(1));
    let key = setup.dir.path().join("key");
    let expected = format!(
        "error: wrap audit failed: no signing key at {0}; generate one with `aegis keygen --out {0}`\n",
        key.display()
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    assert!(!setup.audit().exists());
}

/// SPEC [CHAIN-8] [CLI-16].
#[test]
fn a_full_disk_ends_the_session_before_anything_unrecorded_goes_on() {
    for durability in ["intent", "full", "process"] {
        let setup = Setup::server(&["--spawn-grandchild", "600"])
            .with_ledger()
            .with(&["--durability", durability]);
        let (code, stderr, server) = with_full_disk(&setup, 64);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(
            stderr.contains("wrap audit failed: audit write failed: "),
            "{stderr}"
        );
        assert!(!is_alive(&server), "the grandchild lives on");

        let record = setup.record();
        assert_eq!(record.of_type("close").count(), 0);
        assert_eq!(
            record.report.verdict.exit_code(),
            3,
            "{}",
            record.report.verdict
        );
        assert_relayed_calls_have_intents(&setup, &record);
    }
}

fn assert_relayed_calls_have_intents(setup: &Setup, record: &Record) {
    let effects = setup.effects();
    assert!(!effects.is_empty());
    for effect in effects {
        let id: u64 = effect
            .strip_prefix("effect echo ")
            .unwrap()
            .parse()
            .unwrap();
        let frame = call(id, "echo", json!({"text": "a"})).to_string();
        let digest = sha256(frame.as_bytes());
        let mut intents = record.intents();
        assert!(
            intents.any(|line| line["request_digest"] == digest),
            "{effect}"
        );
    }
}

/// Runs a session under a limit for the size of files, and calls until its
/// end. Gives the exit code, standard error, and the grandchild.
fn with_full_disk(setup: &Setup, limit_kib: u64) -> (Option<i32>, String, String) {
    // The blocks of `ulimit -f` are of 512 or 1024 bytes, as the shell has it.
    let script = format!("trap '' XFSZ; ulimit -f {limit_kib}; exec \"$@\"");
    let mut argv: Vec<OsString> = vec!["-c".into(), script.into(), "sh".into()];
    argv.extend(setup.argv());
    let stderr = setup.dir.path().join("stderr");
    let mut child = Command::new("sh")
        .args(&argv)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&stderr).unwrap())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for id in 0u64.. {
        let frame = format!("{}\n", call(id, "echo", json!({"text": "a"})));
        if std::io::Write::write_all(&mut input, frame.as_bytes()).is_err() {
            break;
        }
        if id == 0 {
            until("the first effect", || !setup.effects().is_empty());
        }
    }
    let status = child.wait().unwrap();
    let stderr = read(&stderr);
    let grandchild = stderr.lines().find_map(|l| l.strip_prefix("grandchild "));
    let grandchild = grandchild.unwrap().to_owned();
    (status.code(), stderr, grandchild)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
