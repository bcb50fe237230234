//! A finding: what was looked at, how it stands, and how to mend it.

use serde::Serialize;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) id: Id,
    pub(crate) status: Status,
    /// What there is.
    pub(crate) found: String,
    /// What that means for a confined server, or for a record.
    pub(crate) means: String,
    /// What to do; only where something is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cure: Option<Cure>,
}

/// How to mend something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Cure {
    /// In words.
    pub(crate) text: String,
    /// What to type, to the letter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) lines: Vec<String>,
}

/// What was looked at. The names are API (SPEC §14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Id {
    Kernel,
    Architecture,
    Surroundings,
    Landlock,
    SystemCalls,
    Settings,
    UserNamespaces,
    Ipv6,
    NameServers,
    OpenFiles,
    SigningKey,
    SigningKeyPath,
    Audit,
    AuditPath,
    AuditStorage,
    Policy,
    PolicyPath,
    Start,
    Handshake,
    Tools,
    Ping,
    LargeFrame,
    Cancellation,
    EndOfInput,
    Sigterm,
    LeftOver,
    Output,
    Answers,
    Latency,
    ExitCode,
    Confinement,
    OutOfReach,
}

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Status {
    /// As it should be.
    Ok,
    /// It works, but not all of it.
    Limited,
    /// Something does not work without it.
    Missing,
    /// It does not work.
    Fails,
    /// Somebody else could use or change it.
    Unsafe,
    /// It could not be found out.
    Unknown,
}

impl Finding {
    pub(super) fn new(
        id: Id,
        status: Status,
        found: impl Into<String>,
        means: impl Into<String>,
    ) -> Self {
        Self {
            id,
            status,
            found: found.into(),
            means: means.into(),
            cure: None,
        }
    }

    pub(super) fn ok(id: Id, found: impl Into<String>, means: impl Into<String>) -> Self {
        Self::new(id, Status::Ok, found, means)
    }

    /// With what to do about it.
    pub(super) fn cured(self, cure: Cure) -> Self {
        Self {
            cure: Some(cure),
            ..self
        }
    }
}

impl Cure {
    pub(super) fn say(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            lines: Vec::new(),
        }
    }

    /// With one more line to type.
    pub(super) fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }
}

impl Id {
    /// Its name in the text form; the JSON form has the same.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Architecture => "architecture",
            Self::Surroundings => "surroundings",
            Self::Landlock => "landlock",
            Self::SystemCalls => "system-calls",
            Self::Settings => "settings",
            Self::UserNamespaces => "user-namespaces",
            Self::Ipv6 => "ipv6",
            Self::NameServers => "name-servers",
            Self::OpenFiles => "open-files",
            Self::SigningKey => "signing-key",
            Self::SigningKeyPath => "signing-key-path",
            Self::Audit => "audit",
            Self::AuditPath => "audit-path",
            Self::AuditStorage => "audit-storage",
            Self::Policy => "policy",
            Self::PolicyPath => "policy-path",
            Self::Start => "start",
            Self::Handshake => "handshake",
            Self::Tools => "tools",
            Self::Ping => "ping",
            Self::LargeFrame => "large-frame",
            Self::Cancellation => "cancellation",
            Self::EndOfInput => "end-of-input",
            Self::Sigterm => "sigterm",
            Self::LeftOver => "left-over",
            Self::Output => "output",
            Self::Answers => "answers",
            Self::Latency => "latency",
            Self::ExitCode => "exit-code",
            Self::Confinement => "confinement",
            Self::OutOfReach => "out-of-reach",
        }
    }
}

impl Status {
    /// Its name in the text form; the JSON form has the same.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Limited => "limited",
            Self::Missing => "missing",
            Self::Fails => "fails",
            Self::Unsafe => "unsafe",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_have_the_same_names() {
        let ids = [
            Id::Kernel,
            Id::Architecture,
            Id::Surroundings,
            Id::Landlock,
            Id::SystemCalls,
            Id::Settings,
            Id::UserNamespaces,
            Id::Ipv6,
            Id::NameServers,
            Id::OpenFiles,
            Id::SigningKey,
            Id::SigningKeyPath,
            Id::Audit,
            Id::AuditPath,
            Id::AuditStorage,
            Id::Policy,
            Id::PolicyPath,
            Id::Start,
            Id::Handshake,
            Id::Tools,
            Id::Ping,
            Id::LargeFrame,
            Id::Cancellation,
            Id::EndOfInput,
            Id::Sigterm,
            Id::LeftOver,
            Id::Output,
            Id::Answers,
            Id::Latency,
            Id::ExitCode,
            Id::Confinement,
            Id::OutOfReach,
        ];
        for id in ids {
            assert_eq!(serde_json::to_value(id).unwrap(), id.name());
        }
        use Status::{Fails, Limited, Missing, Ok, Unknown, Unsafe};
        for status in [Ok, Limited, Missing, Fails, Unsafe, Unknown] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.name());
        }
    }
}
