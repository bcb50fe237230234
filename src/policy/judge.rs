//! The rulings of one set on the Calls of one frame: what the engine and a
//! recheck have in common.

use std::time::Duration;

use super::Request;
use super::rate::Windows;
use super::set::{Action, Default, Rate, Rule, Set};

/// What becomes of a Call, and by which rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ruling<'s> {
    /// No rule matches it.
    Default(Default),
    /// It may go on; where the rule is a limit, it is counted.
    Allowed(&'s Rule),
    /// It may not.
    Denied(&'s Rule),
    /// It is one too many.
    RateLimited(&'s Rule, Rate),
    /// A human has to decide first.
    Parked(&'s Rule),
}

impl Ruling<'_> {
    /// Whether the Call may go on.
    pub(crate) fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_) | Self::Default(Default::Allow))
    }
}

/// Judges the Calls of one frame in their order. They go on together or not at
/// all, so a frame that is refused counts in no window, and neither does one
/// that is `refused` for another reason. `now` is on a clock that only goes
/// forward.
pub(crate) fn judge<'s>(
    set: &'s Set,
    windows: &mut Windows,
    requests: &[Request<'_>],
    refused: bool,
    now: Duration,
) -> Vec<Ruling<'s>> {
    let mut charges = Vec::new();
    let rulings: Vec<_> = requests
        .iter()
        .map(|request| {
            let Some(rule) = set.select(request) else {
                return Ruling::Default(set.default());
            };
            match rule.action {
                Action::Allow => Ruling::Allowed(rule),
                Action::Deny => Ruling::Denied(rule),
                Action::PendingApproval => Ruling::Parked(rule),
                Action::RateLimit(rate) => match windows.admit(rule, rate, request, now) {
                    Some(charge) => {
                        charges.push(charge);
                        Ruling::Allowed(rule)
                    }
                    None => Ruling::RateLimited(rule, rate),
                },
            }
        })
        .collect();
    if refused || !rulings.iter().all(Ruling::is_allowed) {
        for charge in charges {
            windows.give_back(charge);
        }
    }
    rulings
}
