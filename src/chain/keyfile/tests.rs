use std::env;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::Command;

use rustix::fs::{CWD, Mode, mkfifoat};
use tempfile::TempDir;

use super::*;

const SEED: &str = "0909090909090909090909090909090909090909090909090909090909090909";

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn put(path: &Path, content: impl AsRef<[u8]>, mode: u32) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The text of the refusal, with the directory cut out of it.
fn refusal(result: Result<SigningKey, KeyFileError>, directory: &Path) -> String {
    let text = result.unwrap_err().to_string();
    text.replace(&format!("{}/", directory.display()), "")
}

#[test]
fn what_was_generated_loads() {
    let dir = directory();
    let path = dir.path().join("key");
    let key = generate(&path, false).unwrap();
    assert_eq!(load(&path).unwrap().public_key(), key.public_key());
    assert_eq!(mode(&path), 0o600);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.len(), 65);
    assert!(text.ends_with('\n'));
    let other = generate(&dir.path().join("other"), false).unwrap();
    assert_ne!(other.public_key(), key.public_key());
}

#[test]
fn missing_directories_are_made_private() {
    let dir = directory();
    let path = dir.path().join("a/b/key");
    generate(&path, false).unwrap();
    assert_eq!(mode(&dir.path().join("a")), 0o700);
    assert_eq!(mode(&dir.path().join("a/b")), 0o700);
    assert_eq!(names(&dir.path().join("a/b")), ["key"]);
    let below_a_file = path.join("key");
    assert!(matches!(
        generate(&below_a_file, false),
        Err(KeyFileError::Io { .. })
    ));
}

/// SPEC [CLI-13].
#[test]
fn nothing_that_exists_is_overwritten() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    put(&at("file"), "kept", 0o644);
    fs::create_dir(at("folder")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    symlink(at("file"), at("link")).unwrap();
    mkfifoat(CWD, at("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    let before = names(dir.path());
    for name in ["file", "folder", "dangling", "link", "pipe"] {
        assert_eq!(
            refusal(generate(&at(name), false), dir.path()),
            format!("signing key {name} already exists; refusing to overwrite it without --force")
        );
    }
    assert_eq!(names(dir.path()), before);
    assert_eq!(fs::read(at("file")).unwrap(), b"kept");
}

#[test]
fn force_replaces_a_regular_file_and_its_mode() {
    let dir = directory();
    let path = dir.path().join("key");
    put(&path, "anything", 0o644);
    let key = generate(&path, true).unwrap();
    assert_eq!(load(&path).unwrap().public_key(), key.public_key());
    assert_eq!(mode(&path), 0o600);
    assert_eq!(names(dir.path()), ["key"]);
    let fresh = dir.path().join("fresh");
    generate(&fresh, true).unwrap();
    load(&fresh).unwrap();
}

#[test]
fn force_writes_a_new_file_and_leaves_other_names_of_the_old_one() {
    let dir = directory();
    let path = dir.path().join("key");
    let old = generate(&path, false).unwrap();
    let backup = dir.path().join("backup");
    fs::hard_link(&path, &backup).unwrap();
    generate(&path, true).unwrap();
    assert_eq!(load(&backup).unwrap().public_key(), old.public_key());
}

#[test]
fn force_replaces_neither_directory_nor_link_nor_pipe() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    put(&at("file"), "kept", 0o600);
    fs::create_dir(at("folder")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    symlink(at("file"), at("link")).unwrap();
    mkfifoat(CWD, at("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    let before = names(dir.path());
    for name in ["folder", "dangling", "link", "pipe"] {
        assert_eq!(
            refusal(generate(&at(name), true), dir.path()),
            format!(
                "signing key {name} is not a regular file\n\
                 --force replaces regular files only; remove it or choose another path"
            )
        );
    }
    assert_eq!(names(dir.path()), before);
    assert_eq!(fs::read(at("file")).unwrap(), b"kept");
}

#[test]
fn a_path_that_can_name_no_file_leaves_nothing_behind() {
    let dir = directory();
    // The first exists nowhere and cannot. The second passes every check, and
    // only the rename finds that it would have to be a directory.
    for name in ["n".repeat(300), "missing/".into()] {
        for force in [false, true] {
            let result = generate(&dir.path().join(&name), force);
            assert!(matches!(result, Err(KeyFileError::Io { .. })), "{name}");
            assert!(names(dir.path()).is_empty(), "{name}");
        }
    }
}

/// Runs the test `name` of this module again, in a process of its own that
/// `setup` (shell) has prepared, and fails when that fails.
fn run_again(name: &str, setup: &str, dir: &Path) {
    // Into pipes: a limit on the size of files must not hit what it says.
    let output = Command::new("sh")
        .args(["-c", &format!("{setup}; exec \"$@\""), "sh"])
        .arg(env::current_exe().unwrap())
        .args([
            "--exact",
            "--nocapture",
            &format!("chain::keyfile::tests::{name}"),
        ])
        .env("AEGIS_KEYFILE_TEST_DIR", dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Where to work, in a process started by [`run_again`].
fn again() -> Option<PathBuf> {
    env::var_os("AEGIS_KEYFILE_TEST_DIR").map(PathBuf::from)
}

/// SPEC [KEY-12].
#[test]
fn no_umask_widens_or_breaks_the_mode() {
    if let Some(dir) = again() {
        generate(&dir.join("key"), false).unwrap();
        generate(&dir.join("key"), true).unwrap();
        return;
    }
    for umask in ["0", "022", "777"] {
        let dir = directory();
        run_again(
            "no_umask_widens_or_breaks_the_mode",
            &format!("umask {umask}"),
            dir.path(),
        );
        assert_eq!(mode(&dir.path().join("key")), 0o600, "umask {umask}");
        load(&dir.path().join("key")).unwrap();
    }
}

/// SPEC [CLI-13].
#[test]
fn a_failed_write_keeps_the_old_key_and_leaves_no_partial_one() {
    if let Some(dir) = again() {
        for (name, force) in [("key", true), ("new", false), ("new", true)] {
            let Err(KeyFileError::Io { error, .. }) = generate(&dir.join(name), force) else {
                panic!("nothing can be written here, yet {name} was");
            };
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        }
        File::create(dir.join("was here")).unwrap();
        return;
    }
    let dir = directory();
    let key = generate(&dir.path().join("key"), false).unwrap();
    // A file size limit of nothing lets files be created and not be written.
    run_again(
        "a_failed_write_keeps_the_old_key_and_leaves_no_partial_one",
        "trap '' XFSZ; ulimit -f 0",
        dir.path(),
    );
    assert_eq!(names(dir.path()), ["key", "was here"]);
    let kept = load(&dir.path().join("key")).unwrap();
    assert_eq!(kept.public_key(), key.public_key());
}

/// SPEC [KEY-11].
#[test]
fn a_seed_with_at_most_one_line_end_loads() {
    let dir = directory();
    let path = dir.path().join("key");
    for end in ["", "\n", "\r\n"] {
        put(&path, format!("{SEED}{end}"), 0o400);
        let key = load(&path).unwrap();
        assert_eq!(
            key.public_key().to_string(),
            "fd1724385aa0c75b64fb78cd602fa1d991fdebf76b13c58ed702eac835e9f618"
        );
        fs::remove_file(&path).unwrap();
    }
}

/// SPEC [KEY-11].
#[test]
fn whatever_is_not_a_seed_is_named() {
    let dir = directory();
    let path = dir.path().join("key");
    let cases: [(Vec<u8>, &str); 14] = [
        (b"".into(), "expected 64 characters, found 0"),
        (b"\n".into(), "expected 64 characters, found 0"),
        (SEED[1..].into(), "expected 64 characters, found 63"),
        (
            format!("{SEED}0").into(),
            "expected 64 characters, found 65",
        ),
        (
            format!("{SEED} ").into(),
            "expected 64 characters, found 65",
        ),
        (
            format!("{SEED}\r").into(),
            "expected 64 characters, found 65",
        ),
        (
            format!("{SEED}\n\n").into(),
            "expected 64 characters, found 65",
        ),
        (
            format!("{SEED}00").into(),
            "expected 64 characters, found 66",
        ),
        (
            format!("{SEED}000").into(),
            "expected 64 characters, found more than 66",
        ),
        (
            vec![b'0'; 1 << 20],
            "expected 64 characters, found more than 66",
        ),
        (
            format!("A{}\n", &SEED[1..]).into(),
            "expected lowercase hex, found 'A'",
        ),
        (
            format!("{}\u{1b}", &SEED[1..]).into(),
            "expected lowercase hex, found '\\u{1b}'",
        ),
        (
            format!("é{}", &SEED[1..]).into(),
            "expected lowercase hex, found 'é'",
        ),
        (b"0\xff".into(), "expected lowercase hex, found byte 0xff"),
    ];
    for (content, fault) in cases {
        put(&path, content, 0o600);
        assert_eq!(
            refusal(load(&path), dir.path()),
            format!("signing key key is not a 64-character lowercase hex seed: {fault}")
        );
    }
}

/// SPEC [KEY-12].
#[test]
fn a_file_that_others_can_use_is_refused() {
    let dir = directory();
    let path = dir.path().join("key");
    for bits in [0o640, 0o604, 0o620, 0o601, 0o644, 0o666] {
        put(&path, SEED, bits);
        assert_eq!(
            refusal(load(&path), dir.path()),
            format!("signing key key is readable beyond its owner (mode {bits:04o}); chmod 600 it")
        );
    }
}

/// SPEC [KEY-12].
#[test]
fn a_file_of_another_user_is_refused() {
    assert!(trusted(1000, 1000));
    assert!(trusted(0, 1000));
    assert!(!trusted(1000, 0));
    assert!(!trusted(1001, 1000));
    // Only root can give a file away and then still read it.
    if rustix::process::geteuid().is_root() {
        let dir = directory();
        let path = dir.path().join("key");
        put(&path, SEED, 0o600);
        std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
        assert_eq!(
            refusal(load(&path), dir.path()),
            "signing key key belongs to user id 12345, who could replace it\n\
             chown it to the user that runs aegis"
        );
    }
}

#[test]
fn a_missing_file_says_how_to_make_one() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    symlink(at("nowhere"), at("dangling")).unwrap();
    for name in ["key", "no/such/key", "dangling"] {
        assert_eq!(
            refusal(load(&at(name)), dir.path()),
            format!("no signing key at {name}; generate one with `aegis keygen --out {name}`")
        );
    }
}

#[test]
fn what_is_no_regular_file_is_refused_without_waiting() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    mkfifoat(CWD, at("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    symlink("/dev/zero", at("device")).unwrap();
    for name in ["folder", "pipe", "device"] {
        assert_eq!(
            refusal(load(&at(name)), dir.path()),
            format!("signing key {name} is not a regular file\nname the file that holds the seed")
        );
    }
}

#[test]
fn a_link_is_judged_by_the_file_it_leads_to() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    put(&at("private"), SEED, 0o600);
    put(&at("open"), SEED, 0o644);
    symlink("private", at("good")).unwrap();
    symlink("open", at("bad")).unwrap();
    load(&at("good")).unwrap();
    assert!(matches!(
        load(&at("bad")),
        Err(KeyFileError::Exposed { mode: 0o644, .. })
    ));
}
