//! One predicate, computed four ways: the strict check of ed25519-dalek, ours,
//! and the prepared key's single and batched ones. They must agree on honest,
//! damaged and hostile signatures alike.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};

use aegis::sign::{PreparedKey, PublicKey, Signature, SignatureFault, SigningKey, verify_strict};
use curve25519_dalek::constants::EIGHT_TORSION;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity as _;
use ed25519_dalek::Verifier as _;
use proptest::prelude::*;
use sha2::{Digest as _, Sha512};

/// A key, a message, and a signature to be judged.
#[derive(Clone)]
struct Case {
    key: [u8; 32],
    message: Vec<u8>,
    signature: [u8; 64],
}

/// Judges `cases` in every way, asserts agreement, and returns the answers.
#[track_caller]
fn judge(cases: &[Case]) -> Vec<bool> {
    let mut answers = vec![false; cases.len()];
    let mut by_key: BTreeMap<[u8; 32], Vec<usize>> = BTreeMap::new();
    for (at, case) in cases.iter().enumerate() {
        by_key.entry(case.key).or_default().push(at);
    }
    for (key, members) in by_key {
        let dalek = ed25519_dalek::VerifyingKey::from_bytes(&key);
        let public = PublicKey::from_bytes(key);
        let prepared = PreparedKey::new(&public);
        assert_eq!(prepared.is_ok(), dalek.is_ok(), "key {public}");
        let items: Vec<(&[u8], Signature)> = members
            .iter()
            .map(|&at| {
                (
                    cases[at].message.as_slice(),
                    Signature::from_bytes(cases[at].signature),
                )
            })
            .collect();
        let (Ok(dalek), Ok(prepared)) = (dalek, prepared) else {
            for (message, signature) in items {
                let fault = verify_strict(&public, message, &signature);
                assert_eq!(fault, Err(SignatureFault::NotAKey));
            }
            continue;
        };
        let mut batched = Vec::new();
        prepared.verify_each(&items, &mut batched);
        for (&at, ((message, signature), batched)) in members.iter().zip(items.iter().zip(batched))
        {
            let theirs = ed25519_dalek::Signature::from_bytes(signature.as_bytes());
            let expected = dalek
                .verify_strict(message, &theirs)
                .map_err(|_| SignatureFault::Mismatch);
            let what = format!("key {public} signature {signature}");
            assert_eq!(
                verify_strict(&public, message, signature),
                expected,
                "ours, {what}"
            );
            assert_eq!(
                prepared.verify(message, signature),
                expected,
                "prepared, {what}"
            );
            assert_eq!(batched, expected.is_ok(), "batched, {what}");
            answers[at] = expected.is_ok();
        }
    }
    answers
}

/// Signs as somebody would who holds the secret scalar and may choose what is
/// added to A and to R before they are encoded.
fn forge(a_torsion: EdwardsPoint, r_torsion: EdwardsPoint, message: &[u8]) -> Case {
    let secret = Scalar::from_hash(Sha512::new().chain_update(b"secret"));
    let nonce = Scalar::from_hash(Sha512::new().chain_update(b"nonce").chain_update(message));
    forge_with(secret, a_torsion, nonce, r_torsion, message)
}

fn forge_with(
    secret: Scalar,
    a_torsion: EdwardsPoint,
    nonce: Scalar,
    r_torsion: EdwardsPoint,
    message: &[u8],
) -> Case {
    let key = (EdwardsPoint::mul_base(&secret) + a_torsion)
        .compress()
        .to_bytes();
    let r = (EdwardsPoint::mul_base(&nonce) + r_torsion)
        .compress()
        .to_bytes();
    let s = nonce + challenge(&r, &key, message) * secret;
    case(key, r, s.to_bytes(), message)
}

fn challenge(r: &[u8; 32], key: &[u8; 32], message: &[u8]) -> Scalar {
    Scalar::from_hash(
        Sha512::new()
            .chain_update(r)
            .chain_update(key)
            .chain_update(message),
    )
}

fn case(key: [u8; 32], r: [u8; 32], s: [u8; 32], message: &[u8]) -> Case {
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&r);
    signature[32..].copy_from_slice(&s);
    Case {
        key,
        message: message.to_vec(),
        signature,
    }
}

fn honest(key: &SigningKey, message: &[u8]) -> Case {
    Case {
        key: *key.public_key().as_bytes(),
        message: message.to_vec(),
        signature: *key.sign(message).as_bytes(),
    }
}

/// Every encoding that decodes to a point of small order: the 8 canonical
/// ones, and those whose y was not reduced or whose x = 0 carries a sign.
fn small_order_encodings() -> Vec<[u8; 32]> {
    // 2^255 - 19, little-endian.
    let mut prime = [0xff; 32];
    prime[0] = 0xed;
    prime[31] = 0x7f;
    let mut found: Vec<[u8; 32]> = EIGHT_TORSION.map(|p| p.compress().to_bytes()).to_vec();
    let mut prime_plus_one = prime;
    prime_plus_one[0] += 1;
    let mut minus_one = prime;
    minus_one[0] -= 1;
    let mut one = [0; 32];
    one[0] = 1;
    for y in [prime, prime_plus_one, minus_one, one, [0; 32]] {
        let mut signed = y;
        signed[31] |= 0x80;
        found.extend([y, signed]);
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn the_small_order_encodings_are_what_they_are_called() {
    let encodings = small_order_encodings();
    assert_eq!(encodings.len(), 14);
    let canonical = encodings.iter().filter(|bytes| {
        let point = CompressedEdwardsY(**bytes).decompress().unwrap();
        assert!(point.is_small_order());
        point.compress().as_bytes() == *bytes
    });
    assert_eq!(canonical.count(), 8);
}

/// SPEC [KEY-1] [KEY-2] [KEY-3]: `judge` compares all four.
#[test]
fn points_of_small_order_added_to_the_key_or_to_r() {
    let mut cases = Vec::new();
    let mut plain = Vec::new();
    for (i, a_torsion) in EIGHT_TORSION.iter().enumerate() {
        for (j, r_torsion) in EIGHT_TORSION.iter().enumerate() {
            for number in 0..8_u8 {
                cases.push(forge(*a_torsion, *r_torsion, &[number]));
                plain.push(i == 0 && j == 0);
            }
        }
    }
    let answers = judge(&cases);
    for (at, plain) in plain.iter().enumerate() {
        if *plain {
            assert!(answers[at], "case {at}");
        }
    }
    // Off by a point of small order in R alone never passes.
    assert!(answers[8..64].iter().all(|holds| !holds));
    // A key with a part of small order can sign when k happens to cancel it.
    assert!(answers[64..].iter().any(|&holds| holds));
    assert!(answers[64..].iter().any(|&holds| !holds));
}

/// SPEC [KEY-1].
#[test]
fn keys_and_r_of_small_order_never_verify() {
    let encodings = small_order_encodings();
    let honest_key = *SigningKey::from_seed(&[1; 32]).public_key().as_bytes();
    let mut cases = Vec::new();
    for key in &encodings {
        for r in &encodings {
            // With S = 0 the cofactorless equation holds for some messages.
            for number in 0..8_u8 {
                cases.push(case(*key, *r, [0; 32], &[number]));
            }
        }
        cases.push(case(honest_key, *key, [0; 32], b"m"));
    }
    assert!(judge(&cases).iter().all(|holds| !holds));
}

#[test]
fn one_half_of_small_order_is_enough_to_refuse() {
    let secret = Scalar::from_hash(Sha512::new().chain_update(b"secret"));
    let mut equation_holds = [0; 2];
    for torsion in EIGHT_TORSION {
        for number in 0..16_u8 {
            let message = [number];
            // A key without a secret, and an R whose nonce is 0.
            let key = forge_with(
                Scalar::ZERO,
                torsion,
                secret,
                EdwardsPoint::identity(),
                &message,
            );
            let r = forge_with(
                secret,
                EdwardsPoint::identity(),
                Scalar::ZERO,
                torsion,
                &message,
            );
            for (held, case) in equation_holds.iter_mut().zip([key, r]) {
                // The check without its small-order parts may well pass.
                let loose = ed25519_dalek::VerifyingKey::from_bytes(&case.key).unwrap();
                let signature = ed25519_dalek::Signature::from_bytes(&case.signature);
                *held += usize::from(loose.verify(&message, &signature).is_ok());
                assert_eq!(judge(&[case]), [false]);
            }
        }
    }
    assert!(equation_holds.iter().all(|&held| held >= 16));
}

/// SPEC [KEY-1].
#[test]
fn s_at_or_above_the_order_is_refused() {
    // The order of the base point, RFC 8032 §5.1, little-endian.
    let order: [u8; 32] = {
        let mut bytes = (-Scalar::ONE).to_bytes();
        bytes[0] += 1;
        bytes
    };
    let mut cases = Vec::new();
    let mut expected = Vec::new();
    for number in 0..32_u8 {
        let good = honest(&SigningKey::from_seed(&[1; 32]), &[number]);
        let mut malleated = good.clone();
        let mut carry = 0;
        for (byte, order) in malleated.signature[32..].iter_mut().zip(order) {
            let sum = u16::from(*byte) + u16::from(order) + carry;
            *byte = sum as u8;
            carry = sum >> 8;
        }
        assert_eq!(carry, 0);
        cases.extend([good, malleated]);
        expected.extend([true, false]);
    }
    // L is 0 modulo L: whatever refuses S = 0 here must not let S = L through.
    let key = SigningKey::from_seed(&[1; 32]).public_key();
    for s in [[0; 32], order, [0xff; 32]] {
        cases.push(case(*key.as_bytes(), *key.as_bytes(), s, b"m"));
        expected.push(false);
    }
    assert_eq!(judge(&cases), expected);
}

#[test]
fn extreme_scalars() {
    // Digits at both ends of their range, in S and in what it is checked with.
    let secret = Scalar::from(5_u8);
    let key = EdwardsPoint::mul_base(&secret).compress().to_bytes();
    for nonce in [Scalar::ONE, -Scalar::ONE, Scalar::from(u64::MAX)] {
        let r = EdwardsPoint::mul_base(&nonce).compress().to_bytes();
        let s = nonce + challenge(&r, &key, b"m") * secret;
        let good = case(key, r, s.to_bytes(), b"m");
        let zero = case(key, r, [0; 32], b"m");
        let top = case(key, r, (-Scalar::ONE).to_bytes(), b"m");
        assert_eq!(judge(&[good, zero, top]), [true, false, false]);
    }
}

#[test]
fn encodings_of_the_key_that_are_not_canonical() {
    // y from p to p + 18 has a second spelling, and most of those are points.
    let mut cases = Vec::new();
    let mut points = 0;
    for low in 0xed..=0xff_u8 {
        for high in [0x7f, 0xff] {
            let mut key = [0xff; 32];
            key[0] = low;
            key[31] = high;
            points += usize::from(CompressedEdwardsY(key).decompress().is_some());
            for number in 0..4_u8 {
                let good = honest(&SigningKey::from_seed(&[1; 32]), &[number]);
                cases.push(Case {
                    key,
                    ..good.clone()
                });
                let mut other_r = good;
                other_r.signature[..32].copy_from_slice(&key);
                cases.push(other_r);
            }
        }
    }
    assert!(points > 4);
    assert!(judge(&cases).iter().all(|holds| !holds));
}

#[test]
fn every_single_bit_of_a_signature_and_its_key_matters() {
    let good = honest(&SigningKey::from_seed(&[1; 32]), b"a line");
    let mut cases = vec![good.clone()];
    for bit in 0..512 {
        let mut flipped = good.clone();
        flipped.signature[bit / 8] ^= 1 << (bit % 8);
        cases.push(flipped);
    }
    for bit in 0..256 {
        let mut flipped = good.clone();
        flipped.key[bit / 8] ^= 1 << (bit % 8);
        cases.push(flipped);
    }
    for bit in 0..8 * good.message.len() {
        let mut flipped = good.clone();
        flipped.message[bit / 8] ^= 1 << (bit % 8);
        cases.push(flipped);
    }
    let answers = judge(&cases);
    assert!(answers[0]);
    assert!(answers[1..].iter().all(|holds| !holds));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_signed_verifies_and_nothing_else(
        seed: [u8; 32],
        message in prop::collection::vec(any::<u8>(), 0..2_000),
        other: Vec<u8>,
        noise: [u8; 32],
    ) {
        let key = SigningKey::from_seed(&seed);
        let good = honest(&key, &message);
        let mut elsewhere = good.clone();
        elsewhere.message = other;
        let mut unrelated_r = good.clone();
        unrelated_r.signature[..32].copy_from_slice(&noise);
        let mut unrelated_s = good.clone();
        unrelated_s.signature[32..].copy_from_slice(&noise);
        let mut unrelated_key = good.clone();
        unrelated_key.key = noise;
        let same = elsewhere.message == message;
        let answers = judge(&[good, elsewhere, unrelated_r, unrelated_s, unrelated_key]);
        prop_assert_eq!(answers, [true, same, false, false, false]);
    }
}

#[test]
fn the_wycheproof_vectors() {
    let Some(text) = vectors("wycheproof/ed25519_test.json") else {
        return;
    };
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut cases = Vec::new();
    let mut expected = Vec::new();
    let mut other_lengths = 0;
    for group in document["testGroups"].as_array().unwrap() {
        let key = bytes(&group["publicKey"]["pk"]).try_into().unwrap();
        for test in group["tests"].as_array().unwrap() {
            let valid = test["result"] == "valid";
            let Ok(signature) = bytes(&test["sig"]).try_into() else {
                // No such text parses into a signature at all.
                assert!(!valid);
                assert!(Signature::from_hex(test["sig"].as_str().unwrap()).is_err());
                other_lengths += 1;
                continue;
            };
            cases.push(Case {
                key,
                message: bytes(&test["msg"]),
                signature,
            });
            expected.push(valid);
        }
    }
    assert_eq!(
        cases.len() + other_lengths,
        document["numberOfTests"].as_u64().unwrap() as usize
    );
    assert_eq!(judge(&cases), expected);
}

#[test]
fn the_speccheck_vectors() {
    let Some(text) = vectors("speccheck/cases.json") else {
        return;
    };
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cases: Vec<Case> = document
        .as_array()
        .unwrap()
        .iter()
        .map(|case| Case {
            key: bytes(&case["pub_key"]).try_into().unwrap(),
            message: bytes(&case["message"]),
            signature: bytes(&case["signature"]).try_into().unwrap(),
        })
        .collect();
    let expected: Vec<bool> = (0..12).map(|at| at == 3).collect();
    assert_eq!(judge(&cases), expected);
}

/// A published vector file, which a checkout may lack.
#[allow(clippy::print_stderr)]
fn vectors(name: &str) -> Option<String> {
    let root = env::var_os("AEGIS_VECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/vectors"),
        PathBuf::from,
    );
    let path = root.join(name);
    match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) => {
            eprintln!(
                "SKIPPED: no vectors at {} ({error}); set AEGIS_VECTORS",
                path.display()
            );
            None
        }
    }
}

fn bytes(hex: &serde_json::Value) -> Vec<u8> {
    let text = hex.as_str().unwrap();
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}
