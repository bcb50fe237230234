//! The command line: argh structs, one typed request per verb, one file per
//! verb. The only module that prints.

mod args;
mod exit;
mod progress;
mod ui;
mod verify;
mod verify_json;

use std::ffi::OsString;
use std::process::ExitCode;

use argh::FromArgs;

use args::Stop;
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
        Some("help" | "--help" | "-h") => print(&overview()).into(),
        Some("version" | "--version" | "-V") => {
            print(&format!("aegis {}\n", env!("CARGO_PKG_VERSION"))).into()
        }
        Some("verify") => run::<verify::Args, verify::Verify>("verify", &args).into(),
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

/// What a verb was asked to do, free of contradictions.
trait Request: Sized {
    fn run(self) -> Exit;
}

/// A command line that means nothing.
#[derive(Debug, PartialEq, Eq)]
struct UsageError(String);

/// Reads the arguments of a verb and does what they ask for.
fn run<A, R>(verb: &str, args: &[OsString]) -> Exit
where
    A: FromArgs,
    R: Request + TryFrom<A, Error = UsageError>,
{
    let request = match args::parse::<A>(verb, args) {
        Ok(raw) => R::try_from(raw),
        Err(Stop::Help(text)) => return print(&text),
        Err(Stop::Usage(text)) => Err(UsageError(text)),
    };
    match request {
        Ok(request) => request.run(),
        Err(UsageError(text)) => {
            ui::error(text);
            ui::say(args::help::<A>(verb));
            Exit::Failed
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
            Escaped(other)
        ))),
    }
}

fn print(text: &str) -> Exit {
    let mut out = Out::new();
    out.text(text);
    match out.finish() {
        Ok(()) => Exit::Ok,
        Err(error) => {
            ui::error(format_args!("write standard output: {error}"));
            Exit::Failed
        }
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

const VERBS: [(&str, &str); 1] = [(
    "verify",
    "check record files offline: complete, unchanged, under whose key",
)];
