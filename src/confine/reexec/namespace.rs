//! Namespaces of one's own, for users, the network and System V IPC.

use std::fs;
use std::io;
use std::net::{Ipv6Addr, TcpListener};
use std::path::Path;

use nix::sched::CloneFlags;
use rustix::process::{getegid, geteuid};

use super::netlink::{Family, Netlink};
use crate::confine::order::Wanted;
use crate::confine::refused::{Refused, Step};

/// What became of the network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entered {
    /// Whether it has IPv6.
    pub(super) has_ipv6: bool,
}

/// Takes the calling thread, the only one, into namespaces of its own, in
/// which it has every capability, and no other network than its loopback.
///
/// # Errors
/// At the first step that the machine refuses. Then there is no way back, and
/// nothing may be executed: a user that is not named has lost its files.
pub(super) fn enter(wanted: &Wanted) -> Result<Entered, Refused> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC;
    step(
        Step::Unshare,
        nix::sched::unshare(flags).map_err(io::Error::from),
    )?;
    // Who gives up setgroups may name groups (user_namespaces(7)).
    for (at, file, text) in [
        (Step::SetGroups, "setgroups", "deny".to_owned()),
        (Step::UserMap, "uid_map", format!("{user} {user} 1\n")),
        (Step::GroupMap, "gid_map", format!("{group} {group} 1\n")),
    ] {
        step(at, fs::write(Path::new("/proc/self").join(file), text))?;
    }
    let netlink = step(Step::Netlink, Netlink::open())?;
    step(Step::LinkUp, netlink.start_loopback())?;
    let mut has_ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    if let Wanted::Hosts { .. } = wanted {
        step(Step::Route, netlink.take_all_addresses(Family::V4))?;
        // Without it, addresses of IPv6 lead nowhere, which is a way to have
        // no IPv6.
        has_ipv6 = has_ipv6 && netlink.take_all_addresses(Family::V6).is_ok();
    }
    Ok(Entered { has_ipv6 })
}

fn step<T>(step: Step, done: io::Result<T>) -> Result<T, Refused> {
    done.map_err(|error| Refused {
        step,
        errno: error.raw_os_error().unwrap_or_default(),
    })
}
