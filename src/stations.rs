//! The stations that a Call passes: POLICY → CAPABILITY → SANDBOX → AUDIT.
//!
//! Whoever carries Calls reaches the policy through here only, and by types:
//! a frame that was received becomes one that is [`Permitted`] or [`Refused`],
//! and only the first can be forwarded. CAPABILITY joins where a Call runs in
//! this process. A server that is started is put in a [`sandbox`] as a whole.
//! AUDIT is the [`Standing`] that each Call gets, whatever becomes of it.
//!
//! [`Standing`]: crate::chain::ending::Standing

mod received;
pub(crate) mod sandbox;

use std::path::Path;
use std::time::Instant;

use thiserror::Error;

use crate::policy::Request;
use crate::policy::engine::{Engine, Judgement};
use crate::policy::lint::inert_under_wrap;
use crate::policy::parse::{self, PolicyError};
use crate::policy::set::{Action, Default, Position, Set};
use crate::wire::digest::{Digest, PolicySet};
use crate::wire::escape::Escaped;

pub(crate) use received::{Code, Grounds, Judged, Pass, Refused, RefusedPart, policy, usable_id};

/// The POLICY station: the Policy Set in force, and what a set has to be to
/// come into force here.
pub(crate) struct Gate {
    engine: Engine,
    /// Rate windows are on a clock that only goes forward.
    begun: Instant,
    bounds: Bounds,
}

/// Which sets may be in force, and what becomes of their verdicts.
#[derive(Clone, Copy, Debug, std::default::Default)]
pub(crate) struct Bounds {
    /// Only the one with this hash.
    pub(crate) pinned: Option<Digest<PolicySet>>,
    /// Also one with rules that can never match here.
    pub(crate) allow_inert: bool,
    /// What is done with a verdict.
    pub(crate) mode: Mode,
}

/// What is done with a verdict.
#[derive(Clone, Copy, Debug, std::default::Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// What is not allowed is refused.
    #[default]
    Enforce,
    /// All goes on, and the record says what would have been decided.
    Shadow,
}

/// Why a document is not in force.
#[derive(Debug, Error)]
pub(crate) enum GateError {
    /// It cannot be read, or is not a policy.
    #[error("{0}")]
    Policy(#[from] PolicyError),
    /// It is another one than was asked for.
    #[error("its hash is {found}, but --policy-hash asks for {pinned}")]
    OtherThanPinned {
        /// The hash that was asked for.
        pinned: Digest<PolicySet>,
        /// The document's.
        found: Digest<PolicySet>,
    },
    /// It has a rule that restrains nothing here.
    #[error(
        "line {}, column {}: rule `{}` can never match: a Call here asserts no capability and no role; name a tool instead, or give --allow-inert-rules",
        at.line, at.column, Escaped(id)
    )]
    Inert {
        /// The rule's id.
        id: String,
        /// Where it stands.
        at: Position,
    },
    /// The system gave no random bytes.
    #[error("no random bytes for approval ids: {0}")]
    Random(#[from] getrandom::Error),
}

/// What came of a document that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It means what is in force already.
    Same,
    /// It is in force from now on.
    Replaced {
        /// The hash of the set before.
        from: Digest<PolicySet>,
        /// Its hash.
        to: Digest<PolicySet>,
    },
}

impl Gate {
    /// Judges by the document at `path`, which has to be a regular file.
    ///
    /// # Errors
    /// When that cannot come into force.
    pub(crate) fn load(path: &Path, bounds: Bounds) -> Result<Self, GateError> {
        let set = bounds.admit(parse::parse(&parse::read(path)?)?)?;
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce)?;
        Ok(Self {
            engine: Engine::new(set, nonce),
            begun: Instant::now(),
            bounds,
        })
    }

    /// Puts `document` in force for the Calls that come from now on, unless it
    /// means the same.
    ///
    /// # Errors
    /// When it cannot come into force. What is in force stays so.
    #[allow(dead_code, reason = "the document is read once so far")]
    pub(crate) fn take_over(&self, document: &[u8]) -> Result<Change, GateError> {
        let set = self.bounds.admit(parse::parse(document)?)?;
        let (from, to) = (self.policy_set_hash(), set.hash());
        if from == to {
            return Ok(Change::Same);
        }
        self.engine.replace(set);
        Ok(Change::Replaced { from, to })
    }

    /// Tells of which tools a Call would be denied outright, by a rule or by
    /// default. Nothing is counted, and no approval is asked for. It goes by the
    /// set that is in force now, also when another one takes its place: whoever
    /// asks twice about a tool is told the same.
    pub(crate) fn denials(&self) -> impl Fn(&str) -> bool + use<> {
        let set = self.engine.set();
        move |tool| match set.select(&Request::tool(tool)) {
            Some(rule) => rule.action == Action::Deny,
            None => set.default() == Default::Deny,
        }
    }

    /// What is done with a verdict.
    pub(crate) fn mode(&self) -> Mode {
        self.bounds.mode
    }

    fn judge(&self, requests: &[Request<'_>], refused: bool) -> Judgement {
        self.engine.judge(requests, refused, self.begun.elapsed())
    }

    /// The hash of the set in force.
    pub(crate) fn policy_set_hash(&self) -> Digest<PolicySet> {
        self.engine.set().hash()
    }
}

impl Bounds {
    fn admit(self, set: Set) -> Result<Set, GateError> {
        let found = set.hash();
        if let Some(pinned) = self.pinned
            && pinned != found
        {
            return Err(GateError::OtherThanPinned { pinned, found });
        }
        let inert = inert_under_wrap(&set);
        if let Some(rule) = inert.first()
            && !self.allow_inert
        {
            return Err(GateError::Inert {
                id: rule.id.clone(),
                at: rule.at,
            });
        }
        Ok(set)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! A gate for tests of whoever has one.

    use super::*;

    impl Gate {
        /// Judges by `document`.
        pub(crate) fn of(document: &str, mode: Mode) -> Self {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&file, document).unwrap();
            let bounds = Bounds {
                mode,
                ..Bounds::default()
            };
            Self::load(file.path(), bounds).unwrap()
        }

        /// Has its clock go forward by so much.
        pub(crate) fn advance(&mut self, by: std::time::Duration) {
            self.begun -= by;
        }
    }
}

#[cfg(test)]
mod tests;
