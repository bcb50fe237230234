//! What a confined child did on the network (SPEC §5.7).

use serde::{Deserialize, Serialize};

/// Network events while a Call was open: overlap in time, not cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressOverlapping {
    /// Connections that were let through and open at some moment of the Call.
    pub allowed: u64,
    /// Connections and names that were refused during the Call.
    pub denied: u64,
    /// The destinations of both, `HOST:PORT`, or `HOST` where a name was asked
    /// for; at most [`MAX_HOSTS`](Self::MAX_HOSTS), each once.
    pub hosts: Vec<String>,
}

/// All network events of a Session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Egress {
    /// Connections that were let through.
    pub allowed: u64,
    /// Connections and names that were refused.
    pub denied: u64,
    /// By destination, at most [`MAX_DESTINATIONS`](Self::MAX_DESTINATIONS).
    pub destinations: Vec<Destination>,
    /// Destinations beyond that number, which are counted above only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_destinations: u64,
}

/// What went to one destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// A name or an address, as the child meant it.
    pub host: String,
    /// Absent where a name was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Connections that were let through.
    pub allowed: u64,
    /// Connections and questions that were refused.
    pub denied: u64,
    /// Bytes that the child sent.
    pub sent_bytes: u64,
    /// Bytes that it received.
    pub received_bytes: u64,
    /// Why the last one was refused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl EgressOverlapping {
    /// How many destinations an outcome names.
    pub const MAX_HOSTS: usize = 16;
}

impl Egress {
    /// How many destinations a `close` Line names.
    pub const MAX_DESTINATIONS: usize = 64;
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
