//! The folder `fixtures/`, and how its files are made and read.
//!
//! Every file in it is rebuilt by a test from the development seed and
//! compared. With `AEGIS_WRITE_FIXTURES=1` in the environment it is written
//! instead.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Asserts that the folder `dir` of `fixtures/` holds exactly these files.
#[track_caller]
pub(crate) fn assert_folder(dir: &str, expected: &BTreeMap<String, Vec<u8>>) {
    let folder = fixtures().join(dir);
    if env::var_os("AEGIS_WRITE_FIXTURES").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder for fixtures");
        for (name, bytes) in expected {
            fs::write(folder.join(name), bytes).expect("a fixture is writable");
        }
    }
    let found = read_folder(dir);
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(expected), "files in {dir}");
    for (name, bytes) in expected {
        assert!(
            found[name] == *bytes,
            "{dir}/{name} is not what it is assembled from; \
             AEGIS_WRITE_FIXTURES=1 writes it anew"
        );
    }
}

/// The files of a folder of `fixtures/`, by name.
pub(crate) fn read_folder(dir: &str) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(fixtures().join(dir))
        .expect("a folder of fixtures")
        .map(|entry| {
            let entry = entry.expect("an entry is readable");
            let name = entry.file_name().into_string().expect("a UTF-8 name");
            (name, fs::read(entry.path()).expect("a fixture is readable"))
        })
        .collect()
}

/// A fixture with a header: lines of `name: value`, a blank line, and the
/// bytes as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fixture {
    pub(crate) header: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Fixture {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut file = String::new();
        for (name, value) in &self.header {
            assert!(!value.contains('\n'), "a header value is one line");
            file.push_str(&format!("{name}: {value}\n"));
        }
        file.push('\n');
        [file.as_bytes(), &self.body].concat()
    }

    pub(crate) fn read(file: &[u8]) -> Self {
        let end = file
            .windows(2)
            .position(|pair| pair == b"\n\n")
            .expect("a blank line ends the header");
        let header = std::str::from_utf8(&file[..end]).expect("a header is text");
        Self {
            header: header
                .lines()
                .map(|line| {
                    let (name, value) = line.split_once(": ").expect("`name: value`");
                    (name.to_owned(), value.to_owned())
                })
                .collect(),
            body: file[end + 2..].to_vec(),
        }
    }

    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let named = self.header.iter().filter(|(n, _)| n == name);
        named.map(|(_, value)| value.as_str()).collect()
    }

    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }
}
