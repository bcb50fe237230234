//! From a frame of a client to what may become of it.

use std::ops::Range;
use std::vec;

use super::{Gate, Mode};
use crate::chain::ending::{NotExecuted, Standing};
use crate::policy::Request;
use crate::policy::engine::{Allowed, Decision, Verdict};
use crate::rpc::message::{Kind, Member, Message, RpcId};
use crate::rpc::scan::Scan;
use crate::wire::digest::{Digest, PolicySet};
use crate::wire::outcome::{DecisionAxes, Policy, Shadow, Tried};
use crate::wire::spelled::{LONG_NAME, NOT_STRICT, WITHOUT_ID, WITHOUT_NAME};

/// Passes a frame of a client by the POLICY station, or around it where there
/// is none.
pub(crate) fn policy(gate: Option<&Gate>, scan: &Scan) -> Judged {
    let Some(gate) = gate else {
        return Judged::Permitted(Permitted(Basis::Unjudged));
    };
    Received::of(scan).policy(gate)
}

/// What a frame holds that has to be judged, in its order.
struct Received<'a>(Vec<Part<'a>>);

struct Part<'a> {
    /// Which message of the frame.
    element: usize,
    asks: Asks<'a>,
}

enum Asks<'a> {
    /// A Call of this tool.
    Tool(&'a str),
    /// What no policy can allow.
    Malformed(Malformed),
}

/// Why a message is refused whatever the policy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Malformed {
    Unreadable,
    NoId,
    NoName,
    LongName,
}

/// What the POLICY station says of a frame.
pub(crate) enum Judged {
    /// All of it may go on.
    Permitted(Permitted),
    /// None of it may.
    Refused(Refused),
}

/// A frame of which every Call may go on.
///
/// CAPABILITY and SANDBOX have no part in a Call that runs elsewhere: such a
/// one is [forwarded](Self::forward), and a Call that is to run here will go
/// through them instead.
pub(crate) struct Permitted(Basis);

enum Basis {
    Unjudged,
    /// Of the set with this hash: a proof for each Call, and the rule that
    /// gave it.
    Allowed(Digest<PolicySet>, Vec<(Allowed, Option<String>)>),
    /// A policy on trial stops nothing.
    Trial(Vec<Shadow>),
}

/// What a frame of a client has to have to go on to the tool. Only
/// [`Permitted::forward`] makes one.
#[derive(Debug)]
pub(crate) struct Pass(());

impl Permitted {
    /// Lets the frame go on, and tells on what grounds its Calls do.
    pub(crate) fn forward(self) -> (Pass, Grounds) {
        let grounds = match self.0 {
            Basis::Unjudged => Grounds::Unjudged,
            Basis::Allowed(policy_set_hash, calls) => {
                let rule = |(_proof, rule): (Allowed, Option<String>)| rule;
                let rules: Vec<_> = calls.into_iter().map(rule).collect();
                Grounds::Allowed(policy_set_hash, rules.into_iter())
            }
            Basis::Trial(shadows) => Grounds::Trial(shadows.into_iter()),
        };
        (Pass(()), grounds)
    }
}

/// On what grounds the Calls of a frame go on, in their order.
pub(crate) enum Grounds {
    /// There is no policy, or nothing to judge.
    Unjudged,
    /// They are allowed by the set with this hash, each by a rule or none.
    Allowed(Digest<PolicySet>, vec::IntoIter<Option<String>>),
    /// The policy is on trial.
    Trial(vec::IntoIter<Shadow>),
}

impl Grounds {
    /// Whether the next ground is that of this message: whether it is recorded
    /// as a Call.
    pub(crate) fn has(&self, message: &Message) -> bool {
        match self {
            Self::Unjudged => message.is_tools_call(),
            Self::Allowed(..) | Self::Trial(_) => is_judged(message),
        }
    }

    /// Whether the next ground is that of the frame as a whole: whether it is
    /// recorded as one that could not be read.
    pub(crate) fn has_whole(&self, scan: &Scan) -> bool {
        match (self, scan) {
            (_, Scan::Unreadable(_)) => true,
            (Self::Allowed(..) | Self::Trial(_), Scan::Batch(messages)) => messages.is_empty(),
            _ => false,
        }
    }

    /// What the record says of the next Call, which is of the tool with this
    /// name.
    pub(crate) fn next_standing(&mut self, call_id: &str, tool: &str) -> Standing {
        let judged = match self {
            Self::Unjudged => Some(Standing::passed_through(call_id, tool)),
            Self::Allowed(hash, rules) => rules
                .next()
                .map(|rule| Standing::allowed(call_id, tool, *hash, axes(rule))),
            Self::Trial(shadows) => shadows.next().map(|shadow| Standing {
                shadow: Some(shadow),
                ..Standing::passed_through(call_id, tool)
            }),
        };
        judged.unwrap_or_else(Standing::not_evaluated)
    }
}

/// A frame of which nothing may go on.
pub(crate) struct Refused {
    policy_set_hash: Digest<PolicySet>,
    parts: Vec<RefusedPart>,
}

impl Refused {
    /// What was judged of it, in the order of the frame.
    pub(crate) fn parts(&self) -> &[RefusedPart] {
        &self.parts
    }

    /// What the record says of one of them.
    pub(crate) fn standing(&self, part: &RefusedPart) -> Standing {
        let (hash, axes) = (self.policy_set_hash, axes(part.rule.clone()));
        match part.policy {
            Policy::Allowed => Standing::held_back(hash, axes),
            ref policy => Standing::refused(policy.clone(), hash, axes),
        }
    }

    /// Whether any of it could not be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.parts.iter().any(RefusedPart::is_unreadable)
    }
}

/// A message that does not go on, and what was said of it.
pub(crate) struct RefusedPart {
    /// Which message of the frame.
    pub(crate) element: usize,
    policy: Policy,
    /// The rule that decided.
    pub(crate) rule: Option<String>,
    malformed: Option<Malformed>,
}

impl RefusedPart {
    /// Why it never reaches the tool.
    pub(crate) fn not_executed(&self) -> NotExecuted {
        match self.policy {
            Policy::Allowed => NotExecuted::SiblingRefused,
            _ => NotExecuted::Refused,
        }
    }

    /// What the client is told.
    pub(crate) fn code(&self) -> Code {
        match self.policy {
            _ if self.malformed.is_some() => Code::HostDenied,
            Policy::Allowed => Code::HostDenied,
            Policy::Denied { .. } => Code::PolicyDenied,
            Policy::RateLimited { .. } => Code::RateLimited,
            Policy::PendingApproval { .. } => Code::PendingApproval,
        }
    }

    /// Why, in words.
    pub(crate) fn reason(&self) -> String {
        match &self.policy {
            Policy::Allowed => NotExecuted::SiblingRefused.reason().to_owned(),
            Policy::Denied { reason } | Policy::RateLimited { reason } => reason.clone(),
            Policy::PendingApproval { approval_id } => format!("pending approval: {approval_id}"),
        }
    }

    /// Whether it could not be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.malformed == Some(Malformed::Unreadable)
    }
}

/// What a client is told of a Call that does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// A rule or the default denies it.
    PolicyDenied,
    /// It is one too many.
    RateLimited,
    /// A human has to decide first.
    PendingApproval,
    /// It stands in the way itself, by its form or its company.
    HostDenied,
}

impl Code {
    /// As a refusal spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PolicyDenied => "POLICY_DENIED",
            Self::RateLimited => "RATE_LIMITED",
            Self::PendingApproval => "PENDING_APPROVAL",
            Self::HostDenied => "HOST_DENIED",
        }
    }
}

/// Where in the frame the id stands that an answer can carry, if there is one.
pub(crate) fn usable_id(message: &Message) -> Option<Range<u64>> {
    let span = message.id_span.clone()?;
    let is_null = matches!(message.id, RpcId::Absent | RpcId::Null);
    (!is_null && span.end - span.start <= MAX_ID_BYTES).then_some(span)
}

impl<'a> Received<'a> {
    fn of(scan: &'a Scan) -> Self {
        let parts = match scan {
            Scan::Blank => Vec::new(),
            Scan::Message(message) => parts(std::slice::from_ref(&**message)),
            Scan::Batch(messages) if !messages.is_empty() => parts(messages),
            Scan::Batch(_) | Scan::Unreadable(_) => vec![Part {
                element: 0,
                asks: Asks::Malformed(Malformed::Unreadable),
            }],
        };
        Self(parts)
    }

    fn policy(self, gate: &Gate) -> Judged {
        if self.0.is_empty() {
            return Judged::Permitted(Permitted(Basis::Unjudged));
        }
        let requests: Vec<_> = self.0.iter().filter_map(Part::request).collect();
        let is_malformed = requests.len() < self.0.len();
        let judgement = gate.judge(&requests, is_malformed);
        let hash = judgement.policy_set_hash;
        let is_allowed = !is_malformed && judgement.is_allowed();
        let mut verdicts = judgement.verdicts.into_iter();
        if gate.bounds.mode == Mode::Shadow {
            let shadow = |part| shadow(&part, &mut verdicts, hash);
            let shadows = self.0.into_iter().map(shadow).collect();
            return Judged::Permitted(Permitted(Basis::Trial(shadows)));
        }
        if !is_allowed {
            let refused = |part| refused(&part, &mut verdicts);
            return Judged::Refused(Refused {
                policy_set_hash: hash,
                parts: self.0.into_iter().map(refused).collect(),
            });
        }
        let proof = |verdict: Verdict| match verdict.decision {
            Decision::Allowed(proof) => Some((proof, verdict.matched_rule)),
            _ => None,
        };
        Judged::Permitted(Permitted(Basis::Allowed(
            hash,
            verdicts.filter_map(proof).collect(),
        )))
    }
}

fn parts(messages: &[Message]) -> Vec<Part<'_>> {
    messages
        .iter()
        .enumerate()
        .filter(|(_, message)| is_judged(message))
        .map(|(element, message)| Part {
            element,
            asks: asks(message),
        })
        .collect()
}

/// Whether a message is a Call, or is none that JSON-RPC knows.
fn is_judged(message: &Message) -> bool {
    message.is_tools_call() || message.kind() == Kind::Invalid
}

fn asks(message: &Message) -> Asks<'_> {
    if !message.is_tools_call() {
        return Asks::Malformed(Malformed::Unreadable);
    }
    if usable_id(message).is_none() {
        return Asks::Malformed(Malformed::NoId);
    }
    match &message.params.name {
        Member::Text(name) => match name.as_whole() {
            Some(name) => Asks::Tool(name),
            // What is not known whole cannot be judged.
            None => Asks::Malformed(Malformed::LongName),
        },
        Member::Absent | Member::NotAString => Asks::Malformed(Malformed::NoName),
    }
}

impl<'a> Part<'a> {
    fn request(&self) -> Option<Request<'a>> {
        match self.asks {
            Asks::Tool(tool) => Some(Request::tool(tool)),
            Asks::Malformed(_) => None,
        }
    }
}

impl Malformed {
    fn reason(self) -> &'static str {
        match self {
            Self::Unreadable => NOT_STRICT,
            Self::NoId => WITHOUT_ID,
            Self::NoName => WITHOUT_NAME,
            Self::LongName => LONG_NAME,
        }
    }
}

/// What was decided of a part; `verdicts` are those of the parts that name a
/// tool.
fn decided(
    part: &Part<'_>,
    verdicts: &mut vec::IntoIter<Verdict>,
) -> (Policy, Option<String>, Option<Malformed>) {
    let denied = |malformed: Malformed| {
        let reason = malformed.reason().to_owned();
        (Policy::Denied { reason }, None, Some(malformed))
    };
    let verdict = match part.asks {
        Asks::Malformed(malformed) => return denied(malformed),
        Asks::Tool(_) => verdicts.next(),
    };
    // There is one for each tool, or nothing is known of it.
    let Some(verdict) = verdict else {
        return denied(Malformed::Unreadable);
    };
    let policy = match verdict.decision {
        Decision::Allowed(_) => Policy::Allowed,
        Decision::Denied { reason } => Policy::Denied { reason },
        Decision::RateLimited { reason } => Policy::RateLimited { reason },
        Decision::PendingApproval { approval_id } => Policy::PendingApproval { approval_id },
    };
    (policy, verdict.matched_rule, None)
}

fn refused(part: &Part<'_>, verdicts: &mut vec::IntoIter<Verdict>) -> RefusedPart {
    let (policy, rule, malformed) = decided(part, verdicts);
    RefusedPart {
        element: part.element,
        policy,
        rule,
        malformed,
    }
}

fn shadow(
    part: &Part<'_>,
    verdicts: &mut vec::IntoIter<Verdict>,
    policy_set_hash: Digest<PolicySet>,
) -> Shadow {
    let (policy, matched_rule, _) = decided(part, verdicts);
    Shadow {
        status: match policy {
            Policy::Allowed => Tried::Allowed,
            Policy::Denied { .. } => Tried::Denied,
            Policy::RateLimited { .. } => Tried::RateLimited,
            // Nobody could answer it, so its id is not told.
            Policy::PendingApproval { .. } => Tried::PendingApproval,
        },
        matched_rule,
        policy_set_hash,
    }
}

fn axes(matched_rule: Option<String>) -> DecisionAxes {
    DecisionAxes {
        matched_rule,
        ..DecisionAxes::default()
    }
}

/// Bytes of the longest id that is echoed. One that is longer counts as none.
const MAX_ID_BYTES: u64 = 64 << 10;
