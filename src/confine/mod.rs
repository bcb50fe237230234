//! Confinement of what is started: what it may reach, and the kernel's means
//! to hold it to that.
//!
//! * [`machine`]: what has to be known of this machine, behind a trait.
//! * [`command`]: what running a command executes, down to the ELF loader.
//! * [`profile`]: every path that is granted, with the reason.
//! * [`assets`]: what no grant may reach, since the record rests on it.
//! * [`landlock`]: the paths of a profile, enforced on the calling thread.
//! * [`seccomp`]: system calls that no rule of paths covers, denied.

pub(crate) mod assets;
pub(crate) mod command;
mod elf;
mod installation;
pub(crate) mod landlock;
pub(crate) mod machine;
pub(crate) mod preset;
pub(crate) mod profile;
pub(crate) mod seccomp;
