//! From a YAML document to a [`Set`]: version 1 of the policy language
//! (SPEC §6.3).

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, Options, Spanned};
use thiserror::Error;

use super::set::{Action, Default, Limits, Position, Rate, Rule, Set};
use crate::wire::escape::{Escaped, EscapedPath};

/// Why there is no Policy Set.
#[derive(Debug, Error)]
pub(crate) enum PolicyError {
    /// The document is not a policy.
    #[error("policy parse error: {0}")]
    Parse(String),
    /// Of a later language, or of none.
    #[error("unsupported policy version {0} (supported: 1)")]
    Version(u32),
    /// Two rules have one id.
    #[error("line {}, column {}: duplicate rule id `{}`", at.line, at.column, Escaped(id))]
    DuplicateId {
        /// The id.
        id: String,
        /// Where it stands again.
        at: Position,
    },
    /// A rule contradicts itself.
    #[error("line {}, column {}: invalid rule `{}`: {reason}", at.line, at.column, Escaped(id))]
    Rule {
        /// Its id.
        id: String,
        /// Where it stands.
        at: Position,
        /// What is wrong.
        reason: &'static str,
    },
    /// The file could not be read.
    #[error("policy source read error for `{}`: {error}", EscapedPath(path))]
    Read {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

/// Reads the document at `path`, which has to be a regular file.
///
/// # Errors
/// When it cannot be read, or is not a policy.
pub(crate) fn load(path: &Path) -> Result<Set, PolicyError> {
    parse(&read(path)?)
}

/// The bytes of the document at `path`.
///
/// # Errors
/// [`PolicyError::Read`].
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, PolicyError> {
    read_bounded(path).map_err(|error| PolicyError::Read {
        path: path.to_owned(),
        error,
    })
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe could never be read again, and opening one may wait for ever.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    let read = File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if read as u64 > MAX_BYTES {
        return Err(io::Error::other(format!(
            "longer than {MAX_BYTES} bytes, which no policy is"
        )));
    }
    Ok(bytes)
}

/// Reads a document.
///
/// # Errors
/// When it is not a policy.
pub(crate) fn parse(document: &[u8]) -> Result<Set, PolicyError> {
    let text = std::str::from_utf8(document).map_err(|error| {
        PolicyError::Parse(format!("invalid UTF-8 at byte {}", error.valid_up_to()))
    })?;
    let document: Document = serde_saphyr::from_str_with_options(text, options())
        .map_err(|error| PolicyError::Parse(Escaped(&error.to_string()).to_string()))?;
    if document.version != VERSION {
        return Err(PolicyError::Version(document.version));
    }
    let mut ids = HashMap::new();
    let mut rules = Vec::with_capacity(document.rules.len());
    for rule in document.rules {
        let at = position(&rule.id);
        if ids.insert(rule.id.value.clone(), at).is_some() {
            return Err(PolicyError::DuplicateId {
                id: rule.id.value,
                at,
            });
        }
        rules.push(rule.validate()?);
    }
    Ok(Set::new(document.default.into(), rules))
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_aliases: 0,
            max_anchors: 0,
            max_depth: MAX_DEPTH,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        no_schema: true,
        with_snippet: false,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default = "version")]
    version: u32,
    #[serde(default)]
    default: DefaultAction,
    #[serde(default)]
    rules: Vec<RuleNode>,
}

fn version() -> u32 {
    VERSION
}

#[derive(Clone, Copy, Deserialize, std::default::Default)]
#[serde(rename_all = "snake_case")]
enum DefaultAction {
    #[default]
    Allow,
    Deny,
}

impl From<DefaultAction> for Default {
    fn from(action: DefaultAction) -> Self {
        match action {
            DefaultAction::Allow => Self::Allow,
            DefaultAction::Deny => Self::Deny,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleNode {
    id: Spanned<String>,
    action: ActionName,
    tool: Option<String>,
    capability: Option<String>,
    role: Option<String>,
    #[serde(default)]
    priority: i32,
    reason: Option<String>,
    rate: Option<RateNode>,
    limits: Option<LimitsNode>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ActionName {
    Allow,
    Deny,
    RateLimit,
    PendingApproval,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct RateNode {
    max: u32,
    per_seconds: u64,
}

#[derive(Clone, Copy, Deserialize, std::default::Default)]
#[serde(deny_unknown_fields)]
struct LimitsNode {
    max_memory_bytes: Option<u64>,
    max_wall_ms: Option<u64>,
    max_output_bytes: Option<u64>,
}

impl RuleNode {
    fn validate(self) -> Result<Rule, PolicyError> {
        let at = position(&self.id);
        let id = self.id.value;
        let limits = self.limits.unwrap_or_default();
        let limits = Limits {
            max_memory_bytes: limits.max_memory_bytes,
            max_wall_ms: limits.max_wall_ms,
            max_output_bytes: limits.max_output_bytes,
        };
        let wrong = match (self.action, self.rate) {
            (_, Some(rate)) if rate.max == 0 || rate.per_seconds == 0 => {
                Some("rate.max and rate.per_seconds must be > 0")
            }
            (ActionName::RateLimit, None) => Some("rate_limit action requires a `rate` block"),
            (ActionName::RateLimit, Some(_)) => None,
            (_, Some(_)) => Some("`rate` is only valid on a rate_limit action"),
            (ActionName::Deny | ActionName::PendingApproval, None) if !limits.is_empty() => {
                Some("`limits` is only valid on allow or rate_limit actions")
            }
            (_, None) => None,
        };
        if let Some(reason) = wrong {
            return Err(PolicyError::Rule { id, at, reason });
        }
        let action = match (self.action, self.rate) {
            (ActionName::Allow, _) => Action::Allow,
            (ActionName::Deny, _) => Action::Deny,
            (ActionName::PendingApproval, _) => Action::PendingApproval,
            (ActionName::RateLimit, rate) => {
                let RateNode { max, per_seconds } = rate.unwrap_or(RateNode {
                    max: 0,
                    per_seconds: u64::MAX,
                });
                Action::RateLimit(Rate { max, per_seconds })
            }
        };
        let axis = |value: Option<String>| value.filter(|value| value != ANY);
        Ok(Rule {
            id,
            action,
            tool: axis(self.tool),
            capability: axis(self.capability),
            role: axis(self.role),
            priority: self.priority,
            reason: self.reason,
            limits,
            at,
        })
    }
}

fn position<T>(node: &Spanned<T>) -> Position {
    Position {
        line: node.referenced.line(),
        column: node.referenced.column(),
    }
}

const VERSION: u32 = 1;

/// The value of an axis that constrains nothing.
const ANY: &str = "*";

/// Bytes of the longest document that is read.
const MAX_BYTES: u64 = 16 << 20;

const MAX_DEPTH: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Request;

    /// SPEC [POLICY-1] [POLICY-3].
    #[test]
    fn the_hashes_are_the_published_ones() {
        let hash = |document: &str| parse(document.as_bytes()).unwrap().hash().to_string();
        assert_eq!(
            hash("version: 1\ndefault: deny\n"),
            "e8bcffbbc51aabf04e538f85781bf5cd09eb28a33d31916aa3b3f4b28562203e"
        );
        assert_eq!(
            hash(
                "rules:\n  - {id: deny-echo, action: deny, tool: echo, role: '*', reason: quickstart}\n"
            ),
            "1a949e9677a4529dd662eb1a1ecc0a001fe097800a3a41578ba801062893fd41"
        );
        assert_eq!(
            hash(
                "rules:\n  - id: rate-search\n    action: rate_limit\n    tool: search\n    rate: { max: 100, per_seconds: 60 }\n"
            ),
            "9826c2399a62d326a9f89c0896e22ac3b70b0d1bb23490017cbcf7987c119852"
        );
    }

    #[test]
    fn a_deny_overrides_a_more_specific_allow() {
        let set = parse(
            b"rules:\n  - {id: a, action: allow, tool: t, role: r, priority: 9}\n  - {id: d, action: deny, tool: t}\n",
        )
        .unwrap();
        let request = Request {
            role: Some("r"),
            ..Request::tool("t")
        };
        assert_eq!(set.select(&request).unwrap().id, "d");
        assert!(set.select(&Request::tool("u")).is_none());
    }
}
