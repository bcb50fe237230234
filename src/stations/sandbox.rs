//! The SANDBOX station of a whole server: what the operator lets it reach, put
//! in force before it begins.
//!
//! ```text
//! Asked ─read─▶ Request ─prepare─▶ Prepared ─enter─▶ Entered ─go─▶ Running
//! ```
//!
//! Between `enter` and `go` the server's process is restricted and waits, so
//! that the record can say what was enforced before the server does anything.

#[cfg(not(all(feature = "confine", target_os = "linux")))]
mod disabled;
#[cfg(all(feature = "confine", target_os = "linux"))]
mod enforced;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::chain::audit::Audit;
use crate::wire::digest::{Digest, Hasher, Text};
use crate::wire::facts::Limits;

#[cfg(not(all(feature = "confine", target_os = "linux")))]
pub(crate) use disabled::{Entered, Ledger, Mark, Prepared, Request, Running, Started};
#[cfg(all(feature = "confine", target_os = "linux"))]
pub(crate) use enforced::{Entered, Ledger, Mark, Prepared, Request, Running, Started};

/// What the command line asks for, as it was typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    not(all(feature = "confine", target_os = "linux")),
    allow(dead_code, reason = "read only where it can be put in force")
)]
pub(crate) struct Asked {
    /// `--allow-read`.
    pub(crate) read: Vec<PathBuf>,
    /// `--allow-write`.
    pub(crate) write: Vec<PathBuf>,
    /// `--allow-net`.
    pub(crate) net: Vec<String>,
    /// `--allow-env`.
    pub(crate) variables: Vec<String>,
    /// `--preset`.
    pub(crate) preset: Option<String>,
    /// `--allow-exec-support`.
    pub(crate) exec_support: bool,
    /// `--allow-unix-sockets`.
    pub(crate) unix_sockets: bool,
    /// `--shared-cache`.
    pub(crate) shared_cache: bool,
    /// `--upstream-proxy`.
    pub(crate) upstream: Option<String>,
    /// `--max-procs`, `--max-memory`, `--max-files`.
    pub(crate) limits: Limits,
    /// `--best-effort`.
    pub(crate) best_effort: bool,
}

/// What of aegis's own no server may reach.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(all(feature = "confine", target_os = "linux")),
    allow(dead_code, reason = "there is no server to keep it from")
)]
pub(crate) struct Own<'a> {
    /// Where the record is written.
    pub(crate) audit: &'a Audit,
    /// What it is signed with.
    pub(crate) signing_key: &'a Path,
    /// What Calls are judged by.
    pub(crate) policy: Option<&'a Path>,
}

/// SHA-256 over every argument of a command, the program first, each followed
/// by a NUL byte.
pub(crate) fn argv_digest(command: &[OsString]) -> Digest<Text> {
    let mut argv = Hasher::new();
    for argument in command {
        argv.update(argument.as_encoded_bytes());
        argv.update(b"\0");
    }
    argv.finish()
}
