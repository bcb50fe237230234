use super::*;
use crate::rpc::scan::{Scan, Scanner};

/// A client and a child, and what aegis takes note of between them.
#[derive(Default)]
struct Between {
    listings: Listings,
    hidden: Vec<&'static str>,
}

impl Between {
    fn client(&self, frame: &str) {
        let messages = scan(frame);
        if messages.is_empty() {
            self.listings.asked_unreadably();
        }
        messages.iter().for_each(|m| self.listings.asked(m));
    }

    fn child(&self, frame: &str) -> Option<String> {
        self.child_in(frame, true)
    }

    fn child_in(&self, frame: &str, in_memory: bool) -> Option<String> {
        let messages = scan(frame);
        if messages.is_empty() {
            self.listings.lose();
        }
        let bytes = in_memory.then_some(frame.as_bytes());
        let hidden = |name: &str| self.hidden.contains(&name);
        let line = self.listings.answered(&messages, bytes, hidden);
        line.map(|line| String::from_utf8(line).unwrap())
    }

    /// Lists under this id, and is answered with `tools`.
    fn list(&self, id: usize, tools: &str) {
        self.client(&ask(id));
        assert_eq!(self.child(&answer(id, tools)), None);
    }

    fn known(&self, name: &str) -> Option<Digest<ToolDefinition>> {
        self.listings.digest_of(&Digest::of(name.as_bytes()))
    }

    fn is_known(&self, name: &str) -> bool {
        self.known(name).is_some()
    }
}

fn scan(frame: &str) -> Vec<Message> {
    let mut scanner = Scanner::new();
    scanner.feed(frame.as_bytes());
    match scanner.finish() {
        Scan::Message(message) => vec![*message],
        Scan::Batch(messages) => messages,
        Scan::Blank | Scan::Unreadable(_) => Vec::new(),
    }
}

fn ask(id: usize) -> String {
    format!(r#"{{"id":{id},"method":"tools/list"}}"#)
}

fn answer(id: usize, tools: &str) -> String {
    format!(r#"{{"id":{id},"result":{{"tools":{tools}}}}}"#)
}

fn cancel(id: usize) -> String {
    format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

fn tool(name: &str, version: usize) -> String {
    format!(r#"{{"name":"{name}","v":{version}}}"#)
}

fn one(name: &str, version: usize) -> String {
    format!("[{}]", tool(name, version))
}

fn digest(name: &str, version: usize) -> Option<Digest<ToolDefinition>> {
    Some(Digest::of(tool(name, version).as_bytes()))
}

/// SPEC [LISTING-1]: pages add up, and the last definition counts.
#[test]
fn what_was_shown_last_is_known() {
    let between = Between::default();
    assert_eq!(between.known("a"), None);
    between.list(1, &one("a", 1));
    between.list(2, &one("b", 1));
    assert_eq!(between.known("a"), digest("a", 1));
    assert_eq!(between.known("b"), digest("b", 1));
    between.list(3, &one("a", 2));
    assert_eq!(between.known("a"), digest("a", 2));
    // Not in the list any more: what was shown of it still is what was shown.
    assert_eq!(between.known("b"), digest("b", 1));
    between.list(4, r#"[{"v":3,"name":"\u0061"}]"#);
    assert_ne!(between.known("a"), digest("a", 2));
    assert!(between.is_known("a"));
}

/// SPEC [LISTING-1]: a notice of a change shows nothing, nor does an error, a
/// request of the server or an answer that nobody asked for.
#[test]
fn only_an_answer_to_the_client_shows_a_tool() {
    let between = Between::default();
    between.list(1, &one("a", 1));
    between.child(r#"{"method":"notifications/tools/list_changed"}"#);
    between.child(&answer(1, &one("a", 2)));
    between.child(&answer(9, &one("a", 2)));
    between.child(&ask(2));
    between.client(&answer(2, &one("a", 2)));
    between.client(r#"{"method":"tools/list"}"#);
    between.client(r#"{"id":3,"method":"tools/lists"}"#);
    between.child(&answer(3, &one("a", 2)));
    between.client(&ask(4));
    between.child(r#"{"id":4,"error":{"code":-1,"message":"no"}}"#);
    between.child(&answer(4, &one("a", 2)));
    assert_eq!(between.known("a"), digest("a", 1));
    assert!(!between.listings.lock().awaits());
}

/// SPEC [LISTING-3].
#[test]
fn of_two_definitions_of_one_name_none_is_known() {
    let between = Between::default();
    between.list(1, &format!("[{},{}]", tool("a", 0), tool("b", 0)));
    between.list(
        2,
        &format!("[{},{}]", tool("a", 1), r#"{"name":"\u0061","v":1}"#),
    );
    assert!(!between.is_known("a"));
    assert!(between.is_known("b"));
    between.list(3, &one("a", 2));
    assert_eq!(between.known("a"), digest("a", 2));
    // Nor of one without a canonical form.
    between.list(4, r#"[{"name":"a","v":1e999}]"#);
    assert!(!between.is_known("a"));
}

/// SPEC [LISTING-2]: what cannot be read may have shown anything.
#[test]
fn what_cannot_be_read_leaves_nothing_known() {
    let lost: [&dyn Fn(&Between); 5] = [
        &|between| drop(between.child(&answer(2, "{}"))),
        &|between| drop(between.child_in(&answer(2, &one("b", 1)), false)),
        &|between| drop(between.child(r#"{"id":2,"id":2,"result":{"tools":[]}}"#)),
        &|between| drop(between.child("no JSON")),
        &|between| drop(between.child(&format!("[{},{}]", answer(2, "1"), answer(3, "[]")))),
    ];
    for lose in lost {
        let between = Between::default();
        between.list(1, &one("a", 1));
        between.client(&ask(2));
        assert!(between.is_known("a"));
        lose(&between);
        assert!(!between.is_known("a"));
        between.list(3, &one("a", 2));
        assert_eq!(between.known("a"), digest("a", 2));
    }
    // While no list is asked for, it shows none.
    let between = Between::default();
    between.list(1, &one("a", 1));
    between.child("no JSON");
    between.child_in(&answer(2, "{}"), false);
    assert!(between.is_known("a"));
}

#[test]
fn an_unreadable_answer_to_a_known_id_closes_its_request() {
    let between = Between::default();
    between.client(&ask(1));
    assert!(between.listings.lose());
    between.listings.close(&scan(&ask(1))[0].id);
    assert!(!between.listings.lose());
}

/// SPEC [LISTING-2]: the client may not have looked at the answer.
#[test]
fn a_late_answer_to_a_cancelled_request_makes_a_change_unknown() {
    let between = Between::default();
    between.list(
        1,
        &format!("[{},{},{}]", tool("a", 1), tool("b", 1), tool("c", 1)),
    );
    between.client(&ask(2));
    between.client(&cancel(2));
    let late = format!("[{},{},{}]", tool("a", 1), tool("b", 2), tool("d", 1));
    between.child(&answer(2, &late));
    assert_eq!(between.known("a"), digest("a", 1));
    assert_eq!(between.known("c"), digest("c", 1));
    assert!(!between.is_known("b") && !between.is_known("d"));
    assert!(!between.listings.lock().awaits());
    // A cancellation of something else changes nothing.
    between.client(&ask(3));
    between.client(&cancel(2));
    between.client(r#"{"method":"notifications/cancelled","params":{"requestId":"3"}}"#);
    between.child(&answer(3, &one("b", 3)));
    assert_eq!(between.known("b"), digest("b", 3));
}

/// SPEC [LISTING-2].
#[test]
fn under_an_id_that_is_reused_a_change_is_unknown() {
    for other in [ask(2), r#"{"id":2,"method":"ping"}"#.to_owned()] {
        let between = Between::default();
        between.list(1, &format!("[{},{}]", tool("a", 1), tool("b", 1)));
        between.client(&ask(2));
        between.client(&other);
        between.child(r#"{"id":2,"result":{}}"#);
        between.child(&answer(2, &format!("[{},{}]", tool("a", 2), tool("b", 1))));
        assert!(!between.is_known("a"));
        assert!(between.is_known("b"));
        assert!(!between.listings.lock().awaits());
        // After its answers the id is as good as new.
        between.list(2, &one("a", 3));
        assert_eq!(between.known("a"), digest("a", 3));
    }
}

/// SPEC [LISTING-2]: some clients take other spellings for the same id.
#[test]
fn an_answer_under_another_spelling_of_the_id_is_no_way_around() {
    for id in ["\"2\"", "2.0", "2e0"] {
        let between = Between::default();
        between.list(1, &one("a", 1));
        between.client(&ask(2));
        between.child(&format!(
            r#"{{"id":{id},"result":{{"tools":{}}}}}"#,
            one("a", 2)
        ));
        assert!(!between.is_known("a"), "{id}");
    }
    // What else is answered meanwhile does no harm.
    let between = Between::default();
    between.list(1, &one("a", 1));
    between.client(&ask(2));
    between.child(r#"{"id":7,"result":{"content":[]}}"#);
    assert!(between.is_known("a"));
    between.child(&answer(2, &one("a", 2)));
    assert_eq!(between.known("a"), digest("a", 2));
}

/// SPEC [LISTING-2]: it may ask for the list under an id that nobody saw.
#[test]
fn after_an_unreadable_request_every_answer_may_be_a_list() {
    let between = Between::default();
    between.client(r#"{"id":8,"id":9,"method":"tools/list"}"#);
    between.list(1, &format!("[{},{}]", tool("a", 1), tool("b", 1)));
    assert!(between.is_known("a"));
    between.child(&answer(9, &one("a", 2)));
    assert!(!between.is_known("a"));
    assert!(between.is_known("b"));
    // A result without tools in answer to a list says that ids are mixed up.
    let between = Between::default();
    between.list(1, &one("a", 1));
    between.client(&ask(2));
    between.child(r#"{"id":2,"result":{}}"#);
    between.child(&answer(2, &one("a", 2)));
    assert!(!between.is_known("a"));
}

#[test]
fn lists_in_a_batch_are_told_apart() {
    let between = Between {
        hidden: vec!["x"],
        ..Between::default()
    };
    between.client(&format!("[{},{}]", ask(1), ask(2)));
    let other = r#"{"id":3,"result":{"tools":[{"name":"x"}]}}"#;
    let two = format!("[{},{}]", tool("x", 1), tool("b", 1));
    let frame = format!(
        "[{} ,{other},\t{}]",
        answer(2, &two),
        answer(1, &one("x", 1))
    );
    let expected = format!(
        "[{} ,{other},\t{}]",
        answer(2, &one("b", 1)),
        answer(1, "[]")
    );
    assert_eq!(between.child(&frame), Some(expected));
    assert!(between.is_known("b"));
    assert!(!between.is_known("x"));
}

/// SPEC [LISTING-5]: what is hidden was not shown, and only from a list that
/// was asked for is anything cut.
#[test]
fn a_hidden_tool_is_cut_from_a_list_and_from_nothing_else() {
    let mut between = Between::default();
    between.list(1, &one("x", 1));
    between.hidden.push("x");
    between.client(&ask(2));
    let both = format!("[{}, {}]", tool("x", 2), tool("a", 1));
    let expected = answer(2, &format!("[ {}]", tool("a", 1)));
    assert_eq!(between.child(&answer(2, &both)), Some(expected));
    assert_eq!(between.known("x"), digest("x", 1));
    // Not an answer to a list, or not surely.
    assert_eq!(between.child(&answer(2, &both)), None);
    between.client(&ask(3));
    assert_eq!(between.child(&answer(7, &both)), None);
    between.client(r#"{"id":3,"method":"tools/call"}"#);
    assert_eq!(between.child(&answer(3, &both)), None);
    // Given up on, but still a list.
    between.client(&ask(4));
    between.client(&cancel(4));
    assert!(between.child(&answer(4, &both)).is_some());
    // Too long to be held: it goes on as it is.
    between.client(&ask(5));
    assert_eq!(between.child_in(&answer(5, &both), false), None);
    assert!(!between.is_known("a"));
}

#[test]
fn open_requests_are_bounded_and_cancelled_ones_go_first() {
    let between = Between::default();
    for id in 0..MAX_OPEN_LISTS {
        between.client(&ask(id));
    }
    between.client(&cancel(3));
    between.client(&ask(MAX_OPEN_LISTS));
    let is_open = |id: usize| {
        let id = scan(&ask(id)).remove(0).id;
        between.listings.lock().open.contains_key(&id)
    };
    assert!(is_open(0) && !is_open(3) && is_open(MAX_OPEN_LISTS));
    assert!(!between.listings.lock().wary);
    // Without a cancelled one the oldest goes, and is not forgotten quite.
    between.client(&ask(MAX_OPEN_LISTS + 1));
    assert!(!is_open(0));
    assert!(between.listings.lock().wary);
    assert_eq!(between.listings.lock().open.len(), MAX_OPEN_LISTS);
    between.child(&answer(1, &one("a", 1)));
    assert!(between.is_known("a"));
    between.child(&answer(0, &one("a", 2)));
    assert!(!between.is_known("a"));
}

#[test]
fn known_tools_are_bounded() {
    let many = |from: usize, count: usize| {
        let tools: Vec<_> = (from..from + count)
            .map(|i| tool(&format!("t{i}"), 1))
            .collect();
        format!("[{}]", tools.join(","))
    };
    let between = Between::default();
    between.list(1, &many(0, MAX_TOOLS - 1));
    between.list(2, &many(MAX_TOOLS - 1, 1));
    // The same ones again are no more.
    between.list(3, &many(5, 100));
    assert!(between.is_known("t0") && between.is_known(&format!("t{}", MAX_TOOLS - 1)));
    between.list(4, &one("another", 1));
    assert!(!between.is_known("t0"));
    assert!(between.is_known("another"));

    between.list(5, &many(0, MAX_TOOLS + 1));
    assert!(!between.is_known("t0") && !between.is_known("another"));
    between.list(6, &many(0, MAX_TOOLS));
    assert!(between.is_known("t0"));
}
