//! The file that a signing key lives in: one line, the seed in 64 lower-case
//! hexadecimal characters.
//!
//! Whoever reads the file can sign, and whoever can replace it chooses the
//! key, so its type, owner and mode are checked, and on the descriptor that is
//! then read: a check of the path could be about another file. For the same
//! reason loading follows symbolic links (mounted secrets are links), while
//! writing never does.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use thiserror::Error;
use zeroize::Zeroizing;

use super::directory;
use crate::sign::SigningKey;
use crate::wire::escape::EscapedPath;
use crate::wire::hex::{self, Hex, HexError};

/// Makes a new key and stores it at `path`, readable by its owner only, in
/// directories that are made as needed (mode 0700).
///
/// What exists at `path` stays as it is, unless `force` says to replace it,
/// and then only a regular file, and only once the new key is on disk.
///
/// # Errors
/// Nothing new is left at `path` when there is an error, with one exception:
/// after a replacement the directory may fail to sync, and the new key stays.
pub(crate) fn generate(path: &Path, force: bool) -> Result<SigningKey, KeyFileError> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(KeyFileError::Random)?;
    // Room for all of it: growing would leave a copy behind.
    let mut text = Zeroizing::new(Vec::with_capacity(HEX_LEN + 1));
    hex::push(&mut text, &*seed);
    text.push(b'\n');

    let parent = directory::parent_of(path);
    directory::make(parent).map_err(|error| io_error(path, error))?;
    if force {
        replace(path, parent, &text)?;
    } else {
        create(path, parent, &text).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => KeyFileError::Exists(path.into()),
            _ => io_error(path, error),
        })?;
    }
    Ok(SigningKey::from_seed(&seed))
}

/// Reads the key at `path`.
///
/// # Errors
/// When the file cannot be read, is not a regular file of the user or of root
/// that nobody else may read or write, or holds anything but a seed and at
/// most one line end.
pub(crate) fn load(path: &Path) -> Result<SigningKey, KeyFileError> {
    let mut file = reading().open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => KeyFileError::Missing(path.into()),
        _ => io_error(path, error),
    })?;
    let metadata = file.metadata().map_err(|error| io_error(path, error))?;
    if !metadata.is_file() {
        return Err(KeyFileError::NotAFile(path.into()));
    }
    check_access(path, &metadata)?;

    let mut buffer = Zeroizing::new([0; CONTENT_MAX + 1]);
    let length = read_up_to(&mut file, &mut *buffer).map_err(|error| io_error(path, error))?;
    let seed = parse(&buffer[..length]).map_err(|fault| KeyFileError::NotASeed {
        path: path.into(),
        fault,
    })?;
    Ok(SigningKey::from_seed(&seed))
}

/// Why a key file could not be made or used.
#[derive(Debug, Error)]
pub(crate) enum KeyFileError {
    #[error("no signing key at {}; generate one with `aegis keygen --out {}`", EscapedPath(.0), EscapedPath(.0))]
    Missing(PathBuf),

    #[error("signing key {} already exists; refusing to overwrite it without --force", EscapedPath(.0))]
    Exists(PathBuf),

    #[error(
        "signing key {} is not a regular file\n\
         --force replaces regular files only; remove it or choose another path",
        EscapedPath(.0)
    )]
    Irreplaceable(PathBuf),

    #[error("signing key {} is not a regular file\nname the file that holds the seed", EscapedPath(.0))]
    NotAFile(PathBuf),

    #[error(
        "signing key {} belongs to user id {owner}, who could replace it\n\
         chown it to the user that runs aegis",
        EscapedPath(path)
    )]
    ForeignOwner { path: PathBuf, owner: u32 },

    #[error(
        "signing key {} is readable beyond its owner (mode {mode:04o}); chmod 600 it",
        EscapedPath(path)
    )]
    Exposed { path: PathBuf, mode: u32 },

    #[error(
        "signing key {} is not a 64-character lowercase hex seed: {fault}",
        EscapedPath(path)
    )]
    NotASeed { path: PathBuf, fault: SeedFault },

    #[error("could not read 32 random bytes from the operating system: {0}")]
    Random(getrandom::Error),

    #[error("signing key {}: {error}", EscapedPath(path))]
    Io { path: PathBuf, error: io::Error },
}

/// What a key file holds instead of a seed.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum SeedFault {
    #[error("expected 64 characters, found {0}")]
    Length(usize),

    #[error("expected 64 characters, found more than {CONTENT_MAX}")]
    TooLong,

    #[error("expected lowercase hex, found '{}'", .0.escape_debug())]
    Character(char),

    #[error("expected lowercase hex, found byte 0x{0:02x}")]
    Byte(u8),
}

/// Stores `text` at `path`, where nothing may exist, not even a dangling link.
fn create(path: &Path, parent: &Path, text: &[u8]) -> io::Result<()> {
    let file = creating().open(path)?;
    fill(file, text)
        .and_then(|()| directory::sync(parent))
        .inspect_err(|_| discard(path))
}

/// Stores `text` beside `path` and renames it over `path`: at every moment
/// either key is there whole.
fn replace(path: &Path, parent: &Path, text: &[u8]) -> Result<(), KeyFileError> {
    // A rename would put the key where a link stands, not where it points, and
    // would take away a device or pipe that somebody else may have open.
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(KeyFileError::Irreplaceable(path.into()));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(io_error(path, error));
        }
        _ => {}
    }
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(KeyFileError::Random)?;
    let temporary = parent.join(format!(".aegis-key-{}.tmp", Hex(&random)));
    let file = creating()
        .open(&temporary)
        .map_err(|error| io_error(path, error))?;
    fill(file, text)
        .and_then(|()| fs::rename(&temporary, path))
        .inspect_err(|_| discard(&temporary))
        .and_then(|()| directory::sync(parent))
        .map_err(|error| io_error(path, error))
}

/// Writes `text` to a file just created, through to the disk.
fn fill(mut file: File, text: &[u8]) -> io::Result<()> {
    make_private(&file)?;
    file.write_all(text)?;
    file.sync_all()
}

/// Removes a file that could not be completed. The error that is reported is
/// the one that made it incomplete.
fn discard(path: &Path) {
    let _ = fs::remove_file(path);
}

/// Fills `buffer` from `file` as far as it goes, without a second buffer that
/// would hold the secret too.
fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

fn parse(content: &[u8]) -> Result<Zeroizing<[u8; 32]>, SeedFault> {
    if content.len() > CONTENT_MAX {
        return Err(SeedFault::TooLong);
    }
    let text = std::str::from_utf8(content)
        .map_err(|error| SeedFault::Byte(content[error.valid_up_to()]))?;
    let text = text
        .strip_suffix("\r\n")
        .or_else(|| text.strip_suffix('\n'))
        .unwrap_or(text);
    hex::parse(text)
        .map(Zeroizing::new)
        .map_err(|error| match error {
            HexError::Length { found, .. } => SeedFault::Length(found),
            HexError::Character(at) => {
                SeedFault::Character(text.chars().nth(at).unwrap_or_default())
            }
        })
}

fn io_error(path: &Path, error: io::Error) -> KeyFileError {
    KeyFileError::Io {
        path: path.into(),
        error,
    }
}

/// For a file that must not exist. The standard library adds O_CLOEXEC.
fn creating() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// For a file that may turn out to be a pipe, whose other end would
/// otherwise be waited for.
fn reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    options.read(true).custom_flags(flags.bits().cast_signed());
    options
}

/// Sets the mode that the umask may have narrowed to uselessness.
fn make_private(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o600))
}

fn check_access(path: &Path, metadata: &Metadata) -> Result<(), KeyFileError> {
    let owner = metadata.uid();
    if !trusted(owner, rustix::process::geteuid().as_raw()) {
        return Err(KeyFileError::ForeignOwner {
            path: path.into(),
            owner,
        });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Exposed {
            path: path.into(),
            mode,
        });
    }
    Ok(())
}

/// Whether a file of `owner` is under nobody's control but that of `user`:
/// root could replace it anyway.
fn trusted(owner: u32, user: u32) -> bool {
    owner == user || owner == 0
}

/// Characters of a seed.
const HEX_LEN: usize = 64;

/// Bytes of the longest content that is a key: the seed and a CR LF.
const CONTENT_MAX: usize = HEX_LEN + 2;

#[cfg(test)]
mod tests;
