use super::*;
use crate::policy::parse::parse;

fn set(document: &str) -> Set {
    parse(document.as_bytes()).unwrap()
}

/// The findings, as `line id code`.
fn found(document: &str, caller: Caller, seen: Option<&[&str]>) -> Vec<String> {
    let seen = seen.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect());
    lint(&set(document), caller, seen.as_ref())
        .iter()
        .map(|finding| {
            let id = finding.rule.map_or("-", |rule| &rule.id);
            format!("{} {id} {}", finding.at().line, finding.code)
        })
        .collect()
}

/// SPEC [CLI-19].
#[test]
fn what_restrains_nothing_under_wrap() {
    let set = set("rules:\n\
         - {id: a, action: allow, capability: net}\n\
         - {id: d, action: deny, capability: net}\n\
         - {id: r, action: rate_limit, role: x, tool: t, rate: {max: 1, per_seconds: 1}}\n\
         - {id: p, action: pending_approval, role: x}\n\
         - {id: t, action: deny, tool: t, role: '*', capability: '*'}\n");
    let ids: Vec<_> = inert_under_wrap(&set)
        .iter()
        .map(|rule| &*rule.id)
        .collect();
    assert_eq!(ids, ["d", "r", "p"]);
    assert_eq!(asking_more_than_the_tool(&set), 4);
}

/// SPEC [CLI-18] [CLI-19].
#[test]
fn rules_that_a_caller_can_never_match() {
    let document = "default: deny\nrules:\n\
        - {id: a, action: allow, capability: net}\n\
        - {id: d, action: deny, role: x, tool: ' t '}\n\
        - {id: t, action: allow, tool: t, role: '*', limits: {max_wall_ms: 1}}\n";
    assert_eq!(found(document, Caller::Any, None), ["4 d odd-name"]);
    for caller in [Caller::Run, Caller::Mcp] {
        let expected = ["3 a never-matches", "4 d never-matches"];
        assert_eq!(found(document, caller, None), expected);
    }
    let expected = [
        "3 a never-matches",
        "4 d never-matches",
        "5 t limits-ignored",
    ];
    assert_eq!(found(document, Caller::Wrap, None), expected);
}

/// SPEC [CLI-18].
#[test]
fn rules_that_never_decide() {
    let document = "default: deny\nrules:\n\
        - {id: low, action: allow, tool: t}\n\
        - {id: high, action: pending_approval, tool: t, priority: 1}\n\
        - {id: later, action: allow, tool: t, priority: 1}\n\
        - {id: d, action: deny, tool: u}\n\
        - {id: d2, action: deny, tool: u, role: '*'}\n\
        - {id: under, action: rate_limit, tool: u, role: r, rate: {max: 1, per_seconds: 1}}\n\
        - {id: beside, action: allow, role: r}\n\
        - {id: d3, action: deny, tool: u, role: r}\n";
    assert_eq!(
        found(document, Caller::Any, None),
        [
            "3 low shadowed",
            "5 later shadowed",
            "7 d2 shadowed",
            "8 under overridden"
        ]
    );
    let all = "default: deny\nrules:\n\
        - {id: a, action: allow, tool: t}\n\
        - {id: d, action: deny}\n\
        - {id: why, action: deny, tool: t, reason: told apart}\n";
    let expected = ["3 a overridden", "4 d denies-all"];
    assert_eq!(found(all, Caller::Any, None), expected);
}

/// SPEC [CLI-18]: a finding of `shadowed` or `overridden` is never wrong, and
/// none is missing: those rules, and no others, decide nothing.
#[test]
fn a_rule_decides_something_unless_a_finding_says_not() {
    let names = ["a", "b"];
    let mut rules = String::from("default: allow\nrules:\n");
    let actions = ["allow", "deny", "pending_approval"];
    let mut axes = Vec::new();
    for tool in ["*", "a", "b"] {
        for role in ["*", "a"] {
            axes.push((tool, role));
        }
    }
    let mut n: u32 = 0;
    for round in 0..3 {
        for (tool, role) in &axes {
            // Some of all combinations, in an order without a pattern.
            n = n.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            if (n >> 16).is_multiple_of(3) {
                let action = actions[(n >> 18) as usize % 3];
                let priority = (n >> 20) % 2;
                rules += &format!(
                    "- {{id: r{round}{tool}{role}, action: {action}, tool: '{tool}', \
                     role: '{role}', priority: {priority}}}\n"
                );
            }
        }
    }
    let set = set(&rules);
    let mut deciding = BTreeSet::new();
    for tool in names.into_iter().chain(["other"]) {
        for role in [None, Some("a"), Some("other")] {
            let request = crate::policy::Request {
                role,
                ..crate::policy::Request::tool(tool)
            };
            deciding.extend(set.select(&request).map(|rule| rule.id.clone()));
        }
    }
    let silent: BTreeSet<_> = lint(&set, Caller::Any, None)
        .iter()
        .filter(|finding| [codes::SHADOWED, codes::OVERRIDDEN].contains(&finding.code))
        .filter_map(|finding| finding.rule.map(|rule| rule.id.clone()))
        .collect();
    let all: BTreeSet<_> = set.rules().iter().map(|rule| rule.id.clone()).collect();
    assert!(all.len() > 4 && !silent.is_empty(), "{rules}");
    // A deny under a broader one still names the reason; it decides.
    assert_eq!(&all - &silent, deciding, "{rules}");
}

/// SPEC [CLI-18].
#[test]
fn rates_that_never_refuse_or_never_reset() {
    let rule = |max: u32, per_seconds: u64| {
        let document = format!(
            "default: deny\nrules:\n- {{id: r, action: rate_limit, rate: {{max: {max}, \
             per_seconds: {per_seconds}}}}}\n"
        );
        found(&document, Caller::Any, None)
    };
    assert_eq!(rule(u32::MAX, 1), ["3 r rate-never-refuses"]);
    assert_eq!(rule(100_000, 1), ["3 r rate-never-refuses"]);
    assert_eq!(rule(99_999, 1), [""; 0]);
    assert_eq!(rule(u32::MAX, 86_400), [""; 0]);
    assert_eq!(rule(1, RATE_NEVER_RESET_SECONDS), [""; 0]);
    assert_eq!(
        rule(1, RATE_NEVER_RESET_SECONDS + 1),
        ["3 r rate-never-resets"]
    );
    assert_eq!(rule(1, u64::MAX), ["3 r rate-never-resets"]);
}

/// SPEC [CLI-18].
#[test]
fn names_that_are_hardly_meant() {
    let document = "rules:\n\
        - {id: pattern, action: deny, tool: 'fs_*'}\n\
        - {id: empty, action: deny, role: ''}\n\
        - {id: edge, action: deny, tool: 'read '}\n\
        - {id: inside, action: deny, tool: \"re\\u200bad\"}\n\
        - {id: fine, action: deny, tool: 'read file'}\n";
    assert_eq!(
        found(document, Caller::Any, None),
        [
            "1 - no-default",
            "2 pattern pattern",
            "3 empty odd-name",
            "4 edge odd-name",
            "5 inside odd-name"
        ]
    );
}

/// SPEC [CLI-20].
#[test]
fn tools_that_were_never_seen() {
    let document = "default: deny\nrules:\n\
        - {id: seen, action: deny, tool: read_file}\n\
        - {id: case, action: deny, tool: Read_File}\n\
        - {id: dash, action: deny, tool: read-file}\n\
        - {id: typo, action: deny, tool: raed_file}\n\
        - {id: gone, action: deny, tool: exfil}\n\
        - {id: any, action: allow, role: r}\n";
    assert_eq!(
        found(document, Caller::Any, Some(&["read_file", "write"])),
        [
            "4 case near-miss",
            "5 dash near-miss",
            "6 typo near-miss",
            "7 gone unseen-tool"
        ]
    );
    assert_eq!(found(document, Caller::Any, Some(&[])).len(), 5);
}
