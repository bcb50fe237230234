//! Starts `aegis wrap`, is its client, and waits for conditions only. A wait
//! that lasts [`PATIENCE`] is a failure.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::record::Record;

pub(crate) const AEGIS: &str = env!("CARGO_BIN_EXE_aegis");
pub(crate) const KEY_SEED: [u8; 32] = [7; 32];

/// How long any condition is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A directory with a signing key, and what is to be wrapped.
pub(crate) struct Setup {
    pub(crate) dir: TempDir,
    flags: Vec<OsString>,
    command: Vec<OsString>,
}

impl Setup {
    /// The test double with these flags.
    pub(crate) fn server(flags: &[&str]) -> Self {
        let mut command = vec![AEGIS, "__demo-server"];
        command.extend(flags);
        Self::command(&command)
    }

    pub(crate) fn command(command: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        crate::exe::write_key(&dir.path().join("key"));
        Self {
            dir,
            flags: Vec::new(),
            command: command.iter().map(OsString::from).collect(),
        }
    }

    /// With more flags of wrap itself.
    pub(crate) fn with(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(OsString::from));
        self
    }

    /// With the server's effects in [`effects`](Self::effects).
    pub(crate) fn with_ledger(mut self) -> Self {
        self.command.push("--ledger".into());
        self.command.push(self.effects_path().into());
        self
    }

    pub(crate) fn audit(&self) -> PathBuf {
        self.dir.path().join("a.aarl")
    }

    pub(crate) fn record(&self) -> Record {
        Record::load(&self.audit())
    }

    /// The lines `effect TOOL ID` of calls that the server executed.
    pub(crate) fn effects(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.effects_path()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn effects_path(&self) -> PathBuf {
        self.dir.path().join("effects")
    }

    /// `aegis wrap` in full, for whoever starts it in another way.
    pub(crate) fn argv(&self) -> Vec<OsString> {
        let mut argv = vec![AEGIS.into(), "wrap".into(), "--audit".into()];
        argv.push(self.audit().into());
        argv.push("--signing-key".into());
        argv.push(self.dir.path().join("key").into());
        argv.extend(self.flags.iter().cloned());
        argv.push("--".into());
        argv.extend(self.command.iter().cloned());
        argv
    }

    pub(crate) fn start(&self) -> Session<'_> {
        let mut session = self.start_unread();
        session.read();
        session
    }

    /// Starts it without reading its output.
    pub(crate) fn start_unread(&self) -> Session<'_> {
        Session::spawn(self, spawn(&self.argv()))
    }

    #[cfg(all(feature = "confine", target_os = "linux"))]
    /// Starts it by a command of the caller's, which becomes wrap.
    pub(crate) fn start_by(&self, command: Command) -> Session<'_> {
        let mut session = Session::spawn(self, spawn_command(command));
        session.read();
        session
    }

    /// Feeds `input` to wrap, closes, and takes all that comes out.
    pub(crate) fn pipe(&self, input: &[u8]) -> Output {
        pipe(&self.argv(), input)
    }

    /// Feeds `input` to the server itself.
    pub(crate) fn pipe_direct(&self, input: &[u8]) -> Output {
        pipe(&self.command, input)
    }
}

fn spawn(argv: &[OsString]) -> Child {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]);
    spawn_command(command)
}

fn spawn_command(mut command: Command) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn pipe(argv: &[OsString], input: &[u8]) -> Output {
    let mut child = spawn(argv);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A server may exit before it has read everything.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// A wrap under way.
pub(crate) struct Session<'a> {
    setup: &'a Setup,
    child: Child,
    input: Option<ChildStdin>,
    /// Until it is read or closed.
    output: Option<ChildStdout>,
    frames: Option<Receiver<Vec<u8>>>,
    stderr: Receiver<Vec<u8>>,
    errors: Vec<u8>,
}

/// What is left when wrap has ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// Frames that nobody had awaited.
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) stderr: String,
    pub(crate) record: Record,
}

impl<'a> Session<'a> {
    fn spawn(setup: &'a Setup, mut child: Child) -> Self {
        let input = child.stdin.take();
        let output = child.stdout.take();
        let (sender, stderr) = mpsc::channel();
        let mut errors = child.stderr.take().unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = errors.read(&mut buffer) {
                let _ = sender.send(buffer[..read].to_vec());
            }
        });
        Self {
            setup,
            child,
            input,
            output,
            frames: None,
            stderr,
            errors: Vec::new(),
        }
    }

    /// Begins to read the output.
    pub(crate) fn read(&mut self) {
        self.read_slowly(Duration::ZERO);
    }

    /// Begins to read the output, with a pause after each 64 KiB at most.
    pub(crate) fn read_slowly(&mut self, pause: Duration) {
        let output = self.output.take().unwrap();
        let (sender, frames) = mpsc::channel();
        thread::spawn(move || cut(output, pause, |frame| drop(sender.send(frame))));
        self.frames = Some(frames);
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Writes these bytes as they are.
    #[track_caller]
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.input.as_mut().unwrap().write_all(bytes)
    }

    /// Sends a message and returns its frame.
    #[track_caller]
    pub(crate) fn send_json(&mut self, message: &Value) -> Vec<u8> {
        let mut frame = message.to_string().into_bytes();
        frame.push(b'\n');
        self.send(&frame);
        frame.pop();
        frame
    }

    /// Calls a tool and returns the frame that did.
    #[track_caller]
    pub(crate) fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) -> Vec<u8> {
        self.send_json(&call(id, tool, arguments))
    }

    /// The next frame, its line end included.
    #[track_caller]
    pub(crate) fn frame(&self) -> Vec<u8> {
        match self.frames.as_ref().unwrap().recv_timeout(PATIENCE) {
            Ok(frame) => frame,
            Err(RecvTimeoutError::Timeout) => panic!("no frame came"),
            Err(RecvTimeoutError::Disconnected) => panic!("the output ended"),
        }
    }

    /// Whether a frame has come by now.
    pub(crate) fn has_frame(&self) -> Option<Vec<u8>> {
        self.frames.as_ref().unwrap().try_recv().ok()
    }

    /// Waits for a frame that says it is an answer to `id`, and returns it.
    #[track_caller]
    pub(crate) fn answer(&self, id: impl Into<Value>) -> Vec<u8> {
        let id = id.into();
        loop {
            let frame = self.frame();
            let read: Value = serde_json::from_slice(&frame).unwrap_or_default();
            if read["id"] == id && read.get("method").is_none() {
                return frame;
            }
        }
    }

    /// Calls, waits, and returns both frames.
    #[track_caller]
    pub(crate) fn ask(
        &mut self,
        id: impl Into<Value>,
        tool: &str,
        arguments: Value,
    ) -> (Vec<u8>, Vec<u8>) {
        let id = id.into();
        let request = self.call(id.clone(), tool, arguments);
        (request, self.answer(id))
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Takes the end that wrap reads from, to be written by another thread.
    pub(crate) fn take_input(&mut self) -> ChildStdin {
        self.input.take().unwrap()
    }

    pub(crate) fn give_input(&mut self, input: ChildStdin) {
        self.input = Some(input);
    }

    /// Takes the end that wrap writes to, which must be unread so far.
    pub(crate) fn take_output(&mut self) -> ChildStdout {
        self.output.take().unwrap()
    }

    /// Closes the end that wrap writes to, which must be unread so far.
    pub(crate) fn close_output(&mut self) {
        drop(self.output.take().unwrap());
    }

    /// Waits until standard error has the line that begins like this, and
    /// returns what follows.
    #[track_caller]
    pub(crate) fn stderr_line(&mut self, start: &str) -> String {
        let line = self.stderr_nth(0, |line| line.starts_with(start));
        line[start.len()..].to_owned()
    }

    /// Waits until standard error has such a line after `n` others, and
    /// returns it.
    #[track_caller]
    pub(crate) fn stderr_nth(&mut self, n: usize, is_such: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = String::from_utf8_lossy(&self.errors);
            let whole = text.split_inclusive('\n').filter(|l| l.ends_with('\n'));
            let mut such = whole.map(str::trim_end).filter(|line| is_such(line));
            if let Some(line) = such.nth(n) {
                return line.to_owned();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let more = self.stderr.recv_timeout(left);
            self.errors
                .extend(more.unwrap_or_else(|_| panic!("waited in vain in {text}")));
        }
    }

    /// Closes the input and waits for the end.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Ended {
        self.close_input();
        self.wait()
    }

    /// Ends it by SIGTERM, for one that would wait for calls that stay open.
    #[track_caller]
    pub(crate) fn finish_by_signal(self) -> Ended {
        self.signal(Signal::TERM);
        let ended = self.wait();
        ended.assert_exit(128 + 15);
        ended
    }

    /// Waits for the end, with the input left open.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Ended {
        let status = self.wait_status();
        let frames = self.frames.take().map(|frames| frames.iter().collect());
        self.errors.extend(self.stderr.iter().flatten());
        Ended {
            status,
            frames: frames.unwrap_or_default(),
            stderr: String::from_utf8_lossy(&self.errors).into_owned(),
            record: self.setup.record(),
        }
    }

    #[track_caller]
    pub(crate) fn wait_status(&mut self) -> ExitStatus {
        let mut status = None;
        until("the end of wrap", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // Only a test that failed leaves it running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    #[track_caller]
    pub(crate) fn assert_exit(&self, code: i32) {
        assert_eq!(self.status.code(), Some(code), "stderr: {}", self.stderr);
    }
}

/// Hands over the frames of `output`, line ends included, until it ends.
fn cut(mut output: impl Read, pause: Duration, mut each: impl FnMut(Vec<u8>)) {
    let mut buffer = vec![0; 64 << 10];
    let mut frame = Vec::new();
    while let Ok(read @ 1..) = output.read(&mut buffer) {
        for piece in buffer[..read].split_inclusive(|byte| *byte == b'\n') {
            frame.extend_from_slice(piece);
            if frame.ends_with(b"\n") {
                each(std::mem::take(&mut frame));
            }
        }
        thread::sleep(pause);
    }
    if !frame.is_empty() {
        each(frame);
    }
}

/// Waits for a condition by asking for it again and again.
#[track_caller]
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a process is there and is not a zombie.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    let stat = stat.unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
    state.is_some_and(|state| !b"ZX".contains(&state))
}

/// A `tools/call`.
pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params})
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
