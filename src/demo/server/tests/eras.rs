//! What each protocol era gets to see.

use super::*;

fn initialized(version: &str) -> Client {
    let mut client = Client::start(&[]);
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {}});
    let result = client.ask("initialize", params);
    assert_eq!(result["protocolVersion"], version);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    client
}

fn offered_for(version: Value) -> Value {
    let mut client = Client::start(&[]);
    client.ask("initialize", json!({"protocolVersion": version}))["protocolVersion"].take()
}

#[test]
fn initialize_agrees_on_each_legacy_version() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = initialized(version);
        assert_eq!(client.ask("ping", json!({})), json!({}));
        let id = client.call("echo", json!({"text": "hi"}));
        assert_eq!(client.text_of(id), "hi");
    }
}

#[test]
fn initialize_offers_the_latest_legacy_version_instead_of_an_unknown_one() {
    for version in [json!("2026-07-28"), json!("1"), json!(null)] {
        assert_eq!(offered_for(version), "2025-11-25");
    }
}

#[test]
fn initialize_names_the_server_and_its_capabilities() {
    let mut client = Client::start(&[]);
    let result = client.ask("initialize", json!({"protocolVersion": "2025-11-25"}));
    assert_eq!(result["serverInfo"]["name"], "aegis-demo-server");
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
    assert!(result.get("resultType").is_none());
}

#[test]
fn discover_answers_modern_requests_only() {
    let mut client = Client::start(&[]);
    let result = client.ask_modern("server/discover", json!({}));
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["ttlMs"], 0);
    assert_eq!(result["cacheScope"], "private");
    let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "aegis-demo-server");
    assert_eq!(client.ask("server/discover", json!({}))["code"], -32602);
}

#[test]
fn a_modern_request_of_another_version_is_told_the_supported_ones() {
    let mut client = Client::start(&[]);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2099-01-01"});
    let error = client.ask("tools/list", json!({"_meta": meta}));
    assert_eq!(error["code"], -32022);
    let data = json!({"supported": ["2026-07-28"], "requested": "2099-01-01"});
    assert_eq!(error["data"], data);
}

#[test]
fn a_modern_request_without_capabilities_is_invalid() {
    let mut client = Client::start(&[]);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let error = client.ask("tools/list", json!({"_meta": meta}));
    assert_eq!(error["code"], -32602);
}

#[test]
fn methods_of_the_other_era_are_unknown() {
    let mut client = Client::start(&[]);
    for method in ["initialize", "ping", "tasks/list", "tasks/result"] {
        assert_eq!(client.ask_modern(method, json!({}))["code"], -32601);
    }
    for method in ["tasks/update", "subscriptions/listen", "logging/setLevel"] {
        assert_eq!(client.ask(method, json!({}))["code"], -32601);
    }
}

#[test]
fn a_modern_call_is_complete_and_a_legacy_one_does_not_say_so() {
    let mut client = Client::start(&[]);
    let params = json!({"name": "echo", "arguments": {"text": "hi"}});
    let result = client.ask_modern("tools/call", params.clone());
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["content"][0]["text"], "hi");
    let result = client.ask("tools/call", params);
    assert_eq!(result.get("resultType"), None);
    assert_eq!(result.get("_meta"), None);
}

#[test]
fn other_lists_are_empty() {
    let mut client = Client::start(&[]);
    for (method, name) in [("resources/list", "resources"), ("prompts/list", "prompts")] {
        assert_eq!(client.ask(method, json!({})), json!({name: []}));
        let result = client.ask_modern(method, json!({}));
        assert_eq!(result[name], json!([]));
        assert_eq!(result["ttlMs"], 0);
    }
}

#[test]
fn the_list_describes_every_tool_but_the_unlisted_one() {
    let mut client = Client::start(&[]);
    let result = client.ask("tools/list", json!({}));
    let tools = result["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool["name"] != "unlisted"));
    let sleep = tools.iter().find(|tool| tool["name"] == "sleep").unwrap();
    let schema = &sleep["inputSchema"];
    assert_eq!(schema["properties"]["ms"], json!({"type": "integer"}));
    assert_eq!(schema["required"], json!(["ms"]));
    assert_eq!(result.get("nextCursor"), None);
}

#[test]
fn pages_join_up_to_the_whole_list() {
    let whole = Client::start(&[]).ask("tools/list", json!({}));
    let mut client = Client::start(&["--page-size", "7"]);
    let mut joined = Vec::new();
    let mut params = json!({});
    loop {
        let mut page = client.ask("tools/list", params);
        let tools = page["tools"].as_array_mut().unwrap();
        assert!((1..=7).contains(&tools.len()));
        joined.append(tools);
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(Value::Array(joined), whole["tools"]);
    for cursor in [json!("999"), json!("x"), json!(1)] {
        let error = client.ask("tools/list", json!({"cursor": cursor}));
        assert_eq!(error["code"], -32602);
    }
}

#[test]
fn a_batch_is_answered_by_one_array() {
    let mut client = initialized("2025-03-26");
    let call = |id, name: &str, arguments| {
        let params = json!({"name": name, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    client.send(&json!([
        call(10, "sleep", json!({"ms": 1})),
        call(11, "echo", json!({"text": "b"})),
        call(12, "never", json!({})),
        {"jsonrpc": "2.0", "method": "notifications/progress"},
        7,
    ]));
    let answers = client.next();
    // In completion order, which is nobody's promise.
    let answers = answers.as_array().unwrap().iter();
    let mut ids: Vec<_> = answers.map(|answer| answer["id"].to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["10", "11", "null"]);
    let (code, rest) = client.finish();
    assert_eq!((code, rest.as_str()), (ExitCode::SUCCESS, ""));
}

#[test]
fn a_batch_of_notifications_is_not_answered() {
    let mut client = Client::start(&[]);
    client.send(&json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]));
    assert_eq!(client.finish(), (ExitCode::SUCCESS, String::new()));
}

#[test]
fn batches_end_with_2025_06_18() {
    let ping = json!([{"jsonrpc": "2.0", "id": 9, "method": "ping"}]);
    for version in ["2024-11-05", "2025-03-26"] {
        let mut client = initialized(version);
        client.send(&ping);
        assert_eq!(client.next()[0]["id"], 9);
    }
    for version in ["2025-06-18", "2025-11-25"] {
        let mut client = initialized(version);
        client.send(&ping);
        let answer = client.next();
        assert_eq!(answer["error"]["code"], -32600);
        assert_eq!(answer["id"], json!(null));
    }
}

#[test]
fn a_modern_request_in_a_batch_is_invalid() {
    let mut client = Client::start(&[]);
    let params = modern(json!({}));
    client.send(&json!([{"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": params}]));
    assert_eq!(client.next()[0]["error"]["code"], -32600);
}

#[test]
fn batches_are_bounded() {
    let mut client = Client::start(&[]);
    let ping = |id| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    client.send(&(0..1024).map(ping).collect());
    assert_eq!(client.next().as_array().unwrap().len(), 1024);
    client.send(&(0..1025).map(ping).collect());
    assert_eq!(client.next()["error"]["code"], -32600);
    client.send(&json!([]));
    assert_eq!(client.next()["error"]["code"], -32600);
}

#[test]
fn what_is_no_request_is_answered_as_json_rpc_says() {
    let mut client = Client::start(&[]);
    for (frame, code) in [
        (&b"{\n"[..], -32700),
        (b"\xFF\n", -32700),
        (b"7\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"method\":7}\n", -32600),
    ] {
        client.write(frame);
        let answer = client.next();
        assert_eq!(answer["error"]["code"], code);
        assert_eq!(answer["id"], json!(null));
    }
    assert_eq!(client.ask("no/such", json!({}))["code"], -32601);
}

#[test]
fn blank_lines_and_a_last_line_without_its_end_are_fine() {
    let mut client = Client::start(&[]);
    client.write(b"\n \r\n{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}");
    let (_, rest) = client.finish();
    assert_eq!(rest, "{\"id\":\"a\",\"jsonrpc\":\"2.0\",\"result\":{}}\n");
}
