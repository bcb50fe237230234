//! The files that a record rests on: who else can read, change or replace
//! them.
//!
//! What aegis itself refuses is asked of the very code that refuses it. What
//! it bears, since it cannot know better, is looked at here.

use std::io;
use std::path::{Path, PathBuf};

use super::finding::{Cure, Finding, Id, Status};
use super::shell;
use super::way::{End, Fault, Kind, Stop, User, Way};
use crate::chain::audit::Audit;
use crate::chain::keyfile::{self, KeyFileError};
use crate::policy::parse::{self, PolicyError};
use crate::wire::escape::{Escaped, EscapedPath};

mod storage;

/// Those that were named.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    pub(crate) signing_key: Option<PathBuf>,
    pub(crate) audit: Option<PathBuf>,
    pub(crate) policy: Option<PathBuf>,
}

impl Paths {
    pub(super) fn findings(&self) -> Vec<Finding> {
        let user = User::of_this_process();
        let mut findings = Vec::new();
        if let Some(path) = &self.signing_key {
            findings.push(signing_key(path));
            findings.extend(on_the_way(Id::SigningKeyPath, path, user));
        }
        if let Some(path) = &self.audit {
            findings.extend(audit(path, user));
        }
        if let Some(path) = &self.policy {
            findings.extend(policy(path, user));
            findings.extend(on_the_way(Id::PolicyPath, path, user));
        }
        findings
    }
}

/// By the rules of whoever loads it (SPEC §9.3).
fn signing_key(path: &Path) -> Finding {
    let word = shell::word(path);
    let error = match keyfile::load(path) {
        Ok(key) => {
            return Finding::ok(
                Id::SigningKey,
                format!("{}, key_id {}", EscapedPath(path), key.key_id()),
                "only its owner can read it",
            );
        }
        Err(error) => error,
    };
    let shown = EscapedPath(path);
    let (status, found, means, cure) = match error {
        KeyFileError::Missing(_) => (
            Status::Missing,
            format!("no file {shown}"),
            "nothing can be recorded without a key",
            Cure::say("make one:").line(format!("aegis keygen --out {word}")),
        ),
        KeyFileError::Exposed { mode, .. } => (
            Status::Unsafe,
            format!("{shown} is readable beyond its owner (mode {mode:04o})"),
            "aegis refuses it: others may have read it, and sign with it. If they may have, make \
             a new one",
            Cure::say("keep it from others:").line(format!("chmod 600 {word}")),
        ),
        KeyFileError::ForeignOwner { owner, .. } => (
            Status::Unsafe,
            format!("{shown} belongs to user id {owner}"),
            "aegis refuses it: its owner chooses which key it is",
            Cure::say("make one of your own:").line(format!("aegis keygen --out {word}.own")),
        ),
        KeyFileError::NotAFile(_) => (
            Status::Missing,
            format!("{shown} is not a regular file"),
            "nothing can be recorded without a key",
            Cure::say("name the file that aegis keygen wrote"),
        ),
        KeyFileError::NotASeed { fault, .. } => (
            Status::Missing,
            format!("{shown} holds no key: {fault}"),
            "nothing can be recorded without a key",
            Cure::say("name the file that aegis keygen wrote"),
        ),
        error => (
            Status::Unknown,
            error.to_string().replace('\n', "; "),
            "aegis cannot read it, and records nothing",
            Cure::say("let the user that runs aegis read it, and nobody else"),
        ),
    };
    Finding::new(Id::SigningKey, status, found, means).cured(cure)
}

fn audit(path: &Path, user: User) -> Vec<Finding> {
    let way = match Way::walk(path) {
        Ok(way) => way,
        Err(error) => return vec![unseen(Id::Audit, path, &error)],
    };
    let mut findings = vec![match Audit::at(path.to_owned()) {
        Audit::Directory(_) => audit_directory(path, &way, user),
        Audit::File(_) => audit_file(path, &way, user),
    }];
    findings.extend(of_way(Id::AuditPath, &way, user));
    if let Some(directory) = way.directory() {
        findings.push(storage::finding(&directory.path));
    }
    findings
}

fn audit_directory(path: &Path, way: &Way, user: User) -> Finding {
    let shown = EscapedPath(path);
    let Some(object) = way.object() else {
        return not_yet(path, way, "directory", "0700");
    };
    if object.kind != Kind::Directory {
        return refused(format!("{shown} is no directory"), "name another one");
    }
    if let Some(fault) = object.owner_fault(user) {
        return changeable(Id::Audit, fault);
    }
    match object.mode & 0o022 {
        0 => Finding::ok(
            Id::Audit,
            format!("directory {shown}, mode {:04o}", object.mode),
            "only its owner can add or remove records; each is made readable to its owner only",
        ),
        _ => Finding::new(
            Id::Audit,
            Status::Unsafe,
            format!(
                "directory {shown} is writable beyond its owner (mode {:04o})",
                object.mode
            ),
            "aegis refuses it: others could remove records or put theirs in",
        )
        .cured(Cure::say("keep it to yourself:").line(format!("chmod 700 {}", shell::word(path)))),
    }
}

fn audit_file(path: &Path, way: &Way, user: User) -> Finding {
    let shown = EscapedPath(path);
    if path.is_symlink() {
        return refused(
            format!("{shown} is a symbolic link"),
            "name the file itself, or a directory",
        );
    }
    let Some(object) = way.object() else {
        return not_yet(path, way, "file", "0600");
    };
    if object.kind != Kind::File {
        return refused(
            format!("{shown} is not a regular file"),
            "name a file or a directory",
        );
    }
    if let Some(fault) = object.owner_fault(user) {
        return changeable(Id::Audit, fault);
    }
    let chmod = Cure::say("keep it to yourself:").line(format!("chmod 600 {}", shell::word(path)));
    let found = format!("file {shown}, mode {:04o}", object.mode);
    if object.mode & 0o022 != 0 {
        let means = "others can write into the record: it would no longer verify";
        Finding::new(Id::Audit, Status::Unsafe, found, means).cured(chmod)
    } else if object.mode & 0o044 != 0 {
        let means = "others can read which tools were called, and when";
        Finding::new(Id::Audit, Status::Limited, found, means).cured(chmod)
    } else {
        Finding::ok(Id::Audit, found, "only its owner can read or change it")
    }
}

fn not_yet(path: &Path, way: &Way, what: &str, mode: &str) -> Finding {
    if let End::Unseen(place, error) = &way.end {
        return unseen(Id::Audit, place, error);
    }
    Finding::ok(
        Id::Audit,
        format!("{what} {}, which is not there yet", EscapedPath(path)),
        format!("aegis wrap makes it, mode {mode}"),
    )
}

/// What `wrap` does not record to.
fn refused(found: String, cure: &str) -> Finding {
    Finding::new(
        Id::Audit,
        Status::Missing,
        found,
        "aegis does not record to it",
    )
    .cured(Cure::say(cure))
}

fn policy(path: &Path, user: User) -> Vec<Finding> {
    let read = match parse::load(path) {
        Ok(set) => Finding::ok(
            Id::Policy,
            format!(
                "{}, {} rules, policy_set_hash {}",
                EscapedPath(path),
                set.rules().len(),
                set.hash()
            ),
            "it can be read, and is a policy",
        ),
        Err(error) => {
            let status = match &error {
                PolicyError::Read { error, .. } if error.kind() != io::ErrorKind::NotFound => {
                    Status::Unknown
                }
                _ => Status::Missing,
            };
            Finding::new(
                Id::Policy,
                status,
                error.to_string().replace('\n', "; "),
                "aegis wrap --policy does not start with it",
            )
            .cured(
                Cure::say("mend it; this shows what is wrong:")
                    .line(format!("aegis policy check {}", shell::word(path))),
            )
        }
    };
    let mut findings = vec![read];
    let way = Way::walk(path).ok();
    if let Some(object) = way.as_ref().and_then(Way::object) {
        let faults = [object.owner_fault(user), object.mode_fault()];
        findings.extend(
            faults
                .into_iter()
                .flatten()
                .map(|fault| changeable(Id::Policy, fault)),
        );
    }
    findings
}

/// Who has a say in where `path` leads.
fn on_the_way(id: Id, path: &Path, user: User) -> Vec<Finding> {
    match Way::walk(path) {
        Ok(way) => of_way(id, &way, user),
        Err(error) => vec![unseen(id, path, &error)],
    }
}

fn of_way(id: Id, way: &Way, user: User) -> Vec<Finding> {
    let mut findings: Vec<_> = way
        .faults(user)
        .into_iter()
        .map(|fault| changeable(id, fault))
        .collect();
    if let End::Unseen(place, error) = &way.end {
        findings.push(unseen(id, place, error));
    }
    if findings.is_empty() {
        let links: Vec<_> = way.stops.iter().filter(|s| s.kind == Kind::Link).collect();
        let found = match (links.as_slice(), way.stops.last()) {
            ([], _) | (_, None) => "no links".to_owned(),
            (links, Some(end)) => format!(
                "through {} to {}",
                links
                    .iter()
                    .map(|link| shown(link))
                    .collect::<Vec<_>>()
                    .join(", "),
                shown(end)
            ),
        };
        let means = "nobody but you and root can put another file there";
        findings.push(Finding::ok(id, found, means));
    }
    findings
}

fn shown(stop: &Stop) -> String {
    EscapedPath(&stop.path).to_string()
}

fn changeable(id: Id, fault: Fault) -> Finding {
    let means = match (fault.status, id) {
        (Status::Unknown, _) => "whether others could change it is not known",
        (_, Id::Policy) => "whoever can write it decides what is allowed",
        (_, Id::Audit) => "whoever owns it can change or remove the record",
        _ => "whoever can write there can put another file in its place",
    };
    Finding::new(id, fault.status, fault.found, means).cured(fault.cure)
}

fn unseen(id: Id, place: &Path, error: &io::Error) -> Finding {
    Finding::new(
        id,
        Status::Unknown,
        format!("{}: {}", EscapedPath(place), Escaped(&error.to_string())),
        "this user cannot look there, so nothing is known of it",
    )
    .cured(Cure::say(
        "ask as the user that runs aegis, or name another place",
    ))
}

#[cfg(test)]
mod tests;
