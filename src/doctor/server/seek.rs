//! The smallest set of flags that a server works with, by trying.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::compare;
use super::propose::{self, Clues, Denied};
use super::run::{Runs, Watched, Way};
use super::session::{Step, Talk};
use crate::confine::assets::Assets;
use crate::confine::machine::{Machine as _, ThisMachine};
use crate::stations::sandbox::Asked;

/// What is known of the server when nothing confines it.
pub(super) struct Seeker<'a> {
    pub(super) runs: &'a Runs,
    pub(super) clues: Clues<'a, ThisMachine>,
    pub(super) plain: &'a Talk,
    pub(super) again: &'a Talk,
    /// What no server may reach.
    pub(super) assets: &'a Assets,
    /// Whether hosts that it asks for can be told.
    pub(super) hears_names: bool,
    tried: Cell<u32>,
    begun: Instant,
}

/// What was found.
pub(super) struct Found {
    pub(super) flags: Asked,
    /// Paths that it asked for and that no server may reach, with the reason.
    pub(super) kept: Vec<String>,
    /// The last watched run, with these flags.
    pub(super) last: Watched,
    pub(super) denied: Vec<Denied>,
    /// Unix sockets that it connects to when nothing confines it.
    pub(super) sockets: Vec<String>,
    pub(super) works: bool,
    /// Whether it would with `--shared-cache`.
    pub(super) shares: bool,
}

impl<'a> Seeker<'a> {
    pub(super) fn new(
        runs: &'a Runs,
        clues: Clues<'a, ThisMachine>,
        (plain, again): (&'a Talk, &'a Talk),
        assets: &'a Assets,
        hears_names: bool,
    ) -> Self {
        Self {
            runs,
            clues,
            plain,
            again,
            assets,
            hears_names,
            tried: Cell::new(0),
            begun: Instant::now(),
        }
    }

    /// From now on waits no longer than a server like this takes.
    pub(super) fn hurry(&self) {
        if let Step::Answered(wall) = self.plain.handshake {
            self.runs.wait_like(wall);
        }
    }

    /// What comes of flags that are not to be changed.
    pub(super) fn given(&self, flags: &Asked) -> Found {
        let mut found = self.look(flags);
        self.keep(&mut flags.clone(), &mut found.kept);
        // Where no network leads to aegis, names are asked of nobody.
        if flags.net.is_empty() && self.hears_names {
            let heard = self.runs.watched(Way::Confine(&self.listening(flags)));
            found.last.record.refused = heard.record.refused;
        }
        found
    }

    /// One run with flags as they are, for what is refused.
    fn look(&self, flags: &Asked) -> Found {
        let last = self.runs.watched(Way::Confine(flags));
        let denied = self.denied(&last);
        Found {
            works: self.fits(&last.talk),
            flags: flags.clone(),
            kept: Vec::new(),
            shares: false,
            sockets: match self.clues.plain {
                Some(seen) => seen.unix.iter().cloned().collect(),
                None => Vec::new(),
            },
            last,
            denied,
        }
    }

    /// From `bare` on: adds the paths among the arguments, and what was refused
    /// until it works, and takes away what was not needed.
    pub(super) fn seek(&self, bare: &Asked) -> Found {
        let mut kept = Vec::new();
        let mut flags = bare.clone();
        self.clues.add_arguments(&mut flags);
        self.keep(&mut flags, &mut kept);
        if flags != *bare {
            // A preset brings some of them, as the script that it runs.
            let grants = self.runs.watched(Way::Confine(bare)).record.grants;
            let is_brought = |root: &PathBuf| {
                let mut reading = grants.iter().filter(|grant| grant.reads);
                !bare.read.contains(root) && reading.any(|grant| root.starts_with(&grant.path))
            };
            flags.read.retain(|root| !is_brought(root));
        }
        let begin = flags.clone();
        for _ in 0..MAX_ROUNDS {
            let watched = self.runs.watched(Way::Confine(&self.listening(&flags)));
            let mut more = flags.clone();
            self.add_hosts(&mut more, &watched);
            if !self.fits(&watched.talk) {
                self.add_paths(&mut more, &watched);
                self.keep(&mut more, &mut kept);
            }
            if more == flags || self.begun.elapsed() > SEEK_WAIT {
                break;
            }
            flags = more;
        }
        if self.works(&flags) || self.add_variables(&mut flags) {
            self.remove_paths(&begin, &mut flags);
        } else {
            // They were guesses, and did not help.
            (flags.read, flags.write) = (begin.read, begin.write);
        }
        let found = self.look(&flags);
        Found {
            kept,
            shares: !found.works && self.works_shared(&flags),
            ..found
        }
    }

    /// Whether the packages that are missing are in the user's own cache.
    fn works_shared(&self, flags: &Asked) -> bool {
        let mut shared = flags.clone();
        shared.shared_cache = true;
        let installs = matches!(flags.preset.as_deref(), Some("npx" | "uvx"));
        installs && !flags.shared_cache && self.works(&shared)
    }

    /// The same flags, with a host that nobody has: the network of the server
    /// then leads to aegis, which notes what it asks for.
    fn listening(&self, flags: &Asked) -> Asked {
        let mut flags = flags.clone();
        if self.hears_names {
            let mut ports = self.ports();
            ports.extend([80, 443]);
            let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
            flags.net.push(format!("{NOBODY}:{}", ports.join(",")));
        }
        flags
    }

    fn ports(&self) -> BTreeSet<u16> {
        let seen = self.clues.plain.map(|seen| seen.ports.iter().copied());
        seen.into_iter()
            .flatten()
            .take(propose::MAX_PORTS)
            .collect()
    }

    fn add_hosts(&self, flags: &mut Asked, watched: &Watched) {
        for entry in propose::hosts(&watched.record.refused, &self.ports()) {
            if !flags.net.contains(&entry) {
                flags.net.push(entry);
            }
        }
    }

    fn add_paths(&self, flags: &mut Asked, watched: &Watched) {
        let denied = self.denied(watched);
        let reads = self.clues.reads(&denied);
        // Most servers do without what they write at their start.
        let writes = match reads.is_empty() {
            true => self.clues.writes(&denied),
            false => Vec::new(),
        };
        for root in reads {
            propose::add(&mut flags.read, root);
        }
        for root in writes {
            propose::add(&mut flags.write, root);
        }
    }

    fn denied(&self, watched: &Watched) -> Vec<Denied> {
        let seen = watched.seen.as_ref();
        seen.map_or_else(Vec::new, |seen| {
            self.clues.denied(seen, &watched.record.grants)
        })
    }

    /// Takes out what no server may reach.
    fn keep(&self, flags: &mut Asked, kept: &mut Vec<String>) {
        let machine = self.clues.machine;
        let mut check = |roots: &mut Vec<PathBuf>, writes| {
            roots.retain(|root| {
                let canonical = machine.canonical(root);
                let root = canonical.as_ref().unwrap_or(root);
                let Err(reaches) = self.assets.check(machine, root, writes) else {
                    return true;
                };
                let why = reaches.to_string();
                if !kept.contains(&why) {
                    kept.push(why);
                }
                false
            });
        };
        check(&mut flags.read, false);
        check(&mut flags.write, true);
    }

    /// One may be missing: its key, say. If it works with all, those that it
    /// needs are found by halves. Whether it works.
    fn add_variables(&self, flags: &mut Asked) -> bool {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let names: Vec<_> = names
            .filter(|name| !name.is_empty() && !name.starts_with("AEGIS_CONFINE_"))
            .take(MAX_VARIABLES)
            .collect();
        let with = |names: &[String]| {
            let mut flags = flags.clone();
            flags.variables.extend_from_slice(names);
            flags
        };
        let works = |names: &[String]| self.works(&with(names));
        let is_one = works(&names);
        if is_one {
            *flags = with(&reduced(names, works));
        }
        is_one
    }

    /// Takes away each path that was added and is not needed.
    fn remove_paths(&self, begin: &Asked, flags: &mut Asked) {
        for root in flags.read.clone() {
            let mut without = flags.clone();
            without.read.retain(|known| *known != root);
            if !begin.read.contains(&root) && self.works(&without) {
                *flags = without;
            }
        }
        for root in flags.write.clone() {
            let mut without = flags.clone();
            without.write.retain(|known| *known != root);
            if !begin.write.contains(&root) && self.works(&without) {
                *flags = without;
            }
        }
    }

    /// Whether it works; when too much was tried, it is taken not to.
    fn works(&self, flags: &Asked) -> bool {
        self.tried.set(self.tried.get() + 1);
        let is_enough = self.tried.get() > MAX_TRIALS || self.begun.elapsed() > SEEK_WAIT;
        !is_enough && self.fits(&self.runs.tried(flags))
    }

    fn fits(&self, talk: &Talk) -> bool {
        talk.works() && compare::short(self.plain, self.again, talk).is_same()
    }
}

/// As few of `all` as can be found quickly with which it still works.
fn reduced(mut all: Vec<String>, works: impl Fn(&[String]) -> bool) -> Vec<String> {
    while all.len() > 1 {
        let (first, second) = all.split_at(all.len() / 2);
        if works(first) {
            all = first.to_vec();
        } else if works(second) {
            all = second.to_vec();
        } else {
            break;
        }
    }
    for name in all.clone() {
        let without: Vec<_> = all.iter().filter(|kept| **kept != name).cloned().collect();
        if all.len() > 1 && works(&without) {
            all = without;
        }
    }
    all
}

/// A name that cannot exist (RFC 6761 §6.4).
const NOBODY: &str = "aegis-doctor.invalid";

const MAX_ROUNDS: usize = 6;
/// Each is a start of the server.
const MAX_TRIALS: u32 = 40;
const SEEK_WAIT: Duration = Duration::from_secs(180);
/// As many as `--allow-env` may be given.
const MAX_VARIABLES: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_reduced_to_those_that_matter() {
        let all: Vec<String> = (0..50).map(|name| name.to_string()).collect();
        for needed in [vec!["7"], vec!["3", "4"], vec!["1", "40"], vec![]] {
            let works =
                |names: &[String]| needed.iter().all(|name| names.iter().any(|n| n == name));
            let found = reduced(all.clone(), works);
            assert!(works(&found), "{needed:?}");
            assert!(found.len() <= needed.len().max(1), "{needed:?}: {found:?}");
        }
    }
}
