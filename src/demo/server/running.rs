//! Calls that run on threads of their own, and how they are cancelled.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// What a running call and its cancellation share.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) id: Option<Value>,
    cancelled: Mutex<bool>,
    changed: Condvar,
}

impl Ticket {
    pub(super) fn new(id: Option<Value>) -> Arc<Self> {
        Arc::new(Self {
            id,
            cancelled: Mutex::new(false),
            changed: Condvar::new(),
        })
    }

    /// Waits for `pause`, or shorter when the call is cancelled meanwhile,
    /// which it returns.
    pub(super) fn is_cancelled_within(&self, pause: Duration) -> bool {
        let (cancelled, _) = self
            .changed
            .wait_timeout_while(locked(&self.cancelled), pause, |cancelled| !*cancelled)
            .unwrap_or_else(PoisonError::into_inner);
        *cancelled
    }

    fn cancel(&self) {
        *locked(&self.cancelled) = true;
        self.changed.notify_all();
    }
}

/// The calls that hold a thread.
#[derive(Default)]
pub(super) struct Running {
    calls: Mutex<Vec<Arc<Ticket>>>,
    changed: Condvar,
}

impl Running {
    /// Enters a call; waits while [`MAX_RUNNING`] are running.
    pub(super) fn enter(&self, ticket: &Arc<Ticket>) {
        let mut calls = self
            .changed
            .wait_while(locked(&self.calls), |calls| !has_room(calls.len()))
            .unwrap_or_else(PoisonError::into_inner);
        calls.push(Arc::clone(ticket));
    }

    pub(super) fn leave(&self, ticket: &Arc<Ticket>) {
        locked(&self.calls).retain(|call| !Arc::ptr_eq(call, ticket));
        self.changed.notify_all();
    }

    /// Cancels the calls with this id.
    pub(super) fn cancel(&self, id: &Value) {
        for call in locked(&self.calls).iter() {
            if call.id.as_ref() == Some(id) {
                call.cancel();
            }
        }
    }

    pub(super) fn wait_until_idle(&self) {
        let idle = self
            .changed
            .wait_while(locked(&self.calls), |calls| !calls.is_empty());
        drop(idle);
    }
}

fn has_room(running: usize) -> bool {
    running < MAX_RUNNING
}

/// Locks, also after a panic elsewhere: a test peer goes on.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls on threads at the same time. Reading pauses at the bound, which ends
/// by itself since such calls wait for nothing that would have to be read.
pub(super) const MAX_RUNNING: usize = 64;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn one_call_past_the_bound_waits_for_a_place() {
        assert!(has_room(MAX_RUNNING - 1));
        assert!(!has_room(MAX_RUNNING));
        let running = Arc::new(Running::default());
        let tickets: Vec<_> = (0..MAX_RUNNING).map(|_| Ticket::new(None)).collect();
        for ticket in &tickets {
            running.enter(ticket);
        }
        let (entered, was_entered) = mpsc::channel();
        let late = {
            let running = Arc::clone(&running);
            thread::spawn(move || {
                running.enter(&Ticket::new(None));
                entered.send(()).unwrap();
            })
        };
        running.leave(&tickets[0]);
        was_entered.recv().unwrap();
        late.join().unwrap();
        assert_eq!(locked(&running.calls).len(), MAX_RUNNING);
    }

    #[test]
    fn only_the_named_call_is_cancelled() {
        let running = Running::default();
        let (one, text) = (Ticket::new(Some(1.into())), Ticket::new(Some("1".into())));
        running.enter(&one);
        running.enter(&text);
        running.cancel(&"1".into());
        assert!(text.is_cancelled_within(Duration::from_secs(600)));
        assert!(!one.is_cancelled_within(Duration::ZERO));
    }
}
