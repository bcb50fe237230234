//! `aegis policy check`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use argh::FromArgs;
use serde::Serialize;

use super::args::{self, PathArg, Verb};
use super::exit::Exit;
use super::ui::{self, Out};
use super::{Request, UsageError, policy, policy_seen};
use crate::policy::lint::{self, Caller, Finding};
use crate::policy::set::Set;
use crate::wire::escape::{Escaped, EscapedPath};

/// Find rules that do not do what they seem to do.
///
/// Reads a policy and reports what is probably not meant: rules that can never
/// match or never decide, a deny that overrides everything, rates that never
/// refuse, names that no tool has. For continuous integration: it fails when
/// there is a finding.
#[derive(FromArgs)]
#[argh(
    error_code(0, "no findings"),
    error_code(1, "findings, or a usage error"),
    error_code(2, "the policy or a record cannot be read, or is none")
)]
pub(super) struct Args {
    /// who will use the policy: wrap, run, mcp or any (default)
    #[argh(option, long = "for", arg_name = "VERB")]
    caller: Option<String>,
    /// a record, or a directory of records: compare the names of tools with
    /// those that were called (repeatable)
    #[argh(option, arg_name = "RECORD")]
    against: Vec<PathArg>,
    /// text (default) or json
    #[argh(option, arg_name = "FORMAT")]
    format: Option<String>,
    /// the policy file
    #[argh(positional, arg_name = "POLICY")]
    policy: Vec<PathArg>,
}

impl Verb for Args {
    const NAME: &'static str = "policy check";
    const USAGE: &'static str =
        "[--for wrap|run|mcp|any] [--against RECORD]... [--format text|json] POLICY";
}

/// What was asked for.
pub(super) struct Check {
    policy: PathBuf,
    caller: Caller,
    against: Vec<OsString>,
    json: bool,
}

impl TryFrom<Args> for Check {
    type Error = UsageError;

    fn try_from(args: Args) -> Result<Self, UsageError> {
        let against: Vec<_> = args.against.into_iter().map(|path| path.0).collect();
        if against.iter().filter(|path| *path == "-").count() > 1 {
            return Err(UsageError("standard input can be read once".to_owned()));
        }
        Ok(Self {
            caller: caller(args.caller.as_deref())?,
            json: super::json_format(args.format.as_deref())?,
            policy: policy::only(Args::NAME, args.policy)?,
            against,
        })
    }
}

fn caller(name: Option<&str>) -> Result<Caller, UsageError> {
    let Some(name) = name else {
        return Ok(Caller::Any);
    };
    [Caller::Any, Caller::Wrap, Caller::Run, Caller::Mcp]
        .into_iter()
        .find(|caller| caller.name() == name)
        .ok_or_else(|| {
            UsageError(format!(
                "--for needs wrap, run, mcp or any, got `{}`",
                args::typed(name)
            ))
        })
}

impl Request for Check {
    fn run(self) -> ExitCode {
        let set = match policy::load(&self.policy, self.json.then_some(SCHEMA)) {
            Ok(set) => set,
            Err(exit) => return exit,
        };
        let seen = match self.seen() {
            Ok(seen) => seen,
            Err(text) => return self.unreadable(text),
        };
        self.note_axes(&set);
        let findings = lint::lint(&set, self.caller, seen.as_ref());
        let exit = match findings.iter().all(Finding::is_note) {
            true => Exit::Ok,
            false => Exit::Failed,
        };
        let mut out = Out::new();
        if self.json {
            out.line(policy::json(&self.object(&set, &findings, exit)));
        } else {
            self.rows(&mut out, &set, &findings);
        }
        policy::end(out, exit)
    }
}

impl Check {
    /// The tools of the records that were given, if any were.
    fn seen(&self) -> Result<Option<BTreeSet<String>>, String> {
        if self.against.is_empty() {
            return Ok(None);
        }
        let mut tools = BTreeSet::new();
        for record in &self.against {
            if policy_seen::read(record, &mut tools)? {
                ui::note(format_args!(
                    "the last line of {} is cut off and was left out",
                    EscapedPath(Path::new(record))
                ));
            }
        }
        if tools.is_empty() {
            ui::note("the records name no tool, so no name was compared");
            return Ok(None);
        }
        Ok(Some(tools))
    }

    fn unreadable(&self, text: String) -> ExitCode {
        ui::error(&text);
        let mut out = Out::new();
        if self.json {
            out.line(policy::unreadable(&self.policy, SCHEMA, text, None));
        }
        policy::end(out, Exit::Unreadable)
    }

    /// What cannot be told without knowing the caller.
    fn note_axes(&self, set: &Set) {
        let asking = lint::asking_more_than_the_tool(set);
        if self.caller == Caller::Any && asking > 0 {
            ui::note(format_args!(
                "{} for a capability or a role, which aegis wrap, run and mcp never assert; say \
                 with --for whom the policy is for",
                ui::count(asking as u64, "rule asks", "rules ask")
            ));
        }
    }

    fn rows(&self, out: &mut Out, set: &Set, findings: &[Finding<'_>]) {
        let (notes, findings): (Vec<_>, Vec<_>) =
            findings.iter().partition(|finding| finding.is_note());
        for note in notes {
            ui::note(self.row(note));
        }
        for finding in &findings {
            out.line(self.row(finding));
        }
        out.line(format_args!(
            "{} in {}",
            match findings.len() {
                0 => "no findings".to_owned(),
                n => ui::count(n as u64, "finding", "findings"),
            },
            ui::count(set.rules().len() as u64, "rule", "rules")
        ));
    }

    fn row(&self, finding: &Finding<'_>) -> String {
        let at = finding.at();
        let rule = match finding.rule {
            Some(rule) => format!("rule `{}` ", Escaped(&rule.id)),
            None => String::new(),
        };
        format!(
            "{}:{}:{}: {}: {rule}{}",
            EscapedPath(&self.policy),
            at.line,
            at.column,
            finding.code,
            finding.text
        )
    }

    fn object(&self, set: &Set, findings: &[Finding<'_>], exit: Exit) -> Object {
        Object {
            schema: SCHEMA,
            policy: EscapedPath(&self.policy).to_string(),
            exit: exit.code(),
            policy_set_hash: set.hash().to_string(),
            caller: self.caller.name(),
            default: set.default().name(),
            rules: set.rules().len(),
            findings: findings
                .iter()
                .map(|finding| Row {
                    code: finding.code,
                    note: finding.is_note(),
                    rule: finding.rule.map(|rule| rule.id.clone()),
                    line: finding.at().line,
                    column: finding.at().column,
                    text: finding.text.clone(),
                })
                .collect(),
        }
    }
}

#[derive(Serialize)]
struct Object {
    schema: &'static str,
    policy: String,
    exit: u8,
    policy_set_hash: String,
    #[serde(rename = "for")]
    caller: &'static str,
    default: &'static str,
    rules: usize,
    findings: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    code: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    note: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    line: u64,
    column: u64,
    text: String,
}

const SCHEMA: &str = "aegis.policy-check.v1";
