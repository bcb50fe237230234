//! Integration tests.
mod assemble;
mod canonical;
mod cli_inputs;
mod cli_verify;
mod determinism;
mod edits;
mod exe;
mod hostile;
mod kit;
mod memory;
mod published;
mod signatures;
mod spec;
mod vectors;
