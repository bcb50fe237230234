//! Questions to the client, tasks, cancellation and subscriptions.

use super::*;

#[test]
fn a_legacy_question_is_a_request_and_its_answer_completes_the_call() {
    let mut client = Client::start(&[]);
    for (number, (tool, method)) in [
        ("ask", "elicitation/create"),
        ("sample", "sampling/createMessage"),
        ("roots", "roots/list"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = client.call(tool, json!({"question": "which?"}));
        let question = client.next();
        assert_eq!(question["id"], json!(number));
        assert_eq!(question["method"], method);
        client.send(&json!({"jsonrpc": "2.0", "id": number, "result": {"a": 1}}));
        assert_eq!(client.text_of(id), "the client answered {\"a\":1}");
    }
}

#[test]
fn a_question_does_not_hold_up_other_calls() {
    let mut client = Client::start(&[]);
    let asking = client.call("ask", json!({"question": "which?"}));
    assert_eq!(client.next()["params"]["message"], "which?");
    let echo = client.call("echo", json!({"text": "meanwhile"}));
    assert_eq!(client.text_of(echo), "meanwhile");
    let error = json!({"code": -1, "message": "no"});
    client.send(&json!({"jsonrpc": "2.0", "id": 0, "error": error}));
    assert_eq!(client.answer_to(asking)["isError"], true);
}

#[test]
fn a_modern_question_is_a_result_and_the_retry_completes_it() {
    let mut client = Client::start(&[]);
    let params = json!({"name": "ask", "arguments": {"question": "which?"}});
    let result = client.ask_modern("tools/call", params.clone());
    assert_eq!(result["resultType"], "input_required");
    let asked = &result["inputRequests"]["answer"];
    assert_eq!(asked["method"], "elicitation/create");
    assert_eq!(result["requestState"], "ask-0");
    let retry = |state: &str, responses: Value| {
        let mut retry = params.clone();
        retry["requestState"] = json!(state);
        retry["inputResponses"] = responses;
        retry
    };
    let answers = json!({"answer": {"action": "accept"}});
    let result = client.ask_modern("tools/call", retry("ask-0", answers.clone()));
    assert_eq!(result["resultType"], "complete");
    let text = "the client answered {\"action\":\"accept\"}";
    assert_eq!(result["content"][0]["text"], text);
    for bad in [
        retry("ask-1", answers.clone()),
        retry("sample-0", answers),
        retry("ask-0", json!({})),
    ] {
        assert_eq!(client.ask_modern("tools/call", bad)["code"], -32602);
    }
}

#[test]
fn a_modern_question_may_have_a_chosen_state_or_none() {
    let mut client = Client::start(&[]);
    let with = |arguments: Value| json!({"name": "ask", "arguments": arguments});
    let chosen = with(json!({"question": "q", "state": "s"}));
    let result = client.ask_modern("tools/call", chosen);
    assert_eq!(result["requestState"], "s");
    let mut none = with(json!({"question": "q", "stateless": true}));
    let result = client.ask_modern("tools/call", none.clone());
    assert_eq!(result.get("requestState"), None);
    none["inputResponses"] = json!({"answer": {}});
    let result = client.ask_modern("tools/call", none);
    assert_eq!(result["resultType"], "complete");
}

#[test]
fn a_modern_question_needs_the_capability() {
    let mut client = Client::start(&[]);
    let error = client.ask_modern("tools/call", json!({"name": "sample"}));
    assert_eq!(error["code"], -32021);
    assert_eq!(
        error["data"],
        json!({"requiredCapabilities": {"sampling": {}}})
    );
}

#[test]
fn the_id_of_a_call_can_be_that_of_a_ping_to_the_client() {
    let mut client = Client::start(&[]);
    let id = client.call("same_id", json!({}));
    let ping = client.next();
    assert_eq!(ping["id"], json!(id));
    assert_eq!(ping["method"], "ping");
    client.send(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    assert_eq!(client.text_of(id), "the client answered {}");
}

#[test]
fn a_cancelled_call_is_not_answered_unless_it_insists() {
    let mut client = Client::start(&[]);
    let silent = client.call("sleep", json!({"ms": 600_000}));
    let arguments = json!({"ms": 600_000, "answer_anyway": true});
    let insists = client.call("sleep", arguments);
    for id in [silent, insists] {
        let params = json!({"requestId": id});
        let method = "notifications/cancelled";
        client.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }
    assert_eq!(client.text_of(insists), "slept 600000 ms");
    assert_eq!(client.finish(), (ExitCode::SUCCESS, String::new()));
}

#[test]
fn a_cancelled_question_is_forgotten() {
    let mut client = Client::start(&[]);
    let id = client.call("ask", json!({"question": "which?"}));
    assert_eq!(client.next()["id"], 0);
    let params = json!({"requestId": id});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    client.send(&json!({"jsonrpc": "2.0", "id": 0, "result": {}}));
    assert_eq!(client.finish(), (ExitCode::SUCCESS, String::new()));
}

#[test]
fn a_legacy_task_is_created_polled_and_fetched() {
    let mut client = Client::start(&[]);
    let plain = client.call("task", json!({}));
    assert_eq!(client.text_of(plain), "the task is done");
    let params = json!({"name": "task", "task": {"ttl": 1000}});
    let task = client.ask("tools/call", params)["task"].take();
    assert_eq!(task["taskId"], "task-0");
    assert_eq!(task["status"], "working");
    let named = json!({"taskId": "task-0"});
    assert_eq!(client.ask("tasks/get", named.clone())["status"], "working");
    assert_eq!(
        client.ask("tasks/get", named.clone())["status"],
        "completed"
    );
    let result = client.ask("tasks/result", named.clone());
    assert_eq!(result["content"][0]["text"], "the task is done");
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/related-task"],
        named
    );
    assert_eq!(client.ask("tasks/cancel", named)["code"], -32602);
    let listed = client.ask("tasks/list", json!({}));
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1);
    let unknown = json!({"taskId": "task-1"});
    assert_eq!(client.ask("tasks/get", unknown)["code"], -32602);
}

#[test]
fn a_modern_task_carries_its_result_when_polled() {
    let mut client = Client::start(&[]);
    let task = client.ask_modern("tools/call", json!({"name": "task"}));
    assert_eq!(task["resultType"], "task");
    assert_eq!(task["taskId"], "task-0");
    let named = json!({"taskId": "task-0"});
    let first = client.ask_modern("tasks/get", named.clone());
    assert_eq!(first["status"], "working");
    assert_eq!(first["resultType"], "complete");
    let second = client.ask_modern("tasks/get", named.clone());
    assert_eq!(second["status"], "completed");
    assert_eq!(second["result"]["content"][0]["text"], "the task is done");
    let updated = client.ask_modern("tasks/update", named);
    assert_eq!(updated["resultType"], "complete");
}

#[test]
fn a_cancelled_task_has_no_result() {
    let mut client = Client::start(&[]);
    client.ask("tools/call", json!({"name": "task", "task": {}}));
    let named = json!({"taskId": "task-0"});
    let cancelled = client.ask("tasks/cancel", named.clone());
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(client.ask("tasks/result", named)["code"], -32602);
}

#[test]
fn a_changed_list_is_announced_in_the_way_of_each_era() {
    let mut client = Client::start(&[]);
    let id = client.call("list_changed", json!({}));
    let notice = client.next();
    assert_eq!(notice["method"], "notifications/tools/list_changed");
    assert_eq!(client.text_of(id), "changed");
    let id = client.call("added_0", json!({}));
    assert_eq!(client.text_of(id), "added");
    let listed = client.ask("tools/list", json!({}));
    let last = listed["tools"].as_array().unwrap().last().unwrap();
    assert_eq!(last["name"], "added_0");

    let change = json!({"name": "list_changed"});
    let unheard = client.ask_modern("tools/call", change.clone());
    assert_eq!(unheard["content"][0]["text"], "changed");
    let subscription = client.request("subscriptions/listen", modern(json!({})));
    let meta = json!({"io.modelcontextprotocol/subscriptionId": subscription});
    let acknowledged = client.next();
    let method = "notifications/subscriptions/acknowledged";
    assert_eq!(acknowledged["method"], method);
    assert_eq!(acknowledged["params"]["_meta"], meta);
    client.request("tools/call", modern(change));
    let notice = client.next();
    assert_eq!(notice["method"], "notifications/tools/list_changed");
    assert_eq!(notice["params"]["_meta"], meta);
}

#[test]
fn a_tool_can_be_redefined() {
    let mut client = Client::start(&[]);
    let before = client.ask("tools/list", json!({}));
    let id = client.call("list_changed", json!({"redefine": "echo"}));
    client.next();
    client.text_of(id);
    let after = client.ask("tools/list", json!({}));
    assert_ne!(before["tools"][0], after["tools"][0]);
    assert_eq!(before["tools"][1], after["tools"][1]);
    let id = client.call("list_changed", json!({"redefine": "nothing"}));
    assert_eq!(client.answer_to(id)["isError"], true);
}

#[test]
fn added_tools_are_bounded() {
    let mut client = Client::start(&[]);
    for _ in 0..256 {
        let id = client.call("list_changed", json!({}));
        client.next();
        client.text_of(id);
    }
    let id = client.call("list_changed", json!({}));
    assert_eq!(client.answer_to(id)["isError"], true);
}
