//! Takes the child's connections in, each into a thread of its own.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::thread::{self, Scope};
use std::time::Duration;

use rustix::event::PollFlags;

use super::denial::{Cause, Denial};
use super::incoming::{Hurried, Incoming};
use super::live::{Held, Slot, reset_on_close};
use super::relay::{self, Side, relay};
use super::{Shared, dns, http, socks};

/// What a listener is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Proxy,
    Direct,
    Dns,
}

/// Accepts on every listener until everything is over, then waits for the
/// threads of the connections.
pub(super) fn serve(shared: &Shared, listeners: &[(Purpose, TcpListener)]) {
    let polled: Vec<_> = listeners
        .iter()
        .map(|(_, listener)| listener.as_fd())
        .collect();
    thread::scope(|scope| {
        while !shared.live.is_over() {
            let ready = shared.live.wait(&polled, PollFlags::IN, None);
            let mut is_short = ready.is_err();
            let ready = ready.unwrap_or_default();
            for (purpose, listener) in ready.into_iter().filter_map(|at| listeners.get(at)) {
                match listener.accept() {
                    Ok((stream, _)) => admit(scope, shared, *purpose, stream),
                    Err(error) => is_short |= !is_of_one_client(error.kind()),
                }
            }
            // Out of descriptors or memory. The listeners stay ready, so to try
            // at once would be to try without end.
            if is_short {
                let _ = shared.live.wait(&[], PollFlags::IN, Some(PAUSE));
            }
        }
    });
}

fn admit<'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared,
    purpose: Purpose,
    stream: TcpStream,
) {
    let limits = &shared.judge.limits;
    let (taken, bound) = match purpose {
        Purpose::Proxy | Purpose::Direct => (&shared.connections, limits.connections),
        Purpose::Dns => (&shared.dns_connections, limits.dns_connections),
    };
    let Some(slot) = Slot::take(taken, bound) else {
        let cause = Cause::Busy(bound);
        let denial = match stream.local_addr().map(|local| shared.judge.meant(local)) {
            Ok(Ok(meant)) if purpose == Purpose::Direct => {
                Denial::of(&meant.host, meant.port, cause)
            }
            _ => Denial::of_unknown(cause),
        };
        // First noted, then felt.
        shared.judge.ledger.deny(&denial);
        return reset_on_close(&stream);
    };
    let Ok(client) = shared.live.hold(stream) else {
        return;
    };
    // Without a thread the connection is closed here.
    let _ = relay::spawn(scope, move || {
        match purpose {
            Purpose::Proxy => serve_proxy(shared, &client),
            Purpose::Direct => serve_direct(shared, client),
            // It ends when the client has nothing more to ask.
            Purpose::Dns => drop(dns::serve_tcp(shared, &client)),
        }
        drop(slot);
    });
}

/// HTTP and SOCKS differ in the first byte.
fn serve_proxy(shared: &Shared, client: &Held<'_>) {
    let limit = shared.judge.limits.head;
    if client.set_write_timeout(Some(limit)).is_err() {
        return;
    }
    let mut incoming = Incoming::new(Hurried::new(client, limit), Vec::new());
    match incoming.peek() {
        Ok(Some(socks::VERSION)) => socks::serve(shared, client, incoming),
        Ok(Some(socks::VERSION_4)) => socks::refuse_version_4(shared, client),
        Ok(Some(_)) => http::serve(shared, client, incoming),
        // It asked for nothing.
        Ok(None) | Err(_) => {}
    }
}

/// A client that knows of no proxy: the address it connected to is the host it
/// means. It can be told nothing, so what fails is reset.
fn serve_direct(shared: &Shared, client: Held<'_>) {
    let Ok(local) = client.local_addr() else {
        return client.reset();
    };
    let meant = match shared.judge.meant(local) {
        Ok(meant) => meant,
        Err(denial) => {
            shared.judge.ledger.deny(&denial);
            return client.reset();
        }
    };
    match shared.judge.reach(&shared.live, &meant) {
        Ok(reached) => {
            let from = Side {
                stream: &client,
                ahead: Vec::new(),
            };
            let to = Side {
                stream: &reached.server,
                ahead: reached.ahead,
            };
            relay(from, to, reached.passage.flow(), shared.judge.limits.idle);
        }
        Err(_) => client.reset(),
    }
}

/// The client hung up before it was accepted, or there was none after all.
fn is_of_one_client(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
    )
}

/// Until descriptors may be free again.
const PAUSE: Duration = Duration::from_millis(100);
