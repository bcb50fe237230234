//! The filters of a confinement, for tests that try them from outside.

use std::io;

use crate::confine::seccomp::{self, Metadata, Network, Plan};

/// System call filters that are not loaded yet.
pub struct Filters(seccomp::Filters);

impl Filters {
    /// Those of a server that may have neither network nor Unix sockets.
    ///
    /// # Errors
    /// When the architecture is not known.
    pub fn narrow() -> io::Result<Self> {
        Self::of(Network::Denied)
    }

    /// Those of one in a network namespace of its own.
    ///
    /// # Errors
    /// When the architecture is not known.
    pub fn in_namespace() -> io::Result<Self> {
        Self::of(Network::Namespace)
    }

    fn of(network: Network) -> io::Result<Self> {
        let plan = Plan {
            network,
            unix_sockets: false,
            metadata: Metadata::Denied,
        };
        seccomp::filters(&plan).map(Self).map_err(io::Error::other)
    }

    /// Puts the calling thread under them, and what it starts.
    ///
    /// # Errors
    /// When the kernel does not take them.
    pub fn apply(&self) -> io::Result<()> {
        self.0.apply().map_err(io::Error::other)
    }
}
