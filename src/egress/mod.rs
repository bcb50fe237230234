//! The way out of a confined child's network namespace: what it may reach is
//! carried, what it may not is refused, and both are noted.
//!
//! The child's namespace has no way out but listening sockets that this side
//! holds. [`accept`] takes connections from them: of programs that know a
//! proxy ([`http`], [`socks`]) and of those that do not, which connect to the
//! address that [`dns`] lent a name, or to a literal. [`judge`] alone decides
//! and dials, [`relay`] carries, [`ledger`] notes. TLS is never opened: which
//! host a TLS client names inside (SNI) is not looked at, so behind an allowed
//! host that serves many names all of them can be reached.
//!
//! Each connection has two threads, and everything that a child can make many
//! of is bounded: see [`Limits`].

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::{self, JoinHandle};

use crate::net::allow::{Allow, Target};
use crate::net::resolve::Resolver;
use accept::Purpose;
use judge::Judge;
use live::Live;
use names::Names;

pub(crate) use denial::Denial;
#[allow(unused_imports, reason = "the sandbox station names it")]
pub(crate) use ledger::{Ledger, Mark};
pub(crate) use limits::Limits;
#[allow(unused_imports, reason = "the sandbox station names it")]
pub(crate) use upstream::{Upstream, UpstreamFault};

mod accept;
mod body;
mod denial;
mod dial;
mod dns;
mod head;
mod http;
mod incoming;
mod judge;
mod ledger;
mod limits;
mod live;
mod names;
mod relay;
mod socks;
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
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What all threads see.
struct Shared {
    judge: Judge,
    live: Live,
    /// Taken of [`Limits::connections`].
    connections: AtomicUsize,
    /// Taken of [`Limits::dns_connections`].
    dns_connections: AtomicUsize,
}

impl Egress {
    /// Begins to serve `sockets`. `told` hears of each refused destination
    /// once, of at most [`ledger::MAX_TOLD`], from any thread, and should not
    /// block.
    ///
    /// # Errors
    /// When there are no threads or descriptors for it.
    pub(crate) fn start(
        rules: Rules,
        sockets: Sockets,
        told: impl Fn(&Denial) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::start_placing(rules, sockets, Ledger::new(told), Target::socket_address)
    }

    /// `place` says where a target is dialled. Tests have their servers on the
    /// loopback, where no name may lead.
    fn start_placing(
        rules: Rules,
        sockets: Sockets,
        ledger: Ledger,
        place: fn(Target) -> SocketAddr,
    ) -> io::Result<Self> {
        let mut listeners = vec![
            (Purpose::Proxy, sockets.proxy),
            (Purpose::Dns, sockets.dns_tcp),
        ];
        let direct = sockets.direct.into_iter();
        listeners.extend(direct.map(|listener| (Purpose::Direct, listener)));
        for (_, listener) in &listeners {
            listener.set_nonblocking(true)?;
        }
        for socket in &sockets.dns_udp {
            socket.set_nonblocking(true)?;
        }
        let shared = Arc::new(Shared {
            judge: Judge {
                names: Names::new(&rules.allow),
                allow: rules.allow,
                resolver: rules.resolver,
                upstream: rules.upstream,
                limits: rules.limits,
                ledger,
                place,
            },
            live: Live::new()?,
            connections: AtomicUsize::new(0),
            dns_connections: AtomicUsize::new(0),
        });
        // From here on a failure ends what has begun.
        let mut egress = Self {
            shared,
            threads: Vec::new(),
        };
        egress.spawn(move |shared| accept::serve(shared, &listeners))?;
        egress.spawn(move |shared| dns::serve_udp(shared, &sockets.dns_udp))?;
        Ok(egress)
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.shared.judge.ledger
    }

    /// Closes every listener and connection, and waits for the threads.
    pub(crate) fn end(self) {
        drop(self);
    }

    fn spawn(&mut self, work: impl FnOnce(&Shared) + Send + 'static) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name("egress".to_owned());
        self.threads.push(thread.spawn(move || work(&shared))?);
        Ok(())
    }
}

impl Drop for Egress {
    fn drop(&mut self) {
        self.shared.live.end();
        for thread in self.threads.drain(..) {
            // One that panicked has been heard of.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
