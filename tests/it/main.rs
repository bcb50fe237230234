//! Integration tests.
mod signatures;
