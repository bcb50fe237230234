//! `aegis wrap --confine` from the command line to the record.
//!
//! The server is a small one in Python whose tools do what a test asks of
//! them, so that it can be seen from outside what it may.

mod ends;
mod machine;
mod network;
mod refused;
mod server;
mod session;
mod short;
mod tls;
mod usage;
