//! What `aegis verify` reads: directories and their Segments, links, pipes,
//! devices, paths of any bytes.
#![cfg(unix)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use aegis::wire::digest::{self, Digest};
use aegis::wire::facts::Follows;
use tempfile::TempDir;

use crate::assemble::{Chain, LineHash};
use crate::exe::Aegis;

macro_rules! snapshot {
    ($name:expr, $aegis:expr) => {
        insta::assert_snapshot!($name, $aegis.run().shown());
    };
}

fn write(dir: &Path, name: &str, chain: &Chain) {
    fs::write(dir.join(name), chain.bytes()).expect("writable");
}

/// A closed Segment that follows others.
fn segment(call: &str, follows: &[(&str, LineHash)]) -> Chain {
    let mut chain = Chain::new();
    let follows = follows.iter().map(|(segment, tail)| Follows {
        segment: (*segment).to_owned(),
        tail: *tail,
    });
    chain
        .open_following(None, follows.collect())
        .call(call)
        .close();
    chain
}

/// A Segment whose process was killed.
fn killed(call: &str) -> Chain {
    let mut chain = Chain::opened();
    chain.call(call).intent("late");
    chain
}

fn elsewhere() -> LineHash {
    Digest::<digest::Line>::of(b"elsewhere")
}

/// The rulings of SPEC §8.8 over the Segments of one directory:
/// [SEG-5] [VERIFY-37] [VERIFY-47] [VERIFY-60] [VERIFY-61].
#[test]
fn segments_bear_witness() {
    for (name, files) in witnesses().into_iter().chain(contradictions()) {
        let dir = directory(&files);
        snapshot!(
            format!("segments_{name}"),
            Aegis::verify().dir(dir.path()).arg("audit")
        );
    }
    let closed = Chain::session("one");
    let dir = directory(&[
        ("a.aarl", closed.clone()),
        ("b.aarl", segment("two", &[("a.aarl", closed.tail)])),
    ]);
    let head = closed.tail.to_string();
    for (name, args) in [
        ("segment_by_name", &["audit/b.aarl"][..]),
        ("segments_json", &["--format", "json", "audit"]),
        (
            "segments_expected_head",
            &["--expect-head", &head, "audit/"],
        ),
    ] {
        snapshot!(name, Aegis::verify().dir(dir.path()).args(args));
    }
}

type Files = Vec<(&'static str, Chain)>;

fn directory(files: &[(&str, Chain)]) -> TempDir {
    let dir = TempDir::new().expect("a folder");
    fs::create_dir(dir.path().join("audit")).expect("writable");
    for (file, chain) in files {
        write(&dir.path().join("audit"), file, chain);
    }
    dir
}

/// Directories in which nothing contradicts another.
fn witnesses() -> Vec<(&'static str, Files)> {
    let one = killed("one");
    let closed = Chain::session("one");
    let follower = segment("two", &[("a.aarl", closed.tail)]);
    let mut deep = closed.clone();
    deep.row(&b"[".repeat(100));
    vec![
        (
            "anchored",
            vec![
                ("a.aarl", one.clone()),
                ("b.aarl", segment("two", &[("a.aarl", one.tail)])),
            ],
        ),
        (
            "followed_closed",
            vec![("a.aarl", closed), ("b.aarl", follower.clone())],
        ),
        (
            "unfollowed",
            vec![("a.aarl", one), ("b.aarl", Chain::session("two"))],
        ),
        ("missing", vec![("b.aarl", follower.clone())]),
        (
            "followed_past_a_limit",
            vec![("a.aarl", deep), ("b.aarl", follower)],
        ),
    ]
}

fn contradictions() -> Vec<(&'static str, Files)> {
    let one = killed("one");
    let anchor = segment("two", &[("a.aarl", one.tail)]);
    let follower = segment("two", &[("a.aarl", Chain::session("one").tail)]);
    let mut cut = one.clone();
    cut.rows.pop();
    let mut bad = Chain::session("one");
    bad.rows.remove(1);
    let first = segment("one", &[("b.aarl", elsewhere())]);
    let second = segment("two", &[("a.aarl", first.tail)]);
    vec![
        ("cut", vec![("a.aarl", cut), ("b.aarl", anchor.clone())]),
        (
            "swapped",
            vec![
                ("a.aarl", Chain::session("other")),
                ("b.aarl", follower.clone()),
            ],
        ),
        (
            "emptied",
            vec![("a.aarl", Chain::new()), ("b.aarl", follower.clone())],
        ),
        (
            "followed_tampered",
            vec![("a.aarl", bad), ("b.aarl", follower)],
        ),
        (
            "followed_twice",
            vec![
                ("a.aarl", one),
                ("b.aarl", anchor),
                ("c.aarl", segment("three", &[("a.aarl", elsewhere())])),
            ],
        ),
        (
            "itself",
            vec![("a.aarl", segment("one", &[("a.aarl", elsewhere())]))],
        ),
        ("loop", vec![("a.aarl", first), ("b.aarl", second)]),
    ]
}

/// Names that a hostile `follows` may hold lead nowhere.
#[test]
fn followed_names_are_bare() {
    let outer = TempDir::new().expect("a folder");
    let closed = Chain::session("one");
    write(outer.path(), "a.aarl", &closed);
    fs::create_dir(outer.path().join("audit")).expect("writable");
    let names = ["../a.aarl", "./b.aarl", "", "\u{1b}[2Ja.aarl"];
    for (n, name) in names.iter().enumerate() {
        let chain = segment("two", &[(name, closed.tail)]);
        write(&outer.path().join("audit"), "b.aarl", &chain);
        let run = Aegis::verify().dir(outer.path()).arg("audit").run();
        insta::assert_snapshot!(format!("segments_name_{n}"), run.stdout);
    }
}

/// SPEC [CLI-5] [VERIFY-43] [VERIFY-59].
#[test]
fn directories_are_their_regular_records() {
    let dir = TempDir::new().expect("a folder");
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("empty")).expect("writable");
    snapshot!(
        "directory_empty",
        Aegis::verify().dir(dir.path()).arg("empty")
    );
    fs::create_dir(path("mixed")).expect("writable");
    fs::create_dir(path("mixed/nested.aarl")).expect("writable");
    write(&path("mixed"), "b.aarl", &Chain::session("b"));
    write(&path("mixed"), "a.aarl", &Chain::session("a"));
    write(&path("mixed"), "a.aarl.torn-1", &Chain::session("c"));
    symlink("a.aarl", path("mixed/link.aarl")).expect("a link");
    make_fifo(&path("mixed/pipe.aarl"));
    snapshot!(
        "directory_mixed",
        Aegis::verify().dir(dir.path()).arg("mixed")
    );
    snapshot!(
        "directory_and_file",
        Aegis::verify()
            .dir(dir.path())
            .args(["mixed", "mixed/a.aarl"])
    );
    symlink("mixed", path("link")).expect("a link");
    snapshot!(
        "directory_by_a_link",
        Aegis::verify().dir(dir.path()).arg("link")
    );
}

/// SPEC [CLI-8] [MODEL-6].
#[test]
fn links_and_odd_names() {
    let dir = TempDir::new().expect("a folder");
    write(dir.path(), "a.aarl", &Chain::session("a"));
    symlink("a.aarl", dir.path().join("link")).expect("a link");
    symlink("nowhere", dir.path().join("dangling")).expect("a link");
    snapshot!("link", Aegis::verify().dir(dir.path()).arg("link"));
    snapshot!(
        "link_dangling",
        Aegis::verify().dir(dir.path()).arg("dangling")
    );
    let odd = OsStr::from_bytes(b"caf\xe9\x1b[2J\n.aarl");
    fs::write(dir.path().join(odd), Chain::session("a").bytes()).expect("writable");
    let ran = Aegis::verify()
        .dir(dir.path())
        .args([odd, OsStr::new("link")])
        .run();
    insta::assert_snapshot!("name_of_any_bytes", ran.stdout);
    fs::remove_file(dir.path().join(odd)).expect("removable");
    let ran = Aegis::verify().dir(dir.path()).arg(odd).run();
    insta::assert_snapshot!("name_of_any_bytes_missing", ran.stderr);
    for name in ["--key", "-x", "help"] {
        write(dir.path(), name, &Chain::session("a"));
        let ran = Aegis::verify().dir(dir.path()).args(["--", name]).run();
        assert_eq!(
            ran.stdout.lines().next(),
            Some("Verified (unpinned)"),
            "{name}: {}",
            ran.stderr
        );
    }
}

/// SPEC [VERIFY-58]: each of two files may decide an approval, one file not
/// twice.
#[test]
fn approvals_are_compared_within_a_file() {
    let dir = TempDir::new().expect("a folder");
    let mut chain = Chain::opened();
    chain.decision("apr-1").close();
    write(dir.path(), "a.aarl", &chain);
    write(dir.path(), "b.aarl", &chain);
    let verdicts = |args: &[&str]| {
        let ran = Aegis::verify().dir(dir.path()).args(args).run();
        let rows = ran.stdout.lines();
        rows.filter(|row| row.starts_with("Verified") || row.starts_with("Tampered"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let both = ["Verified (unpinned)"; 2];
    assert_eq!(verdicts(&["a.aarl", "b.aarl"]), both);
    assert_eq!(verdicts(&["."]), both);
    chain.open().decision("apr-1").close();
    write(dir.path(), "b.aarl", &chain);
    let twice = "Tampered: line at session 1 seq 1 decides approval apr-1 a second time";
    assert_eq!(verdicts(&["."]), [both[0], twice]);
}

/// A pipe is read once, to its end.
#[test]
fn a_named_pipe_is_read() {
    let dir = TempDir::new().expect("a folder");
    let pipe = dir.path().join("pipe");
    make_fifo(&pipe);
    let writer = {
        let pipe = pipe.clone();
        // Opening waits for the reader.
        std::thread::spawn(move || fs::write(pipe, Chain::session("a").bytes()))
    };
    snapshot!("named_pipe", Aegis::verify().dir(dir.path()).arg("pipe"));
    writer.join().expect("a writer").expect("written");
}

#[test]
#[cfg(target_os = "linux")]
fn devices_end() {
    snapshot!("device_null", Aegis::verify().arg("/dev/null"));
    snapshot!("device_zero", Aegis::verify().arg("/dev/zero"));
    snapshot!(
        "device_stdin",
        Aegis::verify()
            .arg("/dev/stdin")
            .stdin(&Chain::session("a").bytes())
    );
    let random = Aegis::verify().arg("/dev/urandom").run();
    assert!(
        random.stdout.starts_with("Tampered: line 1: not "),
        "{}",
        random.stdout
    );
}

/// A record that cannot be opened. Whoever may read everything is not asked.
#[test]
fn an_unreadable_record() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = TempDir::new().expect("a folder");
    write(dir.path(), "a.aarl", &Chain::session("a"));
    let path = dir.path().join("a.aarl");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("owned");
    if fs::File::open(&path).is_ok() {
        return;
    }
    let ran = Aegis::verify().dir(dir.path()).arg("a.aarl").run();
    let told = "error: read a.aarl: Permission denied (os error 13)\n";
    assert_eq!((&*ran.stdout, &*ran.stderr, ran.code()), ("", told, 2));

    // It was not read, so it is neither absent nor contradicted.
    write(
        dir.path(),
        "b.aarl",
        &segment("two", &[("a.aarl", elsewhere())]),
    );
    let ran = Aegis::verify().dir(dir.path()).arg(".").run();
    assert!(
        ran.stdout
            .starts_with("input ./b.aarl\nVerified (unpinned)\n"),
        "{}",
        ran.stdout
    );
    assert_eq!(ran.code(), 2);
}

fn make_fifo(path: &Path) {
    let made = Command::new("mkfifo")
        .arg(path)
        .status()
        .expect("mkfifo runs");
    assert!(made.success());
}
