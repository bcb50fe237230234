//! Confinement flags as arguments, and a command line of them.

use std::ffi::OsString;

use crate::doctor::shell;
use crate::stations::sandbox::Asked;

/// `--confine` and all that goes with it, in the order of the help.
pub(super) fn arguments(flags: &Asked) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["--confine".into()];
    let mut pair = |option: &str, value: OsString| args.extend([option.into(), value]);
    if let Some(preset) = &flags.preset {
        pair("--preset", preset.into());
    }
    for path in &flags.read {
        pair("--allow-read", path.into());
    }
    for path in &flags.write {
        pair("--allow-write", path.into());
    }
    for entry in &flags.net {
        pair("--allow-net", entry.into());
    }
    for name in &flags.variables {
        pair("--allow-env", name.into());
    }
    if let Some(upstream) = &flags.upstream {
        pair("--upstream-proxy", upstream.into());
    }
    for (option, value) in [
        ("--max-procs", flags.limits.processes),
        ("--max-memory", flags.limits.memory_bytes),
        ("--max-files", flags.limits.files),
    ] {
        if let Some(value) = value {
            pair(option, value.to_string().into());
        }
    }
    for (option, is_given) in [
        ("--allow-exec-support", flags.exec_support),
        ("--allow-unix-sockets", flags.unix_sockets),
        ("--shared-cache", flags.shared_cache),
        ("--best-effort", flags.best_effort),
    ] {
        if is_given {
            args.push(option.into());
        }
    }
    args
}

/// As one line of a shell.
pub(super) fn line(args: &[OsString]) -> String {
    let words = args.iter().map(|arg| shell::quoted(arg.as_encoded_bytes()));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;
    use crate::wire::facts::Limits;

    #[test]
    fn every_flag_has_its_arguments() {
        let flags = Asked {
            read: vec!["/a b".into()],
            write: vec!["/w".into()],
            net: vec!["a.test:443".to_owned()],
            variables: vec!["TOKEN".to_owned()],
            preset: Some("node".to_owned()),
            exec_support: true,
            unix_sockets: true,
            shared_cache: true,
            upstream: Some("http://p:1".to_owned()),
            limits: Limits {
                processes: Some(1),
                memory_bytes: Some(2),
                files: Some(3),
            },
            best_effort: true,
        };
        assert_eq!(
            line(&arguments(&flags)),
            "--confine --preset node --allow-read '/a b' --allow-write /w --allow-net a.test:443 \
             --allow-env TOKEN --upstream-proxy http://p:1 --max-procs 1 --max-memory 2 \
             --max-files 3 --allow-exec-support --allow-unix-sockets --shared-cache --best-effort"
        );
        assert_eq!(arguments(&Asked::default()), ["--confine"]);
    }

    /// What is pasted is what was meant, options and odd bytes included.
    #[test]
    fn a_shell_reads_the_line_as_it_was() {
        let args: Vec<OsString> = [
            &b"-y"[..],
            b"",
            b"it's",
            b"--x=$HOME",
            b"a\nb",
            b"\xff",
            b"-e'",
            b"; true",
            b"*",
        ]
        .iter()
        .map(|arg| OsStr::from_bytes(arg).to_owned())
        .collect();
        let script = format!("printf '%s\\0' {}", line(&args));
        let Ok(bash) = std::process::Command::new("bash")
            .args(["-c", &script])
            .output()
        else {
            return eprintln!("SKIPPED: bash is not installed");
        };
        let mut expected = Vec::new();
        for arg in &args {
            expected.extend(arg.as_bytes());
            expected.push(0);
        }
        assert_eq!(bash.stdout, expected);
    }
}
