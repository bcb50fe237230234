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
    /// Verified, and not as the caller requires.
    Unmet,
}

impl Exit {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Unreadable => 2,
            Self::Indeterminate => 3,
            Self::Unmet => 4,
        }
    }

    /// Of two inputs' ends the one that the process ends with: the first of
    /// 1, 2, 3, 4, 0.
    pub(super) fn or(self, other: Self) -> Self {
        let order = [
            Self::Failed,
            Self::Unreadable,
            Self::Indeterminate,
            Self::Unmet,
        ];
        self.first_of(other, order)
    }

    /// Of two the one that `order` names first; what it does not name is last.
    pub(super) fn first_of<const N: usize>(self, other: Self, order: [Self; N]) -> Self {
        let rank = |exit| order.iter().position(|&named| named == exit).unwrap_or(N);
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
