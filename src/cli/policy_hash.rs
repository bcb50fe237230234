//! `aegis policy hash`.

use std::path::PathBuf;
use std::process::ExitCode;

use argh::FromArgs;
use serde::Serialize;

use super::args::{PathArg, Verb};
use super::exit::Exit;
use super::ui::Out;
use super::{Request, UsageError, policy};
use crate::wire::escape::EscapedPath;

/// Print the hash of a policy.
///
/// The hash is the `policy_set_hash` that records name. It is of what the
/// policy means, not of its text: comments and layout do not move it.
#[derive(FromArgs)]
#[argh(
    error_code(0, "the hash was printed"),
    error_code(1, "a usage error"),
    error_code(2, "the policy cannot be read, or is none")
)]
pub(super) struct Args {
    /// print the bytes that the hash is of, instead of it
    #[argh(switch)]
    projection: bool,
    /// text (default) or json
    #[argh(option, arg_name = "FORMAT")]
    format: Option<String>,
    /// the policy file
    #[argh(positional, arg_name = "POLICY")]
    policy: Vec<PathArg>,
}

impl Verb for Args {
    const NAME: &'static str = "policy hash";
    const USAGE: &'static str = "[--projection] [--format text|json] POLICY";
}

/// What was asked for.
pub(super) struct Hash {
    policy: PathBuf,
    projection: bool,
    json: bool,
}

impl TryFrom<Args> for Hash {
    type Error = UsageError;

    fn try_from(args: Args) -> Result<Self, UsageError> {
        Ok(Self {
            json: super::json_format(args.format.as_deref())?,
            projection: args.projection,
            policy: policy::only(Args::NAME, args.policy)?,
        })
    }
}

impl Request for Hash {
    fn run(self) -> ExitCode {
        let set = match policy::load(&self.policy, self.json.then_some(SCHEMA)) {
            Ok(set) => set,
            Err(exit) => return exit,
        };
        let mut out = Out::new();
        if self.json {
            out.line(policy::json(&Object {
                schema: SCHEMA,
                policy: EscapedPath(&self.policy).to_string(),
                exit: Exit::Ok.code(),
                policy_set_hash: set.hash().to_string(),
                projection: self.projection.then(|| set.projection()),
            }));
        } else if self.projection {
            // No byte more than what is hashed.
            out.text(set.projection());
        } else {
            out.line(set.hash());
        }
        policy::end(out, Exit::Ok)
    }
}

#[derive(Serialize)]
struct Object {
    schema: &'static str,
    policy: String,
    exit: u8,
    policy_set_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    projection: Option<String>,
}

const SCHEMA: &str = "aegis.policy-hash.v1";
