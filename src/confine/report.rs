//! What the helper found of itself, after the last restriction and before the
//! program begins.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::landlock::Enforced;
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
    /// What this machine could not enforce, those of Landlock among it.
    pub(crate) gaps: Vec<String>,
    /// What was tried under the restrictions, and refused as it should be.
    pub(crate) self_tests: Vec<String>,
}
