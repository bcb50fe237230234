use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::policy::Request;
use crate::policy::engine::{Decision, Engine};
use crate::policy::parse;

fn operator() -> Authority {
    Authority::Operator(AskedFor::on_the_command_line())
}

/// What the policy `rules` gives for the tool `t`.
fn policy(limits: &str) -> Authority {
    let text = format!(
        "version: 1\nrules:\n  - id: r\n    action: allow\n    tool: t\n    limits: {limits}\n"
    );
    let engine = Engine::new(parse::parse(text.as_bytes()).unwrap(), [0; 16]);
    let judged = engine.judge(&[Request::tool("t")], false, Duration::ZERO);
    match judged.verdicts.into_iter().next().unwrap().decision {
        Decision::Allowed(allowed) => Authority::Policy(allowed),
        other => panic!("{other:?}"),
    }
}

fn manifest(base: &Path) -> Manifest {
    Manifest::new("t".to_owned(), base.to_owned())
}

fn reading(base: &Path, path: &str) -> Manifest {
    let mut manifest = manifest(base);
    manifest.fs = Some(FsNeeds {
        read: vec![PathNeed::recursive(path)],
        write: Vec::new(),
    });
    manifest
}

fn writing(base: &Path, path: &str) -> Manifest {
    let mut manifest = manifest(base);
    manifest.fs = Some(FsNeeds {
        read: Vec::new(),
        write: vec![PathNeed::recursive(path)],
    });
    manifest
}

fn dialling(host: &str, ports: &[u16], methods: &[&str]) -> Manifest {
    let mut manifest = manifest(Path::new("/"));
    manifest.net = Some(vec![NetNeed {
        host: host.to_owned(),
        ports: ports.to_vec(),
        methods: methods.iter().map(|&m| m.to_owned()).collect(),
    }]);
    manifest
}

fn denial(result: Result<Minted, Denial>) -> (&'static str, String) {
    let denial = result.unwrap_err();
    (denial.capability(), denial.to_string())
}

#[test]
fn a_tool_that_needs_nothing_gets_the_default_limits_and_no_more() {
    let minted = Mint::default()
        .mint(&manifest(Path::new("/")), operator())
        .unwrap();
    let expected = Grant {
        max_memory_bytes: 67_108_864,
        max_wall_ms: 30_000,
        max_output_bytes: 1_048_576,
        ..Grant::deny_all("t-1".to_owned(), "t".to_owned())
    };
    assert_eq!(*minted.grant(), expected);
}

#[test]
fn grants_are_numbered_and_denials_use_no_number() {
    let dir = tempfile::tempdir().unwrap();
    let mut mint = Mint::default();
    let first = mint.mint(&reading(dir.path(), "."), operator()).unwrap();
    mint.mint(&reading(dir.path(), "none"), operator())
        .unwrap_err();
    let second = mint.mint(&reading(dir.path(), "."), operator()).unwrap();
    assert_eq!(first.grant().grant_id, "t-1");
    assert_eq!(second.grant().grant_id, "t-2");
    let own = dir.path().canonicalize().unwrap();
    let fs = first.grant().fs.as_ref().unwrap();
    assert_eq!(fs.read_paths, [own.to_str().unwrap()]);
    assert!(fs.write_paths.is_empty());
}

#[test]
fn denials_say_what_and_name_the_capability() {
    let dir = tempfile::tempdir().unwrap();
    let mut mint = Mint::default();
    let mut deny = |manifest: &Manifest| denial(mint.mint(manifest, policy("{}")));
    assert_eq!(
        deny(&reading(dir.path(), "none")),
        (
            "fs",
            "invalid path `none`: No such file or directory (os error 2)".to_owned()
        )
    );
    for (host, ports, methods, fault) in [
        ("", &[80][..], &["GET"][..], "host must not be empty"),
        (
            "*.x",
            &[80],
            &["GET"],
            "wildcard hosts are not supported in v1",
        ),
        ("x", &[], &["GET"], "at least one port is required"),
        ("x", &[80], &[], "at least one HTTP method is required"),
    ] {
        assert_eq!(
            deny(&dialling(host, ports, methods)),
            ("net.http", format!("net denied for host `{host}`: {fault}"))
        );
    }
    assert_eq!(
        Denial::Unregistered("gone".to_owned()).to_string(),
        "tool not registered: gone"
    );
}

#[test]
fn only_the_operator_gives_patterns_and_hosts_are_lower_case() {
    let minted = Mint::default()
        .mint(&dialling("*.Example.ORG", &[443], &["GET"]), operator())
        .unwrap();
    assert_eq!(minted.http()[0].host, "*.example.org");
}

#[test]
fn a_ceiling_lowers_a_limit_and_never_raises_one() {
    let authority = policy("{max_wall_ms: 5, max_memory_bytes: 99999999999}");
    let minted = Mint::default()
        .mint(&manifest(Path::new("/")), authority)
        .unwrap();
    assert_eq!(minted.grant().max_wall_ms, 5);
    assert_eq!(minted.grant().max_memory_bytes, 67_108_864);
}

#[test]
fn a_limit_is_refused_where_a_line_could_not_carry_it() {
    let mut manifest = manifest(Path::new("/"));
    manifest.limits.max_output_bytes = LIMIT_BOUND - 1;
    Mint::default().mint(&manifest, operator()).unwrap();
    manifest.limits.max_output_bytes = LIMIT_BOUND;
    assert_eq!(
        denial(Mint::default().mint(&manifest, operator())),
        (
            "limits",
            "capability escalation on limits: max_output_bytes 9007199254740992 is not below 9007199254740992"
                .to_owned()
        )
    );
    // A policy's ceiling can bring it back into what a Line carries.
    Mint::default()
        .mint(&manifest, policy("{max_output_bytes: 7}"))
        .unwrap();
}

#[test]
fn narrowing_follows_components_and_recursion() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a/b", "ab", "w/x"] {
        fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    let base = dir.path();
    let mut parent = reading(base, "a");
    parent
        .fs
        .as_mut()
        .unwrap()
        .write
        .push(PathNeed::recursive("w"));
    let mut mint = Mint::default();
    let parent_minted = mint.mint(&parent, operator()).unwrap();
    let mut narrowed = |sub: &Manifest| {
        mint.narrow(&parent_minted, sub, operator())
            .map(|m| m.grant().clone())
    };

    narrowed(&reading(base, "a/b")).unwrap();
    narrowed(&reading(base, "a/b/../b")).unwrap();
    narrowed(&reading(base, "w/x")).unwrap();
    narrowed(&writing(base, "w/x")).unwrap();
    for escalating in [
        reading(base, "ab"),
        reading(base, "."),
        reading(base, "a/../ab"),
        writing(base, "a/b"),
    ] {
        let error = narrowed(&escalating).unwrap_err();
        assert_eq!(error.capability(), "fs", "{error}");
    }

    parent.fs.as_mut().unwrap().read[0].recursive = false;
    let flat = mint.mint(&parent, operator()).unwrap();
    let error = mint.narrow(&flat, &reading(base, "a/b"), operator());
    assert_eq!(denial(error).0, "fs");
    let error = mint.narrow(&flat, &reading(base, "a"), operator());
    assert_eq!(denial(error).0, "fs", "a recursive root out of a flat one");
    let mut sub = reading(base, "a");
    sub.fs.as_mut().unwrap().read[0].recursive = false;
    mint.narrow(&flat, &sub, operator()).unwrap();
}

#[test]
fn narrowing_keeps_hosts_ports_methods_and_limits() {
    let mut mint = Mint::default();
    let mut wide = dialling("x", &[80], &["GET", "post"]);
    wide.net
        .as_mut()
        .unwrap()
        .extend(dialling("x", &[443], &["GET"]).net.unwrap());
    let parent = mint.mint(&wide, operator()).unwrap();
    mint.narrow(&parent, &dialling("X", &[80, 443], &["get"]), operator())
        .unwrap();
    mint.narrow(&parent, &dialling("x", &[80], &["POST"]), operator())
        .unwrap();
    for (sub, detail) in [
        (dialling("y", &[80], &["GET"]), "host `y` is not granted"),
        (
            dialling("x", &[81], &["GET"]),
            "GET to `x:81` is not granted",
        ),
        (
            dialling("x", &[443], &["POST"]),
            "POST to `x:443` is not granted",
        ),
    ] {
        assert_eq!(
            denial(mint.narrow(&parent, &sub, operator())),
            (
                "net.http",
                format!("capability escalation on net.http: {detail}")
            )
        );
    }
    let mut sub = manifest(Path::new("/"));
    sub.limits.max_wall_ms += 1;
    assert_eq!(
        denial(mint.narrow(&parent, &sub, operator())),
        (
            "limits",
            "capability escalation on limits: max_wall_ms 30001 exceeds 30000".to_owned()
        )
    );
}
