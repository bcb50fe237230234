//! What was enforced on a confined child (SPEC §5.7).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::wire::digest::{Digest, SystemCallFilters};

/// What was enforced, as the child's own process found it after the last
/// restriction and before the program began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confined {
    /// Files, and what else Landlock ends.
    pub landlock: Landlock,
    /// System calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<Seccomp>,
    /// What became of the network.
    pub network: NetworkMode,
    /// Who saw to it that a name leads to a public address; only where hosts
    /// are reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_check: Option<AddressCheck>,
    /// Whether modes, owners, times and attributes may be changed by path.
    pub metadata: MetadataMode,
    /// The namespaces that are the child's own, by kind, with their inodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub namespaces: BTreeMap<String, u64>,
    /// Whether the child has no capability and can gain none.
    pub no_capabilities: bool,
    /// Whether no program can gain privileges.
    pub no_new_privs: bool,
    /// What the child may reach of the file system.
    pub grants: Vec<PathGrant>,
    /// Where it may connect to, as `HOST:PORT[,PORT...]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The variables that the operator let through by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// What the operator left open, like `unix-sockets`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<String>,
    /// What this machine could not enforce.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
    /// Whether less than was asked for would have been borne.
    pub best_effort: bool,
    /// Built-in paths that are not on this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// What was tried under the restrictions, and refused as it should be.
    pub self_tests: Vec<String>,
    /// What one process may use at most.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
}

/// Why confinement was not put in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The cause.
    pub cause: String,
}

/// What Landlock enforces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landlock {
    /// The ABI that was used; 0 when nothing is enforced.
    pub abi: u32,
    /// The kernel's, when it is newer than any that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_abi: Option<u32>,
    /// File rights that are refused unless a rule gives them.
    pub handled: Vec<String>,
    /// What rules give, by class of access.
    pub rights: BTreeMap<String, Vec<String>>,
    /// TCP and UDP operations that are refused.
    pub net: Vec<String>,
    /// What ends at the fence besides files.
    pub scopes: Vec<String>,
    /// Faults of Landlock that the kernel has fixed, by number.
    pub errata: Vec<u32>,
}

/// The system call filters in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seccomp {
    /// SHA-256 over the programs (SPEC §5.7).
    pub digest: Digest<SystemCallFilters>,
    /// How many programs.
    pub filters: u32,
    /// How many instructions they have together.
    pub instructions: u32,
}

/// What became of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkMode {
    /// The child is in a network namespace of its own that leads nowhere.
    DeniedNetns,
    /// Every inet socket is refused by the system call filters.
    DeniedSeccomp,
    /// The listed hosts on the listed ports, through aegis.
    HostPort,
    /// Any host, on the listed ports.
    PortOnly,
    /// Not enforced.
    Unrestricted,
}

/// Who checked the addresses that names lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressCheck {
    /// aegis, which dialled exactly what it had checked.
    Direct,
    /// Nobody here: an upstream proxy resolves.
    Upstream,
}

/// Whether modes, owners, times and attributes may be changed by path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetadataMode {
    /// Refused, whatever the path.
    Denied,
    /// Not confined: of every file that the account owns.
    Allowed,
}

/// A path that the child may reach, with all beneath it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathGrant {
    /// Without links and dots.
    pub path: String,
    /// `read`, `read_execute`, `read_write`, `read_write_execute`, `device`.
    pub access: String,
    /// Who asked for it: `user`, `built_in`, `command`, `private`.
    pub origin: String,
    /// Device and inode, `DEV:INO` in decimal, where they were fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

/// What one process may use at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Processes and threads of the account in its user namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Bytes of address space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Open files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
}

impl Limits {
    /// Whether nothing is bounded.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for NetworkMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeniedNetns => "denied-netns",
            Self::DeniedSeccomp => "denied-seccomp",
            Self::HostPort => "host-port",
            Self::PortOnly => "port-only",
            Self::Unrestricted => "unrestricted",
        })
    }
}
