use proptest::prelude::*;

use super::*;

fn error(document: &str) -> String {
    parse(document.as_bytes()).unwrap_err().to_string()
}

/// SPEC [POLICY-12].
#[test]
fn a_document_without_a_path_has_places_too() {
    let twice = "rules:\n- {id: x, action: deny}\n- {id: x, action: deny}\n";
    let text = error(twice);
    assert_eq!(
        text,
        "line 3, column 8: duplicate rule id `x`; it stands first on line 2"
    );
    let named = parse(twice.as_bytes())
        .unwrap_err()
        .of_file(Path::new("a\nb"));
    assert_eq!(
        named.to_string(),
        "a\\u{a}b:3:8: duplicate rule id `x`; it stands first on line 2"
    );
    assert_eq!(named.at(), Some(Position { line: 3, column: 8 }));
}

#[test]
fn columns_count_characters() {
    let text = error("rules:\n- {id: \"é日\", action: no}\n");
    assert!(text.starts_with("line 2, column 22: "), "{text}");
    let text = error("# é\ndefault: é\u{0}\n");
    assert!(text.starts_with("line 2, column 11: "), "{text}");
}

#[test]
fn a_document_means_what_it_says() {
    let set = parse(
        b"version: 1\ndefault: deny\nrules:\n\
          - id: all\n  action: rate_limit\n  tool: t\n  capability: '*'\n  role: \"r\"\n  \
          priority: -5\n  reason: >-\n    two\n    lines\n  rate: {max: 1, per_seconds: 2}\n  \
          limits: {max_memory_bytes: 3, max_wall_ms: 4, max_output_bytes: 5}\n\
          - {id: bare, action: allow}\n",
    )
    .unwrap();
    let at = |line, column| Position { line, column };
    assert_eq!(
        set.rules(),
        [
            Rule {
                id: "all".to_owned(),
                action: Action::RateLimit(Rate {
                    max: 1,
                    per_seconds: 2
                }),
                tool: Some("t".to_owned()),
                capability: None,
                role: Some("r".to_owned()),
                priority: -5,
                reason: Some("two lines".to_owned()),
                limits: Limits {
                    max_memory_bytes: Some(3),
                    max_wall_ms: Some(4),
                    max_output_bytes: Some(5)
                },
                at: at(4, 7),
            },
            Rule {
                id: "bare".to_owned(),
                action: Action::Allow,
                tool: None,
                capability: None,
                role: None,
                priority: 0,
                reason: None,
                limits: Limits::default(),
                at: at(15, 8),
            }
        ]
    );
    assert!(set.states_default());
}

/// SPEC [POLICY-9]: half a character is none, also with its other half beside
/// it, which some readers leave as two.
#[test]
fn an_escape_is_a_whole_character() {
    for text in [
        "\\ud83d\\ude00",
        "a\\\\\\uD83D\\uDE00",
        "é\\ude00",
        "\\U0000d83d",
    ] {
        let error = error(&format!("rules:\n- {{id: \"{text}\", action: deny}}\n"));
        assert!(error.contains("escape"), "{text}: {error}");
    }
    let text = error("rules:\n- {id: \"é \\ud83d\\ude00\", action: deny}\n");
    assert!(text.starts_with("line 2, column 11: "), "{text}");
    let set = parse(b"rules:\n- {id: \"\\U0001f600 \\u00e9 \\\\ud83d\\\\ude00\", action: deny}\n")
        .unwrap();
    assert_eq!(set.rules()[0].id, "\u{1f600} \u{e9} \\ud83d\\ude00");
    // Only in double quotes is a backslash an escape.
    let set = parse(b"rules:\n- {id: '\\ud83d\\ude00', action: deny}\n").unwrap();
    assert_eq!(set.rules()[0].id, "\\ud83d\\ude00");
}

/// The parts that documents are made of, right and wrong.
fn part() -> impl Strategy<Value = String> {
    let parts = [
        "version: 1\n",
        "default: deny\n",
        "rules:\n",
        "rules: [",
        "- id: a\n",
        "  action: deny\n",
        "  tool: ",
        "  rate: {max: 1, per_seconds: 1}\n",
        "{",
        "}",
        "]",
        ", ",
        ": ",
        "- ",
        "? ",
        "&a ",
        "*a ",
        "! ",
        "!!str ",
        "\"",
        "'",
        "|\n",
        ">-\n  ",
        "#",
        "%",
        "---\n",
        "...\n",
        "\t",
        "\r\n",
        "\r",
        " ",
        "\n",
        "\u{feff}",
        "é",
        "~",
        "<<: ",
        "\\",
        "@",
        "`",
    ];
    prop_oneof![
        8 => prop::sample::select(parts.map(str::to_owned).to_vec()),
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    /// SPEC [POLICY-12]: whatever the document, it is read or refused, with a
    /// place in it, in one line.
    #[test]
    fn whatever_it_is_there_is_an_answer(parts in prop::collection::vec(part(), 0..24)) {
        let document = parts.concat();
        if let Err(error) = parse(document.as_bytes()) {
            let at = error.at().unwrap();
            let lines = document.matches('\n').count() as u64 + 1;
            prop_assert!(at.line >= 1 && at.line <= lines + 1, "{error}");
            prop_assert!(at.column >= 1, "{error}");
            let text = error.to_string();
            prop_assert!(!text.contains(|c: char| c.is_control()), "{text:?}");
        }
    }

    #[test]
    fn bytes_of_any_kind_have_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Err(error) = parse(&bytes) {
            prop_assert!(error.at().is_some());
        }
    }
}

/// SPEC [POLICY-12]: a policy that breaks off anywhere is refused, or is one
/// that stands there whole.
#[test]
fn a_policy_that_breaks_off_is_refused_or_whole() {
    let whole =
        "version: 1\ndefault: deny\nrules:\n- id: a\n  action: deny\n- {id: b, action: allow}\n";
    for end in 0..whole.len() {
        match parse(&whole.as_bytes()[..end]) {
            Ok(set) => assert!(set.rules().len() <= 2),
            Err(error) => assert!(error.at().is_some()),
        }
    }
}
