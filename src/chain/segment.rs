//! A Segment of its own in an audit directory (SPEC §7.2).
//!
//! A start takes the directory's lock twice and holds it shortly:
//!
//! 1. With the lock, it makes a temporary file, whose own lock it keeps from
//!    then on, and claims Segments that have ended and that nothing follows,
//!    by taking their locks.
//! 2. Without, it flushes these and reads what they end with; the Writer
//!    writes and flushes the `open` Line that names them.
//! 3. With the lock again, it renames the file in, syncs the directory and
//!    notes in the index what is followed now. Only then it lets go of what
//!    it claimed.
//!
//! Nobody ever sees a Segment without a lock whose writer lives, and nobody
//! claims a Segment twice: until it is followed it is locked. A start that is
//! killed leaves a temporary file at most, which the next one removes.

mod claim;
mod dir;
mod index;

use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::io::Errno;
use thiserror::Error;

use self::claim::{Claim, Tail};
use self::dir::{AuditDir, Locked, TEMPORARY_PREFIX};
use self::index::Index;
use super::directory;
use super::file::FileSink;
use super::name::{RANDOM_BYTES, SUFFIX, segment_name};
use crate::wire::escape::EscapedPath;
use crate::wire::facts::Follows;
use crate::wire::time::Timestamp;

/// A Segment that nobody can see yet.
pub(crate) struct Prepared {
    /// Where its Session goes.
    pub(crate) sink: FileSink,
    /// What its `open` Line has to name.
    pub(crate) follows: Vec<Follows>,
    /// What has to be published once that Line is written and flushed.
    pub(crate) hidden: Hidden,
}

/// Makes a Segment in the audit directory at `path`, which is made (mode 0700)
/// with its parents as far as it is missing.
///
/// # Errors
/// When the directory cannot be used, or others could change what is in it.
/// What else is in the directory, readable or not, is never a reason.
pub(crate) fn prepare(path: &Path) -> Result<Prepared, SegmentError> {
    let dir = AuditDir::open(path)?;
    let failed = |error| SegmentError::Io {
        path: path.into(),
        error,
    };
    let (name, file, index, claims, is_first) = {
        let locked = dir.lock(dir::LOCK_WAIT)?;
        let entries = locked.entries().map_err(failed)?;
        locked.remove_stale(&entries.temporaries);
        let name = new_name(&locked).map_err(SegmentError::Random)?;
        let file = locked.create(&temporary(&name)).map_err(failed)?;
        let mut index = Index::load(&locked);
        let claims = claim_ended(&locked, &mut index, &entries.segments);
        (name, file, index, claims, entries.segments.is_empty())
    };
    let mut hidden = Hidden {
        name,
        dir,
        index,
        claims: Vec::new(),
        unusable: Vec::new(),
        is_published: false,
    };
    if is_first {
        // Whoever made the directory may not have come so far. As soon as one
        // Segment can be seen, this was done.
        directory::sync_ancestors(path).map_err(failed)?;
    }
    let mut walk = claim::WALK_BYTES;
    let mut follows = Vec::new();
    for claim in claims {
        match claim.tail(&mut walk) {
            Tail::Line(tail) => {
                follows.push(Follows {
                    segment: claim.name().to_owned(),
                    tail,
                });
                hidden.claims.push(claim);
            }
            Tail::Unknown => hidden.unusable.push(claim.name().to_owned()),
            Tail::Unread => {}
        }
    }
    Ok(Prepared {
        sink: FileSink::of_new(file, path.join(&hidden.name)),
        follows,
        hidden,
    })
}

/// Segments that have ended and that no other one follows, claimed.
fn claim_ended(locked: &Locked<'_>, index: &mut Index, segments: &[String]) -> Vec<Claim> {
    let is_whole = index.bring_up_to(segments, |name| {
        claim::read_open(&locked.open_regular(name).ok()?)
    });
    index.save(locked);
    if !is_whole {
        // One that was not looked at may follow any of the others.
        return Vec::new();
    }
    index
        .unfollowed()
        .take(MAX_TRIED)
        .filter_map(|name| Claim::take(locked, name))
        .take(MAX_FOLLOWS)
        .collect()
}

/// A Segment under its temporary name; it vanishes unless it is published.
pub(crate) struct Hidden {
    dir: AuditDir,
    name: String,
    index: Index,
    claims: Vec<Claim>,
    /// What was claimed and ends with nothing that could be named.
    unusable: Vec<String>,
    is_published: bool,
}

impl Hidden {
    /// Has the Segment appear under its name, for good.
    ///
    /// # Errors
    /// When it did not, or may not outlive a power cut.
    pub(crate) fn publish(mut self) -> Result<(), SegmentError> {
        let locked = self.dir.lock(dir::LOCK_WAIT)?;
        locked
            .rename_in(&temporary(&self.name), &self.name)
            .map_err(|error| match error.raw_os_error() {
                Some(code) if code == Errno::EXIST.raw_os_error() => {
                    SegmentError::NameTaken(self.dir.path().join(&self.name))
                }
                _ => self.dir.failed(error),
            })?;
        self.is_published = true;
        locked.sync().map_err(|error| self.dir.failed(error))?;
        // Others may have started meanwhile.
        let mut index = mem::take(&mut self.index).reload(&locked);
        index.add(&self.name, self.claims.iter().map(Claim::name));
        index.set_aside(&self.unusable);
        index.save(&locked);
        Ok(())
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if !self.is_published {
            self.dir.remove(&temporary(&self.name));
        }
    }
}

/// Why there is no Segment.
#[derive(Debug, Error)]
pub(crate) enum SegmentError {
    /// The system refused something.
    #[error("audit directory {}: {error}", EscapedPath(path))]
    Io {
        /// Which directory.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// Something else has that name.
    #[error(
        "audit directory {} is not a directory\n\
         name another one, or leave off the `/` to record to a file", EscapedPath(.0)
    )]
    NotADirectory(PathBuf),
    /// Others could remove Segments, or put theirs in.
    #[error(
        "audit directory {} can be changed by other users (mode {mode:04o})\n\
         take that from them (`chmod go-w`), or name another one",
        EscapedPath(path)
    )]
    Shared {
        /// Which directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Its owner could do that.
    #[error(
        "audit directory {} belongs to user {uid}\nname one of your own",
        EscapedPath(path)
    )]
    Owner {
        /// Which directory.
        path: PathBuf,
        /// Whose it is.
        uid: u32,
    },
    /// It has no lock that could be taken.
    #[error(
        "audit directory {} cannot be locked: {error}\nname one on a local file system",
        EscapedPath(path)
    )]
    NoLock {
        /// Which directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Another process kept the directory's lock.
    #[error(
        "audit directory {} stayed locked by another process for {} s\n\
         end the one that hangs (`lslocks` names it), or name another directory",
        EscapedPath(.0), dir::LOCK_WAIT.as_secs()
    )]
    Busy(PathBuf),
    /// Somebody else made a file of the new Segment's name.
    #[error("audit segment {} is there already\ntry again", EscapedPath(.0))]
    NameTaken(PathBuf),
    /// The system gave no random bytes.
    #[error("no random bytes from the system: {0}")]
    Random(getrandom::Error),
}

/// A name that nothing in the directory has.
fn new_name(locked: &Locked<'_>) -> Result<String, getrandom::Error> {
    loop {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random)?;
        let now = Timestamp::of(SystemTime::now());
        let name = segment_name(now, std::process::id(), random);
        if !locked.has(&name) && !locked.has(&temporary(&name)) {
            return Ok(name);
        }
    }
}

fn temporary(name: &str) -> String {
    format!("{TEMPORARY_PREFIX}{}", name.trim_end_matches(SUFFIX))
}

/// How many Segments an `open` Line names (SPEC §7.2).
pub(crate) const MAX_FOLLOWS: usize = 64;

/// How many unfollowed Segments, most of them of live processes, are tried for
/// those that have ended.
const MAX_TRIED: usize = 1024;

#[cfg(test)]
mod tests;
