use super::*;
use crate::confine::machine::pretend::Pretend;
use crate::doctor::server::trace::Touch;

fn command(args: &[&str]) -> Vec<OsString> {
    args.iter().map(OsString::from).collect()
}

fn machine() -> Pretend {
    let mut machine = Pretend::new();
    machine.set("PATH", "/usr/bin").set("HOME", "/home/u");
    machine.dir("/home/u");
    machine
        .program("/usr/bin/node", b"")
        .program("/usr/bin/python3", b"")
        .program("/usr/bin/uvx", b"")
        .program("/usr/bin/npx", b"#!/usr/bin/node\n")
        .program("/usr/bin/sh", b"")
        .program("/proj/serve", b"#!/usr/bin/node\n")
        .program("/proj/run.sh", b"#!/usr/bin/sh\n")
        .program("/proj/small", b"");
    machine
}

/// Touches of a plain or a confined run, by path.
fn seen(paths: &[(&str, Acts, Acts)]) -> Seen {
    let mut seen = Seen::default();
    for (path, done, refused) in paths {
        let touch = Touch {
            done: *done,
            refused: *refused,
        };
        seen.paths.insert(path.into(), touch);
    }
    seen
}

const NO: Acts = Acts {
    look: false,
    read: false,
    write: false,
    execute: false,
};
const LOOK: Acts = Acts { look: true, ..NO };
const READ: Acts = Acts { read: true, ..NO };
const WRITE: Acts = Acts { write: true, ..NO };

#[test]
fn the_preset_follows_from_the_program_and_what_runs_it() {
    let machine = machine();
    for (program, expected) in [
        ("node", Some("node")),
        ("python3", Some("python")),
        ("uvx", Some("uvx")),
        ("npx", Some("npx")),
        ("/proj/serve", Some("node")),
        ("/proj/small", Some("static")),
        ("missing", None),
    ] {
        let command = command(&[program]);
        let clues = Clues {
            machine: &machine,
            command: &command,
            plain: None,
        };
        assert_eq!(clues.preset().preset.as_deref(), expected, "{program}");
    }
    let command = command(&["/proj/run.sh"]);
    let clues = Clues {
        machine: &machine,
        command: &command,
        plain: None,
    };
    let asked = clues.preset();
    assert!(asked.exec_support);
    assert_eq!(asked.read, [PathBuf::from("/proj/run.sh")]);
}

/// SPEC [DOCTOR-11].
#[test]
fn arguments_are_granted_as_they_are_used() {
    let mut machine = machine();
    machine
        .file("/proj/a/node_modules/x/node_modules/y/index.js", b"")
        .file("/proj/notes/n.txt", b"")
        .file("/data/db", b"")
        .file("/data/unused", b"");
    let command = command(&[
        "node",
        "a/node_modules/x/node_modules/y/index.js",
        "--db=/data/db",
        "notes",
        "/data/unused",
        "/data/none",
        "-v",
        "",
    ]);
    let plain = seen(&[
        ("/proj/a/node_modules/x/node_modules/y/index.js", READ, NO),
        ("/proj/notes", LOOK, NO),
        ("/data/db", WRITE, NO),
    ]);
    let granted = |plain| {
        let mut asked = Asked::default();
        let clues = Clues {
            machine: &machine,
            command: &command,
            plain,
        };
        clues.add_arguments(&mut asked);
        let shown = |paths: Vec<PathBuf>| {
            let shown = paths.iter().map(|path| path.display().to_string());
            shown.collect::<Vec<_>>().join(" ")
        };
        (shown(asked.read), shown(asked.write))
    };
    assert_eq!(
        granted(Some(&plain)),
        (
            "/proj/a/node_modules /proj/notes".to_owned(),
            "/data/db".to_owned()
        )
    );
    // Where nothing could be seen, all that exist.
    assert_eq!(
        granted(None).0,
        "/proj/a/node_modules /data/db /proj/notes /data/unused"
    );
}

#[test]
fn a_refusal_counts_when_it_is_none_without_confinement() {
    let mut machine = machine();
    for path in [
        "/d/a",
        "/d/b",
        "/d/c",
        "/e/one",
        "/e/node_modules/m/i.js",
        "/home/u/.rc",
    ] {
        machine.file(path, b"");
    }
    let plain = seen(&[
        ("/d/a", READ, NO),
        ("/d/b", READ, NO),
        ("/d/c", READ, NO),
        ("/e/one", READ, NO),
        ("/e/node_modules/m/i.js", READ, NO),
        ("/e/granted", READ, NO),
        ("/home/u", READ, NO),
        ("/home/u/.rc", READ, NO),
        ("/e/new", WRITE, NO),
        ("/proc/self/maps", READ, NO),
    ]);
    let mut paths: Vec<_> = plain
        .paths
        .keys()
        .map(|path| path.to_str().unwrap())
        .collect();
    paths.push("/etc/shadow");
    let confined: Vec<_> = paths
        .iter()
        .map(|path| (*path, NO, if *path == "/e/new" { WRITE } else { READ }))
        .collect();
    let command = command(&["node"]);
    let clues = Clues {
        machine: &machine,
        command: &command,
        plain: Some(&plain),
    };
    let grants = [Grant {
        path: "/e/granted".into(),
        reads: true,
        writes: false,
        executes: false,
    }];
    let denied = clues.denied(&seen(&confined), &grants);
    let told: Vec<_> = denied
        .iter()
        .map(|denied| (denied.path.to_str().unwrap(), denied.act))
        .collect();
    assert!(told.contains(&("/e/new", "write")));
    for path in ["/etc/shadow", "/e/granted", "/proc/self/maps"] {
        assert!(!told.iter().any(|(told, _)| *told == path), "{path}");
    }
    // Many files are their directory, packages are all packages, and the home
    // directory is never granted as a whole.
    let shown: Vec<_> = clues
        .reads(&denied)
        .iter()
        .map(|root| root.display().to_string())
        .collect();
    assert_eq!(shown, ["/d", "/e/node_modules", "/e/one", "/home/u/.rc"]);
    assert_eq!(clues.writes(&denied), [PathBuf::from("/e")]);
}

#[test]
fn no_more_is_added_at_once_than_the_bound() {
    let mut machine = machine();
    let names: Vec<_> = (0..=MAX_ADDED)
        .map(|number| format!("/many/{number:02}/f"))
        .collect();
    let mut denied = Vec::new();
    for name in &names {
        machine.file(name, b"");
        denied.push(Denied {
            path: name.into(),
            act: "read",
        });
    }
    let command = command(&["node"]);
    let clues = Clues {
        machine: &machine,
        command: &command,
        plain: None,
    };
    assert_eq!(clues.reads(&denied[..MAX_ADDED]).len(), MAX_ADDED);
    assert_eq!(clues.reads(&denied).len(), MAX_ADDED);
}

#[test]
fn hosts_become_entries_with_the_ports_that_are_known() {
    let refused: Refused = [
        ("api.example.com", None, NOT_ALLOWED),
        ("db.example.com", Some(5432), NOT_ALLOWED),
        ("db.example.com", Some(5433), NOT_ALLOWED),
        ("down.example.com", Some(443), "the name cannot be resolved"),
        ("localhost", Some(8080), NOT_ALLOWED),
        ("<unknown>", None, NOT_ALLOWED),
    ]
    .into_iter()
    .map(|(host, port, why)| ((host.to_owned(), port), why.to_owned()))
    .collect();
    let at = |ports: &[u16]| hosts(&refused, &ports.iter().copied().collect());
    assert_eq!(
        at(&[]),
        [
            "127.0.0.1:8080",
            "api.example.com:443",
            "db.example.com:5432,5433"
        ]
    );
    assert_eq!(at(&[80, 8443])[1], "api.example.com:80,8443");
}
