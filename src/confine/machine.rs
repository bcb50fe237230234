//! What has to be known of a machine to say what a command needs on it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, OFlags};
use thiserror::Error;

use crate::grant::root::{self, FileId, Kind};

/// A machine. Tests have small ones of their own.
pub(crate) trait Machine {
    /// The name of what `path` leads to, without links and dots.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
    /// Where the symbolic link at `path` points; an error when it is none.
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;
    /// What `path` leads to.
    fn identify(&self, path: &Path) -> io::Result<(FileId, Kind)>;
    /// Whether this user may execute what `path` leads to.
    fn check_executable(&self, path: &Path) -> io::Result<()>;
    /// At most `len` bytes of a regular file, from `offset` on. Fewer only at
    /// its end.
    fn read(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>>;
    /// An environment variable.
    fn variable(&self, name: &str) -> Option<OsString>;
    /// The working directory.
    fn directory(&self) -> &Path;
    /// Where file systems are mounted.
    fn mounts(&self) -> &[PathBuf];
}

/// Why a machine cannot be looked at.
#[derive(Debug, Error)]
pub(crate) enum MachineError {
    /// Paths begin nowhere.
    #[error("the working directory cannot be found: {0}; start aegis in another")]
    Directory(io::Error),
    /// What is mounted where is not known.
    #[error(
        "/proc/self/mountinfo cannot be read: {0}; mount /proc, and start aegis where it may read that, so not confined itself"
    )]
    Mounts(io::Error),
    /// The process ids in it are not those that the system calls take.
    #[error(
        "/proc is of another process namespace, where this process has another id; mount the own one there (unshare --mount-proc)"
    )]
    OtherProcesses,
}

/// The one that this process runs on.
#[derive(Debug)]
pub(crate) struct ThisMachine {
    directory: PathBuf,
    mounts: Vec<PathBuf>,
}

impl ThisMachine {
    /// Looks at it.
    ///
    /// # Errors
    /// When the working directory is gone, the mounts cannot be read, or
    /// `/proc` is about other processes.
    pub(crate) fn look() -> Result<Self, MachineError> {
        let table = std::fs::read("/proc/self/mountinfo").map_err(MachineError::Mounts)?;
        let own = std::process::id().to_string();
        if !std::fs::read_link("/proc/self").is_ok_and(|link| link == Path::new(&own)) {
            return Err(MachineError::OtherProcesses);
        }
        Ok(Self {
            directory: std::env::current_dir().map_err(MachineError::Directory)?,
            mounts: mount_points(&table),
        })
    }

    /// Looks at as much of it as a confined process may see.
    ///
    /// # Errors
    /// When the working directory is gone.
    pub(super) fn without_mounts() -> io::Result<Self> {
        Ok(Self {
            directory: std::env::current_dir()?,
            mounts: Vec::new(),
        })
    }
}

impl Machine for ThisMachine {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.directory.join(path).canonicalize()
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.directory.join(path).read_link()
    }

    fn identify(&self, path: &Path) -> io::Result<(FileId, Kind)> {
        let descriptor = root::open(&self.directory.join(path), OFlags::empty())?;
        root::identify(&descriptor)
    }

    fn check_executable(&self, path: &Path) -> io::Result<()> {
        let path = self.directory.join(path);
        if !path.metadata()?.is_file() {
            // The system itself would say that permission is denied.
            let text = "it is not a regular file";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        rustix::fs::accessat(CWD, &path, Access::EXEC_OK, AtFlags::EACCESS)?;
        Ok(())
    }

    fn read(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let path = self.directory.join(path);
        // Opening a FIFO would wait for a writer.
        if !path.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = File::open(path)?;
        let mut bytes = vec![0; len];
        let mut filled = 0;
        while filled < len {
            match file.read_at(&mut bytes[filled..], offset.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    fn directory(&self) -> &Path {
        &self.directory
    }

    fn mounts(&self) -> &[PathBuf] {
        &self.mounts
    }
}

/// The fifth field of each row (proc_pid_mountinfo(5)).
fn mount_points(table: &[u8]) -> Vec<PathBuf> {
    table
        .split(|&byte| byte == b'\n')
        .filter_map(|row| row.split(|&byte| byte == b' ').nth(4))
        .map(unescaped)
        .collect()
}

/// Blanks and backslashes are written as three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let escape = match tail {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] if first == b'\\' => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        out.push(escape.unwrap_or(first));
        rest = if escape.is_some() { &tail[3..] } else { tail };
    }
    OsString::from_vec(out).into()
}

#[cfg(test)]
pub(crate) mod pretend;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_with_their_escapes() {
        let table =
            b"22 1 8:1 / / rw - ext4 /dev/a rw\n23 22 0:5 /x /mnt/a\\040b\\134c rw - x y z\n";
        assert_eq!(
            mount_points(table),
            [PathBuf::from("/"), PathBuf::from("/mnt/a b\\c")]
        );
    }

    #[test]
    fn a_file_is_read_from_where_it_is_asked_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "0123456789").unwrap();
        let here = ThisMachine::look().unwrap();
        assert_eq!(here.read(&file, 2, 3).unwrap(), b"234");
        assert_eq!(here.read(&file, 8, 30).unwrap(), b"89");
        assert_eq!(here.read(&file, u64::MAX, 3).ok(), None);
        assert!(here.read(dir.path(), 0, 1).is_err());
        assert!(here.check_executable(&file).is_err());
        assert!(here.check_executable(dir.path()).is_err());
        assert!(here.mounts().contains(&PathBuf::from("/")));
    }
}
