//! `aegis wrap` as a process between a client, which is the test, and the test
//! double `aegis __demo-server`.

mod bound;
mod endings;
mod frames;
mod harness;
mod names;
mod outcomes;
mod processes;
mod record;
mod retries;
mod transparency;
