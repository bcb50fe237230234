//! A sandbox from the moment it is put in force to its end.

use std::process::Command;

use super::network;
use super::{Prepared, text, told};
use crate::confine::door::Waiting;
use crate::confine::private::Directory;
use crate::confine::start::{self, Started};
use crate::confine::start_error::StartError;
use crate::egress::{Egress, Ledger, Rules};
use crate::wire::escape::EscapedPath;
use crate::wire::facts::{self, Confinement};

/// A server's process that is restricted, and waits. Dropped, it ends without
/// having executed anything.
pub(crate) struct Entered {
    facts: Confinement,
    waiting: Waiting,
    rules: Rules,
    temporary: Directory,
}

/// A sandbox with a server in it. What is dropped is ended as well, so the
/// server has to be gone by then.
pub(crate) struct Running {
    egress: Option<Egress>,
    temporary: Directory,
}

/// Why no process waits.
struct Failure(String);

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self(error.to_string())
    }
}

impl Prepared {
    /// Has `spawn` start a process, which restricts itself; once more where
    /// the machine lacks what can be done without. On any error the last one
    /// is gone.
    ///
    /// # Errors
    /// What could not be put in force, and what to do.
    pub(crate) fn enter<C: Started>(
        self,
        mut spawn: impl FnMut(Command) -> Result<C, String>,
    ) -> Result<(C, Entered), String> {
        let spawn = |command| spawn(command).map_err(Failure);
        let (child, waiting) = start::start(&self.door, &self.order, &self.command, spawn)
            .map_err(|Failure(why)| why)?;
        let facts = match told::of(&self, waiting.report()) {
            Ok(facts) => facts,
            Err(why) => {
                child.discard();
                return Err(why);
            }
        };
        let Self {
            allow,
            upstream,
            temporary,
            ..
        } = self;
        let entered = Entered {
            facts,
            waiting,
            rules: network::rules(allow, upstream),
            temporary,
        };
        Ok((child, entered))
    }
}

impl Entered {
    /// What is in force.
    pub(crate) fn facts(&self) -> Confinement {
        self.facts.clone()
    }

    /// Lets the process execute the server, whose connections are carried
    /// from before it begins. `told` hears of what is refused.
    ///
    /// # Errors
    /// When it could not be executed.
    pub(crate) fn go(
        mut self,
        told: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<Running, String> {
        let egress = match self.waiting.take_sockets() {
            None => None,
            Some(sockets) => {
                let told = move |denial: &_| told(text(denial));
                let egress = Egress::start(self.rules, network::sockets(sockets), told);
                Some(egress.map_err(|error| {
                    format!("the server's connections cannot be carried: {error}")
                })?)
            }
        };
        self.waiting.go().map_err(text)?;
        Ok(Running {
            egress,
            temporary: self.temporary,
        })
    }
}

impl Running {
    /// The account of what the server does on the network, where that is
    /// carried.
    pub(crate) fn ledger(&self) -> Option<Ledger> {
        self.egress.as_ref().map(|egress| egress.ledger().clone())
    }

    /// Ends what is carried, once the server is gone, and returns the account.
    pub(crate) fn end_network(&mut self) -> Option<facts::Egress> {
        let egress = self.egress.take()?;
        let ledger = egress.ledger().clone();
        egress.end();
        Some(ledger.total())
    }

    /// Removes the server's temporary directory, which takes as long as the
    /// server filled it. Says what a person should know, if anything.
    pub(crate) fn remove(self) -> Option<String> {
        let path = self.temporary.path().to_owned();
        let error = self.temporary.close().err()?;
        Some(format!(
            "the server's temporary directory {} could not be removed: {error}",
            EscapedPath(&path)
        ))
    }
}
