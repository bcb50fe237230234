//! Requirements: what a caller asks of every Session besides being whole
//! (SPEC §8.11).
//!
//! A record can be complete and unchanged and tell that nothing was enforced.
//! What it tells is the emitter's claim, so it is worth something only where
//! the record is Verified under a pin, and only there it is looked at. What
//! this reader does not know never meets a requirement, whatever the operator.

mod claims;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

pub(super) use claims::Claims;
use claims::NoWord;

use crate::wire::escape::{Escaped, Shortened};
use crate::wire::spelled;

/// What every Session must say of itself: one of these values, or none of
/// them. Displays as it is written, each value once.
///
/// ```
/// use aegis::verify::Requirement;
///
/// let requirement: Requirement = "net=denied|host-port".parse()?;
/// assert_eq!(requirement.to_string(), "net=denied|host-port");
/// assert!("net=off".parse::<Requirement>().is_err());
/// # Ok::<(), aegis::verify::RequirementError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: Key,
    negated: bool,
    /// Each once, in the order in which they were written.
    values: Vec<&'static Value>,
}

/// Why a text is no requirement.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequirementError {
    /// It has no operator.
    #[error(
        "a requirement is KEY=VALUE or KEY!=VALUE, several values with | between them, and KEY is {}",
        listed(Key::ALL.map(Key::name))
    )]
    Form,
    /// Nothing has this name.
    #[error(
        "there is no key `{}`; it is {}",
        Escaped(.0),
        listed(Key::ALL.map(Key::name))
    )]
    Key(String),
    /// The key has no such value.
    #[error("{key} has no value `{}`; it has {}", Escaped(.value), listed(.known.iter().copied()))]
    Value {
        /// The key.
        key: &'static str,
        /// What it has not.
        value: String,
        /// What it has.
        known: Vec<&'static str>,
    },
    /// A Session can have several holes, so `=` would say nothing clear.
    #[error("hole takes only !=, as in hole!=any: that hole must not be open")]
    HoleIs,
}

/// Which requirements the Sessions of a file do not meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Required {
    /// The first [`MAX_UNMET`](super::MAX_UNMET), by Session and then in the
    /// order of the requirements.
    pub unmet: Vec<Unmet>,
    /// How many there are.
    pub count: u64,
}

/// A requirement that a Session does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// The Session, from 0.
    pub session: u64,
    /// The requirement.
    pub requirement: Requirement,
    /// The member of its `open` Line that decided, by its dotted path.
    pub member: &'static str,
    /// What was found there.
    pub found: Found,
}

/// What was found where a requirement is not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Values that are known, and are not what is required.
    Other(Vec<&'static str>),
    /// A value that is not known here.
    Unknown(Shortened),
    /// Nothing.
    Absent,
    /// Something of another type than it should be.
    Unreadable,
}

impl FromStr for Requirement {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<Self, RequirementError> {
        let (key, values) = text.split_once('=').ok_or(RequirementError::Form)?;
        let (key, negated) = match key.strip_suffix('!') {
            Some(key) => (key, true),
            None => (key, false),
        };
        let key = Key::ALL
            .into_iter()
            .find(|known| known.name() == key)
            .ok_or_else(|| RequirementError::Key(key.to_owned()))?;
        if key == Key::Hole && !negated {
            return Err(RequirementError::HoleIs);
        }
        let mut known = Vec::new();
        for value in values.split('|') {
            let value = key.value(value)?;
            if !known.contains(&value) {
                known.push(value);
            }
        }
        Ok(Self {
            key,
            negated,
            values: known,
        })
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.negated { "!=" } else { "=" };
        write!(f, "{}{operator}", self.key.name())?;
        for (i, value) in self.values.iter().enumerate() {
            let between = if i == 0 { "" } else { "|" };
            write!(f, "{between}{}", value.name)?;
        }
        Ok(())
    }
}

impl Requirement {
    /// What a Session has instead, and where, when it does not meet this.
    fn missed_by(&self, claims: &Claims) -> Option<NoWord> {
        match claims.of(self.key) {
            // Of several holes one that is named is enough.
            Ok(words) if words.iter().any(|word| self.names(word)) != self.negated => None,
            Ok(words) => Some(NoWord {
                member: self.key.member(),
                found: Found::Other(words.clone()),
            }),
            Err(why) => Some(why.clone()),
        }
    }

    fn names(&self, word: &str) -> bool {
        self.values.iter().any(|value| value.words.contains(&word))
    }
}

impl Found {
    /// The token for programs (SPEC §14.2).
    pub fn code(&self) -> &'static str {
        match self {
            Self::Other(_) => "other-value",
            Self::Unknown(_) => "unknown-value",
            Self::Absent => "absent",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(words) => write!(f, "is {}", listed(words.iter().copied())),
            Self::Unknown(word) => write!(f, "is `{word}`, which is not known here"),
            Self::Absent => f.write_str("is absent"),
            Self::Unreadable => f.write_str("is of another form"),
        }
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            session,
            requirement,
            member,
            found,
        } = self;
        write!(f, "session {session} {requirement}: {member} {found}")
    }
}

/// Asks every Session of a walk.
pub(super) struct Asked {
    requirements: Vec<Requirement>,
    required: Required,
}

impl Asked {
    pub(super) fn new(requirements: &[Requirement]) -> Self {
        let mut asked = Self {
            requirements: Vec::new(),
            required: Required::default(),
        };
        for requirement in requirements {
            if !asked.requirements.contains(requirement) {
                asked.requirements.push(requirement.clone());
            }
        }
        asked
    }

    /// Takes what a Session's `open` Line says, its signature being verified.
    pub(super) fn session(&mut self, session: u64, claims: &Claims) {
        for requirement in &self.requirements {
            let Some(NoWord { member, found }) = requirement.missed_by(claims) else {
                continue;
            };
            self.required.count += 1;
            if self.required.unmet.len() < super::MAX_UNMET {
                self.required.unmet.push(Unmet {
                    session,
                    requirement: requirement.clone(),
                    member,
                    found,
                });
            }
        }
    }

    /// Nothing when nothing was asked.
    pub(super) fn finish(self) -> Option<Required> {
        (!self.requirements.is_empty()).then_some(self.required)
    }
}

/// What a requirement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Confine,
    Net,
    Metadata,
    Durability,
    Policy,
    Hole,
}

/// A value of a requirement, and the words of a record that it stands for.
#[derive(Debug, PartialEq, Eq)]
struct Value {
    name: &'static str,
    words: &'static [&'static str],
}

impl Key {
    const ALL: [Self; 6] = [
        Self::Confine,
        Self::Net,
        Self::Metadata,
        Self::Durability,
        Self::Policy,
        Self::Hole,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Confine => "confine",
            Self::Net => "net",
            Self::Metadata => "metadata",
            Self::Durability => "durability",
            Self::Policy => "policy",
            Self::Hole => "hole",
        }
    }

    fn values(self) -> &'static [Value] {
        match self {
            Self::Confine => CONFINE,
            Self::Net => NET,
            Self::Metadata => METADATA,
            Self::Durability => DURABILITY,
            Self::Policy => POLICY,
            Self::Hole => HOLE,
        }
    }

    fn value(self, name: &str) -> Result<&'static Value, RequirementError> {
        let known = self.values();
        known
            .iter()
            .find(|value| value.name == name)
            .ok_or_else(|| RequirementError::Value {
                key: self.name(),
                value: name.to_owned(),
                known: known.iter().map(|value| value.name).collect(),
            })
    }

    /// The word of a record that is spelled so, if it is one.
    fn word(self, spelled: &str) -> Option<&'static str> {
        let mut words = self.values().iter().flat_map(|value| value.words);
        words.find(|word| **word == spelled).copied()
    }
}

fn listed(words: impl IntoIterator<Item = &'static str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}

const fn value(name: &'static str, words: &'static [&'static str]) -> Value {
    Value { name, words }
}

const CONFINE: &[Value] = &[
    value("full", &["full"]),
    value("partial", &["partial"]),
    value("none", &["none"]),
    value("failed", &["failed"]),
];

const NET: &[Value] = &[
    value("denied", &["denied-netns", "denied-seccomp"]),
    value("denied-netns", &["denied-netns"]),
    value("denied-seccomp", &["denied-seccomp"]),
    value("host-port", &["host-port"]),
    value("port-only", &["port-only"]),
    value("unrestricted", &["unrestricted"]),
];

const METADATA: &[Value] = &[value("denied", &["denied"]), value("allowed", &["allowed"])];

const DURABILITY: &[Value] = &[
    value("full", &["full"]),
    value("intent", &["intent"]),
    value("process", &["process"]),
];

const POLICY: &[Value] = &[
    value("enforced", &["enforced"]),
    value("shadow", &["shadow"]),
];

const HOLE: &[Value] = &[
    value(
        "any",
        &[
            spelled::UNIX_SOCKETS_HOLE,
            spelled::SHARED_CACHE_HOLE,
            spelled::UPSTREAM_PROXY_HOLE,
        ],
    ),
    value("unix-sockets", &[spelled::UNIX_SOCKETS_HOLE]),
    value("shared-cache", &[spelled::SHARED_CACHE_HOLE]),
    value("upstream-proxy", &[spelled::UPSTREAM_PROXY_HOLE]),
];
