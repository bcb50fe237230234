//! Rulings at the seams between rules: what one finding does to another, and
//! what a name that looks like something else is taken for.
#![cfg(unix)]

use std::fs;

use aegis::wire::digest::{self, Digest};
use aegis::wire::facts::Follows;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::assemble::{Chain, LineHash};
use crate::exe::Aegis;

fn following(segment: &str, tail: LineHash) -> Vec<Follows> {
    vec![Follows {
        segment: segment.to_owned(),
        tail,
    }]
}

fn elsewhere() -> LineHash {
    Digest::<digest::Line>::of(b"elsewhere")
}

/// An `open` Line whose `follows` is this value, and a `close`.
fn claims(follows: &Value) -> Chain {
    let mut chain = Chain::new();
    let key = chain.key.public_key().to_string();
    chain
        .begin()
        .raw_signed(json!({"line_type": "open", "public_key": key, "follows": follows}))
        .close();
    chain
}

/// The verdicts of a directory with these files, and its exit code.
fn verdicts(files: &[(&str, &Chain)]) -> (Vec<String>, i32) {
    let dir = TempDir::new().unwrap();
    for (name, chain) in files {
        fs::write(dir.path().join(name), chain.bytes()).unwrap();
    }
    let ran = Aegis::verify().arg(dir.path()).run();
    let verdicts = ran
        .stdout
        .lines()
        .filter(|line| line.contains(": ") || line.starts_with("Verified"))
        .map(str::to_owned)
        .collect();
    (verdicts, ran.code())
}

/// A process that was killed is anchored by the next; that an older Segment
/// is gone is not made good by it. SPEC [VERIFY-60].
#[test]
fn an_anchor_does_not_hide_what_is_missing() {
    let mut killed = Chain::new();
    killed.open_following(None, following("a.aarl", elsewhere()));
    let mut last = Chain::new();
    last.open_following(None, following("b.aarl", killed.tail))
        .close();
    let (verdicts, exit) = verdicts(&[("b.aarl", &killed), ("c.aarl", &last)]);
    assert_eq!(
        verdicts,
        [
            "Indeterminate: segment a.aarl, which b.aarl follows, is not here",
            "Verified (unpinned)"
        ]
    );
    assert_eq!(exit, 3);
}

/// An entry that cannot be judged takes no other with it. SPEC [VERIFY-60].
#[test]
fn an_entry_that_names_nothing_is_not_passed_over() {
    let first = Chain::session("one");
    let wrong = json!({"segment": "a.aarl", "tail": elsewhere().to_string()});
    let right = json!({"segment": "a.aarl", "tail": first.tail.to_string()});
    let missing =
        |name: &str| format!("Indeterminate: segment {name}, which b.aarl follows, is not here");
    for odd in [
        json!(7),
        json!({}),
        json!([]),
        json!("a.aarl"),
        json!({"segment": 7}),
    ] {
        let (verdicts, exit) = verdicts(&[
            ("a.aarl", &first),
            ("b.aarl", &claims(&json!([odd, right]))),
        ]);
        assert_eq!(verdicts, ["Verified (unpinned)", &missing("")], "{odd}");
        assert_eq!(exit, 3);
        let (verdicts, exit) = self::verdicts(&[
            ("a.aarl", &first),
            ("b.aarl", &claims(&json!([odd, wrong]))),
        ]);
        assert!(
            verdicts[0].starts_with("Tampered: segment a.aarl ends at "),
            "{odd}"
        );
        assert_eq!(exit, 1);
    }
    for tail in [
        json!("x"),
        json!(7),
        json!(first.tail.to_string().to_uppercase()),
    ] {
        let odd = json!([{"segment": "a.aarl", "tail": tail}]);
        let (verdicts, _) = verdicts(&[("a.aarl", &first), ("b.aarl", &claims(&odd))]);
        assert_eq!(verdicts, ["Verified (unpinned)", &missing("a.aarl")]);
    }
    for odd in [json!({"segment": "a.aarl"}), json!("a.aarl"), json!(1)] {
        let (verdicts, _) = verdicts(&[("b.aarl", &claims(&odd))]);
        assert_eq!(verdicts, [missing("")]);
    }
}

/// SPEC [VERIFY-64].
#[test]
fn what_passes_the_bound_of_followed_segments_does_not_stop_the_walk() {
    let many = vec![json!(0); aegis::verify::MAX_FOLLOWS + 1];
    let mut chain = claims(&json!(many));
    let limit = "Indeterminate: line 1 exceeds the verifier limit of 65536 followed segments";
    assert_eq!(verdicts(&[("b.aarl", &chain)]), (vec![limit.to_owned()], 3));
    chain.row(b"[]");
    let (verdicts, exit) = verdicts(&[("b.aarl", &chain)]);
    assert_eq!(verdicts, ["Tampered: line 3: not a JSON object"]);
    assert_eq!(exit, 1);
}

/// Only the quoted place is cut, not the words around it. SPEC [CLI-8].
#[test]
fn a_long_place_is_cut_alone() {
    let dir = TempDir::new().unwrap();
    let name = "k".repeat(600);
    fs::write(
        dir.path().join("a.aarl"),
        format!("{{\"{name}\":null}}\n{{}}\n"),
    )
    .unwrap();
    let ran = Aegis::verify().dir(dir.path()).arg("a.aarl").run();
    let expected = format!(
        "Tampered: line 1: outside the canonical value space, so it has no reproducible hash: \
         null at $.{}… (90 more characters); absent fields must be omitted, never null\n",
        "k".repeat(510)
    );
    assert_eq!(ran.stdout, expected);
}

/// A file that is named like a call for help must not turn a check green.
/// SPEC [CLI-2].
#[test]
fn files_named_like_help_are_files() {
    let dir = TempDir::new().unwrap();
    for name in ["help", "--help", "-h"] {
        fs::write(dir.path().join(name), b"{}\n{}\n").unwrap();
    }
    for (args, exit) in [
        (&["help"][..], 1),
        (&["--", "--help"], 1),
        (&["--", "-h"], 1),
        (&["--", "help"], 1),
        (&["./help", "help"], 1),
    ] {
        let ran = Aegis::verify().dir(dir.path()).args(args).run();
        assert!(
            ran.stdout.contains("Tampered: line 1: no line_type"),
            "{args:?}"
        );
        assert_eq!(ran.code(), exit, "{args:?}");
    }
    for args in [&["--help", "help"], &["help", "-h"]] {
        let ran = Aegis::verify().dir(dir.path()).args(args).run();
        assert_eq!(ran.code(), 1, "{args:?}");
        assert_eq!(ran.stdout, "");
        assert!(ran.stderr.starts_with("error: --help is only for itself"));
    }
    for help in ["--help", "-h"] {
        let ran = Aegis::verify().dir(dir.path()).arg(help).run();
        assert_eq!(ran.code(), 0);
        assert!(ran.stdout.starts_with("Usage: aegis verify "));
    }
}

#[test]
fn a_trust_store_is_read_up_to_a_bound() {
    let ran = Aegis::verify()
        .args(["--trust-store", "/dev/zero", "-"])
        .run();
    assert_eq!(ran.code(), 2);
    let expected = "error: read trust store /dev/zero: a trust store has at most 16 MiB\n";
    assert_eq!(ran.stderr, expected);
}

/// What says that it is empty may have something to say.
#[test]
#[cfg(target_os = "linux")]
fn a_file_of_the_system_is_read() {
    let ran = Aegis::verify().arg("/proc/version").run();
    assert_eq!(
        ran.stdout,
        "Indeterminate: final line 1 does not parse; torn write\n"
    );
}
