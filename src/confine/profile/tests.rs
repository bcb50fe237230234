use super::super::assets::What;
use super::super::elf::tests::program;
use super::super::machine::ThisMachine;
use super::super::machine::pretend::Pretend;
use super::*;
use crate::grant::manifest::{FsNeeds, Manifest, PathNeed};
use crate::grant::mint::{AskedFor, Authority, Mint};

/// A small Linux, with node for all and a Python of one user's own.
fn machine() -> Pretend {
    let dynamic = program(Some("/lib64/ld.so"));
    let mut machine = Pretend::new();
    machine
        .program("/usr/lib64/ld.so", &program(None))
        .link("/lib64", "usr/lib64")
        .link("/lib", "usr/lib")
        .program("/usr/bin/node", &dynamic)
        .program("/usr/bin/env", &dynamic)
        .program(
            "/usr/lib/node_modules/npm/bin/npx-cli.js",
            b"#!/usr/bin/env node\n",
        )
        .link("/usr/bin/npx", "../lib/node_modules/npm/bin/npx-cli.js")
        .program("/home/u/py/bin/python3.13", &dynamic)
        .dir("/home/u/py/lib/python3.13")
        .program("/opt/static", &program(None))
        .program("/opt/dynamic", &dynamic)
        .file("/etc/hosts", b"")
        .file("/run/resolv.conf", b"")
        .link("/etc/resolv.conf", "/run/resolv.conf")
        .file("/dev/null", b"")
        .dir("/private/tmp")
        .dir("/private/cache")
        .set("PATH", "/usr/bin")
        .set("HOME", "/home/u")
        .set("API_TOKEN", "secret")
        .set("LANG", "C");
    machine
}

/// The Grant of `--allow-read` and `--allow-write` on this machine.
fn grant(read: &[PathNeed], write: &[PathNeed]) -> Minted {
    let paths = |needs: &[PathNeed]| needs.iter().map(|need| need.path.clone()).collect();
    let (read_paths, write_paths): (Vec<_>, Vec<_>) = (paths(read), paths(write));
    let mut manifest = Manifest::of_server("/".into(), &read_paths, &write_paths, Vec::new());
    if read.iter().any(|need| !need.recursive) {
        manifest.fs = Some(FsNeeds {
            read: read.to_vec(),
            write: write.to_vec(),
        });
    }
    let authority = Authority::Operator(AskedFor::on_the_command_line());
    Mint::default().mint(&manifest, authority).unwrap()
}

fn build(machine: &Pretend, options: &Options, program: &str) -> Result<Profile, String> {
    build_with(machine, options, program, &Assets::default())
}

fn build_with(
    machine: &Pretend,
    options: &Options,
    program: &str,
    assets: &Assets,
) -> Result<Profile, String> {
    let private = Private {
        temporary: "/private/tmp".into(),
        cache: "/private/cache".into(),
    };
    let none = grant(&[], &[]);
    Profile::build(machine, options, &none, &[program.into()], &private, assets)
        .map_err(|error| error.to_string())
}

fn with(preset: Preset) -> Options {
    Options {
        preset: Some(preset),
        ..Options::default()
    }
}

fn access(profile: &Profile, path: &str) -> Option<Access> {
    let rule = profile.rules.iter().find(|rule| rule.path == path)?;
    Some(rule.access)
}

/// What running `command` adds to a server that may write `written`.
fn beside(
    machine: &Pretend,
    preset: Preset,
    written: &str,
    command: &str,
) -> Result<Profile, String> {
    let options = with(preset);
    let mut draft = Draft::new(machine, &options);
    let written = Path::new(written);
    assert!(draft.add(written, Access::ReadWrite, Origin::User, "--allow-write"));
    draft.built_in();
    let command: Vec<OsString> = command.split(' ').map(OsString::from).collect();
    draft.command(&command).map_err(|error| error.to_string())?;
    Ok(draft.finish())
}

#[test]
fn nothing_comes_with_a_preset_that_the_server_could_have_chosen() {
    let mut machine = machine();
    let dynamic = program(Some("/lib64/ld.so"));
    machine
        .program("/usr/bin/python", &dynamic)
        .file("/home/u/secret/notes.py", b"")
        .program("/home/u/secret/node_modules/x/cli", &dynamic)
        .file("/home/u/tool/own.py", b"")
        .link("/home/u/tool/server.py", "../secret/notes.py")
        .link("/home/u/tool/python", "/home/u/py/bin/python3.13")
        .link("/home/u/tool/usual", "/usr/bin/python")
        .program("/home/u/tool/run", b"#!/home/u/secret/node_modules/x/cli\n")
        .program(
            "/home/u/tool/loaded",
            &program(Some("/home/u/secret/node_modules/x/cli")),
        )
        .link("/home/u/short.py", "tool/own.py");
    for (preset, command, chosen) in [
        (
            Preset::Python,
            "python /home/u/tool/server.py",
            "/home/u/secret/notes.py",
        ),
        (
            Preset::Python,
            "python -u /home/u/tool/../tool/server.py",
            "/home/u/secret/notes.py",
        ),
        (
            Preset::Python,
            "/home/u/tool/python -V",
            "/home/u/py/bin/python3.13",
        ),
        (
            Preset::Node,
            "/home/u/tool/run",
            "/home/u/secret/node_modules/x/cli",
        ),
        (
            Preset::Node,
            "/home/u/tool/loaded",
            "/home/u/secret/node_modules/x/cli",
        ),
    ] {
        let error = beside(&machine, preset, "/home/u/tool", command).unwrap_err();
        let told = format!("give --allow-read {chosen} if that is meant");
        assert!(error.contains(&told), "{command}: {error}");
        // One that cannot be written is what the operator named.
        beside(&machine, preset, "/private/tmp", command).unwrap();
    }
    for command in [
        "python /home/u/tool/own.py",
        "python /home/u/short.py",
        "/home/u/tool/usual -V",
    ] {
        let profile = beside(&machine, Preset::Python, "/home/u/tool", command).unwrap();
        let of_command = profile
            .rules
            .iter()
            .filter(|rule| rule.origin == Origin::Command);
        assert_eq!(of_command.count(), 0, "{command}");
    }
}

#[test]
fn nothing_is_granted_by_a_link_of_the_servers() {
    let mut machine = machine();
    machine
        .dir("/home/u/p/real")
        .dir("/home/u/.ssh")
        .link("/home/u/p/venv", "../.ssh")
        .link("/home/u/p/near", "real")
        .link("/home/u/short", "p")
        .dir("/srv/mounted")
        .bind("/home/u/p", "/srv/mounted");
    let check = |written: &str, named: &str| {
        let named = [("--allow-read", Path::new(named))].into_iter();
        check_ways(&machine, &[], &[Path::new(written)], named).map_err(|error| error.to_string())
    };
    for written in ["/home/u/p", "/home/u", "/srv"] {
        assert_eq!(
            check(written, "/home/u/p/venv").unwrap_err(),
            "--allow-read `/home/u/p/venv` leads through a link that --allow-write lets the \
             server change, to `/home/u/.ssh`; give that path itself if it is meant"
        );
        // Today it leads to where it may write.
        check(written, "/home/u/p/near").unwrap_err();
        check(written, "/home/u/p/real").unwrap();
    }
    check("/home/u/p", "/home/u/short/real").unwrap();
    check("/home/u/p", "/home/u/short/venv/x").unwrap_err();
    check("/home/u/other", "/home/u/p/venv").unwrap();
    // There was a link while it was granted.
    let named = [("--allow-read", Path::new("/home/u/p/real"))];
    let written = [Path::new("/home/u/p")];
    let moved = |granted, written| {
        let granted = [Path::new(granted)];
        check_ways(&machine, &granted, written, named.into_iter()).is_err()
    };
    assert!(moved("/home/u/.ssh", &written));
    assert!(!moved("/home/u/p/real", &written));
    assert!(!moved("/home/u/.ssh", &[]));
}

#[test]
fn without_a_preset_nothing_is_added() {
    let mut machine = machine();
    machine.program("/opt/none", b"");
    let error = build(&machine, &Options::default(), "/opt/static").unwrap_err();
    assert_eq!(
        error,
        "the program `/opt/static` of the command may not be executed; give --allow-read /opt/static, or a --preset"
    );
    let options = Options {
        exec_support: true,
        ..Options::default()
    };
    let error = build(&machine, &options, "/opt/dynamic").unwrap_err();
    assert!(error.contains("the program `/opt/dynamic`"), "{error}");
    let profile = build(&machine, &options, "node").unwrap();
    assert!(profile.executes("/usr/bin/node"));
}

#[test]
fn a_static_program_gets_itself_and_no_more() {
    let profile = build(&machine(), &with(Preset::Static), "/opt/static").unwrap();
    let paths: Vec<_> = profile
        .rules
        .iter()
        .map(|rule| rule.path.as_str())
        .collect();
    assert_eq!(paths, ["/opt/static", "/private/tmp"]);
    assert_eq!(profile.program, "/opt/static");
    assert!(profile.skipped.is_empty());
    let error = build(&machine(), &with(Preset::Static), "/opt/dynamic").unwrap_err();
    assert_eq!(
        error,
        "--preset static is for programs that need no loader, but `/opt/dynamic` needs `/usr/lib64/ld.so`; give another --preset, or --allow-exec-support"
    );
}

#[test]
fn node_gets_the_runtime_with_links_followed_and_absences_listed() {
    let profile = build(&machine(), &with(Preset::Node), "node").unwrap();
    assert_eq!(access(&profile, "/usr"), Some(Access::ReadExecute));
    assert_eq!(access(&profile, "/run/resolv.conf"), Some(Access::Read));
    assert_eq!(access(&profile, "/dev/null"), Some(Access::Device));
    // A link into what is granted anyway needs no rule of its own.
    assert_eq!(access(&profile, "/usr/lib"), None);
    assert_eq!(access(&profile, "/etc"), None);
    assert!(profile.skipped.contains(&"/etc/ssl/openssl.cnf".to_owned()));
    assert!(!profile.skipped.contains(&"/lib".to_owned()));
    assert!(profile.rules.iter().all(|rule| !rule.why.is_empty()));
}

#[test]
fn an_installation_elsewhere_brings_its_libraries() {
    let mut machine = machine();
    machine
        .file("/proj/.venv/pyvenv.cfg", b"")
        .link("/proj/.venv/bin/python", "/home/u/py/bin/python3.13")
        .program("/proj/.venv/bin/tool", b"#!/proj/.venv/bin/python\n");
    let profile = build(&machine, &with(Preset::Python), ".venv/bin/tool").unwrap();
    assert_eq!(profile.program, "/proj/.venv/bin/tool");
    for path in ["/proj/.venv", "/home/u/py/lib", "/home/u/py/bin"] {
        assert_eq!(access(&profile, path), Some(Access::ReadExecute), "{path}");
    }
    assert_eq!(access(&profile, "/proj"), None);
    assert_eq!(access(&profile, "/home/u/py"), None);

    machine
        .program(
            "/proj/node_modules/pkg/dist/index.js",
            b"#!/usr/bin/env node\n",
        )
        .link("/proj/node_modules/.bin/pkg", "../pkg/dist/index.js");
    let profile = build(&machine, &with(Preset::Node), "node_modules/.bin/pkg").unwrap();
    assert_eq!(
        access(&profile, "/proj/node_modules"),
        Some(Access::ReadExecute)
    );

    // A directory of programs alone is no installation.
    machine.program("/home/u/bin/x", &program(Some("/lib64/ld.so")));
    let profile = build(&machine, &with(Preset::Node), "/home/u/bin/x").unwrap();
    assert_eq!(access(&profile, "/home/u/lib"), None);
    assert_eq!(access(&profile, "/home/u/bin"), None);
    assert!(profile.executes("/home/u/bin/x"));
}

#[test]
fn caches_are_private_unless_shared_ones_are_asked_for() {
    let mut machine = machine();
    machine
        .dir("/home/u/.npm/_cacache")
        .dir("/home/u/.npm/_npx");
    let profile = build(&machine, &with(Preset::Npx), "npx").unwrap();
    assert_eq!(
        access(&profile, "/private/cache"),
        Some(Access::ReadWriteExecute)
    );
    assert_eq!(access(&profile, "/home/u/.npm/_npx"), None);
    let set = |name: &str, path: &str| (name.to_owned(), path.to_owned());
    assert!(
        profile
            .set_variables
            .contains(&set("npm_config_cache", "/private/cache/npm"))
    );

    let options = Options {
        shared_cache: true,
        ..with(Preset::Npx)
    };
    let profile = build(&machine, &options, "npx").unwrap();
    assert!(profile.shared_cache);
    assert_eq!(access(&profile, "/private/cache"), None);
    assert_eq!(
        access(&profile, "/home/u/.npm/_cacache"),
        Some(Access::ReadWrite)
    );
    assert_eq!(
        access(&profile, "/home/u/.npm/_npx"),
        Some(Access::ReadWriteExecute)
    );
    assert!(profile.skipped.contains(&"/home/u/.npm/_logs".to_owned()));
    assert_eq!(profile.set_variables, [set("TMPDIR", "/private/tmp")]);
}

#[test]
fn variables_are_removed_unless_they_are_known_or_asked_for() {
    let mut machine = machine();
    machine.set("TMPDIR", "/tmp").set("NODE_ENV", "x");
    let mut options = with(Preset::Node);
    let profile = build(&machine, &options, "node").unwrap();
    assert_eq!(profile.kept_variables, ["HOME", "LANG", "NODE_ENV", "PATH"]);
    options.variables = vec!["API_TOKEN".parse().unwrap(), "TMPDIR".parse().unwrap()];
    let profile = build(&machine, &options, "node").unwrap();
    assert!(profile.kept_variables.contains(&"API_TOKEN".to_owned()));
    // What aegis sets is not also kept.
    assert!(!profile.kept_variables.contains(&"TMPDIR".to_owned()));
    for bad in ["", "A=b", "A\0", "AEGIS_CONFINE_PROFILE"] {
        bad.parse::<VariableName>().unwrap_err();
    }
}

#[test]
fn a_built_in_path_that_reaches_an_asset_is_refused_by_name() {
    let mut machine = machine();
    machine.file("/usr/local/etc/key", b"");
    let mut assets = Assets::default();
    assets
        .add(&machine, What::SigningKey, Path::new("/usr/local/etc/key"))
        .unwrap();
    let error = build_with(&machine, &with(Preset::Node), "node", &assets).unwrap_err();
    assert_eq!(
        error,
        "the built-in path for \"programs and libraries\", `/usr` contains the signing key `/usr/local/etc/key`, which no confined server may reach; grant a narrower path, or keep that elsewhere"
    );
    build_with(&machine, &with(Preset::Static), "/opt/static", &assets).unwrap();
}

#[test]
fn a_private_directory_that_is_not_there_is_an_error() {
    let private = Private {
        temporary: "/gone".into(),
        cache: "/gone".into(),
    };
    let none = grant(&[], &[]);
    let error = Profile::build(
        &machine(),
        &with(Preset::Static),
        &none,
        &["/opt/static".into()],
        &private,
        &Assets::default(),
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("the private directory `/gone`"), "{error}");
}

/// On this machine, with real roots.
#[test]
fn roots_of_the_operator_are_held_to_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    for name in ["code", "data", "tmp", "keys"] {
        std::fs::create_dir(base.join(name)).unwrap();
    }
    std::fs::write(base.join("keys/key"), "").unwrap();
    std::fs::copy("/bin/sh", base.join("data/sh")).unwrap();
    let here = ThisMachine::look().unwrap();
    let mut assets = Assets::default();
    assets
        .add(&here, What::SigningKey, &base.join("keys/key"))
        .unwrap();
    let private = Private {
        temporary: base.join("tmp"),
        cache: base.join("tmp"),
    };
    let options = Options {
        exec_support: true,
        ..Options::default()
    };
    let need = |name: &str| [PathNeed::recursive(base.join(name))];
    let build = |read: &[PathNeed], write: &[PathNeed], program: &Path| {
        let grant = grant(read, write);
        Profile::build(
            &here,
            &options,
            &grant,
            &[program.into()],
            &private,
            &assets,
        )
        .map_err(|error| error.to_string())
    };
    let shell = Path::new("/bin/sh");
    let profile = build(&need("code"), &need("data"), shell).unwrap();
    assert_eq!(profile.rules[0].access, Access::ReadExecute);
    assert_eq!(profile.rules[1].access, Access::ReadWrite);
    assert!(profile.rules[..2].iter().all(|rule| rule.id.is_some()));
    let text = serde_json::to_string(&profile).unwrap();
    assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);

    for (read, write, flag) in [
        (&need("keys")[..], &[][..], "--allow-read"),
        (&[], &need("")[..], "--allow-write"),
        (&need("code/../keys/"), &[], "--allow-read"),
    ] {
        let error = build(read, write, shell).unwrap_err();
        assert!(error.starts_with(flag), "{error}");
        assert!(error.contains("contains the signing key"), "{error}");
    }
    // What may be written is never executed, and the error says so.
    let error = build(&[], &need("data"), &base.join("data/sh")).unwrap_err();
    assert!(
        error.contains("what --allow-write grants is never executed"),
        "{error}"
    );

    let flat = PathNeed {
        path: base.join("code"),
        recursive: false,
    };
    let error = build(&[flat], &[], shell).unwrap_err();
    assert!(
        error.contains("only be granted with all beneath it"),
        "{error}"
    );
}

#[test]
fn shared_caches_are_those_of_the_preset_that_are_there() {
    let mut machine = machine();
    machine
        .dir("/elsewhere/npx")
        .link("/home/u/.npm/_npx", "/elsewhere/npx");
    let mut options = with(Preset::Npx);
    assert!(shared_caches(&machine, &options).is_empty());
    options.shared_cache = true;
    let expected = [PathBuf::from("/elsewhere/npx")];
    assert_eq!(shared_caches(&machine, &options), expected);
    options.preset = None;
    assert!(shared_caches(&machine, &options).is_empty());
}
