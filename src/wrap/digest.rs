//! The digest of a frame, for the few frames that need one.

use super::lane::Stop;
use crate::rpc::frame::Frame;
use crate::wire::digest::{Digest, Hasher, Meaning};

/// Computed when it is first asked for; a batch asks more than once.
pub(super) struct FrameDigest<'a, M> {
    frame: &'a Frame,
    known: Option<Digest<M>>,
}

impl<'a, M: Meaning> FrameDigest<'a, M> {
    pub(super) fn of(frame: &'a Frame) -> Self {
        Self { frame, known: None }
    }

    /// SHA-256 over the frame as it came, without its newline.
    pub(super) fn value(&mut self) -> Result<Digest<M>, Stop> {
        if let Some(known) = self.known {
            return Ok(known);
        }
        let mut hasher = Hasher::new();
        self.frame
            .hash_into(&mut |piece| hasher.update(piece))
            .map_err(Stop::Spool)?;
        Ok(*self.known.insert(hasher.finish()))
    }
}
