//! Of an ELF program, the one thing that confinement has to know: which
//! loader it asks the kernel for (elf(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::machine::Machine;

/// What a file is to the kernel that is asked to execute it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Elf {
    /// Not ELF.
    No,
    /// It needs no loader.
    Static,
    /// It needs this one.
    Dynamic(PathBuf),
    /// Not for 64-bit little-endian machines, the only ones that seccomp
    /// filters here let run.
    Foreign,
    /// It says so and is not.
    Broken(&'static str),
}

/// Reads the headers of what `path` leads to, of which `head` is the
/// beginning.
pub(super) fn examine(machine: &impl Machine, path: &Path, head: &[u8]) -> std::io::Result<Elf> {
    if !head.starts_with(b"\x7fELF") {
        return Ok(Elf::No);
    }
    let Some(header) = head.first_chunk::<HEADER_BYTES>() else {
        return Ok(Elf::Broken("its header is cut off"));
    };
    if header[4] != CLASS_64 || header[5] != LITTLE_ENDIAN {
        return Ok(Elf::Foreign);
    }
    let offset = u64_at(header, 32);
    let entry_bytes = u16_at(header, 54);
    let entries = u16_at(header, 56);
    // The kernel's own bounds (fs/binfmt_elf.c, load_elf_phdrs).
    if usize::from(entry_bytes) != ENTRY_BYTES {
        return Ok(Elf::Broken("its program headers have an unknown size"));
    }
    let table_bytes = usize::from(entries) * ENTRY_BYTES;
    if entries == 0 || table_bytes > MAX_TABLE_BYTES {
        return Ok(Elf::Broken("it has no or too many program headers"));
    }
    let table = machine.read(path, offset, table_bytes)?;
    if table.len() < table_bytes {
        return Ok(Elf::Broken("its program headers are cut off"));
    }
    for entry in table.chunks_exact(ENTRY_BYTES) {
        if u32_at(entry, 0) == PT_INTERP {
            return loader(machine, path, u64_at(entry, 8), u64_at(entry, 32));
        }
    }
    Ok(Elf::Static)
}

fn loader(machine: &impl Machine, path: &Path, offset: u64, bytes: u64) -> std::io::Result<Elf> {
    let len = match usize::try_from(bytes) {
        Ok(len @ 2..=MAX_LOADER_BYTES) => len,
        _ => {
            return Ok(Elf::Broken(
                "the name of its loader has an impossible length",
            ));
        }
    };
    let mut name = machine.read(path, offset, len)?;
    if name.len() < len || name.pop() != Some(0) {
        return Ok(Elf::Broken("the name of its loader is cut off"));
    }
    // The kernel takes it up to the first NUL.
    let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
    name.truncate(end);
    if name.is_empty() {
        return Ok(Elf::Broken("the name of its loader is empty"));
    }
    Ok(Elf::Dynamic(OsString::from_vec(name).into()))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut out = [0; 8];
    out.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(out)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut out = [0; 4];
    out.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(out)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const PT_INTERP: u32 = 3;
const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 56;
const MAX_TABLE_BYTES: usize = 65_536;
/// PATH_MAX.
const MAX_LOADER_BYTES: usize = 4096;

#[cfg(test)]
pub(super) mod tests {
    use super::super::machine::pretend::Pretend;
    use super::*;

    /// A program of `entries` headers, the last of which asks for `loader`.
    pub(in super::super) fn program(loader: Option<&str>) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&2_u16.to_le_bytes());
        let mut load = [0; ENTRY_BYTES];
        load[0] = 1;
        bytes.extend(load);
        let mut last = [0; ENTRY_BYTES];
        if let Some(loader) = loader {
            last[0] = 3;
            last[8..16].copy_from_slice(&176_u64.to_le_bytes());
            last[32..40].copy_from_slice(&(loader.len() as u64 + 1).to_le_bytes());
        }
        bytes.extend(last);
        bytes.extend(loader.unwrap_or_default().as_bytes());
        bytes.push(0);
        bytes
    }

    fn of(bytes: &[u8]) -> Elf {
        let mut machine = Pretend::new();
        machine.program("/p", bytes);
        examine(&machine, Path::new("/p"), &bytes[..bytes.len().min(256)]).unwrap()
    }

    #[test]
    fn the_loader_is_found() {
        assert_eq!(
            of(&program(Some("/lib/ld.so"))),
            Elf::Dynamic("/lib/ld.so".into())
        );
        assert_eq!(of(&program(None)), Elf::Static);
        assert_eq!(of(b"#!/bin/sh"), Elf::No);
        assert_eq!(of(b""), Elf::No);
        let mut narrow = program(None);
        narrow[4] = 1;
        assert_eq!(of(&narrow), Elf::Foreign);
    }

    #[test]
    fn this_very_program_is_read() {
        let own = std::env::current_exe().unwrap();
        let here = super::super::machine::ThisMachine::look().unwrap();
        let head = here.read(&own, 0, 256).unwrap();
        match examine(&here, &own, &head).unwrap() {
            Elf::Dynamic(loader) => assert!(loader.exists(), "{loader:?}"),
            Elf::Static => {}
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn cut_anywhere_it_is_broken_and_nothing_worse() {
        let whole = program(Some("/lib/ld.so"));
        for len in 4..whole.len() {
            let cut = of(&whole[..len]);
            assert!(matches!(cut, Elf::Broken(_)), "{len}: {cut:?}");
        }
    }

    #[test]
    fn bounds_hold_at_the_bound_and_one_past_it() {
        let at = "x".repeat(MAX_LOADER_BYTES - 1);
        assert_eq!(of(&program(Some(&at))), Elf::Dynamic(at.clone().into()));
        assert!(matches!(of(&program(Some(&(at + "x")))), Elf::Broken(_)));
        assert!(matches!(of(&program(Some(""))), Elf::Broken(_)));

        let most = u16::try_from(MAX_TABLE_BYTES / ENTRY_BYTES).unwrap();
        let mut many = program(None);
        many.resize(HEADER_BYTES + ENTRY_BYTES * usize::from(most + 1), 0);
        many[56..58].copy_from_slice(&most.to_le_bytes());
        assert_eq!(of(&many), Elf::Static);
        many[56..58].copy_from_slice(&(most + 1).to_le_bytes());
        assert!(matches!(of(&many), Elf::Broken(_)));
    }

    #[test]
    fn offsets_beyond_the_file_are_broken() {
        for offset in [u64::MAX, u64::MAX - 8, 1 << 40] {
            let mut elf = program(Some("/l"));
            elf[32..40].copy_from_slice(&offset.to_le_bytes());
            assert!(matches!(of(&elf), Elf::Broken(_)), "table at {offset}");
            let mut elf = program(Some("/l"));
            let at = HEADER_BYTES + ENTRY_BYTES + 8;
            elf[at..at + 8].copy_from_slice(&offset.to_le_bytes());
            assert!(matches!(of(&elf), Elf::Broken(_)), "loader at {offset}");
        }
    }
}
