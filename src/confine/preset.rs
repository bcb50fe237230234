//! What programs need besides what the operator names, as tables: each path
//! with the reason, found by taking one away at a time.
//!
//! A path of these may be absent: then it is skipped, and listed.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::wire::escape::Escaped;

/// A kind of program that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preset {
    /// A statically linked program, which needs nothing but itself.
    Static,
    /// `node`.
    Node,
    /// `python`.
    Python,
    /// `npx`, which installs what it runs.
    Npx,
    /// `uvx`, which installs what it runs.
    Uvx,
}

/// What may be done with a path, and all beneath it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Access {
    /// Files are read, directories listed.
    Read,
    /// And files are executed.
    ReadExecute,
    /// Files and directories are read, written, made and removed, but nothing
    /// is executed.
    ReadWrite,
    /// The same, and files are executed: for caches of installed programs.
    ReadWriteExecute,
    /// A device is read and written, and nothing asked of it.
    Device,
}

/// A preset that is not known.
#[derive(Debug, Error)]
#[error("--preset needs node, python, npx, uvx or static, got `{}`", Escaped(.0))]
pub(crate) struct UnknownPreset(String);

/// A path that comes with a preset.
#[derive(Debug)]
pub(super) struct BuiltIn {
    /// The path; below the home directory when relative.
    pub(super) path: &'static str,
    /// What may be done with it.
    pub(super) access: Access,
    /// What for.
    pub(super) why: &'static str,
}

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Self, UnknownPreset> {
        Ok(match name {
            "static" => Self::Static,
            "node" => Self::Node,
            "python" => Self::Python,
            "npx" => Self::Npx,
            "uvx" => Self::Uvx,
            other => return Err(UnknownPreset(other.to_owned())),
        })
    }
}

impl Preset {
    /// Whether its programs need a loader, libraries and the system's files.
    pub(super) fn needs_runtime(self) -> bool {
        self != Self::Static
    }

    /// Whether it installs programs, into a cache.
    pub(crate) fn needs_cache(self) -> bool {
        matches!(self, Self::Npx | Self::Uvx)
    }

    /// The caches that it shares with programs that are not confined.
    pub(super) fn shared_cache(self) -> &'static [BuiltIn] {
        match self {
            Self::Npx => NPX_CACHE,
            Self::Uvx => UVX_CACHE,
            Self::Static | Self::Node | Self::Python => &[],
        }
    }

    /// Variables that point it at a cache of its own, with the directory of
    /// each below that.
    pub(super) fn cache_variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Npx => &[("npm_config_cache", "npm")],
            Self::Uvx => &[
                ("UV_CACHE_DIR", "uv"),
                ("UV_TOOL_DIR", "uv-tools"),
                ("UV_PYTHON_INSTALL_DIR", "uv-python"),
            ],
            Self::Static | Self::Node | Self::Python => &[],
        }
    }

    /// Variables that it needs and that carry no secret.
    pub(super) fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Static => &[],
            Self::Node | Self::Npx => &["NODE_ENV", "NODE_EXTRA_CA_CERTS", "NODE_PATH"],
            Self::Python | Self::Uvx => &[
                "PYTHONHOME",
                "PYTHONIOENCODING",
                "PYTHONPATH",
                "PYTHONUNBUFFERED",
                "PYTHONUTF8",
                "VIRTUAL_ENV",
            ],
        }
    }
}

impl Access {
    /// Whether files are executed.
    pub(crate) fn executes(self) -> bool {
        matches!(self, Self::ReadExecute | Self::ReadWriteExecute)
    }

    /// Whether files or directories are changed.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::ReadWrite | Self::ReadWriteExecute)
    }

    /// As a record names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadExecute => "read_execute",
            Self::ReadWrite => "read_write",
            Self::ReadWriteExecute => "read_write_execute",
            Self::Device => "device",
        }
    }
}

const fn read(path: &'static str, why: &'static str) -> BuiltIn {
    let access = Access::Read;
    BuiltIn { path, access, why }
}

const fn execute(path: &'static str, why: &'static str) -> BuiltIn {
    let access = Access::ReadExecute;
    BuiltIn { path, access, why }
}

const fn device(path: &'static str, why: &'static str) -> BuiltIn {
    let access = Access::Device;
    BuiltIn { path, access, why }
}

const fn write(path: &'static str, why: &'static str) -> BuiltIn {
    let access = Access::ReadWrite;
    BuiltIn { path, access, why }
}

const fn install(path: &'static str, why: &'static str) -> BuiltIn {
    let access = Access::ReadWriteExecute;
    BuiltIn { path, access, why }
}

/// What dynamically linked programs need. No directory of `/etc`, `/dev` or
/// `/proc` as a whole: those hold secrets, terminals and other processes. Not
/// `/proc/self` either, which is another directory for each process.
pub(super) const RUNTIME: &[BuiltIn] = &[
    execute("/usr", "programs and libraries"),
    execute("/bin", "programs, where it is no link into /usr"),
    execute("/sbin", "programs, where it is no link into /usr"),
    execute(
        "/lib",
        "loader and libraries, where it is no link into /usr",
    ),
    execute("/lib32", "libraries, where it is no link into /usr"),
    execute("/lib64", "loader, where it is no link into /usr"),
    read("/etc/ssl/openssl.cnf", "node ends when it may not read it"),
    read("/etc/ssl/certs", "certificate authorities"),
    read("/etc/ca-certificates", "certificate authorities"),
    read("/etc/ca-certificates.conf", "certificate authorities"),
    // Not the whole of it, where private keys are too.
    read("/etc/pki/ca-trust", "certificate authorities"),
    read("/etc/pki/tls/cert.pem", "certificate authorities"),
    read("/etc/pki/tls/certs", "certificate authorities"),
    read(
        "/etc/pki/tls/openssl.cnf",
        "node ends when it may not read it",
    ),
    read("/etc/ld.so.cache", "where libraries are"),
    read("/etc/ld.so.conf", "where libraries are"),
    read("/etc/ld.so.conf.d", "where libraries are"),
    read(
        "/etc/alternatives",
        "which of several programs a name means",
    ),
    read("/etc/nsswitch.conf", "how names are looked up"),
    read("/etc/hosts", "names of hosts, localhost first"),
    read("/etc/host.conf", "how host names are looked up"),
    read("/etc/gai.conf", "order of addresses"),
    read("/etc/resolv.conf", "name servers"),
    read("/etc/passwd", "names and home directories of users"),
    read("/etc/group", "names of groups"),
    read(
        "/etc/localtime",
        "the time zone; python raises when it may not read it",
    ),
    read("/etc/mime.types", "types of files"),
    device("/dev/null", "child processes without input or output"),
    device("/dev/zero", "empty memory"),
    device("/dev/full", "tests of full disks"),
    device("/dev/random", "random numbers"),
    device("/dev/urandom", "random numbers"),
    read("/proc/stat", "node counts processors by it"),
    read("/proc/meminfo", "memory of the machine"),
    read("/proc/cpuinfo", "processors"),
    read("/proc/loadavg", "load"),
    read("/proc/uptime", "time since the start"),
    read("/proc/version", "the kernel"),
    read("/proc/filesystems", "what file systems there are"),
    read("/proc/sys/kernel/osrelease", "the kernel"),
    read(
        "/proc/sys/vm/overcommit_memory",
        "how allocators may behave",
    ),
];

const NPX_CACHE: &[BuiltIn] = &[
    write(".npm/_cacache", "packages that were fetched"),
    install(".npm/_npx", "packages that were installed, and are run"),
    write(".npm/_logs", "logs of npm"),
];

const UVX_CACHE: &[BuiltIn] = &[
    install(".cache/uv", "packages that were fetched and installed"),
    install(
        ".local/share/uv",
        "tools and interpreters that were installed",
    ),
];

/// Variables that are kept without being asked for: none carries a secret.
pub(super) const VARIABLES: &[&str] = &[
    "COLORTERM",
    "FORCE_COLOR",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TZ",
    "USER",
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn presets_have_names() {
        for (name, preset) in [
            ("static", Preset::Static),
            ("node", Preset::Node),
            ("python", Preset::Python),
            ("npx", Preset::Npx),
            ("uvx", Preset::Uvx),
        ] {
            assert_eq!(name.parse::<Preset>().unwrap(), preset);
        }
        assert_eq!(
            "Node".parse::<Preset>().unwrap_err().to_string(),
            "--preset needs node, python, npx, uvx or static, got `Node`"
        );
    }

    #[test]
    fn every_built_in_path_stands_once_and_says_why() {
        let mut seen = std::collections::BTreeSet::new();
        for path in RUNTIME {
            assert!(seen.insert(path.path), "{} stands twice", path.path);
            assert!(!path.why.is_empty() && Path::new(path.path).is_absolute());
            assert!(!path.access.writes(), "{} is shared by all", path.path);
        }
        for whole in [
            "/",
            "/etc",
            "/dev",
            "/proc",
            "/proc/self",
            "/tmp",
            "/home",
            "/dev/shm",
        ] {
            assert!(!seen.contains(whole), "{whole}");
        }
    }
}
