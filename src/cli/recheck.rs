//! `aegis recheck`.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use argh::FromArgs;

use super::args::{PathArg, Verb};
use super::exit::Exit;
use super::inputs;
use super::recheck_json::{self, MAX_UNREAD_LISTED, UnreadLine};
use super::ui::{self, Out, count};
use super::{Request, UsageError};
use crate::input::{Input, Source};
use crate::policy::parse;
use crate::policy::recheck::{By, Clause, Counts, Now, Options, Row, Told, Unread, recheck};
use crate::policy::set::Set;
use crate::wire::escape::EscapedPath;

/// Ask another policy about every call that was recorded: which would be
/// blocked, allowed or parked now.
///
/// Executes nothing and checks no signatures: run aegis verify for those.
#[derive(FromArgs)]
#[argh(
    note = "PATH is a record file, an audit directory, or - for standard input.",
    error_code(0, "every call is unchanged"),
    error_code(1, "a call is newly blocked, allowed or parked, or a usage error"),
    error_code(2, "the policy or an input could not be read"),
    error_code(3, "Indeterminate: at least one call could not be answered for")
)]
pub(super) struct Args {
    /// the policy to ask, a YAML file
    #[argh(option, arg_name = "PATH")]
    policy: Option<PathArg>,
    /// text (default) or json: one object for each record
    #[argh(option, arg_name = "text|json")]
    format: Option<String>,
    /// count the calls instead of listing them
    #[argh(switch)]
    summary: bool,
    /// what to recheck
    #[argh(positional, arg_name = "PATH")]
    paths: Vec<PathArg>,
}

impl Verb for Args {
    const NAME: &'static str = "recheck";
    const USAGE: &'static str = "--policy PATH [--format text|json] [--summary] PATH...";
}

/// What was asked for.
pub(super) struct Recheck {
    policy: PathBuf,
    form: Form,
    sources: Vec<Source>,
}

/// How results are printed.
#[derive(Clone, Copy)]
struct Form {
    json: bool,
    summary: bool,
    /// Each input has a heading.
    several: bool,
}

impl TryFrom<Args> for Recheck {
    type Error = UsageError;

    fn try_from(args: Args) -> Result<Self, UsageError> {
        let Some(policy) = args.policy else {
            return Err(UsageError("recheck requires --policy <PATH>".to_owned()));
        };
        let Source::Path(policy) = Source::of(policy.0) else {
            return Err(UsageError(
                "--policy needs a file, and - is standard input".to_owned(),
            ));
        };
        let sources = inputs::sources(args.paths, Args::NAME)?;
        Ok(Self {
            policy,
            form: Form {
                json: super::json_format(args.format.as_deref())?,
                summary: args.summary,
                several: sources.len() > 1,
            },
            sources,
        })
    }
}

impl Request for Recheck {
    fn run(self) -> ExitCode {
        let set = match parse::load(&self.policy) {
            Ok(set) => set,
            Err(error) => {
                ui::error(error);
                return Exit::Unreadable.into();
            }
        };
        let mut run = Run {
            set: &set,
            form: self.form,
            out: Out::new(),
            exit: Exit::Ok,
            options: Options::default(),
        };
        for source in self.sources {
            run.source(source);
        }
        run.finish().into()
    }
}

/// A run over all inputs.
struct Run<'s> {
    set: &'s Set,
    form: Form,
    out: Out,
    exit: Exit,
    options: Options,
}

impl Run<'_> {
    fn source(&mut self, source: Source) {
        let name = source.name().to_owned();
        match source.resolve() {
            Err(error) => {
                let block = Block::new(self.form, self.set, &mut self.out, &name);
                let end = block.failed(&error);
                self.tell(end);
            }
            Ok(Input::Single(source)) => self.record(&source),
            Ok(Input::Directory(directory)) => {
                self.form.several = true;
                inputs::note_others(&directory);
                if directory.segments.is_empty() {
                    let block = Block::new(self.form, self.set, &mut self.out, &directory.path);
                    let end = block.without_records();
                    self.tell(end);
                }
                for name in &directory.segments {
                    self.record(&Source::Path(directory.path.join(name)));
                }
            }
        }
    }

    fn record(&mut self, source: &Source) {
        let mut block = Block::new(self.form, self.set, &mut self.out, source.name());
        let read = inputs::read(source, &self.options.progress, |reader| {
            recheck(reader, self.set, &self.options, &mut |told| {
                block.take(told)
            })
        });
        let end = match read {
            Ok(()) => block.ended(),
            Err(error) => block.failed(&error),
        };
        self.tell(end);
    }

    fn tell(&mut self, end: Exit) {
        self.exit = self.exit.first_of(end, ORDER);
    }

    fn finish(self) -> Exit {
        match self.out.end() {
            true => self.exit,
            false => Exit::Unreadable,
        }
    }
}

/// What is printed of one input.
struct Block<'s, 'o> {
    form: Form,
    set: &'s Set,
    out: &'o mut Out,
    name: &'o Path,
    /// Something was printed.
    begun: bool,
    tally: Tally<'s>,
}

/// What came of one input.
#[derive(Default)]
pub(super) struct Tally<'s> {
    pub(super) counts: Counts,
    /// The changes by what decides now, rules by their ids.
    by_rule: HashMap<&'s str, Counts>,
    by_default: Counts,
    by_wrap: Counts,
    /// Rows that were not read.
    pub(super) unread: u64,
    /// The first of them.
    pub(super) unread_listed: Vec<UnreadLine>,
    /// Calls that no set was there to judge.
    without_policy: u64,
}

impl<'s, 'o> Block<'s, 'o> {
    fn new(form: Form, set: &'s Set, out: &'o mut Out, name: &'o Path) -> Self {
        Self {
            form,
            set,
            out,
            name,
            begun: false,
            tally: Tally::default(),
        }
    }

    fn take(&mut self, told: Told<'s>) {
        match told {
            Told::Row(row) => {
                self.tally.add(&row);
                if !self.form.summary {
                    self.row(&row);
                }
            }
            Told::Unread(unread) => self.unread(unread),
        }
    }

    fn row(&mut self, row: &Row<'_>) {
        let is_first = self.begin();
        if !self.form.json {
            return self.out.line(row);
        }
        if !is_first {
            self.out.text(",");
        }
        self.out.text(recheck_json::row(row));
    }

    fn unread(&mut self, unread: Unread) {
        self.tally.unread += 1;
        if self.tally.unread > MAX_UNREAD_LISTED as u64 {
            return;
        }
        let unread = UnreadLine {
            line: unread.line,
            code: unread.why.code(),
            text: unread.why.to_string(),
        };
        let UnreadLine { line, text, .. } = &unread;
        ui::warning(format_args!("{}line {line} {text}", self.heading()));
        self.tally.unread_listed.push(unread);
    }

    /// What a row on standard error begins with.
    fn heading(&self) -> String {
        if self.form.several {
            format!("{}: ", EscapedPath(self.name))
        } else {
            String::new()
        }
    }

    /// Prints what stands before the first row, and says whether this is it.
    fn begin(&mut self) -> bool {
        if self.begun {
            return false;
        }
        self.begun = true;
        if self.form.json {
            let rows = !self.form.summary;
            self.out
                .text(recheck_json::beginning(self.name, self.set, rows));
        } else if self.form.several {
            self.out
                .line(format_args!("input {}", EscapedPath(self.name)));
        }
        true
    }

    /// The input was read to its end.
    fn ended(mut self) -> Exit {
        let more = self.tally.unread.saturating_sub(MAX_UNREAD_LISTED as u64);
        if more > 0 {
            ui::warning(format_args!(
                "{}{} not read",
                self.heading(),
                count(more, "more line was", "more lines were")
            ));
        }
        if self.tally.without_policy > 0 {
            ui::note(format_args!(
                "{}{} recorded without a policy: what was allowed there was relayed, not judged",
                self.heading(),
                count(self.tally.without_policy, "call was", "calls were")
            ));
        }
        let exit = self.tally.exit();
        self.end(exit, None);
        exit
    }

    /// It was a directory without one.
    fn without_records(mut self) -> Exit {
        let why = "no record files: nothing was rechecked";
        ui::warning(format_args!("{}: {why}", EscapedPath(self.name)));
        self.end(Exit::Indeterminate, Some(why.to_owned()));
        Exit::Indeterminate
    }

    /// The input could not be read, or not to its end.
    fn failed(mut self, error: &io::Error) -> Exit {
        ui::error(format_args!("read {}: {error}", EscapedPath(self.name)));
        if self.form.json {
            self.end(Exit::Unreadable, Some(error.to_string()));
        }
        Exit::Unreadable
    }

    fn end(&mut self, exit: Exit, error: Option<String>) {
        self.begin();
        if self.form.json {
            let end = recheck_json::end(self.set, &self.tally, self.form.summary, exit, error);
            return self.out.line(end);
        }
        if self.form.summary {
            self.summary();
        }
    }

    fn summary(&mut self) {
        for (by, moved) in self.tally.moved(self.set) {
            let rule = by.rule().map_or_else(String::new, |id| format!(" {id}"));
            self.out.line(format_args!(
                "newly_blocked {} newly_allowed {} newly_parked {} by {}{rule}",
                moved.newly_blocked,
                moved.newly_allowed,
                moved.newly_parked,
                by.kind()
            ));
        }
        let counts = self.tally.counts;
        self.out.line(format_args!(
            "summary calls {} unchanged {} newly_blocked {} newly_allowed {} newly_parked {} indeterminate {} unread {}",
            counts.calls,
            counts.unchanged,
            counts.newly_blocked,
            counts.newly_allowed,
            counts.newly_parked,
            counts.indeterminate,
            self.tally.unread
        ));
    }
}

impl<'s> Tally<'s> {
    fn add(&mut self, row: &Row<'s>) {
        self.counts.add(row.clause);
        self.without_policy += u64::from(row.had_no_policy);
        let is_change = !matches!(row.clause, Clause::Unchanged(_) | Clause::Indeterminate(_));
        if let Some(Now { by, .. }) = row.now
            && is_change
        {
            let counts = match by {
                By::Rule(rule) => self.by_rule.entry(&rule.id).or_default(),
                By::Default => &mut self.by_default,
                By::Wrap => &mut self.by_wrap,
            };
            counts.add(row.clause);
        }
    }

    /// The changes by what decides them: rules in the order of their
    /// declaration, the default, and what no set decides.
    pub(super) fn moved(&self, set: &'s Set) -> Vec<(By<'s>, Counts)> {
        let rules = set.rules().iter().filter_map(|rule| {
            let moved = self.by_rule.get(rule.id.as_str())?;
            Some((By::Rule(rule), *moved))
        });
        let others = [(By::Default, self.by_default), (By::Wrap, self.by_wrap)];
        let others = others.into_iter().filter(|(_, moved)| moved.calls > 0);
        rules.chain(others).collect()
    }

    fn exit(&self) -> Exit {
        if self.unread > 0 || self.counts.indeterminate > 0 {
            Exit::Indeterminate
        } else if self.counts.changed() > 0 {
            Exit::Failed
        } else {
            Exit::Ok
        }
    }
}

/// Of several ends the first of these is the process's (SPEC §14.9).
const ORDER: [Exit; 3] = [Exit::Unreadable, Exit::Indeterminate, Exit::Failed];
