//! Making a damaged record file appendable again (SPEC §14.4).
//!
//! A process that died in a write leaves half a row, a power cut also a hole
//! of zeros before rows that it kept. Recovery moves everything from the first
//! such row on into a file of its own. It repairs no more than that: a row
//! that can be read and contradicts the Chain was not left by an accident, and
//! taking it away would make a forgery look like one.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::directory;
use super::file::{FileError, Missing, open_locked};
use super::rows::{BadRow, Contradiction, LineKind, LinePlace, RawRow, RowsForward, is_blank};
use crate::wire::decode::{Name, Row};
use crate::wire::escape::{Escaped, EscapedPath};

/// Makes the record file at `path` appendable, under its writer's lock.
///
/// No byte of the record is lost, whenever the process dies: what is cut off
/// is durable elsewhere first.
///
/// # Errors
/// When the file cannot be locked, read or changed, or when it contradicts
/// itself, in which case nothing was changed.
pub(crate) fn recover(path: &Path) -> Result<Recovery, RecoverError> {
    let file = open_locked(path, Missing::Refuse)?;
    let failed = |error| RecoverError::Io {
        path: path.into(),
        error,
    };
    let what = match survey(path, &file)? {
        Survey::Whole { lines } => What::Nothing { lines },
        Survey::Unended { line } => {
            (&*file)
                .write_all(b"\n")
                .and_then(|()| file.sync_all())
                .map_err(failed)?;
            What::Ended { line }
        }
        Survey::Damaged(damage) => {
            let torn = move_out(path, &file, &damage).map_err(failed)?;
            What::Cut { damage, torn }
        }
    };
    Ok(Recovery {
        path: path.into(),
        what,
    })
}

/// What recovery did, told by its `Display`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recovery {
    path: PathBuf,
    what: What,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    Nothing { lines: u64 },
    Ended { line: u64 },
    Cut { damage: Damage, torn: PathBuf },
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = EscapedPath(&self.path);
        match &self.what {
            What::Nothing { lines } => {
                write!(f, "{path} can be appended to as it is ({lines} lines)")
            }
            What::Ended { line } => write!(
                f,
                "{path}: line {line} lacked nothing but its newline, which was added"
            ),
            What::Cut { damage, torn } => {
                write!(
                    f,
                    "{path}: cut at line {}; {} bytes in {} rows were moved to {}\n\
                     readable among them: ",
                    damage.line,
                    damage.bytes,
                    damage.rows,
                    EscapedPath(torn)
                )?;
                damage.intents.fmt_as("intents", f)?;
                f.write_str(", ")?;
                damage.outcomes.fmt_as("outcomes", f)
            }
        }
    }
}

/// Why a record file was not recovered.
#[derive(Debug, Error)]
pub(crate) enum RecoverError {
    /// It could not be opened or locked.
    #[error("{0}")]
    Open(#[from] FileError),
    /// The system refused something on the way.
    #[error("recover {}: {error}\nnothing is lost; try again", EscapedPath(path))]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// A readable row is not what an emitter writes there.
    #[error(
        "recover {}: line {line} {why}\n\
         no interrupted write leaves that, so nothing was cut; keep the file as evidence and \
         record to another one",
        EscapedPath(path)
    )]
    Contradiction {
        /// Which file.
        path: PathBuf,
        /// Counted from 1, blank rows too.
        line: u64,
        /// How.
        why: Contradiction,
    },
    /// A Session was opened behind the damage.
    #[error(
        "recover {}: line {line} cannot be read, but line {open} opens a later session\n\
         what precedes a session is on the disk before it opens, so this was damaged afterwards \
         and nothing was cut; keep the file as evidence and record to another one",
        EscapedPath(path)
    )]
    LaterSession {
        /// Which file.
        path: PathBuf,
        /// The row, counted from 1, blank rows too.
        line: u64,
        /// The `open` Line.
        open: u64,
    },
    /// Its first row is not even the beginning of a Line.
    #[error(
        "recover {}: not a record of aegis; its first row is no line\ncheck the path", EscapedPath(.0)
    )]
    NotARecord(PathBuf),
}

/// What a file holds.
enum Survey {
    Whole {
        lines: u64,
    },
    /// All is well but for the newline of the last row.
    Unended {
        line: u64,
    },
    Damaged(Damage),
}

/// What is to be cut off.
#[derive(Debug, PartialEq, Eq)]
struct Damage {
    /// Where the first bad row starts.
    offset: u64,
    /// Its number.
    line: u64,
    /// From there to the end.
    bytes: u64,
    rows: u64,
    intents: Found,
    outcomes: Found,
}

/// Lines of one type, and the first few Calls that they are about.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    count: u64,
    call_ids: Vec<String>,
}

impl Found {
    fn add(&mut self, row: &RawRow<'_>) {
        self.count += 1;
        if self.call_ids.len() < MAX_NAMED
            && let Ok(row) = Row::read(row.bytes)
            && let Some(call_id) = row.string(Name::CallId)
        {
            self.call_ids.push(Escaped(&call_id).to_string());
        }
    }

    fn fmt_as(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {name}", self.count)?;
        if !self.call_ids.is_empty() {
            let more = if self.count > self.call_ids.len() as u64 {
                " …"
            } else {
                ""
            };
            write!(f, " ({}{more})", self.call_ids.join(" "))?;
        }
        Ok(())
    }
}

fn survey(path: &Path, file: &File) -> Result<Survey, RecoverError> {
    let failed = |error| RecoverError::Io {
        path: path.into(),
        error,
    };
    let mut rows = RowsForward::new(BufReader::with_capacity(BUFFER_BYTES, file));
    let (mut line, mut lines) = (0, 0);
    let mut before: Option<LinePlace> = None;
    while let Some(row) = rows.next().map_err(failed)? {
        line += 1;
        if !is_blank(row.bytes) || row.too_long {
            match LinePlace::of(&row).and_then(|place| check(place, before.as_ref())) {
                Ok(place) => before = Some(place),
                Err(BadRow::Contradiction(why)) => {
                    return Err(RecoverError::Contradiction {
                        path: path.into(),
                        line,
                        why,
                    });
                }
                Err(BadRow::Unreadable) if before.is_none() && !may_begin_a_line(row.bytes) => {
                    return Err(RecoverError::NotARecord(path.into()));
                }
                Err(BadRow::Unreadable) => {
                    let offset = row.offset;
                    return survey_damage(path, &mut rows, offset, line);
                }
            }
            lines += 1;
        }
        if !row.ended {
            return Ok(Survey::Unended { line });
        }
    }
    Ok(Survey::Whole { lines })
}

fn check(place: LinePlace, before: Option<&LinePlace>) -> Result<LinePlace, BadRow> {
    match before {
        Some(before) => place.check_after(before),
        None => place.check_first(),
    }
    .map_err(BadRow::Contradiction)?;
    Ok(place)
}

/// Whether these can be the first bytes of a Line, or a hole in its place.
fn may_begin_a_line(row: &[u8]) -> bool {
    row.first() == Some(&b'{') || row.iter().all(|&b| b == 0)
}

/// Looks through the rows behind the bad one at `offset`.
fn survey_damage(
    path: &Path,
    rows: &mut RowsForward<BufReader<&File>>,
    offset: u64,
    line: u64,
) -> Result<Survey, RecoverError> {
    let mut damage = Damage {
        offset,
        line,
        bytes: 0,
        rows: 1,
        intents: Found::default(),
        outcomes: Found::default(),
    };
    while let Some(row) = rows.next().map_err(|error| RecoverError::Io {
        path: path.into(),
        error,
    })? {
        let kind = LinePlace::of(&row).map(|place| place.kind);
        match kind {
            Ok(LineKind::Open) => {
                return Err(RecoverError::LaterSession {
                    path: path.into(),
                    line,
                    open: line + damage.rows,
                });
            }
            Ok(LineKind::Intent) => damage.intents.add(&row),
            Ok(LineKind::Outcome) => damage.outcomes.add(&row),
            _ => {}
        }
        damage.rows += 1;
    }
    damage.bytes = rows.offset() - offset;
    Ok(Survey::Damaged(damage))
}

/// Moves the damage to a file of its own and returns that file's path. Dying
/// on the way leaves the record whole, with or without a copy of its end.
fn move_out(path: &Path, file: &File, damage: &Damage) -> io::Result<PathBuf> {
    let (torn, piece) = create_piece(path)?;
    let copied = copy(file, &piece, damage).and_then(|()| {
        piece.sync_all()?;
        directory::sync(directory::parent_of(&torn))
    });
    if let Err(error) = copied {
        // Ours, and not whole: the record still has all that is in it.
        drop(fs::remove_file(&torn));
        return Err(error);
    }
    file.set_len(damage.offset)?;
    file.sync_all()?;
    Ok(torn)
}

fn copy(mut file: &File, mut piece: &File, damage: &Damage) -> io::Result<()> {
    file.seek(SeekFrom::Start(damage.offset))?;
    let copied = io::copy(&mut file.take(damage.bytes), &mut piece)?;
    if copied != damage.bytes || file.metadata()?.len() != damage.offset + damage.bytes {
        return Err(io::Error::other("the file changed while it was read"));
    }
    Ok(())
}

/// Makes `{path}.torn-{n}` with the first `n` from 1 that is free.
fn create_piece(path: &Path) -> io::Result<(PathBuf, File)> {
    for n in 1..=MAX_PIECES {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".torn-{n}"));
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&name)
        {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            piece => return Ok((name.into(), piece?)),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        format!("all names up to .torn-{MAX_PIECES} are taken; move those files away"),
    ))
}

/// How many Calls a report names, of each type of Line.
const MAX_NAMED: usize = 10;

/// How many pieces of one record are kept beside it.
const MAX_PIECES: u32 = 1_000;

/// How much of a file is read at once.
const BUFFER_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests;
