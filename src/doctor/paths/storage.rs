//! Where a record is kept: whether what is written there stays.

use std::path::Path;

use crate::doctor::finding::{Cure, Finding, Id, Status};
use crate::wire::escape::EscapedPath;

/// Of the file system that `directory` is on.
pub(super) fn finding(directory: &Path) -> Finding {
    match rustix::fs::statfs(directory) {
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_bsize as u64);
            judge(directory, found.f_type as u64 & 0xffff_ffff, free)
        }
        Err(error) => super::unseen(Id::AuditStorage, directory, &error.into()),
    }
}

fn judge(directory: &Path, magic: u64, free_bytes: u64) -> Finding {
    let known = KINDS.iter().find(|(number, ..)| *number == magic);
    let (name, nature) = known.map_or((None, Nature::Disk), |(_, name, nature)| {
        (Some(*name), *nature)
    });
    let name = name.map_or_else(|| format!("file system {magic:#x}"), str::to_owned);
    let found = format!(
        "{name} at {}, {} MiB free",
        EscapedPath(directory),
        free_bytes >> 20
    );
    let (means, cure) = match nature {
        Nature::Disk => ("", ""),
        Nature::Network => (
            "locks and flushes are a server's matter: it may let two processes write one record, \
             and say that a Line is kept before it is",
            "record to a local disk, and copy records from there",
        ),
        Nature::Foreign => (
            "modes, locks and flushes are another system's matter, which may ignore them",
            "record to a file system of this machine's own",
        ),
        Nature::Layer => (
            "it is the layer of a container, and is removed with it",
            "record to a volume that is mounted into the container",
        ),
        Nature::Memory => (
            "it is kept in memory: nothing survives a restart",
            "record to a disk",
        ),
    };
    if !means.is_empty() {
        return Finding::new(Id::AuditStorage, Status::Limited, found, means)
            .cured(Cure::say(cure));
    }
    if free_bytes < LOW_BYTES {
        let means = "when it is full nothing can be recorded, and aegis wrap ends";
        return Finding::new(Id::AuditStorage, Status::Limited, found, means)
            .cured(Cure::say("make room, or record elsewhere"));
    }
    Finding::ok(
        Id::AuditStorage,
        found,
        "what is flushed there is kept as well as the disk keeps it",
    )
}

/// What a file system does with what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    Disk,
    Network,
    /// Of a host, or of a program.
    Foreign,
    Layer,
    Memory,
}

/// A Line is at most 64 KiB: room for a thousand.
const LOW_BYTES: u64 = 64 << 20;

/// By the numbers of statfs(2).
const KINDS: [(u64, &str, Nature); 19] = [
    (0xef53, "ext4", Nature::Disk),
    (0x5846_5342, "xfs", Nature::Disk),
    (0x9123_683e, "btrfs", Nature::Disk),
    (0x2fc1_2fc1, "zfs", Nature::Disk),
    (0xf2f5_2010, "f2fs", Nature::Disk),
    (0xca45_1a4e, "bcachefs", Nature::Disk),
    (0x6969, "nfs", Nature::Network),
    (0xff53_4d42, "cifs", Nature::Network),
    (0xfe53_4d42, "smb", Nature::Network),
    (0x517b, "smb", Nature::Network),
    (0x00c3_6400, "ceph", Nature::Network),
    (0x5346_414f, "afs", Nature::Network),
    (0x0102_1997, "9p", Nature::Foreign),
    (0x6573_5546, "fuse", Nature::Foreign),
    (0x786f_4256, "vboxsf", Nature::Foreign),
    (0x4d44, "vfat", Nature::Foreign),
    (0x794c_7630, "overlay", Nature::Layer),
    (0x0102_1994, "tmpfs", Nature::Memory),
    (0x8584_58f6, "ramfs", Nature::Memory),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_keep_a_record_is_told_from_what_does() {
        let status = |magic, free| judge(Path::new("/r"), magic, free).status;
        for (magic, expected) in [
            (0xef53, Status::Ok),
            (0x1234_5678, Status::Ok),
            (0x6969, Status::Limited),
            (0xff53_4d42, Status::Limited),
            (0x0102_1997, Status::Limited),
            (0x794c_7630, Status::Limited),
            (0x0102_1994, Status::Limited),
        ] {
            assert_eq!(status(magic, LOW_BYTES), expected, "{magic:x}");
        }
        assert_eq!(status(0xef53, LOW_BYTES - 1), Status::Limited);
        for (at, (number, ..)) in KINDS.iter().enumerate() {
            assert!(KINDS[..at].iter().all(|(other, ..)| other != number));
        }
    }

    #[test]
    fn the_file_system_of_proc_is_no_place_for_a_record() {
        // Nothing is ever free on it.
        assert_eq!(finding(Path::new("/proc")).status, Status::Limited);
    }
}
