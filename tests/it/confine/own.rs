//! What aegis itself rests on is refused by name to every confined server,
//! however it is spelt.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::exe::{skip, write_key};

/// A home, with aegis's own things in places of their own.
struct House {
    base: TempDir,
}

impl House {
    fn build() -> Self {
        let house = Self {
            base: tempfile::tempdir().unwrap(),
        };
        for directory in [
            "keys",
            "records",
            "rules",
            "home/.config/Claude",
            "home/.claude",
            "home/.cursor",
            "home/.cache/aegis",
            "programs",
            "project",
            "free",
            "home/notes",
        ] {
            fs::create_dir_all(house.path(directory)).unwrap();
        }
        write_key(&house.path("keys/key"));
        fs::write(house.path("rules/policy.yaml"), POLICY).unwrap();
        // Not by this process, which may start another while the file is open:
        // then it could not be executed.
        let mut copy = Command::new("cp");
        copy.arg(env!("CARGO_BIN_EXE_aegis"))
            .arg(house.path("programs/aegis"));
        assert!(copy.status().unwrap().success());
        house
    }

    fn path(&self, below: &str) -> PathBuf {
        self.base.path().join(below)
    }

    /// `aegis wrap` of a program that does nothing, with what is in `flags`.
    fn wrap(&self, flags: &[&str]) -> Command {
        let mut command = Command::new(self.path("programs/aegis"));
        command
            .args(["wrap", "--confine", "--preset", "python"])
            .arg("--audit")
            .arg(self.path("records/record"))
            .arg("--signing-key")
            .arg(self.path("keys/key"));
        self.complete(&mut command, flags);
        command
    }

    /// Paths below the house are written with an `@` before them.
    fn complete(&self, command: &mut Command, flags: &[&str]) {
        for flag in flags {
            match flag.strip_prefix('@') {
                Some(below) => command.arg(self.path(below)),
                None => command.arg(flag),
            };
        }
        command
            .args(["--", "true"])
            .current_dir(self.path("project"))
            .env("HOME", self.path("home"))
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::null());
    }

    /// Asserts that a server given these is not started, and that the asset
    /// is named.
    #[track_caller]
    fn refuses(&self, flags: &[&str], named: &str) {
        assert_refused(self.wrap(flags).output().unwrap(), flags, named);
        assert!(
            !self.path("records/record").exists(),
            "{flags:?} began a record"
        );
    }

    #[track_caller]
    fn starts(&self, flags: &[&str]) {
        let ran = self.wrap(flags).output().unwrap();
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(self.path("records/record").exists(), "{flags:?}: {errors}");
        assert!(!errors.contains("no confined server may reach"), "{errors}");
        fs::remove_file(self.path("records/record")).unwrap();
    }
}

#[track_caller]
fn assert_refused(ran: Output, flags: &[&str], named: &str) {
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(
        errors.contains(named),
        "{flags:?} is to name {named}: {errors}"
    );
    assert!(errors.contains("no confined server may reach"), "{errors}");
    assert_eq!(ran.status.code(), Some(126), "{flags:?}: {errors}");
}

/// By itself, by what contains it, to read and to write.
#[track_caller]
fn is_kept(asset: &str, named: &str) {
    let house = House::build();
    let mut at = Some(Path::new(asset));
    while let Some(path) = at {
        let root = format!("@{}", path.display());
        // Of several that it contains, the first is named.
        let named = if root == "@" {
            "which no confined"
        } else {
            named
        };
        for flag in ["--allow-read", "--allow-write"] {
            if house.path(&root[1..]).exists() {
                house.refuses(&[flag, &root], named);
            }
        }
        at = path.parent();
    }
}

#[test]
fn the_signing_key_is_kept() {
    is_kept("keys/key", "the signing key");
}

#[test]
fn the_record_is_kept() {
    is_kept("records/record", "the audit path");
}

#[test]
fn a_directory_of_records_is_kept() {
    let house = House::build();
    for root in ["@records", "@records/segments", "@"] {
        fs::create_dir_all(house.path("records/segments")).unwrap();
        let flags = ["--allow-read", root];
        let mut command = Command::new(house.path("programs/aegis"));
        command
            .args(["wrap", "--confine", "--preset", "python", "--audit"])
            .arg(house.path("records/segments/"))
            .arg("--signing-key")
            .arg(house.path("keys/key"));
        house.complete(&mut command, &flags);
        let named = match root {
            "@" => "which no confined",
            _ => "the audit path",
        };
        assert_refused(command.output().unwrap(), &flags, named);
    }
}

#[test]
fn the_policy_is_kept() {
    let house = House::build();
    for root in ["@rules/policy.yaml", "@rules"] {
        for flag in ["--allow-read", "--allow-write"] {
            let flags = ["--policy", "@rules/policy.yaml", flag, root];
            house.refuses(&flags, "the policy");
        }
    }
    // It is aegis's own only while it judges by it.
    house.starts(&["--allow-read", "@rules"]);
}

#[test]
fn configurations_of_clients_are_kept() {
    for (asset, named) in [
        ("home/.config/Claude", "the configuration of Claude Desktop"),
        ("home/.claude", "the configuration of Claude Code"),
        ("home/.cursor", "the configuration of Cursor"),
    ] {
        is_kept_below_home(asset, named);
    }
}

#[test]
fn configurations_are_kept_before_they_are_there() {
    let house = House::build();
    fs::remove_dir(house.path("home/.cursor")).unwrap();
    fs::create_dir(house.path("home/.cursor")).unwrap();
    house.refuses(
        &["--allow-write", "@home/.cursor"],
        "the configuration of Cursor",
    );
}

#[test]
fn a_project_with_a_configuration_is_not_written_to() {
    let house = House::build();
    house.refuses(
        &["--allow-write", "@project"],
        "a project's MCP configuration",
    );
    fs::write(house.path("free/.mcp.json"), "{}").unwrap();
    house.refuses(&["--allow-write", "@free"], "a project's MCP configuration");
    house.starts(&["--allow-read", "@project"]);
}

#[test]
fn the_folder_of_aegis_is_not_written_to() {
    let house = House::build();
    for root in ["@programs", "@programs/aegis"] {
        house.refuses(&["--allow-write", root], "the folder of aegis itself");
    }
    house.starts(&["--allow-read", "@programs"]);
}

#[test]
fn the_cache_is_kept() {
    is_kept_below_home("home/.cache/aegis", "the cache");
    is_kept_below_home("home/.cache", "the cache");
}

#[track_caller]
fn is_kept_below_home(root: &str, named: &str) {
    let house = House::build();
    let root = format!("@{root}");
    for flag in ["--allow-read", "--allow-write"] {
        house.refuses(&[flag, &root], named);
        house.refuses(&[flag, "@home"], "which no confined");
    }
}

#[test]
fn links_and_dots_lead_nowhere_else() {
    let house = House::build();
    symlink(house.path("keys"), house.path("free/way")).unwrap();
    symlink("../keys/key", house.path("free/file")).unwrap();
    symlink("way", house.path("free/longer")).unwrap();
    for root in [
        "@free/way",
        "@free/file",
        "@free/longer",
        "@free/../keys",
        "@free/./../keys/",
        "@free/way/../keys",
    ] {
        for flag in ["--allow-read", "--allow-write"] {
            house.refuses(&[flag, root], "the signing key");
        }
    }
    // A directory with a link in it reaches only what it holds.
    house.starts(&["--allow-write", "@free"]);
}

/// Another name of the very file.
#[test]
fn hard_links_lead_nowhere_else() {
    let house = House::build();
    fs::hard_link(house.path("keys/key"), house.path("free/key")).unwrap();
    for flag in ["--allow-read", "--allow-write"] {
        house.refuses(&[flag, "@free/key"], "the signing key");
        house.refuses(&[flag, "@free"], "the signing key");
    }
    let house = House::build();
    fs::hard_link(house.path("rules/policy.yaml"), house.path("free/policy")).unwrap();
    let flags = ["--policy", "@rules/policy.yaml", "--allow-write", "@free"];
    house.refuses(&flags, "the policy");
}

/// With the start before, the server could have put it there.
#[test]
fn a_link_that_the_server_may_change_grants_nothing() {
    let house = House::build();
    symlink("../home/notes", house.path("free/way")).unwrap();
    fs::write(house.path("home/notes/own.py"), "").unwrap();
    symlink("../home/notes/own.py", house.path("free/server.py")).unwrap();
    let cases: [(&[&str], &str); 2] = [
        (&["--allow-read", "@free/way"], "true"),
        (&[], "@free/server.py"),
    ];
    for (flags, script) in cases {
        let flags = [flags, &["--allow-write", "@free"]].concat();
        let mut command = house.wrap(&flags);
        command.arg(house.path(script.trim_start_matches('@')));
        let ran = command.output().unwrap();
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(126), "{flags:?}: {errors}");
        assert!(errors.contains("home/notes"), "{flags:?}: {errors}");
        assert!(!house.path("records/record").exists());
    }
    house.starts(&[
        "--allow-read",
        "@free/way",
        "--allow-write",
        "@project/../home/notes",
    ]);
}

/// What is written where a link of the way to an asset stands would lead to
/// another.
#[test]
fn links_on_the_way_to_the_record_are_not_written_to() {
    let house = House::build();
    symlink(house.path("records"), house.path("free/records")).unwrap();
    let flags = ["--allow-write", "@free"];
    let mut command = Command::new(house.path("programs/aegis"));
    command
        .args(["wrap", "--confine", "--preset", "python", "--audit"])
        .arg(house.path("free/records/record"))
        .arg("--signing-key")
        .arg(house.path("keys/key"));
    house.complete(&mut command, &flags);
    assert_refused(command.output().unwrap(), &flags, "the audit path");
}

/// The same directory at another place, in a mount namespace of its own.
#[test]
fn bind_mounts_lead_nowhere_else() {
    let house = House::build();
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        let is_root = rustix::process::geteuid().is_root();
        let how: &[&str] = if is_root { &["-m"] } else { &["-Urm"] };
        command.args(how).args(["sh", "-c", script, "sh"]);
        command.arg(house.path("keys")).arg(house.path("free"));
        command
    };
    let bind = "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"";
    let possible = unshare(bind).arg("true").output();
    if !possible.is_ok_and(|ran| ran.status.success()) {
        skip("nothing can be mounted, even in a namespace (unshare)");
        return;
    }
    for root in ["@free", "@free/key"] {
        for flag in ["--allow-read", "--allow-write"] {
            let flags = [flag, root];
            let wrap = house.wrap(&flags);
            let mut command = unshare(bind);
            command.arg(wrap.get_program()).args(wrap.get_args());
            command.current_dir(house.path("project"));
            command.env("HOME", house.path("home")).stdin(Stdio::null());
            assert_refused(command.output().unwrap(), &flags, "the signing key");
        }
    }
    house.starts(&["--allow-read", "@free"]);
}

/// Permissions of the assets play no part.
#[test]
fn readable_assets_are_kept_too() {
    let house = House::build();
    fs::set_permissions(house.path("rules"), Permissions::from_mode(0o777)).unwrap();
    let flags = ["--policy", "@rules/policy.yaml", "--allow-write", "@rules"];
    house.refuses(&flags, "the policy");
}

const POLICY: &str = "default: allow\n";
