//! Integration tests, in one binary.

#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::print_stdout)]

mod layers;
mod signatures;
mod spec;
