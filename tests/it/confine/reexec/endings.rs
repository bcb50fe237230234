//! Starts that come to nothing, each with a reason and without a program.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use aegis::internals::confine::helper::{Asked, Ordered, Ready};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::rig::{NOBODY, Rig, as_each_user, edit, ended, is_root, piped, shell};

/// An order whose program leaves a mark, and whether it did.
fn marking(rig: &Rig) -> (Asked, String, impl Fn() -> bool) {
    let dir = rig.own("marks");
    let mark = format!("{dir}/mark");
    let script = format!("echo > {mark}");
    let is_marked = move || Path::new(&mark).exists();
    (shell().write(&dir).unwrap(), script, is_marked)
}

fn spawn(rig: &Rig, ordered: &Ordered, script: &str) -> Child {
    let command = ordered.command(&rig.aegis(), &["sh", "-c", script]);
    piped(&mut command.unwrap()).spawn().unwrap()
}

fn told(ordered: &Ordered, child: &Child) -> String {
    ordered.admit(child.id()).err().expect("it is not ready")
}

/// SPEC [SANDBOX-1].
#[test]
fn a_word_that_never_comes_ends_it() {
    as_each_user(|rig| {
        let (asked, script, is_marked) = marking(rig);
        let ordered = asked.open().unwrap();
        let child = spawn(rig, &ordered, &script);
        drop(ordered.admit(child.id()).unwrap());
        let ran = ended(child);
        assert_eq!((ran.stderr.as_str(), ran.status.code()), ("", Some(126)));
        assert!(!is_marked());
        // The control: with the word it is.
        let child = spawn(rig, &ordered, &script);
        ordered.admit(child.id()).unwrap().go().unwrap();
        assert_eq!(ended(child).status.code(), Some(0));
        assert!(is_marked());
    });
}

#[test]
fn a_helper_that_ends_early_is_seen_and_left_to_be_reaped() {
    let ordered = shell().open().unwrap();
    let child = piped(&mut Command::new("true")).spawn().unwrap();
    let text = told(&ordered, &child);
    assert!(text.contains("exited with 0 before it was ready"), "{text}");
    assert_eq!(ended(child).status.code(), Some(0));
}

#[test]
fn a_helper_that_is_killed_on_its_way_is_seen() {
    let rig = Rig::new();
    let ordered = shell().open().unwrap();
    let mut child = spawn(&rig, &ordered, "exit 0");
    child.kill().unwrap();
    let text = told(&ordered, &child);
    assert!(text.contains("was killed by signal 9"), "{text}");
    assert_eq!(ended(child).status.signal(), Some(9));
    // However far it has come by then, none is taken for one that runs.
    for tenths_ms in 0..100 {
        let mut child = spawn(&rig, &ordered, "exit 0");
        thread::sleep(Duration::from_micros(100 * tenths_ms));
        child.kill().unwrap();
        let admitted = ordered.admit(child.id());
        assert!(admitted.and_then(Ready::go).is_err());
        assert_eq!(ended(child).status.signal(), Some(9));
    }
}

#[test]
fn a_helper_that_never_comes_is_not_waited_for_without_end() {
    let ordered = shell().open().unwrap();
    let mut command = Command::new("sleep");
    let mut child = piped(command.arg("600")).spawn().unwrap();
    let text = told(&ordered, &child);
    assert!(text.contains("not ready within 5 seconds"), "{text}");
    child.kill().unwrap();
    ended(child);
}

#[test]
fn nobody_but_the_helper_is_let_in() {
    let rig = Rig::new();
    let ordered = shell().open().unwrap();
    let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
    let forged = socket_with(family, SocketType::SEQPACKET, flags, None).unwrap();
    connect(&forged, &SocketAddrUnix::new(ordered.socket()).unwrap()).unwrap();
    let mut child = piped(Command::new("sleep").arg("60")).spawn().unwrap();
    let text = told(&ordered, &child);
    let own = format!("process {}, which is not the helper", std::process::id());
    assert!(text.starts_with(&own), "{text}");
    child.kill().unwrap();
    ended(child);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let dir = Path::new(ordered.socket()).parent().unwrap().to_owned();
    assert_eq!(mode(&dir), 0o700);
    drop(ordered);
    assert!(!dir.exists());
    drop(rig);
}

#[test]
fn a_helper_whose_parent_is_another_does_not_go_on() {
    let rig = Rig::new();
    let ordered = shell().open().unwrap();
    let command = ordered.command(&rig.aegis(), &["sh", "-c", "exit 0"]);
    // This shell stays, and is the parent.
    let between = ["sh", "-c", "\"$@\"; exit $?", "sh"];
    let mut between = super::rig::behind(&between, &command.unwrap());
    let child = piped(&mut between).spawn().unwrap();
    let text = told(&ordered, &child);
    assert!(text.contains("which is not the helper"), "{text}");
    let ran = ended(child);
    assert_eq!(ran.status.code(), Some(126));
    assert_eq!(
        ran.stderr,
        "aegis __confine-exec: the socket of AEGIS_CONFINE_PROFILE is not its parent's, or that has ended\n"
    );
}

#[test]
fn a_fence_that_does_not_hold_is_noticed() {
    as_each_user(|rig| {
        let (asked, script, is_marked) = marking(rig);
        let ordered = asked.open().unwrap();
        let dir = Path::new(ordered.socket()).parent().unwrap();
        let command = ordered.command(&rig.aegis(), &["sh", "-c", &script]);
        let mut command = command.unwrap();
        edit(&mut command, |order| {
            let mut rule = order["profile"]["rules"][0].clone();
            rule["path"] = dir.to_str().unwrap().into();
            rule.as_object_mut().unwrap().remove("id");
            order["profile"]["rules"].as_array_mut().unwrap().push(rule);
        });
        let child = piped(&mut command).spawn().unwrap();
        assert_eq!(
            told(&ordered, &child),
            "open outside the grants was to be refused with: Permission denied (os error 13), and succeeded, or never ended: the confinement does not hold on this machine, so nothing is started"
        );
        assert_eq!(ended(child).status.code(), Some(126));
        assert!(!is_marked());
    });
}

/// SPEC [SANDBOX-7].
#[test]
fn a_program_that_may_not_be_executed_is_named_with_the_flag() {
    as_each_user(|rig| {
        let script = rig.file("script", "#!/bin/sh\nexit 0\n");
        let ordered = Asked::of(&script).read(&script).unwrap().open().unwrap();
        let (child, ready) = rig.start(&ordered, &["script"]).unwrap();
        let text = ready.go().unwrap_err();
        let interpreter = fs::canonicalize("/bin/sh").unwrap();
        let interpreter = interpreter.display();
        assert_eq!(
            text,
            format!(
                "exec `{script}`: Permission denied (os error 13); the interpreter `{interpreter}` may not be executed; give --allow-read {interpreter}, or a --preset"
            )
        );
        let ran = ended(child);
        assert_eq!((ran.stderr.as_str(), ran.status.code()), ("", Some(126)));

        let ordered = Asked::of(&script).open().unwrap();
        let (child, ready) = rig.start(&ordered, &["script"]).unwrap();
        let text = ready.go().unwrap_err();
        assert!(
            text.contains(&format!("give --allow-read {script}")),
            "{text}"
        );
        assert_eq!(ended(child).status.code(), Some(126));

        let lost = rig.file("lost", "#!/no/such/interpreter\n");
        let ordered = Asked::of(&lost).read(&lost).unwrap().open().unwrap();
        let (child, ready) = rig.start(&ordered, &["lost"]).unwrap();
        let text = ready.go().unwrap_err();
        assert!(text.contains("`/no/such/interpreter`"), "{text}");
        assert_eq!(ended(child).status.code(), Some(126));
    });
}

#[test]
fn a_path_that_only_roots_privileges_open_is_named() {
    if !is_root() {
        return;
    }
    let rig = Rig::new();
    let locked = rig.own("locked");
    let inside = format!("{locked}/inside");
    fs::create_dir(&inside).unwrap();
    std::os::unix::fs::chown(&locked, Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
    let text = rig.refused(shell().read(&inside).unwrap(), &["sh"]);
    assert!(
        text.starts_with(&format!("the granted path `{inside}` cannot be opened")),
        "{text}"
    );
    assert!(text.ends_with("its owner or mode must allow it)"), "{text}");
}
