//! `aegis __confine-exec`, hidden: what `aegis wrap --confine` starts, which
//! restricts itself and becomes the program.

use std::ffi::OsString;
use std::process::ExitCode;

use super::exit::Exit;
use super::ui;
use crate::confine::reexec::{self, Refusal};

pub(super) fn run(args: &[OsString]) -> ExitCode {
    match reexec::main(args) {
        Err(Refusal::Usage(text)) => {
            ui::error(text);
            Exit::Failed.into()
        }
        Err(Refusal::Failed(text)) => {
            ui::say(format_args!("aegis __confine-exec: {text}\n"));
            NOT_EXECUTED.into()
        }
        Err(Refusal::Told) => NOT_EXECUTED.into(),
    }
}

/// As a shell says that a command cannot be executed.
const NOT_EXECUTED: u8 = 126;
