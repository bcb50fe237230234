//! The values and bytes of a Line: no I/O, no clock, no keys.
//!
//! * [`digest`]: SHA-256 digests that cannot be swapped for one another.
//! * [`canon`]: the canonical form, RFC 8785 over the Line's value space.
//! * `jcs`: the same in full, for tool definitions; absent from a build that
//!   only checks records.
//! * [`decode`]: the only reader of Lines.
//! * [`mod@line`], [`outcome`], [`grant`], [`facts`]: every Line and its members.
//! * `spelled`: the texts in them that are ours.

pub mod canon;
pub mod decode;
pub mod digest;
pub mod escape;
pub mod facts;
pub mod grant;
pub mod hex;
#[cfg(feature = "record")]
pub(crate) mod jcs;
pub mod json;
pub mod line;
pub mod outcome;
pub(crate) mod spelled;
pub mod time;
