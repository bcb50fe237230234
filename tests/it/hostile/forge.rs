//! Signatures that no honest signer makes.

use aegis::sign::Signature;
use curve25519_dalek::constants::EIGHT_TORSION;
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};

use super::members::set;
use crate::assemble::Chain;

/// The members of an `open` under a key that nobody signs with.
pub(super) fn published(public_key: &str, signature: Option<Value>) -> Value {
    let bytes: [u8; 32] = aegis::wire::hex::parse(public_key).expect("a key");
    let mut members = json!({
        "line_type": "open", "public_key": public_key, "key_id": key_id(&bytes),
    });
    if let Some(signature) = signature {
        members["signature"] = signature;
    }
    members
}

pub(super) fn key_id(key: &[u8; 32]) -> String {
    aegis::sign::PublicKey::from_bytes(*key)
        .key_id()
        .to_string()
}

pub(super) fn signature(chain: &Chain, row: usize) -> Signature {
    let line: Value = serde_json::from_slice(&chain.rows[row]).expect("an object");
    Signature::from_hex(line["signature"].as_str().expect("a string")).expect("a signature")
}

/// What the signature of a row is over.
pub(super) fn signing_input(chain: &Chain, row: usize) -> Vec<u8> {
    let mut copy = chain.clone();
    copy.edit(row, |line| set(line, "signature", None));
    copy.rows.swap_remove(row)
}

pub(super) fn dev_scalar() -> Scalar {
    let digest = Sha512::digest(b"aegis-insecure-dev-key-not-real!");
    let low: [u8; 32] = digest[..32].try_into().expect("32 bytes");
    Scalar::from_bytes_mod_order(clamp_integer(low))
}

fn challenge(r: &[u8; 32], key: &[u8; 32], message: &[u8]) -> Scalar {
    let digest = Sha512::new()
        .chain_update(r)
        .chain_update(key)
        .chain_update(message)
        .finalize();
    Scalar::from_bytes_mod_order_wide(&digest.into())
}

/// A signature on a row by the development key with the nonce `r`, to whose
/// point `torsion` is added.
pub(super) fn sign_with(
    chain: &Chain,
    row: usize,
    r: Scalar,
    torsion: EdwardsPoint,
    key: Option<[u8; 32]>,
) -> Signature {
    let key = key.unwrap_or(*chain.key.public_key().as_bytes());
    let point = (EdwardsPoint::mul_base(&r) + torsion).compress().to_bytes();
    let k = challenge(&point, &key, &signing_input(chain, row));
    let s = r + k * dev_scalar();
    let bytes = [point, s.to_bytes()].concat();
    Signature::from_bytes(bytes.try_into().expect("64 bytes"))
}

/// The signature under `key` with the nonce `r`, if 8 divides its challenge.
pub(super) fn divisible(chain: &Chain, row: usize, r: Scalar, key: [u8; 32]) -> Option<Signature> {
    let signature = sign_with(chain, row, r, EIGHT_TORSION[0], Some(key));
    let point = signature.as_bytes()[..32].try_into().expect("32 bytes");
    let k = challenge(&point, &key, &signing_input(chain, row));
    (k.to_bytes()[0] & 7 == 0).then_some(signature)
}

/// `s` plus the order of the group, as 32 little-endian bytes.
pub(super) fn add_order(s: [u8; 32]) -> [u8; 32] {
    let mut carry = 1;
    let order_minus_1 = (-Scalar::ONE).to_bytes();
    let mut sum = [0; 32];
    for (i, byte) in sum.iter_mut().enumerate() {
        let total = u16::from(s[i]) + u16::from(order_minus_1[i]) + carry;
        *byte = total.to_le_bytes()[0];
        carry = total >> 8;
    }
    sum
}

/// The encodings of SPEC §9.1.
pub(super) const SMALL_ORDER: [&str; 14] = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
];
