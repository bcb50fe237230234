use std::io::Cursor;

use super::*;

#[test]
fn frames_are_told_apart() {
    let answer = |id, error: Option<&str>| Frame::Answer {
        id,
        error: error.map(str::to_owned),
    };
    for (bytes, expected) in [
        (r#"{"id":1,"result":{}}"#, answer(Some(1), None)),
        (
            r#"{"id":2,"error":{"message":"no"}}"#,
            answer(Some(2), Some("no")),
        ),
        (r#"{"id":"x","result":1}"#, answer(None, None)),
        (r#"{"method":"notifications/message"}"#, Frame::Notification),
        (r#"{"id":3}"#, Frame::Garbage),
        ("Server started", Frame::Garbage),
        ("[]", Frame::Garbage),
        ("", Frame::Garbage),
    ] {
        assert_eq!(Frame::read(bytes.as_bytes()), expected, "{bytes}");
    }
    let Frame::Request { method, .. } = Frame::read(br#"{"id":"a","method":"roots/list"}"#) else {
        panic!("a request");
    };
    assert_eq!(method, "roots/list");
}

#[test]
fn a_frame_is_read_at_the_bound_and_none_after_a_longer_one() {
    let frames = |length: u64| {
        let mut bytes = vec![b'x'; length as usize];
        bytes.extend(b"\nrest");
        let (heard, output) = sync_channel(4);
        read_frames(Cursor::new(bytes), &heard);
        drop(heard);
        output.iter().map(|frame| frame.len()).collect::<Vec<_>>()
    };
    assert_eq!(frames(MAX_FRAME_BYTES), [MAX_FRAME_BYTES as usize, 4]);
    assert_eq!(frames(MAX_FRAME_BYTES + 1), [0; 0]);
}

#[test]
fn the_last_rows_are_kept() {
    let kept = |rows: usize| {
        let text: String = (0..rows).map(|row| format!("{row}\n\n")).collect();
        let tail = Mutex::new(Tail::default());
        keep_tail(Cursor::new(text), &tail);
        tail.into_inner().unwrap().rows
    };
    assert_eq!(kept(MAX_ROWS)[0], "0");
    assert_eq!(kept(MAX_ROWS + 1)[0], "1");
    assert_eq!(kept(MAX_ROWS + 1).len(), MAX_ROWS);
}
