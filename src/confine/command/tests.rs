use super::super::elf::tests::program;
use super::super::machine::ThisMachine;
use super::super::machine::pretend::Pretend;
use super::*;

/// With a shell, `env`, node and their loader.
fn machine() -> Pretend {
    let mut machine = Pretend::new();
    machine
        .program("/usr/lib/ld.so", &program(None))
        .program("/usr/bin/dash", &program(Some("/lib/ld.so")))
        .program("/usr/bin/env", &program(Some("/lib/ld.so")))
        .program("/opt/node/bin/node", &program(Some("/lib/ld.so")))
        .link("/lib", "usr/lib")
        .link("/bin", "usr/bin")
        .link("/usr/bin/sh", "dash")
        .link("/usr/bin/node", "/opt/node/bin/node")
        .set("PATH", "/none::/usr/bin:/opt");
    machine
}

fn paths(machine: &Pretend, command: &str) -> Vec<String> {
    resolve(machine, OsStr::new(command))
        .unwrap()
        .into_iter()
        .map(|step| step.path)
        .collect()
}

fn error(machine: &Pretend, command: &str) -> String {
    resolve(machine, OsStr::new(command))
        .unwrap_err()
        .to_string()
}

#[test]
fn a_program_is_followed_through_links_to_its_loader() {
    let steps = resolve(&machine(), OsStr::new("node")).unwrap();
    let seen: Vec<_> = steps.iter().map(|s| (s.role, s.path.as_str())).collect();
    assert_eq!(
        seen,
        [
            (Role::Program, "/opt/node/bin/node"),
            (Role::Loader, "/usr/lib/ld.so")
        ]
    );
}

#[test]
fn a_script_is_followed_to_its_interpreter_and_through_env() {
    let mut machine = machine();
    machine
        .program("/opt/a", b"#! /bin/sh -e\necho")
        .program("/opt/b", b"#!/usr/bin/env node\n")
        .program("/opt/c", b"#!/usr/bin/env -S A=b node --flag\n")
        .program("/opt/d", b"#!/opt/a\n");
    assert_eq!(
        paths(&machine, "a"),
        ["/opt/a", "/usr/bin/dash", "/usr/lib/ld.so"]
    );
    let by_env = [
        "/usr/bin/env",
        "/usr/lib/ld.so",
        "/opt/node/bin/node",
        "/usr/lib/ld.so",
    ];
    assert_eq!(paths(&machine, "b")[1..], by_env);
    assert_eq!(paths(&machine, "c")[1..], by_env);
    assert_eq!(
        paths(&machine, "d"),
        ["/opt/d", "/opt/a", "/usr/bin/dash", "/usr/lib/ld.so"]
    );
}

#[test]
fn path_is_searched_as_exec_does() {
    let mut machine = machine();
    machine
        .file("/none/tool", b"")
        .program("/proj/tool", &program(None))
        .program("/usr/bin/tool", &program(None));
    // An entry that may not be executed is passed over; the empty one is the
    // working directory.
    assert_eq!(paths(&machine, "tool"), ["/proj/tool"]);
    assert_eq!(paths(&machine, "./tool"), ["/proj/tool"]);
    assert_eq!(paths(&machine, "../usr/bin/tool"), ["/usr/bin/tool"]);
    machine.file("/none/only", b"");
    assert_eq!(
        error(&machine, "only"),
        "the program `/none/only` cannot be run: permission denied"
    );
    assert_eq!(
        error(&machine, "absent"),
        "`absent` was found nowhere in PATH (/none::/usr/bin:/opt)"
    );
    assert!(error(&machine, "").contains("found nowhere"));
}

#[test]
fn what_is_missing_on_the_way_is_named_with_what_it_is_for() {
    let mut machine = machine();
    machine
        .program("/opt/s", b"#!/gone/python -u\n")
        .program("/opt/e", b"#!/usr/bin/env gone\n")
        .program("/opt/p", &program(Some("/gone/ld.so")))
        .link("/opt/dangling", "/gone/x")
        .link("/opt/loop", "loop");
    assert_eq!(
        error(&machine, "s"),
        "the interpreter `/gone/python` cannot be run: entity not found"
    );
    assert!(error(&machine, "e").starts_with("`gone` was found nowhere"));
    assert_eq!(
        error(&machine, "p"),
        "the loader `/gone/ld.so` cannot be run: entity not found"
    );
    assert!(error(&machine, "/opt/dangling").contains("entity not found"));
    assert!(error(&machine, "/opt/loop").contains("cannot be run"));
}

#[test]
fn a_carriage_return_is_a_part_of_a_name_unless_env_splits_it_off() {
    let mut machine = machine();
    machine
        .program("/opt/sh", b"#!/bin/sh\r\n")
        .program("/opt/env", b"#!/usr/bin/env python\r\n")
        .program("/opt/split", b"#!/usr/bin/env -S sh\r\n")
        .program("/opt/argument", b"#!/bin/sh -e\r\n");
    for name in ["sh", "env"] {
        let path = format!("/opt/{name}");
        assert_eq!(
            error(&machine, &path),
            format!(
                "the first line of `{path}` ends as on Windows, so that its interpreter is not \
                 found; save it with Unix line ends"
            )
        );
    }
    assert_eq!(paths(&machine, "/opt/argument")[1], "/usr/bin/dash");
    assert!(paths(&machine, "/opt/split").len() > 2);
}

#[test]
fn scripts_are_followed_as_far_as_the_kernel_does_and_no_further() {
    let mut machine = machine();
    machine.program("/opt/0", b"#!/bin/sh\n");
    for n in 1..=MAX_SCRIPTS {
        let line = format!("#!/opt/{}\n", n - 1);
        machine.program(&format!("/opt/{n}"), line.as_bytes());
    }
    assert_eq!(
        paths(&machine, &format!("/opt/{}", MAX_SCRIPTS - 1)).len(),
        7
    );
    let past = error(&machine, &format!("/opt/{MAX_SCRIPTS}"));
    assert!(past.contains("more than 5 interpreters"), "{past}");
    machine.program("/opt/self", b"#!/opt/self\n");
    assert!(error(&machine, "/opt/self").contains("more than 5"));
    machine.program("/opt/eself", b"#!/usr/bin/env eself\n");
    assert!(error(&machine, "/opt/eself").contains("more than 5"));
}

#[test]
fn a_first_line_that_is_cut_off_names_no_interpreter() {
    let mut machine = machine();
    let long = format!("#!/{}", "x".repeat(HEAD_BYTES));
    machine.program("/opt/long", long.as_bytes());
    assert_eq!(paths(&machine, "/opt/long"), ["/opt/long"]);
    machine.program("/opt/short", b"#!/bin/sh");
    assert_eq!(paths(&machine, "/opt/short").len(), 3);
    machine.program("/opt/empty", b"#!\n/bin/sh");
    assert_eq!(paths(&machine, "/opt/empty"), ["/opt/empty"]);
}

#[test]
fn programs_that_cannot_run_confined_are_refused() {
    let mut machine = machine();
    let mut narrow = program(None);
    narrow[4] = 1;
    machine
        .program("/opt/n", &narrow)
        .program("/opt/b", &program(None)[..70]);
    assert!(error(&machine, "/opt/n").contains("32-bit or foreign"));
    assert!(error(&machine, "/opt/b").contains("damaged program: its program headers are cut off"));
    machine.program("/opt/dir/x", b"");
    assert!(error(&machine, "/opt/dir").contains("cannot be run"));
}

#[test]
fn a_shell_of_this_machine_is_found() {
    let here = ThisMachine::look().unwrap();
    let steps = resolve(&here, OsStr::new("/bin/sh")).unwrap();
    let real = Path::new("/bin/sh").canonicalize().unwrap();
    assert_eq!(Path::new(&steps[0].path), real);
    for step in &steps {
        assert!(Path::new(&step.path).is_file(), "{}", step.path);
    }
}
