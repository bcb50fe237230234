//! What the helper found of itself, after the last restriction and before the
//! program begins.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::landlock::Enforced;
use super::order::{Order, Wanted};
use super::process::{self, Status};
use super::start_error::StartError::{self, Contradicted};
use crate::wire::facts::{NetworkMode, Seccomp};

/// What is in force. The parent holds it against `/proc` before it believes
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Report {
    /// Files, and what else Landlock ends.
    pub(crate) landlock: Enforced,
    /// System calls; none only where the operator bears it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seccomp: Option<Seccomp>,
    /// What became of the network.
    pub(crate) network: NetworkMode,
    /// The namespaces that are its own, by kind (`ipc`, `net`, `user`), with
    /// their inodes.
    pub(crate) namespaces: BTreeMap<String, u64>,
    /// Whether it has no capability and can gain none.
    pub(crate) no_capabilities: bool,
    /// Whether no program can gain privileges.
    pub(crate) no_new_privs: bool,
    /// What this machine could not enforce besides the gaps of Landlock.
    pub(crate) gaps: Vec<String>,
    /// What was tried under the restrictions, and refused as it should be.
    pub(crate) self_tests: Vec<String>,
}

impl Report {
    /// Holds it against what was ordered and against what the kernel says of
    /// the process that made it.
    ///
    /// # Errors
    /// When it claims more, or does less.
    pub(super) fn check(
        &self,
        order: &Order,
        pid: u32,
        has_sockets: bool,
    ) -> Result<(), StartError> {
        self.check_order(order, has_sockets)?;
        self.check_status(&Status::of(pid).map_err(StartError::Unseen)?)?;
        let held = process::namespaces(&pid.to_string()).map_err(StartError::Unseen)?;
        let ours = process::namespaces("thread-self").map_err(StartError::Unseen)?;
        let is_own = |(kind, inode): (&String, &u64)| {
            held.get(kind) == Some(inode) && ours.get(kind) != Some(inode)
        };
        match self.namespaces.iter().all(is_own) {
            true => Ok(()),
            false => Err(Contradicted("its namespaces are its own")),
        }
    }

    fn check_order(&self, order: &Order, has_sockets: bool) -> Result<(), StartError> {
        let is_borne = order.profile.best_effort;
        let is_whole = match self.network {
            NetworkMode::DeniedNetns => order.network == Wanted::Denied && order.namespace,
            NetworkMode::DeniedSeccomp => order.network == Wanted::Denied && !order.namespace,
            NetworkMode::HostPort => order.network != Wanted::Denied && order.namespace,
            NetworkMode::PortOnly => order.network != Wanted::Denied && is_borne,
            NetworkMode::Unrestricted => is_borne,
        };
        let has_all = self.namespaces.len() == process::NAMESPACES.len();
        let is_filtered = self.seccomp.is_some();
        for (holds, claim) in [
            (is_whole, "the network is as it was ordered"),
            (
                has_sockets == (self.network == NetworkMode::HostPort),
                "its sockets are answered",
            ),
            (has_all == order.namespace, "it is in namespaces"),
            (is_filtered || is_borne, "system calls are filtered"),
            (self.landlock.abi > 0 || is_borne, "files are fenced"),
            (self.no_capabilities, "it has no capabilities"),
            (self.no_new_privs, "it can gain no privileges"),
        ] {
            if !holds {
                return Err(Contradicted(claim));
            }
        }
        Ok(())
    }

    fn check_status(&self, status: &Status) -> Result<(), StartError> {
        // One that gains nothing by executing may keep what it could gain.
        let may_gain = status.bounding != 0 && !self.namespaces.is_empty();
        let filters = self.seccomp.as_ref().map_or(0, |seccomp| seccomp.filters);
        let are_loaded = status.filters.is_none_or(|held| held >= u64::from(filters));
        for (holds, claim) in [
            (status.threads == 1, "it has one thread"),
            (
                status.capabilities == 0 && !may_gain,
                "it has no capabilities",
            ),
            (status.no_new_privs, "it can gain no privileges"),
            (
                filters == 0 || status.seccomp == FILTERED && are_loaded,
                "system calls are filtered",
            ),
        ] {
            if !holds {
                return Err(Contradicted(claim));
            }
        }
        Ok(())
    }
}

/// SECCOMP_MODE_FILTER
const FILTERED: u64 = 2;

#[cfg(test)]
mod tests;
