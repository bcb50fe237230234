//! Which rule decides a request, and why (SPEC §14.7): the selection of
//! [`select`](super::select), told.

use std::cmp::Reverse;

use super::Request;
use super::set::{Action, Rule, Set};

/// Why a request has its verdict.
#[derive(Debug)]
pub(crate) struct Explanation<'a> {
    /// The rule that decides, as it does when a Call is judged.
    pub(crate) decided: Option<&'a Rule>,
    /// The rules that match, in the order in which they would decide.
    pub(crate) matched: Vec<&'a Rule>,
    /// Why the first decides, or what holds without a rule.
    pub(crate) why: String,
}

/// Explains the verdict of `set` on `request`.
pub(crate) fn explain<'a>(set: &'a Set, request: &Request<'_>) -> Explanation<'a> {
    let mut matched: Vec<(usize, &Rule)> = set
        .rules()
        .iter()
        .enumerate()
        .filter(|(_, rule)| rule.matches(request))
        .collect();
    matched.sort_by_key(|(place, rule)| {
        let order = (rule.specificity(), rule.priority, Reverse(*place));
        (Reverse(is_deny(rule)), Reverse(order))
    });
    let matched: Vec<&Rule> = matched.into_iter().map(|(_, rule)| rule).collect();
    let why = match matched[..] {
        [] => without_rule(set),
        [_] => "no other rule matches".to_owned(),
        [first, second, ..] if is_deny(first) != is_deny(second) => {
            "a deny overrides every rule that is none".to_owned()
        }
        [first, second, ..] => {
            let among = match (is_deny(first), matched.iter().all(|rule| is_deny(rule))) {
                (true, false) => "a deny overrides every rule that is none, and of the denies ",
                _ => "",
            };
            format!(
                "{among}it goes before `{}`: {}",
                second.id,
                before(first, second)
            )
        }
    };
    Explanation {
        decided: set.select(request),
        matched,
        why,
    }
}

fn without_rule(set: &Set) -> String {
    let default = set.default().name();
    if set.states_default() {
        format!("no rule matches, and the default is {default}")
    } else {
        format!("no rule matches, and without `default` it is {default}")
    }
}

/// Why `first` goes before `second`, when both are denies or neither is.
fn before(first: &Rule, second: &Rule) -> String {
    if first.specificity() != second.specificity() {
        format!(
            "it is more specific ({} against {})",
            axes(first),
            axes(second)
        )
    } else if first.priority != second.priority {
        format!(
            "as specific, its priority is higher ({} against {})",
            first.priority, second.priority
        )
    } else {
        "as specific and of the same priority, it is declared earlier".to_owned()
    }
}

fn axes(rule: &Rule) -> String {
    match rule.specificity() {
        1 => "1 axis".to_owned(),
        n => format!("{n} axes"),
    }
}

fn is_deny(rule: &Rule) -> bool {
    matches!(rule.action, Action::Deny)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::parse::parse;

    /// SPEC [CLI-23]: the first of those that match is the one that is
    /// selected, and it is said why.
    #[test]
    fn the_first_is_the_selected_one() {
        let set = parse(
            b"rules:\n\
              - {id: any, action: allow}\n\
              - {id: any2, action: pending_approval}\n\
              - {id: t, action: allow, tool: t}\n\
              - {id: t9, action: allow, tool: t, priority: 9}\n\
              - {id: d, action: deny, tool: d}\n\
              - {id: d-role, action: deny, tool: d, role: r}\n\
              - {id: d-only, action: deny, role: s}\n",
        )
        .unwrap();
        for (tool, role, ids, why) in [
            (
                "t",
                None,
                &["t9", "t", "any", "any2"][..],
                "it goes before `t`: as specific, its priority is higher (9 against 0)",
            ),
            (
                "u",
                None,
                &["any", "any2"],
                "it goes before `any2`: as specific and of the same priority, it is declared earlier",
            ),
            (
                "d",
                None,
                &["d", "any", "any2"],
                "a deny overrides every rule that is none",
            ),
            (
                "d",
                Some("r"),
                &["d-role", "d", "any", "any2"],
                "a deny overrides every rule that is none, and of the denies it goes before `d`: \
                 it is more specific (2 axes against 1 axis)",
            ),
        ] {
            let request = Request {
                role,
                ..Request::tool(tool)
            };
            let explanation = explain(&set, &request);
            let matched: Vec<_> = explanation.matched.iter().map(|rule| &*rule.id).collect();
            assert_eq!(matched, ids);
            assert_eq!(explanation.why, why);
            assert_eq!(explanation.decided.unwrap().id, ids[0]);
        }
    }

    /// SPEC [CLI-23].
    #[test]
    fn without_a_rule_the_default_is_told() {
        for (document, why) in [
            (
                "default: deny\n",
                "no rule matches, and the default is deny",
            ),
            (
                "rules: []\n",
                "no rule matches, and without `default` it is allow",
            ),
        ] {
            let set = parse(document.as_bytes()).unwrap();
            let explanation = explain(&set, &Request::tool("t"));
            assert!(explanation.matched.is_empty() && explanation.decided.is_none());
            assert_eq!(explanation.why, why);
        }
    }
}
