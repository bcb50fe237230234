//! An audit directory: who may use it, its lock, its entries.
//!
//! Everything goes through one descriptor, so a directory that is moved or
//! replaced under its name meanwhile is not mixed with another.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::SegmentError;
use crate::chain::directory;
use crate::chain::file::LockedFile;
use crate::chain::name::is_segment_name;

/// An audit directory that only its user can change.
pub(super) struct AuditDir {
    path: PathBuf,
    file: File,
}

impl AuditDir {
    /// Opens the directory at `path`, made as far as it is missing. A link to
    /// a directory is followed: whoever names it says where to record.
    pub(super) fn open(path: &Path) -> Result<Self, SegmentError> {
        let failed = |error| SegmentError::Io {
            path: path.into(),
            error,
        };
        if let Err(error) = directory::make(path) {
            return Err(match error.kind() {
                io::ErrorKind::NotADirectory => SegmentError::NotADirectory(path.into()),
                _ => failed(error),
            });
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, path, flags, Mode::empty());
        let dir = Self {
            path: path.into(),
            file: opened.map_err(|errno| failed(errno.into()))?.into(),
        };
        dir.check()?;
        Ok(dir)
    }

    /// Others may read the names of Segments, but not what is in them: each is
    /// made with mode 0600.
    fn check(&self) -> Result<(), SegmentError> {
        let metadata = self.file.metadata().map_err(|error| self.failed(error))?;
        let (uid, mode) = (metadata.uid(), metadata.mode() & 0o7777);
        if uid != 0 && uid != rustix::process::geteuid().as_raw() {
            return Err(SegmentError::Owner {
                path: self.path.clone(),
                uid,
            });
        }
        if mode & 0o022 != 0 {
            return Err(SegmentError::Shared {
                path: self.path.clone(),
                mode,
            });
        }
        Ok(())
    }

    /// Takes the directory's lock, for which it waits at most `wait`.
    pub(super) fn lock(&self, wait: Duration) -> Result<Locked<'_>, SegmentError> {
        let deadline = Instant::now() + wait;
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(Locked(self)),
                Err(TryLockError::Error(error)) => {
                    let path = self.path.clone();
                    return Err(SegmentError::NoLock { path, error });
                }
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(SegmentError::Busy(self.path.clone()));
                }
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_POLL),
            }
        }
    }

    /// Removes an entry, if it can be removed.
    pub(super) fn remove(&self, name: &str) {
        // What stays is found by the next start.
        let _ = rustix::fs::unlinkat(&self.file, name, AtFlags::empty());
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn failed(&self, error: io::Error) -> SegmentError {
        SegmentError::Io {
            path: self.path.clone(),
            error,
        }
    }
}

/// An audit directory whose lock is held.
pub(super) struct Locked<'a>(&'a AuditDir);

/// What is in an audit directory, sorted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Entries {
    /// Regular files that are named as Segments are (SPEC [SEG-1]).
    pub(super) segments: Vec<String>,
    /// What starts that are under way, or were killed, call their files.
    pub(super) temporaries: Vec<String>,
}

impl Locked<'_> {
    pub(super) fn entries(&self) -> io::Result<Entries> {
        let mut entries = Entries::default();
        for entry in Dir::read_from(&self.0.file)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            let is_segment = is_segment_name(name.as_bytes());
            if !is_segment && !name.starts_with(TEMPORARY_PREFIX) {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => self.kind_of(name)?,
                kind => kind,
            };
            if kind != FileType::RegularFile {
                continue;
            }
            let (list, max) = if is_segment {
                (&mut entries.segments, MAX_SEGMENTS)
            } else {
                (&mut entries.temporaries, MAX_STALE)
            };
            if list.len() < max {
                list.push(name.to_owned());
            }
        }
        entries.segments.sort_unstable();
        entries.temporaries.sort_unstable();
        Ok(entries)
    }

    fn kind_of(&self, name: &str) -> io::Result<FileType> {
        match rustix::fs::statat(&self.0.file, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode)),
            Err(Errno::NOENT) => Ok(FileType::Unknown),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.0.file, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Makes a file of that name, and takes its lock: so that whoever finds
    /// one with a free lock knows that its maker is gone.
    pub(super) fn create(&self, name: &str) -> io::Result<LockedFile> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        Ok(LockedFile::lock(self.openat(name, flags)?)?)
    }

    /// Opens a regular file for reading.
    pub(super) fn open_regular(&self, name: &str) -> io::Result<File> {
        // Without O_NONBLOCK a pipe could hold us here.
        regular(self.openat(name, OFlags::RDONLY | OFlags::NONBLOCK)?)
    }

    /// Opens a regular file for reading and writing, made if it is missing.
    pub(super) fn open_own(&self, name: &str) -> io::Result<File> {
        regular(self.openat(name, OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK)?)
    }

    fn openat(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0.file, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(file.into())
    }

    /// Removes those of `temporaries` whose makers are gone.
    pub(super) fn remove_stale(&self, temporaries: &[String]) {
        for name in temporaries {
            if let Ok(file) = self.open_regular(name)
                && LockedFile::lock(file).is_ok()
            {
                self.0.remove(name);
            }
        }
    }

    /// Renames a file, unless something has the new name.
    pub(super) fn rename_in(&self, from: &str, to: &str) -> io::Result<()> {
        let dir = &self.0.file;
        match rustix::fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.link_in(from, to),
            renamed => Ok(renamed?),
        }
    }

    /// The same where the file system cannot do it in one step. Whoever finds
    /// both names removes the old one.
    pub(super) fn link_in(&self, from: &str, to: &str) -> io::Result<()> {
        let dir = &self.0.file;
        rustix::fs::linkat(dir, from, dir, to, AtFlags::empty())?;
        self.0.remove(from);
        Ok(())
    }

    /// Makes the names in it durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.file.sync_all()
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // It fails for no descriptor that was locked; closing it unlocks too.
        let _ = self.0.file.unlock();
    }
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

/// What the name of a Segment begins with that has no `open` Line yet.
pub(super) const TEMPORARY_PREFIX: &str = ".aegis-new-";

/// How long a start waits for others to start.
pub(super) const LOCK_WAIT: Duration = Duration::from_secs(10);

const LOCK_POLL: Duration = Duration::from_millis(2);

/// How many Segments are looked at; further ones are never followed.
const MAX_SEGMENTS: usize = 1 << 20;

/// How many temporary files one start looks at.
pub(super) const MAX_STALE: usize = 64;
