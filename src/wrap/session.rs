//! A session from its `open` Line to its `close`: what starts it, what ends
//! it, and in which order.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::answers::Answers;
use super::child::{self, Pipes, Wrapped, exit_code};
use super::lane::{Stop, relay};
use super::pending::{MAX_OPEN, Pending};
use super::requests::Requests;
use super::stderr::copy_escaped;
use super::{Client, Ended, Notice, Shared, Wrap, WrapError, failure};
use crate::chain::ending::{Ending, Unanswered};
use crate::chain::keyfile;
use crate::chain::writer::{ChainError, Totals, Writer};
use crate::rpc::frame::{FrameLimits, FrameReader};
use crate::wire::digest::{Digest, Hasher, Text};
use crate::wire::facts::{Child, Confinement, Emitter};
use crate::wire::hex::Bytes;
use crate::wire::line::OpenFacts;

/// Wraps one child for one client.
///
/// # Errors
/// When there was no session: the record could not be opened, or the child
/// could not be started.
pub(crate) fn run(wrap: Wrap, client: Client) -> Result<Ended, WrapError> {
    let key = keyfile::load(&wrap.signing_key)?;
    let limits = frame_limits(&wrap);
    let writer = wrap
        .audit
        .open(key, facts(&wrap.command)?, wrap.durability)?;
    let started = start(&wrap.command, client, limits, &writer);
    match started {
        Ok(session) => Ok(session.wait()),
        Err(error) => {
            writer.close(Totals::default())?;
            Err(error)
        }
    }
}

fn facts(command: &[OsString]) -> io::Result<OpenFacts> {
    let mut argv = Hasher::<Text>::new();
    for argument in command {
        argv.update(argument.as_encoded_bytes());
        argv.update(b"\0");
    }
    let program = command.first().map(|p| p.to_string_lossy());
    let mut session_id = [0; 16];
    getrandom::fill(&mut session_id)?;
    Ok(OpenFacts {
        emitter: Some(Emitter {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            verb: "wrap".to_owned(),
        }),
        session_id: Some(Bytes(session_id)),
        child: Some(Child::of(&program.unwrap_or_default(), argv.finish())),
        confinement: Some(Confinement::None),
        ..OpenFacts::default()
    })
}

fn frame_limits(wrap: &Wrap) -> FrameLimits {
    let mut limits = FrameLimits::new(wrap.audit.directory());
    if let Some(max) = wrap.max_frame {
        limits.max_frame = max;
        limits.in_memory = limits.in_memory.min(max);
    }
    limits
}

/// A session under way.
struct Session {
    shared: Arc<Shared>,
    notices: Receiver<Notice>,
    wrapped: Wrapped,
    stderr_done: Receiver<()>,
    state: State,
}

#[derive(Default)]
struct State {
    /// The client closed its end, or reads no more.
    client_left: bool,
    /// The child's output ended.
    child_done: bool,
    child_exited: bool,
    /// When the child is not waited for any longer.
    deadline: Option<Instant>,
    signal: Option<i32>,
    failure: Option<String>,
    broken: bool,
}

fn start(
    command: &[OsString],
    client: Client,
    limits: FrameLimits,
    writer: &Writer,
) -> Result<Session, WrapError> {
    let (sender, notices) = mpsc::channel();
    // Before the child is there, lest a signal end aegis and leave it behind.
    listen_to_signals(sender.clone())?;
    let (wrapped, pipes) =
        child::spawn(command, client.stderr_is_terminal).map_err(WrapError::Spawn)?;
    let shared = Arc::new(Shared {
        writer: writer.clone(),
        pending: Pending::new(MAX_OPEN),
        unreadable: AtomicU64::new(0),
        notices: sender.clone(),
        begun: Instant::now(),
        over: AtomicBool::new(false),
        spoke_ms: AtomicU64::new(0),
    });
    let broken = sender.clone();
    writer.on_break(move |why| {
        let _ = broken.send(Notice::Broken(why.to_string()));
    });
    let exited = wrapped.exit_waiter();
    let stderr_done = start_lanes(pipes, client, limits, &shared)?;
    thread::Builder::new().spawn(move || {
        exited();
        let _ = sender.send(Notice::ChildExited);
    })?;
    Ok(Session {
        shared,
        notices,
        wrapped,
        stderr_done,
        state: State::default(),
    })
}

fn listen_to_signals(notices: Sender<Notice>) -> Result<(), WrapError> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    thread::Builder::new().spawn(move || {
        for signal in signals.forever() {
            if notices.send(Notice::Signal(signal)).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

fn start_lanes(
    pipes: Pipes,
    client: Client,
    limits: FrameLimits,
    shared: &Arc<Shared>,
) -> Result<Receiver<()>, WrapError> {
    let (done, stderr_done) = mpsc::channel();
    if let Some(stderr) = pipes.stderr {
        thread::Builder::new().spawn(move || {
            // Standard error is no part of the record: a failure ends the copy.
            let _ = copy_escaped(stderr, io::stderr());
            let _ = done.send(());
        })?;
    }
    let (asks, answers) = (Arc::clone(shared), Arc::clone(shared));
    let (input, output) = (client.input, client.output);
    let requests_limits = limits.clone();
    thread::Builder::new()
        .name("requests".to_owned())
        .spawn(move || {
            let mut frames = FrameReader::new(input, requests_limits);
            let mut station = Requests::new(Arc::clone(&asks));
            // The child's input closes before anybody hears of the end.
            let stop = relay(&mut frames, pipes.stdin, &mut station);
            asks.notify(Notice::Requests(stop));
        })?;
    thread::Builder::new()
        .name("answers".to_owned())
        .spawn(move || {
            let mut frames = FrameReader::new(pipes.stdout, limits);
            let mut station = Answers::new(Arc::clone(&answers));
            let stop = relay(&mut frames, output, &mut station);
            answers.notify(Notice::Answers(stop));
        })?;
    Ok(stderr_done)
}

impl Session {
    /// Waits for the end, and ends everything in its order.
    fn wait(mut self) -> Ended {
        while !self.is_over() {
            match self.next_notice() {
                Some(notice) => self.take(notice),
                None => break,
            }
        }
        self.end()
    }

    /// Whether nothing is left to wait for.
    fn is_over(&self) -> bool {
        let State {
            child_done,
            child_exited,
            client_left,
            ..
        } = self.state;
        self.state.broken
            || self.state.failure.is_some()
            // With its output the session ends; its exit is waited for when it
            // was asked to leave.
            || child_done && (child_exited || !client_left && self.state.signal.is_none())
    }

    /// The next notice, or `None` when the child has had its time.
    fn next_notice(&mut self) -> Option<Notice> {
        loop {
            let now = Instant::now();
            let wait = match self.deadline() {
                None => FOREVER,
                Some(deadline) if deadline <= now => return None,
                Some(deadline) => deadline - now,
            };
            match self.notices.recv_timeout(wait) {
                Ok(notice) => return Some(notice),
                // The child may have spoken meanwhile, which moves the end.
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// When the child will have had its time.
    fn deadline(&self) -> Option<Instant> {
        if self.state.deadline.is_some() {
            return self.state.deadline;
        }
        let left = self.state.client_left || self.state.child_exited;
        left.then(|| self.shared.spoke_at() + GRACE)
    }

    fn take(&mut self, notice: Notice) {
        match notice {
            Notice::Requests(stop) => {
                self.stopped(&stop);
                self.leave();
            }
            Notice::Answers(stop) => {
                self.stopped(&stop);
                self.state.child_done = true;
                self.wait_at_most(GRACE);
            }
            Notice::ChildInputGone => {}
            Notice::ClientGone => self.leave(),
            Notice::ChildExited => {
                self.state.child_exited = true;
                // What it started may hold its output open for ever.
                self.wrapped.signal_group(signal_hook::consts::SIGKILL);
                self.shared.child_spoke();
            }
            Notice::Signal(signal) => {
                self.state.signal.get_or_insert(signal);
                self.wrapped.signal_group(signal);
                self.wait_at_most(SIGNAL_GRACE);
            }
            Notice::Broken(why) => {
                self.state.broken = true;
                self.state.failure = Some(format!("wrap audit failed: {why}"));
            }
        }
    }

    fn stopped(&mut self, stop: &Stop) {
        self.state.broken |= matches!(stop, Stop::Chain(ChainError::Broken(_)));
        self.state.failure = self.state.failure.take().or(failure(stop));
    }

    /// The client leaves: the silence of the child counts from here.
    fn leave(&mut self) {
        if !self.state.client_left {
            self.state.client_left = true;
            self.shared.child_spoke();
        }
    }

    fn wait_at_most(&mut self, time: Duration) {
        let end = Instant::now() + time;
        self.state.deadline = Some(self.state.deadline.map_or(end, |other| other.min(end)));
    }

    fn end(self) -> Ended {
        let Self {
            shared,
            wrapped,
            stderr_done,
            state,
            notices,
        } = self;
        if state.broken {
            // Nothing more may be relayed that is not recorded.
            let _ = wrapped.end();
            return Ended {
                exit: 1,
                notice: state.failure,
            };
        }
        let status = wrapped.end();
        // Its output ends with the group: what it said last is still recorded.
        let drained = Instant::now() + DRAIN;
        let mut child_done = state.child_done;
        while !child_done && Instant::now() < drained {
            match notices.recv_timeout(drained - Instant::now()) {
                Ok(Notice::Answers(_)) => child_done = true,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        let why = if state.client_left && !state.child_done {
            Unanswered::ClientClosed
        } else {
            Unanswered::ChildExited
        };
        let closed = close(&shared, why);
        // Nobody sends when standard error is not copied.
        let _ = stderr_done.recv_timeout(STDERR_WAIT);
        let early = state.child_done && !state.client_left && state.signal.is_none();
        let exit = match (&closed, &state.failure, state.signal, &status) {
            (Err(_), ..) | (_, Some(_), ..) | (.., Err(_)) => 1,
            (.., Some(signal), _) => u8::try_from(128 + signal).unwrap_or(1),
            (.., Ok(status)) => match exit_code(*status) {
                0 if early => 1,
                code => code,
            },
        };
        let notice = match (closed, state.failure) {
            (Err(error), _) => Some(format!("wrap audit failed: {error}")),
            (Ok(()), Some(failure)) => Some(failure),
            (Ok(()), None) if early => {
                Some("child process exited before the client closed stdin".to_owned())
            }
            (Ok(()), None) => None,
        };
        Ended { exit, notice }
    }
}

/// Concludes every open Call and closes the record.
fn close(shared: &Shared, why: Unanswered) -> Result<(), ChainError> {
    shared.over.store(true, Ordering::SeqCst);
    shared.pending.end(|| Ending::Unanswered(why))?;
    shared.writer.close(Totals {
        unreadable_frames: Some(shared.unreadable.load(Ordering::Relaxed)),
        reloads: None,
    })
}

impl Child {
    fn of(program: &str, argv_digest: Digest<Text>) -> Self {
        let end = program.floor_char_boundary(crate::wire::line::MAX_TEXT_BYTES);
        Self {
            program: program[..end].to_owned(),
            argv_digest,
        }
    }
}

/// Silence of the child that is borne once the client has left.
const GRACE: Duration = Duration::from_secs(5);

/// Clients escalate from SIGTERM to SIGKILL within seconds; the `close` Line
/// has to be written before.
const SIGNAL_GRACE: Duration = Duration::from_secs(1);

/// How long the rest of the output of a child that is gone is waited for.
const DRAIN: Duration = Duration::from_secs(2);

/// How long the rest of its standard error is waited for.
const STDERR_WAIT: Duration = Duration::from_secs(2);

const FOREVER: Duration = Duration::from_secs(3600);
