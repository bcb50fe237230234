//! Namespaces of a server's own: what `--allow-net` rests on, and who refuses
//! them where they are refused.
//!
//! The error alone names no cause: EPERM is what a security module, a sandbox,
//! a setting and a chroot all say. So the settings are asked which of them
//! would have said it.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::answers::{
    Answers, Container, DEBIAN, MAX_IPC_NAMESPACES, MAX_NET_NAMESPACES, MAX_USER_NAMESPACES, UBUNTU,
};
use super::finding::{Cure, Finding, Id, Status};
use super::kernel::{self, Wsl};
use super::probe::{Namespaces, Refused, Step};
use super::shell;
use crate::wire::escape::Escaped;

pub(super) fn finding(answers: &Answers) -> Finding {
    let refused = match &answers.namespaces {
        Namespaces::Given => {
            return Finding::ok(
                Id::UserNamespaces,
                "yes, with a network of its own",
                "a server can be given a network in which only aegis answers: --allow-net holds \
                 it to hosts and ports",
            );
        }
        Namespaces::Unknown(why) => {
            return Finding::new(
                Id::UserNamespaces,
                Status::Unknown,
                format!("could not be tried: {}", Escaped(why)),
                "whether --allow-net can be enforced is not known",
            )
            .cured(Cure::say(
                "mount /proc, and let this user start more processes; then ask again",
            ));
        }
        Namespaces::Refused(refused) => *refused,
    };
    let error = io::Error::from_raw_os_error(refused.errno);
    let (cause, cure) = cause(answers, refused);
    Finding::new(
        Id::UserNamespaces,
        Status::Limited,
        format!("no: {}: {error}{cause}", refused.step),
        match answers.filters {
            Ok(_) => {
                "--allow-net does not start; without it nothing is lost, since the system call \
                 filters refuse every network socket"
            }
            Err(_) => "with neither namespaces nor system call filters the network stays open",
        },
    )
    .cured(cure)
}

/// Who refused, with a comma before it, and what to do about it.
fn cause(answers: &Answers, refused: Refused) -> (String, Cure) {
    let Refused { step, errno } = refused;
    let is_denied = [Errno::PERM, Errno::ACCESS]
        .map(Errno::raw_os_error)
        .contains(&errno);
    let by = |cause: &str, cure| (format!(", by {cause}"), cure);
    if Wsl::of(answers) == Some(Wsl::One) {
        return by("WSL 1", kernel::leave_wsl_1());
    }
    if [Errno::NOSPC, Errno::USERS]
        .map(Errno::raw_os_error)
        .contains(&errno)
    {
        let setting = match step {
            Step::Network => MAX_NET_NAMESPACES,
            Step::Ipc => MAX_IPC_NAMESPACES,
            _ => MAX_USER_NAMESPACES,
        };
        let value = answers.settings.get(setting);
        let value = value.map_or(String::new(), |value| format!(" = {}", Escaped(value)));
        let cure = set("allow more of them, as root:", setting, MORE_NAMESPACES);
        return by(&format!("{setting}{value}"), cure);
    }
    if is_denied && answers.user != 0 && answers.number(DEBIAN) == Some(0) {
        let cure = set("allow them to users, as root:", DEBIAN, "1");
        return by(&format!("{DEBIAN} = 0"), cure);
    }
    // A container's own filters come before the host's settings, which can be
    // seen in it too.
    let is_first = step == Step::User;
    if is_denied && is_first && answers.outer.is_filtered {
        return match answers.outer.container {
            Some(container) => {
                let cause = format!("the system call filters of the {}", container.name());
                by(&cause, of_container(container))
            }
            None => by(
                "system call filters around aegis",
                Cure::say(
                    "start aegis outside of the sandbox that it runs in; in a service of \
                     systemd, set:",
                )
                .line("RestrictNamespaces=no"),
            ),
        };
    }
    if is_denied && answers.number(UBUNTU) == Some(1) {
        return by(&format!("{UBUNTU} = 1"), apparmor_profile(answers));
    }
    if is_first
        && [Errno::INVAL, Errno::NOSYS]
            .map(Errno::raw_os_error)
            .contains(&errno)
    {
        let cure = Cure::say("use a kernel with CONFIG_USER_NS and CONFIG_NET_NS");
        return by("a kernel that has none", cure);
    }
    let cure = match answers.outer.container {
        Some(container) => of_container(container),
        None => Cure::say(
            "no setting says why: look for a security module, a chroot or an outer sandbox. \
             Whether other programs may is told by:",
        )
        .line("unshare --user --map-current-user --net true"),
    };
    (String::new(), cure)
}

fn set(text: &str, setting: &str, value: &str) -> Cure {
    Cure::say(text)
        .line(format!("sysctl -w {setting}={value}"))
        .line(format!(
            "echo {setting}={value} >>/etc/sysctl.d/90-aegis.conf"
        ))
}

fn of_container(container: Container) -> Cure {
    match container {
        Container::Docker | Container::Podman => {
            let program = match container {
                Container::Docker => "docker",
                _ => "podman",
            };
            Cure::say(
                "run the container with its seccomp profile, changed to allow unshare, or with \
                 none, which takes a fence from everything in it:",
            )
            .line(format!(
                "{program} run --security-opt seccomp=PROFILE.json ..."
            ))
            .line(format!(
                "{program} run --security-opt seccomp=unconfined ..."
            ))
        }
        Container::Kubernetes => Cure::say(
            "give the container a seccomp profile that allows unshare, in its securityContext:",
        )
        .line("seccompProfile: {type: Localhost, localhostProfile: PROFILE.json}"),
        Container::Other => Cure::say("allow unshare in the container's settings"),
    }
}

/// From release 23.10 on Ubuntu gives namespaces only to programs that have a
/// profile which says so. Whatever has the path of a profile gets what it
/// allows, so the path has to be one that only root can write to.
fn apparmor_profile(answers: &Answers) -> Cure {
    let (mut cure, path) = match apparmor_path(&answers.executable) {
        Some(path) => (
            Cure::say("give aegis an AppArmor profile that allows them, as root:"),
            path,
        ),
        None => (
            Cure::say(
                "put aegis where only root can write, and give it an AppArmor profile that \
                 allows them, as root:",
            )
            .line(format!(
                "install -m 755 {} {INSTALLED}",
                shell::word(&answers.executable)
            )),
            INSTALLED.to_owned(),
        ),
    };
    // No here-document: pasted with the indentation of a report it would not
    // end.
    cure.lines.extend([
        r"printf '%s\n' 'abi <abi/4.0>,' 'include <tunables/global>' \".to_owned(),
        format!(r"  'profile aegis {path} flags=(unconfined) {{' \"),
        r"  '  userns,' '  include if exists <local/aegis>' '}' \".to_owned(),
        format!("  >{PROFILE}"),
        format!("apparmor_parser --replace {PROFILE}"),
    ]);
    cure
}

/// As apparmor.d(5) quotes it. Its patterns would match more than the path.
fn apparmor_path(path: &Path) -> Option<String> {
    let path = path.to_str()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+ ".contains(c);
    let is_roots = ROOTS.iter().any(|root| path.starts_with(root));
    if !is_roots || !path.chars().all(is_plain) {
        return None;
    }
    Some(match path.contains(' ') {
        true => format!("\"{path}\""),
        false => path.to_owned(),
    })
}

/// Where programs are that only root installs.
const ROOTS: [&str; 4] = ["/usr/", "/opt/", "/bin/", "/sbin/"];

const INSTALLED: &str = "/usr/local/bin/aegis";

const PROFILE: &str = "/etc/apparmor.d/aegis";

/// What most distributions allow at least.
const MORE_NAMESPACES: &str = "15000";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::pretend;

    /// Pasted as it is printed.
    #[test]
    fn the_commands_write_the_profile() {
        for (executable, named) in [
            ("/usr/bin/aegis", "/usr/bin/aegis"),
            ("/opt/a b/aegis", "\"/opt/a b/aegis\""),
            ("/home/user/it's", INSTALLED),
        ] {
            let answers = Answers {
                executable: executable.into(),
                ..pretend::whole()
            };
            let file = tempfile::NamedTempFile::new().unwrap();
            let mut lines = apparmor_profile(&answers).lines;
            lines.retain(|line| !line.starts_with("install"));
            assert_eq!(
                lines.pop().unwrap().split(' ').next(),
                Some("apparmor_parser")
            );
            let script: String = lines.iter().map(|line| format!("     {line}\n")).collect();
            let script = script.replace(PROFILE, file.path().to_str().unwrap());
            let ran = std::process::Command::new("sh")
                .args(["-c", &script])
                .status();
            assert!(ran.unwrap().success());
            assert_eq!(
                std::fs::read_to_string(file.path()).unwrap(),
                format!(
                    "abi <abi/4.0>,\ninclude <tunables/global>\n\
                     profile aegis {named} flags=(unconfined) {{\n  userns,\n  \
                     include if exists <local/aegis>\n}}\n"
                )
            );
        }
    }

    #[test]
    fn a_path_that_a_profile_would_widen_gets_none() {
        for (path, expected) in [
            ("/usr/bin/aegis", Some("/usr/bin/aegis")),
            ("/opt/a b/aegis", Some("\"/opt/a b/aegis\"")),
            ("/opt/*/aegis", None),
            ("/opt/{a,b}", None),
            ("/opt/a\n}", None),
            ("/opt/\"", None),
            ("/home/user/aegis", None),
            ("aegis", None),
        ] {
            assert_eq!(apparmor_path(Path::new(path)).as_deref(), expected);
        }
    }
}
