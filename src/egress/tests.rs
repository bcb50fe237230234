//! Real clients and servers on the loopback. What a name of a test resolves to
//! is public, 1.1.1.N, and dialled at 127.0.0.N.

mod bounds;
mod direct;
mod forward;
mod questions;
mod socks;
mod tunnel;
mod upstream;
mod world;
