//! The two limits of SPEC §8.6, at the bound and one past it. Rows of 16 MiB
//! are made by a test: as files they would only be large.

use aegis::verify::{MAX_FOLLOWS, MAX_ROW_BYTES, Options, verify};
use aegis::wire::canon::MAX_DEPTH;
use aegis::wire::facts::Follows;

use super::{Cases, With as _};
use crate::assemble::Chain;

/// An intent whose member `x` nests so that the row has `depth` levels.
fn nested(depth: usize) -> Chain {
    let mut chain = Chain::opened();
    let row = chain.clone().intent("c").text(1);
    let x = format!("{}{}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    let row = format!("{},\"x\":{x}}}", &row[..row.len() - 1]);
    chain.spelled(row.as_bytes()).outcome("c").close();
    chain
}

/// SPEC [VERIFY-46].
pub(super) fn limits(cases: &mut Cases) {
    cases.verified("levels-64", &nested(MAX_DEPTH));
    let reason = "line 2 exceeds the verifier limit of 64 levels";
    cases
        .indeterminate("levels-65", "limit", reason, &nested(MAX_DEPTH + 1))
        .with("coverage", "session 0 seq 0");
    let mut chain = nested(MAX_DEPTH + 1);
    chain.rows.truncate(2);
    cases
        .indeterminate("levels-65-last", "limit", reason, &chain)
        .comment("whichever row it is");
    chain.rows[1] = [b"{\"x\":".as_slice(), &b"[".repeat(MAX_DEPTH)].concat();
    cases.indeterminate("levels-65-torn", "limit", reason, &chain);
    chain.rows[1] = [b"{\"x\":".as_slice(), &b"[".repeat(MAX_DEPTH - 1)].concat();
    let torn = "final line 2 does not parse; torn write";
    cases.indeterminate("levels-64-torn", "torn-final-line", torn, &chain);
    chain.rows[1] = [b"{]".as_slice(), &b"[".repeat(2 * MAX_DEPTH)].concat();
    cases
        .indeterminate("levels-65-behind-a-fault", "torn-final-line", torn, &chain)
        .comment("read from the left: the fault is met first");
    let mut chain = nested(MAX_DEPTH + 1);
    chain.row(b"not JSON").row(b"{}");
    cases
        .indeterminate("levels-65-before-a-forgery", "limit", reason, &chain)
        .comment("a limit stops the walk: nothing behind it was read");
    let head = chain.hash(0);
    cases
        .indeterminate(
            "levels-65-with-the-expected-head-before",
            "limit",
            reason,
            &chain,
        )
        .with("args", format!("--expect-head {head}"));
    let behind = Chain::session("elsewhere").tail;
    let reason = format!("expected line {behind} is not in this input");
    cases
        .indeterminate(
            "levels-65-with-the-expected-head-unmet",
            "head-absent",
            reason,
            &chain,
        )
        .with("args", format!("--expect-head {behind}"));
}

/// A row of 16 MiB is judged, whatever it is; one byte more is not:
/// [VERIFY-54].
#[test]
fn a_row_of_16_mib_is_judged_and_one_byte_more_is_not() {
    let mut wide = Chain::opened();
    let row = wide.clone().intent("c").text(1);
    let fill = MAX_ROW_BYTES - row.len() - r#","x":"""#.len();
    let row = format!("{},\"x\":\"{}\"}}", &row[..row.len() - 1], "a".repeat(fill));
    assert_eq!(row.len(), MAX_ROW_BYTES);
    wide.spelled(row.as_bytes()).outcome("c").close();
    assert_eq!(verdict(wide.bytes()), "Verified (unpinned)");

    let over = wide.text(1).replacen(r#","x":"#, r#", "x":"#, 1);
    wide.rows[1] = over.into();
    let limit = "Indeterminate: line 2 exceeds the verifier limit of 16 MiB";
    assert_eq!(verdict(wide.bytes()), limit);

    for (byte, at_bound) in [
        (b' ', "Indeterminate: no lines to verify"),
        (
            b'x',
            "Indeterminate: final line 1 does not parse; torn write",
        ),
        (0, "Indeterminate: final line 1 does not parse; torn write"),
        (
            b'[',
            "Indeterminate: line 1 exceeds the verifier limit of 64 levels",
        ),
    ] {
        let mut row = vec![byte; MAX_ROW_BYTES];
        assert_eq!(verdict(row.clone()), at_bound);
        row.push(byte);
        let limit = "Indeterminate: line 1 exceeds the verifier limit of 16 MiB";
        assert_eq!(verdict(row.clone()), limit);
        row.push(b'\n');
        assert_eq!(verdict(row), limit);
    }
}

/// Depth is counted, not recursed: [VERIFY-55].
#[test]
fn nesting_of_any_depth_ends_in_the_limit() {
    for last in [false, true] {
        let mut chain = Chain::opened();
        chain.row(&b"{\"a\":".repeat(100_000));
        if !last {
            chain.close();
        }
        let limit = "Indeterminate: line 2 exceeds the verifier limit of 64 levels";
        assert_eq!(verdict(chain.bytes()), limit);
    }
}

/// Names that no file can have are not kept whole.
#[test]
fn followed_names_are_bounded() {
    let named = |name: String| {
        let tail = Chain::session("c").tail;
        let mut chain = Chain::new();
        chain
            .open_following(
                None,
                vec![Follows {
                    segment: name,
                    tail,
                }],
            )
            .close();
        let input = Box::new(std::io::Cursor::new(chain.bytes()));
        let mut report = verify(input, &Options::default()).expect("readable");
        report.follows.remove(0).segment
    };
    let at = "a".repeat(1024);
    assert_eq!(named(at.clone()), at);
    assert_eq!(named(format!("{at}b")), at);
    assert_eq!(named(format!("{}é", &at[1..])), at[1..]);
}

/// What a file's `open` Lines follow is remembered to its end, so it is
/// bounded.
#[test]
fn followed_segments_are_bounded() {
    let following = |count: usize| {
        let follows = |n| Follows {
            segment: format!("{n}.aarl"),
            tail: Chain::new().tail,
        };
        let mut chain = Chain::new();
        chain.open_following(None, (0..count / 2).map(follows).collect());
        chain.open_following(Some(chain.tail), (count / 2..count).map(follows).collect());
        verdict(chain.close().bytes())
    };
    assert_eq!(following(MAX_FOLLOWS), "Verified (unpinned)");
    assert_eq!(
        following(MAX_FOLLOWS + 1),
        "Indeterminate: line 2 exceeds the verifier limit of 65536 followed segments"
    );
}

fn verdict(record: Vec<u8>) -> String {
    let input = Box::new(std::io::Cursor::new(record));
    let report = verify(input, &Options::default()).expect("readable");
    report.verdict.to_string()
}
