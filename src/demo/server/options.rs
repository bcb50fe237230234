//! The flags of the hidden verb.

use std::ffi::OsString;
use std::path::PathBuf;

/// What the server should do besides answering properly.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerOptions {
    /// File that gets one line for each `tools/call` before it is answered.
    pub(crate) ledger: Option<PathBuf>,
    /// Tools on one page of `tools/list`; all of them without it.
    pub(crate) page_size: Option<usize>,
    /// Keep running after stdin has ended.
    pub(crate) ignore_eof: bool,
    /// Survive SIGTERM.
    pub(crate) ignore_sigterm: bool,
    /// Exit 0 after this many answer frames, whatever is still open.
    pub(crate) exit_after: Option<u64>,
    /// Exit code of the ordinary end, after stdin has ended.
    pub(crate) exit_code: u8,
    /// Start a `sleep` of this many seconds that inherits stdout and stderr,
    /// and write `grandchild PID` to stderr.
    pub(crate) grandchild_secs: Option<u64>,
    /// Put the grandchild into a process group of its own.
    pub(crate) detach_grandchild: bool,
    /// Pause before the first read.
    pub(crate) slow_start_ms: u64,
    /// Never read stdin, and keep it open.
    pub(crate) read_nothing: bool,
    /// Write notifications as fast as possible until stdout closes.
    pub(crate) flood: bool,
    /// Write nothing more once stdin has ended, and do not wait for calls.
    pub(crate) no_answer_after_eof: bool,
}

/// Reads the flags that follow the hidden verb.
///
/// # Errors
/// A text for the user: the flag is unknown, given twice, lacks its value or
/// has one that cannot be read.
pub(crate) fn parse(args: &[OsString]) -> Result<ServerOptions, String> {
    let mut options = ServerOptions::default();
    let mut seen: Vec<&str> = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let flag = arg
            .to_str()
            .ok_or_else(|| format!("unknown flag `{}`", arg.display()))?;
        if seen.contains(&flag) {
            return Err(format!("`{flag}` is given twice"));
        }
        seen.push(flag);
        let mut value = || rest.next().ok_or_else(|| format!("`{flag}` needs a value"));
        match flag {
            "--ledger" => options.ledger = Some(PathBuf::from(value()?)),
            "--page-size" => options.page_size = Some(number(flag, value()?, 1, MAX_PAGE)?),
            "--ignore-eof" => options.ignore_eof = true,
            "--ignore-sigterm" => options.ignore_sigterm = true,
            "--exit-after" => options.exit_after = Some(number(flag, value()?, 1, u64::MAX)?),
            "--exit-code" => options.exit_code = number(flag, value()?, 0, u8::MAX)?,
            "--spawn-grandchild" => {
                options.grandchild_secs = Some(number(flag, value()?, 0, MAX_PAUSE_SECS)?);
            }
            "--detach-grandchild" => options.detach_grandchild = true,
            "--slow-start" => {
                options.slow_start_ms = number(flag, value()?, 0, MAX_PAUSE_SECS * 1000)?;
            }
            "--read-nothing" => options.read_nothing = true,
            "--flood" => options.flood = true,
            "--no-answer-after-eof" => options.no_answer_after_eof = true,
            _ => return Err(format!("unknown flag `{flag}`")),
        }
    }
    Ok(options)
}

fn number<N>(flag: &str, value: &OsString, least: N, most: N) -> Result<N, String>
where
    N: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    value
        .to_str()
        .and_then(|text| text.parse().ok())
        .filter(|number| (&least..=&most).contains(&number))
        .ok_or_else(|| {
            format!(
                "`{flag}` needs a number from {least} to {most}, not `{}`",
                value.display()
            )
        })
}

const MAX_PAGE: usize = 10_000;
const MAX_PAUSE_SECS: u64 = 3600;

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<ServerOptions, String> {
        parse(&args.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn no_flags_ask_for_nothing() {
        assert_eq!(parsed(&[]), Ok(ServerOptions::default()));
    }

    #[test]
    fn every_flag_is_read() {
        let all = "--ledger /tmp/l --page-size 3 --ignore-eof --ignore-sigterm --exit-after 2 \
                   --exit-code 7 --spawn-grandchild 4 --detach-grandchild --slow-start 5 \
                   --read-nothing --flood --no-answer-after-eof";
        let expected = ServerOptions {
            ledger: Some(PathBuf::from("/tmp/l")),
            page_size: Some(3),
            ignore_eof: true,
            ignore_sigterm: true,
            exit_after: Some(2),
            exit_code: 7,
            grandchild_secs: Some(4),
            detach_grandchild: true,
            slow_start_ms: 5,
            read_nothing: true,
            flood: true,
            no_answer_after_eof: true,
        };
        let args: Vec<&str> = all.split_whitespace().collect();
        assert_eq!(parsed(&args), Ok(expected));
    }

    #[test]
    fn a_bad_flag_is_named() {
        for (args, error) in [
            (&["--what"][..], "unknown flag `--what`"),
            (&["--flood", "--flood"], "`--flood` is given twice"),
            (&["--ledger"], "`--ledger` needs a value"),
            (
                &["--exit-code", "256"],
                "`--exit-code` needs a number from 0 to 255, not `256`",
            ),
            (
                &["--page-size", "0"],
                "`--page-size` needs a number from 1 to 10000, not `0`",
            ),
        ] {
            assert_eq!(parsed(args), Err(error.to_owned()));
        }
    }

    #[test]
    fn pauses_are_bounded() {
        assert!(parsed(&["--spawn-grandchild", "3600", "--slow-start", "3600000"]).is_ok());
        assert!(parsed(&["--spawn-grandchild", "3601"]).is_err());
        assert!(parsed(&["--slow-start", "3600001"]).is_err());
    }
}
