//! What stands in a Line where neither a rule nor the client gave the text
//! (SPEC §5.5, §5.7, §6.2). Who writes it and who reads what it means have it from
//! here, since what a recheck and a requirement say turns on it.

use std::sync::LazyLock;

use super::digest::{Digest, PolicySet};

/// The `policy_set_hash` that says that no Policy Set was evaluated
/// (SPEC §6.2).
pub(crate) fn stand_in_hash() -> Digest<PolicySet> {
    // Asked for by every Call.
    static HASH: LazyLock<Digest<PolicySet>> =
        LazyLock::new(|| Digest::of(b"aegis-wrap-passthrough-v0"));
    *HASH
}

/// The tool of a Call whose `params.name` is missing or not a string.
pub(crate) const UNKNOWN_TOOL: &str = "<unknown>";

/// The tool of a frame that could not be read.
pub(crate) const UNREADABLE_TOOL: &str = "<unreadable>";

/// Why policy and capability deny what no station has looked at.
pub(crate) const NOT_EVALUATED: &str = "not evaluated";

/// Denied under every set: two readers could see two things in it.
pub(crate) const NOT_STRICT: &str = "frame could not be read strictly";

/// Denied under every set: nobody could be answered.
pub(crate) const WITHOUT_ID: &str = "tools/call without an id";

/// Denied under every set: there is nothing to judge.
pub(crate) const WITHOUT_NAME: &str = "tools/call without a string params.name";

/// Denied under every set: only a part of the name is known.
pub(crate) const LONG_NAME: &str = "tools/call with a params.name longer than 64 KiB";

/// Why a frame that was relayed without a policy has no answer.
pub(crate) const RELAYED_UNREAD: &str = "frame could not be read; relayed";

/// Why a Call that was relayed without a policy has no answer.
pub(crate) const RELAYED_WITHOUT_ID: &str = "relayed without an id; no answer can be matched";

/// A hole in a confinement: sockets of the Unix domain may be made.
pub(crate) const UNIX_SOCKETS_HOLE: &str = "unix-sockets";

/// A hole in a confinement: caches are shared with programs outside it.
pub(crate) const SHARED_CACHE_HOLE: &str = "shared-cache";

/// A hole in a confinement: a proxy outside resolves names, so nobody here
/// sees which address one leads to.
pub(crate) const UPSTREAM_PROXY_HOLE: &str = "upstream-proxy";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stand_in_hash_is_the_published_one() {
        assert_eq!(
            stand_in_hash().to_string(),
            "7b30695c7a4df1b6a226bdd591c6d75b9917bb3af078af2d01be295e4df96974"
        );
    }
}
