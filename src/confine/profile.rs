//! Every path that a confined server may reach, with the reason.
//!
//! Made before anything starts, out of what the operator asked for (a Grant),
//! what its kind of program needs (tables) and what running the command
//! executes. A path that is missing, or that no confined server may reach, is
//! named here: behind the fence the server would be told "permission denied",
//! and nobody which path.

mod of_command;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::assets::{Assets, Reach, Reaches, Way};
use super::command::{CommandError, Step};
use super::machine::Machine;
use super::preset::{Access, BuiltIn, Preset, RUNTIME, VARIABLES};
use crate::grant::mint::Minted;
use crate::grant::root::{FileId, Kind, Root};
use crate::wire::escape::{Escaped, EscapedPath};

/// What the operator asked for, besides the paths of a Grant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// `--preset`.
    pub(crate) preset: Option<Preset>,
    /// `--allow-exec-support`.
    pub(crate) exec_support: bool,
    /// `--allow-env`.
    pub(crate) variables: Vec<VariableName>,
    /// `--best-effort`.
    pub(crate) best_effort: bool,
    /// `--shared-cache`.
    pub(crate) shared_cache: bool,
    /// `--allow-unix-sockets`.
    pub(crate) unix_sockets: bool,
}

/// The name of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VariableName(String);

/// What is no name of a variable.
#[derive(Debug, Error)]
#[error(
    "--allow-env needs the name of a variable, none of aegis's own, got `{}`",
    Escaped(.0)
)]
pub(crate) struct BadVariable(String);

/// Directories that belong to the server alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Private {
    /// For temporary files; gone afterwards.
    pub(crate) temporary: PathBuf,
    /// For caches of this very command, kept.
    pub(crate) cache: PathBuf,
}

/// What a confined server may reach: by default nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    /// The program by the name that it was found by, absolute. It is what has
    /// to be executed: another search could find another.
    pub(crate) program: String,
    /// What is not named here cannot be reached.
    pub(crate) rules: Vec<Rule>,
    /// Built-in paths that are not on this machine.
    pub(crate) skipped: Vec<String>,
    /// Variables that are kept; all others are removed.
    pub(crate) kept_variables: Vec<String>,
    /// Variables that are set.
    pub(crate) set_variables: Vec<(String, String)>,
    /// Whether less than was asked for is enforced where the kernel cannot.
    pub(crate) best_effort: bool,
    /// Whether caches are shared with programs that are not confined.
    pub(crate) shared_cache: bool,
    /// Whether Unix sockets may be used.
    pub(crate) unix_sockets: bool,
}

/// A path that may be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// Without links and dots.
    pub(crate) path: String,
    /// What may be done with it and with what lies beneath.
    pub(crate) access: Access,
    /// What sort of object it is.
    pub(crate) kind: Kind,
    /// Which object it has to be. Not known of built-in paths: those of
    /// `/proc` change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<FileId>,
    /// Who asked for it.
    pub(crate) origin: Origin,
    /// What for.
    pub(crate) why: String,
}

/// Who asked for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// The operator, by name.
    User,
    /// A preset, or `--allow-exec-support`.
    BuiltIn,
    /// The command, which executes it.
    Command,
    /// aegis, which made it for the server alone.
    Private,
}

/// Why there is no profile.
#[derive(Debug, Error)]
pub(crate) enum ProfileError {
    /// The command cannot run anywhere.
    #[error("{0}")]
    Command(#[from] CommandError),
    /// A root would reach what the record rests on.
    #[error("{origin} {reaches}")]
    Asset {
        /// Who asked for the root.
        origin: String,
        /// What it would reach.
        reaches: Reaches,
    },
    /// The command executes something that nothing grants.
    #[error(
        "{} `{}` of the command may not be executed; give --allow-read {}, or a --preset{}",
        .step.role, Escaped(&.step.path), Escaped(&.step.path),
        if *.writable { " (what --allow-write grants is never executed)" } else { "" }
    )]
    NotGranted {
        /// What it is.
        step: Step,
        /// Whether it may be written.
        writable: bool,
    },
    /// A preset would grant what the server chose.
    #[error(
        "{what} `{}` of the command does not come with the preset, because --allow-write lets the server say where `{}` leads; give --allow-read {} if that is meant, or narrow --allow-write",
        EscapedPath(.path), EscapedPath(.named), EscapedPath(.path)
    )]
    Chosen {
        /// What it is to the command.
        what: String,
        /// Where it stands.
        path: PathBuf,
        /// The name that leads there.
        named: PathBuf,
    },
    /// What the operator named is where the server chose.
    #[error(
        "{flag} `{}` leads through a link that --allow-write lets the server change, to `{}`; give that path itself if it is meant",
        EscapedPath(.named), EscapedPath(.path)
    )]
    Led {
        /// Who names it.
        flag: &'static str,
        /// As it is named.
        named: PathBuf,
        /// Where it leads.
        path: PathBuf,
    },
    /// A link was in its place when it was granted.
    #[error(
        "no granted name leads to `{}` any more; end what is changing links there, and start again",
        EscapedPath(.0)
    )]
    Moved(PathBuf),
    /// The preset is for other programs.
    #[error(
        "--preset static is for programs that need no loader, but `{}` needs `{}`; give another --preset, or --allow-exec-support",
        Escaped(.program), Escaped(.loader)
    )]
    NotStatic {
        /// The program.
        program: String,
        /// Its loader.
        loader: String,
    },
    /// A directory without what lies beneath, which no kernel can enforce.
    #[error("`{}` is a directory, and can only be granted with all beneath it", Escaped(.0))]
    NotRecursive(String),
    /// A directory that aegis made cannot be used.
    #[error("the private directory `{}` cannot be used: {error}", EscapedPath(.path))]
    Private {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

impl FromStr for VariableName {
    type Err = BadVariable;

    fn from_str(name: &str) -> Result<Self, BadVariable> {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        match is_name && !name.starts_with(OWN_VARIABLES) {
            true => Ok(Self(name.to_owned())),
            false => Err(BadVariable(name.to_owned())),
        }
    }
}

impl Profile {
    /// What `command`, a program and its arguments, may reach under a Grant.
    ///
    /// # Errors
    /// When the command cannot run within it, or a root reaches an asset.
    pub(crate) fn build(
        machine: &impl Machine,
        options: &Options,
        grant: &Minted,
        command: &[OsString],
        private: &Private,
        assets: &Assets,
    ) -> Result<Self, ProfileError> {
        let mut draft = Draft::new(machine, options);
        draft.user(grant.read(), Access::ReadExecute, "--allow-read")?;
        draft.user(grant.write(), Access::ReadWrite, "--allow-write")?;
        draft.built_in();
        draft.command(command)?;
        draft.check(assets)?;
        // These are aegis's own to give, so they are not held against it.
        draft.private(private)?;
        Ok(draft.finish())
    }

    /// Whether a file may be executed.
    pub(crate) fn executes(&self, path: &str) -> bool {
        covers(&self.rules, path, Access::executes)
    }
}

/// Passes names of paths that a server which may write to `written` cannot have
/// led to where they lead: it would be granted what it put a link to. All that
/// was `granted` must still be what a name leads to, since another start of the
/// server may be running, and put a link there for a moment.
///
/// # Errors
/// Names the first that it can.
pub(crate) fn check_ways<'a>(
    machine: &impl Machine,
    granted: &[&Path],
    written: &[&Path],
    named: impl Iterator<Item = (&'static str, &'a Path)>,
) -> Result<(), ProfileError> {
    let reaches: Vec<_> = written
        .iter()
        .map(|root| Reach::of(machine, root))
        .collect();
    let mut ends = Vec::new();
    for (flag, named) in named {
        // One without an end was no path to grant.
        let Ok(way) = Way::follow(machine, named) else {
            continue;
        };
        if reaches.iter().any(|reach| reach.has_link_on(&way)) {
            return Err(ProfileError::Led {
                flag,
                named: named.into(),
                path: way.end().into(),
            });
        }
        ends.push(way.end().to_owned());
    }
    let mut strange = granted
        .iter()
        .filter(|path| !ends.iter().any(|end| end == *path));
    match strange.next() {
        Some(path) if !written.is_empty() => Err(ProfileError::Moved(path.to_path_buf())),
        _ => Ok(()),
    }
}

/// The caches that are shared with programs that are not confined, which the
/// server may write, as far as they are there.
pub(crate) fn shared_caches(machine: &impl Machine, options: &Options) -> Vec<PathBuf> {
    let preset = options.preset.filter(|_| options.shared_cache);
    let home = machine.variable("HOME").unwrap_or_default();
    let caches = preset.map_or(&[][..], Preset::shared_cache).iter();
    let paths = caches.map(|cache| Path::new(&home).join(cache.path));
    paths
        .filter_map(|path| machine.canonical(&path).ok())
        .collect()
}

/// A profile that is being made.
struct Draft<'a, M> {
    machine: &'a M,
    options: &'a Options,
    profile: Profile,
}

impl<'a, M: Machine> Draft<'a, M> {
    fn new(machine: &'a M, options: &'a Options) -> Self {
        Self {
            machine,
            options,
            profile: Profile {
                kept_variables: kept_variables(machine, options),
                best_effort: options.best_effort,
                shared_cache: options.shared_cache,
                unix_sockets: options.unix_sockets,
                ..Profile::default()
            },
        }
    }

    fn user(&mut self, roots: &[Root], access: Access, flag: &str) -> Result<(), ProfileError> {
        for root in roots {
            if root.kind() == Kind::Directory && !root.is_recursive() {
                return Err(ProfileError::NotRecursive(root.path().to_owned()));
            }
            self.push(Rule {
                path: root.path().to_owned(),
                access,
                kind: root.kind(),
                id: Some(root.id()),
                origin: Origin::User,
                why: flag.to_owned(),
            });
        }
        Ok(())
    }

    fn built_in(&mut self) {
        let preset = self.options.preset;
        if self.options.exec_support || preset.is_some_and(Preset::needs_runtime) {
            for path in RUNTIME {
                self.add_built_in(path);
            }
        }
        if let (Some(preset), true) = (preset, self.options.shared_cache) {
            for path in preset.shared_cache() {
                self.add_built_in(path);
            }
        }
    }

    fn add_built_in(&mut self, built_in: &BuiltIn) {
        let home = self.machine.variable("HOME").unwrap_or_default();
        let path = Path::new(&home).join(built_in.path);
        let is_added =
            path.is_absolute() && self.add(&path, built_in.access, Origin::BuiltIn, built_in.why);
        if !is_added {
            let path = path.to_string_lossy().into_owned();
            self.profile.skipped.push(path);
        }
    }

    /// Adds what a path leads to, when it is there and has a name in text.
    fn add(&mut self, path: &Path, access: Access, origin: Origin, why: &str) -> bool {
        let Ok(path) = self.machine.canonical(path) else {
            return false;
        };
        let (Ok((id, kind)), Some(path)) = (self.machine.identify(&path), path.to_str()) else {
            return false;
        };
        self.push(Rule {
            path: path.to_owned(),
            access,
            kind,
            id: (origin != Origin::BuiltIn).then_some(id),
            origin,
            why: why.to_owned(),
        });
        true
    }

    /// The same thing is often asked for twice: `/lib` is a link into `/usr`.
    fn push(&mut self, rule: Rule) {
        let is_known = self.profile.rules.iter().any(|known| {
            known.access == rule.access
                && (known.path == rule.path
                    || rule.origin == Origin::BuiltIn
                        && Path::new(&rule.path).starts_with(&known.path))
        });
        if !is_known {
            self.profile.rules.push(rule);
        }
    }

    fn check(&self, assets: &Assets) -> Result<(), ProfileError> {
        for rule in &self.profile.rules {
            let path = Path::new(&rule.path);
            assets
                .check(self.machine, path, rule.access.writes())
                .map_err(|reaches| ProfileError::Asset {
                    origin: match rule.origin {
                        Origin::User => rule.why.clone(),
                        Origin::Command => format!("the command brings \"{}\";", rule.why),
                        _ => format!("the built-in path for \"{}\",", rule.why),
                    },
                    reaches,
                })?;
        }
        Ok(())
    }

    fn private(&mut self, private: &Private) -> Result<(), ProfileError> {
        self.add_private(&private.temporary, Access::ReadWrite, "temporary files")?;
        self.set("TMPDIR", &private.temporary);
        let Some(preset) = self.options.preset.filter(|preset| preset.needs_cache()) else {
            return Ok(());
        };
        if self.options.shared_cache {
            return Ok(());
        }
        self.add_private(&private.cache, Access::ReadWriteExecute, "its own cache")?;
        self.set("XDG_CACHE_HOME", &private.cache);
        for (variable, below) in preset.cache_variables() {
            self.set(variable, &private.cache.join(below));
        }
        Ok(())
    }

    fn add_private(&mut self, path: &Path, access: Access, why: &str) -> Result<(), ProfileError> {
        match self.add(path, access, Origin::Private, why) {
            true => Ok(()),
            false => Err(ProfileError::Private {
                path: path.into(),
                error: match self.machine.identify(path) {
                    Err(error) => error,
                    Ok(_) => std::io::Error::other("its name is not UTF-8"),
                },
            }),
        }
    }

    fn set(&mut self, name: &str, path: &Path) {
        // A path that is not text was refused above.
        if let Some(path) = path.to_str() {
            self.profile.kept_variables.retain(|kept| kept != name);
            self.profile
                .set_variables
                .push((name.to_owned(), path.to_owned()));
        }
    }

    fn finish(self) -> Profile {
        self.profile
    }
}

/// Whether a rule that does `what` is about `path`.
fn covers(rules: &[Rule], path: &str, what: fn(Access) -> bool) -> bool {
    rules
        .iter()
        .any(|rule| what(rule.access) && Path::new(path).starts_with(&rule.path))
}

fn kept_variables(machine: &impl Machine, options: &Options) -> Vec<String> {
    let preset = options.preset.map_or(&[][..], Preset::variables);
    let asked = options.variables.iter().map(|name| name.0.as_str());
    let mut names: Vec<String> = VARIABLES
        .iter()
        .chain(preset)
        .copied()
        .chain(asked)
        .filter(|name| machine.variable(name).is_some())
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Variables that aegis speaks to itself by.
const OWN_VARIABLES: &str = "AEGIS_CONFINE_";

#[cfg(test)]
mod tests;
