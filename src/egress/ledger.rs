//! What was let through and what was refused.
//!
//! The child chooses the names, so everything here is bounded: counts stay
//! exact, and beyond a bound names are left out. Destinations that were let
//! through come before those that were only refused, so that a flood of
//! refusals hides nothing that left the machine.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::denial::Denial;
use crate::wire::facts;

/// The account of one [`super::Egress`]; clones share it.
#[derive(Clone)]
pub(crate) struct Ledger(Arc<Inner>);

/// A moment of a [`Ledger`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// Connections that had ended by then.
    closed: u64,
    denied: u64,
    /// Of the first event after it.
    next: u64,
}

/// A connection that was let through, in the account until it is dropped.
pub(super) struct Passage {
    ledger: Ledger,
    number: u64,
    flow: Arc<Flow>,
}

/// Bytes that a connection carried, from the child's side.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}

/// A destination as the child meant it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) host: String,
    /// None where a name was asked for.
    pub(super) port: Option<u16>,
}

type Told = dyn Fn(&Denial) + Send + Sync;

struct Inner {
    told: Box<Told>,
    account: Mutex<Account>,
}

#[derive(Default)]
struct Account {
    /// Events so far.
    next: u64,
    opened: u64,
    closed: u64,
    denied: u64,
    open: BTreeMap<u64, (Arc<Place>, Arc<Flow>)>,
    rows: Vec<Row>,
    /// Destinations without a row, by hash: names would be too long.
    others: HashSet<u64>,
    hasher: RandomState,
    recent: VecDeque<Event>,
    told: HashSet<Arc<Place>>,
}

struct Row {
    place: Arc<Place>,
    counts: facts::Destination,
}

/// A refusal, or the end of a connection.
struct Event {
    number: u64,
    place: Arc<Place>,
    is_denial: bool,
}

impl Ledger {
    pub(super) fn new(told: impl Fn(&Denial) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            told: Box::new(told),
            account: Mutex::default(),
        }))
    }

    /// Notes that a connection is let through.
    pub(super) fn pass(&self, place: Place) -> Passage {
        let place = Arc::new(place);
        let flow = Arc::new(Flow::default());
        let mut account = self.account();
        account.opened += 1;
        let number = account.tick();
        if let Some(row) = account.row(&place, true) {
            row.allowed += 1;
        }
        account.open.insert(number, (place, Arc::clone(&flow)));
        Passage {
            ledger: self.clone(),
            number,
            flow,
        }
    }

    /// Notes a refusal.
    pub(super) fn deny(&self, denial: &Denial) {
        let place = Arc::new(denial.place().clone());
        let is_news = {
            let mut account = self.account();
            account.denied += 1;
            if let Some(row) = account.row(&place, false) {
                row.denied += 1;
                row.reason = Some(denial.reason());
            }
            account.remember(&place, true);
            account.told.len() < MAX_TOLD && account.told.insert(place)
        };
        if is_news {
            (self.0.told)(denial);
        }
    }

    /// The present moment.
    pub(crate) fn mark(&self) -> Mark {
        let account = self.account();
        Mark {
            closed: account.closed,
            denied: account.denied,
            next: account.next,
        }
    }

    /// What overlapped the time since `mark`; nothing if nothing did. The
    /// counts are exact. Of ended connections and refusals only the last
    /// [`MAX_RECENT`] are known by name.
    pub(crate) fn since(&self, mark: &Mark) -> Option<facts::EgressOverlapping> {
        let account = self.account();
        let allowed = account.opened - mark.closed;
        let denied = account.denied - mark.denied;
        if allowed == 0 && denied == 0 {
            return None;
        }
        let first = account
            .recent
            .partition_point(|event| event.number < mark.next);
        let events = |is_denial: bool| {
            let recent = account.recent.range(first..);
            recent
                .filter(move |event| event.is_denial == is_denial)
                .map(|event| &event.place)
        };
        let open = account.open.values().map(|(place, _)| place);
        let mut hosts = Vec::new();
        for place in events(false).chain(open).chain(events(true)) {
            if hosts.len() == facts::EgressOverlapping::MAX_HOSTS {
                break;
            }
            let shown = place.to_string();
            if !hosts.contains(&shown) {
                hosts.push(shown);
            }
        }
        Some(facts::EgressOverlapping {
            allowed,
            denied,
            hosts,
        })
    }

    /// Everything so far. Destinations come in the order in which each was
    /// first seen; `more_destinations` is exact up to [`MAX_OTHERS`] and stays
    /// there.
    pub(crate) fn total(&self) -> facts::Egress {
        let account = self.account();
        let mut destinations: Vec<_> = account.rows.iter().map(|row| row.counts.clone()).collect();
        for (place, flow) in account.open.values() {
            if let Some(at) = account.rows.iter().position(|row| row.place == *place) {
                flow.add_to(&mut destinations[at]);
            }
        }
        facts::Egress {
            allowed: account.opened,
            denied: account.denied,
            destinations,
            more_destinations: account.others.len() as u64,
        }
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.0
            .account
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Passage {
    pub(super) fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Notes why nothing came of it.
    pub(super) fn fail(self, reason: &str) {
        let mut account = self.ledger.account();
        let Some((place, _)) = account.open.get(&self.number).cloned() else {
            return;
        };
        if let Some(row) = account.row(&place, true) {
            row.reason = Some(reason.to_owned());
        }
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let mut account = self.ledger.account();
        let Some((place, flow)) = account.open.remove(&self.number) else {
            return;
        };
        account.closed += 1;
        if let Some(row) = account.row(&place, true) {
            flow.add_to(row);
        }
        account.remember(&place, false);
    }
}

impl Flow {
    fn add_to(&self, row: &mut facts::Destination) {
        row.sent_bytes += self.sent.load(Ordering::Relaxed);
        row.received_bytes += self.received.load(Ordering::Relaxed);
    }
}

impl Account {
    fn tick(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// The row of `place`, if it has or gets one. What was let through takes
    /// the row of what was only refused, the last one first.
    fn row(&mut self, place: &Arc<Place>, is_allowed: bool) -> Option<&mut facts::Destination> {
        let known = self.rows.iter().position(|row| row.place == *place);
        let at = match known {
            Some(at) => at,
            None => self.make_row(place, is_allowed)?,
        };
        self.rows.get_mut(at).map(|row| &mut row.counts)
    }

    fn make_row(&mut self, place: &Arc<Place>, is_allowed: bool) -> Option<usize> {
        if self.rows.len() >= facts::Egress::MAX_DESTINATIONS {
            let only_denied = |row: &Row| row.counts.allowed == 0;
            let Some(at) = self
                .rows
                .iter()
                .rposition(only_denied)
                .filter(|_| is_allowed)
            else {
                self.leave_out(place);
                return None;
            };
            let left_out = self.rows.remove(at);
            self.leave_out(&left_out.place);
        }
        let hash = self.hasher.hash_one(&**place);
        self.others.remove(&hash);
        self.rows.push(Row {
            place: Arc::clone(place),
            counts: facts::Destination {
                host: place.host.clone(),
                port: place.port,
                allowed: 0,
                denied: 0,
                sent_bytes: 0,
                received_bytes: 0,
                reason: None,
            },
        });
        Some(self.rows.len() - 1)
    }

    fn leave_out(&mut self, place: &Place) {
        if self.others.len() < MAX_OTHERS {
            self.others.insert(self.hasher.hash_one(place));
        }
    }

    /// The same event again replaces the one before.
    fn remember(&mut self, place: &Arc<Place>, is_denial: bool) {
        let number = self.tick();
        if let Some(last) = self.recent.back_mut()
            && last.is_denial == is_denial
            && last.place == *place
        {
            last.number = number;
            return;
        }
        if self.recent.len() == MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Event {
            number,
            place: Arc::clone(place),
            is_denial,
        });
    }
}

/// Ended connections and refusals that are known by name.
pub(super) const MAX_RECENT: usize = 1024;

/// Destinations without a row that are told apart.
pub(super) const MAX_OTHERS: usize = 4096;

/// Destinations whose refusal is told. A child can make up any number.
pub(super) const MAX_TOLD: usize = 64;

#[cfg(test)]
mod tests;
