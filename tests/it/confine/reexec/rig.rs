//! What starts helpers here, as root and as a plain user.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use aegis::internals::confine::helper::{Asked, Ordered, Ready};
use rustix::process::{Gid, Uid};
use tempfile::TempDir;

use crate::exe::skip;

/// A directory that every user may enter, with aegis in it.
pub(super) struct Rig {
    dir: TempDir,
}

/// What a program did.
pub(super) struct Ran {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) status: ExitStatus,
}

impl Rig {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let built = Path::new(env!("CARGO_BIN_EXE_aegis"));
        let own = dir.path().join("aegis");
        if fs::hard_link(built, &own).is_err() {
            fs::copy(built, &own).unwrap();
        }
        Self { dir }
    }

    pub(super) fn aegis(&self) -> PathBuf {
        self.dir.path().join("aegis")
    }

    /// A file of everyone's.
    pub(super) fn file(&self, name: &str, text: &str) -> String {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A directory of the user's who calls.
    pub(super) fn own(&self, name: &str) -> String {
        let path = self.dir.path().join(name);
        let path = path.to_str().unwrap().to_owned();
        fs::create_dir(&path).unwrap();
        path
    }

    /// Starts a helper, restricted.
    pub(super) fn start(&self, ordered: &Ordered, args: &[&str]) -> Result<(Child, Ready), String> {
        ordered.start(&self.aegis(), args, |mut command| {
            piped(&mut command).spawn()
        })
    }

    /// What a program that may be started says.
    pub(super) fn run(&self, asked: Asked, args: &[&str]) -> Ran {
        let ordered = asked.open().unwrap();
        let (child, ready) = self.start(&ordered, args).unwrap();
        ready.go().unwrap();
        ended(child)
    }

    /// The text about a program that may not be started.
    pub(super) fn refused(&self, asked: Asked, args: &[&str]) -> String {
        let ordered = asked.open().unwrap();
        let mut started = Vec::new();
        let spawn = |mut command: Command| {
            let child = piped(&mut command).spawn()?;
            started.push(child.id());
            Ok(child)
        };
        let text = ordered.start(&self.aegis(), args, spawn).err().unwrap();
        for pid in started {
            assert!(
                !Path::new(&format!("/proc/{pid}")).exists(),
                "{pid} is left"
            );
        }
        text
    }
}

/// `sh`, with what it needs to be started.
pub(super) fn shell() -> Asked {
    of_system("sh")
}

/// `bash`, which has sockets.
pub(super) fn bash() -> Option<Asked> {
    if !Path::new("/bin/bash").exists() {
        skip("there is no bash to make connections with");
        return None;
    }
    Some(of_system("bash"))
}

/// A program of the system, which may read its libraries.
pub(super) fn of_system(name: &str) -> Asked {
    let found = ["/bin", "/usr/bin"].map(|dir| Path::new(dir).join(name));
    let found = found.iter().find(|path| path.exists()).unwrap();
    ["/usr", "/lib", "/lib64", "/bin"]
        .into_iter()
        .filter(|path| Path::new(path).exists())
        .fold(Asked::of(found.to_str().unwrap()), |asked, path| {
            asked.read(path).unwrap()
        })
        .write("/dev/null")
        .unwrap()
}

/// Does it as root, where this is root, and as a plain user. Only the calling
/// thread changes user.
pub(super) fn as_each_user(act: impl Fn(&Rig) + Sync) {
    act(&Rig::new());
    if !is_root() {
        return;
    }
    as_plain(act);
}

pub(super) fn as_plain(act: impl Fn(&Rig) + Sync) {
    let rig = Rig::new();
    let is_root = is_root();
    if is_root {
        chown(rig.dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    thread::scope(|scope| {
        let plainly = || {
            if is_root {
                let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
                rustix::thread::set_thread_groups(&[]).unwrap();
                rustix::thread::set_thread_res_gid(group, group, group).unwrap();
                rustix::thread::set_thread_res_uid(user, user, user).unwrap();
            }
            act(&rig);
        };
        scope.spawn(plainly).join().unwrap();
    });
}

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether helpers get namespaces here; says so when not.
pub(super) fn has_namespaces(rig: &Rig) -> bool {
    let ordered = shell().open().unwrap();
    let (child, ready) = rig.start(&ordered, &["sh"]).unwrap();
    let mode = ready.report().unwrap()["network"].clone();
    drop(ready);
    ended(child);
    if mode != "denied-netns" {
        skip("this machine gives no namespaces");
    }
    mode == "denied-netns"
}

pub(super) fn piped(command: &mut Command) -> &mut Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir("/")
}

pub(super) fn ended(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        status: output.status,
    }
}

/// The command behind a shell that does something first and then becomes it,
/// so that it keeps its process id.
pub(super) fn behind(first: &[&str], command: &Command) -> Command {
    let mut wrapped = Command::new(first[0]);
    wrapped
        .args(&first[1..])
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            wrapped.env(name, value);
        }
    }
    wrapped
}

/// Changes the order that a command carries.
pub(super) fn edit(command: &mut Command, change: impl FnOnce(&mut serde_json::Value)) {
    let order = command.get_envs().find(|(name, _)| *name == VARIABLE);
    let order = order.unwrap().1.unwrap().to_str().unwrap();
    let mut order = serde_json::from_str(order).unwrap();
    change(&mut order);
    command.env(VARIABLE, order.to_string());
}

/// The variable that carries an order.
pub(super) const VARIABLE: &str = "AEGIS_CONFINE_PROFILE";

/// The uid that no files belong to.
pub(super) const NOBODY: u32 = 65534;
