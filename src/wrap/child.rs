//! The wrapped process, its group, and whatever it leaves behind.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::Shared;
use super::stderr::copy_escaped;
use crate::stations::sandbox::Started;
use crate::wire::escape::{Escaped, EscapedPath};

/// The wrapped process, not reaped yet, so that its id is nobody else's.
pub(super) struct Wrapped {
    child: Child,
    pid: Pid,
    orphans: Orphans,
}

/// The processes that the wrapped one leaves to us: all children of this
/// process but itself and those that whoever started us had started.
#[derive(Clone, Default)]
pub(super) struct Orphans {
    /// The children that are no orphans; `None` until it can be told.
    others: Arc<Mutex<Option<Vec<Pid>>>>,
}

/// A process that was started.
pub(super) struct Spawned {
    pub(super) wrapped: Wrapped,
    pub(super) pipes: Pipes,
}

/// The ends of its pipes that are ours.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: Option<std::process::ChildStderr>,
}

/// What the child reads from.
///
/// Each [`PIECE_BYTES`] that it takes count against silence, so that a slow
/// child gets all of a large call although the client has left. Less than that
/// does not, lest one that takes byte by byte outlive a client that is gone.
pub(super) struct ToChild {
    input: ChildStdin,
    shared: Arc<Shared>,
    uncounted: usize,
}

impl ToChild {
    pub(super) fn new(input: ChildStdin, shared: &Arc<Shared>) -> Self {
        Self {
            input,
            shared: Arc::clone(shared),
            uncounted: 0,
        }
    }
}

impl Write for ToChild {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.input.write(&bytes[..bytes.len().min(PIECE_BYTES)])?;
        self.uncounted += taken;
        if self.uncounted >= PIECE_BYTES {
            self.uncounted = 0;
            self.shared.child_spoke();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts `command` in a process group of its own. Its standard error is ours
/// unless `pipe_stderr`. From here on `orphans` are told from other children.
///
/// # Errors
/// A text that names the program and where it was looked for.
pub(super) fn spawn(
    mut command: Command,
    pipe_stderr: bool,
    orphans: &Orphans,
) -> Result<Spawned, String> {
    // Held until the new process is known, lest it be reaped as an orphan.
    let mut others = orphans.lock();
    let mut known = children();
    adopt_orphans();
    let mut child = command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(if pipe_stderr {
            Stdio::piped()
        } else {
            Stdio::inherit()
        })
        .spawn()
        .map_err(|error| not_spawned(command.get_program(), &error))?;
    let pid = Pid::from_child(&child);
    known.push(pid);
    *others = Some(known);
    drop(others);
    match (child.stdin.take(), child.stdout.take()) {
        (Some(stdin), Some(stdout)) => {
            let stderr = child.stderr.take();
            let pipes = Pipes {
                stdin,
                stdout,
                stderr,
            };
            let orphans = orphans.clone();
            let wrapped = Wrapped {
                child,
                pid,
                orphans,
            };
            Ok(Spawned { wrapped, pipes })
        }
        _ => Err("the child has no pipes".to_owned()),
    }
}

impl Started for Spawned {
    fn pid(&self) -> u32 {
        self.wrapped.child.id()
    }

    fn discard(self) {
        // Why it is not wanted says more than how it ended.
        let _ = self.wrapped.end();
        if let Some(stderr) = self.pipes.stderr {
            // What it said may be all that there is to know.
            let _ = copy_escaped(stderr.take(DISCARDED_BYTES), io::stderr());
        }
    }
}

impl Wrapped {
    /// A function that returns once the process has exited, leaving it to be
    /// reaped.
    pub(super) fn exit_waiter(&self) -> impl FnOnce() + Send + 'static {
        let pid = self.pid;
        move || {
            let unreaped = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(
                rustix::process::waitid(WaitId::Pid(pid), unreaped),
                Err(Errno::INTR)
            ) {}
        }
    }

    /// Sends a signal to all of the group that is left.
    pub(super) fn signal_group(&self, signal: i32) {
        if let Some(signal) = Signal::from_named_raw(signal) {
            // No process left is no process to tell.
            let _ = rustix::process::kill_process_group(self.pid, signal);
        }
    }

    /// Ends all that the process leaves behind, once it has exited: its group,
    /// and every orphan that was adopted. Its own id stays taken.
    pub(super) fn end_rest(&self) {
        self.signal_group(signal_hook::consts::SIGKILL);
        self.orphans.end();
    }

    /// Ends the process, its group and every orphan, and reaps them.
    ///
    /// # Errors
    /// When the process cannot be waited for.
    pub(super) fn end(mut self) -> io::Result<ExitStatus> {
        self.signal_group(signal_hook::consts::SIGKILL);
        // It may have moved to another group.
        self.child.kill()?;
        let status = self.child.wait()?;
        self.orphans.end();
        Ok(status)
    }
}

impl Orphans {
    /// Reaps those that have exited.
    pub(super) fn reap(&self) {
        self.each(reap);
    }

    /// Kills and reaps them until there are none, or it takes too long.
    /// Orphans of orphans come only when those have died.
    fn end(&self) {
        let deadline = Instant::now() + ORPHANS_WAIT;
        let kill = |pid| {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            reap(pid);
        };
        while self.each(kill) > 0 && Instant::now() <= deadline {
            thread::sleep(ORPHANS_PAUSE);
        }
    }

    /// Does something to each, and tells how many there were. Only one thread
    /// does at a time, so that no id is used that another has set free.
    fn each(&self, mut act: impl FnMut(Pid)) -> usize {
        let others = self.lock();
        let Some(others) = &*others else {
            return 0;
        };
        let mut orphans = children();
        orphans.retain(|pid| !others.contains(pid));
        orphans.iter().for_each(|pid| act(*pid));
        orphans.len()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Pid>>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The exit code that stands for how a process ended, as a shell has it.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code & 0xff,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 1,
    };
    u8::try_from(code).unwrap_or(1)
}

fn not_spawned(program: &OsStr, error: &io::Error) -> String {
    let shown = EscapedPath(program.as_ref());
    let mut text = format!("could not spawn child `{shown}`: {error}");
    if error.kind() == io::ErrorKind::NotFound && !program.as_encoded_bytes().contains(&b'/') {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = path.to_string_lossy();
        text.push_str(&format!(
            "\nPATH was searched: {}\na client may start aegis with another PATH than your shell's; give the whole path of the program",
            Escaped(&path)
        ));
    }
    text.push_str(match Errno::from_io_error(error) {
        Some(Errno::MFILE) => "; let aegis open more files (ulimit -n)",
        Some(Errno::AGAIN) => "; let this user start more processes (ulimit -u)",
        _ => "",
    });
    text
}

/// Makes this process the parent of what its descendants leave behind.
fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        // Refused, orphans go to init as they do elsewhere.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
}

/// Reaps a child if it has exited.
fn reap(pid: Pid) {
    let exited = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let _ = rustix::process::waitid(WaitId::Pid(pid), exited);
}

/// The children of this process.
fn children() -> Vec<Pid> {
    // In the /proc of another namespace their ids are those of strangers here.
    let own = std::process::id().to_string();
    if !std::fs::read_link("/proc/self").is_ok_and(|link| link == Path::new(&own)) {
        return Vec::new();
    }
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|pids| {
            pids.split_ascii_whitespace()
                .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Of what a process says that is discarded.
const DISCARDED_BYTES: u64 = 8 << 10;

/// How long killed orphans are waited for.
const ORPHANS_WAIT: Duration = Duration::from_secs(1);

/// How long they are left to die before they are looked for again.
const ORPHANS_PAUSE: Duration = Duration::from_millis(1);

/// Bytes that a child that is alive takes at a time.
const PIECE_BYTES: usize = 64 << 10;
