//! One Session: what gives each Line its place in the Chain.
//!
//! One lock holds the next sequence number and the hash of the last row, and a
//! row is signed and appended under it. Two Lines can therefore never claim
//! the same place, and no Line can claim one before the row that it links to
//! is in the sink.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use thiserror::Error;

use super::broken::{Broken, Fault, Listener, Step};
use super::call::Call;
use super::commit::{Commit, Mark};
use super::sink::{Retention, Sink};
use super::timer::FlushTimer;
use crate::sign::SigningKey;
use crate::wire::canon::CanonError;
use crate::wire::digest::{self, Digest, Request, Text};
use crate::wire::facts::{Durability, Egress};
use crate::wire::hex::Bytes;
use crate::wire::line::{
    self, Body, Close, Intent, Open, OpenFacts, Place, Signed, Written, cut_text,
};
use crate::wire::outcome::Cut;
use crate::wire::time::Timestamp;

/// Writes one Session. Clones write the same one; it ends with
/// [`close`](Writer::close), or when the last clone and the last [`Call`] are
/// gone.
#[derive(Clone)]
pub(crate) struct Writer {
    session: Arc<Session>,
}

/// What a Session begins with.
pub(crate) struct SessionStart {
    /// What the `open` Line says of the Session; the Writer adds the
    /// durability.
    pub(crate) facts: OpenFacts,
    /// Hash of the last Line of the Session before it in the file.
    pub(crate) prev_session_tail: Option<Digest<digest::Line>>,
    /// What the `settle` functions wait for.
    pub(crate) durability: Durability,
    /// The time of each Line.
    pub(crate) clock: Clock,
}

/// Tells the time, as the emitter claims it.
pub(crate) type Clock = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// The clock of the system.
pub(crate) fn system_clock() -> Clock {
    Box::new(|| Timestamp::of(SystemTime::now()))
}

/// A tool's name as a Line carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tool {
    id: String,
    /// The whole name, when `id` is a part of it.
    cut: Option<Cut>,
}

impl Tool {
    /// The tool whose name begins with `head`; `whole` is the length and the
    /// digest of the name, when that is not all of it.
    pub(crate) fn of(head: &str, whole: Option<(u64, Digest<Text>)>) -> Self {
        let mut cuts = BTreeMap::new();
        let id = cut_text(head, "tool_id", &mut cuts);
        let cut = match whole {
            Some((bytes, sha256)) => Some(Cut { bytes, sha256 }),
            None => cuts.remove("tool_id"),
        };
        Self { id, cut }
    }
}

impl From<&str> for Tool {
    fn from(name: &str) -> Self {
        Self::of(name, None)
    }
}

/// What a Session counted, besides its Calls, for its `close` Line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Frames that could not be read.
    pub(crate) unreadable_frames: Option<u64>,
    /// Replacements of the Policy Set.
    pub(crate) reloads: Option<u64>,
    /// What the child did on the network.
    pub(crate) egress: Option<Egress>,
}

/// Why a Line was not written, or may not be kept.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ChainError {
    /// What would be kept, would be signed with a key that everybody has.
    #[error(
        "a durable audit sink needs a provisioned signing key; the insecure dev key may only \
         sign a volatile sink (generate one with `aegis keygen --out <PATH>`)"
    )]
    DevKey,
    /// The Writer is broken, now or since before.
    #[error("{0}")]
    Broken(#[from] Broken),
    /// The Session has its `close` Line.
    #[error("the audit session is closed; start a new one to record more")]
    Closed,
    /// A `close` Line now would leave Calls without an outcome.
    #[error("the audit session has {0} open calls; finish them before it is closed")]
    OpenCalls(u64),
    /// A Line was not written because of its size. The Writer goes on.
    #[error("a {line_type} line of {bytes} bytes was not recorded: the limit is {max} bytes")]
    TooLong {
        /// Which Line.
        line_type: &'static str,
        /// Its canonical form.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// A Line was not written because a value has no canonical form. The
    /// Writer goes on.
    #[error("audit canonicalization failed: {0}")]
    NotCanonical(#[from] CanonError),
}

impl Writer {
    /// Writes the `open` Line and flushes it, in every mode: what precedes a
    /// Session on the disk is durable from then on.
    ///
    /// # Errors
    /// [`ChainError::DevKey`] for that key and a Durable sink, with nothing
    /// written; else why `open` was not written or not flushed.
    pub(crate) fn open(
        sink: impl Sink + 'static,
        key: SigningKey,
        start: SessionStart,
    ) -> Result<Self, ChainError> {
        if sink.retention() == Retention::Durable && key.is_insecure_dev() {
            return Err(ChainError::DevKey);
        }
        let sink: Arc<dyn Sink> = Arc::new(sink);
        let fault = Arc::new(Fault::default());
        let commit = Arc::new(Commit::new(Arc::clone(&sink), Arc::clone(&fault)));
        let session = Session {
            key_id: key.key_id(),
            timer: FlushTimer::new(Arc::clone(&commit), MAX_UNFLUSHED),
            durability: start.durability,
            clock: start.clock,
            chain: Mutex::new(Chain {
                next_seq: 0,
                tail: Digest::GENESIS,
                calls: 0,
                open_calls: 0,
                state: State::Unopened,
            }),
            sink,
            key,
            fault,
            commit,
        };
        let open = Open {
            public_key: Bytes(*session.key.public_key().as_bytes()),
            prev_session_tail: start.prev_session_tail,
            facts: OpenFacts {
                durability: Some(start.durability),
                ..start.facts
            },
        };
        let opened = session.append(State::Unopened, |chain, session| {
            let line = session.signed(chain, &open)?;
            Ok((line, State::Open))
        })?;
        session.commit.wait(opened)?;
        Ok(Self {
            session: Arc::new(session),
        })
    }

    /// Writes the intent of a Call of `tool`. Nothing of the request may reach
    /// the tool before [`settle_intent`](Self::settle_intent) has returned for
    /// the Call's [`intent_mark`](Call::intent_mark).
    ///
    /// # Errors
    /// When the intent was not written; there is no Call then.
    pub(crate) fn begin(
        &self,
        tool: impl Into<Tool>,
        request_digest: Digest<Request>,
    ) -> Result<Call, ChainError> {
        let Tool { id, cut } = tool.into();
        let mut intent = Intent {
            call_id: String::new(),
            tool_id: id,
            request_digest,
            cut: cut
                .map(|cut| ("tool_id".to_owned(), cut))
                .into_iter()
                .collect(),
        };
        let mark = self.session.append(State::Open, |chain, session| {
            intent.call_id = format!("call-{}", chain.calls + 1);
            let line = line::unsigned(session.place(chain), &intent)?;
            within_limit::<Intent>(&line)?;
            chain.calls += 1;
            chain.open_calls += 1;
            Ok((line, State::Open))
        })?;
        Ok(Call::begun(self.clone(), intent, mark))
    }

    /// Waits until the intents up to `mark` are as durable as the mode asks
    /// before a request goes on. One call serves a whole batch.
    ///
    /// # Errors
    /// When they may not be durable, or the Writer is broken.
    pub(crate) fn settle_intent(&self, mark: Mark) -> Result<(), ChainError> {
        self.session.fault.check()?;
        match self.session.durability {
            Durability::Full | Durability::Intent => Ok(self.session.commit.wait(mark)?),
            Durability::Process => Ok(()),
        }
    }

    /// Waits until the outcomes up to `mark` are as durable as the mode asks
    /// before an answer goes on.
    ///
    /// # Errors
    /// When they may not be durable, or the Writer is broken.
    pub(crate) fn settle_outcome(&self, mark: Mark) -> Result<(), ChainError> {
        self.session.fault.check()?;
        match self.session.durability {
            Durability::Full => Ok(self.session.commit.wait(mark)?),
            Durability::Intent | Durability::Process => Ok(()),
        }
    }

    /// Whether the Writer can still record.
    ///
    /// # Errors
    /// When it is broken.
    pub(crate) fn check(&self) -> Result<(), ChainError> {
        Ok(self.session.fault.check()?)
    }

    /// Flushes, writes the `close` Line and flushes that, in every mode: a
    /// `close` that is on the disk has everything before it there too.
    ///
    /// # Errors
    /// [`ChainError::OpenCalls`] while a Call has no outcome; else why `close`
    /// was not written or not flushed.
    pub(crate) fn close(&self, totals: Totals) -> Result<(), ChainError> {
        self.session.close(totals)
    }

    /// Has `listener` called once when the Writer breaks: by whichever thread
    /// notices, or here when it is broken already. From then on every function
    /// that records fails. A listener that holds a Writer keeps the Session
    /// from ending.
    pub(crate) fn on_break(&self, listener: impl FnOnce(&Broken) + Send + 'static) {
        let listener: Listener = Box::new(listener);
        self.session.fault.listen(listener);
    }

    /// Writes the outcome of a Call, which is then open no more, whatever
    /// comes of it.
    pub(super) fn end_call<B: Body<Auth = Signed>>(&self, outcome: &B) -> Result<Mark, ChainError> {
        let mark = self.session.append(State::Open, |chain, session| {
            chain.open_calls -= 1;
            let line = session.signed(chain, outcome)?;
            Ok((line, State::Open))
        })?;
        // The other modes wait for the flush, or want none.
        if self.session.durability == Durability::Intent {
            self.session.timer.row_appended();
        }
        Ok(mark)
    }
}

/// What all clones share.
struct Session {
    sink: Arc<dyn Sink>,
    key: SigningKey,
    key_id: Digest<digest::PublicKey>,
    clock: Clock,
    durability: Durability,
    chain: Mutex<Chain>,
    fault: Arc<Fault>,
    commit: Arc<Commit>,
    timer: FlushTimer,
}

/// Where the next Line goes.
struct Chain {
    next_seq: u64,
    tail: Digest<digest::Line>,
    /// Intents written.
    calls: u64,
    /// Intents without an outcome.
    open_calls: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unopened,
    Open,
    /// Takes nothing but the `close` Line.
    Closing,
    Closed,
}

impl Session {
    /// Appends the Line that `make` makes, in this state only, and moves to the
    /// state that it says.
    fn append(
        &self,
        state: State,
        make: impl FnOnce(&mut Chain, &Self) -> Result<(Written, State), ChainError>,
    ) -> Result<Mark, ChainError> {
        self.locked(state, |chain| {
            let (Written { mut bytes, hash }, next) = make(chain, self)?;
            bytes.push(b'\n');
            self.sink
                .append(&bytes)
                .map_err(|error| self.fault.set(Broken::new(Step::Write, &error)))?;
            chain.next_seq += 1;
            chain.tail = hash;
            chain.state = next;
            Ok(self.commit.appended())
        })
    }

    fn close(&self, totals: Totals) -> Result<(), ChainError> {
        self.locked(State::Open, |chain| {
            if chain.open_calls > 0 {
                return Err(ChainError::OpenCalls(chain.open_calls));
            }
            chain.state = State::Closing;
            Ok(())
        })?;
        self.timer.stop();
        self.commit.wait(self.commit.mark())?;
        let closed = self.append(State::Closing, |chain, session| {
            let close = Close {
                calls: Some(chain.calls),
                unreadable_frames: totals.unreadable_frames,
                reloads: totals.reloads,
                egress: totals.egress,
            };
            let line = session.signed(chain, &close)?;
            Ok((line, State::Closed))
        })?;
        Ok(self.commit.wait(closed)?)
    }

    /// Does `act` under the lock, when the Writer is whole and in this state.
    fn locked<T>(
        &self,
        state: State,
        act: impl FnOnce(&mut Chain) -> Result<T, ChainError>,
    ) -> Result<T, ChainError> {
        let done = self
            .chain
            .lock()
            // How much of a row is in the sink after a panic is unknown.
            .map_err(|_| self.fault.set(Broken::panicked(Step::Write)).into())
            .and_then(|mut chain| {
                self.fault.check()?;
                if chain.state != state {
                    return Err(ChainError::Closed);
                }
                act(&mut chain)
            });
        // With the lock free: a listener may use the Writer.
        if let Err(ChainError::Broken(_)) = done {
            self.fault.tell();
        }
        done
    }

    fn signed<B: Body<Auth = Signed>>(
        &self,
        chain: &Chain,
        body: &B,
    ) -> Result<Written, ChainError> {
        let line = line::signed(self.place(chain), body, self.key_id, |input| {
            *self.key.sign(input).as_bytes()
        })?;
        within_limit::<B>(&line)?;
        Ok(line)
    }

    fn place(&self, chain: &Chain) -> Place {
        Place {
            seq: chain.next_seq,
            prev_hash: chain.tail,
            time: Some((self.clock)()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The best that can be done: nobody is left to tell of a failure, and
        // a Session that is closed, unopened or broken refuses by itself.
        drop(self.close(Totals::default()));
        self.timer.stop();
    }
}

fn within_limit<B: Body>(line: &Written) -> Result<(), ChainError> {
    let max = match B::LINE_TYPE {
        "open" => MAX_OPEN_BYTES,
        _ => MAX_LINE_BYTES,
    };
    let bytes = line.bytes.len();
    if bytes > max {
        return Err(ChainError::TooLong {
            line_type: B::LINE_TYPE,
            bytes,
            max,
        });
    }
    Ok(())
}

/// How many bytes the canonical form of a Line may have (SPEC §5.6).
pub(crate) const MAX_LINE_BYTES: usize = 64 << 10;

/// How many bytes the canonical form of an `open` Line may have (SPEC §5.6).
pub(crate) const MAX_OPEN_BYTES: usize = 1 << 20;

/// How long an outcome may wait for its flush in mode `intent` (SPEC §4.1).
const MAX_UNFLUSHED: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;
