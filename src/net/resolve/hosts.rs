//! The hosts file: addresses and the names they have (hosts(5)).

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::IpAddr;
use std::path::Path;

use super::MAX_ADDRESSES;
use super::conf::FileFault;
use crate::net::host::Name;

/// The addresses that the file at `path` has for `name`, IPv4 first, each
/// once, at most [`MAX_ADDRESSES`]. A file that is not there has none.
pub(super) fn read(path: &Path, name: &Name) -> Result<Vec<IpAddr>, FileFault> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    search(BufReader::new(file), name)
}

/// A line is an address in a spelling that std reads, then names. Any other
/// line says nothing: part of it must not be taken for the whole.
fn search(file: impl BufRead, name: &Name) -> Result<Vec<IpAddr>, FileFault> {
    let mut file = file.take(MAX_BYTES + 1);
    let mut found: Vec<IpAddr> = Vec::new();
    let mut line = Vec::new();
    // Lists of blocked hosts are long: the file is never held as a whole.
    while file.read_until(b'\n', &mut line)? > 0 {
        if file.limit() == 0 {
            return Err(FileFault::Large(MAX_BYTES));
        }
        if let Some(address) = address(&line, name)
            && !found.contains(&address)
            && found.len() < MAX_ADDRESSES
        {
            found.push(address);
        }
        line.clear();
    }
    found.sort_by_key(IpAddr::is_ipv6);
    Ok(found)
}

/// The address of a line that has `name`.
fn address(line: &[u8], name: &Name) -> Option<IpAddr> {
    let line = line.split(|byte| *byte == b'#').next()?;
    let mut words = str::from_utf8(line).ok()?.split_ascii_whitespace();
    let address = words.next()?;
    words
        .any(|word| word.eq_ignore_ascii_case(name.as_str()))
        .then(|| address.parse::<IpAddr>().ok())?
        .map(|address| address.to_canonical())
}

/// Of the file.
const MAX_BYTES: u64 = 16 << 20;

#[cfg(test)]
mod tests;
