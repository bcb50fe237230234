//! Why something was refused, and what would allow it.

use std::fmt;

use super::ledger::Place;
use crate::net::allow::TargetFault;
use crate::net::host::{Endpoint, Host, HostFault, Name};
use crate::net::pool::Full;
use crate::wire::escape::Escaped;

/// One refusal, as whoever runs the child is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    place: Place,
    cause: Cause,
}

/// Why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// No entry is of it.
    NotAllowed,
    /// A name of this machine, and no entry is of its addresses.
    Localhost,
    /// What it resolves to may not be dialled for a name.
    Target(TargetFault),
    /// An address for names that no name has.
    NeverLent,
    /// No address is left for the name.
    PoolFull(Full),
    /// A host that has no such spelling.
    Spelling(HostFault),
    /// Past the bound of connections.
    Busy(usize),
    /// Not what the protocol wants.
    Unreadable(String),
}

impl Denial {
    pub(super) fn of(host: &Host, port: u16, cause: Cause) -> Self {
        Self {
            place: Place::of(host, port),
            cause,
        }
    }

    /// Of the question for a name.
    pub(super) fn of_name(name: &Name, cause: Cause) -> Self {
        Self {
            place: Place {
                host: name.to_string(),
                port: None,
            },
            cause,
        }
    }

    /// Of a host that could not be read. `text` comes from the child.
    pub(super) fn of_text(text: &str, port: Option<u16>, fault: HostFault) -> Self {
        let head: String = text.chars().take(MAX_TEXT_CHARS).collect();
        Self {
            place: Place {
                host: Escaped(&head).to_string(),
                port,
            },
            cause: Cause::Spelling(fault),
        }
    }

    /// Of a connection of which nobody knows where it was to go.
    pub(super) fn of_unknown(cause: Cause) -> Self {
        Self {
            place: Place {
                host: UNKNOWN.to_owned(),
                port: None,
            },
            cause,
        }
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// For the record: the cause without the host.
    pub(super) fn reason(&self) -> String {
        match &self.cause {
            Cause::NotAllowed | Cause::Localhost => "not allowed".to_owned(),
            Cause::Target(fault) => fault.to_string(),
            Cause::NeverLent => "no name was lent this address".to_owned(),
            Cause::PoolFull(full) => full.to_string(),
            Cause::Spelling(fault) => fault.to_string(),
            Cause::Busy(bound) => {
                format!("more than {bound} connections at once; close some first")
            }
            Cause::Unreadable(what) => what.clone(),
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "egress denied: {}", self.place)?;
        let port = |f: &mut fmt::Formatter<'_>| match self.place.port {
            Some(port) => write!(f, "{port}"),
            None => f.write_str("PORT"),
        };
        match &self.cause {
            Cause::NotAllowed => {
                write!(f, " is not allowed; give --allow-net {}:", self.place.host)?;
                port(f)
            }
            Cause::Localhost => {
                f.write_str(" is not allowed; give --allow-net 127.0.0.1:")?;
                port(f)
            }
            Cause::NeverLent => f.write_str(
                " is an address for names, and no name was lent it; look the name up first",
            ),
            _ => write!(f, ": {}", self.reason()),
        }
    }
}

impl Place {
    pub(super) fn of(host: &Host, port: u16) -> Self {
        Self {
            host: host.to_string(),
            port: Some(port),
        }
    }
}

impl From<&Endpoint> for Place {
    fn from(endpoint: &Endpoint) -> Self {
        Self::of(&endpoint.host, endpoint.port)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// In the place of a host.
const UNKNOWN: &str = "<unknown>";

/// Of a host that is none.
const MAX_TEXT_CHARS: usize = 64;
