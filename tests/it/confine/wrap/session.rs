//! What a confined server may, and what the record says of it.

use std::fs;

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::server::{Confined, PYTHON, ask, assert_unreadable};
use crate::wrap::harness::{AEGIS, Setup};

/// Does the same for root and for a plain user, as far as this process can.
fn by_each_user(flags: &[&str], test: impl Fn(Confined)) {
    if let Some(confined) = Confined::python(flags) {
        test(confined);
    }
    if let Some(confined) = Confined::python(flags).and_then(Confined::by_a_plain_user) {
        test(confined);
    }
}

/// SPEC [WRAP-2].
///
/// SPEC [CONFINE-1].
#[test]
fn a_confined_session_is_relayed_recorded_and_verified() {
    by_each_user(&[], |confined| {
        let mut session = confined.start();
        let (request, answer) = session.ask(1, "pid", json!({}));
        let ended = session.finish();
        ended.assert_exit(0);
        ended.record.assert_verified();
        let outcome = ended.record.outcome(&request);
        let line = answer.strip_suffix(b"\n").unwrap();
        assert_eq!(
            outcome["response_digest"],
            crate::wrap::harness::sha256(line)
        );
        assert_eq!(outcome["egress_overlapping"], Value::Null);
        let enforced = &ended.record.open()["confinement"];
        assert_eq!(enforced["status"], "full", "{enforced}");
        let network = enforced["network"].as_str().unwrap();
        assert!(
            matches!(network, "denied-netns" | "denied-seccomp"),
            "{network}"
        );
        assert_eq!(enforced["metadata"], "denied");
        assert_eq!(ended.record.close()["egress"], Value::Null);
        assert!(confined.leftovers().is_empty());
        assert_eq!(ended.stderr, "");
    });
}

/// SPEC [SANDBOX-8].
#[test]
fn what_is_not_granted_is_refused() {
    by_each_user(&[], |confined| {
        let mut session = confined.start();
        let dir = confined.setup.dir.path();
        let secret = confined.home().join("secret");
        for path in [&secret, &dir.join("key"), &confined.setup.audit()] {
            assert_unreadable(&mut session, path);
        }
        assert_unreadable(&mut session, "/etc/shadow".as_ref());
        for (tool, arguments, refused) in [
            (
                "write",
                json!({"path": secret}),
                "PermissionError: [Errno 13] ",
            ),
            (
                "chmod",
                json!({"path": secret}),
                "PermissionError: [Errno 1] ",
            ),
            ("unix", json!({}), "PermissionError: [Errno 1] "),
            (
                "kill",
                json!({"pid": session.pid().as_raw_nonzero().get()}),
                "PermissionError: [Errno 1] ",
            ),
        ] {
            let said = ask(&mut session, tool, arguments);
            assert!(said.starts_with(refused), "{tool}: {said}");
        }
        session.finish().assert_exit(0);
        assert_eq!(fs::read_to_string(secret).unwrap(), "of the home");
    });
}

/// SPEC [SANDBOX-4].
#[test]
fn what_is_granted_is_had() {
    let confined = |plain: bool| {
        let confined = Confined::python(&["--allow-env", "WANTED", "--allow-unix-sockets"])?;
        let confined = if plain {
            confined.by_a_plain_user()?
        } else {
            confined
        };
        let confined = confined
            .granting("--allow-read", "data")
            .granting("--allow-write", "out");
        fs::write(confined.home().join("data/file"), "of data").unwrap();
        Some(
            confined
                .with_variable("WANTED", "w")
                .with_variable("TOKEN", "t"),
        )
    };
    for plain in [false, true] {
        let Some(confined) = confined(plain) else {
            continue;
        };
        let mut session = confined.start();
        let file = confined.home().join("data/file");
        let made = confined.home().join("out/made");
        assert_eq!(ask(&mut session, "read", json!({"path": file})), "of data");
        let said = ask(&mut session, "write", json!({"path": file}));
        assert!(said.starts_with("PermissionError: "), "{said}");
        assert_eq!(ask(&mut session, "write", json!({"path": made})), "written");
        assert_eq!(ask(&mut session, "chmod", json!({"path": made})), "changed");
        assert_eq!(ask(&mut session, "unix", json!({})), "made");
        let environment = ask(&mut session, "environment", json!({}));
        let environment: Value = serde_json::from_str(&environment).unwrap();
        assert_eq!(environment["WANTED"], "w");
        assert_eq!(environment["TOKEN"], Value::Null);
        assert_eq!(environment["AEGIS_CONFINE_PROFILE"], Value::Null);
        assert_eq!(environment["HTTP_PROXY"], Value::Null);
        let temporary = environment["TMPDIR"].as_str().unwrap().to_owned();
        let scratch = format!("{temporary}/scratch");
        assert_eq!(
            ask(&mut session, "write", json!({"path": scratch})),
            "written"
        );
        assert!(
            confined
                .leftovers()
                .iter()
                .any(|left| left.ends_with(&temporary))
        );
        let ended = session.finish();
        ended.assert_exit(0);
        assert!(confined.leftovers().is_empty());
        let enforced = &ended.record.open()["confinement"];
        assert_eq!(enforced["status"], "full");
        assert_eq!(enforced["metadata"], "allowed");
        assert_eq!(enforced["holes"], json!(["unix-sockets"]));
        assert_eq!(enforced["variables"], json!(["WANTED"]));
    }
}

/// SPEC [LINE-5].
///
/// SPEC [SANDBOX-1].
#[test]
fn the_record_begins_with_what_is_in_force() {
    let flags = [
        "--allow-env",
        "UNSET",
        "--allow-env",
        "WANTED",
        "--max-files",
        "200",
        "--best-effort",
    ];
    let Some(confined) = Confined::python(&flags) else {
        return;
    };
    let confined = confined
        .granting("--allow-read", "data")
        .granting("--allow-write", "out")
        .with_variable("WANTED", "w");
    let ended = confined.start().finish();
    ended.assert_exit(0);
    let dir = confined.setup.dir.path().canonicalize().unwrap();
    let mut enforced = ended.record.open()["confinement"].clone();
    // What is built in, what this kernel has and what this machine lacks
    // differ from one to the next.
    let grants = enforced["grants"].as_array_mut().unwrap();
    assert!(grants.iter().any(|grant| grant["path"] == "/usr"));
    grants.retain(|grant| grant["origin"] != "built_in");
    let landlock = enforced["landlock"].as_object_mut().unwrap();
    assert!(landlock["abi"].as_u64().unwrap() > 0);
    assert!(
        landlock["handled"]
            .as_array()
            .unwrap()
            .contains(&json!("write_file"))
    );
    for member in [
        "abi",
        "kernel_abi",
        "handled",
        "rights",
        "net",
        "scopes",
        "errata",
    ] {
        landlock.remove(member);
    }
    for member in ["skipped", "namespaces", "self_tests"] {
        enforced.as_object_mut().unwrap().remove(member);
    }
    let shown = serde_json::to_string_pretty(&enforced).unwrap();
    let shown = shown.replace(dir.to_str().unwrap(), "DIR");
    insta::with_settings!({filters => [
        (r"aegis-\w{6}", "aegis-[random]"),
        (r#""\d+:\d+""#, r#""[dev:ino]""#),
        (r"python3\.\d+", "python3.N"),
        (r#""[0-9a-f]{64}""#, r#""[sha256]""#),
        (r#""(filters|instructions)": \d+"#, r#""$1": [number]"#),
        (r#""denied-(netns|seccomp)""#, r#""denied-[how]""#),
    ]}, {
        assert_snapshot!(shown);
    });
}

#[test]
fn exec_support_is_enough_for_programs_of_the_system() {
    let Some(confined) = Confined::python(&["--allow-exec-support"]) else {
        return;
    };
    let confined = confined.without_preset();
    let mut session = confined.start();
    assert_unreadable(&mut session, "/etc/shadow".as_ref());
    session.finish().assert_exit(0);
}

#[test]
fn a_policy_judges_what_a_confined_server_is_asked() {
    let Some(confined) = Confined::python(&[]) else {
        return;
    };
    let policy = confined.setup.dir.path().join("policy.yaml");
    fs::write(
        &policy,
        "default: allow\nrules: [{id: deny-pid, action: deny, tool: pid}]\n",
    )
    .unwrap();
    let confined = confined.with_flags(&["--policy", policy.to_str().unwrap()]);
    let mut session = confined.start();
    let (refused, answer) = session.ask(1, "pid", json!({}));
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["error"]["code"], -32042);
    assert_unreadable(&mut session, &policy);
    let ended = session.finish();
    ended.record.assert_verified();
    assert_eq!(ended.record.outcome(&refused)["policy"]["status"], "denied");
    assert_eq!(ended.record.open()["policy"]["status"], "enforced");
    assert_eq!(ended.record.open()["confinement"]["status"], "full");
}

/// A server that installs programs gets a cache of its own, and keeps it.
#[test]
fn a_cache_is_the_commands_own_and_is_kept() {
    let Some(confined) = Confined::python(&[]) else {
        return;
    };
    let home = confined.home().to_owned();
    let uvx = confined.with_preset("uvx");
    for _ in 0..2 {
        let mut session = uvx.start();
        let environment = ask(&mut session, "environment", json!({}));
        let environment: Value = serde_json::from_str(&environment).unwrap();
        let cache = environment["XDG_CACHE_HOME"].as_str().unwrap();
        let own = home.join(".cache/aegis/confined");
        assert!(
            std::path::Path::new(cache).starts_with(own.canonicalize().unwrap()),
            "{cache}"
        );
        let file = format!("{cache}/kept");
        assert_eq!(ask(&mut session, "write", json!({"path": file})), "written");
        let ended = session.finish();
        ended.assert_exit(0);
        assert!(fs::exists(file).unwrap());
        assert_eq!(ended.record.open()["confinement"]["metadata"], "allowed");
    }
    assert_eq!(
        fs::read_dir(home.join(".cache/aegis/confined"))
            .unwrap()
            .count(),
        1
    );
}

/// A confined aegis sees too little of the machine to confine anything, nor may
/// it have sockets. Where it does and may, it gets no namespaces, and needs none
/// to deny all.
#[test]
fn a_confined_aegis_confines_no_less() {
    let inner = |confined: &Confined| {
        let inside = confined.home().join("out");
        crate::exe::write_key(&inside.join("key"));
        let (audit, key) = (inside.join("inner.aarl"), inside.join("key"));
        let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
        [
            AEGIS,
            "wrap",
            "--audit",
            &path(&audit),
            "--signing-key",
            &path(&key),
            "--confine",
        ]
        .into_iter()
        .chain(["--preset", "python", "--", PYTHON, "-c", "print('ran')"])
        .map(str::to_owned)
        .collect::<Vec<_>>()
    };
    let run = |flags: &[&str]| {
        let confined = Confined::python(flags)?.granting("--allow-write", "out");
        let inner = inner(&confined);
        let confined = confined.with_command(&inner);
        let ran = confined
            .command()
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8(ran.stderr).unwrap();
        let stdout = String::from_utf8(ran.stdout).unwrap();
        Some((ran.status.code(), stdout, stderr, confined))
    };
    let allow = ["--allow-read", AEGIS];
    let Some((code, stdout, stderr, confined)) = run(&allow) else {
        return;
    };
    assert_eq!((code, stdout.as_str()), (Some(126), ""), "{stderr}");
    assert!(stderr.contains("cannot confine the server: "), "{stderr}");
    assert!(!confined.home().join("out/inner.aarl").exists());

    let with_sockets = [
        &allow[..],
        &["--allow-read", "/proc", "--allow-unix-sockets"],
    ]
    .concat();
    let (code, stdout, stderr, confined) = run(&with_sockets).unwrap();
    assert_eq!(stdout, "ran\n", "{code:?} {stderr}");
    let inner = fs::read_to_string(confined.home().join("out/inner.aarl")).unwrap();
    let open: Value = serde_json::from_str(inner.lines().next().unwrap()).unwrap();
    assert_eq!(open["confinement"]["status"], "full");
    assert_eq!(open["confinement"]["network"], "denied-seccomp");
}

/// Without confinement the record says so, and nothing else changed.
#[test]
fn an_unconfined_server_is_said_to_be_so() {
    let ended = Setup::server(&[]).start().finish();
    assert_eq!(
        ended.record.open()["confinement"],
        json!({"status": "none"})
    );
}
