//! Rate limits, simulated from what a record says of when its Calls came.
//!
//! A gate judges the Calls of a frame when the frame comes, and writes their
//! intents next. So the intents stand in the order of the judgements, and the
//! `time` of the first intent of a frame is that of its judgement. What a set
//! says of a Call turns on members of its outcome, which can stand behind those
//! of Calls judged later: a frame waits here until the outcome of each Call of
//! it, and of each before it, was met.
//!
//! Where that cannot be told, nothing is guessed: from there to the end of the
//! Session the simulation is *blind*.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use super::call::{self, Asked};
use super::line::Intent;
use crate::policy::judge::{Ruling, judge};
use crate::policy::rate::Windows;
use crate::policy::set::{Action, Set};
use crate::wire::digest::{Digest, Request, Text};
use crate::wire::time::Timestamp;

/// What a row that waited is told: the ruling, or that there is none.
pub(super) type Verdict<'s> = (u64, Option<Ruling<'s>>);

/// The rate limits of one Session after another.
pub(super) struct Rates<'s> {
    set: &'s Set,
    limits: Limits<'s>,
    windows: Windows,
    /// What has passed since the first frame, whatever became of it: so much
    /// as the clock went forward from one to the next.
    now: Duration,
    /// When the last one came.
    last: Option<Timestamp>,
    /// Frames not judged yet; only the last may still get Calls.
    frames: VecDeque<Frame>,
    /// The number of the first of them.
    first: u64,
    /// Where the Calls are whose outcome was not met.
    places: HashMap<CallKey, (u64, usize)>,
    /// A Call of this Session asserted more than its tool.
    has_axes: bool,
    blind: bool,
    bytes: usize,
}

/// What a recheck has to know of a Call to judge it.
pub(super) struct Made {
    pub(super) asked: Asked,
    /// A gate refuses its frame under every set.
    pub(super) is_refused: bool,
    /// A rate limit decides about it.
    pub(super) is_limited: bool,
    /// The row that waits for what is said of it.
    pub(super) row: Option<u64>,
}

type CallKey = Digest<Text>;

/// Calls that came together.
struct Frame {
    request_digest: Digest<Request>,
    /// When it came, by `Rates::now`.
    at: Duration,
    has_time: bool,
    calls: Vec<Call>,
    /// How many of them have no outcome yet.
    waiting: usize,
    bytes: usize,
}

enum Call {
    /// Its outcome was not met: all that is known is its tool.
    Waiting { key: CallKey, tool: String },
    /// It was.
    Made(Made),
}

impl<'s> Rates<'s> {
    /// None when the set has no rate limit: nothing has to be remembered then.
    pub(super) fn of(set: &'s Set) -> Option<Self> {
        Limits::of(set).map(|limits| Self::begin(set, limits))
    }

    fn begin(set: &'s Set, limits: Limits<'s>) -> Self {
        Self {
            set,
            limits,
            windows: Windows::default(),
            now: Duration::ZERO,
            last: None,
            frames: VecDeque::new(),
            first: 0,
            places: HashMap::new(),
            has_axes: false,
            blind: false,
            bytes: 0,
        }
    }

    /// Bytes that are held, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A Call came. One that cannot be placed blinds.
    pub(super) fn intent(&mut self, intent: Option<Intent>, told: &mut Vec<Verdict<'s>>) {
        if self.blind {
            return;
        }
        let Some(intent) = intent else {
            return self.lose_sight(told);
        };
        let digest = intent.request_digest;
        if self
            .frames
            .back()
            .is_none_or(|f| f.request_digest != digest)
        {
            self.seal();
            self.frames.push_back(Frame::new(digest, self.now));
        }
        self.advance(1, told);
        let tool = call::tool(&intent.tool_id, intent.cut.get(call::TOOL_ID), self.set);
        let time = intent.time.as_deref().and_then(Timestamp::parse);
        if time.is_none() && self.limits.may_limit(&tool) {
            return self.lose_sight(told);
        }
        let number = self.first + self.frames.len() as u64 - 1;
        if let Some(frame) = self.frames.back_mut() {
            let key = Digest::of(intent.call_id.as_bytes());
            if let Some(time) = time
                && !frame.has_time
            {
                // Where the clock was set back, nothing is known to have passed.
                let last = self.last.replace(time).unwrap_or(time);
                self.now += Duration::from_millis(time.unix_ms().saturating_sub(last.unix_ms()));
                frame.at = self.now;
                frame.has_time = true;
            }
            self.places.insert(key, (number, frame.calls.len()));
            let bytes = CALL_BYTES + tool.len();
            frame.calls.push(Call::Waiting { key, tool });
            frame.waiting += 1;
            frame.bytes += bytes;
            self.bytes += bytes;
        }
    }

    /// The outcome of a Call was met. Whether the row that waits for it will
    /// be told, or has to go without.
    pub(super) fn outcome(
        &mut self,
        call_id: &str,
        made: Made,
        told: &mut Vec<Verdict<'s>>,
    ) -> bool {
        self.has_axes |= made.asked.has_axes();
        let Some((number, at)) = self.places.remove(&Digest::of(call_id.as_bytes())) else {
            if made.is_limited && !self.blind {
                // Somewhere before it counted, and nobody knows where.
                self.give_up(told);
            }
            return false;
        };
        let place = usize::try_from(number - self.first).unwrap_or(usize::MAX);
        if let Some(frame) = self.frames.get_mut(place)
            && let Some(call) = frame.calls.get_mut(at)
        {
            let bytes = made.asked.bytes();
            frame.bytes += bytes;
            self.bytes += bytes;
            frame.waiting -= 1;
            *call = Call::Made(made);
        }
        self.advance(usize::from(!self.blind), told);
        true
    }

    /// What comes from here to the end of the Session cannot be told, nor what
    /// is said of the last frame, which may go on here. What came before can.
    pub(super) fn lose_sight(&mut self, told: &mut Vec<Verdict<'s>>) {
        if self.blind {
            return;
        }
        self.blind = true;
        if let Some(frame) = self.frames.pop_back() {
            told.extend(frame.rows().map(|row| (row, None)));
            self.forget(&frame);
        }
        self.advance(0, told);
    }

    /// Nothing that waits can be told, nor what comes.
    pub(super) fn give_up(&mut self, told: &mut Vec<Verdict<'s>>) {
        self.blind = true;
        for frame in self.frames.drain(..) {
            told.extend(frame.rows().map(|row| (row, None)));
        }
        self.places.clear();
        self.bytes = 0;
    }

    /// The Session is over.
    pub(super) fn end(&mut self, told: &mut Vec<Verdict<'s>>) {
        self.seal();
        while let Some(frame) = self.frames.front_mut() {
            if frame.waiting > 0 && self.has_axes && self.limits.concern(frame) {
                // It may have asserted what the others of its Session did.
                self.give_up(told);
                break;
            }
            frame.conclude();
            self.advance(0, told);
        }
        *self = Self::begin(self.set, std::mem::take(&mut self.limits));
    }

    /// The last frame gets no more Calls. One that no limit can be about
    /// changes nothing, and is forgotten.
    fn seal(&mut self) {
        let Some(frame) = self.frames.back() else {
            return;
        };
        if !self.limits.concern(frame)
            && let Some(frame) = self.frames.pop_back()
        {
            self.forget(&frame);
        }
    }

    /// A frame that was taken out is not waited for.
    fn forget(&mut self, frame: &Frame) {
        self.bytes -= frame.bytes;
        for call in &frame.calls {
            if let Call::Waiting { key, .. } = call {
                self.places.remove(key);
            }
        }
    }

    /// Judges the frames of which everything is known, but for the last `keep`.
    fn advance(&mut self, keep: usize, told: &mut Vec<Verdict<'s>>) {
        while self.frames.len() > keep
            && let Some(frame) = self.frames.pop_front_if(|frame| frame.waiting == 0)
        {
            self.first += 1;
            self.bytes -= frame.bytes;
            self.judge(&frame, told);
        }
    }

    fn judge(&mut self, frame: &Frame, told: &mut Vec<Verdict<'s>>) {
        let made = || {
            frame.calls.iter().filter_map(|call| match call {
                Call::Made(made) => Some(made),
                Call::Waiting { .. } => None,
            })
        };
        let understood: Vec<_> = made().filter(|made| !made.is_refused).collect();
        let requests: Vec<_> = understood.iter().map(|made| made.asked.request()).collect();
        let refused = made().any(|made| made.is_refused);
        let rulings = judge(self.set, &mut self.windows, &requests, refused, frame.at);
        for (made, ruling) in understood.iter().zip(rulings) {
            told.extend(made.row.map(|row| (row, Some(ruling))));
        }
    }
}

impl Frame {
    fn new(request_digest: Digest<Request>, at: Duration) -> Self {
        Self {
            request_digest,
            at,
            has_time: false,
            calls: Vec::new(),
            waiting: 0,
            bytes: 0,
        }
    }

    /// Of the Calls whose outcome never came, what their intents say is all.
    fn conclude(&mut self) {
        self.waiting = 0;
        for call in &mut self.calls {
            if let Call::Waiting { tool, .. } = call {
                *call = Call::Made(Made {
                    asked: Asked {
                        tool: std::mem::take(tool),
                        ..Asked::default()
                    },
                    is_refused: false,
                    is_limited: false,
                    row: None,
                });
            }
        }
    }

    fn rows(&self) -> impl Iterator<Item = u64> {
        self.calls.iter().filter_map(|call| match call {
            Call::Made(made) => made.row,
            Call::Waiting { .. } => None,
        })
    }
}

/// Which tools a limit of a set can be about.
#[derive(Default)]
struct Limits<'s> {
    any: bool,
    tools: HashSet<&'s str>,
}

impl<'s> Limits<'s> {
    fn of(set: &'s Set) -> Option<Self> {
        let limits = || {
            let is_limit = |action: &Action| matches!(action, Action::RateLimit(_));
            set.rules()
                .iter()
                .filter(move |rule| is_limit(&rule.action))
        };
        limits().next()?;
        Some(Self {
            any: limits().any(|rule| rule.tool.is_none()),
            tools: limits().filter_map(|rule| rule.tool.as_deref()).collect(),
        })
    }

    /// Whether one may decide about a Call of `frame`.
    fn concern(&self, frame: &Frame) -> bool {
        frame.calls.iter().any(|call| match call {
            Call::Waiting { tool, .. } => self.may_limit(tool),
            Call::Made(made) => made.is_limited,
        })
    }

    fn may_limit(&self, tool: &str) -> bool {
        self.any || self.tools.contains(tool)
    }
}

/// What a Call takes here besides its texts, about.
const CALL_BYTES: usize = 400;
