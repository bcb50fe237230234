use std::sync::Mutex;

use super::*;
use crate::egress::denial::Cause;
use crate::net::host::Name;

fn place(host: &str, port: u16) -> Place {
    Place {
        host: host.to_owned(),
        port: Some(port),
    }
}

fn denial(name: &str) -> Denial {
    Denial::of_name(&Name::parse(name).unwrap(), Cause::NotAllowed)
}

fn silent() -> Ledger {
    Ledger::new(|_| {})
}

fn deny_many(ledger: &Ledger, numbers: std::ops::Range<usize>) {
    for number in numbers {
        ledger.deny(&denial(&format!("n{number}.test")));
    }
}

#[test]
fn a_connection_counts_while_it_is_open() {
    let ledger = silent();
    let passage = ledger.pass(place("a.test", 1));
    passage.flow().sent.store(7, Ordering::Relaxed);
    passage.flow().received.store(8, Ordering::Relaxed);
    let open = ledger.total();
    drop(passage);
    assert_eq!(open, ledger.total());
    let destination = &open.destinations[0];
    assert_eq!((destination.sent_bytes, destination.received_bytes), (7, 8));
    assert_eq!((open.allowed, destination.allowed), (1, 1));
}

#[test]
fn destinations_come_in_their_order_and_are_told_apart_by_port() {
    let ledger = silent();
    for (host, port) in [("b.test", 2), ("a.test", 1), ("b.test", 1), ("b.test", 2)] {
        drop(ledger.pass(place(host, port)));
    }
    let total = ledger.total();
    let seen: Vec<_> = total
        .destinations
        .iter()
        .map(|destination| {
            (
                destination.host.as_str(),
                destination.port,
                destination.allowed,
            )
        })
        .collect();
    let expected = [
        ("b.test", Some(2), 2),
        ("a.test", Some(1), 1),
        ("b.test", Some(1), 1),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn beyond_the_bound_destinations_are_only_counted() {
    const MAX: usize = facts::Egress::MAX_DESTINATIONS;
    let ledger = silent();
    deny_many(&ledger, 0..MAX);
    assert_eq!(ledger.total().more_destinations, 0);
    deny_many(&ledger, MAX..MAX + 1);
    deny_many(&ledger, MAX..MAX + 1);
    let total = ledger.total();
    assert_eq!(
        (total.destinations.len(), total.more_destinations),
        (MAX, 1)
    );
    assert_eq!(total.denied, MAX as u64 + 2);
    deny_many(&ledger, MAX..MAX + MAX_OTHERS);
    assert_eq!(ledger.total().more_destinations, MAX_OTHERS as u64);
    deny_many(&ledger, MAX + MAX_OTHERS..MAX + MAX_OTHERS + 1);
    assert_eq!(ledger.total().more_destinations, MAX_OTHERS as u64);
}

#[test]
fn a_flood_of_refusals_hides_nothing_that_was_let_through() {
    const MAX: usize = facts::Egress::MAX_DESTINATIONS;
    let ledger = silent();
    deny_many(&ledger, 0..MAX + 10);
    drop(ledger.pass(place("a.test", 1)));
    let total = ledger.total();
    assert_eq!(
        (total.destinations.len(), total.more_destinations),
        (MAX, 11)
    );
    // In the place of the last one.
    assert_eq!(total.destinations[MAX - 1].host, "a.test");
    assert_eq!(
        total.destinations[MAX - 2].host,
        format!("n{}.test", MAX - 2)
    );
    for number in 0..MAX {
        drop(ledger.pass(place("b.test", number as u16)));
    }
    let total = ledger.total();
    assert!(total.destinations.iter().all(|row| row.allowed == 1));
    // All refusals, and the last that was let through.
    assert_eq!(total.more_destinations, MAX as u64 + 11);
}

#[test]
fn overlapping_counts_are_exact_when_names_are_lost() {
    let ledger = silent();
    let mark = ledger.mark();
    let open = ledger.pass(place("open.test", 1));
    ledger.deny(&denial("first.test"));
    deny_many(&ledger, 0..MAX_RECENT - 1);
    let since = ledger.since(&mark).unwrap();
    assert_eq!(since.hosts[..2], ["open.test:1", "first.test"]);
    // One more, and the first is forgotten.
    deny_many(&ledger, MAX_RECENT - 1..MAX_RECENT);
    let since = ledger.since(&mark).unwrap();
    assert_eq!(since.hosts[..2], ["open.test:1", "n0.test"]);
    assert_eq!(since.hosts.len(), facts::EgressOverlapping::MAX_HOSTS);
    assert_eq!((since.allowed, since.denied), (1, MAX_RECENT as u64 + 1));
    let later = ledger.mark();
    let since = ledger.since(&later).unwrap();
    assert_eq!((since.allowed, since.denied, since.hosts.len()), (1, 0, 1));
    drop(open);
    assert_eq!(ledger.since(&ledger.mark()), None);
    // It was still open at that moment.
    assert_eq!(ledger.since(&later).unwrap().hosts, ["open.test:1"]);
}

#[test]
fn the_same_again_is_remembered_once() {
    let ledger = silent();
    ledger.deny(&denial("first.test"));
    let mark = ledger.mark();
    for _ in 0..2 * MAX_RECENT {
        ledger.deny(&denial("again.test"));
    }
    let since = ledger.since(&mark).unwrap();
    assert_eq!(since.hosts, ["again.test"]);
    assert_eq!(ledger.account().recent.len(), 2);
}

#[test]
fn each_refusal_is_told_once_and_not_without_end() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let ledger = Ledger::new(move |denial| heard.lock().unwrap().push(denial.to_string()));
    for _ in 0..2 {
        deny_many(&ledger, 0..MAX_TOLD + 1);
    }
    let told = told.lock().unwrap();
    assert_eq!(told.len(), MAX_TOLD);
    assert!(told[MAX_TOLD - 1].starts_with(&format!("egress denied: n{}.test", MAX_TOLD - 1)));
}
