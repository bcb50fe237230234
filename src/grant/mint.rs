//! The only way from a manifest to authority.

use thiserror::Error;

use super::manifest::{FsNeeds, Limits, Manifest, NetNeed, PathNeed};
use super::narrow;
use super::root::{Root, RootError};
use crate::policy::engine::Allowed;
use crate::policy::set;
use crate::wire::escape::{Escaped, EscapedPath};
use crate::wire::grant::{FsGrant, Grant, HttpGrant, NetGrant};

/// Mints the Grants of one Session.
#[derive(Debug, Default)]
pub(crate) struct Mint {
    minted: u64,
}

/// Why something may be minted at all.
#[derive(Debug)]
pub(crate) enum Authority {
    /// A Policy Set allowed the Call; its ceilings lower the limits.
    Policy(Allowed),
    /// The operator asked for it when the Session began.
    Operator(AskedFor),
}

/// Proof that the command line asked for a Grant.
#[derive(Debug)]
pub(crate) struct AskedFor(());

/// Authority: a Grant, and the objects that it is about. Whoever holds one
/// went through [`Mint`]; a bare [`Grant`] is only what a record says.
#[derive(Debug)]
pub(crate) struct Minted {
    grant: Grant,
    read: Vec<Root>,
    write: Vec<Root>,
}

/// Why nothing was minted.
#[derive(Debug, Error)]
pub(crate) enum Denial {
    /// No such tool.
    #[error("tool not registered: {}", Escaped(.0))]
    Unregistered(String),
    /// A path cannot be granted.
    #[error("invalid path `{}`: {error}", EscapedPath(&.need.path))]
    Path {
        /// The path.
        need: PathNeed,
        /// Why.
        error: RootError,
    },
    /// A destination cannot be granted.
    #[error("net denied for host `{}`: {fault}", Escaped(.host))]
    Net {
        /// The host.
        host: String,
        /// Why.
        fault: &'static str,
    },
    /// More is asked for than can be given.
    #[error("capability escalation on {axis}: {detail}")]
    Escalation {
        /// `fs`, `net.http` or `limits`.
        axis: &'static str,
        /// What is too much.
        detail: String,
    },
}

impl AskedFor {
    /// For whoever reads the command line.
    pub(crate) fn on_the_command_line() -> Self {
        Self(())
    }
}

impl Mint {
    /// Mints what `manifest` asks for.
    ///
    /// # Errors
    /// A path that cannot be resolved, a destination that means nothing, a
    /// limit that no Line can carry. A denial uses up no number.
    pub(crate) fn mint(
        &mut self,
        manifest: &Manifest,
        authority: Authority,
    ) -> Result<Minted, Denial> {
        let minted = prepare(manifest, &authority)?;
        Ok(self.number(minted))
    }

    /// Mints what `manifest` asks for out of `parent`, which has to hold all
    /// of it.
    ///
    /// # Errors
    /// As [`Mint::mint`], and what `parent` does not hold.
    pub(crate) fn narrow(
        &mut self,
        parent: &Minted,
        manifest: &Manifest,
        authority: Authority,
    ) -> Result<Minted, Denial> {
        let minted = prepare(manifest, &authority)?;
        narrow::check(parent, &minted)?;
        Ok(self.number(minted))
    }

    fn number(&mut self, mut minted: Minted) -> Minted {
        self.minted += 1;
        minted.grant.grant_id = format!("{}-{}", minted.grant.tool_id, self.minted);
        minted
    }
}

impl Minted {
    /// As a Line records it.
    pub(crate) fn grant(&self) -> &Grant {
        &self.grant
    }

    /// What may be read.
    pub(crate) fn read(&self) -> &[Root] {
        &self.read
    }

    /// What may be read and written.
    pub(crate) fn write(&self) -> &[Root] {
        &self.write
    }

    /// The bounds of one Call.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            max_memory_bytes: self.grant.max_memory_bytes,
            max_wall_ms: self.grant.max_wall_ms,
            max_output_bytes: self.grant.max_output_bytes,
        }
    }

    /// The destinations.
    pub(super) fn http(&self) -> &[HttpGrant] {
        self.grant.net.as_ref().map_or(&[], |net| &net.http)
    }
}

impl Denial {
    /// The capability that was denied, as an outcome names it.
    pub(crate) fn capability(&self) -> &'static str {
        match self {
            Self::Unregistered(_) => "tool.registry",
            Self::Path { .. } => "fs",
            Self::Net { .. } => "net.http",
            Self::Escalation { axis, .. } => axis,
        }
    }
}

impl Authority {
    fn ceilings(&self) -> set::Limits {
        match self {
            Self::Policy(allowed) => allowed.limits(),
            Self::Operator(_) => set::Limits::default(),
        }
    }

    /// A tool's manifest comes from its author, who names hosts; patterns are
    /// for the operator to give.
    fn may_give_patterns(&self) -> bool {
        matches!(self, Self::Operator(_))
    }
}

fn prepare(manifest: &Manifest, authority: &Authority) -> Result<Minted, Denial> {
    let net = manifest.net.as_deref();
    for need in net.unwrap_or_default() {
        check_net(need, authority.may_give_patterns())?;
    }
    let none = FsNeeds::default();
    let fs = manifest.fs.as_ref().unwrap_or(&none);
    let read = resolve(manifest, &fs.read)?;
    let write = resolve(manifest, &fs.write)?;
    let limits = manifest.limits.lowered(authority.ceilings());
    check_limits(limits)?;
    let grant = Grant {
        grant_id: String::new(),
        tool_id: manifest.tool_id.clone(),
        fs: manifest.fs.is_some().then(|| FsGrant {
            read_paths: names(&read),
            write_paths: names(&write),
        }),
        net: net.map(|needs| NetGrant {
            http: needs.iter().map(destination).collect(),
        }),
        max_memory_bytes: limits.max_memory_bytes,
        max_wall_ms: limits.max_wall_ms,
        max_output_bytes: limits.max_output_bytes,
    };
    Ok(Minted { grant, read, write })
}

fn check_net(need: &NetNeed, patterns: bool) -> Result<(), Denial> {
    let fault = if need.host.is_empty() {
        "host must not be empty"
    } else if need.host.contains('*') && !patterns {
        "wildcard hosts are not supported in v1"
    } else if need.ports.is_empty() {
        "at least one port is required"
    } else if need.methods.is_empty() {
        "at least one HTTP method is required"
    } else {
        return Ok(());
    };
    Err(Denial::Net {
        host: need.host.clone(),
        fault,
    })
}

/// A limit that a Line cannot carry would lose the outcome of its Call.
fn check_limits(limits: Limits) -> Result<(), Denial> {
    for (name, value) in limits.named() {
        if value >= LIMIT_BOUND {
            return Err(Denial::Escalation {
                axis: "limits",
                detail: format!("{name} {value} is not below {LIMIT_BOUND}"),
            });
        }
    }
    Ok(())
}

fn resolve(manifest: &Manifest, needs: &[PathNeed]) -> Result<Vec<Root>, Denial> {
    let resolve = |need: &PathNeed| {
        Root::resolve(&manifest.base, need).map_err(|error| Denial::Path {
            need: need.clone(),
            error,
        })
    };
    needs.iter().map(resolve).collect()
}

fn names(roots: &[Root]) -> Vec<String> {
    roots.iter().map(|root| root.path().to_owned()).collect()
}

/// Hosts are compared in lower case everywhere, so they are granted in it.
fn destination(need: &NetNeed) -> HttpGrant {
    HttpGrant {
        host: need.host.to_ascii_lowercase(),
        ports: need.ports.clone(),
        methods: need.methods.clone(),
    }
}

/// Integers of a Line are below it (SPEC §3).
const LIMIT_BOUND: u64 = 1 << 53;

#[cfg(test)]
mod tests;
