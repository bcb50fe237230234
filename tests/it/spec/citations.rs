//! Every rule of SPEC.md is shown by a test, or says here why by none.
//!
//! A citation is an id in brackets in code that only tests run. It stands
//! beside what would fail if the rule were broken.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{bracketed_ids, root, spec, split_id};

#[test]
fn every_rule_is_cited_by_a_test_or_says_why_not() {
    let stated: BTreeSet<_> = bracketed_ids(&spec()).into_iter().collect();
    let families: BTreeSet<_> = stated.iter().map(|id| split_id(id).0).collect();
    let cited = citations();
    let uncited: BTreeMap<_, _> = UNCITED.iter().copied().collect();
    assert_eq!(uncited.len(), UNCITED.len(), "an id is listed twice");

    let missing: Vec<_> = stated
        .iter()
        .filter(|id| !cited.contains_key(*id) && !uncited.contains_key(id.as_str()))
        .collect();
    assert!(missing.is_empty(), "cited by no test: {missing:?}");

    let both: Vec<_> = cited
        .iter()
        .filter(|(id, _)| uncited.contains_key(id.as_str()))
        .collect();
    assert!(both.is_empty(), "cited, and listed as uncited: {both:?}");

    let unknown: Vec<_> = cited
        .keys()
        .map(String::as_str)
        .chain(uncited.keys().copied())
        .filter(|id| families.contains(split_id(id).0) && !stated.contains(*id))
        .collect();
    assert!(unknown.is_empty(), "not in SPEC.md: {unknown:?}");

    let reasons: BTreeSet<_> = uncited.values().collect();
    assert_eq!(reasons.len(), uncited.len(), "two ids share a reason");
    assert!(uncited.values().all(|reason| reason.len() > 20));
}

#[test]
fn only_what_tests_run_counts() {
    let source =
        "// [A-1]\n#[cfg(test)]\nfn f() {} // [A-2]\n#[cfg(test)]\nmod tests {\n// [A-3]\n}\n";
    for (path, counted) in [
        ("src/chain/writer.rs", &["A-3"][..]),
        ("src/chain/writer/tests.rs", &["A-1", "A-2", "A-3"]),
        ("src/rpc/scan/tests/strict.rs", &["A-1", "A-2", "A-3"]),
        ("src/chain/testing.rs", &["A-1", "A-2", "A-3"]),
        ("tests/it/kit.rs", &["A-1", "A-2", "A-3"]),
    ] {
        assert_eq!(
            bracketed_ids(test_code(Path::new(path), source)),
            counted,
            "{path}"
        );
    }
}

/// Every file and every test that THREAT_MODEL.md names is there.
#[test]
fn what_the_threat_model_names_exists() {
    let text = fs::read_to_string(root().join("THREAT_MODEL.md")).expect("THREAT_MODEL.md");
    let mut sources = String::new();
    each_source(|_, source| sources.push_str(source));
    let mut tests = 0;
    for code in text.split('`').skip(1).step_by(2) {
        if ["src/", "tests/", "fixtures/"]
            .iter()
            .any(|start| code.starts_with(start))
        {
            assert!(root().join(code).exists(), "{code} is not there");
        }
        let is_name = code
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit());
        if is_name && code.matches('_').count() >= 3 {
            assert!(sources.contains(&format!("fn {code}(")), "no test {code}");
            tests += 1;
        }
    }
    assert!(tests > 30, "hardly any test was seen: {tests}");
}

/// The ids cited by test code, and one file each that does.
fn citations() -> BTreeMap<String, String> {
    let mut cited = BTreeMap::new();
    each_source(|path, text| {
        // This file speaks of ids without showing what they say.
        if path != Path::new(file!()) {
            for id in bracketed_ids(test_code(path, text)) {
                cited.insert(id, path.display().to_string());
            }
        }
    });
    cited
}

/// Calls `each` with the path, from the root, and the text of every source.
fn each_source(mut each: impl FnMut(&Path, &str)) {
    let mut pending = vec![root().join("src"), root().join("tests")];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).expect("a source directory is readable") {
            let path = entry.expect("an entry is readable").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).expect("a source file is readable");
                let inside = path.strip_prefix(root()).expect("a path below the root");
                each(inside, &text);
            }
        }
    }
}

/// What of a source file is compiled for tests only.
fn test_code<'a>(path: &Path, text: &'a str) -> &'a str {
    let is_test_file = path.starts_with("tests")
        || path.components().any(|part| {
            ["tests", "tests.rs", "testing.rs"].contains(&&*part.as_os_str().to_string_lossy())
        });
    if is_test_file {
        return text;
    }
    // The last module of a file, by the custom of this tree.
    text.find("#[cfg(test)]\nmod tests {")
        .map_or("", |at| &text[at..])
}

/// Rules that no test shows, and why. One that is cited must not stand here.
const UNCITED: &[(&str, &str)] = &[
    (
        "LINE-9",
        "nothing of this build does it yet: no Grant has roots or hosts, so no axis names one",
    ),
    (
        "LINE-11",
        "nothing of this build does it yet: nobody approves, and no Call is resumed",
    ),
    (
        "LINE-15",
        "nothing of this build does it yet: the only Grant that is made has no limit but 0",
    ),
    (
        "VER-3",
        "binds later versions of the text: no member has been added to this one",
    ),
    (
        "ENV-2",
        "speaks of an interface that must not be: callers outside this build can record nothing \
         but by `aegis wrap`, which takes frames",
    ),
    (
        "ENV-3",
        "nothing of this build does it yet: no Envelope is written or read",
    ),
    (
        "ENV-4",
        "nothing of this build could break it: `aegis verify` is given no Envelope",
    ),
];
