//! Runs the executable and shows what came of it.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread;

/// A run of `aegis`, not started yet.
pub(crate) struct Aegis {
    command: Command,
    args: Vec<String>,
    stdin: Vec<u8>,
}

/// What came of a run.
pub(crate) struct Ran {
    args: Vec<String>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: ExitStatus,
}

impl Aegis {
    pub(crate) fn new() -> Self {
        Self {
            command: Command::new(env!("CARGO_BIN_EXE_aegis")),
            args: Vec::new(),
            stdin: Vec::new(),
        }
    }

    pub(crate) fn verify() -> Self {
        Self::new().arg("verify")
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(&arg);
        self.args.push(arg.as_ref().to_string_lossy().into_owned());
        self
    }

    pub(crate) fn args<T: AsRef<OsStr>>(self, args: impl IntoIterator<Item = T>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    pub(crate) fn dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    pub(crate) fn stdin(mut self, bytes: &[u8]) -> Self {
        self.stdin = bytes.to_vec();
        self
    }

    pub(crate) fn run(mut self) -> Ran {
        let piped = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = piped.spawn().expect("aegis starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A run that ends early does not read all of it.
        let writer = thread::spawn(move || drop(stdin.write_all(&self.stdin)));
        let Output {
            status,
            stdout,
            stderr,
        } = child.wait_with_output().expect("aegis ends");
        writer.join().expect("a writer");
        Ran {
            args: self.args,
            stdout: String::from_utf8(stdout).expect("text on standard output"),
            stderr: String::from_utf8(stderr).expect("text on standard error"),
            status,
        }
    }

    /// For a snapshot of a run whose standard error is of no interest.
    pub(crate) fn stdout_and_exit(self) -> String {
        let ran = self.run();
        format!("{}exit {}\n", ran.stdout, ran.code())
    }
}

impl Ran {
    pub(crate) fn code(&self) -> i32 {
        self.status.code().expect("no signal ended aegis")
    }

    /// For a snapshot: arguments, both outputs, exit code.
    pub(crate) fn shown(&self) -> String {
        let args: Vec<_> = self.args.iter().map(|arg| format!("{arg:?}")).collect();
        format!(
            "$ aegis {}\n--- stdout\n{}--- stderr\n{}--- exit {}\n",
            args.join(" "),
            self.stdout,
            self.stderr,
            self.code()
        )
    }
}

/// Says loudly that the machine lacks what a test needs; where none may be
/// skipped, that fails.
#[cfg(feature = "record")]
pub(crate) fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
    let strict = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(!strict, "skipped, and CI may skip nothing: {why}");
}

/// Makes a signing key at `path`.
#[cfg(feature = "record")]
pub(crate) fn write_key(path: &Path) {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::File::options();
    options.write(true).create_new(true).mode(0o600);
    let mut key = options.open(path).unwrap();
    writeln!(key, "{}", "07".repeat(32)).unwrap();
}
