//! One session: routing of what is received.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Map, Value, json};

use super::ask::Asked;
use super::effects::Effects;
use super::message::{
    Answer, BATCHING_VERSIONS, Era, INVALID_PARAMS, INVALID_REQUEST, LEGACY_VERSIONS,
    METHOD_NOT_FOUND, MODERN_VERSION, PARSE_ERROR, Request, error_frame, server_info,
};
use super::options::ServerOptions;
use super::output::{Batch, Frame, Output};
use super::running::{Running, locked};
use super::tasks::Tasks;
use super::tools::{self, Catalog};

/// Everything that requests share.
pub(super) struct Session {
    pub(super) options: ServerOptions,
    pub(super) out: Arc<Output>,
    pub(super) effects: Effects,
    pub(super) running: Running,
    pub(super) asked: Asked,
    pub(super) tasks: Tasks,
    pub(super) catalog: Catalog,
    errors: Mutex<Box<dyn Write + Send>>,
    /// Whether the negotiated revision has batches; yes before there is one.
    batches: Mutex<bool>,
    /// Ids of open `subscriptions/listen` requests.
    subscriptions: Mutex<Vec<Value>>,
}

impl Session {
    pub(super) fn new(
        options: ServerOptions,
        out: Arc<Output>,
        errors: Box<dyn Write + Send>,
        effects: Effects,
    ) -> Self {
        Self {
            options,
            out,
            effects,
            running: Running::default(),
            asked: Asked::default(),
            tasks: Tasks::default(),
            catalog: Catalog::default(),
            errors: Mutex::new(errors),
            batches: Mutex::new(true),
            subscriptions: Mutex::default(),
        }
    }

    /// Acts on one received frame.
    pub(super) fn frame(self: &Arc<Self>, frame: &[u8]) {
        if frame.trim_ascii().is_empty() {
            return;
        }
        match serde_json::from_slice(frame) {
            Ok(Value::Array(elements)) => self.batch(elements),
            Ok(message) => self.message(message, None),
            Err(_) => self.reject(None, Value::Null, PARSE_ERROR, "parse error"),
        }
    }

    /// Sends the answer to `request`, unless it is a notification.
    pub(super) fn answer(&self, request: &Request, answer: Answer) {
        if request.id.is_none() {
            return;
        }
        let frame = request.frame(answer);
        match &request.batch {
            Some(batch) => batch.push(frame),
            None => self.out.send(&frame, Frame::Answer),
        }
    }

    /// Sends a notification or a request of the server.
    pub(super) fn send(&self, message: &Value) {
        self.out.send(message, Frame::Other);
    }

    /// Runs `work` on a thread; its answer, if any, is sent when it is done.
    pub(super) fn run(
        self: &Arc<Self>,
        request: &Arc<Request>,
        work: impl FnOnce(&Session, &Request) -> Option<Answer> + Send + 'static,
    ) {
        let ticket = Arc::clone(&request.ticket);
        self.running.enter(&ticket);
        let (session, request) = (Arc::clone(self), Arc::clone(request));
        thread::spawn(move || {
            if let Some(answer) = work(&session, &request) {
                session.answer(&request, answer);
            }
            // Before the call leaves, since this may send a batch.
            drop(request);
            session.running.leave(&ticket);
        });
    }

    /// Tells clients that the list of tools has changed.
    pub(super) fn announce_tools(&self, era: Era) {
        let method = "notifications/tools/list_changed";
        if era == Era::Legacy {
            self.send(&json!({"jsonrpc": "2.0", "method": method}));
        }
        for id in locked(&self.subscriptions).iter() {
            self.send(&subscription_notice(method, id));
        }
    }

    pub(super) fn complain(&self, text: &str) {
        self.write_errors(format!("demo server: {text}\n").as_bytes());
    }

    /// Writes raw bytes to stderr. That it may be closed is no fault here.
    pub(super) fn write_errors(&self, bytes: &[u8]) {
        let mut errors = locked(&self.errors);
        let _ = errors.write_all(bytes).and_then(|()| errors.flush());
    }

    fn batch(self: &Arc<Self>, elements: Vec<Value>) {
        let fault = if elements.is_empty() {
            "an empty batch"
        } else if elements.len() > MAX_BATCH {
            "a batch of more than 1024 messages"
        } else if !*locked(&self.batches) {
            "batches were removed in 2025-06-18"
        } else {
            let batch = Batch::new(Arc::clone(&self.out));
            for element in elements {
                self.message(element, Some(&batch));
            }
            return;
        };
        self.reject(None, Value::Null, INVALID_REQUEST, fault);
    }

    fn message(self: &Arc<Self>, message: Value, batch: Option<&Arc<Batch>>) {
        let Value::Object(mut message) = message else {
            return self.reject(batch, Value::Null, INVALID_REQUEST, "not an object");
        };
        let id = message.remove("id");
        match message.remove("method") {
            Some(Value::String(method)) => {
                let params = message.remove("params").unwrap_or(Value::Null);
                let request = Request::new(id, method, params, batch.cloned());
                if let Some(answer) = self.route(&request) {
                    self.answer(&request, answer);
                }
            }
            None if message.contains_key("result") || message.contains_key("error") => {
                self.resolve(&id.unwrap_or(Value::Null), &message);
            }
            _ => {
                let id = id.unwrap_or(Value::Null);
                self.reject(batch, id, INVALID_REQUEST, "no method");
            }
        }
    }

    fn reject(&self, batch: Option<&Arc<Batch>>, id: Value, code: i64, message: &str) {
        let frame = error_frame(id, code, message, None);
        match batch {
            Some(batch) => batch.push(frame),
            None => self.out.send(&frame, Frame::Answer),
        }
    }

    fn route(self: &Arc<Self>, request: &Arc<Request>) -> Option<Answer> {
        if request.id.is_none() && request.method != "tools/call" {
            self.notification(request);
            return None;
        }
        if let Some(fault) = request.era_fault() {
            return Some(fault);
        }
        let answer = match (request.method.as_str(), request.era) {
            ("initialize", Era::Legacy) => self.initialize(request),
            ("ping", Era::Legacy) => Answer::Result(Map::new()),
            ("server/discover", Era::Modern) => discover(request),
            ("server/discover", Era::Legacy) => {
                let message = "no io.modelcontextprotocol/protocolVersion in _meta";
                Answer::error(INVALID_PARAMS, message)
            }
            ("tools/list", _) => tools::list(self, request),
            ("tools/call", _) => return tools::call(self, request),
            ("resources/list", _) => empty_list(request, "resources"),
            ("prompts/list", _) => empty_list(request, "prompts"),
            ("subscriptions/listen", Era::Modern) => return self.listen(request),
            (method, era) => self.tasks.route(request, method, era).unwrap_or_else(|| {
                Answer::error(METHOD_NOT_FOUND, format!("unknown method `{method}`"))
            }),
        };
        Some(answer)
    }

    fn notification(&self, request: &Request) {
        if request.method == "notifications/cancelled"
            && let Some(id) = request.params.get("requestId")
        {
            self.running.cancel(id);
            self.asked.forget(id);
            locked(&self.subscriptions).retain(|open| open != id);
        }
    }

    fn initialize(&self, request: &Request) -> Answer {
        let asked = request.params.get("protocolVersion");
        let latest = LEGACY_VERSIONS.len() - 1;
        let agreed = LEGACY_VERSIONS
            .iter()
            .position(|version| asked == Some(&json!(version)))
            .unwrap_or(latest);
        *locked(&self.batches) = agreed < BATCHING_VERSIONS;
        Answer::result(json!({
            "protocolVersion": LEGACY_VERSIONS[agreed],
            "capabilities": {
                "tools": {"listChanged": true},
                "resources": {},
                "prompts": {},
                "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
            },
            "serverInfo": server_info(),
        }))
    }

    fn listen(&self, request: &Request) -> Option<Answer> {
        let id = request.id.as_ref()?;
        let mut subscriptions = locked(&self.subscriptions);
        if subscriptions.len() >= MAX_SUBSCRIPTIONS {
            return Some(Answer::error(INVALID_PARAMS, "too many subscriptions"));
        }
        subscriptions.push(id.clone());
        let method = "notifications/subscriptions/acknowledged";
        self.send(&subscription_notice(method, id));
        None
    }
}

fn subscription_notice(method: &str, id: &Value) -> Value {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": meta}})
}

fn discover(request: &Request) -> Answer {
    let result = json!({
        "supportedVersions": [MODERN_VERSION],
        "capabilities": {
            "tools": {"listChanged": true},
            "resources": {},
            "prompts": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        },
    });
    match Answer::result(result) {
        Answer::Result(result) => request.listing(result),
        error @ Answer::Error { .. } => error,
    }
}

fn empty_list(request: &Request, name: &str) -> Answer {
    request.listing(Map::from_iter([(name.to_owned(), json!([]))]))
}

const MAX_BATCH: usize = 1024;
const MAX_SUBSCRIPTIONS: usize = 64;
