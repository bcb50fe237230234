//! Command lines of a confinement that mean nothing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use insta::assert_snapshot;

use crate::wrap::harness::AEGIS;

/// How wrap answers these options, without its help.
fn shown<S: AsRef<OsStr>>(dir: &Path, options: &[S]) -> String {
    let ran = Command::new(AEGIS)
        .args(["wrap", "--audit", "a", "--signing-key", "k"])
        .args(options)
        .args(["--", "true"])
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(ran.stderr).unwrap();
    let end = text.find("Usage: aegis").unwrap_or(text.len());
    let options: Vec<_> = options
        .iter()
        .map(|option| option.as_ref().to_string_lossy().escape_debug().to_string())
        .collect();
    format!(
        "$ {}\nexit {}\n{}\n",
        options.join(" "),
        ran.status.code().unwrap(),
        &text[..end]
    )
}

fn all_shown(lines: &[&[&str]], before: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let shown: String = lines
        .iter()
        .map(|line| shown(dir.path(), &[before, line].concat()))
        .collect();
    // Nothing was begun.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    shown
}

/// SPEC [SANDBOX-16].
#[test]
fn options_of_a_confinement_mean_nothing_without_it() {
    let lines: [&[&str]; 13] = [
        &["--allow-read", "."],
        &["--allow-write", "."],
        &["--allow-net", "example.com:443"],
        &["--allow-env", "A"],
        &["--allow-exec-support"],
        &["--allow-unix-sockets"],
        &["--best-effort"],
        &["--shared-cache"],
        &["--preset", "node"],
        &["--max-procs", "10"],
        &["--max-memory", "10"],
        &["--max-files", "10"],
        &["--upstream-proxy", "http://proxy.example:3128"],
    ];
    assert_snapshot!(all_shown(&lines, &[]));
}

/// SPEC [SANDBOX-16].
#[test]
fn values_that_mean_nothing_are_usage_errors() {
    let lines: [&[&str]; 33] = [
        &["--preset", "ruby"],
        &["--preset", ""],
        &["--preset", "node", "--preset", "npx"],
        &["--allow-read", ""],
        &["--allow-read", "-"],
        &["--allow-write", "-"],
        &["--allow-net", ""],
        &["--allow-net", "example.com"],
        &["--allow-net", "example.com:0"],
        &["--allow-net", "example.com:65536"],
        &["--allow-net", "example.com:80-90"],
        &["--allow-net", "example.com:*"],
        &["--allow-net", "example.com:53"],
        &["--allow-net", "https://example.com"],
        &["--allow-net", "user:secret@example.com:443"],
        &["--allow-net", "*:443"],
        &["--allow-net", "*.com:443"],
        &["--allow-net", "localhost:80"],
        &["--allow-net", "0x7f.1:80"],
        &["--allow-net", "2130706433:80"],
        &["--allow-net", "10.0.0.0/8:80"],
        &["--allow-net", "\u{1b}[2J:80"],
        &["--allow-env", ""],
        &["--allow-env", "A=b"],
        &["--allow-env", "AEGIS_CONFINE_PROFILE"],
        &["--max-procs", "0"],
        &["--max-memory", "1G"],
        &["--max-memory", "67108863"],
        &["--max-files", "15"],
        &["--max-files", "9007199254740992"],
        &["--shared-cache", "--preset", "node"],
        &["--upstream-proxy", "http://proxy.example:3128"],
        &["--max-files", "3", "--max-files", "4"],
    ];
    let shown = all_shown(&lines, &["--confine"]);
    assert_snapshot!(shown);
}

#[test]
fn the_ports_of_all_entries_together_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let with_ports = |count: usize| {
        let ports: Vec<String> = (0..count).map(|n| (8000 + n).to_string()).collect();
        let mut options = vec!["--confine".to_owned()];
        for some in ports.chunks(64) {
            options.push("--allow-net".to_owned());
            options.push(format!("h.example:{}", some.join(",")));
        }
        shown(dir.path(), &options)
    };
    let expected = "error: --allow-net names 201 ports, and at most 200 can be listened on";
    assert!(with_ports(201).contains(expected));
    assert!(with_ports(200).contains("no signing key at k"));
}

#[test]
fn an_upstream_proxy_that_means_nothing_is_told_without_its_password() {
    let before = ["--confine", "--allow-net", "example.com:443"];
    let lines: [&[&str]; 3] = [
        &["--upstream-proxy", ""],
        &["--upstream-proxy", "https://u:secret@proxy.example:3128"],
        &["--upstream-proxy", "http://u:secret@proxy.example"],
    ];
    let shown = all_shown(&lines, &before);
    let said = shown.lines().filter(|line| !line.starts_with('$'));
    assert!(!said.collect::<String>().contains("secret"), "{shown}");
    assert_snapshot!(shown);
}

#[test]
fn what_is_not_text_is_told_as_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let odd = OsStr::from_bytes(b"caf\xe9:80");
    let options = ["--confine", "--allow-net"].map(OsStr::new);
    let said = shown(dir.path(), &[options[0], options[1], odd]);
    let expected = r"error: --allow-net needs text in UTF-8, got `caf\xe9:80`";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains("exit 1\n"), "{said}");
}

#[test]
fn a_flag_may_not_be_given_without_end() {
    let dir = tempfile::tempdir().unwrap();
    let many = |times: usize| {
        let mut options = vec!["--confine"];
        options.extend(["--allow-env", "A"].repeat(times));
        shown(dir.path(), &options)
    };
    let said = many(257);
    let expected = "error: --allow-env may be given 256 times, not 257";
    assert!(said.contains(expected), "{said}");
    // One fewer is taken; what follows is that there is no key.
    assert!(many(256).contains("no signing key at k"));
}
