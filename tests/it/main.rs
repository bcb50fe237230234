//! Integration tests, in one binary.

#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::print_stdout)]

#[cfg(feature = "record")]
mod demo;
mod layers;
mod signatures;
mod spec;
