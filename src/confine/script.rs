//! The script that an interpreter is given, which a command runs just as it
//! does a program, though no kernel looks at it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::machine::Machine;
use super::preset::Preset;
use crate::grant::root::Kind;

/// What belongs to the script that `command` runs, with the reason: the package
/// that it is part of, or the directory that it loads others from. The script
/// alone where that would be a directory that holds anything.
pub(super) fn belonging(
    machine: &impl Machine,
    preset: Preset,
    command: &[OsString],
) -> Vec<(PathBuf, &'static str)> {
    let Some(script) = of_command(preset, command) else {
        return Vec::new();
    };
    let Ok(script) = machine.canonical(script) else {
        return Vec::new();
    };
    let Ok((_, Kind::File)) = machine.identify(&script) else {
        return Vec::new();
    };
    let (belonging, why) = match preset {
        Preset::Node => (package(machine, &script), "its package"),
        _ => (script.parent(), "the directory of its script"),
    };
    match belonging.filter(|directory| !holds_anything(machine, directory)) {
        Some(directory) => vec![(directory.to_owned(), why)],
        None => vec![(script, "its script")],
    }
}

/// The script that `command` names, if it runs one.
pub(super) fn of_command(preset: Preset, command: &[OsString]) -> Option<&Path> {
    named(preset, command.get(1..).unwrap_or_default()).map(Path::new)
}

/// The argument that is a script.
fn named(preset: Preset, arguments: &[OsString]) -> Option<&OsStr> {
    let (with_value, without_script): (&[&str], fn(&str) -> bool) = match preset {
        Preset::Node => (NODE_VALUES, |option| {
            NODE_WITHOUT_SCRIPT.contains(&option.split('=').next().unwrap_or(option))
        }),
        Preset::Python => (PYTHON_VALUES, |option| {
            !option.starts_with("--") && option.contains(['c', 'm'])
        }),
        Preset::Static | Preset::Npx | Preset::Uvx => return None,
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        // Standard input is no script that could be granted.
        if !argument.as_bytes().starts_with(b"-") {
            return Some(argument);
        }
        let option = argument.to_str()?;
        if option == "--" {
            return arguments.next().map(OsString::as_os_str);
        }
        if without_script(option) {
            return None;
        }
        if with_value.contains(&option) {
            arguments.next();
        }
    }
    None
}

/// The package that a script of node is part of: the outermost `node_modules`
/// that holds it, since packages beside it are what it loads, or the nearest
/// directory with a `package.json`.
fn package<'a>(machine: &impl Machine, script: &'a Path) -> Option<&'a Path> {
    let modules = script
        .ancestors()
        .filter(|path| path.file_name().is_some_and(|name| name == "node_modules"))
        .last();
    let is_package = |path: &&Path| machine.identify(&path.join("package.json")).is_ok();
    modules
        .or_else(|| script.ancestors().skip(1).find(is_package))
        .or_else(|| script.parent())
}

/// Whether a directory is for more than one purpose: that of all users, of one,
/// or one of the system's own.
///
/// The next level below those counts where each entry is somebody's all, as a
/// home directory or a disk is, or the system's.
fn holds_anything(machine: &impl Machine, directory: &Path) -> bool {
    let home = machine.variable("HOME").map(PathBuf::from);
    let home = home.and_then(|home| machine.canonical(&home).ok());
    let is_whole = |parent: &Path| WHOLES.iter().any(|whole| parent == Path::new(whole));
    home.is_some_and(|home| home.starts_with(directory))
        || directory.ancestors().count() <= 2
        || directory.parent().is_some_and(is_whole)
}

/// Directories whose entries hold anything.
const WHOLES: &[&str] = &[
    "/dev", "/etc", "/home", "/media", "/mnt", "/run", "/sys", "/proc", "/var",
];

/// Options of node whose value is an argument of its own (`node --help`).
const NODE_VALUES: &[&str] = &[
    "-C",
    "-r",
    "--conditions",
    "--env-file",
    "--env-file-if-exists",
    "--experimental-loader",
    "--icu-data-dir",
    "--import",
    "--input-type",
    "--loader",
    "--max-http-header-size",
    "--openssl-config",
    "--require",
    "--title",
    "--unhandled-rejections",
];

/// Options of node after which no script follows.
const NODE_WITHOUT_SCRIPT: &[&str] = &[
    "-",
    "-c",
    "-e",
    "-i",
    "-p",
    "-pe",
    "--check",
    "--eval",
    "--interactive",
    "--print",
    "--test",
];

/// The same of python.
const PYTHON_VALUES: &[&str] = &["-W", "-X", "--check-hash-based-pycs"];

#[cfg(test)]
mod tests {
    use super::super::machine::pretend::Pretend;
    use super::*;

    fn machine() -> Pretend {
        let mut machine = Pretend::new();
        machine
            .file("/home/u/app/package.json", b"")
            .file("/home/u/app/dist/index.js", b"")
            .file("/home/u/p/node_modules/@s/server/dist/index.js", b"")
            .file("/home/u/p/node_modules/@s/server/package.json", b"")
            .file("/home/u/p/package.json", b"")
            .file("/home/u/loose.js", b"")
            .file("/home/u/loose.py", b"")
            .file("/home/u/tool/server.py", b"")
            .file("/tmp/server.py", b"")
            .file("/var/tmp/server.py", b"")
            .file("/home/other/server.py", b"")
            .file("/opt/tool/server.py", b"")
            .link("/home/u/short.py", "tool/server.py")
            .set("HOME", "/home/u");
        machine
    }

    fn of(preset: Preset, command: &str) -> String {
        let command: Vec<OsString> = command.split(' ').map(OsString::from).collect();
        let found = belonging(&machine(), preset, &command);
        let paths = found.iter().map(|(path, _)| path.to_string_lossy());
        paths.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_script_of_node_brings_its_package() {
        for (command, expected) in [
            ("node /home/u/app/dist/index.js", "/home/u/app"),
            (
                "node --no-warnings -r dotenv /home/u/app/dist/index.js x",
                "/home/u/app",
            ),
            ("node -- /home/u/app/dist/index.js", "/home/u/app"),
            (
                "node /home/u/p/node_modules/@s/server/dist/index.js",
                "/home/u/p/node_modules",
            ),
            ("node /home/u/loose.js", "/home/u/loose.js"),
            ("node -e /home/u/app/dist/index.js", ""),
            ("node --eval=1 /home/u/app/dist/index.js", ""),
            ("node - /home/u/app/dist/index.js", ""),
            ("node /home/u/app/none.js", ""),
            ("node /home/u/app", ""),
            ("node", ""),
        ] {
            assert_eq!(of(Preset::Node, command), expected, "{command}");
        }
    }

    #[test]
    fn a_script_of_python_brings_its_directory() {
        for (command, expected) in [
            ("python /home/u/tool/server.py", "/home/u/tool"),
            ("python -u -X dev /home/u/tool/server.py -m", "/home/u/tool"),
            // Python looks for modules where the link leads.
            ("python /home/u/short.py", "/home/u/tool"),
            ("python /home/u/loose.py", "/home/u/loose.py"),
            ("python /tmp/server.py", "/tmp/server.py"),
            ("python /var/tmp/server.py", "/var/tmp/server.py"),
            ("python /home/other/server.py", "/home/other/server.py"),
            ("python /opt/tool/server.py", "/opt/tool"),
            ("python -m server /home/u/tool/server.py", ""),
            ("python -um server /home/u/tool/server.py", ""),
            ("python -c pass /home/u/tool/server.py", ""),
        ] {
            assert_eq!(of(Preset::Python, command), expected, "{command}");
        }
    }

    #[test]
    fn other_presets_have_no_script() {
        for preset in [Preset::Npx, Preset::Uvx, Preset::Static] {
            assert_eq!(of(preset, "x /home/u/tool/server.py"), "");
        }
    }
}
