//! The options of a confinement, which `wrap` and `doctor` take alike.

use std::path::PathBuf;

use argh::FromArgValue as _;

use super::UsageError;
use super::args::{self, PathArg};
use super::wrap::not_stdio;
use crate::stations::sandbox::Asked;
use crate::wire::canon::MAX_INTEGER;
use crate::wire::escape::EscapedPath;
use crate::wire::facts::Limits;

/// The options as they were typed.
pub(super) struct Typed {
    pub(super) preset: Option<String>,
    pub(super) allow_read: Vec<PathArg>,
    pub(super) allow_write: Vec<PathArg>,
    pub(super) allow_net: Vec<String>,
    pub(super) allow_env: Vec<String>,
    pub(super) allow_exec_support: bool,
    pub(super) allow_unix_sockets: bool,
    pub(super) shared_cache: bool,
    pub(super) upstream_proxy: Option<String>,
    pub(super) max_procs: Option<String>,
    pub(super) max_memory: Option<String>,
    pub(super) max_files: Option<String>,
    pub(super) best_effort: bool,
}

/// Takes the options out of the arguments of a verb. They are declared by each
/// verb, since `argh` cannot share fields; one that is left out there fails to
/// compile here.
macro_rules! typed {
    ($args:expr) => {{
        let args = $args;
        $crate::cli::confinement::Typed {
            preset: args.preset.take(),
            allow_read: std::mem::take(&mut args.allow_read),
            allow_write: std::mem::take(&mut args.allow_write),
            allow_net: std::mem::take(&mut args.allow_net),
            allow_env: std::mem::take(&mut args.allow_env),
            allow_exec_support: args.allow_exec_support,
            allow_unix_sockets: args.allow_unix_sockets,
            shared_cache: args.shared_cache,
            upstream_proxy: args.upstream_proxy.take(),
            max_procs: args.max_procs.take(),
            max_memory: args.max_memory.take(),
            max_files: args.max_files.take(),
            best_effort: args.best_effort,
        }
    }};
}
pub(super) use typed;

impl Typed {
    /// What they ask for.
    pub(super) fn asked(self) -> Result<Asked, UsageError> {
        let limits = Limits {
            processes: at_least_one("--max-procs", self.max_procs.as_deref())?,
            memory_bytes: at_least_one("--max-memory", self.max_memory.as_deref())?,
            files: at_least_one("--max-files", self.max_files.as_deref())?,
        };
        Ok(Asked {
            read: paths("--allow-read", self.allow_read)?,
            write: paths("--allow-write", self.allow_write)?,
            net: texts("--allow-net", &self.allow_net)?,
            variables: texts("--allow-env", &self.allow_env)?,
            preset: text("--preset", self.preset.as_ref())?,
            exec_support: self.allow_exec_support,
            unix_sockets: self.allow_unix_sockets,
            shared_cache: self.shared_cache,
            upstream: text("--upstream-proxy", self.upstream_proxy.as_ref())?,
            limits,
            best_effort: self.best_effort,
        })
    }

    /// One that was given.
    pub(super) fn first(&self) -> Option<&'static str> {
        [
            (self.preset.is_some(), "--preset"),
            (!self.allow_read.is_empty(), "--allow-read"),
            (!self.allow_write.is_empty(), "--allow-write"),
            (!self.allow_net.is_empty(), "--allow-net"),
            (!self.allow_env.is_empty(), "--allow-env"),
            (self.allow_exec_support, "--allow-exec-support"),
            (self.allow_unix_sockets, "--allow-unix-sockets"),
            (self.shared_cache, "--shared-cache"),
            (self.upstream_proxy.is_some(), "--upstream-proxy"),
            (self.max_procs.is_some(), "--max-procs"),
            (self.max_memory.is_some(), "--max-memory"),
            (self.max_files.is_some(), "--max-files"),
            (self.best_effort, "--best-effort"),
        ]
        .into_iter()
        .find_map(|(given, option)| given.then_some(option))
    }
}

fn paths(option: &str, paths: Vec<PathArg>) -> Result<Vec<PathBuf>, UsageError> {
    let path = |path| not_stdio(option, path);
    paths.into_iter().map(path).collect()
}

fn texts(option: &str, texts: &[String]) -> Result<Vec<String>, UsageError> {
    let each = texts.iter().map(|typed| text(option, Some(typed)));
    each.filter_map(Result::transpose).collect()
}

/// A value that is no path, and so has to be text.
fn text(option: &str, typed: Option<&String>) -> Result<Option<String>, UsageError> {
    let Some(typed) = typed else {
        return Ok(None);
    };
    let Ok(PathArg(value)) = PathArg::from_arg_value(typed) else {
        return Ok(Some(typed.clone()));
    };
    value.into_string().map(Some).map_err(|value| {
        UsageError(format!(
            "{option} needs text in UTF-8, got `{}`",
            EscapedPath(value.as_ref())
        ))
    })
}

pub(super) fn at_least_one(option: &str, number: Option<&str>) -> Result<Option<u64>, UsageError> {
    let Some(typed) = number else {
        return Ok(None);
    };
    match typed.parse() {
        Ok(number @ 1..=MAX_INTEGER) => Ok(Some(number)),
        _ => Err(UsageError(format!(
            "{option} needs a number from 1, got `{}`",
            args::typed(typed)
        ))),
    }
}
