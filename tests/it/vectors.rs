//! Public vectors: the Agent Action Record's own, RFC 8785's and
//! JSONTestSuite's.
//!
//! They lie beside the project, in the folder that `AEGIS_VECTORS` names or
//! else in `../shared/vectors`. Without them these tests say so and end; when
//! the variable is set, missing vectors are a failure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use aegis::verify::{Options, verify};
use aegis::wire::canon::{CanonError, canonicalize};
use aegis::wire::decode::{Row, RowFault};

use crate::exe::Aegis;
use crate::published::GOLDEN;

#[test]
fn published_stdout_is_printed() {
    let Some(root) = vectors("expected_verify_stdout.txt") else {
        return;
    };
    let expected = read(&root.join("expected_verify_stdout.txt"));
    let expected = String::from_utf8(expected).expect("text");
    let mut checked = 0;
    for block in expected.split("### ").skip(1) {
        let (title, rest) = block.split_once('\n').expect("a title");
        let (exit, stdout) = rest.split_once('\n').expect("an exit code");
        let (name, more) = title.split_once(' ').expect("a name");
        let args = more.strip_prefix("with ").unwrap_or_default();
        let record = ["tampered", "indeterminate"]
            .iter()
            .map(|dir| root.join(dir).join(format!("{name}.aarl")))
            .find(|path| path.exists())
            .map_or_else(|| golden_session(&root), |path| read(&path));
        let ran = Aegis::verify()
            .args(args.split_whitespace())
            .arg("-")
            .stdin(&record)
            .run();
        assert_eq!(format!("exit {}", ran.code()), exit, "{title}");
        let stdout = stdout.trim_end();
        match stdout.split_once("<parser error>") {
            Some((before, after)) => {
                assert!(ran.stdout.starts_with(before), "{title}");
                assert!(ran.stdout.trim_end().ends_with(after), "{title}");
            }
            None => assert_eq!(ran.stdout.trim_end(), stdout, "{title}"),
        }
        checked += 1;
    }
    assert_eq!(checked, 17);
}

#[test]
fn hostile_records_have_their_verdicts() {
    let Some(root) = vectors("hostile/manifest.tsv") else {
        return;
    };
    let manifest = String::from_utf8(read(&root.join("hostile/manifest.tsv"))).expect("text");
    let mut checked = 0;
    for row in manifest.lines().skip(1) {
        let cells: Vec<_> = row.split('\t').collect();
        let record = read(&root.join("hostile").join(format!("{}.aarl", cells[0])));
        let mut options = Options::default();
        if cells
            .get(4)
            .is_some_and(|note| note.contains("--key dev key only"))
        {
            let dev = aegis::sign::SigningKey::insecure_dev().public_key();
            options.trust = aegis::verify::Trust::pinned(vec![dev]);
        }
        let report = verify(Box::new(std::io::Cursor::new(record)), &options).expect("readable");
        let verdict = report.verdict.to_string();
        assert!(verdict.starts_with(cells[2]), "{}: {verdict}", cells[0]);
        checked += 1;
    }
    assert!(checked >= 60, "{checked} rows");
}

/// RFC 8785's own: what a Line may hold must match, the rest is refused.
#[test]
fn jcs_texts_have_their_canonical_form() {
    let Some(root) = vectors("jcs/input") else {
        return;
    };
    let files = files(&root.join("jcs/input"));
    assert_eq!(files.len(), 6);
    for (name, input) in files {
        let found = canonicalize(&input);
        match name.as_str() {
            "arrays.json" | "structures.json" | "values.json" => {
                assert!(
                    matches!(found, Err(CanonError::ValueSpace(_))),
                    "{name}: {found:?}"
                );
            }
            _ => assert_eq!(
                found,
                Ok(read(&root.join("jcs/output").join(&name))),
                "{name}"
            ),
        }
    }
}

#[test]
fn json_test_suite_is_parsed_strictly() {
    let Some(root) = vectors("JSONTestSuite/test_parsing") else {
        return;
    };
    let mut seen = BTreeMap::new();
    for (name, text) in files(&root.join("JSONTestSuite/test_parsing")) {
        let found = canonicalize(&text);
        let outside = matches!(
            found,
            Err(CanonError::ValueSpace(_) | CanonError::Duplicate(_) | CanonError::TooDeep)
        );
        let (kind, right) = match name.get(..2) {
            Some("y_") => ("y", found.is_ok() || outside),
            Some("n_") => ("n", found.is_err()),
            // Left open by RFC 8259: numbers parse, and are outside the value
            // space; every text that is not UTF-8, or escapes a lone
            // surrogate, is refused.
            _ => ("i", found.is_err()),
        };
        assert!(right, "{name}: {found:?}");
        // A file that is no JSON can only be torn, unless it nests too deep.
        if kind == "n" {
            let row = Row::read(&text).map(drop);
            assert!(
                matches!(row, Err(RowFault::TooDeep))
                    || row.is_err_and(|fault| fault.is_unparsable()),
                "{name}"
            );
        }
        *seen.entry(kind).or_insert(0) += 1;
    }
    assert_eq!(seen, BTreeMap::from([("y", 95), ("n", 188), ("i", 35)]));
    for (name, text) in files(&root.join("JSONTestSuite/test_transform")) {
        let found = canonicalize(&text);
        match name.as_str() {
            "number_1000000000000000.json"
            | "object_key_nfc_nfd.json"
            | "object_key_nfd_nfc.json"
            | "string_with_escaped_NULL.json" => {
                assert!(found.is_ok(), "{name}: {found:?}");
            }
            _ => assert!(found.is_err(), "{name}: {found:?}"),
        }
    }
}

fn golden_session(root: &Path) -> Vec<u8> {
    let line = |name: &&str| {
        [
            read(&root.join(format!("golden/{name}.json"))),
            b"\n".to_vec(),
        ]
    };
    GOLDEN.iter().flat_map(line).flatten().collect()
}

/// The folder of vectors, if `needed` is in it.
#[allow(clippy::print_stderr)]
fn vectors(needed: &str) -> Option<PathBuf> {
    let named = env::var_os("AEGIS_VECTORS").map(PathBuf::from);
    let root = named
        .clone()
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/vectors"));
    if root.join(needed).exists() {
        return Some(root);
    }
    assert!(
        named.is_none(),
        "AEGIS_VECTORS has no {needed}: {}",
        root.display()
    );
    eprintln!(
        "NOT TESTED: no {needed} in {}; set AEGIS_VECTORS",
        root.display()
    );
    None
}

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(dir)
        .expect("a folder of vectors")
        .map(|entry| {
            let path = entry.expect("an entry is readable").path();
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            (name, read(&path))
        })
        .collect()
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).expect("a vector is readable")
}
