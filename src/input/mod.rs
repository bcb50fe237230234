//! The inputs of verify, recheck and recover: paths, directories, pipes and
//! standard input as a list of named, bounded readers.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One argument of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// `-`.
    Stdin,
    /// Anything else.
    Path(PathBuf),
}

impl Source {
    pub(crate) fn of(argument: OsString) -> Self {
        if argument == "-" {
            Self::Stdin
        } else {
            Self::Path(argument.into())
        }
    }

    /// How the source was named.
    pub(crate) fn name(&self) -> &Path {
        match self {
            Self::Stdin => Path::new("-"),
            Self::Path(path) => path,
        }
    }

    /// What stands behind the name.
    ///
    /// # Errors
    /// When there is nothing of that name, or a directory cannot be read.
    pub(crate) fn resolve(self) -> io::Result<Input> {
        match self {
            Self::Path(path) if fs::metadata(&path)?.is_dir() => {
                Directory::read(path).map(Input::Directory)
            }
            single => Ok(Input::Single(single)),
        }
    }

    /// Opens the source for one reading.
    ///
    /// A regular file is read up to the length that it has now, so that a
    /// live file has a verdict too; anything else is read to its end.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(crate) fn open(&self) -> io::Result<Opened> {
        let shortened = Arc::new(AtomicBool::new(false));
        let (reader, length): (Box<dyn Read + Send>, _) = match self {
            Self::Stdin => (Box::new(io::stdin()), None),
            Self::Path(path) => {
                let file = File::open(path)?;
                let metadata = file.metadata()?;
                if metadata.is_dir() {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                // Some files of the system say that they are empty and are not.
                if metadata.is_file() && metadata.len() > 0 {
                    let bounded = Bounded {
                        file,
                        left: metadata.len(),
                        shortened: Arc::clone(&shortened),
                    };
                    (Box::new(bounded), Some(metadata.len()))
                } else {
                    (Box::new(file), None)
                }
            }
        };
        Ok(Opened {
            reader,
            length,
            shortened,
        })
    }
}

/// What an argument of the command line stands for.
#[derive(Debug)]
pub(crate) enum Input {
    /// One record.
    Single(Source),
    /// An audit directory.
    Directory(Directory),
}

/// The records of an audit directory.
#[derive(Debug)]
pub(crate) struct Directory {
    /// The directory.
    pub(crate) path: PathBuf,
    /// Its Segments: bare names of regular files that end in `.aarl`, sorted
    /// by their bytes.
    pub(crate) segments: Vec<OsString>,
    /// How many other entries there are, but for aegis's own.
    pub(crate) others: usize,
}

impl Directory {
    fn read(path: PathBuf) -> io::Result<Self> {
        let mut segments = Vec::new();
        let mut others = 0;
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            // The type is the entry's own: links are not followed.
            if entry.file_type()?.is_file() && is_record(&entry.file_name()) {
                segments.push(entry.file_name());
            } else if !is_own(&entry.file_name()) {
                others += 1;
            }
        }
        segments.sort_unstable();
        Ok(Self {
            path,
            segments,
            others,
        })
    }
}

/// A source opened for reading.
pub(crate) struct Opened {
    pub(crate) reader: Box<dyn Read + Send>,
    /// How many bytes will be read at most, when that is known.
    pub(crate) length: Option<u64>,
    /// Set once the file turned out to be shorter than it was when opened.
    pub(crate) shortened: Arc<AtomicBool>,
}

/// A regular file up to the length that it had when it was opened.
struct Bounded {
    file: File,
    left: u64,
    shortened: Arc<AtomicBool>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.file.read(&mut buffer[..wanted])?;
        self.left -= read as u64;
        if read == 0 && wanted > 0 {
            self.shortened.store(true, Ordering::Relaxed);
        }
        Ok(read)
    }
}

/// The bytes of a name that every record of a directory ends with.
fn is_record(name: &OsString) -> bool {
    name.as_encoded_bytes().ends_with(b".aarl")
}

fn is_own(name: &OsString) -> bool {
    name.as_encoded_bytes().starts_with(OWN_PREFIX.as_bytes())
}

/// What the names begin with of what aegis keeps beside the records of an
/// audit directory.
pub(crate) const OWN_PREFIX: &str = ".aegis-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growing_file_is_read_up_to_its_length_at_opening() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("a.aarl");
        fs::write(&path, "abc").expect("write");
        let mut opened = Source::Path(path.clone()).open().expect("open");
        fs::write(&path, "abcdef").expect("write");
        let mut read = String::new();
        opened.reader.read_to_string(&mut read).expect("read");
        assert_eq!(read, "abc");
        assert!(!opened.shortened.load(Ordering::Relaxed));
    }

    #[test]
    fn a_shrinking_file_is_told() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("a.aarl");
        fs::write(&path, "abc").expect("write");
        let mut opened = Source::Path(path.clone()).open().expect("open");
        fs::write(&path, "a").expect("write");
        let mut read = String::new();
        opened.reader.read_to_string(&mut read).expect("read");
        assert_eq!(read, "a");
        assert!(opened.shortened.load(Ordering::Relaxed));
    }

    #[test]
    #[cfg(unix)]
    fn a_directory_is_its_regular_records() {
        let dir = tempfile::tempdir().expect("temporary directory");
        for name in ["b.aarl", "a.aarl", ".aarl", "c.txt"] {
            fs::write(dir.path().join(name), "").expect("write");
        }
        fs::create_dir(dir.path().join("d.aarl")).expect("create");
        std::os::unix::fs::symlink("a.aarl", dir.path().join("l.aarl")).expect("link");
        let Ok(Input::Directory(read)) = Source::Path(dir.path().into()).resolve() else {
            panic!("a directory");
        };
        assert_eq!(read.segments, [".aarl", "a.aarl", "b.aarl"]);
        assert_eq!(read.others, 3);
    }
}
