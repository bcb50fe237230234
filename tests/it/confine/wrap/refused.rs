//! What this machine cannot grant: no server, and no record of one.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use insta::assert_snapshot;

use super::server::Confined;

/// What wrap says about these flags, in which `DIR` is the test's directory
/// and `HOME` the home in it.
fn said(flags: &[&str], prepare: impl FnOnce(&Confined)) -> Option<String> {
    let mut confined = Confined::python(&[])?;
    let dir = confined.setup.dir.path().to_str().unwrap().to_owned();
    let flags: Vec<_> = flags.iter().map(|flag| flag.replace("DIR", &dir)).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    confined.setup = confined.setup.with(&flags);
    prepare(&confined);
    let shown = confined.shown();
    let record = fs::read(confined.setup.audit()).unwrap_or_default();
    assert!(record.is_empty(), "{shown}");
    assert_eq!(confined.leftovers(), Vec::<&Path>::new(), "{shown}");
    Some(format!(
        "$ {}\n{shown}",
        flags.join(" ").replace(&dir, "DIR")
    ))
}

fn nothing(_: &Confined) {}

/// Flags, and what is there before wrap starts.
type Row = (&'static [&'static str], fn(&Confined));

/// SPEC [SANDBOX-5].
#[test]
fn a_path_that_cannot_be_granted_is_named_with_its_flag() {
    let mut all = String::new();
    let looping = |confined: &Confined| {
        symlink("loop", confined.home().join("loop")).unwrap();
    };
    let odd = |confined: &Confined| {
        let odd = confined
            .home()
            .join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        fs::create_dir(&odd).unwrap();
        symlink(odd, confined.home().join("plain")).unwrap();
    };
    for (flags, prepare) in [
        (["--allow-read", "DIR/none"], nothing as fn(&Confined)),
        (["--allow-write", "DIR/none"], nothing),
        (["--allow-read", "none/../x"], nothing),
        (["--allow-read", "loop"], looping),
        (["--allow-write", "plain"], odd),
    ] {
        let Some(said) = said(&flags, prepare) else {
            return;
        };
        all.push_str(&said);
    }
    assert_snapshot!(all);
}

/// SPEC [SANDBOX-6].
#[test]
fn no_grant_reaches_what_the_record_rests_on() {
    let mut all = String::new();
    let client = |confined: &Confined| {
        fs::write(confined.home().join(".claude.json"), "{}").unwrap();
    };
    let policy = |confined: &Confined| {
        fs::create_dir(confined.setup.dir.path().join("p")).unwrap();
        let file = confined.setup.dir.path().join("p/policy.yaml");
        fs::write(file, "default: allow\n").unwrap();
    };
    let rows: [Row; 7] = [
        (&["--allow-read", "DIR/key"], nothing),
        (&["--allow-read", "DIR"], nothing),
        (&["--allow-write", "DIR/a.aarl"], |confined| {
            fs::write(confined.setup.audit(), "").unwrap();
        }),
        (
            &["--allow-read", "DIR/p", "--policy", "DIR/p/policy.yaml"],
            policy,
        ),
        (&["--allow-read", "DIR/home"], client),
        (&["--allow-read", "DIR/home/.claude.json"], client),
        (&["--allow-write", "DIR/home/.cache"], |confined| {
            fs::create_dir(confined.home().join(".cache")).unwrap();
        }),
    ];
    for (flags, prepare) in rows {
        let Some(said) = said(flags, prepare) else {
            return;
        };
        all.push_str(&said);
    }
    assert_snapshot!(all);
}

/// All paths together are handed over in one variable.
#[test]
fn paths_that_are_too_many_for_one_order_are_told() {
    let Some(mut confined) = Confined::python(&[]) else {
        return;
    };
    let part = "d".repeat(250);
    let deep = confined.home().join(&part).join(&part);
    for n in 0..256 {
        let path = deep.join(n.to_string());
        fs::create_dir_all(&path).unwrap();
        confined = confined.with_flags(&["--allow-read", path.to_str().unwrap()]);
    }
    let shown = confined.shown();
    let start = "exit 126\nerror: cannot confine the server: the paths and variables of this \
                 confinement take ";
    assert!(shown.starts_with(start), "{shown}");
    assert!(!confined.setup.audit().exists());
    assert!(confined.leftovers().is_empty());
}
