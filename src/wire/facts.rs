//! What an `open` Line says of its Session besides the format's own members:
//! who wrote it, how durable it is, what it wraps (SPEC §5).

mod confined;
mod egress;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::digest::{Digest, Line, PolicySet, Text};

pub use confined::{
    AddressCheck, Confined, Failed, Landlock, Limits, MetadataMode, NetworkMode, PathGrant, Seccomp,
};
pub use egress::{Destination, Egress, EgressOverlapping};

/// The program that wrote the Session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emitter {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it was doing, like `wrap`.
    pub verb: String,
}

/// When a Line is flushed to the disk (SPEC §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Intent and outcome are each flushed before going on.
    Full,
    /// The intent is flushed before the request goes on; the outcome is
    /// written before the answer goes on and flushed soon after.
    Intent,
    /// Nothing is flushed: what a killed process wrote survives, what was
    /// written before a power cut may not.
    Process,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Intent => "intent",
            Self::Process => "process",
        })
    }
}

/// The process that is wrapped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// The program as it was named.
    pub program: String,
    /// SHA-256 over every argument, the program first, each followed by a NUL
    /// byte. Arguments can hold secrets, so they are not recorded themselves.
    pub argv_digest: Digest<Text>,
}

/// The policy that a Session began under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyInForce {
    /// What is done with its verdicts.
    pub status: PolicyStatus,
    /// The Policy Set.
    pub policy_set_hash: Digest<PolicySet>,
}

/// What is done with the verdicts of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyStatus {
    /// What it does not allow is refused.
    Enforced,
    /// Nothing is refused; each outcome says what would have been decided.
    Shadow,
}

/// What is enforced on the child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Confinement {
    /// Nothing: the child has the authority of its account.
    None,
    /// All that was asked for.
    Full(Box<Confined>),
    /// Less than was asked for, which the operator bore (`--best-effort`).
    Partial(Box<Confined>),
    /// It could not be put in force, so there never was a child.
    Failed(Failed),
}

/// A Segment that this Session's Segment comes after, and anchors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follows {
    /// Its bare file name in the same directory.
    pub segment: String,
    /// The hash of its last Line.
    pub tail: Digest<Line>,
}
