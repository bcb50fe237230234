//! The command line: argh structs, one typed request per verb, one file per
//! verb. The only module that prints.

mod args;
#[cfg(all(feature = "confine", target_os = "linux"))]
mod confine_exec;
#[cfg(feature = "record")]
mod confinement;
#[cfg(feature = "record")]
mod demo;
#[cfg(feature = "record")]
mod demo_server;
#[cfg(all(feature = "confine", target_os = "linux"))]
mod doctor;
#[cfg(all(feature = "confine", target_os = "linux"))]
mod doctor_server_text;
#[cfg(all(feature = "confine", target_os = "linux"))]
mod doctor_text;
mod exit;
mod inputs;
#[cfg(feature = "record")]
mod keygen;
mod policy;
mod policy_check;
mod policy_explain;
mod policy_hash;
mod policy_seen;
mod progress;
mod recheck;
mod recheck_json;
#[cfg(feature = "record")]
mod recover;
mod ui;
mod verify;
mod verify_json;
#[cfg(feature = "record")]
mod wrap;

use std::ffi::OsString;
use std::process::ExitCode;

use args::{Stop, Verb};
use exit::Exit;
use ui::Out;

use crate::wire::escape::Escaped;

/// Runs the command line, program name first.
pub(crate) fn main(args: Vec<OsString>) -> ExitCode {
    let mut args = args.into_iter().skip(1);
    let Some(verb) = args.next() else {
        ui::say(overview());
        return Exit::Failed.into();
    };
    let args: Vec<OsString> = args.collect();
    match verb.to_str() {
        #[cfg(all(feature = "confine", target_os = "linux"))]
        Some("__confine-exec") => confine_exec::run(&args),
        Some("help" | "--help" | "-h") => print(&overview()),
        Some("version" | "--version" | "-V") => {
            print(&format!("aegis {}\n", env!("CARGO_PKG_VERSION")))
        }
        Some("verify") => run(&args, |raw: verify::Args| {
            raw.try_into() as Result<verify::Verify, _>
        }),
        Some("policy") => policy::main(&args),
        Some("recheck") => run(&args, |raw: recheck::Args| {
            raw.try_into() as Result<recheck::Recheck, _>
        }),
        #[cfg(feature = "record")]
        Some(verb @ ("demo" | "keygen" | "recover" | "wrap" | "__demo-server")) => {
            record(verb, &args)
        }
        #[cfg(not(feature = "record"))]
        Some(verb @ ("demo" | "keygen" | "recover" | "wrap")) => {
            ui::error(format_args!(
                "this build of aegis cannot record: `{verb}` needs the feature `record`"
            ));
            Exit::Failed.into()
        }
        #[cfg(all(feature = "confine", target_os = "linux"))]
        Some("doctor") => {
            let (own, command) = args::split_command(&args);
            run(own, |raw: doctor::Args| raw.request(command))
        }
        #[cfg(all(feature = "confine", target_os = "linux"))]
        Some("__doctor-probe") => doctor::probe(),
        #[cfg(not(all(feature = "confine", target_os = "linux")))]
        Some("doctor") => {
            ui::error(
                "this build of aegis cannot confine: `doctor` needs the feature `confine`, and Linux",
            );
            Exit::Failed.into()
        }
        _ => {
            ui::error(format_args!(
                "unknown command: {}",
                Escaped(&verb.to_string_lossy())
            ));
            ui::say(overview());
            Exit::Failed.into()
        }
    }
}

/// The verbs that write records.
#[cfg(feature = "record")]
fn record(verb: &str, args: &[OsString]) -> ExitCode {
    match verb {
        "keygen" => run(args, |raw: keygen::Args| {
            raw.try_into() as Result<keygen::Keygen, _>
        }),
        "recover" => run(args, |raw: recover::Args| {
            raw.try_into() as Result<recover::Recover, _>
        }),
        "demo" => run(args, |raw: demo::Args| {
            raw.try_into() as Result<demo::Demo, _>
        }),
        "wrap" => {
            let (own, command) = args::split_command(args);
            run(own, |raw: wrap::Args| raw.request(command))
        }
        _ => demo_server::run(args),
    }
}

/// What a verb was asked to do, free of contradictions.
trait Request: Sized {
    fn run(self) -> ExitCode;
}

/// A command line that means nothing.
#[derive(Debug, PartialEq, Eq)]
struct UsageError(String);

/// Reads the arguments of a verb and does what they ask for.
fn run<A: Verb, R: Request>(
    args: &[OsString],
    request: impl FnOnce(A) -> Result<R, UsageError>,
) -> ExitCode {
    let asked = match args::parse::<A>(args) {
        Ok(raw) => request(raw),
        Err(Stop::Help(text)) => return print(&text),
        Err(Stop::Usage(text)) => Err(UsageError(text)),
    };
    match asked {
        Ok(request) => request.run(),
        Err(UsageError(text)) => {
            ui::error(text);
            ui::say(args::help::<A>());
            Exit::Failed.into()
        }
    }
}

/// Whether `--format` asks for JSON.
fn json_format(format: Option<&str>) -> Result<bool, UsageError> {
    match format {
        None | Some("text") => Ok(false),
        Some("json") => Ok(true),
        Some(other) => Err(UsageError(format!(
            "--format needs text or json, got `{}`",
            args::typed(other)
        ))),
    }
}

fn print(text: &str) -> ExitCode {
    let mut out = Out::new();
    out.text(text);
    match out.end() {
        true => Exit::Ok.into(),
        false => Exit::Failed.into(),
    }
}

fn overview() -> String {
    let mut text = format!(
        "aegis {} - signed evidence of what AI agents do with tools\n\nUsage: aegis <command> [options]\n\nCommands:\n",
        env!("CARGO_PKG_VERSION")
    );
    for (verb, what) in VERBS {
        text.push_str(&format!("  {verb:<9} {what}\n"));
    }
    text.push_str("\nRun `aegis <command> --help` for the options of a command.\n");
    text
}

const VERBS: [(&str, &str); 8] = [
    (
        "demo",
        "record a small session, verify it, damage it, refuse a call",
    ),
    (
        "wrap",
        "run an MCP server, record its tool calls, refuse some by policy",
    ),
    (
        "verify",
        "check record files offline: complete, unchanged, under whose key",
    ),
    (
        "policy",
        "check, explain and hash the rules of a policy file",
    ),
    (
        "recheck",
        "ask another policy about every call that was recorded",
    ),
    (
        "doctor",
        "tell what this machine can enforce, and how to mend what it cannot",
    ),
    ("keygen", "make a new signing key"),
    (
        "recover",
        "make a record file that a crash cut off appendable again",
    ),
];
