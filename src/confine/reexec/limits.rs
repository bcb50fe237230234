//! What one process may use at most.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::wire::facts::Limits;

/// Keeps the calling process and what it starts from core dumps, which would
/// carry memory past every rule of paths, to the machine's handler even outside
/// of all confinement and as root.
///
/// At 1 byte the kernel starts no handler either, which it does at 0
/// (fs/coredump.c). From a limit of 0 only a privileged process comes back to
/// 1, so this is for where privileges are still those of the machine.
///
/// # Errors
/// The system's.
pub(super) fn forbid_core_dumps() -> io::Result<()> {
    let at_most = |bytes| Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    match setrlimit(Resource::Core, at_most(1)) {
        Err(Errno::PERM) => Ok(setrlimit(Resource::Core, at_most(0))?),
        done => Ok(done?),
    }
}

/// Bounds the calling process and what it starts.
///
/// # Errors
/// The system's.
pub(super) fn bound(limits: &Limits) -> io::Result<()> {
    for (resource, limit) in [
        (Resource::Nproc, limits.processes),
        (Resource::As, limits.memory_bytes),
        (Resource::Nofile, limits.files),
    ] {
        if let Some(limit) = limit {
            // What is bounded more closely already stays so.
            let limit = Some(getrlimit(resource).maximum.map_or(limit, |m| m.min(limit)));
            let bound = Rlimit {
                current: limit,
                maximum: limit,
            };
            setrlimit(resource, bound)?;
        }
    }
    Ok(())
}

/// Whether the kernel counts the processes of the calling thread's user
/// towards a limit: not those of the machine's root, by whatever name a
/// namespace calls it (kernel/fork.c). To be asked outside of an own
/// namespace.
pub(super) fn counts_processes() -> bool {
    let user = rustix::process::getuid().as_raw();
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    outer(&map, user) != Some(0)
}

/// What a user is called one namespace further out (user_namespaces(7)).
fn outer(map: &str, user: u32) -> Option<u32> {
    map.lines().find_map(|row| {
        let mut numbers = row.split_ascii_whitespace().map(|n| n.parse::<u32>().ok());
        let (inside, outside, len) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let offset = user.checked_sub(inside).filter(|&offset| offset < len)?;
        outside.checked_add(offset)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_in_the_map_of_its_namespace() {
        assert_eq!(outer("         0          0 4294967295\n", 0), Some(0));
        assert_eq!(outer("0 100000 65536\n", 0), Some(100_000));
        assert_eq!(outer("0 1000 1\n1 100000 65535\n", 2), Some(100_001));
        assert_eq!(outer("1000 0 1\n", 1000), Some(0));
        assert_eq!(outer("0 1000 1\n", 1), None);
        assert_eq!(outer("", 0), None);
    }
}
