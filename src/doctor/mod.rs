//! What this machine can enforce, and what would mend it.
//!
//! What the machine says of itself is gathered once, as data; everything after
//! that is pure, so any machine can be pretended.
//!
//! * [`answers`]: what was found out; [`trial`] does what confinement does, in
//!   a thread of its own, and [`probe`] in a process of its own.
//! * [`kernel`], [`namespaces`], [`network`]: findings from these answers.
//! * [`paths`]: the files that a record rests on, and [`way`], the directories
//!   on the way to them.
//! * [`finding`]: a finding, and its cure; [`shell`] spells commands in it.
//! * [`verdict`]: what it comes to.
//! * [`server`]: how the user's own server fares, plain, wrapped and confined.

pub(crate) mod answers;
pub(crate) mod finding;
mod kernel;
mod namespaces;
mod network;
pub(crate) mod paths;
#[cfg(test)]
pub(crate) mod pretend;
pub(crate) mod probe;
pub(crate) mod server;
mod shell;
mod trial;
pub(crate) mod verdict;
mod way;

use answers::Answers;
use finding::{Finding, Status};
use paths::Paths;
use server::Server;
use verdict::Verdict;

/// Everything that was found.
#[derive(Debug)]
pub(crate) struct Report {
    /// Of the machine.
    pub(crate) machine: Vec<Finding>,
    /// Of the paths that were named; empty when none was.
    pub(crate) paths: Vec<Finding>,
    /// What `--confine` could enforce.
    pub(crate) verdict: Verdict,
    /// Of the server, when there was a command.
    pub(crate) server: Option<Server>,
}

/// What a report comes to as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fitness {
    /// Nothing is to be mended.
    Fit,
    /// Something is limited, or could not be found out.
    Limited,
    /// Something is missing or unsafe.
    Unfit,
}

/// Judges a machine, and the files that were named.
pub(crate) fn examine(answers: &Answers, paths: &Paths) -> Report {
    let mut machine = kernel::findings(answers);
    machine.push(namespaces::finding(answers));
    machine.extend(network::findings(answers));
    Report {
        machine,
        paths: paths.findings(),
        verdict: Verdict::of(answers),
        server: None,
    }
}

impl Report {
    /// All of them.
    pub(crate) fn findings(&self) -> impl Iterator<Item = &Finding> {
        let server = self.server.iter().flat_map(|server| &server.findings);
        self.machine.iter().chain(&self.paths).chain(server)
    }

    /// The worst of its findings.
    pub(crate) fn fitness(&self) -> Fitness {
        let any = |statuses: &[Status]| {
            self.findings()
                .any(|found| statuses.contains(&found.status))
        };
        if any(&[Status::Missing, Status::Fails, Status::Unsafe]) {
            Fitness::Unfit
        } else if any(&[Status::Limited, Status::Unknown]) {
            Fitness::Limited
        } else {
            Fitness::Fit
        }
    }
}

#[cfg(test)]
mod tests;
