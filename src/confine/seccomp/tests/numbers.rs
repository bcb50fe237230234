//! The numbers of system calls against the headers of the C library, where
//! they are installed. The generic header is the one of aarch64.

use std::collections::BTreeMap;
use std::fs;

use super::super::Arch;
use super::super::calls::{self, Call};

const X86_64_HEADER: &str = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h";
const GENERIC_HEADER: &str = "/usr/include/asm-generic/unistd.h";

#[test]
fn numbers_are_those_of_the_headers() {
    for (arch, header) in [
        (Arch::X86_64, X86_64_HEADER),
        (Arch::Aarch64, GENERIC_HEADER),
    ] {
        let Ok(text) = fs::read_to_string(header) else {
            super::skipped(&format!("{header} is not here to compare with"));
            continue;
        };
        let known = numbers(&text);
        let newest = known.values().max().copied().unwrap();
        let mut compared = 0;
        for call in all() {
            let number = call.number(arch);
            match known.get(call.name) {
                Some(found) => {
                    assert_eq!(number, Some(*found), "{} on {arch:?}", call.name);
                    compared += 1;
                }
                // Calls that the architecture has not, and ones that are
                // newer than the header.
                None => assert!(
                    number.is_none_or(|number| number > newest),
                    "{} is not in {header}",
                    call.name
                ),
            }
        }
        assert!(compared > 80, "only {compared} were compared");
    }
}

/// Newer than most headers: the numbers from 424 on are one table, so a slip
/// would show as two calls of one number.
#[test]
fn no_number_is_given_twice() {
    for arch in super::ARCHES {
        let mut seen = BTreeMap::new();
        for call in all() {
            let Some(number) = call.number(arch) else {
                continue;
            };
            assert!(number <= calls::NEWEST_NUMBER, "{}", call.name);
            let before = seen.insert(number, call.name);
            assert_eq!(before, None, "{} on {arch:?}", call.name);
        }
    }
}

pub(super) fn all() -> Vec<Call> {
    let whole = calls::DENIED.iter().flat_map(|group| group.calls).copied();
    let argued = [
        calls::CLONE,
        calls::CLONE3,
        calls::CREAT,
        calls::FCHMOD,
        calls::FUTIMESAT,
        calls::IOCTL,
        calls::MKNOD,
        calls::MKNODAT,
        calls::OPEN,
        calls::OPENAT,
        calls::OPENAT2,
        calls::PERSONALITY,
        calls::PRLIMIT64,
        calls::SENDMMSG,
        calls::SENDMSG,
        calls::SENDTO,
        calls::SETPRIORITY,
        calls::SETRLIMIT,
        calls::SOCKET,
        calls::SOCKETPAIR,
        calls::UTIMENSAT,
    ];
    let metadata = calls::METADATA.calls.iter().copied();
    whole.chain(metadata).chain(argued).collect()
}

/// `#define __NR_name 12` of a header.
fn numbers(header: &str) -> BTreeMap<String, u32> {
    let defined = header.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = (words.next() == Some("#define")).then(|| words.next())??;
        let number = words.next()?.parse().ok()?;
        Some((name.strip_prefix("__NR_")?.to_owned(), number))
    });
    // An alias of the table's end, no call.
    defined.filter(|(name, _)| name != "syscalls").collect()
}
