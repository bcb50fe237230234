//! How a server fared, for a person at a terminal.

use std::fmt;
use std::time::Duration;

use super::doctor_text::{MARGIN, write_finding, write_wrapped};
use crate::doctor::server::{Confinement, Ended, Run, Server, millis};
use crate::wire::escape::Escaped;

/// A table of the runs, the findings, and the flags.
pub(super) struct ServerText<'a>(pub(super) &'a Server);

impl fmt::Display for ServerText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = self.0.command.join(" ");
        write_wrapped(f, "This server: ", MARGIN, &Escaped(&command).to_string())?;
        if let Some(name) = self.0.runs.iter().find_map(|run| run.server.as_ref()) {
            let name = format!("it calls itself {}", Escaped(name));
            write_wrapped(f, &" ".repeat(MARGIN), MARGIN, &name)?;
        }
        write_table(f, &self.0.runs)?;
        f.write_str("\n")?;
        for finding in &self.0.findings {
            write_finding(f, finding)?;
        }
        if let Some(confinement) = &self.0.confinement {
            write_refused(f, confinement)?;
            f.write_str("Found by\n")?;
            for means in &self.0.means {
                write_wrapped(f, &format!("{:MARGIN$}- ", ""), MARGIN + 2, means)?;
            }
            write_flags(f, confinement)?;
        }
        match &self.0.proposal {
            Some(proposal) => write_flags(f, proposal),
            None => Ok(()),
        }
    }
}

fn write_table(f: &mut fmt::Formatter<'_>, runs: &[Run]) -> fmt::Result {
    let rows: [(&str, Cell); 8] = [
        ("", |run| run.way.to_owned()),
        ("handshake", |run| time(run.handshake_us)),
        ("tools", |run| {
            run.tools.map_or(NONE.to_owned(), |tools| tools.to_string())
        }),
        ("ping, median", |run| time(run.ping_us)),
        ("1 MiB request", |run| run.large_frame.to_owned()),
        ("after a cancel", |run| run.cancellation.to_owned()),
        ("end of input", |run| ended(run.end_of_input.as_ref())),
        ("SIGTERM", |run| ended(run.sigterm.as_ref())),
    ];
    for (name, value) in rows {
        let mut row = format!("{:MARGIN$}{name:<NAME$}", "");
        for run in runs {
            row.push_str(&format!("{:<VALUE$}", value(run)));
        }
        writeln!(f, "{}", row.trim_end())?;
    }
    Ok(())
}

fn time(us: Option<u64>) -> String {
    us.map_or(NONE.to_owned(), |us| millis(Duration::from_micros(us)))
}

fn ended(ended: Option<&Ended>) -> String {
    match ended {
        None => NONE.to_owned(),
        Some(Ended { us: None, .. }) => "goes on".to_owned(),
        Some(Ended { us, exit, .. }) => format!("{}, exit {exit}", time(*us)),
    }
}

fn write_refused(f: &mut fmt::Formatter<'_>, confinement: &Confinement) -> fmt::Result {
    let indent = " ".repeat(MARGIN);
    let is_quiet = confinement.paths.is_empty()
        && confinement.hosts.is_empty()
        && confinement.unix_sockets.is_empty();
    writeln!(f, "\nRefused with these flags")?;
    if is_quiet {
        writeln!(f, "{indent}nothing that it gets otherwise")?;
    }
    for path in confinement.paths.iter().take(SHOWN) {
        writeln!(f, "{indent}{:<8}{}", path.act, Escaped(&path.path))?;
    }
    for host in confinement.hosts.iter().take(SHOWN) {
        writeln!(f, "{indent}{:<8}{}", "host", Escaped(host))?;
    }
    for socket in confinement.unix_sockets.iter().take(SHOWN) {
        writeln!(f, "{indent}{:<8}{}", "socket", Escaped(socket))?;
    }
    let all = [
        &confinement.paths.len(),
        &confinement.hosts.len(),
        &confinement.unix_sockets.len(),
    ];
    let more: usize = all.iter().map(|count| count.saturating_sub(SHOWN)).sum();
    if more > 0 {
        writeln!(f, "{indent}and {more} more, see --format json")?;
    }
    if confinement.works && !is_quiet {
        write_wrapped(
            f,
            &indent,
            MARGIN,
            "It starts without these; a tool may need them.",
        )?;
    }
    Ok(())
}

fn write_flags(f: &mut fmt::Formatter<'_>, confinement: &Confinement) -> fmt::Result {
    let indent = " ".repeat(MARGIN);
    let title = match (confinement.proposed, confinement.works) {
        (true, true) => "Proposed",
        (true, false) => "Nearest that was found",
        (false, _) => "As given",
    };
    writeln!(f, "\n{title}\n{indent}{}", confinement.line)?;
    let client = serde_json::to_string(&confinement.client).map_err(|_| fmt::Error)?;
    writeln!(
        f,
        "In the configuration of a client\n{indent}{}",
        ascii(&client)
    )?;
    for note in &confinement.notes {
        write_wrapped(f, &format!("{indent}- "), MARGIN + 2, note)?;
    }
    Ok(())
}

/// JSON that shows as what it is: what is no ASCII, as `\u`.
fn ascii(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, ' '..='~') {
            shown.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            shown.push_str(&format!("\\u{unit:04x}"));
        }
    }
    shown
}

/// What a table has of a run.
type Cell = fn(&Run) -> String;

const NONE: &str = "-";
const NAME: usize = 16;
const VALUE: usize = 20;
/// Of each kind; the JSON form has more.
const SHOWN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pasted_hides_nothing() {
        let odd = "a\u{202e}\u{7f}\u{1f600}\u{1b}\"";
        let json = serde_json::to_string(odd).unwrap();
        let shown = ascii(&json);
        assert!(
            shown.bytes().all(|byte| matches!(byte, b' '..=b'~')),
            "{shown}"
        );
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), odd);
    }
}
