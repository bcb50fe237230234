//! The Calls that have an intent and no outcome yet.
//!
//! Calls are concluded under the same lock under which they are begun, so that
//! the end of the session finds each of them either here or concluded.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::retry::{Asked, Retries};
use crate::chain::call::Call;
use crate::chain::commit::Mark;
use crate::chain::ending::{Answered, Ending, Unanswered};
use crate::chain::writer::ChainError;
use crate::rpc::message::{RpcId, Sum};
use crate::stations::sandbox::{self, Ledger};

/// How many Calls may be open before reading from the client pauses. The Calls
/// of one batch are taken together, so there may be a batch less one more.
pub(super) const MAX_OPEN: usize = 4096;

/// All open Calls of a session.
pub(super) struct Pending {
    state: Mutex<State>,
    /// Told whenever a Call is concluded or the session ends.
    room: Condvar,
    max_open: usize,
}

#[derive(Default)]
struct State {
    ended: bool,
    begun: u64,
    open: BTreeMap<Ticket, OpenCall>,
    by_id: HashMap<RpcId, VecDeque<Ticket>>,
    retries: Retries,
    /// What the child does on the network, where that is carried.
    network: Option<Ledger>,
}

/// Names an open Call; later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

struct OpenCall {
    call: Call,
    id: RpcId,
    asked: Asked,
    begun: Instant,
    cancelled: bool,
    /// Where the network was when its intent was written.
    network: Option<sandbox::Mark>,
}

/// A Call that was begun.
pub(super) struct Begun {
    pub(super) ticket: Ticket,
    /// Where its intent is.
    pub(super) mark: Mark,
}

impl Pending {
    pub(super) fn new(max_open: usize, network: Option<Ledger>) -> Self {
        Self {
            state: Mutex::new(State {
                network,
                ..State::default()
            }),
            room: Condvar::new(),
            max_open,
        }
    }

    /// Whether fewer Calls are open than may be.
    pub(super) fn has_room(&self) -> bool {
        self.lock().open.len() < self.max_open
    }

    /// Waits until there is room, or the session has ended. Calls of one frame
    /// wait together: those of a batch could wait for each other for ever.
    ///
    /// # Errors
    /// When the outcome of a Call that had to go was not written.
    pub(super) fn wait_for_room(&self) -> Result<(), ChainError> {
        let mut state = self.lock();
        while !state.ended && state.open.len() >= self.max_open {
            // A cancelled Call may never be answered; it is the one to go.
            match state.oldest_cancelled() {
                Some(ticket) => {
                    state.conclude(ticket, Ending::Unanswered(Unanswered::Cancelled))?;
                }
                None => {
                    state = self
                        .room
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
        Ok(())
    }

    /// Begins a Call. `begin` writes its intent, given the Call that it
    /// resumes. `None` when the session has ended.
    ///
    /// # Errors
    /// Those of `begin`.
    pub(super) fn begin(
        &self,
        id: RpcId,
        asked: Asked,
        begin: impl FnOnce(Option<String>) -> Result<Call, ChainError>,
    ) -> Result<Option<Begun>, ChainError> {
        let mut state = self.lock();
        if state.ended {
            return Ok(None);
        }
        let resumes = state.retries.resumed_by(&asked);
        let network = state.network.as_ref().map(Ledger::mark);
        let call = begin(resumes)?;
        let mark = call.intent_mark();
        let ticket = state.admit(OpenCall {
            call,
            id,
            asked,
            begun: Instant::now(),
            cancelled: false,
            network,
        });
        Ok(Some(Begun { ticket, mark }))
    }

    /// Records a Call that does not go on. `refuse` writes both its Lines.
    /// `None` when the session has ended.
    ///
    /// # Errors
    /// Those of `refuse`.
    pub(super) fn refuse(
        &self,
        refuse: impl FnOnce() -> Result<Mark, ChainError>,
    ) -> Result<Option<Mark>, ChainError> {
        // Held meanwhile, so that the end of the session does not find it open.
        let state = self.lock();
        match state.ended {
            true => Ok(None),
            false => refuse().map(Some),
        }
    }

    /// Concludes the oldest open Call with this id, if there is one.
    ///
    /// # Errors
    /// When the outcome was not written.
    pub(super) fn answer(
        &self,
        id: &RpcId,
        answered: impl FnOnce(u64) -> Answered,
    ) -> Result<Option<Mark>, ChainError> {
        let mut state = self.lock();
        let Some(&ticket) = state.by_id.get(id).and_then(VecDeque::front) else {
            return Ok(None);
        };
        let Some(open) = state.open.get(&ticket) else {
            return Ok(None);
        };
        let wall_ms = u64::try_from(open.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let ending = Ending::Answered(answered(wall_ms));
        let concluded = state.conclude(ticket, ending);
        drop(state);
        self.room.notify_all();
        concluded
    }

    /// Notes that the oldest open Call with this id is being answered by a
    /// question; a retry must bring `wanted_state` back, if there is one.
    pub(super) fn input_required(&self, id: &RpcId, wanted_state: Option<Sum>) {
        let mut state = self.lock();
        let Some(open) = state
            .by_id
            .get(id)
            .and_then(VecDeque::front)
            .and_then(|ticket| state.open.get(ticket))
        else {
            return;
        };
        let (call_id, asked) = (open.call.id().to_owned(), open.asked.clone());
        state.retries.remember(call_id, asked, wanted_state);
    }

    /// Concludes a Call that no answer can be matched to.
    ///
    /// # Errors
    /// When the outcome was not written.
    pub(super) fn conclude(&self, ticket: Ticket, ending: Ending) -> Result<(), ChainError> {
        let concluded = self.lock().conclude(ticket, ending);
        self.room.notify_all();
        concluded.map(drop)
    }

    /// Notes that the client gave up on the Calls with this id.
    pub(super) fn cancel(&self, id: &RpcId) {
        let mut state = self.lock();
        let tickets = state.by_id.get(id).cloned().unwrap_or_default();
        for ticket in tickets {
            if let Some(open) = state.open.get_mut(&ticket) {
                open.cancelled = true;
            }
        }
        drop(state);
        // Whoever waits for room may have some now.
        self.room.notify_all();
    }

    /// Ends the session: no Call is begun any more, and all that are open are
    /// concluded, in the order in which they were begun.
    ///
    /// # Errors
    /// When an outcome was not written; the rest is dropped then, and no Call
    /// is left open.
    pub(super) fn end(&self, ending: impl Fn() -> Ending) -> Result<(), ChainError> {
        let mut state = self.lock();
        state.ended = true;
        let tickets: Vec<_> = state.open.keys().copied().collect();
        let concluded = tickets.into_iter().try_for_each(|ticket| {
            let cancelled = state.open.get(&ticket).is_some_and(|open| open.cancelled);
            let ending = if cancelled {
                Ending::Unanswered(Unanswered::Cancelled)
            } else {
                ending()
            };
            state.conclude(ticket, ending).map(drop)
        });
        drop(state);
        self.room.notify_all();
        concluded
    }

    /// Whether no Call is open.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().open.is_empty()
    }

    /// A panic under the lock leaves the Calls where they were, which is all
    /// that the end of the session needs.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn admit(&mut self, mut open: OpenCall) -> Ticket {
        self.begun += 1;
        let ticket = Ticket(self.begun);
        if is_usable(&open.id) {
            let same = self.by_id.entry(open.id.clone()).or_default();
            if !same.is_empty() {
                open.call.mark_ambiguous();
                for other in &*same {
                    if let Some(other) = self.open.get_mut(other) {
                        other.call.mark_ambiguous();
                    }
                }
            }
            same.push_back(ticket);
        }
        self.open.insert(ticket, open);
        ticket
    }

    fn conclude(&mut self, ticket: Ticket, ending: Ending) -> Result<Option<Mark>, ChainError> {
        let Some(mut open) = self.open.remove(&ticket) else {
            return Ok(None);
        };
        if let (Some(ledger), Some(mark)) = (&self.network, &open.network)
            && let Some(egress) = ledger.since(mark)
        {
            open.call.overlapped(egress);
        }
        if let Some(same) = self.by_id.get_mut(&open.id) {
            same.retain(|other| *other != ticket);
            if same.is_empty() {
                self.by_id.remove(&open.id);
            }
        }
        open.call.finish(ending).map(Some)
    }

    fn oldest_cancelled(&self) -> Option<Ticket> {
        self.open
            .iter()
            .find(|(_, open)| open.cancelled)
            .map(|(ticket, _)| *ticket)
    }
}

/// Whether an answer can carry the id: parse errors carry null.
pub(super) fn is_usable(id: &RpcId) -> bool {
    !matches!(id, RpcId::Absent | RpcId::Null)
}
