//! Command lines that mean nothing, and `aegis keygen`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use insta::assert_snapshot;

use super::harness::AEGIS;

/// Runs aegis in `dir` and shows how it ended and what it said.
fn shown<S: AsRef<OsStr>>(dir: &Path, args: &[S]) -> String {
    let output = Command::new(AEGIS)
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        // The help, which stands behind every usage error, has its own test.
        let end = text.find("Usage: aegis").unwrap_or(text.len());
        text[..end].replace(dir.to_str().unwrap(), "DIR")
    };
    format!(
        "exit {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr)
    )
}

#[test]
fn a_wrap_that_cannot_be_meant_is_a_usage_error() {
    let dir = tempfile::tempdir().unwrap();
    let full = ["wrap", "--audit", "a", "--signing-key", "k"];
    let mut all = String::new();
    let with = |more: &[&'static str]| [&full[..], more].concat();
    let lines = [
        vec!["wrap"],
        vec!["wrap", "--audit", "a"],
        vec!["wrap", "--audit"],
        vec!["wrap", "--signing-key", "k", "--", "true"],
        full.to_vec(),
        with(&["--"]),
        with(&["true"]),
        with(&["\u{1b}[2J", "--", "true"]),
        with(&["--audit", "b", "--", "true"]),
        with(&["--durability", "none", "--", "true"]),
        with(&["--durability=", "--", "true"]),
        with(&["--max-frame", "1023", "--", "true"]),
        with(&["--max-frame", "-1", "--", "true"]),
        with(&["--max-frame", "1e6", "--", "true"]),
        with(&["--max-frame", "18446744073709551616", "--", "true"]),
        with(&["--no-such-flag", "--", "true"]),
    ];
    for line in lines {
        all.push_str(&format!("$ aegis {}\n", line.join(" ").escape_debug()));
        all.push_str(&shown(dir.path(), &line));
        all.push('\n');
    }
    assert_snapshot!(all);
    // Nothing was begun.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// A build or a system that cannot confine says so, and starts nothing.
#[cfg(not(all(feature = "confine", target_os = "linux")))]
#[test]
fn confinement_is_never_left_out_silently() {
    let dir = tempfile::tempdir().unwrap();
    crate::exe::write_key(&dir.path().join("k"));
    let line = "wrap --audit a --signing-key k --confine --allow-net example.com:443 -- touch ran";
    let said = shown(dir.path(), &line.split(' ').collect::<Vec<_>>());
    let start = "exit 126\n--- stdout\n--- stderr\nerror: cannot confine the server: ";
    assert!(said.starts_with(start), "{said}");
    let made: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(made.len(), 1, "but the key nothing is there");
}

#[test]
fn help_goes_to_standard_output() {
    for verb in ["wrap", "keygen"] {
        let output = Command::new(AEGIS).args([verb, "--help"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(output.stderr, b"");
        let start = format!("Usage: aegis {verb} ");
        assert!(output.stdout.starts_with(start.as_bytes()));
    }
}

#[test]
fn keygen_writes_a_private_key_and_prints_its_public_half() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("new/key");
    let output = shown(dir.path(), &["keygen", "--out", "new/key"]);
    let file = std::fs::read_to_string(&key).unwrap();
    let seed: Vec<u8> = (0..64)
        .step_by(2)
        .map(|at| u8::from_str_radix(&file[at..at + 2], 16).unwrap())
        .collect();
    assert_eq!(file.len(), 65);
    assert!(file.ends_with('\n'));
    let signing = aegis::sign::SigningKey::from_seed(&seed.try_into().unwrap());
    let expected = format!(
        "exit 0\n--- stdout\npublic_key {0}\nkey_id {1}\n--- stderr\nsigning key written to new/key\n\
         pin records from this key with: aegis verify --key {0} <PATH>\n",
        signing.public_key(),
        signing.key_id()
    );
    assert_eq!(output, expected);
    let mode = std::fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
}

/// SPEC [CLI-13].
#[test]
fn keygen_replaces_a_key_only_by_force() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    shown(dir.path(), &["keygen", "--out", "key"]);
    let first = std::fs::read(&key).unwrap();
    assert_snapshot!(shown(dir.path(), &["keygen", "--out", "key"]), @r"
    exit 1
    --- stdout
    --- stderr
    error: signing key key already exists; refusing to overwrite it without --force
    ");
    assert_eq!(std::fs::read(&key).unwrap(), first);
    let forced = shown(dir.path(), &["keygen", "--out", "key", "--force"]);
    assert!(forced.starts_with("exit 0\n"), "{forced}");
    assert_ne!(std::fs::read(&key).unwrap(), first);
}

#[test]
fn keygen_names_the_path_that_it_cannot_write() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    let mut all = String::new();
    let lines: [&[&str]; 6] = [
        &["keygen"],
        &["keygen", "--out"],
        &["keygen", "--out", "file/key"],
        &["keygen", "--out", "folder", "--force"],
        &["keygen", "--out", "a", "--out", "b"],
        &["keygen", "key"],
    ];
    for line in lines {
        all.push_str(&format!("$ aegis {}\n", line.join(" ")));
        all.push_str(&shown(dir.path(), line));
        all.push('\n');
    }
    assert_snapshot!(all);
    let name = OsStr::from_bytes(b"k\xff\x1b");
    let args = [OsStr::new("keygen"), OsStr::new("--out"), name];
    let output = shown(dir.path(), &args);
    assert!(dir.path().join(name).exists());
    assert!(
        output.contains("signing key written to k\\xff\\u{1b}\n"),
        "{output}"
    );
}
