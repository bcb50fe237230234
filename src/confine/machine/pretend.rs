//! A machine in memory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::Machine;
use crate::grant::root::{FileId, Kind};

/// A machine that holds nothing but what a test puts there.
pub(crate) struct Pretend {
    entries: BTreeMap<PathBuf, Entry>,
    variables: BTreeMap<String, OsString>,
    directory: PathBuf,
    mounts: Vec<PathBuf>,
    ids: BTreeMap<PathBuf, FileId>,
}

enum Entry {
    Directory,
    File { bytes: Vec<u8>, executable: bool },
    Link(PathBuf),
}

impl Pretend {
    /// With `/`, and `/proj` to work in.
    pub(crate) fn new() -> Self {
        let mut machine = Self {
            entries: BTreeMap::new(),
            variables: BTreeMap::new(),
            directory: "/proj".into(),
            mounts: vec!["/".into()],
            ids: BTreeMap::new(),
        };
        machine.dir("/proj");
        machine
    }

    /// A directory, with its parents.
    pub(crate) fn dir(&mut self, path: &str) -> &mut Self {
        for path in Path::new(path).ancestors() {
            self.entries.entry(path.into()).or_insert(Entry::Directory);
        }
        self
    }

    /// A file that is no program.
    pub(crate) fn file(&mut self, path: &str, bytes: &[u8]) -> &mut Self {
        self.put(path, bytes, false)
    }

    /// A file that may be executed.
    pub(crate) fn program(&mut self, path: &str, bytes: &[u8]) -> &mut Self {
        self.put(path, bytes, true)
    }

    /// A symbolic link.
    pub(crate) fn link(&mut self, path: &str, target: &str) -> &mut Self {
        self.dir(Path::new(path).parent().unwrap().to_str().unwrap());
        self.entries.insert(path.into(), Entry::Link(target.into()));
        self
    }

    /// An environment variable.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    /// Mounts the directory `of` at `at` as well.
    pub(crate) fn bind(&mut self, of: &str, at: &str) -> &mut Self {
        self.dir(at);
        let id = self.identify(Path::new(of)).unwrap().0;
        self.ids.insert(at.into(), id);
        self.mounts.push(at.into());
        self
    }

    fn put(&mut self, path: &str, bytes: &[u8], executable: bool) -> &mut Self {
        self.dir(Path::new(path).parent().unwrap().to_str().unwrap());
        let bytes = bytes.to_vec();
        self.entries
            .insert(path.into(), Entry::File { bytes, executable });
        self
    }

    fn at(&self, path: &Path) -> io::Result<&Entry> {
        let path = self.canonical(path)?;
        self.entries
            .get(&path)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Machine for Pretend {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        let mut todo: Vec<PathBuf> = pieces(&self.directory.join(path));
        let mut done = PathBuf::from("/");
        let mut links = 0;
        while let Some(piece) = todo.pop() {
            if piece == Path::new("..") {
                done.pop();
                continue;
            }
            let next = done.join(&piece);
            match self.entries.get(&next) {
                None => return Err(io::ErrorKind::NotFound.into()),
                Some(Entry::Link(_)) if links == 40 => {
                    return Err(rustix::io::Errno::LOOP.into());
                }
                Some(Entry::Link(target)) => {
                    links += 1;
                    if target.is_absolute() {
                        done = "/".into();
                    }
                    todo.extend(pieces(target));
                }
                Some(_) => done = next,
            }
        }
        Ok(done)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        match self.entries.get(path) {
            Some(Entry::Link(target)) => Ok(target.clone()),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn identify(&self, path: &Path) -> io::Result<(FileId, Kind)> {
        let path = self.canonical(path)?;
        let kind = match self.at(&path)? {
            Entry::Directory => Kind::Directory,
            _ => Kind::File,
        };
        let ino = self.entries.keys().position(|key| *key == path);
        let id = self.ids.get(&path).copied().unwrap_or(FileId {
            dev: 1,
            ino: ino.unwrap() as u64,
        });
        Ok((id, kind))
    }

    fn check_executable(&self, path: &Path) -> io::Result<()> {
        match self.at(path)? {
            Entry::File {
                executable: true, ..
            } => Ok(()),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    fn read(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        match self.at(path)? {
            Entry::File { bytes, .. } => {
                let from = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                let to = from.saturating_add(len).min(bytes.len());
                Ok(bytes[from..to].to_vec())
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(name).cloned()
    }

    fn directory(&self) -> &Path {
        &self.directory
    }

    fn mounts(&self) -> &[PathBuf] {
        &self.mounts
    }
}

/// The names of a path, last first.
fn pieces(path: &Path) -> Vec<PathBuf> {
    path.components()
        .rev()
        .filter(|c| matches!(c, Component::Normal(_) | Component::ParentDir))
        .map(|c| c.as_os_str().into())
        .collect()
}
