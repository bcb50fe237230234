//! Why a confined program was not started.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

use super::door::HANDSHAKE_WAIT;
use super::order::OrderError;
use super::refused::{Refused, setting};

/// The cause, and what helps.
#[derive(Debug, Error)]
pub(crate) enum StartError {
    /// What was asked for cannot be asked of a helper.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The private socket.
    #[error("the private socket that a confined start needs cannot be had: {0}{cure}", cure = door_cure(.0))]
    Door(io::Error),
    /// Its directory.
    #[error(
        "there is no place for the private socket that a confined start needs ({0}); grant less, or set XDG_RUNTIME_DIR to a directory with a short name that can be written to"
    )]
    Place(String),
    /// Where the executable of this process is.
    #[error("the executable of aegis cannot be found: {0}; is /proc mounted?")]
    Executable(io::Error),
    /// There is another one now, or none.
    #[error("the executable of aegis was replaced or deleted while it ran; start again")]
    Replaced,
    /// The child cannot be watched.
    #[error(
        "the helper cannot be watched: {0}; confinement needs Linux 5.3 or later, and a container that lets pidfd_open through"
    )]
    Watch(io::Error),
    /// The machine gives no namespaces, and this start cannot do without.
    #[error(
        "this machine gives aegis no namespaces ({0}): {cause}; without them --allow-net cannot be held to hosts: leave it out, or give --best-effort to hold it to ports alone",
        cause = .0.cause(setting)
    )]
    Namespace(Refused),
    /// The helper could not put something in force, and said what.
    #[error("{0}")]
    Helper(String),
    /// It ended without a word.
    #[error(
        "the helper that confines the program {0} before it was ready; its standard error may say more"
    )]
    Ended(String),
    /// It never came, or never got ready.
    #[error(
        "the helper that confines the program was not ready within {} seconds; start again when the machine is less busy",
        HANDSHAKE_WAIT.as_secs()
    )]
    Timeout,
    /// Somebody else came.
    #[error("process {pid}, which is not the helper, came to the private socket of this start")]
    Forged {
        /// Its process id; 0 when it cannot be seen from here.
        pid: i32,
    },
    /// It says what no helper says.
    #[error("the helper said what no helper says: this is a fault of aegis, please report it")]
    Protocol,
    /// It cannot be looked at.
    #[error(
        "the helper cannot be looked at in /proc: {0}; mount /proc, and let this process open more files (ulimit -n)"
    )]
    Unseen(io::Error),
    /// It claims more than the kernel does.
    #[error("the helper says that {0}, and the kernel or the order says otherwise")]
    Contradicted(&'static str),
    /// The program could not be executed behind the fences.
    #[error("{0}")]
    Executed(String),
}

/// What helps when the socket, or one that came over it, cannot be had.
fn door_cure(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => "; a program that is confined itself may make none",
        _ => files_cure(error),
    }
}

/// What helps where no more files may be open, for the end of a message.
pub(super) fn files_cure(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE) => "; let this process open more files (ulimit -n)",
        _ => "",
    }
}
