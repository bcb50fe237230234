//! Segments that have ended: taking them, and what they end with.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;

use super::MAX_FOLLOWS;
use super::dir::Locked;
use crate::chain::file::LockedFile;
use crate::chain::rows::{Contradiction, LineKind, LinePlace, RowsBackward, RowsForward, is_blank};
use crate::chain::writer::MAX_OPEN_BYTES;
use crate::sign::{PublicKey, Signature, verify_strict};
use crate::wire::decode::{Name, Row};
use crate::wire::digest::{self, Digest};
use crate::wire::facts::Follows;
use crate::wire::line::SCHEMA_VERSION;

/// A Segment whose writer is gone. Nobody else can claim it, append to it or
/// recover it as long as this lives.
pub(super) struct Claim {
    name: String,
    file: LockedFile,
}

impl Claim {
    /// Takes the Segment `name`, unless its writer, or another start that has
    /// claimed it, lives.
    pub(super) fn take(locked: &Locked<'_>, name: &str) -> Option<Self> {
        Some(Self {
            name: name.to_owned(),
            file: LockedFile::lock(locked.open_regular(name).ok()?).ok()?,
        })
    }

    /// What it ends with, flushed before it was read. Takes what reading costs
    /// from `walk`, in bytes.
    pub(super) fn tail(&self, walk: &mut u64) -> Tail {
        // A writer that was killed may not have come to flush it.
        match self
            .file
            .sync_data()
            .and_then(|()| read_tail(&self.file, walk))
        {
            Ok(tail) => tail,
            Err(_) => Tail::Unknown,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// What a Segment ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// The hash of its last Line.
    Line(Digest<digest::Line>),
    /// Nothing that could be named.
    Unknown,
    /// To be read by another start, since this one has read enough.
    Unread,
}

/// The last Line of what stays of `file` when it is recovered.
///
/// A torn last row is not counted, since the verifier does not count it
/// either. Neither is anything behind a row that a power cut left unreadable:
/// there `recover` cuts.
fn read_tail(file: &File, walk: &mut u64) -> io::Result<Tail> {
    let length = file.metadata()?.len();
    let mut last = [0];
    file.read_exact_at(&mut last, length.saturating_sub(1))?;
    let is_ended = last == *b"\n";
    let mut rows = if is_ended {
        RowsBackward::new(file, length)
    } else {
        RowsBackward::unended(file, length)
    };
    let mut tail: Option<Digest<digest::Line>> = None;
    let mut after: Option<LinePlace> = None;
    let mut is_last = true;
    while let Some(row) = rows.next_back()? {
        if is_blank(row.bytes) {
            continue;
        }
        let offset = row.offset;
        let line = LinePlace::of(&row).ok();
        if is_last {
            is_last = false;
            if let Some(line) = &line
                && line.kind == LineKind::Close
                && is_ended
            {
                return Ok(Tail::Line(line.hash));
            }
            let cost = length.min(WALK_BYTES);
            if *walk < cost && *walk < WALK_BYTES {
                return Ok(Tail::Unread);
            }
            *walk = walk.saturating_sub(cost);
        }
        let Some(line) = line else {
            (tail, after) = (None, None);
            continue;
        };
        if after.is_none_or(|after| !is_chained(&after, &line)) {
            tail = Some(line.hash);
        }
        // What precedes a Session in its file was flushed before it.
        if line.kind == LineKind::Open && line.check_first().is_ok() || length - offset > WALK_BYTES
        {
            break;
        }
        after = Some(line);
    }
    Ok(tail.map_or(Tail::Unknown, Tail::Line))
}

/// Whether the verifier goes on from `line` to `after`, be it with a doubt: so
/// that what it takes for the last Line is what is named here.
fn is_chained(after: &LinePlace, line: &LinePlace) -> bool {
    match after.check_after(line) {
        Ok(()) | Err(Contradiction::AfterClose) => true,
        Err(Contradiction::Seq { expected, found }) => found > expected,
        Err(_) => false,
    }
}

/// The names that the Segment in `file` follows; none when it does not begin
/// with an `open` Line of this version.
pub(super) fn read_open(file: &File) -> Option<Vec<String>> {
    // One that is longer is not ours, and shorter by a row when it is cut here.
    let max = MAX_OPEN_BYTES as u64 + 1;
    let mut input = BufReader::with_capacity(READ_BYTES, file.take(max));
    let mut start = input.fill_buf().ok()?.iter();
    if start.find(|b| !b.is_ascii_whitespace()) != Some(&b'{') {
        // No need to look for the end of such a row.
        return None;
    }
    let mut rows = RowsForward::new(input);
    loop {
        let row = rows.next().ok()??;
        if is_blank(row.bytes) {
            continue;
        }
        LinePlace::of(&row).ok()?.check_first().ok()?;
        let row = Row::read(row.bytes).ok()?;
        if row.integer(Name::SchemaVersion) != Some(SCHEMA_VERSION) {
            // By which rules its Lines are hashed is not known.
            return None;
        }
        let mut follows: Vec<Follows> = row.member(Name::Follows).unwrap_or_default();
        if !follows.is_empty() && !is_signed(&row) {
            // Nobody verifies it, so it anchors nothing.
            follows.clear();
        }
        follows.truncate(MAX_FOLLOWS);
        return Some(follows.into_iter().map(|f| f.segment).collect());
    }
}

/// Whether an `open` Line is signed under the key that it publishes.
fn is_signed(open: &Row<'_>) -> bool {
    let (Some(key), Some(signature)) = (open.string(Name::PublicKey), open.string(Name::Signature))
    else {
        return false;
    };
    let (Ok(key), Ok(signature)) = (PublicKey::from_hex(&key), Signature::from_hex(&signature))
    else {
        return false;
    };
    let mut input = Vec::new();
    open.push_signing_input(&mut input);
    verify_strict(&key, &input, &signature).is_ok()
}

/// How much is read at once of a Segment's beginning.
const READ_BYTES: usize = 4 << 10;

/// How much one start reads of Segments that were not closed, and how far from
/// its end one is read: far more than a system keeps in memory before it
/// writes it to the disk.
pub(super) const WALK_BYTES: u64 = 256 << 20;

#[cfg(test)]
mod tests;
