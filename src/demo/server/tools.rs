//! The tools: what they are called, what they take, what they do.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::message::{Answer, Era, INVALID_PARAMS, Request};
use super::running::locked;
use super::session::Session;
use super::{ask, fault};

/// One tool of the fixed table.
pub(super) struct Tool {
    name: &'static str,
    description: &'static str,
    params: &'static [Param],
    /// A bad argument is an `Err`, which the caller sees as a tool error so
    /// that a model can correct itself.
    run: fn(&Arc<Session>, &Arc<Request>) -> Result<Outcome, String>,
}

/// What has become of a call when its tool returns.
pub(super) enum Outcome {
    Answer(Answer),
    /// The answer comes from elsewhere, or never.
    Later,
}

struct Param {
    name: &'static str,
    kind: &'static str,
    required: bool,
}

/// Changes to the table while the server runs.
#[derive(Default)]
pub(super) struct Catalog {
    added: Mutex<usize>,
    redefined: Mutex<Vec<String>>,
}

/// Answers `tools/list`, by pages if the options say so.
pub(super) fn list(session: &Session, request: &Request) -> Answer {
    let added = *locked(&session.catalog.added);
    let redefined = locked(&session.catalog.redefined);
    let fixed = TOOLS.iter().filter(|tool| tool.name != UNLISTED);
    let mut tools: Vec<Value> = fixed
        .map(|tool| define(tool, redefined.iter().any(|n| n == tool.name), request.era))
        .collect();
    tools.extend((0..added).map(|number| {
        json!({
            "name": format!("{ADDED}{number}"),
            "description": "Was not there from the beginning.",
            "inputSchema": {"type": "object"},
        })
    }));
    let start = match request.params.get("cursor") {
        None => Some(0),
        Some(cursor) => cursor.as_str().and_then(|text| text.parse().ok()),
    };
    let Some(start) = start.filter(|start| *start < tools.len()) else {
        return Answer::error(INVALID_PARAMS, "unknown cursor");
    };
    let page = session.options.page_size.unwrap_or(tools.len());
    let end = tools.len().min(start.saturating_add(page));
    let mut result = Map::from_iter([("tools".to_owned(), json!(tools[start..end]))]);
    if end < tools.len() {
        result.insert("nextCursor".to_owned(), json!(end.to_string()));
    }
    request.listing(result)
}

/// Executes a `tools/call`; its effect is on record before anything else.
pub(super) fn call(session: &Arc<Session>, request: &Arc<Request>) -> Option<Answer> {
    let name = request.params.get("name").and_then(Value::as_str);
    if let Err(fault) = session.effects.record(name, request.id.as_ref()) {
        session.complain(&fault);
        session.out.end(1);
        return None;
    }
    let Some(name) = name else {
        return Some(Answer::error(INVALID_PARAMS, "no string params.name"));
    };
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
        return Some(if session.catalog.has_added(name) {
            Answer::text("added")
        } else {
            Answer::error(INVALID_PARAMS, format!("unknown tool `{name}`"))
        });
    };
    match (tool.run)(session, request) {
        Ok(Outcome::Answer(answer)) => Some(answer),
        Ok(Outcome::Later) => None,
        Err(fault) => Some(Answer::tool_error(fault)),
    }
}

impl Catalog {
    fn has_added(&self, name: &str) -> bool {
        let number = name.strip_prefix(ADDED).map(str::parse::<usize>);
        number.is_some_and(|n| n.is_ok_and(|n| n < *locked(&self.added)))
    }

    /// Adds a tool, or marks `redefine` so that its description changes.
    fn change(&self, redefine: Option<&str>) -> Result<(), String> {
        match redefine {
            None => {
                let mut added = locked(&self.added);
                if *added >= MAX_ADDED {
                    return Err(format!("more than {MAX_ADDED} tools were added"));
                }
                *added += 1;
            }
            Some(name) => {
                let tool = TOOLS.iter().find(|tool| tool.name == name);
                let tool = tool.ok_or_else(|| format!("unknown tool `{name}`"))?;
                let mut redefined = locked(&self.redefined);
                if !redefined.iter().any(|known| known == tool.name) {
                    redefined.push(tool.name.to_owned());
                }
            }
        }
        Ok(())
    }
}

fn define(tool: &Tool, redefined: bool, era: Era) -> Value {
    let properties = tool
        .params
        .iter()
        .map(|param| (param.name.to_owned(), json!({"type": param.kind})));
    let required = tool.params.iter().filter(|param| param.required);
    let required: Vec<_> = required.map(|param| param.name).collect();
    let mut description = tool.description.to_owned();
    if redefined {
        description.push_str(" Changed while the server ran.");
    }
    let mut definition = json!({
        "name": tool.name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": Map::from_iter(properties),
            "required": required,
        },
    });
    if tool.name == "task" && era == Era::Legacy {
        definition["execution"] = json!({"taskSupport": "optional"});
    }
    definition
}

fn text(text: impl Into<String>) -> Result<Outcome, String> {
    Ok(Outcome::Answer(Answer::text(text)))
}

fn add(request: &Request) -> Result<Outcome, String> {
    let integer = |name| request.argument(name).and_then(Value::as_i64);
    if let (Some(a), Some(b)) = (integer("a"), integer("b"))
        && let Some(sum) = a.checked_add(b)
    {
        return text(sum.to_string());
    }
    let number = |name| {
        let argument = request.argument(name).and_then(Value::as_f64);
        argument.ok_or_else(|| format!("argument `{name}` must be a number"))
    };
    text((number("a")? + number("b")?).to_string())
}

fn sleep(session: &Arc<Session>, request: &Arc<Request>) -> Result<Outcome, String> {
    let pause_ms = request.count("ms", MAX_PAUSE_MS)?;
    session.run(request, move |_, request| {
        let pause = Duration::from_millis(pause_ms);
        let cancelled = request.ticket.is_cancelled_within(pause);
        (!cancelled || request.is_set("answer_anyway"))
            .then(|| Answer::text(format!("slept {pause_ms} ms")))
    });
    Ok(Outcome::Later)
}

fn big(session: &Arc<Session>, request: &Arc<Request>) -> Result<Outcome, String> {
    let bytes = request.count("bytes", MAX_BIG_BYTES)?;
    let bytes = usize::try_from(bytes).map_err(|_| "more than this machine can hold")?;
    session.run(request, move |_, _| Some(Answer::text("x".repeat(bytes))));
    Ok(Outcome::Later)
}

fn protocol_error(request: &Request) -> Result<Outcome, String> {
    let code = request.argument("code").and_then(Value::as_i64);
    let code = code.ok_or("argument `code` must be an integer")?;
    Ok(Outcome::Answer(Answer::error(code, "as asked for")))
}

fn write_note(session: &Session, request: &Request) -> Result<Outcome, String> {
    match session.effects.note(request.text("text")?) {
        Some(count) => text(format!("note {count}")),
        None => Err("no more notes can be kept".to_owned()),
    }
}

fn progress(session: &Arc<Session>, request: &Arc<Request>) -> Result<Outcome, String> {
    let steps = request.count("steps", MAX_STEPS)?;
    let token = request.params.pointer("/_meta/progressToken").cloned();
    session.run(request, move |session, request| {
        for step in 1..=steps {
            if request.ticket.is_cancelled_within(Duration::ZERO) {
                return None;
            }
            if let Some(token) = &token {
                let params = json!({"progressToken": token, "progress": step, "total": steps});
                let method = "notifications/progress";
                session.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
            }
        }
        Some(Answer::text(format!("{steps} steps")))
    });
    Ok(Outcome::Later)
}

fn list_changed(session: &Session, request: &Request) -> Result<Outcome, String> {
    let redefine = match request.argument("redefine") {
        None => None,
        Some(_) => Some(request.text("redefine")?),
    };
    session.catalog.change(redefine)?;
    session.announce_tools(request.era);
    text("changed")
}

const fn need(name: &'static str, kind: &'static str) -> Param {
    Param {
        name,
        kind,
        required: true,
    }
}

const fn may(name: &'static str, kind: &'static str) -> Param {
    Param {
        name,
        kind,
        required: false,
    }
}

const UNLISTED: &str = "unlisted";
const ADDED: &str = "added_";
const MAX_ADDED: usize = 256;
const MAX_PAUSE_MS: u64 = 600_000;
const MAX_BIG_BYTES: u64 = 1 << 30;
const MAX_STEPS: u64 = 10_000;

/// Builds the table: name, what it does, what it takes, how.
macro_rules! tools {
    ($($name:literal, $description:literal, [$($param:expr),*], $run:expr;)*) => {
        &[$(Tool { name: $name, description: $description, params: &[$($param),*], run: $run }),*]
    };
}

#[rustfmt::skip]
const TOOLS: &[Tool] = tools! {
    "echo", "Answers with the text.", [need("text", "string")], |_, r| text(r.text("text")?);
    "add", "Adds two numbers.", [need("a", "number"), need("b", "number")], |_, r| add(r);
    "sleep", "Answers after a pause, or not when cancelled in it.",
        [need("ms", "integer"), may("answer_anyway", "boolean")], sleep;
    "big", "Answers with a text of that many bytes.", [need("bytes", "integer")], big;
    "fail", "Fails as a tool.", [need("message", "string")], |_, r| Err(r.text("message")?.to_owned());
    "protocol_error", "Fails as a request.", [need("code", "integer")], |_, r| protocol_error(r);
    "write_note", "Keeps a note.", [need("text", "string")], |s, r| write_note(s, r);
    "ask", "Asks the user; in 2026-07-28 with that state, or none.",
        [need("question", "string"), may("state", "string"), may("stateless", "boolean")], ask::ask;
    "sample", "Asks the model.", [], ask::sample;
    "roots", "Asks for the roots.", [], ask::roots;
    "same_id", "Pings the client under the id of this call.", [], ask::same_id;
    "progress", "Reports progress.", [need("steps", "integer")], progress;
    "task", "Becomes a task.", [], |s, r| s.tasks.create(r).map(Outcome::Answer);
    "list_changed", "Adds a tool, or changes the description of one.",
        [may("redefine", "string")], |s, r| list_changed(s, r);
    "unlisted", "Works without being listed.", [], |_, _| text("unlisted");
    "never", "Never answers.", [], |_, _| Ok(Outcome::Later);
    "stderr", "Writes text or hex bytes to stderr, that often.",
        [may("text", "string"), may("hex", "string"), may("times", "integer")], |s, r| fault::stderr(s, r);
    "die", "Exits at once.", [may("code", "integer")], |s, r| fault::die(s, r);
    "die_after_answer", "Answers, then exits.", [may("code", "integer")], |s, r| fault::die_after_answer(s, r);
    "kill_self", "Sends itself a signal.", [need("signal", "integer")], |s, r| fault::kill_self(s, r);
    "no_newline_die", "Answers without a line end, then exits 0.", [], |s, r| fault::no_newline_die(s, r);
    "noise", "Writes a line that is not JSON, then answers.", [], |s, _| fault::noise(s);
    "blank_lines", "Writes blank lines around the answer.", [], |s, r| fault::blank_lines(s, r);
    "bad_utf8", "Answers with bytes that are not UTF-8.", [], |s, r| fault::bad_utf8(s, r);
    "crlf", "Ends the answer with CR LF.", [], |s, r| fault::crlf(s, r);
    "in_pieces", "Writes the answer byte by byte.", [], |s, r| fault::in_pieces(s, r);
    "double_answer", "Answers twice.", [], |s, r| fault::double_answer(s, r);
    "wrong_id", "Answers under an id never asked, then properly.",
        [may("only", "boolean")], |s, r| fault::under_other_id(s, r, |_| json!("never-asked"));
    "null_id", "Answers under the id null, then properly.",
        [may("only", "boolean")], |s, r| fault::under_other_id(s, r, |_| Value::Null);
    "retyped_id", "Answers under the id as a string or number, then properly.",
        [may("only", "boolean")], |s, r| fault::under_other_id(s, r, fault::retype);
    "batch_answer", "Answers with a batch of one.", [], |s, r| fault::batch_answer(s, r);
    "result_and_error", "Answers with both.", [], |s, r| fault::result_and_error(s, r);
    "no_result", "Answers with neither result nor error.", [], |s, r| fault::no_result(s, r);
};
