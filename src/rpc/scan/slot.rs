//! Which members are wanted, and where in a [`Message`] they go.

use super::Reason;
use super::capture::Capture;
use super::keys::{is_alike, is_trimmed};
use crate::rpc::message::{Member, Message, RpcId, Sum, TOOLS_CALL};

/// What an open object or array is to the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Batch,
    Message,
    Params,
    Meta,
    Result,
    Task,
    Error,
    Other,
}

impl Role {
    /// What the value of the member `key` is to the message.
    pub(super) fn slot(self, key: &str) -> Slot {
        if self == Self::Other {
            return Slot::Skip;
        }
        match (self, key) {
            (Self::Message, "id") => Slot::Id,
            (Self::Message, "method") => Slot::Method,
            (Self::Message, "params") => Slot::Params,
            (Self::Message, "result") => Slot::Result,
            (Self::Message, "error") => Slot::Error,
            (Self::Params, "name") => Slot::Name,
            (Self::Params, "_meta") => Slot::Meta,
            (Self::Params, "arguments") => Slot::Arguments,
            (Self::Params, "requestState") => Slot::RequestState,
            (Self::Params, "inputResponses") => Slot::InputResponses,
            (Self::Params, "requestId") => Slot::RequestId,
            (Self::Params, "protocolVersion") => Slot::ProtocolVersion,
            (Self::Meta, "io.modelcontextprotocol/protocolVersion") => Slot::MetaVersion,
            (Self::Result, "isError") => Slot::IsError,
            (Self::Result, "resultType") => Slot::ResultType,
            (Self::Result, "task") => Slot::Task,
            (Self::Result, "taskId") => Slot::TaskId,
            (Self::Result, "requestState") => Slot::AnswerState,
            (Self::Result, "inputRequests") => Slot::InputRequests,
            (Self::Result, "protocolVersion") => Slot::AnswerVersion,
            (Self::Task, "taskId") => Slot::NestedTaskId,
            (Self::Error, "code") => Slot::Code,
            _ => Slot::Skip,
        }
    }

    /// Whether near misses of the deciding names are refused among its members.
    pub(super) fn is_watched(self) -> bool {
        matches!(self, Self::Message | Self::Params)
    }
}

/// What a value is to the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Skip,
    /// The whole frame.
    Top,
    /// An element of a batch.
    Element,
    Id,
    Method,
    Params,
    Result,
    Error,
    Name,
    Meta,
    Arguments,
    RequestState,
    InputResponses,
    RequestId,
    ProtocolVersion,
    MetaVersion,
    IsError,
    ResultType,
    Task,
    TaskId,
    NestedTaskId,
    AnswerState,
    InputRequests,
    AnswerVersion,
    Code,
}

impl Slot {
    /// What an object in this slot is to the message.
    pub(super) fn object_role(self) -> Role {
        match self {
            Self::Top | Self::Element => Role::Message,
            Self::Params => Role::Params,
            Self::Meta => Role::Meta,
            Self::Result => Role::Result,
            Self::Task => Role::Task,
            Self::Error => Role::Error,
            _ => Role::Other,
        }
    }
}

/// The type of a value, seen from its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Object,
    Array,
    String,
    Number,
    True,
    False,
    Null,
}

/// What is to be kept of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    Nothing,
    /// Its text: unescaped if it is a string, as written if it is a number, up
    /// to so many bytes.
    Text(usize),
    /// The SHA-256 of its bytes.
    Sum,
}

/// Notes that a value of this type begins in `slot`.
pub(super) fn begin(message: &mut Message, slot: Slot, value: Type) -> Want {
    if let Some((member, bound)) = member(message, slot) {
        if value == Type::String {
            return Want::Text(bound);
        }
        *member = Member::NotAString;
        return Want::Nothing;
    }
    if let Some(id) = id(message, slot) {
        return match value {
            Type::String | Type::Number => Want::Text(MAX_ID),
            Type::Null => {
                *id = RpcId::Null;
                Want::Nothing
            }
            Type::Object | Type::Array | Type::True | Type::False => Want::Sum,
        };
    }
    match (slot, value) {
        (Slot::Result, _) => message.has_result = true,
        (Slot::Error, _) => message.has_error = true,
        (Slot::InputResponses, _) => message.params.has_input_responses = true,
        (Slot::InputRequests, _) => message.answer.has_input_requests = true,
        (Slot::IsError, Type::True) => message.answer.is_error = true,
        (Slot::Task, Type::Object) => message.answer.has_task = true,
        (Slot::TaskId | Slot::NestedTaskId, Type::String) => return Want::Text(MAX_ID),
        (Slot::Code, Type::Number) => return Want::Text(MAX_CODE),
        (Slot::RequestState | Slot::AnswerState, _) => return Want::Sum,
        // Of another method they are dropped in the end, so why hash them.
        (Slot::Arguments, _) if message.method == Member::Absent || message.is_tools_call() => {
            return Want::Sum;
        }
        _ => {}
    }
    Want::Nothing
}

/// Takes the text that [`begin`] wanted.
pub(super) fn text(message: &mut Message, slot: Slot, value: Type, capture: &Capture) {
    if let Some((member, _)) = member(message, slot) {
        *member = Member::Text(capture.text());
    } else if let Some(id) = id(message, slot) {
        *id = match value {
            Type::String => RpcId::String(capture.text()),
            _ => RpcId::Number(capture.text()),
        };
    } else {
        let answer = &mut message.answer;
        match slot {
            Slot::TaskId => answer.task_id = Some(capture.sum()),
            Slot::NestedTaskId => answer.nested_task_id = Some(capture.sum()),
            Slot::Code if !capture.is_cut() => answer.error_code = capture.head().parse().ok(),
            _ => {}
        }
    }
}

/// Takes the SHA-256 that [`begin`] wanted.
pub(super) fn sum(message: &mut Message, slot: Slot, sum: Sum) {
    if let Some(id) = id(message, slot) {
        *id = RpcId::Other(sum);
        return;
    }
    match slot {
        Slot::Arguments => message.params.arguments = Some(sum),
        Slot::RequestState => message.params.request_state = Some(sum),
        Slot::AnswerState => message.answer.request_state = Some(sum),
        _ => {}
    }
}

/// Makes the message independent of the order of its members.
///
/// # Errors
/// When some peers would call a tool by its method and others would not: it is
/// no string, which JavaScript makes one of, or `tools/call` but for case, what
/// stands around it, or what follows a NUL.
pub(super) fn settle(message: &mut Message) -> Result<(), Reason> {
    if !message.is_tools_call() {
        message.params.arguments = None;
    }
    match &message.method {
        Member::Absent => Ok(()),
        Member::NotAString => Err(Reason::OddMethod),
        Member::Text(method) => {
            // A NUL ends it for some; for others one before it is trimmed.
            let begun = method.head().trim_start_matches(is_trimmed);
            let read = begun.split('\0').next().unwrap_or_default();
            let odd = !message.is_tools_call() && is_alike(read, TOOLS_CALL);
            // Longer than any method, so that its end was not looked at.
            if odd || method.cut().is_some() {
                return Err(Reason::OddMethod);
            }
            Ok(())
        }
    }
}

fn member(message: &mut Message, slot: Slot) -> Option<(&mut Member, usize)> {
    match slot {
        Slot::Method => Some((&mut message.method, MAX_WORD)),
        Slot::Name => Some((&mut message.params.name, MAX_NAME)),
        Slot::MetaVersion => Some((&mut message.params.meta_version, MAX_WORD)),
        Slot::ProtocolVersion => Some((&mut message.params.protocol_version, MAX_WORD)),
        Slot::ResultType => Some((&mut message.answer.result_type, MAX_WORD)),
        Slot::AnswerVersion => Some((&mut message.answer.protocol_version, MAX_WORD)),
        _ => None,
    }
}

fn id(message: &mut Message, slot: Slot) -> Option<&mut RpcId> {
    match slot {
        Slot::Id => Some(&mut message.id),
        Slot::RequestId => Some(&mut message.params.request_id),
        _ => None,
    }
}

/// Bytes that are kept of a tool's name; policy judges the whole of it.
pub(super) const MAX_NAME: usize = 64 * 1024;

/// Bytes that are kept of an id.
pub(super) const MAX_ID: usize = 1024;

/// Bytes that are kept of a method, a version or a result type.
pub(super) const MAX_WORD: usize = 1024;

/// Bytes of the longest error code that can fit an `i64`.
const MAX_CODE: usize = 20;
