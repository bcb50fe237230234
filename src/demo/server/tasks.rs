//! Tasks: the experiment of 2025-11-25 and the extension of 2026-07-28.

use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::message::{Answer, Era, INVALID_PARAMS, Request, tool_result};
use super::running::locked;

/// Tasks by number. No clock moves them: the first `tasks/get` finds a task
/// working, every later one finds it completed.
#[derive(Default)]
pub(super) struct Tasks {
    states: Mutex<Vec<State>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Created,
    Working,
    Completed,
    Cancelled,
}

impl Tasks {
    /// Starts a task for `request` and answers with it.
    pub(super) fn create(&self, request: &Request) -> Result<Answer, String> {
        if request.era == Era::Legacy && request.params.get("task").is_none() {
            return Ok(Answer::text(TASK_TEXT));
        }
        let mut states = locked(&self.states);
        if states.len() >= MAX_TASKS {
            return Err(format!("more than {MAX_TASKS} tasks were created"));
        }
        states.push(State::Created);
        let task = describe(states.len() - 1, State::Created, request.era);
        Ok(match request.era {
            Era::Legacy => Answer::result(json!({"task": task})),
            Era::Modern => {
                let mut task = task;
                task.insert("resultType".to_owned(), json!("task"));
                Answer::Result(task)
            }
        })
    }

    /// Answers the task methods of the request's era.
    pub(super) fn route(&self, request: &Request, method: &str, era: Era) -> Option<Answer> {
        match (method, era) {
            ("tasks/list", Era::Legacy) => return Some(self.list()),
            ("tasks/get" | "tasks/cancel", _)
            | ("tasks/result", Era::Legacy)
            | ("tasks/update", Era::Modern) => {}
            _ => return None,
        }
        let mut states = locked(&self.states);
        let number = request
            .params
            .get("taskId")
            .and_then(Value::as_str)
            .and_then(|id| id.strip_prefix("task-")?.parse::<usize>().ok());
        let Some((number, state)) = number.and_then(|n| Some((n, states.get_mut(n)?))) else {
            return Some(Answer::error(INVALID_PARAMS, "unknown taskId"));
        };
        Some(match method {
            "tasks/get" => {
                *state = match *state {
                    State::Created => State::Working,
                    State::Working => State::Completed,
                    ended => ended,
                };
                let mut task = describe(number, *state, era);
                if era == Era::Modern && *state == State::Completed {
                    let result = tool_result(TASK_TEXT.to_owned(), false);
                    task.insert("result".to_owned(), Value::Object(result));
                }
                Answer::Result(task)
            }
            "tasks/cancel" if *state == State::Completed => {
                Answer::error(INVALID_PARAMS, "the task has completed")
            }
            "tasks/cancel" => {
                *state = State::Cancelled;
                match era {
                    Era::Legacy => Answer::Result(describe(number, *state, era)),
                    Era::Modern => Answer::Result(Map::new()),
                }
            }
            "tasks/result" if *state == State::Cancelled => {
                Answer::error(INVALID_PARAMS, "the task was cancelled")
            }
            "tasks/result" => {
                *state = State::Completed;
                let mut result = tool_result(TASK_TEXT.to_owned(), false);
                let related = json!({"taskId": task_id(number)});
                let meta = json!({"io.modelcontextprotocol/related-task": related});
                result.insert("_meta".to_owned(), meta);
                Answer::Result(result)
            }
            _ => Answer::Result(Map::new()),
        })
    }

    fn list(&self) -> Answer {
        let states = locked(&self.states);
        let tasks = states.iter().enumerate();
        let tasks: Vec<_> = tasks
            .map(|(number, state)| describe(number, *state, Era::Legacy))
            .collect();
        Answer::result(json!({"tasks": tasks}))
    }
}

fn describe(number: usize, state: State, era: Era) -> Map<String, Value> {
    let status = match state {
        State::Created | State::Working => "working",
        State::Completed => "completed",
        State::Cancelled => "cancelled",
    };
    let ttl = match era {
        Era::Legacy => "ttl",
        Era::Modern => "ttlMs",
    };
    let members = [
        ("taskId", json!(task_id(number))),
        ("status", json!(status)),
        ("createdAt", json!(NO_CLOCK)),
        ("lastUpdatedAt", json!(NO_CLOCK)),
        (ttl, Value::Null),
    ];
    let members = members.map(|(name, value)| (name.to_owned(), value));
    Map::from_iter(members)
}

fn task_id(number: usize) -> String {
    format!("task-{number}")
}

const MAX_TASKS: usize = 1024;
const TASK_TEXT: &str = "the task is done";
/// The protocol wants a time; equal input shall give equal bytes.
const NO_CLOCK: &str = "1970-01-01T00:00:00Z";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_bounded() {
        let tasks = Tasks::default();
        let params = json!({"task": {}});
        let request = Request::new(Some(json!(1)), "tools/call".to_owned(), params, None);
        for _ in 0..MAX_TASKS {
            assert!(tasks.create(&request).is_ok());
        }
        let error = "more than 1024 tasks were created";
        assert_eq!(tasks.create(&request).err(), Some(error.to_owned()));
    }
}
