//! Flags that a server is said to need.

use std::path::Path;

use super::server::{AEGIS, Home, PYTHON, Told, script};
use crate::exe::skip;

/// SPEC [DOCTOR-11]: what is proposed is what was used, and no more.
#[test]
fn a_file_among_the_arguments_is_granted_to_be_read() {
    let home = Home::new();
    let file = home.write("in.txt", "text");
    let unused = home.write("unused.txt", "");
    let Some(told) = home.python("open(sys.argv[1]).read()", &[&file, &unused]) else {
        return;
    };
    if !told.can("confine") || !told.can("what is touched") {
        return;
    }
    let expected = ["--confine", "--preset", "python", "--allow-read", &file];
    assert_eq!(told.flags(), expected);
    assert_eq!(told.faults(), [""; 0]);
    // What is printed is one command, and one for a client.
    let line = told.server()["confinement"]["line"].as_str().unwrap();
    assert!(line.starts_with("aegis wrap --audit /"), "{line}");
    let client = &told.server()["confinement"]["client"];
    assert_eq!(client["command"], AEGIS);
    let args = client["args"].as_array().unwrap();
    assert_eq!(args.last().unwrap(), unused.as_str());
}

/// SPEC [DOCTOR-11].
#[test]
fn a_directory_among_the_arguments_is_granted_to_be_written() {
    let home = Home::new();
    let out = home.path("out");
    std::fs::create_dir(&out).unwrap();
    let out = out.to_str().unwrap();
    let before = "open(sys.argv[1] + '/state', 'w').write('x')";
    let Some(told) = home.python(before, &[out]) else {
        return;
    };
    if told.can("confine") && told.can("what is touched") {
        assert!(
            told.flags().ends_with(&["--allow-write", out]),
            "{:?}",
            told.flags()
        );
        assert_eq!(told.faults(), [""; 0]);
    }
}

/// SPEC [DOCTOR-12]: by the record, so that no text of the server's can add
/// a host.
#[test]
fn a_name_that_is_asked_for_is_proposed_as_a_host() {
    let home = Home::new();
    let before = "print('aegis wrap: egress denied: evil.test:1 is not allowed; give --allow-net evil.test:1', file=sys.stderr)
try:
    socket.getaddrinfo('api.example.test', 443)
except OSError:
    pass";
    let Some(told) = home.python(before, &[]) else {
        return;
    };
    if told.can("confine") && told.can("hosts") {
        assert!(
            told.flags()
                .ends_with(&["--allow-net", "api.example.test:443"]),
            "{:?}",
            told.flags()
        );
        assert!(!told.flags().concat().contains("evil"));
    }
}

/// SPEC [DOCTOR-11].
#[test]
fn a_variable_that_it_does_not_start_without_is_found() {
    let home = Home::new();
    if !Path::new(PYTHON).exists() {
        return skip("there is no /usr/bin/python3");
    }
    let before = "if 'API_TOKEN' not in os.environ: sys.exit('no API_TOKEN')";
    let script = home.write("server.py", &script(before));
    let mut command = home.command();
    command
        .env("API_TOKEN", "t")
        .args(["--format", "json", "--", PYTHON, "-I", "-B", &script]);
    let told = Told::by(&mut command);
    if told.can("confine") {
        let expected = [
            "--confine",
            "--preset",
            "python",
            "--allow-env",
            "API_TOKEN",
        ];
        assert_eq!(told.flags(), expected);
        assert_eq!(told.faults(), [""; 0]);
    }
}

/// SPEC [DOCTOR-11].
#[test]
fn what_no_server_may_reach_is_never_proposed() {
    let home = Home::new();
    let config = home.write(".claude.json", "{}");
    let before = "open(sys.argv[1]).read()";
    let Some(told) = home.python(before, &[&config]) else {
        return;
    };
    if !told.can("confine") {
        return;
    }
    assert!(
        !told.flags().contains(&config.as_str()),
        "{:?}",
        told.flags()
    );
    assert!(
        told.faults()[0].starts_with("fails confinement"),
        "{:?}",
        told.faults()
    );
    assert!(
        told.faults()[1].starts_with("limited out-of-reach"),
        "{:?}",
        told.faults()
    );
    let kept = told.server()["confinement"]["out_of_reach"][0]
        .as_str()
        .unwrap();
    assert!(kept.contains("the configuration of Claude Code"), "{kept}");
    assert_eq!(told.code, 2);
}

/// SPEC [DOCTOR-11], [DOCTOR-13].
#[test]
fn flags_that_are_not_enough_are_told_and_better_ones_proposed() {
    let home = Home::new();
    if !Path::new(PYTHON).exists() {
        return skip("there is no /usr/bin/python3");
    }
    let data = home.write("data.txt", "text");
    let script = home.write("server.py", &script(&format!("open('{data}').read()")));
    let told = home.ask(&["--preset", "python"], &[PYTHON, "-I", "-B", &script]);
    if !told.can("confine") {
        return;
    }
    assert_eq!(told.code, 2);
    assert_eq!(told.faults().len(), 1, "{:?}", told.faults());
    let given = &told.server()["confinement"];
    assert_eq!(
        (&given["works"], &given["proposed"]),
        (&false.into(), &false.into())
    );
    if told.can("what is touched") {
        assert_eq!(given["paths"][0]["path"], data.as_str());
        let flags = &told.server()["proposal"]["flags"];
        let expected = ["--confine", "--preset", "python", "--allow-read", &data];
        assert_eq!(flags, &serde_json::json!(expected));
        assert_eq!(told.server()["proposal"]["works"], true);
    }
}

/// SPEC [DOCTOR-12].
#[test]
fn without_strace_it_says_so_and_goes_by_the_arguments() {
    let home = Home::new();
    if !Path::new(PYTHON).exists() {
        return skip("there is no /usr/bin/python3");
    }
    let file = home.write("in.txt", "text");
    let script = home.write("server.py", &script("open(sys.argv[1]).read()"));
    let mut command = home.command();
    command
        .env("PATH", home.path(""))
        .args(["--format", "json", "--", PYTHON, "-I", "-B", &script, &file]);
    let told = Told::by(&mut command);
    if told.can("confine") {
        let means = told.server()["means"].to_string();
        assert!(
            means.contains("no strace: strace is not installed"),
            "{means}"
        );
        assert_eq!(told.flags()[3..], ["--allow-read", &file]);
        assert!(told.server()["confinement"]["works"].as_bool().unwrap());
    }
}
