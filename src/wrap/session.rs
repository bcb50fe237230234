//! A session from its `open` Line to its `close`: what starts it, what ends
//! it, and in which order.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGSYS, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::answers::Answers;
use super::child::{Orphans, Pipes, Spawned, ToChild, Wrapped, exit_code};
use super::client::{Given, ToClient, wait_for_hang_up};
use super::lane::{Stop, relay};
use super::launch::{Launch, Launched};
use super::listings::Listings;
use super::pending::{MAX_OPEN, Pending};
use super::reload::Reload;
use super::requests::Requests;
use super::stderr::{copy_escaped, copy_verbatim};
use super::{Client, Deny, Ended, Enforcement, Notice, Shared, Wrap, WrapError, failure, opening};
use crate::chain::ending::{Ending, Unanswered};
use crate::chain::keyfile;
use crate::chain::writer::{ChainError, Totals};
use crate::rpc::frame::{FrameLimits, FrameReader};
use crate::stations::Gate;
use crate::stations::sandbox::Running;
use crate::wire::facts::Egress;

/// Wraps one child for one client.
///
/// # Errors
/// When there was no session: the record could not be opened, or the child
/// could not be started.
pub(crate) fn run(wrap: Wrap, client: Client) -> Result<Ended, WrapError> {
    // Before the policy is read, which takes a while if it is long.
    let asked_early = bear_sigusr1()?;
    let policy = match &wrap.policy {
        None => None,
        Some(policy) => Some((policy, opening::gate(policy)?)),
    };
    let key = keyfile::load(&wrap.signing_key)?;
    let (sender, notices) = mpsc::channel();
    // Before there is a record, lest a signal leave it without a `close`.
    let orphans = Orphans::default();
    let gate = policy.as_ref().map(|(_, gate)| gate);
    let reload = Reload::new(wrap.policy.as_ref(), gate);
    listen_to_signals(sender.clone(), orphans.clone(), reload.clone())?;
    if asked_early.load(Ordering::SeqCst) {
        reload.ask();
    }
    let limits = opening::frame_limits(&wrap);
    let launch = Launch {
        wrap: &wrap,
        gate,
        // What a confined child is given is what it may do anything with: it
        // could read, empty or lock a file that standard error leads to.
        pipe_stderr: client.stderr_is_terminal || wrap.confine.is_some(),
        orphans,
    };
    let launched = launch.run(key)?;
    let writer = launched.writer.clone();
    let notices = (sender, notices);
    match start(launched, client, limits, policy, reload, notices) {
        Ok(session) => Ok(session.wait()),
        Err(error) => {
            writer.close(Totals::default())?;
            Err(error)
        }
    }
}

/// A session under way.
struct Session {
    shared: Arc<Shared>,
    notices: Receiver<Notice>,
    wrapped: Wrapped,
    /// Outlives the child.
    sandbox: Option<Running>,
    stderr_done: Receiver<()>,
    reload: Reload,
    state: State,
}

#[derive(Default)]
struct State {
    /// The client closed its end, or reads no more.
    client_left: bool,
    /// The child left while the client was there and no signal was sent.
    child_left_first: bool,
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
    launched: Launched,
    client: Client,
    limits: FrameLimits,
    policy: Option<(&Enforcement, Gate)>,
    reload: Reload,
    (sender, notices): (Sender<Notice>, Receiver<Notice>),
) -> Result<Session, WrapError> {
    let Launched {
        writer,
        spawned: Spawned { wrapped, pipes },
        sandbox,
    } = launched;
    let (enforcement, gate) = policy.unzip();
    let network = sandbox.as_ref().and_then(Running::ledger);
    let shared = Arc::new(Shared {
        writer: writer.clone(),
        pending: Pending::new(MAX_OPEN, network),
        listings: Listings::default(),
        gate,
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
    let threads =
        start_lanes(pipes, client, limits, &shared, enforcement).and_then(|stderr_done| {
            thread::Builder::new().spawn(move || {
                exited();
                let _ = sender.send(Notice::ChildExited);
            })?;
            reload.watch(&shared)?;
            Ok(stderr_done)
        });
    match threads {
        Ok(stderr_done) => Ok(Session {
            shared,
            notices,
            wrapped,
            sandbox,
            stderr_done,
            reload,
            state: State::default(),
        }),
        Err(error) => {
            // Why it did not start says more than how it ended.
            let _ = wrapped.end();
            Err(error)
        }
    }
}

/// From now on SIGUSR1 ends nothing. Tells whether it came.
fn bear_sigusr1() -> io::Result<Arc<AtomicBool>> {
    let came = Arc::default();
    if ignored_signals() >> (SIGUSR1 - 1) & 1 == 0 {
        signal_hook::flag::register(SIGUSR1, Arc::clone(&came))?;
    }
    Ok(came)
}

fn listen_to_signals(
    notices: Sender<Notice>,
    orphans: Orphans,
    reload: Reload,
) -> Result<(), WrapError> {
    let ignored = ignored_signals();
    let is_ignored = |signal: i32| ignored >> (signal - 1) & 1 == 1;
    // What whoever started us has us ignore stays so, for the child too.
    let mut heard = vec![SIGTERM, SIGINT, SIGHUP, SIGUSR1];
    heard.retain(|signal| !is_ignored(*signal));
    // But children that exit unheeded would leave no exit code.
    heard.push(SIGCHLD);
    if !is_ignored(SIGXFSZ) {
        // Heard by nobody: a write beyond the limit fails, as on a full disk.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    }
    let mut signals = Signals::new(heard)?;
    thread::Builder::new().spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGCHLD => orphans.reap(),
                SIGUSR1 => reload.ask(),
                signal if notices.send(Notice::Signal(signal)).is_err() => return,
                _ => {}
            }
        }
    })?;
    Ok(())
}

/// The signals that are ignored from the start: bit 0 is signal 1. None where
/// the system does not tell.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0)
}

fn start_lanes(
    pipes: Pipes,
    client: Client,
    limits: FrameLimits,
    shared: &Arc<Shared>,
    enforcement: Option<&Enforcement>,
) -> Result<Receiver<()>, WrapError> {
    let (done, stderr_done) = mpsc::channel();
    let copy = match client.stderr_is_terminal {
        true => copy_escaped,
        false => copy_verbatim,
    };
    if let Some(stderr) = pipes.stderr {
        thread::Builder::new().spawn(move || {
            // Standard error is no part of the record: a failure ends the copy.
            let _ = copy(stderr, io::stderr());
            let _ = done.send(());
        })?;
    }
    let (asks, answers) = (Arc::clone(shared), Arc::clone(shared));
    let (input, leaves) = (client.input, Arc::clone(shared));
    let end = input.try_clone()?;
    thread::Builder::new()
        .name("hang-up".to_owned())
        .spawn(move || {
            if wait_for_hang_up(&end).is_ok() {
                leaves.notify(Notice::ClientHungUp);
            }
        })?;
    let output = ToClient::new(client.output, shared);
    let refusals = output.clone();
    let mut stdin = ToChild::new(pipes.stdin, shared);
    let deny = enforcement.map_or_else(Deny::default, |policy| policy.deny);
    let hides_denied = enforcement.is_some_and(|policy| policy.hide_denied);
    let requests_limits = limits.clone();
    thread::Builder::new()
        .name("requests".to_owned())
        .spawn(move || {
            let mut frames = FrameReader::new(Given(input), requests_limits);
            let mut station = Requests::new(Arc::clone(&asks), deny);
            let stop = relay(&mut frames, &mut stdin, refusals, &mut station);
            asks.notify(Notice::Requests(stop));
            // Only now: a child that leaves at the end of its input must not be
            // heard of before the client that left first.
            drop(stdin);
        })?;
    thread::Builder::new()
        .name("answers".to_owned())
        .spawn(move || {
            let mut frames = FrameReader::new(pipes.stdout, limits);
            let mut station = Answers::new(Arc::clone(&answers), hides_denied);
            let stop = relay(&mut frames, output, io::sink(), &mut station);
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
        let state = &self.state;
        state.broken || state.failure.is_some() || state.child_done && state.child_exited
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
        let State {
            client_left,
            child_exited,
            deadline,
            ..
        } = self.state;
        // What a child that is gone wrote goes on as long as the client takes it.
        let silence = if child_exited { DRAIN } else { GRACE };
        let silent = (client_left || child_exited).then(|| self.shared.spoke_at() + silence);
        [deadline, silent].into_iter().flatten().min()
    }

    fn take(&mut self, notice: Notice) {
        match notice {
            Notice::Requests(stop) => {
                self.stopped(&stop, "client");
                self.client_leaves();
            }
            Notice::Answers(stop) => {
                self.stopped(&stop, "server");
                self.child_leaves();
                self.state.child_done = true;
                self.wait_at_most(if self.state.client_left { GRACE } else { DRAIN });
            }
            // The lane from it may be held up, and not see the end for ever.
            Notice::ClientHungUp => self.client_leaves(),
            Notice::ChildInputGone => {}
            Notice::ClientGone => {
                self.client_leaves();
                // However much it says: nobody hears it.
                self.wait_at_most(GRACE);
            }
            Notice::ChildExited => {
                self.child_leaves();
                self.state.child_exited = true;
                // What it started may hold its output open for ever.
                self.wrapped.end_rest();
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

    fn stopped(&mut self, stop: &Stop, peer: &str) {
        self.state.broken |= matches!(stop, Stop::Chain(ChainError::Broken(_)));
        self.state.failure = self.state.failure.take().or(failure(stop, peer));
    }

    fn child_leaves(&mut self) {
        let State {
            client_left,
            signal,
            ..
        } = self.state;
        self.state.child_left_first |= !client_left && signal.is_none();
    }

    /// The client leaves: the silence of the child counts from here.
    fn client_leaves(&mut self) {
        self.state.client_left = true;
        self.shared.child_spoke();
    }

    fn wait_at_most(&mut self, time: Duration) {
        let end = Instant::now() + time;
        self.state.deadline = Some(self.state.deadline.map_or(end, |other| other.min(end)));
    }

    fn end(self) -> Ended {
        let Self {
            shared,
            wrapped,
            mut sandbox,
            stderr_done,
            reload,
            mut state,
            notices,
        } = self;
        let reloads = reload.end();
        let status = wrapped.end();
        if state.broken {
            // Nothing more may be relayed that is not recorded.
            return Ended {
                exit: 1,
                notice: state.failure,
            };
        }
        if !state.child_done {
            // Its output ends with the group: what it said last is recorded.
            let signalled = state.signal.is_some();
            drain(&notices, if signalled { SIGNAL_DRAIN } else { DRAIN });
        }
        let why = unanswered(&state, status.as_ref().ok());
        let egress = sandbox.as_mut().and_then(Running::end_network);
        let closed = close(&shared, why, reloads, egress);
        if let Err(error) = &closed {
            state.failure = Some(format!("wrap audit failed: {error}"));
        }
        // Nobody sends when standard error is not copied.
        let _ = stderr_done.recv_timeout(STDERR_WAIT);
        let kept = sandbox.and_then(Running::remove);
        let exit = match (&state.failure, state.signal, status) {
            (Some(_), ..) | (.., Err(_)) => 1,
            (None, Some(signal), _) => u8::try_from(128 + signal).unwrap_or(1),
            (None, None, Ok(status)) => match exit_code(status) {
                0 if state.child_left_first => 1,
                code => code,
            },
        };
        let early = state
            .child_left_first
            .then(|| "child process exited before the client closed stdin".to_owned());
        Ended {
            exit,
            notice: state.failure.or(early).or(kept),
        }
    }
}

/// Waits until the lane from the child has ended, but no longer than `most`.
fn drain(notices: &Receiver<Notice>, most: Duration) {
    let end = Instant::now() + most;
    while let Ok(notice) = notices.recv_timeout(end.saturating_duration_since(Instant::now())) {
        if let Notice::Answers(_) = notice {
            return;
        }
    }
}

/// What the Calls that are open at the end are said to be.
fn unanswered(state: &State, status: Option<&ExitStatus>) -> Ending {
    if status.and_then(ExitStatus::signal) == Some(SIGSYS) {
        return Ending::Killed;
    }
    Ending::Unanswered(if state.client_left && !state.child_done {
        Unanswered::ClientClosed
    } else {
        Unanswered::ChildExited
    })
}

/// Concludes every open Call and closes the record.
fn close(
    shared: &Shared,
    unanswered: Ending,
    reloads: Option<u64>,
    egress: Option<Egress>,
) -> Result<(), ChainError> {
    shared.over.store(true, Ordering::SeqCst);
    shared.pending.end(|| unanswered.clone())?;
    shared.writer.close(Totals {
        unreadable_frames: Some(shared.unreadable.load(Ordering::Relaxed)),
        reloads,
        egress,
    })
}

/// Silence of the child that is borne once the client has left.
const GRACE: Duration = Duration::from_secs(5);

/// Clients escalate from SIGTERM to SIGKILL within seconds; the `close` Line
/// has to be written before.
const SIGNAL_GRACE: Duration = Duration::from_secs(1);

/// How long the rest of the output of a child that is gone is waited for.
const DRAIN: Duration = Duration::from_secs(2);

/// The same after a signal.
const SIGNAL_DRAIN: Duration = Duration::from_millis(200);

/// How long the rest of its standard error is waited for.
const STDERR_WAIT: Duration = Duration::from_secs(2);

const FOREVER: Duration = Duration::from_secs(3600);
