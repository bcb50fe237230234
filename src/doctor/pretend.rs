//! Machines that this one is not.

use std::net::IpAddr;

use super::answers::{Answers, Container, Landlock, Loaded, Outer};
use super::probe::{Namespaces, Refused, Step};

/// Each with its name.
pub(crate) fn machines() -> Vec<(&'static str, Answers)> {
    vec![
        ("whole", whole()),
        ("newer_kernel", newer_kernel()),
        ("ubuntu_apparmor", ubuntu()),
        ("debian_no_userns", debian()),
        ("docker", docker()),
        ("docker_without_landlock", docker_without_landlock()),
        ("systemd_service", systemd_service()),
        ("no_namespaces_left", none_left()),
        ("old_kernel", old_kernel()),
        ("landlock_gaps", landlock_gaps()),
        ("landlock_too_old", landlock_too_old()),
        ("landlock_not_enabled", landlock_not_enabled()),
        ("wsl_1", wsl_1()),
        ("wsl_2", wsl_2()),
        ("no_seccomp", no_seccomp()),
        ("riscv", riscv()),
        ("poor_limits", poor_limits()),
        ("silent_probe", silent_probe()),
    ]
}

/// Everything can be enforced.
pub(crate) fn whole() -> Answers {
    Answers {
        release: "6.12.9-amd64".to_owned(),
        architecture: "x86_64".to_owned(),
        user: 1000,
        executable: "/usr/local/bin/aegis".into(),
        landlock: enforced(6, &[]),
        filters: Ok(Loaded {
            filters: 3,
            instructions: 600,
            refused: 19,
        }),
        namespaces: Namespaces::Given,
        settings: [
            ("user.max_user_namespaces", "31231"),
            ("user.max_net_namespaces", "31231"),
            ("kernel.yama.ptrace_scope", "0"),
            ("dev.tty.legacy_tiocsti", "1"),
            ("kernel.io_uring_disabled", "0"),
            ("kernel.unprivileged_bpf_disabled", "2"),
            ("kernel.perf_event_paranoid", "3"),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .into(),
        modules: Some("lockdown,capability,landlock,yama,apparmor".to_owned()),
        outer: Outer::default(),
        ipv6: true,
        name_servers: Ok(vec![IpAddr::from([192, 0, 2, 53])]),
        open_files: Some(1024),
    }
}

fn newer_kernel() -> Answers {
    Answers {
        landlock: Landlock::Enforced {
            abi: 10,
            kernel_abi: Some(12),
            errata: vec![1, 2, 3],
            gaps: Vec::new(),
        },
        ..whole()
    }
}

fn ubuntu() -> Answers {
    let mut machine = Answers {
        release: "6.8.0-51-generic".to_owned(),
        landlock: enforced(4, &["device_ioctl", "signals", "abstract_unix_sockets"]),
        executable: "/home/user/bin/aegis".into(),
        namespaces: refused(Step::UidMap, EPERM),
        ..whole()
    };
    set(
        &mut machine,
        "kernel.apparmor_restrict_unprivileged_userns",
        "1",
    );
    machine
}

fn debian() -> Answers {
    let mut machine = Answers {
        namespaces: refused(Step::User, EPERM),
        ..whole()
    };
    set(&mut machine, "kernel.unprivileged_userns_clone", "0");
    machine
}

/// On a host that restricts namespaces by AppArmor too.
fn docker() -> Answers {
    let mut machine = Answers {
        user: 0,
        namespaces: refused(Step::User, EPERM),
        outer: Outer {
            container: Some(Container::Docker),
            is_filtered: true,
            apparmor: Some("docker-default (enforce)".to_owned()),
            no_new_privs: false,
        },
        ipv6: false,
        ..whole()
    };
    set(
        &mut machine,
        "kernel.apparmor_restrict_unprivileged_userns",
        "1",
    );
    machine
}

fn docker_without_landlock() -> Answers {
    Answers {
        landlock: Landlock::Unavailable,
        ..docker()
    }
}

fn systemd_service() -> Answers {
    Answers {
        namespaces: refused(Step::User, EPERM),
        outer: Outer {
            is_filtered: true,
            no_new_privs: true,
            ..Outer::default()
        },
        ..whole()
    }
}

fn none_left() -> Answers {
    let mut machine = Answers {
        namespaces: refused(Step::User, ENOSPC),
        ..whole()
    };
    set(&mut machine, "user.max_user_namespaces", "0");
    machine
}

fn old_kernel() -> Answers {
    Answers {
        release: "5.4.0-216-generic".to_owned(),
        landlock: Landlock::Unavailable,
        modules: Some("lockdown,capability,yama,apparmor".to_owned()),
        ..whole()
    }
}

fn landlock_gaps() -> Answers {
    Answers {
        release: "6.7.1".to_owned(),
        landlock: enforced(4, &["device_ioctl", "signals", "abstract_unix_sockets"]),
        ..whole()
    }
}

fn landlock_too_old() -> Answers {
    Answers {
        release: "6.1.0-40-amd64".to_owned(),
        landlock: Landlock::TooOld {
            abi: 2,
            gaps: "truncate, device_ioctl, signals, abstract_unix_sockets".to_owned(),
        },
        ..whole()
    }
}

fn landlock_not_enabled() -> Answers {
    Answers {
        landlock: Landlock::Unavailable,
        modules: Some("capability,selinux,bpf".to_owned()),
        ..whole()
    }
}

fn wsl_1() -> Answers {
    Answers {
        release: "4.4.0-19041-Microsoft".to_owned(),
        landlock: Landlock::Unavailable,
        filters: Err("the kernel did not take the system call filter numbers: Invalid argument (os error 22): confinement needs a kernel with CONFIG_SECCOMP_FILTER".to_owned()),
        namespaces: refused(Step::User, EINVAL),
        settings: [].into(),
        modules: None,
        ..whole()
    }
}

fn wsl_2() -> Answers {
    Answers {
        release: "5.10.102.1-microsoft-standard-WSL2".to_owned(),
        landlock: Landlock::Unavailable,
        modules: None,
        ..whole()
    }
}

fn no_seccomp() -> Answers {
    Answers {
        filters: Err("the kernel did not take the system call filter numbers: Function not implemented (os error 38): confinement needs a kernel with CONFIG_SECCOMP_FILTER".to_owned()),
        ..whole()
    }
}

fn riscv() -> Answers {
    Answers {
        architecture: "riscv64".to_owned(),
        filters: Err("no system call filters are known for the architecture riscv64: confinement needs x86_64 or aarch64".to_owned()),
        ..whole()
    }
}

fn poor_limits() -> Answers {
    Answers {
        name_servers: Err("it names no name server; add a line `nameserver ADDRESS`".to_owned()),
        open_files: Some(super::network::ENOUGH_FILES - 1),
        namespaces: refused(Step::Loopback, EPERM),
        ..whole()
    }
}

fn silent_probe() -> Answers {
    Answers {
        namespaces: Namespaces::Unknown("timed out".to_owned()),
        open_files: None,
        ..whole()
    }
}

fn enforced(abi: u32, gaps: &[&str]) -> Landlock {
    Landlock::Enforced {
        abi,
        kernel_abi: None,
        errata: Vec::new(),
        gaps: gaps.iter().map(|&gap| gap.to_owned()).collect(),
    }
}

fn refused(step: Step, errno: i32) -> Namespaces {
    Namespaces::Refused(Refused { step, errno })
}

fn set(machine: &mut Answers, setting: &'static str, value: &str) {
    machine.settings.insert(setting, value.to_owned());
}

const EPERM: i32 = 1;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
