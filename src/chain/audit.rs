//! Where a Session is recorded: a file of its own, or an audit directory in
//! which it gets one.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::file::{self, FileError};
use super::writer::{ChainError, SessionStart, Writer, system_clock};
use crate::sign::SigningKey;
use crate::wire::facts::Durability;
use crate::wire::line::OpenFacts;

/// Where to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Audit {
    /// In this file, after the Sessions that it holds.
    File(PathBuf),
}

/// Why nothing can be recorded there.
#[derive(Debug, Error)]
pub(crate) enum AuditError {
    /// The file cannot be appended to.
    #[error("{0}")]
    File(#[from] FileError),
    /// The Session could not be opened.
    #[error("{0}")]
    Chain(#[from] ChainError),
}

impl Audit {
    /// Recording at `path`: a directory when it is one.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self::File(path)
    }

    /// Opens a Session.
    ///
    /// # Errors
    /// When the file cannot be appended to, or the `open` Line not be written.
    pub(crate) fn open(
        &self,
        key: SigningKey,
        facts: OpenFacts,
        durability: Durability,
    ) -> Result<Writer, AuditError> {
        let Self::File(path) = self;
        let opened = file::open(path)?;
        let start = SessionStart {
            facts,
            prev_session_tail: opened.tail,
            durability,
            clock: system_clock(),
        };
        Ok(Writer::open(opened.sink, key, start)?)
    }

    /// The directory that holds the record.
    pub(crate) fn directory(&self) -> PathBuf {
        let Self::File(path) = self;
        match path.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        }
    }
}
