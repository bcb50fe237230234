//! What `aegis doctor` found, for a person at a terminal.

use std::fmt;

use super::doctor_server_text::ServerText;
use crate::doctor::finding::{Finding, Status};
use crate::doctor::verdict::{BestEffort, Extent, Network, Verdict};
use crate::doctor::{Fitness, Report};

/// A report in lines of at most [`COLUMNS`], but for what is to be typed and
/// for words that are longer.
pub(super) struct Text<'a>(pub(super) &'a Report);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("This machine\n")?;
        // Whoever asks about a server has seen what is in order here.
        let is_short = self.0.server.is_some();
        let is_shown = |found: &&Finding| !is_short || found.status != Status::Ok;
        let mut left_out = self.0.machine.len();
        for finding in self.0.machine.iter().filter(is_shown) {
            write_finding(f, finding)?;
            left_out -= 1;
        }
        if left_out > 0 {
            let lead = format!("{:MARGIN$}{:<STATUS$}", "", Status::Ok.name());
            let row = format!("{left_out} findings: `aegis doctor` without a command shows them");
            write_wrapped(f, &lead, TEXT, &row)?;
        }
        if !self.0.paths.is_empty() {
            f.write_str("\nThese paths\n")?;
        }
        for finding in &self.0.paths {
            write_finding(f, finding)?;
        }
        f.write_str("\nWith --confine\n")?;
        for (fence, what) in fences(&self.0.verdict) {
            let lead = format!("{:MARGIN$}{fence:<FENCE$}", "");
            write_wrapped(f, &lead, MARGIN + FENCE, what)?;
        }
        if let Some(server) = &self.0.server {
            write!(f, "\n{}", ServerText(server))?;
        }
        writeln!(f, "\n{}", summary(self.0))
    }
}

pub(super) fn write_finding(f: &mut fmt::Formatter<'_>, finding: &Finding) -> fmt::Result {
    let lead = format!("{:MARGIN$}{:<STATUS$}", "", finding.status.name());
    let row = format!("{}: {}", finding.id.name(), finding.found);
    write_wrapped(f, &lead, TEXT, &row)?;
    let indent = " ".repeat(TEXT);
    write_wrapped(f, &indent, TEXT, &finding.means)?;
    if let Some(cure) = &finding.cure {
        write_wrapped(f, &indent, TEXT, &format!("cure: {}", cure.text))?;
        for line in &cure.lines {
            writeln!(f, "{indent}  {line}")?;
        }
    }
    Ok(())
}

/// `lead`, and behind it `text`, whose further lines are indented. A command
/// is never broken: it would not be one any more.
pub(super) fn write_wrapped(
    f: &mut fmt::Formatter<'_>,
    lead: &str,
    indent: usize,
    text: &str,
) -> fmt::Result {
    f.write_str(lead)?;
    let mut column = indent;
    for (at, word) in text.split(' ').enumerate() {
        let width = word.chars().count();
        if at > 0 && column + 1 + width > COLUMNS {
            write!(f, "\n{:indent$}", "")?;
            column = indent;
        } else if at > 0 {
            f.write_str(" ")?;
            column += 1;
        }
        f.write_str(word)?;
        column += width;
    }
    f.write_str("\n")
}

fn fences(verdict: &Verdict) -> [(&'static str, &'static str); 3] {
    [
        (
            "files",
            match verdict.files {
                Extent::Full => "full: what is not granted cannot be reached",
                Extent::Refused => REFUSED,
            },
        ),
        (
            "system calls",
            match verdict.system_calls {
                Extent::Full => "full: what could get around the rest is refused",
                Extent::Refused => REFUSED,
            },
        ),
        (
            "network",
            match (verdict.network, verdict.best_effort_network) {
                (Network::HostPort, _) => {
                    "denied, or hosts and ports: in a namespace of the server's own"
                }
                (Network::Denied, BestEffort::PortOnly) => {
                    "denied only; --allow-net is refused, and with --best-effort holds a server \
                     to ports, of any host"
                }
                (Network::Denied, _) => {
                    "denied only; --allow-net is refused, and with --best-effort holds a server \
                     to nothing"
                }
                (Network::Unknown, _) => "denied; whether --allow-net can be enforced is not known",
                (Network::Refused, _) => REFUSED,
            },
        ),
    ]
}

fn summary(report: &Report) -> String {
    let count = |status| {
        report
            .findings()
            .filter(|found| found.status == status)
            .count()
    };
    let counts: Vec<_> = [
        Status::Missing,
        Status::Fails,
        Status::Unsafe,
        Status::Limited,
        Status::Unknown,
    ]
    .into_iter()
    .map(|status| (count(status), status.name()))
    .filter(|(count, _)| *count > 0)
    .map(|(count, name)| format!("{count} {name}"))
    .collect();
    match report.fitness() {
        Fitness::Fit => "Nothing to mend.".to_owned(),
        Fitness::Limited | Fitness::Unfit => {
            format!("{}: see each cure above.", counts.join(", "))
        }
    }
}

const REFUSED: &str = "refused: nothing is started";

const COLUMNS: usize = 80;
pub(super) const MARGIN: usize = 2;
const STATUS: usize = 9;
const FENCE: usize = 14;
const TEXT: usize = MARGIN + STATUS;

#[cfg(test)]
mod tests;
