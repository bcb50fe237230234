//! What runs come to: findings, of which each says of which run it is.

use std::time::Duration;

use super::compare::{self, Sameness};
use super::process::Ending;
use super::session::{Step, Talk};
use crate::doctor::finding::{Cure, Finding, Id, Status};
use crate::wire::escape::Escaped;

/// The runs in one way of starting the server.
pub(super) struct Pair<'a> {
    /// `plain`, `wrap` or `confined`.
    pub(super) way: &'static str,
    /// Ended by the end of its input.
    pub(super) talk: &'a Talk,
    /// Ended by SIGTERM.
    pub(super) signalled: &'a Talk,
}

/// What is wrong with the server itself, when nothing is between.
pub(super) fn plain(plain: &Pair<'_>) -> Vec<Finding> {
    let talk = plain.talk;
    if let Some(why) = &talk.not_started {
        let why = format!("the command cannot be run: {}", Escaped(why));
        return vec![
            Finding::new(
                Id::Start,
                Status::Fails,
                why,
                "there is no server to be looked at",
            )
            .cured(Cure::say(
                "give the command as a client would run it, behind `--`",
            )),
        ];
    }
    let mut findings = Vec::new();
    if !talk.works() {
        findings.push(no_server(talk));
    }
    findings.extend(garbage(talk));
    if let Step::Refused(_) = talk.tools {
        findings.extend(step(
            Id::Tools,
            &talk.tools,
            "it lists no tools",
            "records and policies are about calls of tools",
        ));
    }
    findings.extend(step(
        Id::Ping,
        &talk.ping,
        "it answers no ping",
        "clients that ask for a sign of life take it for dead",
    ));
    findings.extend(step(
        Id::LargeFrame,
        &talk.large,
        "it does not answer a request of 1 MiB",
        "calls with long arguments may be lost",
    ));
    findings.extend(step(
        Id::Cancellation,
        &talk.cancel,
        "it does not answer after a request was cancelled",
        "clients that cancel a call lose it",
    ));
    if talk.works() {
        findings.extend(endings(plain));
    }
    findings
}

/// What is wrong with another way that is not with the plain one.
pub(super) fn against(plain: &Pair<'_>, again: &Talk, other: &Pair<'_>) -> Vec<Finding> {
    let way = other.way;
    if let Some(why) = &other.talk.not_started {
        let why = format!("{way}: aegis cannot be run: {}", Escaped(why));
        return vec![
            Finding::new(Id::Start, Status::Fails, why, "nothing can be recorded")
                .cured(Cure::say("let this user execute aegis")),
        ];
    }
    // Of one that does not work confined there is more to say than this.
    if way == "confined" && !other.talk.works() {
        return Vec::new();
    }
    let mut findings = vec![answers(plain.talk, again, other)];
    let steps = [
        (Id::Ping, "a ping", &plain.talk.ping, &other.talk.ping),
        (
            Id::LargeFrame,
            "a request of 1 MiB",
            &plain.talk.large,
            &other.talk.large,
        ),
        (
            Id::Cancellation,
            "what follows a cancelled request",
            &plain.talk.cancel,
            &other.talk.cancel,
        ),
    ];
    let is_answered = |step: &Step| matches!(step, Step::Answered(_));
    for (id, what, before, now) in steps {
        if is_answered(before) && !is_answered(now) && other.talk.works() {
            let found = format!("{way}: {what} is not answered, which it is without");
            findings.push(
                Finding::new(
                    id,
                    Status::Fails,
                    found,
                    "clients see another server than without aegis",
                )
                .cured(Cure::say(REPORT)),
            );
        }
    }
    if other.talk.works() {
        findings.extend(exit_codes(plain, other));
        findings.extend(left_behind_aegis(other));
    }
    findings
}

/// What a ping takes more.
pub(super) fn latency(plain: &Talk, wrap: &Talk) -> Option<Finding> {
    let (before, now) = (plain.ping_median?, wrap.ping_median?);
    Some(Finding::ok(
        Id::Latency,
        format!(
            "a ping takes {} plain and {} under wrap (medians)",
            millis(before),
            millis(now)
        ),
        "a tools/call waits for the disk besides, see --durability",
    ))
}

/// A figure that a person can read.
pub(crate) fn millis(wall: Duration) -> String {
    let micros = wall.as_micros();
    match micros {
        0..10_000 => format!("{}.{:02} ms", micros / 1000, micros % 1000 / 10),
        _ => format!("{} ms", micros / 1000),
    }
}

/// What was said on standard error, for a person: the rows that speak of an
/// error, or else the last ones.
pub(super) fn last_words(talk: &Talk) -> String {
    let said = talk.ending.as_ref().map_or(&[][..], |ending| &ending.said);
    let is_telling = |row: &&String| {
        let row = row.to_lowercase();
        TELLING.iter().any(|word| row.contains(word))
    };
    let mut rows: Vec<_> = said.iter().filter(is_telling).collect();
    if rows.is_empty() {
        rows = said.iter().collect();
    }
    let shown = rows.split_off(rows.len().saturating_sub(SHOWN_ROWS));
    if shown.is_empty() {
        return "it says nothing on standard error".to_owned();
    }
    let shown = shown.into_iter().map(|row| Escaped(row.trim()).to_string());
    format!(
        "on standard error: {}",
        shown.collect::<Vec<_>>().join(" | ")
    )
}

/// What kept a server from being used.
pub(super) fn why_not(talk: &Talk) -> String {
    let ended = || match &talk.ending {
        Some(ending) if ending.ended => format!(", and ended with exit code {}", ending.code),
        _ => String::new(),
    };
    let of = |what: &str, step: &Step| match step {
        Step::Answered(_) | Step::Skipped => None,
        Step::Refused(why) => Some(format!("{what} is refused: {}", Escaped(why))),
        Step::Silent(wait) => Some(format!(
            "{what} is not answered within {} s",
            wait.as_secs()
        )),
        Step::Closed => Some(format!(
            "it closed its output instead of answering {what}{}",
            ended()
        )),
    };
    of("initialize", &talk.handshake)
        .or_else(|| of("tools/list", &talk.tools))
        .unwrap_or_else(|| "it answers otherwise than without confinement".to_owned())
}

fn no_server(talk: &Talk) -> Finding {
    let id = match talk.handshake {
        Step::Answered(_) => Id::Tools,
        _ => Id::Handshake,
    };
    Finding::new(
        id,
        Status::Fails,
        format!("plain: {}; {}", why_not(talk), last_words(talk)),
        "it does not work without aegis either, so nothing more was tried",
    )
    .cured(Cure::say(
        "run it as a client does: with the same arguments, variables and working directory",
    ))
}

fn garbage(talk: &Talk) -> Option<Finding> {
    let (count, first) = &talk.garbage;
    (*count > 0).then(|| {
        Finding::new(
            Id::Output,
            Status::Limited,
            format!(
                "plain: {count} rows of output are no JSON-RPC, the first: {}",
                Escaped(first)
            ),
            "MCP has nothing else on standard output; aegis relays and counts such rows",
        )
        .cured(Cure::say(
            "have the server write its messages to standard error",
        ))
    })
}

fn step(id: Id, step: &Step, found: &str, means: &str) -> Option<Finding> {
    let how = match step {
        Step::Answered(_) | Step::Skipped => return None,
        Step::Refused(why) => format!(": {}", Escaped(why)),
        Step::Silent(wait) => format!(" within {} s", wait.as_secs()),
        Step::Closed => ", and closes its output".to_owned(),
    };
    Some(
        Finding::new(id, Status::Limited, format!("plain: {found}{how}"), means).cured(Cure::say(
            "have the server mended; aegis changes nothing about it",
        )),
    )
}

fn endings(plain: &Pair<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let told = [
        (
            Id::EndOfInput,
            plain.talk,
            "it goes on when its input has ended",
            "a client that leaves waits, or leaves it behind; aegis ends it after 5 s, by SIGTERM",
        ),
        (
            Id::Sigterm,
            plain.signalled,
            "it goes on after SIGTERM",
            "only SIGKILL ends it, which is what aegis does after 1 s",
        ),
    ];
    for (id, talk, found, means) in told {
        if talk.ending.as_ref().is_some_and(|ending| !ending.ended) {
            findings.push(
                Finding::new(id, Status::Limited, format!("plain: {found}"), means).cured(
                    Cure::say("have the server mended; under aegis nothing of it stays"),
                ),
            );
        }
    }
    let left = left(plain);
    if !left.is_empty() {
        findings.push(
            Finding::new(
                Id::LeftOver,
                Status::Limited,
                format!("plain: it leaves processes running: {}", left.join(", ")),
                "without aegis they stay; they were ended now",
            )
            .cured(Cure::say(
                "have the server end what it starts; aegis wrap does it meanwhile",
            )),
        );
    }
    findings
}

fn left(pair: &Pair<'_>) -> Vec<String> {
    let ended = [pair.talk, pair.signalled].map(|talk| talk.ending.as_ref());
    let mut left: Vec<_> = ended
        .into_iter()
        .flatten()
        .flat_map(|ending| &ending.left)
        .map(|name| Escaped(name).to_string())
        .collect();
    left.sort_unstable();
    left.dedup();
    left
}

fn left_behind_aegis(other: &Pair<'_>) -> Option<Finding> {
    let left = left(other);
    (!left.is_empty()).then(|| {
        Finding::new(
            Id::LeftOver,
            Status::Fails,
            format!(
                "{}: processes were left running: {}",
                other.way,
                left.join(", ")
            ),
            "aegis should have ended them; doctor did",
        )
        .cured(Cure::say(REPORT))
    })
}

fn answers(plain: &Talk, again: &Talk, other: &Pair<'_>) -> Finding {
    let way = other.way;
    let new = |status, found: String, means: &str| Finding::new(Id::Answers, status, found, means);
    match compare::answers(plain, again, other.talk) {
        Sameness::Same(count) => new(
            Status::Ok,
            format!("{way}: {count} answers, byte for byte those of the plain run"),
            "clients see the same server",
        ),
        Sameness::SameBut { answers, values } => new(
            Status::Ok,
            format!("{way}: {answers} answers, those of the plain run but for {values} values"),
            "these differ between plain runs as well",
        ),
        Sameness::Differs(steps) if other.talk.works() => new(
            Status::Fails,
            format!("{way}: other answers than plain to {}", steps.join(", ")),
            "clients see another server than without",
        )
        .cured(Cure::say(REPORT)),
        Sameness::Differs(_) => new(
            Status::Fails,
            format!("{way}: {}; {}", why_not(other.talk), last_words(other.talk)),
            "it works without",
        )
        .cured(Cure::say(REPORT)),
        Sameness::Unknown => new(
            Status::Unknown,
            format!("{way}: no answer that could be compared"),
            "two plain runs have no answer in common",
        )
        .cured(Cure::say("run the doctor again")),
    }
}

fn exit_codes(plain: &Pair<'_>, other: &Pair<'_>) -> Vec<Finding> {
    let ends = [
        ("the end of its input", plain.talk, other.talk),
        ("SIGTERM", plain.signalled, other.signalled),
    ];
    let ended = |talk: &Talk| -> Option<i32> {
        let Ending { ended, code, .. } = talk.ending.as_ref()?;
        ended.then_some(*code)
    };
    let mut findings = Vec::new();
    for (when, before, now) in ends {
        // One that had to be ended by force has another code for that.
        if let (Some(before), now) = (ended(before), ended(now))
            && now != Some(before)
        {
            let now = now.map_or("none".to_owned(), |code| code.to_string());
            findings.push(
                Finding::new(
                    Id::ExitCode,
                    Status::Limited,
                    format!(
                        "{}: after {when} the exit code is {now}, plain {before}",
                        other.way
                    ),
                    "who looks at exit codes sees another one",
                )
                .cured(Cure::say(
                    "none is needed where nobody looks at it, as MCP clients do not",
                )),
            );
        }
    }
    findings
}

const REPORT: &str = "report it, with this output: aegis should make no difference here";

/// What errors are told with.
const TELLING: [&str; 5] = ["error", "denied", "cannot", "not found", "no such"];

const SHOWN_ROWS: usize = 3;
