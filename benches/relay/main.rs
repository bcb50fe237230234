//! What stands in the way of a message when `aegis wrap` does, beside what any
//! process in its place would cost and what the disk costs alone.
//!
//! The stacks of a table run side by side and take turns, so that the machine's
//! other business falls on all of them. How to read the rows: benches/README.md.

#![allow(clippy::print_stdout, missing_docs)]

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use peers::{echo, pass};
use session::{AEGIS, Ask, Between, Place, Session};
use table::{Row, table};

mod judged;
mod peers;
mod session;
#[path = "../support/mod.rs"]
mod support;
mod table;

fn main() -> io::Result<()> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    match args.split_first() {
        Some((first, _)) if first == peers::ECHO => return echo(),
        Some((first, command)) if first == peers::PASS => return pass(command),
        _ if args.iter().any(|argument| argument == "--list") => return Ok(()),
        _ => {}
    }
    let effort = match args.iter().any(|argument| argument == "--bench") {
        true => Effort::MEASURE,
        false => Effort::TRY,
    };
    let filters: Vec<_> = args
        .iter()
        .filter_map(|argument| argument.to_str())
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|part| name.contains(part));

    let directory = support::directory()?;
    let key = directory.path().join("key");
    run(&["keygen", "--out"], &key)?;
    let policy = directory.path().join("policy.yaml");
    fs::write(&policy, support::rules_by_tool())?;
    let place = Place {
        directory: directory.path(),
        key: &key,
        policy: &policy,
    };
    println!("{}{}", support::machine(), support::disk(directory.path()));
    if wanted("wrap_relay/ping_relayed_only") {
        println!("{}", pings(&place, effort)?);
    }
    if wanted("wrap_relay/tools_call_recorded") {
        println!("{}", calls(&place, effort)?);
    }
    if wanted("wrap_relay/in_flight") {
        println!("{}", in_flight(&place, effort)?);
    }
    for bench in judged::BENCHES {
        if wanted(bench.id) {
            println!("{}", bench.run(&place, effort)?);
        }
    }
    if wanted("wrap_start") {
        println!("{}", starts(&place, effort)?);
    }
    println!("{}", support::load());
    Ok(())
}

/// How much is measured.
#[derive(Clone, Copy)]
struct Effort {
    /// Turns that each stack has.
    turns: usize,
    /// Round trips of one turn.
    trips: usize,
    /// Requests of one turn with many in flight.
    flight: usize,
    /// Starts of each stack.
    starts: usize,
    /// Differences of two stacks.
    differences: usize,
}

impl Effort {
    const MEASURE: Self = Self {
        turns: 40,
        trips: 50,
        flight: 400,
        starts: 60,
        differences: 2000,
    };
    const TRY: Self = Self {
        turns: 1,
        trips: 3,
        flight: 32,
        starts: 1,
        differences: 2,
    };
}

/// Messages that leave no trace in the record.
fn pings(place: &Place<'_>, effort: Effort) -> io::Result<String> {
    let stacks = [
        ("direct", Between::Nothing),
        ("pass_through", Between::PassThrough),
        ("aegis wrap", Between::Wrap("intent")),
    ];
    let mut rows = serial(&stacks, Ask::Ping, "ping", place, effort)?;
    let floor = rows[1].median();
    Ok(table(
        "wrap_relay/ping_relayed_only",
        "us a round trip",
        ("pass_through", floor),
        &mut rows,
    ))
}

/// Recorded calls, one after the other. The floor of one is a pass-through and
/// one append with its flush.
fn calls(place: &Place<'_>, effort: Effort) -> io::Result<String> {
    let mut rows = serial(&CALL_STACKS, Ask::ToolsCall, "call", place, effort)?;
    let floor = rows[0].median() + rows[2].median();
    Ok(table(
        "wrap_relay/tools_call_recorded",
        "us a round trip",
        ("pass_through + append_fdatasync", floor),
        &mut rows,
    ))
}

/// Round trips of every stack in turns, behind those of the disk alone when
/// they are of calls.
fn serial(
    stacks: &[(&str, Between)],
    ask: Ask,
    audit: &str,
    place: &Place<'_>,
    effort: Effort,
) -> io::Result<Vec<Row>> {
    let mut disk = Disk::new(place.directory)?;
    let mut disk_row = Row::new("append_fdatasync");
    let mut sessions = start_all(stacks, audit, place)?;
    for _ in 0..effort.turns {
        if matches!(ask, Ask::ToolsCall) {
            for _ in 0..effort.trips {
                disk_row.time(disk.append()?);
            }
        }
        for (session, row, _) in &mut sessions {
            for _ in 0..WARM_UP {
                session.round_trip(ask)?;
            }
            for _ in 0..effort.trips {
                row.time(session.round_trip(ask)?);
            }
            thread::sleep(SETTLE);
        }
    }
    let mut rows = end_all(sessions, audit, place)?;
    if matches!(ask, Ask::ToolsCall) {
        rows.insert(0, disk_row);
    }
    Ok(rows)
}

/// Recorded calls with several under way at any moment.
fn in_flight(place: &Place<'_>, effort: Effort) -> io::Result<String> {
    let mut sessions = start_all(&CALL_STACKS, "flight", place)?;
    let mut serial = Row::new("aegis wrap intent, 1 in flight");
    for _ in 0..effort.turns {
        for (session, row, between) in &mut sessions {
            session.in_flight(Ask::ToolsCall, IN_FLIGHT, IN_FLIGHT)?;
            let time = session.in_flight(Ask::ToolsCall, effort.flight, IN_FLIGHT)?;
            row.rate(effort.flight, time);
            if *between == Between::Wrap("intent") {
                let time = session.in_flight(Ask::ToolsCall, effort.trips, 1)?;
                serial.rate(effort.trips, time);
            }
            thread::sleep(SETTLE);
        }
    }
    let mut rows = end_all(sessions, "flight", place)?;
    let floor = serial.median();
    rows.insert(0, serial);
    Ok(table(
        "wrap_relay/in_flight_16",
        "recorded calls a second",
        ("one in flight", floor),
        &mut rows,
    ))
}

/// From the start of the processes to the answer to `initialize`.
fn starts(place: &Place<'_>, effort: Effort) -> io::Result<String> {
    let stacks = [
        ("direct", Between::Nothing),
        ("pass_through", Between::PassThrough),
        ("aegis wrap", Between::Wrap("intent")),
        ("aegis wrap --policy", Between::Judged("intent")),
    ];
    let mut rows = stacks.map(|(name, _)| Row::new(name));
    for number in 0..effort.starts {
        for ((_, between), row) in stacks.iter().zip(&mut rows) {
            let begun = Instant::now();
            let audit = audit_name(&format!("start-{number}"), *between);
            let mut session = Session::start(*between, &audit, place)?;
            session.round_trip(Ask::Initialize)?;
            row.time(begun.elapsed());
            session.end()?;
        }
    }
    let floor = rows[0].median();
    Ok(table(
        "wrap_start",
        "us to the first answer",
        ("direct", floor),
        &mut rows,
    ))
}

type Measured = (Session, Row, Between);

fn start_all(
    stacks: &[(&str, Between)],
    audit: &str,
    place: &Place<'_>,
) -> io::Result<Vec<Measured>> {
    let start = |(name, between): &(&str, Between)| {
        let session = Session::start(*between, &audit_name(audit, *between), place)?;
        Ok((session, Row::new(*name), *between))
    };
    stacks.iter().map(start).collect()
}

/// Ends the stacks. A record that does not verify would make its numbers
/// worthless.
fn end_all(sessions: Vec<Measured>, audit: &str, place: &Place<'_>) -> io::Result<Vec<Row>> {
    let end = |(session, row, between): Measured| {
        session.end()?;
        if let Between::Wrap(_) | Between::Judged(_) = between {
            let record = place.directory.join(audit_name(audit, between));
            run(&["verify"], &record)?;
        }
        Ok(row)
    };
    sessions.into_iter().map(end).collect()
}

fn audit_name(audit: &str, between: Between) -> String {
    match between {
        Between::Wrap(durability) => format!("{audit}-{durability}.aarl"),
        Between::Judged(durability) => format!("{audit}-{durability}-judged.aarl"),
        Between::Nothing | Between::PassThrough => audit.to_owned(),
    }
}

/// Runs aegis on a path and expects it to succeed.
fn run(args: &[&str], path: &Path) -> io::Result<()> {
    let output = Command::new(AEGIS).args(args).arg(path).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "aegis {}: {}{}",
        args.join(" "),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )))
}

/// What the disk costs alone.
struct Disk {
    file: File,
    row: Vec<u8>,
}

impl Disk {
    fn new(directory: &Path) -> io::Result<Self> {
        let options = File::options().create(true).append(true).clone();
        Ok(Self {
            file: options.open(directory.join("floor"))?,
            row: vec![b'x'; ROW_BYTES],
        })
    }

    fn append(&mut self) -> io::Result<Duration> {
        let begun = Instant::now();
        self.file.write_all(&self.row)?;
        self.file.sync_data()?;
        Ok(begun.elapsed())
    }
}

const CALL_STACKS: [(&str, Between); 5] = [
    ("direct", Between::Nothing),
    ("pass_through", Between::PassThrough),
    ("aegis wrap intent (default)", Between::Wrap("intent")),
    ("aegis wrap full", Between::Wrap("full")),
    ("aegis wrap process", Between::Wrap("process")),
];

/// Calls under way at a time.
const IN_FLIGHT: usize = 16;

/// About an outcome.
const ROW_BYTES: usize = 1000;

/// Round trips before those that count, in each turn.
const WARM_UP: usize = 5;

/// Longer than an outcome may wait for its flush, so that none falls into the
/// turn of another stack.
const SETTLE: Duration = Duration::from_millis(60);
