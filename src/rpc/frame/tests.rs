use std::collections::VecDeque;
use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// Gives prepared pieces, one for each read.
struct Pieces(VecDeque<io::Result<Vec<u8>>>);

impl Pieces {
    fn of(bytes: &[u8], size: usize) -> Self {
        Self(bytes.chunks(size).map(|piece| Ok(piece.to_vec())).collect())
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.pop_front() {
            None => Ok(0),
            Some(piece) => {
                let piece = piece?;
                buffer[..piece.len()].copy_from_slice(&piece);
                Ok(piece.len())
            }
        }
    }
}

fn limits(dir: &TempDir, in_memory: u64, max_frame: u64) -> FrameLimits {
    FrameLimits {
        in_memory,
        max_frame,
        spool_dir: dir.path().to_owned(),
    }
}

fn written(frame: &Frame) -> Vec<u8> {
    let mut out = Vec::new();
    frame.write_to(&mut out).expect("a frame can be written");
    out
}

fn hashed(frame: &Frame) -> Vec<u8> {
    let mut out = Vec::new();
    frame
        .hash_into(&mut |piece| out.extend_from_slice(piece))
        .expect("a frame can be read");
    out
}

fn frames<R: Read>(mut reader: FrameReader<R>) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().expect("a good stream") {
        frames.push(frame);
    }
    frames
}

#[test]
fn bytes_before_newline_are_kept_with_their_cr() {
    let dir = TempDir::new().expect("a directory");
    let input: &[u8] = b"{}\r\n\n \t\r\n\xff\x00\nlast";
    let frames = frames(FrameReader::new(input, FrameLimits::new(dir.path().into())));
    let bodies: Vec<_> = frames.iter().map(hashed).collect();
    let expected: [&[u8]; 5] = [b"{}\r", b"", b" \t\r", b"\xff\x00", b"last"];
    assert_eq!(bodies, expected);
    let ended: Vec<_> = frames.iter().map(Frame::is_terminated).collect();
    assert_eq!(ended, [true, true, true, true, false]);
    assert_eq!(frames.iter().flat_map(written).collect::<Vec<_>>(), input);
}

#[test]
fn an_empty_stream_has_no_frame() {
    let dir = TempDir::new().expect("a directory");
    let limits = FrameLimits::new(dir.path().into());
    assert!(frames(FrameReader::new(&b""[..], limits)).is_empty());
}

#[test]
fn a_frame_goes_to_the_spool_one_byte_past_the_memory_limit() {
    let dir = TempDir::new().expect("a directory");
    for (len, spooled) in [(99, false), (100, false), (101, true), (300_000, true)] {
        let mut input = vec![b'x'; len];
        input.extend_from_slice(b"\nnext\n");
        let frames = frames(FrameReader::new(&input[..], limits(&dir, 100, 1 << 20)));
        assert_eq!(frames.len(), 2);
        assert_eq!(frames[0].is_spooled(), spooled, "{len} bytes");
        assert_eq!(frames[0].len(), len as u64);
        assert_eq!(hashed(&frames[0]), &input[..len]);
        assert_eq!(written(&frames[0]), &input[..=len]);
        assert_eq!(hashed(&frames[1]), b"next");
        let named = fs::read_dir(dir.path()).expect("the directory").count();
        assert_eq!(named, 0, "a spool file has no name");
    }
}

#[test]
fn a_frame_is_refused_one_byte_past_the_limit() {
    let dir = TempDir::new().expect("a directory");
    for in_memory in [10, 1000] {
        let input = [&[b'x'; 200][..], b"\n"].concat();
        let whole = frames(FrameReader::new(&input[..], limits(&dir, in_memory, 200)));
        assert_eq!(whole[0].len(), 200);

        let mut reader = FrameReader::new(&input[..], limits(&dir, in_memory, 199));
        let error = reader.next_frame().expect_err("too large");
        assert!(matches!(error, FrameError::TooLarge { limit: 199 }));
        assert!(error.to_string().contains("longer than 199 bytes"));
        assert!(matches!(reader.next_frame(), Err(FrameError::Lost)));
    }
}

#[test]
fn an_endless_frame_is_read_no_further_than_its_limit() {
    let dir = TempDir::new().expect("a directory");
    let mut source = io::repeat(b'x').take(u64::MAX);
    let mut reader = FrameReader::new(&mut source, limits(&dir, 1000, 1 << 20));
    assert!(matches!(
        reader.next_frame(),
        Err(FrameError::TooLarge { .. })
    ));
    let read = u64::MAX - source.limit();
    assert!(read <= (1 << 20) + BUFFER as u64, "{read} bytes were read");
}

#[test]
fn an_interrupted_read_is_taken_up_again() {
    let dir = TempDir::new().expect("a directory");
    let interrupted = || Err(io::ErrorKind::Interrupted.into());
    let source = Pieces(VecDeque::from([
        interrupted(),
        Ok(b"on".to_vec()),
        interrupted(),
        interrupted(),
        Ok(b"e\ntwo".to_vec()),
    ]));
    let frames = frames(FrameReader::new(
        source,
        FrameLimits::new(dir.path().into()),
    ));
    assert_eq!(hashed(&frames[0]), b"one");
    assert_eq!(hashed(&frames[1]), b"two");
}

#[test]
fn the_rest_of_a_frame_that_failed_is_never_a_frame() {
    let dir = TempDir::new().expect("a directory");
    let source = Pieces(VecDeque::from([
        Ok(b"{\"a\":".to_vec()),
        Err(io::ErrorKind::ConnectionReset.into()),
        Ok(b"1}\n".to_vec()),
    ]));
    let mut reader = FrameReader::new(source, FrameLimits::new(dir.path().into()));
    assert!(matches!(reader.next_frame(), Err(FrameError::Read(_))));
    assert!(matches!(reader.next_frame(), Err(FrameError::Lost)));
}

#[test]
fn a_missing_spool_directory_is_named() {
    let dir = TempDir::new().expect("a directory");
    let missing = dir.path().join("missing");
    let limits = FrameLimits {
        in_memory: 1,
        max_frame: 10,
        spool_dir: missing.clone(),
    };
    let error = FrameReader::new(&b"xx\n"[..], limits)
        .next_frame()
        .expect_err("no directory");
    assert!(matches!(error, FrameError::Spool { .. }));
    assert!(error.to_string().contains(&missing.display().to_string()));
}

#[test]
fn a_span_is_copied_from_memory_and_from_the_spool() {
    let dir = TempDir::new().expect("a directory");
    for in_memory in [2, 100] {
        let reader = FrameReader::new(&b"0123456789\n"[..], limits(&dir, in_memory, 100));
        let frame = &frames(reader)[0];
        assert_eq!(frame.copy_span(3..7).expect("inside"), b"3456");
        assert_eq!(frame.copy_span(10..10).expect("inside"), b"");
        assert!(frame.copy_span(3..11).is_err(), "the newline is no part");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_written_is_what_was_read(
        lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
        size in 1_usize..50,
    ) {
        let dir = TempDir::new().expect("a directory");
        let input = lines.join(&b'\n');
        let reader = FrameReader::new(Pieces::of(&input, size), limits(&dir, 16, 1000));
        let frames = frames(reader);
        prop_assert_eq!(frames.iter().flat_map(written).collect::<Vec<_>>(), &input[..]);
        let ends = input.iter().filter(|byte| **byte == b'\n').count();
        let rest = usize::from(input.last().is_some_and(|byte| *byte != b'\n'));
        prop_assert_eq!(frames.len(), ends + rest);
        for frame in &frames {
            prop_assert_eq!(frame.len(), hashed(frame).len() as u64);
            prop_assert!(!hashed(frame).contains(&b'\n'));
        }
    }
}
