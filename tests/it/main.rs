//! Integration tests.
mod signatures;
mod spec;
