use super::*;
use crate::confine::order::Order;
use crate::confine::profile::Profile;
use crate::confine::seccomp::Metadata;
use crate::wire::digest::Digest;
use crate::wire::facts::Limits;

fn order(network: Wanted) -> Order {
    Order {
        socket: "/door".to_owned(),
        canary_port: None,
        namespace: true,
        profile: Profile {
            program: "/bin/true".to_owned(),
            ..Profile::default()
        },
        network,
        metadata: Metadata::Denied,
        limits: Limits::default(),
    }
}

fn hosts() -> Wanted {
    Wanted::Hosts {
        ports: vec![80],
        proxy_port: 3128,
        name_servers: Vec::new(),
    }
}

fn report(network: NetworkMode) -> Report {
    Report {
        landlock: Enforced {
            abi: 7,
            ..Enforced::default()
        },
        seccomp: Some(Seccomp {
            digest: Digest::of(b""),
            filters: 3,
            instructions: 600,
        }),
        network,
        namespaces: process::NAMESPACES
            .iter()
            .map(|kind| ((*kind).to_owned(), 1))
            .collect(),
        no_capabilities: true,
        no_new_privs: true,
        gaps: Vec::new(),
        self_tests: Vec::new(),
    }
}

fn claim(result: Result<(), StartError>) -> &'static str {
    match result {
        Ok(()) => "holds",
        Err(Contradicted(claim)) => claim,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn less_than_was_ordered_is_no_start() {
    let check = |report: &Report, order: &Order, sockets| claim(report.check_order(order, sockets));
    let (denied, hosts) = (order(Wanted::Denied), order(hosts()));
    let netns = report(NetworkMode::DeniedNetns);
    assert_eq!(check(&netns, &denied, false), "holds");
    assert_eq!(check(&report(NetworkMode::HostPort), &hosts, true), "holds");
    let other = "the network is as it was ordered";
    for mode in [
        NetworkMode::DeniedSeccomp,
        NetworkMode::HostPort,
        NetworkMode::PortOnly,
        NetworkMode::Unrestricted,
    ] {
        assert_eq!(check(&report(mode), &denied, false), other);
    }
    for mode in [NetworkMode::DeniedNetns, NetworkMode::PortOnly] {
        assert_eq!(check(&report(mode), &hosts, true), other);
    }
    let unanswered = check(&report(NetworkMode::HostPort), &hosts, false);
    assert_eq!(unanswered, "its sockets are answered");
    let edited = |edit: fn(&mut Report)| {
        let mut report = netns.clone();
        edit(&mut report);
        check(&report, &denied, false)
    };
    let rows: [(fn(&mut Report), _); 5] = [
        (|r| r.namespaces.clear(), "it is in namespaces"),
        (|r| r.seccomp = None, "system calls are filtered"),
        (|r| r.landlock.abi = 0, "files are fenced"),
        (|r| r.no_capabilities = false, "it has no capabilities"),
        (|r| r.no_new_privs = false, "it can gain no privileges"),
    ];
    for (edit, claim) in rows {
        assert_eq!(edited(edit), claim);
    }
}

#[test]
fn what_is_borne_is_less_than_what_is_ordered() {
    let mut order = order(hosts());
    order.profile.best_effort = true;
    order.namespace = false;
    for mode in [NetworkMode::PortOnly, NetworkMode::Unrestricted] {
        let mut report = report(mode);
        report.namespaces.clear();
        report.seccomp = None;
        report.landlock.abi = 0;
        assert_eq!(claim(report.check_order(&order, false)), "holds");
    }
}

#[test]
fn more_than_the_kernel_says_is_no_start() {
    let held = Status {
        threads: 1,
        seccomp: 2,
        filters: Some(3),
        no_new_privs: true,
        capabilities: 0,
        bounding: 0,
    };
    let report = report(NetworkMode::DeniedNetns);
    let check = |status: Status| claim(report.check_status(&status));
    assert_eq!(check(held), "holds");
    let unknown = Status {
        filters: None,
        ..held
    };
    assert_eq!(check(unknown), "holds");
    for (status, claim) in [
        (Status { threads: 2, ..held }, "it has one thread"),
        (Status { seccomp: 0, ..held }, "system calls are filtered"),
        (Status { seccomp: 1, ..held }, "system calls are filtered"),
        (
            Status {
                filters: Some(2),
                ..held
            },
            "system calls are filtered",
        ),
        (
            Status {
                no_new_privs: false,
                ..held
            },
            "it can gain no privileges",
        ),
        (
            Status {
                capabilities: 1,
                ..held
            },
            "it has no capabilities",
        ),
        (
            Status {
                bounding: 1,
                ..held
            },
            "it has no capabilities",
        ),
    ] {
        assert_eq!(check(status), claim);
    }
    let mut outside = report.clone();
    outside.namespaces.clear();
    let may_keep = Status {
        bounding: 1,
        ..held
    };
    assert_eq!(claim(outside.check_status(&may_keep)), "holds");
}

#[test]
fn a_process_that_is_not_restricted_is_not_taken_for_one() {
    let own = std::process::id();
    let checked = report(NetworkMode::DeniedNetns).check(&order(Wanted::Denied), own, false);
    assert_eq!(claim(checked), "it has one thread");
    let nobody = report(NetworkMode::DeniedNetns).check(&order(Wanted::Denied), u32::MAX, false);
    assert!(matches!(nobody, Err(StartError::Unseen(_))));
}
