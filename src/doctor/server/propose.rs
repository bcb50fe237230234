//! Flags from clues: which preset, and which paths and hosts besides.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::run::{Grant, Refused};
use super::trace::{Acts, Seen, plain};
use crate::confine::command::{self, Role};
use crate::confine::machine::Machine;
use crate::grant::root::Kind;
use crate::net::allow::Allow;
use crate::stations::sandbox::Asked;

/// What is known before the server has run confined.
pub(super) struct Clues<'a, M> {
    pub(super) machine: &'a M,
    pub(super) command: &'a [OsString],
    /// What it touched when nothing confined it, where that could be seen.
    pub(super) plain: Option<&'a Seen>,
}

/// A path that was refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Denied {
    pub(super) path: PathBuf,
    /// `read`, `write` or `execute`.
    pub(super) act: &'static str,
}

impl<M: Machine> Clues<'_, M> {
    /// By the names of the program and of what runs it; without paths.
    pub(super) fn preset(&self) -> Asked {
        let mut asked = Asked::default();
        let Some(program) = self.command.first() else {
            return asked;
        };
        // Why it cannot be run is told by whoever tries to.
        let Ok(steps) = command::resolve(self.machine, program) else {
            return asked;
        };
        let named = |path: &Path| path.file_name().map(OsStr::to_owned);
        let mut names: Vec<_> = steps
            .iter()
            .flat_map(|step| [named(&step.named), named(Path::new(&step.path))])
            .flatten()
            .collect();
        names.extend(named(Path::new(program)));
        let has = |known: &[&str]| {
            names
                .iter()
                .any(|name| known.iter().any(|known| name == known))
        };
        let is_python = names
            .iter()
            .any(|name| name.as_bytes().starts_with(b"python"));
        let is_dynamic = steps.iter().any(|step| step.role != Role::Program);
        let preset = if has(&["npx", "npm", "npx-cli.js", "npm-cli.js"]) {
            "npx"
        } else if has(&["uvx", "uv"]) {
            "uvx"
        } else if has(&["node", "nodejs"]) {
            "node"
        } else if is_python {
            "python"
        } else if !is_dynamic {
            "static"
        } else {
            // No kind that is known: the system's files, and what it executes.
            asked.exec_support = true;
            let own = steps.iter().map(|step| PathBuf::from(&step.path));
            let is_elsewhere =
                |path: &PathBuf| !SYSTEM.iter().any(|system| path.starts_with(system));
            asked.read = own.filter(is_elsewhere).collect();
            return asked;
        };
        asked.preset = Some(preset.to_owned());
        asked
    }

    /// The paths among its arguments that it touches, or all that exist where
    /// that could not be seen.
    pub(super) fn add_arguments(&self, asked: &mut Asked) {
        for argument in self.command.iter().skip(1) {
            let value = match argument.as_bytes().split_first() {
                Some((b'-', rest)) => rest.splitn(2, |byte| *byte == b'=').nth(1),
                Some(_) => Some(argument.as_bytes()),
                None => None,
            };
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                continue;
            };
            let written = self.machine.directory().join(OsStr::from_bytes(value));
            let Ok(path) = self.machine.canonical(&written) else {
                continue;
            };
            let written = plain(&written);
            match self.acts_below(&[&written, &path]) {
                Some(acts) if acts.write => add(&mut asked.write, path),
                Some(acts) if acts.any() => add(&mut asked.read, packages(&path).unwrap_or(path)),
                _ => {}
            }
        }
    }

    /// What was done with one of these paths or what is beneath.
    fn acts_below(&self, paths: &[&PathBuf]) -> Option<Acts> {
        let Some(seen) = self.plain else {
            return Some(Acts {
                read: true,
                ..Acts::default()
            });
        };
        let touches = seen.paths.iter().filter(|(touched, _)| {
            paths
                .iter()
                .any(|path| self.absolute(touched).starts_with(path))
        });
        touches
            .map(|(_, touch)| touch.done)
            .reduce(|all, acts| Acts {
                look: all.look || acts.look,
                read: all.read || acts.read,
                write: all.write || acts.write,
                execute: all.execute || acts.execute,
            })
    }

    /// What was refused that is not refused without confinement.
    pub(super) fn denied(&self, confined: &Seen, grants: &[Grant]) -> Vec<Denied> {
        let mut denied = BTreeSet::new();
        for (path, touch) in &confined.paths {
            let before = match self.plain {
                Some(seen) => seen
                    .paths
                    .get(path)
                    .map(|touch| touch.done)
                    .unwrap_or_default(),
                None => touch.refused,
            };
            let path = self.absolute(path);
            // Each process has its own, which no flag could name.
            if path.starts_with("/proc") {
                continue;
            }
            let found = self
                .machine
                .canonical(&path)
                .unwrap_or_else(|_| path.clone());
            let is_granted = |does: fn(&Grant) -> bool| {
                grants
                    .iter()
                    .any(|grant| does(grant) && found.starts_with(&grant.path))
            };
            let acts = [
                (
                    "read",
                    touch.refused.read && before.read,
                    is_granted(|grant| grant.reads),
                ),
                (
                    "write",
                    touch.refused.write && before.write,
                    is_granted(|grant| grant.writes),
                ),
                (
                    "execute",
                    touch.refused.execute && before.execute,
                    is_granted(|grant| grant.executes),
                ),
            ];
            for (act, is_refused, is_granted) in acts {
                if is_refused && !is_granted {
                    denied.insert(Denied {
                        path: path.clone(),
                        act,
                    });
                }
            }
        }
        denied.into_iter().collect()
    }

    /// Roots to read from that would end these refusals; files of one
    /// directory as that.
    pub(super) fn reads(&self, denied: &[Denied]) -> Vec<PathBuf> {
        let reads = denied.iter().filter(|denied| denied.act != "write");
        let paths = reads.filter_map(|denied| self.machine.canonical(&denied.path).ok());
        let mut files: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
        let mut roots = Vec::new();
        for path in paths.filter(|path| !is_system(path)) {
            if let Some(packages) = packages(&path) {
                roots.push(packages);
            } else if matches!(self.machine.identify(&path), Ok((_, Kind::Directory))) {
                roots.push(path);
            } else if let Some(parent) = path.parent() {
                files.entry(parent.into()).or_default().push(path);
            }
        }
        for (parent, files) in files {
            match files.len() >= MANY_FILES && !self.is_wide(&parent) {
                true => roots.push(parent),
                false => roots.extend(files),
            }
        }
        self.narrowed(roots)
    }

    /// Roots to write to that would end these refusals: what is there, or the
    /// directory in which it would be made.
    pub(super) fn writes(&self, denied: &[Denied]) -> Vec<PathBuf> {
        let writes = denied.iter().filter(|denied| denied.act == "write");
        let roots = writes.filter_map(|denied| {
            let parent = denied.path.parent()?;
            let found = self.machine.canonical(&denied.path);
            found.or_else(|_| self.machine.canonical(parent)).ok()
        });
        self.narrowed(roots.filter(|root| !is_system(root)).collect())
    }

    /// Without those that are too wide, and those below others.
    fn narrowed(&self, mut roots: Vec<PathBuf>) -> Vec<PathBuf> {
        roots.retain(|root| !self.is_wide(root));
        roots.sort_unstable();
        roots.dedup_by(|below, root| below.starts_with(&*root));
        roots.truncate(MAX_ADDED);
        roots
    }

    /// Whether a directory holds what is not the server's business.
    fn is_wide(&self, path: &Path) -> bool {
        let home = self.machine.variable("HOME").map(PathBuf::from);
        home.is_some_and(|home| home.starts_with(path))
            || WIDE.iter().any(|wide| Path::new(wide) == path)
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        plain(&self.machine.directory().join(path))
    }
}

/// `--allow-net` entries for what was asked for. A name whose port is not
/// known gets the ports that the server connects to when it may.
pub(super) fn hosts(refused: &Refused, ports: &BTreeSet<u16>) -> Vec<String> {
    let mut entries: BTreeMap<&str, BTreeSet<u16>> = BTreeMap::new();
    // What is allowed and cannot be reached is not mended by a flag.
    let refused = refused.iter().filter(|(_, why)| *why == NOT_ALLOWED);
    for ((host, port), _) in refused {
        // The proxy names the address that a server means by it.
        let host = if host == "localhost" {
            "127.0.0.1"
        } else {
            host
        };
        let of_host = entries.entry(host).or_default();
        of_host.extend(port);
    }
    entries
        .into_iter()
        .map(|(host, known)| {
            let known = match (known.is_empty(), ports.is_empty()) {
                (false, _) => known,
                (true, false) => ports.clone(),
                (true, true) => BTreeSet::from([HTTPS]),
            };
            let ports: Vec<_> = known.iter().take(MAX_PORTS).map(u16::to_string).collect();
            format!("{host}:{}", ports.join(","))
        })
        // What is no host was made up by the server.
        .filter(|entry| Allow::parse(entry).is_ok())
        .take(MAX_ADDED)
        .collect()
}

/// Adds a root, unless one is there above it.
pub(super) fn add(roots: &mut Vec<PathBuf>, root: PathBuf) {
    if !roots.iter().any(|known| root.starts_with(known)) {
        roots.retain(|known| !known.starts_with(&root));
        roots.push(root);
    }
}

/// The outermost directory of packages that a path lies in: packages are
/// looked for in those above.
fn packages(path: &Path) -> Option<PathBuf> {
    let is_packages = |path: &&Path| {
        path.file_name()
            .is_some_and(|name| name == "node_modules" || name == "site-packages")
    };
    path.ancestors()
        .filter(is_packages)
        .last()
        .map(Path::to_owned)
}

fn is_system(path: &Path) -> bool {
    ["/proc", "/sys", "/dev"]
        .iter()
        .any(|system| path.starts_with(system))
}

/// What `--allow-exec-support` grants to be executed.
const SYSTEM: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];

/// What is never proposed as a whole.
const WIDE: [&str; 15] = [
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/proc", "/run",
    "/sys", "/tmp", "/usr", "/var",
];

/// As a record says it.
const NOT_ALLOWED: &str = "not allowed";

const HTTPS: u16 = 443;

/// From how many files on a directory is granted instead.
const MANY_FILES: usize = 3;
/// How many roots or hosts one round adds.
pub(super) const MAX_ADDED: usize = 16;
pub(super) const MAX_PORTS: usize = 16;

#[cfg(test)]
mod tests;
