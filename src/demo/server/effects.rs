//! What calls did: the effect file and the notes.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use serde_json::Value;

use super::running::locked;

/// Effects that outlive the answer, so that a test can tell whether a call
/// was executed from more than what the answer claims.
#[derive(Default)]
pub(super) struct Effects {
    file: Option<File>,
    notes: Mutex<Vec<String>>,
}

impl Effects {
    pub(super) fn open(path: Option<&Path>) -> Result<Self, String> {
        let open = |path: &Path| {
            OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .map_err(|fault| format!("could not open `{}`: {fault}", path.display()))
        };
        Ok(Self {
            file: path.map(open).transpose()?,
            notes: Mutex::default(),
        })
    }

    /// Appends `effect TOOL ID` in one write. `-` stands for an absent id,
    /// and a name that is not one printable word is written as JSON.
    pub(super) fn record(&self, tool: Option<&str>, id: Option<&Value>) -> Result<(), String> {
        let Some(mut file) = self.file.as_ref() else {
            return Ok(());
        };
        let tool = match tool {
            None => "<unknown>".to_owned(),
            Some(name) if !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic()) => {
                name.to_owned()
            }
            Some(name) => Value::from(name).to_string(),
        };
        let id = id.map_or_else(|| "-".to_owned(), Value::to_string);
        file.write_all(format!("effect {tool} {id}\n").as_bytes())
            .map_err(|fault| format!("could not write the effect file: {fault}"))
    }

    /// Keeps a note and returns how many there are, or none past the bound.
    pub(super) fn note(&self, text: &str) -> Option<usize> {
        let mut notes = locked(&self.notes);
        if notes.len() >= MAX_NOTES {
            return None;
        }
        notes.push(text.to_owned());
        Some(notes.len())
    }
}

const MAX_NOTES: usize = 100_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_effect_is_one_line_whatever_the_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("effects");
        let effects = Effects::open(Some(&path)).unwrap();
        effects.record(Some("echo"), Some(&json!(1))).unwrap();
        effects.record(Some("a\nb"), Some(&json!("x\n"))).unwrap();
        effects.record(Some(""), None).unwrap();
        effects.record(None, Some(&Value::Null)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let expected = "effect echo 1\neffect \"a\\nb\" \"x\\n\"\neffect \"\" -\n\
                        effect <unknown> null\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_existing_file_is_appended_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("effects");
        for _ in 0..2 {
            let effects = Effects::open(Some(&path)).unwrap();
            effects.record(Some("add"), None).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "effect add -\neffect add -\n");
    }

    #[test]
    fn a_path_that_cannot_be_opened_is_named() {
        let fault = Effects::open(Some(Path::new("/nonexistent/effects"))).err();
        let fault = fault.unwrap();
        assert!(
            fault.starts_with("could not open `/nonexistent/effects`: "),
            "{fault}"
        );
    }

    #[test]
    fn notes_are_bounded() {
        let effects = Effects::default();
        for count in 1..=MAX_NOTES {
            assert_eq!(effects.note(""), Some(count));
        }
        assert_eq!(effects.note(""), None);
    }
}
