//! `aegis demo` shows what it says, and what it prints can be typed.

use std::path::Path;
use std::process::{Command, Output};

/// SPEC [POLICY-5]: where no policy was asked, none is said to have allowed it.
#[test]
fn every_step_ends_as_it_should() {
    let shown = demo();
    assert!(shown.status.success(), "{shown:?}");
    assert!(shown.stderr.is_empty(), "{shown:?}");
    let text = String::from_utf8(shown.stdout).unwrap();
    for part in [
        "\n  Verified (pinned to ",
        "\n  Tampered: line at session 0 seq 2 chains to ",
        "\n  Indeterminate: session 0 has no close record and nothing anchors beyond it; 0 call(s) in flight",
        "\n  seq 3  outcome  call-1       echo         no-policy success answer: result signed",
        "answer: tool_error",
        "\n  {\"error\":{\"code\":-32042,\"data\":{\"aegis\":{\"code\":\"POLICY_DENIED\",\"layer\":\"wrap\"}},\"message\":\"aegis wrap refused this tools/call\"},\"id\":1,\"jsonrpc\":\"2.0\"}\n",
        "\n  seq 2  outcome  call-1       echo         denied host_denied rule: deny-echo signed\n",
        "\n  call call-1 session 0 seq 3: newly_blocked was=allowed now=denied\n  call call-2 session 0 seq 4: unchanged allowed\n",
        "\n  (exit code 0)",
        "\n  (exit code 1)",
        "\n  (exit code 3)",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let compared = text.find("  $ aegis recheck").unwrap();
    assert!(!text[..compared].contains("allowed"), "{text}");
    assert!(text[compared..].contains("\n  note: "), "{text}");
}

#[test]
fn a_reader_can_type_every_command() {
    let text = String::from_utf8(demo().stdout).unwrap();
    let commands: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("  $ "))
        .filter(|command| !command.starts_with("cd "))
        .collect();
    assert_eq!(commands.len(), 13, "{commands:#?}");
    let printed_key = commands
        .iter()
        .find_map(|command| command.strip_prefix("aegis verify --key "))
        .unwrap()
        .split_once(' ')
        .unwrap()
        .0;

    let dir = tempfile::tempdir().unwrap();
    for file in ["requests.jsonl", "policy.yaml"] {
        let shown: String = text
            .lines()
            .skip_while(|line| *line != format!("  $ cat {file}"))
            .skip(1)
            .take_while(|line| !line.starts_with("  $ "))
            .map(|line| format!("{}\n", &line[2..]))
            .collect();
        std::fs::write(dir.path().join(file), shown).unwrap();
    }

    let mut key = String::new();
    let mut verdicts = Vec::new();
    for command in commands {
        let typed = command.replace(printed_key, &key);
        let output = shell(dir.path(), &typed);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if let Some(made) = stdout.strip_prefix("public_key ") {
            key = made[..64].to_owned();
        }
        if typed.starts_with("aegis verify") {
            let word = stdout.split([' ', ':']).next().unwrap().to_owned();
            verdicts.push((word, output.status.code().unwrap()));
        } else if typed.starts_with("aegis recheck") {
            assert_eq!(output.status.code(), Some(1), "{typed}: {output:?}");
        } else {
            assert!(output.status.success(), "{typed}: {output:?}");
        }
    }
    let expected = [
        ("Verified", 0),
        ("Tampered", 1),
        ("Indeterminate", 3),
        ("Verified", 0),
    ];
    assert_eq!(
        verdicts,
        expected.map(|(word, exit)| (word.to_owned(), exit))
    );
}

fn demo() -> Output {
    let dir = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_aegis"))
        .arg("demo")
        .env("TMPDIR", dir.path())
        .output()
        .unwrap()
}

/// Runs a line as a person would type it, with aegis on the PATH.
fn shell(dir: &Path, line: &str) -> Output {
    let aegis = Path::new(env!("CARGO_BIN_EXE_aegis"));
    let path = format!(
        "{}:{}",
        aegis.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    Command::new("sh")
        .args(["-c", line])
        .current_dir(dir)
        .env("PATH", path)
        .output()
        .unwrap()
}
