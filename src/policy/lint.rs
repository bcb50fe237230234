//! What is odd about a Policy Set (SPEC §14): a pure function of the set.

use super::set::{Action, Rule, Set};

/// The `deny`, `pending_approval` and `rate_limit` rules that can never match
/// a Call of `aegis wrap`, which asserts nothing but the tool.
#[allow(dead_code, reason = "wrap refuses to start on them")]
pub(crate) fn inert_under_wrap(set: &Set) -> Vec<&Rule> {
    let restrains = |rule: &&Rule| !matches!(rule.action, Action::Allow);
    set.rules()
        .iter()
        .filter(restrains)
        .filter(|rule| rule.asks_more_than_the_tool())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::parse::parse;

    #[test]
    fn rules_that_restrain_nothing_under_wrap() {
        let set = parse(
            b"rules:\n\
              - {id: a, action: allow, capability: net}\n\
              - {id: d, action: deny, capability: net}\n\
              - {id: r, action: rate_limit, role: x, tool: t, rate: {max: 1, per_seconds: 1}}\n\
              - {id: p, action: pending_approval, role: x}\n\
              - {id: t, action: deny, tool: t, role: '*', capability: '*'}\n",
        )
        .unwrap();
        let ids: Vec<_> = inert_under_wrap(&set)
            .iter()
            .map(|rule| &*rule.id)
            .collect();
        assert_eq!(ids, ["d", "r", "p"]);
    }
}
