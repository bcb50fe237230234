//! What a scalar of a document stands for.
//!
//! YAML readers disagree about plain scalars: `yes` is a truth value to one
//! and a text to another, `010` is eight or ten. A policy means the same to
//! all of them, so a plain scalar that some reader takes for something else is
//! no text here, and a number has one spelling.

use std::str::FromStr;

/// What a plain scalar could be taken for, other than a text.
pub(super) fn plain_type(text: &str) -> Option<&'static str> {
    if is_null(text) {
        Some("no value")
    } else if BOOLEANS.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        Some("a truth value")
    } else if is_number(text) {
        Some("a number")
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
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
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
    let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    mantissa.contains(|c: char| c.is_ascii_digit())
        && mantissa.matches('.').count() <= 1
        && mantissa
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_'))
        && !exponent.is_empty()
        && exponent.bytes().all(|b| b.is_ascii_digit())
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
            "", "~", "null", "Null", "NULL", "yes", "No", "ON", "off", "y", "N", "true", "FALSE",
            "0", "-1", "+5", "010", "1_000", "0x1F", "0o17", "0b11", "1.5", ".5", "1.", "1e3",
            "1E-3", "-.inf", ".NaN",
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
            "2026-01-01",
            "fs:read",
            "_1",
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
