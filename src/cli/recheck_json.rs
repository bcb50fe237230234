//! `aegis recheck --format json`: one object for each input (SPEC §14.9),
//! printed in pieces so that its rows need not be held.

use std::path::Path;

use serde::Serialize;

use super::exit::Exit;
use super::recheck::Tally;
use crate::policy::recheck::{Clause, Counts, Row};
use crate::policy::set::Set;
use crate::wire::escape::{EscapedPath, Shortened};

/// The beginning of an object, up to its first row.
pub(super) fn beginning(name: &Path, set: &Set, rows: bool) -> String {
    let mut text = json(&Beginning {
        schema: "aegis.recheck.v1",
        input: EscapedPath(name).to_string(),
        policy_set_hash: set.hash().to_string(),
    });
    text.pop();
    if rows {
        text.push_str(",\"rows\":[");
    }
    text
}

/// The object of one outcome.
pub(super) fn row(row: &Row<'_>) -> String {
    let shown = |text: &Option<Shortened>| text.as_ref().map(ToString::to_string);
    json(&RowObject {
        line: row.line,
        session: row.session,
        seq: row.seq,
        call_id: shown(&row.call_id),
        tool_id: shown(&row.tool_id),
        clause: row.clause.token(),
        was: row.was.map(|status| status.name()),
        was_rule: shown(&row.was_rule),
        no_policy: row.had_no_policy,
        now: row.now.map(|now| now.status.name()),
        now_by: row.now.map(|now| now.by.kind()),
        now_rule: row.now.and_then(|now| now.by.rule()),
        reason: match row.clause {
            Clause::Indeterminate(reason) => Some(reason.token()),
            _ => None,
        },
    })
}

/// The rest of an object, behind its last row.
pub(super) fn end<'s>(
    set: &'s Set,
    tally: &Tally<'s>,
    summary: bool,
    exit: Exit,
    error: Option<String>,
) -> String {
    let end = json(&End {
        counts: tally.counts.into(),
        moved: tally
            .moved(set)
            .into_iter()
            .map(|(by, moved)| Moved {
                by: by.kind(),
                rule: by.rule(),
                newly_blocked: moved.newly_blocked,
                newly_allowed: moved.newly_allowed,
                newly_parked: moved.newly_parked,
            })
            .collect(),
        unread: Unread {
            count: tally.unread,
            lines: &tally.unread_listed,
        },
        exit: exit.code(),
        error,
    });
    let before = if summary { "," } else { "]," };
    format!("{before}{}", end.trim_start_matches('{'))
}

fn json(object: &impl Serialize) -> String {
    // Every member is a string, a number or a list of them.
    serde_json::to_string(object).unwrap_or_default()
}

#[derive(Serialize)]
struct Beginning {
    schema: &'static str,
    input: String,
    policy_set_hash: String,
}

#[derive(Serialize)]
struct RowObject {
    line: u64,
    session: u64,
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_id: Option<String>,
    clause: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    was: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    was_rule: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    no_policy: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    now_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    now_rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

#[derive(Serialize)]
struct End<'a> {
    counts: CountsObject,
    moved: Vec<Moved>,
    unread: Unread<'a>,
    exit: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct CountsObject {
    calls: u64,
    unchanged: u64,
    newly_blocked: u64,
    newly_allowed: u64,
    newly_parked: u64,
    indeterminate: u64,
}

impl From<Counts> for CountsObject {
    fn from(counts: Counts) -> Self {
        Self {
            calls: counts.calls,
            unchanged: counts.unchanged,
            newly_blocked: counts.newly_blocked,
            newly_allowed: counts.newly_allowed,
            newly_parked: counts.newly_parked,
            indeterminate: counts.indeterminate,
        }
    }
}

#[derive(Serialize)]
struct Moved {
    by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    newly_blocked: u64,
    newly_allowed: u64,
    newly_parked: u64,
}

#[derive(Serialize)]
struct Unread<'a> {
    count: u64,
    lines: &'a [UnreadLine],
}

/// A row that was not read.
#[derive(Serialize)]
pub(super) struct UnreadLine {
    /// From 1, blank ones counted.
    pub(super) line: u64,
    /// Why, for programs.
    pub(super) code: &'static str,
    /// Why, for people: escaped, and not longer than is printed.
    pub(super) text: String,
}

/// How many rows that were not read are told one by one; the rest is counted.
pub(super) const MAX_UNREAD_LISTED: usize = 1000;
