//! Same bytes, same report: whatever the chunks, the threads and the speed of
//! the input ([VERIFY-1]).

use std::io::{self, Read};

use aegis::verify::{Options, Report, verify};
use proptest::prelude::*;

use crate::assemble::Chain;
use crate::edits::record;
use crate::hostile::{options, read_cases};
use crate::kit::read_folder;

#[test]
fn every_fixture_has_one_report() {
    let published = [
        "published/session",
        "published/tampered",
        "published/indeterminate",
    ]
    .into_iter()
    .flat_map(read_folder)
    .map(|(name, bytes)| (name, bytes, Options::default()));
    let hostile = read_cases()
        .into_iter()
        .map(|(name, case)| (name, case.body.clone(), options(&case)));
    for (name, bytes, options) in published.chain(hostile) {
        assert_one_report(&bytes, &options, &name);
    }
}

/// An input that fails has no verdict, unless it had one before.
#[test]
fn a_failing_input_is_told() {
    let mut long = Chain::opened();
    for call in 0..200 {
        long.intent(&format!("call-{call}"));
    }
    let mut forged = long.clone();
    forged.rows[1] = b"12".to_vec();
    for threads in [1, 2, 5] {
        let run = |chain: &Chain| {
            let options = Options {
                chunk_bytes: 64 << 10,
                threads,
                ..Options::default()
            };
            // The row that contradicts lies in the first of several chunks.
            let filler = vec![b'\n'; 1 << 20];
            let input = io::Cursor::new([chain.bytes(), filler].concat());
            verify(Box::new(input.chain(Failing)), &options)
        };
        let error = run(&long).expect_err("no verdict");
        assert_eq!(error.to_string(), "the disk is gone");
        let report = run(&forged).expect("a verdict");
        assert_eq!(
            report.verdict.to_string(),
            "Tampered: line 2: not a JSON object"
        );
    }
}

/// A reader that always fails.
struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the disk is gone"))
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_random_record_has_one_report(
        chain in record(), at in any::<prop::sample::Index>(), flip in any::<u8>(),
    ) {
        let mut bytes = chain.bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        assert_one_report(&bytes, &Options::default(), "a random record");
    }
}

#[track_caller]
fn assert_one_report(bytes: &[u8], options: &Options, name: &str) {
    let run = |input: Box<dyn Read + Send>, chunk_bytes, threads| {
        let options = Options {
            chunk_bytes,
            threads,
            ..options.clone()
        };
        verify(input, &options).expect("readable")
    };
    let whole = || Box::new(io::Cursor::new(bytes.to_vec()));
    let expected: Report = run(whole(), 256 << 10, 1);
    for (chunk_bytes, threads) in [
        (1, 1),
        (7, 2),
        (64, 5),
        (4096, 1),
        (4096, 5),
        (65_536, 2),
        (256 << 10, 5),
    ] {
        let report = run(whole(), chunk_bytes, threads);
        assert_eq!(
            report, expected,
            "{name}: {chunk_bytes} bytes, {threads} threads"
        );
    }
    let slow = Box::new(OneByte(io::Cursor::new(bytes.to_vec())));
    assert_eq!(run(slow, 4096, 2), expected, "{name}: one byte at a time");
}

/// A reader that is never ahead, and often interrupted.
struct OneByte(io::Cursor<Vec<u8>>);

impl Read for OneByte {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let at = self.0.position();
        if at % 13 == 5 && !self.0.get_ref().is_empty() {
            self.0.set_position(at + 1);
            let byte = self
                .0
                .get_ref()
                .get(usize::try_from(at).unwrap_or(usize::MAX))
                .copied();
            return match (byte, buffer.first_mut()) {
                (Some(byte), Some(first)) => {
                    *first = byte;
                    Ok(1)
                }
                _ => Ok(0),
            };
        }
        let end = buffer.len().min(1);
        self.0.read(&mut buffer[..end])
    }
}
