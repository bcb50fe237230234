use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::verify::MAX_UNMET;
use crate::wire::decode::Row;
use crate::wire::facts::{Durability, MetadataMode, NetworkMode, PolicyStatus};

fn read(text: &str) -> Requirement {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// What stands in the way of `requirement` on an `open` Line of these members.
fn missed(requirement: &str, open: &Json) -> Option<String> {
    let row = open.to_string();
    let claims = Claims::read(&Row::read(row.as_bytes()).expect("an object"));
    let missed = read(requirement).missed_by(&claims);
    missed.map(|NoWord { member, found }| format!("{member} {found}"))
}

fn confined(member: &str, value: Json) -> Json {
    let mut open = json!({"confinement": {"status": "full", "network": "host-port"}});
    open["confinement"][member] = value;
    open
}

/// SPEC [REQUIRE-1].
#[test]
fn a_requirement_is_written_as_it_was_given_each_value_once() {
    for (given, written) in [
        ("confine=full", "confine=full"),
        ("net=host-port|denied", "net=host-port|denied"),
        (
            "net!=port-only|unrestricted|port-only",
            "net!=port-only|unrestricted",
        ),
        ("hole!=any", "hole!=any"),
    ] {
        assert_eq!(read(given).to_string(), written);
    }
}

/// SPEC [REQUIRE-2].
#[test]
fn what_is_no_requirement_is_told_with_what_would_be() {
    let refused = |text: &str| text.parse::<Requirement>().unwrap_err().to_string();
    let no_operator = "a requirement is KEY=VALUE or KEY!=VALUE, several values with | between them, and KEY is confine, net, metadata, durability, policy, hole";
    for text in [
        "",
        "confine",
        "confine!full",
        "confine:full",
        "full|partial",
    ] {
        assert_eq!(refused(text), no_operator, "{text}");
    }
    for (text, key) in [
        ("=full", ""),
        ("!=full", ""),
        ("Confine=full", "Confine"),
        ("confine =full", "confine "),
        ("confine!!=full", "confine!"),
        ("confine<=full", "confine<"),
        ("\u{1b}=full", "\\u{1b}"),
    ] {
        let expected = format!(
            "there is no key `{key}`; it is confine, net, metadata, durability, policy, hole"
        );
        assert_eq!(refused(text), expected);
    }
    for (text, value) in [
        ("confine=", ""),
        ("confine=Full", "Full"),
        ("confine= full", " full"),
        ("confine==full", "=full"),
        ("confine=full|", ""),
        ("confine=|full", ""),
        ("confine=full||none", ""),
        ("confine=full,none", "full,none"),
        ("confine=any", "any"),
    ] {
        let expected =
            format!("confine has no value `{value}`; it has full, partial, none, failed");
        assert_eq!(refused(text), expected);
    }
    let only_not = "hole takes only !=, as in hole!=any: that hole must not be open";
    assert_eq!(refused("hole=unix-sockets"), only_not);
    assert_eq!(refused("hole=x"), only_not);
}

/// The words of a key are those that the types of the wire have, so that a
/// new one cannot be forgotten here.
#[test]
fn the_words_are_those_of_the_wire() {
    let words = |key: Key| {
        let mut words: Vec<_> = key.values().iter().flat_map(|v| v.words).collect();
        words.sort_unstable();
        words.dedup();
        words.len()
    };
    let known = |key: Key, spelled: Vec<Json>| {
        for word in &spelled {
            let word = word.as_str().expect("a word");
            assert_eq!(key.word(word), Some(word), "{}", key.name());
        }
        assert_eq!(words(key), spelled.len(), "{}", key.name());
    };
    // Each match names every variant there is.
    let next = |mode| match mode {
        NetworkMode::DeniedNetns => Some(NetworkMode::DeniedSeccomp),
        NetworkMode::DeniedSeccomp => Some(NetworkMode::HostPort),
        NetworkMode::HostPort => Some(NetworkMode::PortOnly),
        NetworkMode::PortOnly => Some(NetworkMode::Unrestricted),
        NetworkMode::Unrestricted => None,
    };
    let modes = std::iter::successors(Some(NetworkMode::DeniedNetns), |mode| next(*mode));
    known(Key::Net, modes.map(|mode| json!(mode)).collect());
    let next = |durability| match durability {
        Durability::Full => Some(Durability::Intent),
        Durability::Intent => Some(Durability::Process),
        Durability::Process => None,
    };
    let all = std::iter::successors(Some(Durability::Full), |durability| next(*durability));
    known(Key::Durability, all.map(|word| json!(word)).collect());
    match MetadataMode::Denied {
        MetadataMode::Denied | MetadataMode::Allowed => {}
    }
    known(
        Key::Metadata,
        vec![json!(MetadataMode::Denied), json!(MetadataMode::Allowed)],
    );
    match PolicyStatus::Enforced {
        PolicyStatus::Enforced | PolicyStatus::Shadow => {}
    }
    known(
        Key::Policy,
        vec![json!(PolicyStatus::Enforced), json!(PolicyStatus::Shadow)],
    );
}

/// SPEC [REQUIRE-4] [REQUIRE-5].
#[test]
fn what_is_not_said_or_not_known_meets_nothing() {
    let odd = [
        (json!({}), "is absent"),
        (
            json!({"durability": "twice", "policy": {"status": "twice"}}),
            "is `twice`, which is not known here",
        ),
        (
            json!({"durability": "Full", "policy": {"status": ["enforced"]}}),
            "",
        ),
        (
            json!({"durability": 1, "policy": "enforced"}),
            "is of another form",
        ),
        (
            json!({"durability": ["full"], "policy": ["enforced"]}),
            "is of another form",
        ),
    ];
    for (open, why) in odd {
        for requirement in [
            "durability=full|intent|process",
            "durability!=process",
            "policy=enforced|shadow",
            "policy!=shadow",
        ] {
            let told = missed(requirement, &open).unwrap_or_else(|| panic!("{requirement} {open}"));
            assert!(told.ends_with(why), "{requirement} {open}: {told}");
        }
    }
    for (member, value, requirement) in [
        ("network", json!("vpn"), "net=host-port"),
        ("network", json!("vpn"), "net!=unrestricted"),
        ("network", json!("Host-port"), "net=host-port"),
        ("metadata", json!("some"), "metadata!=allowed"),
        ("holes", json!(["x11"]), "hole!=any"),
        ("holes", json!(["x11"]), "hole!=unix-sockets"),
        (
            "holes",
            json!(["shared-cache", "x11"]),
            "hole!=unix-sockets",
        ),
        ("holes", json!("unix-sockets"), "hole!=shared-cache"),
        ("holes", json!([["shared-cache"]]), "hole!=unix-sockets"),
        ("holes", json!([1]), "hole!=unix-sockets"),
        ("network", json!(7), "confine=full"),
        ("metadata", json!({}), "net=host-port"),
    ] {
        assert!(
            missed(requirement, &confined(member, value)).is_some(),
            "{requirement}"
        );
    }
}

/// SPEC [REQUIRE-6] [CONFINE-4].
#[test]
fn members_count_only_where_something_is_enforced() {
    let said = |status: Json| {
        json!({"confinement": {
            "status": status, "network": "denied-netns", "metadata": "denied", "holes": [],
        }})
    };
    for requirement in [
        "net=denied",
        "net!=unrestricted",
        "metadata=denied",
        "hole!=any",
    ] {
        for status in ["full", "partial"] {
            assert_eq!(
                missed(requirement, &said(json!(status))),
                None,
                "{requirement}"
            );
        }
        for (status, told) in [
            (json!("none"), "confinement.status is none"),
            (json!("failed"), "confinement.status is failed"),
            (
                json!("fullest"),
                "confinement.status is `fullest`, which is not known here",
            ),
            (json!(true), "confinement is of another form"),
        ] {
            assert_eq!(missed(requirement, &said(status)).as_deref(), Some(told));
        }
        let without = json!({"confinement": {"network": "denied-netns"}});
        let told = missed(requirement, &without);
        assert_eq!(told.as_deref(), Some("confinement.status is absent"));
        for (odd, told) in [
            (json!({}), "confinement is absent"),
            (
                json!({"confinement": ["full", "denied-netns"]}),
                "confinement is of another form",
            ),
            (
                json!({"confinement": "full"}),
                "confinement is of another form",
            ),
        ] {
            assert_eq!(missed(requirement, &odd).as_deref(), Some(told));
            assert_eq!(missed("confine=full", &odd).as_deref(), Some(told));
        }
    }
    let none = said(json!("none"));
    assert_eq!(missed("confine=none", &none), None);
    assert_eq!(missed("confine!=full|partial", &none), None);
}

/// SPEC [REQUIRE-3].
#[test]
fn one_of_and_none_of() {
    for (open, requirement, told) in [
        (confined("x", json!(0)), "net=denied|host-port", None),
        (
            confined("x", json!(0)),
            "net=denied",
            Some("confinement.network is host-port"),
        ),
        (confined("x", json!(0)), "net!=denied", None),
        (
            confined("network", json!("denied-netns")),
            "net=denied",
            None,
        ),
        (
            confined("network", json!("denied-seccomp")),
            "net=denied",
            None,
        ),
        (
            confined("network", json!("denied-seccomp")),
            "net!=denied",
            Some("confinement.network is denied-seccomp"),
        ),
        (
            confined("network", json!("denied-seccomp")),
            "net=denied-netns",
            Some("confinement.network is denied-seccomp"),
        ),
        (confined("x", json!(0)), "hole!=any", None),
        (
            confined("holes", json!(["shared-cache"])),
            "hole!=unix-sockets",
            None,
        ),
        (
            confined(
                "holes",
                json!(["shared-cache", "unix-sockets", "shared-cache"]),
            ),
            "hole!=unix-sockets|upstream-proxy",
            Some("confinement.holes is shared-cache, unix-sockets"),
        ),
        (
            confined("holes", json!(["upstream-proxy"])),
            "hole!=any",
            Some("confinement.holes is upstream-proxy"),
        ),
    ] {
        assert_eq!(
            missed(requirement, &open).as_deref(),
            told,
            "{requirement} {open}"
        );
    }
}

#[test]
fn a_bounded_number_is_told_and_all_are_counted() {
    let claims = Claims::read(&Row::read(b"{}").expect("an object"));
    let twice = ["confine=full", "confine=full|full"].map(read);
    for sessions in [0, MAX_UNMET as u64, MAX_UNMET as u64 + 1] {
        let mut asked = Asked::new(&twice);
        for session in 0..sessions {
            asked.session(session, &claims);
        }
        let required = asked.finish().expect("something was asked");
        assert_eq!(required.count, sessions);
        assert_eq!(required.unmet.len() as u64, sessions.min(MAX_UNMET as u64));
    }
    assert_eq!(Asked::new(&[]).finish(), None);
}

/// A requirement of the grammar: its key, operator and values.
fn requirement() -> impl Strategy<Value = (Key, bool, Vec<&'static str>)> {
    let key = prop::sample::select(Key::ALL.to_vec());
    key.prop_flat_map(|key| {
        let names: Vec<_> = key.values().iter().map(|value| value.name).collect();
        let negated = any::<bool>().prop_map(move |negated| negated || key == Key::Hole);
        (
            Just(key),
            negated,
            prop::collection::vec(prop::sample::select(names), 1..6),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_the_grammar_makes_is_read_and_written_back((key, negated, values) in requirement()) {
        let operator = if negated { "!=" } else { "=" };
        let text = format!("{}{operator}{}", key.name(), values.join("|"));
        let parsed = read(&text);
        prop_assert_eq!((parsed.key, parsed.negated), (key, negated));
        for value in &values {
            prop_assert!(parsed.values.iter().any(|known| known.name == *value));
        }
        prop_assert_eq!(&read(&parsed.to_string()), &parsed);
    }

    /// Whatever else is read is one of those, and never with blanks.
    #[test]
    fn near_the_grammar_nothing_else_is_read(
        (key, negated, values) in requirement(), at in any::<prop::sample::Index>(), with in "[ -~\\t]",
    ) {
        let operator = if negated { "!=" } else { "=" };
        let mut text = format!("{}{operator}{}", key.name(), values.join("|"));
        let at = at.index(text.len());
        text.replace_range(at..=at, &with);
        if let Ok(parsed) = text.parse::<Requirement>() {
            prop_assert!(!text.contains([' ', '\t']));
            prop_assert_eq!(&read(&parsed.to_string()), &parsed);
        }
    }

    /// Of one word that is known exactly one operator holds; of any other none.
    #[test]
    fn an_operator_and_its_negation((key, _, values) in requirement(), word in "[a-z-]{0,12}|full|none|denied|host-port") {
        let values = values.join("|");
        let status = json!({"confinement": {"status": word}, "durability": word, "policy": {"status": word}});
        let open = match key {
            Key::Net => confined("network", json!(word)),
            Key::Metadata => confined("metadata", json!(word)),
            Key::Hole => return Ok(()),
            _ => status,
        };
        let is = missed(&format!("{}={values}", key.name()), &open).is_none();
        let is_not = missed(&format!("{}!={values}", key.name()), &open).is_none();
        prop_assert_eq!(is || is_not, key.word(&word).is_some());
        prop_assert!(!(is && is_not));
    }
}
