//! Ways out of the fence.

use std::os::fd::AsRawFd as _;

use rustix::fs::{CWD, Mode, RenameFlags};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::*;

/// What a probe is told.
struct Scene<'a> {
    tree: &'a Tree,
    victim: u32,
}

impl Scene<'_> {
    fn at(&self, path: &str) -> PathBuf {
        self.tree.at(path)
    }

    fn of_victim(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.victim))
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.victim.cast_signed()).unwrap()
    }
}

type Probe = fn(&Scene<'_>) -> io::Result<()>;

/// Each with its name and the errors that the fence answers with.
const FILES: &[(&str, Option<i32>, Probe)] = &[
    ("read", EACCES, |s| fs::read(s.at("outside/file")).map(drop)),
    ("list", EACCES, |s| fs::read_dir(s.at("outside")).map(drop)),
    ("overwrite", EACCES, |s| fs::write(s.at("outside/file"), "")),
    ("append", EACCES, |s| {
        let path = s.at("outside/file");
        fs::OpenOptions::new().append(true).open(path).map(drop)
    }),
    ("create", EACCES, |s| fs::write(s.at("outside/new"), "")),
    ("unlink", EACCES, |s| fs::remove_file(s.at("outside/file"))),
    ("mkdir", EACCES, |s| fs::create_dir(s.at("outside/new"))),
    ("rmdir", EACCES, |s| {
        fs::remove_dir(s.at("outside/deep/empty"))
    }),
    ("symlink", EACCES, |s| symlink("x", s.at("outside/new"))),
    ("rename within", EACCES, |s| {
        fs::rename(s.at("outside/file"), s.at("outside/new"))
    }),
    ("rename out", EACCES, |s| {
        fs::rename(s.at("write/file"), s.at("outside/new"))
    }),
    ("rename in", EACCES, |s| {
        fs::rename(s.at("outside/file"), s.at("write/new"))
    }),
    ("exchange", EACCES, |s| {
        let (a, b) = (s.at("write/file"), s.at("outside/file"));
        Ok(rustix::fs::renameat_with(
            CWD,
            &a,
            CWD,
            &b,
            RenameFlags::EXCHANGE,
        )?)
    }),
    ("link in", EXDEV, |s| {
        fs::hard_link(s.at("outside/file"), s.at("write/new"))
    }),
    ("link out", EACCES, |s| {
        fs::hard_link(s.at("write/file"), s.at("outside/new"))
    }),
    ("read by a link", EACCES, |s| {
        symlink(s.at("outside/file"), s.at("write/link"))?;
        fs::read(s.at("write/link")).map(drop)
    }),
    ("write by a link", EACCES, |s| {
        symlink(s.at("outside/new"), s.at("write/link"))?;
        fs::write(s.at("write/link"), "")
    }),
    ("read by dots", EACCES, |s| {
        fs::read(s.at("write/deep/../../outside/file")).map(drop)
    }),
    ("read beneath a held place", EACCES, |s| {
        let dir = root::open(&s.at("outside"), OFlags::empty())?;
        rustix::fs::openat(&dir, "file", OFlags::RDONLY, Mode::empty())?;
        Ok(())
    }),
    ("reopen a held place", EACCES, |s| {
        let file = root::open(&s.at("outside/file"), OFlags::empty())?;
        fs::read(format!("/proc/self/fd/{}", file.as_raw_fd())).map(drop)
    }),
    ("read by /proc/self/root", EACCES, |s| {
        let path = s.at("outside/file");
        let below = path.strip_prefix("/").unwrap();
        fs::read(Path::new("/proc/self/root").join(below)).map(drop)
    }),
    ("execute outside", EACCES, |s| run(s.at("outside/script"))),
    ("execute what may be written", EACCES, |s| {
        run(s.at("write/script"))
    }),
    ("write what may be read", EACCES, |s| {
        fs::write(s.at("read/file"), "")
    }),
    ("create in what may be read", EACCES, |s| {
        fs::write(s.at("read/new"), "")
    }),
    ("move what may be read", EACCES, |s| {
        fs::rename(s.at("read/script"), s.at("write/new"))
    }),
];

const PROCESSES: &[(&str, Option<i32>, Probe)] = &[
    ("its root", EACCES, |s| {
        fs::read_dir(s.of_victim("root")).map(drop)
    }),
    ("its directory", EACCES, |s| {
        fs::read_dir(s.of_victim("cwd")).map(drop)
    }),
    ("its files", EACCES, |s| {
        fs::read(s.of_victim("fd/1")).map(drop)
    }),
    ("its environment", EACCES, |s| {
        fs::File::open(s.of_victim("environ")).map(drop)
    }),
    ("its memory", EACCES, |s| {
        fs::File::open(s.of_victim("mem")).map(drop)
    }),
    ("its maps", EACCES, |s| {
        fs::read(s.of_victim("maps")).map(drop)
    }),
];

const SIGNALS: &[(&str, Option<i32>, Probe)] = &[
    ("ask for it", EPERM, |s| Ok(test_kill_process(s.pid())?)),
    ("signal it", EPERM, |s| {
        Ok(kill_process(s.pid(), Signal::CONT)?)
    }),
];

#[test]
fn files_outside_are_out_of_reach() {
    if !is_absent(ABI::V3) {
        attack(FILES);
        without_capabilities(|| attack(FILES));
    }
}

/// By one without capabilities: Landlock lets whoever has `CAP_PERFMON` read
/// the environment and the maps of others.
#[test]
fn processes_outside_are_not_looked_into() {
    if !is_absent(ABI::V3) {
        without_capabilities(|| attack(PROCESSES));
    }
}

#[test]
fn processes_outside_are_not_signalled() {
    if !is_absent(ABI::V6) {
        attack(SIGNALS);
    }
}

#[test]
fn devices_are_not_made() {
    if is_absent(ABI::V3) {
        return;
    }
    let tree = Tree::new();
    let make = |name: &str| {
        let null = rustix::fs::makedev(1, 3);
        let (kind, mode) = (rustix::fs::FileType::CharacterDevice, Mode::RUSR);
        rustix::fs::mknodat(CWD, tree.at(name), kind, mode, null).map_err(io::Error::from)
    };
    if make("write/control").is_err() {
        eprintln!("SKIPPED: this user may make no device anyway");
        return;
    }
    confined(&tree.profile(), Tcp::Denied, |_| {
        assert_eq!(code(make("write/device")), EACCES);
        // What is no device may be made.
        let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::RUSR);
        rustix::fs::mknodat(CWD, tree.at("write/fifo"), kind, mode, 0).unwrap();
    });
}

/// By name, without opening it: the reason why older versions do not suffice.
#[test]
fn files_outside_are_not_emptied_from_version_3_on() {
    if is_absent(ABI::V3) {
        return;
    }
    let truncate = |tree: &Tree| {
        let program = "truncate($ARGV[0], 0) or exit($! + 0)";
        let mut perl = Command::new("perl");
        perl.args(["-e", program]).arg(tree.at("outside/file"));
        perl.status().unwrap().code()
    };
    let tree = Tree::new();
    assert_eq!(truncate(&tree), Some(0), "it fails unconfined");
    let tree = Tree::new();
    let mut profile = tree.profile();
    let code = confined(&profile, Tcp::Denied, |_| truncate(&tree));
    assert_eq!(code, EACCES);
    profile.best_effort = true;
    let code = confined_at(Some(ABI::V2), &profile, Tcp::Denied, |_| truncate(&tree));
    assert_eq!(code, Some(0), "no gap, though one is told");
}

/// The fence holds for what is started from behind it.
#[test]
fn a_program_takes_the_fence_along() {
    if is_absent(ABI::V3) {
        return;
    }
    let tree = Tree::new();
    let cat = || {
        let mut cat = Command::new("/bin/cat");
        cat.arg(tree.at("outside/file"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        cat.status().unwrap().success()
    };
    assert!(cat());
    confined(&tree.profile(), Tcp::Denied, |_| assert!(!cat()));
}

/// Fences add up: what the second one grants, the first still refuses.
#[test]
fn a_second_fence_opens_nothing() {
    if is_absent(ABI::V3) {
        return;
    }
    let tree = Tree::new();
    let mut wide = tree.profile();
    wide.rules
        .push(tree.rule("/", Access::ReadWrite, Origin::User));
    confined(&tree.profile(), Tcp::Denied, |_| {
        restrict(&wide, Tcp::LeftAlone).unwrap();
        assert_eq!(code(fs::read(tree.at("outside/file"))), EACCES);
    });
}

/// Runs `tests` on a thread that has no capability, and starts nothing that
/// has one.
fn without_capabilities(tests: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let confined = scope.spawn(|| {
            for capability in CapabilitySet::all() {
                // A plain user has none to remove.
                let _ = rustix::thread::remove_capability_from_bounding_set(capability);
            }
            let none = CapabilitySets {
                effective: CapabilitySet::empty(),
                permitted: CapabilitySet::empty(),
                inheritable: CapabilitySet::empty(),
            };
            rustix::thread::set_capabilities(None, none).unwrap();
            tests();
        });
        confined.join().unwrap();
    });
}

/// Each probe on a tree and against a victim of its own.
fn attack(probes: &[(&str, Option<i32>, Probe)]) {
    for &(name, expected, probe) in probes {
        let result = staged(probe);
        assert!(result.is_ok(), "{name} fails unconfined: {result:?}");
        let result = staged(|scene| confined(&scene.tree.profile(), Tcp::Denied, |_| probe(scene)));
        let told = format!("{name}: {result:?}");
        assert_eq!(code(result), expected, "{told}");
    }
}

fn staged(probe: impl Fn(&Scene<'_>) -> io::Result<()>) -> io::Result<()> {
    let tree = Tree::new();
    let victim = Victim::new(&tree);
    probe(&Scene {
        tree: &tree,
        victim: victim.0.id(),
    })
}

fn symlink(target: impl AsRef<Path>, link: PathBuf) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

fn run(program: PathBuf) -> io::Result<()> {
    Command::new(program).status().map(drop)
}
