//! Knowledge runs one way: a module imports modules of lower levels only.
//!
//! The table is the one in `src/lib.rs`; a module that is not in it, or an
//! import that points upwards or sideways, fails here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules of the same level that may still know each other: none but these,
/// each with its reason.
const SIDEWAYS: [(&str, &str, &str); 0] = [];

#[test]
fn imports_point_downwards() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let levels = levels(&fs::read_to_string(src.join("lib.rs")).unwrap());
    assert!(levels.len() >= 8, "the table was not read: {levels:?}");
    let mut faults = Vec::new();
    let mut imports = 0;
    for file in sources(&src) {
        let module = module_of(&src, &file);
        if module == "lib" || module == "main" {
            continue;
        }
        let Some(own) = levels.get(&module) else {
            faults.push(format!("{module} is not in the table of src/lib.rs"));
            continue;
        };
        for used in used(&fs::read_to_string(&file).unwrap()) {
            imports += 1;
            let downwards = levels.get(&used).is_some_and(|level| level < own);
            let known = SIDEWAYS
                .iter()
                .any(|(a, b, _)| (*a, *b) == (&module, &used));
            if used != module && !downwards && !known {
                faults.push(format!("{} imports {used}", file.display()));
            }
        }
    }
    assert!(imports > 50, "hardly any import was seen: {imports}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn only_the_command_line_prints_and_only_main_exits() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in sources(&src) {
        let module = module_of(&src, &file);
        // Unit tests in files of their own may say why they skip.
        let mut parts = file.strip_prefix(&src).unwrap().components();
        if parts.any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs"))) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code: String = text
            .split("#[cfg(test)]")
            .next()
            .unwrap_or_default()
            .to_owned();
        for word in ["println!", "eprintln!", "print!(", "process::exit"] {
            assert!(!code.contains(word), "{} has {word}", file.display());
        }
        if !matches!(module.as_str(), "cli" | "main") {
            for word in ["io::stdout()", "io::stdin()"] {
                let allowed = module == "input" && word == "io::stdin()";
                assert!(
                    allowed || !code.contains(word),
                    "{} has {word}",
                    file.display()
                );
            }
        }
    }
}

/// The levels in the table of `lib.rs`, by module.
fn levels(lib: &str) -> BTreeMap<String, u32> {
    let mut levels = BTreeMap::new();
    for row in lib.lines().filter_map(|line| line.strip_prefix("//! | ")) {
        let Some((level, modules)) = row.split_once('|') else {
            continue;
        };
        let Ok(level) = level.trim().parse() else {
            continue;
        };
        for module in modules.split(['`', '[', ']', ',', ' ', '|']) {
            if !module.is_empty() {
                levels.insert(module.to_owned(), level);
            }
        }
    }
    levels
}

/// The modules that a source file names by `crate::` paths.
fn used(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| {
            rest.chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect::<String>()
        })
        .filter(|module| !module.is_empty())
        .collect()
}

fn module_of(src: &Path, file: &Path) -> String {
    let inside = file.strip_prefix(src).unwrap();
    let first = inside.components().next().unwrap();
    let first = first.as_os_str().to_string_lossy();
    first.strip_suffix(".rs").unwrap_or(&first).to_owned()
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files
}
