//! The files that a record rests on.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use crate::exe::{Aegis, write_key};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The statuses of the findings of `paths` with this id.
fn statuses(object: &Value, id: &str) -> Vec<String> {
    let all = object["paths"].as_array().unwrap().iter();
    let of_id = all.filter(|finding| finding["id"] == id);
    of_id
        .map(|finding| finding["status"].as_str().unwrap().to_owned())
        .collect()
}

fn asked(dir: &Path, args: &[&str]) -> (Value, i32) {
    let ran = Aegis::new()
        .dir(dir)
        .args(["doctor", "--format", "json"])
        .args(args)
        .run();
    (serde_json::from_str(&ran.stdout).unwrap(), ran.code())
}

/// SPEC [DOCTOR-4], [DOCTOR-5].
#[test]
fn a_key_that_others_can_read_is_unsafe() {
    let dir = tempfile::tempdir().unwrap();
    write_key(&dir.path().join("key"));
    let (sound, _) = asked(dir.path(), &["--signing-key", "key"]);
    assert_eq!(statuses(&sound, "signing-key"), ["ok"]);
    assert_eq!(statuses(&sound, "audit"), [""; 0]);
    set_mode(&dir.path().join("key"), 0o644);
    let (exposed, code) = asked(dir.path(), &["--signing-key", "key"]);
    assert_eq!(statuses(&exposed, "signing-key"), ["unsafe"]);
    assert_eq!((code, &exposed["exit"]), (2, &Value::from(2)));
}

/// SPEC [DOCTOR-1]: not even what `wrap` would make.
#[test]
fn what_is_looked_at_stays_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    write_key(&dir.path().join("key"));
    fs::write(dir.path().join("policy"), "version: 1\nrules: []\n").unwrap();
    let listed = || {
        let mut all: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let metadata = entry.metadata().unwrap();
                (
                    entry.file_name(),
                    metadata.permissions().mode(),
                    metadata.modified().unwrap(),
                )
            })
            .collect();
        all.sort();
        all
    };
    let before = listed();
    let args = [
        "--signing-key",
        "key",
        "--audit",
        "new/",
        "--policy",
        "policy",
    ];
    let (object, _) = asked(dir.path(), &args);
    assert_eq!(listed(), before);
    assert_eq!(statuses(&object, "audit"), ["ok"]);
    assert_eq!(statuses(&object, "policy")[0], "ok");
}

/// SPEC [DOCTOR-6]: text is escaped, and a path to be typed is quoted.
#[test]
fn a_hostile_name_is_shown_and_quoted() {
    let dir = tempfile::tempdir().unwrap();
    let name = "k\u{1b}[2K'; rm x";
    let path = dir.path().join(name);
    write_key(&path);
    set_mode(&path, 0o644);
    let ran = Aegis::new()
        .dir(dir.path())
        .args(["doctor", "--signing-key", name])
        .run();
    assert!(!ran.stdout.contains('\u{1b}'));
    assert!(
        ran.stdout.contains("k\\u{1b}[2K'; rm x is readable"),
        "{}",
        ran.stdout
    );
    let cure = ran
        .stdout
        .lines()
        .find(|line| line.contains("chmod 600"))
        .unwrap();
    assert_eq!(cure.trim(), "chmod 600 $'k\\x1b[2K\\x27; rm x'");
    if std::process::Command::new("bash")
        .arg("-c")
        .arg("true")
        .output()
        .is_err()
    {
        return crate::exe::skip("no bash on this machine");
    }
    let mended = std::process::Command::new("bash")
        .current_dir(dir.path())
        .args(["-c", cure.trim()])
        .status();
    assert!(mended.unwrap().success());
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}
