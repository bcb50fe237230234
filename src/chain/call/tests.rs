use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::ending::{Answered, NotExecuted, Unanswered};
use super::super::sink::MemorySink;
use super::super::testing::{FaultSink, answered, check, of_type, open};
use super::*;
use crate::wire::digest::Digest;
use crate::wire::facts::Durability;
use crate::wire::outcome::{Answer, AnswerKind, Tried};

/// The outcome of one Call that `act` ends.
fn outcome(tool: &str, act: impl FnOnce(Call)) -> Value {
    let sink = MemorySink::new();
    let writer = open(sink.clone(), Durability::Full).unwrap();
    act(writer.begin(tool, Digest::of(b"{}")).unwrap());
    drop(writer);
    let rows = check(&sink.bytes());
    let outcomes = of_type(&rows, "outcome");
    assert_eq!(outcomes.len(), 1);
    assert_eq!(outcomes[0]["request_digest"], rows[1]["request_digest"]);
    outcomes[0].clone()
}

fn passed(mut call: Call) -> Call {
    let standing = Standing::passed_through(call.id(), "echo");
    call.stand(standing).unwrap();
    call
}

/// SPEC [LINE-8] [LINE-13].
#[test]
fn an_answered_call() {
    let outcome = outcome("echo", |call| {
        passed(call).finish(answered()).unwrap();
    });
    assert_eq!(outcome["policy"], json!({"status": "allowed"}));
    assert_eq!(
        outcome["capability"],
        json!({"status": "granted", "grant": {
            "grant_id": "wrap-passthrough-call-1", "tool_id": "echo",
            "max_memory_bytes": 0, "max_output_bytes": 0, "max_wall_ms": 0,
        }})
    );
    assert_eq!(outcome["grant_id"], "wrap-passthrough-call-1");
    assert_eq!(outcome["execution"], json!({"status": "success"}));
    assert_eq!(outcome["answer"], json!({"kind": "result"}));
    assert_eq!(outcome["wall_ms"], 7);
    assert_eq!(outcome["decision_axes"], json!({}));
    for absent in ["peak_memory_bytes", "cut", "resumes", "tool_digest"] {
        assert!(outcome.get(absent).is_none(), "{absent}");
    }
}

/// SPEC [LINE-13] [LINE-14].
#[test]
fn a_call_that_nobody_judged_says_so() {
    let outcome = outcome("echo", |call| {
        call.finish(Ending::NotExecuted(NotExecuted::Refused))
            .unwrap();
    });
    let not_evaluated = json!({"status": "denied", "reason": "not evaluated"});
    assert_eq!(outcome["policy"], not_evaluated);
    assert_eq!(outcome["capability"], not_evaluated);
    assert_eq!(
        outcome["execution"],
        json!({"status": "host_denied", "reason": "not executed"})
    );
    for absent in ["grant_id", "answer", "wall_ms", "response_digest"] {
        assert!(outcome.get(absent).is_none(), "{absent}");
    }
}

/// SPEC [LINE-6] [LINE-14].
#[test]
fn a_dropped_call_keeps_its_standing() {
    let dropped = outcome("echo", |call| drop(passed(call)));
    assert_eq!(dropped["policy"], json!({"status": "allowed"}));
    assert_eq!(
        dropped["execution"],
        json!({"status": "host_denied", "reason": "session abandoned"})
    );
    let unjudged = outcome("echo", drop);
    assert_eq!(unjudged["policy"]["reason"], "not evaluated");
}

/// SPEC [LINE-6] [LINE-14].
#[test]
fn a_call_dropped_by_a_panic_is_a_trap() {
    let outcome = outcome("echo", |call| {
        let call = passed(call);
        let thread = thread::spawn(move || {
            let _call = call;
            panic!("expected by this test");
        });
        thread.join().unwrap_err();
    });
    assert_eq!(outcome["policy"], json!({"status": "allowed"}));
    assert_eq!(
        outcome["execution"],
        json!({"status": "trap", "message": "host panic during tool call"})
    );
}

/// SPEC [LINE-14] [LINE-21].
#[test]
fn every_way_to_go_without_an_answer() {
    for (why, kind, reason) in [
        (
            Unanswered::ChildExited,
            "none",
            "child exited before responding",
        ),
        (
            Unanswered::ClientClosed,
            "none",
            "client closed stdin; child did not answer within the shutdown grace",
        ),
        (
            Unanswered::Cancelled,
            "cancelled",
            "cancelled by the client; no answer",
        ),
        (
            Unanswered::NoId,
            "none",
            "relayed without an id; no answer can be matched",
        ),
        (
            Unanswered::Unreadable,
            "none",
            "frame could not be read; relayed",
        ),
    ] {
        let outcome = outcome("echo", |call| {
            passed(call).finish(Ending::Unanswered(why)).unwrap();
        });
        assert_eq!(outcome["policy"], json!({"status": "allowed"}));
        assert_eq!(
            outcome["execution"],
            json!({"status": "host_denied", "reason": reason})
        );
        assert_eq!(outcome["answer"], json!({"kind": kind}));
    }
}

/// SPEC [LINE-21].
#[test]
fn killed_refused_and_held_back() {
    let killed = outcome("echo", |call| {
        let mut call = passed(call);
        call.mark_ambiguous();
        call.finish(Ending::Killed).unwrap();
    });
    assert_eq!(
        killed["execution"],
        json!({"status": "trap", "message": "child killed by SIGSYS (seccomp)"})
    );
    assert_eq!(killed["answer"], json!({"kind": "none", "ambiguous": true}));

    let set = Digest::of(b"set");
    let axes = DecisionAxes {
        matched_rule: Some("r".to_owned()),
        ..DecisionAxes::default()
    };
    let refused = outcome("echo", |mut call| {
        let reason = "no".to_owned();
        let standing = Standing::refused(Policy::Denied { reason }, set, axes.clone());
        call.stand(standing).unwrap();
        call.finish(Ending::NotExecuted(NotExecuted::Refused))
            .unwrap();
    });
    assert_eq!(refused["policy_set_hash"], set.to_string());
    assert_eq!(refused["decision_axes"], json!({"matched_rule": "r"}));
    assert_eq!(
        refused["capability"],
        json!({"status": "denied", "reason": "policy blocked before capability"})
    );
    let sibling = outcome("echo", |mut call| {
        call.stand(Standing::held_back(set, axes)).unwrap();
        call.finish(Ending::NotExecuted(NotExecuted::SiblingRefused))
            .unwrap();
    });
    assert_eq!(sibling["policy"], json!({"status": "allowed"}));
    assert_eq!(sibling["capability"]["reason"], "not evaluated");
    assert_eq!(
        sibling["execution"]["reason"],
        "not executed: sibling call in this batch was refused"
    );
}

/// SPEC [LINE-22] [LINE-23].
#[test]
fn long_texts_are_cut_and_noted() {
    let tool = "\u{1}".repeat(MAX_TEXT_BYTES + 1);
    let reason = "r".repeat(MAX_TEXT_BYTES + 2);
    let code = "9".repeat(MAX_TEXT_BYTES + 3);
    let rule = "é".repeat(MAX_TEXT_BYTES / 2) + "!";
    let outcome = outcome(&tool, |mut call| {
        let mut standing = Standing::passed_through(call.id(), &tool);
        standing.decision_axes.matched_rule = Some(rule.clone());
        standing.shadow = Some(Shadow {
            status: Tried::Denied,
            matched_rule: Some(rule.clone()),
            policy_set_hash: Digest::of(b""),
        });
        standing.policy = Policy::Denied {
            reason: reason.clone(),
        };
        call.stand(standing).unwrap();
        call.finish(Ending::Answered(Answered {
            answer: Answer {
                code: Some(code),
                ..Answer::of(AnswerKind::ProtocolError)
            },
            response_digest: Digest::of(b""),
            wall_ms: Some(u64::MAX),
            message_digest: Some(Digest::of(b"message")),
        }))
        .unwrap();
    });
    assert_eq!(outcome["tool_id"], tool[..MAX_TEXT_BYTES]);
    assert_eq!(
        outcome["capability"]["grant"]["tool_id"],
        tool[..MAX_TEXT_BYTES]
    );
    let cuts: Vec<_> = outcome["cut"].as_object().unwrap().iter().collect();
    assert_eq!(
        cuts.iter().map(|(field, _)| &***field).collect::<Vec<_>>(),
        [
            "answer.code",
            "capability.grant.tool_id",
            "decision_axes.matched_rule",
            "policy.reason",
            "shadow.matched_rule",
            "tool_id"
        ]
    );
    assert_eq!(outcome["cut"]["policy.reason"]["bytes"], reason.len());
    for member in ["decision_axes", "shadow"] {
        assert_eq!(outcome[member]["matched_rule"], rule[..MAX_TEXT_BYTES]);
    }
    assert_eq!(outcome["wall_ms"], MAX_INTEGER);
}

#[test]
fn a_small_standing_fits_whatever_its_texts_are() {
    let controls = "\u{1}".repeat(MAX_TEXT_BYTES);
    let small = |role: usize| Standing {
        policy: Policy::Denied {
            reason: controls.clone(),
        },
        decision_axes: DecisionAxes {
            role: Some("\u{1}".repeat(role)),
            ..DecisionAxes::default()
        },
        ..Standing::passed_through("call-1", &controls)
    };
    let used = "wrap-passthrough-call-1".len() + 2 * MAX_TEXT_BYTES;
    assert!(!small(SMALL_BYTES - used + 1).is_small());
    let largest = small(SMALL_BYTES - used);
    assert!(largest.is_small());
    outcome(&controls, |mut call| {
        call.stand(largest).unwrap();
        let mut ending = answered();
        if let Ending::Answered(answered) = &mut ending {
            answered.answer.code = Some(controls.clone());
        }
        call.finish(ending).unwrap();
    });
}

#[test]
fn a_standing_that_no_outcome_could_carry_is_refused() {
    let role = |bytes| {
        let mut standing = Standing::not_evaluated();
        standing.decision_axes.role = Some("r".repeat(bytes));
        standing
    };
    let recorded = outcome("echo", |mut call| {
        let small =
            canon::to_canonical(&call.inner.record.outcome(&role(1), Ended::dropped(false)))
                .unwrap()
                .len();
        let most = MAX_STANDING_BYTES - small + 1;
        let error = call.stand(role(most + 1)).unwrap_err();
        assert!(matches!(error, ChainError::TooLong { .. }), "{error}");
        assert_eq!(call.inner.record.standing.decision_axes.role, None);
        call.stand(role(most)).unwrap();
        let code = Some("\u{1}".repeat(MAX_TEXT_BYTES + 1));
        call.finish(Ending::Answered(Answered {
            answer: Answer {
                code,
                task_digest: Some(Digest::of(b"")),
                ambiguous: true,
                ..Answer::of(AnswerKind::ProtocolError)
            },
            response_digest: Digest::of(b""),
            wall_ms: Some(MAX_INTEGER),
            message_digest: Some(Digest::of(b"")),
        }))
        .unwrap();
    });
    assert_eq!(recorded["answer"]["kind"], "protocol_error");
}

/// SPEC [CHAIN-8].
#[test]
fn an_outcome_that_failed_is_not_tried_again() {
    // open, flush, intent, outcome.
    let sink = FaultSink::new(3);
    let writer = open(sink.clone(), Durability::Process).unwrap();
    let call = writer.begin("echo", Digest::of(b"")).unwrap();
    assert!(call.finish(answered()).is_err());
    drop(writer);
    assert_eq!(sink.ops(), ["append", "flush", "append", "append"]);
    let rows = check(&sink.rows.bytes());
    assert_eq!(of_type(&rows, "outcome").len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // SPEC [LINE-24] [LINE-25] [MODEL-2].
    // Every row passes `check`, which takes the canonical form only.
    #[test]
    fn whatever_is_written_is_canonical_and_within_the_bound(
        tool in any::<String>(),
        times in 1_usize..500,
        reason in any::<String>(),
        axis in proptest::option::of(any::<String>()),
        dropped in any::<bool>(),
    ) {
        let tool = tool.repeat(times);
        let sink = MemorySink::new();
        let writer = open(sink.clone(), Durability::Full).unwrap();
        let mut call = writer.begin(tool.as_str(), Digest::of(b"{}")).unwrap();
        let mut standing = Standing::passed_through(call.id(), &tool);
        standing.policy = Policy::Denied { reason: reason.repeat(times) };
        standing.decision_axes.role = axis;
        call.stand(standing).unwrap();
        if dropped {
            drop(call);
        } else {
            call.finish(answered()).unwrap();
        }
        drop(writer);
        let file = sink.bytes();
        prop_assert_eq!(check(&file).len(), 4);
        prop_assert!(file.split(|&b| b == b'\n').all(|row| row.len() <= MAX_LINE_BYTES));
    }
}
