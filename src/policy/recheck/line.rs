//! What a recheck reads of a row.
//!
//! It is no second verifier: hashes, links, signatures and the value space are
//! nobody's business here. What it must not do is to read a Call other than
//! the next reader would, so a row that is not strict JSON is not read.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::wire::decode::{Name, Row, RowFault};
use crate::wire::digest::{Digest, PolicySet, Request};
use crate::wire::line::SCHEMA_VERSION;
use crate::wire::outcome::{Capability, Cut, DecisionAxes, Execution, Policy};

/// A row that is an object.
pub(super) struct Line<'a> {
    pub(super) head: Head,
    text: Text<'a>,
}

enum Text<'a> {
    Canonical(Row<'a>),
    /// Outside the value space, as Lines of version 1 are and a later version
    /// may be.
    Foreign(&'a [u8]),
}

/// What a Line says of itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) version: Version,
    /// 0 where it has none.
    pub(super) seq: u64,
    pub(super) call_id: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Open,
    Intent,
    Outcome,
    #[default]
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Version {
    /// The one that this program writes.
    Ours,
    /// Another number.
    Another,
    /// No number.
    #[default]
    None,
}

impl<'a> Line<'a> {
    /// Reads a row.
    ///
    /// # Errors
    /// Why it cannot be read, and what it seems to be in spite of that.
    pub(super) fn read(row: &'a [u8]) -> Result<Self, (RowFault, Head)> {
        match Row::read(row) {
            Ok(canonical) => Ok(Self {
                head: Head::of(&canonical, row),
                text: Text::Canonical(canonical),
            }),
            Err(RowFault::ValueSpace(_)) => Ok(Self {
                head: Head::guess(row),
                text: Text::Foreign(row),
            }),
            Err(fault) => Err((fault, Head::guess(row))),
        }
    }

    /// The whole Line as a typed value.
    pub(super) fn typed<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match &self.text {
            Text::Canonical(row) => row.typed(),
            Text::Foreign(row) => serde_json::from_slice(row),
        }
    }
}

impl Head {
    fn of(row: &Row<'_>, text: &[u8]) -> Self {
        let Some(line_type) = row.string(Name::LineType) else {
            // Version 1 has a `phase` instead.
            return Self::guess(text);
        };
        Self {
            kind: Kind::of(&line_type),
            version: match row.integer(Name::SchemaVersion) {
                Some(SCHEMA_VERSION) => Version::Ours,
                Some(_) => Version::Another,
                None => Version::None,
            },
            seq: row.integer(Name::Seq).unwrap_or(0),
            call_id: row.string(Name::CallId).map(Into::into),
        }
    }

    /// As well as it can be told, of a row that may be anything.
    fn guess(row: &[u8]) -> Self {
        serde_json::from_slice(row).unwrap_or_default()
    }
}

impl Kind {
    fn of(line_type: &str) -> Self {
        match line_type {
            "open" => Self::Open,
            "intent" => Self::Intent,
            "outcome" => Self::Outcome,
            _ => Self::Other,
        }
    }
}

impl<'de> Deserialize<'de> for Head {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeadVisitor)
    }
}

/// Keeps nothing of a row but its head, however long the row is.
struct HeadVisitor;

impl<'de> Visitor<'de> for HeadVisitor {
    type Value = Head;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Head, A::Error> {
        let mut head = Head::default();
        let (mut line_type, mut phase) = (None, None);
        while let Some(name) = members.next_key::<String>()? {
            match name.as_str() {
                "line_type" => line_type = members.next_value::<Scalar>()?.text(),
                "phase" => phase = members.next_value::<Scalar>()?.text(),
                "call_id" => head.call_id = members.next_value::<Scalar>()?.text(),
                "seq" => head.seq = members.next_value::<Scalar>()?.integer().unwrap_or(0),
                "schema_version" => head.version = members.next_value::<Scalar>()?.version(),
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        head.kind = match (line_type, phase.as_deref()) {
            (Some(line_type), _) => Kind::of(&line_type),
            // What else version 1 wrote is no Line of a Session.
            (None, Some("outcome")) => Kind::Outcome,
            (None, _) => Kind::Other,
        };
        Ok(head)
    }
}

/// The value of a member that should be a text or a number.
enum Scalar {
    Text(String),
    Integer(u64),
    Number,
    Other,
}

impl Scalar {
    fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn integer(self) -> Option<u64> {
        match self {
            Self::Integer(integer) => Some(integer),
            _ => None,
        }
    }

    fn version(self) -> Version {
        match self {
            Self::Integer(SCHEMA_VERSION) => Version::Ours,
            Self::Integer(_) | Self::Number => Version::Another,
            Self::Text(_) | Self::Other => Version::None,
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

/// Keeps nothing of a value that is neither, however large it is.
struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.to_owned()))
    }

    fn visit_u64<E>(self, integer: u64) -> Result<Scalar, E> {
        Ok(Scalar::Integer(integer))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Scalar, E> {
        Ok(Scalar::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Scalar, E> {
        Ok(Scalar::Number)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Scalar, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Scalar, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
}

/// What a recheck needs of an `intent`.
#[derive(Debug, Deserialize)]
pub(super) struct Intent {
    pub(super) call_id: String,
    pub(super) tool_id: String,
    pub(super) request_digest: Digest<Request>,
    /// None also when it is no text: either way it tells no time.
    #[serde(default, deserialize_with = "text")]
    pub(super) time: Option<String>,
    #[serde(default, deserialize_with = "objects")]
    pub(super) cut: BTreeMap<String, Cut>,
}

/// What a recheck needs of an `outcome`. Added members are not looked at, so
/// that those of a later emitter are no hindrance.
#[derive(Debug, Deserialize)]
pub(super) struct Outcome {
    pub(super) call_id: String,
    pub(super) tool_id: String,
    /// Its form matters, as that of every member that the format demands.
    #[serde(rename = "request_digest")]
    _request_digest: Digest<Request>,
    pub(super) policy_set_hash: Digest<PolicySet>,
    #[serde(deserialize_with = "object")]
    pub(super) policy: Policy,
    #[serde(deserialize_with = "object")]
    pub(super) capability: Capability,
    #[serde(deserialize_with = "object")]
    pub(super) execution: Execution,
    #[serde(deserialize_with = "object")]
    pub(super) decision_axes: DecisionAxes,
    #[serde(default, deserialize_with = "objects")]
    pub(super) cut: BTreeMap<String, Cut>,
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Scalar::deserialize(deserializer).map(Scalar::text)
}

fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Object::deserialize(deserializer).map(|Object(value)| value)
}

fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let objects = BTreeMap::<String, Object<T>>::deserialize(deserializer)?;
    let values = objects.into_iter();
    Ok(values.map(|(name, Object(value))| (name, value)).collect())
}

/// A value that stands as an object in the row. Serde would take an array of
/// the members for one too, and no other reader would.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(row: &str) -> Head {
        match Line::read(row.as_bytes()) {
            Ok(line) => line.head,
            Err((_, head)) => head,
        }
    }

    /// SPEC [RECHECK-3].
    #[test]
    fn a_head_is_told_in_any_spelling() {
        let outcome = |version, seq, call_id: Option<&str>| Head {
            kind: Kind::Outcome,
            version,
            seq,
            call_id: call_id.map(str::to_owned),
        };
        for (row, expected) in [
            (
                r#"{"call_id":"a","line_type":"outcome","schema_version":2,"seq":3}"#,
                outcome(Version::Ours, 3, Some("a")),
            ),
            (
                r#"{"seq": 3, "x": [null, 1.5], "schema_version":2, "line_type":"outcome"}"#,
                outcome(Version::Ours, 3, None),
            ),
            (
                r#"{"line_type":"outcome","schema_version":2.0,"seq":1.0}"#,
                outcome(Version::Another, 0, None),
            ),
            (
                r#"{"line_type":"outcome","schema_version":"2","seq":-1}"#,
                outcome(Version::None, 0, None),
            ),
            (
                r#"{"phase":"outcome","schema_version":1,"capability":{"grant":{"fs":null}}}"#,
                outcome(Version::Another, 0, None),
            ),
            (
                r#"{"phase":"outcome","line_type":7,"schema_version":1}"#,
                outcome(Version::Another, 0, None),
            ),
            (
                r#"{"line_type":"outcome","call_id":"b","line_type":"outcome"}"#,
                outcome(Version::None, 0, Some("b")),
            ),
            (
                r#"{"phase":"open","schema_version":1}"#,
                Head {
                    version: Version::Another,
                    ..Head::default()
                },
            ),
            (r#"["line_type","outcome"]"#, Head::default()),
            (r#"{"line_type":"outcome""#, Head::default()),
        ] {
            assert_eq!(head(row), expected, "{row}");
        }
    }
}
