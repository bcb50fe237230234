//! The helper that restricts itself and becomes the program, driven as its
//! parent does and as a stranger might.

mod alone;
mod endings;
mod namespaces;
mod network;
mod program;
mod rig;
