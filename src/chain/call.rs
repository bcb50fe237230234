//! One intent, exactly one outcome.
//!
//! A [`Call`] exists from the moment its intent is in the sink. It writes one
//! outcome: by [`finish`](Call::finish), which consumes it, or by being
//! dropped. It is disarmed before the outcome is written, so that one that
//! could not be written is not tried again.

use std::collections::BTreeMap;
use std::thread;

use super::commit::Mark;
use super::ending::{Ended, Ending, SMALL_BYTES, Standing};
use super::writer::{ChainError, MAX_LINE_BYTES, Writer};
use crate::wire::canon::{self, MAX_INTEGER};
use crate::wire::facts::EgressOverlapping;
use crate::wire::line::{Intent, MAX_TEXT_BYTES, cut_text};
use crate::wire::outcome::{Capability, Cut, DecisionAxes, Execution, Outcome, Policy, Shadow};

/// A Call that has its intent on the Chain and no outcome yet.
#[must_use = "a dropped Call is recorded as abandoned"]
pub(crate) struct Call {
    inner: Armed,
}

impl Call {
    pub(super) fn begun(writer: Writer, intent: Intent, mark: Mark) -> Self {
        Self {
            inner: Armed {
                armed: true,
                record: Record {
                    writer,
                    intent,
                    mark,
                    standing: Standing::not_evaluated(),
                    ambiguous: false,
                    egress: None,
                },
            },
        }
    }

    /// Its `call_id`, unique in its Session.
    pub(crate) fn id(&self) -> &str {
        &self.inner.record.intent.call_id
    }

    /// Its tool, as its Lines carry it.
    pub(crate) fn tool_id(&self) -> &str {
        &self.inner.record.intent.tool_id
    }

    /// Where its intent is.
    pub(crate) fn intent_mark(&self) -> Mark {
        self.inner.record.mark
    }

    /// Notes what the stations said of the Call, in place of what was noted
    /// before. Belongs before any byte of the request goes on.
    ///
    /// # Errors
    /// When no outcome could carry it, for its size or for a value without
    /// canonical form. The Call must not go on then; what it noted before
    /// stands.
    pub(crate) fn stand(&mut self, standing: Standing) -> Result<(), ChainError> {
        let record = &mut self.inner.record;
        if standing.is_small() {
            record.standing = standing;
            return Ok(());
        }
        let draft = record.outcome(&standing, Ended::dropped(false));
        let bytes = canon::to_canonical(&draft)?.len();
        if bytes > MAX_STANDING_BYTES {
            return Err(ChainError::TooLong {
                line_type: "outcome",
                bytes: bytes + ENDING_BYTES,
                max: MAX_LINE_BYTES,
            });
        }
        record.standing = standing;
        Ok(())
    }

    /// Notes that another open Call has the same request id, so that it cannot
    /// be told which of them an answer belongs to.
    pub(crate) fn mark_ambiguous(&mut self) {
        self.inner.record.ambiguous = true;
    }

    /// Notes what the child did on the network while the Call was open.
    pub(crate) fn overlapped(&mut self, egress: EgressOverlapping) {
        self.inner.record.egress = Some(egress);
    }

    /// Writes the outcome. An answer may go on once
    /// [`Writer::settle_outcome`] has returned for the mark.
    ///
    /// # Errors
    /// When the outcome was not written. It is not tried again.
    pub(crate) fn finish(mut self, ending: Ending) -> Result<Mark, ChainError> {
        self.inner.armed = false;
        self.inner.record.write(ending.into())
    }
}

/// Writes an outcome when it is dropped armed.
struct Armed {
    armed: bool,
    record: Record,
}

impl Drop for Armed {
    fn drop(&mut self) {
        if self.armed {
            // Nobody is left to tell of a failure but those who listen to the
            // Writer.
            drop(self.record.write(Ended::dropped(thread::panicking())));
        }
    }
}

struct Record {
    writer: Writer,
    intent: Intent,
    mark: Mark,
    standing: Standing,
    ambiguous: bool,
    egress: Option<EgressOverlapping>,
}

impl Record {
    fn write(&self, ended: Ended) -> Result<Mark, ChainError> {
        self.writer.end_call(&self.outcome(&self.standing, ended))
    }

    fn outcome(&self, standing: &Standing, ended: Ended) -> Outcome {
        let mut cut = self.intent.cut.clone();
        let capability = cut_capability(&standing.capability, &mut cut);
        Outcome {
            call_id: self.intent.call_id.clone(),
            tool_id: self.intent.tool_id.clone(),
            request_digest: self.intent.request_digest,
            policy_set_hash: standing.policy_set_hash,
            policy: cut_policy(&standing.policy, &mut cut),
            execution: cut_execution(ended.execution, &mut cut),
            grant_id: match &capability {
                Capability::Granted { grant } => Some(grant.grant_id.clone()),
                Capability::Denied { .. } => None,
            },
            capability,
            response_digest: ended.response_digest,
            wall_ms: ended.wall_ms.map(|ms| ms.min(MAX_INTEGER)),
            peak_memory_bytes: None,
            decision_axes: cut_axes(&standing.decision_axes, &mut cut),
            answer: ended.answer.map(|mut answer| {
                answer.ambiguous |= self.ambiguous;
                answer.code = answer
                    .code
                    .map(|code| cut_text(&code, "answer.code", &mut cut));
                answer
            }),
            tool_digest: standing.tool_digest,
            resumes: standing.resumes.clone(),
            shadow: cut_shadow(&standing.shadow, &mut cut),
            egress_overlapping: self.egress.clone(),
            cut,
            message_digest: ended.message_digest,
        }
    }
}

fn cut_policy(policy: &Policy, cut: &mut BTreeMap<String, Cut>) -> Policy {
    let mut policy = policy.clone();
    if let Policy::Denied { reason } | Policy::RateLimited { reason } = &mut policy {
        *reason = cut_text(reason, "policy.reason", cut);
    }
    policy
}

fn cut_capability(capability: &Capability, cut: &mut BTreeMap<String, Cut>) -> Capability {
    let mut capability = capability.clone();
    match &mut capability {
        Capability::Granted { grant } => {
            grant.tool_id = cut_text(&grant.tool_id, "capability.grant.tool_id", cut);
        }
        Capability::Denied { reason, .. } => {
            *reason = cut_text(reason, "capability.reason", cut);
        }
    }
    capability
}

fn cut_axes(axes: &DecisionAxes, cut: &mut BTreeMap<String, Cut>) -> DecisionAxes {
    let mut axes = axes.clone();
    if let Some(rule) = &mut axes.matched_rule
        && rule.len() > MAX_TEXT_BYTES
    {
        *rule = cut_text(rule, "decision_axes.matched_rule", cut);
    }
    axes
}

fn cut_shadow(shadow: &Option<Shadow>, cut: &mut BTreeMap<String, Cut>) -> Option<Shadow> {
    let mut shadow = shadow.clone();
    if let Some(Shadow {
        matched_rule: Some(rule),
        ..
    }) = &mut shadow
    {
        *rule = cut_text(rule, "shadow.matched_rule", cut);
    }
    shadow
}

fn cut_execution(mut execution: Execution, cut: &mut BTreeMap<String, Cut>) -> Execution {
    match &mut execution {
        Execution::Trap { message } => *message = cut_text(message, "execution.message", cut),
        Execution::HostDenied { reason } => *reason = cut_text(reason, "execution.reason", cut),
        Execution::Success | Execution::ResourceExceeded { .. } => {}
    }
    execution
}

// A byte of text needs six at most, the tool's name stands twice on a Line,
// and all else is short.
const _: () = assert!(6 * (SMALL_BYTES + 2 * MAX_TEXT_BYTES) + ENDING_BYTES < MAX_STANDING_BYTES);

/// What an ending and the members of every Line can add to a Standing: a text
/// of 1 KiB that needs six bytes for each of its own, the longest names of
/// sixteen destinations, four digests, a signature.
const ENDING_BYTES: usize = 12 << 10;

/// How large an outcome may be before its ending is known.
const MAX_STANDING_BYTES: usize = MAX_LINE_BYTES - ENDING_BYTES;

#[cfg(test)]
mod tests;
