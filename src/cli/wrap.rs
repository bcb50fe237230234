//! `aegis wrap`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use argh::FromArgs;

use super::args::{self, PathArg, Verb};
use super::confinement::typed;
use super::exit::Exit;
use super::ui;
use super::{Request, UsageError};
use crate::chain::audit::Audit;
use crate::stations::sandbox;
use crate::wire::digest::{Digest, PolicySet};
use crate::wire::escape::Escaped;
use crate::wire::facts::Durability;
use crate::wrap::{self, Client, Deny, Enforcement, Mode, Wrap};

/// Run an MCP server and record every tool call made to it.
///
/// Starts CMD, relays standard input and output byte for byte, and writes a
/// signed record of every tools/call to the audit file: an intent before the
/// request reaches the server, an outcome before the answer reaches the
/// client. It blocks nothing, unless a policy is given: then a tools/call that
/// the policy does not allow, and whatever cannot be read strictly, is
/// answered with an error and never reaches the server.
///
/// Put it in front of the server's command in the configuration of an MCP
/// client. Clients often start a server several times at once: give them a
/// directory (a PATH that ends in / or is one), in which each gets a file of
/// its own.
///
/// With --confine the server has no authority but what is named: it reaches
/// the given paths and hosts, and the record says what was enforced. What
/// cannot be enforced keeps it from being started.
#[derive(FromArgs)]
#[argh(
    example = "aegis wrap --audit ~/.aegis/files/ --signing-key ~/.aegis/key -- npx -y @modelcontextprotocol/server-filesystem ~/notes",
    example = "aegis wrap --audit ~/.aegis/files/ --signing-key ~/.aegis/key --confine --preset npx --allow-net packages.example.com:443 --allow-write ~/notes -- npx -y @modelcontextprotocol/server-filesystem ~/notes",
    error_code(
        1,
        "no policy to judge by, a session that could not be recorded, or a usage error"
    ),
    error_code(
        126,
        "confinement could not be put in force; the server was not started"
    ),
    error_code(128, "plus the number of the signal that ended the server or aegis")
)]
pub(super) struct Args {
    /// the audit file or directory
    #[argh(option, arg_name = "PATH")]
    audit: Option<PathArg>,
    /// the signing key, as aegis keygen writes it
    #[argh(option, arg_name = "PATH")]
    signing_key: Option<PathArg>,
    /// full: answers wait for the disk too; intent (default): requests wait
    /// for the disk, answers only for the write; process: neither waits, and
    /// a power cut may lose lines
    #[argh(option, arg_name = "full|intent|process")]
    durability: Option<String>,
    /// longest message that is relayed (default: 1073741824)
    #[argh(option, arg_name = "BYTES")]
    max_frame: Option<String>,
    /// the policy that every tools/call is judged by; a changed file is taken
    /// over, SIGUSR1 asks for that at once
    #[argh(option, arg_name = "PATH")]
    policy: Option<PathArg>,
    /// record what the policy would have decided, and refuse nothing
    #[argh(switch)]
    shadow: bool,
    /// leave tools that the policy denies out of tools/list answers
    #[argh(switch)]
    hide_denied: bool,
    /// tell the client the rule and the reason of a refusal
    #[argh(switch)]
    deny_detail: bool,
    /// JSON-RPC error code of a refusal (default: -32042; -31042 when the
    /// client speaks MCP 2026-07-28)
    #[argh(option, arg_name = "N")]
    deny_code: Option<String>,
    /// take no policy but the one with this hash
    #[argh(option, arg_name = "HEX")]
    policy_hash: Option<String>,
    /// keep the policy as it was at the start, whatever becomes of its file
    #[argh(switch)]
    no_reload: bool,
    /// take a policy with rules that can never match here
    #[argh(switch)]
    allow_inert_rules: bool,
    /// give the server nothing but what the options below allow: no file, no
    /// host, no variable that could hold a secret. The command itself needs a
    /// --preset, or --allow-read paths
    #[argh(switch)]
    confine: bool,
    /// what servers of a kind need to run: node, python, npx or uvx (which get
    /// a cache of their own), or static for those that need no file
    #[argh(option, arg_name = "node|python|npx|uvx|static")]
    preset: Option<String>,
    /// read and execute what is at PATH and beneath; may be repeated
    #[argh(option, arg_name = "PATH")]
    allow_read: Vec<PathArg>,
    /// read and write what is at PATH and beneath; may be repeated
    #[argh(option, arg_name = "PATH")]
    allow_write: Vec<PathArg>,
    /// connect to HOST:PORT[,PORT...], where HOST is a name, *.NAME for all
    /// below it, an IPv4 or an [IPv6] address; may be repeated
    #[argh(option, arg_name = "HOST:PORT[,PORT...]")]
    allow_net: Vec<String>,
    /// keep this environment variable; may be repeated
    #[argh(option, arg_name = "NAME")]
    allow_env: Vec<String>,
    /// read the system's files and run its programs
    #[argh(switch)]
    allow_exec_support: bool,
    /// use Unix sockets; below Landlock ABI 9 that opens all of the machine's
    #[argh(switch)]
    allow_unix_sockets: bool,
    /// with --preset npx or uvx: share the caches of programs that are not
    /// confined, which the server can then poison
    #[argh(switch)]
    shared_cache: bool,
    /// reach the hosts through http://[USER:PASSWORD@]HOST:PORT, which then
    /// looks their names up and is trusted with that
    #[argh(option, arg_name = "http://[USER:PASSWORD@]HOST:PORT")]
    upstream_proxy: Option<String>,
    /// most processes and threads
    #[argh(option, arg_name = "N")]
    max_procs: Option<String>,
    /// most bytes of address space of a process
    #[argh(option, arg_name = "BYTES")]
    max_memory: Option<String>,
    /// most open files of a process
    #[argh(option, arg_name = "N")]
    max_files: Option<String>,
    /// start also where this machine cannot enforce all of it; the record
    /// says what is missing
    #[argh(switch)]
    best_effort: bool,
    /// the server's command stands behind `--`
    #[argh(positional, arg_name = "CMD")]
    stray: Vec<PathArg>,
}

impl Verb for Args {
    const NAME: &'static str = "wrap";
    const USAGE: &'static str = "--audit PATH --signing-key PATH [--durability full|intent|process]\n                  [--max-frame BYTES] [--policy PATH [POLICY OPTIONS]]\n                  [--confine [CONFINEMENT OPTIONS]] -- CMD [ARGS...]";
}

impl Args {
    /// Reads the arguments before `--`, and takes the command behind it.
    pub(super) fn request(mut self, command: Option<&[OsString]>) -> Result<Wrap, UsageError> {
        if let Some(stray) = self.stray.first() {
            return Err(UsageError(format!(
                "wrap takes no positional arguments; put the child command after `--` (got `{}`)",
                Escaped(&stray.0.to_string_lossy())
            )));
        }
        let policy = self.enforcement()?;
        let confine = self.confinement()?;
        let audit = self
            .audit
            .ok_or_else(|| UsageError("wrap requires --audit <PATH>".to_owned()))?;
        let signing_key = self.signing_key.ok_or_else(|| {
            UsageError(
                "wrap requires --signing-key <PATH>; generate one with `aegis keygen --out <PATH>`"
                    .to_owned(),
            )
        })?;
        let command = command.unwrap_or_default().to_vec();
        if command.is_empty() {
            return Err(UsageError(
                "wrap requires a child command after `--`".to_owned(),
            ));
        }
        Ok(Wrap {
            audit: Audit::at(not_stdio("--audit", audit)?),
            signing_key: not_stdio("--signing-key", signing_key)?,
            durability: durability(self.durability.as_deref())?,
            max_frame: self.max_frame.as_deref().map(max_frame).transpose()?,
            policy,
            confine,
            command,
        })
    }

    /// What `--policy` and the options that go with it ask for.
    fn enforcement(&mut self) -> Result<Option<Enforcement>, UsageError> {
        let Some(file) = self.policy.take() else {
            return match self.policy_option() {
                None => Ok(None),
                Some(option) => Err(UsageError(format!("{option} requires --policy <PATH>"))),
            };
        };
        if self.hide_denied && self.shadow {
            return Err(UsageError(
                "--hide-denied hides what --shadow lets through; give one of them".to_owned(),
            ));
        }
        Ok(Some(Enforcement {
            file: not_stdio("--policy", file)?,
            mode: match self.shadow {
                true => Mode::Shadow,
                false => Mode::Enforce,
            },
            pinned: self.policy_hash.as_deref().map(policy_hash).transpose()?,
            reload: !self.no_reload,
            allow_inert: self.allow_inert_rules,
            hide_denied: self.hide_denied,
            deny: Deny {
                code: self.deny_code.as_deref().map(deny_code).transpose()?,
                detail: self.deny_detail,
            },
        }))
    }

    /// What `--confine` and the options that go with it ask for.
    fn confinement(&mut self) -> Result<Option<sandbox::Request>, UsageError> {
        let typed = typed!(&mut *self);
        if !self.confine {
            return match typed.first() {
                None => Ok(None),
                Some(option) => Err(UsageError(format!("{option} requires --confine"))),
            };
        }
        let asked = typed.asked()?;
        asked.read().map(Some).map_err(UsageError)
    }

    /// An option that means something only with a policy.
    fn policy_option(&self) -> Option<&'static str> {
        [
            (self.shadow, "--shadow"),
            (self.hide_denied, "--hide-denied"),
            (self.deny_detail, "--deny-detail"),
            (self.deny_code.is_some(), "--deny-code"),
            (self.policy_hash.is_some(), "--policy-hash"),
            (self.no_reload, "--no-reload"),
            (self.allow_inert_rules, "--allow-inert-rules"),
        ]
        .into_iter()
        .find_map(|(given, option)| given.then_some(option))
    }
}

/// A path that has to be a file's.
pub(super) fn not_stdio(option: &str, path: PathArg) -> Result<PathBuf, UsageError> {
    if path.0 == "-" {
        return Err(UsageError(format!(
            "{option} needs a file, not standard input or output; ./- names a file of that name"
        )));
    }
    Ok(path.0.into())
}

fn durability(mode: Option<&str>) -> Result<Durability, UsageError> {
    match mode {
        None | Some("intent") => Ok(Durability::Intent),
        Some("full") => Ok(Durability::Full),
        Some("process") => Ok(Durability::Process),
        Some(other) => Err(UsageError(format!(
            "--durability needs full, intent or process, got `{}`",
            args::typed(other)
        ))),
    }
}

fn max_frame(bytes: &str) -> Result<u64, UsageError> {
    match bytes.parse() {
        Ok(bytes @ MIN_FRAME_BYTES..) => Ok(bytes),
        _ => Err(UsageError(format!(
            "--max-frame needs a number of bytes from {MIN_FRAME_BYTES}, got `{}`",
            args::typed(bytes)
        ))),
    }
}

fn policy_hash(hex: &str) -> Result<Digest<PolicySet>, UsageError> {
    Digest::from_hex(hex).map_err(|_| {
        UsageError(format!(
            "--policy-hash needs 64 lower-case hexadecimal characters, got `{}`",
            args::typed(hex)
        ))
    })
}

fn deny_code(code: &str) -> Result<i32, UsageError> {
    let number = code.parse().map_err(|_| {
        UsageError(format!(
            "--deny-code needs an integer of 32 bits, got `{}`",
            args::typed(code)
        ))
    })?;
    // A client would take the refusal for a mistake of its own.
    if matches!(number, -32603..=-32600 | -32700) {
        return Err(UsageError(format!(
            "--deny-code {number} is one of JSON-RPC's own errors; take another, like -31042"
        )));
    }
    Ok(number)
}

impl Request for Wrap {
    fn run(self) -> ExitCode {
        if self.durability == Durability::Process {
            ui::say(
                "aegis wrap: --durability process: a power cut may lose what was recorded last\n",
            );
        }
        let client = match client() {
            Ok(client) => client,
            Err(error) => {
                ui::error(format_args!("wrap relay I/O failed: {error}"));
                return Exit::Failed.into();
            }
        };
        match wrap::run(self, client) {
            Ok(ended) => {
                if let Some(notice) = ended.notice {
                    ui::say(format_args!("aegis wrap: {notice}\n"));
                }
                ended.exit.into()
            }
            Err(error) => {
                let exit = error.exit();
                ui::error(error);
                exit.into()
            }
        }
    }
}

/// Standard input and output without the buffers that the standard library
/// puts before them: a frame is written at once, and whole.
fn client() -> io::Result<Client> {
    Ok(Client {
        input: File::from(io::stdin().as_fd().try_clone_to_owned()?),
        output: File::from(io::stdout().as_fd().try_clone_to_owned()?),
        stderr_is_terminal: io::stderr().is_terminal(),
    })
}

/// Smaller than any session could begin with.
const MIN_FRAME_BYTES: u64 = 1024;
