//! The full canonical form of RFC 8785, for tool definitions only (SPEC §3.3).
//!
//! A Line has a canonical form of its own, over fewer values:
//! [`canon`](super::canon). Here numbers are what ECMAScript makes of them, so
//! `1.0`, `1` and `1e0` are one number, and integers beyond 2^53 are rounded.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{self, Serialize, SerializeMap, SerializeSeq, Serializer};

/// The canonical form of one JSON text. `None` when it has none: it is not
/// JSON, holds a number beyond the range of a double, a lone surrogate escape
/// or two members of one name, or nests 128 levels deep.
///
/// Takes memory in proportion to `text`: some thirty times its length when it
/// is one object of many short members.
pub(crate) fn canonical(text: &str) -> Option<Vec<u8>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let form = serde_json_canonicalizer::to_vec(&Read::from(&mut reader)).ok()?;
    reader.end().is_ok().then_some(form)
}

/// Serializes what the reader in it reads. There is no tree between the two,
/// because in one the second of two equal members replaces the first; the
/// canonicalizer refuses the second.
struct Read<D>(Cell<Option<D>>);

impl<D> From<D> for Read<D> {
    fn from(reader: D) -> Self {
        Self(Cell::new(Some(reader)))
    }
}

impl<'de, D: Deserializer<'de>> Serialize for Read<D> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        let reader = self.0.take();
        let reader = reader.ok_or_else(|| ser::Error::custom("a value is read once"))?;
        reader
            .deserialize_any(Pipe(writer))
            .map_err(ser::Error::custom)
    }
}

/// Writes the value that it is shown.
struct Pipe<S>(S);

impl<'de, S: Serializer> Visitor<'de> for Pipe<S> {
    type Value = S::Ok;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<S::Ok, E> {
        self.0.serialize_unit().map_err(E::custom)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<S::Ok, E> {
        self.0.serialize_bool(value).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<S::Ok, E> {
        self.0.serialize_u64(value).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<S::Ok, E> {
        self.0.serialize_i64(value).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<S::Ok, E> {
        self.0.serialize_f64(value).map_err(E::custom)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<S::Ok, E> {
        self.0.serialize_str(value).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<S::Ok, A::Error> {
        let mut writer = self.0.serialize_seq(None).map_err(de::Error::custom)?;
        while elements.next_element_seed(Element(&mut writer))?.is_some() {}
        writer.end().map_err(de::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<S::Ok, A::Error> {
        let mut writer = self.0.serialize_map(None).map_err(de::Error::custom)?;
        while members.next_key_seed(Name(&mut writer))?.is_some() {
            members.next_value_seed(Member(&mut writer))?;
        }
        writer.end().map_err(de::Error::custom)
    }
}

struct Element<'a, W>(&'a mut W);

impl<'de, W: SerializeSeq> DeserializeSeed<'de> for Element<'_, W> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        let written = self.0.serialize_element(&Read::from(reader));
        written.map_err(de::Error::custom)
    }
}

struct Name<'a, W>(&'a mut W);

impl<'de, W: SerializeMap> DeserializeSeed<'de> for Name<'_, W> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        let written = self.0.serialize_key(&Read::from(reader));
        written.map_err(de::Error::custom)
    }
}

struct Member<'a, W>(&'a mut W);

impl<'de, W: SerializeMap> DeserializeSeed<'de> for Member<'_, W> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        let written = self.0.serialize_value(&Read::from(reader));
        written.map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn form(text: &str) -> Option<String> {
        canonical(text).map(|form| String::from_utf8(form).unwrap())
    }

    /// SPEC [CANON-14]: the vectors of the authors of RFC 8785.
    #[test]
    fn the_published_texts_have_their_form() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/jcs");
        let mut checked = 0;
        for entry in fs::read_dir(root.join("input")).unwrap() {
            let path = entry.unwrap().path();
            let input = fs::read_to_string(&path).unwrap();
            let output = root.join("output").join(path.file_name().unwrap());
            let output = fs::read_to_string(output).unwrap();
            assert_eq!(form(&input).unwrap(), output, "{}", path.display());
            // What is canonical stays as it is.
            assert_eq!(form(&output).unwrap(), output, "{}", path.display());
            checked += 1;
        }
        assert_eq!(checked, 6);
    }

    /// SPEC [CANON-14]: RFC 8785, appendix B, from IEEE 754 bits to text.
    #[test]
    fn numbers_are_those_of_ecmascript() {
        for (bits, text) in [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            let value = f64::from_bits(bits);
            // Seventeen digits name every double.
            for spelling in [text.to_owned(), format!("{value:.16e}"), format!("{value}")] {
                assert_eq!(form(&spelling).as_deref(), Some(text), "{spelling}");
            }
        }
    }

    #[test]
    fn an_integer_is_rounded_to_a_double_however_long_it_is() {
        for (spelling, text) in [
            ("-0", "0"),
            ("-0.0e5", "0"),
            ("1E+2", "100"),
            ("1.50", "1.5"),
            ("9007199254740993", "9007199254740992"),
            ("9007199254740995", "9007199254740996"),
            ("-9007199254740993", "-9007199254740992"),
            // The greatest of 64 bits, and the next, halfway and beyond.
            ("18446744073709551615", "18446744073709552000"),
            ("18446744073709551616", "18446744073709552000"),
            ("-9223372036854775808", "-9223372036854776000"),
            ("-9223372036854775809", "-9223372036854776000"),
            ("18446744073709553664", "18446744073709552000"),
            ("18446744073709553665", "18446744073709556000"),
            ("100000000000000000000000", "1e+23"),
            ("1e-400", "0"),
        ] {
            assert_eq!(form(spelling).as_deref(), Some(text), "{spelling}");
        }
        let long = format!("0.{}1", "0".repeat(5000));
        assert_eq!(form(&long).as_deref(), Some("0"));
        let long = format!("1{}e-5000", "0".repeat(5000));
        assert_eq!(form(&long).as_deref(), Some("1"));
    }

    /// SPEC [CANON-14]: names are ordered by UTF-16 units, unescaped.
    #[test]
    fn names_are_unescaped_and_then_ordered() {
        let text =
            r#" { "\ufb33" : 1 , "\ud83d\ude00":2,"\u0062":[ ], "a\u002f\/":{ },"\n":null } "#;
        let expected = "{\"\\n\":null,\"a//\":{},\"b\":[],\"\u{1f600}\":2,\"\u{fb33}\":1}";
        assert_eq!(form(text).as_deref(), Some(expected));
    }

    /// SPEC [CANON-14].
    #[test]
    fn what_has_no_form_is_refused() {
        for text in [
            "",
            "1 2",
            "{}x",
            "01",
            "1e400",
            "-1e400",
            "NaN",
            r#""\ud800""#,
            r#"{"\udc00":1}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[{"a":{"b":1,"c":[],"b":2}}]"#,
            r#"{"a":1"#,
            "[1,]",
        ] {
            assert_eq!(form(text), None, "{text}");
        }
        assert_eq!(form(&format!("1{}", "0".repeat(309))), None);
    }

    #[test]
    fn depth_is_bounded_behind_that_of_a_frame() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(form(&nested(127)), Some(nested(127)));
        assert_eq!(form(&nested(128)), None);
        let objects =
            |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        assert_eq!(form(&objects(127)), Some(objects(127)));
        assert_eq!(form(&objects(128)), None);
    }
}
