//! From a YAML document to a [`Set`]: version 1 of the policy language
//! (SPEC §6.3).
//!
//! `text` says which bytes a document may have, `document` reads its shape
//! from the events of the YAML parser, and [`parse`] checks what only the
//! whole can show.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::set::{Action, Limits, Position, Rate, Rule, Set};
use crate::wire::escape::{Escaped, EscapedPath};
use document::{ActionName, Placed, RuleNode, VERSION};

mod document;
mod scalar;
mod text;
mod yaml;

/// Why there is no Policy Set.
#[derive(Debug, Error)]
pub(crate) enum PolicyError {
    /// The file could not be read.
    #[error("policy source read error for `{}`: {error}", EscapedPath(path))]
    Read {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// It is not a policy.
    #[error("{}{fault}", Place(path.as_deref(), *at))]
    Document {
        /// Where it was read from.
        path: Option<PathBuf>,
        /// Where in it the fault is.
        at: Position,
        /// What is wrong.
        fault: Fault,
    },
}

/// What is wrong with a document.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    /// It is not in the policy language.
    #[error("policy parse error: {0}")]
    Parse(String),
    /// Of a later language, or of none.
    #[error(
        "unsupported policy version {0} (supported: 1); write `version: 1`, or leave the line out"
    )]
    Version(u32),
    /// Two rules have one id.
    #[error(
        "duplicate rule id `{}`; it stands first on line {first_line}",
        Escaped(id)
    )]
    DuplicateId {
        /// The id.
        id: String,
        /// From 1.
        first_line: u64,
    },
    /// A rule contradicts itself.
    #[error("invalid rule `{}`: {reason}", Escaped(id))]
    Rule {
        /// Its id.
        id: String,
        /// What is wrong, and what to do.
        reason: String,
    },
}

impl PolicyError {
    /// The same error, of the document at `path`.
    pub(crate) fn of_file(self, path: &Path) -> Self {
        match self {
            Self::Document { at, fault, .. } => Self::Document {
                path: Some(path.to_owned()),
                at,
                fault,
            },
            read @ Self::Read { .. } => read,
        }
    }

    /// Where in the document it is, if it is in one.
    pub(crate) fn at(&self) -> Option<Position> {
        match self {
            Self::Document { at, .. } => Some(*at),
            Self::Read { .. } => None,
        }
    }

    fn new(at: Position, fault: Fault) -> Self {
        Self::Document {
            path: None,
            at,
            fault,
        }
    }

    fn parse(at: Position, what: impl Into<String>) -> Self {
        Self::new(at, Fault::Parse(what.into()))
    }
}

/// What an error begins with: `path:7:5: `, or without a path
/// `line 7, column 5: `.
struct Place<'a>(Option<&'a Path>, Position);

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Position { line, column } = self.1;
        match self.0 {
            Some(path) => write!(f, "{}:{line}:{column}: ", EscapedPath(path)),
            None => write!(f, "line {line}, column {column}: "),
        }
    }
}

/// Reads the document at `path`, which has to be a regular file.
///
/// # Errors
/// When it cannot be read, or is not a policy.
pub(crate) fn load(path: &Path) -> Result<Set, PolicyError> {
    parse(&read(path)?).map_err(|error| error.of_file(path))
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
    let metadata = path.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other(
            "it is a directory; name the policy file in it",
        ));
    }
    if !metadata.is_file() {
        return Err(io::Error::other(
            "it is not a regular file, and a policy must be readable again; copy it to a file",
        ));
    }
    let mut bytes = Vec::new();
    let read = File::open(path)?
        .take(MAX_DOCUMENT_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if read as u64 > MAX_DOCUMENT_BYTES {
        return Err(io::Error::other(format!(
            "it is longer than {MAX_DOCUMENT_BYTES} bytes (16 MiB), the most that a policy may have"
        )));
    }
    Ok(bytes)
}

/// Reads a document.
///
/// # Errors
/// When it is not a policy.
pub(crate) fn parse(document: &[u8]) -> Result<Set, PolicyError> {
    let document = document::read(text::checked(document)?)?;
    if let Some(Placed { value, at }) = document.version
        && value != VERSION
    {
        return Err(PolicyError::new(at, Fault::Version(value)));
    }
    let mut ids = HashMap::with_capacity(document.rules.len());
    let mut rules = Vec::with_capacity(document.rules.len());
    for rule in document.rules {
        let Placed { value: id, at } = &rule.id;
        if let Some(first_line) = ids.insert(id.clone(), at.line) {
            let (id, at) = (id.clone(), *at);
            return Err(PolicyError::new(at, Fault::DuplicateId { id, first_line }));
        }
        rules.push(validated(rule)?);
    }
    Ok(Set::new(document.default, rules))
}

/// A rule without contradictions.
fn validated(rule: RuleNode) -> Result<Rule, PolicyError> {
    bounded(&rule)?;
    let id = rule.id.value;
    let fault = |at, reason: &str| {
        let (id, reason) = (id.clone(), reason.to_owned());
        PolicyError::new(at, Fault::Rule { id, reason })
    };
    let action = match (rule.action.value, rule.rate) {
        (_, Some(rate)) if rate.value.max == 0 || rate.value.per_seconds == 0 => {
            return Err(fault(rate.at, ZERO_RATE));
        }
        (ActionName::RateLimit, Some(Placed { value: rate, .. })) => Action::RateLimit(Rate {
            max: rate.max,
            per_seconds: rate.per_seconds,
        }),
        (ActionName::RateLimit, None) => return Err(fault(rule.action.at, NO_RATE)),
        (_, Some(rate)) => return Err(fault(rate.at, STRAY_RATE)),
        (ActionName::Allow, None) => Action::Allow,
        (ActionName::Deny, None) => Action::Deny,
        (ActionName::PendingApproval, None) => Action::PendingApproval,
    };
    let limits = match (&action, rule.limits) {
        (_, None) => Limits::default(),
        (Action::Deny | Action::PendingApproval, Some(limits)) if !limits.value.is_empty() => {
            return Err(fault(limits.at, STRAY_LIMITS));
        }
        (_, Some(limits)) => limits.value,
    };
    let axis = |value: Option<Placed<String>>| {
        value
            .map(|placed| placed.value)
            .filter(|value| value != ANY)
    };
    Ok(Rule {
        action,
        tool: axis(rule.tool),
        capability: axis(rule.capability),
        role: axis(rule.role),
        priority: rule.priority,
        reason: rule.reason.map(|placed| placed.value),
        limits,
        at: rule.id.at,
        id,
    })
}

/// That no text of the rule is longer than it may be.
fn bounded(rule: &RuleNode) -> Result<(), PolicyError> {
    let id = &rule.id;
    let long = |at, reason| {
        let id = id.value.clone();
        Err(PolicyError::new(at, Fault::Rule { id, reason }))
    };
    if id.value.len() > MAX_ID_BYTES {
        return long(
            id.at,
            format!("its id is longer than {MAX_ID_BYTES} bytes; shorten it"),
        );
    }
    for (name, text) in [
        ("tool", &rule.tool),
        ("capability", &rule.capability),
        ("role", &rule.role),
        ("reason", &rule.reason),
    ] {
        if let Some(text) = text
            && text.value.len() > MAX_TEXT_BYTES
        {
            return long(
                text.at,
                format!("its `{name}` is longer than {MAX_TEXT_BYTES} bytes; shorten it"),
            );
        }
    }
    Ok(())
}

/// The value of an axis that constrains nothing.
const ANY: &str = "*";

const ZERO_RATE: &str = "rate.max and rate.per_seconds must be > 0; to refuse every call write \
                         `action: deny` without a `rate`";
const NO_RATE: &str = "rate_limit action requires a `rate` block; add one, such as \
                       `rate: { max: 10, per_seconds: 60 }`";
const STRAY_RATE: &str = "`rate` is only valid on a rate_limit action; remove it, or write \
                          `action: rate_limit`";
const STRAY_LIMITS: &str = "`limits` is only valid on allow or rate_limit actions; remove it: nothing runs under this rule";

/// Bytes of the longest document that is read.
pub(crate) const MAX_DOCUMENT_BYTES: u64 = 16 << 20;

/// Rules of the largest Policy Set.
pub(crate) const MAX_RULES: usize = 100_000;

/// Bytes of the longest rule id: it stands whole on the Lines of the Calls
/// that it decided.
pub(crate) const MAX_ID_BYTES: usize = 1 << 10;

/// Bytes of the longest axis or reason. Of a tool's name 64 KiB are kept, so
/// a much longer axis could match nothing.
pub(crate) const MAX_TEXT_BYTES: usize = 32 << 10;

#[cfg(test)]
mod tests;
