//! Does what the filters deny and sees it fail, before a server is started
//! under them.
//!
//! Each probe is chosen such that without the filters it would not fail with
//! EPERM, whatever user runs it, and would change nothing: a path is empty, a
//! value is the one that holds already.
//!
//! No safe function makes these calls, so they are not probed here: the
//! io_uring family, keyrings, bpf, perf_event_open, userfaultfd, System V IPC,
//! POSIX queues, TIOCSTI, namespace bits of clone, fanotify_init, file
//! handles, numbers of x32. They stand in the same program as those that are
//! probed; the C programs in `tests/probes/` make them.

use rustix::fs::{AtFlags, CWD, Mode, Timespec, Timestamps, UTIME_OMIT, XattrFlags};
use rustix::io::{self, Errno};
use rustix::net::{
    AddressFamily, Protocol, RawProtocol, SendFlags, SocketFlags, SocketType, ipproto, netlink,
    send, socket_with, socketpair,
};
use rustix::process::{
    PidfdFlags, PidfdGetfdFlags, Resource, chroot, getpid, getpriority_process, getrlimit,
    pidfd_getfd, pidfd_open, prlimit, setpriority_process,
};

use super::{Metadata, Network, Plan};

/// The names of the probes that were denied as they should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passed(Vec<&'static str>);

impl Passed {
    pub(crate) fn names(&self) -> &[&'static str] {
        &self.0
    }
}

/// A probe that was not denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{probe} was to be refused with EPERM and {}: the filters are not in force on this machine, \
     so nothing is started",
    .found.map_or_else(|| "succeeded".to_owned(), |errno| format!("gave: {errno}"))
)]
pub(crate) struct Surprise {
    pub(crate) probe: &'static str,
    pub(crate) found: Option<Errno>,
}

/// Tries everything that `plan` denies and a safe function can try, on the
/// calling thread.
///
/// # Errors
/// At the first probe that does not fail with EPERM.
pub(crate) fn self_test(plan: &Plan) -> Result<Passed, Surprise> {
    let mut passed = Vec::new();
    for probe in PROBES.iter().filter(|probe| (probe.is_denied)(plan)) {
        match (probe.run)() {
            Err(Errno::PERM) => passed.push(probe.name),
            other => {
                return Err(Surprise {
                    probe: probe.name,
                    found: other.err(),
                });
            }
        }
    }
    Ok(Passed(passed))
}

pub(super) struct Probe {
    pub(super) name: &'static str,
    /// Whether a plan denies it.
    pub(super) is_denied: fn(&Plan) -> bool,
    pub(super) run: fn() -> io::Result<()>,
}

pub(super) const PROBES: &[Probe] = &[
    Probe {
        name: "socket(AF_UNIX)",
        is_denied: |plan| !plan.unix_sockets,
        run: || socket(AddressFamily::UNIX, SocketType::STREAM, None),
    },
    Probe {
        name: "socketpair(AF_UNIX, SOCK_DGRAM)",
        is_denied: |plan| !plan.unix_sockets,
        run: || pair(SocketType::DGRAM).map(drop),
    },
    Probe {
        name: "socket(AF_VSOCK)",
        is_denied: |_| true,
        run: || socket(AddressFamily::VSOCK, SocketType::STREAM, None),
    },
    Probe {
        name: "socket(AF_INET, SOCK_STREAM)",
        is_denied: |plan| plan.network == Network::Denied,
        run: || socket(AddressFamily::INET, SocketType::STREAM, None),
    },
    Probe {
        name: "socket(AF_INET, SOCK_DGRAM)",
        is_denied: |plan| plan.network != Network::Namespace,
        run: || socket(AddressFamily::INET, SocketType::DGRAM, None),
    },
    Probe {
        name: "socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP)",
        is_denied: |_| true,
        run: || {
            let mptcp = RawProtocol::new(IPPROTO_MPTCP).map(Protocol::from_raw);
            socket(AddressFamily::INET, SocketType::STREAM, mptcp)
        },
    },
    Probe {
        name: "socket(AF_INET6, SOCK_DGRAM, IPPROTO_UDPLITE)",
        is_denied: |_| true,
        run: || {
            let lite = Some(ipproto::UDPLITE);
            socket(AddressFamily::INET6, SocketType::DGRAM, lite)
        },
    },
    Probe {
        name: "socket(AF_NETLINK, NETLINK_SOCK_DIAG)",
        is_denied: |_| true,
        run: || {
            let diagnosis = Some(netlink::SOCK_DIAG);
            socket(AddressFamily::NETLINK, SocketType::RAW, diagnosis)
        },
    },
    Probe {
        name: "sendto(MSG_FASTOPEN)",
        is_denied: |_| true,
        run: || {
            let (near, _far) = pair(SocketType::STREAM)?;
            send(&near, b"x", SendFlags::from_bits_retain(MSG_FASTOPEN)).map(drop)
        },
    },
    Probe {
        name: "unshare",
        is_denied: |_| true,
        run: || nix::sched::unshare(nix::sched::CloneFlags::empty()).map_err(errno),
    },
    Probe {
        name: "setns",
        is_denied: |_| true,
        // A pipe is no namespace.
        run: || {
            let (pipe, _) = rustix::pipe::pipe()?;
            nix::sched::setns(pipe, nix::sched::CloneFlags::empty()).map_err(errno)
        },
    },
    Probe {
        name: "pidfd_getfd",
        is_denied: |_| true,
        run: || {
            let own = pidfd_open(getpid(), PidfdFlags::empty())?;
            pidfd_getfd(own, 0, PidfdGetfdFlags::empty()).map(drop)
        },
    },
    Probe {
        name: "prlimit of a pid",
        is_denied: |_| true,
        run: || {
            let held = getrlimit(Resource::Nofile);
            prlimit(Some(getpid()), Resource::Nofile, held).map(drop)
        },
    },
    Probe {
        name: "setpriority of a pid",
        is_denied: |_| true,
        run: || setpriority_process(Some(getpid()), getpriority_process(None)?),
    },
    Probe {
        name: "chroot",
        is_denied: |_| true,
        run: || chroot(NOWHERE),
    },
    Probe {
        name: "chmod by path",
        is_denied: |plan| plan.metadata == Metadata::Denied,
        run: || rustix::fs::chmod(NOWHERE, Mode::RUSR),
    },
    Probe {
        name: "chown by path",
        is_denied: |plan| plan.metadata == Metadata::Denied,
        run: || rustix::fs::chown(NOWHERE, None, None),
    },
    Probe {
        name: "utimensat by path",
        is_denied: |plan| plan.metadata == Metadata::Denied,
        run: || rustix::fs::utimensat(CWD, NOWHERE, &UNCHANGED, AtFlags::empty()),
    },
    Probe {
        name: "setxattr by path",
        is_denied: |plan| plan.metadata == Metadata::Denied,
        run: || rustix::fs::setxattr(NOWHERE, "user.aegis", b"", XattrFlags::CREATE),
    },
];

fn socket(family: AddressFamily, kind: SocketType, protocol: Option<Protocol>) -> io::Result<()> {
    socket_with(family, kind, SocketFlags::CLOEXEC, protocol).map(drop)
}

fn pair(kind: SocketType) -> io::Result<(std::os::fd::OwnedFd, std::os::fd::OwnedFd)> {
    socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
}

fn errno(error: nix::errno::Errno) -> Errno {
    Errno::from_raw_os_error(error as i32)
}

/// No file has this path, so what acts on it fails with ENOENT.
const NOWHERE: &str = "";
const UNCHANGED: Timestamps = Timestamps {
    last_access: OMIT,
    last_modification: OMIT,
};
const OMIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: UTIME_OMIT,
};
const IPPROTO_MPTCP: u32 = 262;
const MSG_FASTOPEN: u32 = 0x2000_0000;
