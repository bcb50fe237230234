//! Runs of the user's server: plain, under `aegis wrap`, and confined.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::flags;
use super::session::{End, Script, Talk};
use super::trace::{Seen, Whose};
use crate::chain::keyfile;
use crate::confine::machine::ThisMachine;
use crate::confine::private;
use crate::stations::sandbox::Asked;
use crate::wire::escape::{Escaped, without_path};

/// How the server is started.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way<'a> {
    /// As the user would.
    Plain,
    /// Under `aegis wrap`.
    Wrap,
    /// Under `aegis wrap` with these flags.
    Confine(&'a Asked),
}

/// Where records of the runs are kept, and gone afterwards.
pub(super) struct Runs {
    command: Vec<OsString>,
    directory: TempDir,
    executable: PathBuf,
    signing_key: PathBuf,
    pub(super) tracing: Tracing,
    count: Cell<u32>,
    start_wait: Cell<Duration>,
}

/// Whether system calls can be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tracing {
    Strace,
    /// Why not.
    No(String),
}

/// A run that was watched.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) talk: Talk,
    /// What it touched, where that could be seen.
    pub(super) seen: Option<Seen>,
    /// What its record says, where there is one.
    pub(super) record: Record,
}

/// What a record says of a confined run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) grants: Vec<Grant>,
    pub(super) refused: Refused,
}

/// Hosts that were asked for and refused, with the port where it is known, and
/// the reason.
pub(super) type Refused = BTreeMap<(String, Option<u16>), String>;

/// A path that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) path: PathBuf,
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) executes: bool,
}

impl Runs {
    /// Makes a place for them.
    ///
    /// # Errors
    /// One line.
    pub(super) fn prepare(command: Vec<OsString>, start_wait: Duration) -> Result<Self, String> {
        let directory = place()?;
        let signing_key = directory.path().join("key");
        keyfile::generate(&signing_key, false).map_err(|error| error.to_string())?;
        let executable = std::env::current_exe()
            .map_err(|error| format!("the path of aegis cannot be found: {error}"))?;
        Ok(Self {
            command,
            tracing: tracing(&executable),
            directory,
            executable,
            signing_key,
            count: Cell::new(0),
            start_wait: Cell::new(start_wait),
        })
    }

    /// All steps, ended by the end of its input.
    pub(super) fn measured(&self, way: Way<'_>) -> Talk {
        let script = Script {
            pings: PINGS,
            trials: true,
            ..self.short(way)
        };
        Talk::with(self.command(way).0, script)
    }

    /// All steps once more, plain, for what differs from run to run.
    pub(super) fn again(&self) -> Talk {
        let way = Way::Plain;
        let script = Script {
            pings: PINGS,
            trials: true,
            end: End::Term,
            ..self.short(way)
        };
        Talk::with(self.command(way).0, script)
    }

    /// A short run, ended by SIGTERM.
    pub(super) fn signalled(&self, way: Way<'_>) -> Talk {
        let script = Script {
            end: End::Term,
            ..self.short(way)
        };
        Talk::with(self.command(way).0, script)
    }

    /// A short run, watched as well as this machine allows.
    pub(super) fn watched(&self, way: Way<'_>) -> Watched {
        let script = self.short(way);
        let (command, audit) = self.command(way);
        let (talk, seen) = match (&self.tracing, tempfile::tempdir_in(&self.directory)) {
            (Tracing::Strace, Ok(traces)) => {
                let command = under_strace(&command, traces.path());
                let talk = Talk::with(command, script);
                let whose = match way {
                    Way::Confine(_) => Whose::Confined,
                    _ => Whose::Everybody,
                };
                (talk, Some(Seen::read(traces.path(), whose)))
            }
            _ => (Talk::with(command, script), None),
        };
        Watched {
            talk,
            seen,
            record: audit.map(|audit| Record::read(&audit)).unwrap_or_default(),
        }
    }

    /// A short run of which only the answers matter.
    pub(super) fn tried(&self, flags: &Asked) -> Talk {
        // The shorter way to end where the end of input is not heeded.
        self.signalled(Way::Confine(flags))
    }

    fn short(&self, way: Way<'_>) -> Script {
        Script {
            pings: 0,
            trials: false,
            start_wait: self.start_wait.get(),
            end: End::Input,
            end_wait: way.end_wait(),
        }
    }

    /// From now on waits for a handshake as long as one that took `wall` may
    /// take when the machine is busy, and never longer than before.
    pub(super) fn wait_like(&self, wall: Duration) {
        let wait = (wall * SLOWER).max(LEAST_START_WAIT);
        self.start_wait.set(wait.min(self.start_wait.get()));
    }

    /// The command, and where its record will be.
    fn command(&self, way: Way<'_>) -> (Command, Option<PathBuf>) {
        let [program, args @ ..] = &self.command[..] else {
            return (Command::new(""), None);
        };
        let own = match way {
            Way::Plain => {
                let mut command = Command::new(program);
                command.args(args);
                return (command, None);
            }
            Way::Wrap => Vec::new(),
            Way::Confine(asked) => flags::arguments(asked),
        };
        self.count.set(self.count.get() + 1);
        let name = format!("{}.aarl", self.count.get());
        let audit = self.directory.path().join(name);
        let mut command = Command::new(&self.executable);
        command
            .args([OsStr::new("wrap"), "--audit".as_ref()])
            .arg(&audit)
            .arg("--signing-key")
            .arg(&self.signing_key)
            .args(own)
            .arg("--")
            .args(&self.command);
        (command, Some(audit))
    }
}

impl Way<'_> {
    /// `aegis wrap` gives a server 5 s after the end of its input, and 1 s
    /// after SIGTERM.
    fn end_wait(self) -> Duration {
        match self {
            Self::Plain => PLAIN_END_WAIT,
            Self::Wrap | Self::Confine(_) => WRAP_END_WAIT,
        }
    }
}

impl Record {
    fn read(audit: &Path) -> Self {
        let mut text = String::new();
        let read = File::open(audit).and_then(|file| {
            let mut file = file.take(MAX_RECORD_BYTES);
            file.read_to_string(&mut text)
        });
        let mut record = Self::default();
        if read.is_err() {
            return record;
        }
        for line in text.lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            record.take_confinement(&line["confinement"]);
            record.take_egress(&line["egress"]);
        }
        record
    }

    fn take_confinement(&mut self, confinement: &Value) {
        for grant in confinement["grants"].as_array().into_iter().flatten() {
            if let (Some(path), Some(access)) = (grant["path"].as_str(), grant["access"].as_str()) {
                self.grants.push(Grant {
                    path: path.into(),
                    reads: true,
                    writes: access.contains("write") || access == "device",
                    executes: access.contains("execute"),
                });
            }
        }
    }

    fn take_egress(&mut self, egress: &Value) {
        for place in egress["destinations"].as_array().into_iter().flatten() {
            let is_refused = place["denied"].as_u64() > Some(0);
            if let (Some(host), true) = (place["host"].as_str(), is_refused) {
                let port = place["port"].as_u64().and_then(|port| port.try_into().ok());
                let why = place["reason"].as_str().unwrap_or_default();
                self.refused.insert((host.to_owned(), port), why.to_owned());
            }
        }
    }
}

/// Below what aegis keeps from every server anyway, so that no flag is refused
/// because of it.
fn place() -> Result<TempDir, String> {
    let machine = ThisMachine::look().map_err(|error| error.to_string())?;
    let made = match private::cache_root(&machine) {
        Some(root) => {
            let parent = private::cache(&root, "doctor").map_err(|error| error.to_string())?;
            tempfile::Builder::new().prefix("run-").tempdir_in(parent)
        }
        None => tempfile::tempdir(),
    };
    made.map_err(without_path)
        .map_err(|error| format!("no place for records of these runs: {error}; set TMPDIR or XDG_CACHE_HOME to one that can be written to"))
}

/// Tries whether strace is there and may watch.
fn tracing(executable: &Path) -> Tracing {
    let tried = Command::new("strace")
        .args(["-f", "-y", "-qq", "-o", "/dev/null", "-e", CALLS, "--"])
        .arg(executable)
        .arg("version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output();
    match tried {
        Ok(tried) if tried.status.success() => Tracing::Strace,
        Ok(tried) => {
            let said = String::from_utf8_lossy(&tried.stderr);
            let last = said.lines().last().unwrap_or("it says nothing");
            Tracing::No(format!("strace cannot watch here ({})", Escaped(last)))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Tracing::No("strace is not installed".to_owned())
        }
        Err(error) => Tracing::No(format!("strace cannot be run ({error})")),
    }
}

fn under_strace(command: &Command, traces: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace
        .args(["-ff", "-y", "-qq", "-e", CALLS, "-o"])
        .arg(traces.join("trace"))
        .arg("--")
        .arg(command.get_program())
        .args(command.get_args());
    strace
}

/// Those that take paths or addresses or start processes; of an architecture
/// that lacks one, it is left out.
const CALLS: &str = "trace=%file,?clone,?clone3,?fork,?vfork,?connect";

const PINGS: u64 = 51;

/// How much slower a server may start when it is watched or confined.
const SLOWER: u32 = 8;
const LEAST_START_WAIT: Duration = Duration::from_secs(5);

/// The grace that `aegis wrap` gives.
pub(super) const PLAIN_END_WAIT: Duration = Duration::from_secs(5);
/// That, what it does afterwards, and some.
const WRAP_END_WAIT: Duration = Duration::from_secs(12);

const MAX_RECORD_BYTES: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC [DOCTOR-12].
    #[test]
    fn a_record_tells_what_was_granted_and_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = r#"{"confinement":{"status":"full","grants":[
            {"path":"/a","access":"read"},{"path":"/b","access":"read_write_execute"},
            {"path":"/dev/null","access":"device"},{"path":7}]}}"#;
        let close = r#"{"egress":{"destinations":[
            {"host":"a.test","allowed":0,"denied":2,"reason":"not allowed"},
            {"host":"b.test","port":443,"allowed":1,"denied":0},
            {"host":"c.test","port":70000,"denied":1,"reason":"odd"}]}}"#;
        let text = [open, "no JSON", close]
            .map(|line| line.replace('\n', " "))
            .join("\n");
        std::fs::write(file.path(), text).unwrap();
        let record = Record::read(file.path());
        let grants: Vec<_> = record
            .grants
            .iter()
            .map(|grant| (grant.path.to_str().unwrap(), grant.writes, grant.executes))
            .collect();
        assert_eq!(
            grants,
            [
                ("/a", false, false),
                ("/b", true, true),
                ("/dev/null", true, false)
            ]
        );
        let refused: Vec<_> = record.refused.into_iter().collect();
        let row = |host: &str, why: &str| ((host.to_owned(), None), why.to_owned());
        assert_eq!(
            refused,
            [row("a.test", "not allowed"), row("c.test", "odd")]
        );
        assert_eq!(
            Record::read(Path::new("/no/such/record")),
            Record::default()
        );
    }
}
