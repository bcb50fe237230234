//! What a confined program cannot do, tried.

mod reexec;
mod seccomp;
mod wrap;
