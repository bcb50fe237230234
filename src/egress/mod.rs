//! The way out of a confined child's network namespace: what it may reach is
//! carried, what it may not is refused, and both are noted.

use std::io;
use std::net::{TcpListener, UdpSocket};

use crate::net::allow::Allow;
use crate::net::resolve::Resolver;

#[allow(unused_imports, reason = "the sandbox station names them")]
pub(crate) use ledger::{Denial, Ledger, Mark};
pub(crate) use limits::Limits;
#[allow(unused_imports, reason = "the sandbox station names them")]
pub(crate) use upstream::{Upstream, UpstreamFault};

mod ledger;
mod limits;
mod upstream;

/// Where the child's connections and questions come in. The sockets are of its
/// network namespace.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// HTTP and SOCKS5, told apart by the first byte.
    pub(crate) proxy: TcpListener,
    /// One for each allowed port; the local address of what they accept is
    /// the host that was meant.
    pub(crate) direct: Vec<TcpListener>,
    /// DNS over TCP.
    pub(crate) dns_tcp: TcpListener,
    /// DNS over UDP, one for each address.
    pub(crate) dns_udp: Vec<UdpSocket>,
}

/// What the child may reach, and how.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Everything else is refused.
    pub(crate) allow: Vec<Allow>,
    /// For the names among it.
    pub(crate) resolver: Resolver,
    /// Through which everything goes, if it is given.
    pub(crate) upstream: Option<Upstream>,
    /// How much at once.
    pub(crate) limits: Limits,
}

/// A running way out. Dropping it ends it.
pub(crate) struct Egress {
    ledger: Ledger,
}

impl Egress {
    /// Begins to serve `sockets`. `told` hears of each refused destination
    /// once, from any thread, and should not block.
    ///
    /// # Errors
    /// When there are no threads or descriptors for it.
    pub(crate) fn start(
        _rules: Rules,
        _sockets: Sockets,
        _told: impl Fn(&Denial) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Closes every listener and connection, and waits for the threads.
    pub(crate) fn end(self) {}
}
