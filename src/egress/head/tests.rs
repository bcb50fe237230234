use proptest::prelude::*;

use super::*;

fn request(text: &str) -> Result<Request, HeadFault> {
    Request::parse(text.as_bytes())
}

fn forwarded(response: &str) -> String {
    let response = Response::parse(response.as_bytes()).unwrap();
    String::from_utf8(response.forwarded(true)).unwrap()
}

#[test]
fn a_request_is_read() {
    let read = request("GET http://a/ HTTP/1.1\r\nA:1\r\na: \t2 \r\nB:\r\n\r\n").unwrap();
    assert_eq!((&*read.method, &*read.target), ("GET", "http://a/"));
    assert_eq!(read.version, Version::Http11);
    let values: Vec<_> = read.fields.all("a").collect();
    assert_eq!(values, [b"1", b"2"]);
    assert_eq!(read.fields.all("b").next(), Some(&b""[..]));
    assert_eq!(read.framing(), Ok(Framing::None));
}

#[test]
fn each_fault_is_named() {
    for (head, fault) in [
        ("GET / HTTP/1.1\r\nA: 1\r\n", HeadFault::Line),
        ("GET / HTTP/1.1\nA: 1\r\n\r\n", HeadFault::Line),
        ("GET / HTTP/1.1\r\nA: \u{7f}\r\n\r\n", HeadFault::Line),
        ("\r\n\r\n", HeadFault::Line),
        ("GET /\r\n\r\n", HeadFault::RequestLine),
        ("GET / HTTP/3\r\n\r\n", HeadFault::RequestLine),
        ("GET / HTTP/1.1\r\n A: 1\r\n\r\n", HeadFault::Field),
        ("GET / HTTP/1.1\r\nA : 1\r\n\r\n", HeadFault::Field),
        ("GET / HTTP/1.1\r\nA\r\n\r\n", HeadFault::Field),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n",
            HeadFault::Host,
        ),
    ] {
        assert_eq!(request(head), Err(fault), "{head:?}");
    }
}

#[test]
fn fields_and_methods_are_bounded() {
    let fields = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "A: 1\r\n".repeat(count));
    assert!(request(&fields(MAX_FIELDS)).is_ok());
    assert_eq!(request(&fields(MAX_FIELDS + 1)), Err(HeadFault::ManyFields));
    let method = |bytes: usize| format!("{} / HTTP/1.1\r\n\r\n", "M".repeat(bytes));
    assert!(request(&method(MAX_METHOD_BYTES)).is_ok());
    let longer = request(&method(MAX_METHOD_BYTES + 1));
    assert_eq!(longer, Err(HeadFault::RequestLine));
    let length = |digits: usize| {
        let length = "9".repeat(digits);
        let head = format!("PUT / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n");
        request(&head).unwrap().framing()
    };
    let exabyte = Framing::Length(999_999_999_999_999_999);
    assert_eq!(length(MAX_LENGTH_DIGITS), Ok(exabyte));
    assert_eq!(length(MAX_LENGTH_DIGITS + 1), Err(HeadFault::Framing));
}

#[test]
fn an_answer_goes_on_without_what_is_between_hops() {
    let answer = "HTTP/1.1 200 Fine indeed\r\nConnection: x, Y\r\nX: 1\r\ny: 2\r\nZ: 3\r\n\
                  Transfer-Encoding: chunked\r\nUpgrade: h2c\r\n\r\n";
    let expected = "HTTP/1.1 200 Fine indeed\r\nZ: 3\r\nTransfer-Encoding: chunked\r\n\
                    Connection: close\r\n\r\n";
    assert_eq!(forwarded(answer), expected);
    for line in ["HTTP/1.0 204", "HTTP/1.1 204 "] {
        let forwarded = forwarded(&format!("{line}\r\n\r\n"));
        assert!(forwarded.starts_with(&line[..12]), "{forwarded}");
    }
}

#[test]
fn an_answer_has_a_status_of_three_digits() {
    for line in [
        "HTTP/1.1",
        "HTTP/1.1 ",
        "HTTP/1.1 20",
        "HTTP/1.1 2000 x",
        "HTTP/1.1 099 x",
        "HTTP/1.1 2x0 x",
        "HTTP/1.1  200",
        "HTTP/1.1\t200 x",
        "HTTP/9.9 200 x",
        "http/1.1 200 x",
    ] {
        let parsed = Response::parse(format!("{line}\r\n\r\n").as_bytes());
        assert_eq!(parsed, Err(HeadFault::StatusLine), "{line:?}");
    }
}

proptest! {
    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let bytes = [&bytes[..], END].concat();
        let _ = Request::parse(&bytes);
        let _ = Response::parse(&bytes);
    }

    /// What goes on is read again as the same, so no second reader finds more
    /// fields in it than the first.
    #[test]
    fn what_goes_on_is_one_head(
        names in proptest::collection::vec("[a-z]{1,6}", 0..6),
        value in "[ -~\t\u{e9}]{0,12}",
    ) {
        let fields: String = names.iter().map(|name| format!("{name}: {value}\r\n")).collect();
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let first = Response::parse(head.as_bytes()).unwrap();
        let again = Response::parse(&first.forwarded(false)).unwrap();
        for (own, kept) in first.fields.0.iter().filter(|(name, _)| name != "te").zip(&again.fields.0) {
            prop_assert_eq!(own, kept);
        }
        prop_assert!(again.fields.0.len() <= first.fields.0.len());
    }
}
