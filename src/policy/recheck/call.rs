//! What a recorded Call was, and what another set would be asked about it.

use super::line::Outcome;
use super::{By, Now, Reason, Status};
use crate::policy::Request;
use crate::policy::judge::Ruling;
use crate::policy::set::{Action, Default, Set};
use crate::wire::digest::{Digest, Text};
use crate::wire::hex::Hex;
use crate::wire::outcome::{Capability, Cut, Execution, Policy};
use crate::wire::spelled::{
    LONG_NAME, NOT_EVALUATED, NOT_STRICT, RELAYED_UNREAD, RELAYED_WITHOUT_ID, UNKNOWN_TOOL,
    WITHOUT_ID, WITHOUT_NAME, stand_in_hash,
};

/// The axes of a Call, for a set that is asked later.
#[derive(Clone, Debug, std::default::Default)]
pub(super) struct Asked {
    pub(super) tool: String,
    pub(super) capability: Option<String>,
    pub(super) role: Option<String>,
    pub(super) session: Option<String>,
}

impl Asked {
    /// Of an outcome.
    pub(super) fn of(outcome: &Outcome, set: &Set) -> Self {
        let axes = &outcome.decision_axes;
        Self {
            tool: tool(&outcome.tool_id, outcome.cut.get(TOOL_ID), set),
            capability: axes.capability.clone(),
            role: axes.role.clone(),
            session: axes.session.clone(),
        }
    }

    pub(super) fn request(&self) -> Request<'_> {
        Request {
            tool: &self.tool,
            capability: self.capability.as_deref(),
            role: self.role.as_deref(),
            session: self.session.as_deref(),
        }
    }

    /// Whether it asserts more than its tool.
    pub(super) fn has_axes(&self) -> bool {
        self.capability.is_some() || self.role.is_some() || self.session.is_some()
    }

    /// Bytes that it holds.
    pub(super) fn bytes(&self) -> usize {
        let axes = [&self.capability, &self.role, &self.session];
        let axes = axes.into_iter().flatten().map(String::len);
        self.tool.len() + axes.sum::<usize>()
    }
}

/// The whole name of a tool, as far as it matters to `set`: of a name that was
/// cut the digest is known, so the rule that means it, if one does, is found by
/// that. Without such a rule it is a name that no rule means, and still
/// different from every other.
pub(super) fn tool(recorded: &str, cut: Option<&Cut>, set: &Set) -> String {
    let Some(Cut { bytes, sha256 }) = cut else {
        return recorded.to_owned();
    };
    let mut meant = set.rules().iter().filter_map(|rule| rule.tool.as_deref());
    let whole = meant
        .find(|name| name.len() as u64 == *bytes && Digest::<Text>::of(name.as_bytes()) == *sha256);
    match whole {
        Some(name) => name.to_owned(),
        None => format!("{recorded}… sha256 {}", Hex(sha256.as_bytes())),
    }
}

/// How a Call came to the verdict that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// A set judged it, or was not there to.
    Judged,
    /// Nobody did: what is recorded is what a Call begins with.
    NotEvaluated,
    /// It has no form that a set judges, which every gate refuses; so it was.
    Refused,
    /// It has none, and was relayed without a set.
    Relayed,
}

impl Standing {
    /// Of an outcome.
    pub(super) fn of(outcome: &Outcome) -> Self {
        let has_rule = outcome.decision_axes.matched_rule.is_some();
        match &outcome.policy {
            Policy::Denied { reason } if reason == NOT_EVALUATED => {
                let is_as_begun = matches!(
                    &outcome.capability,
                    Capability::Denied { reason, .. } if reason == NOT_EVALUATED
                );
                if is_as_begun || !has_rule {
                    Self::NotEvaluated
                } else {
                    Self::Judged
                }
            }
            Policy::Denied { reason } if !has_rule && REFUSALS.contains(&reason.as_str()) => {
                Self::Refused
            }
            Policy::Allowed if outcome.policy_set_hash == stand_in_hash() => {
                let is_relayed = matches!(
                    &outcome.execution,
                    Execution::HostDenied { reason } if RELAYED.contains(&reason.as_str())
                );
                let cut = outcome.cut.get(TOOL_ID);
                let is_too_long = cut.is_some_and(|cut| cut.bytes > MAX_NAME_BYTES);
                if is_relayed || is_too_long || outcome.tool_id == UNKNOWN_TOOL {
                    Self::Relayed
                } else {
                    Self::Judged
                }
            }
            _ => Self::Judged,
        }
    }

    /// Whether a gate refuses its frame under every set.
    pub(super) fn is_refused(self) -> bool {
        matches!(self, Self::Refused | Self::Relayed)
    }
}

impl<'s> From<Ruling<'s>> for Now<'s> {
    fn from(ruling: Ruling<'s>) -> Self {
        let (status, by) = match ruling {
            Ruling::Default(Default::Allow) => (Status::Allowed, By::Default),
            Ruling::Default(Default::Deny) => (Status::Denied, By::Default),
            Ruling::Allowed(rule) => (Status::Allowed, By::Rule(rule)),
            Ruling::Denied(rule) => (Status::Denied, By::Rule(rule)),
            Ruling::RateLimited(rule, _) => (Status::RateLimited, By::Rule(rule)),
            Ruling::Parked(rule) => (Status::PendingApproval, By::Rule(rule)),
        };
        Self { status, by }
    }
}

/// What `set` says now of a Call that it is asked about.
pub(super) fn ask<'s>(set: &'s Set, asked: &Asked) -> Result<Now<'s>, Reason> {
    let ruling = match set.select(&asked.request()) {
        None => Ruling::Default(set.default()),
        Some(rule) => match rule.action {
            Action::Allow => Ruling::Allowed(rule),
            Action::Deny => Ruling::Denied(rule),
            Action::PendingApproval => Ruling::Parked(rule),
            Action::RateLimit(_) => return Err(Reason::RateLimitUnevaluable),
        },
    };
    Ok(ruling.into())
}

/// The member of `cut` that tells of a tool's name.
pub(super) const TOOL_ID: &str = "tool_id";

/// Denials that no set decides.
const REFUSALS: [&str; 4] = [NOT_STRICT, WITHOUT_ID, WITHOUT_NAME, LONG_NAME];

/// What is said of Calls that were relayed without being understood.
const RELAYED: [&str; 2] = [RELAYED_UNREAD, RELAYED_WITHOUT_ID];

/// The longest name that a set is asked about.
const MAX_NAME_BYTES: u64 = 64 << 10;
