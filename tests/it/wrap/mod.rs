//! `aegis wrap` as a process between a client, which is the test, and the test
//! double `aegis __demo-server`.

mod bound;
mod endings;
mod failures;
mod frames;
mod gate;
mod gate_ends;
mod gate_start;
mod gate_suite;
pub(crate) mod harness;
mod kill;
mod listing;
mod listing_hidden;
mod names;
mod order;
mod outcomes;
mod payloads;
mod processes;
pub(crate) mod record;
mod reload;
mod retries;
mod signals;
mod soak;
mod stderr;
mod transparency;
mod usage;
