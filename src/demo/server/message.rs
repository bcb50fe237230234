//! Requests as received, answers as sent, in the spelling of their era.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::output::Batch;
use super::running::Ticket;

/// The two families of protocol revisions. A request belongs to the modern
/// one when its `_meta` names a protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// 2024-11-05 to 2025-11-25: a session opened by `initialize`.
    Legacy,
    /// 2026-07-28: stateless requests.
    Modern,
}

/// A message with a method.
pub(super) struct Request {
    pub(super) id: Option<Value>,
    pub(super) method: String,
    pub(super) params: Value,
    pub(super) era: Era,
    pub(super) ticket: Arc<Ticket>,
    /// The batch that the answer belongs to.
    pub(super) batch: Option<Arc<Batch>>,
}

impl Request {
    pub(super) fn new(
        id: Option<Value>,
        method: String,
        params: Value,
        batch: Option<Arc<Batch>>,
    ) -> Arc<Self> {
        let era = match params.pointer(VERSION_POINTER) {
            Some(_) => Era::Modern,
            None => Era::Legacy,
        };
        Arc::new(Self {
            ticket: Ticket::new(id.clone()),
            id,
            method,
            params,
            era,
            batch,
        })
    }

    /// What is wrong with the `_meta` of a modern request.
    pub(super) fn era_fault(&self) -> Option<Answer> {
        let version = self.params.pointer(VERSION_POINTER)?;
        if version != MODERN_VERSION {
            let data = json!({"supported": [MODERN_VERSION], "requested": version});
            return Some(Answer::Error {
                code: UNSUPPORTED_VERSION,
                message: "unsupported protocol version".to_owned(),
                data: Some(data),
            });
        }
        if !self.capabilities().is_some_and(Value::is_object) {
            let message = "no io.modelcontextprotocol/clientCapabilities in _meta";
            return Some(Answer::error(INVALID_PARAMS, message));
        }
        self.batch
            .is_some()
            .then(|| Answer::error(INVALID_REQUEST, "2026-07-28 has no batches"))
    }

    /// The client capabilities that a modern request declares.
    pub(super) fn capabilities(&self) -> Option<&Value> {
        self.params
            .pointer("/_meta/io.modelcontextprotocol~1clientCapabilities")
    }

    /// The string argument `name`.
    pub(super) fn text(&self, name: &str) -> Result<&str, String> {
        let argument = self.argument(name);
        argument
            .and_then(Value::as_str)
            .ok_or_else(|| format!("argument `{name}` must be a string"))
    }

    /// The integer argument `name`, at most `most`.
    pub(super) fn count(&self, name: &str, most: u64) -> Result<u64, String> {
        let argument = self.argument(name);
        argument
            .and_then(Value::as_u64)
            .filter(|count| *count <= most)
            .ok_or_else(|| format!("argument `{name}` must be an integer from 0 to {most}"))
    }

    /// The same, or `default` when it is not given.
    pub(super) fn count_or(&self, name: &str, default: u64, most: u64) -> Result<u64, String> {
        match self.argument(name) {
            None => Ok(default),
            Some(_) => self.count(name, most),
        }
    }

    /// Whether the argument `name` is given as true.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.argument(name) == Some(&Value::Bool(true))
    }

    pub(super) fn argument(&self, name: &str) -> Option<&Value> {
        self.params.get("arguments")?.get(name)
    }

    /// The complete frame that answers this request, whatever its id.
    pub(super) fn frame(&self, answer: Answer) -> Value {
        let id = self.id.clone().unwrap_or(Value::Null);
        match answer {
            Answer::Error {
                code,
                message,
                data,
            } => error_frame(id, code, &message, data),
            Answer::Result(mut result) => {
                if self.era == Era::Modern {
                    complete(&mut result);
                }
                json!({"jsonrpc": "2.0", "id": id, "result": result})
            }
        }
    }

    /// A listing: a result that a modern client may cache.
    pub(super) fn listing(&self, mut result: Map<String, Value>) -> Answer {
        if self.era == Era::Modern {
            result.insert("ttlMs".to_owned(), json!(0));
            result.insert("cacheScope".to_owned(), json!("private"));
        }
        Answer::Result(result)
    }
}

/// What a request is answered with.
#[derive(Debug)]
pub(super) enum Answer {
    Result(Map<String, Value>),
    Error {
        code: i64,
        message: String,
        data: Option<Value>,
    },
}

impl Answer {
    /// A tool's result: one text.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Result(tool_result(text.into(), false))
    }

    /// A tool's failure, which is a result too.
    pub(super) fn tool_error(text: impl Into<String>) -> Self {
        Self::Result(tool_result(text.into(), true))
    }

    pub(super) fn error(code: i64, message: impl Into<String>) -> Self {
        Self::Error {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The result `value`, which must be written as an object.
    pub(super) fn result(value: Value) -> Self {
        match value {
            Value::Object(result) => Self::Result(result),
            other => Self::Result(Map::from_iter([("value".to_owned(), other)])),
        }
    }
}

pub(super) fn tool_result(text: String, is_error: bool) -> Map<String, Value> {
    let mut result = Map::new();
    let content = json!({"type": "text", "text": text});
    result.insert("content".to_owned(), Value::Array(vec![content]));
    result.insert("isError".to_owned(), Value::Bool(is_error));
    result
}

pub(super) fn error_frame(id: Value, code: i64, message: &str, data: Option<Value>) -> Value {
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

pub(super) fn server_info() -> Value {
    json!({"name": "aegis-demo-server", "version": env!("CARGO_PKG_VERSION")})
}

/// Adds what every modern result must carry, if it is not there.
fn complete(result: &mut Map<String, Value>) {
    result
        .entry("resultType")
        .or_insert_with(|| json!("complete"));
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    meta["io.modelcontextprotocol/serverInfo"] = server_info();
}

pub(super) const MODERN_VERSION: &str = "2026-07-28";
/// Oldest first; the last one is offered to a client that asks for another.
pub(super) const LEGACY_VERSIONS: [&str; 4] =
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// Revisions that have batches: the first two.
pub(super) const BATCHING_VERSIONS: usize = 2;

/// JSON-RPC 2.0 §5.1.
pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
/// MCP 2026-07-28: a version that the server does not speak.
const UNSUPPORTED_VERSION: i64 = -32022;
/// MCP 2026-07-28: the client lacks a capability that the call needs.
pub(super) const MISSING_CAPABILITY: i64 = -32021;
const VERSION_POINTER: &str = "/_meta/io.modelcontextprotocol~1protocolVersion";
