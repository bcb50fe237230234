//! What is odd about a Policy Set (SPEC §14.6): a pure function of the set, of
//! what its callers assert and of the tools that were seen.
//!
//! A finding is no error: the set means what it says. It is probably not what
//! was meant.

use std::collections::BTreeSet;

use super::near;
use super::set::{Action, Position, Rate, Rule, Set};
use crate::wire::escape::Escaped;

/// Something odd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding<'a> {
    /// Which of the [`codes`].
    pub(crate) code: &'static str,
    /// Of which rule.
    pub(crate) rule: Option<&'a Rule>,
    /// What is odd, and what to do.
    pub(crate) text: String,
}

impl Finding<'_> {
    /// Where it is: its rule, or the beginning.
    pub(crate) fn at(&self) -> Position {
        self.rule
            .map_or(Position { line: 1, column: 1 }, |rule| rule.at)
    }

    /// Whether it may well be meant: a tool that is denied need never have been
    /// called.
    pub(crate) fn is_note(&self) -> bool {
        self.code == codes::UNSEEN_TOOL
    }
}

/// Who asks for the verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Nothing is known of it.
    Any,
    /// `aegis wrap`.
    Wrap,
    /// `aegis run`.
    Run,
    /// `aegis mcp`.
    Mcp,
}

impl Caller {
    /// As it is named on a command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Wrap => "wrap",
            Self::Run => "run",
            Self::Mcp => "mcp",
        }
    }
}

/// Finds what is odd about `set`, in the order of its rules. `seen` are the
/// tools of recorded Calls, if any were given.
pub(crate) fn lint<'a>(
    set: &'a Set,
    caller: Caller,
    seen: Option<&BTreeSet<String>>,
) -> Vec<Finding<'a>> {
    let mut findings = Vec::new();
    findings.extend(of_the_whole(set));
    let mut tools = seen.map(Tools::of);
    for rule in set.rules() {
        let mut find = |code, text| {
            findings.push(Finding {
                code,
                rule: Some(rule),
                text,
            });
        };
        if caller != Caller::Any && rule.asks_more_than_the_tool() {
            // Whatever else is odd about it does not matter there.
            find(codes::NEVER_MATCHES, never_matches(caller));
            continue;
        }
        if let Some((code, text)) = never_decides(set, rule) {
            find(code, text);
        }
        if let Some((code, text)) = odd_rate(rule) {
            find(code, text);
        }
        if caller == Caller::Wrap && !rule.limits.is_empty() {
            find(codes::LIMITS_IGNORED, LIMITS_IGNORED.to_owned());
        }
        for (code, text) in odd_names(rule) {
            find(code, text);
        }
        if let (Some(tools), Some(tool)) = (&mut tools, &rule.tool)
            && let Some((code, text)) = tools.unseen(tool)
        {
            find(code, text);
        }
    }
    findings
}

/// The rules that match only callers that assert a capability or a role.
pub(crate) fn asking_more_than_the_tool(set: &Set) -> usize {
    set.rules()
        .iter()
        .filter(|rule| rule.asks_more_than_the_tool())
        .count()
}

/// The `deny`, `pending_approval` and `rate_limit` rules that can never match
/// a Call of `aegis wrap`, which asserts nothing but the tool.
#[allow(dead_code, reason = "wrap refuses to start on them")]
pub(crate) fn inert_under_wrap(set: &Set) -> Vec<&Rule> {
    let restrains = |rule: &&Rule| !matches!(rule.action, Action::Allow);
    set.rules()
        .iter()
        .filter(restrains)
        .filter(|rule| rule.asks_more_than_the_tool())
        .collect()
}

type Oddity = (&'static str, String);

fn of_the_whole(set: &Set) -> Option<Finding<'_>> {
    (!set.states_default()).then(|| Finding {
        code: codes::NO_DEFAULT,
        rule: None,
        text: NO_DEFAULT.to_owned(),
    })
}

fn never_matches(caller: Caller) -> String {
    format!(
        "never matches: `aegis {}` asserts the tool and nothing else, so remove `capability` and \
         `role`, or the rule",
        caller.name()
    )
}

fn never_decides(set: &Set, rule: &Rule) -> Option<Oddity> {
    if let Some(before) = set.best_alike(rule)
        && before.id != rule.id
    {
        let why = if before.priority > rule.priority {
            "has a higher priority"
        } else {
            "is declared earlier"
        };
        let text = format!(
            "never decides: {} matches the same calls and {why}; remove one of the two",
            named(before)
        );
        return Some((codes::SHADOWED, text));
    }
    if matches!(rule.action, Action::Deny) {
        let denies_all = rule.specificity() == 0;
        return denies_all.then(|| (codes::DENIES_ALL, DENIES_ALL.to_owned()));
    }
    let deny = set.deny_over(rule)?;
    let text = format!(
        "never decides: the deny {} matches all that it matches, and a deny overrides every rule \
         that is none; narrow the deny, or remove this rule",
        named(deny)
    );
    Some((codes::OVERRIDDEN, text))
}

fn odd_rate(rule: &Rule) -> Option<Oddity> {
    let Action::RateLimit(Rate { max, per_seconds }) = rule.action else {
        return None;
    };
    if u64::from(max) / per_seconds >= RATE_NEVER_REACHED {
        let text = format!(
            "never refuses: {max} calls in {per_seconds}s are more than can be made; lower \
             `max`, or write `action: allow`"
        );
        return Some((codes::RATE_NEVER_REFUSES, text));
    }
    (per_seconds > RATE_NEVER_RESET_SECONDS).then(|| {
        let text = format!(
            "counts in a window of {per_seconds}s, which never ends while aegis runs, and each \
             start begins a new one; use a shorter one"
        );
        (codes::RATE_NEVER_RESETS, text)
    })
}

fn odd_names(rule: &Rule) -> impl Iterator<Item = Oddity> {
    [
        ("tool", &rule.tool),
        ("capability", &rule.capability),
        ("role", &rule.role),
    ]
    .into_iter()
    .filter_map(|(axis, name)| {
        let name = name.as_deref()?;
        let shown = Escaped(name);
        let is_edge_blank = name.trim_matches(near::is_blank) != name;
        if name.is_empty() {
            let text =
                format!("`{axis}` is empty, which matches only an empty one; leave it out for any");
            Some((codes::ODD_NAME, text))
        } else if is_edge_blank || name.contains(|c| c != ' ' && near::is_blank(c)) {
            let text = format!(
                "has a `{axis}` with blanks or invisible characters: `{shown}`; names are compared \
                 byte for byte"
            );
            Some((codes::ODD_NAME, text))
        } else if name.contains(['*', '?']) {
            let text = format!(
                "matches only the very `{axis}` `{shown}`: there are no patterns; write a rule for \
                 each name, or `\"*\"` for any"
            );
            Some((codes::PATTERN, text))
        } else {
            None
        }
    })
}

/// The tools that were seen, and how many may still be compared with.
struct Tools<'s> {
    seen: &'s BTreeSet<String>,
    comparisons: usize,
}

impl<'s> Tools<'s> {
    fn of(seen: &'s BTreeSet<String>) -> Self {
        Self {
            seen,
            comparisons: MAX_COMPARISONS,
        }
    }

    fn unseen(&mut self, tool: &str) -> Option<Oddity> {
        if self.seen.contains(tool) {
            return None;
        }
        let left = self.comparisons.checked_sub(self.seen.len());
        self.comparisons = left.unwrap_or(0);
        let near = left.and_then(|_| near::nearest(tool, self.seen.iter().map(String::as_str)));
        Some(match near {
            Some(near) => {
                let text = format!(
                    "asks for `{}`, of which no call was recorded; calls of `{}` were, and names \
                     are compared byte for byte",
                    Escaped(tool),
                    Escaped(near)
                );
                (codes::NEAR_MISS, text)
            }
            None => (
                codes::UNSEEN_TOOL,
                format!(
                    "asks for `{}`, of which no call was recorded",
                    Escaped(tool)
                ),
            ),
        })
    }
}

fn named(rule: &Rule) -> String {
    format!("`{}` on line {}", Escaped(&rule.id), rule.at.line)
}

/// What findings are called; API (SPEC §14.6).
pub(crate) mod codes {
    pub(crate) const DENIES_ALL: &str = "denies-all";
    pub(crate) const LIMITS_IGNORED: &str = "limits-ignored";
    pub(crate) const NEAR_MISS: &str = "near-miss";
    pub(crate) const NEVER_MATCHES: &str = "never-matches";
    pub(crate) const NO_DEFAULT: &str = "no-default";
    pub(crate) const ODD_NAME: &str = "odd-name";
    pub(crate) const OVERRIDDEN: &str = "overridden";
    pub(crate) const PATTERN: &str = "pattern";
    pub(crate) const RATE_NEVER_REFUSES: &str = "rate-never-refuses";
    pub(crate) const RATE_NEVER_RESETS: &str = "rate-never-resets";
    pub(crate) const SHADOWED: &str = "shadowed";
    pub(crate) const UNSEEN_TOOL: &str = "unseen-tool";
}

/// Calls a second of one tool that nobody can make.
const RATE_NEVER_REACHED: u64 = 100_000;

/// A year: no process counts that long.
const RATE_NEVER_RESET_SECONDS: u64 = 366 * 24 * 60 * 60;

/// How many pairs of names are compared letter by letter.
const MAX_COMPARISONS: usize = 1_000_000;

const NO_DEFAULT: &str = "without `default` every call that no rule matches is allowed; write \
                          `default: deny` or `default: allow`";

const DENIES_ALL: &str = "denies every call, whatever the other rules say; to refuse what no rule allows write \
     `default: deny`";

const LIMITS_IGNORED: &str =
    "sets `limits`, which `aegis wrap` does not apply: the server runs as it is; remove them";

#[cfg(test)]
mod tests;
