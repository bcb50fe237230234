//! What a record says of confinement and of the network (SPEC §5.7), by the
//! types that write it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use aegis::wire::decode::Row;
use aegis::wire::digest::Digest;
use aegis::wire::facts::{
    AddressCheck, Confined, Confinement, Destination, Egress, EgressOverlapping, Failed, Landlock,
    Limits, MetadataMode, NetworkMode, PathGrant, Seccomp,
};
use aegis::wire::line::{Close, Open};
use aegis::wire::outcome::Outcome;
use serde_json::{Value, json};

use crate::assemble::{Chain, outcome};

/// What is enforced on a server that may reach one host.
pub(crate) fn confined() -> Confined {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Confined {
        landlock: Landlock {
            abi: 6,
            kernel_abi: None,
            handled: words(&["execute", "read_file", "read_dir", "write_file"]),
            rights: BTreeMap::from([("read".to_owned(), words(&["read_file", "read_dir"]))]),
            net: Vec::new(),
            scopes: words(&["abstract_unix_socket", "signal"]),
            errata: vec![1, 2],
        },
        seccomp: Some(Seccomp {
            digest: Digest::of(b"three programs"),
            filters: 3,
            instructions: 700,
        }),
        network: NetworkMode::HostPort,
        address_check: Some(AddressCheck::Direct),
        metadata: MetadataMode::Denied,
        namespaces: BTreeMap::from([("net".to_owned(), 4_026_532_001)]),
        no_capabilities: true,
        no_new_privs: true,
        grants: vec![PathGrant {
            path: "/srv/notes".to_owned(),
            access: "read".to_owned(),
            origin: "user".to_owned(),
            object: Some("2049:17".to_owned()),
        }],
        hosts: words(&["api.example.com:443"]),
        variables: Vec::new(),
        holes: Vec::new(),
        gaps: Vec::new(),
        best_effort: false,
        skipped: Vec::new(),
        self_tests: words(&["outside_read", "raw_socket"]),
        limits: Limits::default(),
    }
}

/// The same with every member that may be absent.
fn with_everything() -> Confined {
    let some = || vec!["x".to_owned()];
    Confined {
        variables: some(),
        holes: some(),
        gaps: some(),
        skipped: some(),
        limits: Limits {
            processes: Some(64),
            memory_bytes: Some(1 << 30),
            files: Some(256),
        },
        landlock: Landlock {
            kernel_abi: Some(11),
            ..confined().landlock
        },
        ..confined()
    }
}

/// And with none of them.
fn with_the_least() -> Confined {
    Confined {
        seccomp: None,
        address_check: None,
        namespaces: BTreeMap::new(),
        hosts: Vec::new(),
        ..confined()
    }
}

fn members(confinement: Confinement) -> BTreeSet<String> {
    let value = serde_json::to_value(confinement).expect("an object");
    let mut members: BTreeSet<_> = value
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect();
    assert!(members.remove("status"));
    members
}

/// SPEC [CONFINE-1].
#[test]
fn the_members_of_confinement_are_those_of_the_table() {
    let spec = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/SPEC.md"));
    let spec = spec.expect("SPEC.md is readable");
    let (_, section) = spec.split_once("### 5.7 ").expect("the section");
    let (_, table) = section
        .split_once("| Member | Type | |\n")
        .expect("the table");
    let (table, _) = table.split_once("\n\n").expect("its end");
    let (mut all, mut always) = (BTreeSet::new(), BTreeSet::new());
    for row in table.lines().skip(1) {
        let cells: Vec<_> = row.split(" | ").collect();
        let name = cells[0].trim_matches(['|', ' ', '`']).to_owned();
        if !cells[1].contains("optional") {
            always.insert(name.clone());
        }
        all.insert(name);
    }
    let full = |confined| Confinement::Full(Box::new(confined));
    let partial = |confined| Confinement::Partial(Box::new(confined));
    for status in [full, partial] {
        assert_eq!(members(status(with_everything())), all);
        assert_eq!(members(status(with_the_least())), always);
    }
    assert_eq!(members(Confinement::None), BTreeSet::new());
    let cause = "this kernel offers no Landlock".to_owned();
    let failed = members(Confinement::Failed(Failed { cause }));
    assert_eq!(failed, BTreeSet::from(["cause".to_owned()]));
}

/// SPEC [CONFINE-2]: what is written is read back, and what a newer emitter
/// adds is passed over.
#[test]
fn confinement_is_read_back() {
    for confinement in [
        Confinement::None,
        Confinement::Full(Box::new(confined())),
        Confinement::Full(Box::new(with_everything())),
        Confinement::Partial(Box::new(with_the_least())),
        Confinement::Failed(Failed {
            cause: "no child".to_owned(),
        }),
    ] {
        let mut said = json!({ "confinement": confinement });
        let members = said["confinement"].as_object_mut().expect("an object");
        members.insert("cgroup".to_owned(), json!({"memory": 1}));
        let mut chain = Chain::new();
        chain.open_saying(said);
        let row = Row::read(&chain.rows[0]).expect("a Line");
        let open: Open = row.typed().expect("an open Line");
        assert_eq!(open.facts.confinement, Some(confinement));
    }
}

/// SPEC [EGRESS-1] [EGRESS-2].
#[test]
fn network_events_are_read_back() {
    assert_eq!(EgressOverlapping::MAX_HOSTS, 16);
    assert_eq!(Egress::MAX_DESTINATIONS, 64);
    let overlapping = EgressOverlapping {
        allowed: 1,
        denied: 2,
        hosts: vec![
            "api.example.com:443".to_owned(),
            "tracker.example".to_owned(),
        ],
    };
    let destination = |port: Option<u16>, reason: Option<&str>| Destination {
        host: "api.example.com".to_owned(),
        port,
        allowed: 3,
        denied: 0,
        sent_bytes: 1 << 40,
        received_bytes: 0,
        reason: reason.map(str::to_owned),
    };
    let egress = Egress {
        allowed: 3,
        denied: 0,
        destinations: vec![
            destination(Some(443), None),
            destination(None, Some("not allowed")),
        ],
        more_destinations: 0,
    };
    let mut said = outcome("a", "fetch", b"{}", "a set");
    said.egress_overlapping = Some(overlapping.clone());
    let mut chain = Chain::opened();
    chain.signed(&said).signed(&Close {
        egress: Some(egress.clone()),
        ..Close::default()
    });
    let row = Row::read(&chain.rows[1]).expect("a Line");
    let read: Outcome = row.typed().expect("an outcome");
    assert_eq!(read.egress_overlapping, Some(overlapping));
    let row = Row::read(&chain.rows[2]).expect("a Line");
    let read: Close = row.typed().expect("a close Line");
    assert_eq!(read.egress, Some(egress.clone()));

    let value = serde_json::to_value(&egress).expect("an object");
    assert_eq!(value.get("more_destinations"), None);
    assert_eq!(value["destinations"][1].get("port"), None);
    let more = Egress {
        more_destinations: 1,
        ..egress
    };
    let value: Value = serde_json::to_value(&more).expect("an object");
    assert_eq!(value["more_destinations"], 1);
}
