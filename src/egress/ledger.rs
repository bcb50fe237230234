//! What was let through and what was refused.

use std::fmt;
use std::sync::Arc;

use crate::wire::facts;

/// The account of one [`super::Egress`]; clones share it.
#[derive(Clone)]
pub(crate) struct Ledger(Arc<()>);

/// A moment of a [`Ledger`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(());

/// One refusal, as whoever runs the child is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial(());

impl Ledger {
    /// The present moment.
    pub(crate) fn mark(&self) -> Mark {
        Mark(())
    }

    /// What overlapped the time since `mark`; nothing if nothing did.
    pub(crate) fn since(&self, _mark: &Mark) -> Option<facts::EgressOverlapping> {
        None
    }

    /// Everything so far.
    pub(crate) fn total(&self) -> facts::Egress {
        facts::Egress::default()
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("egress denied")
    }
}
