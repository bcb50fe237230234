//! `aegis policy`: the language as its users meet it.

use std::fs;
use std::path::Path;

use crate::exe::Aegis;

mod check;
mod errors;
mod explain;
mod files;
mod hash;

/// A directory with `document` as its `policy.yaml`.
fn with_policy(document: impl AsRef<[u8]>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("policy.yaml"), document).unwrap();
    dir
}

/// `aegis policy {verb}`, in `dir`.
fn policy(dir: &Path, verb: &str) -> Aegis {
    Aegis::new().args(["policy", verb]).dir(dir)
}
