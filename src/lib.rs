//! aegis: evidence of what AI agents do with tools.
//!
//! One static executable, of which this library is the inside. Knowledge runs
//! one way: a module may use modules of a lower level only.
//!
//! | Level | Modules |
//! |---|---|
//! | 0 | [`wire`] |
//! | 1 | [`sign`], `input`, `rpc`, `net` |
//! | 2 | [`verify`], `policy`, `chain` |
//! | 3 | `grant` |
//! | 4 | `confine`, `egress` |
//! | 5 | `stations` |
//! | 6 | `demo`, `doctor`, `wrap` |
//! | 7 | `cli`, `internals` |
//!
//! `tests/it/layers.rs` reads the `crate::` paths of every source file and
//! fails when one points upwards or sideways. Only `cli` prints and only
//! `main` exits.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::print_stderr))]

#[cfg(feature = "record")]
#[doc(hidden)]
pub mod internals;
pub mod sign;
pub mod verify;
pub mod wire;

#[cfg(all(feature = "record", not(unix)))]
compile_error!(
    "recording needs a Unix system; build with --no-default-features to verify records here"
);

mod cli;
mod input;
mod policy;

#[cfg(feature = "record")]
mod chain;
#[cfg(all(feature = "confine", target_os = "linux"))]
#[allow(
    dead_code,
    reason = "some assets have no files yet, and tables give reasons"
)]
mod confine;
#[cfg(feature = "record")]
mod demo;
#[cfg(all(feature = "confine", target_os = "linux"))]
mod doctor;
#[cfg(all(feature = "confine", target_os = "linux"))]
mod egress;
#[cfg(all(feature = "confine", target_os = "linux"))]
#[allow(
    dead_code,
    reason = "Grants of single Calls are for tools that run in this process"
)]
mod grant;
#[cfg(all(feature = "confine", target_os = "linux"))]
#[allow(dead_code, reason = "addresses are lent from one block so far")]
mod net;
#[cfg(feature = "record")]
mod rpc;
#[cfg(feature = "record")]
mod stations;
#[cfg(feature = "record")]
mod wrap;

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command line `args` (program name first) and returns the exit
/// code that the process should end with. Exit codes are API: see SPEC.md.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    cli::main(args.into_iter().collect())
}
