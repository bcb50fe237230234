//! When a document may be taken over: a machine that only sees what each look
//! at the file gave, and when (SPEC §6.7).

use std::mem;
use std::time::Duration;

use crate::wire::digest::{Digest, Text};

/// Watches the document at one path.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// What was acted on last.
    settled: Option<Sight>,
    /// What may settle, and when the first look at it ended.
    candidate: Option<(Sight, Duration)>,
    /// When the first look ended since which nothing settled.
    restless_since: Option<Duration>,
    /// It was said that nothing settles.
    told_restless: bool,
    /// Somebody waits for a report.
    asked: bool,
    /// What was reported last was bad.
    is_bad: bool,
    last: Option<Last>,
}

/// The last look that read the file.
#[derive(Clone, Copy, Debug)]
struct Last {
    stamp: Option<Stamp>,
    ended: Duration,
}

/// What the system says of a file without reading it. All of it is compared
/// for equality only, so no clock that is set matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) bytes: u64,
    /// Seconds and nanoseconds.
    pub(super) modified: (i64, i64),
    /// Seconds and nanoseconds.
    pub(super) changed: (i64, i64),
}

/// What reading the file gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// A document with these bytes.
    Whole(Digest<Text>),
    /// None, for this reason.
    Failed(String),
    /// It was written meanwhile.
    Moving,
}

/// One look that read the file. Times are on a clock that only goes forward.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) began: Duration,
    pub(super) ended: Duration,
    /// Before the read; `None` when there was none.
    pub(super) stamp: Option<Stamp>,
    pub(super) sight: Sight,
}

/// What a look leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing so far.
    Wait,
    /// The document of this look is to be judged, and
    /// [`Watch::judged`] told what came of it.
    Judge,
    /// There is no document, for this reason.
    Complain(String),
    /// The file does not come to rest.
    Restless,
}

/// What came of a document that was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// Another set is in force.
    Replaced,
    /// It says what is in force.
    Same,
    /// It was refused.
    Bad,
}

/// What is to be said of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Say {
    Nothing,
    Replaced,
    Unchanged,
    /// The file is good again, and what it says was in force all the time.
    GoodAgain,
    Bad,
}

impl Watch {
    /// Wants a report, whatever the next document is.
    pub(super) fn ask(&mut self) {
        self.asked = true;
    }

    /// Whether the file has to be read, given what it looks like from outside.
    pub(super) fn must_read(&self, stamp: Option<Stamp>, now: Duration) -> bool {
        let Some(last) = self.last else { return true };
        self.owes_report()
            || self.restless_since.is_some()
            || stamp.is_none()
            || stamp != last.stamp
            || now.saturating_sub(last.ended) >= REREAD
    }

    /// Takes what a look gave.
    pub(super) fn saw(&mut self, look: Look) -> Step {
        let Look {
            began,
            ended,
            stamp,
            sight,
        } = look;
        self.last = Some(Last { stamp, ended });
        if !self.owes_report() && self.settled.as_ref() == Some(&sight) {
            self.rest();
            return Step::Wait;
        }
        let since = match &self.candidate {
            Some((candidate, since)) if *candidate == sight => *since,
            _ => ended,
        };
        let is_settled = sight != Sight::Moving && began.saturating_sub(since) >= AGREE;
        if !is_settled {
            self.candidate = (sight != Sight::Moving).then_some((sight, since));
            return self.wait_longer(ended);
        }
        self.rest();
        self.settled = Some(sight.clone());
        match sight {
            Sight::Failed(why) => {
                self.judged(Judged::Bad);
                Step::Complain(why)
            }
            Sight::Whole(_) | Sight::Moving => Step::Judge,
        }
    }

    /// Takes what came of the document, and says what is to be said.
    pub(super) fn judged(&mut self, judged: Judged) -> Say {
        let was_asked = mem::take(&mut self.asked);
        let was_bad = mem::take(&mut self.is_bad) | mem::take(&mut self.told_restless);
        match judged {
            Judged::Replaced => Say::Replaced,
            Judged::Same if was_bad => Say::GoodAgain,
            Judged::Same if was_asked => Say::Unchanged,
            Judged::Same => Say::Nothing,
            Judged::Bad => {
                self.is_bad = true;
                Say::Bad
            }
        }
    }

    /// When the next look is due, after one that ended `now`.
    pub(super) fn due(&self, now: Duration) -> Duration {
        match &self.candidate {
            Some((_, since)) => *since + AGREE,
            None => now + INTERVAL,
        }
    }

    fn owes_report(&self) -> bool {
        self.asked || self.told_restless
    }

    fn rest(&mut self) {
        self.candidate = None;
        self.restless_since = None;
    }

    fn wait_longer(&mut self, now: Duration) -> Step {
        let since = *self.restless_since.get_or_insert(now);
        if self.told_restless || now.saturating_sub(since) < RESTLESS {
            return Step::Wait;
        }
        self.told_restless = true;
        Step::Restless
    }
}

/// How far two reads that agree are apart at least, from the end of the first
/// to the beginning of the second.
pub(super) const AGREE: Duration = Duration::from_millis(500);

/// The time between two looks while nothing happens.
pub(super) const INTERVAL: Duration = Duration::from_millis(500);

/// After this time the file is read even when it looks the same from outside:
/// a write within one tick of the file system's clock leaves no other trace,
/// neither does one through a memory map, and a network file system may show
/// what it remembers until the file is opened.
pub(super) const REREAD: Duration = Duration::from_secs(5);

/// A file that has not come to rest for this long is complained of.
pub(super) const RESTLESS: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
