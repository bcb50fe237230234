//! Records that are not where they should be: in an audit directory without
//! being its Segments, appended to as if they were none, deleted, copied.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::exe::{Aegis, Ran, write_key};

const AEGIS: &str = env!("CARGO_BIN_EXE_aegis");

/// A signing key, and a path for an audit directory.
struct Room(TempDir);

impl Room {
    fn new() -> Self {
        let room = Self(tempfile::tempdir().unwrap());
        write_key(&room.0.path().join("key"));
        room
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn wrap(&self, audit: &str) -> Vec<String> {
        let shown = |path: PathBuf| path.to_str().unwrap().to_owned();
        let mut args = vec!["wrap".to_owned(), "--audit".to_owned()];
        args.extend([shown(self.path(audit)), "--signing-key".to_owned()]);
        args.extend([shown(self.path("key")), "--".to_owned()]);
        args.extend([AEGIS, "__demo-server", "--ledger"].map(str::to_owned));
        args.push(shown(self.path("effects")));
        args
    }

    /// One session with one call, recorded at `audit`.
    fn run_at(&self, audit: &str) -> Ran {
        let input = call(1);
        Aegis::new().args(self.wrap(audit)).stdin(&input).run()
    }

    #[track_caller]
    fn end_one(&self, audit: &str) {
        let ran = self.run_at(audit);
        assert_eq!(ran.code(), 0, "{}", ran.stderr);
    }

    fn verify(&self) -> Ran {
        Aegis::verify().arg("d").dir(self.0.path()).run()
    }

    /// The names of the records in the directory, sorted.
    fn records(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("d")).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".aarl"))
            .collect();
        names.sort();
        names
    }

    fn effects(&self) -> usize {
        let effects = fs::read_to_string(self.path("effects"));
        effects.unwrap_or_default().lines().count()
    }
}

fn call(id: u64) -> Vec<u8> {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\
         \"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":\"x\"}}}}}}\n"
    )
    .into_bytes()
}

fn rows(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// SPEC [SEG-1] [SEG-4].
#[test]
fn a_file_of_many_sessions_in_an_audit_directory_stays_apart_from_its_segments() {
    let room = Room::new();
    room.end_one("d/session.aarl");
    for _ in 0..2 {
        room.end_one("d/");
        room.end_one("d/session.aarl");
    }
    let verified = room.verify();
    assert_eq!(verified.code(), 0, "{}", verified.stdout);
    let records = room.records();
    assert_eq!(records.len(), 3);
    // The second Segment follows the first, and neither follows the file.
    let opens: Vec<_> = records[..2]
        .iter()
        .map(|name| rows(&room.path("d").join(name)))
        .map(|rows| rows.lines().next().unwrap().to_owned())
        .collect();
    assert!(opens.iter().all(|open| !open.contains("session.aarl")));
    assert_eq!(
        opens.iter().filter(|o| o.contains("\"follows\"")).count(),
        1
    );
}

/// SPEC [SEG-1].
#[test]
fn a_segment_takes_no_second_session() {
    let room = Room::new();
    room.end_one("d/");
    let segment = format!("d/{}", room.records()[0]);
    let before = rows(&room.path(&segment));
    let effects = room.effects();
    let ran = room.run_at(&segment);
    let expected = format!(
        "error: wrap audit failed: audit file {} is a segment of an audit directory, which has \
         ended\nrecord to the directory instead: {}\n",
        room.path(&segment).display(),
        room.path("d").display()
    );
    assert_eq!((ran.code(), ran.stderr), (1, expected));
    assert_eq!(rows(&room.path(&segment)), before);
    assert_eq!(room.effects(), effects);

    // What holds nothing yet is nobody's Segment.
    let empty = "20200101T000000Z-1-0123456789abcdef.aarl";
    fs::write(room.path(empty), "").unwrap();
    room.end_one(empty);
}

/// Calls the server, does `between` to the record, and calls it again: the
/// exit code, what standard error says, and how many calls were executed.
fn call_twice(audit: &str, between: impl FnOnce(&Room)) -> (Option<i32>, String, usize) {
    let room = Room::new();
    let mut child = Command::new(AEGIS)
        .args(room.wrap(audit))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut answer = String::new();
    input.write_all(&call(1)).unwrap();
    output.read_line(&mut answer).unwrap();
    assert!(answer.contains("\"result\""), "{answer}");
    between(&room);
    // It may have noticed already.
    let _ = input.write_all(&call(2));
    drop(input);
    output.read_to_string(&mut answer).unwrap();
    let ended = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    let shown = room.0.path().display().to_string();
    (
        ended.status.code(),
        stderr.replace(&shown, "R"),
        room.effects(),
    )
}

#[test]
fn a_record_that_is_deleted_ends_the_session_before_the_next_call() {
    let delete_only = |room: &Room| {
        let name = room.records().remove(0);
        fs::remove_file(room.path("d").join(name)).unwrap();
    };
    for audit in ["d/a.aarl", "d/"] {
        let (code, stderr, effects) = call_twice(audit, delete_only);
        assert_eq!((code, effects), (Some(1), 1), "{stderr}");
        assert!(
            stderr.contains("audit flush failed: R/d/")
                && stderr.contains(".aarl was deleted while it was written; nothing more"),
            "{stderr}"
        );
    }
}

#[test]
fn a_record_that_is_renamed_goes_on() {
    let (code, stderr, effects) = call_twice("d/a.aarl", |room| {
        fs::rename(room.path("d/a.aarl"), room.path("d/b.aarl")).unwrap();
    });
    assert_eq!((code, effects), (Some(0), 2), "{stderr}");
}

/// SPEC [VERIFY-63].
#[test]
fn copies_of_a_record_are_told_and_change_no_verdict() {
    let room = Room::new();
    room.end_one("d/");
    room.end_one("d/");
    let records = room.records();
    assert!(!room.verify().stderr.contains("the same record"));
    let copy = |n: usize| {
        let from = room.path("d").join(&records[0]);
        fs::copy(from, room.path(&format!("d/copy-{n:02}.aarl"))).unwrap();
    };
    let note = |n: usize| {
        let first = &records[0];
        format!("note: d/{first} and d/copy-{n:02}.aarl hold the same record\n")
    };
    for n in 0..MAX_COPY_NOTES {
        copy(n);
    }
    let verified = room.verify();
    assert_eq!(verified.code(), 0, "{}", verified.stdout);
    let expected: String = (0..MAX_COPY_NOTES).map(note).collect();
    assert_eq!(verified.stderr, expected);

    copy(MAX_COPY_NOTES);
    let more = "note: d: 1 more record is there twice\n";
    assert_eq!(room.verify().stderr, format!("{expected}{more}"));
    copy(MAX_COPY_NOTES + 1);
    let more = "note: d: 2 more records are there twice\n";
    assert_eq!(room.verify().stderr, format!("{expected}{more}"));
}

/// As many as `aegis verify` tells one by one.
const MAX_COPY_NOTES: usize = 10;
