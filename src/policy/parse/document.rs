//! The shape of a document: which names stand where, and with values of which
//! type. The first fault ends the reading, so a hostile document costs no more
//! than its bytes up to there.

use std::fmt::Display;
use std::str::FromStr;

use super::super::near;
use super::super::set::{Default, Limits, Position};
use super::scalar::{integer, plain_type};
use super::text::START;
use super::yaml::{Node, Nodes, Scalar};
use super::{MAX_RULES, PolicyError};
use crate::wire::escape::Escaped;

/// A document of the right shape.
#[derive(Debug, std::default::Default)]
pub(super) struct Document {
    pub(super) version: Option<Placed<u32>>,
    pub(super) default: Option<Default>,
    pub(super) rules: Vec<RuleNode>,
}

/// A value and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    pub(super) at: Position,
}

/// A rule of the right shape.
#[derive(Debug)]
pub(super) struct RuleNode {
    pub(super) id: Placed<String>,
    pub(super) action: Placed<ActionName>,
    pub(super) tool: Option<Placed<String>>,
    pub(super) capability: Option<Placed<String>>,
    pub(super) role: Option<Placed<String>>,
    pub(super) priority: i32,
    pub(super) reason: Option<Placed<String>>,
    pub(super) rate: Option<Placed<RateNode>>,
    pub(super) limits: Option<Placed<Limits>>,
}

/// What a rule says that it does.
#[derive(Clone, Copy, Debug)]
pub(super) enum ActionName {
    Allow,
    Deny,
    RateLimit,
    PendingApproval,
}

/// A window, of any numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateNode {
    pub(super) max: u32,
    pub(super) per_seconds: u64,
}

/// Reads a document.
pub(super) fn read(text: &str) -> Result<Document, PolicyError> {
    let mut reader = Reader(Nodes::of(text));
    let document = match reader.0.root()? {
        None => return Err(PolicyError::parse(START, EMPTY)),
        Some((Node::Scalar(scalar), _)) if scalar.is_null() => {
            return Err(PolicyError::parse(START, EMPTY));
        }
        Some((Node::Mapping, _)) => reader.document()?,
        Some((_, at)) => return Err(PolicyError::parse(at, NOT_A_MAPPING)),
    };
    reader.0.end()?;
    Ok(document)
}

struct Reader<'a>(Nodes<'a>);

/// A mapping of known names: what it is called, and they.
struct Shape<const N: usize> {
    what: &'static str,
    names: [&'static str; N],
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Document, PolicyError> {
        let mut document = Document::default();
        let mut seen = [None; 3];
        while let Some(name) = self.name(&DOCUMENT, &mut seen)? {
            match name {
                "version" => document.version = Some(self.number(name, u32::MIN, u32::MAX)?),
                "default" => document.default = Some(self.word(name, &DEFAULTS)?.value),
                _ => document.rules = self.rules()?,
            }
        }
        Ok(document)
    }

    fn rules(&mut self) -> Result<Vec<RuleNode>, PolicyError> {
        let (node, at) = self.0.next()?;
        match node {
            Node::List => {}
            Node::Scalar(scalar) if scalar.is_null() => {
                return Err(PolicyError::parse(
                    at,
                    "`rules` has no value; write `rules: []` for no rules",
                ));
            }
            _ => {
                return Err(PolicyError::parse(
                    at,
                    "`rules` is a list; begin each rule with `- id: `",
                ));
            }
        }
        let mut rules = Vec::new();
        loop {
            match self.0.next()? {
                (Node::End, _) => return Ok(rules),
                (_, at) if rules.len() == MAX_RULES => {
                    return Err(PolicyError::parse(
                        at,
                        format!("more than {MAX_RULES} rules, the most that a policy may have"),
                    ));
                }
                (Node::Mapping, at) => rules.push(self.rule(at)?),
                (_, at) => {
                    return Err(PolicyError::parse(
                        at,
                        "a rule is a mapping; write `- id: `, then its other fields below the `id`",
                    ));
                }
            }
        }
    }

    fn rule(&mut self, at: Position) -> Result<RuleNode, PolicyError> {
        let (mut id, mut action, mut priority) = (None, None, 0);
        let (mut tool, mut capability, mut role, mut reason) = (None, None, None, None);
        let (mut rate, mut limits) = (None, None);
        let mut seen = [None; 9];
        while let Some(name) = self.name(&RULE, &mut seen)? {
            match name {
                "id" => id = Some(self.text(name)?),
                "action" => action = Some(self.word(name, &ACTIONS)?),
                "tool" => tool = Some(self.text(name)?),
                "capability" => capability = Some(self.text(name)?),
                "role" => role = Some(self.text(name)?),
                "priority" => priority = self.number(name, i32::MIN, i32::MAX)?.value,
                "reason" => reason = Some(self.text(name)?),
                "rate" => rate = Some(self.rate()?),
                _ => limits = Some(self.limits()?),
            }
        }
        Ok(RuleNode {
            id: id.ok_or_else(|| self.missing(at, NO_ID))?,
            action: action.ok_or_else(|| self.missing(at, NO_ACTION))?,
            tool,
            capability,
            role,
            priority,
            reason,
            rate,
            limits,
        })
    }

    /// What is missing in a mapping that ended, unless it ended because a
    /// line is not indented like the others.
    fn missing(&mut self, at: Position, what: &str) -> PolicyError {
        match self.0.next() {
            Err(error) => error,
            Ok(_) => PolicyError::parse(at, what),
        }
    }

    fn rate(&mut self) -> Result<Placed<RateNode>, PolicyError> {
        let at = self.mapping("rate", "`rate: { max: 10, per_seconds: 60 }`")?;
        let (mut max, mut per_seconds) = (None, None);
        let mut seen = [None; 2];
        while let Some(name) = self.name(&RATE, &mut seen)? {
            match name {
                "max" => max = Some(self.number(name, u32::MIN, u32::MAX)?.value),
                _ => per_seconds = Some(self.number(name, u64::MIN, u64::MAX)?.value),
            }
        }
        match (max, per_seconds) {
            (Some(max), Some(per_seconds)) => Ok(Placed {
                value: RateNode { max, per_seconds },
                at,
            }),
            (None, _) => Err(self.missing(at, NO_MAX)),
            (_, None) => Err(self.missing(at, NO_PER_SECONDS)),
        }
    }

    fn limits(&mut self) -> Result<Placed<Limits>, PolicyError> {
        let at = self.mapping("limits", "`limits: { max_wall_ms: 5000 }`")?;
        let mut limits = Limits::default();
        let mut seen = [None; 3];
        while let Some(name) = self.name(&LIMITS, &mut seen)? {
            let limit = Some(self.number(name, u64::MIN, u64::MAX)?.value);
            match name {
                "max_memory_bytes" => limits.max_memory_bytes = limit,
                "max_wall_ms" => limits.max_wall_ms = limit,
                _ => limits.max_output_bytes = limit,
            }
        }
        Ok(Placed { value: limits, at })
    }

    /// Enters the mapping that is the value of `name`.
    fn mapping(&mut self, name: &str, example: &str) -> Result<Position, PolicyError> {
        match self.0.next()? {
            (Node::Mapping, at) => Ok(at),
            (Node::Scalar(scalar), at) if scalar.is_null() => Err(no_value(name, at)),
            (_, at) => Err(PolicyError::parse(
                at,
                format!("`{name}` is a mapping; write it like {example}"),
            )),
        }
    }

    /// The next name of a mapping, which stands there for the first time, or
    /// `None` at the mapping's end.
    fn name<const N: usize>(
        &mut self,
        shape: &Shape<N>,
        seen: &mut [Option<u64>; N],
    ) -> Result<Option<&'static str>, PolicyError> {
        let (scalar, at) = match self.0.next()? {
            (Node::End, _) => return Ok(None),
            (Node::Scalar(scalar), at) => (scalar, at),
            (_, at) => {
                return Err(PolicyError::parse(
                    at,
                    format!("a name of {} is a text", shape.what),
                ));
            }
        };
        let Some(place) = shape.names.iter().position(|name| *name == scalar.text) else {
            return Err(PolicyError::parse(at, unknown(shape, &scalar)));
        };
        let name = shape.names[place];
        match seen[place].replace(at.line) {
            None => Ok(Some(name)),
            Some(line) => Err(PolicyError::parse(
                at,
                format!(
                    "`{name}` stands twice in {}, first on line {line}; remove one",
                    shape.what
                ),
            )),
        }
    }

    fn text(&mut self, name: &str) -> Result<Placed<String>, PolicyError> {
        let (scalar, at) = self.scalar(name, "a text")?;
        match plain_type(&scalar.text).filter(|_| scalar.is_plain) {
            None => Ok(Placed {
                value: scalar.text.into_owned(),
                at,
            }),
            Some(_) if scalar.is_null() => Err(no_value(name, at)),
            Some(other) => Err(PolicyError::parse(
                at,
                format!(
                    "`{name}` is a text, but {text} without quotes is {other} in YAML; write \
                     \"{text}\"",
                    text = scalar.text
                ),
            )),
        }
    }

    fn number<T: FromStr + Display>(
        &mut self,
        name: &str,
        least: T,
        most: T,
    ) -> Result<Placed<T>, PolicyError> {
        let (scalar, at) = self.scalar(name, "a number")?;
        if scalar.is_null() {
            return Err(no_value(name, at));
        }
        match integer(&scalar.text).filter(|_| scalar.is_plain) {
            Some(value) => Ok(Placed { value, at }),
            None => Err(PolicyError::parse(
                at,
                format!(
                    "`{name}` is a whole number from {least} to {most}, in digits without quotes; \
                     got {}",
                    shown(&scalar)
                ),
            )),
        }
    }

    /// One of some words.
    fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Result<Placed<T>, PolicyError> {
        let (scalar, at) = self.scalar(name, "a word")?;
        if scalar.is_null() {
            return Err(no_value(name, at));
        }
        let known = words.iter().find(|(word, _)| *word == scalar.text);
        known
            .map(|(_, value)| Placed { value: *value, at })
            .ok_or_else(|| {
                let list: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                PolicyError::parse(
                    at,
                    format!(
                        "`{name}` is {}; got {}",
                        listed(&list, "or"),
                        shown(&scalar)
                    ),
                )
            })
    }

    fn scalar(&mut self, name: &str, what: &str) -> Result<(Scalar<'_>, Position), PolicyError> {
        let (other, at) = match self.0.next()? {
            (Node::Scalar(scalar), at) => return Ok((scalar, at)),
            (Node::List, at) => ("a list", at),
            (_, at) => ("a mapping", at),
        };
        let hint = match name {
            "tool" | "capability" | "role" => "write a rule for each",
            _ => "write one value",
        };
        Err(PolicyError::parse(
            at,
            format!("`{name}` is {what}, not {other}; {hint}"),
        ))
    }
}

/// A scalar as it was written, more or less.
fn shown(scalar: &Scalar<'_>) -> String {
    let text = Escaped(&scalar.text);
    if scalar.is_plain {
        format!("`{text}`")
    } else {
        format!("`\"{text}\"`")
    }
}

fn unknown<const N: usize>(shape: &Shape<N>, name: &Scalar<'_>) -> String {
    if name.text == "<<" {
        return "merge keys (`<<`) are not part of the policy language; write the fields out"
            .to_owned();
    }
    let guess = near::nearest(&name.text, shape.names.iter().copied());
    let hint = match guess {
        Some(guess) => format!("did you mean `{guess}`?"),
        None => format!("its fields are {}", listed(&shape.names, "and")),
    };
    format!(
        "unknown field `{}` of {}; {hint}",
        Escaped(&name.text),
        shape.what
    )
}

/// `a`, `b` or `c`, each in backticks.
fn listed(words: &[&str], last: &str) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((end, rest)) if !rest.is_empty() => format!("{} {last} {end}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

fn no_value(name: &str, at: Position) -> PolicyError {
    let what = match name {
        "tool" | "capability" | "role" => format!(
            "`{name}` has no value; write one, or `{name}: \"*\"` for any, or leave the line out"
        ),
        "id" | "action" | "max" | "per_seconds" => format!("`{name}` has no value; write one"),
        _ => format!("`{name}` has no value; write one, or leave it out"),
    };
    PolicyError::parse(at, what)
}

/// The version of the language.
pub(super) const VERSION: u32 = 1;

const DOCUMENT: Shape<3> = Shape {
    what: "a policy",
    names: ["version", "default", "rules"],
};

const RULE: Shape<9> = Shape {
    what: "a rule",
    names: [
        "id",
        "action",
        "tool",
        "capability",
        "role",
        "priority",
        "reason",
        "rate",
        "limits",
    ],
};

const RATE: Shape<2> = Shape {
    what: "`rate`",
    names: ["max", "per_seconds"],
};

const LIMITS: Shape<3> = Shape {
    what: "`limits`",
    names: ["max_memory_bytes", "max_wall_ms", "max_output_bytes"],
};

const DEFAULTS: [(&str, Default); 2] = [("allow", Default::Allow), ("deny", Default::Deny)];

const ACTIONS: [(&str, ActionName); 4] = [
    ("allow", ActionName::Allow),
    ("deny", ActionName::Deny),
    ("rate_limit", ActionName::RateLimit),
    ("pending_approval", ActionName::PendingApproval),
];

const EMPTY: &str = "the document is empty; the smallest policy is `default: deny` or \
                     `default: allow`";
const NOT_A_MAPPING: &str =
    "a policy is a mapping; write `default: deny`, then `rules:` and a list of rules";
const NO_ID: &str = "a rule without `id`; give it a name that no other rule has, such as `id: r1`";
const NO_ACTION: &str = "a rule without `action`; write `action: allow`, `deny`, `rate_limit` or \
                         `pending_approval`";
const NO_MAX: &str = "`rate` without `max`; say how many calls a window lets through";
const NO_PER_SECONDS: &str = "`rate` without `per_seconds`; say how long a window is";
