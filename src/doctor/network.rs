//! What `--allow-net` needs besides namespaces.

use super::answers::Answers;
use super::finding::{Cure, Finding, Id, Status};
use crate::wire::escape::Escaped;

pub(super) fn findings(answers: &Answers) -> [Finding; 3] {
    [ipv6(answers), name_servers(answers), open_files(answers)]
}

fn ipv6(answers: &Answers) -> Finding {
    match answers.ipv6 {
        true => Finding::ok(Id::Ipv6, "yes", "servers may connect by either family"),
        false => Finding::ok(Id::Ipv6, "no", "servers connect by IPv4 only"),
    }
}

fn name_servers(answers: &Answers) -> Finding {
    match &answers.name_servers {
        Ok(servers) => {
            let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
            Finding::ok(
                Id::NameServers,
                servers.join(", "),
                "aegis asks these for the names that --allow-net lists, and nobody for others",
            )
        }
        Err(why) => Finding::new(
            Id::NameServers,
            Status::Limited,
            format!("/etc/resolv.conf: {}", Escaped(why)),
            "--allow-net reaches addresses, and names that stand in /etc/hosts, but no others",
        )
        .cured(
            Cure::say("name a server in /etc/resolv.conf, and let every user read that file:")
                .line("nameserver ADDRESS"),
        ),
    }
}

fn open_files(answers: &Answers) -> Finding {
    match answers.open_files {
        Some(files) if files < ENOUGH_FILES => Finding::new(
            Id::OpenFiles,
            Status::Limited,
            format!("at most {files} at once"),
            "of a server's connections through aegis each takes two, and those beyond are refused",
        )
        .cured(
            Cure::say("allow more where aegis is started:")
                .line(format!("ulimit -n {ENOUGH_FILES}")),
        ),
        Some(files) => Finding::ok(
            Id::OpenFiles,
            format!("at most {files} at once"),
            "enough for a server's connections through aegis",
        ),
        None => Finding::ok(Id::OpenFiles, "no limit", "enough for any server"),
    }
}

/// The usual limit.
pub(super) const ENOUGH_FILES: u64 = 1024;
