//! What `aegis demo` shows and the test suite drives: a small MCP server that
//! does what it is told, misbehaviour included.

pub(crate) mod server;
