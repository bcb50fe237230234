//! Whether this user may make the namespaces of a confined server, tried for
//! real: in a process of its own, which does it and says how far it came.
//!
//! Asking the settings alone would not do: security modules, outer sandboxes
//! and limits all have a say, and what they say is told by an error only.

use std::fmt;
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use crate::confine::reexec::netlink::Netlink;

/// How far it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Namespaces {
    /// All the way.
    Given,
    /// Up to a step.
    Refused(Refused),
    /// Nobody knows: why the process gave no answer.
    Unknown(String),
}

/// What was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    pub(crate) step: Step,
    /// As the kernel numbers it.
    pub(crate) errno: i32,
}

/// In the order in which they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// A user namespace.
    User,
    /// The user's own id in it.
    UidMap,
    /// The group's.
    GidMap,
    /// A network namespace.
    Network,
    /// One of System V IPC.
    Ipc,
    /// A way to ask for network interfaces.
    Netlink,
    /// The loopback interface, up.
    Loopback,
    /// A listening socket on it.
    Listen,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "unshare of a user namespace",
            Self::UidMap => "write to uid_map",
            Self::GidMap => "write to gid_map",
            Self::Network => "unshare of a network namespace",
            Self::Ipc => "unshare of an IPC namespace",
            Self::Netlink => "netlink socket in the namespace",
            Self::Loopback => "RTM_NEWLINK, to bring up the loopback interface",
            Self::Listen => "listening socket on 127.0.0.1",
        })
    }
}

/// Asks a process of its own.
pub(super) fn ask() -> Namespaces {
    ask_process().unwrap_or_else(|error| Namespaces::Unknown(error.to_string()))
}

/// Tries it in this process, which must have one thread and do nothing else
/// afterwards.
pub(crate) fn answer() -> Namespaces {
    match leave() {
        Ok(()) => Namespaces::Given,
        Err(refused) => Namespaces::Refused(refused),
    }
}

fn ask_process() -> io::Result<Namespaces> {
    // The file itself, whatever has its name by now.
    let mut child = Command::new("/proc/self/exe")
        .arg(VERB)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let answer = match child.stdout.take() {
        Some(pipe) => read_within(pipe, WAIT),
        None => Err(io::ErrorKind::BrokenPipe.into()),
    };
    // It has nothing left to do, or too much.
    let _ = child.kill();
    child.wait()?;
    serde_json::from_slice(&answer?)
        .map_err(|_| io::Error::other("the process that was to try it gave no answer"))
}

/// Reads `pipe` to its end.
fn read_within(mut pipe: std::process::ChildStdout, wait: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + wait;
    let mut answer = vec![0; ANSWER_BYTES + 1];
    let mut length = 0;
    while length < answer.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Err(rustix::io::Errno::INTR) => continue,
            ready => ready?,
        };
        match pipe.read(&mut answer[length..])? {
            0 => break,
            more => length += more,
        }
    }
    if length > ANSWER_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    answer.truncate(length);
    Ok(answer)
}

/// One step at a time, so that the one that fails is known.
fn leave() -> Result<(), Refused> {
    let (uid, gid) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    enter(Step::User, CloneFlags::CLONE_NEWUSER)?;
    // Without this nobody but root may map a group. Old kernels lack the file.
    match std::fs::write("/proc/self/setgroups", "deny") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(refused(Step::GidMap, &error));
        }
        _ => {}
    }
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))
        .map_err(|error| refused(Step::UidMap, &error))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
        .map_err(|error| refused(Step::GidMap, &error))?;
    enter(Step::Network, CloneFlags::CLONE_NEWNET)?;
    enter(Step::Ipc, CloneFlags::CLONE_NEWIPC)?;
    let netlink = Netlink::open().map_err(|error| refused(Step::Netlink, &error))?;
    netlink
        .start_loopback()
        .map_err(|error| refused(Step::Loopback, &error))?;
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .map(drop)
        .map_err(|error| refused(Step::Listen, &error))
}

fn enter(step: Step, namespace: CloneFlags) -> Result<(), Refused> {
    unshare(namespace).map_err(|errno| Refused {
        step,
        errno: errno as i32,
    })
}

fn refused(step: Step, error: &io::Error) -> Refused {
    Refused {
        step,
        // An answer of the kernel that means nothing has no number.
        errno: error
            .raw_os_error()
            .unwrap_or(rustix::io::Errno::BADMSG.raw_os_error()),
    }
}

/// The hidden verb of the process that tries.
pub(crate) const VERB: &str = "__doctor-probe";

/// Its answer is one short row.
const ANSWER_BYTES: usize = 4096;

/// It makes a dozen system calls.
const WAIT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn said(script: &str) -> io::Result<Vec<u8>> {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answer = read_within(child.stdout.take().unwrap(), Duration::from_secs(60));
        let _ = child.kill();
        child.wait().unwrap();
        answer
    }

    #[test]
    fn an_answer_is_read_to_its_end_and_up_to_the_bound() {
        assert_eq!(said("printf a; printf b").unwrap(), b"ab");
        let at = format!("head -c {ANSWER_BYTES} /dev/zero");
        assert_eq!(said(&at).unwrap().len(), ANSWER_BYTES);
        let past = format!("head -c {} /dev/zero", ANSWER_BYTES + 1);
        assert_eq!(said(&past).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_process_that_says_nothing_is_not_waited_for() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let error = read_within(child.stdout.take().unwrap(), Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
