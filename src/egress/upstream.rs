//! The HTTP proxy of a network that has no other way out.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// An HTTP proxy, by `http://[user:password@]HOST:PORT`. Never shows who logs
/// in there.
#[derive(Clone)]
pub(crate) struct Upstream(());

/// What is wrong with an upstream proxy. Never holds the text itself, which
/// may have a password in it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum UpstreamFault {
    /// Not `http://`.
    #[error("it is no `http://` URL; write `http://HOST:PORT`")]
    Scheme,
}

impl FromStr for Upstream {
    type Err = UpstreamFault;

    fn from_str(_text: &str) -> Result<Self, UpstreamFault> {
        Err(UpstreamFault::Scheme)
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upstream")
    }
}
