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

mod compare;
mod flags;
mod judge;
mod process;
mod propose;
mod run;
mod seek;
mod session;
mod trace;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::finding::{Cure, Finding, Id, Status};
use super::paths::Paths;
use super::verdict::{Network, Verdict};
use crate::confine::assets::{Assets, What};
use crate::confine::machine::ThisMachine;
use crate::confine::private;
use crate::stations::sandbox::Asked;
use judge::Pair;
use propose::Clues;
use run::{Runs, Tracing, Way};
use seek::{Found, Seeker};
use session::{Step, Talk};

pub(crate) use judge::millis;

/// What is to be tried.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) command: Vec<OsString>,
    /// Flags to try; without, some are sought.
    pub(crate) flags: Option<Asked>,
    /// How long it may take to start.
    pub(crate) start_wait: Duration,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub(crate) struct Server {
    pub(crate) command: Vec<String>,
    /// How refusals were found, and what was not used.
    pub(crate) means: Vec<String>,
    pub(crate) runs: Vec<Run>,
    pub(crate) findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) confinement: Option<Confinement>,
    /// What it works with, where it does not with the flags that were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) proposal: Option<Confinement>,
}

/// The figures of one way of starting it.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    /// `plain`, `wrap` or `confined`.
    pub(crate) way: &'static str,
    /// Name and version, as it has them.
    pub(crate) server: Option<String>,
    /// In microseconds from the start of the process.
    pub(crate) handshake_us: Option<u64>,
    pub(crate) tools: Option<usize>,
    /// The median.
    pub(crate) ping_us: Option<u64>,
    pub(crate) large_frame: &'static str,
    pub(crate) cancellation: &'static str,
    pub(crate) end_of_input: Option<Ended>,
    pub(crate) sigterm: Option<Ended>,
}

/// How it ended.
#[derive(Debug, Serialize)]
pub(crate) struct Ended {
    /// In microseconds; absent when it did not by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) us: Option<u64>,
    pub(crate) exit: i32,
    /// Names of processes that were left, and ended by the doctor.
    pub(crate) left: Vec<String>,
}

/// What a server needs to run confined.
#[derive(Debug, Serialize)]
pub(crate) struct Confinement {
    /// Whether these are the flags that were given, or proposed ones.
    pub(crate) proposed: bool,
    pub(crate) works: bool,
    /// `--confine` and what goes with it.
    pub(crate) flags: Vec<String>,
    /// To be typed.
    pub(crate) line: String,
    /// For the configuration of a client.
    pub(crate) client: ClientConfig,
    /// Paths that were refused and are not otherwise.
    pub(crate) paths: Vec<RefusedPath>,
    /// Hosts that were refused, with the port where it is known.
    pub(crate) hosts: Vec<String>,
    /// Unix sockets that it connects to otherwise.
    pub(crate) unix_sockets: Vec<String>,
    /// What it asked for and can never get, with the reason.
    pub(crate) out_of_reach: Vec<String>,
    /// What these flags do not tell.
    pub(crate) notes: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ClientConfig {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct RefusedPath {
    pub(crate) path: String,
    /// `read`, `write` or `execute`.
    pub(crate) act: &'static str,
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
    let assets = assets(&machine, paths).map_err(|error| error.to_string())?;
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
    let mut start = match &trial.flags {
        Some(flags) if flags.preset.is_some() || flags.exec_support => flags.clone(),
        Some(flags) => Asked {
            preset: guess.preset,
            exec_support: guess.exec_support,
            ..flags.clone()
        },
        None => guess,
    };
    seeker.clues.add_arguments(&mut start);
    // An installer has a cache of its own to fill first.
    if !installs(&start) {
        seeker.hurry();
    }
    seeker.seek(start)
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

impl Confinement {
    fn of(trial: &Trial, paths: &Paths, found: &Found, is_proposed: bool) -> Self {
        let (command, args) = wrap_line(&trial.command, paths, &found.flags);
        let mut line = vec![OsString::from("aegis")];
        line.extend(args.iter().cloned());
        Self {
            proposed: is_proposed,
            works: found.works,
            flags: flags::arguments(&found.flags).iter().map(text).collect(),
            line: flags::line(&line),
            client: ClientConfig {
                command,
                args: args.iter().map(text).collect(),
            },
            paths: found
                .denied
                .iter()
                .take(MAX_TOLD)
                .map(|denied| RefusedPath {
                    path: denied.path.to_string_lossy().into_owned(),
                    act: denied.act,
                })
                .collect(),
            hosts: found
                .last
                .record
                .refused
                .iter()
                .take(MAX_TOLD)
                .map(|(host, port)| match port {
                    Some(port) => format!("{host}:{port}"),
                    None => host.clone(),
                })
                .collect(),
            unix_sockets: match found.flags.unix_sockets {
                true => Vec::new(),
                false => found.sockets.iter().take(MAX_TOLD).cloned().collect(),
            },
            out_of_reach: found.kept.clone(),
            notes: notes(trial, found),
        }
    }
}

impl Run {
    fn of(pair: &Pair<'_>) -> Self {
        let talk = pair.talk;
        let us = |wall: Duration| u64::try_from(wall.as_micros()).ok();
        let ended = |talk: &Talk| {
            talk.ending.as_ref().map(|ending| Ended {
                us: us(ending.wall).filter(|_| ending.ended),
                exit: ending.code,
                left: ending.left.clone(),
            })
        };
        let lists_tools = matches!(talk.tools, Step::Answered(_));
        Self {
            way: pair.way,
            server: talk.name.clone(),
            handshake_us: match talk.handshake {
                Step::Answered(wall) => us(wall),
                _ => None,
            },
            tools: lists_tools.then_some(talk.tool_count),
            ping_us: talk.ping_median.and_then(us),
            large_frame: talk.large.name(),
            cancellation: talk.cancel.name(),
            end_of_input: ended(talk),
            sigterm: ended(pair.signalled),
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
            true => "see what was refused; add a flag for it, and give doctor all flags to try",
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

/// What a person has to think of.
fn notes(trial: &Trial, found: &Found) -> Vec<&'static str> {
    let is_relative = trial.command.iter().any(|argument| {
        let path = Path::new(argument);
        let is_named = path.components().count() > 1 || path.exists();
        is_named && path.is_relative() && !argument.as_encoded_bytes().starts_with(b"-")
    });
    let notes = [
        (
            found.flags.write.is_empty() && !found.flags.read.is_empty(),
            "paths are given for reading: where tools write, give --allow-write instead",
        ),
        (
            is_relative,
            "the command has relative paths: a client has to start it in this directory",
        ),
        (
            installs(&found.flags) && !found.flags.shared_cache,
            "its cache is its own and filled at the first start, which takes longer",
        ),
    ];
    let notes = notes.into_iter().filter(|(is_so, _)| *is_so);
    notes.map(|(_, note)| note).collect()
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
fn assets(machine: &ThisMachine, paths: &Paths) -> std::io::Result<Assets> {
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
    assets.add_executable(machine, &std::env::current_exe()?)?;
    assets.add_clients(machine)?;
    Ok(assets)
}

/// What a client has to run: `aegis`, with arguments. Paths of the record that
/// were not named are where the help has them.
fn wrap_line(command: &[OsString], paths: &Paths, asked: &Asked) -> (String, Vec<OsString>) {
    let aegis = std::env::current_exe().unwrap_or_else(|_| "aegis".into());
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let or = |path: &Option<PathBuf>, default: &str| {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.as_deref().map_or_else(|| home.join(default), absolute)
    };
    let mut args: Vec<OsString> = vec!["wrap".into(), "--audit".into()];
    args.push(or(&paths.audit, ".aegis/files/").into());
    args.push("--signing-key".into());
    args.push(or(&paths.signing_key, ".aegis/key").into());
    if let Some(policy) = &paths.policy {
        args.push("--policy".into());
        args.push(or(&Some(policy.clone()), "").into());
    }
    args.extend(flags::arguments(asked));
    args.push("--".into());
    args.extend(command.iter().cloned());
    (aegis.to_string_lossy().into_owned(), args)
}

fn text(argument: &OsString) -> String {
    argument.to_string_lossy().into_owned()
}

/// How many paths, hosts or sockets are told of.
const MAX_TOLD: usize = 64;
