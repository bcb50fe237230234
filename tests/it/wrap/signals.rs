//! What wrap takes over from whoever started it, and which processes and
//! signals it has to bear meanwhile.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::json;

use super::harness::{Setup, is_alive, until};
use crate::exe::skip;

/// Starts wrap from a shell that does `before` first, and becomes wrap.
fn launch(setup: &Setup, before: &str) -> Child {
    launch_by(setup, &format!("{before}; exec"))
}

/// Starts wrap by a shell command that it is appended to.
fn launch_by(setup: &Setup, launcher: &str) -> Child {
    Command::new("sh")
        .args(["-c", &format!("{launcher} \"$@\""), "sh"])
        .args(setup.argv())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The states of the children of a process, as in `/proc/PID/stat`.
fn child_states(parent: Pid) -> Vec<u8> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero()));
    let lists = tasks.unwrap().flatten().map(|task| {
        let list = std::fs::read_to_string(task.path().join("children"));
        list.unwrap_or_default()
    });
    let pids = lists.collect::<String>();
    let stats = pids
        .split_ascii_whitespace()
        .filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok());
    stats
        .filter_map(|stat| Some(stat.rsplit_once(") ")?.1.as_bytes()[0]))
        .collect()
}

#[test]
fn orphans_do_not_stay_as_zombies() {
    let script = "i=0; while [ $i -lt 50 ]; do (true &); i=$((i+1)); done; echo made >&2; cat";
    let setup = Setup::command(&["sh", "-c", script]);
    let mut session = setup.start();
    session.stderr_line("made");
    // The wrapped child stays; an orphan may still be on its way to exit.
    until("the orphans to be reaped", || {
        child_states(session.pid()).len() == 1
    });
    session.finish().assert_exit(0);
}

#[test]
fn a_child_that_is_gone_keeps_its_id_until_the_end() {
    // Each orphan is an occasion to reap.
    let script = "(true &); (true &); exit 7";
    for _ in 0..20 {
        let ended = Setup::command(&["sh", "-c", script]).start().wait();
        ended.assert_exit(7);
    }
}

#[test]
fn the_exit_code_is_the_childs_when_the_launcher_ignores_children() {
    let setup = Setup::command(&["sh", "-c", "cat; exit 7"]);
    // Not every shell can.
    let mut wrap = launch_by(&setup, "exec env --ignore-signal=CHLD");
    drop(wrap.stdin.take());
    let output = wrap.wait_with_output().unwrap();
    if output.status.code() == Some(125) {
        skip("env cannot ignore signals here");
        return;
    }
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    setup.record().assert_verified();
}

#[test]
fn a_signal_that_the_launcher_ignores_is_ignored() {
    for (name, signal) in [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("TERM", Signal::TERM),
    ] {
        let setup = Setup::command(&["cat"]);
        let mut wrap = launch(&setup, &format!("trap '' {name}"));
        let mut input = wrap.stdin.take().unwrap();
        let mut output = BufReader::new(wrap.stdout.take().unwrap());
        let mut echo = || {
            input.write_all(b"{}\n").unwrap();
            let mut row = String::new();
            output.read_line(&mut row).unwrap();
            assert_eq!(row, "{}\n", "{name}");
        };
        echo();
        kill_process(Pid::from_child(&wrap), signal).unwrap();
        echo();
        drop(input);
        assert_eq!(wrap.wait().unwrap().code(), Some(0), "{name}");
        setup.record().assert_verified();
    }
}

/// SPEC [CHAIN-8] [CLI-16].
#[test]
fn a_limit_for_files_at_the_end_of_a_row_is_a_full_disk() {
    let setup = Setup::server(&["--spawn-grandchild", "600"]);
    let mut session = setup.start();
    let grandchild = session.stderr_line("grandchild ");
    session.ask(1, "echo", json!({"text": "a"}));
    let length = std::fs::metadata(setup.audit()).unwrap().len();
    let limit = Rlimit {
        current: Some(length),
        maximum: Some(length),
    };
    prlimit(Some(session.pid()), Resource::Fsize, limit).unwrap();
    session.call(2, "echo", json!({"text": "a"}));
    let ended = session.wait();
    ended.assert_exit(1);
    let text = "wrap audit failed: audit write failed: ";
    assert!(ended.stderr.contains(text), "{}", ended.stderr);
    assert!(!is_alive(&grandchild));
    assert_eq!(std::fs::metadata(setup.audit()).unwrap().len(), length);
}

#[test]
fn what_the_launcher_started_is_left_alone() {
    let setup = Setup::command(&["sh", "-c", "(true &); cat"]);
    let before = "sleep 600 >/dev/null 2>&1 </dev/null & echo $! >&2";
    let mut wrap = launch(&setup, before);
    let mut pid = String::new();
    BufReader::new(wrap.stderr.take().unwrap())
        .read_line(&mut pid)
        .unwrap();
    let pid = pid.trim();
    drop(wrap.stdin.take());
    let code = wrap.wait().unwrap().code();
    let alive = is_alive(pid);
    if alive {
        kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    }
    assert_eq!(code, Some(0));
    assert!(alive);
}

/// The processes that have this text among their arguments.
fn processes_with(argument: &str) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let found = processes.filter_map(|process| {
        let pid = Pid::from_raw(process.file_name().to_str()?.parse().ok()?)?;
        let arguments = std::fs::read(process.path().join("cmdline")).ok()?;
        let mut arguments = arguments.split(|byte| *byte == 0);
        arguments.any(|a| a == argument.as_bytes()).then_some(pid)
    });
    found.collect()
}

#[test]
fn a_start_that_fails_halfway_leaves_no_server() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("followed");
    std::fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    let mut halfway = 0;
    // What is too much at some limit is the stack of a thread.
    for limit_kib in (4 << 10..256 << 10).step_by(512) {
        let setup = Setup::command(&["tail", "-f", file]);
        let mut wrap = launch(&setup, &format!("ulimit -v {limit_kib}"));
        let input = wrap.stdin.take();
        let mut stderr = BufReader::new(wrap.stderr.take().unwrap());
        let mut status = None;
        until("the start or its end", || {
            status = wrap.try_wait().unwrap();
            status.is_some() || threads(&wrap) == THREADS
        });
        let Some(status) = status else {
            kill_process(Pid::from_child(&wrap), Signal::TERM).unwrap();
            wrap.wait().unwrap();
            break;
        };
        drop(input);
        let left = processes_with(file);
        for pid in &left {
            let _ = kill_process(*pid, Signal::KILL);
        }
        let mut said = String::new();
        std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
        if status.code() == Some(1) && said.contains("os error 11") && setup.audit().exists() {
            halfway += 1;
            assert!(left.is_empty(), "{limit_kib} KiB: {said}");
        }
    }
    if halfway == 0 {
        skip("no limit for memory made a thread fail");
    }
}

/// How many threads a process has.
fn threads(wrap: &Child) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", wrap.id())).map_or(0, Iterator::count)
}

/// The main thread, and those for signals, the client's hang-up, each
/// direction, and the end of the child.
const THREADS: usize = 6;
