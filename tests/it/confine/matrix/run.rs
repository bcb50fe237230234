//! A probe as the child of `aegis wrap`.

use std::fmt;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::row::{Row, Start};
use super::scene::{Scene, Stage};

/// What is granted of the network, and what the machine offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nothing is granted.
    Denied,
    /// One port of one address.
    OnePort,
    /// Nothing is granted, and the machine has no user namespaces to spare.
    NoNamespaces,
    /// One port of one address, on such a machine, by `--best-effort`.
    PortOnly,
}

/// What came of a run.
pub(super) struct Ran {
    /// By the probe itself.
    pub(super) said: String,
    /// What it changed of the outside.
    pub(super) touched: Vec<String>,
    /// What the record does not say, or says wrongly.
    pub(super) record_fault: Option<String>,
    errors: String,
    code: Option<i32>,
}

impl Mode {
    /// Whether this machine is such a one, or can be made to look like it.
    pub(super) fn is_possible(self, scene: &Scene) -> Result<(), String> {
        let mut start = Launch::new(scene);
        if !self.has_namespaces() {
            start.without_namespaces();
        }
        let ran = start.command("unshare --user --net true").output().unwrap();
        // By the last of the programs: what is before it said nothing.
        let refused = String::from_utf8_lossy(&ran.stderr).contains("unshare failed");
        match (self.has_namespaces(), ran.status.success(), refused) {
            (true, true, _) | (false, _, true) => Ok(()),
            (true, ..) => Err("this user may make no namespaces (unshare)".into()),
            (false, ..) => Err("no process can be kept from namespaces (unshare, setpriv)".into()),
        }
    }

    pub(super) fn has_namespaces(self) -> bool {
        matches!(self, Self::Denied | Self::OnePort)
    }

    fn flags(self) -> &'static str {
        match self {
            Self::OnePort => "--allow-net 127.0.0.1:{allowed}",
            Self::PortOnly => "--allow-net 127.0.0.1:{allowed} --best-effort",
            Self::Denied | Self::NoNamespaces => "",
        }
    }

    /// What is enforced, and of the network, as the record names it.
    fn recorded(self) -> (&'static str, &'static str) {
        match self {
            Self::Denied => ("full", "denied-netns"),
            Self::OnePort => ("full", "host-port"),
            Self::NoNamespaces => ("full", "denied-seccomp"),
            Self::PortOnly => ("partial", "port-only"),
        }
    }
}

pub(super) fn unconfined(scene: &Scene, mode: Mode, row: &Row) -> Ran {
    run(scene, mode, row, None).0
}

pub(super) fn confined(scene: &Scene, mode: Mode, row: &Row) -> Ran {
    let flags = format!("--confine --preset static {} {}", mode.flags(), row.flags);
    let (mut ran, open) = run(scene, mode, row, Some(flags));
    let metadata = match row.flags.contains("--allow-write") {
        true => "allowed",
        false => "denied",
    };
    let (status, network) = mode.recorded();
    let expected = match row.is_refused() {
        true => vec![("status", "failed")],
        false => vec![
            ("status", status),
            ("network", network),
            ("metadata", metadata),
        ],
    };
    let found = &open["confinement"];
    let wrong = expected.iter().find(|(name, value)| found[name] != *value);
    ran.record_fault = wrong.map(|(name, value)| format!("has no {name} {value} in {found}"));
    ran
}

/// Also what the record opens with.
fn run(scene: &Scene, mode: Mode, row: &Row, flags: Option<String>) -> (Ran, Value) {
    let stage = scene.set();
    let mut start = Launch::new(scene);
    if !mode.has_namespaces() {
        start.without_namespaces();
    }
    start.wrap(row, flags.as_deref());
    let mut command = start.staged(&stage, row.start);
    let ran = command.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).trim_end().to_owned();
    let (said, typed) = match said.rsplit_once("typed ") {
        Some((said, typed)) => (said.trim_end().to_owned(), typed != "0"),
        None => (said, false),
    };
    let mut touched = stage.touched();
    touched.extend(typed.then(|| "something was typed into the terminal".to_owned()));
    let ran = Ran {
        said: match said.is_empty() {
            true => format!("nothing, exit {}", ran.status.code().unwrap_or(-1)),
            false => said,
        },
        touched,
        record_fault: None,
        errors: String::from_utf8_lossy(&ran.stderr).into_owned(),
        code: ran.status.code(),
    };
    (ran, opening(scene))
}

/// The first Line of the record, which is gone afterwards.
fn opening(scene: &Scene) -> Value {
    let path = scene.path(RECORD);
    let Ok(record) = fs::read_to_string(&path) else {
        return Value::Null;
    };
    fs::remove_file(&path).unwrap();
    let line = record.lines().next().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_default()
}

/// A command that is being put together.
struct Launch<'a> {
    scene: &'a Scene,
    words: Vec<String>,
    /// Whether the words themselves see to it that the user runs it.
    is_of_user: bool,
}

impl<'a> Launch<'a> {
    fn new(scene: &'a Scene) -> Self {
        Self {
            scene,
            words: Vec::new(),
            is_of_user: false,
        }
    }

    fn say(&mut self, words: &str) {
        self.words
            .extend(words.split_whitespace().map(str::to_owned));
    }

    /// One who runs in a changed root may make no user namespace. Else, of
    /// one, its user may set how many more there may be below it.
    fn without_namespaces(&mut self) {
        match self.scene.user.id() {
            Some(id) => {
                let root = self.scene.path("root").to_string_lossy().into_owned();
                self.say("unshare --mount sh -c");
                self.words.extend([IN_ANOTHER_ROOT.to_owned(), root]);
                self.say(&format!("setpriv --reuid {id} --regid {id} --clear-groups"));
            }
            None => {
                self.say("unshare --map-current-user --keep-caps sh -c");
                self.words.push(NO_MORE.to_owned());
            }
        }
        self.is_of_user = true;
    }

    fn wrap(&mut self, row: &Row, flags: Option<&str>) {
        self.say("{bin}/aegis wrap --durability process --signing-key {own}/key --audit");
        self.words.push(format!("{{base}}/{RECORD}"));
        self.say(flags.unwrap_or_default());
        // A program of a folder lies beside the others.
        let probe = row.probe.strip_prefix("outside/").unwrap_or(row.probe);
        self.say("--");
        self.say(&format!("{{bin}}/{probe}"));
    }

    fn staged(mut self, stage: &Stage<'_>, how: Start) -> Command {
        match how {
            Start::Plainly | Start::AmongOthers => {}
            Start::WithDescriptor => self.in_shell("exec 7<\"$0\"; exec \"$@\""),
            // A file of its own: aegis itself writes there how the session ended.
            Start::WithErrorsInFile => self.in_shell(
                "errors=\"${0%/out/file}/errors\"; echo text >\"$errors\"; exec 2<>\"$errors\"; exec \"$@\"",
            ),
            Start::FromTerminal => self.words.insert(0, "{bin}/pty".to_owned()),
        }
        self.words = self.words.iter().map(|word| stage.fill(word)).collect();
        let mut command = self.command("");
        if how == Start::AmongOthers {
            command.process_group(i32::try_from(stage.bystander.id()).unwrap());
        }
        command
    }

    fn in_shell(&mut self, script: &str) {
        let shell = ["sh", "-c", script, "{out}/file"].map(str::to_owned);
        self.words.splice(..0, shell);
    }

    fn command(mut self, last: &str) -> Command {
        self.say(last);
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .current_dir(self.scene.path("home"))
            .env("HOME", self.scene.path("home"))
            .env(SECRET, "a token")
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::null());
        if let (false, Some(id)) = (self.is_of_user, self.scene.user.id()) {
            command.uid(id).gid(id);
        }
        command
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it said {}", self.said)?;
        for touched in &self.touched {
            write!(f, "; {touched}")?;
        }
        if !self.errors.is_empty() {
            write!(f, " (exit {:?}: {})", self.code, self.errors.trim_end())?;
        }
        Ok(())
    }
}

/// A variable that the probe has no business with.
const SECRET: &str = "SOME_TOKEN";

const RECORD: &str = "own/record";

const IN_ANOTHER_ROOT: &str = "mount --rbind / \"$0\" && exec chroot \"$0\" \"$@\"";

const NO_MORE: &str = "echo 0 >/proc/sys/user/max_user_namespaces && \
    exec setpriv --inh-caps=-all --ambient-caps=-all \"$0\" \"$@\"";
