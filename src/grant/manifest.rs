//! What a tool needs, as data. A manifest grants nothing.

use std::path::PathBuf;

use crate::policy::set;

/// What a tool needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The tool.
    pub(crate) tool_id: String,
    /// Where relative paths begin.
    pub(crate) base: PathBuf,
    /// Paths; absent when the tool needs no file at all.
    pub(crate) fs: Option<FsNeeds>,
    /// Destinations; absent when the tool needs no network.
    pub(crate) net: Option<Vec<NetNeed>>,
    /// The bounds of one Call.
    pub(crate) limits: Limits,
}

/// Paths that a tool needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FsNeeds {
    /// To read.
    pub(crate) read: Vec<PathNeed>,
    /// To read and write.
    pub(crate) write: Vec<PathNeed>,
}

/// One path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathNeed {
    /// As it was written.
    pub(crate) path: PathBuf,
    /// Whether what lies beneath belongs to it.
    pub(crate) recursive: bool,
}

/// One destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetNeed {
    /// A host name, or a pattern where the operator may give one.
    pub(crate) host: String,
    /// Ports.
    pub(crate) ports: Vec<u16>,
    /// HTTP methods.
    pub(crate) methods: Vec<String>,
}

/// The bounds of one Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of memory.
    pub(crate) max_memory_bytes: u64,
    /// Milliseconds of wall-clock time.
    pub(crate) max_wall_ms: u64,
    /// Bytes of output.
    pub(crate) max_output_bytes: u64,
}

impl Manifest {
    /// Of a tool that needs nothing. Relative paths added to it begin at
    /// `base`.
    pub(crate) fn new(tool_id: String, base: PathBuf) -> Self {
        Self {
            tool_id,
            base,
            fs: None,
            net: None,
            limits: Limits::default(),
        }
    }

    /// Of a whole server that is confined: the paths and destinations that the
    /// operator names, relative ones from `base` on.
    pub(crate) fn of_server(
        base: PathBuf,
        read: &[PathBuf],
        write: &[PathBuf],
        net: Vec<NetNeed>,
    ) -> Self {
        let needs = |paths: &[PathBuf]| paths.iter().map(PathNeed::recursive).collect();
        let is_fs = !read.is_empty() || !write.is_empty();
        Self {
            fs: is_fs.then(|| FsNeeds {
                read: needs(read),
                write: needs(write),
            }),
            net: (!net.is_empty()).then_some(net),
            ..Self::new(SERVER.to_owned(), base)
        }
    }
}

impl PathNeed {
    /// A path and all beneath it.
    pub(crate) fn recursive(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            recursive: true,
        }
    }
}

impl Limits {
    /// The lower of these and a policy's: a ceiling never raises a limit.
    pub(super) fn lowered(self, ceilings: set::Limits) -> Self {
        let lower = |own: u64, ceiling: Option<u64>| ceiling.map_or(own, |c| own.min(c));
        Self {
            max_memory_bytes: lower(self.max_memory_bytes, ceilings.max_memory_bytes),
            max_wall_ms: lower(self.max_wall_ms, ceilings.max_wall_ms),
            max_output_bytes: lower(self.max_output_bytes, ceilings.max_output_bytes),
        }
    }

    /// Each with the name that a Line gives it.
    pub(super) fn named(self) -> [(&'static str, u64); 3] {
        [
            ("max_memory_bytes", self.max_memory_bytes),
            ("max_wall_ms", self.max_wall_ms),
            ("max_output_bytes", self.max_output_bytes),
        ]
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_memory_bytes: 64 * 1024 * 1024,
            max_wall_ms: 30_000,
            max_output_bytes: 1024 * 1024,
        }
    }
}

/// The tool that a confined server's Grant is for.
const SERVER: &str = "wrap-child";
