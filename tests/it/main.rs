//! Integration tests.
mod signatures;
mod spec;
mod wrap;
