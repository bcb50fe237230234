//! `aegis recover`.

use std::path::PathBuf;
use std::process::ExitCode;

use argh::FromArgs;

use super::args::{PathArg, Verb};
use super::exit::Exit;
use super::ui::{self, Out};
use super::{Request, UsageError};
use crate::chain::recover;

/// Make a record file that a crash cut off appendable again.
///
/// Moves everything from the first row that is not whole to PATH.torn-N, and
/// says what was in it. Nothing is deleted. A file whose readable lines
/// contradict each other is left alone: no crash does that.
#[derive(FromArgs)]
#[argh(
    error_code(0, "the file can be appended to, changed or not"),
    error_code(1, "it cannot, or a usage error")
)]
pub(super) struct Args {
    /// the record file
    #[argh(positional, arg_name = "PATH")]
    path: Vec<PathArg>,
}

impl Verb for Args {
    const NAME: &'static str = "recover";
    const USAGE: &'static str = "PATH";
}

/// What was asked for.
pub(super) struct Recover {
    path: PathBuf,
}

impl TryFrom<Args> for Recover {
    type Error = UsageError;

    fn try_from(args: Args) -> Result<Self, UsageError> {
        let mut paths = args.path.into_iter();
        match (paths.next(), paths.next()) {
            (Some(path), None) if path.0 != "-" => Ok(Self {
                path: path.0.into(),
            }),
            (Some(_), None) => Err(UsageError(
                "recover needs a file that can be changed, not standard input".to_owned(),
            )),
            (None, _) => Err(UsageError("recover requires <PATH>".to_owned())),
            (Some(_), Some(_)) => Err(UsageError(
                "recover takes one PATH; call it for each".to_owned(),
            )),
        }
    }
}

impl Request for Recover {
    fn run(self) -> ExitCode {
        let mut out = Out::new();
        let exit = match recover::recover(&self.path) {
            Ok(recovery) => {
                out.line(recovery);
                Exit::Ok
            }
            Err(error) => {
                ui::error(error);
                Exit::Failed
            }
        };
        // What was done is done, told or not.
        out.end();
        exit.into()
    }
}
