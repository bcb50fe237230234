//! What the kernel says of a process (proc_pid_status(5), namespaces(7)).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Some of what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) threads: u64,
    /// 2: filters are in force.
    pub(super) seccomp: u64,
    /// How many; unknown before Linux 5.9.
    pub(super) filters: Option<u64>,
    pub(super) no_new_privs: bool,
    /// Of the effective, permitted, inheritable and ambient capabilities any.
    pub(super) capabilities: u64,
    /// Those that could be gained.
    pub(super) bounding: u64,
}

impl Status {
    pub(super) fn of_self() -> io::Result<Self> {
        Self::read("self")
    }

    pub(super) fn of(pid: u32) -> io::Result<Self> {
        Self::read(&pid.to_string())
    }

    fn read(process: &str) -> io::Result<Self> {
        let path = Path::new("/proc").join(process).join("status");
        let text = fs::read_to_string(path)?;
        Self::parse(&text)
            .ok_or_else(|| io::Error::other("/proc/PID/status does not say what it should"))
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut fields = text.lines().filter_map(|line| line.split_once(':'));
            fields.find_map(|(field, value)| (field == name).then(|| value.trim()))
        };
        let number = |name| field(name)?.parse::<u64>().ok();
        let set = |name| u64::from_str_radix(field(name)?, 16).ok();
        Some(Self {
            threads: number("Threads")?,
            // Kernels without filters have no such fields.
            seccomp: number("Seccomp").unwrap_or_default(),
            filters: number("Seccomp_filters"),
            no_new_privs: number("NoNewPrivs")? == 1,
            capabilities: set("CapEff")? | set("CapPrm")? | set("CapInh")? | set("CapAmb")?,
            bounding: set("CapBnd")?,
        })
    }
}

/// The namespaces of a process that it may have of its own, by kind, with
/// their inodes.
///
/// # Errors
/// When the kernel does not tell: it is another user's process.
pub(super) fn namespaces(process: &str) -> io::Result<BTreeMap<String, u64>> {
    NAMESPACES
        .into_iter()
        .map(|kind| {
            let link = fs::read_link(Path::new("/proc").join(process).join("ns").join(kind))?;
            let inode = link.to_str().and_then(|link| inode(link, kind));
            Ok((kind.to_owned(), inode.ok_or(io::ErrorKind::InvalidData)?))
        })
        .collect()
}

/// Of a text like `net:[4026531840]`.
fn inode(link: &str, kind: &str) -> Option<u64> {
    let number = link.strip_prefix(kind)?.strip_prefix(":[")?;
    number.strip_suffix(']')?.parse().ok()
}

pub(super) const NAMESPACES: [&str; 3] = ["ipc", "net", "user"];

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tThreads:\t9\nThreads:\t1\nCapInh:\t0000000000000001\n\
        CapPrm:\t0000000000000002\nCapEff:\t0000000000000004\nCapBnd:\t000001ffffffffff\n\
        CapAmb:\t0000000000000008\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n";

    #[test]
    fn a_status_is_read_whole_or_not_at_all() {
        let status = Status::parse(STATUS).unwrap();
        let expected = Status {
            threads: 1,
            seccomp: 2,
            filters: Some(3),
            no_new_privs: true,
            capabilities: 0xf,
            bounding: 0x1ff_ffff_ffff,
        };
        assert_eq!(status, expected);
        for missing in ["CapInh", "CapBnd", "NoNewPrivs"] {
            assert_eq!(Status::parse(&STATUS.replace(missing, "Cap")), None);
        }
        let old = STATUS.replace("Seccomp", "Other");
        assert_eq!(Status::parse(&old).unwrap().seccomp, 0);
    }

    #[test]
    fn namespaces_have_inodes() {
        assert_eq!(inode("net:[4026531840]", "net"), Some(4_026_531_840));
        for odd in ["net:[]", "net:[1", "ipc:[1]", "net:1", ""] {
            assert_eq!(inode(odd, "net"), None, "{odd}");
        }
        let own = namespaces("self").unwrap();
        assert_eq!(own.keys().collect::<Vec<_>>(), ["ipc", "net", "user"]);
    }

    #[test]
    fn this_process_has_a_status() {
        assert!(Status::of_self().unwrap().threads > 1);
        assert_eq!(
            Status::of(std::process::id()).unwrap().bounding,
            Status::of_self().unwrap().bounding
        );
    }
}
