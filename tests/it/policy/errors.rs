//! What is said about a document that is no policy: one table of all of it.

use super::{policy, with_policy};

/// SPEC [POLICY-6] [POLICY-7] [POLICY-8] [POLICY-9] [POLICY-10] [POLICY-11]
/// [POLICY-12]: each fault with the text, the place and the exit code.
#[test]
fn every_fault_says_where_it_is_and_what_to_do() {
    let mut shown = String::new();
    for (group, documents) in FAULTS {
        shown += &format!("# {group}\n");
        for document in *documents {
            let dir = with_policy(document);
            let ran = policy(dir.path(), "hash").arg("policy.yaml").run();
            assert_eq!(ran.code(), 2, "{}", ran.shown());
            assert_eq!(ran.stdout, "", "{}", ran.shown());
            assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.shown());
            assert!(
                ran.stderr.starts_with("error: policy.yaml:"),
                "{}",
                ran.shown()
            );
            let document = String::from_utf8_lossy(document);
            shown += &format!("{}\n    {}", document.escape_debug(), ran.stderr);
        }
        shown += "\n";
    }
    insta::assert_snapshot!("policy_errors", shown);
}

const FAULTS: &[(&str, &[&[u8]])] = &[
    (
        "nothing in it",
        &[b"", b" \n\n", b"# a comment\n", b"---\n", b"--- ~\n", b"null\n", b"---\n...\n"],
    ),
    (
        "not a mapping",
        &[b"allow\n", b"- id: a\n", b"[]\n", b"42\n", b"\"\"\n"],
    ),
    (
        "no value",
        &[
            b"version:\n",
            b"default: ~\n",
            b"rules:\n",
            b"rules: null\n",
            b"rules:\n  -\n",
            b"rules:\n  - {id: , action: deny}\n",
            b"rules:\n  - {id: a, action: ~}\n",
            b"rules:\n  - {id: a, action: deny, tool: ~}\n",
            b"rules:\n  - id: a\n    action: deny\n    tool:\n",
            b"rules:\n  - id: a\n    action: deny\n    tool: null\n",
            b"rules:\n  - {id: a, action: deny, capability: Null}\n",
            b"rules:\n  - {id: a, action: deny, role: NULL}\n",
            b"rules:\n  - {id: a, action: deny, reason: ~}\n",
            b"rules:\n  - {id: a, action: deny, priority: ~}\n",
            b"rules:\n  - {id: a, action: rate_limit, rate: ~}\n",
            b"rules:\n  - {id: a, action: rate_limit, rate: {max: , per_seconds: 1}}\n",
            b"rules:\n  - {id: a, action: allow, limits: ~}\n",
            b"rules:\n  - {id: a, action: allow, limits: {max_wall_ms: ~}}\n",
        ],
    ),
    (
        "of another type",
        &[
            b"version: one\n",
            b"version: \"1\"\n",
            b"version: 1.0\n",
            b"version: 01\n",
            b"version: -1\n",
            b"version: 4294967296\n",
            b"version: [1]\n",
            b"default: Deny\n",
            b"default: true\n",
            b"default: {}\n",
            b"rules: {}\n",
            b"rules: a\n",
            b"rules:\n  - a\n",
            b"rules:\n  - [id, a]\n",
            b"rules:\n  - {id: 123, action: deny}\n",
            b"rules:\n  - {id: a, action: block}\n",
            b"rules:\n  - {id: a, action: deny, tool: 123}\n",
            b"rules:\n  - {id: a, action: deny, tool: yes}\n",
            b"rules:\n  - {id: y, action: deny, tool: Off}\n",
            b"rules:\n  - {id: a, action: deny, tool: Off}\n",
            b"rules:\n  - {id: a, action: deny, tool: 1e3}\n",
            b"rules:\n  - {id: a, action: deny, tool: 0x1f}\n",
            b"rules:\n  - {id: a, action: deny, tool: [a, b]}\n",
            b"rules:\n  - {id: a, action: deny, tool: {name: a}}\n",
            b"rules:\n  - {id: a, action: deny, priority: high}\n",
            b"rules:\n  - {id: a, action: deny, priority: '1'}\n",
            b"rules:\n  - {id: a, action: deny, priority: +1}\n",
            b"rules:\n  - {id: a, action: deny, priority: 010}\n",
            b"rules:\n  - {id: a, action: deny, priority: 2147483648}\n",
            b"rules:\n  - {id: a, action: deny, priority: -2147483649}\n",
            b"rules:\n  - {id: a, action: rate_limit, rate: 5}\n",
            b"rules:\n  - {id: a, action: rate_limit, rate: [5, 1]}\n",
            b"rules:\n  - {id: a, action: rate_limit, rate: {max: 4294967296, per_seconds: 1}}\n",
            b"rules:\n  - {id: a, action: rate_limit, rate: {max: 1, per_seconds: 1.5}}\n",
            b"rules:\n  - {id: a, action: allow, limits: {max_wall_ms: 1_000}}\n",
            b"rules:\n  - {id: a, action: allow, limits: {max_wall_ms: 18446744073709551616}}\n",
            b"rules:\n  - {id: a, action: allow, limits: {max_wall_ms: -1}}\n",
        ],
    ),
    (
        "missing, unknown, twice",
        &[
            b"rules:\n  - {}\n",
            b"rules:\n  - action: deny\n",
            b"rules:\n  - id: a\n",
            b"rules:\n  - {id: a, action: rate_limit, rate: {}}\n",
            b"rules:\n  - {id: a, action: rate_limit, rate: {max: 1}}\n",
            b"defaults: deny\n",
            b"default: deny\nrule: []\n",
            b"Default: deny\n",
            b"extra: 1\n",
            b"1: 2\n",
            b"? [a]\n: b\n",
            b"rules:\n  - {id: a, action: deny, tols: b}\n",
            b"rules:\n  - {id: a, action: deny, tool_: b}\n",
            b"rules:\n  - {id: a, action: deny, arguments: b}\n",
            b"rules:\n  - {id: a, action: rate_limit, rate: {max: 1, per_second: 1}}\n",
            b"rules:\n  - {id: a, action: allow, limits: {max_cpu_ms: 1}}\n",
            b"default: deny\ndefault: allow\n",
            b"default: deny\n\"default\": allow\n",
            b"rules:\n  - id: a\n    action: deny\n    tool: b\n    tool: c\n",
        ],
    ),
    (
        "a version that this is not",
        &[b"version: 0\n", b"version: 2\n", b"version: 4294967295\nrules: []\n"],
    ),
    (
        "rules that contradict themselves or each other",
        &[
            b"rules:\n  - {id: x, action: deny}\n\n  - {id: x, action: allow}\n",
            // The id first, then the rule itself.
            b"rules:\n  - {id: x, action: deny}\n  - {id: x, action: rate_limit}\n",
            // The first rule first.
            b"rules:\n  - {id: x, action: rate_limit}\n  - {id: z, action: deny}\n  - {id: z, action: deny}\n",
            // The version before all of them.
            b"version: 2\nrules:\n  - {id: x, action: rate_limit}\n",
            b"rules:\n  - {id: x, action: rate_limit, rate: {max: 0, per_seconds: 1}}\n",
            b"rules:\n  - {id: x, action: rate_limit, rate: {max: 1, per_seconds: 0}}\n",
            b"rules:\n  - {id: x, action: deny, rate: {max: 0, per_seconds: 1}}\n",
            b"rules:\n  - {id: x, action: deny, rate: {max: 1, per_seconds: 1}}\n",
            b"rules:\n  - {id: x, action: deny, limits: {max_wall_ms: 1}}\n",
            b"rules:\n  - {id: x, action: pending_approval, limits: {max_output_bytes: 0}}\n",
            b"rules:\n  - {id: \"a\\e[2Kb\", action: rate_limit}\n",
        ],
    ),
    (
        "parts of YAML that a policy has no use for",
        &[
            b"default: &a deny\n",
            b"rules: &r []\n",
            b"default: *a\n",
            b"rules:\n  - {id: a, action: deny, tool: *}\n",
            b"rules:\n  - id: a\n    action: deny\n    tool: *\n",
            b"rules:\n  - <<: {id: a}\n    action: deny\n",
            b"default: !!str deny\n",
            b"default: !!binary ZGVueQ==\n",
            b"rules: !include rules.yaml\n",
            b"rules:\n  - !rule {id: a, action: deny}\n",
            b"default: ! deny\n",
            b"default: !x!y deny\n",
            b"%YAML 1.2\n---\ndefault: deny\n",
            b"%TAG ! tag:a,2026:\n---\ndefault: deny\n",
            b"default: deny\n---\ndefault: allow\n",
            b"default: deny\n...\n---\n",
        ],
    ),
    (
        "not YAML",
        &[
            b"rules:\n  - id: a\n   action: deny\n",
            b"rules:\n  - id: a\n      action: deny\n",
            b"default: deny\n  rules: []\n",
            b"default deny\nrules: []\n",
            b"default: \"deny\n",
            b"default: 'deny\n",
            b"rules: [\n",
            b"rules: [{id: a, action: deny]\n",
            b"rules: []]\n",
            b"rules: [{id: a, action: deny}\n",
            b"default: deny: allow\n",
            b"default: \"\\d\"\n",
            b"rules:\n  - {id: a, action: deny, reason: 'don't'}\n",
            b"rules:\n  - {id: a, action: deny, reason: \"say \"no\"\"}\n",
            b"rules:\n  - {id: a, action: deny, reason: \"C:\\Users\"}\n",
            b"default: @deny\n",
            b"default: `deny`\n",
            b"default: \"\\ud800\"\n",
            b"rules:\n  - id: a\n    reason: |0\n      x\n",
            b"rules: [[[[[[[[]]]]]]]]\n",
            b"default: {a: {b: {c: {d: {e: f}}}}}\n",
            // Read with a line end at the end by some, and without by others.
            b"rules:\n- id: a\n  action: deny\n  tool: |\n    b",
            b"rules:\n- id: a\n  action: deny\n  reason: >+\n    b\n      ",
            b"rules:\n- id: a\n  action: deny\n  reason: |+\n    ",
        ],
    ),
    (
        "bytes that a text has not",
        &[
            b"\xef\xbb\xbfdefault: deny\n",
            b"\xff\xfed\x00e\x00f\x00",
            b"\xfe\xff\x00d\x00e\x00f",
            b"d\x00e\x00f\x00",
            b"default: deny\nrules: []\n# caf\xe9\n",
            b"default: deny\xed\xa0\x80\n",
            b"default: deny\xc3",
            b"default: deny # \x00\n",
            b"default: deny # \x1b[2K\n",
            b"default: deny # \x7f\n",
            b"default:\tdeny\n",
            b"rules:\n\t- id: a\n",
            b"{\n\t\"default\": \"deny\"\n}\n",
            b"default: deny\t# a comment\n",
            b"default: deny #\ta comment\n",
            b"default: deny\t\n",
            b"rules:\n  - {id: a, action: deny, tool: \"a\tb\"}\n",
            b"rules:\n  - id: a\n    action: deny\n    reason: |\n      a\tb\n",
            "# \u{85}default: deny\n".as_bytes(),
            "# hidden \u{2028}default: allow\n".as_bytes(),
            "# \u{202e}yned\n".as_bytes(),
            "default: deny\n\u{feff}rules: []\n".as_bytes(),
            "# \u{ffff}\n".as_bytes(),
            b"# a rule in a comment\rdefault: deny\n",
        ],
    ),
];

/// SPEC [POLICY-8]: legal spellings that a table of faults would not show.
#[test]
fn what_is_no_fault() {
    for document in [
        "default: deny\r\nrules: []\r\n",
        "default: deny",
        "---\ndefault: deny\n...\n",
        "{\"default\": \"deny\", \"rules\": [], \"version\": 1}",
        "rules:\n- id: \"\"\n  action: deny\n  tool: \"\"\n",
        "rules:\n- id: 'yes'\n  action: deny\n  tool: '123'\n  reason: ~x\n",
        "rules:\n- id: a\n  action: \"deny\"\n  tool: \"\\0\\e\\t\\u202e\"\n",
        "rules:\n- id: a\n  action: deny\n  reason: |\n    two\n    lines\n",
        "rules:\n- id: a\n  action: deny\n  reason: |-\n    no line end",
        "rules:\n- id: a\n  action: deny\n  reason: |\n    two\n# lines",
        "rules:\n- id: a\n  action: deny\n  limits: {}\n",
        "rules:\n- id: a\n  action: deny # ⚠️ careful\n  reason: ünïcödé\n",
    ] {
        let dir = with_policy(document);
        let ran = policy(dir.path(), "hash").arg("policy.yaml").run();
        assert_eq!(ran.code(), 0, "{document}\n{}", ran.shown());
        assert_eq!(ran.stdout.len(), 65, "{}", ran.shown());
    }
}
