//! `aegis wrap` as a process between a client, which is the test, and the test
//! double `aegis __demo-server`.

mod harness;
mod record;
mod transparency;
