//! Large frames: in memory, spooled, and past the limit.

use serde_json::json;

use super::harness::{Setup, call, until};
use super::record::assert_answered;

#[test]
fn large_frames_pass_whole_and_are_recorded() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    let text = "\u{e9}".repeat(3 << 19);
    let (large, echoed) = session.ask(1, "echo", json!({ "text": text }));
    assert!(large.len() > 3 << 20 && echoed.len() > 3 << 20);
    // Past the 8 MiB that are held in memory, in each direction.
    let (small, spooled_answer) = session.ask(2, "big", json!({"bytes": 12 << 20}));
    assert!(spooled_answer.len() > 12 << 20);
    let text = "y".repeat(9 << 20);
    let (spooled, spooled_echo) = session.ask(3, "echo", json!({ "text": text }));
    assert!(spooled_echo.windows(4).any(|bytes| bytes == b"yyyy"));
    let ended = session.finish();
    ended.assert_exit(0);
    let record = ended.record;
    record.assert_verified();
    let answers = [
        (&large, &echoed),
        (&small, &spooled_answer),
        (&spooled, &spooled_echo),
    ];
    for (request, answer) in answers {
        assert_answered(record.outcome(request), answer, json!({"kind": "result"}));
    }
    let names = std::fs::read_dir(setup.dir.path()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a.aarl", "key"], "spool files have no name");
}

#[test]
fn a_spooled_frame_keeps_its_line_end() {
    let setup = Setup::server(&[]).with(&["--max-frame", "20000000"]);
    let mut input = call(1, "echo", json!({"text": "z".repeat(9 << 20)}))
        .to_string()
        .into_bytes();
    input.extend_from_slice(b"\r\n");
    input.extend_from_slice(call(2, "echo", json!({"text": "a"})).to_string().as_bytes());
    let direct = setup.pipe_direct(&input);
    let wrapped = setup.pipe(&input);
    assert!(wrapped.stdout == direct.stdout);
    setup.record().assert_verified();
}

/// A frame of that many bytes, without its line end.
fn frame_of(bytes: usize) -> Vec<u8> {
    let empty = call(9, "echo", json!({"text": ""})).to_string().len();
    let text = "x".repeat(bytes - empty);
    call(9, "echo", json!({ "text": text }))
        .to_string()
        .into_bytes()
}

#[test]
fn a_frame_at_the_limit_passes_and_one_past_it_ends_the_session() {
    let setup = Setup::server(&[]).with(&["--max-frame", "4096"]);
    let mut session = setup.start();
    let open = session.call(1, "never", json!({}));
    let at_limit = frame_of(4096);
    session.send(&[&at_limit[..], b"\n"].concat());
    let answer = session.answer(9);
    // All in one write: the frames before the large one still go on.
    let before = call(2, "echo", json!({"text": "before"})).to_string();
    let past_limit = frame_of(4097);
    session.send(&[before.as_bytes(), b"\n", &past_limit, b"\n"].concat());
    let ended = session.wait();
    ended.assert_exit(1);
    assert_eq!(
        ended.stderr,
        "aegis wrap: the client sent a frame longer than 4096 bytes; raise --max-frame if it is \
         to be trusted with more\n"
    );
    ended.record.assert_verified();
    assert_answered(
        ended.record.outcome(&at_limit),
        &answer,
        json!({"kind": "result"}),
    );
    assert_eq!(
        ended.record.outcome(&open)["answer"],
        json!({"kind": "none"})
    );
    assert_eq!(ended.record.outcomes_of(&past_limit).len(), 0);
    assert_eq!(ended.record.close()["calls"], 3);
}

#[test]
fn frames_before_one_past_the_limit_reach_the_server() {
    let setup = Setup::server(&[])
        .with(&["--max-frame", "4096"])
        .with_ledger();
    let mut session = setup.start();
    session.ask(1, "echo", json!({"text": "ready"}));
    let before = call(2, "never", json!({})).to_string();
    session.send(&[before.as_bytes(), b"\n", &frame_of(4097), b"\n"].concat());
    let ended = session.wait();
    ended.record.assert_verified();
    // The child is killed at once, so it may not have come to act on it.
    until("the effect", || !setup.effects().is_empty());
    assert_eq!(ended.record.outcomes_of(before.as_bytes()).len(), 1);
}

#[test]
fn an_answer_past_the_limit_ends_the_session() {
    let setup = Setup::server(&[]).with(&["--max-frame", "4096"]);
    let mut session = setup.start();
    let request = session.call(1, "big", json!({"bytes": 5000}));
    let ended = session.wait();
    ended.assert_exit(1);
    assert_eq!(
        ended.stderr,
        "aegis wrap: the server sent a frame longer than 4096 bytes; raise --max-frame if it is \
         to be trusted with more\n"
    );
    ended.record.assert_verified();
    assert_eq!(
        ended.record.outcome(&request)["answer"],
        json!({"kind": "none"})
    );
}

#[test]
fn a_frame_without_end_is_bounded_too() {
    let setup =
        Setup::command(&["sh", "-c", "tr '\\0' x </dev/zero"]).with(&["--max-frame", "1024"]);
    let ended = setup.start().wait();
    ended.assert_exit(1);
    assert!(
        ended
            .stderr
            .contains("the server sent a frame longer than 1024 bytes")
    );
    ended.record.assert_verified();
}

#[test]
fn a_spool_that_cannot_be_written_ends_the_session() {
    let setup = Setup::server(&[]);
    let mut session = setup.start();
    session.ask(1, "echo", json!({"text": "a"}));
    let spool = setup.dir.path().to_owned();
    let gone = spool.with_extension("gone");
    std::fs::rename(&spool, &gone).unwrap();
    let _ = session.try_send(&vec![b'x'; (8 << 20) + 65536]);
    let status = session.wait_status();
    std::fs::rename(&gone, &spool).unwrap();
    let ended = session.wait();
    assert_eq!(status.code(), Some(1));
    assert!(
        ended.stderr.contains("could not spool a long frame in"),
        "{}",
        ended.stderr
    );
    ended.record.assert_verified();
}
