//! The helper: this executable again, which restricts itself and becomes the
//! program.

use std::convert::Infallible;
use std::ffi::OsString;

use thiserror::Error;

/// Why nothing was executed.
#[derive(Debug, Error)]
pub(crate) enum Refusal {
    /// The command line means nothing.
    #[error("{0}")]
    Usage(String),
    /// Something could not be put in force, and whoever called is told here.
    #[error("{0}")]
    Failed(String),
    /// The same, and the parent was told, or is gone.
    #[error("the parent was told why")]
    Told,
}

/// Restricts this process as it was ordered and executes the program. `args`
/// are those after the verb.
///
/// # Errors
/// When any step does not do what it should; then nothing was executed.
pub(crate) fn main(_args: &[OsString]) -> Result<Infallible, Refusal> {
    Err(Refusal::Told)
}
