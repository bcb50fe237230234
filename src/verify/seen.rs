//! What a walk remembers of the Lines behind it: approvals decided, Calls
//! without an outcome. Exact for any file, in bounded memory.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;

use super::reason::Position;
use super::spill::{Record, Sorted, Spill};
use crate::wire::digest::{Digest, Text};
use crate::wire::escape::Shortened;

/// A name that is compared by its digest and printed cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameRef {
    pub(super) key: [u8; 32],
    pub(super) name: Shortened,
}

impl NameRef {
    pub(super) fn of(name: &str) -> Self {
        Self {
            key: *Digest::<Text>::of(name.as_bytes()).as_bytes(),
            name: Shortened::of(name),
        }
    }
}

/// The approvals decided so far in the file.
pub(super) struct Approvals {
    decided: HashSet<[u8; 32]>,
    limit: usize,
    /// Once there are too many, all of them.
    spill: Option<Spill>,
    order: u64,
}

/// A second decision that was found only after the walk.
pub(super) struct LateDuplicate {
    pub(super) line: u64,
    pub(super) at: Position,
    pub(super) approval_id: Shortened,
}

impl Approvals {
    /// Keeps up to `limit` approvals in memory.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            decided: HashSet::new(),
            limit,
            spill: None,
            order: 0,
        }
    }

    /// Notes a decision; `false` when its approval is known to be decided
    /// already. Past the limit that is known only to [`Self::first_duplicate`].
    pub(super) fn decide(
        &mut self,
        approval: &NameRef,
        line: u64,
        at: Position,
    ) -> io::Result<bool> {
        self.order += 1;
        let record = |key, order, name: Shortened| Record {
            key,
            order,
            tags: [line, at.session, at.seq],
            name,
        };
        if let Some(spill) = &mut self.spill {
            spill.push(record(approval.key, self.order, approval.name.clone()))?;
            return Ok(true);
        }
        if !self.decided.insert(approval.key) {
            return Ok(false);
        }
        if self.decided.len() > self.limit {
            let mut spill = Spill::new(SPILL_BYTES);
            for key in self.decided.drain() {
                // All are first decisions: of them, only the key matters.
                spill.push(record(key, 0, Shortened::default()))?;
            }
            self.spill = Some(spill);
        }
        Ok(true)
    }

    /// The second decision that comes first in the file, of those that
    /// [`Self::decide`] could not tell.
    pub(super) fn first_duplicate(self) -> io::Result<Option<LateDuplicate>> {
        let Some(spill) = self.spill else {
            return Ok(None);
        };
        let mut sorted = spill.sorted()?;
        let mut last = None;
        let mut repeated = None;
        let mut first: Option<Record> = None;
        while let Some(record) = sorted.next()? {
            // The records of one approval come in file order, so the second
            // of them is the one that repeats.
            if last == Some(record.key) && repeated != Some(record.key) {
                repeated = Some(record.key);
                if first
                    .as_ref()
                    .is_none_or(|first| record.order < first.order)
                {
                    first = Some(record);
                }
            } else {
                last = Some(record.key);
            }
        }
        Ok(first.map(|record| {
            let [line, session, seq] = record.tags;
            LateDuplicate {
                line,
                at: Position { session, seq },
                approval_id: record.name,
            }
        }))
    }
}

/// Intents and outcomes of one Session, paired by `call_id`.
pub(super) struct Calls {
    open: HashMap<[u8; 32], BTreeMap<u64, Shortened>>,
    open_count: usize,
    outcomes_without_intent: u64,
    limit: usize,
    spill: Option<Spill>,
    order: u64,
}

/// How the Calls of a Session paired up.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Paired {
    /// How many intents have no outcome.
    pub(super) unmatched_intents: u64,
    /// The `call_id`s of the first of them, in file order, cut.
    pub(super) first_unmatched: Vec<Shortened>,
    /// How many outcomes have no intent.
    pub(super) outcomes_without_intent: u64,
}

impl Calls {
    /// Keeps up to `limit` open Calls in memory.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            open: HashMap::new(),
            open_count: 0,
            outcomes_without_intent: 0,
            limit,
            spill: None,
            order: 0,
        }
    }

    pub(super) fn intent(&mut self, call: &NameRef) -> io::Result<()> {
        self.order += 1;
        if let Some(spill) = &mut self.spill {
            return spill.push(record(call.key, self.order, INTENT, call.name.clone()));
        }
        self.open
            .entry(call.key)
            .or_default()
            .insert(self.order, call.name.clone());
        self.open_count += 1;
        if self.open_count > self.limit {
            let mut spill = Spill::new(SPILL_BYTES);
            for (key, calls) in self.open.drain() {
                for (order, name) in calls {
                    spill.push(record(key, order, INTENT, name))?;
                }
            }
            self.spill = Some(spill);
        }
        Ok(())
    }

    pub(super) fn outcome(&mut self, call: &NameRef) -> io::Result<()> {
        self.order += 1;
        if let Some(spill) = &mut self.spill {
            return spill.push(record(call.key, self.order, OUTCOME, Shortened::default()));
        }
        match self.open.get_mut(&call.key) {
            Some(calls) => {
                calls.pop_last();
                if calls.is_empty() {
                    self.open.remove(&call.key);
                }
                self.open_count -= 1;
            }
            None => self.outcomes_without_intent += 1,
        }
        Ok(())
    }

    /// Pairs them up; at most `names` of the unmatched are named.
    pub(super) fn pair(self, names: usize) -> io::Result<Paired> {
        let mut first = FirstNames::new(names);
        let mut paired = Paired {
            outcomes_without_intent: self.outcomes_without_intent,
            ..Paired::default()
        };
        for (order, name) in self.open.into_values().flatten() {
            paired.unmatched_intents += 1;
            first.offer(order, name);
        }
        if let Some(spill) = self.spill {
            pair_sorted(spill.sorted()?, &mut paired, &mut first)?;
        }
        paired.first_unmatched = first.names.into_iter().map(|(_, name)| name).collect();
        Ok(paired)
    }
}

fn pair_sorted(mut sorted: Sorted, paired: &mut Paired, first: &mut FirstNames) -> io::Result<()> {
    let mut key = None;
    // An outcome answers the newest open intent of its Call, so what stays
    // open are the oldest, and more of them than are named need not be kept.
    let mut open: Vec<(u64, Shortened)> = Vec::new();
    let mut depth = 0u64;
    loop {
        let record = sorted.next()?;
        if key != record.as_ref().map(|r| r.key) {
            paired.unmatched_intents += depth;
            for (order, name) in open.drain(..) {
                first.offer(order, name);
            }
            depth = 0;
            key = record.as_ref().map(|r| r.key);
        }
        let Some(record) = record else { return Ok(()) };
        if record.tags[0] == INTENT {
            if depth == open.len() as u64 && open.len() < first.limit {
                open.push((record.order, record.name));
            }
            depth += 1;
        } else if depth > 0 {
            depth -= 1;
            open.truncate(usize::try_from(depth).unwrap_or(usize::MAX));
        } else {
            paired.outcomes_without_intent += 1;
        }
    }
}

/// The names of lowest order, at most `limit` of them.
struct FirstNames {
    names: BTreeSet<(u64, Shortened)>,
    limit: usize,
}

impl FirstNames {
    fn new(limit: usize) -> Self {
        Self {
            names: BTreeSet::new(),
            limit,
        }
    }

    fn offer(&mut self, order: u64, name: Shortened) {
        self.names.insert((order, name));
        if self.names.len() > self.limit {
            self.names.pop_last();
        }
    }
}

fn record(key: [u8; 32], order: u64, tag: u64, name: Shortened) -> Record {
    Record {
        key,
        order,
        tags: [tag, 0, 0],
        name,
    }
}

const INTENT: u64 = 0;
const OUTCOME: u64 = 1;

/// How much of either question stays in memory once it is spilled.
const SPILL_BYTES: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seq: u64) -> Position {
        Position { session: 0, seq }
    }

    /// Feeds `ids` until one is refused, then asks for late duplicates.
    fn first_repeat(ids: &[u8], limit: usize) -> Option<u64> {
        let mut approvals = Approvals::new(limit);
        for (i, id) in ids.iter().enumerate() {
            let line = i as u64 + 1;
            let id = NameRef::of(&format!("apr-{id}"));
            if !approvals
                .decide(&id, line, at(line))
                .expect("temporary file")
            {
                return Some(line);
            }
        }
        let late = approvals.first_duplicate().expect("temporary file")?;
        assert_eq!(late.at, at(late.line));
        assert_eq!(
            late.approval_id.to_string(),
            format!("apr-{}", ids[late.line as usize - 1])
        );
        Some(late.line)
    }

    fn paired(steps: &[(bool, u8)], limit: usize, names: usize) -> Paired {
        let mut calls = Calls::new(limit);
        for (intent, id) in steps {
            let call = NameRef::of(&format!("call-{id}"));
            if *intent {
                calls.intent(&call).expect("temporary file");
            } else {
                calls.outcome(&call).expect("temporary file");
            }
        }
        calls.pair(names).expect("temporary file")
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn memory_and_spill_agree_on_the_first_repeat(
            ids in prop::collection::vec(0u8..40, 0..60), limit in 0usize..30,
        ) {
            prop_assert_eq!(first_repeat(&ids, limit), first_repeat(&ids, usize::MAX));
        }

        #[test]
        fn memory_and_spill_agree_on_pairs(
            steps in prop::collection::vec((any::<bool>(), 0u8..6), 0..60), limit in 0usize..10, names in 0usize..5,
        ) {
            prop_assert_eq!(paired(&steps, limit, names), paired(&steps, usize::MAX, names));
        }
    }

    #[test]
    fn a_call_stays_open_until_its_own_outcome() {
        let paired = paired(
            &[(true, 1), (true, 2), (false, 2), (false, 3), (true, 4)],
            9,
            9,
        );
        assert_eq!(paired.unmatched_intents, 2);
        assert_eq!(
            paired.first_unmatched,
            ["call-1", "call-4"].map(Shortened::of)
        );
        assert_eq!(paired.outcomes_without_intent, 1);
    }
}
