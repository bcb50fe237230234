//! `aegis verify --require` as a person or a script meets it (SPEC §8.11).

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;

use aegis::sign::PublicKey;
use aegis::verify::{MAX_UNMET, Options, Requirement, Trust, Verdict, verify};
use aegis::wire::digest::Digest;
use aegis::wire::facts::{
    Confinement, Durability, Failed, Follows, NetworkMode, PolicyInForce, PolicyStatus,
};
use aegis::wire::line::OpenFacts;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::assemble::{Chain, foreign_key};
use crate::exe::Aegis;
use crate::facts::confined;
use crate::kit::{assert_folder, read_folder};

fn with_holes(holes: &[&str]) -> Confinement {
    let mut confined = confined();
    confined.holes = holes.iter().map(|hole| (*hole).to_owned()).collect();
    Confinement::Full(Box::new(confined))
}

fn partial() -> Confinement {
    let mut confined = confined();
    confined.network = NetworkMode::PortOnly;
    confined.address_check = None;
    confined.namespaces.clear();
    confined.gaps = vec!["network".to_owned()];
    confined.best_effort = true;
    Confinement::Partial(Box::new(confined))
}

/// The members of an `open` that aegis would write.
fn said(confinement: Confinement) -> Value {
    let facts = OpenFacts {
        durability: Some(Durability::Intent),
        confinement: Some(confinement),
        policy: Some(PolicyInForce {
            status: PolicyStatus::Enforced,
            policy_set_hash: Digest::of(b"a set"),
        }),
        ..OpenFacts::default()
    };
    serde_json::to_value(facts).expect("members")
}

fn session(said: Value) -> Chain {
    let mut chain = Chain::new();
    chain.open_saying(said).call("a").close();
    chain
}

/// What each record of the folder is made of.
fn records() -> BTreeMap<&'static str, Chain> {
    let mut without = said(with_holes(&[]));
    for member in ["durability", "confinement", "policy"] {
        without.as_object_mut().expect("an object").remove(member);
    }
    let mut newer = said(with_holes(&["x11-sockets"]));
    newer["confinement"]["status"] = json!("full");
    newer["confinement"]["network"] = json!("vpn\u{1b}");
    newer["durability"] = json!("replicated");
    let mut newest = said(with_holes(&[]));
    newest["confinement"]["status"] = json!("fuller");
    let mut odd = said(with_holes(&[]));
    odd["confinement"]["network"] = json!(["denied-netns"]);
    odd["durability"] = json!(1);
    odd["policy"] = json!("enforced");
    let mut two = session(said(with_holes(&[])));
    two.open_saying(said(Confinement::None)).call("b").close();
    let failed = Confinement::Failed(Failed {
        cause: "this kernel offers no Landlock".to_owned(),
    });
    BTreeMap::from([
        ("full.aarl", session(said(with_holes(&[])))),
        (
            "holes.aarl",
            session(said(with_holes(&["unix-sockets", "shared-cache"]))),
        ),
        ("partial.aarl", session(said(partial()))),
        ("none.aarl", session(said(Confinement::None))),
        ("failed.aarl", session(said(failed))),
        ("absent.aarl", session(without)),
        ("unknown-values.aarl", session(newer)),
        ("unknown-status.aarl", session(newest)),
        ("other-types.aarl", session(odd)),
        ("second-session-unconfined.aarl", two),
    ])
}

/// Asked of every record of the folder.
const ASKED: [&str; 14] = [
    "confine=full",
    "confine=full|partial",
    "confine!=none",
    "net=denied",
    "net=denied|host-port",
    "net!=unrestricted",
    "metadata=denied",
    "durability=full|intent",
    "durability!=process",
    "policy=enforced",
    "policy!=shadow",
    "hole!=any",
    "hole!=unix-sockets",
    "hole!=upstream-proxy",
];

/// What the library says of a record and a requirement: the exit code, and the
/// rows of what is unmet.
fn asked(record: &[u8], requirement: &str) -> String {
    let options = Options {
        trust: Trust::pinned(vec![Chain::new().key.public_key()]),
        require: vec![requirement.parse().expect("a requirement")],
        ..Options::default()
    };
    let report = verify(Box::new(Cursor::new(record.to_vec())), &options).expect("readable");
    assert_eq!(report.verdict.exit_code(), 0, "{}", report.verdict);
    let required = report.required().expect("asked and Verified");
    let rows: Vec<_> = required.unmet.iter().map(ToString::to_string).collect();
    match rows.is_empty() {
        true => "0\t".to_owned(),
        false => format!("4\t{}", rows.join("; ")),
    }
}

/// SPEC [REQUIRE-3] [REQUIRE-4] [REQUIRE-5] [REQUIRE-6] [REQUIRE-7], and every
/// key and operator.
#[test]
fn records_to_require_of_are_rebuilt() {
    let mut files: BTreeMap<String, Vec<u8>> = records()
        .iter()
        .map(|(name, chain)| ((*name).to_owned(), chain.bytes()))
        .collect();
    let mut cases = "record\trequirement\texit\tunmet\n".to_owned();
    for (name, record) in &files {
        for requirement in ASKED {
            let answer = asked(record, requirement);
            cases.push_str(&format!("{name}\t{requirement}\t{answer}\n"));
        }
    }
    files.insert("cases.tsv".to_owned(), cases.into_bytes());
    assert_folder("require", &files);
}

/// A folder with the records, and with ones that cannot be asked.
fn folder() -> TempDir {
    let dir = TempDir::new().expect("a folder");
    let write =
        |name: &str, bytes: Vec<u8>| fs::write(dir.path().join(name), bytes).expect("writable");
    for (name, bytes) in read_folder("require") {
        write(&name, bytes);
    }
    let mut bad = session(said(Confinement::None));
    bad.rows.remove(1);
    write("bad.aarl", bad.bytes());
    let mut open = Chain::new();
    open.open_saying(said(Confinement::None)).intent("c");
    write("open.aarl", open.bytes());
    let mut torn = session(said(Confinement::None)).bytes();
    torn.extend(b"{\"half\":");
    write("torn.aarl", torn);
    dir
}

fn dev() -> String {
    Chain::new().key.public_key().to_string()
}

macro_rules! snapshot {
    ($name:expr, $aegis:expr) => {
        insta::assert_snapshot!($name, $aegis.run().shown());
    };
}

/// SPEC [REQUIRE-1] [REQUIRE-2] [REQUIRE-8] [CLI-2]: found before anything is
/// read.
#[test]
fn usage_errors() {
    let dev = dev();
    for (name, args) in [
        ("no_pin", &["--require", "confine=full"][..]),
        ("no_pin_and_no_requirement", &["--require", "x"]),
        ("no_value", &["--key", &dev, "missing.aarl", "--require"]),
        ("no_operator", &["--key", &dev, "--require", "confine"]),
        (
            "no_such_key",
            &["--key", &dev, "--require", "confined=full"],
        ),
        (
            "no_such_value",
            &["--key", &dev, "--require", "confine=ful"],
        ),
        (
            "no_such_net",
            &["--key", &dev, "--require", "net=denied|off"],
        ),
        (
            "blanks",
            &["--key", &dev, "--require", "net=denied | host-port"],
        ),
        (
            "double_equals",
            &["--key", &dev, "--require", "confine==full"],
        ),
        (
            "hole_is",
            &["--key", &dev, "--require", "hole=unix-sockets"],
        ),
        (
            "hole_unknown",
            &["--key", &dev, "--require", "hole!=x\u{1b}"],
        ),
        (
            "second_is_bad",
            &["--key", &dev, "--require", "confine=full", "--require=net"],
        ),
        ("help_word", &["--key", &dev, "--require", "help"]),
    ] {
        let ran = Aegis::verify().args(args).arg("missing.aarl").run();
        assert_eq!(ran.code(), 1, "{name}");
        assert_eq!(ran.stdout, "", "{name}");
        let (first, _) = ran.stderr.split_once("Usage: ").expect("the usage");
        insta::assert_snapshot!(format!("usage_{name}"), first.trim_end());
    }
}

/// SPEC [REQUIRE-1] [REQUIRE-2]: the grammar that is printed is the one that is
/// read, and no value more.
#[test]
fn the_printed_grammar_is_the_one_that_is_read() {
    let spec = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/SPEC.md"));
    let spec = spec.expect("SPEC.md is readable");
    let (_, rest) = spec
        .split_once("```abnf\nrequirement")
        .expect("the grammar");
    let (grammar, _) = rest.split_once("\n```").expect("its end");
    let mut rules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut name = "";
    for line in grammar.lines().skip(1) {
        let (left, right) = line.split_at(12);
        if !left.trim().is_empty() {
            name = left.trim();
        }
        rules
            .entry(name)
            .or_default()
            .extend(right.split('"').skip(1).step_by(2));
    }
    let help = Aegis::verify().arg("--help").run().stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for (operator, rule) in [("=", "is"), ("!=", "is-not")] {
        let keys = rules[rule]
            .iter()
            .filter(|text| !["|", operator].contains(text));
        let mut seen = 0;
        for key in keys {
            seen += 1;
            let parse = |values: &str| {
                format!("{key}{operator}{values}")
                    .parse::<Requirement>()
                    .map(|r| r.to_string())
            };
            let all = rules[key].join("|");
            assert_eq!(parse(&all), Ok(format!("{key}{operator}{all}")));
            let error = parse("?").expect_err("no value").to_string();
            let known = rules[key].join(", ");
            assert!(help.contains(&known), "{key} in the help");
            assert_eq!(error, format!("{key} has no value `?`; it has {known}"));
        }
        assert_eq!(seen, rules.len() - if rule == "is" { 3 } else { 2 });
    }
}

/// SPEC [REQUIRE-7] [REQUIRE-9] [REQUIRE-10].
#[test]
fn records_by_name() {
    let dir = folder();
    let dev = dev();
    for (name, args) in [
        ("met", &["--require", "confine=full", "full.aarl"][..]),
        (
            "all_met",
            &[
                "--require=confine=full",
                "--require=net!=unrestricted",
                "--require=hole!=any",
                "full.aarl",
            ],
        ),
        (
            "one_of_three_unmet",
            &[
                "--require",
                "confine=full",
                "--require",
                "net=denied",
                "--require",
                "durability!=process",
                "full.aarl",
            ],
        ),
        (
            "same_twice",
            &[
                "--require",
                "net=denied",
                "--require",
                "net=denied|denied",
                "full.aarl",
            ],
        ),
        (
            "one_session_of_two",
            &[
                "--require",
                "confine=full",
                "second-session-unconfined.aarl",
            ],
        ),
        (
            "unknown",
            &[
                "--require",
                "net!=unrestricted",
                "--require",
                "hole!=any",
                "unknown-values.aarl",
            ],
        ),
        (
            "json_met",
            &["--require", "confine=full", "--format", "json", "full.aarl"],
        ),
        (
            "json_unmet",
            &[
                "--require",
                "confine=full",
                "--require",
                "net=denied",
                "--format",
                "json",
                "second-session-unconfined.aarl",
            ],
        ),
        (
            "json_torn",
            &["--require", "confine=full", "--format", "json", "torn.aarl"],
        ),
        ("bad", &["--require", "confine=full", "bad.aarl"]),
        ("open", &["--require", "confine=full", "open.aarl"]),
        ("torn", &["--require", "confine=full", "torn.aarl"]),
        ("missing", &["--require", "confine=full", "missing.aarl"]),
    ] {
        snapshot!(
            name,
            Aegis::verify()
                .dir(dir.path())
                .args(["--key", &dev])
                .args(args)
        );
    }
}

/// SPEC [REQUIRE-8]: a store without keys is a pin, and nothing meets it.
#[test]
fn pins() {
    let dir = folder();
    fs::write(dir.path().join("empty"), "# nobody\n").expect("writable");
    let foreign = foreign_key().public_key().to_string();
    for (name, pin) in [
        ("empty_store", &["--trust-store", "empty"]),
        ("other_key", &["--key", &*foreign]),
    ] {
        let ran = Aegis::verify()
            .dir(dir.path())
            .args(pin)
            .args(["--require", "confine=full", "none.aarl"])
            .run();
        assert_eq!(ran.code(), 1, "{name}");
        assert!(
            ran.stdout
                .starts_with("Tampered: session opened at session 0"),
            "{name}"
        );
        assert!(!ran.stdout.contains("unmet"), "{name}");
    }
    // Through the library nothing is told without a pin, so nothing is met.
    let options = Options {
        require: vec!["confine=full".parse().expect("a requirement")],
        ..Options::default()
    };
    let record = Box::new(Cursor::new(records()["full.aarl"].bytes()));
    let report = verify(record, &options).expect("readable");
    assert!(matches!(report.verdict, Verdict::Verified(_)));
    assert_eq!(report.required(), None);
}

/// SPEC [CLI-3] [REQUIRE-9]: the first of 1, 2, 3, 4, 0.
#[test]
fn several_inputs() {
    let dir = folder();
    let dev = dev();
    let elsewhere = "0".repeat(64);
    for (code, inputs) in [
        (0, &["full.aarl", "holes.aarl"][..]),
        (4, &["full.aarl", "none.aarl"]),
        (4, &["none.aarl", "partial.aarl", "full.aarl"]),
        (3, &["none.aarl", "open.aarl", "full.aarl"]),
        (3, &["none.aarl", "torn.aarl"]),
        (2, &["none.aarl", "open.aarl", "missing.aarl"]),
        (1, &["none.aarl", "open.aarl", "missing.aarl", "bad.aarl"]),
        (1, &["--expect-head", &elsewhere, "none.aarl", "full.aarl"]),
    ] {
        let ran = Aegis::verify()
            .dir(dir.path())
            .args(["--key", &dev, "--require", "confine=full"])
            .args(inputs)
            .run();
        assert_eq!(ran.code(), code, "{inputs:?}\n{}", ran.stdout);
        let unmet = ran.stdout.lines().filter(|row| row.starts_with("unmet "));
        let expected = inputs
            .iter()
            .filter(|input| ["none.aarl", "partial.aarl"].contains(input));
        assert_eq!(unmet.count(), expected.count(), "{}", ran.stdout);
    }
    snapshot!(
        "several",
        Aegis::verify()
            .dir(dir.path())
            .args(["--key", &dev, "--require", "confine=full"])
            .args(["none.aarl", "full.aarl", "open.aarl"])
    );
    // With one input an absent head replaces its verdict, and nothing is asked.
    let ran = Aegis::verify()
        .dir(dir.path())
        .args(["--key", &dev, "--require", "confine=full"])
        .args(["--expect-head", &elsewhere, "none.aarl"])
        .run();
    assert_eq!(ran.code(), 1);
    assert!(!ran.stdout.contains("unmet"), "{}", ran.stdout);
}

/// SPEC [REQUIRE-9]: what others in a directory make of a Segment comes first.
#[test]
fn segments_are_asked_once_they_are_judged() {
    let dir = TempDir::new().expect("a folder");
    let write =
        |name: &str, bytes: Vec<u8>| fs::write(dir.path().join(name), bytes).expect("writable");
    let mut killed = Chain::new();
    killed.open_saying(said(Confinement::None)).intent("a");
    write("1.aarl", killed.bytes());
    let follower = |tail| {
        let mut said = said(with_holes(&[]));
        said["follows"] = json!([Follows {
            segment: "1.aarl".to_owned(),
            tail
        }]);
        session(said).bytes()
    };
    let dev = dev();
    let verify = || {
        Aegis::verify()
            .args(["--key", &dev, "--require", "confine=full"])
            .arg(dir.path())
            .run()
    };
    let alone = verify();
    assert_eq!(alone.code(), 3);
    assert!(!alone.stdout.contains("unmet"), "{}", alone.stdout);

    write("2.aarl", follower(killed.tail));
    let anchored = verify();
    assert_eq!(anchored.code(), 4, "{}", anchored.stdout);
    let unmet = "unmet session 0 confine=full: confinement.status is none\n";
    assert!(anchored.stdout.contains(unmet), "{}", anchored.stdout);

    write("2.aarl", follower(killed.hash(0)));
    let contradicted = verify();
    assert_eq!(contradicted.code(), 1, "{}", contradicted.stdout);
    assert!(
        !contradicted.stdout.contains("unmet"),
        "{}",
        contradicted.stdout
    );
}

/// SPEC [REQUIRE-10].
#[test]
fn a_thousand_are_told_and_the_rest_is_counted() {
    let dev = dev();
    for sessions in [MAX_UNMET, MAX_UNMET + 1] {
        let mut chain = Chain::new();
        for _ in 0..sessions {
            chain.open();
        }
        chain.close();
        let verify = |format| {
            Aegis::verify()
                .args(["--key", &dev, "--require", "durability=full"])
                .args(["--format", format, "-"])
                .stdin(&chain.bytes())
                .run()
        };
        let told = verify("text");
        assert_eq!(told.code(), 4);
        let rows: Vec<_> = told
            .stdout
            .lines()
            .filter(|row| row.starts_with("unmet "))
            .collect();
        assert_eq!(rows.len(), sessions);
        let last = match sessions {
            MAX_UNMET => "unmet session 999 durability=full: durability is absent",
            _ => "unmet 1 more",
        };
        assert_eq!(rows.last(), Some(&last));
        let object: Value = serde_json::from_str(&verify("json").stdout).expect("one object");
        assert_eq!(object["exit"], 4);
        assert_eq!(object["verdict"], "verified");
        assert_eq!(object["require"]["count"], sessions);
        let unmet = object["require"]["unmet"].as_array().expect("an array");
        assert_eq!(unmet.len(), MAX_UNMET);
    }
}

/// SPEC [REQUIRE-7]: an `open` whose signature does not hold says nothing, and
/// neither does one that another key signed.
#[test]
fn only_verified_lines_are_read() {
    let mut chain = session(said(with_holes(&[])));
    chain.edit(0, |open| {
        open["confinement"]["network"] = json!("denied-netns");
    });
    let options = Options {
        trust: Trust::pinned(vec![PublicKey::from_bytes(
            *Chain::new().key.public_key().as_bytes(),
        )]),
        require: vec!["net=denied".parse().expect("a requirement")],
        ..Options::default()
    };
    let report = verify(Box::new(Cursor::new(chain.bytes())), &options).expect("readable");
    assert!(matches!(report.verdict, Verdict::Tampered(_)));
    assert_eq!(report.required(), None);
}
