//! What was enforced, as the `open` Line says it.

use super::Prepared;
use crate::confine::landlock::Enforced;
use crate::confine::order::Wanted;
use crate::confine::profile::{Origin, Rule};
use crate::confine::report::Report;
use crate::confine::seccomp::Metadata;
use crate::wire::facts::{
    AddressCheck, Confined, Confinement, Landlock, MetadataMode, NetworkMode, PathGrant,
};
use crate::wire::spelled::{SHARED_CACHE_HOLE, UNIX_SOCKETS_HOLE, UPSTREAM_PROXY_HOLE};

/// What `report` says of a process that restricted itself as it was told.
///
/// # Errors
/// When that is less than was asked for, and is not borne.
pub(super) fn of(prepared: &Prepared, report: &Report) -> Result<Confinement, String> {
    let confined = Box::new(confined(prepared, report));
    match missing(report) {
        None => Ok(Confinement::Full(confined)),
        Some(_) if prepared.order.profile.best_effort => Ok(Confinement::Partial(confined)),
        Some(missing) => Err(format!(
            "this machine cannot enforce all of the confinement: {missing}; see `aegis doctor`, or give --best-effort to start all the same"
        )),
    }
}

/// What keeps a confinement from being all that it should be.
fn missing(report: &Report) -> Option<String> {
    let is_fenced = matches!(
        report.network,
        NetworkMode::DeniedNetns | NetworkMode::DeniedSeccomp | NetworkMode::HostPort
    );
    let faults = [
        (report.landlock.abi == 0, "no Landlock"),
        (report.seccomp.is_none(), "no system call filters"),
        (!is_fenced, "the network leads past aegis"),
        (!report.no_capabilities, "capabilities are left"),
        (!report.no_new_privs, "programs may gain privileges"),
        (report.self_tests.is_empty(), "nothing was tried"),
    ];
    let faults = faults.into_iter().filter(|(is_so, _)| *is_so);
    let mut all: Vec<String> = faults.map(|(_, fault)| fault.to_owned()).collect();
    all.extend(gaps(report));
    (!all.is_empty()).then(|| all.join(", "))
}

fn confined(prepared: &Prepared, report: &Report) -> Confined {
    let profile = &prepared.order.profile;
    let skipped = &report.landlock.skipped;
    let granted = profile
        .rules
        .iter()
        .filter(|rule| !skipped.contains(&rule.path));
    let is_carried = report.network == NetworkMode::HostPort;
    Confined {
        landlock: landlock(&report.landlock),
        seccomp: report.seccomp.clone(),
        network: report.network,
        address_check: is_carried.then_some(match prepared.upstream {
            None => AddressCheck::Direct,
            Some(_) => AddressCheck::Upstream,
        }),
        metadata: match prepared.order.metadata {
            Metadata::Denied if report.seccomp.is_some() => MetadataMode::Denied,
            Metadata::Denied | Metadata::Allowed => MetadataMode::Allowed,
        },
        namespaces: report.namespaces.clone(),
        no_capabilities: report.no_capabilities,
        no_new_privs: report.no_new_privs,
        grants: granted.map(grant).collect(),
        hosts: hosts(prepared, report.network),
        variables: prepared.variables.clone(),
        holes: holes(prepared, report.network),
        gaps: gaps(report),
        best_effort: profile.best_effort,
        skipped: profile.skipped.iter().chain(skipped).cloned().collect(),
        self_tests: report.self_tests.clone(),
        limits: prepared.order.limits,
    }
}

/// Where it may connect to. Where only ports are fenced, that is any host.
fn hosts(prepared: &Prepared, network: NetworkMode) -> Vec<String> {
    match (network, &prepared.order.network) {
        (NetworkMode::PortOnly, Wanted::Hosts { ports, .. }) => {
            let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
            vec![format!("*:{}", ports.join(","))]
        }
        (NetworkMode::HostPort, _) => prepared.allow.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

fn holes(prepared: &Prepared, network: NetworkMode) -> Vec<String> {
    let profile = &prepared.order.profile;
    let is_upstream = prepared.upstream.is_some() && network == NetworkMode::HostPort;
    let holes = [
        (profile.shared_cache, SHARED_CACHE_HOLE),
        (profile.unix_sockets, UNIX_SOCKETS_HOLE),
        (is_upstream, UPSTREAM_PROXY_HOLE),
    ];
    let holes = holes.into_iter().filter(|(is_open, _)| *is_open);
    holes.map(|(_, hole)| hole.to_owned()).collect()
}

fn gaps(report: &Report) -> Vec<String> {
    let mut gaps = report.gaps.clone();
    for gap in &report.landlock.gaps {
        if !gaps.contains(gap) {
            gaps.push(gap.clone());
        }
    }
    gaps
}

fn landlock(enforced: &Enforced) -> Landlock {
    Landlock {
        abi: enforced.abi,
        kernel_abi: enforced.kernel_abi,
        handled: enforced.handled.clone(),
        rights: enforced.rights.clone(),
        net: enforced.net.clone(),
        scopes: enforced.scopes.clone(),
        errata: enforced.errata.clone(),
    }
}

fn grant(rule: &Rule) -> PathGrant {
    PathGrant {
        path: rule.path.clone(),
        access: rule.access.name().to_owned(),
        origin: match rule.origin {
            Origin::User => "user",
            Origin::BuiltIn => "built_in",
            Origin::Command => "command",
            Origin::Private => "private",
        }
        .to_owned(),
        object: rule.id.map(|id| format!("{}:{}", id.dev, id.ino)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::digest::Digest;
    use crate::wire::facts::Seccomp;

    fn whole() -> Report {
        Report {
            landlock: Enforced {
                abi: 7,
                ..Enforced::default()
            },
            seccomp: Some(Seccomp {
                digest: Digest::of(b""),
                filters: 3,
                instructions: 600,
            }),
            network: NetworkMode::HostPort,
            namespaces: Default::default(),
            no_capabilities: true,
            no_new_privs: true,
            gaps: Vec::new(),
            self_tests: vec!["open outside the grants".to_owned()],
        }
    }

    /// What is named, and what takes it away.
    type Row = (&'static str, fn(&mut Report));

    fn missing_after(change: impl FnOnce(&mut Report)) -> Option<String> {
        let mut report = whole();
        change(&mut report);
        missing(&report)
    }

    #[test]
    fn all_of_it_is_full_and_anything_less_is_named() {
        for network in [
            NetworkMode::HostPort,
            NetworkMode::DeniedNetns,
            NetworkMode::DeniedSeccomp,
        ] {
            assert_eq!(missing_after(|report| report.network = network), None);
        }
        let rows: [Row; 9] = [
            ("no Landlock", |report| report.landlock.abi = 0),
            ("no system call filters", |report| report.seccomp = None),
            ("the network leads past aegis", |report| {
                report.network = NetworkMode::PortOnly;
            }),
            ("the network leads past aegis", |report| {
                report.network = NetworkMode::Unrestricted;
            }),
            ("capabilities are left", |report| {
                report.no_capabilities = false;
            }),
            ("programs may gain privileges", |report| {
                report.no_new_privs = false;
            }),
            ("nothing was tried", |report| report.self_tests.clear()),
            ("signals", |report| {
                report.landlock.gaps = vec!["signals".to_owned()];
            }),
            ("hosts, signals", |report| {
                report.gaps = vec!["hosts".to_owned(), "signals".to_owned()];
                report.landlock.gaps = vec!["signals".to_owned()];
            }),
        ];
        for (named, change) in rows {
            assert_eq!(missing_after(change).as_deref(), Some(named));
        }
    }
}
