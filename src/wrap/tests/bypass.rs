//! Random frames against a reader that is as lenient as the worst peer.

use proptest::prelude::*;

use super::gate::run;
use super::*;

const POLICY: &str = "rules: [{id: never, action: deny, tool: rm}]";

/// What frames are made of.
const PIECES: [&str; 40] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "\t",
    "\r",
    "\r\n",
    "\u{feff}",
    "\0",
    "null",
    "1",
    "1e400",
    "NaN",
    "\"\\ud800\"",
    "\"a\"",
    "\"\"",
    "\"id\":1",
    "\"id\":null",
    "\"Id\":1",
    "\"method\":\"tools/call\"",
    "\"method\":\"tools\\/call\"",
    "\"method\":\"Tools/Call\"",
    "\"method\":\" tools/call\"",
    "\"method\":\"ping\"",
    "\"Method\":\"tools/call\"",
    "\"m\\u0065thod\":\"tools/call\"",
    "\"params\":{\"name\":\"rm\"}",
    "\"params\":{\"name\":\"t\",\"name\":\"rm\"}",
    "\"params\":{\"Name\":\"rm\",\"name\":\"t\"}",
    "\"Params\":{\"name\":\"rm\"}",
    "\"params\":{\"name\":\"t\"}",
    "\"result\":{}",
    "\"x\":\"\\\"",
    "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}",
    "{\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}}",
    "{\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}",
    "{\"id\":3,\"method\":\"ping\"}",
];

/// Whether some peer would execute the forbidden tool: one that splits at a
/// bare CR, ignores case and blanks, reads arrays in arrays and takes either
/// of two members of the same name.
fn some_peer_calls_rm(output: &str) -> bool {
    output
        .split(['\r', '\n'])
        .map(|line| line.trim_start_matches('\u{feff}'))
        .flat_map(|line| serde_json::Deserializer::from_str(line).into_iter::<Loose>())
        .map_while(Result::ok)
        .any(|read| read.calls_rm())
}

/// A value with every member that it has.
enum Loose {
    Object(Vec<(String, Loose)>),
    Array(Vec<Loose>),
    Text(String),
    Other,
}

impl Loose {
    fn calls_rm(&self) -> bool {
        match self {
            Self::Array(elements) => elements.iter().any(Self::calls_rm),
            Self::Object(_) => {
                let mut methods = self.members("method");
                let mut names = self
                    .members("params")
                    .flat_map(|params| params.members("name"));
                methods.any(|method| method.is_like("tools/call"))
                    && names.any(|name| name.is_like("rm"))
            }
            Self::Text(_) | Self::Other => false,
        }
    }

    fn members<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        let members = match self {
            Self::Object(members) => &members[..],
            _ => &[],
        };
        let alike = move |key: &str| key.trim().eq_ignore_ascii_case(name);
        members
            .iter()
            .filter(move |(key, _)| alike(key))
            .map(|(_, value)| value)
    }

    fn is_like(&self, word: &str) -> bool {
        matches!(self, Self::Text(text) if text.trim().eq_ignore_ascii_case(word))
    }
}

impl<'de> serde::Deserialize<'de> for Loose {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> serde::de::Visitor<'de> for Any {
            type Value = Loose;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("anything")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Loose, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Loose::Object(members))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> Result<Loose, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = seq.next_element()? {
                    elements.push(element);
                }
                Ok(Loose::Array(elements))
            }

            fn visit_str<E>(self, text: &str) -> Result<Loose, E> {
                Ok(Loose::Text(text.to_owned()))
            }

            fn visit_unit<E>(self) -> Result<Loose, E> {
                Ok(Loose::Other)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Loose, E> {
                Ok(Loose::Other)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Loose, E> {
                Ok(Loose::Other)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Loose, E> {
                Ok(Loose::Other)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Loose, E> {
                Ok(Loose::Other)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// An object of members, or a mere heap of pieces.
fn frame() -> impl Strategy<Value = String> {
    let piece = || prop::sample::select(&PIECES[..]);
    let member = || prop::sample::select(&PIECES[19..36]);
    let object = prop::collection::vec(member(), 1..5)
        .prop_map(|members| format!("{{{}}}", members.join(",")));
    let element = prop_oneof![4 => object, 1 => piece().prop_map(str::to_owned)];
    let elements = prop::collection::vec(element, 1..4);
    prop_oneof![
        prop::collection::vec(piece(), 1..12).prop_map(|pieces| pieces.concat()),
        elements.clone().prop_map(|elements| elements.concat()),
        elements.prop_map(|elements| format!("[{}]", elements.join(","))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// SPEC [WRAP-1] [WRAP-2].
    #[test]
    fn no_frame_brings_a_forbidden_call_to_any_peer(frames in prop::collection::vec(frame(), 1..4)) {
        let input = format!("{}\n", frames.join("\n"));
        let (child, client, _) = run(POLICY, Deny::default(), &input);
        prop_assert!(!some_peer_calls_rm(&child), "{child:?}");
        // What goes on does so line by line, and what is said is JSON.
        let mut lines = input.split_inclusive('\n');
        for line in child.split_inclusive('\n') {
            prop_assert!(lines.any(|sent| sent == line), "{line:?}");
        }
        for line in client.lines() {
            prop_assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
        }
    }
}

/// What the property rests on.
#[test]
fn the_lenient_reader_is_lenient() {
    for frame in [
        r#"{"method":"tools/call","params":{"name":"rm"}}"#,
        r#"[[{"METHOD":" tools/call","Params":{"name":"t","name":"rm"}}]]"#,
        "{\"method\":\"ping\"}\r{\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}",
        r#"7 {"method":"ping","method":"tools/call","params":{"name":"RM"}}"#,
    ] {
        assert!(some_peer_calls_rm(frame), "{frame}");
    }
    let allowed = "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}\n";
    assert!(some_peer_calls_rm(
        &run("default: allow", Deny::default(), allowed).0
    ));
    for frame in [
        r#"{"method":"tools/call","params":{"name":"t"}}"#,
        r#"{"method":"ping","params":{"name":"rm"}}"#,
        r#"{"method":"tools/call","params":{"name":"t","arguments":{"name":"rm"}}}"#,
    ] {
        assert!(!some_peer_calls_rm(frame), "{frame}");
    }
}
