//! A validated Policy Set and its hash (SPEC §6).

use std::fmt::{Display, Write as _};

use super::select::Index;
use crate::wire::digest::{self, Digest};

/// Rules in the order of their declaration, and what holds without one.
#[derive(Debug)]
pub(crate) struct Set {
    default: Option<Default>,
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
    /// From 1.
    pub(crate) line: u64,
    /// From 1, in characters.
    pub(crate) column: u64,
}

impl Set {
    /// The set of these rules, whose ids are unique, and of the default that
    /// its document states.
    pub(super) fn new(default: Option<Default>, rules: Vec<Rule>) -> Self {
        let hash = Digest::of(projection(default.unwrap_or_default(), &rules).as_bytes());
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
        self.default.unwrap_or_default()
    }

    /// Whether its document says what holds without a rule.
    pub(crate) fn states_default(&self) -> bool {
        self.default.is_some()
    }

    /// The canonical text that its hash is the hash of (SPEC §6.1).
    pub(crate) fn projection(&self) -> String {
        projection(self.default(), &self.rules)
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

/// The text that names the set, in the canonical form of SPEC §3: members in
/// the order of their names, and nothing but strings for values. Only the
/// spelling of strings is left to a library, which cannot refuse one.
fn projection(default: Default, rules: &[Rule]) -> String {
    let mut out = format!("{{\"default\":\"{}\",\"rules\":[", default.name());
    for (place, rule) in rules.iter().enumerate() {
        out.push_str(if place == 0 { "{" } else { ",{" });
        project(rule, &mut out);
        out.push('}');
    }
    out.push_str("]}");
    out
}

fn project(rule: &Rule, out: &mut String) {
    let mut members = Members::new(out);
    members.text("action", rule.action.name());
    members.text("capability", rule.capability.as_deref());
    members.text("id", &*rule.id);
    if !rule.limits.is_empty() {
        members.object("limits", |limits| {
            limits.number("max_memory_bytes", rule.limits.max_memory_bytes);
            limits.number("max_output_bytes", rule.limits.max_output_bytes);
            limits.number("max_wall_ms", rule.limits.max_wall_ms);
        });
    }
    members.number("priority", Some(rule.priority));
    if let Action::RateLimit(rate) = rule.action {
        members.object("rate", |members| {
            members.number("max", Some(rate.max));
            members.number("per_seconds", Some(rate.per_seconds));
        });
    }
    members.text("reason", rule.reason.as_deref());
    members.text("role", rule.role.as_deref());
    members.text("tool", rule.tool.as_deref());
}

/// The members of an object, without its braces. What is absent is left out.
struct Members<'a> {
    out: &'a mut String,
    separator: &'static str,
}

impl<'a> Members<'a> {
    fn new(out: &'a mut String) -> Self {
        Self { out, separator: "" }
    }

    fn text<'t>(&mut self, name: &str, value: impl Into<Option<&'t str>>) {
        if let Some(value) = value.into() {
            self.member(name, serde_json::Value::from(value));
        }
    }

    fn number(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.member(name, format_args!("\"{value}\""));
        }
    }

    fn object(&mut self, name: &str, members: impl FnOnce(&mut Members<'_>)) {
        self.name(name);
        self.out.push('{');
        members(&mut Members::new(self.out));
        self.out.push('}');
    }

    fn member(&mut self, name: &str, spelt: impl Display) {
        self.name(name);
        // A text takes whatever is written to it.
        let _ = write!(self.out, "{spelt}");
    }

    fn name(&mut self, name: &str) {
        for part in [self.separator, "\"", name, "\":"] {
            self.out.push_str(part);
        }
        self.separator = ",";
    }
}

#[cfg(test)]
mod tests;
