//! The paths of a profile, enforced by Landlock on the calling thread and on
//! all that it starts.
//!
//! Every right that is known and that the kernel has is handled, so what no
//! rule gives is refused. What was enforced is a result, read from what the
//! kernel accepted, never from what was asked for.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, Erratum,
    LandlockStatus, NetPort, PathBeneath, RestrictSelfAttr as _, RestrictionStatus, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
    make_bitflags,
};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::preset::Access;
use super::profile::{Origin, Profile, Rule};
use crate::grant::root::{self, Kind};
use crate::wire::escape::Escaped;

/// Whether TCP is refused here too. Alone it would be no fence: the right
/// knows no hosts, and other protocols pass it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tcp<'a> {
    /// Nothing is bound or dialled.
    Denied,
    /// These ports are dialled, at any address. Nothing is bound.
    Ports(&'a [u16]),
    /// Another fence decides.
    LeftAlone,
}

/// What the kernel enforces now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Enforced {
    /// The ABI that was used; 0 when nothing is enforced.
    pub(crate) abi: u32,
    /// The kernel's, when it is newer than any that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kernel_abi: Option<u32>,
    /// Rights that are refused unless a rule gives them.
    pub(crate) handled: Vec<String>,
    /// What rules give, by class.
    pub(crate) rights: BTreeMap<String, Vec<String>>,
    /// TCP and UDP operations that are refused.
    pub(crate) net: Vec<String>,
    /// What ends at the fence besides files.
    pub(crate) scopes: Vec<String>,
    /// Faults of Landlock that this kernel has fixed, by number.
    pub(crate) errata: Vec<u32>,
    /// What this kernel cannot refuse.
    pub(crate) gaps: Vec<String>,
    /// Built-in paths that could not be opened.
    pub(crate) skipped: Vec<String>,
    /// Whether no program can gain privileges.
    pub(crate) no_new_privs: bool,
}

/// Why nothing is enforced.
#[derive(Debug, Error)]
pub(crate) enum LandlockError {
    /// The kernel has none.
    #[error(
        "this kernel offers no Landlock, by which files are fenced; use Linux 5.13 or later with landlock in its list of security modules (lsm=), and a container that lets its calls through, or give --best-effort to run without that fence"
    )]
    Unavailable,
    /// The kernel's leaves too much open.
    #[error(
        "this kernel offers Landlock ABI {abi}, which cannot refuse {gaps}; use Linux 6.12 or later, or give --best-effort to run all the same"
    )]
    TooOld {
        /// What it offers.
        abi: u32,
        /// What it leaves open.
        gaps: String,
    },
    /// A path cannot be opened any more.
    #[error("the granted path `{}` cannot be opened: {error}; make it accessible or grant another", Escaped(.path))]
    Path {
        /// The path.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// Something else has its name by now.
    #[error("the granted path `{}` is not what it was when it was granted; start again", Escaped(.0))]
    Replaced(String),
    /// The kernel refused a rule.
    #[error("the kernel took no rule for `{}`: {cause}; leave that path out", Escaped(.path))]
    Rule {
        /// The path.
        path: String,
        /// Why.
        cause: String,
    },
    /// The kernel refused the whole.
    #[error("landlock could not be put in force: {0}")]
    Ruleset(String),
}

/// Holds the calling thread to `profile`, for good.
///
/// # Errors
/// When not all of it can be enforced. The thread may then be restricted or
/// not, and must execute nothing.
pub(crate) fn restrict(profile: &Profile, tcp: Tcp<'_>) -> Result<Enforced, LandlockError> {
    restrict_at(best_abi(), profile, tcp)
}

/// The best ABI that kernel and library share.
pub(crate) fn best_abi() -> Option<ABI> {
    ALL_ABIS.into_iter().find(|&abi| offers(abi).is_ok())
}

fn restrict_at(
    abi: Option<ABI>,
    profile: &Profile,
    tcp: Tcp<'_>,
) -> Result<Enforced, LandlockError> {
    let Some(abi) = abi else {
        return match profile.best_effort {
            true => Ok(Enforced {
                gaps: owned(&["files"]),
                ..Enforced::default()
            }),
            false => Err(LandlockError::Unavailable),
        };
    };
    let gaps = gaps(abi);
    if abi < LEAST_ABI && !profile.best_effort {
        return Err(LandlockError::TooOld {
            abi: abi as u32,
            gaps: gaps.join(", "),
        });
    }
    let mut ruleset = create(abi, tcp).map_err(|e| LandlockError::Ruleset(cause(&e)))?;
    let mut skipped = Vec::new();
    let mut rights = BTreeMap::new();
    for rule in &profile.rules {
        let Some((descriptor, kind)) = open(rule)? else {
            skipped.push(rule.path.clone());
            continue;
        };
        let class = class_rights(rule.access, abi, profile.unix_sockets);
        rights.insert(rule.access.name().to_owned(), names(class));
        let given = match kind {
            Kind::Directory => class,
            // The kernel refuses a rule with rights that a file cannot have.
            Kind::File => class & AccessFs::from_file(abi),
        };
        ruleset = ruleset
            .add_rule(PathBeneath::new(descriptor, given))
            .map_err(|error| LandlockError::Rule {
                path: rule.path.clone(),
                cause: cause(&error),
            })?;
    }
    if let Tcp::Ports(ports) = tcp
        && abi >= ABI::V4
    {
        for &port in ports {
            ruleset = ruleset
                .add_rule(NetPort::new(port, AccessNet::ConnectTcp))
                .map_err(|e| LandlockError::Ruleset(cause(&e)))?;
        }
    }
    let status = put_in_force(ruleset, abi).map_err(|e| LandlockError::Ruleset(cause(&e)))?;
    let LandlockStatus::Available {
        effective_abi,
        kernel_abi,
    } = status.landlock
    else {
        return Err(LandlockError::Ruleset(NOT_WHOLE.to_owned()));
    };
    if status.ruleset != RulesetStatus::FullyEnforced {
        return Err(LandlockError::Ruleset(NOT_WHOLE.to_owned()));
    }
    Ok(Enforced {
        abi: abi.min(effective_abi) as u32,
        kernel_abi: kernel_abi.and_then(|abi| u32::try_from(abi).ok()),
        handled: names(AccessFs::from_all(abi)),
        rights,
        net: net_names(net_rights(abi, tcp)),
        scopes: scope_names(Scope::from_all(abi)),
        errata: errata(),
        gaps: owned(&gaps),
        skipped,
        no_new_privs: status.no_new_privs,
    })
}

/// A ruleset without rules: it refuses everything.
fn create(abi: ABI, tcp: Tcp<'_>) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    // An empty set is an error.
    let net = net_rights(abi, tcp);
    if !net.is_empty() {
        ruleset = ruleset.handle_access(net)?;
    }
    let scopes = Scope::from_all(abi);
    if !scopes.is_empty() {
        ruleset = ruleset.scope(scopes)?;
    }
    ruleset.create()
}

/// Denials after the next exec are what an administrator looks for; without
/// being asked the kernel notes only those before it.
fn put_in_force(ruleset: RulesetCreated, abi: ABI) -> Result<RestrictionStatus, RulesetError> {
    match abi >= ABI::V7 {
        true => ruleset.log_new_exec(true)?.restrict_self(),
        false => ruleset.restrict_self(),
    }
}

fn offers(abi: ABI) -> Result<(), RulesetError> {
    let ruleset = create(abi, Tcp::Denied)?;
    // These two versions differ in flags only.
    if abi >= ABI::V8 {
        ruleset.all_threads(true)?;
    } else if abi == ABI::V7 {
        ruleset.log_new_exec(true)?;
    }
    Ok(())
}

/// Opens the path of a rule. A built-in one may have gone.
fn open(rule: &Rule) -> Result<Option<(OwnedFd, Kind)>, LandlockError> {
    let is_optional = rule.origin == Origin::BuiltIn;
    let opened = root::open(Path::new(&rule.path), OFlags::NOFOLLOW)
        .and_then(|descriptor| root::identify(&descriptor).map(|found| (descriptor, found)));
    let (descriptor, (id, kind)) = match opened {
        Ok(opened) => opened,
        Err(_) if is_optional => return Ok(None),
        Err(error) => {
            let path = rule.path.clone();
            return Err(LandlockError::Path { path, error });
        }
    };
    if rule.id.is_some_and(|granted| granted != id) || rule.kind != kind {
        return Err(LandlockError::Replaced(rule.path.clone()));
    }
    Ok(Some((descriptor, kind)))
}

/// What a class of access means to the kernel.
fn class_rights(access: Access, abi: ABI, unix_sockets: bool) -> BitFlags<AccessFs> {
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    // Devices would be made by root alone, and reach past every rule.
    let mut write = AccessFs::from_write(abi) & !make_bitflags!(AccessFs::{MakeChar | MakeBlock});
    if !unix_sockets {
        write &= !BitFlags::from(AccessFs::ResolveUnix);
    }
    match access {
        Access::Read => read,
        Access::ReadExecute => read | AccessFs::Execute,
        Access::ReadWrite => read | write,
        Access::ReadWriteExecute => read | write | AccessFs::Execute,
        Access::Device => make_bitflags!(AccessFs::{ReadFile | WriteFile}),
    }
}

fn net_rights(abi: ABI, tcp: Tcp<'_>) -> BitFlags<AccessNet> {
    match tcp {
        Tcp::Denied | Tcp::Ports(_) => AccessNet::from_all(abi),
        Tcp::LeftAlone => BitFlags::EMPTY,
    }
}

/// What this ABI cannot refuse, and later ones can.
fn gaps(abi: ABI) -> Vec<&'static str> {
    let mut gaps = Vec::new();
    for (since, gap) in [
        (ABI::V3, "truncate"),
        (ABI::V5, "device_ioctl"),
        (ABI::V6, "signals"),
        (ABI::V6, "abstract_unix_sockets"),
    ] {
        if abi < since {
            gaps.push(gap);
        }
    }
    gaps
}

/// Bit n is erratum n + 1; the kernel may know more than the library.
fn errata() -> Vec<u32> {
    let fixed = Erratum::current().bits();
    (0..u32::BITS)
        .filter(|bit| fixed >> bit & 1 == 1)
        .map(|bit| bit + 1)
        .collect()
}

fn names(rights: BitFlags<AccessFs>) -> Vec<String> {
    FS_NAMES
        .iter()
        .filter(|(right, _)| rights.contains(*right))
        .map(|(_, name)| (*name).to_owned())
        .collect()
}

fn net_names(rights: BitFlags<AccessNet>) -> Vec<String> {
    NET_NAMES
        .iter()
        .filter(|(right, _)| rights.contains(*right))
        .map(|(_, name)| (*name).to_owned())
        .collect()
}

fn scope_names(scopes: BitFlags<Scope>) -> Vec<String> {
    SCOPE_NAMES
        .iter()
        .filter(|(scope, _)| scopes.contains(*scope))
        .map(|(_, name)| (*name).to_owned())
        .collect()
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The system's own words. The library's are lists of its identifiers.
fn cause(error: &RulesetError) -> String {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            return io.to_string();
        }
        source = inner.source();
    }
    NOT_WHOLE.to_owned()
}

const NOT_WHOLE: &str = "the kernel offers less than it says";

/// Below it, files outside every root can be emptied.
const LEAST_ABI: ABI = ABI::V3;

const ALL_ABIS: [ABI; 10] = [
    ABI::V10,
    ABI::V9,
    ABI::V8,
    ABI::V7,
    ABI::V6,
    ABI::V5,
    ABI::V4,
    ABI::V3,
    ABI::V2,
    ABI::V1,
];

const FS_NAMES: &[(AccessFs, &str)] = &[
    (AccessFs::Execute, "execute"),
    (AccessFs::ReadFile, "read_file"),
    (AccessFs::ReadDir, "read_dir"),
    (AccessFs::WriteFile, "write_file"),
    (AccessFs::Truncate, "truncate"),
    (AccessFs::RemoveDir, "remove_dir"),
    (AccessFs::RemoveFile, "remove_file"),
    (AccessFs::MakeChar, "make_char"),
    (AccessFs::MakeDir, "make_dir"),
    (AccessFs::MakeReg, "make_reg"),
    (AccessFs::MakeSock, "make_sock"),
    (AccessFs::MakeFifo, "make_fifo"),
    (AccessFs::MakeBlock, "make_block"),
    (AccessFs::MakeSym, "make_sym"),
    (AccessFs::Refer, "refer"),
    (AccessFs::IoctlDev, "ioctl_dev"),
    (AccessFs::ResolveUnix, "resolve_unix"),
];

const NET_NAMES: &[(AccessNet, &str)] = &[
    (AccessNet::BindTcp, "bind_tcp"),
    (AccessNet::ConnectTcp, "connect_tcp"),
    (AccessNet::BindUdp, "bind_udp"),
    (AccessNet::ConnectSendUdp, "connect_send_udp"),
];

const SCOPE_NAMES: &[(Scope, &str)] = &[
    (Scope::AbstractUnixSocket, "abstract_unix_socket"),
    (Scope::Signal, "signal"),
];

#[cfg(test)]
mod tests;
