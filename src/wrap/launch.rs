//! How a session gets its record and its child: which of them first depends
//! on whether the child is confined.
//!
//! Without confinement the record comes first. With it the child's process
//! comes first, restricts itself and waits, since the record begins with what
//! is in force; it executes the server once that is on the disk.

use std::process::Command;

use super::child::{self, Orphans, Spawned};
use super::tell::Teller;
use super::{Wrap, WrapError, opening};
use crate::chain::writer::{Totals, Writer};
use crate::sign::SigningKey;
use crate::stations::Gate;
use crate::stations::sandbox::{Entered, Own, Prepared, Running, Started as _};
use crate::wire::facts::{Confinement, Failed};
use crate::wire::line::MAX_TEXT_BYTES;

/// What a session is launched with.
pub(super) struct Launch<'a> {
    pub(super) wrap: &'a Wrap,
    pub(super) gate: Option<&'a Gate>,
    pub(super) pipe_stderr: bool,
    pub(super) orphans: Orphans,
}

/// What it begins with.
pub(super) struct Launched {
    pub(super) writer: Writer,
    pub(super) spawned: Spawned,
    pub(super) sandbox: Option<Running>,
}

impl Launch<'_> {
    /// Opens the record and starts the child.
    ///
    /// # Errors
    /// When either fails. There is no process then, and no private directory.
    /// A record that was begun has been closed.
    pub(super) fn run(&self, key: SigningKey) -> Result<Launched, WrapError> {
        match &self.wrap.confine {
            None => self.unconfined(key),
            Some(request) => {
                // What cannot be meant on this machine begins no session.
                let prepared = request.prepare(&self.wrap.command, self.own());
                self.confined(key, prepared.map_err(WrapError::Confine)?)
            }
        }
    }

    fn unconfined(&self, key: SigningKey) -> Result<Launched, WrapError> {
        let Some((program, args)) = self.wrap.command.split_first() else {
            return Err(WrapError::Spawn("no child command".to_owned()));
        };
        let writer = self.record(key, Confinement::None)?;
        let mut command = Command::new(program);
        command.args(args);
        match self.spawn(command) {
            Ok(spawned) => Ok(Launched {
                writer,
                spawned,
                sandbox: None,
            }),
            Err(why) => {
                writer.close(Totals::default())?;
                Err(WrapError::Spawn(why))
            }
        }
    }

    fn confined(&self, key: SigningKey, prepared: Prepared) -> Result<Launched, WrapError> {
        let (spawned, entered) = match prepared.enter(|command| self.spawn(command)) {
            Ok(entered) => entered,
            Err(why) => {
                let writer = self.record(key, failed(&why))?;
                writer.close(Totals::default())?;
                return Err(WrapError::Confine(why));
            }
        };
        let writer = match self.record(key, entered.facts()) {
            Ok(writer) => writer,
            Err(error) => {
                spawned.discard();
                return Err(error);
            }
        };
        match go(entered) {
            Ok(sandbox) => Ok(Launched {
                writer,
                spawned,
                sandbox: Some(sandbox),
            }),
            Err(why) => {
                spawned.discard();
                writer.close(Totals::default())?;
                Err(WrapError::Confine(why))
            }
        }
    }

    fn own(&self) -> Own<'_> {
        Own {
            audit: &self.wrap.audit,
            signing_key: &self.wrap.signing_key,
            policy: self.wrap.policy.as_ref().map(|policy| &*policy.file),
        }
    }

    fn record(&self, key: SigningKey, confinement: Confinement) -> Result<Writer, WrapError> {
        let facts = opening::facts(&self.wrap.command, self.gate, confinement)?;
        Ok(self.wrap.audit.open(key, facts, self.wrap.durability)?)
    }

    fn spawn(&self, command: Command) -> Result<Spawned, String> {
        child::spawn(command, self.pipe_stderr, &self.orphans)
    }
}

fn go(entered: Entered) -> Result<Running, String> {
    let teller = Teller::default();
    entered.go(move |denied| teller.tell(&denied))
}

fn failed(why: &str) -> Confinement {
    let cause = why[..why.floor_char_boundary(MAX_TEXT_BYTES)].to_owned();
    Confinement::Failed(Failed { cause })
}
