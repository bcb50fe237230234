//! The same decisions, written a second time without tables, and compared
//! with the programs on random calls.

use proptest::prelude::*;

use super::super::{Arch, Metadata, Network, Plan};
use super::interpreter::{Made, Verdict, audit, decide};
use super::{built, plans};

/// Whole calls that are denied, by number: x86_64.
const X86_64: &[u32] = &[
    29, 30, 31, 64, 65, 66, 67, 68, 69, 70, 71, 101, 103, 142, 144, 153, 154, 155, 159, 161, 163,
    164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 175, 176, 179, 220, 227, 240, 241, 246, 248,
    249, 250, 251, 256, 272, 279, 298, 300, 303, 304, 305, 308, 310, 311, 312, 313, 314, 320, 321,
    323,
];
const AARCH64: &[u32] = &[
    30, 39, 40, 41, 51, 58, 60, 89, 97, 104, 105, 106, 112, 116, 117, 118, 119, 142, 161, 162, 170,
    171, 180, 181, 186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196, 197, 217, 218, 219, 224,
    225, 238, 239, 241, 262, 264, 265, 266, 268, 270, 271, 272, 273, 274, 280, 282, 294,
];
const COMMON: &[u32] = &[
    425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 440, 442, 443, 467,
];
const X86_64_METADATA: &[u32] = &[
    90, 92, 94, 132, 188, 189, 190, 197, 198, 199, 235, 260, 268, 452, 463, 466, 469,
];
const AARCH64_METADATA: &[u32] = &[5, 6, 7, 14, 15, 16, 53, 54, 452, 463, 466, 469];

fn expected(plan: &Plan, arch: Arch, made: &Made) -> Verdict {
    if made.arch != audit(arch) {
        return Verdict::Kill;
    }
    if made.nr > 469 || [435, 437].contains(&made.nr) {
        return Verdict::Errno(38);
    }
    let (whole, metadata) = match arch {
        Arch::X86_64 => (X86_64, X86_64_METADATA),
        Arch::Aarch64 => (AARCH64, AARCH64_METADATA),
    };
    let by_number = whole.contains(&made.nr)
        || COMMON.contains(&made.nr)
        || plan.metadata == Metadata::Denied && metadata.contains(&made.nr);
    if by_number || by_arguments(plan, arch, made) {
        return Verdict::Errno(1);
    }
    let int = |index: usize| made.args[index] as u32;
    match (arch, made.nr) {
        (Arch::X86_64, 160) | (Arch::Aarch64, 164) if int(0) == 4 => Verdict::Errno(0),
        (Arch::X86_64, 302) | (Arch::Aarch64, 261)
            if int(1) == 4 && made.args[2] != 0 && made.args[3] == 0 =>
        {
            Verdict::Errno(0)
        }
        _ => Verdict::Allow,
    }
}

/// Whether a mode has one of the bits that give an owner's rights away.
fn gives(mode: u32) -> bool {
    mode & 0o6000 != 0
}

fn makes(flags: u32) -> bool {
    flags & 0o20_000_100 != 0
}

fn by_arguments(plan: &Plan, arch: Arch, made: &Made) -> bool {
    let int = |index: usize| made.args[index] as u32;
    let name = match (arch, made.nr) {
        (Arch::X86_64, 56) | (Arch::Aarch64, 220) => "clone",
        (Arch::X86_64, 16) | (Arch::Aarch64, 29) => "ioctl",
        (Arch::X86_64, 41) | (Arch::Aarch64, 198) => "socket",
        (Arch::X86_64, 53) | (Arch::Aarch64, 199) => "socketpair",
        (Arch::X86_64, 44 | 307) | (Arch::Aarch64, 206 | 269) => "flags fourth",
        (Arch::X86_64, 46) | (Arch::Aarch64, 211) => "flags third",
        (Arch::X86_64, 302) | (Arch::Aarch64, 261) => "prlimit64",
        (Arch::X86_64, 141) | (Arch::Aarch64, 140) => "setpriority",
        (Arch::X86_64, 135) | (Arch::Aarch64, 92) => "personality",
        (Arch::X86_64, 261 | 280) | (Arch::Aarch64, 88) => "utimensat",
        (Arch::X86_64, 91) | (Arch::Aarch64, 52) => "fchmod",
        (Arch::X86_64, 85 | 90 | 133) => "mode second",
        (Arch::X86_64, 259 | 268) | (Arch::Aarch64, 33 | 53) | (_, 452) => "mode third",
        (Arch::X86_64, 2) => "open",
        (Arch::X86_64, 257) | (Arch::Aarch64, 56) => "openat",
        _ => return false,
    };
    match name {
        "fchmod" => gives(int(1)) || plan.metadata == Metadata::Denied && int(1) & 2 != 0,
        "mode second" => gives(int(1)),
        "mode third" => gives(int(2)),
        "open" => makes(int(1)) && gives(int(2)),
        "openat" => makes(int(2)) && gives(int(3)),
        "clone" => int(0) & 0x7e02_0000 != 0,
        "ioctl" => [0x5412, 0x541c, 0x541d, 0x5423].contains(&int(1)),
        "socket" => !may_socket(plan, int(0), int(1) % 16, int(2)),
        "socketpair" => int(0) != 1 || !plan.unix_sockets && ![1, 5].contains(&(int(1) % 16)),
        "flags fourth" => int(3) >> 29 & 1 == 1,
        "flags third" => int(2) >> 29 & 1 == 1,
        "prlimit64" => int(0) != 0 || int(1) == 4 && made.args[2] != 0 && made.args[3] != 0,
        "setpriority" => (int(0), int(1)) != (0, 0),
        "personality" => ![0, 0x40000, u32::MAX].contains(&int(0)),
        _ => plan.metadata == Metadata::Denied && made.args[1] != 0,
    }
}

fn may_socket(plan: &Plan, domain: u32, kind: u32, protocol: u32) -> bool {
    match (plan.network, domain, kind, protocol) {
        (_, 1, _, _) => plan.unix_sockets,
        (Network::Namespace, 16, _, 0) => true,
        (Network::Namespace | Network::PortOnly, 2 | 10, 1, 0 | 6) => true,
        (Network::Namespace, 2 | 10, 2, 0 | 17) => true,
        _ => false,
    }
}

/// Values that rules look for, others near them, and any.
fn argument() -> impl Strategy<Value = u64> {
    let known = prop::sample::select(vec![
        0,
        1,
        2,
        3,
        5,
        6,
        10,
        16,
        17,
        38,
        40,
        136,
        262,
        0x5401,
        0x5412,
        0x541c,
        0x541d,
        0x5423,
        0x40000,
        0x40008,
        0xffff_ffff,
        0x2000_0000,
        0x0200_0000,
        0x0002_0000,
        0x80801,
        0x80802,
        0x003d_0f00,
        0o4755,
        0o777,
        0o2000,
        0o101,
        0o20_200_001,
        4,
    ]);
    let bit = (0_u32..64).prop_map(|bit| 1_u64 << bit);
    // A known value with anything above the 32nd bit, or in the flags of a
    // socket type.
    let hidden = (known.clone(), 1_u64..=0xffff_ffff).prop_map(|(low, high)| high << 32 | low);
    let flagged = (known.clone(), any::<u64>()).prop_map(|(low, high)| low | high & !0xf);
    prop_oneof![6 => known, 2 => bit, 2 => hidden, 2 => flagged, 1 => any::<u64>()]
}

fn number() -> impl Strategy<Value = u32> {
    let argued = prop::sample::select(vec![
        16, 29, 41, 44, 46, 53, 56, 88, 92, 135, 140, 141, 198, 199, 206, 211, 220, 261, 269, 280,
        302, 307, 435, 2, 52, 56, 33, 85, 90, 91, 133, 160, 164, 257, 259, 268, 437, 452,
    ]);
    prop_oneof![
        8 => argued,
        8 => 0_u32..600,
        1 => (0_u32..600).prop_map(|nr| nr | 0x4000_0000),
        1 => any::<u32>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn programs_and_predicate_agree(
        nr in number(),
        args in prop::array::uniform6(argument()),
        foreign in prop::bool::weighted(0.05),
    ) {
        for arch in super::ARCHES {
            let mut made = Made::new(arch, nr, &args);
            if foreign {
                made.arch ^= 0x8000_0000;
            }
            for (plan, filters) in all(arch) {
                prop_assert_eq!(
                    decide(filters, &made),
                    expected(plan, arch, &made),
                    "{:?} {:?} {:?}", arch, plan, made
                );
            }
        }
    }
}

/// No number is left out: each alone, with arguments that deny nothing and
/// with ones that deny all they can.
#[test]
fn every_number_agrees() {
    for arch in super::ARCHES {
        for (plan, filters) in all(arch) {
            for nr in 0..1024 {
                for args in [[0; 6], [u64::MAX; 6]] {
                    let made = Made::new(arch, nr, &args);
                    let found = decide(filters, &made);
                    assert_eq!(found, expected(plan, arch, &made), "{plan:?} {made:?}");
                }
            }
        }
    }
}

type Built = Vec<(Plan, super::Filters)>;

fn all(arch: Arch) -> &'static Built {
    use std::sync::OnceLock;
    static X86_64: OnceLock<Built> = OnceLock::new();
    static AARCH64: OnceLock<Built> = OnceLock::new();
    let cell = match arch {
        Arch::X86_64 => &X86_64,
        Arch::Aarch64 => &AARCH64,
    };
    cell.get_or_init(|| {
        let plans = plans().into_iter();
        plans.map(|plan| (plan, built(&plan, arch))).collect()
    })
}
