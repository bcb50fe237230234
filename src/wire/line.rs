//! Every Line type, and how a Line's bytes are made (SPEC §4, §5).
//!
//! Whether a Line is signed is a property of its type: [`Body::Auth`] lets
//! [`signed`] take no intent and [`unsigned`] nothing else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::canon::{self, CanonError};
use super::decode;
use super::digest::{self, Digest, Request, Text};
use super::facts::{Child, Confinement, Durability, Egress, Emitter, Follows, PolicyInForce};
use super::grant::{FsGrant, NetGrant};
use super::hex::Bytes;
use super::outcome::{Cut, Outcome};
use super::time::Timestamp;

/// The `schema_version` of this format.
pub const SCHEMA_VERSION: u64 = 2;

/// How many bytes of a name, a reason or a message a Line carries.
pub const MAX_TEXT_BYTES: usize = 1024;

/// What a Line says besides its place in the Chain.
pub trait Body: Serialize + sealed::Sealed {
    /// [`Signed`] or [`Unsigned`].
    type Auth;
    /// The `line_type`.
    const LINE_TYPE: &'static str;
}

/// The authentication of every Line type but the intent.
pub enum Signed {}

/// The authentication of the intent, which the next signature covers through
/// the Chain: a signature would stand in the way of the request.
pub enum Unsigned {}

/// A Line's place in the Chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Position in the Session, from 0.
    pub seq: u64,
    /// Hash of the Line before it in the Session, or genesis.
    pub prev_hash: Digest<digest::Line>,
    /// What the emitter's clock said, when it has one.
    pub time: Option<Timestamp>,
}

/// A Line ready to be written: its canonical bytes, without a newline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// One row of the file.
    pub bytes: Vec<u8>,
    /// What the next Line's `prev_hash` is.
    pub hash: Digest<digest::Line>,
}

/// The bytes of a Line that carries no signature.
///
/// # Errors
/// When a member is outside the value space.
pub fn unsigned<B: Body<Auth = Unsigned>>(place: Place, body: &B) -> Result<Written, CanonError> {
    let bytes = canon::to_canonical(&Members::of(place, body, None))?;
    Ok(Written {
        hash: Digest::of(&bytes),
        bytes,
    })
}

/// The bytes of a Line signed by `sign`, whose key has the fingerprint
/// `key_id`. The signature is over the canonical form with `key_id` and
/// without `signature`; the Line's hash covers both.
///
/// # Errors
/// When a member is outside the value space.
pub fn signed<B: Body<Auth = Signed>>(
    place: Place,
    body: &B,
    key_id: Digest<digest::PublicKey>,
    sign: impl FnOnce(&[u8]) -> [u8; 64],
) -> Result<Written, CanonError> {
    let signing_input = canon::to_canonical(&Members::of(place, body, Some(key_id)))?;
    let bytes = decode::with_signature(&signing_input, &sign(&signing_input));
    Ok(Written {
        hash: Digest::of(&bytes),
        bytes,
    })
}

/// First Line of a Session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// The key that every signed Line of the Session is signed under.
    pub public_key: Bytes<32>,
    /// Hash of the last Line of the Session before it in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev_session_tail: Option<Digest<digest::Line>>,
    /// What it says of itself.
    #[serde(flatten)]
    pub facts: OpenFacts,
}

/// The members of an `open` Line that the format does not ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFacts {
    /// Who writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emitter: Option<Emitter>,
    /// 32 random hexadecimal characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Bytes<16>>,
    /// When Lines are flushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// The wrapped process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Child>,
    /// What is enforced on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<Confinement>,
    /// The policy that Calls are judged by at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyInForce>,
    /// Segments that this one comes after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub follows: Vec<Follows>,
}

/// Written and flushed before a Call may have any effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Pairs it with its outcome.
    pub call_id: String,
    /// The tool, cut at [`MAX_TEXT_BYTES`].
    pub tool_id: String,
    /// Over the verbatim bytes of the request.
    pub request_digest: Digest<Request>,
    /// Fields that were cut, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cut: BTreeMap<String, Cut>,
}

/// A human's answer to a parked Call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The park it answers; one decision each.
    pub approval_id: String,
    /// The answer.
    pub verdict: Verdict,
}

/// What a human decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Yes, with this authority and no more.
    Approved {
        /// The authority.
        scope: Scope,
    },
    /// No.
    Denied {
        /// Why.
        reason: String,
    },
}

/// The authority that an approval gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// For this tool.
    pub tool_id: String,
    /// These roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<FsGrant>,
    /// These destinations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net: Option<NetGrant>,
}

/// Last Line of a Session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Close {
    /// How many Calls the Session recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// How many frames could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable_frames: Option<u64>,
    /// How often the Policy Set was replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reloads: Option<u64>,
    /// What the child did on the network, where aegis carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
}

/// Reserved: signed, and asserting nothing that this version defines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {}

/// `text` as a Line may carry it: cut at [`MAX_TEXT_BYTES`] on a character's
/// boundary, in which case the whole is noted in `cuts` under `field`.
pub fn cut_text(text: &str, field: &str, cuts: &mut BTreeMap<String, Cut>) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    cuts.insert(
        field.to_owned(),
        Cut {
            bytes: text.len() as u64,
            sha256: Digest::<Text>::of(text.as_bytes()),
        },
    );
    text[..text.floor_char_boundary(MAX_TEXT_BYTES)].to_owned()
}

#[derive(Serialize)]
struct Members<'a, B> {
    schema_version: u64,
    line_type: &'static str,
    seq: u64,
    prev_hash: Digest<digest::Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<Digest<digest::PublicKey>>,
    #[serde(flatten)]
    body: &'a B,
}

impl<'a, B: Body> Members<'a, B> {
    fn of(place: Place, body: &'a B, key_id: Option<Digest<digest::PublicKey>>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            line_type: B::LINE_TYPE,
            seq: place.seq,
            prev_hash: place.prev_hash,
            time: place.time,
            key_id,
            body,
        }
    }
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! bodies {
    ($($body:ident $auth:ident $line_type:literal;)*) => {$(
        impl sealed::Sealed for $body {}
        impl Body for $body {
            type Auth = $auth;
            const LINE_TYPE: &'static str = $line_type;
        }
    )*};
}

bodies! {
    Open Signed "open";
    Intent Unsigned "intent";
    Outcome Signed "outcome";
    Decision Signed "decision";
    Close Signed "close";
    Checkpoint Signed "checkpoint";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC [LINE-22].
    #[test]
    fn text_is_cut_at_the_bound_and_on_a_boundary() {
        let mut cuts = BTreeMap::new();
        let at = "x".repeat(MAX_TEXT_BYTES);
        assert_eq!(cut_text(&at, "tool_id", &mut cuts), at);
        assert!(cuts.is_empty());
        let past = format!("{}éé", &at[1..]);
        assert_eq!(cut_text(&past, "tool_id", &mut cuts), at[1..]);
        assert_eq!(cuts["tool_id"].bytes, past.len() as u64);
        assert_eq!(cuts["tool_id"].sha256, Digest::of(past.as_bytes()));
    }
}
