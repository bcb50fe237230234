//! The hidden verb, run by hand.

use std::fs;
use std::process::Command;

use super::rig::{Ran, Rig, VARIABLE, ended, piped, shell};

fn run(order: Option<&str>, args: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aegis"));
    command
        .arg("__confine-exec")
        .args(args)
        .env_remove(VARIABLE);
    if let Some(order) = order {
        command.env(VARIABLE, order);
    }
    ended(piped(&mut command).spawn().unwrap())
}

fn assert_refused(ran: &Ran, text: &str) {
    assert_eq!(ran.stderr, format!("aegis __confine-exec: {text}\n"));
    assert_eq!((ran.stdout.as_str(), ran.status.code()), ("", Some(126)));
}

const ECHO: [&str; 3] = ["--", "/bin/echo", "ran"];

#[test]
fn without_a_command_it_says_what_it_takes() {
    for args in [&[][..], &["--"]] {
        let ran = run(None, args);
        let text = "error: __confine-exec requires a child command after `--`\n";
        assert_eq!((ran.stderr.as_str(), ran.status.code()), (text, Some(1)));
    }
    let ran = run(None, &["-x", "--", "/bin/echo"]);
    let text =
        "error: __confine-exec takes no flags; put the child command after `--` (got `-x`)\n";
    assert_eq!((ran.stderr.as_str(), ran.status.code()), (text, Some(1)));
}

#[test]
fn without_an_order_it_does_nothing() {
    assert_refused(
        &run(None, &ECHO),
        "AEGIS_CONFINE_PROFILE is unset: this verb is aegis's own, started by `aegis wrap --confine`",
    );
}

#[test]
fn an_order_that_is_not_whole_is_refused() {
    let order = sound();
    let edited = |member: &str, value: serde_json::Value| {
        let mut order: serde_json::Value = serde_json::from_str(&order).unwrap();
        order[member] = value;
        order.to_string()
    };
    let rows = [
        (
            String::new(),
            "EOF while parsing a value at line 1 column 0",
        ),
        ("{}".to_owned(), "missing field `socket` at line 1 column 2"),
        (format!("{order} x"), "trailing characters"),
        (edited("more", true.into()), "unknown field `more`"),
        (edited("metadata", "some".into()), "unknown variant `some`"),
        (
            edited("metadata", "\u{1b}[31m\n".into()),
            "unknown variant `\\u{1b}[31m\\u{a}`",
        ),
        (
            edited("socket", "door".into()),
            "the path of the socket is not absolute",
        ),
        (
            edited("limits", serde_json::json!({"files": 15})),
            "--max-files needs at least 16, got 15",
        ),
        (
            edited("network", hosts(&[8080, 80], 3128)),
            "invalid AEGIS_CONFINE_PROFILE: the ports are not in ascending order",
        ),
        (
            edited("network", hosts(&[53], 3128)),
            "--allow-net cannot name port 53",
        ),
        (
            edited("network", hosts(&[80], 80)),
            "port 80 is to be the proxy's",
        ),
        (
            edited("network", hosts(&[0], 80)),
            "--allow-net names port 0",
        ),
    ];
    for (order, why) in rows {
        let ran = run(Some(&order), &ECHO);
        let start = "aegis __confine-exec: invalid AEGIS_CONFINE_PROFILE: ";
        assert!(ran.stderr.starts_with(start), "{}", ran.stderr);
        assert!(ran.stderr.contains(why), "{why}: {}", ran.stderr);
        assert_eq!((ran.stdout.as_str(), ran.status.code()), ("", Some(126)));
    }
}

fn hosts(ports: &[u16], proxy_port: u16) -> serde_json::Value {
    serde_json::json!({"hosts": {"ports": ports, "proxy_port": proxy_port, "name_servers": []}})
}

/// An order whose door is gone.
fn sound() -> String {
    let rig = Rig::new();
    let ordered = shell().open().unwrap();
    let command = ordered.command(&rig.aegis(), &["sh"]).unwrap();
    let order = command.get_envs().find(|(name, _)| *name == VARIABLE);
    order.unwrap().1.unwrap().to_str().unwrap().to_owned()
}

#[test]
fn without_a_parent_that_listens_it_does_nothing() {
    let order: serde_json::Value = serde_json::from_str(&sound()).unwrap();
    let socket = order["socket"].as_str().unwrap();
    let ran = run(Some(&order.to_string()), &ECHO);
    assert_refused(
        &ran,
        &format!(
            "the socket `{socket}` of AEGIS_CONFINE_PROFILE cannot be connected to: No such file or directory (os error 2)"
        ),
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let mut order = order;
    order["socket"] = file.to_str().unwrap().into();
    let ran = run(Some(&order.to_string()), &ECHO);
    assert!(ran.stderr.contains("Connection refused"), "{}", ran.stderr);
    assert_eq!((ran.stdout.as_str(), ran.status.code()), ("", Some(126)));
    order["socket"] = format!("/{}", "x".repeat(200)).into();
    let ran = run(Some(&order.to_string()), &ECHO);
    assert!(ran.stderr.contains("File name too long"), "{}", ran.stderr);
    assert_eq!(ran.status.code(), Some(126));
}
