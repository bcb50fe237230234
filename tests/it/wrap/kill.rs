//! kill -9 at any moment: every effect has its intent, and the file is whole
//! as far as it goes.

use std::collections::BTreeMap;
use std::time::Duration;

use aegis::verify::Verdict;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::harness::{Session, Setup, call, sha256, until};

/// How often wrap is killed; `AEGIS_TEST_KILLS` asks for more.
const KILLS: u64 = 20;

/// SPEC [LINE-7].
#[test]
fn every_effect_has_its_intent_when_wrap_is_killed() {
    let kills = std::env::var("AEGIS_TEST_KILLS").map_or(KILLS, |n| n.parse().unwrap());
    let mut torn = 0;
    let mut effects = 0;
    for round in 0..kills {
        let mode = ["intent", "full", "process"][round as usize % 3];
        let setup = Setup::server(&[])
            .with_ledger()
            .with(&["--durability", mode]);
        let mut session = setup.start();
        let digests = load(&mut session, |session| {
            // Some effects into the load, at an odd moment.
            until("effects", || {
                setup.effects().len() as u64 > 17 * (round % 7)
            });
            std::thread::sleep(Duration::from_micros(733 * (round % 11)));
            session.signal(Signal::KILL);
        });
        session.wait_status();
        // The server ends with its input. Until then it executes what it has.
        wait_for_effects(&setup);
        let record = setup.record();
        match &record.report.verdict {
            Verdict::Tampered(_) => panic!("{}", record.report.verdict),
            Verdict::Verified(_) => {}
            Verdict::Indeterminate(_) => torn += 1,
        }
        effects += assert_intents(&setup, &digests);
    }
    assert!(torn > 0, "never killed in the middle");
    assert!(effects > 0);
}

#[test]
fn every_effect_has_its_intent_in_a_session_that_ends_well() {
    let setup = Setup::server(&[]).with_ledger();
    let mut session = setup.start();
    let digests = load(&mut session, |_| {});
    session.answer("last");
    let ended = session.finish();
    ended.record.assert_verified();
    assert_eq!(assert_intents(&setup, &digests), CALLS + 2 * UNMATCHED + 1);
    assert_eq!(ended.record.close()["unreadable_frames"], UNMATCHED);
}

/// Sends calls of every kind in one stream while `meanwhile` runs, and returns
/// the digests of their frames by the line that their effect is.
fn load(
    session: &mut Session<'_>,
    meanwhile: impl FnOnce(&Session<'_>),
) -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    let mut stream = Vec::new();
    let mut add = |frame: String, effect: String| {
        digests.insert(effect, sha256(frame.as_bytes()));
        stream.extend_from_slice(frame.as_bytes());
        stream.push(b'\n');
    };
    for id in 0..CALLS {
        let tool = ["echo", "write_note", "never"][id % 3];
        let frame = call(id, tool, json!({"text": "a"})).to_string();
        add(frame, format!("effect {tool} {id}"));
        if id % (CALLS / UNMATCHED) == 0 {
            // Without an id, and one that only a lenient reader reads. Their
            // tools are named for them.
            let absent =
                json!({"method": "tools/call", "params": {"name": format!("absent-{id}")}});
            add(absent.to_string(), format!("effect absent-{id} -"));
            let twice = format!(
                r#"{{"id":0,"id":"{id}","method":"tools/call","params":{{"name":"twice-{id}"}}}}"#
            );
            add(twice, format!("effect twice-{id} \"{id}\""));
        }
    }
    add(
        call("last", "echo", json!({"text": "a"})).to_string(),
        "effect echo \"last\"".to_owned(),
    );
    let mut input = session.take_input();
    let writer = std::thread::spawn(move || {
        // Wrap may be gone meanwhile.
        let _ = std::io::Write::write_all(&mut input, &stream);
        input
    });
    meanwhile(session);
    // Kept open until here, lest its end be what ends the session.
    session.give_input(writer.join().unwrap());
    digests
}

/// Waits until a server whose client was killed has executed all it was sent.
fn wait_for_effects(setup: &Setup) {
    until("the end of the server", || {
        let mine = setup.dir.path().as_os_str().as_encoded_bytes();
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        !processes
            .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
            .any(|cmdline| cmdline.windows(mine.len()).any(|bytes| bytes == mine))
    });
}

/// Asserts that each effect has the intent of its frame; returns how many
/// there are.
fn assert_intents(setup: &Setup, digests: &BTreeMap<String, String>) -> usize {
    let record = setup.record();
    let intents: Vec<&Value> = record
        .intents()
        .map(|line| &line["request_digest"])
        .collect();
    let effects = setup.effects();
    for effect in &effects {
        let digest = digests.get(effect).unwrap_or_else(|| panic!("{effect}"));
        assert!(intents.iter().any(|known| *known == digest), "{effect}");
    }
    effects.len()
}

const CALLS: usize = 600;
const UNMATCHED: usize = 20;
