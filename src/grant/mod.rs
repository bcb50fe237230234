//! Grants: the authority that a Call, or a whole server, runs under.
//!
//! * [`manifest`]: what a tool says that it needs.
//! * [`root`]: the paths among it, resolved as the kernel resolves them and
//!   held open.
//! * [`mint`]: the only way from a manifest to authority.
//! * [`narrow`]: less authority out of more, never the other way.

pub(crate) mod manifest;
pub(crate) mod mint;
mod narrow;
pub(crate) mod root;
