//! A start, with the second try where the machine gives no namespaces.

use std::ffi::OsString;
use std::process::Command;

use super::door::{self, Door, StartError, Waiting};
use super::order::Order;

/// A process that the caller started.
pub(crate) trait Started {
    /// Its id. It must not have been reaped.
    fn pid(&self) -> u32;
    /// Ends and reaps it.
    fn discard(self);
}

/// Starts a helper by `spawn`, which sets pipes and group, and has it restrict
/// itself; where the machine gives no namespaces and `order` can do without,
/// once more without. On any error the last helper has been discarded.
///
/// # Errors
/// Those of `spawn`, and what keeps the helper from being ready.
pub(crate) fn start<C: Started, E: From<StartError>>(
    door: &Door,
    order: &Order,
    args: &[OsString],
    mut spawn: impl FnMut(Command) -> Result<C, E>,
) -> Result<(C, Waiting), E> {
    let mut attempt = |order: &Order| -> Result<_, E> {
        let child = spawn(door::command(order, args)?)?;
        Ok(match door.admit(child.pid()) {
            Ok(waiting) => Ok((child, waiting)),
            Err(error) => {
                child.discard();
                Err(error)
            }
        })
    };
    match attempt(order)? {
        Ok(ready) => Ok(ready),
        Err(error) => Err(error.into()),
    }
}
