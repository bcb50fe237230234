//! The objects of `aegis verify --format json` (SPEC §14.2).

use std::fmt::Display;
use std::io;
use std::path::Path;

use serde::Serialize;

use super::exit::Exit;
use super::verify::{exit, exit_of};
use crate::verify::{self, Indeterminate, Position, Report, Required, Tampered, Trust, Verdict};
use crate::wire::escape::EscapedPath;

/// The object of a record that was walked over.
pub(super) fn report(name: &Path, report: &Report, trust: &Trust) -> impl Display {
    let in_flight = report.in_flight.as_ref();
    line(&Object {
        exit: exit_of(report).code(),
        input: Some(EscapedPath(name).to_string()),
        keys: Some(report.keys.iter().map(ToString::to_string).collect()),
        coverage: report.coverage.map(Coverage::from),
        in_flight: Some(Calls {
            count: in_flight.map_or(0, |calls| calls.count),
            call_ids: in_flight
                .iter()
                .flat_map(|calls| &calls.call_ids)
                .map(ToString::to_string)
                .collect(),
        }),
        sessions: Some(report.sessions),
        lines: Some(report.lines),
        head: report.head.map(|head| head.to_string()),
        notes: Some(Notes {
            unmatched_intents: report.notes.unmatched_intents,
            outcomes_without_intent: report.notes.outcomes_without_intent,
            calls_without_id: report.notes.calls_without_id,
            signed_intents: report.notes.signed_intents,
            non_canonical_rows: report.notes.non_canonical_rows,
        }),
        require: report.required().map(Require::from),
        ..Object::of(&report.verdict, trust)
    })
}

/// The object of an input that could not be read.
pub(super) fn unreadable(name: &Path, error: &io::Error, trust: &Trust) -> impl Display {
    line(&Object {
        input: Some(EscapedPath(name).to_string()),
        error: Some(error.to_string()),
        ..Object::bare("unreadable", Exit::Unreadable, trust)
    })
}

/// The object of a verdict on all inputs together.
pub(super) fn all(verdict: &Verdict, trust: &Trust) -> impl Display {
    line(&Object::of(verdict, trust))
}

fn line(object: &Object) -> String {
    // Every member is a string, a number or a list of them.
    serde_json::to_string(object).unwrap_or_default()
}

#[derive(Serialize)]
struct Object {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<String>,
    verdict: &'static str,
    exit: u8,
    pin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<Coverage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_flight: Option<Calls>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<Notes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    require: Option<Require>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Object {
    fn of(verdict: &Verdict, trust: &Trust) -> Self {
        let (token, reason) = match verdict {
            Verdict::Verified(_) => ("verified", None),
            Verdict::Tampered(reason) => ("tampered", Some(Reason::tampered(reason))),
            Verdict::Indeterminate(reason) => {
                ("indeterminate", Some(Reason::indeterminate(reason)))
            }
        };
        Self {
            label: Some(verdict.to_string()),
            reason,
            ..Self::bare(token, exit(verdict), trust)
        }
    }

    fn bare(verdict: &'static str, exit: Exit, trust: &Trust) -> Self {
        Self {
            schema: "aegis.verify.v1",
            input: None,
            verdict,
            exit: exit.code(),
            pin: match trust {
                Trust::Unpinned => "unpinned",
                Trust::Pinned(_) => "pinned",
                Trust::PinnedToNothing => "pinned-to-nothing",
            },
            label: None,
            reason: None,
            keys: None,
            coverage: None,
            in_flight: None,
            sessions: None,
            lines: None,
            head: None,
            notes: None,
            require: None,
            error: None,
        }
    }
}

#[derive(Serialize)]
struct Reason {
    code: &'static str,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

impl Reason {
    fn tampered(reason: &Tampered) -> Self {
        let line = match reason {
            Tampered::Malformed { line, .. } => Some(*line),
            _ => None,
        };
        Self::new(reason.code(), reason, line, reason.at())
    }

    fn indeterminate(reason: &Indeterminate) -> Self {
        let line = match reason {
            Indeterminate::TornFinalLine { line } | Indeterminate::Limit { line, .. } => {
                Some(*line)
            }
            _ => None,
        };
        Self::new(reason.code(), reason, line, reason.at())
    }

    fn new(
        code: &'static str,
        text: impl Display,
        line: Option<u64>,
        at: Option<Position>,
    ) -> Self {
        Self {
            code,
            text: text.to_string(),
            line,
            session: at.map(|at| at.session),
            seq: at.map(|at| at.seq),
        }
    }
}

#[derive(Serialize)]
struct Coverage {
    session: u64,
    seq: u64,
}

impl From<Position> for Coverage {
    fn from(at: Position) -> Self {
        Self {
            session: at.session,
            seq: at.seq,
        }
    }
}

#[derive(Serialize)]
struct Calls {
    count: u64,
    call_ids: Vec<String>,
}

#[derive(Serialize)]
struct Notes {
    unmatched_intents: u64,
    outcomes_without_intent: u64,
    calls_without_id: u64,
    signed_intents: u64,
    non_canonical_rows: u64,
}

#[derive(Serialize)]
struct Require {
    unmet: Vec<Unmet>,
    count: u64,
}

impl From<&Required> for Require {
    fn from(required: &Required) -> Self {
        Self {
            unmet: required.unmet.iter().map(Unmet::from).collect(),
            count: required.count,
        }
    }
}

#[derive(Serialize)]
struct Unmet {
    session: u64,
    requirement: String,
    member: &'static str,
    code: &'static str,
    text: String,
}

impl From<&verify::Unmet> for Unmet {
    fn from(unmet: &verify::Unmet) -> Self {
        Self {
            session: unmet.session,
            requirement: unmet.requirement.to_string(),
            member: unmet.member,
            code: unmet.found.code(),
            text: format!("{} {}", unmet.member, unmet.found),
        }
    }
}
