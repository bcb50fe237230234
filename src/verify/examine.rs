//! What can be said of a row on its own: everything but its place in the
//! Chain. Rows are examined in any order, by any thread.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Followed;
use super::reason::{FormatFault, Limit};
use super::require::Claims;
use super::seen::NameRef;
use crate::sign::{KeyCache, PublicKey, Signature, SignatureFault};
use crate::wire::decode::{Name, Row, RowFault};
use crate::wire::digest::{self, Digest};
use crate::wire::line::SCHEMA_VERSION;

/// A row that is not blank.
pub(super) enum Examined {
    /// Not a Line.
    Fault(FormatFault),
    /// Not JSON: a torn write on the last row, a fault on any other.
    Unparsable(RowFault),
    /// Not followed any further.
    Limit(Limit),
    /// A Line.
    Line(Box<Line>),
}

/// What every Line says of its place.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) seq: u64,
    pub(super) prev_hash: Digest<digest::Line>,
    pub(super) hash: Digest<digest::Line>,
}

/// A Line of this version or a later one.
pub(super) struct Line {
    pub(super) version: u64,
    pub(super) place: Place,
    pub(super) kind: Kind,
    pub(super) auth: Auth,
    /// Whether the row was not written in canonical form.
    pub(super) foreign: bool,
}

/// What a Line is, and what the walk needs of it.
pub(super) enum Kind {
    Open(Open),
    Intent(Option<NameRef>),
    Outcome(Option<NameRef>),
    Decision(Option<NameRef>),
    Close,
    Checkpoint,
    Unknown(String),
}

pub(super) struct Open {
    pub(super) public_key: Option<PublicKey>,
    pub(super) prev_session_tail: Option<Digest<digest::Line>>,
    pub(super) follows: Vec<Followed>,
    /// Boxed, since most Lines are no `open`.
    pub(super) claims: Box<Claims>,
}

/// How a Line is signed.
pub(super) struct Auth {
    pub(super) key_id: Option<Digest<digest::PublicKey>>,
    pub(super) signature: Presence,
}

pub(super) enum Presence {
    Absent,
    /// A member `signature` that is no signature.
    Unusable,
    /// Judged under the key whose fingerprint the Line's `key_id` is.
    Judged(Result<(), SignatureFault>),
    /// That key was not known here: the walk has to judge it.
    Open(Box<(Vec<u8>, Signature)>),
}

/// The keys met so far, by fingerprint, and their tables. A fingerprint is the
/// hash of its key, so whoever adds one cannot mislead the others.
pub(super) struct KeyRing {
    keys: RwLock<HashMap<Digest<digest::PublicKey>, PublicKey>>,
    pub(super) cache: KeyCache,
}

impl KeyRing {
    pub(super) fn new() -> Self {
        Self {
            keys: RwLock::default(),
            cache: KeyCache::new(),
        }
    }

    fn learn(&self, key: PublicKey) {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        // A file with very many keys is judged by the walk, which knows the
        // key of each Session anyway.
        if keys.len() < MAX_RING_KEYS {
            keys.insert(key.key_id(), key);
        }
    }

    fn find(&self, key_id: &Digest<digest::PublicKey>) -> Option<PublicKey> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(key_id).copied()
    }
}

/// Examines the rows of `chunk`, which are separated by newlines, and hands
/// out each that is not blank.
pub(super) fn examine(chunk: &[u8], ring: &KeyRing) -> Vec<Examined> {
    let mut batch = Batch::default();
    let mut rows = Vec::new();
    for row in rows_of(chunk) {
        // The bound comes first: a blank row past it was not read to its end.
        if row.len() <= super::MAX_ROW_BYTES
            && row.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r'))
        {
            continue;
        }
        let examined = examine_row(row, ring, &mut batch, rows.len());
        // Behind such a row, and behind one that shows that an unparsable row
        // was not the last, nothing of this chunk can matter.
        let last = matches!(examined, Examined::Fault(_) | Examined::Limit(_))
            || matches!(rows.last(), Some(Examined::Unparsable(_)));
        rows.push(examined);
        if last {
            break;
        }
    }
    batch.judge(ring, &mut rows);
    rows
}

/// What stands between newlines, and before the first and behind the last.
fn rows_of(chunk: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr::memchr_iter(b'\n', chunk).chain([chunk.len()]);
    let mut start = 0;
    ends.map(move |end| {
        let row = &chunk[start..end];
        start = end + 1;
        row
    })
}

fn examine_row(row: &[u8], ring: &KeyRing, batch: &mut Batch, index: usize) -> Examined {
    if row.len() > super::MAX_ROW_BYTES {
        return Examined::Limit(Limit::Bytes);
    }
    let row = match Row::read(row) {
        Ok(row) => row,
        Err(RowFault::TooDeep) => return Examined::Limit(Limit::Levels),
        Err(fault) if fault.is_unparsable() => return Examined::Unparsable(fault),
        Err(fault) => return Examined::Fault(FormatFault::Row(fault)),
    };
    match place(&row) {
        Err(fault) => Examined::Fault(fault),
        Ok((_, _, version)) if version < SCHEMA_VERSION => {
            Examined::Fault(FormatFault::SchemaVersion(version))
        }
        Ok((line_type, place, version)) => {
            let kind = kind(&row, line_type);
            if let Kind::Open(Open {
                public_key: Some(key),
                ..
            }) = kind
            {
                ring.learn(key);
            }
            Examined::Line(Box::new(Line {
                version,
                place,
                auth: auth(&row, ring, batch, index),
                kind,
                foreign: row.is_foreign(),
            }))
        }
    }
}

/// What every Line must carry (SPEC §5), in the order in which it is missed.
fn place(row: &Row<'_>) -> Result<(String, Place, u64), FormatFault> {
    let line_type = row.string(Name::LineType).ok_or(FormatFault::NoLineType)?;
    let seq = row.integer(Name::Seq).ok_or(FormatFault::NoSeq)?;
    let prev_hash = row.digest(Name::PrevHash).ok_or(FormatFault::NoPrevHash)?;
    let version = row
        .integer(Name::SchemaVersion)
        .ok_or(FormatFault::NoSchemaVersion)?;
    let place = Place {
        seq,
        prev_hash,
        hash: row.line_hash(),
    };
    Ok((line_type.into_owned(), place, version))
}

fn kind(row: &Row<'_>, line_type: String) -> Kind {
    let call = || row.string(Name::CallId).map(|id| NameRef::of(&id));
    match line_type.as_str() {
        "open" => Kind::Open(Open {
            public_key: row
                .string(Name::PublicKey)
                .and_then(|key| PublicKey::from_hex(&key).ok()),
            prev_session_tail: row.digest(Name::PrevSessionTail),
            follows: follows(row),
            claims: Box::new(Claims::read(row)),
        }),
        "intent" => Kind::Intent(call()),
        "outcome" => Kind::Outcome(call()),
        "decision" => Kind::Decision(row.string(Name::ApprovalId).map(|id| NameRef::of(&id))),
        "close" => Kind::Close,
        "checkpoint" => Kind::Checkpoint,
        _ => Kind::Unknown(line_type),
    }
}

/// What an `open` Line says it follows. Whatever is not of the form that
/// SPEC [SEG-3] gives names no file, and is not passed over for that.
fn follows(row: &Row<'_>) -> Vec<Followed> {
    let entries = match row.member::<Vec<Entry>>(Name::Follows) {
        Some(entries) => entries,
        None if row.has(Name::Follows) => vec![Entry::Other(IgnoredAny)],
        None => Vec::new(),
    };
    entries
        .into_iter()
        .map(|entry| match entry {
            Entry::Object { segment, tail } => Followed {
                segment: segment.0,
                tail: Digest::from_hex(&tail.0).ok(),
            },
            Entry::Other(_) => Followed {
                segment: String::new(),
                tail: None,
            },
        })
        .collect()
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Object {
        #[serde(default)]
        segment: Text,
        #[serde(default)]
        tail: Text,
    },
    Other(IgnoredAny),
}

/// A string; whatever else counts as an empty one.
#[derive(Default, Deserialize)]
#[serde(from = "AnyText")]
struct Text(String);

#[derive(Deserialize)]
#[serde(untagged)]
enum AnyText {
    Text(String),
    Other(IgnoredAny),
}

impl From<AnyText> for Text {
    fn from(text: AnyText) -> Self {
        match text {
            AnyText::Text(text) => Self(text),
            AnyText::Other(_) => Self::default(),
        }
    }
}

fn auth(row: &Row<'_>, ring: &KeyRing, batch: &mut Batch, index: usize) -> Auth {
    let key_id = row.digest(Name::KeyId);
    let signature = match row.string(Name::Signature) {
        _ if !row.has(Name::Signature) => Presence::Absent,
        Some(text) => match (Signature::from_hex(&text), key_id) {
            (Ok(signature), Some(key_id)) => match ring.find(&key_id) {
                Some(key) => {
                    batch.add(row, key, signature, index);
                    Presence::Unusable
                }
                None => {
                    let mut message = Vec::with_capacity(row.canonical().len());
                    row.push_signing_input(&mut message);
                    Presence::Open(Box::new((message, signature)))
                }
            },
            _ => Presence::Unusable,
        },
        None => Presence::Unusable,
    };
    Auth { key_id, signature }
}

/// Signatures of one chunk waiting to be judged together.
#[derive(Default)]
struct Batch {
    messages: Vec<u8>,
    items: Vec<Item>,
}

struct Item {
    row: usize,
    key: PublicKey,
    signature: Signature,
    /// Where in `messages` the signing input ends; it starts where the one
    /// before ends.
    end: usize,
}

impl Batch {
    fn add(&mut self, row: &Row<'_>, key: PublicKey, signature: Signature, index: usize) {
        row.push_signing_input(&mut self.messages);
        self.items.push(Item {
            row: index,
            key,
            signature,
            end: self.messages.len(),
        });
    }

    fn judge(&self, ring: &KeyRing, rows: &mut [Examined]) {
        let mut start = 0;
        let mut answers = Vec::new();
        for same_key in self.items.chunk_by(|a, b| a.key == b.key) {
            for items in same_key.chunks(BATCH) {
                let signed: Vec<_> = items
                    .iter()
                    .map(|item| {
                        let message = &self.messages[start..item.end];
                        start = item.end;
                        (message, item.signature)
                    })
                    .collect();
                let whole = ring.cache.verify_each(&items[0].key, &signed, &mut answers);
                for (i, item) in items.iter().enumerate() {
                    let judged = whole.and_then(|()| match answers.get(i) {
                        Some(true) => Ok(()),
                        _ => Err(SignatureFault::Mismatch),
                    });
                    if let Examined::Line(line) = &mut rows[item.row] {
                        line.auth.signature = Presence::Judged(judged);
                    }
                }
            }
        }
    }
}

/// How many keys are known to all threads.
const MAX_RING_KEYS: usize = 256;

/// How many signatures share one inversion; more gains nothing.
const BATCH: usize = 64;
