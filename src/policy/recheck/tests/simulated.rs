//! Records of a gate that judges with the code that the engine judges with,
//! and a naive model of it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Record, recorded, rows, set};
use crate::policy::Request;
use crate::policy::judge::{Ruling, judge};
use crate::policy::parse::parse;
use crate::policy::rate::Windows;
use crate::policy::recheck::{Options, Told, recheck};
use crate::policy::set::{Action, Default as SetDefault, Rule, Set};

/// A frame that came, `gap_ms` after the one before.
#[derive(Clone, Debug)]
struct Came {
    gap_ms: u64,
    calls: Vec<Did>,
    begins_session: bool,
}

/// A Call of it: after how many more frames its outcome is written, if ever.
#[derive(Clone, Debug)]
struct Did {
    tool: &'static str,
    role: Option<&'static str>,
    ends_after: Option<usize>,
}

const TOOLS: [&str; 3] = ["a", "b", "c"];

fn came(with_roles: bool) -> impl Strategy<Value = Came> {
    let role = if with_roles {
        prop::option::of(Just("ops")).boxed()
    } else {
        Just(None).boxed()
    };
    // Where a role matters, a Call without an outcome cannot be told of.
    let told = (0usize..6).prop_map(Some);
    let ends = if with_roles {
        told.boxed()
    } else {
        prop_oneof![1 => Just(None), 9 => told].boxed()
    };
    let call = (0usize..3, role, ends).prop_map(|(tool, role, ends_after)| Did {
        tool: TOOLS[tool],
        role,
        ends_after,
    });
    (0u64..1_500, prop::collection::vec(call, 1..4), 0u8..12).prop_map(
        |(gap_ms, calls, session)| Came {
            gap_ms,
            calls,
            begins_session: session == 0,
        },
    )
}

fn policy() -> impl Strategy<Value = String> {
    let action = prop_oneof![
        4 => (1u32..4, 1u64..4).prop_map(|(max, per_seconds)| format!(
            "rate_limit, rate: {{max: {max}, per_seconds: {per_seconds}}}"
        )),
        1 => Just("deny".to_owned()),
        1 => Just("pending_approval".to_owned()),
        1 => Just("allow".to_owned()),
    ];
    let axis = |name: &'static str, values: &'static [&'static str]| {
        prop::option::of(prop::sample::select(values))
            .prop_map(move |value| value.map_or(String::new(), |v| format!(", {name}: {v}")))
    };
    let rule = (action, axis("tool", &TOOLS), axis("role", &["ops"]));
    (prop::collection::vec(rule, 1..5), any::<bool>()).prop_map(|(rules, denies)| {
        let mut text = format!(
            "default: {}\nrules:\n",
            if denies { "deny" } else { "allow" }
        );
        for (i, (action, tool, role)) in rules.into_iter().enumerate() {
            writeln!(text, "  - {{id: r{i}, action: {action}{tool}{role}}}").unwrap();
        }
        text
    })
}

/// Records what a gate says of the frames, by whatever it judges with.
fn recorded_by(
    frames: &[Came],
    mut gate: impl FnMut(&[Request<'_>], bool, Duration) -> Vec<Value>,
) -> Record {
    let mut record = Record::default();
    record.open();
    let mut now_ms = 1_000;
    let mut open: Vec<(usize, String, Did, Value)> = Vec::new();
    let mut number = 0;
    for (i, frame) in frames.iter().enumerate() {
        let due = |ends: &usize| *ends <= i || frame.begins_session;
        let (ended, rest) = open.into_iter().partition(|(ends, ..)| due(ends));
        open = rest;
        write_outcomes(&mut record, ended);
        if frame.begins_session {
            record.open();
        }
        now_ms += frame.gap_ms;
        let requests: Vec<_> = frame.calls.iter().map(Did::request).collect();
        let now = Duration::from_millis(now_ms);
        let verdicts = gate(&requests, frame.begins_session, now);
        let goes_on = verdicts
            .iter()
            .all(|verdict| verdict["status"] == "allowed");
        for (call, verdict) in frame.calls.iter().zip(verdicts) {
            number += 1;
            let id = format!("call-{number}");
            record.intent(&id, call.tool, i as u64, now_ms);
            // A refused frame is over at once.
            let ends = if goes_on { call.ends_after } else { Some(0) };
            let Some(ends) = ends else { continue };
            let ended = (i + ends, id, call.clone(), verdict);
            if goes_on {
                open.push(ended);
            } else {
                write_outcomes(&mut record, vec![ended]);
            }
        }
    }
    write_outcomes(&mut record, open);
    record
}

fn write_outcomes(record: &mut Record, ended: Vec<(usize, String, Did, Value)>) {
    for (_, id, call, verdict) in ended {
        let axes = call.role.map_or(json!({}), |role| json!({"role": role}));
        record.outcome_with(&id, call.tool, verdict, json!({"decision_axes": axes}));
    }
}

impl Did {
    fn request(&self) -> Request<'_> {
        Request {
            role: self.role,
            ..Request::tool(self.tool)
        }
    }
}

/// As the engine judges: a new Session is a new process.
fn judged_by(set: &Set) -> impl FnMut(&[Request<'_>], bool, Duration) -> Vec<Value> {
    let mut windows = Windows::default();
    move |requests, begins_session, now| {
        if begins_session {
            windows = Windows::default();
        }
        let rulings = judge(set, &mut windows, requests, false, now);
        let status = |ruling: &Ruling<'_>| match ruling {
            Ruling::Default(SetDefault::Allow) | Ruling::Allowed(_) => "allowed",
            Ruling::Default(SetDefault::Deny) | Ruling::Denied(_) => "denied",
            Ruling::RateLimited(..) => "rate_limited",
            Ruling::Parked(_) => "pending_approval",
        };
        rulings
            .iter()
            .map(|ruling| recorded(status(ruling)))
            .collect()
    }
}

/// The same without an index, keys that are hashed, or windows that are
/// swept: every admission that counted, and when.
fn judged_naively(set: &Set) -> impl FnMut(&[Request<'_>], bool, Duration) -> Vec<Value> {
    let mut opened: HashMap<(String, String), (Duration, u32)> = HashMap::new();
    move |requests, begins_session, now| {
        if begins_session {
            opened.clear();
        }
        let before = opened.clone();
        let mut refused = false;
        let verdicts = requests
            .iter()
            .map(|request| {
                let status = match best(set, request) {
                    None if set.default() == SetDefault::Allow => "allowed",
                    None => "denied",
                    Some(rule) => match rule.action {
                        Action::Allow => "allowed",
                        Action::Deny => "denied",
                        Action::PendingApproval => "pending_approval",
                        Action::RateLimit(rate) => {
                            let key = (rule.id.clone(), request.tool.to_owned());
                            let window = opened.entry(key).or_insert((now, 0));
                            if now - window.0 >= Duration::from_secs(rate.per_seconds) {
                                *window = (now, 0);
                            }
                            if window.1 < rate.max {
                                window.1 += 1;
                                "allowed"
                            } else {
                                "rate_limited"
                            }
                        }
                    },
                };
                refused |= status != "allowed";
                recorded(status)
            })
            .collect();
        if refused {
            // What the frame opened was never open.
            opened = before;
        }
        verdicts
    }
}

fn best<'s>(set: &'s Set, request: &Request<'_>) -> Option<&'s Rule> {
    let matches = |axis: &Option<String>, asserted: Option<&str>| {
        axis.as_deref().is_none_or(|axis| asserted == Some(axis))
    };
    let mut best: Option<&Rule> = None;
    let rank = |rule: &Rule| (rule.action == Action::Deny, rule.specificity());
    for rule in set.rules() {
        if matches(&rule.tool, Some(request.tool))
            && matches(&rule.role, request.role)
            && best.is_none_or(|best| rank(rule) > rank(best))
        {
            best = Some(rule);
        }
    }
    best
}

fn frames(with_roles: bool) -> impl Strategy<Value = Vec<Came>> {
    prop::collection::vec(came(with_roles), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// SPEC [RECHECK-2]: under the set that judged it nothing is changed.
    #[test]
    fn the_set_that_judged_a_record_changes_nothing(
        policy in policy(), (with_roles, frames) in any::<bool>().prop_flat_map(|r| (Just(r), frames(r))),
    ) {
        let set = set(&policy);
        let record = recorded_by(&frames, judged_by(&set));
        for row in rows(&record, &set) {
            prop_assert!(row.contains(": unchanged "), "{with_roles} {row}\n{policy}\n{}", record.text);
        }
    }

    /// SPEC [RECHECK-11] [RECHECK-12]: what is simulated is what a gate would
    /// have said, told by a model that shares no code with it.
    #[test]
    fn a_simulation_is_what_a_gate_would_have_said(policy in policy(), frames in frames(true)) {
        let set = set(&policy);
        let open = parse(b"default: allow\n").unwrap();
        let record = recorded_by(&frames, judged_by(&open));
        let expected = recorded_by(&frames, judged_naively(&set));
        let mut now: HashMap<String, &str> = HashMap::new();
        recheck(record.text.as_bytes(), &set, &Options::default(), &mut |told| {
            if let Told::Row(row) = told {
                let status = row.now.map_or("none", |now| now.status.name());
                now.insert(row.call_id.unwrap().to_string(), status);
            }
        }).unwrap();
        for row in expected.text.lines() {
            let line: Value = serde_json::from_str(row).unwrap();
            if line["line_type"] == "outcome" {
                let call = line["call_id"].as_str().unwrap();
                prop_assert_eq!(line["policy"]["status"].as_str(), now.get(call).copied(), "{}\n{}", policy, record.text);
            }
        }
    }

    /// SPEC [RECHECK-1]: the same bytes are told the same, however they come.
    #[test]
    fn chunks_change_nothing(
        policy in policy(), frames in frames(false), at in any::<prop::sample::Index>(), flip in any::<u8>(), held_bytes in 0usize..20_000,
    ) {
        let set = set(&policy);
        let mut bytes = recorded_by(&frames, judged_by(&set)).text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let told = |chunk_bytes| {
            let options = Options { chunk_bytes, held_bytes, ..Options::default() };
            let mut told = Vec::new();
            recheck(&bytes[..], &set, &options, &mut |one| told.push(format!("{one:?}"))).unwrap();
            told
        };
        let whole = told(1 << 20);
        for chunk_bytes in [1, 7, 100, 4096] {
            prop_assert_eq!(&told(chunk_bytes), &whole);
        }
    }
}
