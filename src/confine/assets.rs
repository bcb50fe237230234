//! What no grant may reach: that which the record, and the confinement
//! itself, rest on.
//!
//! A server that reads the signing key can write a record of its own; one that
//! writes the policy, or a client's configuration, is out of reach the next
//! time it is started. So a root that contains one of these, or lies in one,
//! is refused by name, however it is spelt: names are compared without links,
//! and objects by device and inode, since one directory can be mounted at
//! several places.

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

use super::machine::Machine;
use crate::grant::root::FileId;
use crate::wire::escape::EscapedPath;

/// All that no grant may reach.
#[derive(Debug, Default)]
pub(crate) struct Assets(Vec<Asset>);

/// Something that no grant may reach.
#[derive(Clone, Debug)]
struct Asset {
    what: What,
    way: Way,
}

/// A name, and where it leads.
#[derive(Clone, Debug)]
pub(super) struct Way {
    /// As it was named.
    named: PathBuf,
    place: Place,
    /// Where links on the way to it stand: whoever replaces one leads
    /// elsewhere.
    links: Vec<Place>,
}

/// All that a root reaches.
pub(super) struct Reach {
    own: Place,
    /// What is mounted beneath it, which is reached through it as well.
    mounted: Vec<Place>,
}

/// A name without links, with the objects along it from itself up to `/`.
#[derive(Clone, Debug)]
struct Place {
    path: PathBuf,
    /// Of the place itself, when it exists.
    id: Option<FileId>,
    /// Of it and of all that contain it.
    ids: Vec<FileId>,
}

/// What an asset is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The signing key.
    SigningKey,
    /// Where the record is written.
    Audit,
    /// The policy.
    Policy,
    /// The bindings of tools.
    Bindings,
    /// The pins of tool definitions.
    Pins,
    /// Envelopes.
    Envelopes,
    /// A cache of compiled code.
    Cache,
    /// A directory of sockets.
    Socket,
    /// The folder of this executable, for writing.
    Executable,
    /// Where an MCP client says what it starts.
    Client(&'static str),
    /// The same in a project, for writing.
    Project,
}

/// A root that would reach an asset.
#[derive(Debug, Error)]
#[error(
    "`{}` {how} {what} `{}`, which no confined server may reach; grant a narrower path, or keep that elsewhere",
    EscapedPath(.root), EscapedPath(.asset)
)]
pub(crate) struct Reaches {
    root: PathBuf,
    how: &'static str,
    what: What,
    asset: PathBuf,
}

/// What cannot be found, and so cannot be kept out of reach.
#[derive(Debug, Error)]
#[error(
    "{what} `{}` cannot be found, and so not be kept from the server: {error}; correct its path{home}",
    EscapedPath(.path)
)]
pub(crate) struct Lost {
    what: What,
    path: PathBuf,
    error: io::Error,
    /// Where that comes from, if nobody named it.
    home: &'static str,
}

impl Lost {
    fn new(what: What, path: &Path, error: io::Error) -> Self {
        let home = match what {
            What::Client(_) | What::Cache => ", which HOME or an XDG_ variable leads to",
            _ => "",
        };
        Self {
            what,
            path: path.into(),
            error,
            home,
        }
    }
}

impl Assets {
    /// Adds what is at `path`, or will be.
    ///
    /// # Errors
    /// When the path cannot be followed: what cannot be found cannot be kept
    /// out of reach.
    pub(crate) fn add(
        &mut self,
        machine: &impl Machine,
        what: What,
        path: &Path,
    ) -> Result<(), Lost> {
        self.0.push(Asset {
            what,
            way: Way::follow(machine, path).map_err(|error| Lost::new(what, path, error))?,
        });
        Ok(())
    }

    /// Adds the folder of the executable at `path`.
    ///
    /// # Errors
    /// As [`Assets::add`].
    pub(crate) fn add_executable(
        &mut self,
        machine: &impl Machine,
        path: &Path,
    ) -> Result<(), Lost> {
        let path = machine
            .canonical(path)
            .map_err(|error| Lost::new(What::Executable, path, error))?;
        let folder = path.parent().unwrap_or(&path);
        self.add(machine, What::Executable, folder)
    }

    /// Adds the configurations of known MCP clients, whether they are there
    /// yet or not.
    ///
    /// # Errors
    /// As [`Assets::add`].
    pub(crate) fn add_clients(&mut self, machine: &impl Machine) -> Result<(), Lost> {
        let home = machine.variable("HOME").map(PathBuf::from);
        let config = machine.variable("XDG_CONFIG_HOME").map(PathBuf::from);
        for &(client, path) in CLIENTS {
            let what = What::Client(client);
            if let Some(home) = &home {
                self.add(machine, what, &home.join(path))?;
            }
            if let (Some(config), Ok(rest)) = (&config, Path::new(path).strip_prefix(".config")) {
                self.add(machine, what, &config.join(rest))?;
            }
        }
        for &(client, path) in MANAGED {
            self.add(machine, What::Client(client), Path::new(path))?;
        }
        for path in PROJECT {
            self.add(machine, What::Project, &machine.directory().join(path))?;
        }
        Ok(())
    }

    /// Passes a root, a path without links, that reaches none of these.
    ///
    /// # Errors
    /// Names the root and the asset.
    pub(crate) fn check(
        &self,
        machine: &impl Machine,
        root: &Path,
        writes: bool,
    ) -> Result<(), Reaches> {
        let reach = Reach::of(machine, root);
        for asset in self
            .0
            .iter()
            .filter(|asset| writes || asset.what.is_secret())
        {
            let is_on_the_way = writes && reach.has_on(&asset.way);
            let how = if reach.has(&asset.way.place) || is_on_the_way {
                "contains"
            } else if asset.way.place.contains(&reach.own) {
                "lies in"
            } else {
                continue;
            };
            return Err(asset.reached_by(root, how));
        }
        match writes {
            true => check_project(machine, root),
            false => Ok(()),
        }
    }
}

/// A project that is written to as a whole must not hold a client's
/// configuration, and where one belongs nothing is written.
fn check_project(machine: &impl Machine, root: &Path) -> Result<(), Reaches> {
    let mut found = PROJECT.iter().map(|path| root.join(path));
    let found = found.find(|path| machine.identify(path).is_ok());
    let (how, asset) = match (found, belonging(root)) {
        (Some(asset), _) => ("contains", asset),
        (None, Some(asset)) => ("is the place of", asset),
        (None, None) => return Ok(()),
    };
    Err(Reaches {
        root: root.into(),
        how,
        what: What::Project,
        asset,
    })
}

/// The configuration of a project that belongs at `root`, or right below it.
fn belonging(root: &Path) -> Option<PathBuf> {
    PROJECT.iter().map(Path::new).find_map(|path| {
        let places = path.ancestors().filter(|place| *place != Path::new(""));
        let place = places.into_iter().find(|place| root.ends_with(place))?;
        // What is left of the path when it is the whole of it is nothing.
        match path.strip_prefix(place) {
            Ok(rest) if rest != Path::new("") => Some(root.join(rest)),
            _ => Some(root.to_owned()),
        }
    })
}

impl Asset {
    fn reached_by(&self, root: &Path, how: &'static str) -> Reaches {
        Reaches {
            root: root.into(),
            how,
            what: self.what,
            asset: self.way.named.clone(),
        }
    }
}

impl Way {
    /// Follows `path` as far as it exists.
    ///
    /// # Errors
    /// When it has no end.
    pub(super) fn follow(machine: &impl Machine, path: &Path) -> io::Result<Self> {
        let mut links = Vec::new();
        let place = follow(machine, path, &mut links)?;
        Ok(Self {
            named: path.into(),
            place: Place::at(machine, place),
            links: links
                .into_iter()
                .map(|link| Place::beside(machine, link))
                .collect(),
        })
    }
}

impl Way {
    pub(super) fn end(&self) -> &Path {
        &self.place.path
    }
}

impl Reach {
    pub(super) fn of(machine: &impl Machine, root: &Path) -> Self {
        let mounts = machine.mounts().iter();
        let beneath = mounts.filter(|mount| mount.starts_with(root) && mount.as_path() != root);
        Self {
            own: Place::at(machine, root.into()),
            mounted: beneath
                .map(|mount| Place::at(machine, mount.clone()))
                .collect(),
        }
    }

    /// Whether whoever may write there may lead `way` elsewhere.
    pub(super) fn has_link_on(&self, way: &Way) -> bool {
        way.links.iter().any(|link| self.has(link))
    }

    /// Whether whoever may write there says where `way` leads, or what stands
    /// at its end.
    pub(super) fn has_on(&self, way: &Way) -> bool {
        self.has(&way.place) || self.has_link_on(way)
    }

    fn has(&self, place: &Place) -> bool {
        self.own.contains(place) || self.mounted.iter().any(|mount| mount.is_around(place))
    }
}

impl Place {
    fn at(machine: &impl Machine, path: PathBuf) -> Self {
        let identify = |path: &Path| machine.identify(path).ok().map(|(id, _)| id);
        Self {
            id: identify(&path),
            ids: path.ancestors().filter_map(identify).collect(),
            path,
        }
    }

    /// Of a link, which would be followed if it were looked at itself.
    fn beside(machine: &impl Machine, link: PathBuf) -> Self {
        let parent = link.parent().unwrap_or(&link).to_owned();
        Self {
            path: link,
            id: None,
            ids: Self::at(machine, parent).ids,
        }
    }

    /// Whether the other is this or beneath it.
    fn contains(&self, other: &Self) -> bool {
        other.path.starts_with(&self.path) || self.is_around(other)
    }

    /// The same by objects alone.
    fn is_around(&self, other: &Self) -> bool {
        self.id.is_some_and(|id| other.ids.contains(&id))
    }
}

impl What {
    /// Whether it is kept from readers too.
    fn is_secret(self) -> bool {
        !matches!(self, Self::Executable | Self::Project)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SigningKey => "the signing key",
            Self::Audit => "the audit path",
            Self::Policy => "the policy",
            Self::Bindings => "the bindings",
            Self::Pins => "the pins",
            Self::Envelopes => "the envelopes",
            Self::Cache => "the cache",
            Self::Socket => "the socket directory",
            Self::Executable => "the folder of aegis itself",
            Self::Client(client) => return write!(f, "the configuration of {client}"),
            Self::Project => "a project's MCP configuration",
        })
    }
}

/// Follows `path` as far as it exists, noting where links stand. What does not
/// exist yet is taken as it is written.
fn follow(machine: &impl Machine, path: &Path, links: &mut Vec<PathBuf>) -> io::Result<PathBuf> {
    let absolute = machine.directory().join(path);
    let mut todo = names(&absolute);
    let mut done = PathBuf::from("/");
    while let Some(name) = todo.pop() {
        if name == Path::new("..") {
            done.pop();
            continue;
        }
        done.push(&name);
        let Ok(target) = machine.read_link(&done) else {
            continue;
        };
        if links.len() == MAX_LINKS {
            return Err(rustix::io::Errno::LOOP.into());
        }
        links.push(done.clone());
        done.pop();
        if target.is_absolute() {
            done = "/".into();
        }
        todo.extend(names(&target));
    }
    Ok(done)
}

/// The names of a path, last first.
fn names(path: &Path) -> Vec<PathBuf> {
    path.components()
        .rev()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().into())
        .collect()
}

/// How many links the kernel follows on one way (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// Where MCP clients keep what they start, below the home directory.
const CLIENTS: &[(&str, &str)] = &[
    ("Claude Desktop", ".config/Claude"),
    ("Claude Desktop", "Library/Application Support/Claude"),
    ("Claude Code", ".claude.json"),
    ("Claude Code", ".claude"),
    ("Cursor", ".cursor/mcp.json"),
    ("Cursor", ".config/Cursor/User"),
    ("VS Code", ".config/Code/User"),
    ("VS Code", ".config/Code - Insiders/User"),
    ("VS Code", ".config/VSCodium/User"),
    ("VS Code", ".vscode-server/data/User"),
    ("VS Code", ".vscode-server-insiders/data/User"),
    ("VS Code", "Library/Application Support/Code/User"),
    ("Windsurf", ".codeium/windsurf"),
    ("Windsurf", ".config/Windsurf/User"),
    ("Codex", ".codex"),
    ("Gemini CLI", ".gemini"),
    ("Copilot CLI", ".copilot"),
    ("Amazon Q", ".aws/amazonq"),
    ("Kiro", ".kiro/settings"),
    ("Continue", ".continue"),
    ("LM Studio", ".lmstudio/mcp.json"),
    ("Goose", ".config/goose"),
    ("opencode", ".config/opencode"),
    ("Zed", ".config/zed"),
];

/// The same for all users of a machine.
const MANAGED: &[(&str, &str)] = &[("Claude Code", "/etc/claude-code")];

/// The same in a project.
const PROJECT: &[&str] = &[
    ".mcp.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".amazonq/mcp.json",
    ".kiro/settings/mcp.json",
    ".roo/mcp.json",
    "opencode.json",
    "opencode.jsonc",
];

#[cfg(test)]
mod tests;
