//! The deny suite: for each way to be refused, what the client sends and
//! gets, what the server sees, and the Lines of the record.
//!
//! Each file of `fixtures/deny-suite` is one session. When
//! they are written anew, their first three members stay.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::gate::gated;
use super::harness::until;

/// One session.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The document.
    policy: String,
    /// Of wrap, besides.
    flags: Vec<String>,
    /// What the client sends, one frame each.
    client: Vec<String>,
    /// What it gets, sorted: a refusal may overtake an answer.
    answers: Vec<String>,
    /// The calls that the server executes.
    effects: Vec<String>,
    /// The record, with what is of this one run replaced.
    lines: Vec<String>,
}

/// SPEC [WRAP-1] [WRAP-2] [WRAP-4] [WRAP-5] [LINE-19] [LINE-21].
#[test]
fn every_refusal_is_the_published_one_when_rebuilt() {
    let paths = paths();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        let case: Case = serde_json::from_str(&text).unwrap();
        let found = run(&case);
        if std::env::var_os("AEGIS_WRITE_FIXTURES").is_some() {
            let text = serde_json::to_string_pretty(&found).unwrap();
            std::fs::write(path, text + "\n").unwrap();
            continue;
        }
        assert_eq!(found, case, "{}", path.display());
    }
    let names: Vec<_> = paths.iter().map(|path| path.file_stem().unwrap()).collect();
    let expected = [
        "batch_no_id",
        "batch_sibling",
        "batch_unreadable",
        "default_deny",
        "deny_code",
        "deny_detail",
        "long_name",
        "modern",
        "no_id",
        "no_name",
        "null_id",
        "pending_approval",
        "policy_deny",
        "rate_limit",
        "shadow",
        "shadow_unreadable",
        "unreadable",
        "unreadable_response",
    ];
    assert_eq!(names, expected);
}

fn run(case: &Case) -> Case {
    let flags: Vec<&str> = case.flags.iter().map(String::as_str).collect();
    let setup = gated(&case.policy, &flags);
    let mut session = setup.start();
    for frame in &case.client {
        let outcomes = || {
            let text = std::fs::read_to_string(setup.audit()).unwrap_or_default();
            text.matches("\"line_type\":\"outcome\"").count()
        };
        let before = outcomes();
        session.send(format!("{frame}\n").as_bytes());
        // The server may answer later than the next frame comes.
        until("its outcome", || outcomes() > before);
    }
    let ended = session.finish();
    ended.assert_exit(0);
    assert_eq!(ended.stderr, "");
    ended.record.assert_verified();
    let mut answers: Vec<_> = ended
        .frames
        .iter()
        .map(|frame| {
            let said = std::str::from_utf8(frame).unwrap();
            without_nonce(said.strip_suffix('\n').unwrap())
        })
        .collect();
    answers.sort();
    let text = std::fs::read_to_string(setup.audit()).unwrap();
    Case {
        answers,
        effects: setup.effects(),
        lines: text.lines().map(normalised).collect(),
        ..case.clone()
    }
}

/// A Line with what differs from run to run replaced. The rest keeps its
/// bytes: sorting, as the canonical form has it, is all that is done to it.
fn normalised(line: &str) -> String {
    let mut line: Value = serde_json::from_str(&without_nonce(line)).unwrap();
    let members = line.as_object_mut().unwrap();
    for (name, value) in members.iter_mut() {
        if ["prev_hash", "session_id", "signature", "time", "child"].contains(&name.as_str()) {
            *value = format!("<{name}>").into();
        }
        if name == "wall_ms" {
            *value = 0.into();
        }
        if name == "emitter" {
            value["version"] = "<version>".into();
        }
    }
    line.to_string()
}

/// The 32 digits that make an approval id unique.
fn without_nonce(text: &str) -> String {
    let Some(at) = text.find("apr-") else {
        return text.to_owned();
    };
    let digits = |at: usize| {
        let nonce = text.get(at..at + 32)?;
        nonce
            .bytes()
            .all(|b| b.is_ascii_hexdigit())
            .then_some(nonce)
    };
    let nonce = (at..text.len()).find_map(digits).unwrap();
    text.replacen(nonce, "<nonce>", 1)
}

fn paths() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/deny-suite");
    let mut paths: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
}
