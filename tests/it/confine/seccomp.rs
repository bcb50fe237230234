//! Programs that make the system calls which the filters deny, without the
//! filters and under them.
//!
//! A probe is a C file in `tests/probes/`, since most of these calls have no
//! safe function. Without the filters (the control) it says `open`; where this
//! machine or this user cannot show that, the control says why.

use std::collections::BTreeSet;
use std::env::consts::ARCH;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use aegis::internals::confine::Filters;
use tempfile::TempDir;

use crate::exe::skip;

/// What a probe is to say under the filters, and without.
struct Row {
    probe: &'static str,
    filters: fn() -> std::io::Result<Filters>,
    filtered: &'static str,
    /// What the control may say besides `open`, and why.
    root: Excuse,
    plain: Excuse,
}

type Excuse = (&'static [&'static str], &'static str);

const NONE: Excuse = (&[], "");

/// Open without the filters for every user, EPERM under the narrowest ones.
const fn row(probe: &'static str) -> Row {
    Row {
        probe,
        filters: Filters::narrow,
        filtered: "blocked EPERM",
        root: NONE,
        plain: NONE,
    }
}

impl Row {
    const fn unless(mut self, said: &'static [&'static str], why: &'static str) -> Self {
        self.root = (said, why);
        self.plain = (said, why);
        self
    }

    const fn plain_unless(mut self, said: &'static [&'static str], why: &'static str) -> Self {
        self.plain = (said, why);
        self
    }

    const fn says(mut self, filtered: &'static str) -> Self {
        self.filtered = filtered;
        self
    }

    const fn in_namespace(mut self) -> Self {
        self.filters = Filters::in_namespace;
        self
    }
}

const ABSENT: &[&str] = &["blocked ENOSYS"];
const FAMILY: &[&str] = &["blocked EAFNOSUPPORT", "blocked ESOCKTNOSUPPORT"];
const ROOTS: &[&str] = &["blocked EPERM"];
const YAMA: &str = "kernel.yama.ptrace_scope forbids it";
const USERNS: &[&str] = &["blocked EPERM", "blocked EACCES", "blocked ENOSPC"];
const USERNS_WHY: &str = "user namespaces are limited (AppArmor, user.max_user_namespaces)";
const MODULE: &str = "the kernel has no such family, or not loaded";

fn rows() -> Vec<Row> {
    let mut rows = vec![
        row("io_uring_setup").unless(
            &["blocked EPERM", "blocked ENOSYS"],
            "kernel.io_uring_disabled is set, or the kernel has none",
        ),
        row("ptrace").unless(ROOTS, YAMA),
        row("process_vm_readv").unless(ROOTS, YAMA),
        row("process_vm_writev").unless(ROOTS, YAMA),
        row("pidfd_getfd").unless(ROOTS, YAMA),
        row("kcmp").unless(ABSENT, "the kernel has no CONFIG_KCMP"),
        row("keyctl").unless(ABSENT, "the kernel has no CONFIG_KEYS"),
        row("add_key").unless(ABSENT, "the kernel has no CONFIG_KEYS"),
        row("userfaultfd").unless(ABSENT, "the kernel has no CONFIG_USERFAULTFD"),
        row("bpf").plain_unless(ROOTS, "kernel.unprivileged_bpf_disabled is set"),
        row("perf_event_open").plain_unless(
            &["blocked EPERM", "blocked EACCES"],
            "kernel.perf_event_paranoid is above 2",
        ),
        row("unshare_newuser").unless(USERNS, USERNS_WHY),
        row("clone_newuser").unless(USERNS, USERNS_WHY),
        row("clone3_newuser")
            .unless(USERNS, USERNS_WHY)
            .says("blocked ENOSYS"),
        row("setns").plain_unless(ROOTS, "entering one needs CAP_SYS_ADMIN"),
        row("mount"),
        row("umount2"),
        row("chroot"),
        row("fsopen").plain_unless(ROOTS, "mounting needs CAP_SYS_ADMIN"),
        row("open_tree"),
        Row {
            root: (ABSENT, "it came with Linux 6.15"),
            ..row("open_tree_attr").plain_unless(
                &["blocked EPERM", "blocked ENOSYS"],
                "attributes need CAP_SYS_ADMIN; it came with Linux 6.15",
            )
        },
        row("tiocsti").unless(&["blocked EIO"], "dev.tty.legacy_tiocsti is off"),
        row("prlimit_other"),
        row("setpriority_other"),
        row("shmget").unless(ABSENT, "the kernel has no CONFIG_SYSVIPC"),
        row("mq_open").unless(ABSENT, "the kernel has no CONFIG_POSIX_MQUEUE"),
        row("mq_unlink").unless(ABSENT, "the kernel has no CONFIG_POSIX_MQUEUE"),
        row("name_to_handle_at").unless(
            &["blocked EOPNOTSUPP"],
            "the root file system gives no handles",
        ),
        row("fanotify_init").plain_unless(
            &["blocked EPERM", "blocked EINVAL"],
            "plain users may since Linux 5.13",
        ),
        row("unix"),
        row("inet"),
        row("udp"),
        row("mptcp").in_namespace().unless(
            &["blocked EPROTONOSUPPORT", "blocked ENOPROTOOPT"],
            "net.mptcp.enabled is off, or the kernel has none",
        ),
        row("fastopen").in_namespace().unless(
            &["blocked EOPNOTSUPP"],
            "net.ipv4.tcp_fastopen is off for clients",
        ),
        row("vsock").in_namespace().unless(FAMILY, MODULE),
        row("alg").in_namespace().unless(FAMILY, MODULE),
        row("sock_diag").in_namespace(),
        row("pair_repointed").in_namespace(),
        row("personality"),
        row("chmod_path"),
        row("file_setattr").unless(ABSENT, "it came with Linux 6.17"),
        row("unknown_number")
            .unless(ABSENT, "no kernel has this number")
            .says("blocked ENOSYS"),
    ];
    for probe in ["packet", "raw", "sock_packet"] {
        let needs = "packet and raw sockets need CAP_NET_RAW";
        rows.push(row(probe).in_namespace().plain_unless(ROOTS, needs));
    }
    rows.extend(X86_64.into_iter().filter(|_| ARCH == "x86_64"));
    rows
}

const X86_64: [Row; 2] = [
    row("x32_number")
        .unless(ABSENT, "the kernel has no CONFIG_X86_X32_ABI")
        .says("blocked ENOSYS"),
    row("int80")
        .unless(&["signal 11"], "the kernel has no 32-bit emulation")
        .says("signal 31"),
];

/// Who makes a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    Root,
    Plain,
}

impl User {
    /// The uid and gid to change to; only root can.
    pub(super) fn id(self) -> Option<u32> {
        let id = if self == Self::Root { 0 } else { NOBODY };
        rustix::process::geteuid().is_root().then_some(id)
    }
}

#[test]
fn every_probe_is_open_without_the_filters_and_blocked_under_them() {
    let Some(room) = Room::prepare() else {
        return;
    };
    let mut faults = Vec::new();
    for user in users() {
        for row in rows() {
            let who = if user == User::Root {
                "root"
            } else {
                "a plain user"
            };
            let name = row.probe;
            room.reset(user);
            let control = room.run(name, user);
            let excuse = if user == User::Root {
                row.root
            } else {
                row.plain
            };
            if control == "open" {
                room.assert_done(name);
            } else if is_filtered() {
                eprintln!("CONTROL: {name}: {control}: this process is under filters itself");
            } else if excuse.0.contains(&control.as_str()) {
                eprintln!("CONTROL: {name} as {who}: {control}: {}", excuse.1);
            } else {
                faults.push(format!("{name} as {who}, the control: {control}"));
            }
            room.reset(user);
            let filtered = thread::scope(|scope| {
                let under = || {
                    (row.filters)().unwrap().apply().unwrap();
                    room.run(name, user)
                };
                scope.spawn(under).join().unwrap()
            });
            if filtered != row.filtered {
                faults.push(format!("{name} as {who}, under the filters: {filtered}"));
            }
            room.assert_undone();
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What the filters are not to get in the way of: threads, processes, timers,
/// temporary files, and listing interfaces in an own namespace.
#[test]
fn interpreters_work_under_the_filters() {
    const PYTHON: &str = "import asyncio, os, subprocess, tempfile, threading\n\
        t = threading.Thread(target=lambda: None); t.start(); t.join()\n\
        subprocess.run(['sh', '-c', 'exit 0'], check=True, stdin=subprocess.DEVNULL)\n\
        f = tempfile.NamedTemporaryFile(); os.utime(f.fileno()); os.fchmod(f.fileno(), 0o600)\n\
        asyncio.run(asyncio.sleep(0))\n\
        print('done')";
    const NODE: &str = "const { Worker } = require('worker_threads');\
        require('os').networkInterfaces();\
        require('child_process').execFileSync('sh', ['-c', 'exit 0'], { stdio: 'pipe' });\
        new Worker('', { eval: true }).on('exit', () => setTimeout(() => console.log('done'), 1));";
    for (program, flag, text) in [("python3", "-c", PYTHON), ("node", "-e", NODE)] {
        if Command::new(program).arg("--version").output().is_err() {
            skip(&format!("there is no {program}"));
            continue;
        }
        let under = || {
            Filters::in_namespace().unwrap().apply().unwrap();
            Command::new(program).args([flag, text]).output().unwrap()
        };
        let ran = thread::scope(|scope| scope.spawn(under).join().unwrap());
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.stdout, b"done\n", "{program}: {errors}");
        assert!(ran.status.success(), "{program}: {errors}");
    }
}

#[test]
fn every_probe_has_a_row() {
    let files: BTreeSet<String> = sources()
        .iter()
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let rows = rows().into_iter().chain(X86_64);
    let rows: BTreeSet<String> = rows.map(|row| row.probe.to_owned()).collect();
    assert_eq!(files, rows);
}

/// The probes as programs, a file to change and a socket to send to.
struct Room {
    dir: TempDir,
    socket: UnixDatagram,
}

impl Room {
    fn prepare() -> Option<Self> {
        if Command::new("cc").arg("--version").output().is_err() {
            skip("there is no cc to build the probes with");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        // A plain user is to reach it too.
        let all = || Permissions::from_mode(0o777);
        fs::set_permissions(dir.path(), all()).unwrap();
        let probes: BTreeSet<_> = rows().iter().map(|row| row.probe).collect();
        for probe in probes {
            build(probe, dir.path());
        }
        let socket = UnixDatagram::bind(dir.path().join(SOCKET)).unwrap();
        socket.set_nonblocking(true).unwrap();
        fs::set_permissions(dir.path().join(SOCKET), all()).unwrap();
        Some(Self { dir, socket })
    }

    /// The file as it was, of `user`, who may thus change its mode.
    fn reset(&self, user: User) {
        let file = self.dir.path().join(FILE);
        fs::write(&file, "").unwrap();
        if let Some(id) = user.id() {
            std::os::unix::fs::chown(&file, Some(id), Some(id)).unwrap();
        }
        fs::set_permissions(&file, Permissions::from_mode(MODE)).unwrap();
    }

    /// What a probe says, or the signal that ended it.
    fn run(&self, probe: &str, user: User) -> String {
        let file = match probe {
            "pair_repointed" => SOCKET,
            _ => FILE,
        };
        let mut command = Command::new(self.dir.path().join(probe));
        command.arg(self.dir.path().join(file)).current_dir("/");
        if let Some(id) = user.id() {
            command.uid(id).gid(id);
        }
        let ran = command.output().unwrap();
        if let Some(signal) = ran.status.signal() {
            return format!("signal {signal}");
        }
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{probe} was not prepared: {errors}");
        String::from_utf8(ran.stdout).unwrap().trim_end().to_owned()
    }

    /// A control that says `open` did it.
    fn assert_done(&self, probe: &str) {
        match probe {
            "chmod_path" => assert_eq!(self.mode(), 0o600),
            "pair_repointed" => assert_eq!(self.socket.recv(&mut [0]).unwrap(), 1),
            _ => {}
        }
    }

    fn assert_undone(&self) {
        assert_eq!(self.mode(), MODE);
        let received = self.socket.recv(&mut [0]).unwrap_err();
        assert_eq!(received.kind(), ErrorKind::WouldBlock);
    }

    fn mode(&self) -> u32 {
        let metadata = fs::metadata(self.dir.path().join(FILE)).unwrap();
        metadata.permissions().mode() & 0o7777
    }
}

/// Makes a program of the same name, or what follows its last slash, that
/// needs no other file.
pub(super) fn build_static(probe: &str, into: &Path) {
    compile(probe, into, &["-static"]);
}

pub(super) fn build(probe: &str, into: &Path) {
    compile(probe, into, &[]);
}

fn compile(probe: &str, into: &Path, options: &[&str]) {
    let name = probe.rsplit('/').next().unwrap();
    let built = Command::new("cc")
        .args(options)
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(into.join(name))
        .arg(probes().join(format!("{probe}.c")))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{probe} does not build: {errors}");
}

fn sources() -> Vec<PathBuf> {
    let entries = fs::read_dir(probes()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect()
}

pub(super) fn probes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/probes")
}

/// Root is one who may do what root may: in a container it often may not.
pub(super) fn users() -> Vec<User> {
    let all = u64::from_str_radix(status("CapEff:").trim(), 16).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    match (is_root, all >> CAP_SYS_ADMIN & 1 == 1) {
        (true, true) => vec![User::Root, User::Plain],
        _ => vec![User::Plain],
    }
}

fn is_filtered() -> bool {
    status("Seccomp:").trim() != "0"
}

fn status(name: &str) -> String {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().to_owned()
}

const FILE: &str = "file";
const SOCKET: &str = "socket";
const MODE: u32 = 0o644;
/// The uid that no files belong to.
const NOBODY: u32 = 65534;
const CAP_SYS_ADMIN: u32 = 21;
