//! Integration tests, in one binary.

#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::print_stdout)]

mod assemble;
mod canonical;
mod cli_inputs;
mod cli_verify;
#[cfg(all(feature = "confine", target_os = "linux"))]
mod confine;
#[cfg(feature = "record")]
mod demo;
mod determinism;
mod doctor;
mod edits;
mod exe;
mod facts;
mod hostile;
mod kit;
mod layers;
mod memory;
#[cfg(feature = "record")]
mod mixed;
mod policy;
mod published;
mod recheck;
mod require;
mod rulings;
#[cfg(feature = "record")]
mod segments;
mod signatures;
mod spec;
#[cfg(feature = "record")]
mod syscalls;
#[cfg(feature = "record")]
mod terminal;
mod vectors;
#[cfg(feature = "record")]
mod wrap;
