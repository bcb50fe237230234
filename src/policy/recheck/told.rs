//! What a recheck says, and how it is spelled (SPEC §14.9).

use std::fmt;

use super::MAX_ROW_BYTES;
use crate::policy::set::Rule;
use crate::wire::canon::MAX_DEPTH;
use crate::wire::decode::RowFault;
use crate::wire::escape::{Escaped, Shortened};
use crate::wire::outcome::Policy;

/// What is told of a record, in file order.
#[derive(Debug)]
pub(crate) enum Told<'s> {
    /// An outcome.
    Row(Row<'s>),
    /// A row that was not read: whatever it is of is missing.
    Unread(Unread),
}

/// One recorded outcome.
#[derive(Clone, Debug)]
pub(crate) struct Row<'s> {
    /// The row of the file, from 1, blank ones counted.
    pub(crate) line: u64,
    /// Ordinal of its Session in the file, from 0.
    pub(crate) session: u64,
    /// Position in the Session; 0 where it carries none.
    pub(crate) seq: u64,
    /// The Call's.
    pub(crate) call_id: Option<Shortened>,
    /// The tool, as recorded.
    pub(crate) tool_id: Option<Shortened>,
    /// What was decided, where the record says.
    pub(crate) was: Option<Status>,
    /// The rule that decided.
    pub(crate) was_rule: Option<Shortened>,
    /// No set was there to judge it: what was allowed was relayed.
    pub(crate) had_no_policy: bool,
    /// What would be decided, where that can be told.
    pub(crate) now: Option<Now<'s>>,
    /// The difference.
    pub(crate) clause: Clause,
}

/// A verdict of the POLICY station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The Call may go on.
    Allowed,
    /// It may not.
    Denied,
    /// It is one too many.
    RateLimited,
    /// A human has to decide first.
    PendingApproval,
}

/// A verdict of the set, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now<'s> {
    /// The verdict.
    pub(crate) status: Status,
    /// What gives it.
    pub(crate) by: By<'s>,
}

/// What decides.
#[derive(Clone, Copy, Debug)]
pub(crate) enum By<'s> {
    /// A rule of the set.
    Rule(&'s Rule),
    /// Its default.
    Default,
    /// No set: wrap refuses what it cannot understand.
    Wrap,
}

/// The difference that the set makes to a Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    /// None.
    Unchanged(Status),
    /// It would be refused.
    NewlyBlocked {
        /// What was decided.
        was: Status,
        /// What would be.
        now: Status,
    },
    /// It would go on.
    NewlyAllowed {
        /// What was decided.
        was: Status,
    },
    /// It would wait for a human.
    NewlyParked {
        /// What was decided.
        was: Status,
    },
    /// It cannot be told.
    Indeterminate(Reason),
}

/// Why the difference cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A Line of another version does not say what judged it.
    UnknownPolicySetHash,
    /// The outcome cannot be read.
    NoBinding,
    /// A rate limit decides, and the record does not say when Calls came.
    RateLimitUnevaluable,
    /// No set judged the Call.
    NotEvaluated,
}

/// A row that was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unread {
    /// The row of the file, from 1, blank ones counted.
    pub(crate) line: u64,
    /// Why.
    pub(crate) why: Why,
}

/// Why a row was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// No two readers would read the same.
    Row(RowFault),
    /// Longer than [`MAX_ROW_BYTES`].
    TooLong,
    /// It is an outcome of this version, and lacks what an outcome has.
    Outcome(String),
}

/// How many outcomes came to which clause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// All of them.
    pub(crate) calls: u64,
    /// [`Clause::Unchanged`].
    pub(crate) unchanged: u64,
    /// [`Clause::NewlyBlocked`].
    pub(crate) newly_blocked: u64,
    /// [`Clause::NewlyAllowed`].
    pub(crate) newly_allowed: u64,
    /// [`Clause::NewlyParked`].
    pub(crate) newly_parked: u64,
    /// [`Clause::Indeterminate`].
    pub(crate) indeterminate: u64,
}

impl Counts {
    /// Counts one more.
    pub(crate) fn add(&mut self, clause: Clause) {
        self.calls += 1;
        *match clause {
            Clause::Unchanged(_) => &mut self.unchanged,
            Clause::NewlyBlocked { .. } => &mut self.newly_blocked,
            Clause::NewlyAllowed { .. } => &mut self.newly_allowed,
            Clause::NewlyParked { .. } => &mut self.newly_parked,
            Clause::Indeterminate(_) => &mut self.indeterminate,
        } += 1;
    }

    /// How many would come out otherwise.
    pub(crate) fn changed(&self) -> u64 {
        self.newly_blocked + self.newly_allowed + self.newly_parked
    }
}

/// As one line of text.
impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("call ")?;
        match &self.call_id {
            Some(call_id) => call_id.fmt(f)?,
            None => f.write_str("-")?,
        }
        let (session, seq, clause) = (self.session, self.seq, self.clause);
        write!(f, " session {session} seq {seq}: {clause}")
    }
}

impl Clause {
    pub(super) fn between(was: Status, now: Status) -> Self {
        let refuses = |status| matches!(status, Status::Denied | Status::RateLimited);
        match now {
            _ if was == now || refuses(was) && refuses(now) => Self::Unchanged(was),
            Status::Allowed => Self::NewlyAllowed { was },
            Status::PendingApproval => Self::NewlyParked { was },
            Status::Denied | Status::RateLimited => Self::NewlyBlocked { was, now },
        }
    }

    /// Its first word.
    pub(crate) fn token(&self) -> &'static str {
        match self {
            Self::Unchanged(_) => "unchanged",
            Self::NewlyBlocked { .. } => "newly_blocked",
            Self::NewlyAllowed { .. } => "newly_allowed",
            Self::NewlyParked { .. } => "newly_parked",
            Self::Indeterminate(_) => "indeterminate",
        }
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())?;
        match self {
            Self::Unchanged(status) => write!(f, " {}", status.name()),
            Self::NewlyBlocked { was, now } => {
                write!(f, " was={} now={}", was.name(), now.name())
            }
            Self::NewlyAllowed { was } => write!(f, " was={} now=allowed", was.name()),
            Self::NewlyParked { was } => write!(f, " was={}", was.name()),
            Self::Indeterminate(reason) => write!(f, " {}", reason.token()),
        }
    }
}

impl By<'_> {
    /// Its kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Rule(_) => "rule",
            Self::Default => "default",
            Self::Wrap => "wrap",
        }
    }

    /// The id of the rule, if it is one. Escaped already.
    pub(crate) fn rule(&self) -> Option<String> {
        match self {
            Self::Rule(rule) => Some(Escaped(&rule.id).to_string()),
            Self::Default | Self::Wrap => None,
        }
    }
}

impl Status {
    /// As a Line spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::RateLimited => "rate_limited",
            Self::PendingApproval => "pending_approval",
        }
    }
}

impl From<&Policy> for Status {
    fn from(policy: &Policy) -> Self {
        match policy {
            Policy::Allowed => Self::Allowed,
            Policy::Denied { .. } => Self::Denied,
            Policy::RateLimited { .. } => Self::RateLimited,
            Policy::PendingApproval { .. } => Self::PendingApproval,
        }
    }
}

impl Reason {
    /// The word that is printed.
    pub(crate) fn token(self) -> &'static str {
        match self {
            Self::UnknownPolicySetHash => "unknown_policy_set_hash",
            Self::NoBinding => "no_binding",
            Self::RateLimitUnevaluable => "rate_limit_unevaluable",
            Self::NotEvaluated => "not_evaluated",
        }
    }
}

impl Why {
    /// A word for programs.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Row(RowFault::NotObject) => "not_an_object",
            Self::Row(RowFault::Duplicate(_)) => "duplicate_member",
            Self::Row(RowFault::TooDeep) => "too_deep",
            // Lines are read outside of the value space too.
            Self::Row(RowFault::InvalidUtf8(_) | RowFault::Syntax(_) | RowFault::ValueSpace(_)) => {
                "not_json"
            }
            Self::TooLong => "too_long",
            Self::Outcome(_) => "not_an_outcome",
        }
    }
}

/// Escaped already.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(RowFault::NotObject) => f.write_str("is not a JSON object, skipped"),
            Self::Row(RowFault::Duplicate(name)) => {
                write!(f, "has two members `{}`, skipped", Escaped(name))
            }
            Self::Row(RowFault::TooDeep) => {
                write!(f, "is nested deeper than {MAX_DEPTH} levels, skipped")
            }
            Self::Row(_) => f.write_str("is not JSON, skipped"),
            Self::TooLong => write!(
                f,
                "is longer than {} MiB; nothing behind it was read",
                MAX_ROW_BYTES >> 20
            ),
            Self::Outcome(why) => {
                write!(f, "is not a readable outcome record: {}", Escaped(why))
            }
        }
    }
}
