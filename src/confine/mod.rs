//! Confinement of what is started: what it may reach, and the kernel's means
//! to hold it to that.
//!
//! * [`seccomp`]: system calls that no rule of paths covers, denied.

pub(crate) mod seccomp;
