use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::policy::parse::parse;
use crate::wire::canon;

fn set(document: &str) -> Set {
    parse(document.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{document}"))
}

fn hash(document: &str) -> String {
    set(document).hash().to_string()
}

/// SPEC [POLICY-1] [POLICY-2] [POLICY-3] [POLICY-4].
#[test]
fn the_hashes_are_the_published_ones() {
    for (document, published) in [
        (
            "version: 1\nrules: []\n",
            "5ecac5407c3aefb658f4f734d7f787302004848dcab8e28a22b947a859499c20",
        ),
        (
            "default: deny\n",
            "e8bcffbbc51aabf04e538f85781bf5cd09eb28a33d31916aa3b3f4b28562203e",
        ),
        (
            "rules:\n  - {id: deny-echo, action: deny, tool: echo, role: '*', reason: quickstart}\n",
            "1a949e9677a4529dd662eb1a1ecc0a001fe097800a3a41578ba801062893fd41",
        ),
        (
            "rules:\n- id: block-exfil\n  action: deny\n  tool: exfil\n  \
             reason: 'MCP deny-smoke: exfil blocked at policy'\n",
            "cfe526d729a856ffae2a249d7fdac95b61c8013ad4b503de6f7ace91b0f0e683",
        ),
        (
            "rules:\n  - id: rate-search\n    action: rate_limit\n    tool: search\n    \
             rate: { max: 100, per_seconds: 60 }\n    limits: {}\n",
            "9826c2399a62d326a9f89c0896e22ac3b70b0d1bb23490017cbcf7987c119852",
        ),
    ] {
        assert_eq!(hash(document), published, "{document}");
    }
}

/// SPEC [POLICY-1].
#[test]
fn the_extremes_of_numbers_have_a_hash() {
    let set = set(
        "rules:\n  - {id: a, action: rate_limit, priority: -2147483648, \
         rate: {max: 4294967295, per_seconds: 18446744073709551615}, \
         limits: {max_memory_bytes: 18446744073709551615, max_wall_ms: 0}}\n",
    );
    assert_eq!(
        set.projection(),
        "{\"default\":\"allow\",\"rules\":[{\"action\":\"rate_limit\",\"id\":\"a\",\
         \"limits\":{\"max_memory_bytes\":\"18446744073709551615\",\"max_wall_ms\":\"0\"},\
         \"priority\":\"-2147483648\",\"rate\":{\"max\":\"4294967295\",\
         \"per_seconds\":\"18446744073709551615\"}}]}"
    );
}

/// What a document says, apart from how it is written.
#[derive(Clone, Debug, PartialEq)]
struct Meaning {
    default: Option<bool>,
    rules: Vec<Draft>,
}

#[derive(Clone, Debug, PartialEq)]
struct Draft {
    action: usize,
    axes: [Option<String>; 3],
    priority: i32,
    reason: Option<String>,
    rate: (u32, u64),
    limits: [Option<u64>; 3],
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{0,2}",
        Just("*".to_owned()),
        Just("yes".to_owned()),
        "[ -~]{0,6}",
        any::<String>(),
    ]
}

fn rule() -> impl Strategy<Value = Draft> {
    let axis = || prop::option::of(text());
    let number = || prop::option::of(prop_oneof![Just(0), Just(u64::MAX), any::<u64>()]);
    (
        0..4_usize,
        [axis(), axis(), axis()],
        prop_oneof![Just(0), any::<i32>()],
        prop::option::of(text()),
        (1..u32::MAX, 1..u64::MAX),
        [number(), number(), number()],
    )
        .prop_map(|(action, axes, priority, reason, rate, limits)| Draft {
            action,
            axes,
            priority,
            reason,
            rate,
            limits: if action % 2 == 0 { limits } else { [None; 3] },
        })
}

fn meaning() -> impl Strategy<Value = Meaning> {
    (
        prop::option::of(any::<bool>()),
        prop::collection::vec(rule(), 0..5),
    )
        .prop_map(|(default, rules)| Meaning { default, rules })
}

/// A text in double quotes, each odd character escaped.
fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            ' '..='~' if c != '"' && c != '\\' => out.push(c),
            c => write!(out, "\\U{:08x}", u32::from(c)).unwrap(),
        }
    }
    out + "\""
}

/// How a document is written: block style, plain, sparse.
fn block(meaning: &Meaning) -> String {
    let mut out = String::new();
    if let Some(deny) = meaning.default {
        out += if deny {
            "default: deny\n"
        } else {
            "default: allow\n"
        };
    }
    out += if meaning.rules.is_empty() {
        "rules: []\n"
    } else {
        "rules:\n"
    };
    for (n, rule) in meaning.rules.iter().enumerate() {
        for (place, (name, value)) in fields(n, rule).into_iter().enumerate() {
            let dash = if place == 0 { "- " } else { "  " };
            writeln!(out, "{dash}{name}: {value}").unwrap();
        }
    }
    out
}

/// The same in flow style, with comments, CRLF, fields the other way round,
/// and everything that may be said or left out said.
fn flow(meaning: &Meaning) -> String {
    let mut out = "# a policy\r\nrules: [ # all of it\r\n".to_owned();
    for (n, rule) in meaning.rules.iter().enumerate() {
        let mut fields = fields(n, rule);
        for (axis, name) in rule.axes.iter().zip(AXES) {
            if axis.is_none() {
                fields.push((name, "'*'".to_owned()));
            }
        }
        if rule.limits == [None; 3] {
            fields.push(("limits", "{}".to_owned()));
        }
        if rule.priority == 0 {
            fields.push(("priority", "0".to_owned()));
        }
        fields.reverse();
        out += "    {";
        for (name, value) in fields {
            write!(out, "\"{name}\":   {value} , # here\r\n\r\n     ").unwrap();
        }
        out += "},\r\n";
    }
    out += "  ]\r\nversion: 1\r\n";
    let default = if meaning.default == Some(true) {
        "deny"
    } else {
        "allow"
    };
    write!(out, "\"default\": '{default}'").unwrap();
    out
}

fn fields(n: usize, rule: &Draft) -> Vec<(&'static str, String)> {
    let actions = ["allow", "deny", "rate_limit", "pending_approval"];
    let mut fields = vec![
        ("id", format!("r{n}")),
        ("action", actions[rule.action].to_owned()),
    ];
    for (axis, name) in rule.axes.iter().zip(AXES) {
        if let Some(axis) = axis {
            fields.push((name, quoted(axis)));
        }
    }
    if rule.priority != 0 {
        fields.push(("priority", rule.priority.to_string()));
    }
    if let Some(reason) = &rule.reason {
        fields.push(("reason", quoted(reason)));
    }
    if rule.action == 2 {
        let (max, per_seconds) = rule.rate;
        fields.push((
            "rate",
            format!("{{max: {max}, per_seconds: {per_seconds}}}"),
        ));
    }
    let limits: Vec<_> = rule
        .limits
        .iter()
        .zip(["max_memory_bytes", "max_wall_ms", "max_output_bytes"])
        .filter_map(|(limit, name)| limit.map(|limit| format!("{name}: {limit}")))
        .collect();
    if !limits.is_empty() {
        fields.push(("limits", format!("{{{}}}", limits.join(", "))));
    }
    fields
}

/// What a verdict could turn on, in the form that the hash should tell apart.
fn normal(meaning: &Meaning) -> Meaning {
    let mut normal = meaning.clone();
    normal.default = Some(normal.default.unwrap_or(false));
    for rule in &mut normal.rules {
        for axis in &mut rule.axes {
            axis.take_if(|axis| axis == "*");
        }
        if rule.action != 2 {
            rule.rate = (1, 1);
        }
    }
    normal
}

/// One edit of one thing.
fn edited(meaning: &Meaning, edit: usize, at: usize) -> Meaning {
    let mut edited = meaning.clone();
    let count = edited.rules.len();
    if count == 0 || edit == 0 {
        edited.default = Some(edited.default != Some(true));
        return edited;
    }
    let next = (at + 1) % count;
    let rule = &mut edited.rules[at % count];
    match edit {
        1 => rule.action = (rule.action + 2) % 4,
        2..=4 => {
            let axis = &mut rule.axes[edit - 2];
            *axis = match axis.take() {
                None => Some(String::new()),
                Some(text) => Some(text + "."),
            };
        }
        5 => rule.priority = rule.priority.wrapping_add(1),
        6 => {
            rule.reason = if rule.reason.is_some() {
                None
            } else {
                Some(String::new())
            }
        }
        7 => rule.rate.0 = rule.rate.0 % 100 + 1,
        8 => rule.rate.1 = rule.rate.1 % 100 + 1,
        9 => rule.limits[at % 3] = rule.limits[at % 3].xor(Some(7)),
        10 => edited.rules.swap(at % count, next),
        _ => drop(edited.rules.remove(at % count)),
    }
    for rule in &mut edited.rules {
        if rule.action % 2 == 1 {
            rule.limits = [None; 3];
        }
    }
    edited
}

const AXES: [&str; 3] = ["tool", "capability", "role"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// SPEC [POLICY-1] [POLICY-2] [POLICY-3].
    #[test]
    fn no_cosmetic_edit_moves_the_hash(meaning in meaning()) {
        let (block, flow) = (set(&block(&meaning)), set(&flow(&meaning)));
        prop_assert_eq!(block.projection(), flow.projection());
        prop_assert_eq!(block.hash(), flow.hash());
    }

    /// SPEC [POLICY-3] [POLICY-4].
    #[test]
    fn every_semantic_edit_moves_the_hash(
        meaning in meaning(),
        edit in 0..12_usize,
        at in 0..5_usize,
    ) {
        let edited = edited(&meaning, edit, at);
        // Ids are given by place here, so that two rules in the other order
        // differ unless they are the same.
        let moved = normal(&meaning) != normal(&edited);
        prop_assert_eq!(hash(&block(&meaning)) != hash(&block(&edited)), moved);
    }

    /// What is written by hand is what the canonical form would be.
    #[test]
    fn the_projection_is_in_canonical_form(meaning in meaning()) {
        let text = set(&block(&meaning)).projection();
        let canonical = canon::canonicalize(text.as_bytes()).unwrap();
        prop_assert_eq!(String::from_utf8(canonical).unwrap(), text);
    }
}

/// SPEC [POLICY-4].
#[test]
fn the_order_and_the_ids_of_rules_move_the_hash() {
    let a = "  - {id: a, action: deny}\n";
    let b = "  - {id: b, action: deny}\n";
    let hashes = [
        hash(&format!("rules:\n{a}{b}")),
        hash(&format!("rules:\n{b}{a}")),
        hash(&format!("rules:\n{a}")),
        hash(&format!("rules:\n{b}")),
    ];
    for (n, one) in hashes.iter().enumerate() {
        assert!(hashes[n + 1..].iter().all(|other| other != one));
    }
}
