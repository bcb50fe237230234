//! `aegis doctor`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use argh::FromArgs;
use serde::Serialize;

use super::args::{PathArg, Verb};
use super::confinement::{at_least_one, typed};
use super::doctor_text::Text;
use super::exit::Exit;
use super::ui::Out;
use super::wrap::not_stdio;
use super::{Request, UsageError, policy};
use crate::doctor::answers::Answers;
use crate::doctor::finding::Finding;
use crate::doctor::paths::Paths;
use crate::doctor::server::{self, Server, Trial};
use crate::doctor::verdict::Verdict;
use crate::doctor::{self, Fitness, Report};
use crate::stations::sandbox::Asked;
use crate::wire::escape::Escaped;

/// Tell what this machine can enforce.
///
/// Tries what aegis wrap --confine would need: files fenced by Landlock,
/// system call filters, a network of a server's own. For each gap it says what
/// follows from it and how to mend it. It changes nothing, and sends nothing
/// anywhere.
///
/// With paths it also looks at who else could read, change or replace the
/// files that a record rests on.
///
/// With a command it also runs that server, many times and in three ways: as it
/// is, under aegis wrap, and confined. It compares what the server answers,
/// measures what aegis adds, and tells what was refused. The options of wrap's
/// confinement are tried as they are; without any, doctor proposes the fewest
/// that the server starts with. It calls no tool; what the server does at its
/// start, it does.
#[derive(FromArgs)]
#[argh(
    example = "aegis doctor --audit ~/.aegis/files/ --signing-key ~/.aegis/key",
    example = "aegis doctor -- npx -y @modelcontextprotocol/server-filesystem ~/notes",
    error_code(0, "everything can be enforced, and every path is sound"),
    error_code(1, "a usage error, or the result could not be printed"),
    error_code(2, "something is missing, unsafe or fails: see each cure"),
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
    /// how long the server may take to start (default: 30)
    #[argh(option, arg_name = "SECONDS")]
    timeout: Option<String>,
    /// try the server with the options below as they are; aegis wrap explains
    /// them, and any of them implies this
    #[argh(switch)]
    confine: bool,
    /// what servers of a kind need to run
    #[argh(option, arg_name = "node|python|npx|uvx|static")]
    preset: Option<String>,
    /// what it may read and execute; may be repeated
    #[argh(option, arg_name = "PATH")]
    allow_read: Vec<PathArg>,
    /// what it may read and write; may be repeated
    #[argh(option, arg_name = "PATH")]
    allow_write: Vec<PathArg>,
    /// where it may connect to; may be repeated
    #[argh(option, arg_name = "HOST:PORT[,PORT...]")]
    allow_net: Vec<String>,
    /// a variable that it keeps; may be repeated
    #[argh(option, arg_name = "NAME")]
    allow_env: Vec<String>,
    /// the system's files and programs
    #[argh(switch)]
    allow_exec_support: bool,
    /// use Unix sockets, see aegis wrap
    #[argh(switch)]
    allow_unix_sockets: bool,
    /// caches of programs that are not confined
    #[argh(switch)]
    shared_cache: bool,
    /// the proxy through which hosts are reached
    #[argh(option, arg_name = "http://[USER:PASSWORD@]HOST:PORT")]
    upstream_proxy: Option<String>,
    /// most processes and threads
    #[argh(option, arg_name = "N")]
    max_procs: Option<String>,
    /// most address space of a process
    #[argh(option, arg_name = "BYTES")]
    max_memory: Option<String>,
    /// most open files of a process
    #[argh(option, arg_name = "N")]
    max_files: Option<String>,
    /// start also where this machine cannot enforce all of it
    #[argh(switch)]
    best_effort: bool,
    /// the server's command stands behind `--`
    #[argh(positional, arg_name = "CMD", hidden_help)]
    stray: Vec<PathArg>,
}

impl Verb for Args {
    const NAME: &'static str = "doctor";
    const USAGE: &'static str = "[--audit PATH] [--signing-key PATH] [--policy PATH]\n                    [--format text|json] [--timeout SECONDS]\n                    [[CONFINEMENT OPTIONS] -- CMD [ARGS...]]";
}

/// What was asked for.
pub(super) struct Doctor {
    paths: Paths,
    trial: Option<Trial>,
    json: bool,
}

impl Args {
    /// Reads the arguments, and takes the command behind `--`, if any.
    pub(super) fn request(mut self, command: Option<&[OsString]>) -> Result<Doctor, UsageError> {
        if let Some(stray) = self.stray.first() {
            return Err(UsageError(format!(
                "doctor takes a command after `--` only, got `{}`",
                Escaped(&stray.0.to_string_lossy())
            )));
        }
        let trial = self.trial(command)?;
        let path = |option, path: Option<PathArg>| -> Result<Option<PathBuf>, UsageError> {
            path.map(|path| not_stdio(option, path)).transpose()
        };
        Ok(Doctor {
            json: super::json_format(self.format.as_deref())?,
            trial,
            paths: Paths {
                signing_key: path("--signing-key", self.signing_key)?,
                audit: path("--audit", self.audit)?,
                policy: path("--policy", self.policy)?,
            },
        })
    }

    /// The command, and the flags to try it with.
    fn trial(&mut self, command: Option<&[OsString]>) -> Result<Option<Trial>, UsageError> {
        let asked = typed!(&mut *self).asked()?;
        let is_asked = self.confine || asked != Asked::default();
        let flags = is_asked.then_some(asked);
        if let Some(flags) = &flags {
            flags.clone().read().map_err(UsageError)?;
        }
        let start_wait = start_wait(self.timeout.as_deref())?;
        match (command, flags) {
            (Some(command @ [_, ..]), flags) => Ok(Some(Trial {
                command: command.to_vec(),
                flags,
                start_wait: start_wait.unwrap_or(START_WAIT),
            })),
            (Some([]), _) => Err(UsageError("there is no command after `--`".to_owned())),
            (None, Some(_)) => Err(UsageError(
                "confinement is tried with a command: give one after `--`".to_owned(),
            )),
            (None, None) if start_wait.is_some() => Err(UsageError(
                "--timeout is for a command: give one after `--`".to_owned(),
            )),
            (None, None) => Ok(None),
        }
    }
}

impl Request for Doctor {
    fn run(self) -> ExitCode {
        let mut report = doctor::examine(&Answers::of_this_machine(), &self.paths);
        if let Some(trial) = &self.trial {
            if !self.json && super::ui::watched() {
                super::ui::note("the server is started several times, which may take a minute");
            }
            report.server = match server::examine(trial, &self.paths, &report.verdict) {
                Ok(server) => Some(server),
                Err(why) => {
                    super::ui::error(why);
                    return Exit::Failed.into();
                }
            };
        }
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
        server: report.server.as_ref(),
        exit: exit_of(report).code(),
    }
}

#[derive(Serialize)]
pub(super) struct Object<'a> {
    schema: &'static str,
    machine: &'a [Finding],
    paths: &'a [Finding],
    verdict: &'a Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a Server>,
    exit: u8,
}

fn start_wait(seconds: Option<&str>) -> Result<Option<Duration>, UsageError> {
    match at_least_one("--timeout", seconds)? {
        Some(seconds) if seconds > MAX_START_SECS => Err(UsageError(format!(
            "--timeout is at most {MAX_START_SECS} seconds, got {seconds}"
        ))),
        seconds => Ok(seconds.map(Duration::from_secs)),
    }
}

/// An installer may have to fetch the server first.
const START_WAIT: Duration = Duration::from_secs(30);
const MAX_START_SECS: u64 = 600;
