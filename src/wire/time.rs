//! Times as a Line carries them: RFC 3339, UTC, milliseconds.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

/// A moment, displayed like `2026-03-01T12:00:00.123Z`. The emitter's claim,
/// never proof of when something was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    unix_ms: u64,
}

impl Timestamp {
    /// A moment by milliseconds since 1970-01-01, at most the end of 9999.
    pub fn from_unix_ms(unix_ms: u64) -> Self {
        Self {
            unix_ms: unix_ms.min(END_OF_9999_MS),
        }
    }

    /// What the clock says; a clock before 1970 counts as 1970.
    pub fn of(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::from_unix_ms(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// The same moment as `20260301T120000Z`, for a file's name.
    pub fn compact(self) -> String {
        let (y, mo, d, h, mi, s, _) = self.fields();
        format!("{y:04}{mo:02}{d:02}T{h:02}{mi:02}{s:02}Z")
    }

    fn fields(self) -> (u64, u64, u64, u64, u64, u64, u64) {
        let (days, ms) = (self.unix_ms / DAY_MS, self.unix_ms % DAY_MS);
        // Years are counted from 1 March, so that the leap day comes last;
        // 719 468 days lie between 0000-03-01 and 1970-01-01.
        let days = days + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 {
            shifted + 3
        } else {
            shifted - 9
        };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        let seconds = ms / 1_000;
        (
            year,
            month,
            day,
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60,
            ms % 1_000,
        )
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (y, mo, d, h, mi, s, ms) = self.fields();
        write!(f, "{y:04}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}.{ms:03}Z")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

const DAY_MS: u64 = 86_400_000;
const END_OF_9999_MS: u64 = 253_402_300_799_999;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        for (unix_ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_709_251_199_000, "2024-02-29T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (END_OF_9999_MS, "9999-12-31T23:59:59.999Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp::from_unix_ms(unix_ms).to_string(), text);
        }
        assert_eq!(
            Timestamp::from_unix_ms(951_782_400_000).compact(),
            "20000229T000000Z"
        );
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut last = Timestamp::from_unix_ms(0).to_string();
        for day in 1..=END_OF_9999_MS / DAY_MS {
            let next = Timestamp::from_unix_ms(day * DAY_MS).to_string();
            assert!(last < next, "{last} {next}");
            last = next;
        }
        assert_eq!(&last[..10], "9999-12-31");
    }
}
