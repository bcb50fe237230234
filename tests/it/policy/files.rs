//! Files that are no policy because of what they are or how large, and the
//! bounds of those that are one.

use std::fmt::Write as _;
use std::fs::{self, File};

use super::{policy, with_policy};

/// SPEC [POLICY-13] [CLI-26].
#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("directory")).unwrap();
    fs::write(dir.path().join("a"), "").unwrap();
    let mut shown = policy(dir.path(), "hash").arg("directory").run().shown();
    shown += &policy(dir.path(), "hash").arg("missing").run().shown();
    shown += &policy(dir.path(), "hash").arg("a/b").run().shown();
    let json = policy(dir.path(), "check").args(["--format", "json", "missing"]);
    shown += &json.run().shown();
    insta::assert_snapshot!("policy_files", shown);
}

/// SPEC [POLICY-13]: nobody ever writes into the pipe.
#[test]
#[cfg(unix)]
fn a_pipe_is_refused_without_waiting_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(dir.path().join("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    let ran = policy(dir.path(), "check").arg("pipe").run();
    assert_eq!(ran.code(), 2);
    assert_eq!(
        ran.stderr,
        "error: policy source read error for `pipe`: it is not a regular file, and a policy must \
         be readable again; copy it to a file\n"
    );
}

/// SPEC [POLICY-13].
#[test]
#[cfg(unix)]
fn a_file_that_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = with_policy("default: deny\n");
    let path = dir.path().join("policy.yaml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        // This user may read everything.
        return;
    }
    let ran = policy(dir.path(), "hash").arg("policy.yaml").run();
    assert_eq!(ran.code(), 2);
    assert!(ran.stderr.contains("Permission denied"), "{}", ran.stderr);
}

/// SPEC [POLICY-13]: at the bound, one past it, and far past it.
#[test]
fn a_document_has_a_longest_size() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("policy.yaml");
    let mut document = b"default: deny\n".to_vec();
    document.resize(MAX_DOCUMENT_BYTES, b'#');
    document[14..]
        .iter_mut()
        .skip(100)
        .step_by(100)
        .for_each(|b| *b = b'\n');
    document
        .iter_mut()
        .skip(115)
        .step_by(100)
        .for_each(|b| *b = b'#');
    fs::write(&path, &document).unwrap();
    let at = policy(dir.path(), "hash").arg("policy.yaml").run();
    assert_eq!(at.code(), 0, "{}", at.stderr);

    document.push(b'\n');
    fs::write(&path, &document).unwrap();
    let past = policy(dir.path(), "hash").arg("policy.yaml").run();
    assert_eq!(past.code(), 2);
    assert!(
        past.stderr.contains("longer than 16777216 bytes"),
        "{}",
        past.stderr
    );

    // Sparse: nothing of it is on the disk.
    File::create(&path).unwrap().set_len(100 << 20).unwrap();
    let far = policy(dir.path(), "hash").arg("policy.yaml").run();
    assert_eq!(far.stderr, past.stderr);
}

/// SPEC [POLICY-13].
#[test]
fn a_policy_has_a_largest_number_of_rules() {
    let mut document = "rules:\n".to_owned();
    for n in 0..MAX_RULES {
        writeln!(document, "- {{id: r{n}, action: deny, tool: t{n}}}").unwrap();
    }
    let dir = with_policy(&document);
    let at = policy(dir.path(), "hash").arg("policy.yaml").run();
    assert_eq!(at.code(), 0, "{}", at.stderr);

    document += "- {id: last, action: deny}\n";
    let dir = with_policy(&document);
    let past = policy(dir.path(), "hash").arg("policy.yaml").run();
    assert_eq!(past.code(), 2);
    assert_eq!(
        past.stderr,
        "error: policy.yaml:100002:3: policy parse error: more than 100000 rules, the most that \
         a policy may have\n"
    );
}

/// SPEC [POLICY-13]: ten thousand rules with every field.
#[test]
fn many_full_rules_are_read() {
    let mut document = "version: 1\ndefault: deny\nrules:\n".to_owned();
    for n in 0..10_000 {
        writeln!(
            document,
            "  - id: rule-{n}\n    action: rate_limit\n    tool: tool-{n}\n    capability: c{n}\n    \
             role: role-{n}\n    priority: -1{n}\n    reason: \"the {n}th\"\n    \
             rate: {{ max: 10, per_seconds: 60 }}\n    limits:\n      max_memory_bytes: {n}\n      \
             max_wall_ms: 5000\n      max_output_bytes: 1048576"
        )
        .unwrap();
    }
    let dir = with_policy(&document);
    let ran = policy(dir.path(), "hash").arg("policy.yaml").run();
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
}

/// SPEC [POLICY-13]: at the bound, and one past it.
#[test]
fn texts_have_a_longest_size() {
    let read = |field: &str, bytes: usize| {
        let text = "x".repeat(bytes);
        let rule = match field {
            "id" => format!("rules:\n- id: {text}\n  action: deny\n"),
            _ => format!("rules:\n- id: a\n  action: deny\n  {field}: {text}\n"),
        };
        let dir = with_policy(rule);
        let ran = policy(dir.path(), "hash").arg("policy.yaml").run();
        (ran.code(), ran.stderr)
    };
    for (field, most) in [
        ("id", 1024),
        ("tool", 32_768),
        ("capability", 32_768),
        ("role", 32_768),
        ("reason", 32_768),
    ] {
        assert_eq!(read(field, most).0, 0, "{field}");
        let (code, text) = read(field, most + 1);
        assert_eq!(code, 2, "{field}");
        let end = format!("longer than {most} bytes; shorten it\n");
        assert!(text.ends_with(&end), "{text}");
    }
}

/// SPEC [POLICY-10]: what could grow without end stops at its first anchor.
#[test]
fn a_document_that_would_multiply_is_refused_at_its_first_anchor() {
    let mut laughs = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for (this, last) in ('b'..='z').zip('a'..) {
        let aliases = vec![format!("*{last}"); 9].join(", ");
        writeln!(laughs, "{this}: &{this} [{aliases}]").unwrap();
    }
    let dir = with_policy(&laughs);
    let ran = policy(dir.path(), "hash").arg("policy.yaml").run();
    assert_eq!(ran.code(), 2);
    assert!(ran.stderr.contains("unknown field `a`"), "{}", ran.stderr);

    let dir = with_policy(format!(
        "rules:\n- &a {{id: a, action: deny}}\n{}",
        "- *a\n".repeat(1000)
    ));
    let ran = policy(dir.path(), "hash").arg("policy.yaml").run();
    assert_eq!(ran.code(), 2);
    assert!(ran.stderr.contains("policy.yaml:2:"), "{}", ran.stderr);
    assert!(ran.stderr.contains("anchors and aliases"), "{}", ran.stderr);
}

/// SPEC [POLICY-13]: a document of a megabyte that opens and never closes.
#[test]
fn deep_nesting_ends_at_its_fifth_level() {
    for open in ["[", "{a: ", "- ", "? ", "{? "] {
        let dir = with_policy(format!("rules: {}", open.repeat(300_000)));
        let ran = policy(dir.path(), "hash").arg("policy.yaml").run();
        assert_eq!(ran.code(), 2, "{}", ran.shown());
        let dir = with_policy(open.repeat(300_000));
        let ran = policy(dir.path(), "hash").arg("policy.yaml").run();
        assert_eq!(ran.code(), 2, "{}", ran.shown());
    }
}

const MAX_DOCUMENT_BYTES: usize = 16 << 20;
const MAX_RULES: usize = 100_000;
