//! A random record is Verified, and what any single edit makes of it.
use crate::assemble::Chain;
use proptest::prelude::*;
pub(crate) fn record() -> impl Strategy<Value = Chain> {
    Just(Chain::session("c"))
}
