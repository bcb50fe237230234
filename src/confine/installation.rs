//! What belongs to a program that was installed beside the system's own.

use std::path::{Path, PathBuf};

use super::command::Step;
use super::machine::Machine;
use super::preset::Preset;

/// The libraries and packages of a step, each with the reason. A prefix counts
/// only where it shows the marks of an installation: `lib` may be whatever its
/// owner keeps there.
pub(super) fn belonging(
    machine: &impl Machine,
    preset: Preset,
    step: &Step,
) -> Vec<(PathBuf, &'static str)> {
    let exists = |path: &Path| machine.identify(path).is_ok();
    let mut found = Vec::new();
    // A virtual environment is where the link to its interpreter stands.
    if let Some(prefix) = prefix_of(&step.named)
        && exists(&prefix.join("pyvenv.cfg"))
    {
        found.push((prefix.to_owned(), "its virtual environment"));
    }
    let program = Path::new(&step.path);
    if preset == Preset::Uvx {
        found.push((program.with_file_name("uv"), "uvx runs it"));
    }
    let modules = program
        .ancestors()
        .find(|path| path.file_name().is_some_and(|name| name == "node_modules"));
    if let Some(modules) = modules {
        found.push((modules.to_owned(), "its packages"));
    } else if let Some(prefix) = prefix_of(program)
        && (exists(&prefix.join("lib/node_modules")) || is_python(machine, prefix, program))
    {
        found.push((prefix.join("bin"), "programs beside it"));
        found.push((prefix.join("lib"), "its libraries"));
    }
    found
}

/// Whether `prefix` holds the library of this Python.
fn is_python(machine: &impl Machine, prefix: &Path, program: &Path) -> bool {
    program.file_name().is_some_and(|name| {
        let is_named = name.to_str().is_some_and(|name| name.starts_with("python"));
        let library = prefix.join("lib").join(name);
        is_named && machine.identify(&library).is_ok()
    })
}

/// `/p` of `/p/bin/program`.
fn prefix_of(program: &Path) -> Option<&Path> {
    let bin = program.parent()?;
    let is_bin = bin.file_name().is_some_and(|name| name == "bin");
    bin.parent().filter(|_| is_bin)
}
