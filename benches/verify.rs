//! What verifying a record costs, beside what its signatures cost alone, and
//! what rechecking it does.
//!
//! How to read the rows: benches/README.md.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::hint::black_box;
use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use aegis::internals::{Policy, honest_rows};
use aegis::sign::{PreparedKey, Signature, SigningKey};
use aegis::verify::{Options, Verdict, verify};
use aegis::wire::decode::{Name, Row};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput};

mod support;

fn main() {
    println!("{}", support::machine());
    let mut criterion = Criterion::default().configure_from_args();
    whole(&mut criterion);
    parts(&mut criterion);
    recheck(&mut criterion);
    criterion.final_summary();
    println!("{}", support::load());
}

/// Full verification, and the signatures of the same record alone on as many
/// threads, for each number of threads.
fn whole(criterion: &mut Criterion) {
    let record = Record::honest(support::record_bytes());
    let signed = Signed::of(&record);
    println!(
        "# record     {} bytes, {} lines, {} signatures\n",
        record.bytes.len(),
        record.lines,
        signed.spans.len()
    );
    let mut group = criterion.benchmark_group("verify");
    slow(&mut group);
    group.throughput(record.throughput());
    for threads in thread_counts() {
        group.bench_with_input(
            BenchmarkId::new("floor_fixed_key_signatures", threads),
            &threads,
            |b, &threads| b.iter(|| signed.verify(threads)),
        );
        group.bench_with_input(
            BenchmarkId::new("honest", threads),
            &threads,
            |b, &threads| {
                b.iter(|| record.verify(threads));
            },
        );
    }
    drop(signed);
    let foreign = record.in_foreign_spelling();
    drop(record);
    group.throughput(foreign.throughput());
    for threads in thread_counts() {
        group.bench_with_input(
            BenchmarkId::new("foreign", threads),
            &threads,
            |b, &threads| {
                b.iter(|| foreign.verify(threads));
            },
        );
    }
    group.finish();
}

/// What verification consists of besides signatures, on one thread.
fn parts(criterion: &mut Criterion) {
    let record = Record::honest(support::record_bytes().min(PARTS_BYTES));
    let foreign = record.in_foreign_spelling();
    let mut group = criterion.benchmark_group("verify_parts");
    group.throughput(record.throughput());
    group.bench_function("canonical_scan", |b| {
        b.iter(|| {
            for row in record.rows() {
                assert!(Row::read_canonical(black_box(row)).is_some());
            }
        });
    });
    group.bench_function("canonical_scan_and_hash", |b| {
        b.iter(|| {
            for row in record.rows() {
                black_box(Row::read_canonical(row).unwrap().line_hash());
            }
        });
    });
    group.throughput(foreign.throughput());
    group.bench_function("foreign_scan", |b| {
        b.iter(|| {
            for row in foreign.rows() {
                assert!(Row::read(black_box(row)).is_ok());
            }
        });
    });
    group.finish();
}

/// The record of `verify/honest` under another set.
fn recheck(criterion: &mut Criterion) {
    let record = Record::honest(support::record_bytes());
    let mut group = criterion.benchmark_group("recheck");
    slow(&mut group);
    group.throughput(record.throughput());
    for (name, document) in [
        ("ten_thousand_rules", support::rules_by_tool()),
        ("rate_limit", RATE_LIMIT.to_owned()),
    ] {
        let policy = Policy::parse(&document).unwrap();
        assert!(policy.recheck(&record.bytes).unwrap() > 0, "{name}");
        group.bench_function(name, |b| {
            b.iter(|| policy.recheck(black_box(&record.bytes)).unwrap());
        });
    }
    group.finish();
}

/// Few samples, since each is a second of work on its own.
fn slow(group: &mut BenchmarkGroup<'_, WallTime>) {
    group
        .sampling_mode(SamplingMode::Flat)
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(10));
}

/// A record and what it holds.
struct Record {
    bytes: Arc<[u8]>,
    lines: u64,
}

impl Record {
    fn honest(bytes: usize) -> Self {
        Self::of(honest_rows(key(), TOOL, bytes).unwrap())
    }

    fn of(bytes: Vec<u8>) -> Self {
        let mut record = Self {
            lines: 0,
            bytes: bytes.into(),
        };
        record.lines = record.rows().count() as u64;
        record
    }

    /// The same Lines with a space before each member but the first: they
    /// verify just the same.
    fn in_foreign_spelling(&self) -> Self {
        let mut bytes = Vec::with_capacity(self.bytes.len() * 11 / 10);
        for &byte in &*self.bytes {
            bytes.push(byte);
            if byte == b',' {
                bytes.push(b' ');
            }
        }
        Self::of(bytes)
    }

    fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes
            .split(|&byte| byte == b'\n')
            .filter(|row| !row.is_empty())
    }

    fn throughput(&self) -> Throughput {
        Throughput::ElementsAndBytes {
            elements: self.lines,
            bytes: self.bytes.len() as u64,
        }
    }

    fn verify(&self, threads: usize) {
        let options = Options {
            threads,
            ..Options::default()
        };
        let input = Cursor::new(Arc::clone(&self.bytes));
        let report = verify(Box::new(input), &options).unwrap();
        assert!(matches!(report.verdict, Verdict::Verified(_)));
        assert_eq!(report.lines, self.lines);
    }
}

/// Every signature of a record with its signing input.
struct Signed {
    messages: Vec<u8>,
    spans: Vec<(Range<usize>, Signature)>,
}

impl Signed {
    fn of(record: &Record) -> Self {
        let mut signed = Self {
            messages: Vec::new(),
            spans: Vec::new(),
        };
        for row in record.rows() {
            let row = Row::read_canonical(row).unwrap();
            if let Some(signature) = row.string(Name::Signature) {
                let start = signed.messages.len();
                row.push_signing_input(&mut signed.messages);
                let span = start..signed.messages.len();
                signed
                    .spans
                    .push((span, Signature::from_hex(&signature).unwrap()));
            }
        }
        signed
    }

    /// Verifies them all under the one key, shared out over `threads`.
    fn verify(&self, threads: usize) {
        let key = PreparedKey::new(&key().public_key()).unwrap();
        let share = self.spans.len().div_ceil(threads);
        thread::scope(|scope| {
            for part in self.spans.chunks(share) {
                scope.spawn(|| self.verify_part(&key, part));
            }
        });
    }

    fn verify_part(&self, key: &PreparedKey, part: &[(Range<usize>, Signature)]) {
        let mut answers = Vec::new();
        for batch in part.chunks(BATCH) {
            let items: Vec<_> = batch
                .iter()
                .map(|(span, signature)| (&self.messages[span.clone()], *signature))
                .collect();
            key.verify_each(&items, &mut answers);
            assert!(answers.iter().all(|&holds| holds));
        }
    }
}

fn thread_counts() -> Vec<usize> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut counts = vec![1, cores];
    counts.dedup();
    counts
}

fn key() -> SigningKey {
    SigningKey::from_seed(&[9; 32])
}

const TOOL: &str = support::ALLOWED_TOOL;

/// Every Call is counted.
const RATE_LIMIT: &str = "rules:\n\
     - {id: r, action: rate_limit, tool: read_file, rate: {max: 1000, per_seconds: 1}}\n";

/// More than any cache holds, and quick enough for many samples.
const PARTS_BYTES: usize = 16 << 20;

/// Signatures that share an inversion, as in the verifier.
const BATCH: usize = 64;
