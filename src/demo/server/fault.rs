//! Tools that misbehave: each does one thing that a peer must cope with.

use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};

use super::message::{Answer, Request};
use super::output::{Frame, line};
use super::session::Session;
use super::tools::Outcome;

type Ran = Result<Outcome, String>;

pub(super) fn die(session: &Session, request: &Request) -> Ran {
    session.out.end(exit_code(request)?);
    Ok(Outcome::Later)
}

pub(super) fn die_after_answer(session: &Session, request: &Request) -> Ran {
    let code = exit_code(request)?;
    session.out.send_last(&proper(request), code);
    Ok(Outcome::Later)
}

pub(super) fn no_newline_die(session: &Session, request: &Request) -> Ran {
    let mut answer = proper(request);
    answer.pop();
    session.out.send_last(&answer, 0);
    Ok(Outcome::Later)
}

/// Answers only if the signal lets the process live. The kernel may hand the
/// signal to another thread, so that returning from the call proves nothing.
pub(super) fn kill_self(session: &Session, request: &Request) -> Ran {
    let number = request.count("signal", MAX_SIGNAL)?;
    let signal = i32::try_from(number).ok().and_then(Signal::from_named_raw);
    let signal = signal.ok_or_else(|| format!("{number} is no value for `signal`"))?;
    let survives =
        HARMLESS.contains(&signal) || (signal == Signal::TERM && session.options.ignore_sigterm);
    if !survives {
        session.out.mute();
    }
    kill_process(getpid(), signal).map_err(|fault| format!("could not send it: {fault}"))?;
    if !survives {
        return Ok(Outcome::Later);
    }
    let text = format!("survived signal {number}");
    Ok(Outcome::Answer(Answer::text(text)))
}

pub(super) fn stderr(session: &Session, request: &Request) -> Ran {
    let bytes = match request.argument("hex") {
        None => request.text("text")?.as_bytes().to_vec(),
        Some(_) => unhex(request.text("hex")?)?,
    };
    for _ in 0..request.count_or("times", 1, MAX_TIMES)? {
        session.write_errors(&bytes);
    }
    Ok(Outcome::Answer(Answer::text("written")))
}

pub(super) fn noise(session: &Session) -> Ran {
    session
        .out
        .send_bytes(b"this line is not JSON\n", Frame::Other);
    Ok(Outcome::Answer(Answer::text(PROPER)))
}

pub(super) fn blank_lines(session: &Session, request: &Request) -> Ran {
    let answer = proper(request);
    write(session, request, &[b"\n  \n\r\n", &answer, b"\n\t\n"]);
    Ok(Outcome::Later)
}

pub(super) fn bad_utf8(session: &Session, request: &Request) -> Ran {
    let mut answer = proper(request);
    if let Some(at) = answer.windows(6).position(|bytes| bytes == b"proper") {
        answer[at] = 0xFF;
    }
    write(session, request, &[&answer]);
    Ok(Outcome::Later)
}

pub(super) fn crlf(session: &Session, request: &Request) -> Ran {
    let mut answer = proper(request);
    answer.pop();
    answer.extend_from_slice(b"\r\n");
    write(session, request, &[&answer]);
    Ok(Outcome::Later)
}

pub(super) fn in_pieces(session: &Session, request: &Request) -> Ran {
    let answer = proper(request);
    let pieces: Vec<&[u8]> = answer.chunks(1).collect();
    write(session, request, &pieces);
    Ok(Outcome::Later)
}

pub(super) fn double_answer(session: &Session, request: &Request) -> Ran {
    write(session, request, &[&proper(request)]);
    let second = line(&request.frame(Answer::text("once more")));
    write(session, request, &[&second]);
    Ok(Outcome::Later)
}

/// Answers under `other(id)` first, and properly unless `only` is set.
pub(super) fn under_other_id(
    session: &Session,
    request: &Request,
    other: fn(&Value) -> Value,
) -> Ran {
    let mut frame = request.frame(Answer::text("under another id"));
    frame["id"] = other(&frame["id"]);
    write(session, request, &[&line(&frame)]);
    if request.is_set("only") {
        return Ok(Outcome::Later);
    }
    Ok(Outcome::Answer(Answer::text(PROPER)))
}

/// The id as the other of the two types that it may have.
pub(super) fn retype(id: &Value) -> Value {
    match id {
        Value::String(text) => text.parse::<u64>().map_or(Value::Null, Value::from),
        other => Value::String(other.to_string()),
    }
}

pub(super) fn batch_answer(session: &Session, request: &Request) -> Ran {
    let frame = request.frame(Answer::text(PROPER));
    write(session, request, &[&line(&json!([frame]))]);
    Ok(Outcome::Later)
}

pub(super) fn result_and_error(session: &Session, request: &Request) -> Ran {
    let mut frame = request.frame(Answer::text(PROPER));
    frame["error"] = json!({"code": -32603, "message": "both"});
    write(session, request, &[&line(&frame)]);
    Ok(Outcome::Later)
}

pub(super) fn no_result(session: &Session, request: &Request) -> Ran {
    let frame = json!({"jsonrpc": "2.0", "id": request.id});
    write(session, request, &[&line(&frame)]);
    Ok(Outcome::Later)
}

/// The frame that a well-behaved tool would answer with.
fn proper(request: &Request) -> Vec<u8> {
    line(&request.frame(Answer::text(PROPER)))
}

/// Writes past the batch that the request may be in; a call without an id
/// gets nothing.
fn write(session: &Session, request: &Request, pieces: &[&[u8]]) {
    if request.id.is_some() {
        session.out.send_pieces(pieces, Frame::Answer);
    }
}

fn exit_code(request: &Request) -> Result<u8, String> {
    let code = request.count_or("code", 0, u8::MAX.into())?;
    u8::try_from(code).map_err(|fault| fault.to_string())
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
    bytes.ok_or_else(|| "argument `hex` must be pairs of hex digits".to_owned())
}

const PROPER: &str = "proper";
const MAX_SIGNAL: u64 = 64;
/// Signals that do not end a process that has no handler for them.
const HARMLESS: [Signal; 4] = [Signal::CHILD, Signal::CONT, Signal::URG, Signal::WINCH];
const MAX_TIMES: u64 = 1_000_000;
