//! `aegis wrap`: sits in an MCP stdio session and records every `tools/call`.
//!
//! ```text
//! client ──▶ requests ──▶ child      intent, then the request
//! client ◀── answers  ◀── child      outcome, then the answer
//! ```
//!
//! Bytes are relayed, never rebuilt. One thread a direction; the caller's
//! thread waits for what ends the session and sees to it that every Call has
//! its outcome.

mod answer;
mod answers;
mod child;
mod client;
mod digest;
mod lane;
mod launch;
mod listing;
mod listings;
mod loose;
mod opening;
mod pending;
mod refusal;
mod reload;
mod requests;
mod retry;
mod session;
mod stderr;
mod tell;

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::chain::audit::{Audit, AuditError};
use crate::chain::keyfile::KeyFileError;
use crate::chain::writer::{ChainError, Writer};
use crate::rpc::frame::FrameError;
use crate::stations::{Gate, GateError, sandbox};
use crate::wire::digest::{Digest, PolicySet};
use crate::wire::escape::EscapedPath;
use crate::wire::facts::Durability;
use lane::Stop;
use listings::Listings;
use pending::Pending;

pub(crate) use crate::stations::Mode;
pub(crate) use session::run;

/// What is to be wrapped, and where it is recorded.
pub(crate) struct Wrap {
    pub(crate) audit: Audit,
    pub(crate) signing_key: PathBuf,
    pub(crate) durability: Durability,
    /// Bytes of the longest frame that is relayed.
    pub(crate) max_frame: Option<u64>,
    /// The policy that Calls are judged by, if they are.
    pub(crate) policy: Option<Enforcement>,
    /// What the child is confined to, if it is.
    pub(crate) confine: Option<sandbox::Request>,
    /// The child's program and its arguments.
    pub(crate) command: Vec<OsString>,
}

/// A policy, and what is done with its verdicts.
pub(crate) struct Enforcement {
    /// The document.
    pub(crate) file: PathBuf,
    pub(crate) mode: Mode,
    /// The only set that may be in force.
    pub(crate) pinned: Option<Digest<PolicySet>>,
    /// Whether a changed file is taken over.
    pub(crate) reload: bool,
    /// Whether rules that can never match here are borne.
    pub(crate) allow_inert: bool,
    /// Whether tools that are denied are left out of `tools/list` answers.
    pub(crate) hide_denied: bool,
    /// What a refusal says.
    pub(crate) deny: Deny,
}

/// What a refusal says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deny {
    /// Its error code, whatever the client speaks.
    pub(crate) code: Option<i32>,
    /// Whether it names the rule and the reason.
    pub(crate) detail: bool,
}

/// The client's side of the session.
pub(crate) struct Client {
    pub(crate) input: File,
    pub(crate) output: File,
    /// Whether standard error is a terminal, which a child must not control.
    pub(crate) stderr_is_terminal: bool,
}

/// How a session ended that had begun.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The exit code of the process.
    pub(crate) exit: u8,
    /// What a person should know, if anything.
    pub(crate) notice: Option<String>,
}

/// Why there was no session.
#[derive(Debug, Error)]
pub(crate) enum WrapError {
    /// There is no policy to judge by.
    #[error("could not load policy `{}`: {error}", EscapedPath(file))]
    Policy {
        /// Its document.
        file: PathBuf,
        /// What is wrong with it.
        error: GateError,
    },
    /// The signing key could not be loaded.
    #[error("wrap audit failed: {0}")]
    Key(#[from] KeyFileError),
    /// The record could not be opened.
    #[error("wrap audit failed: {0}")]
    Audit(#[from] AuditError),
    /// Something could not be recorded.
    #[error("wrap audit failed: {0}")]
    Chain(#[from] ChainError),
    /// The child could not be started.
    #[error("{0}")]
    Spawn(String),
    /// The child could not be confined, so it was not started.
    #[error("cannot confine the server: {0}")]
    Confine(String),
    /// The system refused something that every session needs.
    #[error("wrap relay I/O failed: {0}")]
    Io(#[from] std::io::Error),
}

impl WrapError {
    /// The exit code of the process.
    pub(crate) fn exit(&self) -> u8 {
        match self {
            Self::Confine(_) => NOT_CONFINED,
            _ => 1,
        }
    }
}

/// What both lanes and the end of the session share.
struct Shared {
    writer: Writer,
    pending: Pending,
    /// What the client was shown of the tools.
    listings: Listings,
    /// Judges what the client asks for; without one everything goes on.
    gate: Option<Gate>,
    /// Frames of the client that could not be read.
    unreadable: AtomicU64,
    notices: Sender<Notice>,
    begun: Instant,
    /// Set when the end of the session begins: what is open then is concluded,
    /// so nothing may go on any more.
    over: AtomicBool,
    /// When the child last said something, the client took some of it, or the
    /// child took a piece of what is meant for it, in milliseconds since
    /// `begun`.
    spoke_ms: AtomicU64,
}

impl Shared {
    fn notify(&self, notice: Notice) {
        // Nobody listens once the session has ended.
        let _ = self.notices.send(notice);
    }

    fn child_spoke(&self) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.spoke_ms.store(now, Ordering::Relaxed);
    }

    fn spoke_at(&self) -> Instant {
        self.begun + Duration::from_millis(self.spoke_ms.load(Ordering::Relaxed))
    }

    /// Whether anything may still be relayed.
    ///
    /// # Errors
    /// When the session is over, or nothing more can be recorded.
    fn may_go_on(&self) -> Result<(), ChainError> {
        if self.over.load(Ordering::SeqCst) {
            return Err(ChainError::Closed);
        }
        self.writer.check()
    }
}

/// What may end a session.
#[derive(Debug)]
enum Notice {
    /// The lane from the client stopped.
    Requests(Stop),
    /// The lane from the child stopped.
    Answers(Stop),
    /// The child does not read any more.
    ChildInputGone,
    /// The client does not read any more.
    ClientGone,
    /// The client does not write any more, whether or not all was read that it
    /// wrote.
    ClientHungUp,
    /// The child has exited.
    ChildExited,
    /// aegis was sent this signal.
    Signal(i32),
    /// Nothing more can be recorded.
    Broken(String),
}

/// What went wrong, when the lane from `peer` stopped for a reason that is not
/// an end.
fn failure(stop: &Stop, peer: &str) -> Option<String> {
    match stop {
        Stop::Eof | Stop::Ended => None,
        Stop::Frame(FrameError::TooLarge { limit }) => Some(format!(
            "the {peer} sent a frame longer than {limit} bytes; raise --max-frame if it is to be \
             trusted with more"
        )),
        Stop::Frame(error) => Some(format!("wrap relay I/O failed: {error}")),
        Stop::Spool(error) => Some(format!("wrap relay I/O failed: spool file: {error}")),
        Stop::Chain(error) => Some(format!("wrap audit failed: {error}")),
    }
}

/// As a shell says that a command cannot be executed.
const NOT_CONFINED: u8 = 126;

#[cfg(test)]
mod tests;
