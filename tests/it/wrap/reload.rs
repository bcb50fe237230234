//! The policy of a session that runs is changed: in every way a file can be
//! changed, well and badly.
//!
//! The verb is told nothing but the path, so a test waits for what it says on
//! standard error, and then asks the record.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::{Value, json};

use super::harness::{Ended, Session, Setup, sha256};
use crate::exe::skip;

/// A policy that denies these tools.
fn deny(tools: &[&str]) -> String {
    let rules = tools
        .iter()
        .map(|tool| format!("- id: deny-{tool}\n  action: deny\n  tool: {tool}\n"));
    format!("default: allow\nrules:\n{}", rules.collect::<String>())
}

/// The hash of that policy.
fn hash(tools: &[&str]) -> String {
    let rules = tools.iter().map(|tool| {
        json!({"id": format!("deny-{tool}"), "action": "deny", "priority": "0", "tool": tool})
    });
    let set = json!({"default": "allow", "rules": rules.collect::<Vec<_>>()});
    sha256(set.to_string().as_bytes())
}

/// A server behind a policy file, which denies `tools` so far.
fn setup(tools: &[&str]) -> (Setup, PathBuf) {
    let mut setup = Setup::server(&[]);
    let path = setup.dir.path().join("policy.yaml");
    fs::write(&path, deny(tools)).unwrap();
    setup = setup.with(&["--policy", path.to_str().unwrap()]);
    (setup, path)
}

/// Starts a session, in which the policy has been read by now.
fn begin(setup: &Setup) -> Session<'_> {
    let mut session = setup.start();
    session.send_json(&json!({"jsonrpc": "2.0", "id": "first", "method": "ping"}));
    session.answer("first");
    session
}

/// Puts a document there as whoever changes a policy should.
fn rename_into_place(path: &Path, document: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, document).unwrap();
    fs::rename(beside, path).unwrap();
}

#[track_caller]
fn wait_reloaded(session: &mut Session<'_>, from: &str, to: &str) {
    let said = session.stderr_line(&format!("aegis wrap: policy reloaded: {from} -> "));
    assert_eq!(said, to);
}

/// The lines about the policy on standard error.
fn said(ended: &Ended) -> Vec<&str> {
    let lines = ended.stderr.lines();
    lines.filter(|line| line.contains("policy")).collect()
}

/// Asserts that the Call was judged so by the set with this hash.
#[track_caller]
fn assert_judged(ended: &Ended, request: &[u8], status: &str, policy_set_hash: &str) {
    let outcome = ended.record.outcome(request);
    assert_eq!(outcome["policy"]["status"], status);
    assert_eq!(outcome["policy_set_hash"], policy_set_hash);
}

#[track_caller]
fn assert_reloads(ended: &Ended, reloads: u64) {
    ended.record.assert_verified();
    assert_eq!(ended.record.close()["reloads"], reloads);
}

/// Puts a document at a path.
type Change = fn(&Path, &str);

/// SPEC [RELOAD-5] [RELOAD-6] [LINE-19].
#[test]
fn a_changed_file_is_taken_over_however_it_was_changed() {
    let ways: [(&str, Change); 4] = [
        ("renamed into place", rename_into_place),
        ("written in place", |path, document| {
            fs::write(path, document).unwrap();
        }),
        ("deleted and made again", |path, document| {
            fs::remove_file(path).unwrap();
            fs::write(path, document).unwrap();
        }),
        ("through a link", |path, document| {
            let (real, link) = (path.with_extension("real"), path.with_extension("link"));
            fs::write(&real, document).unwrap();
            symlink(&real, &link).unwrap();
            fs::rename(link, path).unwrap();
        }),
    ];
    for (way, change) in ways {
        let (setup, path) = setup(&["echo"]);
        let (a, b) = (hash(&["echo"]), hash(&["add"]));
        let mut session = begin(&setup);
        let (before, _) = session.ask(1, "echo", json!({"text": "a"}));
        change(&path, &deny(&["add"]));
        wait_reloaded(&mut session, &a, &b);
        let (after, _) = session.ask(2, "echo", json!({"text": "b"}));
        let ended = session.finish();
        ended.assert_exit(0);
        assert_judged(&ended, &before, "denied", &a);
        assert_judged(&ended, &after, "allowed", &b);
        assert_reloads(&ended, 1);
        assert_eq!(said(&ended).len(), 1, "{way}: {}", ended.stderr);
    }
}

/// As a ConfigMap is updated: a link to a link that is swapped, and the file
/// behind it never touched.
#[test]
fn a_folder_that_is_swapped_behind_a_link_is_followed() {
    let setup = Setup::server(&[]);
    let dir = setup.dir.path().to_owned();
    for (folder, tool) in [("first", "echo"), ("second", "add")] {
        fs::create_dir(dir.join(folder)).unwrap();
        fs::write(dir.join(folder).join("policy.yaml"), deny(&[tool])).unwrap();
    }
    symlink("first", dir.join("..data")).unwrap();
    symlink("..data/policy.yaml", dir.join("policy.yaml")).unwrap();
    let path = dir.join("policy.yaml");
    let setup = setup.with(&["--policy", path.to_str().unwrap()]);
    let mut session = begin(&setup);
    symlink("second", dir.join("..new")).unwrap();
    fs::rename(dir.join("..new"), dir.join("..data")).unwrap();
    wait_reloaded(&mut session, &hash(&["echo"]), &hash(&["add"]));
    assert_reloads(&session.finish(), 1);
}

/// Writes `document` over the file byte for byte, and returns the longest time
/// that a byte took.
fn write_slowly(path: &Path, document: &str) -> Duration {
    let mut file = File::create(path).unwrap();
    let mut longest = Duration::ZERO;
    let mut last = Instant::now();
    for byte in document.as_bytes() {
        file.write_all(&[*byte]).unwrap();
        thread::sleep(Duration::from_millis(8));
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    longest
}

/// SPEC [RELOAD-1] [RELOAD-2]: nearly every rule that is written leaves a
/// policy that lacks the rest.
#[test]
fn half_a_file_is_never_in_force() {
    let tools = ["a", "b", "c", "d", "e", "f", "echo"];
    for _ in 0..5 {
        let (setup, path) = setup(&["echo"]);
        let mut session = begin(&setup);
        let document = deny(&tools);
        let longest = write_slowly(&path, &document);
        wait_for_set(&mut session, &hash(&tools));
        let (request, _) = session.ask(1, "echo", json!({"text": "a"}));
        let ended = session.finish();
        // A writer that rests is not told from one that has finished.
        if longest >= Duration::from_millis(400) {
            continue;
        }
        assert_judged(&ended, &request, "denied", &hash(&tools));
        assert_reloads(&ended, 1);
        let reloaded = format!("policy reloaded: {} -> {}", hash(&["echo"]), hash(&tools));
        assert_eq!(said(&ended), [format!("aegis wrap: {reloaded}")]);
        return;
    }
    skip("the writer was held up each time");
}

/// Waits until the set with this hash is in force, whatever was before.
#[track_caller]
fn wait_for_set(session: &mut Session<'_>, to: &str) {
    session.stderr_nth(0, |line| {
        line.contains("policy reloaded: ") && line.ends_with(to)
    });
}

/// What can stand in the place of a policy: how it is made at a path beside it,
/// and what is said of it.
type Bad = (fn(&Path), &'static str);

const BAD: [Bad; 8] = [
    (|path| fs::write(path, "").unwrap(), "it is empty"),
    (
        |path| fs::write(path, "rules: [\n").unwrap(),
        "policy parse error: ",
    ),
    (
        |path| fs::write(path, b"rules: \xff").unwrap(),
        "invalid UTF-8 at byte 7",
    ),
    (
        |path| fs::write(path, "version: 2").unwrap(),
        "unsupported policy version 2",
    ),
    (
        |path| {
            let rule = "rules: [{id: x, action: deny, capability: net}]";
            fs::write(path, rule).unwrap();
        },
        "rule `x` can never match",
    ),
    (
        |path| {
            let file = File::create(path).unwrap();
            file.set_len((16 << 20) + 1).unwrap();
        },
        "it is longer than 16777216 bytes",
    ),
    (
        |path| symlink(".", path).unwrap(),
        "it is not a regular file",
    ),
    (
        |path| symlink("policy.yaml", path).unwrap(),
        "Too many levels of symbolic links",
    ),
];

/// Waits for the complaint that comes after `n` others.
#[track_caller]
fn nth_complaint(session: &mut Session<'_>, n: usize) -> String {
    session.stderr_nth(n, |line| line.contains("policy not reloaded: "))
}

/// SPEC [RELOAD-2] [RELOAD-3].
#[test]
fn a_bad_file_leaves_the_old_set_in_force_and_is_told_of_once() {
    let (setup, path) = setup(&["echo"]);
    let a = hash(&["echo"]);
    let mut session = begin(&setup);
    let mut requests = Vec::new();
    let gone: Bad = (|_| {}, "No such file or directory");
    for (n, (make, why)) in BAD.into_iter().chain([gone]).enumerate() {
        let beside = path.with_extension("new");
        make(&beside);
        // In one step, lest what is between them be seen too.
        let moved = fs::rename(beside, &path);
        moved.or_else(|_| fs::remove_file(&path)).unwrap();
        let last = nth_complaint(&mut session, n);
        let start = format!("aegis wrap: policy not reloaded: `{}`: ", path.display());
        assert!(last.starts_with(&start) && last.contains(why), "{last}");
        let end = format!("; {a} stays in force");
        assert!(last.ends_with(&end), "{last}");
        requests.push(session.ask(n as u64, "echo", json!({"text": "a"})).0);
    }
    rename_into_place(&path, &format!("# As before.\n{}", deny(&["echo"])));
    let good = session.stderr_line(&format!("aegis wrap: policy `{}` ", path.display()));
    assert_eq!(good, format!("is good again: {a} stays in force"));
    let ended = session.finish();
    for request in requests {
        assert_judged(&ended, &request, "denied", &a);
    }
    assert_reloads(&ended, 0);
    assert_eq!(said(&ended).len(), BAD.len() + 2, "{}", ended.stderr);
}

/// SPEC [RELOAD-2]: opening one would wait for its writer for ever.
#[test]
fn a_pipe_in_the_place_of_the_file_holds_nothing_up() {
    let (setup, path) = setup(&["echo"]);
    let mut session = begin(&setup);
    let beside = path.with_extension("pipe");
    let made = Command::new("mkfifo").arg(&beside).status().unwrap();
    assert!(made.success());
    fs::rename(beside, &path).unwrap();
    let told = session.stderr_line("aegis wrap: policy not reloaded: ");
    assert!(told.contains("not a regular file"), "{told}");
    rename_into_place(&path, &deny(&["add"]));
    wait_reloaded(&mut session, &hash(&["echo"]), &hash(&["add"]));
    assert_reloads(&session.finish(), 1);
}

/// SPEC [RELOAD-2].
#[test]
fn a_file_that_cannot_be_read_leaves_the_old_set_in_force() {
    let (setup, path) = setup(&["echo"]);
    let mut session = begin(&setup);
    if geteuid().is_root() {
        // Root may read every file. This one is regular and opens, but nothing
        // is mapped where it begins.
        fs::remove_file(&path).unwrap();
        symlink("/proc/self/mem", &path).unwrap();
    } else {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    }
    let told = session.stderr_line("aegis wrap: policy not reloaded: ");
    let cause = ["Input/output error", "Permission denied"];
    assert!(cause.iter().any(|cause| told.contains(cause)), "{told}");
    let (request, _) = session.ask(1, "echo", json!({"text": "a"}));
    let ended = session.finish();
    assert_judged(&ended, &request, "denied", &hash(&["echo"]));
    assert_reloads(&ended, 0);
}

/// SPEC [RELOAD-4].
#[test]
fn whoever_sends_the_signal_is_told_with_and_without_a_change() {
    let (setup, path) = setup(&["echo"]);
    let (a, b) = (hash(&["echo"]), hash(&["add"]));
    let mut session = begin(&setup);
    session.signal(Signal::USR1);
    assert_eq!(session.stderr_line("aegis wrap: policy unchanged: "), a);
    rename_into_place(&path, &deny(&["add"]));
    session.signal(Signal::USR1);
    wait_reloaded(&mut session, &a, &b);
    let ended = session.finish();
    ended.assert_exit(0);
    assert_reloads(&ended, 1);
}

/// SPEC [RELOAD-4].
#[test]
fn the_signal_ends_nothing_while_the_policy_is_still_read() {
    const RULES: usize = 20_000;
    let rules = (0..RULES).map(|n| format!("- {{id: r{n}, action: deny, tool: t{n}}}\n"));
    let long = format!("rules:\n{}", rules.collect::<String>());
    let (setup, path) = setup(&[]);
    // The fault is found last, so nothing but the signal can end it before.
    fs::write(&path, format!("{long}- {{id: r0, action: deny}}\n")).unwrap();
    let mut session = setup.start();
    wait_until_the_signal_is_borne(&session);
    session.signal(Signal::USR1);
    assert_eq!(session.wait_status().code(), Some(1));
    // Whoever asked so early is answered too.
    fs::write(&path, long).unwrap();
    let mut session = setup.start();
    wait_until_the_signal_is_borne(&session);
    session.signal(Signal::USR1);
    session.stderr_line("aegis wrap: policy unchanged: ");
    session.finish().assert_exit(0);
}

/// Waits until aegis catches SIGUSR1; one that ended before never does.
#[track_caller]
fn wait_until_the_signal_is_borne(session: &Session<'_>) {
    let status = format!("/proc/{}/status", session.pid().as_raw_nonzero());
    super::harness::until("the handler of SIGUSR1", || {
        let status = fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        let caught = caught.expect("it ended before it bore the signal");
        caught >> (Signal::USR1.as_raw() - 1) & 1 == 1
    });
}

/// SPEC [RELOAD-4] [RELOAD-6].
#[test]
fn without_a_policy_the_signal_is_answered_and_ends_nothing() {
    let setup = Setup::server(&[]);
    let mut session = begin(&setup);
    session.signal(Signal::USR1);
    let told = session.stderr_line("aegis wrap: no policy to reload");
    assert_eq!(told, "; --policy gives one");
    session.ask(2, "echo", json!({"text": "a"}));
    let ended = session.finish();
    ended.assert_exit(0);
    ended.record.assert_verified();
    assert_eq!(ended.record.close().get("reloads"), None);
}

/// SPEC [RELOAD-4].
#[test]
fn a_policy_that_is_to_stay_stays() {
    let (setup, path) = setup(&["echo"]);
    let setup = setup.with(&["--no-reload"]);
    let a = hash(&["echo"]);
    let mut session = begin(&setup);
    rename_into_place(&path, &deny(&["add"]));
    session.signal(Signal::USR1);
    let told = session.stderr_line("aegis wrap: policy not reloaded: ");
    assert_eq!(told, format!("--no-reload was given; {a} stays in force"));
    let (request, _) = session.ask(2, "echo", json!({"text": "b"}));
    let ended = session.finish();
    assert_judged(&ended, &request, "denied", &a);
    assert_reloads(&ended, 0);
}

/// SPEC [RELOAD-2].
#[test]
fn a_set_that_is_pinned_stays_and_may_be_reformatted() {
    let (setup, path) = setup(&["echo"]);
    let (a, b) = (hash(&["echo"]), hash(&["add"]));
    let setup = setup.with(&["--policy-hash", &a]);
    let mut session = begin(&setup);
    rename_into_place(&path, &deny(&["add"]));
    let told = session.stderr_line("aegis wrap: policy not reloaded: ");
    assert!(
        told.contains(&b) && told.contains("--policy-hash"),
        "{told}"
    );
    assert!(told.ends_with(&format!("; {a} stays in force")), "{told}");
    let (request, _) = session.ask(1, "echo", json!({"text": "a"}));
    rename_into_place(&path, &format!("# As before.\n{}", deny(&["echo"])));
    session.stderr_line(&format!(
        "aegis wrap: policy `{}` is good again",
        path.display()
    ));
    let ended = session.finish();
    assert_judged(&ended, &request, "denied", &a);
    assert_reloads(&ended, 0);
}

/// SPEC [RELOAD-5].
#[test]
fn windows_stay_open_over_a_reload() {
    let rate = "- {id: r, action: rate_limit, tool: echo, rate: {max: 2, per_seconds: 3600}}\n";
    let (setup, path) = setup(&[]);
    fs::write(&path, format!("rules:\n{rate}")).unwrap();
    let mut session = begin(&setup);
    let mut statuses = Vec::new();
    let (first, _) = session.ask(1, "echo", json!({"text": "a"}));
    rename_into_place(&path, &format!("{}{rate}", deny(&["add"])));
    session.stderr_line("aegis wrap: policy reloaded: ");
    let (second, _) = session.ask(2, "echo", json!({"text": "b"}));
    let (third, _) = session.ask(3, "echo", json!({"text": "c"}));
    let ended = session.finish();
    for request in [first, second, third] {
        let outcome: &Value = ended.record.outcome(&request);
        statuses.push(outcome["policy"]["status"].clone());
    }
    assert_eq!(statuses, ["allowed", "allowed", "rate_limited"]);
    assert_reloads(&ended, 1);
}

/// SPEC [RELOAD-4].
#[test]
fn where_the_launcher_ignores_the_signal_it_is_ignored() {
    let (setup, _path) = setup(&["echo"]);
    let mut wrap = Command::new("sh")
        .args(["-c", "trap '' USR1; exec \"$@\"", "sh"])
        .args(setup.argv())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    super::harness::until("the session", || setup.audit().exists());
    let status = fs::read_to_string(format!("/proc/{}/status", wrap.id())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    assert_eq!(ignored >> (Signal::USR1.as_raw() - 1) & 1, 1);
    kill_process(Pid::from_child(&wrap), Signal::USR1).unwrap();
    drop(wrap.stdin.take());
    let output = wrap.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
