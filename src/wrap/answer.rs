//! What an MCP answer means for the record.

use crate::rpc::message::{Member, Message};
use crate::wire::outcome::{Answer, AnswerKind};

/// The answer that a response is, in either era of the protocol.
pub(super) fn answer_of(response: &Message) -> Answer {
    let said = &response.answer;
    // A result beside an error without a code is a result: JSON-RPC 1.0 sends
    // both, one of them null.
    let is_error = !response.has_result || said.error_code.is_some();
    if response.has_error && is_error {
        return Answer {
            code: said.error_code.map(|code| code.to_string()),
            ..Answer::of(AnswerKind::ProtocolError)
        };
    }
    let result_type = said.result_type.as_whole();
    if said.is_error {
        return Answer::of(AnswerKind::ToolError);
    }
    if result_type == Some("input_required") {
        return Answer::of(AnswerKind::InputRequired);
    }
    // A legacy task is told by its object, a modern one by its type.
    if result_type == Some("task") || (said.result_type == Member::Absent && said.has_task) {
        return Answer {
            task_digest: said.nested_task_id.or(said.task_id),
            ..Answer::of(AnswerKind::TaskCreated)
        };
    }
    Answer::of(AnswerKind::Result)
}
