//! What an answer to `tools/list` shows of the tools, and the same answer
//! without some of them.
//!
//! The frame has been read strictly before: it is JSON with no member twice in
//! one object, so what is found here is what any peer finds.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::digest::{Digest, ToolDefinition};
use crate::wire::jcs;

/// What an answer says of the tools.
#[derive(Debug)]
pub(super) enum Said<'a> {
    /// Nothing: it is an error.
    Error,
    /// Nothing, though it is a result.
    Nothing,
    /// Something that is no list, so who knows how the client reads it.
    Unclear,
    /// These.
    Tools(Vec<Listed<'a>>),
}

/// An element of `result.tools`, whatever it is.
#[derive(Debug)]
pub(super) struct Listed<'a> {
    /// Its `name`, unescaped; none when it is no object, or one without a
    /// `name` that is a string. No call can mean such an element.
    pub(super) name: Option<Cow<'a, str>>,
    definition: &'a str,
    /// Where it stands in the frame.
    span: Range<usize>,
}

impl Listed<'_> {
    /// SHA-256 of the full canonical form of the definition. `None` when it
    /// has no such form, or is longer than [`MAX_DEFINITION_BYTES`].
    pub(super) fn digest(&self) -> Option<Digest<ToolDefinition>> {
        if self.definition.len() > MAX_DEFINITION_BYTES {
            return None;
        }
        jcs::canonical(self.definition).map(|form| Digest::of(&form))
    }
}

/// The messages of a frame that is one message or a batch of them, each with
/// the bytes it has there. `None` when it is neither.
pub(super) fn messages(frame: &[u8]) -> Option<Vec<&RawValue>> {
    match frame.trim_ascii_start().first() {
        Some(b'[') => serde_json::from_slice(frame).ok(),
        _ => serde_json::from_slice(frame).map(|only| vec![only]).ok(),
    }
}

/// What `message`, one of [`messages`] of `frame`, says of the tools.
pub(super) fn said<'a>(frame: &[u8], message: &'a RawValue) -> Said<'a> {
    let Some(response) = object::<Response<'_>>(message) else {
        return Said::Unclear;
    };
    let Some(result) = response.result else {
        return Said::Error;
    };
    let Some(tools) = object::<Shown<'_>>(result).and_then(|shown| shown.tools) else {
        return Said::Nothing;
    };
    let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(tools.get()) else {
        return Said::Unclear;
    };
    let listed = elements.into_iter().map(|element| {
        let definition = element.get();
        let start = definition.as_ptr().addr() - frame.as_ptr().addr();
        Listed {
            name: object::<Named<'_>>(element).map(|named| named.name),
            definition,
            span: start..start + definition.len(),
        }
    });
    Said::Tools(listed.collect())
}

/// The bytes to cut out of `frame` so that those of `tools` that are `hidden`
/// are gone from their array: each element, and one comma for each as long as
/// there is one. In the order of the frame.
pub(super) fn cuts(
    frame: &[u8],
    tools: &[Listed<'_>],
    hidden: impl Fn(&str) -> bool,
) -> Vec<Range<usize>> {
    let hides = |tool: &Listed<'_>| tool.name.as_deref().is_some_and(&hidden);
    let hides: Vec<_> = tools.iter().map(hides).collect();
    let last_kept = hides.iter().rposition(|hidden| !hidden);
    let mut cuts = Vec::new();
    for (i, pair) in tools.windows(2).enumerate() {
        let (tool, next) = (&pair[0].span, &pair[1].span);
        if hides[i] {
            cuts.push(tool.clone());
        }
        // The comma behind, or, where nothing is kept behind, the one before.
        let goes = match last_kept {
            Some(last) if i < last => hides[i],
            _ => true,
        };
        let between = &frame[tool.end..next.start];
        if let (true, Some(comma)) = (goes, memchr::memchr(b',', between)) {
            cuts.push(tool.end + comma..tool.end + comma + 1);
        }
    }
    if let (Some(true), Some(tool)) = (hides.last(), tools.last()) {
        cuts.push(tool.span.clone());
    }
    cuts
}

/// `frame` without `cuts`, which are in its order.
pub(super) fn without(frame: &[u8], cuts: &[Range<usize>]) -> Vec<u8> {
    let mut rest = Vec::with_capacity(frame.len());
    let mut at = 0;
    for cut in cuts {
        rest.extend_from_slice(&frame[at..cut.start]);
        at = cut.end;
    }
    rest.extend_from_slice(&frame[at..]);
    rest
}

/// The members of an object; a derived reader would take an array for one.
fn object<'a, T: Deserialize<'a>>(value: &'a RawValue) -> Option<T> {
    let is_object = value.get().starts_with('{');
    is_object
        .then(|| serde_json::from_str(value.get()).ok())
        .flatten()
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Shown<'a> {
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// Bytes of the longest definition that is hashed: its canonical form takes a
/// multiple of them in memory for a while.
pub(super) const MAX_DEFINITION_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests;
