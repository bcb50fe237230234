//! Which rule decides: G5 (SPEC §6.3).
//!
//! Rules that constrain the same axes to the same values match the same
//! requests, so only the best `deny` and the best other of them can ever
//! decide. An index holds those two by the values, and a request is looked up
//! under each combination of its own axes with "any": at most eight.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::Request;
use super::set::{Action, Rule, Set};

/// The best rules of each combination of axes.
#[derive(Debug, Default)]
pub(crate) struct Index {
    tools: HashMap<String, Value>,
    capabilities: HashMap<String, Value>,
    roles: HashMap<String, Value>,
    best: HashMap<[Value; 3], Best>,
}

/// The value of an axis; [`ANY`] is a rule's that does not constrain it.
type Value = u32;

const ANY: Value = 0;

/// Places in the set.
#[derive(Clone, Copy, Debug, Default)]
struct Best {
    deny: Option<usize>,
    other: Option<usize>,
}

impl Set {
    /// The rule that decides `request`, if one matches it.
    pub(crate) fn select(&self, request: &Request<'_>) -> Option<&Rule> {
        let Best { deny, other } = self.index.best(self.rules(), request);
        self.rules().get(deny.or(other)?)
    }
}

impl Index {
    pub(super) fn of(rules: &[Rule]) -> Self {
        let mut index = Self::default();
        for (place, rule) in rules.iter().enumerate() {
            let key = [
                intern(&mut index.tools, rule.tool.as_deref()),
                intern(&mut index.capabilities, rule.capability.as_deref()),
                intern(&mut index.roles, rule.role.as_deref()),
            ];
            let best = index.best.entry(key).or_default();
            let best = match rule.action {
                Action::Deny => &mut best.deny,
                _ => &mut best.other,
            };
            *best = better(rules, *best, Some(place));
        }
        index
    }

    fn best(&self, rules: &[Rule], request: &Request<'_>) -> Best {
        let value = |values: &HashMap<String, Value>, asserted: Option<&str>| {
            asserted.and_then(|text| values.get(text).copied())
        };
        let axes = [
            value(&self.tools, Some(request.tool)),
            value(&self.capabilities, request.capability),
            value(&self.roles, request.role),
        ];
        let mut best = Best::default();
        for combination in 0..8 {
            let mut key = [ANY; 3];
            let known = axes.iter().enumerate().all(|(axis, value)| {
                let constrained = combination >> axis & 1 == 1;
                key[axis] = if constrained {
                    value.unwrap_or(ANY)
                } else {
                    ANY
                };
                !constrained || value.is_some()
            });
            let found = known.then(|| self.best.get(&key)).flatten();
            if let Some(found) = found {
                best.deny = better(rules, best.deny, found.deny);
                best.other = better(rules, best.other, found.other);
            }
        }
        best
    }
}

/// The one of the two that goes first: more specific, then of higher priority,
/// then declared earlier.
fn better(rules: &[Rule], one: Option<usize>, other: Option<usize>) -> Option<usize> {
    let rank = |place: &usize| {
        let rule = rules.get(*place)?;
        Some((rule.specificity(), rule.priority, Reverse(*place)))
    };
    [one, other].into_iter().flatten().max_by_key(rank)
}

fn intern(values: &mut HashMap<String, Value>, constrained: Option<&str>) -> Value {
    let Some(text) = constrained else {
        return ANY;
    };
    let next = Value::try_from(values.len() + 1).unwrap_or(Value::MAX);
    *values.entry(text.to_owned()).or_insert(next)
}
