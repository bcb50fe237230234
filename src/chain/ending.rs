//! What is known of a Call's verdict, and how a Call ends (SPEC §5.5).

use crate::wire::digest::{Digest, PolicySet, Response, Text, ToolDefinition};
use crate::wire::grant::Grant;
use crate::wire::outcome::{
    Answer, AnswerKind, Capability, DecisionAxes, Execution, Policy, Shadow,
};
use crate::wire::spelled::{NOT_EVALUATED, RELAYED_UNREAD, RELAYED_WITHOUT_ID, stand_in_hash};

/// What the stations said of a Call before it went on.
///
/// A Call starts without: policy and capability `not evaluated`. Once it has
/// one, every way that it can end says so, also that of being dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// What the POLICY station said.
    pub(crate) policy: Policy,
    /// What the CAPABILITY station said; a Grant's id is recorded beside it.
    pub(crate) capability: Capability,
    /// The Policy Set that said it, or [`stand_in_hash`].
    pub(crate) policy_set_hash: Digest<PolicySet>,
    /// What the verdict turned on.
    pub(crate) decision_axes: DecisionAxes,
    /// The tool's definition as last shown to the client.
    pub(crate) tool_digest: Option<Digest<ToolDefinition>>,
    /// The Call that asked for the input which this one brings.
    pub(crate) resumes: Option<String>,
    /// What a policy on trial would have decided.
    pub(crate) shadow: Option<Shadow>,
}

impl Standing {
    /// Of a Call that nobody has judged.
    pub(crate) fn not_evaluated() -> Self {
        let reason = NOT_EVALUATED.to_owned();
        Self::of(Policy::Denied { reason }, not_granted(NOT_EVALUATED))
    }

    /// Of a Call that is relayed without a Policy Set, of the tool with this
    /// whole name: allowed, under a Grant of nothing.
    pub(crate) fn passed_through(call_id: &str, tool: &str) -> Self {
        Self::of(Policy::Allowed, relayed(call_id, tool))
    }

    /// Of a Call that a Policy Set allowed and that is relayed.
    pub(crate) fn allowed(
        call_id: &str,
        tool: &str,
        policy_set_hash: Digest<PolicySet>,
        decision_axes: DecisionAxes,
    ) -> Self {
        Self {
            policy_set_hash,
            decision_axes,
            ..Self::passed_through(call_id, tool)
        }
    }

    /// Of a Call that `policy` keeps from the stations behind it.
    pub(crate) fn refused(
        policy: Policy,
        policy_set_hash: Digest<PolicySet>,
        decision_axes: DecisionAxes,
    ) -> Self {
        let capability = not_granted("policy blocked before capability");
        Self {
            policy_set_hash,
            decision_axes,
            ..Self::of(policy, capability)
        }
    }

    /// Of a Call that is allowed itself, but not relayed because another of
    /// its batch is refused.
    pub(crate) fn held_back(
        policy_set_hash: Digest<PolicySet>,
        decision_axes: DecisionAxes,
    ) -> Self {
        Self {
            policy_set_hash,
            decision_axes,
            ..Self::of(Policy::Allowed, not_granted(NOT_EVALUATED))
        }
    }

    /// Of a Call that no Policy Set has judged.
    fn of(policy: Policy, capability: Capability) -> Self {
        Self {
            policy,
            capability,
            policy_set_hash: stand_in_hash(),
            decision_axes: DecisionAxes::default(),
            tool_digest: None,
            resumes: None,
            shadow: None,
        }
    }
}

impl Standing {
    /// Whether its texts are few and short, at most [`SMALL_BYTES`] of them,
    /// and it has nothing else that could be long.
    pub(super) fn is_small(&self) -> bool {
        let axes = &self.decision_axes;
        let (granted, said) = match &self.capability {
            Capability::Granted { grant } => {
                let bounded = grant.fs.is_none() && grant.net.is_none();
                (bounded, grant.grant_id.len() + grant.tool_id.len())
            }
            Capability::Denied {
                reason,
                denied_capability,
            } => (true, reason.len() + length(denied_capability)),
        };
        let verdict = match &self.policy {
            Policy::Allowed => 0,
            Policy::Denied { reason } | Policy::RateLimited { reason } => reason.len(),
            Policy::PendingApproval { approval_id } => approval_id.len(),
        };
        let turned_on: usize = [
            &axes.capability,
            &axes.role,
            &axes.session,
            &axes.matched_rule,
            &axes.approval_ref,
            &self.resumes,
            self.shadow
                .as_ref()
                .map_or(&None, |tried| &tried.matched_rule),
        ]
        .into_iter()
        .map(length)
        .sum();
        granted
            && axes.fs.is_none()
            && axes.net.is_none()
            && said + verdict + turned_on <= SMALL_BYTES
    }
}

fn length(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

/// How many bytes of text a Standing may have to be small.
pub(super) const SMALL_BYTES: usize = 4 << 10;

fn not_granted(reason: &str) -> Capability {
    Capability::Denied {
        reason: reason.to_owned(),
        denied_capability: None,
    }
}

/// What an interposer records for a Call that it relays: it mints nothing.
fn relayed(call_id: &str, tool: &str) -> Capability {
    Capability::Granted {
        grant: Grant::deny_all(format!("wrap-passthrough-{call_id}"), tool.to_owned()),
    }
}

/// How a Call ended, as whoever carried it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With an answer, be it an error of the tool's.
    Answered(Answered),
    /// Without one, though it was relayed.
    Unanswered(Unanswered),
    /// The kernel killed the child for a forbidden system call.
    Killed,
    /// It never reached the tool.
    NotExecuted(NotExecuted),
}

/// The answer to a Call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    /// What it was.
    pub(crate) answer: Answer,
    /// Over its verbatim bytes.
    pub(crate) response_digest: Digest<Response>,
    /// Milliseconds from request to answer, when measured.
    pub(crate) wall_ms: Option<u64>,
    /// Over the message of a protocol error.
    pub(crate) message_digest: Option<Digest<Text>>,
}

/// Why a relayed Call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The child's output ended first.
    ChildExited,
    /// The client left, and the child took longer than it was given.
    ClientClosed,
    /// The client had cancelled it.
    Cancelled,
    /// It has no id that an answer could carry.
    NoId,
    /// Its frame could not be read, so neither could its id.
    Unreadable,
}

/// Why a Call never reached the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotExecuted {
    /// A station refused it.
    Refused,
    /// A station refused another Call of its batch.
    SiblingRefused,
}

impl Unanswered {
    fn reason(self) -> &'static str {
        match self {
            Self::ChildExited => "child exited before responding",
            Self::ClientClosed => {
                "client closed stdin; child did not answer within the shutdown grace"
            }
            Self::Cancelled => "cancelled by the client; no answer",
            Self::NoId => RELAYED_WITHOUT_ID,
            Self::Unreadable => RELAYED_UNREAD,
        }
    }

    fn answer(self) -> AnswerKind {
        match self {
            Self::Cancelled => AnswerKind::Cancelled,
            _ => AnswerKind::None,
        }
    }
}

impl NotExecuted {
    /// As the record says it.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Refused => NOT_EXECUTED,
            Self::SiblingRefused => "not executed: sibling call in this batch was refused",
        }
    }
}

/// An ending in the members of an outcome.
pub(super) struct Ended {
    pub(super) execution: Execution,
    pub(super) answer: Option<Answer>,
    pub(super) response_digest: Option<Digest<Response>>,
    pub(super) wall_ms: Option<u64>,
    pub(super) message_digest: Option<Digest<Text>>,
}

impl Ended {
    /// Of a Call that was dropped: nobody can say more of it than `execution`.
    pub(super) fn dropped(panicking: bool) -> Self {
        Self::without_answer(if panicking {
            Execution::Trap {
                message: "host panic during tool call".to_owned(),
            }
        } else {
            host_denied("session abandoned")
        })
    }

    fn without_answer(execution: Execution) -> Self {
        Self {
            execution,
            answer: None,
            response_digest: None,
            wall_ms: None,
            message_digest: None,
        }
    }
}

impl From<Ending> for Ended {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Answered(answered) => Self {
                execution: Execution::Success,
                answer: Some(answered.answer),
                response_digest: Some(answered.response_digest),
                wall_ms: answered.wall_ms,
                message_digest: answered.message_digest,
            },
            Ending::Unanswered(why) => Self {
                answer: Some(Answer::of(why.answer())),
                ..Self::without_answer(host_denied(why.reason()))
            },
            Ending::Killed => Self {
                answer: Some(Answer::of(AnswerKind::None)),
                ..Self::without_answer(Execution::Trap {
                    message: "child killed by SIGSYS (seccomp)".to_owned(),
                })
            },
            Ending::NotExecuted(why) => Self::without_answer(host_denied(why.reason())),
        }
    }
}

fn host_denied(reason: &str) -> Execution {
    Execution::HostDenied {
        reason: reason.to_owned(),
    }
}

const NOT_EXECUTED: &str = "not executed";
