//! Where a Session is recorded: a file of its own, or an audit directory in
//! which it gets one.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::directory;
use super::file::{self, FileError};
use super::segment::{self, Prepared, SegmentError};
use super::writer::{ChainError, SessionStart, Writer, system_clock};
use crate::sign::SigningKey;
use crate::wire::facts::Durability;
use crate::wire::line::OpenFacts;

/// Where to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Audit {
    /// In this file, after the Sessions that it holds.
    File(PathBuf),
    /// In a Segment of its own in this directory.
    Directory(PathBuf),
}

/// Why nothing can be recorded there.
#[derive(Debug, Error)]
pub(crate) enum AuditError {
    /// The file cannot be appended to.
    #[error("{0}")]
    File(#[from] FileError),
    /// There is no Segment in the directory.
    #[error("{0}")]
    Segment(#[from] SegmentError),
    /// The Session could not be opened.
    #[error("{0}")]
    Chain(#[from] ChainError),
}

impl Audit {
    /// Recording at `path`: to a directory when it is one or ends in `/`.
    pub(crate) fn at(path: PathBuf) -> Self {
        // The components of a path do not tell whether it ended so.
        let is_named_so = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if is_named_so || path.is_dir() {
            Self::Directory(path)
        } else {
            Self::File(path)
        }
    }

    /// Opens a Session.
    ///
    /// # Errors
    /// When the file cannot be appended to, the directory not be used, or the
    /// `open` Line not be written.
    pub(crate) fn open(
        &self,
        key: SigningKey,
        facts: OpenFacts,
        durability: Durability,
    ) -> Result<Writer, AuditError> {
        // Before anything is made that would be left behind.
        if key.is_insecure_dev() {
            return Err(ChainError::DevKey.into());
        }
        let start = SessionStart {
            facts,
            prev_session_tail: None,
            durability,
            clock: system_clock(),
        };
        match self {
            Self::File(path) => open_in_file(path, key, start),
            Self::Directory(path) => open_in_directory(path, key, start),
        }
    }

    /// The directory that holds the record.
    pub(crate) fn directory(&self) -> PathBuf {
        match self {
            Self::File(path) => directory::parent_of(path).to_owned(),
            Self::Directory(path) => path.clone(),
        }
    }
}

fn open_in_file(
    path: &Path,
    key: SigningKey,
    mut start: SessionStart,
) -> Result<Writer, AuditError> {
    let opened = file::open(path)?;
    start.prev_session_tail = opened.tail;
    Ok(Writer::open(opened.sink, key, start)?)
}

fn open_in_directory(
    path: &Path,
    key: SigningKey,
    mut start: SessionStart,
) -> Result<Writer, AuditError> {
    let Prepared {
        sink,
        follows,
        hidden,
    } = segment::prepare(path)?;
    start.facts.follows = follows;
    let writer = Writer::open(sink, key, start)?;
    hidden.publish()?;
    Ok(writer)
}
