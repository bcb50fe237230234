//! A process with pipes, of which nothing is left afterwards.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use serde_json::Value;

/// A process that runs.
pub(super) struct Process {
    child: Child,
    /// Closes its input when dropped.
    input: Option<SyncSender<String>>,
    output: Receiver<Vec<u8>>,
    errors: Arc<Mutex<Tail>>,
    /// Children of this process that are none of the server's.
    others: Vec<Pid>,
}

/// What was heard from its output.
pub(super) enum Heard {
    Frame(Vec<u8>),
    Nothing,
    End,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// From the word to end until it had; until it was killed if it had not.
    pub(super) wall: Duration,
    /// Whether it did by itself.
    pub(super) ended: bool,
    /// As a shell has it.
    pub(super) code: i32,
    /// Names of the processes that it left running. They were killed.
    pub(super) left: Vec<String>,
    /// The last that it said on standard error.
    pub(super) said: Vec<String>,
}

/// A frame, as far as a client has to know it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// To a request with a number for an id.
    Answer {
        id: Option<u64>,
        error: Option<String>,
    },
    Request {
        id: Value,
        method: String,
    },
    Notification,
    /// Not JSON-RPC.
    Garbage,
}

impl Process {
    /// Starts `command`.
    ///
    /// # Errors
    /// Why it could not be started.
    pub(super) fn start(mut command: Command) -> Result<Self, String> {
        // Refused, what is left over goes to init and is not seen.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let others = children();
        let mut child = command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let (input, frames) = sync_channel::<String>(MAX_QUEUED);
        if let Some(mut pipe) = child.stdin.take() {
            thread::spawn(move || {
                for mut frame in frames {
                    frame.push('\n');
                    if pipe.write_all(frame.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
        let (heard, output) = sync_channel(MAX_HEARD);
        if let Some(pipe) = child.stdout.take() {
            thread::spawn(move || read_frames(BufReader::new(pipe), &heard));
        }
        let errors = Arc::new(Mutex::new(Tail::default()));
        if let Some(pipe) = child.stderr.take() {
            let errors = Arc::clone(&errors);
            thread::spawn(move || keep_tail(BufReader::new(pipe), &errors));
        }
        Ok(Self {
            child,
            input: Some(input),
            output,
            errors,
            others,
        })
    }

    /// Hands a frame over; one that takes no more loses it.
    pub(super) fn send(&mut self, frame: String) {
        if let Some(input) = &self.input {
            let _ = input.try_send(frame);
        }
    }

    pub(super) fn hear(&mut self, wait: Duration) -> Heard {
        match self.output.recv_timeout(wait) {
            Ok(frame) => Heard::Frame(frame),
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::End,
        }
    }

    /// Has it end, by SIGTERM or by the end of its input; when it does not
    /// within `end_wait`, by force. Then ends what it left.
    pub(super) fn end(mut self, by_signal: bool, end_wait: Duration) -> Ending {
        let begun = Instant::now();
        if by_signal {
            self.signal(Signal::TERM);
        } else {
            self.input = None;
        }
        let mut status = self.wait(end_wait);
        let wall = begun.elapsed();
        let ended = status.is_some();
        if !ended {
            self.input = None;
            self.signal(Signal::TERM);
            status = self.wait(TERM_WAIT);
        }
        if status.is_none() {
            let _ = self.child.kill();
            status = self.child.wait().ok();
        }
        let left = self.end_rest();
        Ending {
            wall,
            ended,
            code: status.map_or(-1, code),
            left,
            said: self.said(),
        }
    }

    fn signal(&self, signal: Signal) {
        let _ = rustix::process::kill_process(Pid::from_child(&self.child), signal);
    }

    /// Until it has exited, or at most `wait`. What it says meanwhile is taken,
    /// lest it wait for that.
    fn wait(&mut self, wait: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + wait;
        loop {
            while !matches!(
                self.output.try_recv(),
                Err(TryRecvError::Empty | TryRecvError::Disconnected)
            ) && Instant::now() < deadline
            {}
            match self.child.try_wait() {
                Ok(None) if Instant::now() < deadline => thread::sleep(PAUSE),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }

    /// Names and kills what is left when it is gone. What is about to end by
    /// itself has a moment for that.
    fn end_rest(&self) -> Vec<String> {
        let deadline = Instant::now() + REST_WAIT;
        while !self.rest().is_empty() && Instant::now() < deadline {
            thread::sleep(PAUSE);
        }
        let left = self.rest().into_iter().map(name).take(MAX_NAMES).collect();
        let deadline = Instant::now() + REST_WAIT;
        loop {
            let rest = self.rest();
            if rest.is_empty() || Instant::now() >= deadline {
                return left;
            }
            for pid in rest {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
            thread::sleep(PAUSE);
        }
    }

    /// The children of this process that came by the server, and run. They are
    /// not reaped before they are looked at, so their ids are theirs.
    fn rest(&self) -> Vec<Pid> {
        let mut rest = children();
        rest.retain(|pid| !self.others.contains(pid));
        let exited = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        rest.retain(|pid| matches!(rustix::process::waitid(WaitId::Pid(*pid), exited), Ok(None)));
        rest
    }

    fn said(&self) -> Vec<String> {
        let deadline = Instant::now() + REST_WAIT;
        loop {
            let tail = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
            if tail.ended || Instant::now() >= deadline {
                return tail.rows.iter().cloned().collect();
            }
            drop(tail);
            thread::sleep(PAUSE);
        }
    }
}

impl Frame {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let Ok(Value::Object(frame)) = serde_json::from_slice(bytes) else {
            return Self::Garbage;
        };
        let method = frame.get("method").and_then(Value::as_str);
        match (method, frame.get("id")) {
            (Some(method), Some(id)) => Self::Request {
                id: id.clone(),
                method: method.to_owned(),
            },
            (Some(_), None) => Self::Notification,
            (None, id) => match (frame.get("result"), frame.get("error")) {
                (None, None) => Self::Garbage,
                (_, error) => Self::Answer {
                    id: id.and_then(Value::as_u64),
                    error: error.map(|error| {
                        let message = error.get("message").and_then(Value::as_str);
                        message.unwrap_or("an error without a message").to_owned()
                    }),
                },
            },
        }
    }
}

/// The last rows of a text.
#[derive(Debug, Default)]
struct Tail {
    rows: VecDeque<String>,
    ended: bool,
}

/// Until the end, or a frame that is too long: then there is no telling where
/// the next begins.
fn read_frames(mut pipe: impl BufRead, heard: &SyncSender<Vec<u8>>) {
    loop {
        let mut frame = Vec::new();
        let limit = MAX_FRAME_BYTES + 1;
        match pipe.by_ref().take(limit).read_until(b'\n', &mut frame) {
            Ok(1..) if frame.ends_with(b"\n") => _ = frame.pop(),
            Ok(1..) if (frame.len() as u64) < limit => {}
            _ => return,
        }
        if heard.send(frame).is_err() {
            return;
        }
    }
}

fn keep_tail(mut pipe: impl BufRead, tail: &Mutex<Tail>) {
    loop {
        let mut row = Vec::new();
        let read = pipe
            .by_ref()
            .take(MAX_ROW_BYTES)
            .read_until(b'\n', &mut row);
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(read, Ok(1..)) {
            tail.ended = true;
            return;
        }
        let row = String::from_utf8_lossy(&row).trim_end().to_owned();
        if !row.is_empty() {
            if tail.rows.len() == MAX_ROWS {
                tail.rows.pop_front();
            }
            tail.rows.push_back(row);
        }
    }
}

fn code(status: ExitStatus) -> i32 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, signal) => 128 + signal.unwrap_or(0),
    }
}

fn name(pid: Pid) -> String {
    let path = format!("/proc/{}/comm", pid.as_raw_nonzero());
    let name = std::fs::read_to_string(path).unwrap_or_default();
    name.trim_end().to_owned()
}

/// The children of this process.
fn children() -> Vec<Pid> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let lists = tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let mut pids = Vec::new();
    for list in lists {
        let each = list.split_ascii_whitespace();
        pids.extend(each.filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
    }
    pids
}

/// After that it had every chance.
const TERM_WAIT: Duration = Duration::from_secs(2);
const REST_WAIT: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(1);

const MAX_QUEUED: usize = 256;
const MAX_HEARD: usize = 16;
pub(super) const MAX_FRAME_BYTES: u64 = 8 << 20;
const MAX_ROWS: usize = 20;
const MAX_ROW_BYTES: u64 = 2048;
const MAX_NAMES: usize = 16;

#[cfg(test)]
mod tests;
