//! What a session begins with.

use std::ffi::OsString;
use std::io;

use super::{Enforcement, Wrap, WrapError};
use crate::rpc::frame::FrameLimits;
use crate::stations::sandbox::argv_digest;
use crate::stations::{Bounds, Gate, Mode};
use crate::wire::digest::{Digest, Text};
use crate::wire::facts::{Child, Confinement, Emitter, PolicyInForce, PolicyStatus};
use crate::wire::hex::Bytes;
use crate::wire::line::OpenFacts;

/// Reads the policy: before anything else is touched.
pub(super) fn gate(policy: &Enforcement) -> Result<Gate, WrapError> {
    let bounds = Bounds {
        pinned: policy.pinned,
        allow_inert: policy.allow_inert,
        mode: policy.mode,
    };
    Gate::load(&policy.file, bounds).map_err(|error| WrapError::Policy {
        file: policy.file.clone(),
        error,
    })
}

/// What the `open` Line says of the session.
///
/// # Errors
/// When the system gives no random bytes.
pub(super) fn facts(
    command: &[OsString],
    gate: Option<&Gate>,
    confinement: Confinement,
) -> io::Result<OpenFacts> {
    let program = command.first().map(|p| p.to_string_lossy());
    let mut session_id = [0; 16];
    getrandom::fill(&mut session_id)?;
    Ok(OpenFacts {
        emitter: Some(Emitter {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            verb: "wrap".to_owned(),
        }),
        session_id: Some(Bytes(session_id)),
        child: Some(Child::of(
            &program.unwrap_or_default(),
            argv_digest(command),
        )),
        confinement: Some(confinement),
        policy: gate.map(|gate| PolicyInForce {
            status: match gate.mode() {
                Mode::Enforce => PolicyStatus::Enforced,
                Mode::Shadow => PolicyStatus::Shadow,
            },
            policy_set_hash: gate.policy_set_hash(),
        }),
        ..OpenFacts::default()
    })
}

/// How long frames may be, and where long ones are kept.
pub(super) fn frame_limits(wrap: &Wrap) -> FrameLimits {
    let mut limits = FrameLimits::new(wrap.audit.directory());
    if let Some(max) = wrap.max_frame {
        limits.max_frame = max;
        limits.in_memory = limits.in_memory.min(max);
    }
    limits
}

impl Child {
    fn of(program: &str, argv_digest: Digest<Text>) -> Self {
        let end = program.floor_char_boundary(crate::wire::line::MAX_TEXT_BYTES);
        Self {
            program: program[..end].to_owned(),
            argv_digest,
        }
    }
}
