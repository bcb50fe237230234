//! A file that keeps rows: one writer, whole rows or none.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::ops::Deref;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use rustix::io::Errno;
use thiserror::Error;

use crate::wire::escape::EscapedPath;

use super::directory;
use super::name::is_segment_name;
use super::sink::{Retention, Sink};
use super::tail::{self, TailError};
use crate::wire::digest::{self, Digest};

/// A record file, open for appending and locked.
pub(crate) struct Opened {
    /// Where its next Session goes.
    pub(crate) sink: FileSink,
    /// The hash of its last Line, which that Session's `open` Line names.
    pub(crate) tail: Option<Digest<digest::Line>>,
}

/// Opens the record file at `path`, made (mode 0600) with its directories
/// (mode 0700) as needed, and locks it for as long as its sink lives.
///
/// The lock comes first: what a file ends with says nothing while another
/// process may append to it.
///
/// # Errors
/// When it is not a regular file, somebody else has it open, it is a Segment,
/// or nothing may be appended to what it ends with. What exists is never
/// changed.
pub(crate) fn open(path: &Path) -> Result<Opened, FileError> {
    directory::make(directory::parent_of(path)).map_err(|error| io_error(path, error))?;
    let file = open_locked(path, Missing::Create)?;
    let length = length_of(&file).map_err(|error| io_error(path, error))?;
    if length > 0 && is_segment(path) {
        return Err(FileError::Segment(path.into()));
    }
    let tail = tail::read(&file).map_err(|error| FileError::Tail {
        path: path.into(),
        error,
    })?;
    let settled = if length == 0 {
        // Also when it was here before: whoever made it may not have come so
        // far.
        let parent = directory::parent_of(path);
        directory::sync(parent).and_then(|()| directory::sync_ancestors(parent))
    } else {
        // What a killed process wrote may not be on the disk yet. It has to be
        // before a Session follows it, or a power cut could leave that Session
        // behind a hole.
        file.sync_data()
    };
    settled.map_err(|error| io_error(path, error))?;
    Ok(Opened {
        sink: FileSink {
            storage: file,
            path: path.into(),
            length: Mutex::new(length),
        },
        tail,
    })
}

/// Why a record file was not opened.
#[derive(Debug, Error)]
pub(crate) enum FileError {
    /// The system refused something.
    #[error("audit file {}: {error}", EscapedPath(path))]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// Another process appends to it.
    #[error(
        "audit file {} is in use: another aegis writes to it\n\
         give each one a file of its own, or a directory, in which each makes one", EscapedPath(.0)
    )]
    Locked(PathBuf),
    /// A link could be made to point to any file of the user.
    #[error("audit file {} is a symbolic link\nname the file itself", EscapedPath(.0))]
    Symlink(PathBuf),
    /// A device, a pipe or a directory keeps no rows.
    #[error("audit file {} is not a regular file\nname another one", EscapedPath(.0))]
    NotRegular(PathBuf),
    /// Another Segment may follow it, or will (SPEC §7.2).
    #[error(
        "audit file {} is a segment of an audit directory, which has ended\n\
         record to the directory instead: {}",
        EscapedPath(.0), EscapedPath(directory::parent_of(.0))
    )]
    Segment(PathBuf),
    /// Nothing may be appended to what it ends with.
    #[error("{error}\n{}", next_step(path, error))]
    Tail {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: TailError,
    },
}

fn is_segment(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| is_segment_name(name.as_encoded_bytes()))
}

fn next_step(path: &Path, error: &TailError) -> String {
    let path = EscapedPath(path);
    if error.is_recoverable() {
        format!("`aegis recover {path}` moves what is damaged to a file beside it")
    } else {
        format!("keep {path} as it is and record to another file")
    }
}

fn io_error(path: &Path, error: io::Error) -> FileError {
    FileError::Io {
        path: path.into(),
        error,
    }
}

/// What to do about a file that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Create,
    Refuse,
}

/// Opens a record file for reading and appending and takes its lock.
pub(super) fn open_locked(path: &Path, missing: Missing) -> Result<LockedFile, FileError> {
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(missing == Missing::Create)
        .mode(0o600)
        // Without O_NONBLOCK a pipe or a device could hold us here.
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(code) if code == Errno::LOOP.raw_os_error() && path.is_symlink() => {
                FileError::Symlink(path.into())
            }
            Some(code) if code == Errno::ISDIR.raw_os_error() => FileError::NotRegular(path.into()),
            _ => io_error(path, error),
        })?;
    let metadata = file.metadata().map_err(|error| io_error(path, error))?;
    if !metadata.is_file() {
        return Err(FileError::NotRegular(path.into()));
    }
    match LockedFile::lock(file) {
        Ok(locked) => Ok(locked),
        Err(TryLockError::WouldBlock) => Err(FileError::Locked(path.into())),
        Err(TryLockError::Error(error)) => Err(io_error(path, error)),
    }
}

/// A file that no other process appends to until it is dropped.
pub(crate) struct LockedFile(File);

impl LockedFile {
    /// Takes the lock of `file`, without waiting for it.
    pub(super) fn lock(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        Ok(Self(file))
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing alone would not do while a process that is being started
        // still has a copy of the descriptor. A failure leaves it at that.
        drop(self.0.unlock());
    }
}

/// Appends to a file that it has locked.
pub(crate) struct FileSink<S = LockedFile> {
    storage: S,
    path: PathBuf,
    /// Of the rows that are there whole, in bytes.
    length: Mutex<u64>,
}

impl FileSink {
    /// Appends to `file`, which is empty; messages call it `path`.
    pub(super) fn of_new(file: LockedFile, path: PathBuf) -> Self {
        Self {
            storage: file,
            path,
            length: Mutex::new(0),
        }
    }
}

impl<S: Storage> Sink for FileSink<S> {
    fn retention(&self) -> Retention {
        Retention::Durable
    }

    fn append(&self, row: &[u8]) -> io::Result<()> {
        // A panic while it was locked has broken the Writer already.
        let mut length = self.length.lock().unwrap_or_else(PoisonError::into_inner);
        let error = match self.storage.append(row) {
            Ok(written) if written == row.len() => {
                *length += row.len() as u64;
                return Ok(());
            }
            Ok(written) => io::Error::new(
                io::ErrorKind::WriteZero,
                format!(
                    "only {written} of {} bytes fitted; is the disk full?",
                    row.len()
                ),
            ),
            Err(error) => error,
        };
        let undone = self.truncate_to_whole_rows(*length, row.len() as u64);
        Err(self.describe(&error, undone.is_err()))
    }

    fn flush(&self) -> io::Result<()> {
        let has_name = self
            .storage
            .sync()
            .and_then(|()| self.storage.has_name())
            .map_err(|error| self.describe(&error, false))?;
        if has_name {
            return Ok(());
        }
        // What has no name any more is gone when this process ends.
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "{} was deleted while it was written",
                EscapedPath(&self.path)
            ),
        ))
    }
}

impl<S: Storage> FileSink<S> {
    /// Takes back what a failed write of `row_bytes` left, and nothing else:
    /// a length that it cannot explain is not ours to cut.
    fn truncate_to_whole_rows(&self, length: u64, row_bytes: u64) -> io::Result<()> {
        match self.storage.length()?.checked_sub(length) {
            Some(0) => Ok(()),
            Some(more) if more <= row_bytes => self.storage.truncate(length),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn describe(&self, error: &io::Error, is_torn: bool) -> io::Error {
        let path = EscapedPath(&self.path);
        let torn = if is_torn {
            format!(" (its last row may be torn; `aegis recover {path}` takes it off)")
        } else {
            String::new()
        };
        io::Error::new(error.kind(), format!("{path}: {error}{torn}"))
    }
}

/// What a [`FileSink`] does to its file.
pub(crate) trait Storage: Send + Sync {
    /// One write at the end; says how much of it was taken.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;
    /// The length in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Cuts it to this length.
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// Makes what was appended durable.
    fn sync(&self) -> io::Result<()>;
    /// Whether it can be found under any name, be it another one than before.
    fn has_name(&self) -> io::Result<bool>;
}

impl Storage for LockedFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match (&self.0).write(bytes) {
                // Nothing was taken.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }

    fn length(&self) -> io::Result<u64> {
        length_of(self)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn has_name(&self) -> io::Result<bool> {
        Ok(self.metadata()?.nlink() > 0)
    }
}

fn length_of(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

#[cfg(test)]
mod tests;
