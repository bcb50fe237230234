//! Names that could be meant by another name.

/// The name among `names` that `typed` is closest to, if it is close.
pub(crate) fn nearest<'a>(
    typed: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    names
        .into_iter()
        .filter_map(|name| Some((distance(typed, name)?, name)))
        .min()
        .map(|(_, name)| name)
}

/// How far apart two names are: 0 when they differ only in case, in blanks at
/// their ends or between `_`, `-` and blanks of any kind; else the letters
/// that one must change, add, drop or swap to get the other, when those are
/// one, or two of a name of five letters and more.
fn distance(a: &str, b: &str) -> Option<usize> {
    let (a, b) = (folded(a), folded(b));
    if a == b {
        return Some(0);
    }
    let shorter = a.len().min(b.len());
    let most = match shorter {
        0..=2 => return None,
        3..=4 => 1,
        _ => 2,
    };
    if a.len().abs_diff(b.len()) > most || a.len().max(b.len()) > MAX_LETTERS {
        return None;
    }
    Some(edits(&a, &b)).filter(|edits| *edits <= most)
}

/// A name without what two spellings of it may differ in.
fn folded(name: &str) -> Vec<char> {
    name.trim_matches(is_blank)
        .chars()
        .flat_map(|c| {
            let c = if c == '-' || is_blank(c) { '_' } else { c };
            c.to_lowercase()
        })
        .collect()
}

/// Whether a character shows as nothing or as a gap.
pub(crate) fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}'
            | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}')
}

/// The optimal string alignment distance.
fn edits(a: &[char], b: &[char]) -> usize {
    let width = b.len() + 1;
    let mut before_last = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1; width];
        for (j, y) in b.iter().enumerate() {
            let swapped = i > 0 && j > 0 && a[i - 1] == *y && b[j - 1] == *x;
            row[j + 1] = (last[j] + usize::from(x != y))
                .min(last[j + 1] + 1)
                .min(row[j] + 1);
            if swapped {
                row[j + 1] = row[j + 1].min(before_last[j - 1] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// Letters of the longest name that is compared letter by letter.
const MAX_LETTERS: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_and_what_is_not() {
        let near = |a, b| distance(a, b).is_some();
        for (a, b) in [
            ("toll", "tool"),
            ("Read_File", "read-file"),
            (" read", "read"),
            ("read\u{a0}file", "read_file"),
            ("raed", "read"),
            ("exfill", "exfil"),
            ("write_flie", "write_file"),
            ("deploy_prod", "deploy-prods"),
        ] {
            assert!(near(a, b), "{a} {b}");
            assert!(near(b, a), "{b} {a}");
        }
        for (a, b) in [
            ("ls", "rm"),
            ("read", "rm"),
            ("read", "write"),
            ("cat", "dog"),
            ("", "a"),
        ] {
            assert!(!near(a, b), "{a} {b}");
        }
        assert_eq!(nearest("tol", ["role", "tool", "id"]), Some("tool"));
        assert_eq!(nearest("zzz", ["role", "tool", "id"]), None);
    }

    #[test]
    fn a_long_name_is_compared_up_to_the_bound() {
        let at = "x".repeat(MAX_LETTERS);
        assert_eq!(distance(&format!("{}y", &at[1..]), &at), Some(1));
        assert_eq!(distance(&format!("{at}y"), &at), None);
    }
}
