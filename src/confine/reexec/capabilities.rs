//! Capabilities, given up for good.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

/// Gives up all that the calling thread has and could gain.
///
/// A thread without privileges cannot empty its bounding set; it needs not,
/// since no program gains anything for it any more (`no_new_privs`).
///
/// # Errors
/// The system's; some may be left then.
pub(super) fn give_up() -> rustix::io::Result<()> {
    set_no_new_privs(true)?;
    for capability in (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit)) {
        match capability_is_in_bounding_set(capability) {
            Ok(false) => {}
            Ok(true) => match remove_capability_from_bounding_set(capability) {
                Ok(()) => {}
                Err(Errno::PERM) => break,
                Err(error) => return Err(error),
            },
            // The kernel knows no further ones.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    clear_ambient_capability_set()?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        },
    )
}

/// Whether the calling thread has none, as the kernel says.
///
/// # Errors
/// The system's.
pub(super) fn has_none() -> rustix::io::Result<bool> {
    let held = capabilities(None)?;
    Ok((held.effective | held.permitted | held.inheritable).is_empty())
}
