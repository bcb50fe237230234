//! A random record is Verified, and what a single edit makes of it.
//!
//! Stated precisely: an edit that changes any Line, or which Lines there are,
//! or their order, is never Verified, but for one: cutting off whole Sessions
//! at the end, which leaves a complete record of less Coverage and another
//! head. An edit that changes spelling only changes no more than the note on
//! it. A cut, which is what a fault leaves, is never Tampered.

use std::io;

use aegis::verify::{Indeterminate, Options, Position, Report, Verdict, verify};
use aegis::wire::canon::canonicalize;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::assemble::{Chain, LineHash, foreign_key};

/// One thing that an emitter does.
#[derive(Clone, Copy, Debug)]
enum Step {
    Intent(u8),
    Outcome(u8),
    Decision,
    Blank,
    /// Spells the Line before in another way.
    Respell,
}

/// A Session: what happens in it, whether it is closed, and under which key.
type Session = (Vec<Step>, bool, bool);

/// Several Sessions, the last of them closed.
pub(crate) fn record() -> impl Strategy<Value = Chain> {
    let step = prop_oneof![
        3 => (0u8..4).prop_map(Step::Intent),
        3 => (0u8..4).prop_map(Step::Outcome),
        1 => Just(Step::Decision),
        1 => Just(Step::Blank),
        1 => Just(Step::Respell),
    ];
    let session = (
        prop::collection::vec(step, 0..6),
        any::<bool>(),
        prop::bool::weighted(0.2),
    );
    prop::collection::vec(session, 1..4).prop_map(|sessions| assemble(&sessions))
}

fn assemble(sessions: &[Session]) -> Chain {
    let mut chain = Chain::new();
    let mut approvals = 0;
    for (i, (steps, closed, rotated)) in sessions.iter().enumerate() {
        chain.key = if *rotated {
            foreign_key()
        } else {
            Chain::new().key
        };
        chain.open();
        for step in steps {
            match step {
                Step::Intent(call) => chain.intent(&format!("call-{call}")),
                Step::Outcome(call) => chain.outcome(&format!("call-{call}")),
                Step::Decision => {
                    approvals += 1;
                    chain.decision(&format!("apr-{approvals}"))
                }
                Step::Blank => chain.row(b" \t\r"),
                Step::Respell => respell(&mut chain),
            };
        }
        if *closed || i + 1 == sessions.len() {
            chain.close();
        }
    }
    chain
}

fn respell(chain: &mut Chain) -> &mut Chain {
    if let Some(row) = chain.rows.last_mut()
        && let Some(rest) = row.strip_prefix(b"{\"")
    {
        let rest = String::from_utf8_lossy(rest).replacen("line_type", r"line\u005Ftype", 1);
        *row = format!("{{ \"{rest}\t").into_bytes();
    }
    chain
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_record_is_verified(chain in record()) {
        let report = walk(&chain.bytes());
        prop_assert!(is_verified(&report), "{}", report.verdict);
        prop_assert_eq!(report.head, Some(chain.tail));
        let last = Position { session: report.sessions - 1, seq: chain.seq - 1 };
        prop_assert_eq!(report.coverage, Some(last));
        prop_assert_eq!(report.lines as usize, lines(&chain.bytes()).len());
    }

    #[test]
    fn a_changed_byte_is_seen_or_is_spelling(
        chain in record(), at in any::<Index>(), flip in 1u8..,
    ) {
        let before = chain.bytes();
        let mut bytes = before.clone();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let report = walk(&bytes);
        if is_verified(&report) {
            prop_assert_eq!(lines(&bytes), lines(&before));
            prop_assert_eq!(without_spelling(report), without_spelling(walk(&before)));
        }
    }

    #[test]
    fn a_removed_byte_is_seen_or_is_spelling(chain in record(), at in any::<Index>()) {
        let before = chain.bytes();
        let mut bytes = before.clone();
        bytes.remove(at.index(before.len()));
        let report = walk(&bytes);
        if is_verified(&report) {
            prop_assert_eq!(lines(&bytes), lines(&before));
        }
    }

    #[test]
    fn a_dropped_row_is_seen(chain in record(), at in any::<Index>()) {
        let mut rows = full_rows(&chain);
        rows.remove(at.index(rows.len()));
        assert_not_verified(&rows)?;
    }

    #[test]
    fn swapped_rows_are_seen(chain in record(), a in any::<Index>(), b in any::<Index>()) {
        let mut rows = full_rows(&chain);
        let (a, b) = (a.index(rows.len()), b.index(rows.len()));
        prop_assume!(a != b);
        rows.swap(a, b);
        assert_not_verified(&rows)?;
    }

    #[test]
    fn a_row_written_twice_is_seen(chain in record(), row in any::<Index>(), at in any::<Index>()) {
        let mut rows = full_rows(&chain);
        let copy = rows[row.index(rows.len())].clone();
        rows.insert(at.index(rows.len() + 1), copy);
        assert_not_verified(&rows)?;
    }

    #[test]
    fn a_row_of_another_record_is_seen(
        chain in record(), other in record(), row in any::<Index>(), at in any::<Index>(),
    ) {
        let mut rows = full_rows(&chain);
        let foreign = full_rows(&other);
        let foreign = foreign[row.index(foreign.len())].clone();
        rows.insert(at.index(rows.len() + 1), foreign);
        assert_not_verified(&rows)?;
    }

    #[test]
    fn two_records_in_a_row_are_seen(chain in record(), other in record()) {
        let rows = [full_rows(&chain), full_rows(&other)].concat();
        let report = walk(&joined(&rows));
        prop_assert!(matches!(report.verdict, Verdict::Tampered(_)), "{}", report.verdict);
    }

    /// Whoever has no key can recompute every hash and number, and no
    /// signature.
    #[test]
    fn a_relinked_record_is_seen(
        chain in record(), at in any::<Index>(), change in 0..3,
    ) {
        let mut rows = full_rows(&chain);
        let at = at.index(rows.len());
        match change {
            0 => drop(rows.remove(at)),
            1 => rows.insert(at, rows[at].clone()),
            _ => {
                let mut line: Value = serde_json::from_slice(&rows[at]).expect("a Line");
                line["tool_id"] = json!("rm");
                prop_assume!(line["line_type"] != json!("open"));
                rows[at] = line.to_string().into_bytes();
            }
        }
        relink(&mut rows);
        assert_not_verified(&rows)?;
    }

    /// What a crash leaves: SPEC [VERIFY-7].
    #[test]
    fn a_cut_is_no_forgery_and_is_judged_by_what_is_left(chain in record(), at in any::<Index>()) {
        let before = chain.bytes();
        let bytes = &before[..at.index(before.len() + 1)];
        let report = walk(bytes);
        let left = lines(bytes);
        let whole = left.iter().take_while(|line| line.is_some()).count();
        match &report.verdict {
            Verdict::Tampered(reason) => prop_assert!(false, "{reason}"),
            Verdict::Verified(_) => {
                prop_assert_eq!(whole, left.len());
                prop_assert!(whole > 0 && line_type(&left[whole - 1]) == "close");
                let full = walk(&before);
                let same_lines = whole == lines(&before).len();
                prop_assert_eq!(same_lines, report.head == full.head);
                prop_assert_eq!(same_lines, report.coverage == full.coverage);
            }
            Verdict::Indeterminate(Indeterminate::TornFinalLine { line }) => {
                prop_assert_eq!(whole + 1, left.len());
                prop_assert_eq!(*line, left.len() as u64);
            }
            Verdict::Indeterminate(Indeterminate::Empty) => prop_assert!(left.is_empty()),
            Verdict::Indeterminate(Indeterminate::UnanchoredTail { .. }) => {
                prop_assert_eq!(whole, left.len());
                prop_assert!(line_type(&left[whole - 1]) != "close");
            }
            other => prop_assert!(false, "{other}"),
        }
    }

    /// A cut is noticed by whoever kept the head: [VERIFY-62].
    #[test]
    fn a_cut_loses_the_expected_head(chain in record(), at in any::<Index>()) {
        let before = chain.bytes();
        let bytes = &before[..at.index(before.len() + 1)];
        let options = Options { expect_head: Some(chain.tail), ..one_thread() };
        let report = verify(Box::new(io::Cursor::new(bytes.to_vec())), &options).expect("readable");
        prop_assert_eq!(report.expected_head_met, lines(bytes) == lines(&before));
    }
}

#[track_caller]
fn assert_not_verified(rows: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let report = walk(&joined(rows));
    prop_assert!(
        !is_verified(&report),
        "{}",
        String::from_utf8_lossy(&joined(rows))
    );
    Ok(())
}

fn walk(bytes: &[u8]) -> Report {
    let input = Box::new(io::Cursor::new(bytes.to_vec()));
    verify(input, &one_thread()).expect("readable")
}

fn one_thread() -> Options {
    Options {
        threads: 1,
        ..Options::default()
    }
}

fn is_verified(report: &Report) -> bool {
    matches!(report.verdict, Verdict::Verified(_))
}

fn without_spelling(mut report: Report) -> Report {
    report.notes.non_canonical_rows = 0;
    report
}

/// The canonical form of each row that is not blank, if it has one.
fn lines(bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    bytes
        .split(|&b| b == b'\n')
        .filter(|row| !row.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r')))
        .map(|row| canonicalize(row).ok())
        .collect()
}

fn line_type(line: &Option<Vec<u8>>) -> String {
    let line: Value = serde_json::from_slice(line.as_deref().expect("a Line")).expect("JSON");
    line["line_type"].as_str().expect("a type").to_owned()
}

/// The rows that are not blank.
fn full_rows(chain: &Chain) -> Vec<Vec<u8>> {
    let blank = |row: &Vec<u8>| row.as_slice() == b" \t\r";
    chain
        .rows
        .iter()
        .filter(|row| !blank(row))
        .cloned()
        .collect()
}

fn joined(rows: &[Vec<u8>]) -> Vec<u8> {
    rows.iter()
        .flat_map(|row| row.iter().chain(b"\n"))
        .copied()
        .collect()
}

/// Makes every number and link right again, as far as that needs no key.
fn relink(rows: &mut [Vec<u8>]) {
    let mut tail: Option<LineHash> = None;
    let mut seq = 0;
    for row in rows {
        let mut line: Value = serde_json::from_slice(row).expect("a Line");
        let members = line.as_object_mut().expect("an object");
        if members["line_type"] == json!("open") {
            seq = 0;
            members.remove("prev_session_tail");
            if let Some(tail) = tail {
                members.insert("prev_session_tail".to_owned(), json!(tail.to_string()));
            }
        } else {
            let tail = tail.unwrap_or(LineHash::GENESIS);
            members.insert("prev_hash".to_owned(), json!(tail.to_string()));
            members.insert("seq".to_owned(), json!(seq));
        }
        seq += 1;
        *row = canonicalize(line.to_string().as_bytes()).expect("in the value space");
        tail = Some(LineHash::of(row));
    }
}
