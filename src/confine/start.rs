//! A start, with the second try where the machine gives no namespaces.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
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
    spawn: impl FnMut(Command) -> Result<C, E>,
) -> Result<(C, Waiting), E> {
    start_as(&own_executable()?, door, order, args, spawn)
}

/// The same with any executable of aegis.
///
/// # Errors
/// Those of `spawn`, and what keeps the helper from being ready.
pub(crate) fn start_as<C: Started, E: From<StartError>>(
    executable: &Path,
    door: &Door,
    order: &Order,
    args: &[OsString],
    mut spawn: impl FnMut(Command) -> Result<C, E>,
) -> Result<(C, Waiting), E> {
    // A helper that is bound to fail costs its start.
    let without = are_namespaces_off().then(|| order.without_namespace());
    let mut order = without.flatten().unwrap_or_else(|| order.clone());
    loop {
        let child = spawn(command(executable, &order, args)?)?;
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

/// Whether the machine says that it gives none (namespaces(7)).
fn are_namespaces_off() -> bool {
    let most = fs::read_to_string("/proc/sys/user/max_user_namespaces");
    most.is_ok_and(|most| most.trim() == "0")
}

/// The executable of this process.
///
/// # Errors
/// When it has no path any more.
pub(crate) fn own_executable() -> Result<PathBuf, StartError> {
    let executable = std::env::current_exe().map_err(StartError::Executable)?;
    // The kernel marks one that was deleted, by a name that nothing has.
    match executable.exists() {
        true => Ok(executable),
        false => Err(StartError::Replaced),
    }
}

/// The command that starts a helper in a process group of its own, which will
/// execute `args`: the whole command, the program first and as it was typed.
/// Pipes and the like are the caller's to set.
///
/// # Errors
/// When the order does not fit.
pub(crate) fn command(
    executable: &Path,
    order: &Order,
    args: &[OsString],
) -> Result<Command, StartError> {
    let profile = &order.profile;
    let kept = profile.kept_variables.iter();
    let kept = kept.filter_map(|name| Some((name, std::env::var_os(name)?)));
    let set = profile.set_variables.iter();
    let mut command = Command::new(executable);
    command
        .arg("__confine-exec")
        .arg("--")
        .args(args)
        .env_clear()
        .envs(kept)
        .envs(set.map(|(name, value)| (name, value)))
        .env(VARIABLE, order.to_variable()?)
        .process_group(0);
    Ok(command)
}
