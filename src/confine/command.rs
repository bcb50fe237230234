//! What running a command executes: the program that its name leads to, the
//! interpreter of a script, and the loader of each ELF program among them.
//!
//! The kernel judges each of these when it is executed, and says no more than
//! "permission denied". So they are found beforehand, where the one that is
//! missing can be named.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::elf::{self, Elf};
use super::machine::Machine;
use crate::grant::root::FileId;
use crate::wire::escape::{Escaped, EscapedPath};

/// A file that running the command executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// What it does.
    pub(crate) role: Role,
    /// Its name as it was found.
    pub(crate) named: PathBuf,
    /// Its name without links and dots.
    pub(crate) path: String,
    /// Which file it is.
    pub(crate) id: FileId,
}

/// What a file does for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is what the command names.
    Program,
    /// It runs a script.
    Interpreter,
    /// It loads a dynamically linked program.
    Loader,
}

/// Why a command cannot run.
#[derive(Debug, Error)]
pub(crate) enum CommandError {
    /// No directory of PATH has it.
    #[error("`{}` was found nowhere in PATH ({})", Escaped(.program), Escaped(.searched))]
    NotFound {
        /// Its name.
        program: String,
        /// Where it was looked for.
        searched: String,
    },
    /// It is there and cannot be executed or read.
    #[error("{role} `{}` cannot be run: {error}", EscapedPath(.path))]
    Unusable {
        /// What it should do.
        role: Role,
        /// Its name.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A record is text, and could name another path only.
    #[error("`{}` has a name that is not UTF-8, which cannot be recorded; rename it", EscapedPath(.0))]
    NotText(PathBuf),
    /// It is not for this machine.
    #[error("`{}` is a 32-bit or foreign program, which cannot run confined", EscapedPath(.0))]
    Foreign(PathBuf),
    /// It is damaged.
    #[error("`{}` is a damaged program: {fault}", EscapedPath(.path))]
    Broken {
        /// Its name.
        path: PathBuf,
        /// What is wrong.
        fault: &'static str,
    },
    /// The kernel takes the carriage return for a part of a name.
    #[error(
        "the first line of `{}` ends as on Windows, so that its interpreter is not found; save it with Unix line ends",
        EscapedPath(.0)
    )]
    CarriageReturn(PathBuf),
    /// Scripts that run each other without end.
    #[error("`{}` is run by more than {MAX_SCRIPTS} interpreters, one after another", EscapedPath(.0))]
    TooDeep(PathBuf),
}

/// Finds what running `program` executes, in the order in which it does: the
/// program itself at least.
///
/// # Errors
/// When it is not there, may not be executed, or is no program.
pub(crate) fn resolve(machine: &impl Machine, program: &OsStr) -> Result<Vec<Step>, CommandError> {
    let named = search(machine, program)?;
    let mut steps = Vec::new();
    follow(machine, Role::Program, &named, 0, &mut steps)?;
    Ok(steps)
}

/// Adds what `named` leads to, and what that executes in turn.
fn follow(
    machine: &impl Machine,
    role: Role,
    named: &Path,
    depth: usize,
    steps: &mut Vec<Step>,
) -> Result<(), CommandError> {
    if depth > MAX_SCRIPTS {
        return Err(CommandError::TooDeep(named.into()));
    }
    let step = look(machine, role, named)?;
    let found = PathBuf::from(&step.path);
    steps.push(step);
    // The kernel maps a loader and asks it for no other.
    if role == Role::Loader {
        return Ok(());
    }
    match examine(machine, role, &found)? {
        Format::Elf(Elf::Dynamic(loader)) => follow(machine, Role::Loader, &loader, depth, steps),
        Format::Elf(Elf::Foreign) => Err(CommandError::Foreign(found)),
        Format::Elf(Elf::Broken(fault)) => Err(CommandError::Broken { path: found, fault }),
        // Neither: the kernel may have been taught other formats.
        Format::Elf(Elf::Static | Elf::No) => Ok(()),
        Format::Script(script) if script.names_carriage_return() => {
            Err(CommandError::CarriageReturn(found))
        }
        Format::Script(script) => {
            let interpreter = machine.directory().join(&script.interpreter);
            follow(machine, Role::Interpreter, &interpreter, depth + 1, steps)?;
            match script.looked_up() {
                Some(name) => {
                    let named = search(machine, &name)?;
                    follow(machine, Role::Interpreter, &named, depth + 1, steps)
                }
                None => Ok(()),
            }
        }
    }
}

/// What the kernel takes a file for.
enum Format {
    Elf(Elf),
    Script(Script),
}

fn examine(machine: &impl Machine, role: Role, path: &Path) -> Result<Format, CommandError> {
    let unusable = |error| CommandError::Unusable {
        role,
        path: path.into(),
        error,
    };
    let head = match machine.read(path, 0, HEAD_BYTES) {
        // It may be executable and not readable: then it is no script, and
        // nothing else can be known of it.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Vec::new(),
        head => head.map_err(unusable)?,
    };
    match script(&head) {
        Some(script) => Ok(Format::Script(script)),
        None => Ok(Format::Elf(
            elf::examine(machine, path, &head).map_err(unusable)?,
        )),
    }
}

/// Finds a program as execvp(3) does.
fn search(machine: &impl Machine, program: &OsStr) -> Result<PathBuf, CommandError> {
    if program.as_bytes().contains(&b'/') {
        return Ok(machine.directory().join(program));
    }
    let path = machine
        .variable("PATH")
        .unwrap_or_else(|| OsString::from(DEFAULT_PATH));
    let mut refused = None;
    for directory in std::env::split_paths(&path) {
        // An empty entry is the working directory; joined, so is a relative one.
        let candidate = machine.directory().join(directory).join(program);
        match machine.check_executable(&candidate) {
            // Joined, the empty name would be the directory.
            _ if program.is_empty() => {}
            Ok(()) => return Ok(candidate),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                refused.get_or_insert((candidate, error));
            }
            Err(_) => {}
        }
    }
    Err(match refused {
        Some((path, error)) => CommandError::Unusable {
            role: Role::Program,
            path,
            error,
        },
        None => CommandError::NotFound {
            program: program.to_string_lossy().into_owned(),
            searched: path.to_string_lossy().into_owned(),
        },
    })
}

fn look(machine: &impl Machine, role: Role, named: &Path) -> Result<Step, CommandError> {
    let unusable = |error| CommandError::Unusable {
        role,
        path: named.into(),
        error,
    };
    machine.check_executable(named).map_err(unusable)?;
    let path = machine.canonical(named).map_err(unusable)?;
    let (id, _) = machine.identify(&path).map_err(unusable)?;
    let path = path
        .into_os_string()
        .into_string()
        .map_err(|path| CommandError::NotText(path.into()))?;
    Ok(Step {
        role,
        named: named.into(),
        path,
        id,
    })
}

/// The first line of a script.
struct Script {
    interpreter: PathBuf,
    /// All that stands behind it is one argument.
    argument: Vec<u8>,
}

/// Reads it as the kernel does (fs/binfmt_script.c).
fn script(head: &[u8]) -> Option<Script> {
    let line = head.strip_prefix(b"#!")?;
    let end = line.iter().position(|&b| b == b'\n');
    let trimmed = without_blanks(&line[..end.unwrap_or(line.len())]);
    let stop = trimmed
        .iter()
        .position(|byte| is_blank(byte) || *byte == 0)
        .unwrap_or(trimmed.len());
    // Without an end the name of the interpreter may have been cut off.
    if stop == 0 || end.is_none() && stop == trimmed.len() && head.len() == HEAD_BYTES {
        return None;
    }
    let (interpreter, argument) = trimmed.split_at(stop);
    Some(Script {
        interpreter: OsString::from_vec(interpreter.to_vec()).into(),
        argument: without_blanks(argument).to_vec(),
    })
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn without_blanks(text: &[u8]) -> &[u8] {
    let start = text.iter().take_while(|byte| is_blank(byte)).count();
    let text = &text[start..];
    let end = text.iter().rev().take_while(|byte| is_blank(byte)).count();
    &text[..text.len() - end]
}

impl Script {
    /// Whether a program is looked for whose name ends in one.
    fn names_carriage_return(&self) -> bool {
        let ends = |name: &OsStr| name.as_bytes().ends_with(b"\r");
        ends(self.interpreter.as_os_str()) || self.looked_up().is_some_and(|name| ends(&name))
    }

    /// What `#!/usr/bin/env NAME` and `#!/usr/bin/env -S [VAR=VALUE] NAME …`
    /// have looked up in PATH.
    fn looked_up(&self) -> Option<OsString> {
        if self.interpreter.file_name()? != "env" {
            return None;
        }
        let argument = self.argument.as_slice();
        let Some(split) = argument
            .strip_prefix(b"-S")
            .or_else(|| argument.strip_prefix(b"--split-string="))
        else {
            let is_name = !argument.is_empty() && !argument.starts_with(b"-");
            return is_name.then(|| OsString::from_vec(argument.to_vec()));
        };
        split
            .split(u8::is_ascii_whitespace)
            .find(|word| !word.is_empty() && !word.starts_with(b"-") && !word.contains(&b'='))
            .map(|word| OsString::from_vec(word.to_vec()))
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Program => "the program",
            Self::Interpreter => "the interpreter",
            Self::Loader => "the loader",
        })
    }
}

/// How much of a file the kernel looks at to tell what it is
/// (BINPRM_BUF_SIZE).
const HEAD_BYTES: usize = 256;

/// How many interpreters in a row the kernel follows (fs/exec.c,
/// exec_binprm).
const MAX_SCRIPTS: usize = 5;

/// Where programs are looked for without PATH.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

#[cfg(test)]
mod tests;
