//! Descriptors that were inherited: each walks past every rule of paths.

use std::fs;
use std::io;

use nix::errno::Errno;

/// Closes all but the standard streams. To be called before anything is
/// opened.
///
/// # Errors
/// When they cannot be listed, or one does not close.
pub(super) fn close_inherited() -> io::Result<()> {
    let mut open = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse::<i32>().ok());
        open.push(number.ok_or(io::ErrorKind::InvalidData)?);
    }
    for number in open.into_iter().filter(|&number| number > STANDARD_ERROR) {
        match nix::unistd::close(number) {
            // The one that the list was read from is closed already.
            Ok(()) | Err(Errno::EBADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

const STANDARD_ERROR: i32 = 2;
