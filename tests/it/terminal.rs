//! Whatever a path, an option or a name is made of, nothing that aegis prints
//! moves a cursor or forges a line: SPEC [CLI-8].

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use tempfile::TempDir;

use crate::assemble::Chain;
use crate::exe::{Aegis, Ran};

/// A name that clears a terminal, ends its line, and is no text.
const HOSTILE: &[u8] = b"x\x1b[2J\nVerified (unpinned)\x9b\xe2\x80\xae";

/// How it is shown.
const SHOWN: &str = r"x\u{1b}[2J\u{a}Verified (unpinned)\x9b\u{202e}";

fn hostile(end: &str) -> PathBuf {
    OsString::from_vec([HOSTILE, end.as_bytes()].concat()).into()
}

/// Asserts that the run told of the hostile text, and only tame characters.
#[track_caller]
fn assert_tame(ran: &Ran) {
    assert_harmless(ran);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains(SHOWN), "{said}");
}

#[track_caller]
fn assert_harmless(ran: &Ran) {
    for said in [&ran.stdout, &ran.stderr] {
        let wild = said.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!((wild, said.contains('\u{202e}')), (None, false), "{said}");
        let forged = said
            .lines()
            .any(|line| line.starts_with("Verified (unpinned)\\"));
        assert!(!forged, "{said}");
    }
}

fn aegis(dir: &TempDir, verb: &str) -> Aegis {
    Aegis::new().dir(dir.path()).arg(verb)
}

/// A directory with a signing key.
fn with_key() -> TempDir {
    let dir = TempDir::new().unwrap();
    let ran = aegis(&dir, "keygen").args(["--out", "key"]).run();
    assert_eq!(ran.code(), 0);
    dir
}

#[test]
fn paths_of_keygen() {
    let dir = TempDir::new().unwrap();
    let keygen = |path: PathBuf| aegis(&dir, "keygen").arg("--out").arg(path);
    let made = keygen(hostile("")).run();
    assert_eq!(made.code(), 0);
    assert_tame(&made);
    for refused in [keygen(hostile("")), keygen(hostile("/below/it"))] {
        let refused = refused.run();
        assert_eq!(refused.code(), 1);
        assert_tame(&refused);
    }
    fs::create_dir(dir.path().join(hostile("folder"))).unwrap();
    assert_tame(&keygen(hostile("folder")).arg("--force").run());
}

#[test]
fn paths_of_recover() {
    let dir = TempDir::new().unwrap();
    let recover = |path: PathBuf| aegis(&dir, "recover").arg(path).run();
    let record = |end: &str, bytes: &[u8]| {
        fs::write(dir.path().join(hostile(end)), bytes).unwrap();
        hostile(end)
    };
    assert_tame(&recover(hostile("missing")));
    let mut chain = Chain::opened();
    chain.intent("c").outcome("c");
    let whole = chain.bytes();
    assert_tame(&recover(record("whole", &whole)));
    assert_tame(&recover(record("unended", &whole[..whole.len() - 1])));
    let mut torn = chain.clone();
    torn.rows[1] = b"{\"torn".to_vec();
    torn.intent("call \u{1b}[2J\u{202e}");
    let ran = recover(record("torn", &torn.bytes()));
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    assert_tame(&ran);
    let mut bad = chain.clone();
    bad.rows.remove(1);
    assert_tame(&recover(record("bad", &bad.bytes())));
    assert_tame(&recover(record("other", b"dear diary\n")));
    symlink("nowhere", dir.path().join(hostile("link"))).unwrap();
    assert_tame(&recover(hostile("link")));
    fs::create_dir(dir.path().join(hostile("folder"))).unwrap();
    assert_tame(&recover(hostile("folder")));
}

#[test]
fn paths_of_verify() {
    let dir = TempDir::new().unwrap();
    let verify = |path: PathBuf| aegis(&dir, "verify").arg(path);
    assert_tame(&verify(hostile("missing")).run());
    let record = |end: &str, chain: &Chain| {
        fs::write(dir.path().join(hostile(end)), chain.bytes()).unwrap();
        hostile(end)
    };
    let good = record("good", &Chain::session("c"));
    assert_harmless(&verify(good.clone()).run());
    assert_tame(&verify(good.clone()).arg("missing").run());
    let json = verify(good.clone()).args(["--format", "json"]).run();
    assert_harmless(&json);
    assert!(
        json.stdout.contains(&SHOWN.replace('\\', r"\\")),
        "{}",
        json.stdout
    );
    fs::create_dir(dir.path().join(hostile("folder"))).unwrap();
    assert_tame(&verify(hostile("folder")).run());
    let store = |path: PathBuf| verify(good.clone()).arg("--trust-store").arg(path);
    assert_tame(&store(hostile("no store")).run());
    assert_tame(&store(good.clone()).run());
}

#[test]
fn paths_of_wrap() {
    let dir = with_key();
    let wrap = |audit: PathBuf, key: PathBuf, program: &OsStr| {
        let wrap = aegis(&dir, "wrap").arg("--audit").arg(audit);
        wrap.arg("--signing-key")
            .arg(key)
            .arg("--")
            .arg(program)
            .run()
    };
    let cat = OsStr::new("cat");
    let key = || PathBuf::from("key");
    assert_tame(&wrap("a".into(), hostile("missing"), cat));
    fs::write(dir.path().join(hostile("key")), "no seed").unwrap();
    assert_tame(&wrap("a".into(), hostile("key"), cat));
    fs::set_permissions(
        dir.path().join(hostile("key")),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    assert_tame(&wrap("a".into(), hostile("key"), cat));
    assert_tame(&wrap("a".into(), key(), OsStr::from_bytes(HOSTILE)));

    symlink("nowhere", dir.path().join(hostile("link"))).unwrap();
    assert_tame(&wrap(hostile("link"), key(), cat));
    fs::write(dir.path().join(hostile("torn")), b"{\"torn").unwrap();
    assert_tame(&wrap(hostile("torn"), key(), cat));
    fs::write(dir.path().join(hostile("bad")), b"{}\n").unwrap();
    assert_tame(&wrap(hostile("bad"), key(), cat));
    assert_tame(&wrap(hostile("torn/"), key(), cat));
    assert_tame(&wrap(hostile("torn/below"), key(), cat));
    let shared = dir.path().join(hostile("shared"));
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    assert_tame(&wrap(hostile("shared/"), key(), cat));
}

#[test]
fn options_and_commands_that_do_not_exist() {
    let dir = TempDir::new().unwrap();
    let option = [b"--", HOSTILE].concat();
    let option = OsStr::from_bytes(&option);
    for verb in ["wrap", "verify", "keygen", "recover", "demo"] {
        for args in [vec![option], vec![OsStr::new("x"), option, OsStr::new("y")]] {
            let ran = aegis(&dir, verb).args(&args).run();
            assert_eq!(ran.code(), 1, "{verb}");
            assert_harmless(&ran);
        }
        // As text, which is quoted.
        let ran = aegis(&dir, verb).arg("--x\u{1b}[2J\u{202e}").run();
        assert_eq!(ran.code(), 1, "{verb}");
        assert_harmless(&ran);
        assert!(
            ran.stderr.contains(r"--x\u{1b}[2J\u{202e}"),
            "{}",
            ran.stderr
        );
    }
    let ran = Aegis::new().arg(OsStr::from_bytes(HOSTILE)).run();
    assert_harmless(&ran);
    assert_eq!(ran.code(), 1);
}
