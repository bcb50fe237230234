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
/// [VERIFY-60].
#[test]
fn segments_bear_witness() {
    type Files<'a> = Vec<(&'a str, Chain)>;
    let one = killed("one");
    let closed = Chain::session("one");
    let mut cut = killed("one");
    cut.rows.pop();
    let mut bad = Chain::session("one");
    bad.rows.remove(1);
    let mut deep = Chain::session("one");
    deep.row(&b"[".repeat(100));
    let chained = segment("two", &[("a.aarl", closed.tail)]);
    let cases: [(&str, Files<'_>); 12] = [
        (
            "anchored",
            vec![
                ("a.aarl", one.clone()),
                ("b.aarl", segment("two", &[("a.aarl", one.tail)])),
            ],
        ),
        (
            "followed_closed",
            vec![("a.aarl", closed.clone()), ("b.aarl", chained.clone())],
        ),
        (
            "unfollowed",
            vec![("a.aarl", one.clone()), ("b.aarl", Chain::session("two"))],
        ),
        ("missing", vec![("b.aarl", chained.clone())]),
        (
            "cut",
            vec![
                ("a.aarl", cut),
                ("b.aarl", segment("two", &[("a.aarl", one.tail)])),
            ],
        ),
        (
            "swapped",
            vec![
                ("a.aarl", Chain::session("other")),
                ("b.aarl", chained.clone()),
            ],
        ),
        (
            "emptied",
            vec![("a.aarl", Chain::new()), ("b.aarl", chained.clone())],
        ),
        (
            "followed_tampered",
            vec![("a.aarl", bad), ("b.aarl", chained.clone())],
        ),
        (
            "followed_past_a_limit",
            vec![("a.aarl", deep), ("b.aarl", chained.clone())],
        ),
        (
            "followed_twice",
            vec![
                ("a.aarl", one.clone()),
                ("b.aarl", segment("two", &[("a.aarl", one.tail)])),
                ("c.aarl", segment("three", &[("a.aarl", elsewhere())])),
            ],
        ),
        (
            "itself",
            vec![("a.aarl", segment("one", &[("a.aarl", elsewhere())]))],
        ),
        (
            "loop",
            vec![
                ("a.aarl", segment("one", &[("b.aarl", elsewhere())])),
                (
                    "b.aarl",
                    segment(
                        "two",
                        &[("a.aarl", segment("one", &[("b.aarl", elsewhere())]).tail)],
                    ),
                ),
            ],
        ),
    ];
    for (name, files) in cases {
        let dir = TempDir::new().expect("a folder");
        fs::create_dir(dir.path().join("audit")).expect("writable");
        for (file, chain) in &files {
            write(&dir.path().join("audit"), file, chain);
        }
        snapshot!(
            format!("segments_{name}"),
            Aegis::verify().dir(dir.path()).arg("audit")
        );
        if name == "followed_closed" {
            snapshot!(
                "segment_by_name",
                Aegis::verify().dir(dir.path()).arg("audit/b.aarl")
            );
            let json = ["--format", "json", "audit"];
            snapshot!("segments_json", Aegis::verify().dir(dir.path()).args(json));
            let head = closed.tail.to_string();
            let expected = ["--expect-head", &head, "audit/"];
            snapshot!(
                "segments_expected_head",
                Aegis::verify().dir(dir.path()).args(expected)
            );
        }
    }
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
        random.stdout.starts_with("Tampered: line 1: not JSON: "),
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
    fs::set_permissions(&path, fs::Permissions::from_mode(0)).expect("owned");
    if fs::File::open(&path).is_err() {
        snapshot!("unreadable", Aegis::verify().dir(dir.path()).arg("a.aarl"));
        let json = ["--format", "json", "a.aarl"];
        snapshot!(
            "unreadable_json",
            Aegis::verify().dir(dir.path()).args(json)
        );
    }
}

fn make_fifo(path: &Path) {
    let made = Command::new("mkfifo")
        .arg(path)
        .status()
        .expect("mkfifo runs");
    assert!(made.success());
}
