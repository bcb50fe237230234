//! What the parent tells the helper, in one environment variable.
//!
//! Whoever starts the helper by hand can forge it, and gains nothing: every
//! member takes something from the program that the caller could have started
//! without.

use std::ffi::OsStr;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::door::Door;
use super::profile::Profile;
use super::seccomp::Metadata;
use crate::wire::escape::Escaped;
use crate::wire::facts::Limits;

/// The variable that carries an [`Order`].
pub(crate) const VARIABLE: &str = "AEGIS_CONFINE_PROFILE";

/// A whole order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    /// The absolute path of the parent's socket. Beside it lies a file that
    /// the helper must not be able to open in the end.
    pub(crate) socket: String,
    /// A port of the host's 127.0.0.1 where the parent listens, and which must
    /// not be reached. None where the host has no such address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) canary_port: Option<u16>,
    /// Whether namespaces are tried. Without, see [`Order::without_namespace`].
    pub(crate) namespace: bool,
    /// Paths and variables.
    pub(crate) profile: Profile,
    /// What may be reached.
    pub(crate) network: Wanted,
    /// Whether modes, owners, times and attributes may be changed by path.
    pub(crate) metadata: Metadata,
    /// What one process may use at most.
    pub(crate) limits: Limits,
}

/// What may be reached over the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Wanted {
    /// Nothing: a namespace of its own where the machine gives one, filters
    /// otherwise.
    Denied,
    /// Hosts, through listeners in a namespace of its own that the parent
    /// answers.
    Hosts {
        /// Every allowed port, ascending, at most [`MAX_PORTS`].
        ports: Vec<u16>,
        /// Where the proxy listens on 127.0.0.1: none of `ports`.
        proxy_port: u16,
        /// Where names are asked for, besides 127.0.0.1 and ::1; at most
        /// [`MAX_NAME_SERVERS`].
        name_servers: Vec<IpAddr>,
    },
}

/// Why something is no order.
#[derive(Debug, Error)]
pub(crate) enum OrderError {
    /// There is none.
    #[error("{VARIABLE} is unset: this verb is aegis's own, started by `aegis wrap --confine`")]
    Unset,
    /// It means nothing.
    #[error("invalid {VARIABLE}: {}", Escaped(.0))]
    Invalid(String),
    /// It does not fit into a variable.
    #[error(
        "the paths and variables of this confinement take {bytes} bytes, and at most {MAX_BYTES} can be handed over; grant directories instead of single files"
    )]
    TooLong {
        /// What it takes.
        bytes: usize,
    },
    /// Too many listeners.
    #[error("--allow-net names {0} ports, and at most {MAX_PORTS} can be listened on; name fewer")]
    Ports(usize),
    /// Too many name servers.
    #[error("{0} name servers are configured, and at most {MAX_NAME_SERVERS} can be stood in for")]
    NameServers(usize),
    /// aegis answers there.
    #[error(
        "--allow-net cannot name port 53: inside the confinement names are asked for there, and aegis answers"
    )]
    DnsPort,
    /// No port.
    #[error("--allow-net names port 0, which nothing listens on; name another")]
    NoPort,
    /// Two listeners on one port.
    #[error("port {0} is to be the proxy's, and is allowed by --allow-net too")]
    ProxyPort(u16),
    /// A limit under which nothing could run, the helper neither.
    #[error("{flag} needs at least {least}{unit}, got {got}")]
    Limit {
        /// What sets it.
        flag: &'static str,
        /// What is needed.
        least: u64,
        /// What is counted, unless the flag says it.
        unit: &'static str,
        /// What was asked for.
        got: u64,
    },
}

impl Order {
    /// An order to a helper that will come to `door`.
    ///
    /// # Errors
    /// When it asks for what no helper could do.
    pub(crate) fn new(
        door: &Door,
        profile: Profile,
        network: Wanted,
        metadata: Metadata,
        limits: Limits,
    ) -> Result<Self, OrderError> {
        let order = Self {
            socket: door.path().to_owned(),
            canary_port: door.canary_port(),
            namespace: true,
            profile,
            network,
            metadata,
            limits,
        };
        order.check()?;
        order.to_variable()?;
        Ok(order)
    }

    /// The same where the machine gives no namespaces, when that is allowed:
    /// denying all needs none, and reaching hosts without one means any host
    /// on the same ports, which the operator has to bear (`--best-effort`).
    pub(crate) fn without_namespace(&self) -> Option<Self> {
        let is_borne = self.network == Wanted::Denied || self.profile.best_effort;
        (self.namespace && is_borne).then(|| {
            let mut order = self.clone();
            order.namespace = false;
            // There is no proxy then.
            let set = &mut order.profile.set_variables;
            set.retain(|(name, _)| !PROXY_VARIABLES.contains(&name.as_str()));
            order
        })
    }

    /// Reads the value of [`VARIABLE`].
    ///
    /// # Errors
    /// When it is none, or no whole and sound order.
    pub(super) fn from_variable(value: Option<&OsStr>) -> Result<Self, OrderError> {
        let value = value.ok_or(OrderError::Unset)?;
        let invalid = |why: &dyn std::fmt::Display| OrderError::Invalid(why.to_string());
        let value = value.to_str().ok_or_else(|| invalid(&"it is not UTF-8"))?;
        let order: Self = serde_json::from_str(value).map_err(|error| invalid(&error))?;
        order.check().map_err(|error| invalid(&error))?;
        if !order.socket.starts_with('/') {
            return Err(invalid(&"the path of the socket is not absolute"));
        }
        if !order.profile.program.starts_with('/') {
            return Err(invalid(&"the path of the program is not absolute"));
        }
        Ok(order)
    }

    /// The value of [`VARIABLE`].
    ///
    /// # Errors
    /// When it is too long.
    pub(super) fn to_variable(&self) -> Result<String, OrderError> {
        let value =
            serde_json::to_string(self).map_err(|error| OrderError::Invalid(error.to_string()))?;
        match value.len() {
            0..=MAX_BYTES => Ok(value),
            bytes => Err(OrderError::TooLong { bytes }),
        }
    }

    fn check(&self) -> Result<(), OrderError> {
        if let Wanted::Hosts {
            ports,
            proxy_port,
            name_servers,
        } = &self.network
        {
            check_ports(ports, *proxy_port)?;
            if name_servers.len() > MAX_NAME_SERVERS {
                return Err(OrderError::NameServers(name_servers.len()));
            }
        }
        check_limits(&self.limits)
    }
}

/// Variables that tell a program of a proxy.
pub(crate) const PROXY_VARIABLES: [&str; 9] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "NODE_USE_ENV_PROXY",
];

/// A port for the proxy that none of `ports` takes: the customary one of
/// proxies, or the next above it that is free.
pub(crate) fn proxy_port(ports: &[u16]) -> u16 {
    (PROXY_PORT..u16::MAX)
        .find(|port| !ports.contains(port))
        .unwrap_or(PROXY_PORT)
}

/// Passes limits under which a helper can do its work.
///
/// # Errors
/// Names the one that is too low.
pub(crate) fn check_limits(limits: &Limits) -> Result<(), OrderError> {
    let limits = [
        ("--max-procs", limits.processes, 1, ""),
        (
            "--max-memory",
            limits.memory_bytes,
            LEAST_MEMORY_BYTES,
            " bytes",
        ),
        ("--max-files", limits.files, LEAST_FILES, ""),
    ];
    for (flag, limit, least, unit) in limits {
        if let Some(got) = limit.filter(|&limit| limit < least) {
            return Err(OrderError::Limit {
                flag,
                least,
                unit,
                got,
            });
        }
    }
    Ok(())
}

/// Passes ports, in ascending order, that can be listened on besides the
/// proxy's and that for names.
///
/// # Errors
/// Names the one that cannot, or tells that there are too many.
pub(crate) fn check_ports(ports: &[u16], proxy_port: u16) -> Result<(), OrderError> {
    if ports.len() > MAX_PORTS {
        return Err(OrderError::Ports(ports.len()));
    }
    if ports.contains(&DNS_PORT) || proxy_port == DNS_PORT {
        return Err(OrderError::DnsPort);
    }
    if ports.contains(&0) || proxy_port == 0 {
        return Err(OrderError::NoPort);
    }
    if ports.contains(&proxy_port) {
        return Err(OrderError::ProxyPort(proxy_port));
    }
    if !ports.is_sorted_by(|a, b| a < b) {
        let why = "the ports are not in ascending order";
        return Err(OrderError::Invalid(why.to_owned()));
    }
    Ok(())
}

/// Where names are asked for (RFC 1035, section 4.2).
pub(super) const DNS_PORT: u16 = 53;

/// The kernel takes strings of less than 128 KiB, the name included
/// (MAX_ARG_STRLEN).
const MAX_BYTES: usize = 120 << 10;

/// With the proxy's and those of names they fit into one message, which takes
/// 253 descriptors (SCM_MAX_FD).
const MAX_PORTS: usize = 200;

/// The C library reads three (MAXNS).
pub(crate) const MAX_NAME_SERVERS: usize = 16;

const PROXY_PORT: u16 = 3128;

/// Below it the helper itself could not go on.
const LEAST_MEMORY_BYTES: u64 = 64 << 20;

/// Standard streams, the socket, and what restricting oneself opens.
const LEAST_FILES: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::handshake::MAX_DESCRIPTORS;

    fn order() -> Order {
        Order {
            socket: "/door".to_owned(),
            canary_port: Some(40_000),
            namespace: true,
            profile: Profile {
                program: "/bin/true".to_owned(),
                ..Profile::default()
            },
            network: Wanted::Denied,
            metadata: Metadata::Denied,
            limits: Limits::default(),
        }
    }

    fn hosts(ports: Vec<u16>, name_servers: usize) -> Order {
        Order {
            network: Wanted::Hosts {
                ports,
                proxy_port: 3128,
                name_servers: vec![IpAddr::from([127, 0, 0, 1]); name_servers],
            },
            ..order()
        }
    }

    #[test]
    fn an_order_arrives_as_it_was_given() {
        for order in [order(), hosts(vec![80, 443], 2)] {
            let value = order.to_variable().unwrap();
            let read = Order::from_variable(Some(OsStr::new(&value))).unwrap();
            assert_eq!(read, order);
        }
    }

    #[test]
    fn what_is_handed_over_is_bounded() {
        let filled = |bytes: usize| {
            let mut order = order();
            order.profile.skipped.push("x".repeat(bytes));
            order
        };
        let rest = filled(0).to_variable().unwrap().len();
        let longest = filled(MAX_BYTES - rest).to_variable().unwrap();
        assert_eq!(longest.len(), MAX_BYTES);
        // The kernel takes it, with the name and what stands between.
        assert!(VARIABLE.len() + 2 + MAX_BYTES <= 128 << 10);
        let error = filled(MAX_BYTES - rest + 1).to_variable().unwrap_err();
        assert!(matches!(error, OrderError::TooLong { bytes } if bytes == MAX_BYTES + 1));
    }

    #[test]
    fn ports_and_name_servers_are_bounded_and_sound() {
        let ports = |count: u16| (1000..1000 + count).collect::<Vec<u16>>();
        hosts(ports(200), MAX_NAME_SERVERS).check().unwrap();
        let refused = |order: Order| order.check().unwrap_err().to_string();
        assert!(refused(hosts(ports(201), 0)).contains("names 201 ports"));
        assert!(refused(hosts(vec![80], MAX_NAME_SERVERS + 1)).starts_with("17 name servers"));
        assert!(refused(hosts(vec![53], 0)).contains("aegis answers"));
        assert!(refused(hosts(vec![0, 80], 0)).contains("port 0"));
        assert!(refused(hosts(vec![80, 3128], 0)).starts_with("port 3128 is to be"));
        for odd in [vec![80, 79], vec![80, 80]] {
            assert!(refused(hosts(odd, 0)).contains("ascending order"));
        }
        // One message takes all of their sockets.
        const { assert!(1 + MAX_PORTS + 1 + MAX_NAME_SERVERS + 2 <= MAX_DESCRIPTORS) };
    }

    #[test]
    fn the_proxy_has_a_port_of_its_own() {
        assert_eq!(proxy_port(&[80, 443]), 3128);
        assert_eq!(proxy_port(&[3128, 3129]), 3130);
    }

    #[test]
    fn only_a_denial_or_a_bearing_operator_does_without_namespaces() {
        let without = order().without_namespace().unwrap();
        assert!(!without.namespace);
        assert_eq!(without.without_namespace(), None);
        let mut hosts = hosts(vec![80], 0);
        assert_eq!(hosts.without_namespace(), None);
        hosts.profile.best_effort = true;
        assert!(hosts.without_namespace().is_some());
    }
}
