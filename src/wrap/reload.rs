//! Takes over another Policy Set while a session runs (SPEC §6.7).
//!
//! One thread looks at the file; what it says goes to standard error by
//! another, since a reader that does not read must not hold up a policy.

mod look;
mod watch;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::tell::Teller;
use super::{Enforcement, Shared};
use crate::stations::{Change, Gate, GateError};
use crate::wire::escape::EscapedPath;
use watch::{AGREE, Judged, Look, Say, Step, Watch};

/// The reloads of one session. Clones are of the same.
#[derive(Clone)]
pub(super) struct Reload(Arc<State>);

struct State {
    teller: Teller,
    plan: Plan,
    asked: AtomicBool,
    over: AtomicBool,
    /// Looks at the file, once it is there.
    watcher: OnceLock<Thread>,
    count: Mutex<Count>,
    judged: Condvar,
}

#[derive(Default)]
struct Count {
    /// How many sets were taken over.
    reloads: u64,
    /// A document is being judged, which may be taken over.
    is_judging: bool,
}

enum Plan {
    /// Whoever asks is told why not.
    Never {
        why: String,
        /// Whether there is a policy at all.
        has_policy: bool,
    },
    Watch(PathBuf),
}

impl Reload {
    /// As `policy` asks for. Nothing is looked at before [`watch`](Self::watch).
    pub(super) fn new(policy: Option<&Enforcement>, gate: Option<&Gate>) -> Self {
        let plan = match (policy, gate) {
            (Some(policy), Some(_)) if policy.reload => Plan::Watch(policy.file.clone()),
            (_, Some(gate)) => Plan::Never {
                why: format!(
                    "policy not reloaded: --no-reload was given; {} stays in force",
                    gate.policy_set_hash()
                ),
                has_policy: true,
            },
            (_, None) => Plan::Never {
                why: "no policy to reload; --policy gives one".to_owned(),
                has_policy: false,
            },
        };
        Self(Arc::new(State {
            teller: Teller::default(),
            plan,
            asked: AtomicBool::new(false),
            over: AtomicBool::new(false),
            watcher: OnceLock::new(),
            count: Mutex::default(),
            judged: Condvar::new(),
        }))
    }

    /// Begins to look at the file, if that is wanted.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(super) fn watch(&self, shared: &Arc<Shared>) -> io::Result<()> {
        if let Plan::Watch(path) = &self.0.plan {
            let mut watcher = Watcher {
                path: path.clone(),
                state: Arc::clone(&self.0),
                shared: Arc::clone(shared),
                watch: Watch::default(),
                begun: Instant::now(),
            };
            let thread = thread::Builder::new().name("reload".to_owned());
            let thread = thread.spawn(move || watcher.run())?;
            // Who asked before is heard at the next look.
            let _ = self.0.watcher.set(thread.thread().clone());
        }
        Ok(())
    }

    /// Has the file looked at now, and the result told. Never waits.
    pub(super) fn ask(&self) {
        match &self.0.plan {
            Plan::Never { why, .. } => self.0.teller.tell(why),
            Plan::Watch(_) => {
                self.0.asked.store(true, Ordering::SeqCst);
                self.0.wake();
            }
        }
    }

    /// Takes nothing over from now on, and returns how often that was done;
    /// `None` without a policy. Waits for a document that is being judged, lest
    /// it be in force uncounted, but not for long.
    pub(super) fn end(&self) -> Option<u64> {
        self.0.over.store(true, Ordering::SeqCst);
        self.0.wake();
        let judged = self
            .0
            .judged
            .wait_timeout_while(self.0.count(), JUDGE_WAIT, |count| count.is_judging);
        let (count, _) = judged.unwrap_or_else(PoisonError::into_inner);
        match self.0.plan {
            Plan::Never { has_policy, .. } => has_policy.then_some(0),
            Plan::Watch(_) => Some(count.reloads),
        }
    }
}

impl State {
    fn wake(&self) {
        if let Some(watcher) = self.watcher.get() {
            watcher.unpark();
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Puts `document` in force and counts it, or nothing once all is over.
    fn take_over(&self, gate: &Gate, document: &[u8]) -> Option<Result<Change, GateError>> {
        {
            let mut count = self.count();
            if self.is_over() {
                return None;
            }
            count.is_judging = true;
        }
        // With the lock free: a long document takes its time.
        let change = gate.take_over(document);
        let mut count = self.count();
        count.is_judging = false;
        count.reloads += u64::from(matches!(change, Ok(Change::Replaced { .. })));
        self.judged.notify_all();
        Some(change)
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that looks at the file.
struct Watcher {
    path: PathBuf,
    state: Arc<State>,
    shared: Arc<Shared>,
    watch: Watch,
    begun: Instant,
}

impl Watcher {
    fn run(&mut self) {
        while !self.state.is_over() {
            if self.state.asked.swap(false, Ordering::SeqCst) {
                self.watch.ask();
            }
            self.look();
            self.wait_until(self.watch.due(self.now()));
        }
    }

    fn look(&mut self) {
        let Some(gate) = &self.shared.gate else {
            return;
        };
        let began = self.now();
        if !self.watch.must_read(look::stamp(&self.path), began) {
            return;
        }
        let read = look::read(&self.path);
        let step = self.watch.saw(Look {
            began,
            ended: self.now(),
            stamp: read.stamp,
            sight: read.sight,
        });
        let said = match step {
            Step::Wait => None,
            Step::Complain(why) => Some(complaint(&self.path, &why, gate)),
            Step::Restless => Some(restless(&self.path, gate)),
            Step::Judge => {
                let Some(change) = self.state.take_over(gate, &read.document) else {
                    return;
                };
                let say = self.watch.judged(judged(&change));
                report(say, &self.path, &change, gate)
            }
        };
        if let Some(said) = said {
            self.state.teller.tell(&said);
        }
    }

    /// Waits until it is time, or somebody asks, or all is over.
    fn wait_until(&self, due: Duration) {
        loop {
            let left = due.saturating_sub(self.now());
            let is_wanted = self.state.asked.load(Ordering::SeqCst) || self.state.is_over();
            if left.is_zero() || is_wanted {
                return;
            }
            thread::park_timeout(left);
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }
}

fn judged(change: &Result<Change, GateError>) -> Judged {
    match change {
        Ok(Change::Replaced { .. }) => Judged::Replaced,
        Ok(Change::Same) => Judged::Same,
        Err(_) => Judged::Bad,
    }
}

fn report(
    say: Say,
    path: &Path,
    change: &Result<Change, GateError>,
    gate: &Gate,
) -> Option<String> {
    let in_force = gate.policy_set_hash();
    match (say, change) {
        (_, Ok(Change::Replaced { from, to })) => Some(format!("policy reloaded: {from} -> {to}")),
        (_, Err(why)) => Some(complaint(path, &why.to_string(), gate)),
        (Say::Unchanged, Ok(Change::Same)) => Some(format!("policy unchanged: {in_force}")),
        (Say::GoodAgain, Ok(Change::Same)) => Some(format!(
            "policy `{}` is good again: {in_force} stays in force",
            EscapedPath(path)
        )),
        (_, Ok(Change::Same)) => None,
    }
}

fn complaint(path: &Path, why: &str, gate: &Gate) -> String {
    format!(
        "policy not reloaded: `{}`: {why}; {} stays in force",
        EscapedPath(path),
        gate.policy_set_hash()
    )
}

fn restless(path: &Path, gate: &Gate) -> String {
    let why = format!(
        "it does not stay as it is for {} ms; write a new file and rename it to this name",
        AGREE.as_millis()
    );
    complaint(path, &why, gate)
}

/// How long the end of a session waits for a document that is being judged:
/// the `close` Line has to be written before whoever sent a signal loses
/// patience.
const JUDGE_WAIT: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests;
