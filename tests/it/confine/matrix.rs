//! The attack matrix: what a server tries against everything that is not its
//! own, as the child of `aegis wrap`, without confinement and with it.
//!
//! The probes are C programs in `tests/probes/` that need no other file, so
//! that each gets nothing but itself. Whatever a probe says of itself, a run
//! is judged by what became of the outside as well: a guarantee stands when
//! nothing there changed.

mod network;
mod paths;
mod peers;
mod processes;
mod row;
mod run;
mod scene;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use row::{Class, Row};
use run::{Mode, Ran};
use scene::Scene;

use super::seccomp::{User, probes, users};
use crate::exe::skip;

/// SPEC [SANDBOX-4].
#[test]
fn files_outside_are_out_of_reach() {
    judge(Mode::Denied, &paths::rows());
}

#[test]
fn files_beside_the_systems_own_are_out_of_reach() {
    judge(Mode::Denied, &paths::beside_the_system());
}

#[test]
fn modes_owners_times_and_attributes() {
    judge(Mode::Denied, &paths::metadata());
}

#[test]
fn other_processes_are_out_of_reach() {
    judge(Mode::Denied, &processes::rows());
}

#[test]
fn other_processes_are_out_of_reach_beside_an_allowed_port() {
    judge(Mode::OnePort, &processes::rows());
}

#[test]
fn parts_of_the_kernel_are_out_of_reach() {
    judge(Mode::Denied, &processes::calls());
}

#[test]
fn what_a_server_uses_up_is_limited() {
    judge(Mode::Denied, &processes::limits());
}

/// SPEC [SANDBOX-9].
#[test]
fn the_network_is_out_of_reach() {
    judge(Mode::Denied, &network::rows(Mode::Denied));
}

/// SPEC [SANDBOX-10].
#[test]
fn one_port_is_within_reach_and_no_other() {
    judge(Mode::OnePort, &network::rows(Mode::OnePort));
}

/// SPEC [SANDBOX-9].
#[test]
fn the_network_is_out_of_reach_without_namespaces() {
    judge(Mode::NoNamespaces, &network::rows(Mode::NoNamespaces));
}

#[test]
fn one_port_of_every_host_is_within_reach_where_that_is_borne() {
    judge(Mode::PortOnly, &network::rows(Mode::PortOnly));
}

#[test]
fn every_probe_and_every_attempt_has_a_row() {
    let tried: BTreeSet<String> = all().iter().map(Row::attempt).collect();
    let mut missing = Vec::new();
    for folder in ["", "outside"] {
        for entry in fs::read_dir(probes().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "c") {
                continue;
            }
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let file = Path::new(folder).join(stem).to_str().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            missing.extend(attempts(&file, &text).filter(|attempt| !tried.contains(attempt)));
        }
    }
    missing.retain(|attempt| !NOT_TRIED.contains(&attempt.as_str()));
    assert_eq!(missing, Vec::<String>::new());
}

/// By the table at the end of a program that has one.
fn attempts(file: &str, text: &str) -> impl Iterator<Item = String> {
    let table = text.split_once("\nATTEMPTS(").map(|(_, table)| table);
    let names = table
        .into_iter()
        .flat_map(|table| table.split("{\"").skip(1));
    let named: Vec<String> = names
        .map(|entry| format!("{file} {}", entry.split('"').next().unwrap()))
        .collect();
    let whole = named.is_empty().then(|| file.to_owned());
    named.into_iter().chain(whole)
}

#[test]
fn every_open_item_is_in_the_threat_model() {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/THREAT_MODEL.md"));
    let text = text.unwrap();
    let open = all().into_iter().filter_map(|row| match row.class {
        Class::Open(item) => Some(item),
        Class::Guaranteed => None,
    });
    let missing = open.filter(|item| !text.contains(&format!("`{item}`")));
    assert_eq!(missing.collect::<BTreeSet<_>>(), BTreeSet::new());
}

fn all() -> Vec<Row> {
    let mut rows = [paths::rows(), paths::metadata(), paths::beside_the_system()].concat();
    rows.extend([processes::rows(), processes::calls(), processes::limits()].concat());
    for mode in [
        Mode::Denied,
        Mode::OnePort,
        Mode::NoNamespaces,
        Mode::PortOnly,
    ] {
        rows.extend(network::rows(mode));
    }
    rows
}

/// Makes every attempt twice as every user, without confinement and with it,
/// and tells of all that went otherwise than its row says.
fn judge(mode: Mode, rows: &[Row]) {
    let mut faults = Vec::new();
    for user in users() {
        let Some(scene) = prepare(user, rows) else {
            return;
        };
        if let Err(why) = mode.is_possible(&scene) {
            skip(&why);
            continue;
        }
        for row in rows.iter().filter(|row| row.is_for(user)) {
            let control = run::unconfined(&scene, mode, row);
            faults.extend(control_fault(row, user, &control));
            let confined = run::confined(&scene, mode, row);
            faults.extend(confined_fault(row, user, &confined));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Whether the probe cannot do what it is to be kept from.
fn control_fault(row: &Row, user: User, ran: &Ran) -> Option<String> {
    let excuse = row.excuse(user);
    let fault = if ran.said == "open" {
        (row.touches && ran.touched.is_empty()).then_some("and nothing came of it")?
    } else if excuse.0.contains(&ran.said.as_str()) {
        eprintln!(
            "CONTROL: {} as {user:?}: {}: {}",
            row.probe, ran.said, excuse.1
        );
        return None;
    } else {
        "which is no control"
    };
    Some(format!(
        "{} as {user:?}, not confined, {fault}: {ran}",
        row.probe
    ))
}

fn confined_fault(row: &Row, user: User, ran: &Ran) -> Option<String> {
    let fault = match row.class {
        _ if !row.confined.contains(&ran.said.as_str()) => {
            format!("is to say {}", row.confined.join(" or "))
        }
        Class::Guaranteed if !ran.touched.is_empty() => "reached the outside".to_owned(),
        Class::Open(item) if row.touches && ran.touched.is_empty() => {
            format!("is not open any more, so strike `{item}`")
        }
        _ => ran.record_fault.clone()?,
    };
    Some(format!(
        "{} as {user:?}, confined, {fault}: {ran}",
        row.probe
    ))
}

/// Builds what the rows need.
fn prepare(user: User, rows: &[Row]) -> Option<Scene> {
    if Command::new("cc").arg("--version").output().is_err() {
        skip("there is no cc to build the probes with");
        return None;
    }
    let needed = rows.iter().map(Row::file);
    let needed: BTreeSet<String> = needed.chain(EVERYWHERE.map(String::from)).collect();
    Some(Scene::prepare(user, &needed))
}

/// What is there for the others.
const NOT_TRIED: [&str; 5] = [
    "outside/bystander",
    "outside/pty",
    "outside/say",
    "outside/memory say",
    "outside/memory who",
];

/// What a scene is made of.
const EVERYWHERE: [&str; 4] = [
    "outside/bystander",
    "outside/memory",
    "outside/pty",
    "outside/say",
];
