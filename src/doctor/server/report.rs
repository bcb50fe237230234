//! What is said of a server, for a person and for a program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::flags;
use super::judge::Pair;
use super::seek::Found;
use super::session::{Step, Talk};
use super::{Trial, installs};
use crate::doctor::finding::Finding;
use crate::doctor::paths::Paths;
use crate::stations::sandbox::Asked;

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
    /// Hosts that were refused, with the port where it is known and the reason.
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

impl Confinement {
    pub(super) fn of(trial: &Trial, paths: &Paths, found: &Found, is_proposed: bool) -> Self {
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
                .map(|((host, port), why)| match port {
                    Some(port) => format!("{host}:{port} ({why})"),
                    None => format!("{host} ({why})"),
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
    pub(super) fn of(pair: &Pair<'_>) -> Self {
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

/// What a person has to think of.
fn notes(trial: &Trial, found: &Found) -> Vec<&'static str> {
    let is_relative = trial.command.iter().any(|argument| {
        let path = Path::new(argument);
        path.is_relative() && path.exists()
    });
    let proxied = PROXIES
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|set| !set.is_empty()));
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
        (
            found.shares,
            "it works with --shared-cache, by packages that are there; it could poison them",
        ),
        (
            proxied && !found.last.record.refused.is_empty() && found.flags.upstream.is_none(),
            "hosts that are reached through the proxy of HTTPS_PROXY only need --upstream-proxy",
        ),
    ];
    let notes = notes.into_iter().filter(|(is_so, _)| *is_so);
    notes.map(|(_, note)| note).collect()
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

pub(super) fn text(argument: &OsString) -> String {
    argument.to_string_lossy().into_owned()
}

/// Variables that name a proxy.
const PROXIES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];

/// How many paths, hosts or sockets are told of.
const MAX_TOLD: usize = 64;
