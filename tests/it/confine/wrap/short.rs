//! Users and machines that are short of something: what is missing is named,
//! with what helps.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use super::server::{Confined, has_namespaces};

/// The same command behind a line of shell.
fn behind(line: &str, confined: &Confined) -> Command {
    behind_script(&format!("{line} && exec \"$@\""), confined)
}

/// The same command as the arguments of a script.
fn behind_script(script: &str, confined: &Confined) -> Command {
    let inner = confined.command();
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(confined.home());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// How it ends, and what it says.
#[track_caller]
fn assert_refused(mut command: Command, why: &str, cure: &str) {
    let ran = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(126), "{said}");
    let start = format!("error: cannot confine the server: {why}");
    assert!(said.starts_with(&start), "{start}\n{said}");
    assert!(said.trim_end().ends_with(cure), "{cure}\n{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn sockets_that_do_not_fit_are_a_matter_of_the_limit() {
    let ports = |count: u16| {
        let ports: Vec<_> = (1000..1000 + count).map(|port| port.to_string()).collect();
        format!("127.0.0.1:{}", ports.join(","))
    };
    let handed = "the private socket that a confined start needs cannot be had: ";
    // What the helper can hold is too much for aegis, and more for the helper.
    for (count, why) in [(14, handed), (60, "cannot listen on ")] {
        let flags = ["--allow-net", &ports(count)];
        let Some(confined) = Confined::python(&flags).filter(|_| has_namespaces()) else {
            return;
        };
        let limited = behind("ulimit -n 24", &confined);
        assert_refused(
            limited,
            why,
            "; let this process open more files (ulimit -n)",
        );
        assert!(confined.leftovers().is_empty());
    }
}

/// Not even to remove what was begun: removing needs none then.
#[test]
fn however_few_files_may_be_open_nothing_is_left() {
    let Some(confined) = Confined::python(&[]) else {
        return;
    };
    for files in 4..24 {
        let mut command = behind(&format!("ulimit -n {files}"), &confined);
        command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(confined.leftovers(), Vec::<&Path>::new(), "{files}");
    }
}

/// As caches of modules do. Of root's nothing is locked.
#[test]
fn what_a_server_locks_in_its_temporary_directory_goes_all_the_same() {
    let mut confined = Confined::python(&["--allow-exec-support"]);
    if rustix::process::geteuid().is_root() {
        confined = confined.and_then(Confined::by_a_plain_user);
    }
    let Some(confined) = confined else {
        return;
    };
    // Who may write somewhere may change modes.
    let confined = confined.granting("--allow-write", "work");
    let script = "cd $TMPDIR && mkdir -p a/b && touch a/b/f && ln -s $HOME/work a/l && \
                  chmod 0 a/b && chmod 500 a && chmod 500 $HOME/work";
    let confined = confined.with_command(&["/bin/sh", "-c", script].map(str::to_owned));
    let shown = confined.shown();
    assert!(!shown.contains("could not be removed"), "{shown}");
    assert_eq!(confined.leftovers(), Vec::<&Path>::new(), "{shown}");
    // Where the link leads nothing was touched.
    let work = fs::metadata(confined.home().join("work")).unwrap();
    assert_eq!(work.permissions().mode() & 0o777, 0o500, "{shown}");
}

#[test]
fn an_empty_tmpdir_names_no_place() {
    let Some(confined) = Confined::python(&[]) else {
        return;
    };
    let confined = confined.with_variable("TMPDIR", "");
    confined.start().finish().assert_exit(0);
}

#[test]
fn a_tmpdir_that_holds_nothing_is_told_by_the_systems_words() {
    let Some(mut confined) = Confined::python(&[]) else {
        return;
    };
    for (place, error) in [
        ("/proc", "No such file or directory (os error 2)"),
        ("/none", "No such file or directory (os error 2)"),
        ("/etc/passwd", "Not a directory (os error 20)"),
    ] {
        confined = confined.with_variable("TMPDIR", place);
        let why = format!("no private directory can be made in `{place}`: {error}; ");
        assert_refused(
            confined.command(),
            &why,
            "set TMPDIR to a directory that can be written to",
        );
    }
}

#[test]
fn a_place_with_a_long_name_is_no_place_for_a_socket_and_another_is_found() {
    let Some(confined) = Confined::python(&[]) else {
        return;
    };
    let long = confined.temporary().join("t".repeat(120));
    fs::create_dir(&long).unwrap();
    let confined = confined.with_variable("TMPDIR", long.to_str().unwrap());
    confined.start().finish().assert_exit(0);
    assert_eq!(fs::read_dir(&long).unwrap().count(), 0);
}

#[test]
fn a_directory_that_is_gone_and_a_home_that_loops_are_named() {
    let Some(confined) = Confined::python(&[]) else {
        return;
    };
    assert_refused(
        behind("mkdir gone && cd gone && rmdir ../gone", &confined),
        "the working directory cannot be found: No such file or directory (os error 2)",
        "; start aegis in another",
    );
    let home = confined.home().join("loop");
    symlink("loop", &home).unwrap();
    let home = home.to_str().unwrap();
    let why = format!("the cache `{home}/.cache/aegis` cannot be found, ");
    assert_refused(
        confined.with_variable("HOME", home).command(),
        &why,
        "correct its path, which HOME or an XDG_ variable leads to",
    );
}

#[test]
fn the_proc_of_other_processes_is_told_from_the_own_one() {
    let Some(confined) = Confined::python(&[]).filter(|_| has_namespaces()) else {
        return;
    };
    let script = "exec unshare -U -r -p -f \"$@\"";
    assert_refused(
        behind_script(script, &confined),
        "/proc is of another process namespace",
        "; mount the own one there (unshare --mount-proc)",
    );
}

#[test]
fn a_path_as_only_a_shell_reads_it_is_told_to_be_one() {
    let Some(mut confined) = Confined::python(&[]) else {
        return;
    };
    for path in ["~/notes", "$HOME/notes"] {
        let flags = ["--allow-write", path];
        let why = format!("--allow-write: invalid path `{path}`: No such file or directory");
        confined.setup = confined.setup.with(&flags);
        assert_refused(
            confined.command(),
            &why,
            "; no shell has expanded it, so write the whole path",
        );
        let Some(next) = Confined::python(&[]) else {
            return;
        };
        confined = next;
    }
}

#[test]
fn a_script_from_windows_is_told_by_its_line_ends() {
    let Some(confined) = Confined::python(&["--allow-exec-support"]) else {
        return;
    };
    let script = confined.home().join("server");
    let script = script.to_str().unwrap();
    let confined = confined
        .with_flags(&["--allow-read", script])
        .with_command(&[script.to_owned()]);
    for line in ["#!/bin/sh\r\nexit 0\n", "#!/usr/bin/env sh\r\nexit 0\n"] {
        fs::write(script, line).unwrap();
        fs::set_permissions(script, Permissions::from_mode(0o755)).unwrap();
        let why = format!("the first line of `{script}` ends as on Windows");
        assert_refused(confined.command(), &why, "; save it with Unix line ends");
    }
}
