//! In which order `aegis wrap` writes, flushes and passes on, as the system
//! sees it: what a power cut would leave cannot be tried, but what was asked
//! of the disk, and when, can be read from a trace.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::exe::skip;

const AEGIS: &str = env!("CARGO_BIN_EXE_aegis");
const CALL: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\
    \"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"x\"}}}\n";

/// A system call that succeeded: as it was traced, and from when to when.
struct Event {
    text: String,
    during: Range<usize>,
}

struct Trace(Vec<Event>);

impl Trace {
    /// Every call of this name whose text holds all of `parts`.
    fn all(&self, name: &str, parts: &[&str]) -> Vec<&Event> {
        let start = format!("{name}(");
        let found = self.0.iter().filter(|event| {
            event.text.starts_with(&start) && parts.iter().all(|part| event.text.contains(part))
        });
        found.collect()
    }

    #[track_caller]
    fn first(&self, name: &str, parts: &[&str]) -> &Event {
        let found = self.all(name, parts);
        found
            .first()
            .unwrap_or_else(|| panic!("no {name} of {parts:?}"))
    }

    /// Asserts that `path` was flushed after `before` and ahead of `after`.
    #[track_caller]
    fn assert_flushed_between(&self, path: &Path, before: &Event, after: &Event) {
        let shown = format!("<{}>", path.display());
        let flushes = ["fsync", "fdatasync"].map(|name| self.all(name, &[&shown]));
        let is_between = |flush: &&&Event| {
            flush.during.start > before.during.end && flush.during.end < after.during.start
        };
        assert!(
            flushes.iter().flatten().any(|flush| is_between(&flush)),
            "{} is not flushed between\n{}\nand\n{}",
            path.display(),
            before.text,
            after.text
        );
    }
}

/// A key, and room for records.
fn room() -> (TempDir, PathBuf) {
    let room = tempfile::tempdir().unwrap();
    let path = room.path().canonicalize().unwrap();
    let made = Command::new(AEGIS)
        .args(["keygen", "--out", "key"])
        .current_dir(&path)
        .output()
        .unwrap();
    assert!(made.status.success());
    (room, path)
}

/// One session of one call, traced; `None` where that cannot be.
fn trace(room: &Path, audit: &str, mode: &str) -> Option<Trace> {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-qq", "-s", "100000", "-e", "signal=none"]);
    strace.args(["-e", "trace=write,fsync,fdatasync,mkdir,openat,renameat2"]);
    strace.args(["-o", "trace", AEGIS, "wrap", "--audit", audit]);
    strace.args(["--signing-key", "key", "--durability", mode]);
    strace.args(["--", AEGIS, "__demo-server"]);
    let spawned = strace
        .current_dir(room)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        skip("there is no strace here");
        return None;
    };
    // Where tracing is not permitted it has ended before it reads.
    let _ = child.stdin.take().unwrap().write_all(CALL);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("strace: ") && said.contains("not permitted") {
        skip(&said);
        return None;
    }
    assert!(output.status.success(), "{said}");
    assert!(!output.stdout.is_empty());
    let text = fs::read(room.join("trace")).unwrap();
    Some(read(&String::from_utf8_lossy(&text)))
}

/// Reads rows of the form `PID call(…) = result`. One that others ran beside
/// stands in two rows.
fn read(text: &str) -> Trace {
    let mut events = Vec::new();
    let mut unfinished: Vec<(&str, &str, usize)> = Vec::new();
    for (at, row) in text.lines().enumerate() {
        let (pid, row) = row.split_once(' ').unwrap();
        let row = row.trim_start();
        if let Some(start) = row.strip_suffix(" <unfinished ...>") {
            unfinished.push((pid, start, at));
            continue;
        }
        let (text, start) = match row.split_once(" resumed>") {
            Some((name, rest)) if name.starts_with("<... ") => {
                let found = unfinished.iter().position(|(of, ..)| *of == pid).unwrap();
                let (_, start, began) = unfinished.remove(found);
                (format!("{start}{rest}"), began)
            }
            _ => (row.to_owned(), at),
        };
        let failed = text
            .rsplit_once(" = ")
            .is_none_or(|(_, result)| result.starts_with('-'));
        if !failed {
            events.push(Event {
                text,
                during: start..at,
            });
        }
    }
    Trace(events)
}

fn line_type(name: &str) -> String {
    format!(r#"\"line_type\":\"{name}\""#)
}

/// SPEC [DUR-1] [DUR-3] [DUR-8] [CHAIN-6].
#[test]
fn a_request_is_passed_on_once_its_intent_and_its_file_are_on_the_disk() {
    for mode in ["intent", "full"] {
        let (_room, path) = room();
        let Some(trace) = trace(&path, "new/deeper/a.aarl", mode) else {
            return;
        };
        let file = path.join("new/deeper/a.aarl");
        let shown = format!("<{}>", file.display());
        let request = trace.first("write", &["pipe:", "tools/call"]);
        assert_eq!(trace.all("write", &["pipe:", "tools/call"]).len(), 1);
        let intent = trace.first("write", &[&shown, &line_type("intent")]);
        trace.assert_flushed_between(&file, intent, request);

        for (directory, parent) in [("new", ""), ("new/deeper", "new")] {
            let made = trace.first("mkdir", &[&format!("\"{directory}\"")]);
            let parent = path.join(parent);
            let parent = parent.components().collect::<PathBuf>();
            trace.assert_flushed_between(&parent, made, request);
        }
        let created = trace.first("openat", &["a.aarl\"", "O_CREAT"]);
        trace.assert_flushed_between(file.parent().unwrap(), created, request);

        // Every row in one write, and whole.
        let writes = trace.all("write", &[&shown]);
        let rows = fs::read_to_string(&file).unwrap();
        let results: Vec<_> = writes
            .iter()
            .map(|write| write.text.rsplit_once(" = ").unwrap().1.trim().to_owned())
            .collect();
        let lengths: Vec<_> = rows
            .split_inclusive('\n')
            .map(|row| row.len().to_string())
            .collect();
        assert_eq!(results, lengths);
    }
}

/// SPEC [DUR-9].
#[test]
fn what_precedes_a_session_is_flushed_before_it() {
    let (_room, path) = room();
    let file = path.join("a.aarl");
    let shown = format!("<{}>", file.display());
    for _ in 0..2 {
        let Some(trace) = trace(&path, "a.aarl", "process") else {
            return;
        };
        let opened = trace.first("openat", &["a.aarl\""]);
        let open = trace.first("write", &[&shown, &line_type("open")]);
        let outcome = trace.first("write", &[&shown, &line_type("outcome")]);
        let close = trace.first("write", &[&shown, &line_type("close")]);
        trace.assert_flushed_between(&file, outcome, close);
        let is_second = fs::read_to_string(&file).unwrap().lines().count() > 4;
        if is_second {
            trace.assert_flushed_between(&file, opened, open);
        }
    }
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 8);
}

/// SPEC [SEG-2] [SEG-4] [DUR-8].
#[test]
fn a_segment_and_what_it_follows_are_on_the_disk_before_it_is_seen() {
    let (_room, path) = room();
    let directory = path.join("d");
    let segments = || {
        let entries = fs::read_dir(&directory).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| name.ends_with(".aarl"))
            .collect::<Vec<_>>()
    };
    let Some(first) = trace(&path, "d/", "process") else {
        return;
    };
    let made = first.first("mkdir", &["\"d/\""]);
    first.assert_flushed_between(&path, made, first.first("renameat2", &[]));
    let followed = segments().remove(0);
    let Some(second) = trace(&path, "d/", "process") else {
        return;
    };
    let new = segments()
        .into_iter()
        .find(|name| *name != followed)
        .unwrap();
    let hidden = directory.join(format!(".aegis-new-{}", new.trim_end_matches(".aarl")));
    let shown = format!("<{}>", hidden.display());
    let open = second.first("write", &[&shown, &line_type("open")]);
    let seen = second.first("renameat2", &[&new]);
    let request = second.first("write", &["pipe:", "tools/call"]);
    second.assert_flushed_between(&hidden, open, seen);
    second.assert_flushed_between(&directory, seen, request);
    let claimed = second.first("openat", &[&followed]);
    second.assert_flushed_between(&directory.join(&followed), claimed, open);
}
