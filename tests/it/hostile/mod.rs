//! Records named for their fault: what each is and the verdict that it must
//! have (SPEC §8).
//!
//! `fixtures/hostile/` holds one file a case: a header, a blank line, and the
//! bytes of the record. The tests walk the folder, so a file is enough to ask
//! any verifier the same question.

mod forge;
mod limits;
mod members;
mod order;
mod sessions;
mod signatures;
mod spelling;

use std::collections::{BTreeMap, BTreeSet};

use aegis::sign::PublicKey;
use aegis::verify::{Options, Report, Trust, Verdict, verify};
use aegis::wire::digest::Digest;

use crate::assemble::Chain;
use crate::exe::Aegis;
use crate::kit::{Fixture, assert_folder, read_folder};

#[test]
fn every_case_is_rebuilt_to_the_byte() {
    let files = cases()
        .into_iter()
        .map(|(name, case)| (format!("{name}.aarl"), case.write()));
    assert_folder("hostile", &files.collect());
}

/// The library's verdict: [VERIFY-57].
#[test]
fn every_case_has_its_verdict() {
    let mut wrong = String::new();
    for (name, case) in read_cases() {
        let report = walk(&case);
        if let Some(fault) = differs(&case, &report) {
            wrong.push_str(&format!("{name}: {fault}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// What the executable prints first, and its exit code.
#[test]
fn every_case_is_told() {
    for (name, case) in read_cases() {
        let args = case.one("args").unwrap_or_default().split_whitespace();
        let ran = Aegis::verify().args(args).arg("-").stdin(&case.body).run();
        let (label, code) = expected(&case);
        assert_eq!(ran.stdout.lines().next(), Some(&*label), "{name}");
        assert_eq!(ran.code(), i32::from(code), "{name}");
        let in_flight = ran
            .stdout
            .lines()
            .filter_map(|row| row.strip_prefix("in_flight "));
        let expected = case.all("in_flight");
        if !expected.is_empty() {
            assert_eq!(in_flight.collect::<Vec<_>>(), expected, "{name}");
        }
    }
}

/// Every `code` of SPEC §8.3 and §8.4 that one file can have: [CLI-11].
#[test]
fn every_code_has_a_case() {
    let told: BTreeSet<_> = read_cases()
        .values()
        .filter_map(|case| case.one("code").map(str::to_owned))
        .collect();
    let listed = texts().into_iter().map(|(_, _, code)| code);
    let missing: Vec<_> = listed
        .filter(|code| !told.contains(code) && !OF_DIRECTORIES.contains(&code.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Every text of SPEC §8.3 and §8.4: [VER-4].
#[test]
fn every_reason_has_a_case() {
    let cases = read_cases();
    for (verdict, template, code) in texts() {
        // Large records are made by tests of their own, in `limits`.
        let is_large = ["16 MiB", "followed segments"]
            .iter()
            .any(|end| template.ends_with(end));
        if OF_DIRECTORIES.contains(&code.as_str()) || is_large {
            continue;
        }
        let told = cases.values().any(|case| {
            case.one("verdict") == Some(verdict)
                && case.one("code") == Some(&code)
                && fits(case.one("reason").unwrap_or_default(), &template)
        });
        assert!(told, "{verdict}: {template}");
    }
}

/// The cases as they are assembled.
pub(crate) fn cases() -> BTreeMap<String, Fixture> {
    let mut cases = Cases::default();
    spelling::numbers(&mut cases);
    spelling::strings(&mut cases);
    spelling::structure(&mut cases);
    spelling::rows(&mut cases);
    members::header(&mut cases);
    members::duplicates(&mut cases);
    members::schema(&mut cases);
    members::decisions(&mut cases);
    sessions::boundaries(&mut cases);
    sessions::beginnings(&mut cases);
    sessions::links(&mut cases);
    sessions::after_close(&mut cases);
    sessions::in_flight(&mut cases);
    signatures::missing(&mut cases);
    signatures::wrong(&mut cases);
    signatures::weak(&mut cases);
    signatures::keys(&mut cases);
    signatures::weak_keys(&mut cases);
    signatures::unknown_types(&mut cases);
    order::precedence(&mut cases);
    order::caps(&mut cases);
    limits::limits(&mut cases);
    cases.0
}

/// The cases as they lie in the folder.
pub(crate) fn read_cases() -> BTreeMap<String, Fixture> {
    read_folder("hostile")
        .into_iter()
        .map(|(name, file)| (name, Fixture::read(&file)))
        .collect()
}

/// What the library says of a case, under the options of its `args`.
pub(crate) fn walk(case: &Fixture) -> Report {
    verify(
        Box::new(std::io::Cursor::new(case.body.clone())),
        &options(case),
    )
    .expect("readable")
}

pub(crate) fn options(case: &Fixture) -> Options {
    let mut options = Options::default();
    let mut keys = Vec::new();
    let mut args = case.one("args").unwrap_or_default().split_whitespace();
    while let (Some(option), Some(value)) = (args.next(), args.next()) {
        match option {
            "--key" => keys.push(PublicKey::from_hex(value).expect("a key")),
            "--expect-head" => options.expect_head = Digest::from_hex(value).ok(),
            other => panic!("{other} in args"),
        }
    }
    if !keys.is_empty() {
        options.trust = Trust::pinned(keys);
    }
    options
}

fn differs(case: &Fixture, report: &Report) -> Option<String> {
    let (label, _) = expected(case);
    // Whether an expected head was met is judged over all inputs, by `cli`.
    if case.one("code") == Some("head-absent") {
        return report
            .expected_head_met
            .then(|| "the head was met".to_owned());
    }
    if report.verdict.to_string() != label {
        return Some(format!("{}\n    instead of {label}", report.verdict));
    }
    let code = match &report.verdict {
        Verdict::Verified(_) => None,
        Verdict::Tampered(reason) => Some(reason.code()),
        Verdict::Indeterminate(reason) => Some(reason.code()),
    };
    if code != case.one("code") {
        return Some(format!("code {code:?}"));
    }
    let coverage = report.coverage.map_or_else(
        || "none".to_owned(),
        |at| format!("session {} seq {}", at.session, at.seq),
    );
    if case
        .one("coverage")
        .is_some_and(|expected| expected != coverage)
    {
        return Some(format!("coverage {coverage}"));
    }
    for note in case.all("note") {
        if !format!("{:?}", report.notes).contains(note) {
            return Some(format!("{:?}", report.notes));
        }
    }
    None
}

fn expected(case: &Fixture) -> (String, u8) {
    let verdict = case.one("verdict").expect("a verdict");
    match (verdict, case.one("reason")) {
        ("Tampered", Some(reason)) => (format!("{verdict}: {reason}"), 1),
        ("Indeterminate", Some(reason)) => (format!("{verdict}: {reason}"), 3),
        (verified, None) if verified.starts_with("Verified (") => (verified.to_owned(), 0),
        other => panic!("not a verdict: {other:?}"),
    }
}

/// Verdict, text and code of each row of SPEC §8.3 and §8.4.
fn texts() -> Vec<(&'static str, String, String)> {
    let spec = include_str!("../../../SPEC.md");
    let from = spec.find("### 8.3 ").expect("SPEC §8.3");
    let middle = spec.find("### 8.4 ").expect("SPEC §8.4");
    let to = spec.find("### 8.5 ").expect("SPEC §8.5");
    let mut texts = Vec::new();
    for (verdict, section) in [
        ("Tampered", &spec[from..middle]),
        ("Indeterminate", &spec[middle..to]),
    ] {
        for row in section
            .lines()
            .filter(|row| row.starts_with("| **[VERIFY-"))
        {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let code = cells[4].trim_matches('`');
            // A text that quotes with backticks is itself in double ones.
            let double = cells[2]
                .strip_prefix("``")
                .and_then(|c| c.strip_suffix("``"));
            let cell = double.map_or_else(|| cells[2].replace('`', ""), |c| c.trim().to_owned());
            // Several texts in a row: each later one says only how it ends.
            let limit = "line {k} exceeds the verifier limit";
            for text in cell.replace(", …", " or …").split(" or ") {
                let text = text.replacen('…', limit, usize::from(text.starts_with('…')));
                texts.push((verdict, text, code.to_owned()));
            }
        }
    }
    assert_eq!(texts.len(), 40, "the rows of both tables");
    texts
}

/// Whether `text` is `template` with something in place of each `{…}`.
fn fits(text: &str, template: &str) -> bool {
    let mut pieces = template.split('{').enumerate().map(|(i, piece)| {
        if i == 0 {
            piece
        } else {
            piece.split_once('}').map_or(piece, |(_, rest)| rest)
        }
    });
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut open = false;
    for piece in pieces {
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
        open = piece.is_empty();
    }
    open || rest.is_empty()
}

/// Cases under construction, by name.
#[derive(Default)]
struct Cases(BTreeMap<String, Fixture>);

impl Cases {
    fn verified(&mut self, name: &str, record: impl Into<Vec<u8>>) -> &mut Fixture {
        self.add(name, &[("verdict", "Verified (unpinned)")], record.into())
    }

    fn tampered(
        &mut self,
        name: &str,
        code: &str,
        reason: impl AsRef<str>,
        record: impl Into<Vec<u8>>,
    ) -> &mut Fixture {
        let header = [
            ("verdict", "Tampered"),
            ("code", code),
            ("reason", reason.as_ref()),
        ];
        self.add(name, &header, record.into())
    }

    fn malformed(
        &mut self,
        name: &str,
        reason: impl AsRef<str>,
        record: impl Into<Vec<u8>>,
    ) -> &mut Fixture {
        self.tampered(name, "malformed", reason, record)
    }

    fn indeterminate(
        &mut self,
        name: &str,
        code: &str,
        reason: impl AsRef<str>,
        record: impl Into<Vec<u8>>,
    ) -> &mut Fixture {
        let header = [
            ("verdict", "Indeterminate"),
            ("code", code),
            ("reason", reason.as_ref()),
        ];
        self.add(name, &header, record.into())
    }

    fn add(&mut self, name: &str, header: &[(&str, &str)], body: Vec<u8>) -> &mut Fixture {
        let fixture = Fixture {
            header: header
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect(),
            body,
        };
        assert!(!self.0.contains_key(name), "two cases named {name}");
        self.0.entry(name.to_owned()).or_insert(fixture)
    }
}

/// Further header lines.
trait With {
    fn with(&mut self, name: &str, value: impl Into<String>) -> &mut Self;

    fn comment(&mut self, text: &str) -> &mut Self {
        self.with("comment", text)
    }
}

impl With for Fixture {
    fn with(&mut self, name: &str, value: impl Into<String>) -> &mut Self {
        self.header.push((name.to_owned(), value.into()));
        self
    }
}

impl From<&Chain> for Vec<u8> {
    fn from(chain: &Chain) -> Self {
        chain.bytes()
    }
}

impl From<&mut Chain> for Vec<u8> {
    fn from(chain: &mut Chain) -> Self {
        chain.bytes()
    }
}

/// Codes that only the files of a directory together can have.
const OF_DIRECTORIES: [&str; 2] = ["segment-tail", "segment-missing"];
