//! Why a machine gave no namespaces, and what its owner can do about it.

use std::fmt;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// A step that a machine refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refused {
    /// The step.
    pub(crate) step: Step,
    /// The system's error number.
    pub(crate) errno: i32,
}

/// A step into namespaces of one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    /// They are made.
    Unshare,
    /// Groups are given up, without which none may be named.
    SetGroups,
    /// The user is named.
    UserMap,
    /// The group is named.
    GroupMap,
    /// Routes are spoken of.
    Netlink,
    /// The loopback interface is started.
    LinkUp,
    /// Every address is made a local one.
    Route,
}

impl Refused {
    /// The cause as far as it can be told and what helps, by the settings of
    /// this machine: `setting` reads one below `/proc/sys`.
    pub(crate) fn cause(&self, setting: impl Fn(&str) -> Option<String>) -> &'static str {
        let is = |name, value: &str| setting(name).is_some_and(|held| held.trim() == value);
        let errno = Errno::from_raw_os_error(self.errno);
        if is("user/max_user_namespaces", "0") || is("user/max_net_namespaces", "0") {
            return "none may be made; set user.max_user_namespaces and user.max_net_namespaces above 0";
        }
        match (self.step, errno) {
            (_, Errno::MFILE | Errno::NFILE) => {
                "no more files can be opened; raise the limit (ulimit -n)"
            }
            (Step::Unshare, Errno::NOSPC | Errno::USERS) => {
                "as many exist as may; raise user.max_user_namespaces and user.max_net_namespaces, or end some"
            }
            (Step::Unshare, Errno::INVAL | Errno::NOSYS) => {
                "the kernel was built without them; use one with CONFIG_USER_NS and CONFIG_NET_NS"
            }
            (Step::Unshare, Errno::PERM | Errno::ACCESS)
                if is("kernel/unprivileged_userns_clone", "0") =>
            {
                "plain users may make none; set kernel.unprivileged_userns_clone to 1"
            }
            (_, Errno::PERM | Errno::ACCESS)
                if is("kernel/apparmor_restrict_unprivileged_userns", "1") =>
            {
                "AppArmor gives programs without a profile none (kernel.apparmor_restrict_unprivileged_userns); load a profile with `userns,` for the path of aegis"
            }
            (Step::Unshare, Errno::PERM | Errno::ACCESS) => {
                "a container or a system call filter forbids them, or aegis is confined itself; allow unshare there"
            }
            (
                Step::UserMap | Step::GroupMap | Step::SetGroups,
                Errno::PERM | Errno::ACCESS | Errno::ROFS,
            ) => {
                "a security module or a container forbids it; allow user namespaces to aegis there, and CAP_SETFCAP to root"
            }
            (_, Errno::PERM | Errno::ACCESS) => {
                "a security module or a container forbids it; allow network namespaces to aegis there"
            }
            _ => "the kernel did not do it; `aegis doctor` tries it alone",
        }
    }
}

/// What happened, without the cause.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = Errno::from_raw_os_error(self.errno);
        write!(f, "{}: {error}", self.step)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unshare => "unshare",
            Self::SetGroups => "setgroups",
            Self::UserMap => "uid_map",
            Self::GroupMap => "gid_map",
            Self::Netlink => "netlink",
            Self::LinkUp => "RTM_NEWLINK",
            Self::Route => "RTM_NEWROUTE",
        })
    }
}

/// A setting of this machine.
pub(crate) fn setting(name: &str) -> Option<String> {
    std::fs::read_to_string(std::path::Path::new("/proc/sys").join(name)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(step: Step, errno: Errno, settings: &[(&str, &str)]) -> &'static str {
        let refused = Refused {
            step,
            errno: errno.raw_os_error(),
        };
        refused.cause(|name| {
            let found = settings.iter().find(|(known, _)| *known == name)?;
            Some(format!("{}\n", found.1))
        })
    }

    #[test]
    fn the_cause_follows_step_error_and_settings() {
        let apparmor = ("kernel/apparmor_restrict_unprivileged_userns", "1");
        let debian = ("kernel/unprivileged_userns_clone", "0");
        let none = ("user/max_user_namespaces", "0");
        let rows = [
            (Step::Unshare, Errno::NOSPC, vec![], "as many exist"),
            (Step::Unshare, Errno::USERS, vec![], "as many exist"),
            (Step::Unshare, Errno::NOSPC, vec![none], "none may be made"),
            (Step::Unshare, Errno::INVAL, vec![], "the kernel was built"),
            (Step::Unshare, Errno::PERM, vec![], "a container or"),
            (Step::Unshare, Errno::PERM, vec![debian], "plain users"),
            (Step::Unshare, Errno::PERM, vec![apparmor], "AppArmor"),
            (Step::UserMap, Errno::PERM, vec![apparmor], "AppArmor"),
            (Step::LinkUp, Errno::PERM, vec![apparmor], "AppArmor"),
            (Step::UserMap, Errno::PERM, vec![], "a security module"),
            (Step::Route, Errno::PERM, vec![], "a security module"),
            (Step::SetGroups, Errno::ROFS, vec![], "a security module"),
            (Step::UserMap, Errno::IO, vec![], "the kernel did not"),
            (Step::Netlink, Errno::MFILE, vec![], "no more files"),
        ];
        for (step, errno, settings, starts) in rows {
            let cause = cause(step, errno, &settings);
            assert!(cause.starts_with(starts), "{step}, {errno}: {cause}");
        }
    }

    #[test]
    fn what_happened_names_step_and_error() {
        let refused = Refused {
            step: Step::UserMap,
            errno: Errno::PERM.raw_os_error(),
        };
        assert_eq!(
            refused.to_string(),
            "uid_map: Operation not permitted (os error 1)"
        );
    }
}
