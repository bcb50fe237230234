//! The walk over a Chain, Line after Line in file order (SPEC §8).
//!
//! It holds what the writer held: the Session under way, its key, the next
//! `seq`, the hash of the last Line. What a row says on its own was examined
//! before, so that a walk costs little and can keep up with many threads.

use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::examine::{Auth, Examined, KeyRing, Kind, Line, Open, Place, Presence};
use super::reason::{FormatFault, Indeterminate, Limit, LineSignatureFault, Position, Tampered};
use super::require::Asked;
use super::seen::{Approvals, Calls, NameRef};
use super::trust::Trust;
use super::{
    Followed, InFlight, MAX_FOLLOWS, MAX_IN_FLIGHT_NAMES, Notes, Report, Verdict, VerifiedAs,
};
use crate::sign::{PublicKey, SignatureFault};
use crate::wire::decode::RowFault;
use crate::wire::digest::{self, Digest};
use crate::wire::line::SCHEMA_VERSION;

type KeyId = Digest<digest::PublicKey>;
type LineHash = Digest<digest::Line>;

/// A walk under way.
pub(super) struct Walk {
    trust: Trust,
    ring: Arc<KeyRing>,
    expect_head: Option<LineHash>,
    head_met: bool,
    /// Rows taken that are not blank.
    lines: u64,
    sessions: u64,
    session: Option<Session>,
    /// Hash of the last Line.
    tail: Option<LineHash>,
    coverage: Option<Position>,
    /// Keys of `open` Lines, with the number of the row where each came first.
    keys: Vec<(KeyId, u64)>,
    known_keys: HashSet<KeyId>,
    approvals: Approvals,
    calls: Calls,
    follows: Vec<Followed>,
    notes: Notes,
    asked: Asked,
    /// The first thing that keeps the file from being Verified.
    cap: Option<Indeterminate>,
    tampered: Option<Tampered>,
    /// A row that does not parse, as long as no other came after it.
    unparsable: Option<RowFault>,
    limit_met: bool,
    /// The file was begun by a later version.
    newer: bool,
}

/// The Session under way.
#[derive(Clone, Copy)]
struct Session {
    index: u64,
    key: PublicKey,
    key_id: KeyId,
    next_seq: u64,
    closed: bool,
}

/// How much is kept in memory before it is spilled.
#[derive(Clone, Copy)]
pub(super) struct Keep {
    pub(super) approvals: usize,
    pub(super) calls: usize,
}

impl Walk {
    pub(super) fn new(
        trust: Trust,
        expect_head: Option<LineHash>,
        asked: Asked,
        ring: Arc<KeyRing>,
        keep: Keep,
    ) -> Self {
        Self {
            trust,
            ring,
            expect_head,
            head_met: false,
            lines: 0,
            sessions: 0,
            session: None,
            tail: None,
            coverage: None,
            keys: Vec::new(),
            known_keys: HashSet::new(),
            approvals: Approvals::new(keep.approvals),
            calls: Calls::new(keep.calls),
            follows: Vec::new(),
            notes: Notes::default(),
            asked,
            cap: None,
            tampered: None,
            unparsable: None,
            limit_met: false,
            newer: false,
        }
    }

    /// Takes the next row that is not blank; breaks when no later row can
    /// change the verdict.
    ///
    /// # Errors
    /// When the temporary file for a very large question cannot be written.
    pub(super) fn take(&mut self, row: Examined, keep: Keep) -> io::Result<ControlFlow<()>> {
        if let Some(fault) = self.unparsable.take() {
            let line = self.lines;
            return Ok(self.contradict(Tampered::Malformed {
                line,
                fault: FormatFault::Row(fault),
            }));
        }
        self.lines += 1;
        let judged = match row {
            Examined::Unparsable(fault) => {
                self.unparsable = Some(fault);
                return Ok(ControlFlow::Continue(()));
            }
            Examined::Limit(limit) => {
                self.cap(Indeterminate::Limit {
                    line: self.lines,
                    limit,
                });
                self.limit_met = true;
                return Ok(ControlFlow::Break(()));
            }
            Examined::Fault(fault) => Err(self.malformed(fault)),
            Examined::Line(line) => self.line(*line, keep)?,
        };
        Ok(match judged {
            Ok(()) => ControlFlow::Continue(()),
            Err(reason) => self.contradict(reason),
        })
    }

    /// What the walk found, the input having ended or the walk having broken.
    ///
    /// # Errors
    /// When the temporary file for a very large question cannot be read.
    pub(super) fn finish(mut self) -> io::Result<Report> {
        if let Some(late) = self.approvals.first_duplicate()? {
            self.tampered = Some(Tampered::DuplicateDecision {
                at: late.at,
                approval_id: late.approval_id,
            });
            self.coverage = Some(late.at);
            self.keys.retain(|(_, first)| *first <= late.line);
            self.lines = late.line;
        }
        if self.unparsable.is_some() && self.cap.is_none() {
            self.cap = Some(Indeterminate::TornFinalLine { line: self.lines });
        }
        let closed = self.session.as_ref().is_some_and(|s| s.closed);
        let paired = self.calls.pair(MAX_IN_FLIGHT_NAMES)?;
        self.notes.outcomes_without_intent += paired.outcomes_without_intent;
        if closed {
            self.notes.unmatched_intents += paired.unmatched_intents;
        }
        let keys: Vec<_> = self.keys.iter().map(|(key_id, _)| *key_id).collect();
        let mut in_flight = None;
        let verdict = match (self.tampered, self.cap, &self.session) {
            (Some(reason), _, _) => Verdict::Tampered(reason),
            (None, Some(reason), _) => Verdict::Indeterminate(reason),
            (None, None, None) => Verdict::Indeterminate(Indeterminate::Empty),
            (None, None, Some(session)) if !closed => {
                in_flight = Some(InFlight {
                    count: paired.unmatched_intents,
                    call_ids: paired.first_unmatched,
                });
                Verdict::Indeterminate(Indeterminate::UnanchoredTail {
                    session: session.index,
                    in_flight: paired.unmatched_intents,
                })
            }
            (None, None, Some(_)) => Verdict::Verified(VerifiedAs::of(&self.trust, &keys)),
        };
        Ok(Report {
            verdict,
            keys,
            coverage: self.coverage,
            in_flight,
            sessions: self.sessions,
            lines: self.lines,
            head: self.tail,
            notes: self.notes,
            follows: self.follows,
            expected_head_met: self.head_met,
            limit_met: self.limit_met,
            newer: self.newer,
            required: self.asked.finish(),
        })
    }

    fn line(&mut self, line: Line, keep: Keep) -> io::Result<Result<(), Tampered>> {
        self.note_version(&line);
        if self.newer {
            return Ok(Ok(()));
        }
        let Line {
            version: _,
            place,
            kind,
            auth,
            foreign,
        } = line;
        let begun = match &kind {
            Kind::Open(open) => self.open(place, open, keep)?,
            other => self.link(place, other),
        };
        if let Err(reason) = begun {
            return Ok(Err(reason));
        }
        let at = self.position(place.seq);
        if let Err(reason) = self.check_signature(at, &kind, &auth) {
            return Ok(Err(reason));
        }
        if let Err(reason) = self.note(at, kind)? {
            return Ok(Err(reason));
        }
        self.notes.non_canonical_rows += u64::from(foreign);
        self.place(place);
        Ok(Ok(()))
    }

    /// A later version of the format may hash and sign by other rules, but
    /// never in a file that this version began (SPEC [VER-2]): there a newer
    /// Line is judged like any other, and anywhere else none is.
    fn note_version(&mut self, line: &Line) {
        if line.version <= SCHEMA_VERSION {
            return;
        }
        self.newer |= self.lines == 1;
        let session = match (&line.kind, &self.session) {
            (Kind::Open(_), _) | (_, None) => self.sessions,
            (_, Some(session)) => session.index,
        };
        self.cap(Indeterminate::NewerSchema {
            version: line.version,
            at: Position {
                session,
                seq: line.place.seq,
            },
        });
    }

    /// The rules for a Line that begins a Session.
    fn open(&mut self, place: Place, open: &Open, keep: Keep) -> io::Result<Result<(), Tampered>> {
        let session = self.sessions;
        if let Err(reason) = self.check_open(session, place, open) {
            return Ok(Err(reason));
        }
        let Some(key) = open.public_key else {
            return Ok(Err(self.malformed(FormatFault::OpenWithoutKey)));
        };
        let key_id = self.know_key(key);
        if !self.trust.accepts(&key) {
            let at = Position { session, seq: 0 };
            return Ok(Err(Tampered::UntrustedKey { at, key_id }));
        }
        self.begin(key, key_id, keep)?;
        Ok(Ok(()))
    }

    fn check_open(&mut self, session: u64, place: Place, open: &Open) -> Result<(), Tampered> {
        if place.seq != 0 {
            return Err(Tampered::SeqOutOfOrder {
                session,
                expected: 0,
                found: place.seq,
            });
        }
        if place.prev_hash != Digest::GENESIS {
            return Err(self.malformed(FormatFault::OpenNotGenesis));
        }
        match (self.tail, open.prev_session_tail) {
            (Some(expected), Some(found)) if found != expected => Err(Tampered::SessionBoundary {
                session,
                found,
                expected,
            }),
            (Some(expected), None) => Err(Tampered::NoBackReference { session, expected }),
            (None, Some(tail)) => {
                self.cap(Indeterminate::MissingHead { tail });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The rules for a Line that goes on with the Session.
    fn link(&mut self, place: Place, kind: &Kind) -> Result<(), Tampered> {
        let Some(session) = &self.session else {
            return Err(self.malformed(FormatFault::NoOpen));
        };
        let at = Position {
            session: session.index,
            seq: place.seq,
        };
        if let Some(expected) = self.tail
            && place.prev_hash != expected
        {
            return Err(Tampered::ChainBroken {
                at,
                found: place.prev_hash,
                expected,
            });
        }
        let (expected, closed) = (session.next_seq, session.closed);
        if place.seq < expected {
            return Err(Tampered::SeqOutOfOrder {
                session: at.session,
                expected,
                found: place.seq,
            });
        }
        if place.seq > expected {
            self.cap(Indeterminate::MissingLine {
                session: at.session,
                expected,
                found: place.seq,
            });
        }
        // A replayed Line is one out of order first of all.
        if closed && !matches!(kind, Kind::Unknown(_) | Kind::Checkpoint) {
            return Err(Tampered::AfterClose { at });
        }
        Ok(())
    }

    /// The signature, where the Line has or must have one.
    fn check_signature(&mut self, at: Position, kind: &Kind, auth: &Auth) -> Result<(), Tampered> {
        let present = !matches!(auth.signature, Presence::Absent);
        match kind {
            // Covered by the next signature through the Chain; its own, if
            // any, means nothing.
            Kind::Intent(_) => {
                self.notes.signed_intents += u64::from(present);
                return Ok(());
            }
            Kind::Unknown(_) if !present => return Ok(()),
            _ => {}
        }
        let judged = match self.judge(auth) {
            // What a later version signs with is not known here, so a member
            // `signature` that is none of ours counts as one that fails.
            Err(LineSignatureFault::Absent) if matches!(kind, Kind::Unknown(_)) => {
                Err(SignatureFault::Mismatch.into())
            }
            judged => judged,
        };
        judged.map_err(|fault| Tampered::Signature { at, fault })?;
        self.coverage = Some(at);
        Ok(())
    }

    fn judge(&self, auth: &Auth) -> Result<(), LineSignatureFault> {
        let invalid = LineSignatureFault::Invalid;
        let Some(Session { key, key_id, .. }) = self.session else {
            return Err(LineSignatureFault::Absent);
        };
        let expected = key_id;
        match (&auth.signature, auth.key_id) {
            (Presence::Absent | Presence::Unusable, _) | (_, None) => {
                Err(LineSignatureFault::Absent)
            }
            (_, Some(found)) if found != expected => {
                Err(LineSignatureFault::OtherKey { found, expected })
            }
            (Presence::Judged(judged), _) => judged.map_err(invalid),
            (Presence::Open(signed), _) => {
                let (message, signature) = &**signed;
                let judged = self.ring.cache.verify(&key, message, signature);
                judged.map_err(invalid)
            }
        }
    }

    /// What the Line means for the Lines to come.
    fn note(&mut self, at: Position, kind: Kind) -> io::Result<Result<(), Tampered>> {
        match kind {
            Kind::Open(open) => {
                self.asked.session(at.session, &open.claims);
                self.note_follows(open.follows);
            }
            Kind::Intent(Some(call)) => self.calls.intent(&call)?,
            Kind::Outcome(Some(call)) => self.calls.outcome(&call)?,
            Kind::Intent(None) | Kind::Outcome(None) => self.notes.calls_without_id += 1,
            Kind::Decision(None) => return Ok(Err(self.malformed(FormatFault::NoApprovalId))),
            Kind::Decision(Some(approval)) => return self.note_decision(at, approval),
            Kind::Close => {
                if let Some(session) = &mut self.session {
                    session.closed = true;
                }
            }
            Kind::Checkpoint => self.cap(Indeterminate::ReservedCheckpoint { at }),
            Kind::Unknown(token) => self.cap(Indeterminate::UnknownLineType { token, at }),
        }
        Ok(Ok(()))
    }

    fn note_decision(
        &mut self,
        at: Position,
        approval: NameRef,
    ) -> io::Result<Result<(), Tampered>> {
        Ok(if self.approvals.decide(&approval, self.lines, at)? {
            Ok(())
        } else {
            Err(Tampered::DuplicateDecision {
                at,
                approval_id: approval.name,
            })
        })
    }

    fn note_follows(&mut self, follows: Vec<Followed>) {
        if self.follows.len() + follows.len() > MAX_FOLLOWS {
            self.cap(Indeterminate::Limit {
                line: self.lines,
                limit: Limit::Follows,
            });
        } else {
            // No file has a longer name, so a cut one is as absent.
            self.follows.extend(follows.into_iter().map(|mut follows| {
                let end = follows.segment.floor_char_boundary(MAX_SEGMENT_BYTES);
                follows.segment.truncate(end);
                follows
            }));
        }
    }

    /// Begins a Session: what the one before left open stays open.
    fn begin(&mut self, key: PublicKey, key_id: KeyId, keep: Keep) -> io::Result<()> {
        let before = std::mem::replace(&mut self.calls, Calls::new(keep.calls)).pair(0)?;
        self.notes.unmatched_intents += before.unmatched_intents;
        self.notes.outcomes_without_intent += before.outcomes_without_intent;
        self.session = Some(Session {
            index: self.sessions,
            key,
            key_id,
            next_seq: 0,
            closed: false,
        });
        self.sessions += 1;
        Ok(())
    }

    fn place(&mut self, place: Place) {
        if let Some(session) = &mut self.session {
            session.next_seq = place.seq.saturating_add(1);
        }
        self.tail = Some(place.hash);
        self.head_met |= self.expect_head == Some(place.hash);
    }

    fn know_key(&mut self, key: PublicKey) -> KeyId {
        let key_id = key.key_id();
        if self.known_keys.insert(key_id) {
            self.keys.push((key_id, self.lines));
        }
        key_id
    }

    fn position(&self, seq: u64) -> Position {
        Position {
            session: self.session.as_ref().map_or(0, |s| s.index),
            seq,
        }
    }

    fn malformed(&self, fault: FormatFault) -> Tampered {
        Tampered::Malformed {
            line: self.lines,
            fault,
        }
    }

    fn contradict(&mut self, reason: Tampered) -> ControlFlow<()> {
        self.tampered = Some(reason);
        ControlFlow::Break(())
    }

    fn cap(&mut self, reason: Indeterminate) {
        self.cap.get_or_insert(reason);
    }
}

/// How much is kept of the name of a followed Segment.
const MAX_SEGMENT_BYTES: usize = 1024;
