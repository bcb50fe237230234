//! The programs as they are, run by an interpreter; and the filters as the
//! kernel runs them, on threads of this process.

mod interpreter;
mod kernel;
mod numbers;
mod predicate;
mod table;

use std::io::{self, Write as _};

use super::{Arch, Filters, Metadata, Network, Plan, filters_for};

/// Every plan there is.
fn plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for network in [Network::Denied, Network::PortOnly, Network::Namespace] {
        for unix_sockets in [false, true] {
            for metadata in [Metadata::Denied, Metadata::Allowed] {
                plans.push(Plan {
                    network,
                    unix_sockets,
                    metadata,
                });
            }
        }
    }
    plans
}

/// The narrowest plan.
const NARROW: Plan = Plan {
    network: Network::Denied,
    unix_sockets: false,
    metadata: Metadata::Denied,
};

const ARCHES: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

fn built(plan: &Plan, arch: Arch) -> Filters {
    filters_for(plan, arch).unwrap()
}

/// Says what the machine lacks, past the capture of test output.
fn skipped(why: &str) {
    let line = format!("SKIPPED: {why}\n");
    io::stderr().write_all(line.as_bytes()).unwrap();
}
