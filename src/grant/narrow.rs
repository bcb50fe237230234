//! Whether one Grant lies within another.

use super::mint::{Denial, Minted};
use super::root::Root;
use crate::wire::escape::Escaped;
use crate::wire::grant::HttpGrant;

/// Passes when `parent` holds all that `sub` does.
pub(super) fn check(parent: &Minted, sub: &Minted) -> Result<(), Denial> {
    check_paths(parent, sub)?;
    for entry in sub.http() {
        check_destination(parent.http(), entry)?;
    }
    let limits = sub.limits().named().into_iter();
    for ((name, own), (_, most)) in limits.zip(parent.limits().named()) {
        if own > most {
            return Err(escalation("limits", format!("{name} {own} exceeds {most}")));
        }
    }
    Ok(())
}

/// What may be written may be read as well, but not the other way.
fn check_paths(parent: &Minted, sub: &Minted) -> Result<(), Denial> {
    for root in sub.read() {
        if !covered(parent.read(), root) && !covered(parent.write(), root) {
            return Err(path_escalation("read", root));
        }
    }
    for root in sub.write() {
        if !covered(parent.write(), root) {
            return Err(path_escalation("write", root));
        }
    }
    Ok(())
}

/// A path is covered by a root that holds it, and with it all beneath when
/// that is asked for too.
fn covered(roots: &[Root], sub: &Root) -> bool {
    roots
        .iter()
        .any(|root| root.covers(sub.path()) && (root.is_recursive() || !sub.is_recursive()))
}

fn check_destination(parent: &[HttpGrant], sub: &HttpGrant) -> Result<(), Denial> {
    let host = Escaped(&sub.host);
    let of_host: Vec<_> = parent
        .iter()
        .filter(|entry| entry.host == sub.host)
        .collect();
    if of_host.is_empty() {
        return Err(escalation(
            "net.http",
            format!("host `{host}` is not granted"),
        ));
    }
    // Port and method have to be granted together: two entries of one host
    // are two permissions.
    for port in &sub.ports {
        for method in &sub.methods {
            let granted = of_host.iter().any(|entry| {
                entry.ports.contains(port)
                    && entry.methods.iter().any(|m| m.eq_ignore_ascii_case(method))
            });
            if !granted {
                let detail = format!("{} to `{host}:{port}` is not granted", Escaped(method));
                return Err(escalation("net.http", detail));
            }
        }
    }
    Ok(())
}

fn path_escalation(what: &str, root: &Root) -> Denial {
    let path = Escaped(root.path());
    escalation("fs", format!("`{path}` is under no {what} root"))
}

fn escalation(axis: &'static str, detail: String) -> Denial {
    Denial::Escalation { axis, detail }
}
