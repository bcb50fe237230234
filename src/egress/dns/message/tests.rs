use proptest::prelude::*;

use super::*;

/// A query for `labels` with the id 0x1234, recursion desired.
fn query(labels: &[&[u8]], kind: u16) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, RD, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in labels {
        bytes.push(label.len() as u8);
        bytes.extend_from_slice(label);
    }
    bytes.push(0);
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&[0, IN]);
    bytes
}

fn simple() -> Vec<u8> {
    query(&[b"wWw", b"Test"], 1)
}

fn changed(at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = simple();
    bytes[at] = byte;
    bytes
}

/// With `records` behind the question.
fn with_additional(count: u8, records: &[u8]) -> Vec<u8> {
    let mut bytes = changed(11, count);
    bytes.extend_from_slice(records);
    bytes
}

/// The code of a refusal, and of EDNS its upper bits.
fn refused(bytes: &[u8]) -> u8 {
    match Query::read(bytes) {
        Err(Unanswerable::Refused(answer)) => {
            assert_eq!(answer[..2], [0x12, 0x34]);
            assert_eq!(answer[2] & QR, QR);
            answer[3] & RCODE
        }
        other => panic!("{other:?}"),
    }
}

const OPT: [u8; 11] = [0, 0, TYPE_OPT, 4, 208, 0, 0, 0, 0, 0, 0];

#[test]
fn the_question_goes_back_byte_for_byte() {
    let bytes = simple();
    let query = Query::read(&bytes).unwrap();
    assert_eq!(query.name().unwrap().as_str(), "www.test");
    assert_eq!(query.kind(), Kind::A);
    let answer = query.with_ipv4(Ipv4Addr::new(127, 77, 0, 1));
    let question = &bytes[HEADER_BYTES..];
    assert_eq!(answer[..4], [0x12, 0x34, QR | RD, RA]);
    assert_eq!(answer[4..12], [0, 1, 0, 1, 0, 0, 0, 0]);
    assert_eq!(answer[12..12 + question.len()], *question);
    let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 77, 0, 1];
    assert_eq!(answer[12 + question.len()..], record);
}

#[test]
fn what_is_no_question_is_dropped_or_refused() {
    for short in 0..HEADER_BYTES {
        let read = Query::read(&simple()[..short]).unwrap_err();
        assert_eq!(read, Unanswerable::Dropped);
    }
    // An answer.
    assert_eq!(
        Query::read(&changed(2, QR)).unwrap_err(),
        Unanswerable::Dropped
    );
    for (what, bytes, code) in [
        ("a status query", changed(2, 0x10), 4),
        ("an update", changed(2, 0x28), 4),
        ("cut short", changed(2, TC), 1),
        ("no question", changed(5, 0), 1),
        ("two questions", changed(5, 2), 1),
        ("256 questions", changed(4, 1), 1),
        ("an answer section", changed(7, 1), 1),
        ("an authority section", changed(9, 1), 1),
        ("a missing record", changed(11, 1), 1),
        ("256 records", changed(10, 1), 1),
        ("a pointer", changed(12, 0xc0), 1),
        ("a label beyond the end", changed(12, 63), 1),
        ("a label too long", changed(12, 64), 1),
        ("class CH", changed(simple().len() - 1, 3), 5),
        ("class ANY", changed(simple().len() - 1, 255), 5),
        ("a cut question", simple()[..simple().len() - 1].to_vec(), 1),
        ("bytes behind", [simple(), vec![0]].concat(), 1),
        ("only a header", simple()[..HEADER_BYTES].to_vec(), 1),
    ] {
        assert_eq!(refused(&bytes), code, "{what}");
    }
}

#[test]
fn names_are_bounded() {
    let label = [b'x'; 63];
    // 3 * 64 + 62 + 1 bytes.
    let longest = query(&[&label, &label, &label, &[b'x'; 61]], 1);
    assert!(Query::read(&longest).unwrap().name().is_ok());
    let longer = query(&[&label, &label, &label, &[b'x'; 62]], 1);
    assert_eq!(refused(&longer), 1);
    // The largest answer that there is.
    let mut largest = longest.clone();
    largest[11] = 1;
    largest.extend_from_slice(&OPT);
    let answer = Query::read(&largest)
        .unwrap()
        .with_ipv6(Ipv6Addr::LOCALHOST);
    assert!(answer.len() <= 512, "{}", answer.len());
    // And the largest name, to the longest inverse question.
    let inverse = query(&[b"255", b"255", b"77", b"127", b"in-addr", b"arpa"], 12);
    let name = [
        "x".repeat(63),
        "x".repeat(63),
        "x".repeat(63),
        "x".repeat(61),
    ]
    .join(".");
    let answer = Query::read(&inverse).unwrap().with_name(&name);
    assert!(answer.len() <= 512, "{}", answer.len());
}

#[test]
fn edns_is_answered_in_kind() {
    let bytes = with_additional(1, &OPT);
    let query = Query::read(&bytes).unwrap();
    let answer = query.with_code(Rcode::NxDomain);
    assert_eq!(answer[11], 1);
    assert!(answer.ends_with(&OPT));
    // With a cookie, which nobody has to know.
    let mut cookie = OPT;
    cookie[10] = 12;
    let cookie = [&cookie[..], &[0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]].concat();
    assert!(Query::read(&with_additional(1, &cookie)).is_ok());
    // Another version: the code has upper bits.
    let mut newer = OPT;
    newer[6] = 1;
    let Err(Unanswerable::Refused(answer)) = Query::read(&with_additional(1, &newer)) else {
        panic!("taken");
    };
    assert_eq!(answer[3] & RCODE, 0);
    assert_eq!(
        answer[answer.len() - OPT.len()..],
        [0, 0, 41, 4, 208, 1, 0, 0, 0, 0, 0]
    );
    let named = [&[1, b'x'][..], &OPT].concat();
    for (what, count, records) in [
        ("twice", 2, [OPT, OPT].concat()),
        ("with a name", 1, named),
        ("cut off", 1, OPT[..10].to_vec()),
        ("with data beyond the end", 1, cookie[..20].to_vec()),
        ("one too few", 1, [OPT, OPT].concat()),
    ] {
        assert_eq!(refused(&with_additional(count, &records)), 1, "{what}");
    }
}

#[test]
fn records_beside_edns_are_bounded() {
    let other = [0, 0, 250, 0, 255, 0, 0, 0, 0, 0, 0];
    let records = |count: u8| with_additional(count, &other.repeat(usize::from(count)));
    assert!(Query::read(&records(MAX_ADDITIONAL)).is_ok());
    assert_eq!(refused(&records(MAX_ADDITIONAL + 1)), 1);
}

#[test]
fn a_name_that_is_none_has_a_text() {
    for (labels, text) in [
        (&[][..], "."),
        (&[&b"a.b"[..], b"test"], "a.b.test"),
        (&[&b"\xff\0"[..]], "\u{fffd}\0"),
        (&[&b"10"[..], b"1"], "10.1"),
    ] {
        let bytes = query(labels, 1);
        let (shown, _) = Query::read(&bytes).unwrap().name().unwrap_err();
        assert_eq!(shown, text);
    }
}

proptest! {
    #[test]
    fn nothing_panics_and_every_answer_fits(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        flags in 0_u8..2,
        additional in 0_u8..3,
    ) {
        // Half of them get past the header.
        let header = [0x12, 0x34, flags, 0, 0, 1, 0, 0, 0, 0, 0, additional];
        for bytes in [bytes.clone(), [&header[..], &bytes].concat()] {
            match Query::read(&bytes) {
                Ok(query) => prop_assert!(query.with_code(Rcode::NxDomain).len() <= 512),
                Err(Unanswerable::Refused(answer)) => prop_assert!(answer.len() <= 512),
                Err(Unanswerable::Dropped) => {}
            }
        }
    }
}
