//! A start, with the second try where the machine gives no namespaces.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::door::{Door, Waiting};
use super::order::{Order, VARIABLE};
use super::start_error::StartError;

/// A process that the caller started.
pub(crate) trait Started {
    /// Its id. It must not have been reaped.
    fn pid(&self) -> u32;
    /// Ends and reaps it.
    fn discard(self);
}

/// Starts a helper by `spawn`, which sets the pipes, and has it restrict
/// itself; where the machine gives no namespaces and `order` can do without,
/// once more without. On any error the last helper has been discarded.
///
/// The thread that spawns must outlive the program, which dies with it.
///
/// # Errors
/// Those of `spawn`, and what keeps the helper from being ready.
pub(crate) fn start<C: Started, E: From<StartError>>(
    door: &Door,
    order: &Order,
    args: &[OsString],
    mut spawn: impl FnMut(Command) -> Result<C, E>,
) -> Result<(C, Waiting), E> {
    let mut order = order.clone();
    loop {
        let child = spawn(command(&order, args)?)?;
        let error = match door.admit(&order, child.pid()) {
            Ok(waiting) => return Ok((child, waiting)),
            Err(error) => error,
        };
        child.discard();
        order = match (&error, order.without_namespace()) {
            (StartError::Namespace(_), Some(without)) => without,
            _ => return Err(error.into()),
        };
    }
}

/// The command that starts a helper in a process group of its own, which will
/// execute `args`: the whole command, the program first and as it was typed.
/// Pipes and the like are the caller's to set.
///
/// # Errors
/// When this executable has no path any more, or the order does not fit.
pub(crate) fn command(order: &Order, args: &[OsString]) -> Result<Command, StartError> {
    let executable = std::env::current_exe().map_err(StartError::Executable)?;
    // The kernel marks one that was deleted, by a name that nothing has.
    if !executable.exists() {
        return Err(StartError::Replaced);
    }
    command_of(&executable, order, args)
}

/// The same of any executable of aegis.
///
/// # Errors
/// When the order does not fit.
pub(crate) fn command_of(
    executable: &Path,
    order: &Order,
    args: &[OsString],
) -> Result<Command, StartError> {
    let profile = &order.profile;
    let kept = profile.kept_variables.iter();
    let kept = kept.filter_map(|name| Some((name, std::env::var_os(name)?)));
    let mut command = Command::new(executable);
    command
        .arg("__confine-exec")
        .arg("--")
        .args(args)
        .env_clear()
        .envs(kept)
        .envs(
            profile
                .set_variables
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .env(VARIABLE, order.to_variable()?)
        .process_group(0);
    Ok(command)
}
