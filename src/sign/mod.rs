//! Keys, signing, strict verification (SPEC §2, §8.4).
//!
//! One predicate decides whether a signature holds, and three functions
//! compute it: [`verify_strict`], [`PreparedKey::verify`] and
//! [`PreparedKey::verify_each`]. They agree on every input, hostile ones
//! included, so that a verdict depends neither on the order of the Lines nor
//! on how many of them one key signed. Go by [`verify_strict`] for what the
//! predicate is.
//!
//! ```
//! use aegis::sign::{SigningKey, verify_strict};
//!
//! let key = SigningKey::from_seed(&[7; 32]);
//! let signature = key.sign(b"{}");
//! assert!(verify_strict(&key.public_key(), b"{}", &signature).is_ok());
//! assert_eq!(
//!     verify_strict(&key.public_key(), b"[]", &signature).unwrap_err().to_string(),
//!     "signature does not match this line"
//! );
//! ```

mod cache;
mod fixed;

use std::fmt;

use ed25519_dalek::{Signer as _, VerifyingKey};
use thiserror::Error;

use crate::wire::digest::{self, Digest};
use crate::wire::hex::{self, Hex, HexError};

pub(crate) use cache::KeyCache;
#[doc(hidden)]
pub use fixed::PreparedKey;

/// Checks that `signature` is one that `key` made over `message`.
///
/// A signature is 64 bytes: R, then S. With A the point that `key` encodes, L
/// the order of the base point B, and k the SHA-512 of R, `key` and `message`
/// (all bytes as given) reduced modulo L, the signature holds when all of
/// these do:
///
/// - `key` decodes to a point A on the curve (RFC 8032 §5.1.3, except that an
///   encoding whose y is 2^255 - 19 or more is taken modulo that prime), and
///   8·A is not the identity, that is, A is not of small order;
/// - S, read as a little-endian integer, is below L;
/// - R is none of the encodings of the eight points of small order;
/// - the canonical encoding of S·B - k·A is, byte for byte, R. There is no
///   multiplication by the cofactor, and an R that is not canonical never
///   matches.
///
/// This is RFC 8032 §5.1.7 without the cofactor and with both small-order
/// checks added. A verifier that only follows RFC 8032 accepts signatures
/// that this one refuses; one that verifies in batches with random weights
/// also accepts a share of those that are off by a point of small order.
///
/// # Errors
/// [`SignatureFault::NotAKey`] when `key` decodes to no point, and
/// [`SignatureFault::Mismatch`] in every other case.
pub fn verify_strict(
    key: &PublicKey,
    message: &[u8],
    signature: &Signature,
) -> Result<(), SignatureFault> {
    VerifyingKey::from_bytes(&key.0)
        .map_err(|_| SignatureFault::NotAKey)?
        .verify_strict(message, &signature.to_dalek())
        .map_err(|_| SignatureFault::Mismatch)
}

/// Why a signature does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SignatureFault {
    /// The 32 bytes of the key are not the encoding of a point on the curve.
    #[error("not a valid ed25519 public key")]
    NotAKey,
    /// The key is a point, but the signature is not its over these bytes.
    #[error("signature does not match this line")]
    Mismatch,
}

/// The 32 bytes that an `open` Line carries as `public_key`.
///
/// Any 32 bytes make a value: whether they encode a point on the curve is
/// decided when a signature is verified.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The key of these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads the 64 lower-case hexadecimal characters that a Line carries.
    ///
    /// # Errors
    /// When the text has another length or another character.
    pub fn from_hex(text: &str) -> Result<Self, HexError> {
        hex::parse(text).map(Self)
    }

    /// The `key_id` of Lines signed with this key: the SHA-256 of its bytes.
    pub fn key_id(&self) -> Digest<digest::PublicKey> {
        Digest::of(&self.0)
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The 64 bytes that a signed Line carries as `signature`.
///
/// Any 64 bytes make a value: whether they are a signature is decided when
/// they are verified.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature([u8; 64]);

impl Signature {
    /// The signature of these bytes.
    pub fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// Reads the 128 lower-case hexadecimal characters that a Line carries.
    ///
    /// # Errors
    /// When the text has another length or another character.
    pub fn from_hex(text: &str) -> Result<Self, HexError> {
        hex::parse(text).map(Self)
    }

    /// The 64 bytes.
    pub fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }

    fn to_dalek(self) -> ed25519_dalek::Signature {
        ed25519_dalek::Signature::from_bytes(&self.0)
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An ed25519 key that signs. Its secret is overwritten when it is dropped,
/// and nothing here gives it back.
pub struct SigningKey {
    // Boxed: a move of the value would leave a copy of the secret behind.
    secret: Box<ed25519_dalek::SigningKey>,
}

impl SigningKey {
    /// The key of a 32-byte seed (RFC 8032 §5.1.5). The caller wipes `seed`.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self {
            secret: Box::new(ed25519_dalek::SigningKey::from_bytes(seed)),
        }
    }

    /// The development key. Everybody has it: it proves nothing, and may sign
    /// only what no one keeps.
    pub fn insecure_dev() -> Self {
        Self::from_seed(INSECURE_DEV_SEED)
    }

    /// Signs `message` (RFC 8032 §5.1.6): same key and bytes, same signature.
    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.secret.sign(message).to_bytes())
    }

    /// The key that verifies what this one signs.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.secret.verifying_key().to_bytes())
    }

    /// The `key_id` of Lines that this key signs.
    pub fn key_id(&self) -> Digest<digest::PublicKey> {
        self.public_key().key_id()
    }

    /// Whether this is the development key, wherever its seed came from.
    pub fn is_insecure_dev(&self) -> bool {
        self.public_key() == Self::insecure_dev().public_key()
    }
}

// The secret has no textual form; the public half says which key it is.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public_key())
    }
}

const INSECURE_DEV_SEED: &[u8; 32] = b"aegis-insecure-dev-key-not-real!";

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC [KEY-4].
    #[test]
    fn the_dev_key_is_the_published_one() {
        let key = SigningKey::insecure_dev();
        assert_eq!(
            key.public_key().to_string(),
            "3de537a06e04b2ffe1fb0558ea16d3c0f042ed99f7e392698aa5120f568d4e2c"
        );
        assert_eq!(
            key.key_id().to_string(),
            "77a2c2f5952039243c043b69e7e812a2deb69e3271adb3013b8f24d3b8ea40f6"
        );
        assert!(key.is_insecure_dev());
        assert!(SigningKey::from_seed(INSECURE_DEV_SEED).is_insecure_dev());
    }

    #[test]
    fn another_key_is_not_the_dev_key() {
        let key = SigningKey::from_seed(&[9; 32]);
        assert!(!key.is_insecure_dev());
        assert_eq!(
            key.public_key().to_string(),
            "fd1724385aa0c75b64fb78cd602fa1d991fdebf76b13c58ed702eac835e9f618"
        );
        assert_eq!(
            key.key_id().to_string(),
            "dbc298251c51321b7266e78d1c151c2b62aff8cb95b293096d3463018544face"
        );
    }

    #[test]
    fn rfc_8032_test_1() {
        let seed =
            hex::parse("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").unwrap();
        let key = SigningKey::from_seed(&seed);
        let signature = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155\
                         5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
        assert_eq!(key.sign(b"").to_string(), signature);
        let signature = Signature::from_hex(signature).unwrap();
        assert_eq!(verify_strict(&key.public_key(), b"", &signature), Ok(()));
    }

    #[test]
    fn faults_say_which_part_is_wrong() {
        let signature = SigningKey::from_seed(&[1; 32]).sign(b"x");
        // y = 2 is on no point of the curve.
        let mut no_point = [0; 32];
        no_point[0] = 2;
        let fault = verify_strict(&PublicKey::from_bytes(no_point), b"x", &signature).unwrap_err();
        assert_eq!(fault.to_string(), "not a valid ed25519 public key");
        let other = SigningKey::from_seed(&[2; 32]).public_key();
        let fault = verify_strict(&other, b"x", &signature).unwrap_err();
        assert_eq!(fault.to_string(), "signature does not match this line");
    }

    /// SPEC [WIRE-1].
    #[test]
    fn texts_have_one_spelling() {
        let key = SigningKey::from_seed(&[3; 32]).public_key();
        assert_eq!(PublicKey::from_hex(&key.to_string()), Ok(key));
        assert!(PublicKey::from_hex(&key.to_string().to_uppercase()).is_err());
        let signature = SigningKey::from_seed(&[3; 32]).sign(b"x");
        assert_eq!(Signature::from_hex(&signature.to_string()), Ok(signature));
        assert_eq!(
            Signature::from_hex(&key.to_string())
                .unwrap_err()
                .to_string(),
            "expected 128 hex characters, got 64"
        );
    }

    #[test]
    fn debug_text_shows_the_public_half_only() {
        let key = SigningKey::from_seed(&[0xab; 32]);
        assert_eq!(
            format!("{key:?}"),
            format!("SigningKey({})", key.public_key())
        );
    }
}
