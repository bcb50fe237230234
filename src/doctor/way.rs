//! The way to a file: every directory and link that whoever controls could
//! lead aegis to another file.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{FileType, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use super::finding::{Cure, Status};
use super::shell;
use crate::wire::escape::EscapedPath;

/// Where the kernel comes by when it looks a path up.
#[derive(Debug)]
pub(super) struct Way {
    /// In that order; what the path leads to is the last, when it exists.
    pub(super) stops: Vec<Stop>,
    pub(super) end: End,
}

/// A place on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    pub(super) owner: u32,
    /// The permission bits, sticky and set-id ones included.
    pub(super) mode: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File,
    Link,
    Other,
}

/// How the way ends.
#[derive(Debug)]
pub(super) enum End {
    /// At something.
    Exists,
    /// Where something is not there yet.
    Missing,
    /// Where nobody can see further.
    Unseen(PathBuf, io::Error),
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    pub(super) id: u32,
    /// Whether owners show as they are: in a user namespace those that it does
    /// not map show as one.
    pub(super) sees_owners: bool,
}

/// Somebody else's say in where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) status: Status,
    pub(super) found: String,
    pub(super) cure: Cure,
}

impl Way {
    /// Walks it. Links are followed as the kernel does.
    pub(super) fn walk(path: &Path) -> io::Result<Self> {
        let directory = std::env::current_dir()?;
        let mut at = PathBuf::from("/");
        let mut way = Self {
            stops: vec![Stop::new(&at, &at.symlink_metadata()?)],
            end: End::Exists,
        };
        let mut rest = VecDeque::new();
        put_before(&mut rest, &directory.join(path));
        let mut links = 0;
        while let Some(part) = rest.pop_front() {
            if part == ".." {
                at.pop();
                continue;
            }
            let next = at.join(part);
            let metadata = match next.symlink_metadata() {
                Ok(metadata) => metadata,
                Err(error) => {
                    way.end = match error.kind() {
                        io::ErrorKind::NotFound => End::Missing,
                        _ => End::Unseen(next, error),
                    };
                    return Ok(way);
                }
            };
            way.stops.push(Stop::new(&next, &metadata));
            if !metadata.is_symlink() {
                at = next;
                continue;
            }
            links += 1;
            let target = match next.read_link() {
                _ if links > MAX_LINKS => Err(Errno::LOOP.into()),
                target => target,
            };
            match target {
                Ok(target) => {
                    if target.is_absolute() {
                        at = PathBuf::from("/");
                    }
                    put_before(&mut rest, &target);
                }
                Err(error) => {
                    way.end = End::Unseen(next, error);
                    return Ok(way);
                }
            }
        }
        Ok(way)
    }

    /// What the path leads to.
    pub(super) fn object(&self) -> Option<&Stop> {
        match self.end {
            End::Exists => self.stops.last(),
            _ => None,
        }
    }

    /// The last directory on it that exists.
    pub(super) fn directory(&self) -> Option<&Stop> {
        self.stops.iter().rfind(|stop| stop.kind == Kind::Directory)
    }

    /// Who else has a say in where it leads. What it leads to is not among
    /// what is judged.
    pub(super) fn faults(&self, user: User) -> Vec<Fault> {
        let before = match self.end {
            End::Exists => self.stops.len().saturating_sub(1),
            _ => self.stops.len(),
        };
        let mut seen = Vec::new();
        let mut faults = Vec::new();
        for stop in &self.stops[..before] {
            if !seen.contains(&&stop.path) {
                seen.push(&stop.path);
                faults.extend(stop.fault(user));
            }
        }
        if matches!(self.end, End::Missing)
            && let Some(last) = self.directory()
            && last.mode & STICKY != 0
            && last.mode & 0o022 != 0
        {
            faults.push(Fault {
                status: Status::Limited,
                found: format!(
                    "in {} anybody may be the first to make it",
                    EscapedPath(&last.path)
                ),
                cure: Cure::say("name a place in a directory that is yours alone"),
            });
        }
        faults
    }
}

impl Stop {
    fn new(path: &Path, metadata: &Metadata) -> Self {
        Self {
            path: path.to_owned(),
            kind: Kind::of(metadata.file_type()),
            owner: metadata.uid(),
            mode: metadata.mode() & 0o7777,
        }
    }

    /// Of a directory or a link.
    fn fault(&self, user: User) -> Option<Fault> {
        if let Some(fault) = self.owner_fault(user) {
            return Some(fault);
        }
        // In a sticky one nobody replaces what is another's.
        match self.kind == Kind::Directory && self.mode & STICKY == 0 {
            true => self.mode_fault(),
            false => None,
        }
    }

    /// When neither the user nor root owns it.
    pub(super) fn owner_fault(&self, user: User) -> Option<Fault> {
        let shown = EscapedPath(&self.path);
        if self.owner == user.id || self.owner == 0 {
            return None;
        }
        if !user.sees_owners && self.owner == OVERFLOW_ID {
            return Some(Fault {
                status: Status::Unknown,
                found: format!("{shown} has an owner outside of this user namespace"),
                cure: Cure::say("ask again outside of the container"),
            });
        }
        let cure =
            match self.kind {
                Kind::Link => Cure::say("make the link yourself, or name what it leads to"),
                _ => Cure::say("use a place that is yours, or make it yours, as root:")
                    .line(format!("chown {} {}", user.id, shell::word(&self.path))),
            };
        Some(Fault {
            status: Status::Unsafe,
            found: format!("{shown} belongs to user id {}", self.owner),
            cure,
        })
    }

    /// When others may write to it. A group may be the user's own, so that is
    /// a question only.
    pub(super) fn mode_fault(&self) -> Option<Fault> {
        let (shown, word, mode) = (EscapedPath(&self.path), shell::word(&self.path), self.mode);
        if mode & 0o002 != 0 {
            return Some(Fault {
                status: Status::Unsafe,
                found: format!("{shown} is writable by everybody (mode {mode:04o})"),
                cure: Cure::say("take that away:").line(format!("chmod go-w {word}")),
            });
        }
        (mode & 0o020 != 0).then(|| Fault {
            status: Status::Limited,
            found: format!("{shown} is writable by its group (mode {mode:04o})"),
            cure: Cure::say("unless that group is yours alone:").line(format!("chmod g-w {word}")),
        })
    }
}

impl User {
    pub(super) fn of_this_process() -> Self {
        let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        Self {
            id: rustix::process::geteuid().as_raw(),
            sees_owners: map.split_ascii_whitespace().eq(["0", "0", "4294967295"]),
        }
    }
}

impl Kind {
    fn of(kind: FileType) -> Self {
        if kind.is_dir() {
            Self::Directory
        } else if kind.is_file() {
            Self::File
        } else if kind.is_symlink() {
            Self::Link
        } else {
            Self::Other
        }
    }
}

/// Puts the parts of `path` before those that are left.
fn put_before(rest: &mut VecDeque<OsString>, path: &Path) {
    for part in path.components().rev() {
        match part {
            Component::Normal(name) => rest.push_front(name.to_owned()),
            Component::ParentDir => rest.push_front("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
}

/// As many as the kernel follows (path_resolution(7)).
const MAX_LINKS: u32 = 40;

const STICKY: u32 = 0o1000;

/// How owners show that a user namespace does not map (user_namespaces(7)).
const OVERFLOW_ID: u32 = 65534;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const USER: User = User {
        id: 1000,
        sees_owners: true,
    };

    fn stop(kind: Kind, owner: u32, mode: u32) -> Stop {
        Stop {
            path: "/d".into(),
            kind,
            owner,
            mode,
        }
    }

    #[test]
    fn only_what_others_may_change_is_a_fault() {
        let namespaced = User {
            sees_owners: false,
            ..USER
        };
        let directory = Kind::Directory;
        for (stop, user, expected) in [
            (stop(directory, 1000, 0o700), USER, None),
            (stop(directory, 0, 0o755), USER, None),
            (stop(directory, 0, 0o1777), USER, None),
            (stop(directory, 0, 0o1775), USER, None),
            (stop(directory, 0, 0o777), USER, Some(Status::Unsafe)),
            (stop(directory, 1000, 0o757), USER, Some(Status::Unsafe)),
            (stop(directory, 1000, 0o775), USER, Some(Status::Limited)),
            (stop(directory, 1001, 0o700), USER, Some(Status::Unsafe)),
            (stop(directory, 1001, 0o1777), USER, Some(Status::Unsafe)),
            (stop(directory, 65534, 0o755), USER, Some(Status::Unsafe)),
            (
                stop(directory, 65534, 0o755),
                namespaced,
                Some(Status::Unknown),
            ),
            (
                stop(directory, 1001, 0o755),
                namespaced,
                Some(Status::Unsafe),
            ),
            // The mode of a link means nothing.
            (stop(Kind::Link, 1000, 0o777), USER, None),
            (stop(Kind::Link, 1001, 0o777), USER, Some(Status::Unsafe)),
        ] {
            let found = stop.fault(user).map(|fault| fault.status);
            assert_eq!(found, expected, "{stop:?}");
        }
    }

    #[test]
    fn every_place_is_come_by_that_the_kernel_comes_by() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("a/b")).unwrap();
        std::fs::write(base.join("a/b/file"), "").unwrap();
        symlink("a/./b", base.join("link")).unwrap();
        symlink(base.join("link/../b/file"), base.join("a/absolute")).unwrap();
        let way = Way::walk(&base.join("a/absolute")).unwrap();
        let inside: Vec<_> = way
            .stops
            .iter()
            .filter_map(|stop| stop.path.strip_prefix(&base).ok()?.to_str())
            .collect();
        assert_eq!(
            inside,
            [
                "",
                "a",
                "a/absolute",
                "",
                "link",
                "a",
                "a/b",
                "a/b",
                "a/b/file"
            ]
        );
        assert_eq!(way.object().map(|stop| stop.kind), Some(Kind::File));

        let missing = Way::walk(&base.join("link/none/x")).unwrap();
        assert!(matches!(missing.end, End::Missing));
        assert_eq!(missing.directory().unwrap().path, base.join("a/b"));
        let beneath = Way::walk(&base.join("a/b/file/x")).unwrap();
        assert!(matches!(beneath.end, End::Unseen(..)));
    }

    #[test]
    fn links_are_followed_up_to_the_bound() {
        let dir = tempfile::tempdir().unwrap();
        let link = |n: u32| dir.path().join(n.to_string());
        std::fs::write(link(0), "").unwrap();
        for n in 1..=MAX_LINKS + 1 {
            symlink(link(n - 1), link(n)).unwrap();
        }
        let at = Way::walk(&link(MAX_LINKS)).unwrap();
        assert!(at.object().is_some());
        let past = Way::walk(&link(MAX_LINKS + 1)).unwrap();
        assert!(matches!(past.end, End::Unseen(..)), "{past:?}");
    }

    #[test]
    fn where_anybody_may_be_first_it_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let set = |mode| std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(mode));
        let user = User::of_this_process();
        let faults = |path: &Path| Way::walk(path).unwrap().faults(user);
        set(0o1777).unwrap();
        assert_eq!(faults(&dir.path().join("x")).len(), 1);
        std::fs::write(dir.path().join("x"), "").unwrap();
        assert_eq!(faults(&dir.path().join("x")), []);
        set(0o777).unwrap();
        assert_eq!(faults(&dir.path().join("x")).len(), 1);
        set(0o700).unwrap();
        assert_eq!(faults(&dir.path().join("y")), []);
    }
}
