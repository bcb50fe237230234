//! SHA-256 digests, each of one meaning only (SPEC §2).
//!
//! A Chain that hashed the Policy Set into `prev_hash` would verify clean and
//! be wrong. [`Digest<M>`] makes that swap a type error:
//!
//! ```compile_fail
//! use aegis::wire::digest::{Digest, Line, Request};
//! let request: Digest<Request> = Digest::of(b"{}");
//! let prev_hash: Digest<Line> = request;
//! ```
//!
//! A digest of a payload is made from the payload's bytes, never taken from a
//! caller: [`Digest::of`] and [`Hasher`] are its only constructors besides
//! [`Digest::from_hex`], which reads one that a Line already carries.

use std::cmp::Ordering;
use std::fmt;
use std::hash;
use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::hex::{self, Bytes, Hex, HexError};

/// What a digest is the digest of.
pub trait Meaning {}

macro_rules! meanings {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        pub enum $name {}
        impl Meaning for $name {}
    )*};
}

meanings! {
    /// The canonical bytes of a whole Line, signature included: `prev_hash`,
    /// `prev_session_tail`, a Session's tail.
    Line;
    /// The verbatim bytes of a request: `request_digest`.
    Request;
    /// The verbatim bytes of a response: `response_digest`.
    Response;
    /// The canonical projection of a Policy Set: `policy_set_hash`.
    PolicySet;
    /// The 32 bytes of an ed25519 public key: `key_id`.
    PublicKey;
    /// The full RFC 8785 form of a tool definition: `tool_digest`.
    ToolDefinition;
    /// The programs that filter the system calls of a confined server.
    SystemCallFilters;
    /// A text or an argument vector that the Line does not carry whole.
    Text;
}

/// A SHA-256 digest of something that `M` names.
pub struct Digest<M> {
    bytes: [u8; 32],
    meaning: PhantomData<fn() -> M>,
}

impl<M: Meaning> Digest<M> {
    /// The digest of `payload`.
    pub fn of(payload: &[u8]) -> Self {
        Self::new(Sha256::digest(payload).into())
    }

    /// Reads the 64 lower-case hexadecimal characters that a Line carries.
    ///
    /// # Errors
    /// When the text has another length or another character.
    pub fn from_hex(text: &str) -> Result<Self, HexError> {
        hex::parse(text).map(Self::new)
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    fn new(bytes: [u8; 32]) -> Self {
        Self {
            bytes,
            meaning: PhantomData,
        }
    }
}

impl Digest<Line> {
    /// The `prev_hash` of an `open` Line: 64 zeros (SPEC §7).
    pub const GENESIS: Self = Self {
        bytes: [0; 32],
        meaning: PhantomData,
    };
}

/// A digest in the making, for a payload that is not in memory whole.
pub struct Hasher<M> {
    state: Sha256,
    meaning: PhantomData<fn() -> M>,
}

impl<M: Meaning> Hasher<M> {
    /// Starts with no bytes.
    pub fn new() -> Self {
        Self {
            state: Sha256::new(),
            meaning: PhantomData,
        }
    }

    /// Takes the next bytes of the payload.
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
    }

    /// The digest of all bytes taken.
    pub fn finish(self) -> Digest<M> {
        Digest::new(self.state.finalize().into())
    }
}

impl<M: Meaning> Default for Hasher<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> Clone for Hasher<M> {
    fn clone(&self) -> Self {
        Self {
            state: self.state.clone(),
            meaning: PhantomData,
        }
    }
}

// Written out because a derive would ask the same of `M`, a mere name.
impl<M> Clone for Digest<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Digest<M> {}

impl<M> PartialEq for Digest<M> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<M> Eq for Digest<M> {}

impl<M> PartialOrd for Digest<M> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<M> Ord for Digest<M> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

impl<M> hash::Hash for Digest<M> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

impl<M> fmt::Display for Digest<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.bytes).fmt(f)
    }
}

impl<M> fmt::Debug for Digest<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<M> Serialize for Digest<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, M: Meaning> Deserialize<'de> for Digest<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Bytes::deserialize(deserializer).map(|Bytes(bytes)| Self::new(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answer_and_pieces() {
        let whole = Digest::<Request>::of(b"abc");
        assert_eq!(
            whole.to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let mut hasher = Hasher::<Request>::new();
        hasher.update(b"a");
        hasher.update(b"bc");
        assert_eq!(hasher.finish(), whole);
        assert_eq!(Digest::from_hex(&whole.to_string()), Ok(whole));
    }

    /// SPEC [WIRE-2].
    #[test]
    fn genesis_is_64_zeros() {
        assert_eq!(Digest::GENESIS.to_string(), "0".repeat(64));
    }
}
