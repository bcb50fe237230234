//! `aegis policy`: what its verbs share.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;

use super::args::PathArg;
use super::exit::Exit;
use super::ui::{self, Out};
use super::{UsageError, policy_check, policy_explain, policy_hash};
use crate::policy::parse;
use crate::policy::set::{Limits, Position, Rule, Set};
use crate::wire::escape::{Escaped, EscapedPath};

/// Runs one of the verbs.
pub(super) fn main(args: &[OsString]) -> ExitCode {
    let Some((verb, rest)) = args.split_first() else {
        ui::say(overview());
        return Exit::Failed.into();
    };
    match verb.to_str() {
        Some("check") => super::run(rest, |raw: policy_check::Args| {
            raw.try_into() as Result<policy_check::Check, _>
        }),
        Some("explain") => super::run(rest, |raw: policy_explain::Args| {
            raw.try_into() as Result<policy_explain::Explain, _>
        }),
        Some("hash") => super::run(rest, |raw: policy_hash::Args| {
            raw.try_into() as Result<policy_hash::Hash, _>
        }),
        Some("help" | "--help" | "-h") if rest.is_empty() => super::print(&overview()),
        Some("--help" | "-h") => {
            ui::error("--help is only for itself, without other arguments");
            ui::say(overview());
            Exit::Failed.into()
        }
        _ => {
            ui::error(format_args!(
                "unknown command: policy {}",
                Escaped(&verb.to_string_lossy())
            ));
            ui::say(overview());
            Exit::Failed.into()
        }
    }
}

fn overview() -> String {
    let mut text = "Usage: aegis policy <command> [options] POLICY\n\nCommands:\n".to_owned();
    for (verb, what) in VERBS {
        text.push_str(&format!("  {verb:<9} {what}\n"));
    }
    text.push_str("\nRun `aegis policy <command> --help` for the options of a command.\n");
    text
}

/// The policy that a verb is about.
pub(super) fn only(verb: &str, policies: Vec<PathArg>) -> Result<PathBuf, UsageError> {
    let mut policies = policies.into_iter();
    match (policies.next(), policies.next()) {
        (Some(policy), None) if policy.0 != "-" => Ok(policy.0.into()),
        (Some(_), None) => Err(UsageError(format!(
            "{verb} needs a file, not standard input; ./- names a file of that name"
        ))),
        (None, _) => Err(UsageError(format!("{verb} requires <POLICY>"))),
        (Some(_), Some(_)) => Err(UsageError(format!(
            "{verb} takes one POLICY; call it for each"
        ))),
    }
}

/// Reads the policy at `path`, or says why not: on standard error, and as an
/// object of `schema` on standard output when that is to be JSON.
pub(super) fn load(path: &Path, json: Option<&'static str>) -> Result<Set, ExitCode> {
    parse::load(path).map_err(|error| {
        ui::error(&error);
        if let Some(schema) = json {
            let mut out = Out::new();
            out.line(unreadable(path, schema, error.to_string(), error.at()));
            // The exit code is the same, printed or not.
            let _ = out.finish();
        }
        Exit::Unreadable.into()
    })
}

/// The object of a policy, or of a record beside it, that could not be read.
pub(super) fn unreadable(
    path: &Path,
    schema: &'static str,
    text: String,
    at: Option<Position>,
) -> String {
    json(&Unreadable {
        schema,
        policy: EscapedPath(path).to_string(),
        exit: Exit::Unreadable.code(),
        error: Fault {
            text,
            line: at.map(|at| at.line),
            column: at.map(|at| at.column),
        },
    })
}

/// An object as one row.
pub(super) fn json(object: &impl Serialize) -> String {
    // Every member is a string, a number or a list of them.
    serde_json::to_string(object).unwrap_or_default()
}

/// Ends a verb that printed its result.
pub(super) fn end(out: Out, exit: Exit) -> ExitCode {
    match out.end() {
        true => exit.into(),
        false => exit.or(Exit::Unreadable).into(),
    }
}

/// `path:line:column` of a rule.
pub(super) fn place(path: &Path, rule: &Rule) -> String {
    format!("{}:{}:{}", EscapedPath(path), rule.at.line, rule.at.column)
}

/// The limits that a rule sets, by name.
pub(super) fn limits(limits: &Limits) -> impl Iterator<Item = (&'static str, u64)> {
    [
        ("max_memory_bytes", limits.max_memory_bytes),
        ("max_wall_ms", limits.max_wall_ms),
        ("max_output_bytes", limits.max_output_bytes),
    ]
    .into_iter()
    .filter_map(|(name, limit)| Some((name, limit?)))
}

#[derive(Serialize)]
struct Unreadable {
    schema: &'static str,
    policy: String,
    exit: u8,
    error: Fault,
}

#[derive(Serialize)]
struct Fault {
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
}

const VERBS: [(&str, &str); 3] = [
    ("check", "find rules that do not do what they seem to do"),
    (
        "explain",
        "say which rule decides about a tool, and why it does",
    ),
    ("hash", "print the policy_set_hash that records name"),
];
