//! From the process's arguments to what argh reads, and back.
//!
//! argh takes only UTF-8 and sees an option in everything that begins with a
//! dash. Arguments that are not UTF-8, and `-` itself, are handed to it under
//! a prefix, which [`PathArg`] takes off again.

use std::ffi::OsString;
use std::path::Path;

use argh::{FromArgValue, FromArgs};

use crate::wire::escape::{Escaped, EscapedPath};
use crate::wire::hex;

/// A path, or `-`, of whatever bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathArg(pub(super) OsString);

impl FromArgValue for PathArg {
    fn from_arg_value(value: &str) -> Result<Self, String> {
        if value.is_empty() {
            return Err("a path is not empty".to_owned());
        }
        let Some(encoded) = value.strip_prefix(PREFIX) else {
            return Ok(Self(value.into()));
        };
        let digits: Vec<u8> = encoded.bytes().collect();
        let bytes = digits
            .chunks(2)
            .map(|pair| {
                std::str::from_utf8(pair)
                    .ok()
                    .and_then(|p| u8::from_str_radix(p, 16).ok())
            })
            .collect::<Option<Vec<u8>>>()
            .ok_or("not a path")?;
        os_string(bytes).map(Self)
    }
}

/// An option's value as it was typed.
pub(super) fn typed(value: &str) -> String {
    match PathArg::from_arg_value(value) {
        Ok(PathArg(typed)) => Escaped(&typed.to_string_lossy()).to_string(),
        Err(_) => Escaped(value).to_string(),
    }
}

/// What stopped argh: a request for help, or a usage error.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Help(String),
    Usage(String),
}

/// The arguments of one verb. Their help, and nothing else, says what they
/// are.
pub(super) trait Verb: FromArgs {
    /// The verb.
    const NAME: &'static str;
    /// What follows the verb in the first line of its help.
    const USAGE: &'static str;
}

/// Reads the arguments of a verb.
pub(super) fn parse<T: Verb>(args: &[OsString]) -> Result<T, Stop> {
    let asks_for_help = |arg: &OsString| arg == "--help" || arg == "-h";
    if let [only] = args
        && asks_for_help(only)
    {
        return Err(Stop::Help(help::<T>()));
    }
    if args
        .iter()
        .take_while(|arg| *arg != "--")
        .any(asks_for_help)
    {
        // A file of that name behind a wildcard must not turn a check green.
        return Err(Stop::Usage(
            "--help is only for itself, without other arguments".to_owned(),
        ));
    }
    let encoded = encode_all(args)?;
    let encoded: Vec<&str> = encoded.iter().map(String::as_str).collect();
    T::from_args(&["aegis", T::NAME], &encoded).map_err(|stop| match stop.status {
        Ok(()) => Stop::Help(tidy::<T>(&stop.output)),
        Err(()) => Stop::Usage(lines_escaped(stop.output.trim_end())),
    })
}

/// An argument that argh quotes may hold anything.
fn lines_escaped(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| Escaped(line).to_string()).collect();
    lines.join("\n")
}

/// The help of a verb.
pub(super) fn help<T: Verb>() -> String {
    match T::from_args(&["aegis", T::NAME], &["--help"]) {
        Err(stop) => tidy::<T>(&stop.output),
        Ok(_) => String::new(),
    }
}

/// Help as argh makes it, in lines of at most [`COLUMNS`], with a first line
/// that shows what must be given and what may.
fn tidy<T: Verb>(help: &str) -> String {
    let usage = format!("Usage: aegis {} {}", T::NAME, T::USAGE);
    let mut text = format!("{}\n", usage.trim_end());
    for line in help.lines().skip(1) {
        let indent = line.len() - line.trim_start().len();
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            let width = word.trim_end().chars().count();
            if column > indent && column + width > COLUMNS {
                text.truncate(text.trim_end_matches(' ').len());
                text.push('\n');
                text.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            }
            text.push_str(word);
            column += word.chars().count();
        }
        text.push('\n');
    }
    text
}

/// Splits off what follows the first `--`.
#[cfg(feature = "record")]
pub(super) fn split_command(args: &[OsString]) -> (&[OsString], Option<&[OsString]>) {
    match args.iter().position(|arg| arg == "--") {
        Some(at) => (&args[..at], Some(&args[at + 1..])),
        None => (args, None),
    }
}

fn encode_all(args: &[OsString]) -> Result<Vec<String>, Stop> {
    let mut encoded = Vec::with_capacity(args.len());
    let (own, paths) = match args.iter().position(|arg| arg == "--") {
        Some(at) => args.split_at(at),
        None => (args, &[][..]),
    };
    let mut may_be_value = false;
    for arg in own {
        let bytes = arg.as_encoded_bytes();
        // Under the prefix it would pass for a path.
        // Nor is one with a control character, which could forge a line.
        let is_odd = arg
            .to_str()
            .is_none_or(|text| text.contains(char::is_control));
        if is_odd && bytes.starts_with(b"-") && !may_be_value {
            let shown = EscapedPath(Path::new(arg));
            return Err(Stop::Usage(format!("Unrecognized argument: {shown}")));
        }
        may_be_value = bytes.starts_with(b"--") && !bytes.contains(&b'=');
        encode(arg, &mut encoded);
    }
    for path in paths {
        encode_whole(path, &mut encoded);
    }
    Ok(encoded)
}

fn encode(arg: &OsString, out: &mut Vec<String>) {
    match arg.to_str().and_then(|text| text.split_once('=')) {
        Some((option, value)) if option.starts_with("--") => {
            out.push(option.to_owned());
            encode_whole(&value.into(), out);
        }
        _ => encode_whole(arg, out),
    }
}

fn encode_whole(arg: &OsString, out: &mut Vec<String>) {
    match arg.to_str() {
        // argh would take the bare word for a call for help.
        Some(text) if !matches!(text, "-" | "help") && !text.starts_with(PREFIX) => {
            out.push(text.to_owned());
        }
        _ => {
            let hex = hex::Hex(arg.as_encoded_bytes());
            out.push(format!("{PREFIX}{hex}"));
        }
    }
}

#[cfg(unix)]
fn os_string(bytes: Vec<u8>) -> Result<OsString, String> {
    use std::os::unix::ffi::OsStringExt as _;
    Ok(OsString::from_vec(bytes))
}

#[cfg(not(unix))]
fn os_string(bytes: Vec<u8>) -> Result<OsString, String> {
    String::from_utf8(bytes)
        .map(Into::into)
        .map_err(|_| "a path that is not Unicode".to_owned())
}

const COLUMNS: usize = 80;

/// A private-use character that no path begins with by accident; one that
/// does is encoded too.
const PREFIX: char = '\u{f8ff}';

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(arg: OsString) {
        let mut encoded = Vec::new();
        encode(&arg, &mut encoded);
        assert_eq!(encoded.len(), 1);
        assert!(encoded[0] != "-");
        assert_eq!(PathArg::from_arg_value(&encoded[0]), Ok(PathArg(arg)));
    }

    #[test]
    fn every_argument_survives() {
        for arg in ["a", "-", "help", "\u{f8ff}2d", "a=b", "é"] {
            round_trip(arg.into());
        }
        #[cfg(unix)]
        round_trip(os_string(vec![b'a', 0xff, b'\n']).expect("unix"));
    }

    fn encoded(args: &[OsString]) -> Vec<String> {
        encode_all(args).unwrap()
    }

    #[test]
    fn an_option_may_be_joined_to_its_value() {
        let args = ["--trust-store=a=b".into(), "--".into(), "--c=d".into()];
        assert_eq!(encoded(&args), ["--trust-store", "a=b", "--", "--c=d"]);
    }

    /// SPEC [CLI-2].
    #[test]
    #[cfg(unix)]
    fn an_option_of_any_bytes_is_no_path() {
        let odd = os_string(b"--\xff".to_vec()).unwrap();
        let stop = Stop::Usage(r"Unrecognized argument: --\xff".to_owned());
        assert_eq!(encode_all(&["a".into(), odd.clone()]), Err(stop));
        for before in ["--", "--out"] {
            assert_eq!(encoded(&[before.into(), odd.clone()]).len(), 2);
        }
    }
}
