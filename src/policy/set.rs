//! A validated Policy Set and its hash (SPEC §6).

use serde::Serialize;

use super::select::Index;
use crate::wire::canon;
use crate::wire::digest::{self, Digest};

/// Rules in the order of their declaration, and what holds without one.
#[derive(Debug)]
pub(crate) struct Set {
    default: Default,
    rules: Vec<Rule>,
    hash: Digest<digest::PolicySet>,
    pub(super) index: Index,
}

/// What becomes of a Call that no rule matches.
#[derive(Clone, Copy, Debug, std::default::Default, PartialEq, Eq)]
pub(crate) enum Default {
    /// It may go on.
    #[default]
    Allow,
    /// It may not.
    Deny,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Unique in its set.
    pub(crate) id: String,
    /// What it says of the requests that it matches.
    pub(crate) action: Action,
    /// The tool that it is about; `None` is any.
    pub(crate) tool: Option<String>,
    /// The capability that it is about; `None` is any, also none.
    pub(crate) capability: Option<String>,
    /// The role that it is about; `None` is any, also none.
    pub(crate) role: Option<String>,
    /// Greater wins among equally specific ones.
    pub(crate) priority: i32,
    /// What a refusal says.
    pub(crate) reason: Option<String>,
    /// Ceilings of a Call that it lets go on.
    pub(crate) limits: Limits,
    /// Where it stands in its document.
    pub(crate) at: Position,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Lets the Call go on.
    Allow,
    /// Refuses it.
    Deny,
    /// Lets some go on in a window of time, and refuses the others.
    RateLimit(Rate),
    /// Refuses it until a human has decided.
    PendingApproval,
}

/// So many Calls in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// How many; at least 1.
    pub(crate) max: u32,
    /// Seconds of the window; at least 1.
    pub(crate) per_seconds: u64,
}

/// Ceilings that a rule puts on a Grant. They can only lower it.
#[derive(Clone, Copy, Debug, std::default::Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of memory.
    pub(crate) max_memory_bytes: Option<u64>,
    /// Milliseconds.
    pub(crate) max_wall_ms: Option<u64>,
    /// Bytes of output.
    pub(crate) max_output_bytes: Option<u64>,
}

/// A place in a document.
#[derive(Clone, Copy, Debug, std::default::Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// From 1; 0 when there is none.
    pub(crate) line: u64,
    /// From 1, in characters.
    pub(crate) column: u64,
}

impl Set {
    /// The set of these rules, whose ids are unique.
    pub(super) fn new(default: Default, rules: Vec<Rule>) -> Self {
        let hash = Digest::of(&projection(default, &rules));
        let index = Index::of(&rules);
        Self {
            default,
            rules,
            hash,
            index,
        }
    }

    /// What its verdicts are recorded under.
    pub(crate) fn hash(&self) -> Digest<digest::PolicySet> {
        self.hash
    }

    /// What holds without a rule.
    pub(crate) fn default(&self) -> Default {
        self.default
    }

    /// In the order of their declaration.
    pub(crate) fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

impl Rule {
    /// How many axes it is specific about, 0 to 3.
    pub(crate) fn specificity(&self) -> u8 {
        [&self.tool, &self.capability, &self.role]
            .into_iter()
            .map(|axis| u8::from(axis.is_some()))
            .sum()
    }

    /// Whether it can match only a caller that asserts a capability or a role.
    pub(crate) fn asks_more_than_the_tool(&self) -> bool {
        self.capability.is_some() || self.role.is_some()
    }

    /// Why it refuses.
    pub(crate) fn denial(&self) -> String {
        match &self.reason {
            Some(reason) => reason.clone(),
            None => format!("denied by rule `{}`", self.id),
        }
    }

    /// Why it refuses a Call too many.
    pub(crate) fn rate_denial(&self, rate: Rate) -> String {
        match &self.reason {
            Some(reason) => reason.clone(),
            None => format!(
                "rate limit exceeded for `{}` ({} per {}s)",
                self.id, rate.max, rate.per_seconds
            ),
        }
    }
}

impl Action {
    /// Its name in a document.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::RateLimit(_) => "rate_limit",
            Self::PendingApproval => "pending_approval",
        }
    }
}

impl Default {
    /// Its name in a document.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

impl Limits {
    /// Whether it sets none.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The bytes that name the set (SPEC §6.1).
pub(crate) fn projection(default: Default, rules: &[Rule]) -> Vec<u8> {
    let rules = rules.iter().map(ProjectedRule::of).collect();
    let projection = Projection {
        default: default.name(),
        rules,
    };
    // Strings, arrays and objects only: all of that has a canonical form.
    canon::to_canonical(&projection).unwrap_or_default()
}

#[derive(Serialize)]
struct Projection<'a> {
    default: &'a str,
    rules: Vec<ProjectedRule<'a>>,
}

#[derive(Serialize)]
struct ProjectedRule<'a> {
    id: &'a str,
    action: &'a str,
    priority: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capability: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<ProjectedRate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<ProjectedLimits>,
}

#[derive(Serialize)]
struct ProjectedRate {
    max: String,
    per_seconds: String,
}

#[derive(Serialize)]
struct ProjectedLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_memory_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_wall_ms: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_bytes: Option<String>,
}

impl<'a> ProjectedRule<'a> {
    fn of(rule: &'a Rule) -> Self {
        let decimal = |limit: Option<u64>| limit.map(|limit| limit.to_string());
        Self {
            id: &rule.id,
            action: rule.action.name(),
            priority: rule.priority.to_string(),
            tool: rule.tool.as_deref(),
            capability: rule.capability.as_deref(),
            role: rule.role.as_deref(),
            reason: rule.reason.as_deref(),
            rate: match rule.action {
                Action::RateLimit(rate) => Some(ProjectedRate {
                    max: rate.max.to_string(),
                    per_seconds: rate.per_seconds.to_string(),
                }),
                _ => None,
            },
            limits: (!rule.limits.is_empty()).then(|| ProjectedLimits {
                max_memory_bytes: decimal(rule.limits.max_memory_bytes),
                max_wall_ms: decimal(rule.limits.max_wall_ms),
                max_output_bytes: decimal(rule.limits.max_output_bytes),
            }),
        }
    }
}
