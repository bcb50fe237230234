//! Writing a Chain: from a Call to a row on the disk (SPEC §4, §7).
//!
//! * [`sink`]: where rows go; [`file`] is the one that keeps them.
//! * [`audit`]: a file for all Sessions, or by [`segment`] one for each.
//! * [`keyfile`]: where the key that signs is kept.
//! * [`writer`]: one Session: sequence numbers, links, signatures.
//! * [`commit`]: when a row counts as kept.
//! * [`call`], [`ending`]: one intent, exactly one outcome.
//! * [`tail`], [`recover`]: what an existing file ends with, and how to make
//!   a damaged one appendable.

pub(crate) mod audit;
pub(crate) mod broken;
pub(crate) mod call;
pub(crate) mod commit;
mod directory;
pub(crate) mod ending;
pub(crate) mod file;
pub(crate) mod keyfile;
mod name;
pub(crate) mod recover;
mod rows;
pub(crate) mod segment;
pub(crate) mod sink;
pub(crate) mod tail;
mod timer;
pub(crate) mod writer;

#[cfg(test)]
pub(crate) mod testing;
