//! Parts of a confinement, for tests that try them from outside.

pub mod helper;

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

    /// Those of one that may have Unix sockets besides, and so can start a
    /// confinement of its own.
    ///
    /// # Errors
    /// When the architecture is not known.
    pub fn with_unix_sockets() -> io::Result<Self> {
        Self::with(Network::PortOnly, true)
    }

    fn of(network: Network) -> io::Result<Self> {
        Self::with(network, false)
    }

    fn with(network: Network, unix_sockets: bool) -> io::Result<Self> {
        let plan = Plan {
            network,
            unix_sockets,
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
