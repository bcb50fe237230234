//! What the machine says of itself, as data.

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::probe::{self, Namespaces};
use super::trial;
use crate::net::resolve::Resolver;

/// A machine, as a process on it sees it.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    /// Of the kernel, as uname(2) has it.
    pub(crate) release: String,
    /// Of this executable.
    pub(crate) architecture: String,
    /// Who asks: the effective user id.
    pub(crate) user: u32,
    /// Where this executable is.
    pub(crate) executable: PathBuf,
    pub(crate) landlock: Landlock,
    /// The system call filters, or why there are none.
    pub(crate) filters: Result<Loaded, String>,
    pub(crate) namespaces: Namespaces,
    /// Those of [`SETTINGS`] that this kernel has.
    pub(crate) settings: BTreeMap<&'static str, String>,
    /// The security modules in use, where that can be read.
    pub(crate) modules: Option<String>,
    pub(crate) outer: Outer,
    pub(crate) ipv6: bool,
    /// Whom aegis would ask for names, or why nobody.
    pub(crate) name_servers: Result<Vec<IpAddr>, String>,
    /// How many files a process may have open; `None`: no limit.
    pub(crate) open_files: Option<u64>,
}

/// What came of an attempt to use Landlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Landlock {
    /// It refuses what no rule gives.
    Enforced {
        abi: u32,
        /// The kernel's, when it is newer than any that is known.
        kernel_abi: Option<u32>,
        /// Faults that this kernel has fixed, by number.
        errata: Vec<u32>,
        /// What it cannot refuse.
        gaps: Vec<String>,
    },
    /// It cannot refuse too much.
    TooOld { abi: u32, gaps: String },
    /// There is none.
    Unavailable,
    /// It failed otherwise.
    Failed(String),
}

/// System call filters that were in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub(crate) filters: usize,
    pub(crate) instructions: usize,
    /// How many calls were tried and refused.
    pub(crate) refused: usize,
}

/// What this process is in already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outer {
    pub(crate) container: Option<Container>,
    pub(crate) no_new_privs: bool,
    /// Whether system call filters are in force on it.
    pub(crate) is_filtered: bool,
    /// The AppArmor profile that it is under.
    pub(crate) apparmor: Option<String>,
}

/// By the marks that it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Container {
    Docker,
    Podman,
    Kubernetes,
    /// Some other.
    Other,
}

impl Answers {
    /// Asks this machine. What it does not tell is left out.
    pub(crate) fn of_this_machine() -> Self {
        Self {
            release: read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "?".to_owned()),
            architecture: ARCH.to_owned(),
            user: rustix::process::geteuid().as_raw(),
            executable: std::env::current_exe().unwrap_or_else(|_| "aegis".into()),
            landlock: trial::landlock(),
            filters: trial::filters(),
            namespaces: probe::ask(),
            settings: SETTINGS
                .iter()
                .filter_map(|name| Some((*name, setting(name)?)))
                .collect(),
            modules: read("/sys/kernel/security/lsm"),
            outer: Outer::of_this_process(),
            ipv6: Path::new("/proc/net/if_inet6").exists(),
            name_servers: Resolver::system()
                .asked()
                .map_err(|fault| fault.to_string()),
            open_files: getrlimit(Resource::Nofile).current,
        }
    }

    /// A setting that is a number.
    pub(super) fn number(&self, setting: &str) -> Option<i64> {
        self.settings.get(setting)?.parse().ok()
    }
}

impl Outer {
    fn of_this_process() -> Self {
        let status = read("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let row = status.lines().find_map(|row| row.strip_prefix(name));
            row.and_then(|value| value.trim_start_matches(':').trim().parse::<u32>().ok())
        };
        Self {
            container: container(
                |path| Path::new(path).exists(),
                std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
                &read("/proc/self/cgroup").unwrap_or_default(),
            ),
            no_new_privs: field("NoNewPrivs") == Some(1),
            is_filtered: field("Seccomp") == Some(2),
            apparmor: read("/proc/self/attr/apparmor/current")
                .filter(|profile| profile != "unconfined"),
        }
    }
}

/// A container leaves a file, a variable, or its name in the control group.
fn container(
    exists: impl Fn(&str) -> bool,
    has_kubernetes: bool,
    cgroup: &str,
) -> Option<Container> {
    let names = |words: &[&str]| words.iter().any(|word| cgroup.contains(word));
    if has_kubernetes || names(&["kubepods"]) {
        Some(Container::Kubernetes)
    } else if exists("/run/.containerenv") || names(&["libpod"]) {
        Some(Container::Podman)
    } else if exists("/.dockerenv") || names(&["/docker"]) {
        Some(Container::Docker)
    } else {
        (exists("/run/systemd/container") || names(&["/lxc", "containerd"]))
            .then_some(Container::Other)
    }
}

fn setting(name: &str) -> Option<String> {
    read(&format!("/proc/sys/{}", name.replace('.', "/")))
}

/// The beginning of a file of the kernel, without the blanks around it.
fn read(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(READ_BYTES).read_to_end(&mut bytes))
        .ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.trim_matches(['\n', ' ', '\0']).to_owned())
}

/// By which namespaces are refused.
pub(super) const MAX_USER_NAMESPACES: &str = "user.max_user_namespaces";
pub(super) const MAX_NET_NAMESPACES: &str = "user.max_net_namespaces";
pub(super) const MAX_IPC_NAMESPACES: &str = "user.max_ipc_namespaces";
pub(super) const DEBIAN: &str = "kernel.unprivileged_userns_clone";
pub(super) const UBUNTU: &str = "kernel.apparmor_restrict_unprivileged_userns";

/// What the filters refuse whatever these say.
pub(super) const FILTERED: [(&str, &str); 5] = [
    ("kernel.yama.ptrace_scope", "1"),
    ("dev.tty.legacy_tiocsti", "0"),
    ("kernel.io_uring_disabled", "2"),
    ("kernel.unprivileged_bpf_disabled", "2"),
    ("kernel.perf_event_paranoid", "2"),
];

const SETTINGS: [&str; 10] = [
    MAX_USER_NAMESPACES,
    MAX_NET_NAMESPACES,
    MAX_IPC_NAMESPACES,
    DEBIAN,
    UBUNTU,
    FILTERED[0].0,
    FILTERED[1].0,
    FILTERED[2].0,
    FILTERED[3].0,
    FILTERED[4].0,
];

/// More than any of these files has of interest.
const READ_BYTES: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_known_by_each_of_its_marks() {
        let nowhere = |_: &str| false;
        let only = |mark: &'static str| move |path: &str| path == mark;
        let docker = "0::/docker/0123456789ab\n";
        for (found, expected) in [
            (container(nowhere, false, "0::/user.slice\n"), None),
            (
                container(only("/.dockerenv"), false, ""),
                Some(Container::Docker),
            ),
            (container(nowhere, false, docker), Some(Container::Docker)),
            (
                container(only("/run/.containerenv"), false, ""),
                Some(Container::Podman),
            ),
            // Its runtime leaves a mark of its own.
            (
                container(only("/.dockerenv"), true, ""),
                Some(Container::Kubernetes),
            ),
            (
                container(nowhere, false, "0::/kubepods/pod1\n"),
                Some(Container::Kubernetes),
            ),
            (
                container(only("/run/systemd/container"), false, ""),
                Some(Container::Other),
            ),
        ] {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn no_more_of_a_file_is_read_than_the_bound() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let bound = READ_BYTES as usize;
        for (bytes, expected) in [(bound, bound), (bound + 1, bound)] {
            std::fs::write(path, "x".repeat(bytes)).unwrap();
            assert_eq!(read(path).unwrap().len(), expected);
        }
        assert_eq!(read("/proc/sys/kernel/no-such-setting"), None);
    }
}
