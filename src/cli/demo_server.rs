//! `aegis __demo-server`, hidden: the MCP server that `aegis demo` wraps and
//! that the test suite has misbehave.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use super::exit::Exit;
use super::ui;
use crate::demo::server;

pub(super) fn run(args: &[OsString]) -> ExitCode {
    match server::parse(args) {
        Ok(options) => server::serve(options, io::stdin(), io::stdout(), io::stderr()),
        Err(error) => {
            ui::error(format_args!("__demo-server: {error}"));
            Exit::Failed.into()
        }
    }
}
