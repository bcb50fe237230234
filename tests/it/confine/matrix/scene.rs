//! What a probe is let loose on: directories that it is granted or not, a
//! bystander that it could hurt, and peers that it could reach.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::super::seccomp::{User, build, build_static};
use super::peers::Peers;

/// For one user, over many runs.
pub(super) struct Scene {
    base: TempDir,
    pub(super) user: User,
    peers: Peers,
}

/// What is made anew for every run.
pub(super) struct Stage<'a> {
    scene: &'a Scene,
    pub(super) bystander: Bystander,
    before: BTreeMap<String, String>,
}

/// A process of the same user that the probe has no business with.
pub(super) struct Bystander {
    process: Child,
    says: BufReader<ChildStdout>,
    /// Where its secret is, and what it shares memory and messages by.
    has: Vec<String>,
}

impl Scene {
    /// Builds the `probes`, by the names of their files below `tests/probes`.
    pub(super) fn prepare(user: User, probes: &BTreeSet<String>) -> Self {
        let base = tempfile::tempdir().unwrap();
        let scene = Self {
            peers: Peers::start(base.path()),
            base,
            user,
        };
        // A plain user is to get there.
        fs::set_permissions(scene.path(""), Permissions::from_mode(0o755)).unwrap();
        for directory in ["bin", "own", "home", "root", "setuid"] {
            fs::create_dir(scene.path(directory)).unwrap();
        }
        for probe in probes {
            provide(probe, &scene.path("bin"));
        }
        copy(
            env!("CARGO_BIN_EXE_aegis").as_ref(),
            &scene.path("bin/aegis"),
        );
        build("outside/say", &scene.path("home"));
        // Other files than the probe, and not the same by their inodes.
        copy(&scene.path("bin/say"), &scene.path("home/program"));
        let setuid = scene.path("setuid/memory");
        copy(&scene.path("bin/memory"), &setuid);
        fs::set_permissions(&setuid, Permissions::from_mode(0o4755)).unwrap();
        crate::exe::write_key(&scene.path("own/key"));
        for owned in ["", "own", "own/key", "home"] {
            scene.give(&scene.path(owned));
        }
        scene
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.base.path().join(below)
    }

    fn give(&self, path: &Path) {
        if let Some(id) = self.user.id() {
            std::os::unix::fs::lchown(path, Some(id), Some(id)).unwrap();
        }
    }

    /// Everything as it was before the last run.
    pub(super) fn set(&self) -> Stage<'_> {
        for directory in DIRECTORIES {
            let directory = self.path(directory);
            if directory.exists() {
                fs::remove_dir_all(&directory).unwrap();
            }
            fs::create_dir(&directory).unwrap();
            for below in ["empty", "sub"] {
                fs::create_dir(directory.join(below)).unwrap();
            }
            fs::write(directory.join("file"), "as it was").unwrap();
            fs::write(directory.join("sub/file"), "as it was").unwrap();
            std::os::unix::fs::symlink("file", directory.join("link")).unwrap();
            for (program, name) in [("program", "program"), ("say", "dynamic")] {
                fs::hard_link(self.path("home").join(program), directory.join(name)).unwrap();
            }
            for below in [
                "", "empty", "sub", "file", "sub/file", "link", "program", "dynamic",
            ] {
                self.give(&directory.join(below));
            }
        }
        for left in [self.path("new"), self.left_in_memory()] {
            let _ = fs::remove_file(left);
        }
        let key = Permissions::from_mode(0o600);
        fs::set_permissions(self.path("own/key"), key).unwrap();
        self.peers.set();
        let bystander = Bystander::start(self);
        Stage {
            before: self.look(&bystander),
            scene: self,
            bystander,
        }
    }

    /// All that a probe could change without leave, by name.
    fn look(&self, bystander: &Bystander) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for directory in ["out", "ro", "own/key"] {
            describe(&self.path(directory), &mut found);
        }
        for made in [self.path("new"), self.left_in_memory()] {
            if made.exists() {
                describe(&made, &mut found);
            }
        }
        found.insert("the bystander".into(), bystander.state());
        found
    }

    /// Fills in what stands in braces.
    pub(super) fn fill(&self, template: &str, bystander: &Bystander) -> String {
        let base = self.base.path().to_str().unwrap();
        let mut text = template.to_owned();
        for directory in DIRECTORIES
            .into_iter()
            .chain(["bin", "own", "setuid", "home"])
        {
            text = text.replace(&format!("{{{directory}}}"), &format!("{base}/{directory}"));
        }
        for (name, value) in ["{secret}", "{segment}", "{queue}", "{semaphore}"]
            .into_iter()
            .zip(&bystander.has)
        {
            text = text.replace(name, value);
        }
        text = text
            .replace("{pid}", &bystander.id().to_string())
            .replace("{unique}", &self.unique())
            .replace("{base}", base);
        self.peers.fill(&text)
    }

    /// What a control makes in shared memory.
    fn left_in_memory(&self) -> PathBuf {
        Path::new("/dev/shm").join(self.unique())
    }

    /// A name that no other scene has.
    fn unique(&self) -> String {
        let name = self.base.path().file_name().unwrap();
        name.to_str().unwrap().replace('.', "")
    }
}

impl Stage<'_> {
    pub(super) fn fill(&self, template: &str) -> String {
        self.scene.fill(template, &self.bystander)
    }

    /// What became of all that a probe has no leave to change: a line for each
    /// thing that is not as it was.
    pub(super) fn touched(mut self) -> Vec<String> {
        let mut touched = self.bystander.signals();
        let after = self.scene.look(&self.bystander);
        let mut names: Vec<_> = self.before.keys().chain(after.keys()).collect();
        names.dedup();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let (was, is) = (self.before.get(name), after.get(name));
            if was != is {
                touched.push(format!("{name}: {was:?}, then {is:?}"));
            }
        }
        touched.extend(self.scene.peers.reached());
        touched
    }
}

impl Bystander {
    fn start(scene: &Scene) -> Self {
        let mut command = Command::new(scene.path("bin/bystander"));
        command
            .arg(scene.path("out/file"))
            .arg(scene.path("out"))
            .arg(format!("/{}-named", scene.unique()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0);
        if let Some(id) = scene.user.id() {
            command.uid(id).gid(id);
        }
        let mut process = command.spawn().unwrap();
        let mut says = BufReader::new(process.stdout.take().unwrap());
        let mut has = String::new();
        says.read_line(&mut has).unwrap();
        Self {
            has: has.split_whitespace().map(str::to_owned).collect(),
            process,
            says,
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// What others can set of it.
    fn state(&self) -> String {
        let read = |name| fs::read_to_string(format!("/proc/{}/{name}", self.id())).unwrap();
        let line = |text: String, starts: &str| {
            let line = text.lines().find(|line| line.starts_with(starts));
            line.unwrap().to_owned()
        };
        // The 19th, of which the name in parentheses is the second (proc(5)).
        let stat = read("stat");
        let (_, rest) = stat.rsplit_once(')').unwrap();
        let nice = rest.split_whitespace().nth(16).unwrap();
        format!(
            "nice {nice}, {}, {}",
            line(read("limits"), "Max open files"),
            line(read("status"), "Cpus_allowed:")
        )
    }

    /// The signals that it got, to its end.
    fn signals(&mut self) -> Vec<String> {
        let pid = Pid::from_child(&self.process);
        // It takes those that wait already before this one, since their
        // numbers are lower.
        kill_process(pid, Signal::POWER).unwrap();
        let lines = self.says.by_ref().lines().map(Result::unwrap);
        lines
            .filter(|line| line != "0")
            .map(|line| match line.as_str() {
                "queue" => "the queue of the bystander is gone".to_owned(),
                number => format!("the bystander got signal {number}"),
            })
            .collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.left_in_memory());
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Puts a program into a directory, built once for all scenes.
fn provide(probe: &str, into: &Path) {
    static BUILT: Mutex<Option<(TempDir, BTreeSet<String>)>> = Mutex::new(None);
    let mut built = BUILT.lock().unwrap();
    let (programs, names) =
        built.get_or_insert_with(|| (tempfile::tempdir().unwrap(), BTreeSet::new()));
    if names.insert(probe.to_owned()) {
        build_static(probe, programs.path());
    }
    let name = Path::new(probe).file_name().unwrap();
    fs::hard_link(programs.path().join(name), into.join(name)).unwrap();
}

/// By another process: a file that this one has open for writing, and so those
/// that other threads are starting, could not be executed.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").args([from, to]).status().unwrap();
    assert!(copied.success(), "{} is not copied", from.display());
}

/// Everything of `path` that can be seen and changed, and of what lies beneath.
fn describe(path: &Path, into: &mut BTreeMap<String, String>) {
    let metadata = fs::symlink_metadata(path).unwrap();
    let mut text = format!(
        "mode {:o}, owner {}:{}, links {}, inode {}",
        metadata.mode(),
        metadata.uid(),
        metadata.gid(),
        metadata.nlink(),
        metadata.ino(),
    );
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            describe(&entry.unwrap().path(), into);
        }
    } else if metadata.is_file() {
        let written = metadata.mtime_nsec();
        write!(
            text,
            ", size {}, {}.{written}",
            metadata.len(),
            metadata.mtime()
        )
        .unwrap();
        let attributes = rustix::fs::flistxattr(File::open(path).unwrap(), &mut [0_u8; 256]);
        write!(text, ", {} bytes of attributes", attributes.unwrap_or(0)).unwrap();
    }
    into.insert(path.to_string_lossy().into_owned(), text);
}

/// Written to by leave, not at all, and read by leave.
const DIRECTORIES: [&str; 3] = ["in", "out", "ro"];
