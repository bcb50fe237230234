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

    /// Reads the 24 characters that a Line carries (SPEC §5.1); no other
    /// spelling of a moment, and none that is not in the calendar.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: &[u8; 24] = text.as_bytes().try_into().ok()?;
        let number = |from: usize, to: usize| {
            bytes[from..to].iter().try_fold(0, |value: u64, digit| {
                digit
                    .is_ascii_digit()
                    .then(|| value * 10 + u64::from(digit - b'0'))
            })
        };
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute) = (number(11, 13)?, number(14, 16)?);
        let (second, ms) = (number(17, 19)?, number(20, 23)?);
        // Counted from 1 March, as in `fields`.
        let (year_of_march, month_of_march) = if month > 2 {
            (year, month - 3)
        } else {
            (year.checked_sub(1)?, month.checked_add(9)?)
        };
        let days = year_of_march * 365 + year_of_march / 4 - year_of_march / 100
            + year_of_march / 400
            + (153 * month_of_march + 2) / 5
            + day;
        let days = days.checked_sub(1 + 719_468)?;
        let time = Self {
            unix_ms: days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1_000 + ms,
        };
        // Whatever is out of its range comes out as another moment.
        (time.unix_ms <= END_OF_9999_MS && time.to_string() == text).then_some(time)
    }

    /// Milliseconds since 1970-01-01.
    pub fn unix_ms(self) -> u64 {
        self.unix_ms
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
    fn what_is_displayed_is_read_and_nothing_else() {
        for unix_ms in [0, 1, 951_782_400_000, 4_107_542_400_123, END_OF_9999_MS] {
            let time = Timestamp::from_unix_ms(unix_ms);
            assert_eq!(Timestamp::parse(&time.to_string()), Some(time));
            assert_eq!(time.unix_ms(), unix_ms);
        }
        for text in [
            "",
            "2026-03-01T12:00:00Z",
            "2026-03-01T12:00:00.123+00:00",
            "2026-03-01t12:00:00.123Z",
            "2026-02-29T12:00:00.123Z",
            "2026-13-01T12:00:00.123Z",
            "2026-00-01T12:00:00.123Z",
            "2026-03-00T12:00:00.123Z",
            "2026-03-01T24:00:00.123Z",
            "2026-03-01T12:60:00.123Z",
            "2026-03-01T12:00:60.123Z",
            "1969-12-31T23:59:59.999Z",
            "0000-01-01T00:00:00.000Z",
            "2026-03-01T12:00:00.12éZ",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut last = Timestamp::from_unix_ms(0).to_string();
        for day in 1..=END_OF_9999_MS / DAY_MS {
            let time = Timestamp::from_unix_ms(day * DAY_MS);
            let next = time.to_string();
            assert!(last < next, "{last} {next}");
            assert_eq!(Timestamp::parse(&next), Some(time));
            last = next;
        }
        assert_eq!(&last[..10], "9999-12-31");
    }
}
