//! Which unreadable frames nobody waits for an answer to.

use std::fmt;
use std::io::BufReader;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::rpc::frame::Frame;

/// Whether a frame that cannot be read strictly still is recognisable as
/// responses and notifications only. In doubt it is not: an answer too many
/// does less harm than a client that waits for ever.
pub(super) fn nobody_waits(frame: &Frame) -> bool {
    if frame.len() > MAX_BYTES {
        return false;
    }
    let read: Result<Loose, _> = serde_json::from_reader(BufReader::new(frame.reader()));
    read.is_ok_and(|loose| loose.nobody_waits)
}

struct Loose {
    nobody_waits: bool,
}

/// Any other member, like one that is `id` but for case, leaves a doubt.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LooseMessage {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: Option<IgnoredAny>,
    #[serde(rename = "params")]
    _params: Option<IgnoredAny>,
    id: Option<IgnoredAny>,
    method: Option<String>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

impl LooseMessage {
    fn nobody_waits(&self) -> bool {
        let answers = self.result.is_some() || self.error.is_some();
        match &self.method {
            None => answers,
            Some(method) => self.id.is_none() && !answers && method.starts_with("notifications/"),
        }
    }
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Frames)
    }
}

/// Reads the elements of a batch one by one, keeping none.
struct Frames;

impl<'de> Visitor<'de> for Frames {
    type Value = Loose;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message or a batch")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loose, A::Error> {
        let message = LooseMessage::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Loose {
            nobody_waits: message.nobody_waits(),
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Loose, A::Error> {
        let (mut all, mut any) = (true, false);
        while let Some(message) = seq.next_element::<LooseMessage>()? {
            all &= message.nobody_waits();
            any = true;
        }
        Ok(Loose {
            nobody_waits: all && any,
        })
    }
}

/// Bytes of the longest frame that is read a second time.
const MAX_BYTES: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::frame::{FrameLimits, FrameReader};

    fn waits(frame: &str) -> bool {
        let limits = FrameLimits::new(std::env::temp_dir());
        let mut frames = FrameReader::new(frame.as_bytes(), limits);
        !nobody_waits(&frames.next_frame().unwrap().unwrap())
    }

    #[test]
    fn responses_and_notifications_are_waited_for_by_nobody() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        for frame in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":"\ud800"}}"#.to_owned(),
            format!(r#"{{"id":1,"result":{deep}}}"#),
            format!(r#"{{"id":null,"error":{deep}}}"#),
            r#"{"method":"notifications/progress","params":{"a":1,"a":2}}"#.to_owned(),
            r#"[{"id":1,"result":"\ud800"},{"method":"notifications/x"}]"#.to_owned(),
        ] {
            assert!(!waits(&frame), "{frame}");
        }
    }

    #[test]
    fn in_doubt_somebody_waits() {
        for frame in [
            r#"{"id":1,"method":"tools/call"}"#,
            r#"{"method":"tools/call"}"#,
            r#"{"method":"ping","params":"\ud800"}"#,
            r#"{"method":"notifications/x","id":0}"#,
            r#"{"method":"notifications/x","Id":0}"#,
            r#"{"method":"notifications/x","Method":"tools/call"}"#,
            r#"{"method":"notifications/x","method":"tools/call"}"#,
            r#"{"method":"notifications/x","result":{}}"#,
            r#"{"id":1}"#,
            r#"{"id":1,"result":{}} x"#,
            r#"{"id":1,"result":NaN}"#,
            "\u{feff}{\"id\":1,\"result\":{}}",
            r#"[{"id":1,"result":{}},{"id":2,"method":"ping"}]"#,
            r#"[[{"id":1,"result":{}}]]"#,
            "[]",
            "7",
            "x",
        ] {
            assert!(waits(frame), "{frame}");
        }
    }

    #[test]
    fn a_frame_past_the_bound_is_not_read_again() {
        let frame = |bytes: usize| {
            let head = r#"{"id":1,"result":""#;
            let text = "x".repeat(bytes - head.len() - 2);
            format!("{head}{text}\"}}")
        };
        let most = usize::try_from(MAX_BYTES).unwrap();
        assert!(!waits(&frame(most)));
        assert!(waits(&frame(most + 1)));
    }
}
