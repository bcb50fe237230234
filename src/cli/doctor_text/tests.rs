use super::*;
use crate::doctor::paths::Paths;
use crate::doctor::{examine, pretend};

/// SPEC [DOCTOR-2], [DOCTOR-6]: each machine's gaps with their cures.
#[test]
fn every_machine_is_told_what_it_lacks() {
    for (name, answers) in pretend::machines() {
        let report = examine(&answers, &Paths::default());
        let shown = Text(&report).to_string();
        insta::assert_snapshot!(name, shown);
        assert!(shown.is_ascii(), "{name}");
        let commands: Vec<_> = report
            .machine
            .iter()
            .filter_map(|found| found.cure.as_ref())
            .flat_map(|cure| &cure.lines)
            .collect();
        for line in shown.lines().filter(|line| line.len() > COLUMNS) {
            let is_command = commands.iter().any(|command| line.ends_with(*command));
            assert!(is_command, "{name}: {line}");
        }
    }
}

#[test]
fn lines_are_broken_at_the_bound_and_not_before() {
    struct Wrapped(String);
    impl fmt::Display for Wrapped {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write_wrapped(f, "  ", 2, &self.0)
        }
    }
    let at = Wrapped(format!("a {}", "b".repeat(COLUMNS - 4))).to_string();
    assert_eq!(at.lines().count(), 1);
    assert_eq!(at.trim_end().len(), COLUMNS);
    let past = Wrapped(format!("a {}", "b".repeat(COLUMNS - 3))).to_string();
    assert_eq!(past.lines().count(), 2);
}
