use tempfile::TempDir;

use super::super::file;
use super::super::sink::Sink as _;
use super::super::testing::{check, key, record_call, session, start, without_last};
use super::super::writer::{SessionStart, Writer};
use super::*;
use crate::wire::facts::Durability;

struct Place {
    _directory: TempDir,
    path: PathBuf,
}

fn place(bytes: &[u8]) -> Place {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.aarl");
    fs::write(&path, bytes).unwrap();
    Place {
        _directory: directory,
        path,
    }
}

impl Place {
    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    fn piece(&self, n: u32) -> Option<Vec<u8>> {
        fs::read(format!("{}.torn-{n}", self.path.display())).ok()
    }

    fn recover(&self) -> String {
        let path = self.path.display().to_string();
        match recover(&self.path) {
            Ok(recovery) => recovery.to_string(),
            Err(error) => error.to_string(),
        }
        .replace(&path, "A")
    }

    /// Appends a Session and checks the whole file.
    fn append(&self) {
        let opened = file::open(&self.path).unwrap();
        let start = SessionStart {
            prev_session_tail: opened.tail,
            ..start(Durability::Process)
        };
        let writer = Writer::open(opened.sink, key(), start).unwrap();
        record_call(&writer, "echo").unwrap();
        drop(writer);
        check(&self.bytes());
    }
}

/// SPEC [CLI-14].
#[test]
fn a_file_cut_anywhere_is_appendable_after_recovery() {
    let rows = session(1, None);
    let near_an_end = |at: usize| (at.max(2) - 2..at + 2).any(|i| rows.get(i) == Some(&b'\n'));
    for end in (0..rows.len()).filter(|&at| at % 97 == 0 || near_an_end(at)) {
        let place = place(&rows[..end]);
        let was_fine = file::open(&place.path).is_ok();
        let report = place.recover();
        let kept = place.bytes();
        let piece = place.piece(1);
        if was_fine {
            assert!(
                report.starts_with("A can be appended to as it is"),
                "{report}"
            );
            assert_eq!((&kept[..], piece), (&rows[..end], None));
        } else if rows[end] == b'\n' {
            assert!(
                report.contains("lacked nothing but its newline"),
                "{report}"
            );
            assert_eq!((&kept[..], piece), (&rows[..=end], None));
        } else {
            assert!(report.contains("were moved to A.torn-1\n"), "{report}");
            assert_eq!([kept, piece.unwrap()].concat(), &rows[..end]);
        }
        place.append();
    }
}

#[test]
fn a_hole_in_the_last_session_is_cut_out_with_what_follows() {
    let rows = session(20, None);
    let open = without_last(&rows, 1);
    let mut bytes = open.to_vec();
    bytes[4_096..8_192].fill(0);
    let place = place(&bytes);
    assert!(file::open(&place.path).is_err());
    assert_eq!(
        place.recover(),
        format!(
            "A: cut at line 7; {} bytes in 28 rows were moved to A.torn-1\n\
             readable among them: 13 intents (call-8 call-9 call-10 call-11 call-12 call-13 \
             call-14 call-15 call-16 call-17 …), 14 outcomes (call-7 call-8 call-9 call-10 \
             call-11 call-12 call-13 call-14 call-15 call-16 …)",
            place.piece(1).unwrap().len()
        )
    );
    let kept = place.bytes();
    assert_eq!(check(&kept).len(), 6);
    assert_eq!([kept, place.piece(1).unwrap()].concat(), bytes);
    place.append();
}

/// SPEC [CLI-14] [MODEL-3].
#[test]
fn pieces_are_never_overwritten() {
    let rows = session(1, None);
    let place = place(&[&rows[..], b"{\"a"].concat());
    place.recover();
    let mut more = place.bytes();
    more.extend_from_slice(b"{\"b");
    fs::write(&place.path, more).unwrap();
    place.recover();
    assert_eq!(place.piece(1).unwrap(), b"{\"a");
    assert_eq!(place.piece(2).unwrap(), b"{\"b");
    assert_eq!(place.bytes(), rows);
}

#[test]
fn a_piece_left_by_a_death_on_the_way_is_harmless() {
    let rows = session(1, None);
    let place = place(&[&rows[..], b"{\"a"].concat());
    fs::write(format!("{}.torn-1", place.path.display()), b"{").unwrap();
    place.recover();
    assert_eq!(place.piece(2).unwrap(), b"{\"a");
    assert_eq!(place.bytes(), rows);
}

/// SPEC [CLI-14].
#[test]
fn what_no_accident_leaves_is_not_cut() {
    let rows = session(2, None);
    let lines: Vec<_> = rows.split_inclusive(|&b| b == b'\n').collect();
    let removed = [lines[0], lines[1], lines[3]].concat();
    let torn_too = [&removed[..], b"{\"torn"].concat();
    let after_close = [&rows[..], lines[5]].concat();
    let float = [&rows[..], b"{\"a\":1.5}\n"].concat();
    let second = [&rows[..], &rows[..]].concat();
    for (bytes, line) in [
        (&removed, "line 3 does not chain to the line before it"),
        (&torn_too, "line 3 does not chain to the line before it"),
        (&after_close, "line 7 does not chain to the line before it"),
        (
            &float,
            "line 7 outside the canonical value space, so it has no reproducible hash: \
             floating-point value at $.a is outside the JCS value space",
        ),
        (
            &second,
            "line 7 opens a session that does not follow the one before it",
        ),
    ] {
        let place = place(bytes);
        assert_eq!(
            place.recover(),
            format!(
                "recover A: {line}\nno interrupted write leaves that, so nothing was cut; \
                 keep the file as evidence and record to another one"
            )
        );
        assert_eq!((&place.bytes(), place.piece(1)), (bytes, None));
    }
}

/// SPEC [CLI-14].
#[test]
fn damage_before_a_later_session_is_not_cut() {
    let first = session(1, None);
    let mut bytes = first.clone();
    let tail = check(&first).pop().map(|_| {
        let rows = first.strip_suffix(b"\n").unwrap();
        Row::read(rows.rsplit(|&b| b == b'\n').next().unwrap())
            .unwrap()
            .line_hash()
    });
    bytes.extend_from_slice(&session(1, tail));
    check(&bytes);
    bytes[600..650].fill(0);
    let place = place(&bytes);
    let report = place.recover();
    assert!(
        report.starts_with("recover A: line 2 cannot be read, but line 5 opens a later session\n"),
        "{report}"
    );
    assert_eq!((place.bytes(), place.piece(1)), (bytes, None));
}

/// SPEC [CLI-14].
#[test]
fn other_files_are_left_alone() {
    let place = place(b"dear diary\n");
    assert_eq!(
        place.recover(),
        "recover A: not a record of aegis; its first row is no line\ncheck the path"
    );
    let missing = place.path.with_extension("missing");
    assert!(recover(&missing).is_err());
    assert!(!missing.exists());
}

/// SPEC [CLI-14].
#[test]
fn a_file_in_use_is_left_alone() {
    let rows = session(1, None);
    let place = place(&rows);
    let opened = file::open(&place.path).unwrap();
    opened.sink.append(b"{\"torn").unwrap();
    assert!(place.recover().contains("is in use"), "{}", place.recover());
    drop(opened);
    place.recover();
    assert_eq!(place.bytes(), rows);
}
