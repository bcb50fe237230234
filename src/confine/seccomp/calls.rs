//! System calls by name, each with its number on either architecture, and the
//! ones that no confined program may make, grouped by why.
//!
//! Numbers are those of the kernel's `arch/x86/entry/syscalls/syscall_64.tbl`
//! and `scripts/syscall.tbl` (aarch64). They are written out instead of taken
//! from the C library's headers so that the programs for one architecture can
//! be built, hashed and tested on another.

use super::Arch;

/// A system call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) name: &'static str,
    x86_64: Option<u32>,
    aarch64: Option<u32>,
}

impl Call {
    /// One whose number differs by architecture.
    const fn new(name: &'static str, x86_64: u32, aarch64: u32) -> Self {
        Self {
            name,
            x86_64: Some(x86_64),
            aarch64: Some(aarch64),
        }
    }

    /// One that only x86_64 has.
    const fn x86(name: &'static str, number: u32) -> Self {
        Self {
            name,
            x86_64: Some(number),
            aarch64: None,
        }
    }

    /// One of number 424 or above: these are the same on every architecture.
    const fn common(name: &'static str, number: u32) -> Self {
        Self::new(name, number, number)
    }

    /// Its number, where `arch` has it.
    pub(super) const fn number(&self, arch: Arch) -> Option<u32> {
        match arch {
            Arch::X86_64 => self.x86_64,
            Arch::Aarch64 => self.aarch64,
        }
    }
}

/// System calls that are denied for one reason.
pub(super) struct Group {
    pub(super) why: &'static str,
    pub(super) calls: &'static [Call],
}

/// Denied with EPERM whatever their arguments are.
pub(super) const DENIED: &[Group] = &[
    Group {
        // An io_uring does openat, connect and sendmsg in the kernel, where
        // no filter looks at them; the *_enter and *_register calls are for
        // rings that were inherited.
        why: "does the work of other system calls unseen",
        calls: &[
            Call::common("io_uring_setup", 425),
            Call::common("io_uring_enter", 426),
            Call::common("io_uring_register", 427),
        ],
    },
    Group {
        // Landlock lets a domain trace its own members; a traced process can
        // be made to issue system calls, so none is traced at all (before
        // Linux 4.8 a tracer could also change a call after its filter ran).
        // process_madvise, move_pages and migrate_pages act on the memory of
        // a process by its pid; kcmp compares kernel pointers of two.
        why: "reads, writes or steers another process",
        calls: &[
            Call::new("ptrace", 101, 117),
            Call::new("process_vm_readv", 310, 270),
            Call::new("process_vm_writev", 311, 271),
            Call::common("pidfd_getfd", 438),
            Call::new("kcmp", 312, 272),
            Call::common("process_madvise", 440),
            Call::new("move_pages", 279, 239),
            Call::new("migrate_pages", 256, 238),
        ],
    },
    Group {
        // Keyrings belong to the user, not to a namespace, and Landlock does
        // not know them; CVE-2016-0728 is one of their many faults.
        why: "reaches the user's kernel keyrings",
        calls: &[
            Call::new("add_key", 248, 217),
            Call::new("request_key", 249, 218),
            Call::new("keyctl", 250, 219),
        ],
    },
    Group {
        // bpf: CVE-2021-3490 and its kin. perf_event_open: CVE-2013-2094;
        // it also watches other processes. userfaultfd holds the kernel up in
        // the middle of a copy, which makes races winnable.
        why: "is a large or often abused part of the kernel",
        calls: &[
            Call::new("bpf", 321, 280),
            Call::new("perf_event_open", 298, 241),
            Call::new("userfaultfd", 323, 282),
        ],
    },
    Group {
        // Landlock refuses these inside a domain by itself. They stand here
        // for kernels where it does not load, and since fsconfig alone had
        // CVE-2022-0185.
        why: "changes what a path means",
        calls: &[
            Call::new("mount", 165, 40),
            Call::new("umount2", 166, 39),
            Call::new("pivot_root", 155, 41),
            Call::new("chroot", 161, 51),
            Call::common("open_tree", 428),
            Call::common("move_mount", 429),
            Call::common("fsopen", 430),
            Call::common("fsconfig", 431),
            Call::common("fsmount", 432),
            Call::common("fspick", 433),
            Call::common("mount_setattr", 442),
            Call::common("open_tree_attr", 467),
        ],
    },
    Group {
        // A new user namespace gives every capability inside it, and with
        // them the parts of the kernel that only root was meant to reach.
        // clone has an argument rule; clone3 has a filter of its own.
        why: "enters or makes a namespace",
        calls: &[Call::new("unshare", 272, 97), Call::new("setns", 308, 268)],
    },
    Group {
        // A handle names a file without a path, so no path rule is asked:
        // open_by_handle_at is how CVE-2014-9357's kind left containers.
        // fanotify reports what happens on a whole file system.
        why: "goes around paths",
        calls: &[
            Call::new("name_to_handle_at", 303, 264),
            Call::new("open_by_handle_at", 304, 265),
            Call::new("fanotify_init", 300, 262),
        ],
    },
    Group {
        // Needs privilege, which a confined program has not. Denied all the
        // same: it costs nothing, and privilege has been gained before.
        why: "administers the machine",
        calls: &[
            Call::new("kexec_load", 246, 104),
            Call::new("kexec_file_load", 320, 294),
            Call::new("init_module", 175, 105),
            Call::new("finit_module", 313, 273),
            Call::new("delete_module", 176, 106),
            Call::new("swapon", 167, 224),
            Call::new("swapoff", 168, 225),
            Call::new("reboot", 169, 142),
            Call::new("acct", 163, 89),
            Call::new("quotactl", 179, 60),
            Call::common("quotactl_fd", 443),
            Call::new("syslog", 103, 116),
            Call::new("vhangup", 153, 58),
            Call::new("settimeofday", 164, 170),
            Call::new("clock_settime", 227, 112),
            Call::new("adjtimex", 159, 171),
            Call::new("clock_adjtime", 305, 266),
            Call::new("sethostname", 170, 161),
            Call::new("setdomainname", 171, 162),
        ],
    },
    Group {
        // modify_ldt is reachable without privilege (CVE-2015-5157); the
        // others hand out I/O ports.
        why: "programs the processor directly",
        calls: &[
            Call::x86("iopl", 172),
            Call::x86("ioperm", 173),
            Call::x86("modify_ldt", 154),
        ],
    },
    Group {
        // System V objects have no path and no owner but a uid, so Landlock
        // does not see them. POSIX queues are files of a mount that no path
        // leads to: Landlock refuses to open one, but only after the kernel
        // has made it, and is not asked when one is removed. An IPC namespace
        // hides all of these too, where there is one. POSIX shared memory is
        // files in /dev/shm, and stays.
        why: "shares memory or messages without a path",
        calls: &[
            Call::new("shmget", 29, 194),
            Call::new("shmat", 30, 196),
            Call::new("shmctl", 31, 195),
            Call::new("shmdt", 67, 197),
            Call::new("semget", 64, 190),
            Call::new("semop", 65, 193),
            Call::new("semtimedop", 220, 192),
            Call::new("semctl", 66, 191),
            Call::new("msgget", 68, 186),
            Call::new("msgsnd", 69, 189),
            Call::new("msgrcv", 70, 188),
            Call::new("msgctl", 71, 187),
            Call::new("mq_open", 240, 180),
            Call::new("mq_unlink", 241, 181),
        ],
    },
    Group {
        // They take the pid of any process of the user. sched_setaffinity
        // does as well, but language runtimes pin their own threads with it.
        why: "sets how other processes are scheduled",
        calls: &[
            Call::new("ioprio_set", 251, 30),
            Call::new("sched_setscheduler", 144, 119),
            Call::new("sched_setparam", 142, 118),
            Call::new("sched_setattr", 314, 274),
        ],
    },
];

/// Denied with EPERM where metadata is confined: Landlock has no right for
/// modes, owners, times and attributes, so these reach files of every path.
///
/// The calls on an open file (fchmod, fchown, futimens) stay: the descriptor
/// proves that Landlock let the file be opened. If that was only for reading,
/// they must not open it to other users: fchmod does not make a file writable
/// for all (an argument rule), and fsetxattr, which sets access lists, is
/// denied. A descriptor of O_PATH proves nothing, and the kernel refuses it
/// there.
pub(super) const METADATA: Group = Group {
    why: "changes modes, owners or times by path, or attributes",
    calls: &[
        CHMOD,
        FCHMODAT,
        FCHMODAT2,
        Call::x86("chown", 92),
        Call::x86("lchown", 94),
        Call::new("fchownat", 260, 54),
        Call::x86("utime", 132),
        Call::x86("utimes", 235),
        Call::new("setxattr", 188, 5),
        Call::new("lsetxattr", 189, 6),
        Call::new("fsetxattr", 190, 7),
        Call::common("setxattrat", 463),
        Call::new("removexattr", 197, 14),
        Call::new("lremovexattr", 198, 15),
        Call::new("fremovexattr", 199, 16),
        Call::common("removexattrat", 466),
        Call::common("file_setattr", 469),
    ],
};

// Those that the argument rules, or a filter of their own, are about.
pub(super) const CHMOD: Call = Call::x86("chmod", 90);
pub(super) const CLONE: Call = Call::new("clone", 56, 220);
pub(super) const CLONE3: Call = Call::common("clone3", 435);
pub(super) const CREAT: Call = Call::x86("creat", 85);
pub(super) const FCHMOD: Call = Call::new("fchmod", 91, 52);
pub(super) const FCHMODAT: Call = Call::new("fchmodat", 268, 53);
pub(super) const FCHMODAT2: Call = Call::common("fchmodat2", 452);
pub(super) const FUTIMESAT: Call = Call::x86("futimesat", 261);
pub(super) const IOCTL: Call = Call::new("ioctl", 16, 29);
pub(super) const MKNOD: Call = Call::x86("mknod", 133);
pub(super) const MKNODAT: Call = Call::new("mknodat", 259, 33);
pub(super) const OPEN: Call = Call::x86("open", 2);
pub(super) const OPENAT: Call = Call::new("openat", 257, 56);
pub(super) const OPENAT2: Call = Call::common("openat2", 437);
pub(super) const PERSONALITY: Call = Call::new("personality", 135, 92);
pub(super) const PRLIMIT64: Call = Call::new("prlimit64", 302, 261);
pub(super) const SENDMMSG: Call = Call::new("sendmmsg", 307, 269);
pub(super) const SENDMSG: Call = Call::new("sendmsg", 46, 211);
pub(super) const SENDTO: Call = Call::new("sendto", 44, 206);
pub(super) const SETPRIORITY: Call = Call::new("setpriority", 141, 140);
pub(super) const SETRLIMIT: Call = Call::new("setrlimit", 160, 164);
pub(super) const SOCKET: Call = Call::new("socket", 41, 198);
pub(super) const SOCKETPAIR: Call = Call::new("socketpair", 53, 199);
pub(super) const UTIMENSAT: Call = Call::new("utimensat", 280, 88);

/// The highest number that was weighed when this table was made
/// (`file_setattr`, Linux 6.17).
pub(super) const NEWEST_NUMBER: u32 = 469;
