//! `aegis verify` as a person or a script meets it (SPEC §14): arguments,
//! outputs, exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use aegis::wire::digest::{self, Digest};
use serde_json::Value;
use tempfile::TempDir;

use crate::assemble::{Chain, foreign_key};
use crate::exe::Aegis;

/// A folder with a Verified, a Tampered and an Indeterminate record.
fn folder() -> TempDir {
    let dir = TempDir::new().expect("a folder");
    let write =
        |name: &str, bytes: Vec<u8>| fs::write(dir.path().join(name), bytes).expect("writable");
    let good = Chain::session("a");
    write("good.aarl", good.bytes());
    let mut bad = Chain::session("b");
    bad.rows.remove(1);
    write("bad.aarl", bad.bytes());
    let mut open = Chain::opened();
    open.intent("c").intent("d\u{1b}[2J");
    write("open.aarl", open.bytes());
    let mut two = Chain::session("a");
    two.key = foreign_key();
    write("two.aarl", two.open().call("b").close().bytes());
    dir
}

macro_rules! snapshot {
    ($name:expr, $aegis:expr) => {
        insta::assert_snapshot!($name, $aegis.run().shown());
    };
}

/// [CLI-2]: found before anything is read.
#[test]
fn usage_errors() {
    let dir = folder();
    let key = "0".repeat(63);
    let upper = "A".repeat(64);
    for (name, args) in [
        ("usage_no_path", &[][..]),
        ("usage_unknown_option", &["--frobnicate", "good.aarl"]),
        ("usage_short_option", &["-k", "good.aarl"]),
        ("usage_key_short", &["--key", &key, "missing.aarl"]),
        ("usage_key_upper_case", &["--key", &upper, "missing.aarl"]),
        ("usage_key_without_value", &["good.aarl", "--key"]),
        (
            "usage_expect_head",
            &["--expect-head", "x\u{1b}", "good.aarl"],
        ),
        (
            "usage_expect_head_twice",
            &["--expect-head", &key, "--expect-head", &key, "good.aarl"],
        ),
        ("usage_format", &["--format", "xml", "good.aarl"]),
        (
            "usage_format_twice",
            &["--format", "json", "--format", "json", "good.aarl"],
        ),
        (
            "usage_trust_store_twice",
            &["--trust-store", "a", "--trust-store", "b", "good.aarl"],
        ),
        ("usage_threads_0", &["--threads", "0", "good.aarl"]),
        ("usage_threads_257", &["--threads", "257", "good.aarl"]),
        ("usage_threads_word", &["--threads", "many", "good.aarl"]),
        ("usage_stdin_twice", &["-", "good.aarl", "-"]),
    ] {
        let ran = Aegis::verify().dir(dir.path()).args(args).run();
        assert_eq!(ran.code(), 1, "{name}");
        assert_eq!(ran.stdout, "", "{name}");
        assert!(ran.stderr.starts_with("error: "), "{name}: {}", ran.stderr);
        let (first, rest) = ran
            .stderr
            .split_once("Usage: ")
            .expect("the usage behind the error");
        assert!(rest.starts_with("aegis verify "), "{name}");
        insta::assert_snapshot!(name, first.trim_end());
    }
    snapshot!("help", Aegis::verify().arg("--help"));
}

/// SPEC [CLI-3] [CLI-5] [CLI-6] [CLI-10] [CLI-11] [CLI-12].
#[test]
fn records_by_name() {
    let dir = folder();
    for (name, args) in [
        ("good", &["good.aarl"][..]),
        ("bad", &["bad.aarl"]),
        ("open", &["open.aarl"]),
        (
            "several",
            &["two.aarl", "open.aarl", "good.aarl", "bad.aarl"],
        ),
        ("several_good", &["two.aarl", "good.aarl"]),
        ("same_twice", &["good.aarl", "good.aarl"]),
        ("missing", &["missing.aarl"]),
        (
            "missing_and_bad",
            &["bad.aarl", "missing.aarl", "open.aarl"],
        ),
        ("missing_and_open", &["missing.aarl", "open.aarl"]),
        ("json_good", &["--format", "json", "good.aarl"]),
        (
            "json_several",
            &[
                "--format=json",
                "two.aarl",
                "open.aarl",
                "bad.aarl",
                "missing.aarl",
            ],
        ),
        ("behind_dashes", &["--", "good.aarl"]),
        ("threads", &["--threads", "256", "good.aarl"]),
    ] {
        snapshot!(name, Aegis::verify().dir(dir.path()).args(args));
    }
    let good = Chain::session("a").bytes();
    snapshot!("stdin", Aegis::verify().arg("-").stdin(&good));
    snapshot!("stdin_empty", Aegis::verify().arg("-"));
    snapshot!(
        "stdin_among_files",
        Aegis::verify()
            .dir(dir.path())
            .args(["-", "bad.aarl"])
            .stdin(&good)
    );
    snapshot!(
        "stdin_json",
        Aegis::verify().args(["--format", "json", "-"]).stdin(&good)
    );
}

/// What programs read.
#[test]
fn json_says_what_the_text_says() {
    let dir = folder();
    for name in ["good.aarl", "bad.aarl", "open.aarl", "two.aarl"] {
        let text = Aegis::verify().dir(dir.path()).arg(name).run();
        let json = Aegis::verify()
            .dir(dir.path())
            .args(["--format", "json", name])
            .run();
        assert_eq!(json.code(), text.code());
        let object: Value = serde_json::from_str(&json.stdout).expect("one object");
        assert_eq!(object["schema"], "aegis.verify.v1");
        assert_eq!(
            object["label"],
            text.stdout.lines().next().expect("a label")
        );
        assert_eq!(object["exit"], text.code());
        assert_eq!(object["input"], name);
        if let Some(reason) = object.get("reason") {
            let label = object["label"].as_str().expect("a label");
            let (_, rest) = label.split_once(": ").expect("a reason");
            assert_eq!(reason["text"], rest);
        }
    }
}

/// SPEC [CLI-1] [CLI-7] [KEY-8] [KEY-13].
#[test]
fn pins() {
    let dir = folder();
    let dev = Chain::new().key.public_key().to_string();
    let foreign = foreign_key().public_key().to_string();
    let store = |name: &str, text: &[u8]| fs::write(dir.path().join(name), text).expect("writable");
    store(
        "both",
        format!("# ours\r\n\n  {dev}\t\r\n{foreign}").as_bytes(),
    );
    store("empty", b"# nobody\n\n");
    store(
        "upper",
        format!("{dev}\n{}\n", foreign.to_uppercase()).as_bytes(),
    );
    store("commented", format!("{dev} # ours\n").as_bytes());
    store("bom", format!("\u{feff}{dev}\n").as_bytes());
    store("no-break", format!("\u{a0}{dev}\n").as_bytes());
    store("latin1", b"# caf\xe9\n");
    for (name, args) in [
        ("pin_good", &["--key", &dev, "good.aarl"][..]),
        ("pin_joined", &["--key", &dev, "--", "good.aarl"]),
        ("pin_other", &["--key", &foreign, "good.aarl"]),
        (
            "pin_both_keys",
            &["--key", &foreign, "--key", &dev, "two.aarl"],
        ),
        ("pin_first_key_only", &["--key", &dev, "two.aarl"]),
        ("store_both", &["--trust-store", "both", "two.aarl"]),
        (
            "store_and_key",
            &["--trust-store", "empty", "--key", &dev, "good.aarl"],
        ),
        ("store_empty", &["--trust-store", "empty", "good.aarl"]),
        (
            "store_empty_json",
            &["--trust-store", "empty", "--format", "json", "good.aarl"],
        ),
        ("store_upper", &["--trust-store", "upper", "good.aarl"]),
        (
            "store_commented",
            &["--trust-store", "commented", "good.aarl"],
        ),
        ("store_bom", &["--trust-store", "bom", "good.aarl"]),
        (
            "store_no_break_space",
            &["--trust-store", "no-break", "good.aarl"],
        ),
        ("store_missing", &["--trust-store", "missing", "good.aarl"]),
        ("store_directory", &["--trust-store", ".", "good.aarl"]),
        ("store_not_utf8", &["--trust-store", "latin1", "good.aarl"]),
    ] {
        snapshot!(name, Aegis::verify().dir(dir.path()).args(args));
    }
}

/// SPEC [VERIFY-36] [VERIFY-48] [VERIFY-62], and one finding for all inputs.
#[test]
fn expected_heads() {
    let dir = folder();
    let good = Chain::session("a");
    let head = good.tail.to_string();
    let inside = good.hash(1).to_string();
    let elsewhere = Digest::<digest::Line>::of(b"elsewhere").to_string();
    let deep = format!("{{\"a\":{}", "[".repeat(100));
    fs::write(dir.path().join("deep.aarl"), deep).expect("writable");
    for (name, args) in [
        ("head_last", &[&*head, "good.aarl"][..]),
        ("head_inside", &[&inside, "good.aarl"]),
        ("head_absent", &[&elsewhere, "good.aarl"]),
        ("head_absent_of_open", &[&elsewhere, "open.aarl"]),
        ("head_absent_of_bad", &[&elsewhere, "bad.aarl"]),
        ("head_behind_a_limit", &[&elsewhere, "deep.aarl"]),
        ("head_in_one_of_several", &[&head, "two.aarl", "good.aarl"]),
        (
            "head_in_none_of_several",
            &[&elsewhere, "two.aarl", "good.aarl"],
        ),
        (
            "head_unknown_with_unreadable",
            &[&elsewhere, "missing.aarl", "good.aarl"],
        ),
        (
            "head_unknown_with_limit",
            &[&elsewhere, "deep.aarl", "good.aarl"],
        ),
        (
            "head_in_none_json",
            &[&elsewhere, "--format", "json", "two.aarl", "good.aarl"],
        ),
    ] {
        snapshot!(
            name,
            Aegis::verify()
                .dir(dir.path())
                .arg("--expect-head")
                .args(args)
        );
    }
}

/// A reader that has seen enough, and one that is full: [CLI-9].
#[test]
#[cfg(target_os = "linux")]
fn outputs_that_fail() {
    let dir = folder();
    for (name, code) in [("good.aarl", 0), ("bad.aarl", 1), ("open.aarl", 3)] {
        let mut child = verify(dir.path(), name)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("aegis starts");
        drop(child.stdout.take());
        let ended = child.wait_with_output().expect("aegis ends");
        assert_eq!(ended.status.code(), Some(code), "{name}");
        assert!(
            !String::from_utf8_lossy(&ended.stderr).contains("error"),
            "{name}"
        );
    }
    // The verdict of 1 outranks the failure, as it outranks an unreadable file.
    for (name, code) in [("good.aarl", 2), ("bad.aarl", 1), ("open.aarl", 2)] {
        let full = fs::File::options()
            .write(true)
            .open("/dev/full")
            .expect("a full device");
        let ended = verify(dir.path(), name)
            .stdout(full)
            .output()
            .expect("aegis runs");
        assert_eq!(ended.status.code(), Some(code), "{name}");
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(
            told.contains("error: write standard output: No space left"),
            "{told}"
        );
    }
}

#[cfg(target_os = "linux")]
fn verify(dir: &Path, name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aegis"));
    command
        .current_dir(dir)
        .args(["verify", name])
        .stdin(Stdio::null());
    command
}

#[test]
fn the_command_itself() {
    for (name, args) in [
        ("aegis_nothing", &[][..]),
        ("aegis_help", &["--help"]),
        ("aegis_unknown", &["verfiy\u{1b}"]),
    ] {
        insta::with_settings!({filters => vec![(r"aegis \d+\.\d+\.\d+", "aegis [version]")]}, {
            snapshot!(name, Aegis::new().args(args));
        });
    }
    let version = Aegis::new().arg("--version").run();
    assert_eq!(
        version.stdout,
        format!("aegis {}\n", env!("CARGO_PKG_VERSION"))
    );
}
