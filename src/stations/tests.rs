use std::time::Duration;

use super::*;
use crate::rpc::scan::{Scan, Scanner};
use crate::wire::outcome::{Policy, Shadow, Tried};

const POLICY: &str = "\
rules:
  - {id: no-rm, action: deny, tool: rm, reason: never}
  - {id: few, action: rate_limit, tool: few, rate: {max: 2, per_seconds: 60}}
  - {id: ask, action: pending_approval, tool: ask}
";

fn scan(frame: &str) -> Scan {
    let mut scanner = Scanner::new();
    scanner.feed(frame.as_bytes());
    scanner.finish()
}

fn call(id: &str, tool: &str) -> String {
    format!(r#"{{"id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
}

/// What is said of each part of a frame: nothing if it goes on.
fn judge(gate: &Gate, frame: &str) -> Vec<(usize, Code, String)> {
    match policy(Some(gate), &scan(frame)) {
        Judged::Permitted(_) => Vec::new(),
        Judged::Refused(refused) => refused
            .parts()
            .iter()
            .map(|part| (part.element, part.code(), part.reason()))
            .collect(),
    }
}

fn only(element: usize, code: Code, reason: &str) -> Vec<(usize, Code, String)> {
    vec![(element, code, reason.to_owned())]
}

/// SPEC [WRAP-2] [WRAP-3].
#[test]
fn what_is_no_call_goes_on_and_what_is_no_message_does_not() {
    let gate = Gate::of("default: deny", Mode::Enforce);
    for frame in [
        "",
        " \t",
        r#"{"id":1,"method":"initialize","params":{}}"#,
        r#"{"id":1,"method":"tools/list"}"#,
        r#"{"id":1,"method":"no/such/method","params":{"name":"rm"}}"#,
        r#"{"method":"notifications/initialized"}"#,
        r#"{"id":1,"result":{}}"#,
        r#"{"id":null,"error":{"code":-32042}}"#,
        r#"[{"id":1,"method":"ping"},{"id":2,"result":{}}]"#,
    ] {
        assert_eq!(judge(&gate, frame), [], "{frame}");
    }
    let unread = only(0, Code::HostDenied, "frame could not be read strictly");
    for frame in [
        "7",
        "\"tools/call\"",
        "null",
        "{}",
        "[]",
        r#"{"id":1,"params":{"name":"rm"}}"#,
        "[7]",
        r#"[[{"id":1,"method":"tools/call"}]]"#,
        r#"{"id":1,"method":"Tools/Call"}"#,
        r#"{"id":1,"method":["tools/call"]}"#,
        r#"{"id":1,"Method":"tools/call"}"#,
        r#"{"id":1,"method":"ping","method":"tools/call"}"#,
        "{\"id\":1,\"method\":\"ping\"}\r{}",
        "\u{feff}{\"id\":1,\"method\":\"ping\"}",
        r#"{"id":1,"method":"ping","params":NaN}"#,
        r#"{"id":1,"method":"ping","params":"\ud800"}"#,
        "{\"id\":1,\"method\":\"ping\"",
    ] {
        assert_eq!(judge(&gate, frame), unread, "{frame}");
    }
    let element = only(1, Code::HostDenied, "frame could not be read strictly");
    let batch = r#"[{"id":1,"method":"ping"},{"id":2}]"#;
    assert_eq!(judge(&gate, batch), element);
}

/// SPEC [WRAP-2].
#[test]
fn a_call_without_a_usable_id_or_name_is_refused_whatever_the_policy() {
    let gate = Gate::of("default: allow", Mode::Enforce);
    let refused = |reason| only(0, Code::HostDenied, reason);
    let long = |bytes: usize| "x".repeat(bytes);
    let no_id = refused("tools/call without an id");
    for frame in [
        r#"{"method":"tools/call","params":{"name":"t"}}"#.to_owned(),
        r#"{"method":"tools/call"}"#.to_owned(),
        call("null", "t"),
        // The quotes are of it.
        call(&format!("\"{}\"", long(65_535)), "t"),
    ] {
        assert_eq!(judge(&gate, &frame), no_id);
    }
    let longest = call(&format!("\"{}\"", long(65_534)), "t");
    assert_eq!(judge(&gate, &longest), []);

    let no_name = refused("tools/call without a string params.name");
    for params in ["{}", "[]", "7", r#"{"name":7}"#, r#"{"name":null}"#] {
        let frame = format!(r#"{{"id":1,"method":"tools/call","params":{params}}}"#);
        assert_eq!(judge(&gate, &frame), no_name);
    }

    let long_name = refused("tools/call with a params.name longer than 64 KiB");
    assert_eq!(judge(&gate, &call("1", &long(65_536))), []);
    assert_eq!(judge(&gate, &call("1", &long(65_537))), long_name);
}

/// SPEC [WRAP-1].
#[test]
fn a_call_goes_on_only_if_the_policy_allows_it() {
    let mut gate = Gate::of(POLICY, Mode::Enforce);
    assert_eq!(judge(&gate, &call("1", "other")), []);
    assert_eq!(
        judge(&gate, &call("1", "rm")),
        only(0, Code::PolicyDenied, "never")
    );
    let pending = judge(&gate, &call("1", "ask"));
    assert_eq!(pending[0].1, Code::PendingApproval);
    assert!(pending[0].2.starts_with("pending approval: apr-ask-ask-"));

    let frame = call("1", "few");
    assert_eq!(judge(&gate, &frame), []);
    assert_eq!(judge(&gate, &frame), []);
    let limited = only(
        0,
        Code::RateLimited,
        "rate limit exceeded for `few` (2 per 60s)",
    );
    assert_eq!(judge(&gate, &frame), limited);
    gate.advance(Duration::from_secs(59));
    assert_eq!(judge(&gate, &frame), limited);
    gate.advance(Duration::from_secs(1));
    assert_eq!(judge(&gate, &frame), []);
}

/// SPEC [WRAP-4].
#[test]
fn a_batch_goes_on_whole_or_not_at_all_and_then_spends_nothing() {
    let gate = Gate::of(POLICY, Mode::Enforce);
    let sibling = "not executed: sibling call in this batch was refused";
    let with = |other: &str| format!("[{},{other}]", call("1", "few"));
    for (other, code, reason) in [
        (call("2", "rm"), Code::PolicyDenied, "never"),
        (
            r#"{"method":"tools/call"}"#.to_owned(),
            Code::HostDenied,
            "tools/call without an id",
        ),
        (
            "{}".to_owned(),
            Code::HostDenied,
            "frame could not be read strictly",
        ),
    ] {
        let refused = [
            (0, Code::HostDenied, sibling.to_owned()),
            (1, code, reason.to_owned()),
        ];
        // More often than the window would allow.
        for _ in 0..4 {
            assert_eq!(judge(&gate, &with(&other)), refused);
        }
    }
    assert_eq!(judge(&gate, &with(&call("2", "few"))), []);
    assert_eq!(judge(&gate, &call("3", "few"))[0].1, Code::RateLimited);
}

/// SPEC [LINE-19].
#[test]
fn what_is_recorded_names_the_set_and_the_rule() {
    let gate = Gate::of(POLICY, Mode::Enforce);
    let Judged::Permitted(permitted) = policy(Some(&gate), &scan(&call("1", "few"))) else {
        panic!("refused");
    };
    let (_pass, mut grounds) = permitted.forward();
    let standing = grounds.next_standing("call-1", "few");
    assert_eq!(standing.policy, Policy::Allowed);
    assert_eq!(standing.policy_set_hash, gate.policy_set_hash());
    assert_eq!(standing.decision_axes.matched_rule.as_deref(), Some("few"));
    // Nobody said anything of one more.
    let standing = grounds.next_standing("call-2", "few");
    assert!(matches!(standing.policy, Policy::Denied { .. }));

    let batch = format!("[{},{},{{}}]", call("1", "rm"), call("2", "t"));
    for frame in ["x", &*batch] {
        let Judged::Refused(refused) = policy(Some(&gate), &scan(frame)) else {
            panic!("permitted");
        };
        for part in refused.parts() {
            let standing = refused.standing(part);
            assert_eq!(standing.policy_set_hash, gate.policy_set_hash());
            assert_eq!(standing.decision_axes.matched_rule, part.rule);
        }
    }
}

/// SPEC [LINE-26] [WRAP-8].
#[test]
fn on_trial_everything_goes_on_and_budgets_move() {
    let mut gate = Gate::of(POLICY, Mode::Shadow);
    let hash = gate.policy_set_hash();
    let tried = |gate: &Gate, frame: &str| {
        let Judged::Permitted(permitted) = policy(Some(gate), &scan(frame)) else {
            panic!("refused");
        };
        let (_pass, mut grounds) = permitted.forward();
        let standing = grounds.next_standing("call-1", "t");
        assert_eq!(standing.policy, Policy::Allowed);
        assert_ne!(standing.policy_set_hash, hash);
        standing.shadow.unwrap()
    };
    let shadow = |status, rule: Option<&str>| Shadow {
        status,
        matched_rule: rule.map(str::to_owned),
        policy_set_hash: hash,
    };
    for (tool, expected) in [
        ("t", shadow(Tried::Allowed, None)),
        ("rm", shadow(Tried::Denied, Some("no-rm"))),
        ("ask", shadow(Tried::PendingApproval, Some("ask"))),
        ("few", shadow(Tried::Allowed, Some("few"))),
        ("few", shadow(Tried::Allowed, Some("few"))),
        ("few", shadow(Tried::RateLimited, Some("few"))),
    ] {
        assert_eq!(tried(&gate, &call("1", tool)), expected, "{tool}");
    }
    gate.advance(Duration::from_secs(60));
    let expected = shadow(Tried::Allowed, Some("few"));
    assert_eq!(tried(&gate, &call("1", "few")), expected);
    for frame in ["x", "{}", "[]", r#"{"method":"tools/call"}"#] {
        assert_eq!(tried(&gate, frame), shadow(Tried::Denied, None), "{frame}");
    }
}

#[test]
fn without_a_gate_nothing_is_judged() {
    for (frame, calls) in [(&*call("1", "rm"), true), ("{}", false)] {
        let scan = scan(frame);
        let Judged::Permitted(permitted) = policy(None, &scan) else {
            panic!("refused");
        };
        let (_pass, grounds) = permitted.forward();
        let Scan::Message(message) = &scan else {
            panic!("no message");
        };
        assert_eq!(grounds.has(message), calls);
    }
}

#[test]
fn a_tool_is_hidden_only_if_it_is_denied_outright() {
    let gate = Gate::of(POLICY, Mode::Enforce);
    for (tool, hidden) in [("rm", true), ("few", false), ("ask", false), ("t", false)] {
        for _ in 0..3 {
            assert_eq!(gate.denials()(tool), hidden, "{tool}");
        }
    }
    // Asking has spent nothing.
    assert_eq!(judge(&gate, &call("1", "few")), []);
    assert_eq!(judge(&gate, &call("1", "few")), []);
    assert!(Gate::of("default: deny", Mode::Enforce).denials()("t"));
}

#[test]
fn what_is_hidden_of_an_answer_is_told_by_one_set() {
    let gate = Gate::of("default: deny", Mode::Enforce);
    let before = gate.denials();
    gate.take_over(b"default: allow").unwrap();
    assert!(before("t"));
    assert!(!gate.denials()("t"));
}

#[test]
fn another_set_is_taken_over_whole_or_not_at_all() {
    let gate = Gate::of("default: allow", Mode::Enforce);
    let first = gate.policy_set_hash();
    let same = b"# the same\nversion: 1\ndefault: allow\nrules: []\n";
    assert_eq!(gate.take_over(same).unwrap(), Change::Same);
    for (document, error) in [
        (
            "default: perhaps",
            "line 1, column 10: policy parse error: ",
        ),
        (
            "version: 2",
            "line 1, column 10: unsupported policy version 2",
        ),
        (
            "rules: [{id: x, action: deny, role: r}]",
            "line 1, column 14: rule `x` can never match",
        ),
    ] {
        let said = gate.take_over(document.as_bytes()).unwrap_err().to_string();
        assert!(said.starts_with(error), "{said}");
        assert_eq!(gate.policy_set_hash(), first);
    }
    let change = gate.take_over(b"default: deny").unwrap();
    let to = gate.policy_set_hash();
    assert_eq!(change, Change::Replaced { from: first, to });
    assert_eq!(judge(&gate, &call("1", "t"))[0].1, Code::PolicyDenied);
}

#[test]
fn bounds_say_which_sets_may_be_in_force() {
    let allow = parse::parse(b"default: allow").unwrap();
    let bounds = Bounds {
        pinned: Some(allow.hash()),
        ..Bounds::default()
    };
    assert!(bounds.admit(allow).is_ok());
    let deny = parse::parse(b"default: deny").unwrap();
    let said = bounds.admit(deny).unwrap_err().to_string();
    let hashes = [
        "5ecac5407c3aefb658f4f734d7f787302004848dcab8e28a22b947a859499c20",
        "e8bcffbbc51aabf04e538f85781bf5cd09eb28a33d31916aa3b3f4b28562203e",
    ];
    assert!(hashes.iter().all(|hash| said.contains(hash)), "{said}");

    let inert = || parse::parse(b"rules: [{id: x, action: deny, capability: net}]").unwrap();
    assert!(Bounds::default().admit(inert()).is_err());
    let lenient = Bounds {
        allow_inert: true,
        ..Bounds::default()
    };
    assert!(lenient.admit(inert()).is_ok());
    let allows = parse::parse(b"rules: [{id: x, action: allow, capability: net}]").unwrap();
    assert!(Bounds::default().admit(allows).is_ok());
}
