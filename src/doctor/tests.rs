use super::answers::Landlock;
use super::finding::Id;
use super::verdict::{Extent, Network};
use super::*;

fn examined(answers: &Answers) -> Report {
    examine(answers, &Paths::default())
}

/// SPEC [DOCTOR-3]: a verdict that refuses and a finding that is missing are
/// one and the same.
#[test]
fn what_is_refused_is_what_is_missing() {
    for (name, answers) in pretend::machines() {
        let report = examined(&answers);
        let missing = |ids: &[Id]| {
            let mut found = report.machine.iter();
            found.any(|found| ids.contains(&found.id) && found.status == Status::Missing)
        };
        let verdict = &report.verdict;
        let files = verdict.files == Extent::Refused;
        assert_eq!(missing(&[Id::Landlock]), files, "{name}");
        let calls = verdict.system_calls == Extent::Refused;
        assert_eq!(missing(&[Id::SystemCalls]), calls, "{name}");
        let is_refused = verdict.confine == Extent::Refused;
        assert_eq!(is_refused, files || calls, "{name}");
        assert_eq!(is_refused, verdict.network == Network::Refused, "{name}");
        assert_eq!(is_refused, report.fitness() == Fitness::Unfit, "{name}");
    }
}

/// SPEC [DOCTOR-2].
#[test]
fn whatever_is_not_as_it_should_be_has_a_cure() {
    for (name, answers) in pretend::machines() {
        for found in examined(&answers).machine {
            let is_well = found.status == Status::Ok;
            assert_eq!(found.cure.is_none(), is_well, "{name}: {found:?}");
        }
    }
}

#[test]
fn a_machine_is_whole_only_if_hosts_can_be_held_to() {
    for (name, answers) in pretend::machines() {
        let report = examined(&answers);
        let is_whole = report.verdict.confine == Extent::Full
            && report.verdict.network == Network::HostPort
            && answers.name_servers.is_ok()
            && answers.open_files != Some(network::ENOUGH_FILES - 1);
        assert_eq!(report.fitness() == Fitness::Fit, is_whole, "{name}");
    }
}

#[test]
fn a_limit_of_files_is_judged_at_the_bound() {
    let mut answers = pretend::whole();
    for (files, expected) in [
        (Some(network::ENOUGH_FILES), Fitness::Fit),
        (Some(network::ENOUGH_FILES - 1), Fitness::Limited),
        (None, Fitness::Fit),
    ] {
        answers.open_files = files;
        assert_eq!(examined(&answers).fitness(), expected);
    }
}

#[test]
fn what_the_machine_says_cannot_move_the_cursor() {
    let evil = "6.1\u{1b}[2K\n\u{202e}".to_owned();
    let answers = Answers {
        release: evil.clone(),
        architecture: evil.clone(),
        landlock: Landlock::Failed(evil.clone()),
        filters: Err(evil.clone()),
        namespaces: probe::Namespaces::Unknown(evil.clone()),
        settings: pretend::whole()
            .settings
            .into_keys()
            .map(|name| (name, evil.clone()))
            .collect(),
        modules: Some(evil.clone()),
        outer: answers::Outer {
            apparmor: Some(evil.clone()),
            ..answers::Outer::default()
        },
        name_servers: Err(evil.clone()),
        ..pretend::whole()
    };
    let shown = |answers: &Answers| serde_json::to_string(&examined(answers).machine).unwrap();
    let unavailable = Answers {
        landlock: Landlock::Unavailable,
        namespaces: probe::Namespaces::Refused(probe::Refused {
            step: probe::Step::User,
            errno: 28,
        }),
        ..answers.clone()
    };
    for answers in [&answers, &unavailable] {
        let shown = shown(answers);
        assert!(
            !shown.contains("\\u001b") && !shown.contains('\u{202e}'),
            "{shown}"
        );
        assert!(!shown.contains("\\n"), "{shown}");
    }
}
