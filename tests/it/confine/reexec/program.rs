//! What a program finds that a helper has become.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::thread;

use aegis::internals::confine::helper::Asked;

use super::rig::{
    Rig, as_each_user, as_plain, behind, ended, has_namespaces, is_root, of_system, piped, shell,
};
use crate::exe::skip;

#[test]
fn it_has_the_name_that_was_typed_and_no_variable_but_those_given() {
    as_each_user(|rig| {
        let asked = of_system("env")
            .set("TMPDIR", "/x y")
            .set("EMPTY", "")
            .keep("AEGIS_TEST_MISSING")
            .keep("PATH");
        let ran = rig.run(asked, &["env"]);
        let mut lines: Vec<&str> = ran.stdout.lines().collect();
        lines.sort_unstable();
        let kept = format!("PATH={}", std::env::var("PATH").unwrap());
        assert_eq!(
            lines,
            ["EMPTY=", kept.as_str(), "TMPDIR=/x y"],
            "{}",
            ran.stderr
        );
        let args = ["a name", "-c", "echo \"$0\"; exit 7"];
        let ran = rig.run(shell(), &args);
        assert_eq!(
            (ran.stdout.as_str(), ran.status.code()),
            ("a name\n", Some(7))
        );
    });
}

#[test]
fn a_static_program_needs_nothing_but_itself() {
    as_each_user(|rig| {
        let source = rig.file("answer.c", "int main(void) { return 42; }\n");
        let program = source.trim_end_matches(".c");
        let mut build = Command::new("cc");
        build.args(["-static", "-o", program, &source]);
        if !build.output().is_ok_and(|ran| ran.status.success()) {
            skip("there is no cc that links statically");
            return;
        }
        let asked = Asked::of(program).read(program).unwrap();
        assert_eq!(rig.run(asked, &["answer"]).status.code(), Some(42));
    });
}

#[test]
fn it_reads_what_is_granted_and_nothing_else() {
    as_each_user(|rig| {
        let granted = rig.file("granted", "yes\n");
        let other = rig.file("other", "no\n");
        let asked = shell().read(&granted).unwrap();
        let script = format!("cat {granted}; cat {other}; echo x > {granted}");
        let ran = rig.run(asked, &["sh", "-c", &script]);
        assert_eq!(ran.stdout, "yes\n");
        assert_eq!(
            ran.stderr.matches("ermission denied").count(),
            2,
            "{}",
            ran.stderr
        );
    });
}

/// SPEC [SANDBOX-8].
#[test]
fn it_has_no_capability_and_can_gain_none() {
    as_each_user(|rig| {
        let asked = shell().read("/proc").unwrap();
        let ran = rig.run(asked, &["sh", "-c", "cat /proc/self/status"]);
        let field = |name: &str| {
            let line = ran.stdout.lines().find(|line| line.starts_with(name));
            line.unwrap().rsplit('\t').next().unwrap().to_owned()
        };
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(field(set), "0000000000000000", "{set}");
        }
        if has_namespaces(rig) {
            assert_eq!(field("CapBnd"), "0000000000000000");
        }
        assert_eq!(
            (field("NoNewPrivs:"), field("Seccomp:")),
            ("1".into(), "2".into())
        );
    });
}

#[test]
fn what_was_open_is_closed() {
    as_each_user(|rig| {
        let secret = rig.file("secret", "told\n");
        let ordered = shell().open().unwrap();
        let script = "cat <&7; cat <&100";
        let command = ordered
            .command(&rig.aegis(), &["sh", "-c", script])
            .unwrap();
        let opening = format!("exec 7<{secret} 100<{secret}; exec \"$@\"");
        // dash takes one digit only.
        let opening = ["bash", "-c", &opening, "bash"];
        let child = piped(&mut behind(&opening, &command)).spawn().unwrap();
        ordered.admit(child.id()).unwrap().go().unwrap();
        let ran = ended(child);
        assert_eq!(ran.stdout, "");
        assert!(
            ran.stderr.contains("7: Bad file descriptor"),
            "{}",
            ran.stderr
        );
    });
}

/// SPEC [SANDBOX-14].
#[test]
fn it_is_bounded_as_was_asked() {
    as_plain(|rig| {
        let asked = shell().limits(Some(50), 256 << 20, 64);
        let script = "ulimit -n; ulimit -v; ulimit -c; ulimit -Hn";
        let ran = rig.run(asked, &["sh", "-c", script]);
        assert_eq!(ran.stdout, "64\n262144\n0\n64\n", "{}", ran.stderr);
        if has_namespaces(rig) {
            let hungry = "i=0; while [ $i -lt 60 ]; do sleep 5 & i=$((i+1)); done; wait";
            let asked = shell().limits(Some(50), 256 << 20, 64);
            let ran = rig.run(asked, &["sh", "-c", hungry]);
            assert!(ran.stderr.contains("fork"), "{}", ran.stderr);
        }
    });
}

#[test]
fn a_limit_that_does_not_bind_root_is_refused_or_told() {
    if !is_root() || is_mapped() {
        return;
    }
    let rig = Rig::new();
    let asked = || shell().limits(Some(50), 256 << 20, 64);
    let text = rig.refused(asked(), &["sh"]);
    assert!(text.starts_with("--max-procs does not bind root"), "{text}");
    let ordered = asked().best_effort().open().unwrap();
    let (child, ready) = rig.start(&ordered, &["sh", "-c", "exit 3"]).unwrap();
    assert_eq!(
        ready.report().unwrap()["gaps"],
        serde_json::json!(["processes"])
    );
    ready.go().unwrap();
    assert_eq!(ended(child).status.code(), Some(3));
}

/// Whether the root of this namespace is another user outside.
fn is_mapped() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap();
    map.split_ascii_whitespace().nth(1) != Some("0")
}

#[test]
fn limits_below_which_nothing_runs_are_refused() {
    for (memory, files, flag) in [
        ((64 << 20) - 1, 16, "--max-memory"),
        (64 << 20, 15, "--max-files"),
    ] {
        let text = shell().limits(None, memory, files).open().err().unwrap();
        assert!(
            text.starts_with(&format!("{flag} needs at least")),
            "{text}"
        );
    }
    as_plain(|rig| {
        if has_namespaces(rig) {
            let ran = rig.run(
                shell().limits(Some(1), 64 << 20, 16),
                &["sh", "-c", "exit 5"],
            );
            assert_eq!(ran.status.code(), Some(5), "{}", ran.stderr);
        }
    });
}

#[test]
fn it_dies_with_the_thread_that_started_it() {
    as_each_user(|rig| {
        let start = || {
            let ordered = shell().open().unwrap();
            let (child, ready) = rig.start(&ordered, &["sh", "-c", "exec sleep 60"]).unwrap();
            ready.go().unwrap();
            child
        };
        let child = thread::scope(|scope| scope.spawn(start).join().unwrap());
        assert_eq!(ended(child).status.signal(), Some(9));
    });
}
