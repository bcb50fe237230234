//! Rows about other processes, and about the kernel.

use std::env::consts::ARCH;

use super::super::seccomp::User;
use super::row::{EACCES, ENOSYS, EPERM, OPEN, REFUSED, Row, Start, call, row};

const EPERM_OR_EACCES: &[&str] = &["blocked EPERM", "blocked EACCES"];
const NO_IOCTL: &[&str] = &["blocked ENOTTY", "blocked EINVAL"];
const YAMA: &str = "kernel.yama.ptrace_scope forbids it";
const NONE: &str = "the kernel has none";
const USERNS: &[&str] = &["blocked EPERM", "blocked EACCES", "blocked ENOSPC"];
const USERNS_WHY: &str = "user namespaces are limited (AppArmor, user.max_user_namespaces)";

/// What is done to a process outside by its pid, and shared with it.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![
        row("outside/files read /proc/{pid}/environ"),
        row("outside/files read /proc/{pid}/maps"),
        row("outside/files read /proc/{pid}/cmdline"),
        row("outside/files read /proc/{pid}/status"),
        row("outside/files list /proc/{pid}"),
        row("outside/files list /proc/{pid}/fd"),
        row("outside/processes memory {pid} {secret}").unless(EACCES, YAMA),
        row("outside/processes parent-file environ"),
        row("outside/processes parent-file maps"),
        row("outside/processes parent-file mem").unless(EACCES, YAMA),
        row("outside/processes parent-file cmdline"),
        call("outside/processes vm-read {pid} {secret}").unless(EPERM, YAMA),
        call("outside/processes trace {pid}").unless(EPERM, YAMA),
        call("outside/processes take-file {pid}").unless(EPERM, YAMA),
        row("outside/processes namespaces {pid}")
            .says(EPERM_OR_EACCES)
            .unless(NO_IOCTL, "it came with Linux 6.11"),
        call("outside/processes kill {pid}").touching(),
        call("outside/processes kill-thread {pid}").touching(),
        call("outside/processes queue {pid}").touching(),
        call("outside/processes pidfd-send {pid}").touching(),
        call("outside/processes kill-parent"),
        // The kernel says that somebody got it: the probe itself.
        row("outside/processes kill-group")
            .started(Start::AmongOthers)
            .says(&["open", "blocked EPERM"])
            .touching(),
        row("outside/processes input-signal {pid}")
            .says(OPEN)
            .touching(),
        row("outside/processes input-signal-group {pid}")
            .says(OPEN)
            .touching(),
        row("outside/processes urgent-signal {pid}")
            .says(OPEN)
            .touching()
            .unless(&["blocked EOPNOTSUPP"], "pairs without urgent bytes"),
        call("outside/processes limit {pid}").touching(),
        call("outside/processes nice {pid}").touching(),
        call("outside/processes nice-group {pid}").touching(),
        call("outside/processes scheduler {pid}"),
        // On a machine with one processor nothing comes of it. A process with
        // capabilities is safe from one without.
        row("outside/processes affinity {pid}")
            .open("affinity")
            .by(User::Plain),
        call("outside/processes affinity {pid}").by(User::Root),
    ];
    rows.extend(proc_granted());
    rows.extend(terminal());
    rows
}

/// Even where all of /proc may be read, what is behind its names may not.
fn proc_granted() -> impl Iterator<Item = Row> {
    let rows = [
        row("outside/files read /proc/{pid}/environ"),
        row("outside/files read /proc/{pid}/maps"),
        row("outside/files read /proc/{pid}/root{out}/file"),
        row("outside/files read /proc/{pid}/fd/9"),
        row("outside/files read /proc/self/root{out}/file"),
        row("outside/files readlink /proc/{pid}/exe"),
        row("outside/processes memory {pid} {secret}").unless(EACCES, YAMA),
        row("outside/processes parent-file environ"),
        row("outside/files open-to-write /proc/self/oom_score_adj"),
        // These are told to all.
        row("outside/files read /proc/{pid}/cmdline").says(OPEN),
        row("outside/files list /proc/{pid}").says(OPEN),
    ];
    rows.into_iter().map(|row| row.with("--allow-read /proc"))
}

/// A terminal would run what is typed into it as soon as the server is gone.
fn terminal() -> [Row; 3] {
    const OFF: &str = "dev.tty.legacy_tiocsti is off";
    let started = |row: Row| row.started(Start::FromTerminal);
    [
        started(row("outside/terminal path /dev/tty"))
            .touching()
            .unless(&["blocked EIO"], OFF),
        started(call("outside/terminal path /dev/tty"))
            .with("--allow-read /dev/tty")
            .touching()
            .unless(&["blocked EIO"], OFF),
        // aegis hands on no terminal, confined or not.
        started(row("outside/terminal standard-error"))
            .says(&["blocked EPERM", "blocked ENOTTY"])
            .unless(&["blocked ENOTTY"], "aegis keeps the terminal to itself"),
    ]
}

/// System calls that no server needs, on objects of its own.
pub(super) fn calls() -> Vec<Row> {
    let mut rows = vec![
        call("io_uring_setup").unless(
            &["blocked EPERM", "blocked ENOSYS"],
            "kernel.io_uring_disabled is set, or the kernel has none",
        ),
        call("ptrace").unless(EPERM, YAMA),
        call("process_vm_readv").unless(EPERM, YAMA),
        call("process_vm_writev").unless(EPERM, YAMA),
        call("pidfd_getfd").unless(EPERM, YAMA),
        call("kcmp").unless(ENOSYS, NONE),
        call("keyctl").unless(ENOSYS, NONE),
        call("add_key").unless(ENOSYS, NONE),
        call("userfaultfd").unless(ENOSYS, NONE),
        call("bpf").plain_unless(EPERM, "kernel.unprivileged_bpf_disabled is set"),
        call("perf_event_open").plain_unless(
            &["blocked EPERM", "blocked EACCES"],
            "kernel.perf_event_paranoid is above 2",
        ),
        call("unshare_newuser").unless(USERNS, USERNS_WHY),
        call("clone_newuser").unless(USERNS, USERNS_WHY),
        call("clone3_newuser")
            .says(ENOSYS)
            .unless(USERNS, USERNS_WHY),
        call("setns").plain_unless(EPERM, "entering one needs CAP_SYS_ADMIN"),
        call("mount"),
        call("umount2"),
        call("chroot"),
        call("fsopen").plain_unless(EPERM, "mounting needs CAP_SYS_ADMIN"),
        call("open_tree"),
        call("open_tree_attr").unless(
            &["blocked EPERM", "blocked ENOSYS"],
            "attributes need CAP_SYS_ADMIN; it came with Linux 6.15",
        ),
        call("prlimit_other"),
        call("setpriority_other"),
        call("personality"),
        call("outside/memory as-linux32"),
        row("outside/memory not-randomised").open("randomisation"),
        call("unknown_number")
            .says(ENOSYS)
            .unless(ENOSYS, "no kernel has this number"),
        call("tiocsti")
            .with("--allow-write /dev/ptmx --allow-write /dev/pts")
            .unless(&["blocked EIO"], "dev.tty.legacy_tiocsti is off"),
    ];
    if ARCH == "x86_64" {
        let no_x32 = "the kernel has no CONFIG_X86_X32_ABI";
        rows.push(call("x32_number").says(ENOSYS).unless(ENOSYS, no_x32));
        // The signal is SIGSYS: as a shell says it.
        rows.push(
            call("int80")
                .says(&["nothing, exit 159"])
                .unless(&["nothing, exit 139"], "the kernel has no 32-bit emulation"),
        );
    }
    rows
}

/// What would use the machine up.
pub(super) fn limits() -> Vec<Row> {
    vec![
        row("outside/limits processes 40")
            .with("--max-procs 20")
            .says(&["blocked EAGAIN"])
            .by(User::Plain),
        // The kernel does not count those of root, so that is told.
        row("outside/limits processes 40")
            .with("--max-procs 20")
            .says(REFUSED)
            .by(User::Root),
        row("outside/limits memory 1073741824")
            .with("--max-memory 268435456")
            .says(&["blocked ENOMEM"]),
        row("outside/limits files 64")
            .with("--max-files 32")
            .says(&["blocked EMFILE"]),
        // Nothing is limited that was not asked for.
        row("outside/limits processes 40").open("exhaustion"),
        row("outside/limits memory 1073741824").open("exhaustion"),
    ]
}
