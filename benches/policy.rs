//! What a verdict costs, beside a look-up in a hash map, and what reading a
//! policy does.
//!
//! How to read the rows: benches/README.md.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use aegis::internals::{Judge, Policy, Station};
use criterion::{Criterion, Throughput, criterion_group};

mod support;

criterion_group! {
    name = benches;
    config = Criterion::default();
    targets = eval, station, parse
}

fn main() {
    println!("{}", support::machine());
    benches();
    Criterion::default().configure_from_args().final_summary();
    println!("{}", support::load());
}

fn eval(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("policy_eval");
    let tools: HashMap<String, usize> = (0..RULES).map(|n| (format!("tool-{n}"), n)).collect();
    let last = format!("tool-{}", RULES - 1);
    group.bench_function("floor_hash_lookup", |bencher| {
        bencher.iter(|| tools.get(black_box(last.as_str())));
    });
    for (name, document, tool, is_allowed) in [
        ("allow_all", "rules: []\n".to_owned(), "read_file", true),
        ("multi_rule", ten_rules(), "exec", false),
        ("rate_limit", RATE_LIMIT.to_owned(), "search", true),
        ("ten_thousand_rules", many_rules(), &last, false),
    ] {
        let judge = Judge::by(&document).unwrap();
        assert_eq!(judge.allows(tool, NOW), is_allowed, "{name}");
        group.bench_function(name, |bencher| {
            bencher.iter(|| judge.allows(black_box(tool), NOW));
        });
    }
}

/// What comes between the reading of a frame and its intent: the verdict, and
/// what the record says of it.
fn station(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("policy_station");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, support::rules_by_tool()).unwrap();
    let policy = Some(file.path());
    let call = |tool: &str| {
        format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#)
    };
    let ping = r#"{"id":1,"method":"ping"}"#.to_owned();
    for (name, policy, frame, goes_on) in [
        ("ping_without_policy", None, ping.clone(), true),
        ("ping", policy, ping, true),
        (
            "call_without_policy",
            None,
            call(support::ALLOWED_TOOL),
            true,
        ),
        ("call_allowed", policy, call(support::ALLOWED_TOOL), true),
        ("call_refused", policy, call(support::DENIED_TOOL), false),
    ] {
        let station = Station::of(policy, frame.as_bytes()).unwrap();
        assert_eq!(station.pass(), goes_on, "{name}");
        group.bench_function(name, |bencher| bencher.iter(|| black_box(&station).pass()));
    }
}

fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("policy_parse");
    let document = full_rules();
    group.throughput(Throughput::Bytes(document.len() as u64));
    group.sample_size(20);
    group.bench_function("ten_thousand_rules", |bencher| {
        bencher.iter(|| Policy::parse(black_box(&document)).unwrap().count_rules());
    });
}

fn ten_rules() -> String {
    let mut document = "default: deny\nrules:\n".to_owned();
    for (n, (action, tool)) in [
        ("allow", "read"),
        ("allow", "write"),
        ("deny", "exec"),
        ("pending_approval", "deploy"),
        ("allow", "*"),
    ]
    .into_iter()
    .enumerate()
    {
        let rule = format!("id: r{n}, action: {action}, tool: '{tool}'");
        writeln!(document, "- {{{rule}}}").unwrap();
        let rule = format!("id: s{n}, action: {action}, tool: '{tool}', role: admin");
        writeln!(document, "- {{{rule}, capability: net, priority: {n}}}").unwrap();
    }
    document
}

fn many_rules() -> String {
    let mut document = "default: allow\nrules:\n".to_owned();
    for n in 0..RULES {
        let more = match n % 4 {
            0 => ", capability: net",
            1 => ", role: admin",
            _ => "",
        };
        let action = if n % 2 == 0 { "allow" } else { "deny" };
        writeln!(
            document,
            "- {{id: r{n}, action: {action}, tool: tool-{n}{more}}}"
        )
        .unwrap();
    }
    document
}

fn full_rules() -> String {
    let mut document = "version: 1\ndefault: deny\nrules:\n".to_owned();
    for n in 0..RULES {
        writeln!(
            document,
            "  - id: rule-{n}\n    action: rate_limit\n    tool: tool-{n}\n    \
             capability: fs:read\n    role: admin\n    priority: {n}\n    \
             reason: \"not more than ten a minute\"\n    rate: {{ max: 10, per_seconds: 60 }}\n    \
             limits: {{ max_memory_bytes: 33554432, max_wall_ms: 5000, max_output_bytes: 65536 }}"
        )
        .unwrap();
    }
    document
}

const RATE_LIMIT: &str = "rules:\n\
     - {id: r, action: rate_limit, tool: search, rate: {max: 4294967295, per_seconds: 3600}}\n";

const RULES: usize = 10_000;

const NOW: Duration = Duration::from_secs(1);
