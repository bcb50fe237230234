//! What a scalar of a document stands for.
//!
//! YAML readers disagree about plain scalars: `yes` is a truth value to one
//! and a text to another, `010` is eight or ten, `1:30` is ninety. A policy
//! means the same to all of them, so a plain scalar that some reader takes for
//! something else is no text here, and a number has one spelling.

use std::str::FromStr;

/// What a plain scalar could be taken for, other than a text.
pub(super) fn plain_type(text: &str) -> Option<&'static str> {
    if is_null(text) {
        Some("no value")
    } else if BOOLEANS.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        Some("a truth value")
    } else if is_number(text) {
        Some("a number")
    } else if is_date(text) {
        Some("a date")
    } else if matches!(text, "=" | "<<") {
        Some("a mark with a meaning of its own")
    } else {
        None
    }
}

/// Whether a plain scalar is the absence of a value.
pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~") || text.eq_ignore_ascii_case("null")
}

/// A whole number in its only spelling: digits, without leading zeros.
pub(super) fn integer<T: FromStr + ToString>(text: &str) -> Option<T> {
    let number: T = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn is_number(text: &str) -> bool {
    let signless = text.strip_prefix(['-', '+']);
    let has_sign = signless.is_some();
    let text = signless.unwrap_or(text);
    // Most texts are told by how they begin. Behind a sign some readers see a
    // number in `_` too.
    let begins = |c: char| c.is_ascii_digit() || c == '.' || has_sign && c == '_';
    if !text.starts_with(begins) {
        return false;
    }
    if text.eq_ignore_ascii_case(".inf") || text.eq_ignore_ascii_case(".nan") {
        return true;
    }
    let lower = text.to_ascii_lowercase();
    for prefix in ["0x", "0o", "0b"] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            return !digits.is_empty()
                && digits.bytes().all(|b| b.is_ascii_hexdigit() || b == b'_');
        }
    }
    if is_sexagesimal(text) {
        return true;
    }
    let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    mantissa.contains(|c: char| c.is_ascii_digit() || c == '_')
        && mantissa.matches('.').count() <= 1
        && mantissa
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_'))
        && !exponent.is_empty()
        && exponent.bytes().all(|b| b.is_ascii_digit())
}

/// Digits to the base of 60, as in `1:30` and `190:20:30.15` (YAML 1.1).
fn is_sexagesimal(text: &str) -> bool {
    let Some((whole, rest)) = text.split_once(':') else {
        return false;
    };
    let (places, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let are_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    whole.starts_with(|c: char| c.is_ascii_digit())
        && are_digits(whole)
        && places
            .split(':')
            .all(|part| !part.is_empty() && are_digits(part))
        && are_digits(fraction)
}

/// `2026-01-31`, alone or with a time of day behind it (YAML 1.1).
fn is_date(text: &str) -> bool {
    let date = text.split(['T', 't', ' ', '\t']).next().unwrap_or(text);
    let parts: Vec<_> = date.split('-').map(str::as_bytes).collect();
    let [year, month, day] = parts[..] else {
        return false;
    };
    year.len() == 4
        && matches!(month.len(), 1 | 2)
        && matches!(day.len(), 1 | 2)
        && parts.concat().iter().all(u8::is_ascii_digit)
}

/// The truth values of YAML 1.1 and 1.2.
const BOOLEANS: [&str; 8] = ["true", "false", "yes", "no", "on", "off", "y", "n"];

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC [POLICY-9].
    #[test]
    fn what_some_reader_takes_for_something_else_is_no_text() {
        for text in [
            "",
            "~",
            "null",
            "Null",
            "NULL",
            "yes",
            "No",
            "ON",
            "off",
            "y",
            "N",
            "true",
            "FALSE",
            "0",
            "-1",
            "+5",
            "010",
            "1_000",
            "0x1F",
            "0o17",
            "0b11",
            "1.5",
            ".5",
            "1.",
            "1e3",
            "1E-3",
            "-.inf",
            ".NaN",
            "+_",
            "-_0_8",
            "._",
            "1:30",
            "8:0",
            "-1:30:00",
            "190:20:30.15",
            "1_0:00.5",
            "2026-01-01",
            "2001-1-1 1:01:01",
            "2001-12-14t21:59:43.10-05:00",
            "2001-12-14 21:59:43 Z",
            "=",
            "<<",
        ] {
            assert!(plain_type(text).is_some(), "{text}");
        }
        for text in [
            "a",
            "*",
            "yes-man",
            "nullable",
            "1.2.3",
            "2fa",
            "0xyz",
            "e3",
            ".",
            "-",
            "1e",
            "x1",
            "2026-01",
            "2026-01-01-backup",
            "20260-01-01",
            "fs:read",
            "80:",
            "a:1",
            "1:a",
            "::",
            "_1",
            "_",
            "<",
            "==",
        ] {
            assert!(plain_type(text).is_none(), "{text}");
        }
    }

    /// SPEC [POLICY-9].
    #[test]
    fn a_number_has_one_spelling() {
        assert_eq!(integer::<i32>("-2147483648"), Some(i32::MIN));
        assert_eq!(integer::<u64>("18446744073709551615"), Some(u64::MAX));
        assert_eq!(integer::<u64>("0"), Some(0));
        for text in [
            "+5",
            "010",
            "1_000",
            "0x10",
            "1.0",
            "-0",
            "",
            "18446744073709551616",
        ] {
            assert_eq!(integer::<u64>(text), None, "{text}");
            assert_eq!(integer::<i32>(text), None, "{text}");
        }
    }
}
