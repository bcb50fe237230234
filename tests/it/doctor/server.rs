//! A server of the user's, plain, wrapped and confined.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::exe::skip;

pub(super) const AEGIS: &str = env!("CARGO_BIN_EXE_aegis");
pub(super) const PYTHON: &str = "/usr/bin/python3";

/// A home directory with servers in it.
pub(super) struct Home {
    directory: TempDir,
}

/// What the doctor said.
pub(super) struct Told {
    pub(super) object: Value,
    pub(super) code: i32,
    pub(super) raw: String,
}

/// A small server; `before` runs at its start.
pub(super) fn script(before: &str) -> String {
    format!(
        r#"import json, os, socket, sys, time
{before}
for line in sys.stdin:
    frame = json.loads(line)
    if "id" not in frame:
        continue
    result = {{}}
    if frame["method"] == "initialize":
        result = {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}},
                  "serverInfo": {{"name": "small", "version": "1"}}}}
    if frame["method"] == "tools/list":
        result = {{"tools": [{{"name": "a", "inputSchema": {{"type": "object"}}}}]}}
    print(json.dumps({{"jsonrpc": "2.0", "id": frame["id"], "result": result}}), flush=True)
"#
    )
}

impl Home {
    pub(super) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(AEGIS);
        command
            .arg("doctor")
            .env("HOME", self.path(""))
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .current_dir(self.path(""))
            .stdin(Stdio::null());
        command
    }

    pub(super) fn ask(&self, own: &[&str], server: &[&str]) -> Told {
        let mut command = self.command();
        command.args(["--format", "json"]).args(own);
        Told::by(command.arg("--").args(server))
    }

    /// Asks of a small Python server.
    pub(super) fn python(&self, before: &str, args: &[&str]) -> Option<Told> {
        if !Path::new(PYTHON).exists() {
            skip("there is no /usr/bin/python3");
            return None;
        }
        let script = self.write("server.py", &script(before));
        let server = [&[PYTHON, "-I", "-B", &script], args].concat();
        Some(self.ask(&[], &server))
    }

    /// Nothing of the runs is left.
    pub(super) fn assert_clean(&self) {
        let kept = self.path(".cache/aegis/confined/doctor");
        assert_eq!(std::fs::read_dir(kept).unwrap().count(), 0);
    }
}

impl Told {
    pub(super) fn by(command: &mut Command) -> Self {
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().unwrap();
        let raw = String::from_utf8_lossy(&stdout).into_owned();
        let object = serde_json::from_str(&raw)
            .unwrap_or_else(|error| panic!("{error}: {raw}{}", String::from_utf8_lossy(&stderr)));
        Self {
            object,
            code: status.code().unwrap(),
            raw,
        }
    }

    pub(super) fn server(&self) -> &Value {
        &self.object["server"]
    }

    /// The findings about the server that are not `ok`: status, id and run.
    pub(super) fn faults(&self) -> Vec<String> {
        let findings = self.server()["findings"].as_array().unwrap();
        let faults = findings.iter().filter(|finding| finding["status"] != "ok");
        faults
            .map(|finding| {
                assert!(finding["cure"]["text"].is_string(), "{finding}");
                let of = |name: &str| finding[name].as_str().unwrap().to_owned();
                let found = of("found");
                let run = found.split(':').next().unwrap_or_default();
                format!("{} {} {run}", of("status"), of("id"))
            })
            .collect()
    }

    pub(super) fn flags(&self) -> Vec<&str> {
        let flags = self.server()["confinement"]["flags"].as_array();
        let flags = flags.unwrap_or_else(|| panic!("{}", self.raw));
        flags.iter().map(|flag| flag.as_str().unwrap()).collect()
    }

    pub(super) fn run(&self, way: &str) -> &Value {
        let runs = self.server()["runs"].as_array().unwrap();
        runs.iter().find(|run| run["way"] == way).unwrap()
    }

    /// Whether this machine can do what the test is about.
    pub(super) fn can(&self, what: &str) -> bool {
        let verdict = &self.object["verdict"];
        let can = match what {
            "confine" => verdict["confine"] == "full",
            "hosts" => verdict["network"] == "host-port",
            _ => self.server()["means"][0]
                .as_str()
                .unwrap()
                .starts_with("strace"),
        };
        if !can {
            skip(&format!("this machine cannot be asked about {what}"));
        }
        can
    }
}

/// SPEC [DOCTOR-8], [DOCTOR-9], [DOCTOR-10], [DOCTOR-13].
#[test]
fn a_server_is_the_same_in_all_three_ways() {
    let home = Home::new();
    let told = home.ask(&[], &[AEGIS, "__demo-server", "--page-size", "10"]);
    if !told.can("confine") {
        return;
    }
    assert_eq!(told.faults(), [""; 0], "{}", told.raw);
    for way in ["plain", "wrap", "confined"] {
        let run = told.run(way);
        assert_eq!(run["server"], "aegis-demo-server 0.1.0");
        assert_eq!(run["tools"], told.run("plain")["tools"]);
        assert!(run["ping_us"].is_u64());
        for step in ["large_frame", "cancellation"] {
            assert_eq!(run[step], "answered", "{way}");
        }
        assert_eq!(run["end_of_input"]["exit"], 0);
        assert_eq!(run["sigterm"]["exit"], 143);
        assert_eq!(run["sigterm"]["left"], serde_json::json!([]));
    }
    let shown = told.server()["findings"].to_string();
    assert!(shown.contains("wrap: 58 answers, byte for byte"), "{shown}");
    assert!(told.server()["confinement"]["works"].as_bool().unwrap());
    home.assert_clean();
}

/// SPEC [DOCTOR-9]: it is told, and nothing hangs.
#[test]
fn a_server_that_hangs_is_told() {
    let home = Home::new();
    let told = home.ask(
        &["--timeout", "1"],
        &[AEGIS, "__demo-server", "--read-nothing"],
    );
    assert_eq!(told.faults(), ["fails handshake plain"]);
    assert!(told.raw.contains("not answered within 1 s"), "{}", told.raw);
    assert_eq!(told.server()["runs"].as_array().unwrap().len(), 1);
    assert_eq!(told.code, 2);
}

/// SPEC [DOCTOR-9].
#[test]
fn a_command_that_is_none_is_told() {
    let home = Home::new();
    let told = home.ask(&[], &["/no/such/server"]);
    assert_eq!(told.faults(), ["fails start the command cannot be run"]);
    assert_eq!(told.code, 2);
}

/// SPEC [DOCTOR-9].
#[test]
fn rows_that_are_no_messages_are_counted() {
    let home = Home::new();
    if let Some(told) = home.python("print('Server started\\x1b[2J')", &[]) {
        assert_eq!(told.faults(), ["limited output plain"]);
        assert!(told.raw.contains("Server started"), "{}", told.raw);
    }
}

/// SPEC [DOCTOR-9], [DOCTOR-10]: what is left is told, and ended.
#[test]
fn processes_that_are_left_are_told_and_ended() {
    const SECONDS: &str = "3417";
    let home = Home::new();
    let told = home.ask(
        &[],
        &[
            AEGIS,
            "__demo-server",
            "--spawn-grandchild",
            SECONDS,
            "--detach-grandchild",
        ],
    );
    assert!(
        told.faults()
            .contains(&"limited left-over plain".to_owned()),
        "{:?}",
        told.faults()
    );
    assert!(
        !told.faults().iter().any(|fault| fault.starts_with("fails")),
        "{:?}",
        told.faults()
    );
    assert_eq!(
        told.run("plain")["sigterm"]["left"],
        serde_json::json!(["sleep"])
    );
    assert_eq!(told.run("wrap")["sigterm"]["left"], serde_json::json!([]));
    let sleeps = std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        command == format!("sleep\0{SECONDS}\0").as_bytes()
    });
    assert!(!sleeps);
}

/// SPEC [DOCTOR-9].
#[test]
fn a_server_that_does_not_end_is_told_and_ended() {
    let home = Home::new();
    let told = home.ask(
        &[],
        &[AEGIS, "__demo-server", "--ignore-eof", "--ignore-sigterm"],
    );
    let faults = told.faults();
    for expected in ["limited end-of-input plain", "limited sigterm plain"] {
        assert!(faults.contains(&expected.to_owned()), "{faults:?}");
    }
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(told.run("wrap")["end_of_input"]["us"].is_u64());
}

/// SPEC [DOCTOR-6].
#[test]
fn a_command_line_that_means_nothing_is_a_usage_error() {
    for (args, error) in [
        (
            &["--preset", "node"][..],
            "confinement is tried with a command",
        ),
        (&["--confine"], "confinement is tried with a command"),
        (&["--timeout", "3"], "--timeout is for a command"),
        (&["--"], "there is no command after `--`"),
        (
            &["node", "--", "x"],
            "doctor takes a command after `--` only, got `node`",
        ),
        (
            &["--timeout", "0", "--", "x"],
            "--timeout needs a number from 1, got `0`",
        ),
        (
            &["--timeout", "601", "--", "x"],
            "--timeout is at most 600 seconds, got 601",
        ),
        (
            &["--preset", "perl", "--", "x"],
            "--preset needs node, python, npx, uvx or static",
        ),
        (&["--allow-net", "a b:1", "--", "x"], "a b"),
    ] {
        let ran = Command::new(AEGIS)
            .arg("doctor")
            .args(args)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(
            (ran.status.code(), &ran.stdout[..]),
            (Some(1), &b""[..]),
            "{args:?}"
        );
        assert!(
            told.starts_with("error: ") && told.contains(error),
            "{args:?}: {told}"
        );
    }
}

/// SPEC [DOCTOR-6].
#[test]
fn the_text_form_has_a_row_for_each_step_and_a_line_to_type() {
    let home = Home::new();
    let ran = home
        .command()
        .args(["--", AEGIS, "__demo-server"])
        .output()
        .unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    for row in [
        "handshake",
        "tools",
        "ping, median",
        "1 MiB request",
        "after a cancel",
        "end of input",
        "SIGTERM",
    ] {
        assert!(
            text.lines().any(|line| line.trim_start().starts_with(row)),
            "{row}: {text}"
        );
    }
    let typed = ["  aegis wrap ", "  {\"command\":"];
    for line in text.lines().filter(|line| line.len() > 80) {
        let is_typed = typed.iter().any(|typed| line.starts_with(typed));
        assert!(is_typed || !line.trim().contains(' '), "{line}");
    }
}

/// SPEC [DOCTOR-9]: nothing is asked for without end.
#[test]
fn a_list_without_end_is_given_up() {
    let home = Home::new();
    let before = "dumps = json.dumps
json.dumps = lambda frame: dumps(
    {**frame, 'result': {**frame['result'], 'nextCursor': 'more'}}
    if 'tools' in frame['result'] else frame)";
    if let Some(told) = home.python(before, &[]) {
        assert_eq!(told.faults(), ["limited tools plain"]);
        assert!(told.raw.contains("more than 32 pages"), "{}", told.raw);
        assert!(told.run("plain")["tools"].is_null());
    }
}
