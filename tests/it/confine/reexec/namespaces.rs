//! Namespaces of its own, and machines that give none.

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command};
use std::thread;

use aegis::internals::confine::Filters;
use aegis::internals::confine::helper::{Ordered, Ready};
use serde_json::{Value, json};

use super::rig::{Rig, as_each_user, as_plain, bash, behind, ended, has_namespaces, piped, shell};
use crate::exe::skip;

#[test]
fn namespaces_are_its_own_and_lead_nowhere() {
    as_each_user(|rig| {
        if !has_namespaces(rig) {
            return;
        }
        let asked = shell().read("/proc").unwrap();
        let ordered = asked.open().unwrap();
        let script = "cd /proc/self/ns; readlink user net ipc; id -u; grep -c : /proc/net/dev";
        let (child, ready) = rig.start(&ordered, &["sh", "-c", script]).unwrap();
        let report = ready.report().unwrap();
        ready.go().unwrap();
        let ran = ended(child);
        let user = rustix::process::geteuid().as_raw();
        let inode = |kind: &str| report["namespaces"][kind].as_u64().unwrap();
        let expected = format!(
            "user:[{}]\nnet:[{}]\nipc:[{}]\n{user}\n1\n",
            inode("user"),
            inode("net"),
            inode("ipc")
        );
        assert_eq!(ran.stdout, expected, "{}", ran.stderr);
        for kind in ["user", "net", "ipc"] {
            let ours = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
            assert!(!ran.stdout.contains(ours.to_str().unwrap()), "{kind}");
        }
        assert_eq!(report["network"], "denied-netns");
        assert_eq!(report["gaps"], json!([]));
        let tests = report["self_tests"].as_array().unwrap();
        for test in [
            "open outside the grants",
            "connect to the host's loopback",
            "unshare",
        ] {
            assert!(tests.contains(&test.into()), "{test}");
        }
        if report["landlock"]["abi"].as_u64().unwrap() >= 6 {
            assert!(tests.contains(&"kill(parent)".into()));
        }
    });
}

/// Starts it where unshare is refused, as in many a container.
fn start_without(rig: &Rig, ordered: &Ordered, args: &[&str]) -> Result<(Child, Ready), String> {
    Filters::with_unix_sockets().unwrap().apply().unwrap();
    rig.start(ordered, args)
}

/// In a thread of its own, since filters stay.
fn aside<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(act).join().unwrap())
}

#[test]
fn without_namespaces_filters_deny_the_network() {
    as_each_user(|rig| {
        let report = aside(|| {
            let ordered = shell().open().unwrap();
            let (child, ready) = start_without(rig, &ordered, &["sh", "-c", "exit 4"]).unwrap();
            let report = ready.report().unwrap();
            ready.go().unwrap();
            assert_eq!(ended(child).status.code(), Some(4));
            report
        });
        assert_eq!(report["network"], "denied-seccomp");
        assert_eq!(report["namespaces"], json!({}));
        assert_eq!(report["gaps"], json!([]));
        assert_eq!(report["no_capabilities"], true);
        let tests = report["self_tests"].as_array().unwrap();
        assert!(tests.contains(&"socket(AF_INET, SOCK_STREAM)".into()));
    });
}

#[test]
fn a_parent_that_may_make_no_socket_says_so() {
    let text = aside(|| {
        Filters::narrow().unwrap().apply().unwrap();
        shell().open().err().unwrap()
    });
    let start =
        "the private socket that a confined start needs cannot be had: Operation not permitted";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn without_namespaces_hosts_are_refused_with_the_cause() {
    as_each_user(|rig| {
        let text = aside(|| {
            let ordered = shell().hosts(&[8080], 3128, &[]).open().unwrap();
            start_without(rig, &ordered, &["sh"]).err().unwrap()
        });
        let start = "this machine gives aegis no namespaces (unshare: Operation not permitted (os error 1)): ";
        assert!(text.starts_with(start), "{text}");
        assert!(
            text.ends_with("or give --best-effort to hold it to ports alone"),
            "{text}"
        );
    });
}

#[test]
fn without_namespaces_ports_alone_are_fenced_where_that_is_borne() {
    as_each_user(|rig| {
        let Some(asked) = bash() else {
            return;
        };
        let allowed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let asked = asked.best_effort().hosts(&[port(&allowed)], 3128, &[]);
        let script = format!(
            "for p in {} {}; do (exec 3<>/dev/tcp/127.0.0.1/$p) && echo open || echo shut; done; \
             (exec 3<>/dev/udp/127.0.0.1/53) && echo open || echo shut",
            port(&allowed),
            port(&other)
        );
        let (report, ran) = aside(|| {
            let ordered = asked.open().unwrap();
            let (child, ready) = start_without(rig, &ordered, &["bash", "-c", &script]).unwrap();
            let report = ready.report().unwrap();
            ready.go().unwrap();
            (report, ended(child))
        });
        if fences_no_ports(&report) {
            return;
        }
        assert_eq!(report["network"], "port-only");
        assert_eq!(report["gaps"], json!(["hosts"]));
        assert_eq!(ran.stdout, "open\nshut\nshut\n", "{}", ran.stderr);
    });
}

fn fences_no_ports(report: &Value) -> bool {
    let is_old = report["landlock"]["abi"].as_u64().unwrap() < 4;
    if is_old {
        assert_eq!(report["network"], "unrestricted");
        skip("Landlock fences no ports here");
    }
    is_old
}

/// As where AppArmor lets a user namespace be made and nothing be done in it.
#[test]
fn a_step_that_is_refused_half_way_in_leaves_nothing_half_made() {
    let can_mount = Command::new("unshare").args(["--mount", "true"]).output();
    if !can_mount.is_ok_and(|ran| ran.status.success()) {
        skip("only root can make /proc read-only for one process");
        return;
    }
    let rig = Rig::new();
    let read_only = "mount -o remount,ro,bind /proc && exec \"$@\"";
    let inside = ["unshare", "--mount", "sh", "-c", read_only, "sh"];
    let mut started = 0;
    let spawn = |command: Command| {
        started += 1;
        piped(&mut behind(&inside, &command)).spawn()
    };
    let ordered = shell().open().unwrap();
    let args = ["sh", "-c", "id -u"];
    let (child, ready) = ordered.start(&rig.aegis(), &args, spawn).unwrap();
    assert_eq!(started, 2);
    assert_eq!(ready.report().unwrap()["network"], "denied-seccomp");
    ready.go().unwrap();
    assert_eq!(ended(child).stdout, "0\n");

    let ordered = shell().hosts(&[8080], 3128, &[]).open().unwrap();
    let spawn = |command: Command| piped(&mut behind(&inside, &command)).spawn();
    let text = ordered.start(&rig.aegis(), &args, spawn).err().unwrap();
    let start =
        "this machine gives aegis no namespaces (setgroups: Read-only file system (os error 30))";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn namespaces_that_are_used_up_are_told_from_forbidden_ones() {
    as_plain(|rig| {
        if !has_namespaces(rig) {
            return;
        }
        let ordered = shell().hosts(&[8080], 3128, &[]).open().unwrap();
        let command = ordered.command(&rig.aegis(), &["sh"]).unwrap();
        let none = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
        let inside = [
            "unshare",
            "--user",
            "--map-root-user",
            "sh",
            "-c",
            none,
            "sh",
        ];
        let child = piped(&mut behind(&inside, &command)).spawn().unwrap();
        let text = ordered.admit(child.id()).err().unwrap();
        assert_eq!(ended(child).status.code(), Some(126));
        let start = "this machine gives aegis no namespaces (unshare: No space left on device (os error 28)): as many exist as may";
        assert!(text.starts_with(start), "{text}");
    });
}
