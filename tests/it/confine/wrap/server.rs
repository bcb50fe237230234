//! The server, and who starts it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::exe::skip;
use crate::wrap::harness::{AEGIS, Session, Setup};

/// A confined server, and the user who starts it.
pub(super) struct Confined {
    pub(super) setup: Setup,
    user: Option<u32>,
    /// Where aegis is, when its own place is not for everybody.
    aegis: PathBuf,
    /// The home directory, and what a test may put elsewhere.
    home: PathBuf,
    variables: Vec<(String, String)>,
    preset: Option<String>,
    /// The command, when it is another.
    server: Option<Vec<String>>,
}

impl Confined {
    /// With these flags of wrap besides those that python needs. None where
    /// the machine has no python.
    pub(super) fn python(flags: &[&str]) -> Option<Self> {
        if !Path::new(PYTHON).exists() {
            skip(&format!("there is no {PYTHON}"));
            return None;
        }
        let setup = Setup::command(&[PYTHON, "-u", "-c", SERVER]);
        let setup = setup.with(&["--confine"]).with(flags);
        let dir = setup.dir.path();
        let home = dir.join("home");
        fs::create_dir(&home).unwrap();
        fs::create_dir(home.join("tmp")).unwrap();
        fs::write(home.join("secret"), "of the home").unwrap();
        Some(Self {
            aegis: AEGIS.into(),
            user: None,
            home,
            variables: Vec::new(),
            preset: Some("python".to_owned()),
            server: None,
            setup,
        })
    }

    /// Started by a user to whom nothing belongs but this test. None where
    /// that takes root, and this process is not.
    pub(super) fn by_a_plain_user(mut self) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip("only root can start aegis as another user");
            return None;
        }
        let dir = self.setup.dir.path();
        self.aegis = dir.join("bin/aegis");
        fs::create_dir(dir.join("bin")).unwrap();
        fs::copy(AEGIS, &self.aegis).unwrap();
        fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
        // What it writes stands in the directory itself.
        let home = ["", "secret", "tmp"].map(|name| self.home.join(name));
        for path in [dir.to_owned(), dir.join("key")].iter().chain(&home) {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        self.user = Some(NOBODY);
        Some(self)
    }

    pub(super) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a new directory in the home granted by `flag`.
    pub(super) fn granting(self, flag: &str, name: &str) -> Self {
        let path = self.home.join(name);
        fs::create_dir(&path).unwrap();
        chown(&path, self.user, self.user).unwrap();
        self.with_flags(&[flag, path.to_str().unwrap()])
    }

    pub(super) fn with_flags(mut self, flags: &[&str]) -> Self {
        self.setup = self.setup.with(flags);
        self
    }

    /// For another kind of server.
    pub(super) fn with_preset(mut self, preset: &str) -> Self {
        self.preset = Some(preset.to_owned());
        self
    }

    /// With the given flags alone.
    pub(super) fn without_preset(mut self) -> Self {
        self.preset = None;
        self
    }

    /// Instead of the one in Python.
    pub(super) fn with_command(mut self, command: &[String]) -> Self {
        self.server = Some(command.to_vec());
        self
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Where this session's temporary directories are made.
    pub(super) fn temporary(&self) -> PathBuf {
        self.home.join("tmp")
    }

    pub(super) fn command(&self) -> Command {
        let argv = self.setup.argv();
        let dashes = argv.iter().position(|arg| arg == "--").unwrap();
        let mut command = Command::new(&self.aegis);
        command.args(&argv[1..dashes]);
        if let Some(preset) = &self.preset {
            command.args(["--preset", preset]);
        }
        match &self.server {
            Some(server) => command.arg("--").args(server),
            None => command.args(&argv[dashes..]),
        };
        command
            .current_dir(&self.home)
            .env("HOME", &self.home)
            .env("TMPDIR", self.temporary())
            .env_remove("XDG_CACHE_HOME")
            .envs(self.variables.iter().cloned());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    pub(super) fn start(&self) -> Session<'_> {
        self.setup.start_by(self.command())
    }

    /// Runs it without input and shows what it says and how it ends.
    pub(super) fn shown(&self) -> String {
        let ran = self.command().stdin(Stdio::null()).output().unwrap();
        let dir = self.setup.dir.path().to_str().unwrap();
        format!(
            "exit {}\n{}",
            ran.status.code().unwrap(),
            String::from_utf8(ran.stderr).unwrap().replace(dir, "DIR")
        )
    }

    /// The temporary directories that are left of it.
    pub(super) fn leftovers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.temporary()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// Asks the server for something, and returns what it says.
#[track_caller]
pub(super) fn ask(session: &mut Session<'_>, tool: &str, arguments: Value) -> String {
    let (_, answer) = session.ask(tool, tool, arguments);
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let text = &answer["result"]["content"][0]["text"];
    text.as_str()
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned()
}

/// Asserts that a file is refused.
#[track_caller]
pub(super) fn assert_unreadable(session: &mut Session<'_>, path: &Path) {
    let said = ask(session, "read", json!({ "path": path }));
    assert!(said.starts_with("PermissionError: "), "{said}");
}

/// Whether this machine gives network namespaces to whoever asks.
pub(super) fn has_namespaces() -> bool {
    let ran = Command::new("unshare").args(["-U", "-n", "true"]).output();
    let has = ran.is_ok_and(|ran| ran.status.success());
    if !has {
        skip("this machine gives no namespaces");
    }
    has
}

pub(super) const PYTHON: &str = "/usr/bin/python3";

/// The uid that no files belong to.
const NOBODY: u32 = 65534;

const SERVER: &str = include_str!("server.py");
