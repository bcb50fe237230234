//! What a policy adds to a message: `aegis wrap` with `--policy` and without
//! take turns, round trip by round trip.
//!
//! One sample of the difference is of four round trips: without, with, with,
//! without. What drifts, and what going second is worth, falls on both alike.

use std::io;
use std::time::Duration;

use super::session::{Ask, Between, Place, Session};
use super::table::{Row, differences};
use super::{Effort, end_all, start_all};

/// One table.
pub(crate) struct Bench {
    pub(crate) id: &'static str,
    unit: &'static str,
    pairs: &'static [Pair],
}

/// Two stacks that are asked the same.
struct Pair {
    name: &'static str,
    durability: &'static str,
    ask: Ask,
    /// How many of the samples are taken.
    part: usize,
}

pub(crate) const BENCHES: [Bench; 3] = [
    Bench {
        id: "wrap_relay/policy_ping",
        unit: "us a round trip of a ping",
        pairs: &[
            pair("process", "process", Ask::Ping),
            pair("intent", "intent", Ask::Ping),
        ],
    },
    Bench {
        id: "wrap_relay/policy_call",
        unit: "us a round trip of a call that one of 10 000 rules allows",
        pairs: &[
            pair("process", "process", Ask::ToolsCall),
            pair("intent", "intent", Ask::ToolsCall),
            Pair {
                part: 10,
                ..pair("process, 1 MiB", "process", Ask::LargeCall)
            },
        ],
    },
    Bench {
        id: "wrap_relay/policy_refused",
        unit: "us a round trip of a call that is relayed without a policy, refused with it",
        pairs: &[
            pair("process", "process", Ask::DeniedCall),
            pair("intent", "intent", Ask::DeniedCall),
        ],
    },
];

const fn pair(name: &'static str, durability: &'static str, ask: Ask) -> Pair {
    Pair {
        name,
        durability,
        ask,
        part: 1,
    }
}

impl Bench {
    pub(crate) fn run(&self, place: &Place<'_>, effort: Effort) -> io::Result<String> {
        let mut rows = Vec::new();
        for (number, pair) in self.pairs.iter().enumerate() {
            let audit = format!("{}-{number}", self.id.replace('/', "-"));
            rows.extend(pair.measure(&audit, place, effort)?);
        }
        Ok(differences(self.id, self.unit, &mut rows))
    }
}

impl Pair {
    fn measure(&self, audit: &str, place: &Place<'_>, effort: Effort) -> io::Result<Vec<Row>> {
        let stacks = [
            (
                format!("{}: aegis wrap", self.name),
                Between::Wrap(self.durability),
            ),
            (
                format!("{}: aegis wrap --policy", self.name),
                Between::Judged(self.durability),
            ),
        ];
        let stacks = stacks
            .each_ref()
            .map(|(name, between)| (name.as_str(), *between));
        let mut sessions = start_all(&stacks, audit, place)?;
        let mut difference = Row::new(format!("{}: difference", self.name));
        let warm_up = super::WARM_UP.min(effort.differences);
        for sample in 0..warm_up + (effort.differences / self.part).max(1) {
            let [without, with] = sessions.as_mut_slice() else {
                break;
            };
            if sample < warm_up {
                self.four(&mut without.0, &mut with.0)?;
                continue;
            }
            let times = self.four(&mut without.0, &mut with.0)?;
            difference.difference(&times);
            for (longer, shorter) in times {
                with.1.time(longer);
                without.1.time(shorter);
            }
        }
        let mut rows = end_all(sessions, audit, place)?;
        rows.push(difference);
        Ok(rows)
    }

    /// The times with and without, twice.
    fn four(
        &self,
        without: &mut Session,
        with: &mut Session,
    ) -> io::Result<[(Duration, Duration); 2]> {
        let before = without.round_trip(self.ask)?;
        let one = with.round_trip(self.ask)?;
        let other = with.round_trip(self.ask)?;
        let after = without.round_trip(self.ask)?;
        Ok([(one, before), (other, after)])
    }
}
