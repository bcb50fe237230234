//! Policy Sets: which Calls may go on.
//!
//! A document is parsed once into an immutable [`Set`]. [`select`] says which
//! rule decides a request, a pure function of the two; [`rate`] counts Calls
//! of a window of time; [`judge`] puts the two together, and `engine` holds the
//! set that is in force and gives verdicts. [`recheck`] gives those of another
//! set on what a record holds; [`lint`] and [`explain`] speak to those who write
//! policies.

#[cfg(feature = "record")]
pub(crate) mod engine;
pub(crate) mod explain;
#[cfg_attr(
    not(feature = "record"),
    allow(dead_code, reason = "only a gate needs all of it")
)]
pub(crate) mod judge;
pub(crate) mod lint;
mod near;
pub(crate) mod parse;
#[cfg_attr(
    not(feature = "record"),
    allow(dead_code, reason = "only a gate needs all of it")
)]
pub(crate) mod rate;
pub(crate) mod recheck;
pub(crate) mod select;
pub(crate) mod set;

/// What a verdict is asked for: the axes that the caller asserts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    /// The tool's whole name.
    pub(crate) tool: &'a str,
    /// The capability asked for.
    pub(crate) capability: Option<&'a str>,
    /// Who asks.
    pub(crate) role: Option<&'a str>,
    /// The scope of rate limits. No rule can match on it.
    pub(crate) session: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// Of a caller that asserts nothing but the tool.
    #[cfg_attr(
        not(feature = "record"),
        allow(dead_code, reason = "only a gate needs all of it")
    )]
    pub(crate) fn tool(tool: &'a str) -> Self {
        Self {
            tool,
            ..Self::default()
        }
    }
}
