//! SPEC.md against itself and against the tree: its rules have ids that tests
//! cite, and what it prints hashes to what it publishes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use aegis::wire::escape::Escaped;
use ed25519_dalek::{SigningKey, VerifyingKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

mod citations;
mod vectors;

#[test]
fn every_rule_id_is_stated_once_and_numbered_without_a_hole() {
    let ids = bracketed_ids(&spec());
    let unique: BTreeSet<_> = ids.iter().collect();
    assert_eq!(ids.len(), unique.len(), "an id is stated twice: {ids:?}");

    let mut families: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for id in &ids {
        let (family, number) = split_id(id);
        families.entry(family).or_default().insert(number);
    }
    for (family, numbers) in families {
        let expected: BTreeSet<_> = (1..=numbers.len()).collect();
        assert_eq!(numbers, expected, "numbers of {family}");
    }
}

#[test]
fn rules_that_are_referred_to_exist() {
    let text = spec();
    let stated: BTreeSet<_> = bracketed_ids(&text).into_iter().collect();
    let families: BTreeSet<_> = stated.iter().map(|id| split_id(id).0).collect();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let dangling: Vec<_> = words
        .filter(|word| {
            word.split_once('-').is_some_and(|(family, number)| {
                families.contains(family) && number.bytes().all(|b| b.is_ascii_digit())
            })
        })
        .filter(|word| !stated.contains(*word))
        .collect();
    assert!(dangling.is_empty(), "{dangling:?}");
}

/// Every table row of SPEC §6 and §12 that names a printed block or prints
/// the bytes itself publishes their length, where it gives one, and hash.
#[test]
fn published_hashes_are_those_of_the_printed_bytes() {
    let text = spec();
    let mut blocks = blocks(&text);
    let session: String = golden_lines(&text)
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    blocks.insert("golden-session".to_owned(), session);

    let mut checked = BTreeSet::new();
    for cells in table_rows(&format!(
        "{}{}",
        section(&text, "## 6. "),
        section(&text, "## 12. ")
    )) {
        let Some(published) = cells.iter().skip(1).find_map(|cell| code_hash(cell)) else {
            continue;
        };
        let Some(name) = first_code(&cells[0]) else {
            continue;
        };
        // The vectors of §12.3 and §12.4 are assembled, not printed.
        if name.ends_with(".aarl") {
            continue;
        }
        let bytes = blocks.get(name).map_or(name, String::as_str);
        assert_eq!(sha256(bytes.as_bytes()), published, "{name}");
        if let Ok(length) = cells[1].parse::<usize>() {
            assert_eq!(bytes.len(), length, "{name}");
        }
        checked.insert(name.to_owned());
    }

    let unchecked: Vec<_> = blocks.keys().filter(|b| !checked.contains(*b)).collect();
    assert!(unchecked.is_empty(), "blocks without a hash: {unchecked:?}");
    assert_eq!(checked.len(), blocks.len() + POLICY_SETS + STAND_INS);
}

/// SPEC [CLI-8]: what is printed otherwise than it stands is the table's, and
/// the backslash.
#[test]
fn the_characters_that_are_escaped_are_those_of_the_table() {
    let text = spec();
    let from = text.find("| Escaped | Code points |").expect("the table");
    let rows = text[from..].lines().skip(2).take(2);
    let point = |text: &str| {
        let digits = text.trim().trim_start_matches("U+");
        u32::from_str_radix(digits, 16).expect("a code point")
    };
    let ranges: Vec<_> = rows
        .flat_map(|row| row.split('|').nth(2).expect("a second cell").split(", "))
        .map(|range| {
            let (first, last) = range.split_once(" to ").unwrap_or((range, range));
            point(first)..=point(last)
        })
        .collect();
    assert!(ranges.len() > 15, "{ranges:x?}");
    for c in (0..=0x10_ffff).filter_map(char::from_u32) {
        let code = u32::from(c);
        let is_listed = ranges.iter().any(|range| range.contains(&code)) || code & 0xfffe == 0xfffe;
        let expected = match c {
            '\\' => "\\\\".to_owned(),
            _ if is_listed => format!("\\u{{{code:x}}}"),
            c => c.to_string(),
        };
        assert_eq!(
            Escaped(c.encode_utf8(&mut [0; 4])).to_string(),
            expected,
            "{code:x}"
        );
    }
}

#[test]
fn printed_keys_are_the_fingerprints_of_their_seeds() {
    let text = section(&spec(), "## 12. ").to_owned();
    for seed in [DEV_SEED, &[9; 32]] {
        let public = SigningKey::from_bytes(seed).verifying_key();
        let key_id = sha256(public.as_bytes());
        assert!(text.contains(&format!("`{}`", hex(public.as_bytes()))));
        assert!(text.contains(&format!("`{key_id}`")));
    }
}

#[test]
fn golden_lines_chain_and_their_signatures_hold() {
    let text = spec();
    let lines = golden_lines(&text);
    assert_eq!(lines.len(), 12);
    let key = SigningKey::from_bytes(DEV_SEED).verifying_key();
    let mut tail = GENESIS.to_owned();
    for (seq, line) in lines.iter().enumerate() {
        let value: Value = serde_json::from_str(line).expect("a golden line is JSON");
        assert_eq!(canonical(&value), *line, "line {seq} is canonical");
        assert_eq!(value["seq"], json!(seq));
        assert_eq!(value["prev_hash"], json!(tail));
        tail = sha256(line.as_bytes());
        let signed = value["line_type"] != json!("intent");
        assert_eq!(value.get("signature").is_some(), signed, "line {seq}");
        if signed {
            assert_signed(&value, &key);
        }
    }
    let mut first: Value = serde_json::from_str(&lines[0]).expect("line 0 is JSON");
    first
        .as_object_mut()
        .expect("line 0 is an object")
        .remove("signature");
    assert_eq!(canonical(&first), blocks(&text)["signing-input-0"]);
}

fn assert_signed(line: &Value, key: &VerifyingKey) {
    let mut unsigned = line.clone();
    let members = unsigned.as_object_mut().expect("a line is an object");
    let signature = members.remove("signature").expect("a signature");
    let signature = unhex(signature.as_str().expect("a string"));
    let signature = ed25519_dalek::Signature::from_slice(&signature).expect("64 bytes");
    key.verify_strict(canonical(&unsigned).as_bytes(), &signature)
        .expect("the signature holds");
}

/// Canonical for the vectors: their names are ASCII, and `serde_json` keeps
/// members in byte order.
fn canonical(value: &Value) -> String {
    value.to_string()
}

fn spec() -> String {
    fs::read_to_string(root().join("SPEC.md")).expect("SPEC.md is readable")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Ids of the form `[NAME-1]`, in the order of the text.
fn bracketed_ids(text: &str) -> Vec<String> {
    text.split('[')
        .skip(1)
        .filter_map(|rest| rest.split_once(']').map(|(id, _)| id))
        .filter(|id| {
            id.split_once('-').is_some_and(|(family, number)| {
                !family.is_empty()
                    && family.bytes().all(|b| b.is_ascii_uppercase())
                    && !number.is_empty()
                    && number.bytes().all(|b| b.is_ascii_digit())
            })
        })
        .map(str::to_owned)
        .collect()
}

fn split_id(id: &str) -> (&str, usize) {
    let (family, number) = id.split_once('-').expect("an id has a number");
    (family, number.parse().expect("a small number"))
}

/// From the heading that starts with `heading` to the next of its level.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let start = text.find(&format!("\n{heading}")).expect("the section") + 1;
    let rest = &text[start..];
    let end = rest[1..].find("\n## ").map_or(rest.len(), |end| end + 2);
    &rest[..end]
}

/// The code blocks marked `aar`, by name, without the row end.
fn blocks(text: &str) -> BTreeMap<String, String> {
    text.split("\n```aar ")
        .skip(1)
        .map(|rest| {
            let (name, rest) = rest.split_once('\n').expect("a block has a name");
            let (bytes, _) = rest.split_once("\n```").expect("a block ends");
            (name.to_owned(), bytes.to_owned())
        })
        .collect()
}

fn golden_lines(text: &str) -> Vec<String> {
    let blocks = blocks(text);
    (0..)
        .map_while(|i| blocks.get(&format!("golden-{i}")).cloned())
        .collect()
}

fn table_rows(text: &str) -> Vec<Vec<String>> {
    text.lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|row| row.split(" | ").map(str::to_owned).collect())
        .collect()
}

fn first_code(cell: &str) -> Option<&str> {
    cell.split('`').nth(1)
}

fn code_hash(cell: &str) -> Option<String> {
    let code = cell.strip_prefix('`')?.strip_suffix('`')?;
    (code.len() == 64 && code.bytes().all(|b| b.is_ascii_hexdigit())).then(|| code.to_owned())
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex digits"))
        .collect()
}

const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";
const DEV_SEED: &[u8; 32] = b"aegis-insecure-dev-key-not-real!";
const POLICY_SETS: usize = 5;
const STAND_INS: usize = 4;
