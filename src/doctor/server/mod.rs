//! The user's own server: plain, under `aegis wrap`, and confined.
//!
//! It is run as a client would run it, and only asked what has no effect: no
//! tool is called.
//!
//! * [`process`]: a process with pipes, of which nothing is left;
//!   [`session`]: what is asked of it; [`run`]: in which ways it is started.
//! * [`compare`]: whether answers are the same; [`judge`]: what runs come to.
//! * [`trace`]: what it touched; [`propose`]: flags that follow from that;
//!   [`seek`]: those that are needed, by trying.
//! * [`report`]: what is said of it.

mod compare;
mod flags;
mod judge;
mod process;
mod propose;
mod report;
mod run;
mod seek;
mod session;
mod trace;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::finding::{Cure, Finding, Id, Status};
use super::paths::Paths;
use super::verdict::{Network, Verdict};
use crate::confine::assets::{Assets, Lost, What};
use crate::confine::machine::ThisMachine;
use crate::confine::private;
use crate::confine::start::own_executable;
use crate::stations::sandbox::Asked;
use judge::Pair;
use propose::Clues;
use report::text;
use run::{Runs, Tracing, Way};
use seek::{Found, Seeker};
use session::Talk;

pub(crate) use judge::millis;
pub(crate) use report::{Confinement, Ended, Run, Server};

/// What is to be tried.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) command: Vec<OsString>,
    /// Flags to try; without, some are sought.
    pub(crate) flags: Option<Asked>,
    /// How long it may take to start.
    pub(crate) start_wait: Duration,
}

/// Tries a server in all ways.
///
/// # Errors
/// One line: why nothing could be tried.
pub(crate) fn examine(trial: &Trial, paths: &Paths, verdict: &Verdict) -> Result<Server, String> {
    let runs = Runs::prepare(trial.command.clone(), trial.start_wait)?;
    let machine = ThisMachine::look().map_err(|error| error.to_string())?;
    let mut server = Server {
        command: trial.command.iter().map(text).collect(),
        means: Vec::new(),
        runs: Vec::new(),
        findings: Vec::new(),
        confinement: None,
        proposal: None,
    };
    let plain = runs.measured(Way::Plain);
    if !plain.works() {
        let skipped = Talk::new();
        let pair = Pair {
            way: "plain",
            talk: &plain,
            signalled: &skipped,
        };
        server.add(&pair);
        server.findings.extend(judge::plain(&pair));
        return Ok(server);
    }
    let again = runs.again();
    let signalled = runs.signalled(Way::Plain);
    let pair = Pair {
        way: "plain",
        talk: &plain,
        signalled: &signalled,
    };
    server.add(&pair);
    server.findings.extend(judge::plain(&pair));
    let wrap = server.compare(&runs, &pair, &again, "wrap", Way::Wrap);
    server.findings.extend(judge::latency(&plain, &wrap));
    if verdict.confine == super::verdict::Extent::Refused {
        server.findings.push(not_enforced());
        return Ok(server);
    }
    let watched = runs.watched(Way::Plain);
    let clues = Clues {
        machine: &machine,
        command: &trial.command,
        plain: watched.seen.as_ref(),
    };
    let executable = own_executable().map_err(|error| error.to_string())?;
    let assets = assets(&machine, paths, &executable).map_err(|error| error.to_string())?;
    let hears = verdict.network == Network::HostPort;
    let seeker = Seeker::new(&runs, clues, (&plain, &again), &assets, hears);
    server.means = means(&runs.tracing, hears);
    let given = trial.flags.as_ref().map(|flags| seeker.given(flags));
    let sought = match &given {
        Some(given) if given.works => None,
        _ => Some(seek(&seeker, trial)),
    };
    if let Some(found) = given.as_ref().or(sought.as_ref()) {
        server.compare(&runs, &pair, &again, "confined", Way::Confine(&found.flags));
    }
    server.conclude(trial, paths, given, sought);
    Ok(server)
}

/// What it works with, from the flags that were given on.
fn seek(seeker: &Seeker<'_>, trial: &Trial) -> Found {
    let guess = seeker.clues.preset();
    let bare = match &trial.flags {
        Some(flags) if flags.preset.is_some() || flags.exec_support => flags.clone(),
        Some(flags) => Asked {
            preset: guess.preset,
            exec_support: guess.exec_support,
            ..flags.clone()
        },
        None => guess,
    };
    // An installer has a cache of its own to fill first.
    if !installs(&bare) {
        seeker.hurry();
    }
    seeker.seek(&bare)
}

impl Server {
    fn add(&mut self, pair: &Pair<'_>) {
        self.runs.push(Run::of(pair));
    }

    /// Runs it in another way.
    fn compare(
        &mut self,
        runs: &Runs,
        plain: &Pair<'_>,
        again: &Talk,
        way: &'static str,
        how: Way<'_>,
    ) -> Talk {
        let talk = runs.measured(how);
        let signalled = match talk.works() {
            true => runs.signalled(how),
            false => Talk::new(),
        };
        let pair = Pair {
            way,
            talk: &talk,
            signalled: &signalled,
        };
        self.add(&pair);
        self.findings.extend(judge::against(plain, again, &pair));
        talk
    }

    /// What comes of the flags that were given, or else of those found.
    fn conclude(
        &mut self,
        trial: &Trial,
        paths: &Paths,
        given: Option<Found>,
        sought: Option<Found>,
    ) {
        let of = |found: &Found, is_proposed| Confinement::of(trial, paths, found, is_proposed);
        match (&given, &sought) {
            (Some(given), sought) => {
                let confinement = of(given, false);
                self.findings.extend(verdicts(&confinement, given));
                self.confinement = Some(confinement);
                let better = sought.as_ref().filter(|sought| sought.works);
                self.proposal = better.map(|found| of(found, true));
            }
            (None, Some(sought)) => {
                let confinement = of(sought, true);
                self.findings.extend(verdicts(&confinement, sought));
                self.confinement = Some(confinement);
            }
            (None, None) => {}
        }
    }
}

/// What the flags come to.
fn verdicts(confinement: &Confinement, found: &Found) -> Vec<Finding> {
    let whose = match confinement.proposed {
        true => "the proposed flags",
        false => "the given flags",
    };
    let mut findings = Vec::new();
    let tools = found.last.talk.tool_count;
    findings.push(match found.works {
        true => Finding::ok(
            Id::Confinement,
            format!(
                "works with {whose}: handshake, {tools} {}",
                if tools == 1 { "tool" } else { "tools" }
            ),
            "no tool was called: what only a tool reads, writes or connects to is not known",
        ),
        false => Finding::new(
            Id::Confinement,
            Status::Fails,
            format!(
                "does not work with {whose}: {}; {}",
                judge::why_not(&found.last.talk),
                judge::last_words(&found.last.talk)
            ),
            "confined like this it is of no use",
        )
        .cured(Cure::say(match confinement.proposed {
            true => "see what was refused, and try further flags by giving them to doctor",
            false => "see what was refused, and what is proposed, if anything",
        })),
    });
    for why in &confinement.out_of_reach {
        findings.push(
            Finding::new(
                Id::OutOfReach,
                // Flags that were given keep wrap from starting.
                match confinement.proposed {
                    true => Status::Limited,
                    false => Status::Fails,
                },
                why.clone(),
                "the server is not given it",
            )
            .cured(Cure::say(
                "give the server another path, or keep that elsewhere",
            )),
        );
    }
    findings
}

fn installs(flags: &Asked) -> bool {
    matches!(flags.preset.as_deref(), Some("npx" | "uvx"))
}

fn not_enforced() -> Finding {
    Finding::new(
        Id::Confinement,
        Status::Unknown,
        "was not tried: this machine cannot confine",
        "whether the server works confined is not known",
    )
    .cured(Cure::say("see the machine above"))
}

fn means(tracing: &Tracing, hears_names: bool) -> Vec<String> {
    let mut means = vec![match tracing {
        Tracing::Strace => {
            "strace, which saw what the server touches plain and confined".to_owned()
        }
        Tracing::No(why) => format!(
            "no strace: {why}; paths are those among the arguments, and none beyond is known"
        ),
    }];
    means.push(match hears_names {
        true => "the record, which names the hosts that were refused".to_owned(),
        false => "not the record: this machine cannot carry connections, so hosts are not known"
            .to_owned(),
    });
    means.push("not the kernel's own record of refusals, which needs privilege".to_owned());
    means
}

/// What the user keeps from every server: the paths that were named, and what
/// is kept anyway.
fn assets(machine: &ThisMachine, paths: &Paths, executable: &Path) -> Result<Assets, Lost> {
    let mut assets = Assets::default();
    let named = [
        (What::SigningKey, &paths.signing_key),
        (What::Audit, &paths.audit),
        (What::Policy, &paths.policy),
    ];
    for (what, path) in named {
        if let Some(path) = path {
            assets.add(machine, what, path)?;
        }
    }
    if let Some(cache) = private::cache_root(machine) {
        assets.add(machine, What::Cache, &cache)?;
    }
    assets.add_executable(machine, executable)?;
    assets.add_clients(machine)?;
    Ok(assets)
}
