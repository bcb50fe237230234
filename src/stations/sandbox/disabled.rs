//! In a build or on a system that cannot confine: nothing is ever prepared.

use std::convert::Infallible;
use std::ffi::OsString;
use std::process::Command;

use super::{Asked, Own};
use crate::wire::facts::{Confinement, Egress, EgressOverlapping};

/// What was asked for. It is never put in force.
#[derive(Debug)]
pub(crate) struct Request(());

/// There is none.
#[derive(Debug)]
pub(crate) struct Prepared(Infallible);

/// There is none.
#[derive(Debug)]
pub(crate) struct Entered(Infallible);

/// There is none.
#[derive(Debug)]
pub(crate) struct Running(Infallible);

/// There is none.
#[derive(Clone, Debug)]
pub(crate) struct Ledger(Infallible);

/// There is none.
#[derive(Debug)]
pub(crate) struct Mark(Infallible);

/// A process that the caller started.
#[allow(dead_code, reason = "none is started here")]
pub(crate) trait Started {
    /// Its id. It must not have been reaped.
    fn pid(&self) -> u32;
    /// Ends and reaps it.
    fn discard(self);
}

impl Asked {
    /// Takes anything: what it lacks is told by [`Request::prepare`], since
    /// the command line itself may be right.
    ///
    /// # Errors
    /// Never.
    pub(crate) fn read(self) -> Result<Request, String> {
        Ok(Request(()))
    }
}

impl Request {
    /// Says what is missing.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn prepare(&self, _: &[OsString], _: Own<'_>) -> Result<Prepared, String> {
        Err(match cfg!(target_os = "linux") {
            true => "this build of aegis lacks the feature `confine`",
            false => "confinement needs Linux",
        }
        .to_owned())
    }
}

impl Prepared {
    pub(crate) fn enter<C: Started>(
        self,
        _: impl FnMut(Command) -> Result<C, String>,
    ) -> Result<(C, Entered), String> {
        match self.0 {}
    }
}

impl Entered {
    pub(crate) fn facts(&self) -> Confinement {
        match self.0 {}
    }

    pub(crate) fn go(self, _: impl Fn(String) + Send + Sync + 'static) -> Result<Running, String> {
        match self.0 {}
    }
}

impl Running {
    pub(crate) fn ledger(&self) -> Option<Ledger> {
        match self.0 {}
    }

    pub(crate) fn end_network(&mut self) -> Option<Egress> {
        match self.0 {}
    }

    pub(crate) fn remove(self) -> Option<String> {
        match self.0 {}
    }
}

impl Ledger {
    pub(crate) fn mark(&self) -> Mark {
        match self.0 {}
    }

    pub(crate) fn since(&self, _: &Mark) -> Option<EgressOverlapping> {
        match self.0 {}
    }
}
