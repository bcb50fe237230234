//! Addresses lent to names inside a network namespace.
//!
//! The program in the namespace asks for a name and gets an address of the
//! pool; by that address the other side knows which name a connection means.
//! So an address that was lent to one name is never lent to another for as
//! long as the pool lives, which is a Session, and names beyond the cap get
//! none: under a wildcard the program chooses the names.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::Ipv4Addr;

use thiserror::Error;

use super::host::Name;

/// What each name was lent.
#[derive(Debug)]
pub(crate) struct Pool {
    block: Block,
    /// Never lent: literals that the operator allowed mean themselves.
    literals: BTreeSet<Ipv4Addr>,
    /// Every address below has been lent or is a literal.
    next: u32,
    lent: HashMap<Name, Ipv4Addr>,
    names: HashMap<Ipv4Addr, Name>,
}

/// The network that a pool lends from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    first: Ipv4Addr,
    prefix: u32,
}

/// Why a name gets no address. An answerer says SERVFAIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("all {lent} addresses for names are lent, and none is lent twice; allow fewer names")]
pub(crate) struct Full {
    lent: usize,
}

/// What is wrong with a pool's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum BlockFault {
    /// Not `ADDRESS/PREFIX`.
    #[error("it is no network; write one as in `127.77.0.0/16`")]
    Form,
    /// Bits behind the prefix.
    #[error("it is no network address; write `{0}`")]
    Bits(Block),
    /// Too large or too small.
    #[error("the prefix is not from {MIN_PREFIX} to {MAX_PREFIX}; write one as in `127.77.0.0/16`")]
    Prefix,
    /// Where real hosts may be.
    #[error(
        "real hosts may have its addresses; choose a network in 127.0.0.0/8 outside 127.0.0.0/16, or in 198.18.0.0/15"
    )]
    Place,
}

impl Pool {
    /// A pool that lends nothing of `literals`.
    pub(crate) fn new(block: Block, literals: impl IntoIterator<Item = Ipv4Addr>) -> Self {
        Self {
            block,
            literals: literals.into_iter().collect(),
            next: u32::from(block.first) + 1,
            lent: HashMap::new(),
            names: HashMap::new(),
        }
    }

    /// The address of `name`: the one it has, or a fresh one.
    pub(crate) fn lend(&mut self, name: &Name) -> Result<Ipv4Addr, Full> {
        if let Some(address) = self.lent.get(name) {
            return Ok(*address);
        }
        let address = self.fresh().ok_or(Full {
            lent: self.lent.len(),
        })?;
        self.lent.insert(name.clone(), address);
        self.names.insert(address, name.clone());
        Ok(address)
    }

    /// Which name has `address`, if one was lent it.
    pub(crate) fn name(&self, address: Ipv4Addr) -> Option<&Name> {
        self.names.get(&address)
    }

    /// Whether `address` is of the pool, lent or not, and no literal.
    pub(crate) fn owns(&self, address: Ipv4Addr) -> bool {
        self.block.contains(address) && !self.literals.contains(&address)
    }

    fn fresh(&mut self) -> Option<Ipv4Addr> {
        if self.lent.len() >= MAX_LENT {
            return None;
        }
        loop {
            let address = Ipv4Addr::from(self.next);
            // The last one is the broadcast address of the network.
            if !self
                .block
                .contains(Ipv4Addr::from(self.next.checked_add(1)?))
            {
                return None;
            }
            self.next += 1;
            if !self.literals.contains(&address) {
                return Some(address);
            }
        }
    }
}

impl Block {
    /// Reads `ADDRESS/PREFIX`.
    pub(crate) fn parse(text: &str) -> Result<Self, BlockFault> {
        let (address, prefix) = text.split_once('/').ok_or(BlockFault::Form)?;
        let address: Ipv4Addr = address.parse().map_err(|_| BlockFault::Form)?;
        let plain = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let number: u32 = prefix.parse().map_err(|_| BlockFault::Form)?;
        if !plain || prefix != number.to_string() {
            return Err(BlockFault::Form);
        }
        if !(MIN_PREFIX..=MAX_PREFIX).contains(&number) {
            return Err(BlockFault::Prefix);
        }
        let block = Self {
            first: Ipv4Addr::from(u32::from(address) & mask(number)),
            prefix: number,
        };
        if block.first != address {
            return Err(BlockFault::Bits(block));
        }
        match address.octets() {
            // Services of this machine, and its own resolver, sit in 127.0.
            [127, 0, ..] => Err(BlockFault::Place),
            [127, ..] | [198, 18 | 19, ..] => Ok(block),
            _ => Err(BlockFault::Place),
        }
    }

    fn contains(&self, address: Ipv4Addr) -> bool {
        u32::from(address) & mask(self.prefix) == u32::from(self.first)
    }
}

/// 127.77.0.0/16: programs know 127.0.0.0/8 as local, and nothing listens
/// there by custom.
impl Default for Block {
    fn default() -> Self {
        Self {
            first: Ipv4Addr::new(127, 77, 0, 0),
            prefix: 16,
        }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

fn mask(prefix: u32) -> u32 {
    u32::MAX.checked_shl(32 - prefix).unwrap_or(0)
}

/// Names of one Session. About 1 MiB when every name is of full length.
pub(crate) const MAX_LENT: usize = 4096;

/// Larger networks hold no more than [`MAX_LENT`] either.
const MIN_PREFIX: u32 = 16;

/// Two addresses.
const MAX_PREFIX: u32 = 30;

#[cfg(test)]
mod tests;
