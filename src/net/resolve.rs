//! Names to addresses of known class.
//!
//! A resolver of our own, because the one of the C library cannot be bounded
//! and would read modules, caches and search lists that the record knows
//! nothing of. It is a stub: it reads the hosts file, asks the name servers of
//! `resolv.conf` for A and AAAA, and believes their recursion. Both files are
//! read anew for each name, so a machine that changes networks stays reachable.
//! Names are absolute: search lists and `ndots` play no part.
//!
//! What it gives is not yet permission: see [`super::allow::Allow::target`].

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::address::Address;
use super::host::Name;
use crate::wire::escape::EscapedPath;
use conf::{Conf, FileFault};
use message::{Kind, Query, Reply};
use transport::AskFault;

mod conf;
mod hosts;
mod message;
mod transport;

/// Looks names up as this machine is configured.
#[derive(Clone, Debug)]
pub(crate) struct Resolver {
    hosts: PathBuf,
    resolv_conf: PathBuf,
}

/// Why a name has no addresses.
#[derive(Debug, Error)]
pub(crate) enum ResolveError {
    /// A configuration file cannot be used.
    #[error("{}: {fault}", EscapedPath(path))]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        fault: FileFault,
    },
    /// No such name: NXDOMAIN, or a name that is never asked for.
    #[error("there is no host `{0}`; check the spelling of the name")]
    NotFound(Name),
    /// The name exists without an address.
    #[error("`{0}` has no address; check that the name is of a host")]
    NoAddress(Name),
    /// No name server gave an answer that can be used.
    #[error(
        "`{name}` could not be resolved: {fault}; check the name servers in {}",
        EscapedPath(resolv_conf)
    )]
    Failed {
        /// What was asked for.
        name: Name,
        /// What the last one did.
        fault: LookupFault,
        /// Where they stand.
        resolv_conf: PathBuf,
    },
}

/// What went wrong with the last server that was asked.
#[derive(Debug, Error)]
pub(crate) enum LookupFault {
    /// It was not asked, or did not answer.
    #[error("{0}")]
    Ask(#[from] AskFault),
    /// It answered that it failed: the response code of RFC 1035 §4.1.1.
    #[error("the name server answered {}", message::Rcode(*.0))]
    Rcode(u8),
    /// Its answer makes no sense.
    #[error("the name server's answer {0}")]
    Unusable(&'static str),
    /// Past [`TOTAL_MS`], before a server was asked.
    #[error("no answer within {TOTAL_MS} ms")]
    TooLate,
    /// No thread for the second question.
    #[error("no thread to ask on: {0}")]
    Thread(io::Error),
}

/// What the name servers say about one name and one kind of address.
#[derive(Debug)]
enum Found {
    Addresses(Vec<Address>),
    NotFound,
}

impl Resolver {
    /// Of this machine: `/etc/hosts` and `/etc/resolv.conf`.
    pub(crate) fn system() -> Self {
        Self::with_files("/etc/hosts", "/etc/resolv.conf")
    }

    /// With files of the same form elsewhere.
    pub(crate) fn with_files(hosts: impl AsRef<Path>, resolv_conf: impl AsRef<Path>) -> Self {
        Self {
            hosts: hosts.as_ref().to_owned(),
            resolv_conf: resolv_conf.as_ref().to_owned(),
        }
    }

    /// The name servers that programs of this machine ask by UDP on port 53;
    /// none where the configuration cannot be read, or where they are of one
    /// link only.
    pub(crate) fn name_servers(&self) -> Vec<IpAddr> {
        let servers = Conf::read(&self.resolv_conf).map(|conf| conf.servers);
        let mut addresses: Vec<_> = servers
            .unwrap_or_default()
            .into_iter()
            .filter(|server| !matches!(server, SocketAddr::V6(v6) if v6.scope_id() != 0))
            .map(|server| server.ip())
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// Whom it asks, in that order: at least one.
    ///
    /// # Errors
    /// When the configuration cannot be read, or names none.
    pub(crate) fn asked(&self) -> Result<Vec<IpAddr>, FileFault> {
        let conf = Conf::read(&self.resolv_conf)?;
        Ok(conf.servers.iter().map(SocketAddr::ip).collect())
    }

    /// The addresses of `name`: at least one, at most [`MAX_ADDRESSES`], each
    /// once, IPv4 first. Takes at most about [`TOTAL_MS`].
    ///
    /// A name in the hosts file is not asked for, whatever family of address
    /// the file has for it.
    pub(crate) fn resolve(&self, name: &Name) -> Result<Vec<Address>, ResolveError> {
        let listed = hosts::read(&self.hosts, name).map_err(|fault| ResolveError::File {
            path: self.hosts.clone(),
            fault,
        })?;
        if !listed.is_empty() {
            return Ok(listed.into_iter().map(Address::from).collect());
        }
        if is_never_asked(name) {
            return Err(ResolveError::NotFound(name.clone()));
        }
        let conf = Conf::read(&self.resolv_conf).map_err(|fault| ResolveError::File {
            path: self.resolv_conf.clone(),
            fault,
        })?;
        match look_up(&conf, name) {
            Ok(Found::Addresses(addresses)) if addresses.is_empty() => {
                Err(ResolveError::NoAddress(name.clone()))
            }
            Ok(Found::Addresses(addresses)) => Ok(addresses),
            Ok(Found::NotFound) => Err(ResolveError::NotFound(name.clone())),
            Err(fault) => Err(ResolveError::Failed {
                name: name.clone(),
                fault,
                resolv_conf: self.resolv_conf.clone(),
            }),
        }
    }
}

/// Names whose question would leave the machine for nothing: local ones and
/// those that no name server may know (RFC 6761 §6.3 and §6.4, RFC 7686 §2).
fn is_never_asked(name: &Name) -> bool {
    matches!(
        name.labels().next_back(),
        Some("localhost" | "invalid" | "onion")
    )
}

/// Asks for both kinds at once. One kind of address is enough; that the name
/// does not exist is believed when either answer says so.
fn look_up(conf: &Conf, name: &Name) -> Result<Found, LookupFault> {
    let deadline = Instant::now() + conf.total;
    let (a, aaaa) = thread::scope(|scope| {
        let second = thread::Builder::new()
            .name("resolve".to_owned())
            .spawn_scoped(scope, || ask_for(conf, name, Kind::Aaaa, deadline));
        let a = ask_for(conf, name, Kind::A, deadline);
        let aaaa = match second {
            Ok(thread) => thread
                .join()
                .unwrap_or(Err(LookupFault::Unusable("could not be read"))),
            Err(error) => Err(LookupFault::Thread(error)),
        };
        (a, aaaa)
    });
    match (a, aaaa) {
        (Ok(Found::Addresses(mut v4)), Ok(Found::Addresses(v6))) => {
            // IPv6 may say IPv4 in another form.
            for address in v6 {
                if !v4.contains(&address) && v4.len() < MAX_ADDRESSES {
                    v4.push(address);
                }
            }
            Ok(Found::Addresses(v4))
        }
        (Ok(Found::Addresses(some)), _) | (_, Ok(Found::Addresses(some))) if !some.is_empty() => {
            Ok(Found::Addresses(some))
        }
        (Ok(Found::NotFound), _) | (_, Ok(Found::NotFound)) => Ok(Found::NotFound),
        (Err(fault), _) | (_, Err(fault)) => Err(fault),
    }
}

/// Asks the servers in turn, each as often as the configuration says.
fn ask_for(conf: &Conf, name: &Name, kind: Kind, deadline: Instant) -> Result<Found, LookupFault> {
    let mut last = LookupFault::TooLate;
    for _ in 0..conf.tries {
        for server in &conf.servers {
            let left = deadline.saturating_duration_since(Instant::now());
            if left < MIN_WAIT {
                return Err(last);
            }
            // A fresh id and a fresh port for each question: see `transport`.
            let query = Query::new(name, kind);
            let wait = conf.timeout.min(left);
            let reply = query
                .map_err(AskFault::Random)
                .and_then(|query| transport::ask(*server, &query, wait, conf.tcp_only));
            last = match reply {
                Ok(Reply::Addresses(addresses)) => {
                    return Ok(Found::Addresses(
                        addresses.into_iter().map(Address::from).collect(),
                    ));
                }
                Ok(Reply::NotFound) => return Ok(Found::NotFound),
                Ok(Reply::Truncated) => LookupFault::Unusable("is cut short"),
                Ok(Reply::Failed(rcode)) => LookupFault::Rcode(rcode),
                Ok(Reply::Unusable(why)) => LookupFault::Unusable(why),
                Err(fault) => fault.into(),
            };
        }
    }
    Err(last)
}

/// Of one name. More are never dialled.
pub(crate) const MAX_ADDRESSES: usize = 16;

/// For one name, whatever the configuration asks for.
pub(crate) const TOTAL_MS: u64 = 30_000;

/// A socket cannot wait for no time at all.
const MIN_WAIT: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
