//! `aegis keygen`.

use std::path::PathBuf;
use std::process::ExitCode;

use argh::FromArgs;

use super::args::{PathArg, Verb};
use super::exit::Exit;
use super::ui::{self, Out};
use super::{Request, UsageError};
use crate::chain::keyfile;
use crate::wire::escape::EscapedPath;

/// Make a new signing key.
///
/// Writes a new ed25519 key to a file that only its owner can read, and prints
/// its public half: whoever verifies records passes that to
/// `aegis verify --key`.
#[derive(FromArgs)]
#[argh(
    error_code(0, "the key was written"),
    error_code(1, "it was not, or a usage error")
)]
pub(super) struct Args {
    /// where to write the key
    #[argh(option, arg_name = "PATH")]
    out: Option<PathArg>,
    /// replace the key that is there: records can then no longer be signed
    /// with it
    #[argh(switch)]
    force: bool,
}

impl Verb for Args {
    const NAME: &'static str = "keygen";
    const USAGE: &'static str = "--out PATH [--force]";
}

/// What was asked for.
pub(super) struct Keygen {
    out: PathBuf,
    force: bool,
}

impl TryFrom<Args> for Keygen {
    type Error = UsageError;

    fn try_from(args: Args) -> Result<Self, UsageError> {
        let out = args
            .out
            .ok_or_else(|| UsageError("keygen requires --out <PATH>".to_owned()))?;
        Ok(Self {
            out: super::wrap::not_stdio("--out", out)?,
            force: args.force,
        })
    }
}

impl Request for Keygen {
    fn run(self) -> ExitCode {
        let key = match keyfile::generate(&self.out, self.force) {
            Ok(key) => key,
            Err(error) => {
                ui::error(error);
                return Exit::Failed.into();
            }
        };
        let public_key = key.public_key();
        let mut out = Out::new();
        out.line(format_args!("public_key {public_key}"));
        out.line(format_args!("key_id {}", key.key_id()));
        let printed = out.finish();
        ui::say(format_args!(
            "signing key written to {}\npin records from this key with: aegis verify --key {public_key} <PATH>\n",
            EscapedPath(&self.out)
        ));
        match printed {
            Ok(()) => Exit::Ok.into(),
            Err(error) => {
                ui::error(format_args!("write standard output: {error}"));
                Exit::Failed.into()
            }
        }
    }
}
