//! Directories that outlive a power cut.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use rustix::io::Errno;

/// Makes `directory` and its parents as far as they are missing, mode 0700,
/// and makes each one durable in its parent.
pub(super) fn make(directory: &Path) -> io::Result<()> {
    let parent = parent_of(directory);
    let mut made = make_one(directory);
    if let Err(error) = &made
        && error.kind() == io::ErrorKind::NotFound
        && parent != directory
    {
        make(parent)?;
        // Where nothing can be made it is still not found.
        made = make_one(directory);
    }
    match made {
        Err(_) if directory.is_dir() => Ok(()),
        // Something else has the name, which "exists" would not tell.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Errno::NOTDIR.into()),
        made => {
            made?;
            sync(parent)
        }
    }
}

fn make_one(directory: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(directory)
}

/// Makes the names in `directory` durable.
pub(super) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Makes every directory on the way to `directory` durable in its parent, as
/// far as this user can: what cannot be opened was not made by us.
pub(super) fn sync_ancestors(directory: &Path) -> io::Result<()> {
    for ancestor in directory.canonicalize()?.ancestors().skip(1) {
        match sync(ancestor) {
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                return Err(error);
            }
            // Some file systems, which are read only, refuse it as well.
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// The directory that `path` is a name in.
pub(super) fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}
