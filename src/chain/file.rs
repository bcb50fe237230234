//! Temporary.
use super::sink::{Retention, Sink};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use thiserror::Error;
pub(crate) struct Opened {
    pub(crate) sink: FileSink,
    pub(crate) tail: Option<crate::wire::digest::Digest<crate::wire::digest::Line>>,
}
#[derive(Debug, Error)]
#[error("audit file: {0}")]
pub(crate) struct FileError(#[from] io::Error);
pub(crate) struct FileSink(File);
pub(crate) fn open(path: &Path) -> Result<Opened, FileError> {
    let f = File::options().append(true).create(true).open(path)?;
    Ok(Opened {
        sink: FileSink(f),
        tail: None,
    })
}
impl Sink for FileSink {
    fn retention(&self) -> Retention {
        Retention::Durable
    }
    fn append(&self, row: &[u8]) -> io::Result<()> {
        (&self.0).write_all(row)
    }
    fn flush(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
