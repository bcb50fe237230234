//! What is simulated of rate limits, case by case.

use serde_json::{Value, json};

use super::{Record, TWO_A_MINUTE, clauses, digest, recorded, rows, run, set};
use crate::policy::recheck::Options;

/// SPEC [RECHECK-11]: verdicts come in the order of the frames, which is not
/// that of the outcomes, and rows in that of the file.
#[test]
fn a_call_is_judged_when_it_came_and_told_where_it_ended() {
    let mut record = Record::default();
    record.open();
    record.intent("slow", "t", 1, 0).intent("b", "t", 2, 1_000);
    record.allowed("b", "t").intent("c", "t", 3, 2_000);
    record.allowed("c", "t").allowed("other", "u");
    record.allowed("slow", "t");
    record.intent("d", "t", 4, 60_000).allowed("d", "t");
    assert_eq!(
        rows(&record, &set(TWO_A_MINUTE)),
        [
            "call b session 0 seq 3: unchanged allowed",
            "call c session 0 seq 5: newly_blocked was=allowed now=rate_limited",
            "call other session 0 seq 6: unchanged allowed",
            "call slow session 0 seq 7: unchanged allowed",
            "call d session 0 seq 9: unchanged allowed",
        ]
    );
}

/// SPEC [RECHECK-12]: a frame of which one is refused counts nowhere.
#[test]
fn a_refused_frame_spends_nothing() {
    let set = set(&format!(
        "{TWO_A_MINUTE}  - {{id: never, action: deny, tool: bad}}\n"
    ));
    let unreadable = json!({"status": "denied", "reason": "tools/call without an id"});
    let mut record = Record::default();
    record.open();
    for frame in 0..3 {
        let calls = [format!("a{frame}"), format!("b{frame}")];
        record.intent(&calls[0], "t", frame, 0);
        record.intent(&calls[1], if frame == 0 { "bad" } else { "t" }, frame, 0);
        record.allowed(&calls[0], "t");
        if frame == 1 {
            record.outcome(&calls[1], "t", unreadable.clone());
        } else {
            record.allowed(&calls[1], if frame == 0 { "bad" } else { "t" });
        }
    }
    assert_eq!(
        clauses(&record, &set),
        [
            "unchanged allowed",
            "newly_blocked was=allowed now=denied",
            "unchanged allowed",
            "unchanged denied",
            "unchanged allowed",
            "unchanged allowed",
        ]
    );
}

/// SPEC [RECHECK-10] [RECHECK-13]: windows start afresh in every Session, and
/// a clock that was set back goes on from there.
#[test]
fn a_window_belongs_to_its_session_and_its_clock_goes_forward() {
    let mut record = Record::default();
    for times in [[0, 0, 0, 61_000], [90_000, 0, 59_000, 60_000]] {
        record.open();
        for (i, unix_ms) in times.into_iter().enumerate() {
            let call = format!("c{i}");
            record
                .intent(&call, "t", i as u64, unix_ms)
                .allowed(&call, "t");
        }
    }
    let (free, one_too_many) = (
        "unchanged allowed",
        "newly_blocked was=allowed now=rate_limited",
    );
    assert_eq!(
        clauses(&record, &set(TWO_A_MINUTE)),
        [
            free,
            free,
            one_too_many,
            free,
            free,
            free,
            one_too_many,
            free
        ]
    );
}

/// SPEC [RECHECK-14]: what cannot be placed in time is not guessed, nor is
/// what comes after it in its Session.
#[test]
fn a_call_that_cannot_be_placed_blinds_the_rest_of_its_session() {
    let call = |record: &mut Record, id: &str| {
        let frame = u64::from(id.as_bytes()[0]);
        record.intent(id, "t", frame, 0).allowed(id, "t");
    };
    let intent = |time: Value| {
        json!({
            "line_type": "intent", "call_id": "x", "tool_id": "t",
            "request_digest": digest("x"), "time": time,
        })
    };
    type Blind = fn(&mut Record);
    let cases: [(&str, Blind); 3] = [
        ("no intent", |record| {
            record.allowed("x", "t");
        }),
        ("a row that is not read", |record| {
            record.row("{");
        }),
        ("an intent without a call_id", |record| {
            record.line(json!({"line_type": "intent"}));
        }),
    ];
    for (what, blind) in cases {
        let mut record = Record::default();
        record.open();
        call(&mut record, "a");
        call(&mut record, "b");
        blind(&mut record);
        call(&mut record, "c");
        record.open();
        call(&mut record, "d");
        let clauses = clauses(&record, &set(TWO_A_MINUTE));
        assert_eq!(clauses[0], "unchanged allowed", "{what}");
        let last = clauses.len() - 1;
        assert_eq!(
            clauses[last - 1],
            "indeterminate rate_limit_unevaluable",
            "{what}"
        );
        assert_eq!(clauses[last], "unchanged allowed", "{what}");
    }
    let free = "unchanged allowed";
    for time in [
        json!("yesterday"),
        json!("2026-03-01T12:00:00Z"),
        json!(7),
        json!({}),
        json!(null),
    ] {
        // The frame before it is another one, and over.
        let mut record = Record::default();
        record.open();
        call(&mut record, "a");
        record.line(intent(time.clone())).allowed("x", "t");
        call(&mut record, "c");
        let unevaluable = "indeterminate rate_limit_unevaluable";
        let told = clauses(&record, &set(TWO_A_MINUTE));
        assert_eq!(told, [free, unevaluable, unevaluable]);
        // A tool that no limit is about needs no time.
        let mut record = Record::default();
        let mut of_another = intent(time);
        of_another["tool_id"] = json!("u");
        record.open().line(of_another).allowed("x", "u");
        call(&mut record, "c");
        assert_eq!(clauses(&record, &set(TWO_A_MINUTE)), [free, free]);
    }
    let mut record = Record::default();
    record.open().line(json!({
        "line_type": "intent", "call_id": "x", "tool_id": "u", "request_digest": digest("x"),
    }));
    record.allowed("x", "u");
    call(&mut record, "c");
    assert_eq!(clauses(&record, &set(TWO_A_MINUTE)), [free, free]);
}

/// SPEC [RECHECK-14]: only the frame that may have been going on is lost,
/// however often sight is lost.
#[test]
fn what_came_before_sight_was_lost_is_told() {
    let mut record = Record::default();
    record.open();
    for (call, frame) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        record.intent(call, "t", frame, 0);
    }
    record.row("{").row("{").intent("e", "t", 5, 0);
    for call in ["a", "b", "c", "d", "e"] {
        record.allowed(call, "t");
    }
    assert_eq!(
        clauses(&record, &set(TWO_A_MINUTE)),
        [
            "unchanged allowed",
            "unchanged allowed",
            "newly_blocked was=allowed now=rate_limited",
            "indeterminate rate_limit_unevaluable",
            "indeterminate rate_limit_unevaluable",
        ]
    );
}

/// SPEC [RECHECK-15]: what a Call without an outcome asserted is what its
/// intent says, unless others of its Session asserted more.
#[test]
fn a_call_without_an_outcome_counts_by_its_tool() {
    for (axes, last) in [
        (json!({}), "newly_blocked was=allowed now=rate_limited"),
        (
            json!({"role": "ops"}),
            "indeterminate rate_limit_unevaluable",
        ),
    ] {
        let mut record = Record::default();
        record.open();
        for (call, frame) in [("a", 1), ("lost", 2), ("b", 3)] {
            record.intent(call, "t", frame, 0);
        }
        record.allowed("a", "t");
        record.outcome_with(
            "b",
            "t",
            recorded("allowed"),
            json!({"decision_axes": axes}),
        );
        let clauses = clauses(&record, &set(TWO_A_MINUTE));
        assert_eq!(clauses, ["unchanged allowed", last]);
    }
}

/// SPEC [RECHECK-11] [RECHECK-13]: each frame tells the time, whatever becomes
/// of its Calls, and wherever their outcomes stand.
#[test]
fn time_passes_from_each_frame_to_the_next() {
    let set = set(&format!(
        "{TWO_A_MINUTE}  - {{id: never, action: deny, tool: t, role: ops}}\n"
    ));
    let without_id = json!({"status": "denied", "reason": "tools/call without an id"});
    let kinds = [
        ("u", recorded("allowed"), json!({})),
        (
            "t",
            recorded("denied"),
            json!({"decision_axes": {"role": "ops"}}),
        ),
        ("t", without_id, json!({})),
    ];
    for (tool, policy, more) in kinds {
        for is_late in [false, true] {
            let mut record = Record::default();
            record.open();
            for call in ["a", "b"] {
                let frame = u64::from(call.as_bytes()[0]);
                record.intent(call, "t", frame, 0).allowed(call, "t");
            }
            // The clock is set back behind it.
            record.intent("between", tool, 1, 60_000);
            let end = |record: &mut Record| {
                record.outcome_with("between", tool, policy.clone(), more.clone());
            };
            if !is_late {
                end(&mut record);
            }
            record.intent("c", "t", 2, 0).allowed("c", "t");
            if is_late {
                end(&mut record);
            }
            let rows = rows(&record, &set);
            let last = rows.iter().find(|row| row.starts_with("call c ")).unwrap();
            assert!(last.ends_with(": unchanged allowed"), "{tool} {last}");
        }
    }
}

/// SPEC [RECHECK-11] [RECHECK-15]: a Call without an outcome is lost sight of
/// only where its frame has a Call that a limit decides about, which does not
/// turn on where the outcomes of the others stand.
#[test]
fn a_call_without_an_outcome_in_a_frame_without_a_limit_hides_nothing() {
    let set = set(&format!(
        "{TWO_A_MINUTE}  - {{id: never, action: deny, tool: t, role: ops}}\n"
    ));
    for is_late in [false, true] {
        let mut record = Record::default();
        record.open();
        record.intent("asks", "t", 1, 0).intent("lost", "u", 1, 0);
        let end = |record: &mut Record| {
            let more = json!({"decision_axes": {"role": "ops"}});
            record.outcome_with("asks", "t", recorded("denied"), more);
        };
        if !is_late {
            end(&mut record);
        }
        record.intent("c", "t", 2, 0).allowed("c", "t");
        if is_late {
            end(&mut record);
        }
        let mut clauses = clauses(&record, &set);
        clauses.sort_unstable();
        assert_eq!(clauses, ["unchanged allowed", "unchanged denied"]);
    }
}

/// SPEC [RECHECK-16].
#[test]
fn what_waits_is_bounded_and_told_without_a_verdict_past_the_bound() {
    let mut record = Record::default();
    record.open().intent("slow", "t", 0, 0);
    for frame in 1..40 {
        let call = format!("c{frame}");
        record
            .intent(&call, "t", frame, 60_000 * frame)
            .allowed(&call, "t");
    }
    record.allowed("slow", "t");
    record.open().intent("a", "t", 50, 0).allowed("a", "t");
    let set = set(TWO_A_MINUTE);
    let told = |held_bytes| {
        let options = Options {
            held_bytes,
            ..Options::default()
        };
        run(&record.text, &set, &options).0
    };
    let is_evaluated = |rows: &[String]| rows.iter().all(|row| row.ends_with("unchanged allowed"));
    let (mut bound, mut above) = (0, 1 << 20);
    while bound < above {
        let middle = usize::midpoint(bound, above);
        if is_evaluated(&told(middle)) {
            above = middle;
        } else {
            bound = middle + 1;
        }
    }
    assert!((1_000..100_000).contains(&bound), "{bound}");
    assert!(is_evaluated(&told(bound)));
    let past = told(bound - 1);
    assert_eq!(past.len(), 41);
    assert!(
        past[..40]
            .iter()
            .all(|row| row.ends_with("rate_limit_unevaluable"))
    );
    // The next Session is not held up.
    assert!(past[40].ends_with("unchanged allowed"));
}
