//! Which tools records speak of, for `aegis policy check --against`.
//!
//! This is a list of names, not a verdict: whether a record holds is for
//! `aegis verify` to say.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;

use crate::input::{Input, Source};
use crate::policy::recheck::MAX_ROW_BYTES;
use crate::wire::escape::EscapedPath;
use crate::wire::spelled::{UNKNOWN_TOOL, UNREADABLE_TOOL};

/// Adds the tools of the record, or of the records of the directory, that
/// `argument` names. Returns whether a last row was torn.
///
/// # Errors
/// When it cannot be read, or is no record.
pub(super) fn read(argument: &OsString, tools: &mut BTreeSet<String>) -> Result<bool, String> {
    let source = Source::of(argument.clone());
    let failed = |path: &Path, error: io::Error| format!("read {}: {error}", EscapedPath(path));
    let name = source.name().to_owned();
    match source.resolve().map_err(|error| failed(&name, error))? {
        Input::Single(source) => rows(&source, tools).map_err(|error| failed(source.name(), error)),
        Input::Directory(directory) => {
            let mut is_torn = false;
            for segment in &directory.segments {
                let source = Source::Path(directory.path.join(segment));
                is_torn |= rows(&source, tools).map_err(|error| failed(source.name(), error))?;
            }
            Ok(is_torn)
        }
    }
}

fn rows(source: &Source, tools: &mut BTreeSet<String>) -> io::Result<bool> {
    let mut reader = BufReader::new(source.open()?.reader);
    let mut row = Vec::new();
    for number in 1_u64.. {
        row.clear();
        let read = (&mut reader)
            .take(MAX_ROW_BYTES as u64 + 1)
            .read_until(b'\n', &mut row)?;
        if read == 0 {
            break;
        }
        let fault = |what: &str| Err(io::Error::other(format!("line {number} {what}")));
        if read > MAX_ROW_BYTES {
            return fault("is longer than any line of a record");
        }
        if row.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let Ok(line) = serde_json::from_slice::<Line>(&row) else {
            if !row.ends_with(b"\n") {
                return Ok(true);
            }
            return fault("is no line of a record; see `aegis verify`");
        };
        if line.line_type == "intent" && line.cut.tool_id.is_none() {
            tools.extend(line.tool_id.filter(|tool| !STAND_INS.contains(&&**tool)));
            if tools.len() > MAX_TOOLS {
                return fault("names one tool more than can be kept");
            }
        }
    }
    Ok(false)
}

#[derive(Deserialize)]
struct Line {
    line_type: String,
    tool_id: Option<String>,
    #[serde(default)]
    cut: Cut,
}

#[derive(Default, Deserialize)]
struct Cut {
    tool_id: Option<serde::de::IgnoredAny>,
}

/// What stands in the place of a tool's name that was not there.
const STAND_INS: [&str; 2] = [UNKNOWN_TOOL, UNREADABLE_TOOL];

const MAX_TOOLS: usize = 100_000;
