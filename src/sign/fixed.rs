//! Verification under a key that signed many Lines.
//!
//! The costly part of a verification is the point S·B - k·A. With tables of
//! the multiples of B and of -A it is a sum of one entry per digit of S and
//! of k, with no doublings; and the inversions that turn the sums into bytes
//! are shared by a batch. No weights are involved, so a batch says about each
//! of its signatures exactly what the single check says.
//!
//! Everything here is public data: the time taken depends on it, and may.

use std::array;
use std::sync::OnceLock;

use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity as _;
use sha2::{Digest as _, Sha512};

use super::{PublicKey, Signature, SignatureFault};

/// A key with a table of its multiples: the predicate of
/// [`verify_strict`](super::verify_strict), faster.
///
/// The table takes [`PreparedKey::TABLE_BYTES`] and about as long to build as
/// a dozen plain verifications take.
#[doc(hidden)]
pub struct PreparedKey {
    key: PublicKey,
    /// Multiples of -A. None for an A of small order, which signs nothing.
    minus_a: Option<Comb<KEY_WIDTH>>,
}

impl PreparedKey {
    /// Memory that one prepared key holds, in bytes.
    pub const TABLE_BYTES: usize = Comb::<KEY_WIDTH>::POINTS * size_of::<EdwardsPoint>();

    /// Builds the table for `key`.
    ///
    /// # Errors
    /// [`SignatureFault::NotAKey`] when `key` decodes to no point.
    pub fn new(key: &PublicKey) -> Result<Self, SignatureFault> {
        let a = CompressedEdwardsY(*key.as_bytes())
            .decompress()
            .ok_or(SignatureFault::NotAKey)?;
        Ok(Self {
            key: *key,
            minus_a: (!a.is_small_order()).then(|| Comb::new(-a)),
        })
    }

    /// Checks that `signature` is one that the key made over `message`.
    ///
    /// # Errors
    /// [`SignatureFault::Mismatch`] exactly when
    /// [`verify_strict`](super::verify_strict) says so.
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), SignatureFault> {
        let computed = self
            .computed_r(message, signature)
            .ok_or(SignatureFault::Mismatch)?;
        if holds(&computed.compress(), signature) {
            Ok(())
        } else {
            Err(SignatureFault::Mismatch)
        }
    }

    /// Checks each of `items`, a message and its signature, on its own, and
    /// leaves in `out` one answer per item in their order.
    pub fn verify_each(&self, items: &[(&[u8], Signature)], out: &mut Vec<bool>) {
        out.clear();
        self.append_each(items, out);
    }

    /// [`PreparedKey::verify_each`] behind the answers that `out` has.
    pub(super) fn append_each(&self, items: &[(&[u8], Signature)], out: &mut Vec<bool>) {
        for batch in items.chunks(BATCH) {
            let computed: Vec<Option<EdwardsPoint>> = batch
                .iter()
                .map(|(message, signature)| self.computed_r(message, signature))
                .collect();
            let points: Vec<EdwardsPoint> = computed.iter().copied().flatten().collect();
            let mut encoded = EdwardsPoint::compress_batch_alloc(&points).into_iter();
            out.extend(
                batch
                    .iter()
                    .zip(&computed)
                    .map(|((_, signature), computed)| {
                        computed.is_some() && encoded.next().is_some_and(|r| holds(&r, signature))
                    }),
            );
        }
    }

    /// S·B - k·A, when S is below L and A is not of small order.
    fn computed_r(&self, message: &[u8], signature: &Signature) -> Option<EdwardsPoint> {
        let minus_a = self.minus_a.as_ref()?;
        let (r, s) = halves(signature);
        let s = Option::from(Scalar::from_canonical_bytes(*s))?;
        let k = Scalar::from_hash(
            Sha512::new()
                .chain_update(r)
                .chain_update(self.key.as_bytes())
                .chain_update(message),
        );
        let mut sum = EdwardsPoint::identity();
        base().add_multiple(&s, &mut sum);
        minus_a.add_multiple(&k, &mut sum);
        Some(sum)
    }
}

/// Whether `computed`, the encoding of S·B - k·A, is the R of `signature` and
/// not of small order.
fn holds(computed: &CompressedEdwardsY, signature: &Signature) -> bool {
    let (r, _) = halves(signature);
    // Equal bytes make R the canonical encoding of a point, so that comparing
    // with the canonical small-order encodings leaves none out.
    computed.as_bytes() == r && !small_order_encodings().contains(r)
}

/// R and S.
fn halves(signature: &Signature) -> (&[u8; 32], &[u8; 32]) {
    let (halves, _) = signature.as_bytes().as_chunks::<32>();
    (&halves[0], &halves[1])
}

/// The multiples of the base point, for all keys.
fn base() -> &'static Comb<BASE_WIDTH> {
    static BASE: OnceLock<Comb<BASE_WIDTH>> = OnceLock::new();
    BASE.get_or_init(|| Comb::new(ED25519_BASEPOINT_POINT))
}

fn small_order_encodings() -> &'static [[u8; 32]; 8] {
    static ENCODINGS: OnceLock<[[u8; 32]; 8]> = OnceLock::new();
    ENCODINGS.get_or_init(|| EIGHT_TORSION.map(|point| point.compress().to_bytes()))
}

/// For each digit position i of a scalar in base 2^W, the multiples
/// 1, 2, … 2^(W-1) of 2^(W·i)·P.
struct Comb<const W: usize> {
    points: Box<[EdwardsPoint]>,
}

impl<const W: usize> Comb<W> {
    /// Digits run from -(2^(W-1) - 1) to 2^(W-1), so a row has half of 2^W.
    const ROW: usize = 1 << (W - 1);

    /// A scalar is below 2^253, and one bit more takes the carry of the digit
    /// below: the highest digit has no digit to carry into.
    const DIGITS: usize = 254_usize.div_ceil(W);

    const POINTS: usize = Self::DIGITS * Self::ROW;

    fn new(point: EdwardsPoint) -> Self {
        let mut points = Vec::with_capacity(Self::POINTS);
        let mut unit = point;
        for _ in 0..Self::DIGITS {
            let mut multiple = unit;
            points.push(multiple);
            for _ in 1..Self::ROW {
                multiple += &unit;
                points.push(multiple);
            }
            unit = multiple + multiple;
        }
        Self {
            points: points.into_boxed_slice(),
        }
    }

    /// Adds `scalar` times P to `sum`.
    fn add_multiple(&self, scalar: &Scalar, sum: &mut EdwardsPoint) {
        let mut carry = 0;
        for (position, row) in self.points.chunks_exact(Self::ROW).enumerate() {
            let digit = window::<W>(scalar.as_bytes(), position * W) + carry;
            carry = usize::from(digit > Self::ROW);
            if digit > Self::ROW {
                let magnitude = 2 * Self::ROW - digit;
                if magnitude > 0 {
                    *sum -= &row[magnitude - 1];
                }
            } else if digit > 0 {
                *sum += &row[digit - 1];
            }
        }
    }
}

/// The `W` bits of `bytes`, little-endian, from bit `at` on; zeros behind the
/// end.
fn window<const W: usize>(bytes: &[u8; 32], at: usize) -> usize {
    let from = at / 8;
    let taken: [u8; 4] = array::from_fn(|i| bytes.get(from + i).copied().unwrap_or(0));
    let bits = u32::from_le_bytes(taken) >> (at % 8);
    bits as usize & ((1 << W) - 1)
}

/// Digit width of the table of a key: the fastest measured that keeps eight
/// tables within a few megabytes.
const KEY_WIDTH: usize = 7;

/// Digit width of the table of the base point, of which there is one.
const BASE_WIDTH: usize = 8;

/// How many inversions are shared: beyond this, sharing saves nothing more.
const BATCH: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees<const W: usize>() {
        let comb = Comb::<W>::new(ED25519_BASEPOINT_POINT);
        let all_ones = Scalar::from_bytes_mod_order([0xff; 32]);
        let mut scalars = vec![
            Scalar::ZERO,
            Scalar::ONE,
            -Scalar::ONE,
            all_ones,
            -all_ones,
            Scalar::from(1_u64 << (W - 1)),
            Scalar::from((1_u64 << (W - 1)) + 1),
            Scalar::from((1_u64 << W) - 1),
        ];
        let mut scalar = Scalar::from(3_u8);
        for _ in 0..20 {
            scalar *= scalar + Scalar::ONE;
            scalars.push(scalar);
        }
        for scalar in scalars {
            let mut sum = EdwardsPoint::identity();
            comb.add_multiple(&scalar, &mut sum);
            assert_eq!(
                sum,
                EdwardsPoint::mul_base(&scalar),
                "width {W}, {:?}",
                scalar.as_bytes()
            );
        }
    }

    #[test]
    fn a_comb_multiplies_at_every_width() {
        agrees::<1>();
        agrees::<2>();
        agrees::<5>();
        agrees::<KEY_WIDTH>();
        agrees::<BASE_WIDTH>();
    }

    #[test]
    fn a_batch_answers_in_order_across_its_bound() {
        for count in [0, 1, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 1] {
            let signing = super::super::SigningKey::from_seed(&[5; 32]);
            let prepared = PreparedKey::new(&signing.public_key()).unwrap();
            let messages: Vec<[u8; 8]> = (0..count).map(|i| i.to_le_bytes()).collect();
            let mut items: Vec<(&[u8], Signature)> = messages
                .iter()
                .map(|m| (m.as_slice(), signing.sign(m)))
                .collect();
            let mut expected = vec![true; count];
            // One refused before the point is computed, one after.
            if count > 2 {
                items[0].1 = Signature::from_bytes([0xff; 64]);
                items[count - 1].1 = signing.sign(b"another message");
                expected[0] = false;
                expected[count - 1] = false;
            }
            let mut answers = vec![true; 3];
            prepared.verify_each(&items, &mut answers);
            assert_eq!(answers, expected);
        }
    }
}
