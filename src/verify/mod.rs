//! The offline verifier (SPEC §8).
//!
//! Same bytes, same verdict: whatever the number of threads, the size of the
//! chunks read, or the speed of the input. No input is held in memory whole.
//!
//! ```
//! use aegis::verify::{Options, Verdict, verify};
//!
//! let report = verify(Box::new(std::io::empty()), &Options::default())?;
//! assert_eq!(report.verdict.to_string(), "Indeterminate: no lines to verify");
//! assert_eq!(report.verdict.exit_code(), 3);
//! # Ok::<(), std::io::Error>(())
//! ```

mod examine;
mod parallel;
mod reason;
mod require;
mod seen;
mod segments;
mod spill;
mod trust;
mod walk;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub use reason::{FormatFault, Indeterminate, Limit, LineSignatureFault, Position, Tampered};
pub use require::{Found, Required, Requirement, RequirementError, Unmet};
pub use segments::{Segment, judge_segments};
pub use trust::{PinnedKeys, StoreError, Trust, read_store};

use crate::wire::digest::{Digest, Line, PublicKey};
use crate::wire::escape::Shortened;
use examine::KeyRing;
use require::Asked;
use walk::{Keep, Walk};

/// A row longer than this is not followed.
pub const MAX_ROW_BYTES: usize = 16 << 20;

/// How many Calls in flight are named.
pub const MAX_IN_FLIGHT_NAMES: usize = 1000;

/// How many unmet requirements are told.
pub const MAX_UNMET: usize = 1000;

/// How many followed Segments are remembered of one file.
pub const MAX_FOLLOWS: usize = 1 << 16;

/// How a file is to be verified.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which keys are accepted.
    pub trust: Trust,
    /// A Line that the caller knows to have been written.
    pub expect_head: Option<Digest<Line>>,
    /// What every Session must say of itself: see [`Report::required`].
    pub require: Vec<Requirement>,
    /// Threads that examine rows.
    pub threads: usize,
    /// Bytes read at a time.
    pub chunk_bytes: usize,
    /// Counts the bytes read so far.
    pub progress: Arc<AtomicU64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            trust: Trust::Unpinned,
            expect_head: None,
            require: Vec::new(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            chunk_bytes: CHUNK_BYTES,
            progress: Arc::default(),
        }
    }
}

/// Verifies one Chain file, read to its end or to the first contradiction.
///
/// # Errors
/// When the input cannot be read, or when a hostile file needs a temporary
/// file that cannot be written. There is no verdict then.
pub fn verify(input: Box<dyn io::Read + Send>, options: &Options) -> io::Result<Report> {
    verify_keeping(
        input,
        options,
        Keep {
            approvals: KEEP_APPROVALS,
            calls: KEEP_CALLS,
        },
    )
}

fn verify_keeping(
    input: Box<dyn io::Read + Send>,
    options: &Options,
    keep: Keep,
) -> io::Result<Report> {
    let ring = Arc::new(KeyRing::new());
    let mut walk = Walk::new(
        options.trust.clone(),
        options.expect_head,
        Asked::new(&options.require),
        Arc::clone(&ring),
        keep,
    );
    parallel::drive(
        input,
        options.chunk_bytes,
        options.threads,
        &ring,
        Arc::clone(&options.progress),
        |rows| {
            for row in rows {
                if walk.take(row, keep)?.is_break() {
                    return Ok(std::ops::ControlFlow::Break(()));
                }
            }
            Ok(std::ops::ControlFlow::Continue(()))
        },
    )?;
    walk.finish()
}

/// What a walk found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The verdict.
    pub verdict: Verdict,
    /// Fingerprints of the keys that `open` Lines publish, by first sight.
    pub keys: Vec<Digest<PublicKey>>,
    /// The highest position that a valid signature covers.
    pub coverage: Option<Position>,
    /// Calls without an outcome, when the tail is what is undecided.
    pub in_flight: Option<InFlight>,
    /// How many Sessions were begun.
    pub sessions: u64,
    /// How many rows that are not blank were walked over.
    pub lines: u64,
    /// Hash of the last Line that has a place in the Chain.
    pub head: Option<Digest<Line>>,
    /// What is odd and decides nothing.
    pub notes: Notes,
    /// Segments that verified `open` Lines follow, their names cut at 1 KiB,
    /// which no file's name reaches.
    pub follows: Vec<Followed>,
    /// Whether the Line that the caller expects was met.
    pub expected_head_met: bool,
    /// Whether the walk stopped at a row that is not followed.
    pub limit_met: bool,
    /// Whether a later version began the file, so that no Line was judged.
    pub newer: bool,
    /// Of all Sessions, whatever the verdict.
    pub(crate) required: Option<Required>,
}

impl Report {
    /// Which requirements are not met, where that was asked and can be told:
    /// the record is Verified under a pin. Nothing is met where nothing can be
    /// told.
    pub fn required(&self) -> Option<&Required> {
        match self.verdict {
            Verdict::Verified(VerifiedAs::PinnedTo(_) | VerifiedAs::Pinned) => {
                self.required.as_ref()
            }
            _ => None,
        }
    }
}

/// The three states that a file can be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every Line parsed, chained and, where required, verified, and the file
    /// ends with a verified `close`.
    Verified(VerifiedAs),
    /// The file contradicts itself, or what was expected of it.
    Tampered(Tampered),
    /// Nothing contradicts the file, but something could not be decided.
    Indeterminate(Indeterminate),
}

impl Verdict {
    /// 0 Verified, 1 Tampered, 3 Indeterminate.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Verified(_) => 0,
            Self::Tampered(_) => 1,
            Self::Indeterminate(_) => 3,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verified(VerifiedAs::Unpinned) => f.write_str("Verified (unpinned)"),
            Self::Verified(VerifiedAs::PinnedTo(key_id)) => {
                write!(f, "Verified (pinned to {key_id})")
            }
            Self::Verified(VerifiedAs::Pinned) => f.write_str("Verified (pinned)"),
            Self::Tampered(reason) => write!(f, "Tampered: {reason}"),
            Self::Indeterminate(reason) => write!(f, "Indeterminate: {reason}"),
        }
    }
}

/// What a Verified file proves: see SPEC §8.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifiedAs {
    /// Internal consistency, under keys that the file itself publishes.
    Unpinned,
    /// Provenance: this is its only key, and the caller supplied it.
    PinnedTo(Digest<PublicKey>),
    /// Provenance: the caller supplied each of its keys.
    Pinned,
}

impl VerifiedAs {
    /// What a walk under this pin proves of a file with these keys.
    fn of(trust: &Trust, keys: &[Digest<PublicKey>]) -> Self {
        match (trust, keys) {
            (Trust::Unpinned, _) => Self::Unpinned,
            (_, [key_id]) => Self::PinnedTo(*key_id),
            _ => Self::Pinned,
        }
    }
}

/// A Segment that an `open` Line says it follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// Its bare file name; empty where the Line names none.
    pub segment: String,
    /// The hash of its last Line; absent where the Line has none in wire form.
    pub tail: Option<Digest<Line>>,
}

/// Calls that have an intent and no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// How many.
    pub count: u64,
    /// The first [`MAX_IN_FLIGHT_NAMES`], in file order.
    pub call_ids: Vec<Shortened>,
}

/// Oddities that are worth a word and decide nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Intents without an outcome in Sessions that have ended.
    pub unmatched_intents: u64,
    /// Outcomes without an intent before them in their Session.
    pub outcomes_without_intent: u64,
    /// Intents that carry a signature, which is not looked at.
    pub signed_intents: u64,
    /// Intents and outcomes without a `call_id`.
    pub calls_without_id: u64,
    /// Rows that are not written in canonical form.
    pub non_canonical_rows: u64,
}

/// Read at a time: large enough that threads seldom meet, small enough that
/// their chunks fit in a cache.
const CHUNK_BYTES: usize = 256 << 10;

/// Approvals kept in memory, about 12 MiB of them.
const KEEP_APPROVALS: usize = 1 << 18;

/// Open Calls kept in memory: far more than a correct emitter has.
const KEEP_CALLS: usize = 1 << 15;
