//! One running stack of processes, seen from the client's end.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::peers;
use super::support::{ALLOWED_TOOL, DENIED_TOOL};

/// What stands between the client and the echoing server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    Nothing,
    PassThrough,
    /// `aegis wrap --durability` of this mode.
    Wrap(&'static str),
    /// The same with `--policy`.
    Judged(&'static str),
}

/// Where the recordings of a run are.
pub(crate) struct Place<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) key: &'a Path,
    /// What is judged by, where there is a judge.
    pub(crate) policy: &'a Path,
}

impl Between {
    fn command(self, audit: &str, place: &Place<'_>) -> io::Result<Vec<OsString>> {
        let own = std::env::current_exe()?.into_os_string();
        let mut command: Vec<OsString> = match self {
            Self::Nothing => Vec::new(),
            Self::PassThrough => vec![own.clone(), peers::PASS.into()],
            Self::Wrap(durability) | Self::Judged(durability) => {
                let mut wrap = [
                    OsStr::new(AEGIS),
                    "wrap".as_ref(),
                    "--audit".as_ref(),
                    place.directory.join(audit).as_ref(),
                    "--signing-key".as_ref(),
                    place.key.as_ref(),
                    "--durability".as_ref(),
                    durability.as_ref(),
                ]
                .map(OsStr::to_owned)
                .to_vec();
                if let Self::Judged(_) = self {
                    wrap.extend(["--policy".into(), place.policy.into()]);
                }
                wrap.push("--".into());
                wrap
            }
        };
        command.extend([own, peers::ECHO.into()]);
        Ok(command)
    }
}

pub(crate) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    buffer: Vec<u8>,
    /// The id of the next request; no two are the same.
    next: u64,
}

impl Session {
    /// Starts a stack that records, if it does, in a file of this name.
    pub(crate) fn start(between: Between, audit: &str, place: &Place<'_>) -> io::Result<Self> {
        let command = between.command(audit, place)?;
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or_else(|| io::Error::other("the stack has no output"))?;
        Ok(Self {
            child,
            input,
            output,
            buffer: vec![0; BUFFER_BYTES],
            next: 0,
        })
    }

    /// The time from a request to its answer.
    pub(crate) fn round_trip(&mut self, ask: Ask) -> io::Result<Duration> {
        let request = self.requests(ask, 1);
        let begun = Instant::now();
        self.send(&request)?;
        while self.answers()? == 0 {}
        Ok(begun.elapsed())
    }

    /// The time of `count` requests of which `in_flight` are under way at any
    /// moment but the last ones.
    pub(crate) fn in_flight(
        &mut self,
        ask: Ask,
        count: usize,
        in_flight: usize,
    ) -> io::Result<Duration> {
        let begun = Instant::now();
        let mut sent = in_flight.min(count);
        let requests = self.requests(ask, sent);
        self.send(&requests)?;
        let mut answered = 0;
        while answered < count {
            let came = self.answers()?;
            answered += came;
            let more = came.min(count - sent);
            let requests = self.requests(ask, more);
            self.send(&requests)?;
            sent += more;
        }
        Ok(begun.elapsed())
    }

    /// Closes the input and waits for the end.
    pub(crate) fn end(mut self) -> io::Result<()> {
        drop(self.input.take());
        let status = self.child.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(io::Error::other(format!("the stack ended with {status}"))),
        }
    }

    fn requests(&mut self, ask: Ask, count: usize) -> Vec<u8> {
        let mut requests = String::new();
        for id in self.next..self.next + count as u64 {
            requests.push_str(&ask.with_id(id));
        }
        self.next += count as u64;
        requests.into_bytes()
    }

    fn send(&mut self, requests: &[u8]) -> io::Result<()> {
        match &mut self.input {
            Some(input) => input.write_all(requests),
            None => Ok(()),
        }
    }

    /// How many answers end in what is read next.
    fn answers(&mut self) -> io::Result<usize> {
        let read = self.output.read(&mut self.buffer)?;
        if read == 0 {
            return Err(io::Error::other("the stack ended before it answered"));
        }
        Ok(memchr::memchr_iter(b'\n', &self.buffer[..read]).count())
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    Initialize,
    Ping,
    ToolsCall,
    /// The same with a mebibyte of arguments.
    LargeCall,
    /// Of a tool that the policy denies.
    DeniedCall,
}

impl Ask {
    fn with_id(self, id: u64) -> String {
        let rest = match self {
            Self::Initialize => {
                r#""method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}"#.to_owned()
            }
            Self::Ping => r#""method":"ping""#.to_owned(),
            Self::ToolsCall => call(ALLOWED_TOOL, ARGUMENTS),
            Self::DeniedCall => call(DENIED_TOOL, ARGUMENTS),
            Self::LargeCall => {
                let text = "x".repeat(LARGE_BYTES);
                call(ALLOWED_TOOL, &format!(r#"{{"text":"{text}"}}"#))
            }
        };
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{rest}}}\n")
    }
}

fn call(tool: &str, arguments: &str) -> String {
    format!(r#""method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}"#)
}

pub(crate) const AEGIS: &str = env!("CARGO_BIN_EXE_aegis");

const ARGUMENTS: &str = r#"{"path":"/srv/notes/today.md","head":40}"#;

const LARGE_BYTES: usize = 1 << 20;

const BUFFER_BYTES: usize = 64 << 10;
