//! What `aegis demo` shows and the test suite drives: a small MCP server that
//! does what it is told, misbehaviour included.
#![cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "no verb starts it yet")
)]

pub(crate) mod server;
