//! How much of everything the way out holds at once.

use std::time::Duration;

/// Bounds of one [`super::Egress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// TCP connections of the child at once, without those to the name server.
    /// Each takes two descriptors, two threads and 128 KiB.
    pub(crate) connections: usize,
    /// TCP connections to the name server at once.
    pub(crate) dns_connections: usize,
    /// Of the head of a request or an answer of HTTP.
    pub(crate) head_bytes: usize,
    /// For a head, a SOCKS handshake or a DNS message to arrive whole.
    pub(crate) head: Duration,
    /// To connect, over all addresses of a name. Resolving the name before has
    /// its own bound, [`crate::net::resolve::TOTAL_MS`].
    pub(crate) dial: Duration,
    /// Without a byte in either direction.
    pub(crate) idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS,
            dns_connections: DNS_CONNECTIONS,
            head_bytes: HEAD_BYTES,
            head: HEAD,
            dial: DIAL,
            idle: IDLE,
        }
    }
}

/// With two descriptors each they leave half of the usual 1024 to the rest.
const CONNECTIONS: usize = 256;

const DNS_CONNECTIONS: usize = 16;

/// Cookies of a browser fit; servers take 8 to 32 KiB.
const HEAD_BYTES: usize = 64 << 10;

const HEAD: Duration = Duration::from_secs(10);

const DIAL: Duration = Duration::from_secs(10);

const IDLE: Duration = Duration::from_secs(600);
