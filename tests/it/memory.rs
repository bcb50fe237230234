//! How much memory a verification takes: [VERIFY-56].
//!
//! Read off the running executable: it is given a second input, a named pipe,
//! and while it waits there its peak is that of the first.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use aegis::sign::SigningKey;
use aegis::verify::{MAX_IN_FLIGHT_NAMES, MAX_ROW_BYTES};
use aegis::wire::digest::{self, Digest};
use tempfile::TempDir;

/// Honest records of any length.
const HONEST_KIB: u64 = 32 << 10;

/// Calls that are open, however many: 2^15 names of 1 KiB in memory, sorted
/// runs of 8 MiB on disk, one of them read back at a time.
const OPEN_CALLS_KIB: u64 = 96 << 10;

/// Rows of up to 16 MiB on `T` threads: 3 `T` + 1 of them under way, and in
/// each thread one that is rewritten, with 32 bytes for each member, which has
/// at least 5, and half of that again to sort them.
const fn long_rows_kib(threads: u64) -> u64 {
    let row_kib = MAX_ROW_BYTES as u64 >> 10;
    HONEST_KIB + (3 * threads + 1) * row_kib + threads * (2 + 7 + 4) * row_kib
}

#[test]
fn an_honest_record() {
    let (told, peak_kib) = verify(2, |out| {
        let filler = "a".repeat(1000);
        let mut record = Record::open(out)?;
        while record.bytes < 60 << 20 {
            let call = record.seq;
            record.line(&format!(
                r#"{{"call_id":"call-{call}","line_type":"intent","prev_hash":"TAIL","schema_version":2,"seq":SEQ,"tool_id":"{filler}"}}"#
            ))?;
            record.line(&format!(
                r#"{{"call_id":"call-{call}","key_id":"KEY","line_type":"outcome","prev_hash":"TAIL","reason":"{filler}","schema_version":2,"seq":SEQSIGNATURE,"tool_id":"{filler}"}}"#
            ))?;
        }
        record.line(
            r#"{"key_id":"KEY","line_type":"close","prev_hash":"TAIL","schema_version":2,"seq":SEQSIGNATURE}"#,
        )
    });
    assert_eq!(told, ["Verified (unpinned)"]);
    assert!(peak_kib <= HONEST_KIB, "{peak_kib} KiB");
}

/// Intents are unsigned: anybody can append them to an open tail.
#[test]
fn a_flood_of_open_intents() {
    const CALLS: u64 = 50_000;
    let filler = "a".repeat(1020);
    let (told, peak_kib) = verify(2, |out| {
        let mut record = Record::open(out)?;
        for call in 0..CALLS {
            record.line(&format!(
                r#"{{"call_id":"{filler}{call}","line_type":"intent","prev_hash":"TAIL","schema_version":2,"seq":SEQ}}"#
            ))?;
        }
        Ok(())
    });
    assert_eq!(
        told,
        [
            format!(
                "Indeterminate: session 0 has no close record and nothing anchors beyond it; \
                 {CALLS} call(s) in flight"
            ),
            format!("in_flight {} more", CALLS - MAX_IN_FLIGHT_NAMES as u64),
        ]
    );
    assert!(peak_kib <= OPEN_CALLS_KIB, "{peak_kib} KiB");
}

#[test]
fn a_flood_of_short_rows() {
    for (row, expected) in [
        (&b"\n"[..], "Indeterminate: no lines to verify"),
        (
            b"x\n",
            "Tampered: line 1: not JSON: expected a value at byte 0",
        ),
        (b"1\n", "Tampered: line 1: not a JSON object"),
        (b"{}\n", "Tampered: line 1: no line_type"),
    ] {
        let flood = row.repeat(64 << 10);
        let (told, peak_kib) = verify(2, |out| (0..256).try_for_each(|_| out.write_all(&flood)));
        assert_eq!(told, [expected]);
        assert!(peak_kib <= HONEST_KIB, "{peak_kib} KiB");
    }
}

/// 100 MB without a row end are not read to their end.
#[test]
fn a_row_without_an_end() {
    let block = vec![b'a'; 1 << 20];
    let (told, peak_kib) = verify(2, |out| (0..100).try_for_each(|_| out.write_all(&block)));
    assert_eq!(
        told,
        ["Indeterminate: line 1 exceeds the verifier limit of 16 MiB"]
    );
    assert!(
        peak_kib <= HONEST_KIB + 2 * (MAX_ROW_BYTES as u64 >> 10),
        "{peak_kib} KiB"
    );
}

/// The row that takes most: the shortest members, none in its place.
#[test]
fn a_long_row_of_short_members() {
    let members = br#""b":0,"a":0,"#.repeat(MAX_ROW_BYTES / 12 - 1);
    let (told, peak_kib) = verify(1, |out| {
        out.write_all(b"{")?;
        out.write_all(&members)?;
        out.write_all(b"\"\":0}\n")
    });
    assert_eq!(told, ["Tampered: line 1: duplicate member `b`"]);
    assert!(peak_kib <= long_rows_kib(1), "{peak_kib} KiB");
}

/// Runs `aegis verify` on what `feed` writes: its verdict, the note on Calls
/// that are not named, and the peak of its resident memory.
fn verify(
    threads: u64,
    feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send,
) -> (Vec<String>, u64) {
    let dir = TempDir::new().expect("a folder");
    let pipe = dir.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .expect("mkfifo runs")
            .success()
    );
    let mut child = Command::new(env!("CARGO_BIN_EXE_aegis"))
        .args(["verify", "--threads", &threads.to_string(), "-"])
        .arg(&pipe)
        .env("TMPDIR", dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("aegis starts");
    let stdin = child.stdin.take().expect("a pipe");
    let stdout = child.stdout.take().expect("a pipe");
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut stdin = BufWriter::new(stdin);
            // Whoever has its verdict reads no further.
            let _ = feed(&mut stdin).and_then(|()| stdin.flush());
        });
        let told = scope.spawn(move || {
            let rows: Vec<_> = BufReader::new(stdout)
                .lines()
                .map_while(Result::ok)
                .collect();
            let first = rows
                .iter()
                .take_while(|row| !row.ends_with("/pipe"))
                .skip(1);
            let kept = |row: &&String| {
                row.starts_with(char::is_uppercase)
                    || (row.starts_with("in_flight") && row.ends_with(" more"))
            };
            first.filter(kept).cloned().collect()
        });
        let second = wait_for_reader(&pipe, &mut child);
        let peak_kib = peak_kib(&child);
        drop(second);
        child.wait().expect("aegis ends");
        (told.join().expect("a reader"), peak_kib)
    })
}

/// The pipe opened for writing, once somebody reads it.
pub(crate) fn wait_for_reader(pipe: &Path, child: &mut Child) -> File {
    const O_NONBLOCK: i32 = 0o4000;
    loop {
        match File::options()
            .write(true)
            .custom_flags(O_NONBLOCK)
            .open(pipe)
        {
            Ok(file) => return file,
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
        let ended = child.try_wait().expect("a child");
        assert!(ended.is_none(), "aegis ended before its second input");
    }
}

pub(crate) fn peak_kib(child: &Child) -> u64 {
    let mut status = String::new();
    File::open(format!("/proc/{}/status", child.id()))
        .and_then(|mut file| file.read_to_string(&mut status))
        .expect("a status");
    let peak = status.lines().find_map(|row| row.strip_prefix("VmHWM:"));
    let kib = peak
        .and_then(|row| row.trim().strip_suffix(" kB"))
        .expect("a peak");
    kib.trim().parse().expect("a number")
}

/// Writes Lines as fast as they can be signed: the text of each is canonical
/// already, but for what stands in capitals.
struct Record<'a> {
    out: &'a mut dyn Write,
    key: SigningKey,
    tail: Digest<digest::Line>,
    seq: u64,
    bytes: usize,
}

impl<'a> Record<'a> {
    fn open(out: &'a mut dyn Write) -> io::Result<Self> {
        let key = SigningKey::insecure_dev();
        let public_key = key.public_key();
        let mut record = Self {
            out,
            key,
            tail: Digest::GENESIS,
            seq: 0,
            bytes: 0,
        };
        record.line(&format!(
            r#"{{"key_id":"KEY","line_type":"open","prev_hash":"TAIL","public_key":"{public_key}","schema_version":2,"seq":SEQSIGNATURE}}"#
        ))?;
        Ok(record)
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        let text = text
            .replacen("KEY", &self.key.key_id().to_string(), 1)
            .replacen("TAIL", &self.tail.to_string(), 1)
            .replacen("SEQ", &self.seq.to_string(), 1);
        let row = match text.split_once("SIGNATURE") {
            Some((before, after)) => {
                let signature = self.key.sign(format!("{before}{after}").as_bytes());
                format!(r#"{before},"signature":"{signature}"{after}"#)
            }
            None => text,
        };
        self.tail = Digest::of(row.as_bytes());
        self.seq += 1;
        self.bytes += row.len() + 1;
        self.out.write_all(row.as_bytes())?;
        self.out.write_all(b"\n")
    }
}
