//! Which names the child may know, and the addresses they are lent.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::net::allow::{Allow, Pattern};
use crate::net::host::{Host, Name};
use crate::net::pool::{Block, Full, Pool};

/// The names of the entries.
#[derive(Debug)]
pub(super) struct Names {
    patterns: Vec<Pattern>,
    pool: Mutex<Pool>,
}

/// What a name stands for in the network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// An address that means it.
    Lent(Ipv4Addr),
    /// It is allowed, but no address is left.
    Full(Full),
    /// This machine.
    Localhost,
    /// Nothing.
    NotAllowed,
}

/// What the address of a connection means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// This host.
    Host(Host),
    /// An address of the pool that no name has.
    NeverLent,
}

impl Names {
    pub(super) fn new(allow: &[Allow]) -> Self {
        let literals = allow.iter().filter_map(|entry| match entry.pattern() {
            Pattern::Host(Host::Address(IpAddr::V4(address))) => Some(*address),
            _ => None,
        });
        Self {
            pool: Mutex::new(Pool::new(Block::default(), literals)),
            patterns: allow.iter().map(|entry| entry.pattern().clone()).collect(),
        }
    }

    /// What the question for `name` is answered with.
    pub(super) fn look_up(&self, name: &Name) -> Standing {
        if name.is_localhost() {
            return Standing::Localhost;
        }
        let is_allowed = self.patterns.iter().any(|pattern| match pattern {
            Pattern::Host(Host::Name(allowed)) => allowed == name,
            Pattern::Host(Host::Address(_)) => false,
            Pattern::Below(apex) => name.is_below(apex),
        });
        if !is_allowed {
            return Standing::NotAllowed;
        }
        match self.pool().lend(name) {
            Ok(address) => Standing::Lent(address),
            Err(full) => Standing::Full(full),
        }
    }

    /// Which name has `address`.
    pub(super) fn name(&self, address: Ipv4Addr) -> Option<Name> {
        self.pool().name(address).cloned()
    }

    /// Whether `address` is for names, lent or not.
    pub(super) fn owns(&self, address: Ipv4Addr) -> bool {
        self.pool().owns(address)
    }

    /// What a connection to `host` means: behind a lent address is a name.
    pub(super) fn meaning(&self, host: Host) -> Meaning {
        let Host::Address(IpAddr::V4(address)) = host else {
            return Meaning::Host(host);
        };
        let pool = self.pool();
        match pool.name(address) {
            Some(name) => Meaning::Host(Host::Name(name.clone())),
            None if pool.owns(address) => Meaning::NeverLent,
            None => Meaning::Host(host),
        }
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
