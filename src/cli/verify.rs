//! `aegis verify`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use argh::FromArgs;

use super::args::{self, PathArg, Verb};
use super::exit::Exit;
use super::inputs;
use super::ui::{self, Out, count};
use super::verify_json;
use super::{Request, UsageError};
use crate::input::{Directory, Input, Source};
use crate::sign::PublicKey;
use crate::verify::{
    Indeterminate, MAX_IN_FLIGHT_NAMES, MAX_UNMET, Options, Report, Requirement, Segment, Tampered,
    Trust, Verdict, judge_segments, read_store, verify,
};
use crate::wire::digest::{Digest, Line};
use crate::wire::escape::EscapedPath;

/// Check record files offline: whether they are complete and unchanged, and
/// under whose key.
///
/// Prints one verdict for each record: Verified, Tampered or Indeterminate.
/// Without --key or --trust-store a Verified record is only consistent with
/// itself; with one of them it is also proven to be written under that key.
#[derive(FromArgs)]
#[argh(
    note = "PATH is a record file, an audit directory, or - for standard input.",
    note = "REQUIREMENT is KEY=VALUE (is one of) or KEY!=VALUE (is none of), with | between values, in quotes for the shell:",
    note = "  confine     full, partial, none, failed",
    note = "  net         denied, denied-netns, denied-seccomp, host-port,",
    note = "              port-only, unrestricted",
    note = "  metadata    denied, allowed",
    note = "  durability  full, intent, process",
    note = "  policy      enforced, shadow",
    note = "  hole (!=)   any, unix-sockets, shared-cache, upstream-proxy",
    note = "What a record does not say, or says in a word that is not known here, meets no requirement.",
    error_code(0, "Verified"),
    error_code(1, "Tampered, or a usage error"),
    error_code(2, "an input or the trust store could not be read"),
    error_code(3, "Indeterminate"),
    error_code(4, "Verified, and a requirement is not met")
)]
pub(super) struct Args {
    /// accept records under this public key (64 hex digits); may be repeated
    #[argh(option, arg_name = "HEX")]
    key: Vec<String>,
    /// accept records under the public keys in this file, one a line
    #[argh(option, arg_name = "PATH")]
    trust_store: Option<PathArg>,
    /// demand that the line with this hash is still there
    #[argh(option, arg_name = "LINE_HASH")]
    expect_head: Option<String>,
    /// demand this of every session of a Verified record, like
    /// 'net=denied|host-port'; may be repeated, and all must hold; needs --key
    /// or --trust-store
    #[argh(option, arg_name = "REQUIREMENT")]
    require: Vec<String>,
    /// text (default) or json: one object for each record
    #[argh(option, arg_name = "text|json")]
    format: Option<String>,
    /// how many threads check signatures (default: one for each core)
    #[argh(option, arg_name = "N")]
    threads: Option<String>,
    /// what to verify
    #[argh(positional, arg_name = "PATH")]
    paths: Vec<PathArg>,
}

impl Verb for Args {
    const NAME: &'static str = "verify";
    const USAGE: &'static str = "[--key HEX]... [--trust-store PATH] [--expect-head LINE_HASH]\n                    [--require REQUIREMENT]... [--format text|json] [--threads N]\n                    PATH...";
}

/// What was asked for.
pub(super) struct Verify {
    keys: Vec<PublicKey>,
    trust_store: Option<PathBuf>,
    expect_head: Option<Digest<Line>>,
    require: Vec<Requirement>,
    json: bool,
    threads: Option<usize>,
    sources: Vec<Source>,
}

impl TryFrom<Args> for Verify {
    type Error = UsageError;

    fn try_from(args: Args) -> Result<Self, UsageError> {
        let sources = inputs::sources(args.paths, Args::NAME)?;
        let is_pinned = !args.key.is_empty() || args.trust_store.is_some();
        Ok(Self {
            require: requirements(&args.require, is_pinned)?,
            keys: args
                .key
                .iter()
                .map(|key| {
                    PublicKey::from_hex(key)
                        .map_err(|e| UsageError(format!("--key needs a 64-hex public key: {e}")))
                })
                .collect::<Result<_, _>>()?,
            trust_store: args.trust_store.map(|path| path.0.into()),
            expect_head: args
                .expect_head
                .map(|hash| {
                    Digest::from_hex(&hash).map_err(|e| {
                        UsageError(format!("--expect-head needs a 64-hex line hash: {e}"))
                    })
                })
                .transpose()?,
            json: super::json_format(args.format.as_deref())?,
            threads: args
                .threads
                .map(|n| match n.parse() {
                    Ok(n @ 1..=MAX_THREADS) => Ok(n),
                    _ => Err(UsageError(format!(
                        "--threads needs a number from 1 to {MAX_THREADS}, got `{}`",
                        args::typed(&n)
                    ))),
                })
                .transpose()?,
            sources,
        })
    }
}

/// What is asked of the Sessions. Whoever rewrites a record can have it say
/// anything, so it is asked only of one whose key is accepted.
fn requirements(texts: &[String], is_pinned: bool) -> Result<Vec<Requirement>, UsageError> {
    if !texts.is_empty() && !is_pinned {
        return Err(UsageError(
            "--require needs --key or --trust-store: without a pin anybody could have written what a record says"
                .to_owned(),
        ));
    }
    let read = |text: &String| {
        text.parse()
            .map_err(|e| UsageError(format!("--require `{}`: {e}", args::typed(text))))
    };
    texts.iter().map(read).collect()
}

impl Request for Verify {
    fn run(self) -> ExitCode {
        let options = match self.options() {
            Ok(options) => options,
            Err(exit) => return exit.into(),
        };
        let mut run = Run {
            several: self.sources.len() > 1,
            out: Out::new(),
            json: self.json,
            exit: Exit::Ok,
            head_met: false,
            doubt: false,
            options,
        };
        for source in self.sources {
            run.source(source);
        }
        run.finish().into()
    }
}

impl Verify {
    fn options(&self) -> Result<Options, Exit> {
        let mut keys = self.keys.clone();
        if let Some(path) = &self.trust_store {
            let shown = EscapedPath(path);
            let text = read_bounded(path).map_err(|e| {
                ui::error(format_args!("read trust store {shown}: {e}"));
                Exit::Unreadable
            })?;
            keys.extend(read_store(&text).map_err(|e| {
                ui::error(format_args!("trust store {shown} {e}"));
                Exit::Failed
            })?);
        }
        let mut options = Options {
            expect_head: self.expect_head,
            require: self.require.clone(),
            ..Options::default()
        };
        if !self.keys.is_empty() || self.trust_store.is_some() {
            options.trust = Trust::pinned(keys);
        }
        if let Some(threads) = self.threads {
            options.threads = threads;
        }
        Ok(options)
    }
}

/// The text of a trust store.
fn read_bounded(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = fs::File::open(path)?;
    file.take(MAX_STORE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_STORE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "a trust store has at most 16 MiB",
        ));
    }
    Ok(text)
}

/// A run over all inputs.
struct Run {
    several: bool,
    out: Out,
    json: bool,
    exit: Exit,
    head_met: bool,
    /// Something was not read, so an absent head may be there.
    doubt: bool,
    options: Options,
}

impl Run {
    fn source(&mut self, source: Source) {
        let name = source.name().to_owned();
        match source.resolve() {
            Err(error) => self.unreadable(&name, &error),
            Ok(Input::Single(source)) => {
                if let Some(mut report) = self.walk(&source) {
                    if !self.several {
                        report = self.judge_head(report);
                    }
                    if !report.follows.is_empty() {
                        ui::note(format_args!(
                            "{}: names {} of its directory that it follows; verify the directory to check that",
                            EscapedPath(&name),
                            count(report.follows.len() as u64, "segment", "segments")
                        ));
                    }
                    self.block(&name, &report);
                }
            }
            Ok(Input::Directory(directory)) => {
                self.several = true;
                self.directory(&directory);
            }
        }
    }

    fn directory(&mut self, directory: &Directory) {
        inputs::note_others(directory);
        if directory.segments.is_empty() {
            if let Ok(empty) = verify(Box::new(io::empty()), &self.options) {
                self.block(&directory.path, &empty);
            }
            return;
        }
        let mut segments: Vec<_> = directory
            .segments
            .iter()
            .map(|name: &OsString| Segment {
                name: name.clone(),
                report: self.walk(&Source::Path(directory.path.join(name))),
            })
            .collect();
        // First, since one that another contradicts still has the end that it has.
        note_copies(&directory.path, &segments);
        judge_segments(&mut segments, &self.options.trust);
        for segment in segments {
            if let Some(report) = segment.report {
                self.block(&directory.path.join(segment.name), &report);
            }
        }
    }

    /// Walks over one record; tells why when it cannot be read.
    fn walk(&mut self, source: &Source) -> Option<Report> {
        let walked = inputs::read(source, &self.options.progress, |reader| {
            verify(reader, &self.options)
        });
        match walked {
            Ok(report) => {
                self.head_met |= report.expected_head_met;
                self.doubt |= report.limit_met;
                Some(report)
            }
            Err(error) => {
                self.unreadable(source.name(), &error);
                None
            }
        }
    }

    /// With a single input the expected head is part of its verdict.
    fn judge_head(&self, mut report: Report) -> Report {
        if let Some(absent) = self.absent_head()
            && !matches!(report.verdict, Verdict::Tampered(_))
        {
            report.verdict = absent;
            report.in_flight = None;
        }
        report
    }

    fn absent_head(&self) -> Option<Verdict> {
        let hash = self.options.expect_head.filter(|_| !self.head_met)?;
        Some(if self.doubt {
            Verdict::Indeterminate(Indeterminate::HeadNotReached { hash })
        } else {
            Verdict::Tampered(Tampered::HeadAbsent { hash })
        })
    }

    fn block(&mut self, name: &Path, report: &Report) {
        self.exit = self.exit.or(exit_of(report));
        notes(name, report);
        if self.json {
            let line = verify_json::report(name, report, &self.options.trust);
            return self.out.line(line);
        }
        if self.several {
            self.out.line(format_args!("input {}", EscapedPath(name)));
        }
        self.out.line(&report.verdict);
        for key_id in &report.keys {
            self.out.line(format_args!("key_id {key_id}"));
        }
        if let Some(at) = report.coverage {
            let (session, seq) = (at.session, at.seq);
            self.out
                .line(format_args!("coverage session {session} seq {seq}"));
        }
        if let Some(calls) = &report.in_flight {
            for call_id in &calls.call_ids {
                self.out.line(format_args!("in_flight {call_id}"));
            }
            if calls.count > MAX_IN_FLIGHT_NAMES as u64 {
                let more = calls.count - MAX_IN_FLIGHT_NAMES as u64;
                self.out.line(format_args!("in_flight {more} more"));
            }
        }
        if let Some(required) = report.required() {
            for unmet in &required.unmet {
                self.out.line(format_args!("unmet {unmet}"));
            }
            if required.count > MAX_UNMET as u64 {
                let more = required.count - MAX_UNMET as u64;
                self.out.line(format_args!("unmet {more} more"));
            }
        }
    }

    fn unreadable(&mut self, name: &Path, error: &io::Error) {
        self.exit = self.exit.or(Exit::Unreadable);
        self.doubt = true;
        ui::error(format_args!("read {}: {error}", EscapedPath(name)));
        if self.json {
            let line = verify_json::unreadable(name, error, &self.options.trust);
            self.out.line(line);
        }
    }

    fn finish(mut self) -> Exit {
        if self.several
            && let Some(absent) = self.absent_head()
        {
            self.exit = self.exit.or(exit(&absent));
            if self.json {
                let line = verify_json::all(&absent, &self.options.trust);
                self.out.line(line);
            } else {
                self.out.line(absent);
            }
        }
        match self.out.end() {
            true => self.exit,
            false => self.exit.or(Exit::Unreadable),
        }
    }
}

/// How the verification of this record alone ends.
pub(super) fn exit_of(report: &Report) -> Exit {
    match report.required() {
        Some(required) if required.count > 0 => Exit::Unmet,
        _ => exit(&report.verdict),
    }
}

pub(super) fn exit(verdict: &Verdict) -> Exit {
    match verdict {
        Verdict::Verified(_) => Exit::Ok,
        Verdict::Tampered(_) => Exit::Failed,
        Verdict::Indeterminate(_) => Exit::Indeterminate,
    }
}

fn notes(name: &Path, report: &Report) {
    let notes = &report.notes;
    for (n, one, many) in [
        (
            notes.unmatched_intents,
            "call has no outcome in its session",
            "calls have no outcome in their session",
        ),
        (
            notes.outcomes_without_intent,
            "outcome has no intent before it",
            "outcomes have no intent before them",
        ),
        (
            notes.calls_without_id,
            "intent or outcome carries no call_id",
            "intents or outcomes carry no call_id",
        ),
        (
            notes.signed_intents,
            "intent carries a signature, which means nothing",
            "intents carry signatures, which mean nothing",
        ),
        (
            notes.non_canonical_rows,
            "row is not written in canonical form",
            "rows are not written in canonical form",
        ),
    ] {
        if n > 0 {
            ui::note(format_args!(
                "{}: {}",
                EscapedPath(name),
                count(n, one, many)
            ));
        }
    }
}

/// Tells which Segments end in the same Line: no two writers write the same
/// one, so somebody made a copy, and what is counted would be counted twice.
fn note_copies(directory: &Path, segments: &[Segment]) {
    let mut first_with = BTreeMap::new();
    let mut copies = 0;
    for segment in segments {
        let Some(head) = segment.report.as_ref().and_then(end_of) else {
            continue;
        };
        let first = *first_with.entry(head).or_insert(&segment.name);
        if first == &segment.name {
            continue;
        }
        copies += 1;
        if copies <= MAX_COPY_NOTES {
            ui::note(format_args!(
                "{} and {} hold the same record",
                EscapedPath(&directory.join(first)),
                EscapedPath(&directory.join(&segment.name))
            ));
        }
    }
    if copies > MAX_COPY_NOTES {
        ui::note(format_args!(
            "{}: {} there twice",
            EscapedPath(directory),
            count(
                copies - MAX_COPY_NOTES,
                "more record is",
                "more records are"
            )
        ));
    }
}

/// The last Line, where the walk came to the end.
fn end_of(report: &Report) -> Option<Digest<Line>> {
    let is_whole = !report.limit_met && !matches!(report.verdict, Verdict::Tampered(_));
    report.head.filter(|_| is_whole)
}

/// How many copies within a directory are told one by one; the rest is counted.
const MAX_COPY_NOTES: u64 = 10;

/// About 250 000 keys.
const MAX_STORE_BYTES: u64 = 16 << 20;

/// More than any machine has cores, and few enough to start them all.
const MAX_THREADS: usize = 256;
