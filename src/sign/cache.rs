//! The tables of the keys in use, shared by the threads of a verifier.
//!
//! A table costs about as much as a dozen plain verifications and holds
//! [`PreparedKey::TABLE_BYTES`], while a file of one-line Sessions can name a
//! new key every few hundred bytes. So a key earns its table, and a table that
//! had to go must be earned again: whatever a file holds, building tables adds
//! less than the [`PLAIN`] plain verifications before each of them cost, and
//! memory stays below [`TABLES`] tables plus one for each thread.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{PreparedKey, PublicKey, Signature, SignatureFault, verify_strict};

/// Verifies under any number of keys, fast under those that sign much.
///
/// Answers are those of [`verify_strict`] whatever was asked before.
#[derive(Default)]
pub(crate) struct KeyCache {
    /// The latest used first.
    entries: Mutex<Vec<Entry>>,
}

struct Entry {
    key: PublicKey,
    /// Signatures asked about so far, up to [`PLAIN`].
    seen: usize,
    table: Option<Arc<Table>>,
}

/// Filled outside of the lock, so that only threads that want this very key
/// wait for it.
type Table = OnceLock<Result<PreparedKey, SignatureFault>>;

impl KeyCache {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Checks that `signature` is one that `key` made over `message`.
    ///
    /// # Errors
    /// As [`verify_strict`].
    pub(crate) fn verify(
        &self,
        key: &PublicKey,
        message: &[u8],
        signature: &Signature,
    ) -> Result<(), SignatureFault> {
        match self.admit(key, 1) {
            (_, Some(table)) => prepared(key, &table)?.verify(message, signature),
            (_, None) => verify_strict(key, message, signature),
        }
    }

    /// Checks each of `items`, a message and its signature, on its own, and
    /// leaves in `out` one answer per item in their order.
    ///
    /// # Errors
    /// [`SignatureFault::NotAKey`] when there are items and `key` decodes to
    /// no point; `out` is empty then.
    pub(crate) fn verify_each(
        &self,
        key: &PublicKey,
        items: &[(&[u8], Signature)],
        out: &mut Vec<bool>,
    ) -> Result<(), SignatureFault> {
        out.clear();
        let (plain, table) = self.admit(key, items.len());
        for (message, signature) in &items[..plain] {
            let answer = verify_strict(key, message, signature);
            if answer == Err(SignatureFault::NotAKey) {
                return Err(SignatureFault::NotAKey);
            }
            out.push(answer.is_ok());
        }
        if let Some(table) = table {
            prepared(key, &table)?.append_each(&items[plain..], out);
        }
        Ok(())
    }

    /// Counts `count` signatures of `key`: how many of them are to be checked
    /// plainly, and the table for the rest if there is a rest.
    fn admit(&self, key: &PublicKey, count: usize) -> (usize, Option<Arc<Table>>) {
        // A panic elsewhere leaves the list whole: it is changed in steps that
        // are each valid.
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        touch(&mut entries, key);
        let plain = count.min(PLAIN - entries[0].seen);
        entries[0].seen += plain;
        if plain == count {
            return (plain, None);
        }
        if entries[0].table.is_none() {
            make_room(&mut entries);
        }
        let table = entries[0].table.get_or_insert_default();
        (plain, Some(Arc::clone(table)))
    }
}

/// Moves the entry of `key` to the front, or puts a new one there.
fn touch(entries: &mut Vec<Entry>, key: &PublicKey) {
    match entries.iter().position(|entry| entry.key == *key) {
        Some(at) => entries[..=at].rotate_right(1),
        None => {
            entries.truncate(KEYS - 1);
            entries.insert(
                0,
                Entry {
                    key: *key,
                    seen: 0,
                    table: None,
                },
            );
        }
    }
}

/// Forgets the key whose table went unused longest if there are [`TABLES`].
fn make_room(entries: &mut Vec<Entry>) {
    let held = || entries.iter().filter(|entry| entry.table.is_some());
    if held().count() >= TABLES
        && let Some(at) = entries.iter().rposition(|entry| entry.table.is_some())
    {
        entries.remove(at);
    }
}

fn prepared<'a>(key: &PublicKey, table: &'a Table) -> Result<&'a PreparedKey, SignatureFault> {
    let built = table.get_or_init(|| PreparedKey::new(key));
    built.as_ref().map_err(|&fault| fault)
}

/// Signatures of a key that are checked plainly before it gets a table.
const PLAIN: usize = 32;

/// Tables held at one time.
const TABLES: usize = 8;

/// Keys counted at one time.
const KEYS: usize = 64;

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::SigningKey;
    use super::*;

    fn signing(number: u8) -> SigningKey {
        SigningKey::from_seed(&[number; 32])
    }

    /// Asks `count` times about one honest signature of `key`.
    fn ask(cache: &KeyCache, key: &SigningKey, count: usize) {
        let signature = key.sign(b"m");
        for _ in 0..count {
            assert_eq!(cache.verify(&key.public_key(), b"m", &signature), Ok(()));
        }
    }

    fn has_table(cache: &KeyCache, key: &SigningKey) -> bool {
        let entries = cache.entries.lock().unwrap();
        entries
            .iter()
            .any(|entry| entry.key == key.public_key() && entry.table.is_some())
    }

    fn tables(cache: &KeyCache) -> usize {
        let entries = cache.entries.lock().unwrap();
        entries.iter().filter(|entry| entry.table.is_some()).count()
    }

    #[test]
    fn a_key_earns_its_table() {
        let cache = KeyCache::new();
        ask(&cache, &signing(1), PLAIN);
        assert!(!has_table(&cache, &signing(1)));
        ask(&cache, &signing(1), 1);
        assert!(has_table(&cache, &signing(1)));
    }

    #[test]
    fn the_table_unused_longest_goes_and_must_be_earned_again() {
        let cache = KeyCache::new();
        for number in 0..TABLES as u8 {
            ask(&cache, &signing(number), PLAIN + 1);
        }
        assert_eq!(tables(&cache), TABLES);
        ask(&cache, &signing(0), 1);
        ask(&cache, &signing(100), PLAIN + 1);
        assert_eq!(tables(&cache), TABLES);
        assert!(has_table(&cache, &signing(0)));
        assert!(!has_table(&cache, &signing(1)));
        ask(&cache, &signing(1), PLAIN);
        assert!(!has_table(&cache, &signing(1)));
    }

    #[test]
    fn keys_that_sign_once_cost_no_table_and_no_memory() {
        let cache = KeyCache::new();
        for number in 0..=KEYS as u8 {
            ask(&cache, &signing(number), 1);
            let held = cache.entries.lock().unwrap().len();
            assert_eq!(held, KEYS.min(usize::from(number) + 1));
        }
        assert_eq!(tables(&cache), 0);
    }

    #[test]
    fn answers_do_not_depend_on_what_was_asked_before() {
        let cache = KeyCache::new();
        let key = signing(4);
        let good = key.sign(b"m");
        let bad = key.sign(b"n");
        for round in 0..2 * PLAIN {
            let expected = round % 2 == 0;
            let signature = if expected { &good } else { &bad };
            let answer = cache.verify(&key.public_key(), b"m", signature);
            assert_eq!(answer.is_ok(), expected, "round {round}");
        }
        for count in [0, 1, PLAIN, PLAIN + 1, 3 * PLAIN] {
            let items: Vec<(&[u8], Signature)> = (0..count)
                .map(|i| (b"m".as_slice(), if i % 3 == 0 { bad } else { good }))
                .collect();
            let expected: Vec<bool> = (0..count).map(|i| i % 3 != 0).collect();
            for cache in [&cache, &KeyCache::new()] {
                let mut answers = vec![false; 7];
                assert_eq!(
                    cache.verify_each(&key.public_key(), &items, &mut answers),
                    Ok(())
                );
                assert_eq!(answers, expected);
            }
        }
    }

    #[test]
    fn what_is_no_key_stays_none() {
        let cache = KeyCache::new();
        let mut bytes = [0; 32];
        bytes[0] = 2;
        let key = PublicKey::from_bytes(bytes);
        let signature = signing(1).sign(b"m");
        for _ in 0..=PLAIN {
            let answer = cache.verify(&key, b"m", &signature);
            assert_eq!(answer, Err(SignatureFault::NotAKey));
            let mut answers = vec![true];
            let answer = cache.verify_each(&key, &[(b"m", signature)], &mut answers);
            assert_eq!(answer, Err(SignatureFault::NotAKey));
            assert!(answers.is_empty());
        }
    }

    #[test]
    fn threads_share_one_table() {
        let cache = KeyCache::new();
        let key = signing(6);
        ask(&cache, &key, PLAIN);
        let tables: Vec<Arc<Table>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        ask(&cache, &key, 3);
                        cache.admit(&key.public_key(), 1).1.unwrap()
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(tables.iter().all(|table| Arc::ptr_eq(table, &tables[0])));
        assert!(tables[0].get().is_some());
    }
}
