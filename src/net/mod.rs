//! Where connections may go: the rules that every way out shares.
//!
//! [`host`] reads names and addresses in their one spelling, [`allow`] the
//! entries of `--allow-net`, and [`address`] says what kind of network an
//! address belongs to, [`near`] which of the public ones are this machine's own
//! or its neighbours'. [`resolve`] turns a name into addresses of known class,
//! and [`pool`] lends names an address inside a network namespace. A
//! connection is dialled to an [`allow::Target`] only, which no one can make
//! without an entry and a classified address.

pub(crate) mod address;
pub(crate) mod allow;
pub(crate) mod host;
pub(crate) mod near;
pub(crate) mod pool;
pub(crate) mod resolve;
