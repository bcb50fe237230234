//! Exit codes, which are API (SPEC §14).

use std::process::ExitCode;

/// How a verb of the offline kind ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Verified, or done.
    Ok,
    /// Tampered, or a usage error.
    Failed,
    /// An input could not be read.
    Unreadable,
    /// Indeterminate.
    Indeterminate,
}

impl Exit {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Unreadable => 2,
            Self::Indeterminate => 3,
        }
    }

    /// Of two inputs' ends the one that the process ends with: the first of
    /// 1, 2, 3, 0.
    pub(super) fn or(self, other: Self) -> Self {
        let rank = |exit| match exit {
            Self::Failed => 0,
            Self::Unreadable => 1,
            Self::Indeterminate => 2,
            Self::Ok => 3,
        };
        if rank(other) < rank(self) {
            other
        } else {
            self
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
