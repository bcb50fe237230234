//! The filters in force, on a thread of this process.

use std::fs;
use std::process::Command;
use std::thread;

use rustix::io::Errno;

use super::super::selftest::{PROBES, Surprise, self_test};
use super::super::{Metadata, Network, Plan, RETURN, SeccompError, filters};
use super::{NARROW, plans};

/// What `work` finds out on a thread of its own under the filters of `plan`.
fn under<T: Send>(plan: &Plan, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            filters(plan).unwrap().apply().unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

/// Without the filters each probe comes to something else than EPERM, so a
/// self-test that passes shows the filters.
#[test]
fn no_probe_is_denied_without_the_filters() {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    if !status.contains("Seccomp:\t0") {
        super::skipped("this process is under filters of somebody else");
        return;
    }
    for probe in PROBES {
        let found = (probe.run)();
        assert_ne!(found, Err(Errno::PERM), "{}", probe.name);
    }
    let surprise = self_test(&NARROW).unwrap_err();
    assert_eq!(
        surprise,
        Surprise {
            probe: "socket(AF_UNIX)",
            found: None,
        }
    );
    assert_eq!(
        surprise.to_string(),
        "socket(AF_UNIX) was to be refused with EPERM and succeeded: the filters are not in force \
         on this machine, so nothing is started"
    );
}

#[test]
fn every_probe_is_denied_as_its_plan_says() {
    for plan in plans() {
        under(&plan, || {
            let passed = self_test(&plan).unwrap();
            for probe in PROBES {
                let found = (probe.run)();
                let denied = (probe.is_denied)(&plan);
                assert_eq!(
                    found == Err(Errno::PERM),
                    denied,
                    "{}: {plan:?}",
                    probe.name
                );
                assert_eq!(passed.names().contains(&probe.name), denied);
            }
        });
    }
}

/// A plan that is wider than the filters in force does not pass as narrower.
#[test]
fn a_self_test_fails_under_filters_of_another_plan() {
    let wide = Plan {
        network: Network::Namespace,
        unix_sockets: true,
        metadata: Metadata::Allowed,
    };
    let surprise = under(&wide, || self_test(&NARROW)).unwrap_err();
    assert_eq!(surprise.probe, "socket(AF_UNIX)");
    let chmod = Plan {
        metadata: Metadata::Denied,
        ..wide
    };
    let surprise = under(&wide, || self_test(&chmod)).unwrap_err();
    assert_eq!(
        (surprise.probe, surprise.found),
        ("chmod by path", Some(Errno::NOENT))
    );
}

#[test]
fn the_kernel_counts_four_filters_and_no_new_privileges() {
    let line = |status: &str, name: &str| {
        let found = status.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap().trim().parse::<u32>().unwrap()
    };
    let read = || fs::read_to_string("/proc/thread-self/status").unwrap();
    let before = read();
    let after = under(&NARROW, read);
    assert_eq!(
        line(&after, "Seccomp_filters:"),
        line(&before, "Seccomp_filters:") + 4
    );
    assert_eq!(line(&after, "Seccomp:"), 2);
    assert_eq!(line(&after, "NoNewPrivs:"), 1);
    // This thread is as it was.
    assert_eq!(line(&read(), "Seccomp:"), line(&before, "Seccomp:"));
}

/// Confinement inside a confinement: filters add up, and the outer ones are
/// not widened by wider ones inside.
#[test]
fn filters_stack_and_only_narrow() {
    let wide = Plan {
        network: Network::Namespace,
        unix_sockets: true,
        metadata: Metadata::Allowed,
    };
    let passed = under(&NARROW, || {
        filters(&wide).unwrap().apply().unwrap();
        self_test(&NARROW)
    });
    assert_eq!(passed.unwrap().names().len(), PROBES.len());
    assert!(under(&wide, || self_test(&wide)).is_ok());
}

#[test]
fn a_program_that_the_kernel_does_not_take_is_named() {
    let error = thread::scope(|scope| {
        let load = || {
            let mut filters = filters(&NARROW).unwrap();
            // A program has to end in a return.
            let last = filters.programs[3].1.last_mut().unwrap();
            assert_eq!(last.code, RETURN);
            last.code = 0;
            filters.apply().unwrap_err()
        };
        scope.spawn(load).join().unwrap()
    });
    assert!(matches!(error, SeccompError::Load { .. }));
    assert_eq!(
        error.to_string(),
        "the kernel did not take the system call filter main: Invalid argument (os error 22): \
         confinement needs a kernel with CONFIG_SECCOMP_FILTER"
    );
}

/// Threads, processes, pipes and files work; a child is under them as well.
#[test]
fn ordinary_work_goes_on_and_children_inherit() {
    let room = tempfile::tempdir().unwrap();
    let file = room.path().join("file");
    let status = under(&NARROW, || {
        fs::write(&file, "text").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"text");
        let times = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
        fs::File::options()
            .append(true)
            .open(&file)
            .unwrap()
            .set_times(times)
            .unwrap();
        assert_eq!(thread::spawn(|| 7).join().unwrap(), 7);
        let shell = Command::new("sh")
            .args(["-c", "echo \"$(cat /proc/self/status)\" | grep Seccomp:"])
            .output()
            .unwrap();
        assert!(shell.status.success());
        String::from_utf8(shell.stdout).unwrap()
    });
    assert_eq!(status, "Seccomp:\t2\n");
}
