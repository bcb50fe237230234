use proptest::prelude::*;

use super::*;
use crate::policy::parse::parse;

fn set(rules: &str) -> Set {
    parse(format!("rules:\n{rules}").as_bytes()).unwrap()
}

fn winner(set: &Set, request: &Request<'_>) -> String {
    set.select(request)
        .map_or_else(|| "-".to_owned(), |rule| rule.id.clone())
}

/// A request, as `tool`, `tool+capability`, `tool++role`…
fn request(text: &str) -> Request<'_> {
    let mut parts = text.split('+');
    let mut part = || parts.next().filter(|part| !part.is_empty());
    Request {
        tool: part().unwrap_or_default(),
        capability: part(),
        role: part(),
        session: None,
    }
}

/// SPEC [POLICY-14] [POLICY-15] [POLICY-16] [POLICY-17] [POLICY-18]: rules,
/// then requests and which rule decides each.
#[test]
fn g5_case_by_case() {
    for (name, rules, cases) in CASES {
        let set = set(rules);
        for case in cases.split_whitespace() {
            let (asked, expected) = case.split_once('=').unwrap();
            assert_eq!(winner(&set, &request(asked)), expected, "{name}: {asked}");
        }
    }
}

const CASES: &[(&str, &str, &str)] = &[
    (
        "nothing matches",
        "  - {id: a, action: deny, tool: t}\n",
        "t=a u=-",
    ),
    (
        "a deny overrides what is more specific and of higher priority",
        "  - {id: allow, action: allow, tool: t, capability: c, role: r, priority: 99}
  - {id: deny, action: deny, priority: -99}
",
        "t+c+r=deny t=deny u=deny",
    ),
    (
        "a deny overrides rate limits and approvals too",
        "  - {id: rate, action: rate_limit, tool: t, rate: {max: 1, per_seconds: 1}}
  - {id: ask, action: pending_approval, tool: u}
  - {id: deny, action: deny, role: r}
",
        "t=rate u=ask t++r=deny u++r=deny v++r=deny v++s=-",
    ),
    (
        "the most specific",
        "  - {id: zero, action: allow, priority: 9}
  - {id: one, action: pending_approval, tool: t}
  - {id: two, action: allow, tool: t, role: r, priority: -9}
  - {id: three, action: pending_approval, tool: t, role: r, capability: c}
",
        "t=one t++r=two t+c+r=three t+c=one u=zero u+c+r=zero",
    ),
    (
        "the most specific of the denies is the one that is named",
        "  - {id: all, action: deny, priority: 5}
  - {id: tool, action: deny, tool: t}
",
        "t=tool u=all",
    ),
    (
        "all axes count alike",
        "  - {id: tool, action: allow, tool: t}
  - {id: capability, action: allow, capability: c, priority: 1}
  - {id: role, action: allow, role: r, priority: 2}
",
        "t+c+r=role t+c=capability t=tool u+c=capability",
    ),
    (
        "the higher priority",
        "  - {id: low, action: allow, tool: t, priority: -2}
  - {id: high, action: pending_approval, tool: t, priority: -1}
  - {id: none, action: allow, tool: u}
  - {id: below, action: pending_approval, tool: u, priority: -1}
",
        "t=high u=none",
    ),
    (
        "the extremes of priority",
        "  - {id: least, action: allow, tool: t, priority: -2147483648}
  - {id: most, action: allow, tool: t, priority: 2147483647}
",
        "t=most",
    ),
    (
        "declared earlier, on a full tie",
        "  - {id: first, action: pending_approval, tool: t}
  - {id: second, action: allow, tool: t}
  - {id: any, action: allow, tool: '*', role: r}
  - {id: deny, action: deny, tool: d}
  - {id: deny-too, action: deny, tool: d}
",
        "t=first t++r=first u++r=any d=deny",
    ),
    (
        "`*` is like no axis, alone and not in a text",
        "  - {id: star, action: allow, tool: '*', capability: '*', role: '*'}
  - {id: literal, action: pending_approval, tool: 't*'}
  - {id: two, action: pending_approval, tool: '**'}
",
        "t=star t*=literal tt=star **=two *=star",
    ),
    (
        "to the byte: no case, no blanks, no beginnings, no normal forms",
        "  - {id: t, action: deny, tool: tool}
  - {id: e, action: deny, tool: \"caf\\u00e9\"}
  - {id: empty, action: deny, tool: ''}
",
        "tool=t Tool=- tool_=- too=- café=e cafe\u{301}=- =empty",
    ),
    (
        "an axis that is not asserted matches nothing that asks for it",
        "  - {id: c, action: deny, capability: net}
  - {id: r, action: deny, role: ''}
",
        "t=- t+net=c t+fs=- t++admin=-",
    ),
];

/// An axis of a rule or of a request, of few values so that they meet.
fn axis() -> impl Strategy<Value = Option<&'static str>> {
    prop::sample::select(vec![None, Some("*"), Some("a"), Some("b"), Some("A")])
}

type Draft = (usize, [Option<&'static str>; 3], i32);

fn draft() -> impl Strategy<Value = Draft> {
    (0..4_usize, [axis(), axis(), axis()], -1..2_i32)
}

fn document(drafts: &[Draft]) -> String {
    let actions = ["allow", "deny", "rate_limit", "pending_approval"];
    let mut rules = String::new();
    for (n, (action, axes, priority)) in drafts.iter().enumerate() {
        rules += &format!(
            "  - {{id: r{n}, action: {}, priority: {priority}",
            actions[*action]
        );
        if *action == 2 {
            rules += ", rate: {max: 1, per_seconds: 1}";
        }
        for (name, value) in ["tool", "capability", "role"].iter().zip(axes) {
            if let Some(value) = value {
                rules += &format!(", {name}: \"{value}\"");
            }
        }
        rules += "}\n";
    }
    rules
}

/// G5 as the text has it: walk over the rules in their order; an axis that is
/// absent or `*` matches anything, another only itself; keep the best deny and
/// the best other, replaced only by what is strictly better in specificity,
/// then priority; the deny wins.
fn naive(drafts: &[Draft], asked: [Option<&str>; 3]) -> String {
    let mut deny: Option<(usize, i32, usize)> = None;
    let mut other: Option<(usize, i32, usize)> = None;
    for (n, (action, axes, priority)) in drafts.iter().enumerate() {
        let mut matches = true;
        let mut specificity = 0;
        for (wanted, asserted) in axes.iter().zip(asked) {
            match wanted {
                None | Some("*") => {}
                Some(wanted) => {
                    specificity += 1;
                    matches &= asserted == Some(*wanted);
                }
            }
        }
        if !matches {
            continue;
        }
        let best = if *action == 1 { &mut deny } else { &mut other };
        let is_better = match best {
            None => true,
            Some((s, p, _)) => specificity > *s || (specificity == *s && priority > p),
        };
        if is_better {
            *best = Some((specificity, *priority, n));
        }
    }
    deny.or(other)
        .map_or_else(|| "-".to_owned(), |(_, _, n)| format!("r{n}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// SPEC [POLICY-14] [POLICY-15] [POLICY-16] [POLICY-17] [POLICY-18].
    #[test]
    fn the_index_selects_what_a_walk_over_the_rules_does(
        drafts in prop::collection::vec(draft(), 1..24),
        requests in prop::collection::vec([axis(), axis(), axis()], 1..24),
    ) {
        let set = set(&document(&drafts));
        for [tool, capability, role] in requests {
            let request = Request {
                tool: tool.unwrap_or("a"),
                capability,
                role,
                session: Some("a"),
            };
            let expected = naive(&drafts, [Some(request.tool), capability, role]);
            prop_assert_eq!(winner(&set, &request), &*expected);
            for rule in set.rules() {
                let alone = naive(
                    &[drafts[rule.id[1..].parse::<usize>().unwrap()]],
                    [Some(request.tool), capability, role],
                );
                prop_assert_eq!(rule.matches(&request), alone != "-");
            }
        }
    }
}

/// Whatever the set, a request is looked up eight times at most, each time
/// under another combination.
#[test]
fn the_work_for_a_request_is_bounded() {
    let keys = |axes| {
        (0..COMBINATIONS)
            .filter_map(|c| key(axes, c))
            .collect::<Vec<_>>()
    };
    let mut all = keys([Some(1), Some(2), Some(3)]);
    assert_eq!(all.len(), 8);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 8);
    assert_eq!(keys([Some(1), None, None]), [[0, 0, 0], [1, 0, 0]]);
    assert_eq!(keys([None, None, None]), [[0, 0, 0]]);
}
