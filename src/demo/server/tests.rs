//! Drives the server over pipes, as a client does.

mod eras;
mod flags;
mod questions;
mod tools;

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use super::running::locked;
use super::{frames, parse, serve};

/// The client's side of a running server.
struct Client {
    to_server: Option<PipeWriter>,
    from_server: BufReader<PipeReader>,
    errors: Shared,
    server: JoinHandle<ExitCode>,
    last_id: u64,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        locked(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Client {
    fn start(flags: &[&str]) -> Self {
        let flags: Vec<OsString> = flags.iter().map(OsString::from).collect();
        let options = parse(&flags).unwrap();
        let (input, to_server) = io::pipe().unwrap();
        let (from_server, output) = io::pipe().unwrap();
        let errors = Shared::default();
        let stderr = errors.clone();
        Self {
            to_server: Some(to_server),
            from_server: BufReader::new(from_server),
            errors,
            server: thread::spawn(move || serve(options, input, output, stderr)),
            last_id: 0,
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.to_server.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Sends a request under the next number, which it returns.
    fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The next line with its line end; empty at the end of the output.
    fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        self.from_server.read_until(b'\n', &mut line).unwrap();
        line
    }

    fn next(&mut self) -> Value {
        let line = self.line();
        let text = String::from_utf8_lossy(&line);
        serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{fault}: {text}"))
    }

    /// Sends a legacy request and returns the answer's result or error.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer_to(id)
    }

    /// The same in the modern era.
    fn ask_modern(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, modern(params));
        self.answer_to(id)
    }

    fn answer_to(&mut self, id: u64) -> Value {
        let mut answer = self.next();
        assert_eq!(answer["id"], json!(id), "{answer}");
        assert_eq!(answer["jsonrpc"], "2.0");
        let member = if answer.get("error").is_some() {
            "error"
        } else {
            "result"
        };
        answer[member].take()
    }

    /// The text of a proper answer to `id`.
    fn text_of(&mut self, id: u64) -> String {
        let result = self.answer_to(id);
        assert_eq!(result["isError"], json!(false), "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Closes the server's stdin, reads what is left and waits for its end.
    fn finish(mut self) -> (ExitCode, String) {
        self.to_server = None;
        let mut rest = String::new();
        self.from_server.read_to_string(&mut rest).unwrap();
        (self.server.join().unwrap(), rest)
    }
}

/// `params` with the `_meta` of a modern request.
fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    params
}

#[test]
fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
    let collect = |input: &[u8]| {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let ended = frames(input, 4, |line| {
            lines.push(line.to_vec());
            true
        });
        (lines, ended.is_ok())
    };
    assert_eq!(collect(b""), (vec![], true));
    assert_eq!(
        collect(b"1234\n\n12"),
        (vec![b"1234".to_vec(), vec![], b"12".to_vec()], true)
    );
    assert_eq!(collect(b"1234"), (vec![b"1234".to_vec()], true));
    assert_eq!(collect(b"1\n12345\n"), (vec![b"1".to_vec()], false));
    assert_eq!(collect(b"12345"), (vec![], false));
}
