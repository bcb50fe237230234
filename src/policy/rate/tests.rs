use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::policy::parse::parse;

fn set(document: &str) -> Set {
    parse(document.as_bytes()).unwrap()
}

fn limit(id: &str, tool: Option<&str>, max: u32, per_seconds: u64) -> (Rule, Rate) {
    let tool = tool.unwrap_or("*");
    let set = set(&format!(
        "rules:\n  - {{id: {id}, action: rate_limit, tool: \"{tool}\", rate: {{max: {max}, per_seconds: {per_seconds}}}}}\n"
    ));
    (set.rules()[0].clone(), Rate { max, per_seconds })
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// SPEC [POLICY-22].
#[test]
fn a_window_opens_with_its_first_call_and_resets_when_its_time_is_over() {
    let (rule, rate) = limit("r", Some("t"), 2, 10);
    let mut windows = Windows::default();
    let mut admit = |now| {
        windows
            .admit(&rule, rate, &Request::tool("t"), now)
            .is_some()
    };
    assert!(admit(at(100)));
    assert!(admit(at(105)));
    assert!(!admit(at(106)));
    let a_moment = Duration::from_nanos(1);
    assert!(!admit(at(110) - a_moment));
    assert!(admit(at(110)));
    assert!(admit(at(110)));
    assert!(!admit(at(119)));
    assert!(admit(at(120)));
}

/// SPEC [POLICY-23].
#[test]
fn rules_tools_and_sessions_have_windows_of_their_own() {
    let mut windows = Windows::default();
    let mut admit = |id, tool, session| {
        let (rule, rate) = limit(id, None, 1, 10);
        let request = Request {
            session,
            ..Request::tool(tool)
        };
        windows.admit(&rule, rate, &request, at(1)).is_some()
    };
    assert!(admit("a", "b", None));
    assert!(!admit("a", "b", None));
    // The same letters, cut otherwise.
    assert!(admit("ab", "", None));
    assert!(admit("a", "", Some("b")));
    assert!(admit("a", "b", Some("")));
    assert!(admit("a", "b", Some("b")));
    assert!(!admit("a", "b", Some("b")));
}

/// SPEC [POLICY-24].
#[test]
fn what_is_given_back_was_never_counted() {
    let (rule, rate) = limit("r", Some("t"), 1, 10);
    let mut windows = Windows::default();
    let request = Request::tool("t");
    let charge = windows.admit(&rule, rate, &request, at(1)).unwrap();
    windows.give_back(charge);
    assert!(windows.open.is_empty() && windows.closing.is_empty());
    // The window opens with the Call that counts.
    assert!(windows.admit(&rule, rate, &request, at(5)).is_some());
    assert!(windows.admit(&rule, rate, &request, at(11)).is_none());
    assert!(windows.admit(&rule, rate, &request, at(15)).is_some());
}

/// SPEC [POLICY-25].
#[test]
fn a_changed_rule_applies_to_the_window_as_it_is() {
    let request = Request::tool("t");
    let mut windows = Windows::default();
    let (rule, rate) = limit("r", Some("t"), 3, 10);
    assert!(windows.admit(&rule, rate, &request, at(0)).is_some());
    assert!(windows.admit(&rule, rate, &request, at(0)).is_some());

    let longer =
        set("rules:\n  - {id: r, action: rate_limit, tool: t, rate: {max: 2, per_seconds: 100}}\n");
    windows.adopt(&longer);
    let (rule, rate) = limit("r", Some("t"), 2, 100);
    assert!(windows.admit(&rule, rate, &request, at(99)).is_none());
    assert!(windows.admit(&rule, rate, &request, at(100)).is_some());

    let shorter =
        set("rules:\n  - {id: r, action: rate_limit, tool: t, rate: {max: 1, per_seconds: 5}}\n");
    windows.adopt(&shorter);
    let (rule, rate) = limit("r", Some("t"), 1, 5);
    assert!(windows.admit(&rule, rate, &request, at(104)).is_none());
    assert!(windows.admit(&rule, rate, &request, at(105)).is_some());
}

/// SPEC [POLICY-25].
#[test]
fn a_window_of_a_rule_that_is_gone_is_there_when_it_comes_back() {
    let request = Request::tool("t");
    let mut windows = Windows::default();
    let (rule, rate) = limit("r", Some("t"), 1, 10);
    assert!(windows.admit(&rule, rate, &request, at(0)).is_some());
    windows.adopt(&set("default: allow\n"));
    assert!(windows.admit(&rule, rate, &request, at(9)).is_none());
}

/// SPEC [POLICY-27].
#[test]
fn a_window_as_long_as_time_stays_open() {
    let (rule, rate) = limit("r", Some("t"), 1, u64::MAX);
    let mut windows = Windows::default();
    let request = Request::tool("t");
    assert!(windows.admit(&rule, rate, &request, at(5)).is_some());
    assert!(
        windows
            .admit(&rule, rate, &request, at(u64::MAX - 1))
            .is_none()
    );
}

/// SPEC [POLICY-27].
#[test]
fn a_clock_that_goes_back_opens_nothing() {
    let (rule, rate) = limit("r", Some("t"), 1, 10);
    let mut windows = Windows::default();
    let request = Request::tool("t");
    assert!(windows.admit(&rule, rate, &request, at(100)).is_some());
    assert!(windows.admit(&rule, rate, &request, at(0)).is_none());
}

/// SPEC [POLICY-26].
#[test]
fn invented_names_use_up_no_window_of_a_rule_that_names_its_tool() {
    let (any, rate) = limit("any", None, 1, 1000);
    let (named, _) = limit("named", Some("t"), 1, 1000);
    let mut windows = Windows::default();
    let mut admit = |rule, tool: &str, now| {
        windows
            .admit(rule, rate, &Request::tool(tool), now)
            .is_some()
    };
    for n in 0..MAX_UNNAMED {
        assert!(admit(&any, &n.to_string(), at(1)));
    }
    assert!(!admit(&any, "one more", at(1)));
    assert!(admit(&named, "t", at(1)));
    assert!(!admit(&named, "t", at(1)));
    // Once they are closed they make room, all of them.
    for n in 0..MAX_UNNAMED {
        assert!(admit(&any, &format!("again {n}"), at(1001)));
    }
    assert!(!admit(&any, "one more", at(1001)));
    assert!(windows.open.len() <= MAX_WINDOWS);
    assert_eq!(windows.open.len(), windows.closing.len());
}

/// SPEC [POLICY-26]: closed ones of both kinds make room, whichever closed
/// first.
#[test]
fn no_closed_window_keeps_a_call_out() {
    let (any, slow) = limit("any", None, 1, 6);
    let (named, fast) = limit("named", Some("t"), 1, 5);
    let mut windows = Windows::default();
    for n in 0..10 {
        let session = n.to_string();
        let request = Request {
            session: Some(&session),
            ..Request::tool("t")
        };
        assert!(windows.admit(&named, fast, &request, at(1)).is_some());
    }
    for n in 0..MAX_UNNAMED {
        let tool = n.to_string();
        assert!(
            windows
                .admit(&any, slow, &Request::tool(&tool), at(1))
                .is_some()
        );
    }
    assert!(
        windows
            .admit(&any, slow, &Request::tool("new"), at(10))
            .is_some()
    );
}

/// SPEC [POLICY-26].
#[test]
fn the_windows_are_bounded_in_number() {
    let mut windows = Windows::default();
    let (rule, rate) = limit("r", Some("t"), 1, 10);
    let mut admit = |session: usize, now| {
        let session = session.to_string();
        let request = Request {
            session: Some(&session),
            ..Request::tool("t")
        };
        windows.admit(&rule, rate, &request, now).is_some()
    };
    for session in 0..MAX_WINDOWS {
        assert!(admit(session, at(session as u64 % 5)));
    }
    assert!(!admit(MAX_WINDOWS, at(5)));
    assert!(admit(MAX_WINDOWS, at(15)));
}

/// A step of the model: a Call, or a change of the rules.
#[derive(Clone, Debug)]
enum Step {
    Call {
        rule: usize,
        tool: usize,
        after: u64,
        back: bool,
    },
    Change {
        rule: usize,
        max: u32,
        per_seconds: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..2_usize, 0..3_usize, 0..6_u64, prop::bool::weighted(0.2))
            .prop_map(|(rule, tool, after, back)| Step::Call { rule, tool, after, back }),
        1 => (0..2_usize, 1..4_u32, 1..12_u64)
            .prop_map(|(rule, max, per_seconds)| Step::Change { rule, max, per_seconds }),
    ]
}

proptest! {
    /// SPEC [POLICY-22] [POLICY-24] [POLICY-25]: against counting by the text.
    #[test]
    fn windows_count_as_the_text_says(steps in prop::collection::vec(step(), 1..80)) {
        let mut rates = [(2, 5), (1, 3)];
        let ids = ["a", "b"];
        let mut windows = Windows::default();
        // By rule and tool: when it opened, and how many it let through.
        let mut model: BTreeMap<(usize, usize), (u64, u32)> = BTreeMap::new();
        let (mut now, mut last) = (0, 0);
        for step in steps {
            match step {
                Step::Call { rule, tool, after, back } => {
                    now += after;
                    last = now;
                    let (max, per_seconds) = rates[rule];
                    let tool_name = tool.to_string();
                    let (limited, rate) = limit(ids[rule], None, max, per_seconds);
                    let charge = windows.admit(&limited, rate, &Request::tool(&tool_name), at(now));
                    let window = model.get(&(rule, tool)).copied();
                    let (opened, count) = match window {
                        Some((opened, count)) if now - opened < per_seconds => (opened, count),
                        _ => (now, 0),
                    };
                    prop_assert_eq!(charge.is_some(), count < max);
                    match charge {
                        Some(charge) if back => {
                            windows.give_back(charge);
                            if count == 0 {
                                model.remove(&(rule, tool));
                            }
                        }
                        Some(_) => {
                            model.insert((rule, tool), (opened, count + 1));
                        }
                        None => {}
                    }
                }
                Step::Change { rule, max, per_seconds } => {
                    // What was closed when the last Call came is gone.
                    let old = rates;
                    model.retain(|(rule, _), (opened, _)| last - *opened < old[*rule].1);
                    rates[rule] = (max, per_seconds);
                    let rules: String = rates
                        .iter()
                        .zip(ids)
                        .map(|((max, per), id)| {
                            format!("  - {{id: {id}, action: rate_limit, rate: {{max: {max}, per_seconds: {per}}}}}\n")
                        })
                        .collect();
                    windows.adopt(&set(&format!("rules:\n{rules}")));
                }
            }
            prop_assert_eq!(windows.open.len(), windows.closing.len());
        }
    }
}
