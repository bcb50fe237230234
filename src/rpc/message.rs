//! What a frame means: the members that recording, gating and correlating
//! need, and nothing else of it.

use std::ops::Range;

use crate::wire::digest::{self, Digest};

/// One JSON-RPC message, as far as it was understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// The member `method`.
    pub(crate) method: Member,
    /// The member `id`.
    pub(crate) id: RpcId,
    /// Where the raw bytes of the id stand in the frame, for an exact echo.
    pub(crate) id_span: Option<Range<u64>>,
    /// Whether there is a member `result`, whatever its value.
    pub(crate) has_result: bool,
    /// Whether there is a member `error`, whatever its value.
    pub(crate) has_error: bool,
    /// From an object `params`.
    pub(crate) params: Params,
    /// From an object `result` or `error`.
    pub(crate) answer: Answer,
}

impl Message {
    /// What kind of message this is. The member `jsonrpc` is not judged: peers
    /// are lenient about it, so a call may not escape by leaving it out.
    pub(crate) fn kind(&self) -> Kind {
        match (&self.method, &self.id) {
            (Member::Text(_), RpcId::Absent | RpcId::Null) => Kind::Notification,
            (Member::Text(_), _) => Kind::Request,
            (Member::Absent, _) if self.has_result || self.has_error => Kind::Response,
            (Member::Absent | Member::NotAString, _) => Kind::Invalid,
        }
    }

    /// Whether the method is `tools/call`, with a usable id or without.
    pub(crate) fn is_tools_call(&self) -> bool {
        self.method.as_whole() == Some(TOOLS_CALL)
    }
}

/// The kinds of JSON-RPC 2.0, §4 and §5. A null id counts as none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A method and an id of any type but null.
    Request,
    /// A method without id, or with a null one.
    Notification,
    /// No method, and a result or an error.
    Response,
    /// None of these.
    Invalid,
}

/// From the direct members of `params`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Params {
    /// `name`: the tool of a `tools/call`.
    pub(crate) name: Member,
    /// `_meta["io.modelcontextprotocol/protocolVersion"]`: declares the
    /// modern era.
    pub(crate) meta_version: Member,
    /// `protocolVersion` of an `initialize`.
    pub(crate) protocol_version: Member,
    /// `requestId` of a `notifications/cancelled`.
    pub(crate) request_id: RpcId,
    /// Whether there is a member `inputResponses`.
    pub(crate) has_input_responses: bool,
    /// Over the raw bytes of the value of `requestState`.
    pub(crate) request_state: Option<Sum>,
    /// Over the raw bytes of the value of `arguments`; of a `tools/call` only.
    pub(crate) arguments: Option<Sum>,
}

/// From the direct members of an object `result` or `error`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Whether `result.isError` is `true`.
    pub(crate) is_error: bool,
    /// `result.resultType`.
    pub(crate) result_type: Member,
    /// Whether `result.task` is an object.
    pub(crate) has_task: bool,
    /// Over the unescaped string `result.task.taskId`.
    pub(crate) nested_task_id: Option<Sum>,
    /// Over the unescaped string `result.taskId`.
    pub(crate) task_id: Option<Sum>,
    /// Over the raw bytes of the value of `result.requestState`.
    pub(crate) request_state: Option<Sum>,
    /// Whether there is a member `result.inputRequests`.
    pub(crate) has_input_requests: bool,
    /// `result.protocolVersion` of an answered `initialize`.
    pub(crate) protocol_version: Member,
    /// `error.code`, if it is written as an integer that fits.
    pub(crate) error_code: Option<i64>,
}

/// A member that should be a string.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Member {
    /// There is no such member.
    #[default]
    Absent,
    /// It has a value of another type.
    NotAString,
    /// It is this string.
    Text(Text),
}

impl Member {
    /// The string, if there is one and all of it was kept.
    pub(crate) fn as_whole(&self) -> Option<&str> {
        match self {
            Self::Text(text) => text.as_whole(),
            Self::Absent | Self::NotAString => None,
        }
    }
}

/// An id, equal to another if type and value are: the string `1` is not the
/// number `1`. Numbers are compared by their bytes, so `1` is not `1.0`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) enum RpcId {
    /// There is no such member.
    #[default]
    Absent,
    /// `null`, which matches nothing.
    Null,
    /// A string, unescaped.
    String(Text),
    /// A number, as written.
    Number(Text),
    /// A boolean, an array or an object, by its raw bytes.
    Other(Sum),
}

/// Text of a frame, or the first part of it. Equality is exact either way,
/// because what was cut is held by its length and SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Text {
    head: Box<str>,
    cut: Option<Box<Cut>>,
}

/// The whole of a text of which only a part is kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Cut {
    /// Its length in bytes, unescaped.
    pub(crate) bytes: u64,
    /// Its SHA-256, unescaped.
    pub(crate) sum: Sum,
}

impl Text {
    pub(super) fn new(head: &str, cut: Option<Cut>) -> Self {
        Self {
            head: head.into(),
            cut: cut.map(Box::new),
        }
    }

    /// The text, if all of it was kept.
    pub(crate) fn as_whole(&self) -> Option<&str> {
        match self.cut {
            None => Some(&self.head),
            Some(_) => None,
        }
    }

    /// The text up to the bound of its member.
    pub(crate) fn head(&self) -> &str {
        &self.head
    }

    /// What the text was, if it is kept in part only.
    pub(crate) fn cut(&self) -> Option<&Cut> {
        self.cut.as_deref()
    }
}

/// A SHA-256 over a part of a frame.
pub(crate) type Sum = Digest<digest::Text>;

pub(in crate::rpc) const TOOLS_CALL: &str = "tools/call";
