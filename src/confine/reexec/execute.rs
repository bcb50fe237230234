//! The last step, and what is said when it fails.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::confine::command::{self, CommandError};
use crate::confine::machine::ThisMachine;
use crate::confine::order::VARIABLE;
use crate::confine::profile::Profile;
use crate::wire::escape::{Escaped, EscapedPath};

/// Becomes the program, under the name that was typed. Comes back only with a
/// text that says why not.
pub(super) fn execute(profile: &Profile, args: &[OsString]) -> String {
    let (typed, rest) = match args.split_first() {
        Some((typed, rest)) => (typed.as_os_str(), rest),
        None => (OsStr::new(&profile.program), args),
    };
    let error = Command::new(&profile.program)
        .arg0(typed)
        .args(rest)
        .env_remove(VARIABLE)
        .exec();
    let mut text = format!("exec `{}`: {error}", Escaped(&profile.program));
    let is_path = matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound
    );
    if let Some(hint) = is_path.then(|| hint(profile)).flatten() {
        text.push_str("; ");
        text.push_str(&hint);
    }
    text
}

/// Which part of the command is missing. The kernel names none.
fn hint(profile: &Profile) -> Option<String> {
    let machine = ThisMachine::without_mounts().ok()?;
    match command::resolve(&machine, profile.program.as_ref()) {
        Ok(steps) => {
            let step = steps.iter().find(|step| !profile.executes(&step.path))?;
            let path = Escaped(&step.path);
            Some(format!(
                "{} `{path}` may not be executed; give --allow-read {path}, or a --preset",
                step.role
            ))
        }
        // What may not be executed may not be read either.
        Err(CommandError::Unusable { role, path, error })
            if error.kind() == io::ErrorKind::PermissionDenied =>
        {
            let path = EscapedPath(&path);
            Some(format!(
                "{role} `{path}` may not be read; give --allow-read {path}, or a --preset"
            ))
        }
        Err(error) => Some(error.to_string()),
    }
}
