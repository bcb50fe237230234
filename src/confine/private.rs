//! Directories that belong to one confined server alone: for temporary files,
//! and for what it caches from one start to the next.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use tempfile::TempDir;
use thiserror::Error;

use super::machine::Machine;
use crate::grant::root;
use crate::wire::escape::{EscapedPath, without_path};

/// A directory that goes with the value, and what is in it.
#[derive(Debug)]
pub(crate) struct Directory(Option<TempDir>);

/// Why a directory cannot be a server's own.
#[derive(Debug, Error)]
pub(crate) enum PrivateError {
    /// The system says so.
    #[error(
        "the private directory `{}` cannot be made: {error}; set XDG_CACHE_HOME to a directory that can be written to",
        EscapedPath(.path)
    )]
    Io {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The directory for temporary files holds none.
    #[error(
        "no private directory can be made in `{}`: {error}; set TMPDIR to a directory that can be written to",
        EscapedPath(.parent)
    )]
    Temporary {
        /// The directory.
        parent: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Somebody else could change what is in it.
    #[error(
        "the private directory `{}` {why}; remove it, or set XDG_CACHE_HOME to a directory of your own",
        EscapedPath(.path)
    )]
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Neither variable that leads to it is set.
    #[error(
        "there is no place for a private cache; set HOME or XDG_CACHE_HOME to an absolute path"
    )]
    Nowhere,
}

/// Makes a directory, mode 0700, in that for temporary files. It goes with the
/// value, by a name without links.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn temporary() -> Result<Directory, PrivateError> {
    let parent = temporary_parent();
    let made = parent.canonicalize();
    made.and_then(|parent| directory_in(&parent))
        .map_err(|error| PrivateError::Temporary { parent, error })
}

impl Directory {
    /// Its name.
    pub(crate) fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), TempDir::path)
    }

    /// Removes it, also what the owner of something in it has locked: caches
    /// of modules are read-only, so that nobody changes them by mistake.
    /// Nobody else may be at work in it any more.
    ///
    /// # Errors
    /// When something of it is left.
    pub(crate) fn close(mut self) -> io::Result<()> {
        let Some(path) = self.0.take().map(TempDir::keep) else {
            return Ok(());
        };
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                unlock(path.clone());
                fs::remove_dir_all(&path)
            }
            done => done,
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // An empty one is removed without a descriptor, of which there may be
        // none left; all else needs some.
        if let Some(held) = self.0.take()
            && fs::remove_dir(held.path()).is_ok()
        {
            let _ = held.keep();
        }
    }
}

/// Lets the owner read and change a directory and those beneath it, as far as
/// that can be done.
fn unlock(top: PathBuf) {
    let mut locked = vec![top];
    while let Some(path) = locked.pop() {
        // Held, so that no link is followed; not opened, which may be refused.
        let Ok(held) = root::open(&path, OFlags::DIRECTORY | OFlags::NOFOLLOW) else {
            continue;
        };
        let by_number = format!("/proc/self/fd/{}", held.as_raw_fd());
        let _ = fs::set_permissions(by_number, Permissions::from_mode(0o700));
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && locked.len() < MAX_LOCKED {
                locked.push(entry.path());
            }
        }
    }
}

/// Where temporary files go: TMPDIR, unless it is empty, which names nothing.
pub(super) fn temporary_parent() -> PathBuf {
    let asked = std::env::var_os("TMPDIR").filter(|asked| !asked.is_empty());
    asked.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

/// Makes a directory, mode 0700, in `parent`. It goes with the value.
///
/// # Errors
/// When it cannot be made. The text is the system's alone.
pub(super) fn directory_in(parent: &Path) -> io::Result<Directory> {
    let made = tempfile::Builder::new()
        .prefix("aegis-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(parent);
    made.map(|made| Directory(Some(made))).map_err(without_path)
}

/// Where aegis keeps caches, if there is such a place. It need not exist.
pub(crate) fn cache_root(machine: &impl Machine) -> Option<PathBuf> {
    let absolute = |name| {
        let path = PathBuf::from(machine.variable(name)?);
        path.is_absolute().then_some(path)
    };
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join(OWN))
}

/// Makes the directory `name` for one server below `root`, unless it is there,
/// and returns its name without links.
///
/// # Errors
/// When it cannot be made, or somebody else could change what is in it.
pub(crate) fn cache(root: &Path, name: &str) -> Result<PathBuf, PrivateError> {
    let base = root.parent().unwrap_or(root);
    let io = |path: &Path, error: io::Error| PrivateError::Io {
        path: path.into(),
        error,
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(base)
        .map_err(|error| io(base, error))?;
    let mut path = base.canonicalize().map_err(|error| io(base, error))?;
    let mut directory = rustix::fs::openat(CWD, &path, DIRECTORY, Mode::empty())
        .map_err(|error| io(&path, error.into()))?;
    let own = root.file_name().unwrap_or(OWN.as_ref());
    for part in [own, CONFINED.as_ref(), name.as_ref()] {
        path.push(part);
        directory = enter(&directory, part.as_ref(), &path)?;
    }
    Ok(path)
}

/// Makes a directory in another unless it is there, and opens it when it is
/// this user's alone to change.
fn enter(parent: &OwnedFd, name: &Path, path: &Path) -> Result<OwnedFd, PrivateError> {
    let io = |error: Errno| PrivateError::Io {
        path: path.into(),
        error: error.into(),
    };
    let unsafe_since = |why| PrivateError::Unsafe {
        path: path.into(),
        why,
    };
    match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(io(error)),
    }
    let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => {}
        FileType::Symlink => return Err(unsafe_since("is a link")),
        _ => return Err(unsafe_since("is no directory")),
    }
    let directory = rustix::fs::openat(parent, name, DIRECTORY, Mode::empty()).map_err(io)?;
    let stat = rustix::fs::fstat(&directory).map_err(io)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(unsafe_since("belongs to another user"));
    }
    if stat.st_mode & OTHERS_WRITE != 0 {
        return Err(unsafe_since("may be written to by others"));
    }
    Ok(directory)
}

const DIRECTORY: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::RDONLY)
    .union(OFlags::CLOEXEC);

/// How many directories wait to be unlocked. What is beyond stays.
const MAX_LOCKED: usize = 1 << 16;

const OTHERS_WRITE: u32 = 0o022;

const OWN: &str = "aegis";

const CONFINED: &str = "confined";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn why(result: Result<PathBuf, PrivateError>) -> &'static str {
        match result {
            Err(PrivateError::Unsafe { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_cache_is_made_once_for_this_user_alone_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("far/.cache/aegis");
        let made = cache(&root, "ab").unwrap();
        assert!(made.ends_with("far/.cache/aegis/confined/ab"));
        for made in [&made, made.parent().unwrap(), &root] {
            assert_eq!(mode(made), 0o700, "{}", made.display());
        }
        fs::write(made.join("kept"), "").unwrap();
        assert_eq!(cache(&root, "ab").unwrap(), made);
        assert!(made.join("kept").exists());
    }

    #[test]
    fn a_cache_that_others_could_change_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("aegis");
        fs::create_dir(&root).unwrap();
        fs::set_permissions(&root, Permissions::from_mode(0o770)).unwrap();
        assert_eq!(why(cache(&root, "a")), "may be written to by others");

        fs::set_permissions(&root, Permissions::from_mode(0o700)).unwrap();
        fs::create_dir(root.join("confined")).unwrap();
        symlink("..", root.join("confined/a")).unwrap();
        assert_eq!(why(cache(&root, "a")), "is a link");
        fs::write(root.join("confined/b"), "").unwrap();
        assert_eq!(why(cache(&root, "b")), "is no directory");

        if rustix::process::geteuid().is_root() {
            let made = cache(&root, "c").unwrap();
            std::os::unix::fs::chown(&made, Some(65534), None).unwrap();
            assert_eq!(why(cache(&root, "c")), "belongs to another user");
        } else {
            eprintln!("skipped in part: only root can give a directory away");
        }
    }

    #[test]
    fn a_directory_for_temporary_files_is_private_and_goes() {
        let made = temporary().unwrap();
        let path = made.path().to_owned();
        assert_eq!(mode(&path), 0o700);
        assert_eq!(path.canonicalize().unwrap(), path);
        drop(made);
        assert!(!path.exists());
    }
}
