//! The scanner against serde_json, against the published parsing suite, and
//! against itself with the frame cut elsewhere.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::rpc::frame::{FrameLimits, FrameReader};

/// Bytes that matter to the grammar, and some that do not.
const ALPHABET: &[u8] =
    b"{}[]:,\"\\/ \t\r-+.0123456789eEtrufalsn\x00\x1f\x7f\x80\xbf\xc3\xe2\xed\xa0\xf0\x9f\xffdD8cC";

const SAMPLES: [&str; 7] = [
    r#"{"jsonrpc":"2.0","id":"aé\ud83d\ude00😀","method":"tools/call","params":{"name":"n\u00e9","arguments":{"x":[1.5e-3,true,null]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
    "[{\"id\":-0.5E+2,\"method\":\"m\"},{\"id\":[1,\"€\"],\"result\":{\"requestState\":{\"a\":\"ü\"},\"task\":{\"taskId\":\"x\"}}}]\r",
    r#"{"id":1,"error":{"code":-32602,"message":"no"},"0123456789abcdef0":1,"0123456789abcdef0":1}"#,
    "{\"a\":\"\u{1f600}\r\"}",
    " \t\r",
    " \u{feff}{}",
    "\u{feff}{}",
];

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z\\\\\"\u{e9}\u{1f600}\u{1}]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-d\u{e9}]{0,3}", inner, 0..20)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A frame that is valid if and only if `text` is a JSON text.
fn around(text: &[u8]) -> Vec<u8> {
    [b"{\"id\":", text, b"}"].concat()
}

fn by_pieces(frame: &[u8], size: usize) -> Scan {
    let mut scanner = Scanner::new();
    for piece in frame.chunks(size) {
        scanner.feed(piece);
    }
    scanner.finish()
}

fn check_agreement(text: &[u8]) -> Result<(), TestCaseError> {
    let frame = around(text);
    let ours = scan(&frame);
    match (&ours, serde_json::from_slice::<Value>(&frame)) {
        (Scan::Message(_), Ok(_)) => {}
        // Stricter by intent. A bare CR may hide any other fault behind it.
        (Scan::Unreadable(Reason::DuplicateMember | Reason::BareCr), _) => {}
        // The grammar has no largest number.
        (Scan::Message(_), Err(error)) if error.to_string().contains("out of range") => {}
        (Scan::Unreadable(_), Err(_)) => {}
        (ours, theirs) => {
            let shown = String::from_utf8_lossy(&frame);
            prop_assert!(false, "{shown}: {ours:?}, but {theirs:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn valid_json_is_readable(value in json(), pretty in any::<bool>()) {
        let text = match pretty {
            true => serde_json::to_vec_pretty(&value),
            false => serde_json::to_vec(&value),
        }.expect("a value can be written");
        let frame = around(&text);
        prop_assert!(is_readable(&frame), "{}: {:?}", String::from_utf8_lossy(&frame), scan(&frame));
    }

    #[test]
    fn mutated_json_is_judged_as_serde_json_does(
        value in json(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..3, prop::sample::select(ALPHABET)), 1..4),
    ) {
        let mut text = serde_json::to_vec(&value).expect("a value can be written");
        for (index, edit, byte) in edits {
            let at = index.index(text.len() + 1);
            match edit {
                0 => text.insert(at, byte),
                1 if at < text.len() => text[at] = byte,
                _ if at < text.len() => { text.remove(at); }
                _ => {}
            }
        }
        check_agreement(&text)?;
    }

    #[test]
    fn bytes_are_judged_as_serde_json_does(
        text in prop::collection::vec(prop::sample::select(ALPHABET), 0..12),
    ) {
        check_agreement(&text)?;
        check_agreement(&[b"\"", &text[..], b"\""].concat())?;
    }

    #[test]
    fn names_are_distinct_or_refused(
        names in prop::collection::vec("[ab\u{e9}]{0,2}|[ab]{3}x{0,6}[ab]{1,2}|[ab]x{13,16}[ab]", 0..24),
    ) {
        let members: Vec<_> = names.iter().map(|name| format!("\"{name}\":0")).collect();
        let frame = format!("{{{}}}", members.join(","));
        let distinct = names.iter().collect::<HashSet<_>>().len() == names.len();
        prop_assert_eq!(is_readable(&frame), distinct, "{}", frame);
    }

    #[test]
    fn pieces_do_not_change_the_result(
        value in json(),
        noise in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(ALPHABET)), 0..3),
        size in 1_usize..9,
    ) {
        let mut frame = around(&serde_json::to_vec(&value).expect("a value can be written"));
        for (index, byte) in noise {
            let at = index.index(frame.len());
            frame[at] = byte;
        }
        prop_assert_eq!(by_pieces(&frame, size), scan(&frame));
    }
}

#[test]
fn a_cut_anywhere_does_not_change_the_result() {
    for sample in SAMPLES {
        let frame = sample.as_bytes();
        let whole = scan(frame);
        for size in 1..=frame.len() {
            assert_eq!(by_pieces(frame, size), whole, "pieces of {size}: {sample}");
        }
        for cut in 0..=frame.len() {
            let mut scanner = Scanner::new();
            scanner.feed(&frame[..cut]);
            scanner.feed(b"");
            scanner.feed(&frame[cut..]);
            assert_eq!(scanner.finish(), whole, "cut at {cut}: {sample}");
            // Every prefix has one result, too.
            let prefix = &frame[..cut];
            assert_eq!(by_pieces(prefix, 1), scan(prefix), "first {cut}: {sample}");
        }
    }
}

#[test]
fn a_frame_longer_than_a_block_is_one_text() {
    // Characters of three bytes, so that blocks end inside them.
    let name = "€".repeat(BLOCK);
    let frame = format!(r#"{{"id":1,"params":{{"requestState":"{name}","name":"x"}}}}"#);
    let message = message(&frame);
    assert_eq!(
        message.params.request_state,
        Some(sum(format!("\"{name}\"")))
    );
    assert_eq!(message.params.name.as_whole(), Some("x"));
}

#[test]
fn a_spooled_frame_scans_as_one_in_memory() {
    let dir = TempDir::new().expect("a directory");
    for sample in SAMPLES {
        for in_memory in [1, 1000] {
            let limits = FrameLimits {
                in_memory,
                ..FrameLimits::new(dir.path().to_owned())
            };
            let mut reader = FrameReader::new(sample.as_bytes(), limits);
            let frame = reader.next_frame().expect("a stream").expect("a frame");
            assert_eq!(frame.is_spooled(), in_memory == 1);
            let scanned = Scanner::new().scan(&frame).expect("a spool file");
            assert_eq!(scanned, scan(sample));
        }
    }
}

#[test]
fn the_parsing_suite_agrees() {
    let suite = std::env::var_os("AEGIS_VECTORS")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/vectors"))
        .join("JSONTestSuite/test_parsing");
    let Ok(files) = fs::read_dir(&suite) else {
        let absent = format!(
            "SKIPPED: no JSONTestSuite in {}; set AEGIS_VECTORS\n",
            suite.display()
        );
        // Past the capture of test output.
        io::stderr().write_all(absent.as_bytes()).expect("stderr");
        return;
    };
    let (mut accepted, mut refused) = (0, 0);
    for file in files {
        let path = file.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let text = fs::read(&path).expect("a file");
        let scan = scan(around(&text));
        let readable = matches!(scan, Scan::Message(_));
        // The two duplicates are valid JSON that a frame may not hold.
        let stricter = name.contains("duplicated_key");
        match name.as_bytes()[0] {
            b'y' if stricter => assert_eq!(scan, Scan::Unreadable(Reason::DuplicateMember)),
            b'y' => assert!(readable, "{name}: {scan:?}"),
            b'n' => assert!(!readable, "{name}"),
            _ => continue,
        }
        match readable {
            true => accepted += 1,
            false => refused += 1,
        }
    }
    assert!(accepted > 90 && refused > 180, "{accepted} and {refused}");
}
