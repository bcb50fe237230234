//! Each probe runs twice on a tree of its own: unconfined, where it has to
//! succeed, or it would prove nothing, and from a confined thread.

mod attacks;
mod programs;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use super::*;

/// A tree with one directory to read, one to write, and one for neither.
struct Tree {
    dir: tempfile::TempDir,
    base: PathBuf,
}

impl Tree {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["read", "write", "outside"] {
            fs::create_dir_all(base.join(name).join("deep/empty")).unwrap();
            fs::write(base.join(name).join("file"), name).unwrap();
            let script = base.join(name).join("script");
            fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
            fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { dir, base }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    fn rule(&self, path: &str, access: Access, origin: Origin) -> Rule {
        let path = self.base.join(path).canonicalize().unwrap();
        let descriptor = root::open(&path, OFlags::empty()).unwrap();
        let (id, kind) = root::identify(&descriptor).unwrap();
        Rule {
            path: path.to_str().unwrap().to_owned(),
            access,
            kind,
            id: Some(id),
            origin,
            why: "a test".to_owned(),
        }
    }

    /// The directories, and what a shell needs.
    fn profile(&self) -> Profile {
        let mut rules = vec![
            self.rule("read", Access::ReadExecute, Origin::User),
            self.rule("write", Access::ReadWrite, Origin::User),
            self.rule("/usr", Access::ReadExecute, Origin::BuiltIn),
            self.rule("/dev/null", Access::Device, Origin::BuiltIn),
            self.rule("/proc", Access::Read, Origin::User),
        ];
        for path in ["/bin", "/lib", "/lib64"] {
            if Path::new(path).exists() {
                rules.push(self.rule(path, Access::ReadExecute, Origin::BuiltIn));
            }
        }
        Profile {
            program: "/bin/sh".to_owned(),
            rules,
            ..Profile::default()
        }
    }
}

/// What `probe` gives on a thread that is held to `profile`.
fn confined<T: Send>(profile: &Profile, tcp: Tcp, probe: impl FnOnce(&Enforced) -> T + Send) -> T {
    confined_at(best_abi(), profile, tcp, probe)
}

fn confined_at<T: Send>(
    abi: Option<ABI>,
    profile: &Profile,
    tcp: Tcp,
    probe: impl FnOnce(&Enforced) -> T + Send,
) -> T {
    thread::scope(|scope| {
        scope
            .spawn(|| probe(&restrict_at(abi, profile, tcp).unwrap()))
            .join()
            .unwrap()
    })
}

/// Whether a test has nothing to test here. Where it must have, it fails.
fn is_absent(least: ABI) -> bool {
    let absent = best_abi().is_none_or(|abi| abi < least);
    if absent {
        assert!(
            std::env::var_os("CI").is_none_or(|ci| ci != "true"),
            "this kernel should offer Landlock ABI {}",
            least as u32
        );
        eprintln!(
            "SKIPPED: this kernel offers no Landlock ABI {}",
            least as u32
        );
    }
    absent
}

fn code<T>(result: io::Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

const EACCES: Option<i32> = Some(rustix::io::Errno::ACCESS.raw_os_error());
const EPERM: Option<i32> = Some(rustix::io::Errno::PERM.raw_os_error());
const EXDEV: Option<i32> = Some(rustix::io::Errno::XDEV.raw_os_error());

#[test]
fn what_was_enforced_is_told() {
    if is_absent(ABI::V6) {
        return;
    }
    let tree = Tree::new();
    let enforced = confined(&tree.profile(), Tcp::Denied, Enforced::clone);
    assert!(enforced.no_new_privs);
    assert!(enforced.abi >= 6);
    assert_eq!(enforced.scopes, ["abstract_unix_socket", "signal"]);
    assert_eq!(enforced.net[..2], ["bind_tcp", "connect_tcp"]);
    assert_eq!(
        enforced.rights["read_execute"],
        ["execute", "read_file", "read_dir"]
    );
    assert_eq!(enforced.rights["device"], ["read_file", "write_file"]);
    let write = &enforced.rights["read_write"];
    for withheld in ["execute", "make_char", "make_block", "resolve_unix"] {
        assert!(!write.iter().any(|right| right == withheld), "{withheld}");
        let is_handled = enforced.handled.iter().any(|right| right == withheld);
        assert_eq!(is_handled, withheld != "resolve_unix" || enforced.abi >= 9);
    }
    assert!(write.iter().any(|right| right == "refer"));
    assert!(enforced.gaps.is_empty(), "{:?}", enforced.gaps);
    let text = serde_json::to_string(&enforced).unwrap();
    assert_eq!(serde_json::from_str::<Enforced>(&text).unwrap(), enforced);
    drop(tree.dir);
}

#[test]
fn rights_by_version_are_never_more_than_it_handles() {
    for abi in ALL_ABIS {
        let all = AccessFs::from_all(abi);
        for access in [
            Access::Read,
            Access::ReadExecute,
            Access::ReadWrite,
            Access::ReadWriteExecute,
            Access::Device,
        ] {
            for sockets in [false, true] {
                let rights = class_rights(access, abi, sockets);
                assert!(all.contains(rights), "{access:?} at {}", abi as u32);
                assert_eq!(rights.contains(AccessFs::Execute), access.executes());
                assert_eq!(rights.contains(AccessFs::MakeReg), access.writes());
                assert_eq!(
                    rights.contains(AccessFs::ResolveUnix),
                    sockets && access.writes() && abi >= ABI::V9
                );
                let names = names(rights);
                assert_eq!(names.len(), rights.len(), "a right without a name");
            }
        }
        assert_eq!(
            net_names(AccessNet::from_all(abi)).len(),
            AccessNet::from_all(abi).len()
        );
    }
    assert_eq!(
        gaps(ABI::V1),
        [
            "truncate",
            "device_ioctl",
            "signals",
            "abstract_unix_sockets"
        ]
    );
    assert_eq!(
        gaps(ABI::V4),
        ["device_ioctl", "signals", "abstract_unix_sockets"]
    );
    assert!(gaps(ABI::V6).is_empty());
}

#[test]
fn an_old_kernel_is_refused_unless_less_is_asked_for() {
    let tree = Tree::new();
    let mut profile = tree.profile();
    let refuse = |abi, profile: &Profile| {
        restrict_at(abi, profile, Tcp::Denied)
            .unwrap_err()
            .to_string()
    };
    let none = refuse(None, &profile);
    assert!(
        none.contains("no Landlock") && none.contains("--best-effort"),
        "{none}"
    );
    let old = refuse(Some(ABI::V2), &profile);
    assert!(old.contains("ABI 2") && old.contains("truncate"), "{old}");
    profile.best_effort = true;
    let nothing = confined_at(None, &profile, Tcp::Denied, Enforced::clone);
    assert_eq!(
        (nothing.abi, &nothing.gaps[..]),
        (0, &["files".to_owned()][..])
    );
    if is_absent(ABI::V2) {
        return;
    }
    confined_at(Some(ABI::V2), &profile, Tcp::Denied, |enforced| {
        assert_eq!(enforced.abi, 2);
        assert!(enforced.gaps.contains(&"truncate".to_owned()));
        assert!(enforced.net.is_empty() && enforced.scopes.is_empty());
        assert_eq!(code(fs::read(tree.at("outside/file"))), EACCES);
        // What the version cannot refuse is open, as it says.
        TcpListener::bind("127.0.0.1:0").unwrap();
    });
}

#[test]
fn more_than_the_kernel_offers_is_an_error_and_not_less() {
    let next = ALL_ABIS
        .into_iter()
        .rev()
        .find(|&abi| create(abi, Tcp::Denied).is_err());
    let Some(next) = next else {
        eprintln!("SKIPPED: this kernel offers all that is known");
        return;
    };
    let tree = Tree::new();
    let result = restrict_at(Some(next), &tree.profile(), Tcp::Denied);
    assert!(matches!(result, Err(LandlockError::Ruleset(_))));
    fs::read(tree.at("outside/file")).unwrap();
}

#[test]
fn a_path_that_went_or_was_replaced_is_named() {
    if is_absent(ABI::V3) {
        return;
    }
    let tree = Tree::new();
    let profile = tree.profile();
    fs::rename(tree.at("read"), tree.at("moved")).unwrap();
    let gone = restrict(&profile, Tcp::Denied).unwrap_err().to_string();
    let path = tree.at("read").display().to_string();
    assert!(
        gone.contains(&path) && gone.contains("cannot be opened"),
        "{gone}"
    );
    fs::create_dir(tree.at("read")).unwrap();
    let other = restrict(&profile, Tcp::Denied).unwrap_err().to_string();
    assert!(
        other.contains(&path) && other.contains("is not what it was"),
        "{other}"
    );
    fs::remove_dir(tree.at("read")).unwrap();
    std::os::unix::fs::symlink("moved", tree.at("read")).unwrap();
    restrict(&profile, Tcp::Denied).unwrap_err();

    // A built-in path may go, and is listed.
    let mut profile = profile;
    profile.rules[0].origin = Origin::BuiltIn;
    fs::remove_file(tree.at("read")).unwrap();
    let enforced = confined(&profile, Tcp::Denied, Enforced::clone);
    assert_eq!(enforced.skipped, [path]);
}

#[test]
fn a_file_is_granted_alone() {
    if is_absent(ABI::V3) {
        return;
    }
    let tree = Tree::new();
    let mut profile = tree.profile();
    profile.rules = vec![
        tree.rule("read/file", Access::ReadExecute, Origin::User),
        tree.rule("write/file", Access::ReadWrite, Origin::User),
    ];
    confined(&profile, Tcp::Denied, |_| {
        fs::read(tree.at("read/file")).unwrap();
        fs::write(tree.at("write/file"), "new").unwrap();
        assert_eq!(code(fs::read(tree.at("read/script"))), EACCES);
        assert_eq!(code(fs::read_dir(tree.at("read"))), EACCES);
        assert_eq!(code(fs::write(tree.at("write/new"), "")), EACCES);
        assert_eq!(code(fs::remove_file(tree.at("write/file"))), EACCES);
    });
}

#[test]
fn what_is_granted_works() {
    if is_absent(ABI::V3) {
        return;
    }
    let tree = Tree::new();
    confined(&tree.profile(), Tcp::Denied, |_| {
        fs::read(tree.at("read/file")).unwrap();
        assert!(fs::read_dir(tree.at("read/deep")).unwrap().count() > 0);
        assert!(
            Command::new(tree.at("read/script"))
                .status()
                .unwrap()
                .success()
        );
        let quiet = Command::new("/bin/sh")
            .args(["-c", "echo x > /dev/null"])
            .stdin(Stdio::null())
            .status();
        assert!(quiet.unwrap().success());

        fs::write(tree.at("write/new"), "x").unwrap();
        fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(tree.at("write/file"))
            .unwrap();
        fs::rename(tree.at("write/new"), tree.at("write/deep/new")).unwrap();
        fs::hard_link(tree.at("write/deep/new"), tree.at("write/again")).unwrap();
        fs::create_dir(tree.at("write/made")).unwrap();
        std::os::unix::fs::symlink("made", tree.at("write/link")).unwrap();
        fs::remove_dir(tree.at("write/made")).unwrap();
        fs::remove_file(tree.at("write/again")).unwrap();
    });
}

#[test]
fn tcp_is_refused_where_that_is_asked_for() {
    if is_absent(ABI::V4) {
        return;
    }
    let tree = Tree::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    TcpStream::connect(address).unwrap();
    confined(&tree.profile(), Tcp::Denied, |_| {
        assert_eq!(code(TcpStream::connect(address)), EACCES);
        assert_eq!(code(TcpListener::bind("127.0.0.1:0")), EACCES);
    });
    confined(&tree.profile(), Tcp::LeftAlone, |enforced| {
        assert!(enforced.net.is_empty());
        TcpStream::connect(address).unwrap();
    });
}

#[test]
fn unix_sockets_outside_are_refused_as_far_as_the_version_can() {
    if is_absent(ABI::V6) {
        return;
    }
    let tree = Tree::new();
    let name = format!("aegis-test-{}-{}", std::process::id(), tree.base.display());
    let address = SocketAddr::from_abstract_name(name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let _named = UnixListener::bind(tree.at("outside/socket")).unwrap();
    UnixStream::connect_addr(&address).unwrap();
    UnixStream::connect(tree.at("outside/socket")).unwrap();
    confined(&tree.profile(), Tcp::Denied, |enforced| {
        assert_eq!(code(UnixStream::connect_addr(&address)), EPERM);
        let named = code(UnixStream::connect(tree.at("outside/socket")));
        // Before version 9 only another fence can refuse these.
        assert_eq!(named, if enforced.abi >= 9 { EACCES } else { None });
    });
}

/// A process of this user that stands outside every fence.
struct Victim(Child);

impl Victim {
    fn new(tree: &Tree) -> Self {
        let child = Command::new("sleep")
            .arg("600")
            .current_dir(tree.at("outside"))
            .env("SECRET", "of the victim")
            .stdin(Stdio::null())
            .stdout(fs::File::open(tree.at("outside/file")).unwrap())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn listed_ports_are_dialled_and_no_others() {
    let tree = Tree::new();
    let [listed, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let at = |listener: &TcpListener| listener.local_addr().unwrap();
    if best_abi().is_none_or(|abi| abi < ABI::V4) {
        eprintln!("SKIPPED: Landlock fences no ports here");
        return;
    }
    TcpStream::connect(at(&other)).unwrap();
    let ports = [at(&listed).port()];
    confined(&tree.profile(), Tcp::Ports(&ports), |enforced| {
        assert!(enforced.net.contains(&"connect_tcp".to_owned()));
        TcpStream::connect(at(&listed)).unwrap();
        for refused in [
            TcpStream::connect(at(&other)).map(drop),
            TcpListener::bind("127.0.0.1:0").map(drop),
        ] {
            let kind = refused.unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::PermissionDenied);
        }
    });
}
