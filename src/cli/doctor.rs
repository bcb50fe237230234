//! `aegis doctor`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use argh::FromArgs;
use serde::Serialize;

use super::args::{PathArg, Verb};
use super::doctor_text::Text;
use super::exit::Exit;
use super::ui::Out;
use super::wrap::not_stdio;
use super::{Request, UsageError, policy};
use crate::doctor::answers::Answers;
use crate::doctor::finding::Finding;
use crate::doctor::paths::Paths;
use crate::doctor::verdict::Verdict;
use crate::doctor::{self, Fitness, Report};
use crate::wire::escape::Escaped;

/// Tell what this machine can enforce.
///
/// Tries what aegis wrap --confine would need: files fenced by Landlock,
/// system call filters, a network of a server's own. For each gap it says what
/// follows from it and how to mend it. Nothing is changed, and nothing is
/// sent anywhere.
///
/// With paths it also looks at who else could read, change or replace the
/// files that a record rests on.
#[derive(FromArgs)]
#[argh(
    example = "aegis doctor --audit ~/.aegis/files/ --signing-key ~/.aegis/key",
    error_code(0, "everything can be enforced, and every path is sound"),
    error_code(1, "a usage error, or the result could not be printed"),
    error_code(2, "something is missing or unsafe: see each cure"),
    error_code(3, "nothing is, but something is limited or unknown")
)]
pub(super) struct Args {
    /// the audit file or directory to look at
    #[argh(option, arg_name = "PATH")]
    audit: Option<PathArg>,
    /// the signing key to look at
    #[argh(option, arg_name = "PATH")]
    signing_key: Option<PathArg>,
    /// the policy to look at
    #[argh(option, arg_name = "PATH")]
    policy: Option<PathArg>,
    /// text (default) or json
    #[argh(option, arg_name = "FORMAT")]
    format: Option<String>,
    /// doctor takes no command
    #[argh(positional, arg_name = "CMD", hidden_help)]
    stray: Vec<PathArg>,
}

impl Verb for Args {
    const NAME: &'static str = "doctor";
    const USAGE: &'static str = "[--audit PATH] [--signing-key PATH] [--policy PATH]\n                    [--format text|json]";
}

/// What was asked for.
pub(super) struct Doctor {
    paths: Paths,
    json: bool,
}

impl Args {
    /// Reads the arguments; there is no command to be tried.
    pub(super) fn request(self, command: Option<&[OsString]>) -> Result<Doctor, UsageError> {
        let behind = command.and_then(|command| command.first());
        if let Some(stray) = self.stray.first().map(|stray| &stray.0).or(behind) {
            return Err(UsageError(format!(
                "doctor takes options only, got `{}`",
                Escaped(&stray.to_string_lossy())
            )));
        }
        let path = |option, path: Option<PathArg>| -> Result<Option<PathBuf>, UsageError> {
            path.map(|path| not_stdio(option, path)).transpose()
        };
        Ok(Doctor {
            json: super::json_format(self.format.as_deref())?,
            paths: Paths {
                signing_key: path("--signing-key", self.signing_key)?,
                audit: path("--audit", self.audit)?,
                policy: path("--policy", self.policy)?,
            },
        })
    }
}

impl Request for Doctor {
    fn run(self) -> ExitCode {
        let report = doctor::examine(&Answers::of_this_machine(), &self.paths);
        let exit = exit_of(&report);
        let mut out = Out::new();
        if self.json {
            out.line(policy::json(&object(&report)));
        } else {
            out.text(Text(&report));
        }
        match out.end() {
            true => exit.into(),
            false => Exit::Failed.into(),
        }
    }
}

/// `aegis __doctor-probe`, hidden: see [`doctor::probe`].
pub(super) fn probe() -> ExitCode {
    let mut out = Out::new();
    out.line(policy::json(&doctor::probe::answer()));
    match out.end() {
        true => Exit::Ok.into(),
        false => Exit::Failed.into(),
    }
}

/// With the numbers that other verbs have for what is wrong and for what is
/// open.
fn exit_of(report: &Report) -> Exit {
    match report.fitness() {
        Fitness::Fit => Exit::Ok,
        Fitness::Unfit => Exit::Unreadable,
        Fitness::Limited => Exit::Indeterminate,
    }
}

pub(super) fn object(report: &Report) -> Object<'_> {
    Object {
        schema: "aegis.doctor.v1",
        machine: &report.machine,
        paths: &report.paths,
        verdict: &report.verdict,
        exit: exit_of(report).code(),
    }
}

#[derive(Serialize)]
pub(super) struct Object<'a> {
    schema: &'static str,
    machine: &'a [Finding],
    paths: &'a [Finding],
    verdict: &'a Verdict,
    exit: u8,
}
