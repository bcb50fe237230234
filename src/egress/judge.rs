//! Whether a connection may be made, and making it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::denial::{Cause, Denial};
use super::dial::{DialFault, FaultKind, dial, resolve};
use super::ledger::{Ledger, Passage, Place};
use super::limits::Limits;
use super::live::{Held, Live};
use super::names::{Meaning, Names};
use super::upstream::Upstream;
use crate::net::address::Address;
use crate::net::allow::{Allow, Target, TargetFault};
use crate::net::host::{Endpoint, Host};
use crate::net::near::is_near;
use crate::net::resolve::Resolver;

/// The rules at work.
pub(super) struct Judge {
    pub(super) allow: Vec<Allow>,
    pub(super) names: Names,
    pub(super) resolver: Resolver,
    pub(super) upstream: Option<Upstream>,
    pub(super) limits: Limits,
    pub(super) ledger: Ledger,
    /// Where a target is dialled: at its address.
    pub(super) place: fn(Target) -> SocketAddr,
}

/// A connection to the outside that was let through.
pub(super) struct Reached<'a> {
    pub(super) server: Held<'a>,
    /// What the server has said already.
    pub(super) ahead: Vec<u8>,
    pub(super) passage: Passage,
}

/// Why there is no connection. Noted already.
#[derive(Debug)]
pub(super) enum Refusal {
    Denied(Denial),
    Failed(DialFault),
}

impl Judge {
    /// What the address of an accepted connection means.
    pub(super) fn meant(&self, local: SocketAddr) -> Result<Endpoint, Denial> {
        let host = Host::from(local.ip());
        match self.names.meaning(host.clone()) {
            Meaning::Host(host) => Ok(Endpoint {
                host,
                port: local.port(),
            }),
            Meaning::NeverLent => Err(Denial::of(&host, local.port(), Cause::NeverLent)),
        }
    }

    /// What a proxy was asked for: also lent addresses mean their names there.
    pub(super) fn reach_as_asked<'a>(
        &self,
        live: &'a Live,
        asked: &Endpoint,
    ) -> Result<Reached<'a>, Refusal> {
        match self.names.meaning(asked.host.clone()) {
            Meaning::Host(host) => {
                let port = asked.port;
                self.reach(live, &Endpoint { host, port })
            }
            Meaning::NeverLent => {
                Err(self.refuse(Denial::of(&asked.host, asked.port, Cause::NeverLent)))
            }
        }
    }

    /// Connects to what was meant, if it is allowed.
    pub(super) fn reach<'a>(
        &self,
        live: &'a Live,
        meant: &Endpoint,
    ) -> Result<Reached<'a>, Refusal> {
        match &meant.host {
            Host::Name(name) if name.is_localhost() => self.reach_localhost(live, meant),
            host => self.reach_host(live, meant, host),
        }
    }

    /// By the entries of the addresses that `localhost` has everywhere.
    fn reach_localhost<'a>(
        &self,
        live: &'a Live,
        meant: &Endpoint,
    ) -> Result<Reached<'a>, Refusal> {
        let targets: Vec<_> = LOCALHOST
            .iter()
            .filter_map(|address| {
                let host = Host::Address(*address);
                let entry = self.entry(&host, meant.port)?;
                entry.target(&host, (*address).into(), meant.port).ok()
            })
            .collect();
        if targets.is_empty() {
            return Err(self.refuse(Denial::of(&meant.host, meant.port, Cause::Localhost)));
        }
        self.dial(live, meant, &targets)
    }

    fn reach_host<'a>(
        &self,
        live: &'a Live,
        meant: &Endpoint,
        host: &Host,
    ) -> Result<Reached<'a>, Refusal> {
        let deny = |cause| self.refuse(Denial::of(host, meant.port, cause));
        let Some(entry) = self.entry(host, meant.port) else {
            return Err(deny(Cause::NotAllowed));
        };
        if let Some(upstream) = self.upstream.as_ref().filter(|_| !is_own(host)) {
            let passage = self.ledger.pass(Place::from(meant));
            let reached = upstream.reach(live, &self.resolver, meant, &self.limits);
            return match reached {
                Ok((server, ahead)) => Ok(Reached {
                    server,
                    ahead,
                    passage,
                }),
                Err(fault) => Err(failed(passage, fault)),
            };
        }
        let addresses = match host {
            Host::Address(address) => vec![Address::from(*address)],
            Host::Name(name) => match resolve(live, &self.resolver, name) {
                Ok(addresses) => addresses,
                // The name was asked for outside, so it was let through.
                Err(fault) => return Err(failed(self.ledger.pass(Place::from(meant)), fault)),
            },
        };
        let mut first_fault = None;
        let mut targets = Vec::new();
        for address in addresses {
            let is_name = matches!(host, Host::Name(_));
            let target = entry.target(host, address, meant.port);
            match target {
                Ok(_) if is_name && is_near(address.ip()) => {
                    first_fault.get_or_insert(TargetFault::Near(address.ip()));
                }
                Ok(target) => targets.push(target),
                Err(fault) => {
                    first_fault.get_or_insert(fault);
                }
            }
        }
        match first_fault {
            Some(fault) if targets.is_empty() => Err(deny(Cause::Target(fault))),
            _ => self.dial(live, meant, &targets),
        }
    }

    fn dial<'a>(
        &self,
        live: &'a Live,
        meant: &Endpoint,
        targets: &[Target],
    ) -> Result<Reached<'a>, Refusal> {
        let passage = self.ledger.pass(Place::from(meant));
        let addresses: Vec<_> = targets.iter().copied().map(self.place).collect();
        match dial(live, &addresses, self.limits.dial) {
            Ok(server) => Ok(Reached {
                server,
                ahead: Vec::new(),
                passage,
            }),
            Err(error) => Err(failed(passage, DialFault::connecting(meant, &error))),
        }
    }

    /// What an entry says of a host and a port does not depend on which of
    /// those that match is taken.
    fn entry(&self, host: &Host, port: u16) -> Option<&Allow> {
        self.allow.iter().find(|entry| entry.matches(host, port))
    }

    fn refuse(&self, denial: Denial) -> Refusal {
        self.ledger.deny(&denial);
        Refusal::Denied(denial)
    }
}

fn failed(passage: Passage, fault: DialFault) -> Refusal {
    passage.fail(&fault.text);
    Refusal::Failed(fault)
}

/// Whether it is this machine, which no upstream proxy stands before.
fn is_own(host: &Host) -> bool {
    matches!(host, Host::Address(address) if address.is_loopback())
}

impl Refusal {
    /// For a client that can be told.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Denied(denial) => denial.to_string(),
            Self::Failed(fault) => fault.to_string(),
        }
    }

    pub(super) fn fault_kind(&self) -> Option<FaultKind> {
        match self {
            Self::Denied(_) => None,
            Self::Failed(fault) => Some(fault.kind),
        }
    }
}

/// In the order in which they are tried.
pub(super) const LOCALHOST: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];
