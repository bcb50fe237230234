//! Confinement of what is started: what it may reach, and the kernel's means
//! to hold it to that.
//!
//! * [`machine`]: what has to be known of this machine, behind a trait.
//! * [`command`]: what running a command executes, down to the ELF loader.
//! * [`profile`]: every path that is granted, with the reason.
//! * [`assets`]: what no grant may reach, since the record rests on it.
//! * [`landlock`]: the paths of a profile, enforced on the calling thread.
//! * [`seccomp`]: system calls that no rule of paths covers, denied.
//! * [`private`]: directories of one server alone.
//! * [`order`], [`report`]: what parent and helper tell each other.
//! * [`door`], [`start`]: the parent, which starts a helper and lets it go.
//! * [`reexec`]: the helper, which restricts itself and becomes the program.

pub(crate) mod assets;
pub(crate) mod command;
pub(crate) mod door;
mod elf;
pub(crate) mod handed;
mod handshake;
mod installation;
pub(crate) mod landlock;
pub(crate) mod machine;
pub(crate) mod order;
pub(crate) mod preset;
pub(crate) mod private;
mod process;
pub(crate) mod profile;
pub(crate) mod reexec;
pub(crate) mod refused;
pub(crate) mod report;
mod script;
pub(crate) mod seccomp;
pub(crate) mod start;
pub(crate) mod start_error;
mod watch;
