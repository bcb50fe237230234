use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;
use crate::policy::parse::parse;

fn engine(document: &str) -> Engine {
    Engine::new(parse(document.as_bytes()).unwrap(), [7; 16])
}

fn judge(engine: &Engine, tools: &[&str], refused: bool) -> Judgement {
    let requests: Vec<_> = tools.iter().map(|tool| Request::tool(tool)).collect();
    engine.judge(&requests, refused, Duration::from_secs(1))
}

const POLICY: &str = "\
default: deny
rules:
  - {id: read, action: allow, tool: read, limits: {max_wall_ms: 5}}
  - {id: exec, action: deny, tool: exec}
  - {id: exec-why, action: deny, tool: exec2, reason: not here}
  - {id: search, action: rate_limit, tool: search, rate: {max: 2, per_seconds: 60}, limits: {max_wall_ms: 6}}
  - {id: find, action: rate_limit, tool: find, rate: {max: 1, per_seconds: 60}, reason: slowly}
  - {id: pay, action: pending_approval, tool: pay, reason: unused}
";

/// SPEC [POLICY-20] [POLICY-21].
#[test]
fn verdicts_and_their_reasons() {
    let engine = engine(POLICY);
    let mut shown = String::new();
    let tools = [
        "read", "exec", "exec2", "search", "search", "search", "find", "find", "other",
    ];
    for tool in tools {
        let judgement = judge(&engine, &[tool], false);
        assert_eq!(judgement.policy_set_hash, engine.set().hash());
        let [verdict] = &judgement.verdicts[..] else {
            panic!("one verdict");
        };
        let decision = match &verdict.decision {
            Decision::Allowed(allowed) => format!("allowed {:?}", allowed.limits().max_wall_ms),
            Decision::Denied { reason } => format!("denied: {reason}"),
            Decision::RateLimited { reason } => format!("rate limited: {reason}"),
            Decision::PendingApproval { .. } => panic!("nothing is parked here"),
        };
        shown += &format!("{tool} {:?} {decision}\n", verdict.matched_rule.as_deref());
    }
    let expected = "\
read Some(\"read\") allowed Some(5)
exec Some(\"exec\") denied: denied by rule `exec`
exec2 Some(\"exec-why\") denied: not here
search Some(\"search\") allowed Some(6)
search Some(\"search\") allowed Some(6)
search Some(\"search\") rate limited: rate limit exceeded for `search` (2 per 60s)
find Some(\"find\") allowed None
find Some(\"find\") rate limited: slowly
other None denied: no matching rule (default deny)
";
    assert_eq!(shown, expected);
}

/// SPEC [POLICY-24].
#[test]
fn a_refused_frame_spends_nothing() {
    let engine = engine(POLICY);
    // Another Call of it is refused, before or behind; it is one too many
    // itself; it is refused for what else stands in it.
    for tools in [
        &["search", "search", "exec"][..],
        &["exec", "search", "search"],
        &["search", "search", "search"],
        &["search", "pay"],
    ] {
        assert!(!judge(&engine, tools, false).is_allowed(), "{tools:?}");
    }
    assert!(judge(&engine, &["search", "search"], true).is_allowed());
    assert!(judge(&engine, &["search", "search"], false).is_allowed());
    assert!(!judge(&engine, &["search"], false).is_allowed());
}

/// SPEC [POLICY-24]: a rule that matches and loses does not count.
#[test]
fn a_rate_rule_that_does_not_decide_does_not_count() {
    let engine = engine(
        "rules:\n\
         - {id: any, action: rate_limit, rate: {max: 1, per_seconds: 60}}\n\
         - {id: read, action: allow, tool: read}\n",
    );
    for _ in 0..3 {
        assert!(judge(&engine, &["read"], false).is_allowed());
    }
    assert!(judge(&engine, &["x"], false).is_allowed());
    assert!(!judge(&engine, &["x"], false).is_allowed());
    // Each tool has a window of its own.
    assert!(judge(&engine, &["y"], false).is_allowed());
}

/// SPEC [POLICY-25].
#[test]
fn windows_outlive_a_replaced_set() {
    let engine = engine(POLICY);
    assert!(judge(&engine, &["find"], false).is_allowed());
    engine.replace(parse(POLICY.as_bytes()).unwrap());
    assert!(!judge(&engine, &["find"], false).is_allowed());
}

/// SPEC [POLICY-25]: also when the old length is over before the next Call of
/// the tool, and other Calls came meanwhile.
#[test]
fn a_window_made_longer_is_not_forgotten_at_its_old_end() {
    let document = |per_seconds: u64| {
        format!(
            "rules:\n- {{id: r, action: rate_limit, rate: {{max: 1, per_seconds: {per_seconds}}}}}\n"
        )
    };
    let engine = engine(&document(10));
    let allows = |tool: &str, seconds| {
        let now = Duration::from_secs(seconds);
        engine
            .judge(&[Request::tool(tool)], false, now)
            .is_allowed()
    };
    assert!(allows("t", 0));
    engine.replace(parse(document(100).as_bytes()).unwrap());
    for n in 0..5 {
        assert!(allows(&n.to_string(), 20));
    }
    assert!(!allows("t", 99));
    assert!(allows("t", 100));
}

fn approval_id(judgement: &Judgement) -> String {
    match &judgement.verdicts[0].decision {
        Decision::PendingApproval { approval_id } => approval_id.clone(),
        _ => panic!("parked"),
    }
}

/// SPEC [POLICY-28] [LINE-12].
#[test]
fn approval_ids_never_repeat() {
    let mut seen = HashSet::new();
    for nonce in 0..3 {
        let engine = Engine::new(
            parse(b"rules:\n  - {id: pay, action: pending_approval}\n").unwrap(),
            [nonce; 16],
        );
        for tool in ["a", "a", "b", ""] {
            assert!(seen.insert(approval_id(&judge(&engine, &[tool], false))));
        }
        engine.replace(parse(b"rules:\n  - {id: pay, action: pending_approval}\n").unwrap());
        assert!(seen.insert(approval_id(&judge(&engine, &["a"], false))));
    }
    assert_eq!(seen.len(), 15);
    assert!(seen.contains("apr-pay-a-00000000000000000000000000000000-1"));
}

/// SPEC [POLICY-29].
#[test]
fn an_approval_id_can_be_typed_and_is_bounded() {
    let long = "x".repeat(1024);
    let document = format!("rules:\n  - {{id: \"{long}\", action: pending_approval}}\n");
    let engine = engine(&document);
    engine.approvals.store(u64::MAX - 1, Ordering::Relaxed);
    let tool = "\u{1b}[2K é\n".repeat(10_000);
    let id = approval_id(&judge(&engine, &[&tool], false));
    assert_eq!(MAX_APPROVAL_ID_BYTES, 187);
    assert_eq!(id.len(), MAX_APPROVAL_ID_BYTES);
    assert!(id.bytes().all(|b| b.is_ascii_graphic()), "{id}");
}

/// SPEC [POLICY-19].
#[test]
fn a_judgement_is_of_one_set_while_sets_are_replaced() {
    let document = |name: &str| {
        parse(format!("rules:\n  - {{id: {name}, action: deny}}\n").as_bytes()).unwrap()
    };
    let hashes = ["one", "two"].map(|name| document(name).hash());
    let engine = Engine::new(document("one"), [7; 16]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let judges: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = [0_u32; 2];
                    while !over.load(Ordering::Relaxed) {
                        let judgement = judge(&engine, &["a", "b", "c"], false);
                        let of = usize::from(judgement.policy_set_hash == hashes[1]);
                        assert_eq!(judgement.policy_set_hash, hashes[of]);
                        for verdict in &judgement.verdicts {
                            assert_eq!(verdict.matched_rule.as_deref(), Some(["one", "two"][of]));
                        }
                        seen[of] += 1;
                    }
                    seen
                })
            })
            .collect();
        for turn in 0..2000 {
            engine.replace(document(["two", "one"][turn % 2]));
        }
        over.store(true, Ordering::Relaxed);
        for judge in judges {
            let seen = judge.join().unwrap();
            assert!(seen.iter().sum::<u32>() > 0);
        }
    });
}
