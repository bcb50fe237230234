//! A small MCP client: one conversation with a server, each step of which is
//! waited for a bounded time.
//!
//! It never calls a tool, so a server does what it does at its start, and
//! nothing else.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::process::{Ending, Frame, Heard, Process};

/// What is asked for, besides the handshake and the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Script {
    /// How many pings are timed.
    pub(super) pings: u64,
    /// Whether a large frame is sent, and a request cancelled.
    pub(super) trials: bool,
    /// How long it may take until the handshake is answered.
    pub(super) start_wait: Duration,
    pub(super) end: End,
    /// How long the server may take to end.
    pub(super) end_wait: Duration,
}

/// How a conversation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The server's input is closed.
    Input,
    /// It gets SIGTERM.
    Term,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It was answered.
    Answered(Duration),
    /// With an error.
    Refused(String),
    /// Not within the time.
    Silent(Duration),
    /// The server closed its output or ended.
    Closed,
    /// It was not come to.
    Skipped,
}

impl Step {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Answered(_) => "answered",
            Self::Refused(_) => "refused",
            Self::Silent(_) => "silent",
            Self::Closed => "closed",
            Self::Skipped => "skipped",
        }
    }
}

/// A conversation.
#[derive(Debug)]
pub(super) struct Talk {
    /// Why there was none, if the command could not be started.
    pub(super) not_started: Option<String>,
    pub(super) handshake: Step,
    /// Name and version, as the server has it.
    pub(super) name: Option<String>,
    pub(super) tools: Step,
    pub(super) tool_count: usize,
    pub(super) ping: Step,
    /// Of the pings that were answered, the one in the middle.
    pub(super) ping_median: Option<Duration>,
    pub(super) large: Step,
    pub(super) cancel: Step,
    /// Every answer as it came, by the id of its request.
    pub(super) answers: BTreeMap<u64, Vec<u8>>,
    /// Frames that are no JSON-RPC: how many, and the first.
    pub(super) garbage: (u64, String),
    pub(super) ending: Option<Ending>,
}

impl Talk {
    /// Starts `command` and talks to it.
    pub(super) fn with(command: Command, script: Script) -> Self {
        let mut talk = Self::new();
        let process = match Process::start(command) {
            Ok(process) => process,
            Err(why) => {
                talk.not_started = Some(why);
                return talk;
            }
        };
        let mut client = Client {
            process,
            talk: &mut talk,
        };
        client.steps(script);
        let ending = client.process.end(script.end == End::Term, script.end_wait);
        talk.ending = Some(ending);
        talk
    }

    pub(super) fn new() -> Self {
        Self {
            not_started: None,
            handshake: Step::Skipped,
            name: None,
            tools: Step::Skipped,
            tool_count: 0,
            ping: Step::Skipped,
            ping_median: None,
            large: Step::Skipped,
            cancel: Step::Skipped,
            answers: BTreeMap::new(),
            garbage: (0, String::new()),
            ending: None,
        }
    }

    /// Whether the server can be used.
    pub(super) fn works(&self) -> bool {
        let is_answered = |step: &Step| matches!(step, Step::Answered(_));
        // A server without tools refuses to list them, and may have prompts.
        is_answered(&self.handshake) && matches!(self.tools, Step::Answered(_) | Step::Refused(_))
    }
}

struct Client<'a> {
    process: Process,
    talk: &'a mut Talk,
}

impl Client<'_> {
    fn steps(&mut self, script: Script) {
        self.send(request(HANDSHAKE, "initialize", initialize()));
        self.talk.handshake = self.wait(HANDSHAKE, script.start_wait);
        if !matches!(self.talk.handshake, Step::Answered(_)) {
            return;
        }
        self.talk.name = self.server_name();
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned());
        self.talk.tools = self.list_tools();
        // A large frame to a server that hangs would only be waited for again.
        if matches!(self.talk.tools, Step::Silent(_) | Step::Closed) {
            return;
        }
        if script.pings > 0 {
            self.pings(script.pings);
        }
        if script.trials && !matches!(self.talk.ping, Step::Closed) {
            self.talk.large = self.large();
            self.talk.cancel = self.cancel();
        }
    }

    fn server_name(&self) -> Option<String> {
        let answer: Value = serde_json::from_slice(self.talk.answers.get(&HANDSHAKE)?).ok()?;
        let info = answer.pointer("/result/serverInfo")?;
        let name = info.get("name")?.as_str()?;
        Some(match info.get("version").and_then(Value::as_str) {
            Some(version) => format!("{name} {version}"),
            None => name.to_owned(),
        })
    }

    /// Page by page.
    fn list_tools(&mut self) -> Step {
        let begun = Instant::now();
        let mut params = serde_json::json!({});
        for page in 0..MAX_PAGES {
            let id = PAGES + page;
            self.send(request(id, "tools/list", params));
            match self.wait(id, ANSWER_WAIT) {
                Step::Answered(_) => {}
                other => return other,
            }
            let answer = self.talk.answers.get(&id).map(Vec::as_slice);
            let answer: Value =
                serde_json::from_slice(answer.unwrap_or(b"null")).unwrap_or(Value::Null);
            let tools = answer.pointer("/result/tools").and_then(Value::as_array);
            self.talk.tool_count += tools.map_or(0, Vec::len);
            match answer.pointer("/result/nextCursor") {
                Some(cursor @ Value::String(_)) => params = serde_json::json!({ "cursor": cursor }),
                _ => return Step::Answered(begun.elapsed()),
            }
        }
        Step::Refused(format!("more than {MAX_PAGES} pages"))
    }

    fn pings(&mut self, count: u64) {
        let mut taken = Vec::new();
        for id in PINGS..PINGS + count {
            self.send(request(id, "ping", Value::Null));
            self.talk.ping = match self.wait(id, ANSWER_WAIT) {
                Step::Answered(wall) => {
                    taken.push(wall);
                    Step::Answered(wall)
                }
                other => other,
            };
            if taken.is_empty() {
                return;
            }
        }
        taken.sort_unstable();
        self.talk.ping_median = taken.get(taken.len() / 2).copied();
    }

    /// A ping with something behind it. An error is an answer too: it was read.
    fn large(&mut self) -> Step {
        let padding = "x".repeat(PADDING_BYTES);
        let params = serde_json::json!({ "_meta": { "padding": padding } });
        self.send(request(LARGE, "ping", params));
        match self.wait(LARGE, LARGE_WAIT) {
            Step::Refused(_) => Step::Answered(Duration::ZERO),
            other => other,
        }
    }

    /// A request that is cancelled may be answered or not; the next one is.
    fn cancel(&mut self) -> Step {
        self.send(request(CANCELLED, "tools/list", serde_json::json!({})));
        self.send(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{CANCELLED},"reason":"no longer needed"}}}}"#
        ));
        self.send(request(AFTER_CANCEL, "ping", Value::Null));
        match self.wait(AFTER_CANCEL, ANSWER_WAIT) {
            Step::Refused(_) => Step::Answered(Duration::ZERO),
            other => other,
        }
    }

    fn send(&mut self, frame: String) {
        self.process.send(frame);
    }

    /// Until the answer to `id` has come.
    fn wait(&mut self, id: u64, wait: Duration) -> Step {
        let begun = Instant::now();
        loop {
            let left = wait.saturating_sub(begun.elapsed());
            let bytes = match self.process.hear(left) {
                Heard::Frame(bytes) => bytes,
                Heard::Nothing => return Step::Silent(wait),
                Heard::End => return Step::Closed,
            };
            match Frame::read(&bytes) {
                Frame::Answer {
                    id: Some(of),
                    error,
                } => {
                    if self.talk.answers.len() < MAX_ANSWERS {
                        self.talk.answers.insert(of, bytes);
                    }
                    if of == id {
                        return error.map_or(Step::Answered(begun.elapsed()), Step::Refused);
                    }
                }
                Frame::Answer { id: None, .. } | Frame::Notification => {}
                Frame::Request { id, method } => self.reply(&id, &method),
                Frame::Garbage => self.garbage(&bytes),
            }
        }
    }

    /// What a server may ask a client that has declared no capability.
    fn reply(&mut self, id: &Value, method: &str) {
        let reply = match method {
            "ping" => serde_json::json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
            _ => serde_json::json!({
                "jsonrpc": "2.0", "id": id,
                "error": { "code": -32601, "message": "method not found" }
            }),
        };
        self.send(reply.to_string());
    }

    fn garbage(&mut self, bytes: &[u8]) {
        let (count, first) = &mut self.talk.garbage;
        if *count == 0 {
            let shown = &bytes[..bytes.len().min(SHOWN_BYTES)];
            *first = String::from_utf8_lossy(shown).into_owned();
        }
        *count += 1;
    }
}

/// What an id was for, where an answer to it differs.
pub(super) fn step_of(id: u64) -> &'static str {
    match id {
        HANDSHAKE => "initialize",
        LARGE => "the large frame",
        CANCELLED | AFTER_CANCEL => "cancellation",
        PINGS.. => "ping",
        _ => "tools/list",
    }
}

/// Whether a short run has it too.
pub(super) fn is_short(id: u64) -> bool {
    id == HANDSHAKE || (PAGES..PINGS).contains(&id)
}

fn request(id: u64, method: &str, params: Value) -> String {
    let mut request = serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": method });
    if let (false, Some(object)) = (params.is_null(), request.as_object_mut()) {
        object.insert("params".to_owned(), params);
    }
    request.to_string()
}

fn initialize() -> Value {
    serde_json::json!({
        "protocolVersion": PROTOCOL,
        "capabilities": {},
        "clientInfo": { "name": "aegis doctor", "version": env!("CARGO_PKG_VERSION") }
    })
}

/// What most servers speak (MCP 2025-06-18).
const PROTOCOL: &str = "2025-06-18";

const ANSWER_WAIT: Duration = Duration::from_secs(5);
const LARGE_WAIT: Duration = Duration::from_secs(10);

const PADDING_BYTES: usize = 1 << 20;
const MAX_PAGES: u64 = 32;
/// More than a conversation has requests.
const MAX_ANSWERS: usize = 1024;
const SHOWN_BYTES: usize = 200;

const HANDSHAKE: u64 = 1;
const LARGE: u64 = 2;
pub(super) const CANCELLED: u64 = 3;
const AFTER_CANCEL: u64 = 4;
const PAGES: u64 = 100;
const PINGS: u64 = 1000;
