//! One look at a file that may be replaced meanwhile.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::watch::{Sight, Stamp};
use crate::wire::digest::Digest;

/// What was read.
pub(super) struct Read {
    pub(super) stamp: Option<Stamp>,
    pub(super) sight: Sight,
    /// All of the document, when the sight is of a whole one.
    pub(super) document: Vec<u8>,
}

/// What the file at `path` looks like from outside, if it can be seen. Links
/// are followed, now and at every look.
pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().map(|file| Stamp::of(&file))
}

/// Reads the document at `path` through one open descriptor.
pub(super) fn read(path: &Path) -> Read {
    match try_read(path) {
        Ok(read) => read,
        Err((stamp, error)) => Read {
            stamp,
            sight: Sight::Failed(error.to_string()),
            document: Vec::new(),
        },
    }
}

fn try_read(path: &Path) -> Result<Read, (Option<Stamp>, io::Error)> {
    let found = fs::metadata(path).map_err(|error| (None, error))?;
    let failed = |error| (Some(Stamp::of(&found)), error);
    // Opening a pipe or a device may wait, or do something.
    regular(&found).map_err(failed)?;
    let (mut file, before) = open(path).map_err(failed)?;
    let failed = |error| (Some(Stamp::of(&before)), error);
    regular(&before).map_err(failed)?;
    let mut document = Vec::new();
    let read = (&mut file).take(MAX_BYTES + 1).read_to_end(&mut document);
    let bytes = read.map_err(failed)? as u64;
    if bytes > MAX_BYTES {
        let error = format!("it is longer than {MAX_BYTES} bytes, which no policy is");
        return Err(failed(io::Error::other(error)));
    }
    if bytes == 0 {
        // What an editor leaves that has not written yet.
        return Err(failed(io::Error::other("it is empty")));
    }
    let stamp = Stamp::of(&before);
    let after = file.metadata().map_err(failed)?;
    let is_whole = Stamp::of(&after) == stamp && bytes >= stamp.bytes;
    Ok(Read {
        stamp: Some(stamp),
        sight: if is_whole {
            Sight::Whole(Digest::of(&document))
        } else {
            Sight::Moving
        },
        document,
    })
}

fn open(path: &Path) -> io::Result<(File, Metadata)> {
    // A pipe may have been put there meanwhile, which must not be waited for.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

fn regular(file: &Metadata) -> io::Result<()> {
    if file.is_file() {
        Ok(())
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

impl Stamp {
    fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

/// Bytes of the longest document that is read, as at the start.
const MAX_BYTES: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;
    use crate::policy::parse;

    fn failure(path: &Path) -> String {
        match read(path).sight {
            Sight::Failed(why) => why,
            sight => panic!("{sight:?}"),
        }
    }

    #[test]
    fn a_document_is_read_whole_and_its_file_looks_as_it_did() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy");
        fs::write(&path, "rules: []").unwrap();
        let first = read(&path);
        assert_eq!(first.sight, Sight::Whole(Digest::of(b"rules: []")));
        assert_eq!(first.document, b"rules: []");
        assert!(first.stamp.is_some());
        assert_eq!(first.stamp, stamp(&path));
        // The same bytes in another file.
        let beside = dir.path().join("beside");
        fs::write(&beside, "rules: []").unwrap();
        fs::rename(&beside, &path).unwrap();
        assert_ne!(first.stamp, stamp(&path));
        assert_eq!(first.sight, read(&path).sight);
    }

    #[test]
    fn links_are_followed_at_every_look() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy");
        for name in ["first", "second"] {
            let real = dir.path().join(name);
            fs::write(&real, name).unwrap();
            let _ = fs::remove_file(&path);
            symlink(&real, &path).unwrap();
            assert_eq!(read(&path).document, name.as_bytes());
            assert_eq!(stamp(&path), stamp(&real));
        }
    }

    /// SPEC [RELOAD-2].
    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy");
        assert!(failure(&path).contains("No such file"));
        assert_eq!(stamp(&path), None);
        fs::write(dir.path().join("empty"), "").unwrap();
        assert_eq!(failure(&dir.path().join("empty")), "it is empty");
        assert_eq!(failure(dir.path()), "it is not a regular file");
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(failure(&path), "it is not a regular file");
        // As if it had been put there between the two: opening does not wait.
        let (_file, metadata) = open(&path).unwrap();
        assert!(regular(&metadata).is_err());
    }

    #[test]
    fn a_document_may_be_so_long_and_no_longer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy");
        let file = File::create(&path).unwrap();
        file.set_len(MAX_BYTES).unwrap();
        assert!(matches!(read(&path).sight, Sight::Whole(_)));
        assert!(parse::read(&path).is_ok());
        file.set_len(MAX_BYTES + 1).unwrap();
        assert!(parse::read(&path).is_err());
        assert!(failure(&path).starts_with("it is longer than 16777216 bytes"));
    }
}
