//! The Policy Set that is in force, and its verdicts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::Request;
use super::judge::{Ruling, judge};
use super::rate::Windows;
use super::select::DEFAULT_DENY;
use super::set::{Default, Limits, Rule, Set};
use crate::wire::digest::{self, Digest};
use crate::wire::hex::Hex;

/// Judges Calls by the set that is in force when they come.
pub(crate) struct Engine {
    set: ArcSwap<Set>,
    windows: Mutex<Windows>,
    /// Makes approval ids unique among all engines.
    nonce: [u8; 16],
    approvals: AtomicU64,
}

/// What was decided about a Call.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// The decision.
    pub(crate) decision: Decision,
    /// The rule that decided.
    pub(crate) matched_rule: Option<String>,
}

/// Whether a Call may go on.
#[derive(Debug)]
pub(crate) enum Decision {
    /// It may.
    Allowed(Allowed),
    /// A rule or the default refuses it.
    Denied {
        /// Why.
        reason: String,
    },
    /// It is one too many.
    RateLimited {
        /// Why.
        reason: String,
    },
    /// A human has to decide first.
    PendingApproval {
        /// Unique among all approvals.
        approval_id: String,
    },
}

/// Proof that a Policy Set allowed a Call.
#[derive(Debug)]
pub(crate) struct Allowed {
    limits: Limits,
}

impl Allowed {
    /// The ceilings of the rule that allowed it.
    #[allow(dead_code, reason = "no Grant is minted yet")]
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }
}

/// The verdicts of one set on the Calls of one frame, in their order.
#[derive(Debug)]
pub(crate) struct Judgement {
    /// The very set that gave the verdicts.
    pub(crate) policy_set_hash: Digest<digest::PolicySet>,
    /// One for each request.
    pub(crate) verdicts: Vec<Verdict>,
}

impl Judgement {
    /// Whether all Calls may go on.
    pub(crate) fn is_allowed(&self) -> bool {
        self.verdicts
            .iter()
            .all(|verdict| matches!(verdict.decision, Decision::Allowed(_)))
    }
}

impl Engine {
    /// Judges by `set`. `nonce` is random, and different for every engine.
    pub(crate) fn new(set: Set, nonce: [u8; 16]) -> Self {
        Self {
            set: ArcSwap::from_pointee(set),
            windows: Mutex::default(),
            nonce,
            approvals: AtomicU64::new(0),
        }
    }

    /// The set that is in force.
    pub(crate) fn set(&self) -> Arc<Set> {
        self.set.load_full()
    }

    /// Puts `set` in force for the Calls that come from now on. Windows stay
    /// open, by the ids of their rules.
    pub(crate) fn replace(&self, set: Set) {
        let set = Arc::new(set);
        // Locked first, so that of two sets put in force at once the windows
        // follow the later too.
        let mut windows = self.windows();
        self.set.store(Arc::clone(&set));
        windows.adopt(&set);
    }

    /// Judges the Calls of one frame, all by the same set. They go on together
    /// or not at all, so a frame that is refused counts in no window, and
    /// neither does one that is `refused` for another reason. `now` is on a
    /// clock that only goes forward.
    pub(crate) fn judge(
        &self,
        requests: &[Request<'_>],
        refused: bool,
        now: Duration,
    ) -> Judgement {
        let set = self.set.load();
        let rulings = judge(&set, &mut self.windows(), requests, refused, now);
        Judgement {
            policy_set_hash: set.hash(),
            verdicts: rulings
                .into_iter()
                .zip(requests)
                .map(|(ruling, request)| self.verdict(ruling, request))
                .collect(),
        }
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        // Each change of the windows is whole before anything can panic.
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn verdict(&self, ruling: Ruling<'_>, request: &Request<'_>) -> Verdict {
        let (decision, rule) = match ruling {
            Ruling::Default(Default::Allow) => (allowed(Limits::default()), None),
            Ruling::Default(Default::Deny) => {
                let reason = DEFAULT_DENY.to_owned();
                (Decision::Denied { reason }, None)
            }
            Ruling::Allowed(rule) => (allowed(rule.limits), Some(rule)),
            Ruling::Denied(rule) => {
                let reason = rule.denial();
                (Decision::Denied { reason }, Some(rule))
            }
            Ruling::RateLimited(rule, rate) => {
                let reason = rule.rate_denial(rate);
                (Decision::RateLimited { reason }, Some(rule))
            }
            Ruling::Parked(rule) => {
                let approval_id = self.approval_id(rule, request);
                (Decision::PendingApproval { approval_id }, Some(rule))
            }
        };
        Verdict {
            decision,
            matched_rule: rule.map(|rule| rule.id.clone()),
        }
    }

    /// The nonce and the number make it unique; the names are for people.
    fn approval_id(&self, rule: &Rule, request: &Request<'_>) -> String {
        let n = self.approvals.fetch_add(1, Ordering::Relaxed) + 1;
        format!(
            "apr-{}-{}-{}-{n}",
            plain_head(&rule.id),
            plain_head(request.tool),
            Hex(&self.nonce)
        )
    }
}

fn allowed(limits: Limits) -> Decision {
    Decision::Allowed(Allowed { limits })
}

/// The beginning of a name in characters that can be typed, pasted and put in
/// a command line.
fn plain_head(name: &str) -> String {
    name.chars()
        .take(MAX_NAME_CHARS)
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() || "._:/@-".contains(c) => c,
            _ => '_',
        })
        .collect()
}

/// Characters of a name in an approval id.
const MAX_NAME_CHARS: usize = 64;

/// Bytes of the longest approval id.
#[cfg(test)]
const MAX_APPROVAL_ID_BYTES: usize = 4 + 2 * (MAX_NAME_CHARS + 1) + 32 + 1 + 20;

#[cfg(test)]
mod tests;
