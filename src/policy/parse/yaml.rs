//! The YAML of a document as a row of nodes, without all that a policy has no
//! use for: anchors, aliases, tags, directives, further documents.

use std::borrow::Cow;

use granit_parser::{self, ErrorKind, Event, Marker, Parser, ScalarStyle, Span, StrInput};

use super::super::set::Position;
use super::PolicyError;
use super::scalar::is_null;
use super::text::{self, START};
use crate::wire::escape::Escaped;

/// The nodes of a document, in their order.
pub(super) struct Nodes<'a> {
    parser: Parser<'a, StrInput<'a>>,
    text: &'a str,
    depth: usize,
}

/// A node, or the end of the list or mapping that was entered last.
pub(super) enum Node<'a> {
    Scalar(Scalar<'a>),
    List,
    Mapping,
    End,
}

/// A scalar.
pub(super) struct Scalar<'a> {
    pub(super) text: Cow<'a, str>,
    /// Written without quotes, so that its text alone says what it is.
    pub(super) is_plain: bool,
}

impl Scalar<'_> {
    pub(super) fn is_null(&self) -> bool {
        self.is_plain && is_null(&self.text)
    }
}

impl<'a> Nodes<'a> {
    /// The nodes of `text`.
    pub(super) fn of(text: &'a str) -> Self {
        let mut options = granit_parser::options! {
            strict_indentation: true,
            disallow_directives: true,
            flow_nesting_limit: MAX_DEPTH,
            block_nesting_limit: MAX_DEPTH,
        };
        options.set_emit_comments(false);
        Self {
            parser: Parser::new_from_str_with_options(text, options),
            text,
            depth: 0,
        }
    }

    /// The first node, if there is one.
    pub(super) fn root(&mut self) -> Result<Option<(Node<'a>, Position)>, PolicyError> {
        loop {
            match self.event()? {
                Some((Event::StreamStart, _)) => {}
                Some((Event::DocumentStart(..), _)) => return self.next().map(Some),
                _ => return Ok(None),
            }
        }
    }

    /// The next node.
    pub(super) fn next(&mut self) -> Result<(Node<'a>, Position), PolicyError> {
        let Some((event, span)) = self.event()? else {
            return Err(PolicyError::parse(START, "the document breaks off"));
        };
        let at = position(&span.start);
        let tag_at = span.tag_span().map(|span| position(&span.start));
        let (node, anchor, tag) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = style == ScalarStyle::Plain;
                match style {
                    ScalarStyle::DoubleQuoted => self.check_escapes(&span)?,
                    ScalarStyle::Literal | ScalarStyle::Folded if text.ends_with('\n') => {
                        self.check_line_end(&span)?;
                    }
                    _ => {}
                }
                (Node::Scalar(Scalar { text, is_plain }), anchor, tag)
            }
            Event::SequenceStart(_, anchor, tag) => (Node::List, anchor, tag),
            Event::MappingStart(_, anchor, tag) => (Node::Mapping, anchor, tag),
            Event::SequenceEnd | Event::MappingEnd => (Node::End, 0, None),
            _ => return Err(PolicyError::parse(at, NO_ANCHORS)),
        };
        if anchor != 0 {
            return Err(PolicyError::parse(at, NO_ANCHORS));
        }
        if tag.is_some() {
            return Err(PolicyError::parse(tag_at.unwrap_or(at), NO_TAGS));
        }
        match node {
            Node::List | Node::Mapping => self.depth += 1,
            Node::End => self.depth = self.depth.saturating_sub(1),
            Node::Scalar(_) => {}
        }
        if self.depth > MAX_DEPTH {
            return Err(PolicyError::parse(at, TOO_DEEP));
        }
        Ok((node, at))
    }

    /// That no escape of a text in double quotes is half a character.
    fn check_escapes(&self, span: &Span) -> Result<(), PolicyError> {
        let Some(range) = span.byte_range() else {
            return Ok(());
        };
        let start = range.start;
        let source = self.text.get(range).unwrap_or_default();
        match text::surrogate_escape(source) {
            Some(at) => Err(PolicyError::parse(
                text::position(self.text, start + at),
                HALF_A_CHARACTER,
            )),
            None => Ok(()),
        }
    }

    /// That the line end of a text in a block is there, and not the end of the
    /// file in its place, which only some readers take for one.
    fn check_line_end(&self, span: &Span) -> Result<(), PolicyError> {
        let is_last = span
            .byte_range()
            .is_some_and(|range| range.end >= self.text.len());
        if is_last && !self.text.ends_with('\n') {
            let end = text::position(self.text, self.text.len());
            return Err(PolicyError::parse(end, NO_LINE_END));
        }
        Ok(())
    }

    /// That nothing follows the root.
    pub(super) fn end(&mut self) -> Result<(), PolicyError> {
        while let Some((event, span)) = self.event()? {
            if let Event::DocumentStart(..) = event {
                return Err(PolicyError::parse(position(&span.start), ONE_DOCUMENT));
            }
        }
        Ok(())
    }

    fn event(&mut self) -> Result<Option<(Event<'a>, Span)>, PolicyError> {
        let event = self.parser.next().transpose();
        event.map_err(|error| PolicyError::parse(position(error.marker()), words(error.kind())))
    }
}

fn position(marker: &Marker) -> Position {
    Position {
        line: marker.line() as u64,
        column: marker.col() as u64 + 1,
    }
}

/// What is wrong with the YAML, and what to do.
fn words(kind: &ErrorKind) -> String {
    let words = match kind {
        ErrorKind::UnknownAnchor => NO_ANCHORS,
        ErrorKind::MissingAnchorOrAliasName => {
            "`*` or `&` without quotes; write `\"*\"` for any, or leave the axis out"
        }
        ErrorKind::UndeclaredTagHandle
        | ErrorKind::ExpectedTagBang
        | ErrorKind::InvalidTagTerminator
        | ErrorKind::UnclosedVerbatimTag => NO_TAGS,
        ErrorKind::DirectiveDisallowed => "a line that begins with `%`; a policy has no directives",
        ErrorKind::RecursionLimitExceeded => TOO_DEEP,
        ErrorKind::UnclosedQuotedScalar | ErrorKind::DocumentIndicatorInQuotedScalar => {
            "a quotation mark opens here and is never closed"
        }
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping => "a `{` or `[` is never closed",
        ErrorKind::MismatchedFlowCollectionEnd { .. } | ErrorKind::MisplacedFlowCollectionEnd => {
            "a `}` or `]` closes nothing that is open"
        }
        ErrorKind::UnknownQuotedScalarEscape => {
            "unknown escape in double quotes; write `\\\\` for a backslash, or use single quotes"
        }
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => {
            "a `:` where no name may stand; indent the line like those that it belongs with, or \
             put a value that has a `:` in quotes"
        }
        ErrorKind::SimpleKeyExpected => "a `:` is missing after a name",
        ErrorKind::InvalidIndentation
        | ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::InvalidFlowScalarIndent => {
            "this line is not indented like those that it belongs with"
        }
        ErrorKind::InvalidQuotedScalarIndent => {
            "a text in quotes goes on here; close the quotes, or indent the line"
        }
        ErrorKind::InvalidQuotedScalarHexEscape
        | ErrorKind::InvalidLowSurrogateHexEscape
        | ErrorKind::InvalidLowSurrogate
        | ErrorKind::MissingLowSurrogate
        | ErrorKind::UnpairedLowSurrogate
        | ErrorKind::InvalidUnicodeEscape => {
            "an escape in double quotes that is no character; write `\\\\` for a backslash, or use \
             single quotes"
        }
        ErrorKind::InvalidTrailingSingleQuotedScalar => {
            "more text behind a closing quotation mark; write `''` for `'` in single quotes"
        }
        ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            "more text behind a closing quotation mark; write `\\\"` for `\"` in double quotes"
        }
        ErrorKind::UnexpectedCharacter { character } => {
            return format!(
                "a value without quotes may not begin with `{}`; put it in quotes",
                Escaped(character.encode_utf8(&mut [0; 4]))
            );
        }
        other => return format!("not YAML: {}", plainer(&other.to_string())),
    };
    words.to_owned()
}

/// A text of the parser in words that everybody knows.
fn plainer(text: &str) -> String {
    text.replace("EOF", "end of the file")
        .replace("eof", "end of the file")
        .replace("scalar", "value")
        .replace("flow sequence", "list in brackets")
        .replace("flow mapping", "mapping in braces")
}

/// Levels of lists and mappings: the document, its rules, a rule, its rate.
const MAX_DEPTH: usize = 4;

const NO_ANCHORS: &str = "anchors and aliases (`&` and `*`) are not part of the policy language; \
                          write the value out, and `\"*\"` in quotes for any";

const NO_TAGS: &str = "tags (`!`) are not part of the policy language; write the value alone, in \
                       quotes if it begins with `!`";

const TOO_DEEP: &str = "nested deeper than anything in a policy is (4 levels)";

const HALF_A_CHARACTER: &str = "an escape of half a character, which readers put together or do \
                                not; write the character, or one escape such as `\\U0001f600`";

const NO_LINE_END: &str = "a text behind `|` or `>` ends with the file, where some readers add a \
                           line end and others do not; end the file with a line end";

const ONE_DOCUMENT: &str =
    "a second document starts here; a policy is one document, so remove the `---`";
