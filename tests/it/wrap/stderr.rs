//! The child's standard error: raw into a pipe, tame on a terminal.

use std::ffi::OsStr;
use std::io::Read as _;
use std::process::{Command, Stdio};

use serde_json::json;

use super::harness::{Setup, call};
use crate::exe::skip;

/// Everything that may move a cursor, and bytes that are no text.
const HOSTILE: &[u8] = b"a\x1b[2J\x1b]0;t\x07\x08\r\xff\xfe\xc2\x9b\xe2\x80\xae\0z\n";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_pipe_gets_every_byte() {
    let setup = Setup::server(&[]);
    let hostile = call(1, "stderr", json!({"hex": hex(HOSTILE), "times": 3000}));
    let output = setup.pipe(format!("{hostile}\n").as_bytes());
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr == HOSTILE.repeat(3000));
    setup.record().assert_verified();
}

#[test]
fn a_terminal_gets_no_control_of_the_child() {
    let Ok(version) = Command::new("script").arg("--version").output() else {
        skip("there is no `script` here to make a terminal");
        return;
    };
    if !String::from_utf8_lossy(&version.stdout).contains("util-linux") {
        skip("`script` is not that of util-linux");
        return;
    }
    let setup = Setup::server(&[]);
    let answers = setup.dir.path().join("answers");
    let requests = setup.dir.path().join("requests");
    let hostile = call(1, "stderr", json!({"hex": hex(HOSTILE)}));
    std::fs::write(&requests, format!("{hostile}\n")).unwrap();
    // Only standard error is the terminal.
    let quoted: Vec<_> = setup.argv().iter().map(|arg| quote(arg)).collect();
    let command = format!(
        "exec {} <{} >{}",
        quoted.join(" "),
        quote(requests.as_os_str()),
        quote(answers.as_os_str())
    );
    let mut script = Command::new("script")
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = Vec::new();
    let mut output = script.stdout.take().unwrap();
    output.read_to_end(&mut shown).unwrap();
    assert_eq!(script.wait().unwrap().code(), Some(0));
    let shown = String::from_utf8(shown).unwrap();
    let expected = "a\\u{1b}[2J\\u{1b}]0;t\\u{7}\\u{8}\\u{d}\\xff\\xfe\\u{9b}\\u{202e}\\u{0}z";
    assert_eq!(shown.trim_end(), expected);
    assert!(!std::fs::read(&answers).unwrap().is_empty());
    setup.record().assert_verified();
}

fn quote(text: &OsStr) -> String {
    format!("'{}'", text.to_str().unwrap())
}
