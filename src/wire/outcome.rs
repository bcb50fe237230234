//! The Agent Action Record: what an `outcome` Line says of one Call
//! (SPEC §5.3).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::digest::{Digest, PolicySet, Request, Response, Text, ToolDefinition};
use super::facts::EgressOverlapping;
use super::grant::Grant;

/// The members of an `outcome` Line besides those of every Line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The Call's, as on its intent.
    pub call_id: String,
    /// The tool, cut at [`super::line::MAX_TEXT_BYTES`].
    pub tool_id: String,
    /// As on the intent.
    pub request_digest: Digest<Request>,
    /// The Policy Set that governed the Call.
    pub policy_set_hash: Digest<PolicySet>,
    /// What the POLICY station said.
    pub policy: Policy,
    /// What the CAPABILITY station said.
    pub capability: Capability,
    /// What came of it.
    pub execution: Execution,
    /// The Grant it ran under, when one was minted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<String>,
    /// Absent when the Call produced no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_digest: Option<Digest<Response>>,
    /// Milliseconds; absent when not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// Bytes; absent when not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// What the verdict turned on; always present, possibly empty.
    pub decision_axes: DecisionAxes,
    /// What the MCP answer was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The tool's definition as last shown to the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_digest: Option<Digest<ToolDefinition>>,
    /// The Call that asked for the input which this retry brings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<String>,
    /// What a policy on trial would have decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<Shadow>,
    /// Network events while the Call was open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_overlapping: Option<EgressOverlapping>,
    /// Fields that were cut, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cut: BTreeMap<String, Cut>,
    /// Digest of an error message that is not recorded itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_digest: Option<Digest<Text>>,
}

/// Verdict of the POLICY station.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Policy {
    /// The Call may go on.
    Allowed,
    /// A rule or the default refused it.
    Denied {
        /// Why.
        reason: String,
    },
    /// Too many Calls in a window of time.
    RateLimited {
        /// Which limit.
        reason: String,
    },
    /// A human must decide first.
    PendingApproval {
        /// What a `decision` Line will name.
        approval_id: String,
    },
}

/// Verdict of the CAPABILITY station.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Capability {
    /// The Call ran, or would have run, under this Grant.
    Granted {
        /// The Grant.
        grant: Grant,
    },
    /// No Grant was minted.
    Denied {
        /// Why.
        reason: String,
        /// Which capability was missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        denied_capability: Option<String>,
    },
}

/// How the Call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Execution {
    /// It was carried out and answered, be it with an error of the tool's.
    Success,
    /// It died.
    Trap {
        /// How.
        message: String,
    },
    /// It went over a limit.
    ResourceExceeded {
        /// `wall_clock`, `fuel`, `memory` or `output`.
        kind: String,
    },
    /// The host did not let it happen, or saw no answer.
    HostDenied {
        /// Why.
        reason: String,
    },
}

/// The inputs that a verdict is a function of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionAxes {
    /// The capability asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// The role that the caller asserted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The scope of rate limits that the caller asserted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The rule that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_rule: Option<String>,
    /// The approval that a resumed Call was allowed under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_ref: Option<String>,
    /// The Grant's single root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<FsAxis>,
    /// The Grant's single host and port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net: Option<NetAxis>,
}

/// A root, in two spellings that may differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsAxis {
    /// As it was written.
    pub path_raw: String,
    /// As it was resolved.
    pub path_canonical: String,
}

/// A host and port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetAxis {
    /// Host name.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// What an MCP answer was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Its kind.
    pub kind: AnswerKind,
    /// The code of a protocol error, as decimal text since codes are negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// SHA-256 over the id of the task that was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_digest: Option<Digest<Text>>,
    /// Present and true when several open Calls had the answer's id, so that
    /// it cannot be told which one it answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ambiguous: bool,
    /// Present and true when the answer could not be read strictly: of it,
    /// only the id and whether it is a result or an error are known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreadable: bool,
}

impl Answer {
    /// An answer of this kind with nothing more to say of it.
    pub fn of(kind: AnswerKind) -> Self {
        Self {
            kind,
            code: None,
            task_digest: None,
            ambiguous: false,
            unreadable: false,
        }
    }
}

/// The kinds of MCP answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// A complete result.
    Result,
    /// A result that says `isError`.
    ToolError,
    /// A JSON-RPC error.
    ProtocolError,
    /// A result that asks the client for input.
    InputRequired,
    /// A task that will go on.
    TaskCreated,
    /// None, and the client had cancelled the request.
    Cancelled,
    /// None.
    None,
}

/// What a policy on trial would have decided. The Call went on whatever it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shadow {
    /// The decision.
    pub status: Tried,
    /// The rule that would have decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_rule: Option<String>,
    /// The Policy Set on trial.
    pub policy_set_hash: Digest<PolicySet>,
}

/// The decisions of a policy on trial. No approval is asked for, so none is
/// named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tried {
    /// The Call would have gone on, or be stopped by another of its batch only.
    Allowed,
    /// A rule, the default or its form would have refused it.
    Denied,
    /// It would have been one too many.
    RateLimited,
    /// A human would have had to decide first.
    PendingApproval,
}

/// What was cut off a field that was too long to be recorded whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// How many bytes the whole field has.
    pub bytes: u64,
    /// SHA-256 over all of them.
    pub sha256: Digest<Text>,
}
