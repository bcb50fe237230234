//! Rows about paths, and what can be known and changed without opening one.

use super::super::seccomp::User;
use super::row::{EACCES, ENOSYS, OPEN, Row, Start, call, row};

const WRITES: &str = "--allow-write {in}";
/// As Landlock says that what a name stands for cannot be moved to where more
/// may be done with it.
const EXDEV: &[&str] = &["blocked EXDEV"];
const EXDEV_OR_EACCES: &[&str] = &["blocked EXDEV", "blocked EACCES"];
const ROOTS: &[&str] = &["blocked EPERM"];
const NEEDS_CAPABILITY: &str = "it needs a capability";
const OWNED_BY_ROOT: &str = "the file belongs to root";

/// Where the system's own files are granted, others beside them are not.
pub(super) fn beside_the_system() -> Vec<Row> {
    let rows = [
        row("outside/files read /etc/shadow")
            .unless(&["blocked EACCES", "blocked ENOENT"], OWNED_BY_ROOT),
        row("outside/files list /etc"),
        row("outside/files open-to-write /etc/hosts").unless(EACCES, OWNED_BY_ROOT),
        row("outside/files open-to-write /etc/passwd").unless(EACCES, OWNED_BY_ROOT),
        row("outside/files list /proc"),
        row("outside/files read /proc/{pid}/environ"),
        row("outside/files read /proc/{pid}/cmdline"),
        row("outside/files read /proc/self/environ"),
        row("outside/files list /dev"),
        row("outside/files open-to-write /dev/ptmx"),
        row("outside/files list /dev/shm"),
        row("outside/files list /tmp"),
        row("outside/files list /var"),
        row("outside/files list /run"),
        row("outside/files list /"),
        row("outside/files list {base}"),
        row("outside/files read {out}/file"),
        row("outside/files list {home}"),
        // What it is for.
        row("outside/files read /etc/passwd").says(OPEN),
        row("outside/files list /usr").says(OPEN),
        row("outside/files write /dev/null").says(OPEN),
        row("outside/files execute /usr/bin/env").says(OPEN),
    ];
    rows.into_iter()
        .map(|row| row.with("--allow-exec-support"))
        .collect()
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = by_name();
    rows.extend(moved());
    rows.extend(around());
    rows.extend(executed());
    rows.extend(known());
    rows
}

/// By the name of the file itself.
fn by_name() -> Vec<Row> {
    vec![
        row("outside/files read {out}/file"),
        row("outside/files read-openat2 {out}/file").says(ENOSYS),
        row("outside/files list {out}"),
        row("outside/files write {out}/file").touching(),
        row("outside/files create {out}/new").touching(),
        row("outside/files create-nameless {out}"),
        row("outside/files truncate {out}/file").touching(),
        row("outside/files truncate-opening {out}/file").touching(),
        row("outside/files unlink {out}/file").touching(),
        row("outside/files rmdir {out}/empty").touching(),
        row("outside/files mkdir {out}/new").touching(),
        row("outside/files mkfifo {out}/new").touching(),
        row("outside/files symlink {out}/new").touching(),
        row("outside/files mknod {out}/new")
            .touching()
            .plain_unless(ROOTS, NEEDS_CAPABILITY),
        // What may be read may not be changed.
        row("outside/files write {ro}/file")
            .with("--allow-read {ro}")
            .touching(),
        row("outside/files create {ro}/new")
            .with("--allow-read {ro}")
            .touching(),
        row("outside/files unlink {ro}/file")
            .with("--allow-read {ro}")
            .touching(),
        row("outside/files truncate {ro}/file")
            .with("--allow-read {ro}")
            .touching(),
        // Where something is granted, its neighbour is not.
        row("outside/files read {in}/../out/file").with(WRITES),
        row("outside/files list {in}/..").with(WRITES),
        row("outside/files create {in}/../new")
            .with(WRITES)
            .touching(),
        row("outside/files mknod {in}/new")
            .with(WRITES)
            .plain_unless(ROOTS, NEEDS_CAPABILITY),
        row("outside/files mknod-block {in}/new")
            .with(WRITES)
            .plain_unless(ROOTS, NEEDS_CAPABILITY),
        row("outside/files create /dev/shm/{unique}").touching(),
        row("outside/files open-to-write /dev/kmsg").plain_unless(EACCES, OWNED_BY_ROOT),
        row("outside/files open-to-write /proc/sysrq-trigger")
            .says(&["blocked EACCES", "blocked ENOENT"])
            .unless(
                &["blocked ENOENT", "blocked EACCES"],
                "the kernel has none, or it belongs to root",
            ),
        row("outside/files open-to-write /proc/sys/kernel/core_pattern")
            .plain_unless(EACCES, OWNED_BY_ROOT),
        row("outside/files open-to-write /proc/self/oom_score_adj"),
        row("outside/files open-to-write /sys/kernel/mm/transparent_hugepage/enabled")
            .unless(&["blocked ENOENT", "blocked EACCES"], OWNED_BY_ROOT),
        row("outside/files read /sys/kernel/mm/transparent_hugepage/enabled")
            .unless(&["blocked ENOENT"], "the kernel has none"),
        row("outside/files read /proc/sys/kernel/random/boot_id"),
        row("outside/files list /proc"),
        row("outside/files read /etc/passwd"),
        // aegis's own, which no grant can name either.
        row("outside/files read {own}/key"),
        row("outside/files read {own}/record"),
        row("outside/files write {own}/record"),
    ]
}

/// From inside to outside and back.
fn moved() -> Vec<Row> {
    let moved = [
        row("outside/files rename {out}/file {in}/new").touching(),
        row("outside/files rename {in}/file {out}/new").touching(),
        row("outside/files rename {in}/file {out}/file").touching(),
        row("outside/files rename {out}/sub {in}/new").touching(),
        row("outside/files exchange {out}/file {in}/file").touching(),
        row("outside/files exchange {in}/file {out}/file").touching(),
        row("outside/files link {out}/file {in}/new").touching(),
        row("outside/files link {in}/file {out}/new").touching(),
        row("outside/files link-open {out}/file {in}/new").touching(),
    ];
    moved
        .into_iter()
        .map(|row| row.with(WRITES).says(EXDEV_OR_EACCES))
        .chain([
            // Written there, it could be changed here.
            row("outside/files link {ro}/file {in}/new")
                .with("--allow-read {ro} --allow-write {in}")
                .says(EXDEV)
                .touching(),
            row("outside/files rename {ro}/file {in}/new")
                .with("--allow-read {ro} --allow-write {in}")
                .says(EXDEV_OR_EACCES)
                .touching(),
        ])
        .collect()
}

/// By another name for the same.
fn around() -> Vec<Row> {
    vec![
        row("outside/files read-by-symlink {out}/file {in}/new").with(WRITES),
        row("outside/files write-by-symlink {out}/file {in}/new")
            .with(WRITES)
            .touching(),
        row("outside/files reopen {out}/file"),
        row("outside/files read-at {out} file"),
        row("outside/files read-at {in} ../out/file").with(WRITES),
        row("outside/files read-from-within {out} file"),
        row("outside/files read ../out/file"),
        row("outside/files read /proc/self/root{out}/file"),
        row("outside/files read /proc/thread-self/root{out}/file"),
        row("outside/files read /proc/{pid}/root{out}/file"),
        row("outside/files read /proc/{pid}/cwd/file"),
        row("outside/files read /proc/{pid}/fd/9"),
        row("outside/files write /proc/{pid}/root{out}/file").touching(),
        row("outside/files exchange {in} {out}")
            .with(WRITES)
            .says(EXDEV_OR_EACCES)
            .touching(),
        row("outside/files readlink /proc/{pid}/exe"),
        row("outside/files readlink /proc/{pid}/cwd"),
        row("outside/files chdir /proc/{pid}/cwd"),
        row("outside/files any-descriptor")
            .started(Start::WithDescriptor)
            .says(&["blocked EBADF"]),
        row("outside/files variable SOME_TOKEN").says(&["blocked ENOENT"]),
        row("outside/files variable SOME_TOKEN")
            .with("--allow-env SOME_TOKEN")
            .says(OPEN),
        row("outside/files variable AEGIS_CONFINE_PROFILE")
            .says(&["blocked ENOENT"])
            .unless(&["blocked ENOENT"], "there is none without confinement"),
        row("outside/files read-inherited 7")
            .started(Start::WithDescriptor)
            .says(&["blocked EBADF"]),
        // Whoever may read a file may hold up those who write it.
        row("outside/files lease {ro}/file")
            .with("--allow-read {ro}")
            .open("locks"),
        row("outside/files lock {ro}/file")
            .with("--allow-read {ro}")
            .open("locks"),
        // A log of the client, say: the server has a pipe instead.
        row("outside/files truncate-inherited 2")
            .started(Start::WithErrorsInFile)
            .says(&["blocked EINVAL"]),
        row("outside/files read-inherited 2")
            .started(Start::WithErrorsInFile)
            .says(&["blocked EBADF"]),
        row("outside/files read /proc/self/fd/7")
            .started(Start::WithDescriptor)
            .says(&["blocked ENOENT", "blocked EACCES"]),
        call("name_to_handle_at").unless(
            &["blocked EOPNOTSUPP"],
            "the root file system gives no handles",
        ),
        call("fanotify_init").plain_unless(
            &["blocked EPERM", "blocked EINVAL"],
            "plain users may since Linux 5.13",
        ),
    ]
}

/// Programs.
fn executed() -> Vec<Row> {
    const DYNAMIC: &str = "--allow-exec-support --allow-write {in}";
    vec![
        row("outside/files execute {out}/program"),
        row("outside/files execute-open {out}/program"),
        // What may be written may not be executed,
        row("outside/files execute {in}/program").with(WRITES),
        // by its name: its bytes are a program to whoever reads them.
        row("outside/memory run-from-memory /proc/self/exe").open("execution"),
        row("outside/memory write-and-run").open("execution"),
        // What may be read may be executed, as the flag says.
        row("outside/files execute {ro}/program")
            .with("--allow-read {ro}")
            .says(OPEN),
        row("outside/files become {setuid}/memory who")
            .with("--allow-read {setuid}")
            .says(&["blocked EPERM"])
            .by(User::Plain)
            .unless(ROOTS, "the file system takes no notice of the bit (nosuid)"),
        row("outside/memory other-user")
            .says(&["blocked EPERM", "blocked EINVAL"])
            .by(User::Root),
        // Whoever works there next runs what the server left.
        row("outside/files create-program {in}/sub/hook")
            .with(WRITES)
            .open("left-behind"),
        row("outside/files execute {in}/dynamic").with(DYNAMIC),
        row(LOADED).with(DYNAMIC).open("execution"),
    ]
}

/// The loader reads a program, and the kernel executes the loader.
const LOADED: &str = match cfg!(target_arch = "x86_64") {
    true => "outside/files become /lib64/ld-linux-x86-64.so.2 {in}/dynamic",
    false => "outside/files become /lib/ld-linux-aarch64.so.1 {in}/dynamic",
};

/// What is learnt without opening anything.
fn known() -> Vec<Row> {
    const ITEM: &str = "existence";
    vec![
        row("outside/files stat {out}/file").open(ITEM),
        row("outside/files access {out}/file").open(ITEM),
        row("outside/files readlink {out}/link").open(ITEM),
        row("outside/files chdir {out}").open(ITEM),
        row("outside/files watch {out}").open(ITEM),
        row("outside/files stat {own}/key").open(ITEM),
        row("outside/files stat /proc/{pid}").open(ITEM),
        row("outside/metadata read-attributes {out}/file").open(ITEM),
    ]
}

/// Modes, owners, times and attributes.
pub(super) fn metadata() -> Vec<Row> {
    const ATTRIBUTES: &[&str] = &["blocked EOPNOTSUPP"];
    const NO_ATTRIBUTES: &str = "the file system of temporary files has no attributes";
    let by_path = || {
        [
            call("outside/metadata mode {out}/file").touching(),
            call("outside/metadata owner {out}/file"),
            call("outside/metadata times {out}/file").touching(),
            call("outside/metadata times-at {out}/file").touching(),
            call("outside/metadata attribute {out}/file")
                .touching()
                .unless(ATTRIBUTES, NO_ATTRIBUTES),
            call("outside/metadata mode-of-path {out}/file").touching(),
            call("outside/metadata times-of-path {out}/file").touching(),
            call("outside/metadata mode {own}/key").touching(),
        ]
    };
    // Whoever may write somewhere may do these everywhere.
    let mut rows: Vec<Row> = by_path()
        .into_iter()
        .map(|row| row.with(WRITES).open("metadata"))
        .collect();
    rows.extend(by_path());
    // A file that was opened to be read.
    for row in [
        row("outside/metadata mode-of-open {ro}/file").touching(),
        row("outside/metadata times-of-open {ro}/file").touching(),
        row("outside/metadata flags-of-open {ro}/file").unless(
            &["blocked ENOTTY", "blocked EOPNOTSUPP"],
            "the file system of temporary files has no flags",
        ),
    ] {
        rows.push(row.with("--allow-read {ro}").open("metadata-of-open"));
    }
    for row in [
        call("outside/metadata mode-for-all-of-open {ro}/file"),
        call("outside/metadata attribute-of-open {ro}/file").unless(ATTRIBUTES, NO_ATTRIBUTES),
    ] {
        rows.push(row.touching().with("--allow-read {ro}"));
    }
    for attempt in [
        "outside/metadata owner-rights {in}/new",
        "outside/metadata owner-rights-later {in}/new",
        "outside/metadata group-rights-by-path {in}/new",
    ] {
        rows.push(call(attempt).with(WRITES));
    }
    rows.push(call("file_setattr").unless(&["blocked ENOSYS"], "it came with Linux 6.17"));
    rows.push(call("chmod_path {out}/file").touching());
    rows
}
