//! `aegis demo`: a whole session, recorded, verified and then damaged, with
//! every command that a reader can type to do the same.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use argh::FromArgs;
use serde::Deserialize;

use super::args::Verb;
use super::exit::Exit;
use super::ui::{self, Out};
use super::{Request, UsageError};
use crate::wire::escape::{Escaped, EscapedPath, without_path};
use crate::wire::spelled::stand_in_hash;

/// Record a small MCP session, verify it, damage it and verify again, then
/// refuse a call and recheck.
///
/// Needs no network and no arguments. Everything it makes stays in a new
/// temporary folder, and every command it runs is printed.
#[derive(FromArgs)]
#[argh(
    error_code(0, "every step ended as it should"),
    error_code(1, "one did not")
)]
pub(super) struct Args {}

impl Verb for Args {
    const NAME: &'static str = "demo";
    const USAGE: &'static str = "";
}

/// The demonstration.
pub(super) struct Demo;

impl TryFrom<Args> for Demo {
    type Error = UsageError;

    fn try_from(_: Args) -> Result<Self, UsageError> {
        Ok(Self)
    }
}

impl Request for Demo {
    fn run(self) -> ExitCode {
        let mut out = Out::new();
        let shown = Stage::set().and_then(|stage| stage.show(&mut out));
        let printed = out
            .finish()
            .map_err(|e| format!("write standard output: {e}"));
        match shown.and(printed) {
            Ok(()) => Exit::Ok.into(),
            Err(error) => {
                ui::error(error);
                Exit::Failed.into()
            }
        }
    }
}

/// Where the demonstration takes place.
struct Stage {
    aegis: PathBuf,
    dir: PathBuf,
}

impl Stage {
    fn set() -> Result<Self, String> {
        let aegis =
            std::env::current_exe().map_err(|e| format!("could not find this executable: {e}"))?;
        let dir = tempfile::Builder::new()
            .prefix("aegis-demo-")
            .tempdir()
            .map_err(without_path)
            .map_err(|e| format!("could not make a temporary folder: {e}; set TMPDIR to one that can be written to"))?;
        Ok(Self {
            aegis,
            dir: dir.keep(),
        })
    }

    fn show(&self, out: &mut Out) -> Result<(), String> {
        out.line(format_args!(
            "In a new folder:\n\n  $ cd {}",
            EscapedPath(&self.dir)
        ));
        let public_key = self.keygen(out)?;
        self.record(out)?;
        self.verify(out, &public_key, "session.aarl", 0)?;
        self.edit(out)?;
        self.verify(out, &public_key, "edited.aarl", 1)?;
        self.cut(out)?;
        self.verify(out, &public_key, "cut.aarl", 3)?;
        self.refuse(out)?;
        self.verify(out, &public_key, "refused.aarl", 0)?;
        self.recheck(out)?;
        out.line(NEXT);
        Ok(())
    }

    /// Step 1; the public key.
    fn keygen(&self, out: &mut Out) -> Result<String, String> {
        out.line("\n1. Make a signing key. Its public half is what an auditor needs.\n");
        let made = self.run(out, &["keygen", "--out", "key"], 0)?;
        indent(out, &made.stdout);
        String::from_utf8_lossy(&made.stdout)
            .strip_prefix("public_key ")
            .and_then(|rest| rest.get(..64))
            .map(str::to_owned)
            .ok_or_else(|| "keygen printed no public key".to_owned())
    }

    /// Step 2.
    fn record(&self, out: &mut Out) -> Result<(), String> {
        out.line("\n2. Put aegis between an MCP client and its server. The client's side of the\n   session is a file here; the server is a tiny one inside aegis.\n");
        self.write("requests.jsonl", REQUESTS)?;
        out.line("  $ cat requests.jsonl");
        indent(out, REQUESTS.as_bytes());
        let answers = self.wrap(out, &["--audit", "session.aarl"], "requests.jsonl")?;
        indent(out, &answers.stdout);
        out.line("\n   The record: an intent before each call reached the server, an outcome\n   before its answer reached the client, chained by hashes and signed.");
        self.summarize(out, "session.aarl")
    }

    fn verify(
        &self,
        out: &mut Out,
        public_key: &str,
        record: &str,
        exit: i32,
    ) -> Result<(), String> {
        if record == "session.aarl" {
            out.line("\n3. Verify it as somebody who has only the record and your public key.\n");
        }
        let args = ["verify", "--key", public_key, record];
        let verdict = self.run(out, &args, exit)?;
        indent(out, &verdict.stdout);
        out.line(format_args!("  (exit code {exit})"));
        Ok(())
    }

    /// Step 4.
    fn edit(&self, out: &mut Out) -> Result<(), String> {
        out.line("\n4. Change one byte of the record: which tool was called.\n");
        out.line("  $ sed '2s/echo/ecko/' session.aarl > edited.aarl");
        let record = self.read("session.aarl")?;
        let edited: String = record
            .split_inclusive('\n')
            .enumerate()
            .map(|(i, line)| match i {
                1 => line.replacen("echo", "ecko", 1),
                _ => line.to_owned(),
            })
            .collect();
        self.write("edited.aarl", &edited)
    }

    /// Step 5.
    fn cut(&self, out: &mut Out) -> Result<(), String> {
        out.line("\n5. Cut its last line off. What is left contradicts nothing, but nothing shows\n   that it is all there was: that is not the same as Verified, and not Tampered.\n");
        out.line("  $ sed '$d' session.aarl > cut.aarl");
        let record = self.read("session.aarl")?;
        let mut lines: Vec<_> = record.split_inclusive('\n').collect();
        lines.pop();
        self.write("cut.aarl", &lines.concat())
    }

    /// Step 6.
    fn refuse(&self, out: &mut Out) -> Result<(), String> {
        out.line("\n6. Refuse a call. A policy says which tools may be called; what it denies never\n   reaches the server, the client is told, and the record names the rule.\n");
        self.write("policy.yaml", POLICY)?;
        out.line("  $ cat policy.yaml");
        indent(out, POLICY.as_bytes());
        out.line("  $ sed -n 3p requests.jsonl > call.jsonl");
        let call = REQUESTS.split_inclusive('\n').nth(2).unwrap_or_default();
        self.write("call.jsonl", call)?;
        let refused = self.wrap(
            out,
            &["--policy", "policy.yaml", "--audit", "refused.aarl"],
            "call.jsonl",
        )?;
        indent(out, &refused.stdout);
        self.summarize(out, "refused.aarl")
    }

    /// Step 7.
    fn recheck(&self, out: &mut Out) -> Result<(), String> {
        out.line("\n7. Ask that policy about the calls of step 2: what would it have changed?\n   Nothing is run again.\n");
        let args = ["recheck", "--policy", "policy.yaml", "session.aarl"];
        let changed = self.run(out, &args, 1)?;
        indent(out, &changed.stderr);
        indent(out, &changed.stdout);
        out.line("  (exit code 1)");
        Ok(())
    }

    /// Prints a session of the tiny server and runs it.
    fn wrap(&self, out: &mut Out, options: &[&str], input: &str) -> Result<Output, String> {
        let server = ["--signing-key", "key", "--", "aegis", "__demo-server"];
        let args = [&["wrap"], options, &server].concat();
        out.line(format_args!("  $ aegis {} < {input}", args.join(" ")));
        let path = self.dir.join(input);
        let input = File::open(&path).map_err(|e| failed("read", &path, &e))?;
        let output = self.output(&args, input.into())?;
        expect(&args, &output, 0)?;
        Ok(output)
    }

    fn summarize(&self, out: &mut Out, record: &str) -> Result<(), String> {
        out.line("");
        for line in self.read(record)?.lines() {
            out.line(format_args!("  {}", summary(line)));
        }
        out.line("");
        Ok(())
    }

    /// Prints a command of aegis and runs it.
    fn run(&self, out: &mut Out, args: &[&str], exit: i32) -> Result<Output, String> {
        out.line(format_args!("  $ aegis {}", args.join(" ")));
        let output = self.output(args, Stdio::null())?;
        expect(args, &output, exit)?;
        Ok(output)
    }

    fn output(&self, args: &[&str], input: Stdio) -> Result<Output, String> {
        let mut command = Command::new(&self.aegis);
        for arg in args {
            match *arg {
                "aegis" => command.arg(&self.aegis),
                other => command.arg(other),
            };
        }
        command
            .current_dir(&self.dir)
            .stdin(input)
            .output()
            .map_err(|e| failed("run", &self.aegis, &e))
    }

    fn read(&self, name: &str) -> Result<String, String> {
        let path = self.dir.join(name);
        fs::read_to_string(&path).map_err(|e| failed("read", &path, &e))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.dir.join(name);
        fs::write(&path, text).map_err(|e| failed("write", &path, &e))
    }
}

/// What a reader of the record's rows would look at first.
fn summary(line: &str) -> String {
    let row: Row = serde_json::from_str(line).unwrap_or_default();
    let rule = row.decision_axes.and_then(|axes| axes.matched_rule);
    let mut text = format!("seq {:<2} {:<8}", row.seq, row.line_type);
    for part in [
        row.call_id,
        row.tool_id,
        row.policy.map(|policy| match row.policy_set_hash {
            // No policy gave that verdict (SPEC POLICY-5).
            Some(hash) if hash == stand_in_hash().to_string() => "no-policy".to_owned(),
            _ => policy.status,
        }),
        row.execution.map(|execution| execution.status),
        row.answer
            .map(|answer| format!("answer: {}", answer.kind))
            .or(rule.map(|rule| format!("rule: {rule}"))),
        row.signature.map(|_| "signed".to_owned()),
    ] {
        let width = if text.len() < 40 { 12 } else { 0 };
        text.push_str(&format!(
            " {:<width$}",
            Escaped(&part.unwrap_or_default()).to_string()
        ));
    }
    text.trim_end().to_owned()
}

#[derive(Default, Deserialize)]
struct Row {
    seq: u64,
    line_type: String,
    call_id: Option<String>,
    tool_id: Option<String>,
    policy: Option<Status>,
    policy_set_hash: Option<String>,
    execution: Option<Status>,
    decision_axes: Option<Axes>,
    answer: Option<Kind>,
    signature: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    status: String,
}

#[derive(Deserialize)]
struct Axes {
    matched_rule: Option<String>,
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

fn expect(args: &[&str], output: &Output, exit: i32) -> Result<(), String> {
    if output.status.code() == Some(exit) {
        return Ok(());
    }
    Err(format!(
        "`aegis {}` should have ended with exit code {exit}, but: {}\n{}",
        args.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    ))
}

fn indent(out: &mut Out, text: &[u8]) {
    for line in String::from_utf8_lossy(text).lines() {
        out.line(format_args!("  {line}"));
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> String {
    format!("could not {what} {}: {error}", EscapedPath(path))
}

/// What the client says.
const REQUESTS: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"demo","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fail","arguments":{"message":"no such note"}}}
"#;

const POLICY: &str = "\
version: 1
default: allow
rules:
  - id: deny-echo
    action: deny
    tool: echo
    reason: \"only an example\"
";

const NEXT: &str = "
Next: record a server of your own. In the configuration of your MCP client, put

  aegis wrap --audit <DIR>/ --signing-key <KEY> --

in front of the server's command. README.md has a snippet for each client.
Once the record shows which tools are called, write a policy:

  aegis policy check --for wrap --against <DIR>/ policy.yaml
  aegis recheck --policy policy.yaml <DIR>/";
