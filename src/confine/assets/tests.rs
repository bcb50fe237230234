use super::super::machine::ThisMachine;
use super::super::machine::pretend::Pretend;
use super::*;

/// With a home directory, and aegis's own things in it.
fn machine() -> Pretend {
    let mut machine = Pretend::new();
    machine
        .set("HOME", "/home/u")
        .file("/home/u/.aegis/key", b"")
        .dir("/home/u/.aegis/record")
        .dir("/home/u/notes/deep")
        .program("/opt/aegis/aegis", b"");
    machine
}

fn asset(machine: &Pretend, what: What, path: &str) -> Assets {
    let mut assets = Assets::default();
    assets.add(machine, what, Path::new(path)).unwrap();
    assets
}

fn check(machine: &Pretend, assets: &Assets, root: &str, writes: bool) -> Result<(), String> {
    // Roots come resolved.
    let root = machine.canonical(Path::new(root)).unwrap();
    assets
        .check(machine, &root, writes)
        .map_err(|reaches| reaches.to_string())
}

/// Refused as such by itself, by its parents, and in other spellings.
fn is_kept(what: What, path: &str, name: &str) {
    let mut machine = machine();
    machine.dir("/home/u/x").link("/home/u/x/way", "../.aegis");
    let assets = asset(&machine, what, path);
    let parent = Path::new(path).parent().unwrap().to_str().unwrap();
    let mut roots = vec![
        "/".to_owned(),
        "/home/u".to_owned(),
        "/home/u/".to_owned(),
        "/home/u/notes/../.".to_owned(),
        format!("{parent}/"),
        "/home/u/x/way".to_owned(),
        "/home/u/x/way/../../u".to_owned(),
    ];
    if machine.identify(Path::new(path)).is_ok() {
        roots.push(path.to_owned());
    }
    for root in roots {
        for writes in [false, true] {
            let error = check(&machine, &assets, &root, writes).unwrap_err();
            let expected = format!("contains {name} `{path}`");
            assert!(error.contains(&expected), "{root}: {error}");
        }
    }
    for root in ["/home/u/notes", "/proj", "/home/u/x"] {
        check(&machine, &assets, root, true).unwrap();
    }
}

#[test]
fn the_signing_key_is_kept() {
    is_kept(What::SigningKey, "/home/u/.aegis/key", "the signing key");
}

#[test]
fn the_audit_path_is_kept_before_it_exists() {
    is_kept(What::Audit, "/home/u/.aegis/record", "the audit path");
    is_kept(What::Audit, "/home/u/.aegis/new.aarl", "the audit path");
}

#[test]
fn the_policy_is_kept() {
    is_kept(What::Policy, "/home/u/.aegis/policy.yaml", "the policy");
}

#[test]
fn bindings_pins_and_envelopes_are_kept() {
    is_kept(What::Bindings, "/home/u/.aegis/bindings", "the bindings");
    is_kept(What::Pins, "/home/u/.aegis/pins", "the pins");
    is_kept(What::Envelopes, "/home/u/.aegis/env", "the envelopes");
}

#[test]
fn caches_and_sockets_are_kept() {
    is_kept(What::Cache, "/home/u/.aegis/cache", "the cache");
    is_kept(What::Socket, "/home/u/.aegis/run", "the socket directory");
}

#[test]
fn the_folder_of_aegis_is_kept_from_writing() {
    let mut machine = machine();
    machine
        .link("/usr/local/bin/aegis", "/opt/aegis/aegis")
        .dir("/opt/aegis/below");
    let mut assets = Assets::default();
    assets
        .add_executable(&machine, Path::new("/usr/local/bin/aegis"))
        .unwrap();
    for root in ["/", "/opt", "/opt/aegis", "/opt/aegis/below"] {
        let error = check(&machine, &assets, root, true).unwrap_err();
        assert!(error.contains("the folder of aegis itself"), "{error}");
        check(&machine, &assets, root, false).unwrap();
    }
    check(&machine, &assets, "/usr/local", true).unwrap();
}

#[test]
fn client_configurations_are_kept_there_or_not() {
    let mut machine = machine();
    machine
        .file("/home/u/.claude.json", b"{}")
        .dir("/home/u/.claude/projects/x")
        .dir("/home/u/.config")
        .dir("/home/u/.cursor")
        .dir("/home/u/.codex")
        .dir("/home/u/.codeium")
        .dir("/home/u/.config/zed")
        .dir("/home/u/.vscode-server/data/User/globalStorage");
    let mut assets = Assets::default();
    assets.add_clients(&machine).unwrap();
    for (root, client) in [
        ("/home/u", "Claude Desktop"),
        ("/home/u/.config", "Claude Desktop"),
        ("/home/u/.claude.json", "Claude Code"),
        ("/home/u/.claude", "Claude Code"),
        ("/home/u/.claude/projects/x", "Claude Code"),
        ("/home/u/.cursor", "Cursor"),
        ("/home/u/.codex", "Codex"),
        ("/home/u/.config/zed", "Zed"),
        ("/home/u/.codeium", "Windsurf"),
        ("/home/u/.vscode-server/data/User/globalStorage", "VS Code"),
        ("/home/u/.vscode-server", "VS Code"),
    ] {
        for writes in [false, true] {
            let error = check(&machine, &assets, root, writes).unwrap_err();
            assert!(
                error.contains(&format!("the configuration of {client} ")),
                "{error}"
            );
        }
    }
    check(&machine, &assets, "/home/u/notes", true).unwrap();
}

#[test]
fn client_configurations_follow_the_configuration_directory() {
    let mut machine = machine();
    machine.set("XDG_CONFIG_HOME", "/conf").dir("/conf/Claude");
    let mut assets = Assets::default();
    assets.add_clients(&machine).unwrap();
    let error = check(&machine, &assets, "/conf/Claude", false).unwrap_err();
    assert!(error.contains("Claude Desktop"), "{error}");
}

#[test]
fn a_project_with_a_client_configuration_is_not_written_to() {
    let mut machine = machine();
    machine.file("/home/u/notes/.mcp.json", b"{}");
    let assets = Assets::default();
    let error = check(&machine, &assets, "/home/u/notes", true).unwrap_err();
    assert!(
        error.contains("a project's MCP configuration `/home/u/notes/.mcp.json`"),
        "{error}"
    );
    check(&machine, &assets, "/home/u/notes", false).unwrap();
    check(&machine, &assets, "/home/u/notes/deep", true).unwrap();
}

#[test]
fn a_root_inside_a_kept_directory_is_refused() {
    let mut machine = machine();
    machine.dir("/home/u/.aegis/record/deep");
    let assets = asset(&machine, What::Audit, "/home/u/.aegis/record");
    let error = check(&machine, &assets, "/home/u/.aegis/record/deep", false).unwrap_err();
    assert!(error.contains("lies in the audit path"), "{error}");
}

#[test]
fn what_a_link_leads_to_is_kept_and_so_is_the_link() {
    let mut machine = machine();
    machine
        .file("/secret/deep/key", b"")
        .link("/mid/hop", "/secret/deep/key")
        .link("/start/key", "../mid/hop")
        .link("/far", "/start");
    let assets = asset(&machine, What::SigningKey, "/far/key");
    for root in ["/secret", "/secret/deep", "/secret/deep/key"] {
        check(&machine, &assets, root, false).unwrap_err();
    }
    // Whoever writes where a link stands chooses what it leads to.
    for root in ["/mid", "/start"] {
        check(&machine, &assets, root, true).unwrap_err();
        check(&machine, &assets, root, false).unwrap();
    }
}

#[test]
fn one_directory_at_two_places_is_one() {
    let mut machine = machine();
    machine
        .bind("/home/u/.aegis", "/mnt/a")
        .bind("/home/u", "/srv/deep/home");
    let assets = asset(&machine, What::SigningKey, "/home/u/.aegis/key");
    for root in ["/mnt/a", "/mnt", "/srv/deep/home", "/srv"] {
        let error = check(&machine, &assets, root, false).unwrap_err();
        assert!(error.contains("the signing key"), "{root}: {error}");
    }
    let directory = asset(&machine, What::Audit, "/home/u/.aegis");
    machine.dir("/mnt/a/record");
    let error = check(&machine, &directory, "/mnt/a/record", false).unwrap_err();
    assert!(error.contains("lies in"), "{error}");
}

#[test]
fn links_without_end_are_an_error() {
    let mut machine = machine();
    machine.link("/loop", "loop");
    let mut assets = Assets::default();
    assert!(
        assets
            .add(&machine, What::Policy, Path::new("/loop/x"))
            .is_err()
    );
    let chain = |links: usize| {
        let mut machine = Pretend::new();
        machine.file("/l0", b"");
        for n in 1..=links {
            machine.link(&format!("/l{n}"), &format!("/l{}", n - 1));
        }
        let last = format!("/l{links}");
        Assets::default().add(&machine, What::Policy, Path::new(&last))
    };
    chain(MAX_LINKS).unwrap();
    chain(MAX_LINKS + 1).unwrap_err();
}

#[test]
fn where_a_projects_configuration_belongs_nothing_is_written() {
    let mut machine = Pretend::new();
    machine
        .dir("/w/.vscode")
        .dir("/w/.kiro/settings")
        .dir("/w/src");
    machine.file("/w/.mcp.json.bak", b"");
    let check = |root: &str, writes| {
        let checked = Assets::default().check(&machine, Path::new(root), writes);
        checked.map_err(|reaches| reaches.to_string())
    };
    for (root, asset) in [
        ("/w/.vscode", "/w/.vscode/mcp.json"),
        ("/w/.kiro", "/w/.kiro/settings/mcp.json"),
        ("/w/.kiro/settings", "/w/.kiro/settings/mcp.json"),
    ] {
        let refused = check(root, true).unwrap_err();
        let told = format!("`{root}` is the place of a project's MCP configuration `{asset}`");
        assert!(refused.starts_with(&told), "{refused}");
        check(root, false).unwrap();
    }
    for root in ["/w", "/w/src", "/w/.mcp.json.bak"] {
        check(root, true).unwrap();
    }
}

/// On this machine's file system, where inodes are real.
#[test]
fn a_hard_link_to_the_key_is_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    std::fs::create_dir(base.join("a")).unwrap();
    std::fs::write(base.join("a/key"), "").unwrap();
    std::fs::hard_link(base.join("a/key"), base.join("other")).unwrap();
    let here = ThisMachine::look().unwrap();
    let mut assets = Assets::default();
    assets
        .add(&here, What::SigningKey, &base.join("a/key"))
        .unwrap();
    assets.check(&here, &base.join("other"), false).unwrap_err();
    assets.check(&here, &base.join("a"), false).unwrap_err();
    assets.check(&here, Path::new("/"), false).unwrap_err();
    std::fs::create_dir(base.join("b")).unwrap();
    assets.check(&here, &base.join("b"), true).unwrap();
}
