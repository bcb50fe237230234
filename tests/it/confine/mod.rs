//! What a confined program cannot do, tried.

mod matrix;
mod own;
mod reexec;
mod seccomp;
mod wrap;
