//! Classic BPF as the kernel runs it on a system call: the instructions that
//! seccomp takes and these programs use (kernel/seccomp.c, net/core/filter.c).

use seccompiler::sock_filter;

use super::super::{Arch, Filters};

/// `struct seccomp_data`, less the instruction pointer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    pub(super) nr: u32,
    pub(super) arch: u32,
    pub(super) args: [u64; 6],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    // In the order of strictness.
    Kill,
    Errno(u32),
    Allow,
}

pub(super) const AUDIT_X86_64: u32 = 0xc000_003e;
pub(super) const AUDIT_AARCH64: u32 = 0xc000_00b7;
pub(super) const AUDIT_I386: u32 = 0x4000_0003;
pub(super) const AUDIT_ARM: u32 = 0x4000_0028;

pub(super) fn audit(arch: Arch) -> u32 {
    match arch {
        Arch::X86_64 => AUDIT_X86_64,
        Arch::Aarch64 => AUDIT_AARCH64,
    }
}

impl Made {
    pub(super) fn new(arch: Arch, nr: u32, args: &[u64]) -> Self {
        let mut all = [0; 6];
        all[..args.len()].copy_from_slice(args);
        Self {
            nr,
            arch: audit(arch),
            args: all,
        }
    }

    /// The 32-bit word at `offset`; both architectures are little-endian.
    fn word(&self, offset: u32) -> u32 {
        assert_eq!(offset % 4, 0, "an unaligned load");
        match offset {
            0 => self.nr,
            4 => self.arch,
            8 | 12 => panic!("nothing should depend on the instruction pointer"),
            16..64 => {
                let argument = self.args[(offset as usize - 16) / 8];
                let shift = (offset % 8) * 8;
                u32::try_from(argument >> shift & 0xffff_ffff).unwrap()
            }
            _ => panic!("a load beyond seccomp_data: {offset}"),
        }
    }
}

/// What the kernel decides: the strictest verdict of all programs.
pub(super) fn decide(filters: &Filters, made: &Made) -> Verdict {
    let programs = filters.programs.iter();
    programs
        .map(|(_, program)| run(program, made))
        .min()
        .unwrap()
}

pub(super) fn run(program: &[sock_filter], made: &Made) -> Verdict {
    let mut accumulator = 0_u32;
    let mut at = 0_usize;
    loop {
        let sock_filter { code, jt, jf, k } = program[at].clone();
        at += 1;
        let mut branch = |condition: bool| at += usize::from(if condition { jt } else { jf });
        match code {
            0x20 => accumulator = made.word(k),   // ld [k]
            0x54 => accumulator &= k,             // and #k
            0x05 => at += k as usize,             // ja
            0x15 => branch(accumulator == k),     // jeq
            0x25 => branch(accumulator > k),      // jgt
            0x35 => branch(accumulator >= k),     // jge
            0x45 => branch(accumulator & k != 0), // jset
            0x06 => return verdict(k),            // ret
            other => panic!("instruction {other:#x} at {at}"),
        }
    }
}

fn verdict(value: u32) -> Verdict {
    match (value & 0xffff_0000, value & 0xffff) {
        (0x8000_0000, _) => Verdict::Kill,
        (0x0005_0000, errno) => Verdict::Errno(errno),
        (0x7fff_0000, 0) => Verdict::Allow,
        _ => panic!("the action {value:#x} is not one of ours"),
    }
}
