//! A path that is granted: the object it led to, held open.
//!
//! Links and `..` are followed by the kernel, in the order in which it meets
//! them. Collapsing `..` in the text first would grant another directory
//! wherever the component before it is a link.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};
use thiserror::Error;

use super::manifest::PathNeed;

/// A resolved path, and the object that it led to.
#[derive(Debug)]
pub(crate) struct Root {
    path: String,
    descriptor: OwnedFd,
    id: FileId,
    kind: Kind,
    recursive: bool,
}

/// What tells one object of a machine from every other.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub(crate) struct FileId {
    /// The device.
    pub(crate) dev: u64,
    /// The inode on it.
    pub(crate) ino: u64,
}

/// What sort of object it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A directory.
    Directory,
    /// Anything else.
    File,
}

/// Why a path is no root. The texts follow the path in a message.
#[derive(Debug, Error)]
pub(crate) enum RootError {
    /// The system says so.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A record is text, and could name another path only.
    #[error("a path that is not UTF-8 cannot be recorded; rename it")]
    NotText,
    /// It was moved, replaced or deleted meanwhile.
    #[error("it changed while it was resolved; try again")]
    Changed,
}

impl Root {
    /// Follows the path of `need`, from `base` when it is relative, and holds
    /// what is there.
    ///
    /// # Errors
    /// When nothing is there, this user may not read it, or its name is not
    /// text.
    pub(crate) fn resolve(base: &Path, need: &PathNeed) -> Result<Self, RootError> {
        let asked = base.join(&need.path);
        let descriptor = open(&asked, OFlags::empty())?;
        let (id, kind) = identify(&descriptor)?;
        let path = name_of(&asked, id)?;
        // The descriptor proves no permission: it was opened for its place
        // alone. A root that the user cannot read is a typing error.
        rustix::fs::accessat(CWD, &path, Access::READ_OK, AtFlags::EACCESS)
            .map_err(io::Error::from)?;
        Ok(Self {
            path,
            descriptor,
            id,
            kind,
            recursive: need.recursive,
        })
    }

    /// The name without links and dots.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Which object it is.
    pub(crate) fn id(&self) -> FileId {
        self.id
    }

    /// What sort of object it is.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether what lies beneath belongs to it.
    pub(crate) fn is_recursive(&self) -> bool {
        self.recursive
    }

    /// Whether `path` is this root or, when that belongs to it, beneath.
    pub(crate) fn covers(&self, path: &str) -> bool {
        path == self.path || self.recursive && Path::new(path).starts_with(&self.path)
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Opens `path` for its place in the file system alone, as needs no permission
/// on the object itself.
pub(crate) fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(
        path,
        OFlags::PATH | OFlags::CLOEXEC | flags,
        Mode::empty(),
    )?)
}

/// Which object an open descriptor is, and of what sort.
pub(crate) fn identify(descriptor: &OwnedFd) -> io::Result<(FileId, Kind)> {
    let stat = rustix::fs::fstat(descriptor)?;
    let kind = match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
        rustix::fs::FileType::Directory => Kind::Directory,
        _ => Kind::File,
    };
    let id = FileId {
        dev: stat.st_dev,
        ino: stat.st_ino,
    };
    Ok((id, kind))
}

/// The name of the object that `asked` led to.
fn name_of(asked: &Path, id: FileId) -> Result<String, RootError> {
    let path: PathBuf = asked.canonicalize()?;
    // Resolved twice, so it may have led elsewhere this time.
    let found = open(&path, OFlags::NOFOLLOW).map_err(|_| RootError::Changed)?;
    if identify(&found)?.0 != id {
        return Err(RootError::Changed);
    }
    path.into_os_string()
        .into_string()
        .map_err(|_| RootError::NotText)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn resolve(base: &Path, path: &str) -> Result<Root, RootError> {
        Root::resolve(base, &PathNeed::recursive(path))
    }

    fn io_kind(result: Result<Root, RootError>) -> io::ErrorKind {
        match result {
            Err(RootError::Io(error)) => error.kind(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn dots_after_a_link_are_followed_as_the_kernel_does() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("far/deep")).unwrap();
        fs::create_dir(base.join("far/x")).unwrap();
        fs::create_dir(base.join("x")).unwrap();
        symlink("far/deep", base.join("link")).unwrap();
        let root = resolve(&base, "link/../x").unwrap();
        assert_eq!(Path::new(root.path()), base.join("far/x"));
        let meta = fs::metadata(base.join("far/x")).unwrap();
        assert_eq!((root.id().dev, root.id().ino), (meta.dev(), meta.ino()));
        assert_eq!(root.kind(), Kind::Directory);
    }

    #[test]
    fn the_object_is_held_though_its_name_moves_on() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        let root = resolve(dir.path(), "a/").unwrap();
        fs::rename(dir.path().join("a"), dir.path().join("b")).unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        let held = rustix::fs::fstat(&root).unwrap();
        assert_eq!(held.st_ino, root.id().ino);
        assert_ne!(
            fs::metadata(dir.path().join("a")).unwrap().ino(),
            root.id().ino
        );
    }

    #[test]
    fn what_is_not_there_or_leads_nowhere_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(
            io_kind(resolve(dir.path(), "none")),
            io::ErrorKind::NotFound
        );
        assert_eq!(
            io_kind(resolve(dir.path(), "a\0b")),
            io::ErrorKind::InvalidInput
        );
        symlink("loop", dir.path().join("loop")).unwrap();
        match resolve(dir.path(), "loop") {
            Err(RootError::Io(error)) => {
                assert_eq!(
                    error.raw_os_error(),
                    Some(rustix::io::Errno::LOOP.raw_os_error())
                );
            }
            other => panic!("{other:?}"),
        }
        symlink("none", dir.path().join("dangling")).unwrap();
        assert_eq!(
            io_kind(resolve(dir.path(), "dangling")),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn a_name_that_is_not_text_is_refused_whatever_it_was_called() {
        let dir = tempfile::tempdir().unwrap();
        let odd = OsStr::from_bytes(b"caf\xe9");
        fs::create_dir(dir.path().join(odd)).unwrap();
        symlink(odd, dir.path().join("plain")).unwrap();
        for path in [odd, OsStr::new("plain")] {
            let error = Root::resolve(dir.path(), &PathNeed::recursive(path)).unwrap_err();
            assert!(matches!(error, RootError::NotText), "{error}");
        }
    }

    #[test]
    fn what_this_user_cannot_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
        if fs::File::open(&file).is_ok() {
            eprintln!("skipped: this user may read everything");
            return;
        }
        assert_eq!(
            io_kind(resolve(dir.path(), "f")),
            io::ErrorKind::PermissionDenied
        );
    }

    #[test]
    fn beneath_is_meant_by_component_and_only_when_recursive() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        let mut root = resolve(dir.path(), "a").unwrap();
        let own = root.path().to_owned();
        assert!(root.covers(&own));
        assert!(root.covers(&format!("{own}/b/c")));
        assert!(!root.covers(&format!("{own}b")));
        root.recursive = false;
        assert!(root.covers(&own));
        assert!(!root.covers(&format!("{own}/b")));
    }
}
