use super::*;

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn numbered(number: usize) -> Name {
    name(&format!("h{number}.example"))
}

#[test]
fn a_name_keeps_its_address_and_an_address_its_name() {
    let mut pool = Pool::new(Block::default(), []);
    let a = pool.lend(&name("a.example")).unwrap();
    let b = pool.lend(&name("b.example")).unwrap();
    assert_eq!(a, Ipv4Addr::new(127, 77, 0, 1));
    assert_ne!(a, b);
    assert_eq!(pool.lend(&name("A.example")), Ok(a));
    assert_eq!(pool.name(a), Some(&name("a.example")));
    assert_eq!(pool.name(b), Some(&name("b.example")));
    assert_eq!(pool.name(Ipv4Addr::new(127, 77, 0, 3)), None);
    assert!(pool.owns(Ipv4Addr::new(127, 77, 255, 3)));
    assert!(!pool.owns(Ipv4Addr::new(127, 78, 0, 1)));
}

#[test]
fn literals_are_never_lent() {
    let literal = Ipv4Addr::new(127, 77, 0, 2);
    let mut pool = Pool::new(Block::default(), [literal, Ipv4Addr::new(10, 0, 0, 1)]);
    let lent: Vec<_> = (0..3).map(|n| pool.lend(&numbered(n)).unwrap()).collect();
    assert_eq!(
        lent.iter().map(|ip| ip.octets()[3]).collect::<Vec<_>>(),
        [1, 3, 4]
    );
    assert!(!pool.owns(literal));
}

#[test]
fn beyond_the_cap_no_name_gets_an_address_and_none_loses_its_own() {
    let mut pool = Pool::new(Block::default(), []);
    let lent: BTreeSet<_> = (0..MAX_LENT)
        .map(|number| pool.lend(&numbered(number)).unwrap())
        .collect();
    assert_eq!(lent.len(), MAX_LENT);
    assert_eq!(pool.lend(&numbered(MAX_LENT)), Err(Full { lent: MAX_LENT }));
    assert_eq!(pool.lend(&numbered(0)), Ok(Ipv4Addr::new(127, 77, 0, 1)));
}

#[test]
fn a_small_network_lends_all_but_its_ends() {
    let block = Block::parse("198.18.0.4/30").unwrap();
    let mut pool = Pool::new(block, []);
    let lent: Vec<_> = (0..3).map(|number| pool.lend(&numbered(number))).collect();
    let address = |last| Ok(Ipv4Addr::new(198, 18, 0, last));
    assert_eq!(lent, [address(5), address(6), Err(Full { lent: 2 })]);
    let mut pool = Pool::new(block, [Ipv4Addr::new(198, 18, 0, 6)]);
    assert!(pool.lend(&numbered(0)).is_ok());
    assert_eq!(pool.lend(&numbered(1)), Err(Full { lent: 1 }));
}

#[test]
fn the_last_network_of_the_loopback_ends_in_time() {
    let mut pool = Pool::new(Block::parse("127.255.255.252/30").unwrap(), []);
    assert!(pool.lend(&numbered(0)).is_ok());
    assert!(pool.lend(&numbered(1)).is_ok());
    assert!(pool.lend(&numbered(2)).is_err());
}

#[test]
fn networks_are_read_in_one_spelling_and_where_no_host_is() {
    assert_eq!(Block::parse("127.77.0.0/16"), Ok(Block::default()));
    for text in [
        "127.77.0.0/16",
        "198.18.0.0/16",
        "198.19.0.0/16",
        "127.1.2.0/24",
    ] {
        assert_eq!(Block::parse(text).unwrap().to_string(), text);
    }
    for (text, fault) in [
        ("127.77.0.0", BlockFault::Form),
        ("127.77/16", BlockFault::Form),
        ("127.77.0.0/016", BlockFault::Form),
        ("127.77.0.0/+16", BlockFault::Form),
        ("127.77.0.0/", BlockFault::Form),
        ("127.77.0.0/15", BlockFault::Prefix),
        ("127.77.0.0/31", BlockFault::Prefix),
        ("127.77.0.0/99", BlockFault::Prefix),
        ("127.77.0.1/16", BlockFault::Bits(Block::default())),
        ("127.0.0.0/16", BlockFault::Place),
        ("127.0.5.0/24", BlockFault::Place),
        ("10.0.0.0/16", BlockFault::Place),
        ("198.20.0.0/16", BlockFault::Place),
    ] {
        assert_eq!(Block::parse(text), Err(fault), "{text}");
    }
}
