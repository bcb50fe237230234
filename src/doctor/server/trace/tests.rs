use super::*;

fn path(row: &str) -> (String, Act, End) {
    match Row::read(row) {
        Some(Row::Path { path, act, end }) => (path.to_str().unwrap().to_owned(), act, end),
        other => panic!("{row}: {other:?}"),
    }
}

/// Rows as strace 6.1 writes them.
#[test]
fn paths_are_read_with_what_was_done() {
    let rows = [
        (
            r#"openat(AT_FDCWD</tmp>, "/etc/shadow", O_RDONLY|O_CLOEXEC) = -1 EACCES (Permission denied)"#,
            ("/etc/shadow", Act::Read, End::Refused),
        ),
        (
            r#"openat(AT_FDCWD</tmp/t1>, "a/../b.py", O_RDONLY|O_CLOEXEC) = 3</tmp/t1/b.py>"#,
            ("/tmp/t1/b.py", Act::Read, End::Done),
        ),
        (
            r#"openat(5</tmp/d, e>, "log", O_WRONLY|O_CREAT|O_APPEND|O_CLOEXEC, 0666) = 6</tmp/d, e/log>"#,
            ("/tmp/d, e/log", Act::Write, End::Done),
        ),
        (
            r#"open("/w", O_RDWR) = -1 ENOENT (No such file or directory)"#,
            ("/w", Act::Write, End::Failed),
        ),
        (
            r#"newfstatat(AT_FDCWD</tmp>, "/n", {st_mode=S_IFDIR|0700, st_size=4096, ...}, 0) = 0"#,
            ("/n", Act::Look, End::Done),
        ),
        (
            r#"mkdir("/tmp/x", 0777)                   = -1 EPERM (Operation not permitted)"#,
            ("/tmp/x", Act::Write, End::Refused),
        ),
        (
            r#"execve("/usr/bin/git", ["git", "a = b"], 0x7ffd /* 37 vars */) = 0"#,
            ("/usr/bin/git", Act::Execute, End::Done),
        ),
        (
            r#"openat(AT_FDCWD</>, "/caf\303\251 \"q\"\n", O_RDONLY) = 3</caf>"#,
            ("/café \"q\"\n", Act::Read, End::Done),
        ),
        (
            r#"openat(AT_FDCWD</>, "/o", O_PATH|O_CLOEXEC) = 3</o>"#,
            ("/o", Act::Look, End::Done),
        ),
    ];
    for (row, (expected, act, end)) in rows {
        assert_eq!(path(row), (expected.to_owned(), act, end), "{row}");
    }
}

#[test]
fn other_rows_are_read_or_left_out() {
    let started = Some(Row::Started(14410));
    for call in [
        "clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0} => {parent_tid=[14410]}, 88) = 14410",
        "vfork()                                 = 14410",
    ] {
        assert_eq!(Row::read(call), started);
    }
    let to = |family: &str, port: u16| {
        Row::read(&format!(
            "connect(3<socket:[1]>, {{sa_family={family}_port=htons({port}), x}}, 16) = -1 ECONNREFUSED (Connection refused)"
        ))
    };
    assert_eq!(to("AF_INET, sin", 443), Some(Row::Port(443)));
    assert_eq!(to("AF_INET6, sin6", 8080), Some(Row::Port(8080)));
    assert_eq!(to("AF_INET, sin", 53), None);
    let unix = r#"connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/run/bus"}, 110) = "#;
    assert_eq!(
        Row::read(&format!("{unix}0")),
        Some(Row::Unix("/run/bus".to_owned()))
    );
    assert_eq!(Row::read(&format!("{unix}-1 ENOENT (x)")), None);
    for row in [
        "",
        "+++ exited with 0 +++",
        "--- SIGCHLD {si_signo=SIGCHLD} ---",
        r#"newfstatat(3</usr/lib/x>, "", {st_mode=S_IFREG|0644, ...}, AT_EMPTY_PATH) = 0"#,
        r#"openat(AT_FDCWD</>, "/cut"#,
        r#"openat(AT_FDCWD</>, "/cut = 3"#,
        r#"getcwd("/tmp", 4096)                    = 5"#,
        r#"symlink("target", "/link")              = 0"#,
        "clone() = ?",
    ] {
        assert_eq!(Row::read(row), None, "{row}");
    }
}

/// SPEC [DOCTOR-11]: what aegis itself does is not the server's.
#[test]
fn only_what_the_helper_became_counts_as_confined() {
    let directory = tempfile::tempdir().unwrap();
    let write = |pid: u32, rows: &[&str]| {
        let path = directory.path().join(format!("trace.{pid}"));
        std::fs::write(path, rows.join("\n")).unwrap();
    };
    let read = |name: &str| format!(r#"openat(AT_FDCWD</>, "/{name}", O_RDONLY) = 3</{name}>"#);
    let helper =
        r#"execve("/aegis", ["/aegis", "__confine-exec", "--", "s"], 0x1 /* 9 vars */) = 0"#;
    let server = r#"execve("/s", ["s"], 0x1 /* 9 vars */) = 0"#;
    let own = r#"execve("/aegis", ["/aegis", "wrap"], 0x1 /* 9 vars */) = 0"#;
    write(10, &[own, &read("own"), "clone() = 11"]);
    // The first helper was refused a namespace, and a second one tried.
    write(11, &[helper, &read("refused")]);
    write(
        12,
        &[
            helper,
            &read("helper"),
            server,
            &read("server"),
            "fork() = 13",
        ],
    );
    write(13, &[&read("child"), "clone() = 14", "clone() = 99"]);
    write(14, &[&read("grandchild")]);
    let of = |whose| {
        let seen = Seen::read(directory.path(), whose);
        assert!(!seen.is_cut);
        let names = seen
            .paths
            .into_keys()
            .map(|path| path.display().to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of(Whose::Confined), "/child /grandchild /server");
    assert!(of(Whose::Everybody).contains("/helper"));
}

#[test]
fn what_is_beyond_the_bounds_is_said_to_be() {
    let mut seen = Seen::default();
    for number in 0..MAX_PATHS {
        seen.touch(format!("/{number}").into(), Act::Read, End::Done);
    }
    assert!(!seen.is_cut);
    seen.touch("/0".into(), Act::Write, End::Done);
    assert!(!seen.is_cut);
    seen.touch("/more".into(), Act::Read, End::Done);
    assert!(seen.is_cut);
    assert_eq!(seen.paths.len(), MAX_PATHS);
}
