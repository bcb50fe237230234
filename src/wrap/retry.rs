//! Which Call a retry continues (MCP 2026-07-28, `input_required`).
//!
//! A server may answer a call by asking for input; the client then sends the
//! same call again, under a new id, with the input. The two are one act in two
//! Calls. They are matched by what the protocol says must be equal, and not at
//! all when that fits more than one.

use std::collections::VecDeque;

use crate::rpc::message::{Member, Message, Sum};
use crate::wire::digest::Digest;

/// What of a request decides whether it retries another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    tool: Option<Sum>,
    arguments: Option<Sum>,
    /// The state that the retry brings back.
    state: Option<Sum>,
    /// Whether it brings input.
    has_input: bool,
}

impl Asked {
    /// Over the name of the tool, if it has one.
    pub(super) fn tool(&self) -> Option<Sum> {
        self.tool
    }

    pub(super) fn of(message: &Message) -> Self {
        Self {
            tool: match &message.params.name {
                Member::Text(name) => Some(match name.cut() {
                    Some(cut) => cut.sum,
                    None => Digest::of(name.head().as_bytes()),
                }),
                Member::Absent | Member::NotAString => None,
            },
            arguments: message.params.arguments,
            state: message.params.request_state,
            has_input: message.params.has_input_responses,
        }
    }
}

/// The Calls that asked for input and were not retried yet.
#[derive(Default)]
pub(super) struct Retries {
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    call_id: String,
    asked: Asked,
    /// The state that a retry must bring back.
    state: Option<Sum>,
}

impl Retries {
    /// Remembers a Call that was answered by a question. The oldest is
    /// forgotten beyond [`MAX_WAITING`].
    pub(super) fn remember(&mut self, call_id: String, asked: Asked, state: Option<Sum>) {
        if self.waiting.len() == MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting {
            call_id,
            asked,
            state,
        });
    }

    /// The Call that `retry` continues, when it is exactly one.
    pub(super) fn resumed_by(&mut self, retry: &Asked) -> Option<String> {
        if !retry.has_input && retry.state.is_none() {
            return None;
        }
        let mut fitting = self
            .waiting
            .iter()
            .enumerate()
            .filter(|(_, waiting)| waiting.fits(retry))
            .map(|(i, _)| i);
        let (found, another) = (fitting.next()?, fitting.next());
        if another.is_some() {
            return None;
        }
        self.waiting.remove(found).map(|waiting| waiting.call_id)
    }
}

impl Waiting {
    fn fits(&self, retry: &Asked) -> bool {
        let same_tool = self.asked.tool.is_some() && self.asked.tool == retry.tool;
        same_tool
            && match self.state {
                Some(state) => retry.state == Some(state),
                None => {
                    retry.state.is_none()
                        && retry.has_input
                        && self.asked.arguments == retry.arguments
                }
            }
    }
}

/// How many questions may wait for their answer.
const MAX_WAITING: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tool: &str, arguments: &str, state: Option<&str>, has_input: bool) -> Asked {
        Asked {
            tool: Some(Digest::of(tool.as_bytes())),
            arguments: Some(Digest::of(arguments.as_bytes())),
            state: state.map(|s| Digest::of(s.as_bytes())),
            has_input,
        }
    }

    fn remember(retries: &mut Retries, call_id: &str, arguments: &str, state: Option<&str>) {
        let first = asked("ask", arguments, None, false);
        retries.remember(
            call_id.to_owned(),
            first,
            state.map(|s| Digest::of(s.as_bytes())),
        );
    }

    #[test]
    fn a_state_names_its_call_once() {
        let mut retries = Retries::default();
        remember(&mut retries, "call-1", "{}", Some("s1"));
        remember(&mut retries, "call-2", "{}", Some("s2"));
        assert_eq!(
            retries.resumed_by(&asked("other", "{}", Some("s2"), true)),
            None
        );
        assert_eq!(
            retries.resumed_by(&asked("ask", "{}", Some("s3"), true)),
            None
        );
        let retry = asked("ask", "[]", Some("s2"), true);
        assert_eq!(retries.resumed_by(&retry).as_deref(), Some("call-2"));
        assert_eq!(retries.resumed_by(&retry), None);
    }

    #[test]
    fn without_a_state_the_arguments_decide_and_doubt_says_nothing() {
        let mut retries = Retries::default();
        remember(&mut retries, "call-1", "{}", None);
        remember(&mut retries, "call-2", "[]", None);
        remember(&mut retries, "call-3", "[]", None);
        assert_eq!(retries.resumed_by(&asked("ask", "{}", None, false)), None);
        assert_eq!(retries.resumed_by(&asked("ask", "[]", None, true)), None);
        assert_eq!(
            retries
                .resumed_by(&asked("ask", "{}", None, true))
                .as_deref(),
            Some("call-1")
        );
    }

    #[test]
    fn the_oldest_question_is_forgotten_past_the_bound() {
        let mut retries = Retries::default();
        for i in 0..=MAX_WAITING {
            remember(
                &mut retries,
                &format!("call-{i}"),
                "{}",
                Some(&format!("s{i}")),
            );
        }
        assert_eq!(
            retries.resumed_by(&asked("ask", "{}", Some("s0"), true)),
            None
        );
        assert_eq!(
            retries
                .resumed_by(&asked("ask", "{}", Some("s1"), true))
                .as_deref(),
            Some("call-1")
        );
    }
}
