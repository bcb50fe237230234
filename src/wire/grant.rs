//! The Grant as a Line records it (SPEC §5.3).

use serde::{Deserialize, Serialize};

/// The authority that a Call ran under. Recording one mints nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Unique within the emitter's resolver.
    pub grant_id: String,
    /// The tool that it was minted for.
    pub tool_id: String,
    /// File system roots; absent when none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<FsGrant>,
    /// Network destinations; absent when none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net: Option<NetGrant>,
    /// Bytes of linear memory and tables.
    pub max_memory_bytes: u64,
    /// Milliseconds of wall-clock time.
    pub max_wall_ms: u64,
    /// Bytes of output.
    pub max_output_bytes: u64,
}

impl Grant {
    /// The Grant that allows nothing, as an interposer records it, which mints
    /// no capability.
    pub fn deny_all(grant_id: String, tool_id: String) -> Self {
        Self {
            grant_id,
            tool_id,
            fs: None,
            net: None,
            max_memory_bytes: 0,
            max_wall_ms: 0,
            max_output_bytes: 0,
        }
    }
}

/// Canonical paths of preopened roots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsGrant {
    /// Roots that may be read.
    pub read_paths: Vec<String>,
    /// Roots that may be read and written.
    pub write_paths: Vec<String>,
}

/// HTTP destinations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetGrant {
    /// One entry a host.
    pub http: Vec<HttpGrant>,
}

/// One HTTP destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpGrant {
    /// Host name.
    pub host: String,
    /// Ports that may be dialled.
    pub ports: Vec<u16>,
    /// Request methods.
    pub methods: Vec<String>,
}
