//! Where a sandbox can be put in force.

mod network;
mod running;
mod told;

use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{Asked, Own, argv_digest};
use crate::chain::audit::Audit;
use crate::confine::assets::{Assets, Lost, What};
use crate::confine::door::Door;
use crate::confine::machine::{Machine as _, ThisMachine};
use crate::confine::order::{self, Order, Wanted};
use crate::confine::private::{self, Directory};
use crate::confine::profile::{Options, Private, Profile, check_ways, shared_caches};
use crate::confine::seccomp::Metadata;
use crate::confine::start;
use crate::egress::Upstream;
use crate::grant::manifest::{Manifest, NetNeed};
use crate::grant::mint::{AskedFor, Authority, Denial, Mint, Minted};
use crate::grant::root::{Root, RootError};
use crate::net::allow::Allow;
use crate::wire::escape::EscapedPath;
use crate::wire::facts::Limits;

pub(crate) use crate::confine::start::Started;
pub(crate) use crate::egress::{Ledger, Mark};
pub(crate) use running::{Entered, Running};

/// What the operator asked for, free of contradictions.
#[derive(Debug)]
pub(crate) struct Request {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    allow: Vec<Allow>,
    upstream: Option<Upstream>,
    options: Options,
    /// Those of `options.variables`, for the record.
    variables: Vec<String>,
    limits: Limits,
}

/// A sandbox that is known to the last path, with its private directories.
/// Nothing is in force yet.
pub(crate) struct Prepared {
    allow: Vec<Allow>,
    upstream: Option<Upstream>,
    variables: Vec<String>,
    command: Vec<OsString>,
    order: Order,
    door: Door,
    temporary: Directory,
}

impl Asked {
    /// Reads every text.
    ///
    /// # Errors
    /// A usage error: a text that means nothing, or two that contradict.
    pub(crate) fn read(self) -> Result<Request, String> {
        let many = [
            (
                "--allow-read and --allow-write",
                self.read.len() + self.write.len(),
                "path above",
            ),
            (
                "--allow-net",
                self.net.len(),
                "domain, as in `*.example.com`",
            ),
            ("--allow-env", self.variables.len(), "wrapper script"),
        ];
        if let Some((flag, given, instead)) = many.into_iter().find(|(_, n, _)| *n > MAX_GRANTS) {
            return Err(format!(
                "{flag} may be given {MAX_GRANTS} times, not {given}; use a {instead}"
            ));
        }
        let allow = all(self.net.iter().map(|text| Allow::parse(text)))?;
        let ports = network::ports(&allow);
        order::check_ports(&ports, order::proxy_port(&ports)).map_err(text)?;
        order::check_limits(&self.limits).map_err(text)?;
        let options = Options {
            preset: self
                .preset
                .as_deref()
                .map(str::parse)
                .transpose()
                .map_err(text)?,
            exec_support: self.exec_support,
            variables: all(self.variables.iter().map(|name| name.parse()))?,
            best_effort: self.best_effort,
            shared_cache: self.shared_cache,
            unix_sockets: self.unix_sockets,
        };
        if self.shared_cache && !options.preset.is_some_and(|preset| preset.needs_cache()) {
            return Err("--shared-cache requires --preset npx or uvx".to_owned());
        }
        if self.upstream.is_some() && allow.is_empty() {
            return Err("--upstream-proxy requires --allow-net".to_owned());
        }
        // The text may hold a password, so it is not shown.
        let upstream = self.upstream.as_deref().map(str::parse).transpose();
        Ok(Request {
            read: self.read,
            write: self.write,
            upstream: upstream.map_err(|fault| format!("--upstream-proxy: {fault}"))?,
            allow,
            options,
            variables: self.variables,
            limits: self.limits,
        })
    }
}

impl Request {
    /// Finds every path that `command` may reach, and makes the directories
    /// that are its own.
    ///
    /// # Errors
    /// One line: what cannot be granted, and what to do.
    pub(crate) fn prepare(&self, command: &[OsString], own: Own<'_>) -> Result<Prepared, String> {
        let machine = ThisMachine::look().map_err(text)?;
        let grant = self.mint(machine.directory())?;
        let paths = |roots: &'_ [Root]| -> Vec<PathBuf> {
            roots.iter().map(|root| root.path().into()).collect()
        };
        let granted = [paths(grant.read()), paths(grant.write())].concat();
        let written = [paths(grant.write()), shared_caches(&machine, &self.options)].concat();
        let granted: Vec<_> = granted.iter().map(PathBuf::as_path).collect();
        let written: Vec<_> = written.iter().map(PathBuf::as_path).collect();
        check_ways(&machine, &granted, &written, self.named()).map_err(text)?;
        let assets = own.assets(&machine)?;
        own.check_names(!written.is_empty())?;
        let temporary = private::temporary().map_err(text)?;
        let private = Private {
            temporary: temporary.path().to_owned(),
            cache: self.cache(&machine, command)?,
        };
        let mut profile =
            Profile::build(&machine, &self.options, &grant, command, &private, &assets)
                .map_err(text)?;
        let wanted = network::wanted(&self.allow);
        if let Wanted::Hosts { proxy_port, .. } = &wanted {
            network::set_variables(&mut profile, *proxy_port);
        }
        let variables = self.let_through(&profile);
        let door = Door::open(&profile, &wanted).map_err(text)?;
        let order = Order::new(&door, profile, wanted, self.metadata(), self.limits);
        Ok(Prepared {
            allow: self.allow.clone(),
            upstream: self.upstream.clone(),
            variables,
            command: command.to_vec(),
            order: order.map_err(text)?,
            door,
            temporary,
        })
    }

    fn mint(&self, base: &Path) -> Result<Minted, String> {
        let needs = self.allow.iter().map(|entry| NetNeed {
            host: entry.pattern().to_string(),
            ports: entry.ports().to_vec(),
            methods: vec![ANY_METHOD.to_owned()],
        });
        let manifest = Manifest::of_server(base.into(), &self.read, &self.write, needs.collect());
        let authority = Authority::Operator(AskedFor::on_the_command_line());
        Mint::default()
            .mint(&manifest, authority)
            .map_err(|denial| match &denial {
                Denial::Path { need, error } => {
                    let flag = match self.read.contains(&need.path) {
                        true => "--allow-read",
                        false => "--allow-write",
                    };
                    format!("{flag}: {denial}{}", cure(base, &need.path, error))
                }
                _ => denial.to_string(),
            })
    }

    /// The paths that were asked for, each by its flag.
    fn named(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let read = self
            .read
            .iter()
            .map(|path| ("--allow-read", path.as_path()));
        let write = self
            .write
            .iter()
            .map(|path| ("--allow-write", path.as_path()));
        read.chain(write)
    }

    /// The cache of this command, made if it needs one.
    fn cache(&self, machine: &ThisMachine, command: &[OsString]) -> Result<PathBuf, String> {
        if !self.needs_cache() {
            return Ok(PathBuf::new());
        }
        let root = private::cache_root(machine).ok_or(private::PrivateError::Nowhere);
        let name = argv_digest(command).to_string();
        root.and_then(|root| private::cache(&root, &name))
            .map_err(text)
    }

    fn needs_cache(&self) -> bool {
        let is_private = !self.options.shared_cache;
        is_private
            && self
                .options
                .preset
                .is_some_and(|preset| preset.needs_cache())
    }

    /// Whoever installs programs sets their modes. All others need to change
    /// files, which an open one suffices for, or nothing at all.
    fn metadata(&self) -> Metadata {
        let installs = self
            .options
            .preset
            .is_some_and(|preset| preset.needs_cache());
        match installs || !self.write.is_empty() {
            true => Metadata::Allowed,
            false => Metadata::Denied,
        }
    }

    /// Those of the variables that the server really gets.
    fn let_through(&self, profile: &Profile) -> Vec<String> {
        let mut names = self.variables.clone();
        names.retain(|name| profile.kept_variables.contains(name));
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl Own<'_> {
    fn assets(&self, machine: &ThisMachine) -> Result<Assets, String> {
        let executable = start::own_executable().map_err(text)?;
        let all = || {
            let mut assets = Assets::default();
            assets.add(machine, What::SigningKey, self.signing_key)?;
            let (Audit::File(audit) | Audit::Directory(audit)) = self.audit;
            assets.add(machine, What::Audit, audit)?;
            if let Some(policy) = self.policy {
                assets.add(machine, What::Policy, policy)?;
            }
            if let Some(cache) = private::cache_root(machine) {
                assets.add(machine, What::Cache, &cache)?;
            }
            assets.add_executable(machine, &executable)?;
            assets.add_clients(machine)?;
            Ok(assets)
        };
        all().map_err(|lost: Lost| lost.to_string())
    }

    /// Passes files that have one name each: another (a hard link) may lie
    /// where it is granted, and no directory tells.
    fn check_names(&self, is_written: bool) -> Result<(), String> {
        let audit = match self.audit {
            Audit::File(audit) => Some(audit.as_path()),
            Audit::Directory(_) => None,
        };
        let written = [("the policy", self.policy), ("the audit file", audit)];
        let written = written.into_iter().filter(|_| is_written);
        let key = ("the signing key", Some(self.signing_key));
        for (what, path) in written.chain([key]) {
            // One that is not there has no name.
            let Some((path, found)) = path.and_then(|path| Some((path, path.metadata().ok()?)))
            else {
                continue;
            };
            let names = found.nlink();
            if found.is_file() && names > 1 {
                return Err(format!(
                    "{what} `{}` has {names} names (hard links), which no confined server may reach, and they may be anywhere; copy it to a file of its own, and remove the others",
                    EscapedPath(path)
                ));
            }
        }
        Ok(())
    }
}

fn all<T, E: Display>(read: impl Iterator<Item = Result<T, E>>) -> Result<Vec<T>, String> {
    read.collect::<Result<_, _>>().map_err(text)
}

/// What helps when a path cannot be granted. Clients start aegis without a
/// shell, and in a directory of their choice.
fn cure(base: &Path, path: &Path, error: &RootError) -> String {
    let RootError::Io(error) = error else {
        return String::new();
    };
    let first = path.as_os_str().as_encoded_bytes().first();
    match error.kind() {
        io::ErrorKind::NotFound if matches!(first, Some(b'~' | b'$')) => {
            "; no shell has expanded it, so write the whole path".to_owned()
        }
        io::ErrorKind::NotFound if path.is_relative() => {
            format!("; it was looked for in `{}`", EscapedPath(base))
        }
        io::ErrorKind::NotFound => "; make it first, or leave it out".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "; let the user whom aegis runs as read it, or leave it out".to_owned()
        }
        _ => String::new(),
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}

/// How often a flag may be given. Each is told in the `open` Line, which holds
/// as many of the longest entries, and all paths that an [`Order`] holds.
const MAX_GRANTS: usize = 256;

/// A fence around connections does not see what is asked through them.
const ANY_METHOD: &str = "*";
