//! Whether two servers say the same.
//!
//! What a server says may differ from run to run: two plain runs tell what
//! does, and only that is left out.

use std::collections::BTreeSet;

use serde_json::Value;

use super::session::{CANCELLED, Talk, is_short, step_of};

/// What comparing answers came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sameness {
    /// Byte for byte: how many answers.
    Same(usize),
    /// But for values that differ between plain runs too: how many.
    SameBut { answers: usize, values: usize },
    /// Of these steps.
    Differs(Vec<&'static str>),
    /// There is nothing to be compared.
    Unknown,
}

/// Compares the answers of `other` to those of two plain runs.
pub(super) fn answers(plain: &Talk, again: &Talk, other: &Talk) -> Sameness {
    // One that is cancelled may be answered or not.
    compared(plain, again, other, |id| id != CANCELLED)
}

/// The same of a run that only shook hands and listed tools.
pub(super) fn short(plain: &Talk, again: &Talk, other: &Talk) -> Sameness {
    compared(plain, again, other, is_short)
}

fn compared(plain: &Talk, again: &Talk, other: &Talk, is_of_it: fn(u64) -> bool) -> Sameness {
    let compared = plain.answers.iter().filter(|(id, _)| is_of_it(**id));
    let mut count = 0;
    let mut values = 0;
    let mut differ = Vec::new();
    for (id, bytes) in compared {
        let Some(second) = again.answers.get(id) else {
            continue;
        };
        count += 1;
        let found = match other.answers.get(id) {
            Some(found) => found,
            None => {
                differ.push(step_of(*id));
                continue;
            }
        };
        if bytes == second {
            if found != bytes {
                differ.push(step_of(*id));
            }
            continue;
        }
        match masked(bytes, second, found) {
            Some(masked) => values += masked,
            None => differ.push(step_of(*id)),
        }
    }
    differ.dedup();
    match (count, values) {
        _ if !differ.is_empty() => Sameness::Differs(differ),
        (0, _) => Sameness::Unknown,
        (answers, 0) => Sameness::Same(answers),
        (answers, values) => Sameness::SameBut { answers, values },
    }
}

impl Sameness {
    pub(super) fn is_same(&self) -> bool {
        matches!(self, Self::Same(_) | Self::SameBut { .. })
    }
}

/// How many values of `bytes` and `second` differ, if `found` differs from
/// `bytes` in no others.
fn masked(bytes: &[u8], second: &[u8], found: &[u8]) -> Option<usize> {
    let value = |bytes| serde_json::from_slice::<Value>(bytes).ok();
    let (plain, again, other) = (value(bytes)?, value(second)?, value(found)?);
    let mut between = BTreeSet::new();
    differences(&plain, &again, &mut String::new(), &mut between);
    let mut found = BTreeSet::new();
    differences(&plain, &other, &mut String::new(), &mut found);
    found.is_subset(&between).then_some(between.len())
}

/// Where two values differ, as JSON pointers (RFC 6901) to the smallest values
/// that do.
fn differences(one: &Value, two: &Value, at: &mut String, found: &mut BTreeSet<String>) {
    let begin = at.len();
    let mut below = |name: &str, one: &Value, two: &Value, at: &mut String| {
        at.push('/');
        at.push_str(name);
        differences(one, two, at, found);
        at.truncate(begin);
    };
    match (one, two) {
        (Value::Object(one), Value::Object(two)) if one.keys().eq(two.keys()) => {
            for ((name, one), two) in one.iter().zip(two.values()) {
                below(name, one, two, at);
            }
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => {
            for (index, (one, two)) in one.iter().zip(two).enumerate() {
                below(&index.to_string(), one, two, at);
            }
        }
        _ if one != two => _ = found.insert(at.clone()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(answers: &[(u64, &str)]) -> Talk {
        let mut talk = Talk::new();
        for (id, bytes) in answers {
            talk.answers.insert(*id, bytes.as_bytes().to_vec());
        }
        talk
    }

    fn verdict(plain: &str, again: &str, other: &str) -> Sameness {
        let of = |bytes| talk(&[(1, bytes)]);
        answers(&of(plain), &of(again), &of(other))
    }

    /// SPEC [DOCTOR-10].
    #[test]
    fn every_byte_counts_unless_plain_runs_differ_there() {
        let differs = Sameness::Differs(vec!["initialize"]);
        let same = r#"{"id":1,"result":{"a":1}}"#;
        assert_eq!(verdict(same, same, same), Sameness::Same(1));
        // Equal as JSON is not enough.
        assert_eq!(
            verdict(same, same, r#"{"id":1, "result":{"a":1}}"#),
            differs
        );

        let at = |time: u32, tool: &str| format!(r#"{{"time":{time},"tools":["{tool}"]}}"#);
        let but = Sameness::SameBut {
            answers: 1,
            values: 1,
        };
        assert_eq!(verdict(&at(1, "a"), &at(2, "a"), &at(3, "a")), but);
        assert_eq!(verdict(&at(1, "a"), &at(2, "a"), &at(1, "a")), but);
        assert_eq!(verdict(&at(1, "a"), &at(2, "a"), &at(3, "b")), differs);
        assert_eq!(verdict("x", "y", "x"), differs);
    }

    #[test]
    fn answers_that_lack_are_told_apart_from_those_that_may() {
        let full = talk(&[(1, "a"), (CANCELLED, "b")]);
        let none = talk(&[]);
        let differs = Sameness::Differs(vec!["initialize"]);
        assert_eq!(answers(&full, &full, &none), differs);
        assert_eq!(answers(&full, &full, &talk(&[(1, "a")])), Sameness::Same(1));
        assert_eq!(answers(&none, &full, &full), Sameness::Unknown);
    }

    #[test]
    fn lists_of_another_length_differ_as_a_whole() {
        let mut found = BTreeSet::new();
        let (one, two) = (
            serde_json::json!({"a": [1]}),
            serde_json::json!({"a": [1, 2]}),
        );
        differences(&one, &two, &mut String::new(), &mut found);
        assert_eq!(found, BTreeSet::from(["/a".to_owned()]));
    }
}
