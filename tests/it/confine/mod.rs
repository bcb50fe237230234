//! What a confined program cannot do, tried.

mod seccomp;
