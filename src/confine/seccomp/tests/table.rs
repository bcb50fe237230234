//! Rows of calls and what becomes of them.

use seccompiler::sock_filter;

use super::super::{Arch, Filters, Metadata, Network, Plan, Program, SeccompError, calls, compile};
use super::interpreter::{AUDIT_ARM, AUDIT_I386, AUDIT_X86_64, Made, Verdict, decide};
use super::numbers::all;
use super::{ARCHES, NARROW, built, plans};
use crate::wire::digest::Digest;

const ALLOW: Verdict = Verdict::Allow;
const EPERM: Verdict = Verdict::Errno(1);
const ENOSYS: Verdict = Verdict::Errno(38);
/// The bits above an `int`, which the kernel does not look at.
const HIGH: u64 = 0xffff_ffff_0000_0000;

const NAMESPACE: Plan = Plan {
    network: Network::Namespace,
    unix_sockets: false,
    metadata: Metadata::Denied,
};
const PORT_ONLY: Plan = Plan {
    network: Network::PortOnly,
    ..NAMESPACE
};
const UNIX: Plan = Plan {
    unix_sockets: true,
    ..NARROW
};

fn number(name: &str, arch: Arch) -> u32 {
    let call = all().into_iter().find(|call| call.name == name);
    let call = call.unwrap_or_else(|| panic!("{name} is not in the table"));
    call.number(arch)
        .unwrap_or_else(|| panic!("{arch:?} has no {name}"))
}

/// On both architectures.
#[track_caller]
fn assert_becomes(plan: &Plan, name: &str, args: &[u64], verdict: Verdict) {
    for arch in ARCHES {
        let made = Made::new(arch, number(name, arch), args);
        let found = decide(&built(plan, arch), &made);
        assert_eq!(found, verdict, "{name} {args:x?} under {plan:?}");
    }
}

#[test]
fn whole_calls_are_denied_under_every_plan() {
    for arch in ARCHES {
        for plan in plans() {
            let filters = built(&plan, arch);
            for group in calls::DENIED {
                for call in group.calls {
                    let Some(nr) = call.number(arch) else {
                        continue;
                    };
                    for args in [[0; 6], [u64::MAX; 6]] {
                        let found = decide(&filters, &Made::new(arch, nr, &args));
                        assert_eq!(found, EPERM, "{}: {}", call.name, group.why);
                    }
                }
            }
        }
    }
}

#[test]
fn metadata_is_denied_by_path_and_only_if_asked() {
    let allowing = Plan {
        metadata: Metadata::Allowed,
        ..NARROW
    };
    for arch in ARCHES {
        for call in calls::METADATA.calls {
            let Some(nr) = call.number(arch) else {
                continue;
            };
            let made = Made::new(arch, nr, &[1; 6]);
            assert_eq!(decide(&built(&NARROW, arch), &made), EPERM, "{}", call.name);
            assert_eq!(
                decide(&built(&allowing, arch), &made),
                ALLOW,
                "{}",
                call.name
            );
        }
    }
    // futimens has no path. A pointer has 64 bits: one of which only the
    // upper half is set is one.
    assert_becomes(&NARROW, "utimensat", &[3, 0, 0, 0], ALLOW);
    assert_becomes(&NARROW, "utimensat", &[3, 0x7f00, 0, 0], EPERM);
    assert_becomes(&NARROW, "utimensat", &[3, 0x7f00_0000_0000, 0, 0], EPERM);
    assert_becomes(&allowing, "utimensat", &[3, 0x7f00, 0, 0], ALLOW);
}

#[test]
fn clone_makes_threads_and_processes_and_no_namespace() {
    const THREAD: u64 = 0x003d_0f00; // as glibc and musl make one
    const FORK: u64 = 0x0120_0011;
    const VFORK: u64 = 0x4111;
    for flags in [THREAD, FORK, VFORK, 17] {
        assert_becomes(&NARROW, "clone", &[flags], ALLOW);
        // The kernel takes the lower half only: so does the rule.
        assert_becomes(&NARROW, "clone", &[flags | HIGH], ALLOW);
    }
    for new in [
        0x0002_0000_u64,
        0x0200_0000,
        0x0400_0000,
        0x0800_0000,
        0x1000_0000,
        0x2000_0000,
        0x4000_0000,
    ] {
        for flags in [new, new | 17, new | THREAD, new | HIGH, new | 0x7e02_0000] {
            assert_becomes(&NARROW, "clone", &[flags], EPERM);
        }
    }
    // ENOSYS, so that C libraries fall back to clone.
    assert_becomes(&NARROW, "clone3", &[0, 88], ENOSYS);
}

#[test]
fn terminals_are_not_typed_into() {
    for request in [0x5412_u64, 0x541c, 0x541d, 0x5423] {
        assert_becomes(&NARROW, "ioctl", &[0, request, 1], EPERM);
        assert_becomes(&NARROW, "ioctl", &[0, request | HIGH, 1], EPERM);
        assert_becomes(&NARROW, "ioctl", &[0, request | 1 << 32, 1], EPERM);
    }
    // TCGETS, TIOCGWINSZ, FIONBIO, FIOCLEX.
    for request in [0x5401_u64, 0x5413, 0x5421, 0x5451] {
        assert_becomes(&NARROW, "ioctl", &[0x5412, request, 0x5412], ALLOW);
    }
}

#[test]
fn sockets_by_domain_type_and_protocol() {
    const FLAGS: u64 = 0x8_0800; // SOCK_CLOEXEC | SOCK_NONBLOCK
    // Domain, type, protocol: denied network, port-only, own namespace.
    let rows: &[([u64; 3], [Verdict; 3])] = &[
        ([1, 1, 0], [EPERM, EPERM, EPERM]),      // unix
        ([2, 1, 0], [EPERM, ALLOW, ALLOW]),      // inet, stream
        ([2, 1, 6], [EPERM, ALLOW, ALLOW]),      // TCP
        ([10, 1, 6], [EPERM, ALLOW, ALLOW]),     // TCP over IPv6
        ([2, 1, 262], [EPERM, EPERM, EPERM]),    // MPTCP
        ([10, 1, 262], [EPERM, EPERM, EPERM]),   // MPTCP over IPv6
        ([2, 1, 132], [EPERM, EPERM, EPERM]),    // SCTP
        ([2, 1, 256], [EPERM, EPERM, EPERM]),    // SMC
        ([2, 2, 0], [EPERM, EPERM, ALLOW]),      // inet, datagram
        ([10, 2, 17], [EPERM, EPERM, ALLOW]),    // UDP over IPv6
        ([2, 2, 136], [EPERM, EPERM, EPERM]),    // UDP-Lite
        ([2, 2, 1], [EPERM, EPERM, EPERM]),      // ping
        ([2, 3, 255], [EPERM, EPERM, EPERM]),    // raw
        ([2, 5, 132], [EPERM, EPERM, EPERM]),    // SCTP, seqpacket
        ([2, 6, 33], [EPERM, EPERM, EPERM]),     // DCCP
        ([2, 10, 0x300], [EPERM, EPERM, EPERM]), // SOCK_PACKET: becomes AF_PACKET
        ([2, 0, 0], [EPERM, EPERM, EPERM]),
        ([16, 3, 0], [EPERM, EPERM, ALLOW]), // netlink, route
        ([16, 2, 0], [EPERM, EPERM, ALLOW]),
        ([16, 3, 4], [EPERM, EPERM, EPERM]),     // sock_diag
        ([16, 3, 12], [EPERM, EPERM, EPERM]),    // netfilter
        ([16, 2, 15], [EPERM, EPERM, EPERM]),    // uevents
        ([16, 3, 16], [EPERM, EPERM, EPERM]),    // generic
        ([17, 3, 0x300], [EPERM, EPERM, EPERM]), // packet
        ([40, 1, 0], [EPERM, EPERM, EPERM]),     // vsock
        ([38, 5, 0], [EPERM, EPERM, EPERM]),     // alg
        ([29, 3, 1], [EPERM, EPERM, EPERM]),     // CAN
        ([31, 3, 1], [EPERM, EPERM, EPERM]),     // Bluetooth
        ([43, 1, 0], [EPERM, EPERM, EPERM]),     // SMC
        ([30, 5, 0], [EPERM, EPERM, EPERM]),     // TIPC
        ([21, 5, 0], [EPERM, EPERM, EPERM]),     // RDS
        ([44, 3, 0], [EPERM, EPERM, EPERM]),     // XDP
        ([45, 1, 0], [EPERM, EPERM, EPERM]),     // MCTP
        ([0, 1, 0], [EPERM, EPERM, EPERM]),
        ([46, 1, 0], [EPERM, EPERM, EPERM]), // none yet
    ];
    for (args, verdicts) in rows {
        let [domain, kind, protocol] = *args;
        for (plan, verdict) in [NARROW, PORT_ONLY, NAMESPACE].iter().zip(verdicts) {
            assert_becomes(plan, "socket", args, *verdict);
            // Neither the flags of a type nor bits above an int hide it.
            assert_becomes(plan, "socket", &[domain, kind | FLAGS, protocol], *verdict);
            let high = [domain | HIGH, kind | HIGH, protocol | HIGH];
            assert_becomes(plan, "socket", &high, *verdict);
        }
    }
    for kind in [1_u64, 2, 5] {
        assert_becomes(&UNIX, "socket", &[1, kind | FLAGS, 0], ALLOW);
    }
    assert_becomes(&UNIX, "socket", &[2, 1, 0], EPERM);
}

#[test]
fn pairs_stay_where_they_are() {
    for flags in [0_u64, 0x8_0000, 0x8_0800, HIGH] {
        for (kind, verdict) in [(1, ALLOW), (2, EPERM), (3, EPERM), (5, ALLOW), (0, EPERM)] {
            assert_becomes(&NARROW, "socketpair", &[1, kind | flags, 0], verdict);
        }
        assert_becomes(&UNIX, "socketpair", &[1, 2 | flags, 0], ALLOW);
    }
    for domain in [0_u64, 2, 30, 40] {
        assert_becomes(&NARROW, "socketpair", &[domain, 1, 0], EPERM);
        assert_becomes(&UNIX, "socketpair", &[domain, 1, 0], EPERM);
    }
}

#[test]
fn messages_do_not_connect() {
    const FASTOPEN: u64 = 0x2000_0000;
    for (name, at) in [("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)] {
        for (flags, verdict) in [
            (0, ALLOW),
            (0x4000, ALLOW), // MSG_NOSIGNAL
            (!FASTOPEN, ALLOW),
            (FASTOPEN, EPERM),
            (FASTOPEN | 0x4000, EPERM),
            (FASTOPEN | HIGH, EPERM),
            (FASTOPEN << 32, ALLOW), // not a flag
        ] {
            // The same bit in every other argument means nothing.
            let mut args = [FASTOPEN; 6];
            args[at] = flags;
            assert_becomes(&NAMESPACE, name, &args, verdict);
        }
    }
}

#[test]
fn no_file_is_made_that_gives_its_owners_rights() {
    const MAKE: u64 = 0o101;
    const TEMPORARY: u64 = 0o20_200_001;
    let allowing = Plan {
        metadata: Metadata::Allowed,
        ..NARROW
    };
    for plan in [&NARROW, &allowing] {
        for (mode, verdict) in [
            (0o755, ALLOW),
            (0o1777, ALLOW),
            (0o4755, EPERM),
            (0o2755, EPERM),
            (0o6000 | HIGH, EPERM),
            (0o4000 << 32, ALLOW),
        ] {
            if mode & 0o2 == 0 {
                assert_becomes(plan, "fchmod", &[6, mode], verdict);
            }
            assert_becomes(plan, "mknodat", &[6, 1, mode | 0o100_000], verdict);
            for flags in [MAKE, MAKE | HIGH, TEMPORARY] {
                assert_becomes(plan, "openat", &[6, 1, flags, mode], verdict);
            }
            // No mode is read then.
            for flags in [0, 0o200_000, 0o2001] {
                assert_becomes(plan, "openat", &[6, 1, flags, mode], ALLOW);
            }
            let by_path = if plan.metadata == Metadata::Denied {
                EPERM
            } else {
                verdict
            };
            assert_becomes(plan, "fchmodat", &[6, 1, mode], by_path);
            assert_becomes(plan, "fchmodat2", &[6, 1, mode], by_path);
            for (name, args, verdict) in [
                ("chmod", [1, mode, 0], by_path),
                ("creat", [1, mode, 0], verdict),
                ("mknod", [1, mode, 0], verdict),
                ("open", [1, MAKE, mode], verdict),
                ("open", [1, 0, mode], ALLOW),
            ] {
                let made = Made::new(Arch::X86_64, number(name, Arch::X86_64), &args);
                assert_eq!(decide(&built(plan, Arch::X86_64), &made), verdict, "{name}");
            }
        }
    }
    // What may only be read is not opened to all for writing.
    for mode in [0o777, 0o666, 0o2, 0o1777] {
        assert_becomes(&NARROW, "fchmod", &[6, mode], EPERM);
        assert_becomes(&allowing, "fchmod", &[6, mode], ALLOW);
    }
    assert_becomes(&NARROW, "fsetxattr", &[6, 1, 1, 1, 0], EPERM);
    // Where its mode is, nobody can look.
    assert_becomes(&allowing, "openat2", &[6, 1, 1, 24], ENOSYS);
}

#[test]
fn the_limit_of_core_dumps_stays() {
    const DONE: Verdict = Verdict::Errno(0);
    for core in [4, 4 | HIGH] {
        assert_becomes(&NARROW, "setrlimit", &[core, 1], DONE);
        assert_becomes(&NARROW, "prlimit64", &[0, core, 1, 0], DONE);
        assert_becomes(&NARROW, "prlimit64", &[0, core, 1 << 32, 0], DONE);
        // What it was cannot be told by a filter.
        assert_becomes(&NARROW, "prlimit64", &[0, core, 1, 1], EPERM);
        assert_becomes(&NARROW, "prlimit64", &[0, core, 0, 1], ALLOW);
        assert_becomes(&NARROW, "prlimit64", &[9, core, 1, 0], EPERM);
    }
    assert_becomes(&NARROW, "setrlimit", &[7, 1], ALLOW);
    assert_becomes(&NARROW, "prlimit64", &[0, 7, 1, 1], ALLOW);
}

#[test]
fn other_processes_keep_their_limits_and_priority() {
    for (pid, verdict) in [(0, ALLOW), (HIGH, ALLOW), (1, EPERM), (4_194_303, EPERM)] {
        assert_becomes(&NARROW, "prlimit64", &[pid, 7, 0, 0], verdict);
        assert_becomes(&NARROW, "setpriority", &[0, pid, 5], verdict);
    }
    // Zero is then the whole process group, and every process of the user.
    assert_becomes(&NARROW, "setpriority", &[1, 0, 5], EPERM);
    assert_becomes(&NARROW, "setpriority", &[2, 0, 5], EPERM);
}

#[test]
fn personalities() {
    for (value, verdict) in [
        (0, ALLOW),
        (0xffff_ffff, ALLOW),
        (u64::MAX, ALLOW),
        (0x0004_0000, ALLOW), // ADDR_NO_RANDOMIZE
        (0x0040_0000, EPERM), // READ_IMPLIES_EXEC
        (0x0044_0000, EPERM),
        (8, EPERM),           // PER_LINUX32
        (0x0002_0000, EPERM), // UNAME26
    ] {
        assert_becomes(&NARROW, "personality", &[value], verdict);
    }
}

#[test]
fn numbers_that_nobody_weighed_do_not_exist() {
    for arch in ARCHES {
        let filters = built(&NAMESPACE, arch);
        let decide = |nr| decide(&filters, &Made::new(arch, nr, &[0; 6]));
        assert_eq!(decide(calls::NEWEST_NUMBER), EPERM, "file_setattr");
        assert_eq!(decide(calls::NEWEST_NUMBER - 1), ALLOW, "file_getattr");
        assert_eq!(decide(calls::NEWEST_NUMBER + 1), ENOSYS);
        // x32: by bit 30, and its own half without the bit.
        for nr in (0..600).map(|nr| nr | 0x4000_0000).chain(512..548) {
            assert_eq!(decide(nr), ENOSYS, "{nr:#x}");
        }
        assert_eq!(decide(u32::MAX), ENOSYS);
    }
}

#[test]
fn a_foreign_architecture_is_killed() {
    let filters = built(&NARROW, Arch::X86_64);
    for arch in [AUDIT_I386, AUDIT_ARM, 0, 0xc000_00b7, 0xc000_00f3] {
        // read of x86_64, getpid of i386, and an x32 number.
        for nr in [0, 20, 0x4000_0000, u32::MAX] {
            let made = Made {
                nr,
                arch,
                args: [0; 6],
            };
            assert_eq!(decide(&filters, &made), Verdict::Kill, "{made:x?}");
        }
    }
    let made = Made::new(Arch::X86_64, 0, &[0; 6]);
    assert_eq!(decide(&built(&NARROW, Arch::Aarch64), &made), Verdict::Kill);
    assert_eq!(made.arch, AUDIT_X86_64);
}

/// What shells, node and python do all the time; numbers of x86_64.
#[test]
fn ordinary_calls_pass() {
    let filters = built(&NARROW, Arch::X86_64);
    let calls: &[(&str, u32)] = &[
        ("read", 0),
        ("write", 1),
        ("open", 2),
        ("close", 3),
        ("stat", 4),
        ("fstat", 5),
        ("lstat", 6),
        ("poll", 7),
        ("lseek", 8),
        ("mmap", 9),
        ("mprotect", 10),
        ("munmap", 11),
        ("brk", 12),
        ("rt_sigaction", 13),
        ("rt_sigprocmask", 14),
        ("pread64", 17),
        ("readv", 19),
        ("writev", 20),
        ("access", 21),
        ("pipe", 22),
        ("select", 23),
        ("sched_yield", 24),
        ("mremap", 25),
        ("madvise", 28),
        ("dup", 32),
        ("dup2", 33),
        ("nanosleep", 35),
        ("getpid", 39),
        ("connect", 42),
        ("accept", 43),
        ("recvfrom", 45),
        ("recvmsg", 47),
        ("shutdown", 48),
        ("bind", 49),
        ("listen", 50),
        ("getsockname", 51),
        ("setsockopt", 54),
        ("getsockopt", 55),
        ("fork", 57),
        ("vfork", 58),
        ("execve", 59),
        ("exit", 60),
        ("wait4", 61),
        ("kill", 62),
        ("uname", 63),
        ("fcntl", 72),
        ("flock", 73),
        ("fsync", 74),
        ("ftruncate", 77),
        ("getdents", 78),
        ("getcwd", 79),
        ("chdir", 80),
        ("rename", 82),
        ("mkdir", 83),
        ("unlink", 87),
        ("readlink", 89),
        ("fchmod", 91),
        ("fchown", 93),
        ("umask", 95),
        ("getrlimit", 97),
        ("getuid", 102),
        ("setsid", 112),
        ("sigaltstack", 131),
        ("statfs", 137),
        ("getpriority", 140),
        ("prctl", 157),
        ("arch_prctl", 158),
        ("setrlimit", 160),
        ("gettid", 186),
        ("getxattr", 191),
        ("futex", 202),
        ("sched_setaffinity", 203),
        ("sched_getaffinity", 204),
        ("getdents64", 217),
        ("set_tid_address", 218),
        ("clock_gettime", 228),
        ("clock_nanosleep", 230),
        ("exit_group", 231),
        ("epoll_wait", 232),
        ("epoll_ctl", 233),
        ("tgkill", 234),
        ("waitid", 247),
        ("inotify_add_watch", 254),
        ("openat", 257),
        ("mkdirat", 258),
        ("newfstatat", 262),
        ("unlinkat", 263),
        ("faccessat", 269),
        ("ppoll", 271),
        ("set_robust_list", 273),
        ("splice", 275),
        ("epoll_pwait", 281),
        ("eventfd2", 290),
        ("epoll_create1", 291),
        ("dup3", 292),
        ("pipe2", 293),
        ("inotify_init1", 294),
        ("preadv", 295),
        ("getcpu", 309),
        ("seccomp", 317),
        ("getrandom", 318),
        ("memfd_create", 319),
        ("execveat", 322),
        ("membarrier", 324),
        ("copy_file_range", 326),
        ("statx", 332),
        ("rseq", 334),
        ("pidfd_send_signal", 424),
        ("pidfd_open", 434),
        ("close_range", 436),
        ("faccessat2", 439),
        ("epoll_pwait2", 441),
        ("landlock_create_ruleset", 444),
        ("landlock_restrict_self", 446),
        ("mseal", 462),
    ];
    for (name, nr) in calls {
        for args in [[0; 6], [u64::MAX; 6]] {
            // Every flag and mode at once.
            if args[0] != 0 && ["open", "fchmod", "openat"].contains(name) {
                continue;
            }
            let found = decide(&filters, &Made::new(Arch::X86_64, *nr, &args));
            assert_eq!(found, ALLOW, "{name}");
        }
    }
}

/// SPEC [CONFINE-3].
#[test]
fn the_digest_is_of_lengths_and_instructions() {
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let filters = Filters {
        programs: [
            (
                Program::Numbers,
                vec![instruction(0x0102, 3, 4, 0x0506_0708)],
            ),
            (Program::Pointers, vec![]),
            (Program::Core, vec![]),
            (
                Program::Main,
                vec![instruction(6, 0, 0, 1), instruction(0, 9, 0, 0)],
            ),
        ],
    };
    let bytes = [
        1, 0, 0, 0, 2, 1, 3, 4, 8, 7, 6, 5, // one instruction
        0, 0, 0, 0, // none
        0, 0, 0, 0, // none
        2, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, // two
    ];
    assert_eq!(filters.digest(), Digest::of(&bytes));
}

#[test]
fn the_digest_is_of_what_is_loaded() {
    let mut seen = Vec::new();
    for arch in ARCHES {
        for plan in plans() {
            let filters = built(&plan, arch);
            let digest = filters.digest();
            assert_eq!(digest, built(&plan, arch).digest(), "not the same twice");
            assert!(!seen.contains(&digest), "two plans of one digest: {plan:?}");
            seen.push(digest);
            // The kernel takes 4096 a program.
            assert!(filters.count_instructions() < 1500, "{plan:?}");
            assert_eq!(filters.count(), 4);
        }
    }
    let mut filters = built(&NARROW, Arch::X86_64);
    let before = filters.digest();
    for index in 0..4 {
        let last = filters.programs[index].1.len() - 1;
        filters.programs[index].1[last].k ^= 1;
        assert_ne!(filters.digest(), before);
        filters.programs[index].1[last].k ^= 1;
    }
    // An instruction that moves from one program to the next changes it.
    let moved = filters.programs[0].1.pop().unwrap();
    filters.programs[1].1.insert(0, moved);
    assert_ne!(filters.digest(), before);
    let _: &Filters = &filters;
}

/// Five instructions a call, and five around them all.
#[test]
fn a_program_has_less_than_4096_instructions() {
    let of = |calls| {
        let rules = (0..calls).map(|nr| (nr, Vec::new())).collect();
        compile(Program::Main, rules, 1, Arch::X86_64)
    };
    assert_eq!(of(818).unwrap().len(), 4095);
    let error = of(819).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the system call filter main has 4100 instructions and the kernel takes fewer than 4096: \
         this is a fault of aegis, please report it"
    );
}

#[test]
fn other_architectures_are_refused_by_name() {
    let error = Arch::parse("riscv64").unwrap_err();
    assert!(matches!(&error, SeccompError::Architecture(name) if name == "riscv64"));
    assert_eq!(
        error.to_string(),
        "no system call filters are known for the architecture riscv64: confinement needs x86_64 \
         or aarch64"
    );
}
