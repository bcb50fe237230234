//! The command line: argh structs, one typed request per verb, one file per
//! verb. The only module that prints.

use std::ffi::OsString;
use std::process::ExitCode;

pub(crate) fn main(_args: Vec<OsString>) -> ExitCode {
    ExitCode::FAILURE
}
