//! Questions that a tool asks the client: as requests of the server in the
//! legacy era, as `input_required` results in the modern one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::message::{Answer, Era, INVALID_PARAMS, MISSING_CAPABILITY, Request};
use super::running::locked;
use super::session::Session;
use super::tools::Outcome;

/// Questions on their way to the client.
#[derive(Default)]
pub(super) struct Asked {
    waiting: Mutex<Waiting>,
    /// Number of the next `requestState`.
    states: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    /// The server numbers its requests from 0, as clients do.
    next_id: u64,
    questions: Vec<(Value, Arc<Request>)>,
}

impl Asked {
    /// Drops the questions of the cancelled call `id`.
    pub(super) fn forget(&self, id: &Value) {
        locked(&self.waiting)
            .questions
            .retain(|(_, request)| request.id.as_ref() != Some(id));
    }

    /// Notes a question of `request` under `id`, or under the next free
    /// number, and returns its id.
    fn note(&self, request: &Arc<Request>, id: Option<Value>) -> Result<Value, String> {
        let mut waiting = locked(&self.waiting);
        let is_open = |waiting: &Waiting, id: &Value| {
            let mut questions = waiting.questions.iter();
            questions.any(|(open, _)| open == id)
        };
        if waiting.questions.len() >= MAX_QUESTIONS {
            return Err(format!("more than {MAX_QUESTIONS} questions are open"));
        }
        let id = match id {
            Some(id) if is_open(&waiting, &id) => {
                return Err(format!("a question with the id {id} is open"));
            }
            Some(id) => id,
            None => loop {
                let id = json!(waiting.next_id);
                waiting.next_id += 1;
                if !is_open(&waiting, &id) {
                    break id;
                }
            },
        };
        waiting.questions.push((id.clone(), Arc::clone(request)));
        Ok(id)
    }

    fn take(&self, id: &Value) -> Option<Arc<Request>> {
        let mut waiting = locked(&self.waiting);
        let at = waiting.questions.iter().position(|(open, _)| open == id)?;
        Some(waiting.questions.remove(at).1)
    }
}

impl Session {
    /// Answers the call whose question the client has answered.
    pub(super) fn resolve(&self, id: &Value, response: &Map<String, Value>) {
        let Some(request) = self.asked.take(id) else {
            return;
        };
        let answer = match (response.get("result"), response.get("error")) {
            (Some(result), _) => Answer::text(format!("the client answered {result}")),
            (None, error) => {
                let error = error.unwrap_or(&Value::Null);
                Answer::tool_error(format!("the client refused with {error}"))
            }
        };
        self.answer(&request, answer);
    }

    /// Asks the client and lets the call wait for the answer.
    fn ask(&self, request: &Arc<Request>, question: Question) -> Result<Outcome, String> {
        if request.era == Era::Modern {
            return self.require_input(request, question).map(Outcome::Answer);
        }
        let id = self.asked.note(request, None)?;
        let Question { method, params, .. } = question;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        Ok(Outcome::Later)
    }

    fn require_input(&self, request: &Request, question: Question) -> Result<Answer, String> {
        let capability = question.capability;
        let declared = request.capabilities();
        if declared.and_then(|all| all.get(capability)).is_none() {
            return Ok(Answer::Error {
                code: MISSING_CAPABILITY,
                message: format!("this call needs the client capability `{capability}`"),
                data: Some(json!({"requiredCapabilities": {capability: {}}})),
            });
        }
        let tool = question.tool;
        if let Some(responses) = request.params.get("inputResponses") {
            return Ok(match responses.get(INPUT_KEY) {
                Some(answer) if self.has_issued(request, tool) => {
                    Answer::text(format!("the client answered {answer}"))
                }
                Some(_) => Answer::error(INVALID_PARAMS, "unknown requestState"),
                None => Answer::error(INVALID_PARAMS, "no answer to the question"),
            });
        }
        let asked = json!({"method": question.method, "params": question.params});
        let mut result = json!({
            "resultType": "input_required",
            "inputRequests": {INPUT_KEY: asked},
        });
        if !request.is_set("stateless") {
            result["requestState"] = match request.argument("state") {
                Some(_) => json!(request.text("state")?),
                None => {
                    let number = self.asked.states.fetch_add(1, Ordering::SeqCst);
                    json!(format!("{tool}-{number}"))
                }
            };
        }
        Ok(Answer::result(result))
    }

    /// Whether the `requestState` of a retry is one that was given out.
    fn has_issued(&self, request: &Request, tool: &str) -> bool {
        let state = request.params.get("requestState");
        if request.is_set("stateless") || request.argument("state").is_some() {
            return state == request.argument("state");
        }
        state
            .and_then(Value::as_str)
            .and_then(|state| state.strip_prefix(tool)?.strip_prefix('-')?.parse().ok())
            .is_some_and(|number: u64| number < self.asked.states.load(Ordering::SeqCst))
    }
}

struct Question {
    tool: &'static str,
    method: &'static str,
    capability: &'static str,
    params: Value,
}

pub(super) fn ask(session: &Arc<Session>, request: &Arc<Request>) -> Result<Outcome, String> {
    let answer = json!({"answer": {"type": "string"}});
    let schema = json!({"type": "object", "properties": answer, "required": ["answer"]});
    let message = request.text("question")?;
    let question = Question {
        tool: "ask",
        method: "elicitation/create",
        capability: "elicitation",
        params: json!({"message": message, "requestedSchema": schema}),
    };
    session.ask(request, question)
}

pub(super) fn sample(session: &Arc<Session>, request: &Arc<Request>) -> Result<Outcome, String> {
    let content = json!({"type": "text", "text": "Say one word."});
    let messages = json!([{"role": "user", "content": content}]);
    let question = Question {
        tool: "sample",
        method: "sampling/createMessage",
        capability: "sampling",
        params: json!({"messages": messages, "maxTokens": 16}),
    };
    session.ask(request, question)
}

pub(super) fn roots(session: &Arc<Session>, request: &Arc<Request>) -> Result<Outcome, String> {
    let question = Question {
        tool: "roots",
        method: "roots/list",
        capability: "roots",
        params: json!({}),
    };
    session.ask(request, question)
}

/// Pings the client under the id that the client gave to this very call: ids
/// of the two directions have nothing to do with each other.
pub(super) fn same_id(session: &Arc<Session>, request: &Arc<Request>) -> Result<Outcome, String> {
    let id = request.id.clone().ok_or("this call has no id to reuse")?;
    let id = session.asked.note(request, Some(id))?;
    session.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    Ok(Outcome::Later)
}

const INPUT_KEY: &str = "answer";
const MAX_QUESTIONS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: u64) -> Arc<Request> {
        Request::new(Some(json!(id)), "tools/call".to_owned(), json!({}), None)
    }

    #[test]
    fn open_questions_are_bounded() {
        let asked = Asked::default();
        for number in 0..MAX_QUESTIONS {
            assert_eq!(asked.note(&call(7), None), Ok(json!(number)));
        }
        let error = "more than 1024 questions are open";
        assert_eq!(asked.note(&call(7), None), Err(error.to_owned()));
        assert!(asked.take(&json!(0)).is_some());
        assert_eq!(asked.note(&call(7), None), Ok(json!(MAX_QUESTIONS)));
    }

    #[test]
    fn numbers_of_open_questions_are_passed_over() {
        let asked = Asked::default();
        assert_eq!(asked.note(&call(0), Some(json!(0))), Ok(json!(0)));
        assert_eq!(asked.note(&call(1), None), Ok(json!(1)));
        let error = "a question with the id 0 is open";
        assert_eq!(asked.note(&call(2), Some(json!(0))), Err(error.to_owned()));
    }
}
