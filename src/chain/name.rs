//! The names of Segments (SPEC [SEG-1]).
//!
//! A directory may hold other records too, which somebody put there or still
//! appends to. Only what is named as a Segment is taken for one, so that
//! nothing follows a file to which a later Session may come.

use crate::wire::hex::{self, Hex};
use crate::wire::time::Timestamp;

/// The name of a Segment made at `time` by the process `pid`.
pub(super) fn segment_name(time: Timestamp, pid: u32, random: [u8; RANDOM_BYTES]) -> String {
    format!("{}-{pid}-{}{SUFFIX}", time.compact(), Hex(&random))
}

/// Whether `name` has the form that [`segment_name`] gives.
pub(super) fn is_segment_name(name: &[u8]) -> bool {
    let Ok(name) = str::from_utf8(name) else {
        return false;
    };
    let Some(parts) = name.strip_suffix(SUFFIX) else {
        return false;
    };
    let mut parts = parts.splitn(3, '-');
    let (Some(time), Some(pid), Some(random)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    is_time(time) && is_pid(pid) && hex::parse::<RANDOM_BYTES>(random).is_ok()
}

/// Whether `text` is like `20260301T120000Z`; which moment, if any, is not
/// looked at, since the name proves nothing.
fn is_time(text: &str) -> bool {
    let is_like = |(found, like): (u8, u8)| match like {
        b'0' => found.is_ascii_digit(),
        _ => found == like,
    };
    text.len() == TIME_FORM.len() && text.bytes().zip(TIME_FORM.bytes()).all(is_like)
}

fn is_pid(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
        && !text.starts_with('0')
        && text.parse::<u32>().is_ok()
}

/// How many random bytes keep names of one second and one process apart.
pub(super) const RANDOM_BYTES: usize = 8;

/// What all records of a directory end with.
pub(super) const SUFFIX: &str = ".aarl";

const TIME_FORM: &str = "00000000T000000Z";

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC [SEG-1].
    #[test]
    fn what_is_made_has_the_form() {
        for (ms, pid, random) in [
            (0, 1, [0; 8]),
            (1_767_225_600_000, 4_194_304, [0xab; 8]),
            (u64::MAX, u32::MAX, [0xff; 8]),
        ] {
            let name = segment_name(Timestamp::from_unix_ms(ms), pid, random);
            assert!(is_segment_name(name.as_bytes()), "{name}");
        }
    }

    /// SPEC [SEG-1].
    #[test]
    fn what_differs_from_the_form_in_one_place_has_it_not() {
        let good = "20260101T000000Z-1-0123456789abcdef.aarl";
        assert!(is_segment_name(good.as_bytes()));
        for bad in [
            "",
            ".aarl",
            "session.aarl",
            "20260101T000000Z-1-0123456789abcdef",
            "20260101T000000Z-1-0123456789abcdef.aarl.aarl",
            "20260101T000000Z-1-0123456789abcdef.AARL",
            "20260101T000000Z-1-0123456789abcde.aarl",
            "20260101T000000Z-1-0123456789abcdef0.aarl",
            "20260101T000000Z-1-0123456789ABCDEF.aarl",
            "20260101T000000Z-1-0-0123456789abcdef.aarl",
            "20260101T000000Z--0123456789abcdef.aarl",
            "20260101T000000Z-01-0123456789abcdef.aarl",
            "20260101T000000Z-+1-0123456789abcdef.aarl",
            "20260101T000000Z-4294967296-0123456789abcdef.aarl",
            "20260101T000000-1-0123456789abcdef.aarl",
            "20260101t000000Z-1-0123456789abcdef.aarl",
            "020260101T000000Z-1-0123456789abcdef.aarl",
            "2026010１T000000Z-1-0123456789abcdef.aarl",
            "copy-20260101T000000Z-1-0123456789abcdef.aarl",
            "20260101T000000Z-1-0123456789abcdef.aarl\n",
        ] {
            assert!(!is_segment_name(bad.as_bytes()), "{bad}");
        }
        assert!(!is_segment_name(
            b"\xff0260101T000000Z-1-0123456789abcdef.aarl"
        ));
    }
}
