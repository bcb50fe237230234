//! Why a Chain is not Verified: every reason and its exact text (SPEC §8).
//!
//! The texts are API. Text that the file's author chose is escaped.

use thiserror::Error;

use crate::sign::SignatureFault;
use crate::wire::canon::{MAX_DEPTH, MAX_INTEGER};
use crate::wire::decode::RowFault;
use crate::wire::digest::{Digest, Line, PublicKey};
use crate::wire::escape::{Escaped, Shortened};

/// A position in a Chain file: `seq` restarts in every Session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Ordinal of the Session in the file, from 0.
    pub session: u64,
    /// Position in the Session, from 0.
    pub seq: u64,
}

/// How the file contradicts itself, or what was expected of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Tampered {
    /// A Line does not chain to the one before it.
    #[error("line at session {} seq {} chains to {found}, but the line before it hashes to {expected}", at.session, at.seq)]
    ChainBroken {
        /// The Line.
        at: Position,
        /// Its `prev_hash`.
        found: Digest<Line>,
        /// The hash of the Line before it.
        expected: Digest<Line>,
    },
    /// A `seq` was repeated or went backwards.
    #[error("session {session} expected seq {expected}, found {found}")]
    SeqOutOfOrder {
        /// The Session.
        session: u64,
        /// The next position.
        expected: u64,
        /// The Line's.
        found: u64,
    },
    /// A signature is missing or does not hold.
    #[error("line at session {} seq {}: {fault}", at.session, at.seq)]
    Signature {
        /// The Line.
        at: Position,
        /// What is wrong.
        fault: LineSignatureFault,
    },
    /// An `open` names another tail than the Session before it has.
    #[error(
        "session {session} back-references {found}, but the previous session ends at {expected}"
    )]
    SessionBoundary {
        /// The Session that opens.
        session: u64,
        /// Its `prev_session_tail`.
        found: Digest<Line>,
        /// The hash of the last Line before it.
        expected: Digest<Line>,
    },
    /// An `open` that is not the first names no tail.
    #[error(
        "session {session} carries no prev_session_tail, but the previous session ends at {expected}"
    )]
    NoBackReference {
        /// The Session that opens.
        session: u64,
        /// The hash of the last Line before it.
        expected: Digest<Line>,
    },
    /// A Line outside the format.
    #[error("line {line}: {fault}")]
    Malformed {
        /// Its number among the rows that are not blank, from 1.
        line: u64,
        /// What is wrong.
        fault: FormatFault,
    },
    /// A Session was opened under a key that the caller did not supply.
    #[error("session opened at session {} seq {} publishes a key with fingerprint {key_id}, which is not in the supplied trust store (--key takes the 64-hex public key, not this fingerprint)", at.session, at.seq)]
    UntrustedKey {
        /// The `open` Line.
        at: Position,
        /// The fingerprint of its key.
        key_id: Digest<PublicKey>,
    },
    /// A second decision for one approval.
    #[error("line at session {} seq {} decides approval {approval_id} a second time", at.session, at.seq)]
    DuplicateDecision {
        /// The second decision.
        at: Position,
        /// What it decides.
        approval_id: Shortened,
    },
    /// A Line of a known type behind its Session's last one.
    #[error("line at session {} seq {} follows the close of its session", at.session, at.seq)]
    AfterClose {
        /// The Line.
        at: Position,
    },
    /// The Line that the caller knows of is not there.
    #[error("expected line {hash} is not in this input")]
    HeadAbsent {
        /// Its hash.
        hash: Digest<Line>,
    },
    /// A Segment does not end where a later one says.
    #[error(
        "segment {} ends at {found}, but {} follows it at {expected}",
        Escaped(segment),
        Escaped(later)
    )]
    SegmentTail {
        /// The Segment's file name.
        segment: String,
        /// The file name of the one that follows it.
        later: String,
        /// The hash of its last Line.
        found: Digest<Line>,
        /// The tail that the later one names.
        expected: Digest<Line>,
    },
}

impl Tampered {
    /// A stable token for the reason, as `--format json` has it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ChainBroken { .. } => "chain-broken",
            Self::SeqOutOfOrder { .. } => "seq-out-of-order",
            Self::Signature { .. } => "signature",
            Self::SessionBoundary { .. } | Self::NoBackReference { .. } => "session-boundary",
            Self::Malformed {
                fault: FormatFault::SchemaVersion(_) | FormatFault::NoSchemaVersion,
                ..
            } => "schema-version",
            Self::Malformed { .. } => "malformed",
            Self::UntrustedKey { .. } => "untrusted-key",
            Self::DuplicateDecision { .. } => "duplicate-decision",
            Self::AfterClose { .. } => "after-close",
            Self::HeadAbsent { .. } => "head-absent",
            Self::SegmentTail { .. } => "segment-tail",
        }
    }

    /// Where in the file, when the reason has a position.
    pub fn at(&self) -> Option<Position> {
        match *self {
            Self::ChainBroken { at, .. }
            | Self::Signature { at, .. }
            | Self::UntrustedKey { at, .. }
            | Self::DuplicateDecision { at, .. }
            | Self::AfterClose { at } => Some(at),
            Self::SeqOutOfOrder { session, found, .. } => Some(Position {
                session,
                seq: found,
            }),
            Self::SessionBoundary { session, .. } | Self::NoBackReference { session, .. } => {
                Some(Position { session, seq: 0 })
            }
            Self::Malformed { .. } | Self::HeadAbsent { .. } | Self::SegmentTail { .. } => None,
        }
    }
}

/// What is wrong with the signature of a Line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LineSignatureFault {
    /// There is none, or no `key_id` beside it, or either is not in its wire
    /// form.
    #[error("line carries no signature")]
    Absent,
    /// It is by another key than the Session's.
    #[error("line was signed under key {found}, not {expected}")]
    OtherKey {
        /// The Line's `key_id`.
        found: Digest<PublicKey>,
        /// The fingerprint of the Session's key.
        expected: Digest<PublicKey>,
    },
    /// It does not hold.
    #[error("{0}")]
    Invalid(#[from] SignatureFault),
}

/// What makes a row no Line of a Chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatFault {
    /// The row itself.
    Row(RowFault),
    /// `line_type` is missing or not a string.
    NoLineType,
    /// `seq` is missing or not an integer.
    NoSeq,
    /// `prev_hash` is missing or not a digest.
    NoPrevHash,
    /// `schema_version` is missing or not an integer.
    NoSchemaVersion,
    /// `schema_version` is an older one.
    SchemaVersion(u64),
    /// An `open` with a predecessor in its Session.
    OpenNotGenesis,
    /// An `open` without `public_key`, or with one that is not 64 hex.
    OpenWithoutKey,
    /// A Line before the first `open`.
    NoOpen,
    /// A `decision` that names no approval.
    NoApprovalId,
}

impl std::fmt::Display for FormatFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // The names in it are the author's.
            Self::Row(RowFault::Duplicate(name)) => {
                write!(f, "duplicate member `{}`", Escaped(name))
            }
            Self::Row(RowFault::ValueSpace(offence)) => {
                let escaped = offence.with_path(|path| Escaped(path).to_string());
                RowFault::ValueSpace(escaped).fmt(f)
            }
            Self::Row(fault) => fault.fmt(f),
            Self::NoLineType => f.write_str("no line_type"),
            Self::NoSeq => f.write_str("no seq"),
            Self::NoPrevHash => f.write_str("no prev_hash"),
            Self::NoSchemaVersion => f.write_str("no schema_version"),
            Self::SchemaVersion(v) => write!(f, "schema_version {v} is not 2"),
            Self::OpenNotGenesis => f.write_str("open line does not anchor on the genesis digest"),
            Self::OpenWithoutKey => f.write_str("open line carries no public key"),
            Self::NoOpen => f.write_str("chain does not begin with an open line"),
            Self::NoApprovalId => f.write_str("decision carries no approval_id"),
        }
    }
}

/// What could not be decided.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Indeterminate {
    /// A Line type that this verifier does not know.
    #[error("unknown line type `{}` at session {} seq {}, newer emitter", Escaped(token), at.session, at.seq)]
    UnknownLineType {
        /// The emitter's token.
        token: String,
        /// The Line.
        at: Position,
    },
    /// A Line type whose meaning is not defined yet.
    #[error("reserved checkpoint line at session {} seq {}, not defined by v0", at.session, at.seq)]
    ReservedCheckpoint {
        /// The Line.
        at: Position,
    },
    /// The last row does not parse.
    #[error("final line {line} does not parse; torn write")]
    TornFinalLine {
        /// Its number among the rows that are not blank, from 1.
        line: u64,
    },
    /// The last Session has no `close`.
    #[error(
        "session {session} has no close record and nothing anchors beyond it; {in_flight} call(s) in flight"
    )]
    UnanchoredTail {
        /// The Session.
        session: u64,
        /// How many Calls have an intent and no outcome.
        in_flight: u64,
    },
    /// A position in the Session was never written.
    #[error(
        "session {session} skips seq {expected}..{found} with the chain intact; a write did not land"
    )]
    MissingLine {
        /// The Session.
        session: u64,
        /// The next position.
        expected: u64,
        /// The Line's.
        found: u64,
    },
    /// Nothing there.
    #[error("no lines to verify")]
    Empty,
    /// A Line of a later version of the format.
    #[error("schema_version {version} at session {} seq {}, newer emitter", at.session, at.seq)]
    NewerSchema {
        /// The Line's.
        version: u64,
        /// The Line.
        at: Position,
    },
    /// Leading Sessions are missing.
    #[error("first session back-references {tail}; earlier sessions are not in this file")]
    MissingHead {
        /// The tail that the first `open` names.
        tail: Digest<Line>,
    },
    /// A row that a verifier does not follow.
    #[error("line {line} exceeds the verifier limit of {limit}")]
    Limit {
        /// Its number among the rows that are not blank, from 1.
        line: u64,
        /// Which limit.
        limit: Limit,
    },
    /// The Line that the caller knows of was not met before a limit.
    #[error("expected line {hash} is not in this input")]
    HeadNotReached {
        /// Its hash.
        hash: Digest<Line>,
    },
    /// A Segment that a later one follows is missing.
    #[error(
        "segment {}, which {} follows, is not here",
        Escaped(segment),
        Escaped(later)
    )]
    SegmentMissing {
        /// The Segment's file name.
        segment: String,
        /// The file name of the one that follows it.
        later: String,
    },
}

impl Indeterminate {
    /// A stable token for the reason, as `--format json` has it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownLineType { .. } => "unknown-line-type",
            Self::ReservedCheckpoint { .. } => "reserved-checkpoint",
            Self::TornFinalLine { .. } => "torn-final-line",
            Self::UnanchoredTail { .. } => "unanchored-tail",
            Self::MissingLine { .. } => "missing-line",
            Self::Empty => "empty",
            Self::NewerSchema { .. } => "newer-schema",
            Self::MissingHead { .. } => "missing-head",
            Self::Limit { .. } => "limit",
            Self::HeadNotReached { .. } => "head-absent",
            Self::SegmentMissing { .. } => "segment-missing",
        }
    }

    /// Where in the file, when the reason has a position.
    pub fn at(&self) -> Option<Position> {
        match *self {
            Self::UnknownLineType { at, .. }
            | Self::ReservedCheckpoint { at }
            | Self::NewerSchema { at, .. } => Some(at),
            Self::MissingLine { session, found, .. } => Some(Position {
                session,
                seq: found,
            }),
            Self::MissingHead { .. } => Some(Position { session: 0, seq: 0 }),
            _ => None,
        }
    }
}

/// What a verifier does not follow, since its own memory has an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Limit {
    /// The row has more than [`super::MAX_ROW_BYTES`] bytes.
    #[error("16 MiB")]
    Bytes,
    /// The row nests deeper than [`MAX_DEPTH`].
    #[error("{MAX_DEPTH} levels")]
    Levels,
    /// The file's `open` Lines together follow more Segments than
    /// [`super::MAX_FOLLOWS`].
    #[error("{} followed segments", super::MAX_FOLLOWS)]
    Follows,
}

// The texts above name both bounds.
const _: () = assert!(MAX_DEPTH == 64 && MAX_INTEGER == 9_007_199_254_740_991);
const _: () = assert!(super::MAX_ROW_BYTES == 16 << 20);
