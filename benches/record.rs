//! What recording a Call costs, beside what its disk costs alone.
//!
//! How to read the rows: benches/README.md.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use aegis::internals::{FrameScanner, Recorder, honest_rows};
use aegis::sign::SigningKey;
use aegis::wire::decode::{Name, Row};
use aegis::wire::digest::Digest;
use aegis::wire::facts::Durability;
use aegis::wire::line::{self, Intent, Place};
use aegis::wire::outcome::Outcome;
use aegis::wire::time::Timestamp;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, measurement::WallTime};

mod support;

criterion_group! {
    name = benches;
    config = Criterion::default();
    targets = emission, signing, frames
}

fn main() {
    println!("{}", support::machine());
    benches();
    Criterion::default().configure_from_args().final_summary();
    println!("{}", support::load());
}

/// One Call, intent to outcome, and the flushes that it waits for.
fn emission(criterion: &mut Criterion) {
    let directory = support::directory().unwrap();
    println!("{}", support::disk(directory.path()));
    let rows = Rows::new();

    let mut group = criterion.benchmark_group("audit_emission");
    group.measurement_time(Duration::from_secs(8));
    floor(
        &mut group,
        "floor_append_fdatasync",
        directory.path(),
        &rows,
    );
    for (name, durability) in [
        ("begin_complete", Durability::Intent),
        ("begin_complete_full", Durability::Full),
        ("begin_complete_process", Durability::Process),
    ] {
        let path = directory.path().join(name);
        let recorder = Recorder::in_file(&path, key(), durability).unwrap();
        group.bench_function(name, |b| b.iter(|| call(&recorder)));
        recorder.close().unwrap();
    }
    // Again: how far the disk itself moved meanwhile.
    floor(
        &mut group,
        "floor_append_fdatasync_after",
        directory.path(),
        &rows,
    );

    group.throughput(Throughput::Elements(IN_FLIGHT as u64));
    let path = directory.path().join("in_flight");
    let recorder = Recorder::in_file(&path, key(), Durability::Intent).unwrap();
    group.bench_function("begin_complete_16_threads", |b| {
        b.iter_custom(|rounds| on_threads(rounds, || call(&recorder)));
    });
    recorder.close().unwrap();
    group.finish();

    let mut group = criterion.benchmark_group("audit_emission");
    let recorder = Recorder::nowhere(key()).unwrap();
    group.bench_function("begin_complete_no_disk", |b| b.iter(|| call(&recorder)));
    let (intent, outcome, place) = rows.typed();
    let key_id = key().key_id();
    group.bench_function("serialize_only", |b| {
        b.iter(|| {
            let intent = line::unsigned(place, black_box(&intent)).unwrap();
            let outcome = line::signed(place, black_box(&outcome), key_id, |_| [0; 64]).unwrap();
            (intent, outcome)
        });
    });
    group.finish();
}

/// A row of the same size as an outcome, appended and flushed.
fn floor(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, directory: &Path, rows: &Rows) {
    let options = || File::options().create(true).append(true).clone();
    let mut file = options().open(directory.join(name)).unwrap();
    let mut row = rows.outcome.clone();
    row.push(b'\n');
    group.bench_function(name, |b| {
        b.iter(|| {
            file.write_all(&row).unwrap();
            file.sync_data().unwrap();
        });
    });
}

/// One ed25519 signature over the signing input of an outcome, and nothing
/// else.
fn signing(criterion: &mut Criterion) {
    let rows = Rows::new();
    let mut input = Vec::new();
    Row::read_canonical(&rows.outcome)
        .unwrap()
        .push_signing_input(&mut input);
    let key = key();
    let mut group = criterion.benchmark_group("audit_signing");
    group.bench_function("sign_outcome_line", |b| {
        b.iter(|| key.sign(black_box(&input)))
    });
    group.finish();
}

/// What the relay reads of a frame: the whole of it, once.
fn frames(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame_scan");
    let text = "x".repeat(64 << 10);
    for (name, frame) in [
        ("ping", r#"{"jsonrpc":"2.0","id":17,"method":"ping"}"#.to_owned()),
        (
            "tools_call",
            r#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"/srv/notes/today.md","head":40}}}"#.to_owned(),
        ),
        (
            "answer_64_KiB",
            format!(r#"{{"jsonrpc":"2.0","id":17,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#),
        ),
    ] {
        let mut scanner = FrameScanner::new();
        group.throughput(Throughput::Bytes(frame.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| assert!(scanner.is_message(black_box(frame.as_bytes()))));
        });
    }
    group.finish();
}

/// The intent and the outcome of a Call, as they stand in a record.
struct Rows {
    intent: Vec<u8>,
    outcome: Vec<u8>,
}

impl Rows {
    fn new() -> Self {
        let record = honest_rows(key(), TOOL, 1024).unwrap();
        let of = |line_type: &str| {
            record
                .split(|&byte| byte == b'\n')
                .find(|row| {
                    Row::read_canonical(row)
                        .is_some_and(|row| row.string(Name::LineType).as_deref() == Some(line_type))
                })
                .unwrap()
                .to_vec()
        };
        Self {
            intent: of("intent"),
            outcome: of("outcome"),
        }
    }

    fn typed(&self) -> (Intent, Outcome, Place) {
        let intent = Row::read_canonical(&self.intent).unwrap();
        let outcome = Row::read_canonical(&self.outcome).unwrap();
        let place = Place {
            seq: intent.integer(Name::Seq).unwrap(),
            prev_hash: intent.digest(Name::PrevHash).unwrap(),
            time: Some(Timestamp::of(SystemTime::now())),
        };
        (intent.typed().unwrap(), outcome.typed().unwrap(), place)
    }
}

fn call(recorder: &Recorder) {
    recorder
        .call(TOOL, Digest::of(b"request"), Digest::of(b"response"))
        .unwrap();
}

/// The time in which every thread does `rounds` of `work`.
fn on_threads(rounds: u64, work: impl Fn() + Sync) -> Duration {
    let start = Barrier::new(IN_FLIGHT + 1);
    thread::scope(|scope| {
        for _ in 0..IN_FLIGHT {
            scope.spawn(|| {
                start.wait();
                for _ in 0..rounds {
                    work();
                }
            });
        }
        start.wait();
        Instant::now()
    })
    .elapsed()
}

fn key() -> SigningKey {
    SigningKey::from_seed(&[9; 32])
}

const TOOL: &str = "read_file";

/// Calls at the same time.
const IN_FLIGHT: usize = 16;
