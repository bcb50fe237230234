use super::*;

/// What goes on of `body`, and how much of it is left.
fn sent(body: &str, framing: Framing) -> Result<(String, usize), BodyFault> {
    let mut from = Incoming::new(body.as_bytes(), Vec::new());
    let mut out = Vec::new();
    let counted = AtomicU64::new(0);
    send(&mut from, &mut out, framing, TRAILER_BYTES, &counted)?;
    assert_eq!(counted.into_inner(), out.len() as u64);
    let rest = from.until(b"NEXT", 100).ok().flatten();
    let left = rest.map_or(0, |rest| rest.len());
    Ok((String::from_utf8(out).unwrap(), left))
}

const TRAILER_BYTES: usize = 100;

#[test]
fn a_body_ends_where_it_is_said_to() {
    for (framing, body, out) in [
        (Framing::None, "NEXT", ""),
        (Framing::Length(0), "NEXT", ""),
        (Framing::Length(3), "abcNEXT", "abc"),
        (Framing::Chunked, "0\r\n\r\nNEXT", "0\r\n\r\n"),
        (
            Framing::Chunked,
            "00a;x=\"y\"\r\n0123456789\r\n0;z\r\nA: b\r\n\r\nNEXT",
            "a\r\n0123456789\r\n0\r\n\r\n",
        ),
    ] {
        assert_eq!(sent(body, framing), Ok((out.to_owned(), 4)), "{body}");
    }
}

#[test]
fn a_body_that_is_none_is_the_fault_of_the_client() {
    for (framing, body) in [
        (Framing::Length(4), "abc"),
        (Framing::Chunked, ""),
        (Framing::Chunked, "\r\n"),
        (Framing::Chunked, "g\r\n"),
        (Framing::Chunked, " 1\r\na\r\n"),
        (Framing::Chunked, "1 ;x\r\na\r\n"),
        (Framing::Chunked, "+1\r\na\r\n"),
        (Framing::Chunked, "1\r\na"),
        (Framing::Chunked, "1\r\nabc\r\n"),
        (Framing::Chunked, "1\r\na\n\r0\r\n\r\n"),
        (Framing::Chunked, "1;\n0\r\na\r\n"),
        (Framing::Chunked, "0\r\nA: b\r\n"),
    ] {
        assert_eq!(sent(body, framing), Err(BodyFault::Client), "{body:?}");
    }
}

#[test]
fn lines_and_trailers_are_bounded() {
    let size_line = |bytes: usize| {
        let extension = "x".repeat(bytes - "0;\r\n".len());
        sent(&format!("0;{extension}\r\n\r\n"), Framing::Chunked)
    };
    assert!(size_line(MAX_SIZE_LINE_BYTES).is_ok());
    assert_eq!(size_line(MAX_SIZE_LINE_BYTES + 1), Err(BodyFault::Client));
    let trailers = |bytes: usize| {
        let trailer = "x".repeat(bytes - "\r\n\r\n".len());
        sent(&format!("0\r\n{trailer}\r\n\r\n"), Framing::Chunked)
    };
    assert!(trailers(TRAILER_BYTES).is_ok());
    assert_eq!(trailers(TRAILER_BYTES + 1), Err(BodyFault::Client));
    let digits = |digits: usize| {
        let size = format!("{:0>digits$}", "1");
        sent(&format!("{size}\r\na\r\n0\r\n\r\n"), Framing::Chunked)
    };
    assert!(digits(MAX_SIZE_DIGITS).is_ok());
    assert_eq!(digits(MAX_SIZE_DIGITS + 1), Err(BodyFault::Client));
}
