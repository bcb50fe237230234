//! The processes that the relay is measured with and against. Each is this
//! executable, started again with a hidden first argument.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::thread;

/// Starts [`echo`].
pub(crate) const ECHO: &str = "__echo";

/// Starts [`pass`]; the command to stand before follows.
pub(crate) const PASS: &str = "__pass";

/// The cheapest MCP server there is: answers every line that carries an id
/// with an empty result, and reads nothing else of it.
pub(crate) fn echo() -> io::Result<()> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut held = 0;
    let mut answers = Vec::new();
    loop {
        if held == buffer.len() {
            buffer.resize(2 * held, 0);
        }
        let read = input.read(&mut buffer[held..])?;
        if read == 0 {
            return Ok(());
        }
        let filled = held + read;
        let whole = memchr::memrchr(b'\n', &buffer[..filled]).map_or(0, |at| at + 1);
        for line in buffer[..whole].split_inclusive(|&byte| byte == b'\n') {
            answer(line, &mut answers);
        }
        buffer.copy_within(whole..filled, 0);
        held = filled - whole;
        output.write_all(&answers)?;
        answers.clear();
    }
}

fn answer(line: &[u8], answers: &mut Vec<u8>) {
    let Some(at) = memchr::memmem::find(line, b"\"id\":") else {
        return;
    };
    let rest = &line[at + b"\"id\":".len()..];
    let end = memchr::memchr2(b',', b'}', rest).unwrap_or(rest.len());
    answers.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    answers.extend_from_slice(&rest[..end]);
    answers.extend_from_slice(b",\"result\":{}}\n");
}

/// The least that a process in the middle can do: two threads that copy what
/// they read, and know nothing of it.
pub(crate) fn pass(command: &[OsString]) -> io::Result<()> {
    let (program, args) = command
        .split_first()
        .ok_or_else(|| io::Error::other("no command to stand before"))?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (to, from) = (child.stdin.take(), child.stdout.take());
    let (Some(to), Some(from)) = (to, from) else {
        return Err(io::Error::other("the child has no pipes"));
    };
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let requests = thread::spawn(move || copy(input, to));
    copy(from, output)?;
    child.wait()?;
    requests.join().unwrap_or(Ok(()))
}

fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..read])?;
    }
}

const BUFFER_BYTES: usize = 64 << 10;
