//! JSON-RPC over newline-delimited bytes: where one frame ends, whether it can
//! be read strictly, and what it means.
//!
//! [`frame`] cuts bytes and never alters them. [`scan`] reads a frame once, in
//! pieces, with memory that does not grow with the frame. [`message`] is what
//! the scan hands on. Nothing here decides anything.

pub(crate) mod frame;
pub(crate) mod message;
pub(crate) mod scan;
