//! Rulings over the Segments of an audit directory (SPEC §7).
//!
//! Each Segment is a Chain file of its own. A later one names, in its signed
//! `open`, those that had ended when it began, and the hash of their last
//! Lines: so a Segment that was deleted, swapped or cut is seen, and the open
//! tail of a process that was killed is anchored.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::reason::{Indeterminate, Tampered};
use super::trust::Trust;
use super::{Report, Verdict, VerifiedAs};
use crate::wire::digest::{Digest, Line};

/// A Segment and what its own walk found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its bare file name.
    pub name: OsString,
    /// What the walk over it found, if it could be read; the verdict may be
    /// changed by the others.
    pub report: Option<Report>,
}

/// Lets the Segments of one directory bear witness to each other.
pub fn judge_segments(segments: &mut [Segment], trust: &Trust) {
    let by_name: BTreeMap<&OsStr, usize> = segments
        .iter()
        .enumerate()
        .map(|(i, segment)| (segment.name.as_os_str(), i))
        .collect();
    let mut rulings = Vec::new();
    for (i, later) in segments.iter().enumerate() {
        let follows = later.report.iter().flat_map(|report| &report.follows);
        for follows in follows {
            let named = by_name.get(OsStr::new(&follows.segment));
            let Some((&earlier, tail)) = named.zip(follows.tail) else {
                rulings.push((i, Ruling::Missing(follows.segment.clone())));
                continue;
            };
            if let Some(ruling) = judge(&segments[earlier], &follows.segment, tail, &later.name) {
                rulings.push((earlier, ruling));
            }
        }
    }
    // A contradiction outranks an absence, and that what an anchor makes of a
    // file: so the absence is weighed once the anchors are.
    rulings.sort_by_key(|(_, ruling)| match ruling {
        Ruling::Contradicted(_) => 0,
        Ruling::Anchored => 1,
        Ruling::Missing(_) => 2,
    });
    for (i, ruling) in rulings {
        let Segment { name, report } = &mut segments[i];
        if let Some(report) = report {
            apply(report, name, ruling, trust);
        }
    }
}

/// What `later` says of a Segment that it follows; nothing when the Segment
/// was not judged to its end.
fn judge(segment: &Segment, name: &str, expected: Digest<Line>, later: &OsStr) -> Option<Ruling> {
    let report = segment
        .report
        .as_ref()
        .filter(|report| !report.limit_met && !report.newer)?;
    let found = report.head.unwrap_or(Digest::GENESIS);
    Some(if found == expected {
        Ruling::Anchored
    } else {
        Ruling::Contradicted(Tampered::SegmentTail {
            segment: name.to_owned(),
            later: later.to_string_lossy().into_owned(),
            found,
            expected,
        })
    })
}

enum Ruling {
    Anchored,
    Missing(String),
    Contradicted(Tampered),
}

fn apply(report: &mut Report, name: &OsStr, ruling: Ruling, trust: &Trust) {
    match (ruling, &report.verdict) {
        (_, Verdict::Tampered(_)) => {}
        (Ruling::Contradicted(reason), _) => {
            report.verdict = Verdict::Tampered(reason);
            report.in_flight = None;
        }
        (Ruling::Missing(segment), Verdict::Verified(_)) => {
            report.verdict = Verdict::Indeterminate(Indeterminate::SegmentMissing {
                segment,
                later: name.to_string_lossy().into_owned(),
            });
        }
        (Ruling::Anchored, Verdict::Indeterminate(Indeterminate::UnanchoredTail { .. })) => {
            let unmatched = report.in_flight.take().map_or(0, |calls| calls.count);
            report.notes.unmatched_intents += unmatched;
            report.verdict = Verdict::Verified(VerifiedAs::of(trust, &report.keys));
        }
        (Ruling::Missing(_) | Ruling::Anchored, _) => {}
    }
}
