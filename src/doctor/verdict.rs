//! What `--confine` could enforce here.

use serde::Serialize;

use super::answers::{Answers, Landlock};
use super::probe::Namespaces;

/// Of each fence, how much of it would stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Verdict {
    /// All of it.
    pub(crate) confine: Extent,
    pub(crate) files: Extent,
    pub(crate) system_calls: Extent,
    pub(crate) network: Network,
    /// What `--best-effort` makes of a network that is denied only.
    pub(crate) best_effort_network: BestEffort,
}

/// How much is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Extent {
    /// Everything that is asked for.
    Full,
    /// Nothing is started, unless with `--best-effort`.
    Refused,
}

/// What can be done about the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Network {
    /// It is held to hosts and ports, or denied.
    HostPort,
    /// It can only be denied.
    Denied,
    /// Nothing; nothing is started either.
    Refused,
    /// It can be denied; whether more is possible is not known.
    Unknown,
}

/// What is left of hosts and ports without namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BestEffort {
    /// Nothing has to be left.
    HostPort,
    /// Any host, on the ports.
    PortOnly,
    /// No rule at all.
    Unrestricted,
}

impl Verdict {
    /// From what was tried.
    pub(super) fn of(answers: &Answers) -> Self {
        let (files, abi) = match &answers.landlock {
            Landlock::Enforced { abi, gaps, .. } if gaps.is_empty() => (Extent::Full, *abi),
            Landlock::Enforced { abi, .. } => (Extent::Refused, *abi),
            Landlock::TooOld { abi, .. } => (Extent::Refused, *abi),
            Landlock::Unavailable | Landlock::Failed(_) => (Extent::Refused, 0),
        };
        let system_calls = match answers.filters {
            Ok(_) => Extent::Full,
            Err(_) => Extent::Refused,
        };
        let confine = files.max(system_calls);
        let network = match (confine, &answers.namespaces) {
            (Extent::Refused, _) => Network::Refused,
            (_, Namespaces::Given) => Network::HostPort,
            (_, Namespaces::Refused(_)) => Network::Denied,
            (_, Namespaces::Unknown(_)) => Network::Unknown,
        };
        Self {
            confine,
            files,
            system_calls,
            network,
            best_effort_network: match &answers.namespaces {
                Namespaces::Given => BestEffort::HostPort,
                _ if abi >= TCP_PORTS_SINCE && answers.filters.is_ok() => BestEffort::PortOnly,
                _ => BestEffort::Unrestricted,
            },
        }
    }
}

/// The first ABI of Landlock that knows ports.
const TCP_PORTS_SINCE: u32 = 4;
