use proptest::prelude::*;
use simple_dns::rdata::{A, AAAA, CNAME};

use super::*;

fn query(kind: Kind) -> Query {
    Query::new(&Name::parse("www.example.com").unwrap(), kind).unwrap()
}

fn record<'a>(owner: &'a str, rdata: RData<'a>) -> ResourceRecord<'a> {
    ResourceRecord::new(DnsName::new(owner).unwrap(), CLASS::IN, 60, rdata)
}

fn a(owner: &str, last: u8) -> ResourceRecord<'_> {
    record(owner, RData::A(A::from(Ipv4Addr::new(192, 0, 2, last))))
}

fn cname<'a>(owner: &'a str, alias: &'a str) -> ResourceRecord<'a> {
    record(owner, RData::CNAME(CNAME(DnsName::new(alias).unwrap())))
}

/// What a name server that holds `records` answers.
fn answer(query: &Query, records: Vec<ResourceRecord<'_>>) -> Vec<u8> {
    let mut packet = Packet::parse(query.bytes()).unwrap().into_reply();
    packet.answers = records;
    packet.build_bytes_vec_compressed().unwrap()
}

fn read(records: Vec<ResourceRecord<'_>>) -> Reply {
    let query = query(Kind::A);
    query.read(&answer(&query, records)).unwrap()
}

fn addresses(last: impl IntoIterator<Item = u8>) -> Reply {
    let address = |last| IpAddr::from([192, 0, 2, last]);
    Reply::Addresses(last.into_iter().map(address).collect())
}

const WWW: &str = "www.example.com";

#[test]
fn a_query_is_what_other_programs_read() {
    for (kind, number) in [(Kind::A, 1), (Kind::Aaaa, 28)] {
        let query = query(kind);
        let packet = Packet::parse(query.bytes()).unwrap();
        assert_eq!(packet.questions.len(), 1);
        let question = &packet.questions[0];
        assert_eq!(question.qname.to_string(), WWW);
        assert_eq!(u16::from(question.qtype), number);
        assert_eq!(u16::from(question.qclass), 1);
        assert!(packet.has_flags(simple_dns::PacketFlag::RECURSION_DESIRED));
        assert_eq!(packet.build_bytes_vec().unwrap(), query.bytes());
    }
    let longest = [&*"a".repeat(63); 4].join(".")[..253].to_owned();
    let query = Query::new(&Name::parse(&longest).unwrap(), Kind::A).unwrap();
    assert_eq!(query.bytes().len(), 12 + 255 + 4);
}

#[test]
fn ids_differ() {
    let ids: std::collections::HashSet<_> = (0..64)
        .map(|_| query(Kind::A).bytes()[..2].to_vec())
        .collect();
    assert!(ids.len() > 32, "{} ids in 64 queries", ids.len());
}

#[test]
fn addresses_are_those_of_the_name_and_its_aliases() {
    assert_eq!(
        read(vec![a(WWW, 1), a(WWW, 2), a(WWW, 1)]),
        addresses([1, 2])
    );
    assert_eq!(read(vec![a("WWW.Example.COM", 1)]), addresses([1]));
    // In any order, and of no other name.
    let chain = vec![
        a("edge.net", 3),
        cname("cdn.net", "edge.net"),
        cname(WWW, "CDN.net"),
    ];
    assert_eq!(read(chain), addresses([3]));
    assert_eq!(read(vec![a("other.example.com", 1)]), addresses([]));
    assert_eq!(
        read(vec![cname(WWW, "cdn.net"), a("other.net", 1)]),
        addresses([])
    );
    assert_eq!(read(vec![]), addresses([]));
}

#[test]
fn only_the_kind_that_was_asked_for_counts() {
    let v6: Ipv6Addr = "2001:db8::1".parse().unwrap();
    let both = || vec![a(WWW, 1), record(WWW, RData::AAAA(AAAA::from(v6)))];
    assert_eq!(read(both()), addresses([1]));
    let query = query(Kind::Aaaa);
    let reply = query.read(&answer(&query, both())).unwrap();
    assert_eq!(reply, Reply::Addresses(vec![v6.into()]));
    let mut chaos = a(WWW, 1);
    chaos.class = CLASS::CH;
    assert_eq!(
        read(vec![chaos, a(WWW, 2).with_cache_flush(true)]),
        addresses([])
    );
}

#[test]
fn alias_chains_end_and_do_not_fork() {
    let names: Vec<String> = (0..=MAX_ALIASES + 1).map(|n| format!("n{n}.net")).collect();
    let chain = |aliases: usize| {
        let mut records = vec![cname(WWW, "n1.net")];
        records.extend((1..aliases).map(|n| cname(&names[n], &names[n + 1])));
        records.push(a(&names[aliases], 1));
        read(records)
    };
    assert_eq!(chain(1), addresses([1]));
    assert_eq!(chain(MAX_ALIASES), addresses([1]));
    let too_many = Reply::Unusable("has too many aliases");
    assert_eq!(chain(MAX_ALIASES + 1), too_many);
    assert_eq!(read(vec![cname(WWW, WWW)]), too_many);
    assert_eq!(
        read(vec![cname(WWW, "a.net"), cname("a.net", WWW)]),
        too_many
    );
    let forked = vec![cname(WWW, "a.net"), cname(WWW, "b.net"), a("a.net", 1)];
    assert!(matches!(read(forked), Reply::Unusable(_)));
    assert!(matches!(
        read(vec![cname(WWW, "a.net"), a(WWW, 1)]),
        Reply::Unusable(_)
    ));
}

#[test]
fn addresses_and_records_are_bounded() {
    let some = |count: u8| (0..count).map(|last| a(WWW, last)).collect::<Vec<_>>();
    assert_eq!(read(some(16)), addresses(0..16));
    assert_eq!(read(some(17)), addresses(0..16));
    let many = |count: usize| vec![a("other.net", 1); count];
    assert_eq!(read(many(MAX_RECORDS)), addresses([]));
    assert_eq!(
        read(many(MAX_RECORDS + 1)),
        Reply::Unusable("has too many records")
    );
    // The header may claim what is not there.
    let query = query(Kind::A);
    let mut bytes = answer(&query, vec![]);
    bytes[6..12].fill(0xff);
    assert!(matches!(query.read(&bytes), Ok(Reply::Unusable(_))));
}

#[test]
fn what_was_not_asked_for_is_no_answer() {
    let query = query(Kind::A);
    let good = answer(&query, vec![a(WWW, 1)]);
    assert!(query.read(&good).is_ok());
    let changed = |at: usize, mask: u8| {
        let mut bytes = good.clone();
        bytes[at] ^= mask;
        query.read(&bytes)
    };
    // The id, the answer bit, the operation, the number of questions, the
    // name (but not its case), the type, the class.
    for (at, mask) in [
        (0, 1),
        (1, 1),
        (2, 0x80),
        (2, 0x08),
        (4, 1),
        (5, 1),
        (5, 3),
        (12, 1),
        (13, 1),
        (27, 1),
        (28, 1),
        (29, 1),
        (30, 2),
        (31, 0x80),
        (32, 2),
    ] {
        assert_eq!(changed(at, mask), Err(Stray), "byte {at}");
    }
    assert_eq!(changed(13, 0x20), Ok(addresses([1])));
    for length in 0..query.bytes().len() {
        assert_eq!(query.read(&good[..length]), Err(Stray), "{length}");
    }
    assert_eq!(query.read(query.bytes()), Err(Stray));
}

#[test]
fn response_codes_and_truncation_are_told_apart() {
    let query = query(Kind::A);
    let coded = |flags: u8, code: u8| {
        let mut bytes = answer(&query, vec![a(WWW, 1)]);
        bytes[2] |= flags;
        bytes[3] |= code;
        query.read(&bytes).unwrap()
    };
    assert_eq!(coded(0, 3), Reply::NotFound);
    for code in [1, 2, 4, 5, 15] {
        assert_eq!(coded(0, code), Reply::Failed(code));
    }
    for code in [0, 2, 3] {
        assert_eq!(coded(0x02, code), Reply::Truncated);
    }
    // Cut short in the middle of a record, as servers may do.
    let mut bytes = answer(&query, vec![a(WWW, 1)]);
    bytes.truncate(bytes.len() - 3);
    assert_eq!(query.read(&bytes), Ok(Reply::Unusable("cannot be read")));
    bytes[2] |= 0x02;
    assert_eq!(query.read(&bytes), Ok(Reply::Truncated));
    assert_eq!(Rcode(2).to_string(), "SERVFAIL");
    assert_eq!(Rcode(9).to_string(), "response code 9");
}

#[test]
fn compression_that_goes_nowhere_or_round_is_refused() {
    let query = query(Kind::A);
    let with_owner = |owner: &[u8]| {
        let mut bytes = answer(&query, vec![]);
        bytes[7] = 1;
        bytes.extend_from_slice(owner);
        bytes.extend_from_slice(&[0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
        query.read(&bytes).unwrap()
    };
    let here = query.bytes().len() as u8;
    assert_eq!(with_owner(&[0xc0, 12]), addresses([1]));
    let unreadable = Reply::Unusable("cannot be read");
    // To itself, to a label before itself that comes back, forwards, far away.
    for owner in [
        &[0xc0, here][..],
        &[1, b'a', 0xc0, here],
        &[0xc0, here + 4],
        &[0xff, 0xff],
        &[0x80, 0],
        &[0x40, 0],
    ] {
        assert_eq!(with_owner(owner), unreadable, "{owner:?}");
    }
    // Many records that all unfold to the longest name cost no more than that.
    let long = [&*"a".repeat(63); 4].join(".")[..253].to_owned();
    assert_eq!(read(vec![a(&long, 1); MAX_RECORDS]), addresses([]));
}

proptest! {
    #[test]
    fn any_bytes_behind_our_question_are_read_without_a_panic(
        counts in proptest::array::uniform6(prop_oneof![Just(0_u8), Just(1), 0..5_u8, any::<u8>()]),
        rest in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..300),
            proptest::collection::vec(prop_oneof![Just(0_u8), Just(0xc0), Just(12), 0..70_u8], 0..300),
        ],
        code: u8,
        aaaa: bool,
    ) {
        let query = query(if aaaa { Kind::Aaaa } else { Kind::A });
        let mut bytes = query.bytes().to_vec();
        bytes[2] |= QR;
        bytes[3] = code & 0xf0;
        bytes[6..12].copy_from_slice(&counts);
        bytes.extend_from_slice(&rest);
        prop_assert!(query.read(&bytes).is_ok());
    }

    #[test]
    fn records_of_every_type_are_read_without_a_panic(
        number in 0..300_u16,
        rdata in proptest::collection::vec(any::<u8>(), 0..80),
        lie in prop_oneof![3 => Just(0_u16), 1 => any::<u16>()],
    ) {
        let query = query(Kind::A);
        let mut bytes = answer(&query, vec![]);
        bytes[7] = 1;
        bytes.extend_from_slice(&[0xc0, 12]);
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(&[0, 1, 0, 0, 0, 60]);
        bytes.extend_from_slice(&(rdata.len() as u16 ^ lie).to_be_bytes());
        bytes.extend_from_slice(&rdata);
        prop_assert!(query.read(&bytes).is_ok());
    }

    #[test]
    fn arbitrary_bytes_are_no_answer(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = query(Kind::A).read(&bytes);
    }

    #[test]
    fn an_answer_with_changed_bytes_is_read_without_a_panic(
        changes in proptest::collection::vec((0..400_usize, any::<u8>()), 1..8),
    ) {
        let query = query(Kind::A);
        let mut bytes = answer(&query, vec![cname(WWW, "cdn.net"), a("cdn.net", 1), a("cdn.net", 2)]);
        for (at, byte) in changes {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        let _ = query.read(&bytes);
    }
}
