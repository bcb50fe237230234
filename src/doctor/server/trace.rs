//! What a server touched, as `strace` tells it.
//!
//! Each process has a file of its own (`-ff`), and descriptors carry the path
//! that they lead to (`-y`).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// What was touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) paths: BTreeMap<PathBuf, Touch>,
    /// Where connections were tried to, besides name servers.
    pub(super) ports: BTreeSet<u16>,
    /// Unix sockets that were connected to.
    pub(super) unix: BTreeSet<String>,
    /// Whether there was more than the bounds let in.
    pub(super) is_cut: bool,
}

/// What was done with a path, and what was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) done: Acts,
    pub(super) refused: Acts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Acts {
    pub(super) look: bool,
    pub(super) read: bool,
    pub(super) write: bool,
    pub(super) execute: bool,
}

/// Which of the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// All.
    Everybody,
    /// What the helper of `aegis wrap --confine` became, and its descendants.
    Confined,
}

/// One row.
#[derive(Debug, PartialEq, Eq)]
enum Row {
    Path {
        path: PathBuf,
        act: Act,
        end: End,
    },
    /// A process or thread was started.
    Started(u32),
    Port(u16),
    Unix(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Look,
    Read,
    Write,
    Execute,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    /// By whoever may refuse it.
    Refused,
    Failed,
}

impl Seen {
    /// From the files `PREFIX.PID` in `directory`.
    pub(super) fn read(directory: &Path, whose: Whose) -> Self {
        let mut seen = Self::default();
        let mut files: BTreeMap<u32, PathBuf> = BTreeMap::new();
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let pid = path.extension().and_then(|pid| pid.to_str()?.parse().ok());
            if let (Some(pid), true) = (pid, files.len() < MAX_FILES) {
                files.insert(pid, path);
            } else {
                seen.is_cut = true;
            }
        }
        let mut left = MAX_BYTES;
        match whose {
            Whose::Everybody => {
                for path in files.values() {
                    seen.take(rows(path, &mut left));
                }
            }
            Whose::Confined => {
                let helper = files
                    .values()
                    .find_map(|path| confined(rows(path, &mut left)));
                let mut todo = seen.take(helper.unwrap_or_default());
                while let Some(pid) = todo.pop() {
                    if let Some(path) = files.remove(&pid) {
                        todo.extend(seen.take(rows(&path, &mut left)));
                    }
                }
            }
        }
        seen.is_cut |= left == 0;
        seen
    }

    /// Takes rows, and returns which processes they start.
    fn take(&mut self, rows: Vec<String>) -> Vec<u32> {
        let mut started = Vec::new();
        for row in rows.iter().filter_map(|row| Row::read(row)) {
            match row {
                Row::Started(pid) => started.push(pid),
                Row::Port(port) => _ = self.ports.insert(port),
                Row::Unix(path) => _ = self.unix.insert(path),
                Row::Path { path, act, end } => self.touch(path, act, end),
            }
        }
        started
    }

    fn touch(&mut self, path: PathBuf, act: Act, end: End) {
        if self.paths.len() == MAX_PATHS && !self.paths.contains_key(&path) {
            self.is_cut = true;
            return;
        }
        let touch = self.paths.entry(path).or_default();
        let acts = match end {
            End::Done => &mut touch.done,
            End::Refused => &mut touch.refused,
            End::Failed => return,
        };
        *match act {
            Act::Look => &mut acts.look,
            Act::Read => &mut acts.read,
            Act::Write => &mut acts.write,
            Act::Execute => &mut acts.execute,
        } = true;
    }
}

impl Acts {
    pub(super) fn any(self) -> bool {
        self.look || self.opens()
    }

    /// Whether it is something that needs a grant.
    pub(super) fn opens(self) -> bool {
        self.read || self.write || self.execute
    }
}

impl Row {
    fn read(row: &str) -> Option<Self> {
        let (call, rest) = row.split_once('(')?;
        let (arguments, result) = rest.rsplit_once(" = ")?;
        match call {
            "clone" | "clone3" | "fork" | "vfork" => Some(Self::Started(result.parse().ok()?)),
            "connect" => connected(arguments, result),
            _ => {
                let act = act(call, arguments)?;
                let path = first_path(arguments)?;
                let end = match result.split_whitespace().collect::<Vec<_>>()[..] {
                    ["-1", "EACCES" | "EPERM", ..] => End::Refused,
                    ["-1" | "?", ..] => End::Failed,
                    _ => End::Done,
                };
                Some(Self::Path { path, act, end })
            }
        }
    }
}

/// Where a connection was tried to. That of a name server says nothing, since
/// names are asked of aegis.
fn connected(arguments: &str, result: &str) -> Option<Row> {
    if let Some((_, path)) = arguments.split_once("sun_path=\"") {
        let is_done = !result.starts_with('-');
        let (path, _) = path.split_once('"')?;
        return is_done.then(|| Row::Unix(path.to_owned()));
    }
    let (_, port) = arguments.split_once("_port=htons(")?;
    let port = port.split_once(')')?.0.parse().ok()?;
    (port != DNS_PORT && port != 0).then_some(Row::Port(port))
}

fn act(call: &str, arguments: &str) -> Option<Act> {
    let has = |flag: &str| arguments.contains(flag);
    Some(match call {
        "open" | "openat" | "openat2" => {
            if ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"]
                .iter()
                .any(|flag| has(flag))
            {
                Act::Write
            } else if has("O_PATH") {
                Act::Look
            } else {
                Act::Read
            }
        }
        "execve" | "execveat" => Act::Execute,
        "stat" | "lstat" | "newfstatat" | "fstatat64" | "statx" | "access" | "faccessat"
        | "faccessat2" | "readlink" | "readlinkat" | "chdir" | "statfs" => Act::Look,
        "creat" | "mkdir" | "mkdirat" | "mknod" | "mknodat" | "unlink" | "unlinkat" | "rmdir"
        | "rename" | "renameat" | "renameat2" | "truncate" | "chmod" | "fchmodat" | "chown"
        | "lchown" | "fchownat" | "utimensat" | "utimes" => Act::Write,
        _ => return None,
    })
}

/// The first path of a call's arguments, below the directory before it.
fn first_path(arguments: &str) -> Option<PathBuf> {
    let (directory, rest) = match arguments.strip_prefix('"') {
        Some(rest) => (None, rest),
        None => {
            let (before, rest) = arguments.split_once(", \"")?;
            let directory = before
                .split_once('<')
                .and_then(|(_, named)| named.strip_suffix('>'));
            // Behind another argument it is not what the call is about.
            if before.contains(", ") && directory.is_none() {
                return None;
            }
            (directory.map(|named| bytes(named).0), rest)
        }
    };
    let (path, is_ended) = bytes(rest);
    if path.is_empty() || !is_ended {
        return None;
    }
    let directory = directory.map(|named| PathBuf::from(OsString::from_vec(named)));
    Some(plain(
        &directory.unwrap_or_default().join(OsString::from_vec(path)),
    ))
}

/// Without dots, as it is written: what is gone has no other name.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut done = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => _ = done.pop(),
            part => done.push(part),
        }
    }
    done
}

/// Undoes the escapes of a quoted text, up to its closing quote; and whether
/// there was one.
fn bytes(text: &str) -> (Vec<u8>, bool) {
    let mut done = Vec::new();
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => return (done, true),
            b'\\' => match rest.next() {
                Some(digit @ b'0'..=b'7') => {
                    let mut value = u32::from(digit - b'0');
                    for _ in 0..2 {
                        if let Some(digit) = rest.next_if(|next| (b'0'..=b'7').contains(next)) {
                            value = value * 8 + u32::from(digit - b'0');
                        }
                    }
                    done.push(value as u8);
                }
                Some(b'n') => done.push(b'\n'),
                Some(b't') => done.push(b'\t'),
                Some(b'r') => done.push(b'\r'),
                Some(b'v') => done.push(0x0b),
                Some(b'f') => done.push(0x0c),
                Some(other) => done.push(other),
                None => {}
            },
            byte => done.push(byte),
        }
    }
    (done, false)
}

/// The rows after the second program that a helper of aegis executed: the
/// first is the helper itself.
fn confined(rows: Vec<String>) -> Option<Vec<String>> {
    let executed = |row: &&String| row.starts_with("execve(") && row.ends_with(" = 0");
    let first = rows.iter().find(executed)?;
    if !first.contains("\"__confine-exec\"") {
        return None;
    }
    let mut all = rows.iter();
    all.by_ref().filter(executed).nth(1)?;
    Some(all.cloned().collect())
}

fn rows(path: &Path, left: &mut u64) -> Vec<String> {
    let Ok(file) = File::open(path) else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    let mut file = BufReader::new(file.take(*left));
    let mut row = Vec::new();
    while matches!(file.read_until(b'\n', &mut row), Ok(1..)) {
        *left = left.saturating_sub(row.len() as u64);
        rows.push(String::from_utf8_lossy(&row).trim_end().to_owned());
        row.clear();
    }
    rows
}

const DNS_PORT: u16 = 53;

/// Of processes and threads.
pub(super) const MAX_FILES: usize = 1024;
const MAX_BYTES: u64 = 64 << 20;
pub(super) const MAX_PATHS: usize = 20_000;

#[cfg(test)]
mod tests;
