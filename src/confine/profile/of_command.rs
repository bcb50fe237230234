//! What a command executes, and what a preset grants for that.
//!
//! A preset grants what the command names, so whoever may change where those
//! names lead could grant itself more with the next start: a link in place of
//! a script, another interpreter in its first line. So nothing comes with a
//! preset that a server could have chosen itself.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::{Draft, Origin, ProfileError, Rule, covers};
use crate::confine::assets::{Reach, Way};
use crate::confine::command::{self, CommandError, Role, Step};
use crate::confine::installation::belonging;
use crate::confine::machine::Machine;
use crate::confine::preset::{Access, Preset};
use crate::confine::script;
use crate::grant::root::Kind;

impl<M: Machine> Draft<'_, M> {
    pub(super) fn command(&mut self, command: &[OsString]) -> Result<(), ProfileError> {
        let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
        let steps = command::resolve(self.machine, program)?;
        let named = &steps[0].named;
        self.profile.program = match named.to_str() {
            Some(named) => named.to_owned(),
            None => return Err(CommandError::NotText(named.clone()).into()),
        };
        if let Some(preset) = self.options.preset {
            if let (Preset::Static, Some(loader)) =
                (preset, steps.iter().find(|step| step.role == Role::Loader))
                && !self.options.exec_support
            {
                return Err(ProfileError::NotStatic {
                    program: steps[0].path.clone(),
                    loader: loader.path.clone(),
                });
            }
            self.add_steps(preset, &steps)?;
            self.add_script(preset, command)?;
        }
        for step in steps {
            if !self.profile.executes(&step.path) {
                let writable = covers(&self.profile.rules, &step.path, Access::writes);
                return Err(ProfileError::NotGranted { step, writable });
            }
        }
        Ok(())
    }

    /// Grants what a preset's command executes.
    ///
    /// # Errors
    /// When the server itself could have chosen it, the time before.
    fn add_steps(&mut self, preset: Preset, steps: &[Step]) -> Result<(), ProfileError> {
        let mut is_chosen = false;
        for step in steps {
            // Whoever may write a program says what is behind it.
            is_chosen |= self.chooses(&step.named);
            if !is_chosen {
                self.add_step(preset, step);
            } else if covers(&self.profile.rules, &step.path, Access::writes) {
                // It may be read and written as it is.
                self.add_executable(step);
            } else if !self.profile.executes(&step.path) {
                return Err(ProfileError::Chosen {
                    what: step.role.to_string(),
                    path: step.path.clone().into(),
                    named: step.named.clone(),
                });
            }
        }
        Ok(())
    }

    /// Grants what belongs to the script of a preset's command.
    ///
    /// # Errors
    /// When the server itself could have chosen it, the time before.
    fn add_script(&mut self, preset: Preset, command: &[OsString]) -> Result<(), ProfileError> {
        let Some(named) = script::of_command(preset, command) else {
            return Ok(());
        };
        if !self.chooses(named) {
            for (path, why) in script::belonging(self.machine, preset, command) {
                self.add(&path, Access::ReadExecute, Origin::Command, why);
            }
            return Ok(());
        }
        // One that is not there is the interpreter's to complain of.
        match self.machine.canonical(named) {
            Ok(path) if !self.reads(&path) => Err(ProfileError::Chosen {
                what: "the script".to_owned(),
                path,
                named: named.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Whether the server may say what a name leads to, or what stands there:
    /// a preset that followed it would let a server grant itself more.
    fn chooses(&self, named: &Path) -> bool {
        let rules = self.profile.rules.iter();
        let mut written = rules.filter(|rule| rule.access.writes()).peekable();
        if written.peek().is_none() {
            return false;
        }
        // What has no end may have one the next moment.
        Way::follow(self.machine, named).map_or(true, |way| {
            written.any(|rule| Reach::of(self.machine, Path::new(&rule.path)).has_on(&way))
        })
    }

    fn reads(&self, path: &Path) -> bool {
        let mut rules = self.profile.rules.iter();
        rules.any(|rule| path.starts_with(&rule.path))
    }

    /// Grants a file that a preset's command executes and, when it lies in an
    /// installation of its own, what belongs to that.
    fn add_step(&mut self, preset: Preset, step: &Step) {
        let access = Access::ReadExecute;
        self.add_executable(step);
        if step.role == Role::Loader {
            return;
        }
        for (path, why) in belonging(self.machine, preset, step) {
            if !path
                .to_str()
                .is_some_and(|path| self.profile.executes(path))
            {
                self.add(&path, access, Origin::Command, why);
            }
        }
    }

    /// Grants a file that a preset's command executes.
    fn add_executable(&mut self, step: &Step) {
        if !self.profile.executes(&step.path) {
            self.push(Rule {
                path: step.path.clone(),
                access: Access::ReadExecute,
                kind: Kind::File,
                id: Some(step.id),
                origin: Origin::Command,
                why: step.role.to_string(),
            });
        }
    }
}
