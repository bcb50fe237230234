//! Waiting for a helper without reaping it: its id must stay its own.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, waitid};

use super::start_error::StartError;

/// A child process that is watched.
#[derive(Debug)]
pub(super) struct Watch {
    pid: Pid,
    /// Readable when it has exited.
    exit: OwnedFd,
}

/// What came first. Something to read does, even when both have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Readable,
    Exited,
}

impl Watch {
    /// Watches a child that has not been reaped.
    ///
    /// # Errors
    /// When there is no such process, or the kernel is older than Linux 5.3.
    pub(super) fn new(pid: u32) -> Result<Self, StartError> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(StartError::Protocol)?;
        let exit = pidfd_open(pid, PidfdFlags::empty())
            .map_err(|error| StartError::Watch(error.into()))?;
        Ok(Self { pid, exit })
    }

    /// Waits until there is something to read, or the child has exited.
    ///
    /// # Errors
    /// When neither happens in time.
    pub(super) fn wait(&self, on: impl AsFd, deadline: Instant) -> Result<Seen, StartError> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut fds = [
                PollFd::new(&on, PollFlags::IN),
                PollFd::new(&self.exit, PollFlags::IN),
            ];
            match poll(&mut fds, Some(&left)) {
                Ok(0) => return Err(StartError::Timeout),
                Ok(_) if !fds[0].revents().is_empty() => return Ok(Seen::Readable),
                Ok(_) => return Ok(Seen::Exited),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(StartError::Watch(error.into())),
            }
        }
    }

    /// How the child ended, which has closed its side: it may still be about
    /// to.
    pub(super) fn ended_by(&self, deadline: Instant) -> StartError {
        match self.wait(&self.exit, deadline) {
            Ok(_) => self.ended(),
            Err(error) => error,
        }
    }

    /// How the child ended, if it has.
    pub(super) fn ended_if_gone(&self) -> Option<StartError> {
        self.status().is_some().then(|| self.ended())
    }

    fn status(&self) -> Option<WaitIdStatus> {
        let unreaped = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid), unreaped).ok().flatten()
    }

    /// How the child ended, which has.
    pub(super) fn ended(&self) -> StartError {
        let how = self.status().and_then(|status| {
            let exited = status
                .exit_status()
                .map(|code| format!("exited with {code}"));
            let killed = || {
                let signal = status.terminating_signal()?;
                Some(format!("was killed by signal {signal}"))
            };
            exited.or_else(killed)
        });
        StartError::Ended(how.unwrap_or_else(|| "ended".to_owned()))
    }
}
