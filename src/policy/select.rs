//! Which rule decides: G5 (SPEC §6.4).
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

    /// The best `deny` that matches whatever `rule` matches.
    pub(crate) fn deny_over(&self, rule: &Rule) -> Option<&Rule> {
        let rules = self.rules();
        let axes = [&rule.tool, &rule.capability, &rule.role].map(|axis| axis.as_deref());
        let best = self.index.best_of(rules, self.index.values(axes));
        rules.get(best.deny?)
    }

    /// The rule that decides whatever `rule` could decide, of those that
    /// constrain the same axes to the same values and are a `deny` or none
    /// like it: `rule` itself, or one that goes before it.
    pub(crate) fn best_alike(&self, rule: &Rule) -> Option<&Rule> {
        let axes = [&rule.tool, &rule.capability, &rule.role].map(|axis| axis.as_deref());
        let key = self.index.values(axes).map(|value| value.unwrap_or(ANY));
        let best = self.index.best.get(&key)?;
        let place = match rule.action {
            Action::Deny => best.deny,
            _ => best.other,
        };
        self.rules().get(place?)
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
        let asserted = [Some(request.tool), request.capability, request.role];
        self.best_of(rules, self.values(asserted))
    }

    /// What the rules call these axes; `None` where no rule asks for one.
    fn values(&self, axes: [Option<&str>; 3]) -> [Option<Value>; 3] {
        let value = |values: &HashMap<String, Value>, text: Option<&str>| {
            text.and_then(|text| values.get(text).copied())
        };
        let [tool, capability, role] = axes;
        [
            value(&self.tools, tool),
            value(&self.capabilities, capability),
            value(&self.roles, role),
        ]
    }

    fn best_of(&self, rules: &[Rule], axes: [Option<Value>; 3]) -> Best {
        let mut best = Best::default();
        for combination in 0..COMBINATIONS {
            let Some(key) = key(axes, combination) else {
                continue;
            };
            if let Some(found) = self.best.get(&key) {
                best.deny = better(rules, best.deny, found.deny);
                best.other = better(rules, best.other, found.other);
            }
        }
        best
    }
}

/// The values of the axes whose bits are set in `combination`, and "any" for
/// the others; `None` when a rule that asks for these matches nothing.
fn key(axes: [Option<Value>; 3], combination: u8) -> Option<[Value; 3]> {
    let mut key = [ANY; 3];
    for (bit, (place, value)) in key.iter_mut().zip(axes).enumerate() {
        if combination >> bit & 1 == 1 {
            *place = value?;
        }
    }
    Some(key)
}

impl Rule {
    /// Whether it says anything of `request`: each axis that it constrains is
    /// asserted, and is the same to the byte.
    pub(crate) fn matches(&self, request: &Request<'_>) -> bool {
        let holds = |wanted: &Option<String>, asserted: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == asserted
        };
        holds(&self.tool, Some(request.tool))
            && holds(&self.capability, request.capability)
            && holds(&self.role, request.role)
    }
}

fn rank(rule: &Rule, place: usize) -> (u8, i32, Reverse<usize>) {
    (rule.specificity(), rule.priority, Reverse(place))
}

/// The one of the two that goes first: more specific, then of higher priority,
/// then declared earlier.
fn better(rules: &[Rule], one: Option<usize>, other: Option<usize>) -> Option<usize> {
    let rank = |place: &usize| Some(rank(rules.get(*place)?, *place));
    [one, other].into_iter().flatten().max_by_key(rank)
}

fn intern(values: &mut HashMap<String, Value>, constrained: Option<&str>) -> Value {
    let Some(text) = constrained else {
        return ANY;
    };
    if let Some(known) = values.get(text) {
        return *known;
    }
    let next = Value::try_from(values.len() + 1).unwrap_or(Value::MAX);
    values.insert(text.to_owned(), next);
    next
}

/// Why a Call is refused that no rule matches.
pub(crate) const DEFAULT_DENY: &str = "no matching rule (default deny)";

/// Of three axes, each asked for or not: how often one request is looked up.
const COMBINATIONS: u8 = 8;

#[cfg(test)]
mod tests;
