//! Real programs of this machine under the presets made for them, with
//! nothing granted besides.

use std::ffi::{OsStr, OsString};
use std::process::Output;

use super::super::super::assets::Assets;
use super::super::super::machine::ThisMachine;
use super::super::super::preset::Preset;
use super::super::super::profile::{Options, Private};
use super::*;
use crate::grant::manifest::Manifest;
use crate::grant::mint::{AskedFor, Authority, Mint};

/// Runs `program` under `options`, with the variables of its profile.
fn run(tree: &Tree, options: &Options, program: &OsStr, arguments: &[&str]) -> Output {
    let machine = ThisMachine::look().unwrap();
    let manifest = Manifest::of_server(tree.at(""), &[], &[], Vec::new());
    let authority = Authority::Operator(AskedFor::on_the_command_line());
    let grant = Mint::default().mint(&manifest, authority).unwrap();
    let private = Private {
        temporary: tree.at("write/deep"),
        cache: tree.at("write/deep/empty"),
    };
    let assets = Assets::default();
    let command: Vec<OsString> = [program]
        .into_iter()
        .chain(arguments.iter().map(OsStr::new))
        .map(OsString::from)
        .collect();
    let profile = Profile::build(&machine, options, &grant, &command, &private, &assets).unwrap();
    confined(&profile, Tcp::Denied, |_| {
        let mut command = Command::new(&profile.program);
        command.args(arguments).env_clear().stdin(Stdio::null());
        for name in &profile.kept_variables {
            command.env(name, std::env::var_os(name).unwrap());
        }
        command.envs(profile.set_variables.iter().cloned());
        command.output().unwrap()
    })
}

fn with(preset: Preset) -> Options {
    Options {
        preset: Some(preset),
        ..Options::default()
    }
}

/// What `program` prints unconfined; nothing when it is not here.
fn printed(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn succeeds(output: &Output, expected: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected);
}

#[test]
fn a_shell_runs_with_exec_support() {
    if is_absent(ABI::V3) {
        return;
    }
    let options = Options {
        exec_support: true,
        ..Options::default()
    };
    let tree = Tree::new();
    let script = "echo x > /dev/null && cat /etc/hosts > $TMPDIR/copy && echo done";
    let output = run(&tree, &options, OsStr::new("sh"), &["-c", script]);
    succeeds(&output, "done");
    let reads = format!("cat {} /etc/shadow", tree.at("outside/file").display());
    let output = run(&tree, &options, OsStr::new("sh"), &["-c", &reads]);
    assert!(!output.status.success() && output.stdout.is_empty());
}

#[test]
fn node_runs_with_its_preset() {
    let Some(program) = printed("node", &["-p", "process.execPath"]) else {
        eprintln!("SKIPPED: no node here");
        return;
    };
    if is_absent(ABI::V3) {
        return;
    }
    let script = "const cp = require('child_process'), fs = require('fs'), os = require('os');
        if (os.cpus().length < 1) throw 'no processors';
        cp.execFileSync('/bin/sh', ['-c', 'exit 0'], {stdio: 'ignore'});
        require('crypto').randomBytes(8);
        require('tls').createSecureContext();
        fs.writeFileSync(os.tmpdir() + '/f', 'x');
        try { fs.readFileSync('/proc/1/environ'); } catch { console.log('done'); }";
    let tree = Tree::new();
    let options = with(Preset::Node);
    let output = run(&tree, &options, OsStr::new(&program), &["-e", script]);
    succeeds(&output, "done");
}

#[test]
fn python_runs_with_its_preset() {
    let asked = [
        "-c",
        "import os, sys; print(os.path.realpath(sys.executable))",
    ];
    let Some(program) = printed("python3", &asked) else {
        eprintln!("SKIPPED: no python3 here");
        return;
    };
    if is_absent(ABI::V3) {
        return;
    }
    let script = "import os, pwd, ssl, subprocess, tempfile
ssl.create_default_context()
subprocess.run(['/bin/sh', '-c', 'exit 0'], stdout=subprocess.DEVNULL, check=True)
tempfile.TemporaryFile().write(b'x')
pwd.getpwnam('root')
try:
    os.listdir('/root')
except PermissionError:
    print('done')";
    let tree = Tree::new();
    let options = with(Preset::Python);
    let output = run(&tree, &options, OsStr::new(&program), &["-I", "-c", script]);
    succeeds(&output, "done");
}

#[test]
fn npm_answers_from_its_own_cache() {
    if printed("npx", &["--version"]).is_none() {
        eprintln!("SKIPPED: no npx here");
        return;
    }
    if is_absent(ABI::V3) {
        return;
    }
    let tree = Tree::new();
    let output = run(&tree, &with(Preset::Npx), OsStr::new("npx"), &["--version"]);
    let expected = printed("npx", &["--version"]).unwrap();
    succeeds(&output, &expected);
}
