//! Where a bench ran, and where it may write.

#![allow(dead_code, reason = "each bench uses its part")]

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A directory for what a bench writes, on the disk that is to be measured:
/// in `AEGIS_BENCH_DIR` when that is set, else in the target directory. Gone
/// with the value.
pub(crate) fn directory() -> std::io::Result<tempfile::TempDir> {
    let parent = std::env::var_os("AEGIS_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    fs::create_dir_all(&parent)?;
    tempfile::tempdir_in(parent)
}

/// The machine, its load and the commit, as lines that begin with `# `.
pub(crate) fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let commit = said("git", &["describe", "--always", "--dirty", "--abbrev=12"]);
    format!(
        "# date       {}\n# commit     {commit}\n# kernel     {}\n# rustc      {}\n\
         # cpu        {model}, {cores} threads\n{}",
        said("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
        said("uname", &["-srmo"]),
        said("rustc", &["--version"]),
        load(),
    )
}

/// The load now, as a line that begins with `# `.
pub(crate) fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!("# load       {}\n", load.trim())
}

/// The file system that holds `directory`, as a line that begins with `# `.
pub(crate) fn disk(directory: &std::path::Path) -> String {
    let name = directory.to_string_lossy();
    let table = said("df", &["--output=source,fstype", &name]);
    let row = table.lines().last().unwrap_or_default();
    let words: Vec<_> = row.split_whitespace().collect();
    format!("# disk       {}\n", words.join(" "))
}

/// Bytes of a record to read: `AEGIS_BENCH_MIB`, 64 if it is not set.
pub(crate) fn record_bytes() -> usize {
    let default = if is_measuring() { 64 } else { 1 };
    std::env::var("AEGIS_BENCH_MIB")
        .ok()
        .and_then(|mib| mib.parse::<usize>().ok())
        .unwrap_or(default)
        .clamp(1, 200)
        << 20
}

/// `cargo bench` says so; without it each bench runs once, to see that it
/// does.
pub(crate) fn is_measuring() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// A policy of ten thousand rules, each of another tool, which `wrap` takes.
/// The last two are of [`ALLOWED_TOOL`] and [`DENIED_TOOL`].
pub(crate) fn rules_by_tool() -> String {
    let mut document = "version: 1\ndefault: deny\nrules:\n".to_owned();
    let mut rule = |id: usize, action: &str, tool: &str| {
        // Writing to a text does not fail.
        let _ = writeln!(document, "- {{id: r{id}, action: {action}, tool: {tool}}}");
    };
    for id in 0..RULES - 2 {
        let action = if id % 2 == 0 { "allow" } else { "deny" };
        rule(id, action, &format!("tool-{id}"));
    }
    rule(RULES - 2, "allow", ALLOWED_TOOL);
    rule(RULES - 1, "deny", DENIED_TOOL);
    document
}

pub(crate) const ALLOWED_TOOL: &str = "read_file";

pub(crate) const DENIED_TOOL: &str = "exec";

const RULES: usize = 10_000;

/// What a program prints, or `unknown`.
fn said(program: &str, args: &[&str]) -> String {
    Command::new(program)
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .ok()
        .filter(|output| output.status.success())
        .map_or_else(
            || "unknown".to_owned(),
            |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        )
}
