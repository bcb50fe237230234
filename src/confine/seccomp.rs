//! System call filters: what Landlock and namespaces leave open.
//!
//! Four programs, loaded in this order on the calling thread; threads and
//! programs that it starts inherit them and nothing can take them off. Of
//! several verdicts the kernel takes the strictest, so their order decides
//! nothing (Linux, Documentation/userspace-api/seccomp_filter.rst).
//!
//! 1. `numbers` answers ENOSYS to numbers above the newest known one. Among
//!    them are the calls of the x32 ABI, which carry bit 30, have the
//!    architecture of x86_64 and would pass every rule below; their second
//!    half, 512 to 547, which older kernels took without that bit; and calls
//!    that did not exist when the list of denied ones was made.
//! 2. `pointers` answers ENOSYS to clone3 and openat2: their flags lie behind a
//!    pointer, where a filter cannot look, and programs then fall back to clone
//!    and openat.
//! 3. `core` answers that it did what it did not: see [`rules::core_limit`].
//! 4. `main` answers EPERM to the rest of what is denied, and kills on a call
//!    of a foreign architecture (`int 0x80`).
//!
//! A denied call gets an error and not a signal, because programs probe for
//! what a kernel offers and go on without.

mod calls;
mod rules;
pub(crate) mod selftest;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::io;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch, sock_filter,
};
use serde::{Deserialize, Serialize};

use crate::wire::digest::{Digest, Hasher, SystemCallFilters};

/// What the filters leave open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) network: Network,
    /// Whether sockets of the Unix domain may be made. Below Landlock ABI 9
    /// that opens every pathname socket of the machine.
    pub(crate) unix_sockets: bool,
    pub(crate) metadata: Metadata,
}

/// Which network the program is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    /// The host's, so every inet and netlink socket is denied.
    Denied,
    /// The host's, of which Landlock fences TCP ports: TCP only, as neither
    /// UDP nor routes can be fenced.
    PortOnly,
    /// An own namespace: TCP and UDP sockets, and netlink for its interfaces.
    Namespace,
}

/// Whether modes, owners, times and attributes may be changed by path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metadata {
    Denied,
    Allowed,
}

/// The programs of a [`Plan`], not loaded yet.
#[derive(Debug)]
pub(crate) struct Filters {
    programs: [(Program, BpfProgram); 4],
}

/// Which of the filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Numbers,
    Pointers,
    Core,
    Main,
}

/// Why the filters do not stand.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SeccompError {
    #[error(
        "no system call filters are known for the architecture {0}: confinement needs x86_64 or \
         aarch64"
    )]
    Architecture(String),
    #[error(
        "the system call filter {program} has {instructions} instructions and the kernel takes \
         fewer than 4096: this is a fault of aegis, please report it"
    )]
    TooLong {
        program: Program,
        instructions: usize,
    },
    #[error(
        "the system call filter {0} cannot be built: this is a fault of aegis, please report it"
    )]
    Unbuildable(Program),
    #[error(
        "the kernel did not take the system call filter {program}: {source}: confinement needs a \
         kernel with CONFIG_SECCOMP_FILTER"
    )]
    Load { program: Program, source: io::Error },
}

/// Builds the filters of `plan` for the architecture of this executable.
///
/// # Errors
/// When the architecture is another than x86_64 and aarch64.
pub(crate) fn filters(plan: &Plan) -> Result<Filters, SeccompError> {
    filters_for(plan, Arch::parse(ARCH)?)
}

impl Filters {
    /// SHA-256 over the programs in their order, each as its number of
    /// instructions (32 bits) and these (code 16 bits, jt 8, jf 8, k 32), all
    /// little-endian.
    pub(crate) fn digest(&self) -> Digest<SystemCallFilters> {
        let mut hasher = Hasher::new();
        for (_, program) in &self.programs {
            // A program is shorter than 4096 instructions.
            let length = u32::try_from(program.len()).unwrap_or(u32::MAX);
            hasher.update(&length.to_le_bytes());
            for sock_filter { code, jt, jf, k } in program {
                hasher.update(&code.to_le_bytes());
                hasher.update(&[*jt, *jf]);
                hasher.update(&k.to_le_bytes());
            }
        }
        hasher.finish()
    }

    /// How many programs [`Filters::apply`] loads.
    pub(crate) fn count(&self) -> usize {
        self.programs.len()
    }

    /// How many instructions all programs have together.
    pub(crate) fn count_instructions(&self) -> usize {
        self.programs.iter().map(|(_, program)| program.len()).sum()
    }

    /// Puts the calling thread, and whatever it starts from now on, under the
    /// filters, and sets `no_new_privs`. Threads that exist already stay as
    /// they are.
    ///
    /// # Errors
    /// When the kernel does not take one of them. Those before it stay in
    /// force, so the thread is to end.
    pub(crate) fn apply(&self) -> Result<(), SeccompError> {
        for (program, instructions) in &self.programs {
            seccompiler::apply_filter(instructions).map_err(|error| SeccompError::Load {
                program: *program,
                source: match error {
                    seccompiler::Error::Prctl(source) | seccompiler::Error::Seccomp(source) => {
                        source
                    }
                    _ => io::ErrorKind::InvalidInput.into(),
                },
            })?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Numbers => "numbers",
            Self::Pointers => "pointers",
            Self::Core => "core",
            Self::Main => "main",
        })
    }
}

/// An architecture whose numbers are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    fn parse(name: &str) -> Result<Self, SeccompError> {
        match name {
            "x86_64" => Ok(Self::X86_64),
            "aarch64" => Ok(Self::Aarch64),
            other => Err(SeccompError::Architecture(other.to_owned())),
        }
    }

    fn target(self) -> TargetArch {
        match self {
            Self::X86_64 => TargetArch::x86_64,
            Self::Aarch64 => TargetArch::aarch64,
        }
    }
}

fn filters_for(plan: &Plan, arch: Arch) -> Result<Filters, SeccompError> {
    let pointers = [calls::CLONE3, calls::OPENAT2]
        .iter()
        .filter_map(|call| entry(call, arch, Vec::new()))
        .collect();
    let mut core = Rules::new();
    add(&mut core, Program::Core, rules::core_limit(), arch)?;
    Ok(Filters {
        programs: [
            (Program::Numbers, known_numbers()),
            (
                Program::Pointers,
                compile(Program::Pointers, pointers, ENOSYS, arch)?,
            ),
            (Program::Core, compile(Program::Core, core, DONE, arch)?),
            (
                Program::Main,
                compile(Program::Main, denied(plan, arch)?, EPERM, arch)?,
            ),
        ],
    })
}

/// By hand, since seccompiler compares numbers for equality only. It does not
/// look at the architecture: `main` kills on a foreign one, and that verdict
/// is the stricter.
fn known_numbers() -> BpfProgram {
    let statement = |code, k| sock_filter {
        code,
        jt: 0,
        jf: 0,
        k,
    };
    vec![
        statement(LOAD_WORD, NUMBER_OFFSET),
        sock_filter {
            code: JUMP_IF_GREATER,
            jt: 0,
            jf: 1,
            k: calls::NEWEST_NUMBER,
        },
        statement(RETURN, u32::from(SeccompAction::Errno(ENOSYS))),
        statement(RETURN, u32::from(SeccompAction::Allow)),
    ]
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// What `main` denies.
fn denied(plan: &Plan, arch: Arch) -> Result<Rules, SeccompError> {
    let mut groups: Vec<&calls::Group> = calls::DENIED.iter().collect();
    if plan.metadata == Metadata::Denied {
        groups.push(&calls::METADATA);
    }
    let whole = groups.iter().flat_map(|group| group.calls);
    let mut rules: Rules = whole
        .filter_map(|call| entry(call, arch, Vec::new()))
        .collect();
    add(&mut rules, Program::Main, rules::argued(plan), arch)?;
    Ok(rules)
}

fn add(
    rules: &mut Rules,
    program: Program,
    argued: Vec<rules::Argued>,
    arch: Arch,
) -> Result<(), SeccompError> {
    for argued in argued {
        let compiled: Result<Vec<_>, _> = argued.denied_if.iter().map(|r| r.compile()).collect();
        let compiled = compiled.map_err(|error| refused(program, &error))?;
        rules.extend(entry(&argued.call, arch, compiled));
    }
    Ok(())
}

fn entry(
    call: &calls::Call,
    arch: Arch,
    rules: Vec<SeccompRule>,
) -> Option<(i64, Vec<SeccompRule>)> {
    call.number(arch).map(|number| (i64::from(number), rules))
}

fn compile(
    program: Program,
    rules: Rules,
    errno: u32,
    arch: Arch,
) -> Result<BpfProgram, SeccompError> {
    let denial = SeccompAction::Errno(errno);
    SeccompFilter::new(rules, SeccompAction::Allow, denial, arch.target())
        .and_then(BpfProgram::try_from)
        .map_err(|error| refused(program, &error))
}

fn refused(program: Program, error: &BackendError) -> SeccompError {
    match error {
        BackendError::FilterTooLarge(instructions) => SeccompError::TooLong {
            program,
            instructions: *instructions,
        },
        _ => SeccompError::Unbuildable(program),
    }
}

// The same on both architectures: include/uapi/asm-generic/errno.h.
const EPERM: u32 = 1;
const DONE: u32 = 0;
const ENOSYS: u32 = 38;

// Classic BPF (include/uapi/linux/bpf_common.h) on `struct seccomp_data`.
const LOAD_WORD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const JUMP_IF_GREATER: u16 = 0x25; // BPF_JMP | BPF_JGT | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K
const NUMBER_OFFSET: u32 = 0;
