use std::io::Write as _;

use super::*;
use crate::chain::sink::MemorySink;
use crate::chain::testing::{key, session, start, without_last};
use crate::chain::writer::{SessionStart, Writer};
use crate::wire::facts::Durability;
use crate::wire::line::OpenFacts;

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    io::Seek::rewind(&mut file).unwrap();
    file
}

fn tail(bytes: &[u8]) -> Option<Digest<digest::Line>> {
    match read_tail(&file(bytes), &mut WALK_BYTES.clone()).unwrap() {
        Tail::Line(hash) => Some(hash),
        Tail::Unknown => None,
        Tail::Unread => panic!("not read"),
    }
}

fn hashes(rows: &[u8]) -> Vec<Digest<digest::Line>> {
    let rows = rows.strip_suffix(b"\n").unwrap();
    rows.split(|&b| b == b'\n').map(Digest::of).collect()
}

#[test]
fn a_segment_cut_anywhere_ends_with_its_last_whole_line() {
    let rows = session(2, None);
    let hashes = hashes(&rows);
    let first = 1 + rows.iter().position(|&b| b == b'\n').unwrap();
    for end in first..=rows.len() {
        // A last row that lacks only its newline is a Line to the verifier.
        let newlines = rows[..end].iter().filter(|&&b| b == b'\n').count();
        let whole = newlines + usize::from(rows.get(end) == Some(&b'\n'));
        assert_eq!(tail(&rows[..end]), Some(hashes[whole - 1]), "cut at {end}");
    }
    for more in [
        &b"\n \n"[..],
        b"\0\0\0",
        b"\0\0\n",
        b"{\"a\":1.5}\n",
        b"{\"seq\":\n",
    ] {
        let open = without_last(&rows, 1);
        let expected = hashes.len() - 2;
        assert_eq!(tail(&[open, more].concat()), Some(hashes[expected]));
    }
    assert_eq!(tail(b"\n"), None);
    assert_eq!(tail(b"garbage"), None);
}

#[test]
fn what_lies_behind_a_hole_is_not_counted() {
    let rows = session(8, None);
    let mut bytes = without_last(&rows, 1).to_vec();
    bytes[1_500..5_596].fill(0);
    let whole = bytes[..1_500].iter().filter(|&&b| b == b'\n').count();
    assert!(whole >= 1);
    assert_eq!(tail(&bytes), Some(hashes(&rows)[whole - 1]));
}

#[test]
fn rows_that_do_not_chain_are_not_counted() {
    let rows = session(3, None);
    let lines: Vec<_> = rows.split_inclusive(|&b| b == b'\n').collect();
    let bytes = [&lines[..3], &lines[4..lines.len() - 1]].concat().concat();
    assert_eq!(tail(&bytes), Some(hashes(&rows)[2]));
}

#[test]
fn a_start_reads_so_much_of_unclosed_segments_and_no_more() {
    let rows = session(2, None);
    let open = without_last(&rows, 1);
    let length = open.len() as u64;
    let mut walk = length * 2 + 1;
    let mut is_read = |rows: &[u8]| {
        let tail = read_tail(&file(rows), &mut walk).unwrap();
        assert_ne!(tail, Tail::Unknown);
        tail != Tail::Unread
    };
    assert_eq!([open; 3].map(&mut is_read), [true, true, false]);
    // A closed one costs nothing.
    assert!(is_read(&rows));
    assert_eq!(walk, 1);
}

fn opened(follows: &[&str]) -> Vec<u8> {
    let sink = MemorySink::new();
    let follows = follows.iter().map(|name| Follows {
        segment: (*name).to_owned(),
        tail: Digest::GENESIS,
    });
    let start = SessionStart {
        facts: OpenFacts {
            follows: follows.collect(),
            ..OpenFacts::default()
        },
        ..start(Durability::Process)
    };
    drop(Writer::open(sink.clone(), key(), start).unwrap());
    sink.bytes()
}

#[test]
fn only_a_signed_open_line_follows() {
    let rows = opened(&["a.aarl", "b.aarl"]);
    let names = |bytes: &[u8]| read_open(&file(bytes));
    let both = vec!["a.aarl".to_owned(), "b.aarl".to_owned()];
    assert_eq!(names(&rows), Some(both.clone()));
    assert_eq!(names(&[b"\n \n", &rows[..]].concat()), Some(both));
    assert_eq!(names(&opened(&[])), Some(Vec::new()));
    let forged = String::from_utf8(rows.clone()).unwrap();
    let forged = forged.replace("a.aarl", "c.aarl");
    assert_eq!(names(forged.as_bytes()), Some(Vec::new()));
    let second = rows.iter().position(|&b| b == b'\n').unwrap() + 1;
    for garbage in [
        &b""[..],
        b"\n",
        b"garbage\n",
        b"{}\n",
        b"\xff",
        &rows[second..],
    ] {
        assert_eq!(names(garbage), None);
    }
}

#[test]
fn an_open_line_is_read_up_to_its_bound() {
    let rows = opened(&["a.aarl"]);
    let end = rows.iter().position(|&b| b == b'\n').unwrap();
    // Spaces belong to no canonical form, but to the row.
    let padded = |bytes: usize| {
        let mut row = rows[..end - 1].to_vec();
        row.resize(bytes - 1, b' ');
        row.extend_from_slice(b"}\n");
        read_open(&file(&row))
    };
    assert_eq!(padded(MAX_OPEN_BYTES), Some(vec!["a.aarl".to_owned()]));
    assert_eq!(padded(MAX_OPEN_BYTES + 2), None);
}
