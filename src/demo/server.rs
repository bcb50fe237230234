//! An MCP stdio server in both protocol eras, for demonstrations and tests.
//!
//! It answers as a well-behaved server does unless a tool or a flag asks for
//! a particular fault, so that each thing a peer may do to `wrap` can be
//! provoked from outside. It is a peer and no security boundary: it parses
//! leniently and executes a `tools/call` without an id, as many servers do.
//!
//! Fast tools are answered on the reading thread. A call that takes time gets
//! a thread of its own, at most [`MAX_RUNNING`](running::MAX_RUNNING), so that
//! answers come in completion order.

mod ask;
mod effects;
mod fault;
mod message;
mod options;
mod output;
mod running;
mod session;
mod tasks;
#[cfg(test)]
mod tests;
mod tools;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

pub(crate) use self::options::{ServerOptions, parse};
use self::session::Session;

/// Serves until the input ends, the output closes or a tool ends the process,
/// and returns the exit code that the process should end with at once.
///
/// Threads of calls still running are left behind; they write nothing more
/// and end with the process.
pub(crate) fn serve(
    options: ServerOptions,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    mut errors: impl Write + Send + 'static,
) -> ExitCode {
    let started = prepare(&options, &mut errors)
        .and_then(|()| effects::Effects::open(options.ledger.as_deref()));
    let effects = match started {
        Ok(effects) => effects,
        Err(fault) => {
            // With stderr gone as well there is nobody left to tell.
            let _ = writeln!(errors, "demo server: {fault}");
            return ExitCode::FAILURE;
        }
    };
    let (ending, ended) = mpsc::channel();
    let out = output::Output::new(Box::new(output), options.exit_after, ending);
    let session = Arc::new(Session::new(options, out, Box::new(errors), effects));
    if session.options.flood {
        let session = Arc::clone(&session);
        thread::spawn(move || while session.out.flood(FLOOD_FRAME) {});
    }
    // Unread is not closed: the handle stays open as long as this function.
    let _unread = if session.options.read_nothing {
        Some(input)
    } else {
        let session = Arc::clone(&session);
        thread::spawn(move || read(&session, input));
        None
    };
    drop(session);
    match ended.recv() {
        Ok(code) => ExitCode::from(code),
        // Nothing is left that could end the session: `--ignore-eof` or
        // `--read-nothing`. Only a signal ends this process.
        Err(mpsc::RecvError) => loop {
            thread::park();
        },
    }
}

/// What the flags ask for before anything is read.
fn prepare(options: &ServerOptions, errors: &mut impl Write) -> Result<(), String> {
    if options.ignore_sigterm {
        // A handler replaces the default action; nobody looks at the flag.
        signal_hook::flag::register(
            signal_hook::consts::SIGTERM,
            Arc::new(AtomicBool::new(false)),
        )
        .map_err(|fault| format!("could not ignore SIGTERM: {fault}"))?;
    }
    if let Some(secs) = options.grandchild_secs {
        let mut sleep = Command::new("sleep");
        sleep.arg(secs.to_string()).stdin(Stdio::null());
        if options.detach_grandchild {
            sleep.process_group(0);
        }
        let child = sleep
            .spawn()
            .map_err(|fault| format!("could not start `sleep`: {fault}"))?;
        writeln!(errors, "grandchild {}", child.id())
            .map_err(|fault| format!("could not write to stderr: {fault}"))?;
    }
    thread::sleep(Duration::from_millis(options.slow_start_ms));
    Ok(())
}

fn read(session: &Arc<Session>, input: impl Read) {
    let ended = frames(BufReader::new(input), MAX_FRAME_BYTES, |frame| {
        session.frame(frame);
        !session.out.has_ended()
    });
    if let Err(fault) = ended {
        session.complain(&format!("stopped reading: {fault}"));
        session.out.end(FAILURE);
        return;
    }
    let options = &session.options;
    if options.no_answer_after_eof {
        session.out.mute();
    } else {
        session.running.wait_until_idle();
    }
    if !options.ignore_eof {
        session.out.end(options.exit_code);
    }
}

/// Hands each line of `input` to `each` until that returns false, the input
/// ends or a line is longer than `limit` bytes (its `\n` not counted). The
/// last line needs no `\n`, and a read error ends the input as its end does.
fn frames(
    mut input: impl BufRead,
    limit: u64,
    mut each: impl FnMut(&[u8]) -> bool,
) -> io::Result<()> {
    let mut frame = Vec::new();
    loop {
        frame.clear();
        // One byte more than the limit: the `\n` of a line just at it.
        let read = input
            .by_ref()
            .take(limit + 1)
            .read_until(b'\n', &mut frame)
            .unwrap_or(0);
        if read == 0 {
            return Ok(());
        }
        if frame.last() == Some(&b'\n') {
            frame.pop();
        } else if read as u64 > limit {
            let message = format!("a frame is longer than {limit} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        if !each(&frame) {
            return Ok(());
        }
    }
}

const FAILURE: u8 = 1;
/// Above the default limit for a frame that stays in memory in `wrap`, so
/// that spooled frames can be tested; below what a test machine can hold.
const MAX_FRAME_BYTES: u64 = 256 << 20;
const FLOOD_FRAME: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":\"flood\",\"level\":\"debug\"}}\n";
