//! The kernel, what this process is in already, and what both leave of
//! Landlock and of system call filters.

use super::answers::{Answers, Container, FILTERED, Landlock};
use super::finding::{Cure, Finding, Id, Status};
use crate::wire::escape::Escaped;

pub(super) fn findings(answers: &Answers) -> Vec<Finding> {
    vec![
        kernel(answers),
        architecture(answers),
        surroundings(answers),
        landlock(answers),
        system_calls(answers),
        settings(answers),
    ]
}

fn kernel(answers: &Answers) -> Finding {
    let release = format!("Linux {}", Escaped(&answers.release));
    match Release::parse(&answers.release) {
        None => Finding::new(
            Id::Kernel,
            Status::Unknown,
            release,
            "its version cannot be read",
        )
        .cured(Cure::say("mount /proc, and ask again")),
        Some(_) => Finding::ok(
            Id::Kernel,
            release,
            "what it offers is tried below, not concluded from its version",
        ),
    }
}

fn architecture(answers: &Answers) -> Finding {
    let name = Escaped(&answers.architecture).to_string();
    if is_known(answers) {
        return Finding::ok(
            Id::Architecture,
            name,
            "the numbers of its system calls are known",
        );
    }
    Finding::new(
        Id::Architecture,
        Status::Missing,
        name,
        "the numbers of its system calls are not known, so none can be refused: --confine does \
         not start",
    )
    .cured(other_machine())
}

fn is_known(answers: &Answers) -> bool {
    ["x86_64", "aarch64"].contains(&answers.architecture.as_str())
}

fn other_machine() -> Cure {
    Cure::say("use a machine of x86_64 or aarch64")
}

/// What cannot be changed from inside. It is a gap only where something below
/// fails, and is named there.
fn surroundings(answers: &Answers) -> Finding {
    let mut found = Vec::new();
    match Wsl::of(answers) {
        Some(Wsl::One) => found.push("WSL 1".to_owned()),
        Some(Wsl::Two) => found.push("WSL 2".to_owned()),
        None => {}
    }
    if let Some(container) = answers.outer.container {
        found.push(format!("signs of a {}", container.name()));
    }
    if answers.outer.is_filtered {
        found.push("system call filters".to_owned());
    }
    if answers.outer.no_new_privs {
        found.push("no_new_privs".to_owned());
    }
    if let Some(profile) = &answers.outer.apparmor {
        found.push(format!("AppArmor profile {}", Escaped(profile)));
    }
    if found.is_empty() {
        return Finding::ok(
            Id::Surroundings,
            "no sandbox that can be seen",
            "an outer Landlock fence cannot be seen from inside; what follows was tried inside it",
        );
    }
    Finding::ok(
        Id::Surroundings,
        found.join(", "),
        "aegis runs inside of this, and everything below was tried inside of it",
    )
}

fn landlock(answers: &Answers) -> Finding {
    match &answers.landlock {
        Landlock::Enforced {
            abi,
            kernel_abi,
            errata,
            gaps,
        } => {
            let mut found = format!("ABI {abi}");
            if let Some(newer) = kernel_abi {
                found.push_str(&format!(" of the {newer} that the kernel offers"));
            }
            if !errata.is_empty() {
                let errata: Vec<_> = errata.iter().map(u32::to_string).collect();
                found.push_str(&format!(", errata fixed: {}", errata.join(", ")));
            }
            enforced(answers, found, *abi, gaps)
        }
        Landlock::TooOld { abi, gaps } => Finding::new(
            Id::Landlock,
            Status::Missing,
            format!("ABI {abi}, which cannot refuse {}", Escaped(gaps)),
            "--confine does not start; with --best-effort it would, and files outside of every \
             grant could be emptied",
        )
        .cured(newer_kernel(answers, "6.12")),
        Landlock::Unavailable => Finding::new(
            Id::Landlock,
            Status::Missing,
            "none",
            "--confine does not start; with --best-effort it would, without a fence around files",
        )
        .cured(offer_landlock(answers)),
        Landlock::Failed(why) => Finding::new(
            Id::Landlock,
            Status::Missing,
            Escaped(why).to_string(),
            "--confine does not start: there is no fence around files",
        )
        .cured(Cure::say(
            "start aegis outside of the sandbox that it runs in; of Landlock fences at most 16 \
             can stand inside one another",
        )),
    }
}

fn enforced(answers: &Answers, found: String, abi: u32, gaps: &[String]) -> Finding {
    let (has, lacks): (Vec<_>, Vec<_>) = STEPS.iter().partition(|(since, _)| *since <= abi);
    let list = |steps: Vec<&(u32, &str)>| {
        let named: Vec<_> = steps.iter().map(|(_, what)| *what).collect();
        named.join(", ")
    };
    let mut means = format!("offers {}", list(has));
    if !lacks.is_empty() {
        means.push_str(&format!("; lacks {}", list(lacks)));
    }
    if gaps.is_empty() {
        if abi < UNIX_BY_PATH {
            means.push_str(
                ". The filters refuse Unix sockets instead, unless --allow-unix-sockets, which \
                 opens every one on this machine",
            );
        }
        return Finding::ok(Id::Landlock, found, means);
    }
    means.push_str(&format!(
        ". --confine does not start; with --best-effort it would, and a server is not kept from: {}",
        Escaped(&gaps.join(", "))
    ));
    Finding::new(Id::Landlock, Status::Missing, found, means).cured(newer_kernel(answers, "6.12"))
}

/// Where Landlock is not there at all.
fn offer_landlock(answers: &Answers) -> Cure {
    let is_old = Release::parse(&answers.release).is_some_and(|release| release < LANDLOCK_SINCE);
    if is_old {
        return newer_kernel(answers, "6.12");
    }
    let modules = answers.modules.as_deref();
    if modules.is_some_and(|modules| modules.split(',').any(|name| name == "landlock")) {
        return Cure::say(match answers.outer.container {
            Some(_) => {
                "the kernel has it, and the container's system call filters refuse it: allow \
                 landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in them, \
                 or bring the container runtime up to date"
            }
            None => {
                "the kernel has it, and something around aegis refuses it: start aegis outside \
                 of that sandbox"
            }
        });
    }
    let others = match modules {
        Some(modules) => Escaped(modules).to_string(),
        None => "(what `cat /sys/kernel/security/lsm` prints)".to_owned(),
    };
    Cure::say(
        "add it to the security modules in the kernel's command line, and restart; a kernel \
         without CONFIG_SECURITY_LANDLOCK has to be replaced",
    )
    .line(format!("lsm=landlock,{others}"))
}

fn newer_kernel(answers: &Answers, since: &str) -> Cure {
    match Wsl::of(answers) {
        Some(Wsl::One) => leave_wsl_1(),
        Some(Wsl::Two) => {
            Cure::say("take the newest kernel of WSL, in Windows:").line("wsl --update")
        }
        None if answers.outer.container.is_some() => Cure::say(format!(
            "the kernel is the host's: run Linux {since} or later there"
        )),
        None => Cure::say(format!("run Linux {since} or later")),
    }
}

pub(super) fn leave_wsl_1() -> Cure {
    Cure::say("WSL 1 has no Linux kernel; go over to WSL 2, in Windows:")
        .line("wsl --set-version DISTRIBUTION 2")
}

fn system_calls(answers: &Answers) -> Finding {
    match &answers.filters {
        Ok(loaded) => Finding::ok(
            Id::SystemCalls,
            format!(
                "{} filters of {} instructions, {} forbidden calls tried and refused",
                loaded.filters, loaded.instructions, loaded.refused
            ),
            "what Landlock does not cover can be refused",
        ),
        Err(why) => Finding::new(
            Id::SystemCalls,
            Status::Missing,
            Escaped(why).to_string(),
            "--confine does not start: without filters a server reaches Unix sockets, io_uring, \
             the terminal, and with no network namespace every host",
        )
        .cured(match Wsl::of(answers) {
            Some(Wsl::One) => leave_wsl_1(),
            _ if !is_known(answers) => other_machine(),
            _ => Cure::say(
                "use a kernel with CONFIG_SECCOMP_FILTER, outside of a sandbox that refuses \
                 seccomp(2)",
            ),
        }),
    }
}

/// Settings that matter only where no filter stands before them.
fn settings(answers: &Answers) -> Finding {
    let at = |(name, _): &(&'static str, &str)| Some((*name, answers.settings.get(name)?));
    let found: Vec<_> = FILTERED
        .iter()
        .filter_map(at)
        .map(|(name, value)| {
            let short = name.rsplit('.').next().unwrap_or(name);
            format!("{short} {}", Escaped(value))
        })
        .collect();
    let found = match found.is_empty() {
        true => "none of these can be read".to_owned(),
        false => found.join(", "),
    };
    if answers.filters.is_ok() {
        return Finding::ok(
            Id::Settings,
            found,
            "whatever they allow, the filters refuse it to a confined server",
        );
    }
    let loose = FILTERED.iter().filter(|(name, strict)| {
        let (now, strict) = (answers.number(name), strict.parse().ok());
        let is_there = answers.settings.contains_key(name);
        // What is no number is not known to be strict.
        is_there
            && match *name {
                "dev.tty.legacy_tiocsti" => now.is_none() || now > strict,
                _ => now < strict,
            }
    });
    let cure = loose.fold(
        Cure::say("close what the filters would, for the whole machine, as root:"),
        |cure, (name, strict)| cure.line(format!("sysctl -w {name}={strict}")),
    );
    match cure.lines.is_empty() {
        true => Finding::ok(
            Id::Settings,
            found,
            "strict, and no filters are needed for them",
        ),
        false => Finding::new(
            Id::Settings,
            Status::Limited,
            found,
            "no filters stand before what these leave open",
        )
        .cured(cure),
    }
}

/// The first two numbers of a kernel's release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Release(u32, u32);

impl Release {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next()?.parse().ok();
        Some(Self(next()?, next()?))
    }
}

/// Linux under Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wsl {
    /// Calls translated to Windows.
    One,
    /// A kernel of its own.
    Two,
}

impl Wsl {
    pub(super) fn of(answers: &Answers) -> Option<Self> {
        let release = answers.release.to_ascii_lowercase();
        if !release.contains("microsoft") {
            return None;
        }
        // The first one says 4.4 for good.
        let is_first = Release::parse(&release).is_some_and(|release| release <= Release(4, 4));
        Some(if is_first { Self::One } else { Self::Two })
    }
}

impl Container {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Docker => "Docker container",
            Self::Podman => "Podman container",
            Self::Kubernetes => "Kubernetes pod",
            Self::Other => "container",
        }
    }
}

const LANDLOCK_SINCE: Release = Release(5, 13);

/// From this ABI on a Unix socket by path is Landlock's.
const UNIX_BY_PATH: u32 = 9;

/// What each ABI offers first (Linux, Documentation/userspace-api/landlock.rst).
const STEPS: [(u32, &str); 9] = [
    (1, "files"),
    (2, "links across directories (2)"),
    (3, "truncating (3)"),
    (4, "TCP ports (4)"),
    (5, "device ioctls (5)"),
    (6, "signals and abstract Unix sockets (6)"),
    (7, "noting denials in the audit log (7)"),
    (9, "Unix sockets by path (9)"),
    (10, "UDP ports (10)"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_two_numbers_with_whatever_behind() {
        for (text, expected) in [
            ("6.18.5", Some(Release(6, 18))),
            ("5.10-rc1", Some(Release(5, 10))),
            ("4.4.0-19041-Microsoft", Some(Release(4, 4))),
            ("6", None),
            ("", None),
            ("99999999999.1", None),
        ] {
            assert_eq!(Release::parse(text), expected, "{text}");
        }
        assert!(Release(5, 4) < Release(5, 13));
    }
}
