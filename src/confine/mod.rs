//! Confinement: what a server may reach is enforced by the kernel.

#[allow(dead_code, reason = "what starts a confined server is not written yet")]
pub(crate) mod seccomp;
