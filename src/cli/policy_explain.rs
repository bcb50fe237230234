//! `aegis policy explain`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use argh::{FromArgValue, FromArgs};
use serde::Serialize;

use super::args::{PathArg, Verb};
use super::exit::Exit;
use super::ui::Out;
use super::{Request, UsageError, policy};
use crate::policy::Request as Call;
use crate::policy::explain::{Explanation, explain};
use crate::policy::select::DEFAULT_DENY;
use crate::policy::set::{Action, Default, Rule, Set};
use crate::wire::escape::{Escaped, EscapedPath};

/// Say which rule decides about a tool, and why.
///
/// Shows the verdict on a call of the tool, the rules that match it in the
/// order in which they would decide, and why the first one does. Nothing is
/// run or recorded.
#[derive(FromArgs)]
#[argh(
    error_code(0, "the call is allowed"),
    error_code(1, "it is refused or waits for approval, or a usage error"),
    error_code(2, "the policy cannot be read, or is none"),
    error_code(3, "a rate_limit rule decides: it depends on the calls before")
)]
pub(super) struct Args {
    /// the tool that is called
    #[argh(option, arg_name = "NAME")]
    tool: Option<TextArg>,
    /// the role that the caller asserts; aegis wrap, run and mcp assert none
    #[argh(option, arg_name = "NAME")]
    role: Option<TextArg>,
    /// the capability that the caller asserts; aegis wrap, run and mcp assert
    /// none
    #[argh(option, arg_name = "NAME")]
    capability: Option<TextArg>,
    /// text (default) or json
    #[argh(option, arg_name = "FORMAT")]
    format: Option<String>,
    /// the policy file
    #[argh(positional, arg_name = "POLICY")]
    policy: Vec<PathArg>,
}

impl Verb for Args {
    const NAME: &'static str = "policy explain";
    const USAGE: &'static str =
        "--tool NAME [--role NAME] [--capability NAME] [--format text|json] POLICY";
}

/// A name, also an empty one.
struct TextArg(String);

impl FromArgValue for TextArg {
    fn from_arg_value(value: &str) -> Result<Self, String> {
        if value.is_empty() {
            return Ok(Self(String::new()));
        }
        let PathArg(typed) = PathArg::from_arg_value(value)?;
        let text = typed.into_string().map_err(|_| "a name is UTF-8")?;
        Ok(Self(text))
    }
}

/// What was asked for.
pub(super) struct Explain {
    policy: PathBuf,
    tool: String,
    role: Option<String>,
    capability: Option<String>,
    json: bool,
}

impl TryFrom<Args> for Explain {
    type Error = UsageError;

    fn try_from(args: Args) -> Result<Self, UsageError> {
        let tool = args
            .tool
            .ok_or_else(|| UsageError("policy explain requires --tool <NAME>".to_owned()))?;
        Ok(Self {
            json: super::json_format(args.format.as_deref())?,
            tool: tool.0,
            role: args.role.map(|name| name.0),
            capability: args.capability.map(|name| name.0),
            policy: policy::only(Args::NAME, args.policy)?,
        })
    }
}

impl Request for Explain {
    fn run(self) -> ExitCode {
        let set = match policy::load(&self.policy, self.json.then_some(SCHEMA)) {
            Ok(set) => set,
            Err(exit) => return exit,
        };
        let request = Call {
            capability: self.capability.as_deref(),
            role: self.role.as_deref(),
            ..Call::tool(&self.tool)
        };
        let explanation = explain(&set, &request);
        let verdict = Verdict::of(&set, explanation.decided);
        let mut out = Out::new();
        if self.json {
            out.line(policy::json(&self.object(&set, &explanation, &verdict)));
        } else {
            self.rows(&mut out, &set, &explanation, &verdict);
        }
        policy::end(out, verdict.exit)
    }
}

impl Explain {
    fn rows(&self, out: &mut Out, set: &Set, explanation: &Explanation<'_>, verdict: &Verdict) {
        out.line(format_args!("verdict {}", verdict.token));
        if let Some(reason) = &verdict.reason {
            out.line(format_args!("reason {}", Escaped(reason)));
        }
        let winner = explanation.decided;
        if let Some(rule) = winner {
            out.line(format_args!("rule {}", Escaped(&rule.id)));
        }
        out.line(format_args!("why {}", Escaped(&explanation.why)));
        for (name, limit) in winner.iter().flat_map(|rule| policy::limits(&rule.limits)) {
            out.line(format_args!("limit {name} {limit}"));
        }
        out.line(format_args!("policy_set_hash {}", set.hash()));
        for rule in explanation.matched.iter().take(MAX_SHOWN) {
            out.line(format_args!(
                "match {}: {} `{}`, {}, priority {}",
                policy::place(&self.policy, rule),
                rule.action.name(),
                Escaped(&rule.id),
                axes(rule),
                rule.priority
            ));
        }
        let more = explanation.matched.len().saturating_sub(MAX_SHOWN);
        if more > 0 {
            out.line(format_args!("match {more} more"));
        }
    }

    fn object(&self, set: &Set, explanation: &Explanation<'_>, verdict: &Verdict) -> Object {
        let winner = explanation.decided;
        Object {
            schema: SCHEMA,
            policy: EscapedPath(&self.policy).to_string(),
            exit: verdict.exit.code(),
            policy_set_hash: set.hash().to_string(),
            tool: self.tool.clone(),
            role: self.role.clone(),
            capability: self.capability.clone(),
            verdict: verdict.token,
            reason: verdict.reason.clone(),
            rule: winner.map(|rule| rule.id.clone()),
            why: explanation.why.clone(),
            limits: winner
                .iter()
                .flat_map(|rule| policy::limits(&rule.limits))
                .collect(),
            matched: explanation
                .matched
                .iter()
                .take(MAX_SHOWN)
                .map(|rule| Match::of(rule))
                .collect(),
            matched_count: explanation.matched.len(),
        }
    }
}

/// What becomes of the call.
struct Verdict {
    token: &'static str,
    reason: Option<String>,
    exit: Exit,
}

impl Verdict {
    fn of(set: &Set, rule: Option<&Rule>) -> Self {
        let (token, reason, exit) = match (rule, set.default()) {
            (None, Default::Allow) => ("allowed", None, Exit::Ok),
            (None, Default::Deny) => ("denied", Some(DEFAULT_DENY.to_owned()), Exit::Failed),
            (Some(rule), _) => match rule.action {
                Action::Allow => ("allowed", None, Exit::Ok),
                Action::Deny => ("denied", Some(rule.denial()), Exit::Failed),
                Action::PendingApproval => ("pending_approval", None, Exit::Failed),
                Action::RateLimit(rate) => (
                    "rate_limit",
                    Some(rule.rate_denial(rate)),
                    Exit::Indeterminate,
                ),
            },
        };
        Self {
            token,
            reason,
            exit,
        }
    }
}

/// What a rule asks for.
fn axes(rule: &Rule) -> String {
    let constrained: Vec<_> = [
        ("tool", &rule.tool),
        ("capability", &rule.capability),
        ("role", &rule.role),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(format!("{name} `{}`", Escaped(value.as_deref()?))))
    .collect();
    if constrained.is_empty() {
        "any call".to_owned()
    } else {
        constrained.join(", ")
    }
}

#[derive(Serialize)]
struct Object {
    schema: &'static str,
    policy: String,
    exit: u8,
    policy_set_hash: String,
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capability: Option<String>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    why: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    limits: BTreeMap<&'static str, u64>,
    matched: Vec<Match>,
    matched_count: usize,
}

#[derive(Serialize)]
struct Match {
    rule: String,
    action: &'static str,
    priority: i32,
    specificity: u8,
    line: u64,
    column: u64,
}

impl Match {
    fn of(rule: &Rule) -> Self {
        Self {
            rule: rule.id.clone(),
            action: rule.action.name(),
            priority: rule.priority,
            specificity: rule.specificity(),
            line: rule.at.line,
            column: rule.at.column,
        }
    }
}

const SCHEMA: &str = "aegis.policy-explain.v1";

/// Rules that match and are shown.
const MAX_SHOWN: usize = 100;
