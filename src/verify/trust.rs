//! Which keys a caller accepts (SPEC §8.4).

use thiserror::Error;

use crate::sign::PublicKey;
use crate::wire::hex::HexError;

/// The caller's pin. A store that yields no keys is a pin that nothing can
/// satisfy: a truncated or mis-mounted store must not read as "unpinned".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// No pin was asked for.
    Unpinned,
    /// Every Session must be opened under one of these keys.
    Pinned(PinnedKeys),
    /// A pin was asked for, and no key was supplied.
    PinnedToNothing,
}

/// At least one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedKeys(Vec<PublicKey>);

impl Trust {
    /// A pin to these keys, be they none.
    pub fn pinned(mut keys: Vec<PublicKey>) -> Self {
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            Self::PinnedToNothing
        } else {
            Self::Pinned(PinnedKeys(keys))
        }
    }

    /// Whether a Session may be opened under `key`.
    pub fn accepts(&self, key: &PublicKey) -> bool {
        match self {
            Self::Unpinned => true,
            Self::Pinned(PinnedKeys(keys)) => keys.binary_search(key).is_ok(),
            Self::PinnedToNothing => false,
        }
    }

    /// Whether a pin was asked for.
    pub fn is_pinned(&self) -> bool {
        *self != Self::Unpinned
    }
}

/// The keys of a trust store: one a line in lower-case hexadecimal, blank
/// lines and lines that begin with `#` skipped, spaces, tabs and carriage
/// returns around them dropped (SPEC §9.3).
///
/// # Errors
/// The first line that is none of these: silently fewer keys would weaken the
/// pin, or break it, without a word.
pub fn read_store(text: &str) -> Result<Vec<PublicKey>, StoreError> {
    text.lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.trim_matches([' ', '\t', '\r'])))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(line, key)| PublicKey::from_hex(key).map_err(|reason| StoreError { line, reason }))
        .collect()
}

/// A line of a trust store that is not a key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line} is not a public key: {reason}")]
pub struct StoreError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: HexError,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC [KEY-13].
    #[test]
    fn a_store_is_read_whole_or_not_at_all() {
        let key = PublicKey::from_bytes([7; 32]);
        let store = format!("# ours\r\n\n  {key}\t\r\n#{key}\n{key}");
        assert_eq!(read_store(&store), Ok(vec![key, key]));
        assert_eq!(
            read_store(&format!("{key} # ours"))
                .unwrap_err()
                .to_string(),
            "line 1 is not a public key: expected 64 hex characters, got 71"
        );
        // What a reader cannot see is not dropped in silence.
        for invisible in ['\u{feff}', '\u{a0}', '\u{b}', '\u{c}', '\u{3000}'] {
            let store = format!("\n{invisible}{key}");
            assert_eq!(read_store(&store).unwrap_err().line, 2);
        }
    }

    /// SPEC [KEY-8].
    #[test]
    fn no_keys_accept_nothing() {
        let key = PublicKey::from_bytes([7; 32]);
        assert!(!Trust::pinned(Vec::new()).accepts(&key));
        assert!(Trust::pinned(Vec::new()).is_pinned());
        assert!(Trust::Unpinned.accepts(&key));
        assert!(Trust::pinned(vec![key]).accepts(&key));
        assert!(!Trust::pinned(vec![PublicKey::from_bytes([8; 32])]).accepts(&key));
    }
}
